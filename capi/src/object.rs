//! Launches of code objects.

use crate::device;
use crate::error::Error;
use crate::host::Space;
use crate::{wavesim_argument, wavesim_kernel, wavesim_module, wavesim_object_launch};
use std::ffi::c_char;
use wavesim::loader::code_object::Arg;
use wavesim_runtime::{self as runtime, Device, Kernel, Launch, MAX_INSTRUCTIONS, Module, Outcome};

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
            threads: 1,
            reserved: 0,
        }
    }
}

/// A launch, with copies of the memory that its pointers point to.
pub struct ObjectLaunch {
    given: wavesim_object_launch,
    object: Vec<u8>,
    kernel: Option<String>,
    kernarg: Vec<u8>,
}

impl ObjectLaunch {
    /// Copies the memory that the pointers in `given` point to.
    ///
    /// # Safety
    /// That of [`Space::bytes`], for these pointers.
    pub unsafe fn copied(space: &Space, given: &wavesim_object_launch) -> Result<ObjectLaunch, Error> {
        // SAFETY: required of the caller.
        let object = unsafe { space.bytes("launch.object", given.object, given.object_bytes)? };
        // SAFETY: required of the caller.
        Ok(ObjectLaunch { object, ..unsafe { ObjectLaunch::without_object(space, given)? } })
    }

    /// As [`ObjectLaunch::copied`], without the object.
    ///
    /// # Safety
    /// That of [`Space::bytes`], for these pointers.
    pub unsafe fn without_object(
        space: &Space,
        given: &wavesim_object_launch,
    ) -> Result<ObjectLaunch, Error> {
        let kernel = match given.kernel.is_null() {
            true => None,
            // SAFETY: required of the caller.
            false => Some(unsafe { space.string("launch.kernel", given.kernel)? }),
        };
        let kernarg = match given.kernarg_bytes {
            0 => Vec::new(),
            // SAFETY: required of the caller.
            len => unsafe { space.bytes("launch.kernarg", given.kernarg, len)? },
        };
        Ok(ObjectLaunch { given: *given, object: Vec::new(), kernel, kernarg })
    }
}

/// The kernel of a module that a string names, or the only one.
///
/// # Safety
/// That of [`Space::string`], or `name` is null.
pub unsafe fn kernel(space: &Space, module: wavesim_module, name: *const c_char) -> Result<Kernel, Error> {
    let name = match name.is_null() {
        true => None,
        // SAFETY: required of the caller.
        false => Some(unsafe { space.string("name", name)? }),
    };
    device::with_module(module, |module| {
        Ok(match name {
            Some(name) => module.kernel(&name)?,
            None => module.only_kernel()?,
        })
    })
}

impl wavesim_kernel {
    /// What the library says of a kernel.
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
    /// What the metadata says of an argument.
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

/// A string in an array, shortened to leave a zero after it.
pub fn text<const N: usize>(text: &str) -> [c_char; N] {
    let mut out = [0; N];
    for (to, from) in out[..N - 1].iter_mut().zip(text.bytes()) {
        *to = from as c_char;
    }
    out
}

/// Runs a launch of a kernel in a code object, which is loaded for it.
pub fn launch(device: &Device, launch: &ObjectLaunch) -> Result<Outcome, runtime::Error> {
    launch_of(&device.load(&launch.object)?, launch)
}

/// Runs a launch of a kernel in a module.
pub fn launch_of(module: &Module, launch: &ObjectLaunch) -> Result<Outcome, runtime::Error> {
    let kernel = match &launch.kernel {
        Some(name) => module.kernel(name)?,
        None => module.only_kernel()?,
    };
    let given = &launch.given;
    let shape = Launch {
        dynamic_lds: given.dynamic_lds_bytes,
        max_instructions: Some(given.max_instructions),
        threads: Some(device::threads(given.threads)),
        ..Launch::new(given.grid, given.block)
    };
    kernel.launch(&shape, &launch.kernarg)
}
