//! The calls of each wave, and the frames of functions that have returned: their bytes on the stack are undefined
//! again.
//!
//! Compiled functions find their frame at the stack pointer, s32, an offset in the lane's scratch (LLVM
//! AMDGPUUsage, *Non-Kernel Functions*). A return is a jump to the address after a call, with the stack pointer
//! of that call. Other jumps are no returns, and programs without calls have no frames.

use wavesim_engine::observe::Step;
use wavesim_machine::exec::effects::{Class, Effects, File};
use wavesim_machine::state::wave::EXEC_HI;

/// The register that holds the stack pointer.
const STACK_POINTER: u32 = 32;

/// Maximum depth of calls that are kept; the callers of deeper ones are forgotten.
const MAX_DEPTH: usize = 1 << 16;

/// A call that has not returned.
#[derive(Debug, Clone, Copy)]
struct Call {
    /// Byte offset of the instruction after the call.
    after: u64,
    stack_pointer: u32,
}

/// The calls of the waves of a workgroup.
#[derive(Default)]
pub struct Group(Vec<Vec<Call>>);

/// The calls of the waves of the running workgroup.
pub struct Frames {
    /// By instruction: whether it calls or returns.
    jumps: Vec<Option<Jump>>,
    waves: Vec<Vec<Call>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Jump {
    Call,
    /// An indirect jump, perhaps a return.
    Indirect,
}

impl Frames {
    /// Creates the state for a program with these effects.
    pub fn new(effects: &[Effects]) -> Frames {
        let scalar = |file, first: u16| file == File::Sgpr && (first as usize) <= EXEC_HI;
        let of = |e: &Effects| match e.class {
            Class::Branch if e.writes.iter().any(|w| scalar(w.file, w.first) && w.count == 2) => {
                Some(Jump::Call)
            }
            // The target is in a register.
            Class::Branch if e.reads.iter().any(|r| r.count == 2 && r.role == isa_spec::tables::Role::S0) => {
                Some(Jump::Indirect)
            }
            _ => None,
        };
        let mut jumps: Vec<Option<Jump>> = effects.iter().map(of).collect();
        if !jumps.contains(&Some(Jump::Call)) {
            jumps.fill(None);
        }
        Frames { jumps, waves: Vec::new() }
    }

    /// Returns whether an instruction, given by its index, calls or may return.
    pub fn must_observe(&self, index: usize) -> bool {
        self.jumps[index].is_some()
    }

    /// Starts a workgroup of `waves` waves.
    pub fn start(&mut self, waves: usize) {
        self.waves.iter_mut().for_each(Vec::clear);
        self.waves.resize_with(waves, Vec::new);
    }

    /// Swaps the state with that of another workgroup.
    pub fn swap(&mut self, group: &mut Group) {
        std::mem::swap(&mut self.waves, &mut group.0);
    }

    /// Records a jump that a wave has made. If it is a return, returns the offset in scratch from which on the
    /// bytes of all lanes are undefined.
    pub fn jumped(&mut self, step: &Step<'_>) -> Option<u64> {
        let jump = self.jumps[step.index]?;
        let stack_pointer = step.wave.sgpr(STACK_POINTER);
        let calls = &mut self.waves[step.wave.id as usize];
        let target = step.wave.pc;
        if jump == Jump::Call {
            let after = step.pc + step.program.insts[step.index].size as u64;
            calls.push(Call { after, stack_pointer });
            if calls.len() > MAX_DEPTH {
                calls.remove(0);
            }
            return None;
        }
        let at = calls.iter().rposition(|call| call.after == target)?;
        let call = calls[at];
        calls.truncate(at);
        (call.stack_pointer == stack_pointer).then_some(stack_pointer as u64)
    }
}
