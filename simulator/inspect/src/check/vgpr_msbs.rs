//! The bits in MODE that extend VGPR numbers (CDNA 5, S_SET_VGPR_MSB), followed along the control flow. Where they
//! are known, the effects of instructions get the full register numbers, so that no check needs to know of them.

use super::wait_states::successors;
use isa_spec::pcode::builtins::Control;
use wavesim_asm::{Options, print};
use wavesim_isa::relative::VGPR_MSBS;
use wavesim_machine::exec::effects::{Effects, Relative, Use};
use wavesim_machine::exec::program::Program;

/// The bits before an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No path from the start of the program or of a function reaches the instruction.
    Unreached,
    /// The same on all paths.
    Known(u32),
    /// They differ between the paths that join before the instruction.
    Mixed,
    /// Set from a register.
    Unknown,
}

impl State {
    fn join(self, other: State) -> State {
        match (self, other) {
            (State::Unreached, state) | (state, State::Unreached) => state,
            (a, b) if a == b => a,
            (State::Unknown, _) | (_, State::Unknown) => State::Unknown,
            _ => State::Mixed,
        }
    }
}

fn extended(effects: &Effects) -> impl Iterator<Item = &Use> {
    let uses = effects.reads.iter().chain(&effects.writes);
    uses.filter(|used| matches!(used.relative, Some(Relative::Msb { .. })))
}

/// Replaces relative register numbers with full ones, where the bits are known.
pub(super) fn resolve(program: &Program, effects: &mut [Effects]) {
    if effects.iter().all(|e| extended(e).next().is_none()) {
        return;
    }
    let states = states(program, effects);
    for (effects, state) in effects.iter_mut().zip(states) {
        let State::Known(bits) = state else { continue };
        for used in effects.reads.iter_mut().chain(&mut effects.writes) {
            if let Some(Relative::Msb { position }) = used.relative {
                used.first += 256 * (bits >> position & 3) as u16;
                used.relative = None;
            }
        }
    }
}

/// Returns the instructions whose VGPR numbers depend on the path that leads to them; `effects` are the result
/// of [`resolve`].
pub(super) fn ambiguous(program: &Program, effects: &[Effects]) -> Vec<usize> {
    if effects.iter().all(|e| extended(e).next().is_none()) {
        return Vec::new();
    }
    let states = states(program, effects);
    (0..states.len())
        .filter(|&at| states[at] == State::Mixed && extended(&effects[at]).next().is_some())
        .collect()
}

fn states(program: &Program, effects: &[Effects]) -> Vec<State> {
    let count = effects.len();
    let options = Options::new(program.arch).wave(program.wave_size);
    let next: Vec<_> = (0..count).map(|at| successors(program, at)).collect();
    let mut has_predecessor = vec![false; count];
    next.iter().flatten().flatten().for_each(|to| has_predecessor[*to] = true);
    // The bits are zero at the start of a kernel and of a function, and after a call, as LLVM's code has it.
    let mut states: Vec<State> = has_predecessor
        .iter()
        .enumerate()
        .map(|(at, has)| if at == 0 || !has { State::Known(0) } else { State::Unreached })
        .collect();
    let mut work: Vec<usize> = (0..count).filter(|at| states[*at] != State::Unreached).collect();
    while let Some(at) = work.pop() {
        let after = match print::vgpr_msbs_after(&program.insts[at], &options) {
            Some(bits) => State::Known(bits),
            None if effects[at].mode & VGPR_MSBS == 0 || !writes_bits(program, at) => states[at],
            None => State::Unknown,
        };
        for to in next[at].into_iter().flatten() {
            let joined = states[to].join(after);
            if joined != states[to] {
                states[to] = joined;
                work.push(to);
            }
        }
    }
    states
}

/// Returns whether a write of a field of MODE includes the bits.
fn writes_bits(program: &Program, index: usize) -> bool {
    let Some(field) = program.insts[index].field(program.arch.table(), "SIMM16") else { return true };
    let (offset, size) = (field >> 6 & 31, (field >> 11 & 31) + 1);
    (u64::from(u32::MAX) >> (32 - size)) << offset & u64::from(VGPR_MSBS) != 0
}

/// The number of MODE as a hardware register.
const MODE: u32 = 1;

/// Returns the instructions that interfere with a write of MODE by S_SETREG, each with a message. The hardware writes
/// the bits of VGPR numbers even if the field does not include them (LLVM, `fixSetRegMode`), and a change of these bits
/// by the next instruction may be lost (CDNA5 manual, *Data Dependency Resolution*).
pub(super) fn mode_writes(program: &Program, effects: &[Effects]) -> Vec<(usize, String)> {
    let table = program.arch.table();
    let field = |at: usize, name| program.insts[at].field(table, name);
    let writes_mode = |at: &usize| {
        effects[*at].calls.contains(&Control::SetReg)
            && field(*at, "SIMM16").is_some_and(|register| register & 63 == MODE)
    };
    let writes: Vec<usize> = (0..effects.len()).filter(writes_mode).collect();
    if writes.is_empty() || !program.arch.facts().vgprs.msbs {
        return Vec::new();
    }
    let states = states(program, effects);
    let mut out = Vec::new();
    for at in writes {
        let next = successors(program, at)[0];
        if let Some(next) = next.filter(|next| effects[*next].mode == VGPR_MSBS) {
            let message = "it directly follows a write of MODE (s_setreg), so that its bits may be lost: another \
                           instruction must be between the two";
            out.push((next, message.to_string()));
        }
        let (Some(value), State::Known(before)) = (field(at, "SIMM32"), states[at]) else { continue };
        let offset = field(at, "SIMM16").unwrap_or(0) >> 6 & 31;
        let after = value << offset & VGPR_MSBS;
        if !writes_bits(program, at) && after != before & VGPR_MSBS {
            let message = format!(
                "hardware also writes bits 19:12 of MODE, which extend VGPR numbers: they become 0x{:x}, and should \
                 stay 0x{:x}",
                after >> 12,
                (before & VGPR_MSBS) >> 12
            );
            out.push((at, message));
        }
    }
    out
}
