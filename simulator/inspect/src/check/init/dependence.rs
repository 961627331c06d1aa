//! Definedness propagation by execution: determines which result bits of an instruction depend on undefined
//! source bits.
//!
//! The instruction runs on copies of the wave that differ in the undefined bits: all zeros, all ones, special
//! values of the number formats, the values of the other operands and values adjacent to them, and random
//! ones. Result bits that differ between the runs depend on undefined bits. All other bits are defined, as in
//! `x ^ x`, `x & 0`, an operand that `v_cndmask_b32` does not select, or a bit that is shifted out. No
//! propagation rule for any instruction is needed; user-supplied semantics are thus covered, too.

use super::definedness::{RegisterLane, Undefined};
use isa_spec::tables::Role;
use std::collections::HashMap;
use std::sync::LazyLock;
use wavesim_engine::observe::Step;
use wavesim_engine::{interp, reference};
use wavesim_machine::exec::context::Context;
use wavesim_machine::exec::effects::{Effects, File, Lanes, Use};
use wavesim_machine::exec::lower;
use wavesim_machine::isa;
use wavesim_machine::memory::Memory;
use wavesim_machine::state::wave::{ACC, SGPRS};
use wavesim_machine::state::{Wave, Workgroup};

/// Instructions that only compute do not access memory.
static NO_MEMORY: LazyLock<Memory> = LazyLock::new(Memory::empty);

/// Values at which the behaviour of instructions changes: bounds of integers, and zeros, ones, infinities and
/// NaNs of the float formats.
const SPECIAL: [u32; 18] = [
    0,
    u32::MAX,
    1,
    0x8000_0000,
    0x7fff_ffff,
    0x0000_ffff,
    0xffff_0000,
    0x0001_0000,
    0x8000_8000,
    0x3f80_0000,
    0xbf80_0000,
    0x7f80_0000,
    0x7fc0_0000,
    0x0080_0000,
    0x3ff0_0000,
    0x7ff0_0000,
    0x3c00_3c00,
    0x7c00_7c00,
];

/// Number of trials with random bits. Each trial detects about half of the bits that depend on them.
const RANDOM_TRIALS: u32 = 12;

/// The bits that depend on undefined source bits.
pub struct Outcome {
    /// Undefined bits of the results.
    pub results: Vec<Undefined>,
    /// Whether the next PC or MODE depends on undefined bits.
    pub affects_control: bool,
}

/// Returns the lanes of a VGPR that an instruction may touch: all lanes if data selects them.
pub fn lanes(used: &Use, wave: &Wave) -> u64 {
    if used.lanes == Lanes::Data { wave.full_mask() } else { used.lane_mask(wave) }
}

/// Number of equal outcomes for the same undefined sources after which fewer trials are made.
const CONFIRMED: u32 = 8;

/// The previous outcome of an instruction and its undefined sources.
struct PreviousOutcome {
    undefined: Vec<Undefined>,
    results: Vec<Undefined>,
    times: u32,
}

/// Runs instructions on copies of waves.
#[derive(Default)]
pub struct Trials {
    /// Scratch copy of the wave. Only the registers that the current instruction touches are up to date.
    wave: Option<Wave>,
    /// By instruction: the previous outcome.
    previous: HashMap<usize, PreviousOutcome>,
}

impl Trials {
    /// Runs the instruction with various values of its undefined sources. Returns `None` if it does more than
    /// compute.
    pub fn outcome(
        &mut self,
        step: &Step<'_>,
        effects: &Effects,
        undefined: &[Undefined],
    ) -> Option<Outcome> {
        let same =
            self.previous.get(&step.index).filter(|b| b.times >= CONFIRMED && b.undefined == undefined);
        if same.is_some() {
            let few = self.run(step, effects, undefined, &SPECIAL[1..2], &[], 2)?;
            let known = self.previous.get(&step.index).is_some_and(|b| b.results == few.results);
            if known && !few.affects_control {
                return Some(few);
            }
        }
        let others = operands(step, effects);
        let outcome = self.run(step, effects, undefined, &SPECIAL[1..], &others, RANDOM_TRIALS)?;
        let before = self.previous.entry(step.index).or_insert_with(|| PreviousOutcome {
            undefined: Vec::new(),
            results: Vec::new(),
            times: 0,
        });
        if before.undefined == undefined && before.results == outcome.results {
            before.times += 1;
        } else {
            *before =
                PreviousOutcome { undefined: undefined.to_vec(), results: outcome.results.clone(), times: 1 };
        }
        Some(outcome)
    }

    /// Runs trials with special values, with the values of operands and adjacent values, and with random
    /// ones.
    fn run(
        &mut self,
        step: &Step<'_>,
        effects: &Effects,
        undefined: &[Undefined],
        special: &[u32],
        others: &[Operand<'_>],
        random: u32,
    ) -> Option<Outcome> {
        let mut state = step.pc ^ 0x9e37_79b9_7f4a_7c15;
        let mut outcome = Outcome { results: Vec::new(), affects_control: false };
        let after = self.trial(step, effects, undefined, |_| SPECIAL[0])?;
        let base = (after.pc, after.mode);
        let values = results(step.wave, effects, after);
        // The bits of each result that have differed.
        let mut differ = vec![0; values.len()];
        let mut compare = |fill: &mut dyn FnMut(&Undefined) -> u32| -> Option<()> {
            let after = self.trial(step, effects, undefined, fill)?;
            outcome.affects_control |= base != (after.pc, after.mode);
            let others = results(step.wave, effects, after);
            for ((bits, (_, value)), (_, other)) in differ.iter_mut().zip(&values).zip(others) {
                *bits |= value ^ other;
            }
            Some(())
        };
        for value in special {
            compare(&mut |_| *value)?;
        }
        for other in others {
            for difference in [0, 1, u32::MAX] {
                compare(&mut |u| other.at(step.wave, u).wrapping_add(difference))?;
            }
        }
        for _ in 0..random {
            compare(&mut |_| {
                // xorshift64
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as u32
            })?;
        }
        let dependent = values.iter().zip(differ).filter(|(_, bits)| *bits != 0);
        outcome.results = dependent.map(|(&(reg, _), bits)| Undefined { reg, dword: 0, bits }).collect();
        outcome.results.sort_by_key(|u| (u.reg.file, u.reg.register, u.reg.lane));
        // Two uses may refer to the same register.
        outcome.results.dedup_by(|next, first| {
            let same = next.reg == first.reg;
            first.bits |= if same { next.bits } else { 0 };
            same
        });
        Some(outcome)
    }

    /// Runs the instruction with undefined bits filled in by `fill`, and returns the resulting wave.
    fn trial(
        &mut self,
        step: &Step<'_>,
        effects: &Effects,
        undefined: &[Undefined],
        mut fill: impl FnMut(&Undefined) -> u32,
    ) -> Option<&Wave> {
        let wave = self.wave.get_or_insert_with(|| step.wave.clone());
        copy(step.wave, effects, wave);
        for source in undefined {
            let Undefined { reg, bits, .. } = *source;
            let filled = value(wave, reg) & !bits | fill(source) & bits;
            match reg.file {
                File::Scc => wave.scc = filled & 1,
                File::Sgpr => wave.set_sgpr(reg.register as u32, filled),
                File::Vgpr if exists(wave, reg.register) => {
                    wave.set_vgpr(reg.lane, reg.register as u32, filled);
                }
                File::Vgpr => {}
            }
        }
        let (memory, mut workgroup) = (&*NO_MEMORY, Workgroup::default());
        let mut context = Context::new(memory, &mut [], &mut workgroup);
        let mut executed = 0;
        interp::run(step.program, wave, &mut context, 1, &mut executed).ok()?;
        (executed == 1).then_some(&*wave)
    }
}

/// Copies the state that an instruction may touch.
pub fn copy(from: &Wave, effects: &Effects, to: &mut Wave) {
    let uses = || effects.reads.iter().chain(&effects.writes);
    if to.size() != from.size()
        || to.vgpr_count() != from.vgpr_count()
        || uses().any(|u| u.relative.is_some())
    {
        to.clone_from(from);
        return;
    }
    to.sgprs[..SGPRS].copy_from_slice(&from.sgprs[..SGPRS]);
    to.rebuild_masks();
    (to.scc, to.pc, to.mode, to.code_base) = (from.scc, from.pc, from.mode, from.code_base);
    for used in uses().filter(|u| u.file == File::Vgpr) {
        for register in used.registers(from, false).filter(|r| exists(from, *r)) {
            for half in 0..from.halves() {
                to.set_lane_vec(half, register as usize, *from.lane_vec(half, register as usize));
            }
        }
    }
}

/// Returns the values of all results.
fn results(before: &Wave, effects: &Effects, after: &Wave) -> Vec<(RegisterLane, u32)> {
    let mut out = Vec::new();
    for used in &effects.writes {
        for register in used.registers(before, true) {
            let mut rest = if used.file == File::Vgpr { lanes(used, before) } else { 1 };
            while rest != 0 {
                let reg = RegisterLane { file: used.file, register, lane: rest.trailing_zeros() };
                rest &= rest - 1;
                out.push((reg, value(after, reg)));
            }
        }
    }
    out
}

/// An operand whose value is substituted for undefined values.
enum Operand<'u> {
    Register(&'u Use),
    Constant(u128),
}

impl Operand<'_> {
    /// Returns the dword of the operand that corresponds to an undefined one: in the same lane, and at the
    /// same index.
    fn at(&self, wave: &Wave, undefined: &Undefined) -> u32 {
        match self {
            Operand::Constant(value) => value.checked_shr(32 * undefined.dword as u32).unwrap_or(0) as u32,
            Operand::Register(used) => {
                let register = used.registers(wave, false).start + undefined.dword.min(used.count - 1);
                value(wave, RegisterLane { file: used.file, register, lane: undefined.reg.lane })
            }
        }
    }
}

fn operands<'e>(step: &Step<'_>, effects: &'e Effects) -> Vec<Operand<'e>> {
    let (program, inst) = (step.program, &step.program.insts[step.index]);
    let mut out: Vec<_> = effects.reads.iter().map(Operand::Register).collect();
    if let Some(code) = lower::operation(program.arch, inst.entry) {
        let info = &isa::OPERATIONS[code as usize];
        let constants = [Role::S0, Role::S1, Role::S2].into_iter().filter_map(|role| {
            reference::operand(program.arch, inst, (info.shape, info.fields), false, step.wave, role, 0)
        });
        out.extend(constants.map(Operand::Constant));
    }
    out
}

/// Returns whether the wave has a VGPR; accumulation VGPRs are not counted and always exist.
fn exists(wave: &Wave, register: u16) -> bool {
    register >= ACC as u16 || u32::from(register) < wave.vgpr_count()
}

fn value(wave: &Wave, reg: RegisterLane) -> u32 {
    match reg.file {
        File::Scc => wave.scc,
        File::Sgpr => wave.sgpr(reg.register as u32 & 127),
        File::Vgpr if exists(wave, reg.register) => wave.vgpr(reg.lane, reg.register as u32),
        File::Vgpr => wave.vgpr(reg.lane, wave.vgpr_count().saturating_sub(1)),
    }
}
