//! Launches of code objects.

use crate::device;
use crate::error::Error;
use crate::host::AddressSpace;
use crate::{wavesim_argument, wavesim_exploration, wavesim_kernel, wavesim_module, wavesim_object_launch};
use std::ffi::c_char;
use wavesim::loader::code_object::Arg;
use wavesim_runtime::{
    self as runtime, Device, ExploreOptions, Kernel, Launch, MAX_INSTRUCTIONS, Module, Outcome,
};

impl Default for wavesim_object_launch {
    fn default() -> wavesim_object_launch {
        wavesim_object_launch {
            struct_size: size_of::<wavesim_object_launch>() as u32,
            dynamic_lds_bytes: 0,
            object: std::ptr::null(),
            object_bytes: 0,
            kernel: std::ptr::null(),
            grid: [1; 3],
            block: [1; 3],
            kernarg: std::ptr::null(),
            kernarg_bytes: 0,
            max_instructions: MAX_INSTRUCTIONS,
            threads: 0,
            reserved: 0,
        }
    }
}

/// A launch, with copies of the memory that its pointers refer to.
pub struct ObjectLaunch {
    given: wavesim_object_launch,
    object: Vec<u8>,
    kernel: Option<String>,
    kernarg: Vec<u8>,
}

impl ObjectLaunch {
    /// Copies the memory that the pointers in `given` refer to.
    ///
    /// # Safety
    /// The requirements of [`AddressSpace::bytes`] must hold for these pointers.
    pub unsafe fn copied(
        memory: &AddressSpace,
        given: &wavesim_object_launch,
    ) -> Result<ObjectLaunch, Error> {
        // SAFETY: the caller guarantees it.
        let object = unsafe { memory.bytes("launch.object", given.object, given.object_bytes)? };
        // SAFETY: the caller guarantees it.
        Ok(ObjectLaunch { object, ..unsafe { ObjectLaunch::without_object(memory, given)? } })
    }

    /// Copies the memory like [`ObjectLaunch::copied`], but ignores the object.
    ///
    /// # Safety
    /// The requirements of [`AddressSpace::bytes`] must hold for these pointers.
    pub unsafe fn without_object(
        memory: &AddressSpace,
        given: &wavesim_object_launch,
    ) -> Result<ObjectLaunch, Error> {
        let kernel = match given.kernel.is_null() {
            true => None,
            // SAFETY: the caller guarantees it.
            false => Some(unsafe { memory.string("launch.kernel", given.kernel)? }),
        };
        let kernarg = match given.kernarg_bytes {
            0 => Vec::new(),
            // SAFETY: the caller guarantees it.
            len => unsafe { memory.bytes("launch.kernarg", given.kernarg, len)? },
        };
        Ok(ObjectLaunch { given: *given, object: Vec::new(), kernel, kernarg })
    }
}

/// Returns the kernel with the given name, or the module's only kernel if `name` is null.
///
/// # Safety
/// `name` must be null or meet the requirements of [`AddressSpace::string`].
pub unsafe fn kernel(
    memory: &AddressSpace,
    module: wavesim_module,
    name: *const c_char,
) -> Result<Kernel, Error> {
    let name = match name.is_null() {
        true => None,
        // SAFETY: the caller guarantees it.
        false => Some(unsafe { memory.string("name", name)? }),
    };
    device::with_module(module, |module| {
        Ok(match name {
            Some(name) => module.kernel(&name)?,
            None => module.only_kernel()?,
        })
    })
}

impl wavesim_kernel {
    /// Returns the properties of a kernel.
    pub(crate) fn of(kernel: &Kernel) -> wavesim_kernel {
        wavesim_kernel {
            struct_size: size_of::<wavesim_kernel>() as u32,
            argument_count: kernel.arguments().count() as u32,
            address: kernel.address(),
            kernarg_bytes: kernel.kernarg_bytes(),
            lds_bytes: kernel.lds_bytes(),
            scratch_bytes: kernel.scratch_bytes(),
            wave_size: kernel.wave_size(),
            vgprs: kernel.vgprs(),
            sgprs: kernel.sgprs(),
            max_items: kernel.max_block_items(),
            required_block: kernel.required_block().unwrap_or_default(),
        }
    }
}

impl wavesim_argument {
    /// Returns the description of an argument.
    pub(crate) fn of(argument: &Arg) -> wavesim_argument {
        wavesim_argument {
            struct_size: size_of::<wavesim_argument>() as u32,
            offset: argument.offset,
            size: argument.size,
            reserved: 0,
            kind: text(&argument.kind),
            name: text(argument.name.as_deref().unwrap_or_default()),
        }
    }
}

/// Copies a string into a NUL-terminated array, truncating it if necessary.
pub fn text<const N: usize>(text: &str) -> [c_char; N] {
    let mut out = [0; N];
    for (to, from) in out[..N - 1].iter_mut().zip(text.bytes()) {
        *to = from as c_char;
    }
    out
}

/// Loads the launch's code object and runs its kernel.
pub fn launch(device: &Device, launch: &ObjectLaunch) -> Result<Outcome, runtime::Error> {
    launch_of(&device.load(&launch.object)?, launch)
}

/// Runs a kernel of a module.
pub fn launch_of(module: &Module, launch: &ObjectLaunch) -> Result<Outcome, runtime::Error> {
    let (kernel, shape) = shape_of(module, launch)?;
    kernel.launch(&shape, &launch.kernarg)
}

/// Explores a launch of a kernel of a module. Writes what was found to `given`; returns what differs.
pub fn explore_of(
    module: &Module,
    launch: &ObjectLaunch,
    given: &mut wavesim_exploration,
) -> Result<String, runtime::Error> {
    let (kernel, shape) = shape_of(module, launch)?;
    let options = ExploreOptions {
        schedules: given.schedules,
        depth: given.depth,
        first_seed: given.first_seed,
        tolerance: given.tolerance,
        delays: given.delays != 0,
        all: given.all != 0,
    };
    let explored = kernel.explore(&shape, &launch.kernarg, &options)?;
    given.found = explored.found.unwrap_or(0);
    given.run = explored.schedules;
    given.outcomes = explored.outcomes.len() as u64;
    given.probability = explored.bound(&options);
    Ok(explored.difference)
}

impl Default for wavesim_exploration {
    fn default() -> wavesim_exploration {
        let ExploreOptions { schedules, depth, first_seed, tolerance, delays, all } =
            ExploreOptions::default();
        wavesim_exploration {
            struct_size: size_of::<wavesim_exploration>() as u32,
            depth,
            schedules,
            first_seed,
            tolerance,
            delays: delays.into(),
            all: all.into(),
            run: 0,
            outcomes: 0,
            found: 0,
            probability: 0.0,
        }
    }
}

/// Returns the kernel of a launch, and its shape.
fn shape_of(module: &Module, launch: &ObjectLaunch) -> Result<(Kernel, Launch), runtime::Error> {
    let kernel = match &launch.kernel {
        Some(name) => module.kernel(name)?,
        None => module.only_kernel()?,
    };
    let given = &launch.given;
    let shape = Launch {
        dynamic_lds: given.dynamic_lds_bytes,
        max_instructions: Some(given.max_instructions),
        threads: device::threads(given.threads),
        ..Launch::new(given.grid, given.block)
    };
    Ok((kernel, shape))
}
