//! The calls of a wave that have not returned.
//!
//! A call is a branch that saves the address of the next instruction in a pair of SGPRs. A return is a jump to
//! the address after a call. Other jumps are no returns, and programs without calls have no call stacks.

use isa_spec::tables::Role;
use wavesim_engine::observe::Step;
use wavesim_machine::exec::effects::{Class, Effects, File};
use wavesim_machine::state::wave::EXEC_HI;

/// The register that holds the stack pointer: an offset in the lane's scratch (LLVM AMDGPUUsage, *Non-Kernel
/// Functions*).
pub const STACK_POINTER: u32 = 32;

/// Maximum depth of calls that are kept; the callers of deeper ones are forgotten.
const MAX_DEPTH: usize = 1 << 16;

/// A jump that may change the call stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jump {
    /// A call.
    Call,
    /// An indirect jump, perhaps a return.
    Indirect,
}

/// A call that has not returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Byte offset of the call instruction.
    pub pc: u64,
    /// Byte offset of the instruction after it.
    pub after: u64,
    /// The stack pointer of the caller.
    pub stack_pointer: u32,
    /// Wave-instructions of the dispatch executed before the call.
    pub time: u64,
}

/// The calls of a wave that have not returned, innermost last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallStack(Vec<Call>);

/// Returns the calls, and the jumps that may be returns, among the instructions of a program.
pub fn jumps(effects: &[Effects]) -> Vec<Option<Jump>> {
    let scalar = |file, first: u16| file == File::Sgpr && (first as usize) <= EXEC_HI;
    let of = |e: &Effects| match e.class {
        Class::Branch if e.writes.iter().any(|w| scalar(w.file, w.first) && w.count == 2) => Some(Jump::Call),
        // The target is in a register.
        Class::Branch if e.reads.iter().any(|r| r.count == 2 && r.role == Role::S0) => Some(Jump::Indirect),
        _ => None,
    };
    let mut jumps: Vec<Option<Jump>> = effects.iter().map(of).collect();
    if !jumps.contains(&Some(Jump::Call)) {
        jumps.fill(None);
    }
    jumps
}

impl CallStack {
    /// Returns the calls, innermost last.
    pub fn calls(&self) -> &[Call] {
        &self.0
    }

    /// Forgets all calls.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Records a jump that the wave has made. Returns the call from which it has returned, if it has.
    pub fn jumped(&mut self, jump: Jump, step: &Step<'_>) -> Option<Call> {
        if jump == Jump::Call {
            let after = step.pc + step.program.insts[step.index].size as u64;
            let stack_pointer = step.wave.sgpr(STACK_POINTER);
            self.0.push(Call { pc: step.pc, after, stack_pointer, time: step.time });
            if self.0.len() > MAX_DEPTH {
                self.0.remove(0);
            }
            return None;
        }
        let at = self.0.iter().rposition(|call| call.after == step.wave.pc)?;
        let call = self.0[at];
        self.0.truncate(at);
        Some(call)
    }
}
