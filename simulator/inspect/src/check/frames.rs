//! The frames of functions that have returned: their bytes on the stack are undefined again.
//!
//! Compiled functions find their frame at the stack pointer, an offset in the lane's scratch (LLVM AMDGPUUsage,
//! *Non-Kernel Functions*). After a return with the stack pointer of the call, the bytes from there on are
//! undefined.

use crate::calls::{CallStack, Jump, STACK_POINTER, jumps};
use wavesim_engine::observe::Step;
use wavesim_machine::exec::effects::Effects;

/// The calls of the waves of a workgroup.
#[derive(Default)]
pub struct FrameGroup(Vec<CallStack>);

/// The calls of the waves of the running workgroup.
pub struct Frames {
    /// By instruction: whether it calls or may return.
    jumps: Vec<Option<Jump>>,
    waves: Vec<CallStack>,
}

impl Frames {
    /// Creates the state for a program with these effects.
    pub fn new(effects: &[Effects]) -> Frames {
        Frames { jumps: jumps(effects), waves: Vec::new() }
    }

    /// Returns whether an instruction, given by its index, calls or may return.
    pub fn must_observe(&self, index: usize) -> bool {
        self.jumps[index].is_some()
    }

    /// Starts a workgroup of `waves` waves.
    pub fn start(&mut self, waves: usize) {
        self.waves.iter_mut().for_each(CallStack::clear);
        self.waves.resize_with(waves, CallStack::default);
    }

    /// Swaps the state with that of another workgroup.
    pub fn swap(&mut self, group: &mut FrameGroup) {
        std::mem::swap(&mut self.waves, &mut group.0);
    }

    /// Records a jump that a wave has made. If it is a return, returns the offset in scratch from which on the
    /// bytes of all lanes are undefined.
    pub fn jumped(&mut self, step: &Step<'_>) -> Option<u64> {
        let jump = self.jumps[step.index]?;
        let stack_pointer = step.wave.sgpr(STACK_POINTER);
        let call = self.waves[step.wave.id as usize].jumped(jump, step)?;
        (call.stack_pointer == stack_pointer).then_some(stack_pointer as u64)
    }
}
