//! Which results of an instruction depend on undefined bits, found by execution.
//!
//! The instruction runs on copies of the wave whose undefined bits differ: all zeros, all ones, special values of the number formats,
//! the values of its other operands and their neighbours, and random ones. Bits of results that differ depend on the undefined ones;
//! bits that do not are defined, as in `x ^ x`, `x & 0`, an operand that `v_cndmask_b32` does not select, or a bit that is shifted out.
//! No rule for any instruction is needed, so replaced semantics are followed too.

use super::definedness::{Place, Undefined};
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

/// Instructions that only compute access none.
static NO_MEMORY: LazyLock<Memory> = LazyLock::new(Memory::empty);

/// Values at which instructions change their mind: bounds of integers, and zeros, ones, infinities and NaNs of the float formats.
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

/// Trials with random bits, each of which shows half of the bits that depend on them.
const RANDOM: u32 = 12;

/// What depends on undefined bits.
pub struct Outcome {
    /// Undefined bits of the results.
    pub results: Vec<Undefined>,
    /// Where the wave goes on, or its MODE.
    pub steers: bool,
}

/// Lanes of a VGPR that an instruction may touch: all, if data chooses them.
pub fn lanes(used: &Use, wave: &Wave) -> u64 {
    if used.lanes == Lanes::Data { wave.full_mask() } else { used.lane_mask(wave) }
}

/// After so many equal outcomes of an instruction with the same undefined sources, fewer trials confirm the next ones.
const CONFIRMED: u32 = 8;

/// What an instruction made of the same undefined sources before.
struct Before {
    undefined: Vec<Undefined>,
    results: Vec<Undefined>,
    times: u32,
}

/// Runs instructions on copies of waves.
#[derive(Default)]
pub struct Trials {
    /// Has the registers that the instruction at hand touches, and others of earlier ones.
    wave: Option<Wave>,
    /// By instruction.
    before: HashMap<usize, Before>,
}

impl Trials {
    /// Runs the instruction with various values of its undefined sources. `None` if it does more than compute.
    pub fn outcome(
        &mut self,
        step: &Step<'_>,
        effects: &Effects,
        undefined: &[Undefined],
    ) -> Option<Outcome> {
        let same = self.before.get(&step.index).filter(|b| b.times >= CONFIRMED && b.undefined == undefined);
        if same.is_some() {
            let few = self.run(step, effects, undefined, &SPECIAL[1..2], &[], 2)?;
            let known = self.before.get(&step.index).is_some_and(|b| b.results == few.results);
            if known && !few.steers {
                return Some(few);
            }
        }
        let others = operands(step, effects);
        let outcome = self.run(step, effects, undefined, &SPECIAL[1..], &others, RANDOM)?;
        let before = self.before.entry(step.index).or_insert_with(|| Before {
            undefined: Vec::new(),
            results: Vec::new(),
            times: 0,
        });
        if before.undefined == undefined && before.results == outcome.results {
            before.times += 1;
        } else {
            *before = Before { undefined: undefined.to_vec(), results: outcome.results.clone(), times: 1 };
        }
        Some(outcome)
    }

    /// Trials with special values, with the values of operands and their neighbours, and with random ones.
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
        let mut outcome = Outcome { results: Vec::new(), steers: false };
        let after = self.trial(step, effects, undefined, |_| SPECIAL[0])?;
        let base = (after.pc, after.mode);
        let values = results(step.wave, effects, after);
        // The bits of each that have differed.
        let mut differ = vec![0; values.len()];
        let mut compare = |fill: &mut dyn FnMut(&Undefined) -> u32| -> Option<()> {
            let after = self.trial(step, effects, undefined, fill)?;
            outcome.steers |= base != (after.pc, after.mode);
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
        outcome.results = dependent.map(|(&(place, _), bits)| Undefined { place, dword: 0, bits }).collect();
        outcome.results.sort_by_key(|u| (u.place.file, u.place.register, u.place.lane));
        // Two uses may name one register.
        outcome.results.dedup_by(|next, first| {
            let same = next.place == first.place;
            first.bits |= if same { next.bits } else { 0 };
            same
        });
        Some(outcome)
    }

    /// The wave after the instruction, if undefined bits have the values that `fill` gives.
    fn trial(
        &mut self,
        step: &Step<'_>,
        effects: &Effects,
        undefined: &[Undefined],
        mut fill: impl FnMut(&Undefined) -> u32,
    ) -> Option<&Wave> {
        let wave = self.wave.get_or_insert_with(|| step.wave.clone());
        copy(step.wave, effects, wave);
        for hole in undefined {
            let Undefined { place, bits, .. } = *hole;
            let filled = value(wave, place) & !bits | fill(hole) & bits;
            match place.file {
                File::Scc => wave.scc = filled & 1,
                File::Sgpr => wave.set_sgpr(place.register as u32, filled),
                File::Vgpr if exists(wave, place.register) => {
                    wave.set_vgpr(place.lane, place.register as u32, filled);
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

/// Copies what an instruction may touch.
fn copy(from: &Wave, effects: &Effects, to: &mut Wave) {
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

/// The values of all results.
fn results(before: &Wave, effects: &Effects, after: &Wave) -> Vec<(Place, u32)> {
    let mut out = Vec::new();
    for used in &effects.writes {
        for register in used.registers(before, true) {
            let mut rest = if used.file == File::Vgpr { lanes(used, before) } else { 1 };
            while rest != 0 {
                let place = Place { file: used.file, register, lane: rest.trailing_zeros() };
                rest &= rest - 1;
                out.push((place, value(after, place)));
            }
        }
    }
    out
}

/// A value to compare an undefined one with.
enum Operand<'u> {
    Register(&'u Use),
    Constant(u128),
}

impl Operand<'_> {
    /// The dword of it in the place of an undefined one: in the same lane, and as far from the first.
    fn at(&self, wave: &Wave, undefined: &Undefined) -> u32 {
        match self {
            Operand::Constant(value) => value.checked_shr(32 * undefined.dword as u32).unwrap_or(0) as u32,
            Operand::Register(used) => {
                let register = used.registers(wave, false).start + undefined.dword.min(used.count - 1);
                value(wave, Place { file: used.file, register, lane: undefined.place.lane })
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

/// Whether the wave has a VGPR; accumulation VGPRs are not counted, and all there.
fn exists(wave: &Wave, register: u16) -> bool {
    register >= ACC as u16 || u32::from(register) < wave.vgpr_count()
}

fn value(wave: &Wave, place: Place) -> u32 {
    match place.file {
        File::Scc => wave.scc,
        File::Sgpr => wave.sgpr(place.register as u32 & 127),
        File::Vgpr if exists(wave, place.register) => wave.vgpr(place.lane, place.register as u32),
        File::Vgpr => wave.vgpr(place.lane, wave.vgpr_count().saturating_sub(1)),
    }
}
