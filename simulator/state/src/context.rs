//! The state that an instruction accesses besides the registers of its wave, as both executors take it.

use crate::Workgroup;
use crate::memory::Memory;
use std::sync::atomic::{AtomicBool, Ordering};

/// Memory and workgroup state that an instruction accesses.
pub struct Context<'a> {
    /// Global memory of the device.
    pub memory: &'a Memory,
    /// LDS of the workgroup, in bytes.
    pub lds: &'a mut [u8],
    /// Scratch of the wave, with the layout of [`scratch`](crate::scratch).
    pub scratch: &'a mut [u8],
    /// Bytes of scratch per lane.
    pub scratch_stride: u32,
    /// The workgroup's barriers.
    pub workgroup: &'a mut Workgroup,
    /// Wave-instructions that the dispatch has executed so far, which is the value of the clock.
    pub instructions: u64,
    /// Set to end the run, even within an instruction that the evaluator runs.
    pub cancel: Option<&'a AtomicBool>,
}

impl<'a> Context<'a> {
    /// Creates the context of a dispatch at its start, without scratch or cancellation.
    pub fn new(memory: &'a Memory, lds: &'a mut [u8], workgroup: &'a mut Workgroup) -> Context<'a> {
        Context { memory, lds, scratch: &mut [], scratch_stride: 0, workgroup, instructions: 0, cancel: None }
    }

    /// Returns whether the run has been cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}
