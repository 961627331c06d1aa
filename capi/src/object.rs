//! Launches of code objects: the image in its own memory, beside the mapped ranges of the device.

use crate::device::{self, Device, MAX_INSTRUCTIONS};
use crate::error::Error;
use crate::host::Space;
use crate::wavesim_object_launch;
use wavesim::loader::abi::Shape;
use wavesim::loader::code_object::{self, Wish};
use wavesim::loader::request;
use wavesim::memory::Memory;
use wavesim::sched::dispatch::RunStats;

/// Memory in addition to the image: kernarg segment, dispatch packet, alignment.
const SLACK: u64 = 64 << 10;

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
        Ok(ObjectLaunch { given: *given, object, kernel, kernarg })
    }
}

impl Device {
    /// Runs a launch of a kernel in a code object.
    pub fn launch_object(&self, launch: &ObjectLaunch) -> Result<RunStats, Error> {
        let object = code_object::open(&launch.object, &Wish { arch: Some(self.arch), processor: None })?;
        let name = match &launch.kernel {
            Some(name) => name.clone(),
            None => match <[String; 1]>::try_from(code_object::kernels(&object)?) {
                Ok([only]) => only,
                Err(names) => return Err(Error::Kernels(names)),
            },
        };
        let kernel = code_object::load(&object, &name)?;
        if kernel.arch != self.arch {
            return Err(Error::Arch { object: kernel.arch.name(), device: self.arch.name() });
        }
        let given = &launch.given;
        let shape = Shape { grid: given.grid, block: given.block, dynamic_lds: given.dynamic_lds_bytes };
        let own = kernel.image.size().saturating_add(kernel.kernarg_size as u64).saturating_add(SLACK);
        let memory = self.memory(Memory::new(own)?)?;
        let prepared = request::with_kernarg(&kernel, &launch.kernarg, &shape, memory)?;
        device::run(&prepared, given.threads, given.max_instructions)
    }
}
