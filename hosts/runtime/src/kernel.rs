//! Kernels: their arguments and resource requirements.

use crate::{Device, Error, Module};
use std::sync::Arc;
use wavesim::loader::code_object::{self, Arg};
use wavesim::loader::parameters::Parameter;
use wavesim::loader::request::{self, ArgumentError, ArgumentValue, LaunchError};
use wavesim::sched::dispatch::MAX_ITEMS;

/// Maximum alignment of an argument in bytes.
const ALIGNMENT: u64 = 16;

/// A kernel of a module.
#[derive(Clone)]
pub struct Kernel {
    pub(crate) module: Module,
    pub(crate) name: Arc<str>,
    pub(crate) code: Arc<code_object::Kernel>,
}

impl Kernel {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the module that contains the kernel.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Returns the device that the kernel runs on.
    pub fn device(&self) -> &Device {
        self.module.device()
    }

    /// Returns the explicit arguments; empty if the code object has no metadata.
    pub fn arguments(&self) -> impl Iterator<Item = &Arg> {
        self.code.explicit_args()
    }

    /// Returns names and types of the explicit arguments, also those of the debug information.
    pub fn parameters(&self) -> &[Parameter] {
        self.code.parameters()
    }

    /// Returns true if the kernel has a hidden argument of this kind (`hidden_hostcall_buffer`).
    pub fn has_hidden_argument(&self, kind: &str) -> bool {
        self.code.args.iter().flatten().any(|a| a.kind == kind)
    }

    /// Checks the size of explicit arguments.
    ///
    /// # Errors
    /// The kernel takes more or fewer bytes.
    pub fn check_arguments(&self, explicit: &[u8]) -> Result<(), Error> {
        self.segment(explicit).map(drop)
    }

    /// Returns a kernarg segment with these explicit arguments; hidden arguments are not set.
    pub(crate) fn segment(&self, explicit: &[u8]) -> Result<Vec<u8>, Error> {
        let (given, takes) = (explicit.len() as u64, self.kernarg_bytes());
        // Structures in C have trailing padding.
        if given > (takes as u64).next_multiple_of(ALIGNMENT) {
            return Err(Error::Arguments { given, takes });
        }
        Ok(request::kernarg_segment(&self.code, explicit)?)
    }

    /// Returns the size of the kernarg segment in bytes, including hidden arguments.
    pub fn kernarg_bytes(&self) -> u32 {
        self.code.kernarg_size()
    }

    /// Returns the static LDS size of a workgroup in bytes.
    pub fn lds_bytes(&self) -> u32 {
        self.code.group_segment()
    }

    /// Returns the maximum dynamic LDS size of a workgroup in bytes.
    pub fn max_dynamic_lds(&self) -> u32 {
        self.device().target().lds_bytes().saturating_sub(self.lds_bytes())
    }

    /// Returns the scratch size of a work-item in bytes.
    pub fn scratch_bytes(&self) -> u32 {
        self.code.private_segment()
    }

    /// Returns the number of lanes in a wave.
    pub fn wave_size(&self) -> u32 {
        self.code.wave_size()
    }

    /// Returns the number of VGPRs per wave.
    pub fn vgprs(&self) -> u32 {
        self.code.registers().vgprs as u32
    }

    /// Returns the number of SGPRs per wave.
    pub fn sgprs(&self) -> u32 {
        self.code.registers().sgprs as u32
    }

    /// Returns the required workgroup size, if the kernel has one.
    pub fn required_block(&self) -> Option<[u32; 3]> {
        self.code.block
    }

    /// Returns the maximum number of work-items in a workgroup.
    pub fn max_block_items(&self) -> u32 {
        let required = self.code.block.map(|block| block.iter().product());
        required.or(self.code.max_items).unwrap_or(MAX_ITEMS as u32)
    }

    /// Returns the address of the first instruction.
    pub fn address(&self) -> u64 {
        self.module.inner.image().wrapping_add(self.code.entry)
    }

    /// Returns the offset of the first instruction in `.text`.
    pub fn entry_pc(&self) -> u64 {
        self.code.entry - self.code.text.0
    }

    /// Lays out arguments according to the kernel's metadata, or as a C structure if there is no metadata.
    /// Pointers are passed as numbers. Returns the kernarg segment, and the dynamic LDS size that the
    /// arguments require.
    pub fn lay_out(&self, arguments: &[(String, ArgumentValue)]) -> Result<(Vec<u8>, u32), Error> {
        let argument_error =
            |name: &str| LaunchError::Argument { name: name.to_string(), reason: ArgumentError::Local };
        Ok(request::explicit_kernarg(&self.code, arguments, &mut |name, _| Err(argument_error(name)))?)
    }
}
