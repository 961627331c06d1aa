//! What an instruction reaches besides the registers of its wave. Both engines take it.

use crate::memory::Memory;
use crate::state::Workgroup;
use std::sync::atomic::{AtomicBool, Ordering};

/// Memory that an instruction reaches besides registers.
pub struct Context<'a> {
    /// Global memory of the device.
    pub memory: &'a Memory,
    /// LDS of the workgroup, in bytes.
    pub lds: &'a mut [u8],
    /// Private memory: lane l owns `[l * stride, (l + 1) * stride)`.
    pub scratch: &'a mut [u8],
    /// Bytes of private memory a lane.
    pub scratch_stride: u32,
    /// The workgroup's barriers.
    pub workgroup: &'a mut Workgroup,
    /// Wave-instructions of the dispatch so far: the clock counts them.
    pub instructions: u64,
    /// Set to end the run, also within an instruction that is evaluated.
    pub cancel: Option<&'a AtomicBool>,
}

impl<'a> Context<'a> {
    /// At the beginning of a dispatch without scratch, which nothing ends early.
    pub fn new(memory: &'a Memory, lds: &'a mut [u8], workgroup: &'a mut Workgroup) -> Context<'a> {
        Context { memory, lds, scratch: &mut [], scratch_stride: 0, workgroup, instructions: 0, cancel: None }
    }

    /// Whether the run is to end.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}
