//! Kernels: what they need, and their arguments.

use crate::{Device, Error, Module};
use std::sync::Arc;
use wavesim::loader::code_object::{self, Arg};
use wavesim::loader::request::{self, ArgumentError, ArgumentValue, LaunchError};
use wavesim::sched::dispatch::MAX_ITEMS;

/// The largest alignment of an argument.
const ALIGNMENT: u64 = 16;

/// A kernel of a module.
#[derive(Clone)]
pub struct Kernel {
    pub(crate) module: Module,
    pub(crate) name: Arc<str>,
    pub(crate) code: Arc<code_object::Kernel>,
}

impl Kernel {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The module that it is in.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The device that it runs on.
    pub fn device(&self) -> &Device {
        self.module.device()
    }

    /// The arguments that its source has; empty if the code object has no metadata.
    pub fn arguments(&self) -> impl Iterator<Item = &Arg> {
        self.code.explicit_args()
    }

    /// Whether a hidden argument of this kind is there (`hidden_hostcall_buffer`).
    pub fn wants(&self, kind: &str) -> bool {
        self.code.args.iter().flatten().any(|a| a.kind == kind)
    }

    /// Whether there are as many bytes of arguments as the kernel takes.
    ///
    /// # Errors
    /// There are more or fewer.
    pub fn check_arguments(&self, explicit: &[u8]) -> Result<(), Error> {
        self.segment(explicit).map(drop)
    }

    /// The kernarg segment with these arguments, without hidden ones.
    pub(crate) fn segment(&self, explicit: &[u8]) -> Result<Vec<u8>, Error> {
        let (given, takes) = (explicit.len() as u64, self.kernarg_bytes());
        // C pads structures at the end.
        if given > (takes as u64).next_multiple_of(ALIGNMENT) {
            return Err(Error::Arguments { given, takes });
        }
        Ok(request::kernarg_segment(&self.code, explicit)?)
    }

    /// Bytes of the kernarg segment, with hidden arguments.
    pub fn kernarg_bytes(&self) -> u32 {
        self.code.kernarg_size()
    }

    /// Static LDS of a workgroup.
    pub fn lds_bytes(&self) -> u32 {
        self.code.group_segment()
    }

    /// LDS that a workgroup can have in addition to the kernel's own.
    pub fn max_dynamic_lds(&self) -> u32 {
        self.device().target().lds_bytes().saturating_sub(self.lds_bytes())
    }

    /// Scratch memory of a work-item.
    pub fn scratch_bytes(&self) -> u32 {
        self.code.private_segment()
    }

    /// Lanes of a wave.
    pub fn wave_size(&self) -> u32 {
        self.code.wave_size()
    }

    /// VGPRs of a wave.
    pub fn vgprs(&self) -> u32 {
        self.code.registers().vgprs as u32
    }

    /// SGPRs of a wave.
    pub fn sgprs(&self) -> u32 {
        self.code.registers().sgprs as u32
    }

    /// The workgroup's size, if the kernel requires one.
    pub fn required_block(&self) -> Option<[u32; 3]> {
        self.code.block
    }

    /// The most work-items of a workgroup.
    pub fn max_block_items(&self) -> u32 {
        let required = self.code.block.map(|block| block.iter().product());
        required.or(self.code.max_items).unwrap_or(MAX_ITEMS as u32)
    }

    /// The address of its first instruction.
    pub fn address(&self) -> u64 {
        self.module.inner.image().wrapping_add(self.code.entry)
    }

    /// The program counter of its first instruction, and the size of the code: the entry, relative to `.text`.
    pub fn entry_pc(&self) -> u64 {
        self.code.entry - self.code.text.0
    }

    /// Lays arguments out as the kernel's metadata says; without metadata as a C structure. Pointers are numbers.
    /// Returns the kernarg segment, and the LDS that arguments take in addition to the kernel's own.
    pub fn lay_out(&self, arguments: &[(String, ArgumentValue)]) -> Result<(Vec<u8>, u32), Error> {
        let wrong =
            |name: &str| LaunchError::Argument { name: name.to_string(), reason: ArgumentError::Local };
        Ok(request::explicit_kernarg(&self.code, arguments, &mut |name, _| Err(wrong(name)))?)
    }
}
