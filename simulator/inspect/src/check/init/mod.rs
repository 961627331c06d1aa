//! `init`: uses of undefined registers, in the manner of MemorySanitizer.
//!
//! The bits of a register are *undefined* until an instruction writes them. Instructions that only compute
//! propagate definedness: copies, spills to scratch, and arithmetic, whose results are undefined in those
//! bits that depend on undefined ones ([`dependence`]). A function may thus save registers of its caller, a
//! load may fetch more than is needed, and the unselected operand of a select may be undefined. A finding is
//! a use with an observable effect: an address, data that is stored, EXEC of a vector instruction, a branch,
//! a message.

mod block;
mod definedness;
mod dependence;
mod simple;

use super::by_instruction::ByInstruction;
use super::kind::{Check, CheckState, Setup};
use super::mem;
use super::report::{Finding, Report, Site};
pub use block::Block;
use definedness::{Definedness, Origin};
pub use definedness::{RegisterLane, Undefined};
pub use dependence::copy as copy_touched;
pub use dependence::{Outcome, Trials, lanes};
use isa_spec::pcode::builtins::Control;
use isa_spec::tables::Role;
use simple::Simple;
use std::collections::HashMap;
use wavesim_engine::observe::{Done, Step};
use wavesim_engine::sched::dispatch::Layout;
use wavesim_isa::relative::{ENABLE_MASK, INDEX_MASK};
use wavesim_loader::prepared::Shape;
use wavesim_machine::exec::effects::{Class, Effects, File, Lanes, Relative, Use, register_name};
use wavesim_machine::exec::watch::{Access, Place};
use wavesim_machine::state::wave::{EXEC_HI, EXEC_LO, M0, TTMP};
use wavesim_machine::state::{ALL_VGPRS, Wave};

/// Shadow state of a wave.
struct WaveShadow {
    defined: Definedness,
    /// Undefined values in scratch, by lane and dword address. Bytes that [`mem`] considers unwritten and
    /// that are not listed here are entirely undefined.
    spilled: HashMap<(u32, u64), (u32, Origin)>,
    /// The current instruction's destination registers and their lanes.
    writing: Vec<(u16, u64)>,
    /// The current instruction's undefined results.
    results: Vec<(Undefined, Origin)>,
    /// By instruction, memoised: lanes for which it can run again without reading or writing anything
    /// undefined. Registers mostly become defined; if one becomes undefined, all entries are invalid.
    proven: ByInstruction<u64>,
    /// Number of times a register became undefined.
    undefine_count: u64,
}

/// Shadow state of the waves of a workgroup.
#[derive(Default)]
pub struct InitGroup(Vec<WaveShadow>);

/// Shadow state of the registers of all waves of the running workgroup.
pub struct Shadow {
    waves: Vec<WaveShadow>,
    sgprs: u128,
    vgprs: usize,
    wave_size: u32,
    /// By instruction: its summary, if it is simple.
    simple: Vec<Option<Simple>>,
    /// Origins that have been reported, with the PC of the first use. Further uses of the same value are not
    /// reported.
    reported: HashMap<Origin, u64>,
    trials: Trials,
}

impl CheckState for Shadow {
    type WorkgroupState = InitGroup;

    /// Creates the shadow state, in which the registers that the launch sets are defined.
    fn new(setup: &Setup<'_>) -> Shadow {
        let (shape, effects) = (&setup.prepared.shape, setup.effects);
        let (sgprs, vgprs) = initial(shape);
        let simple = effects.iter().map(|effects| simple::classify(effects, shape.wave_size)).collect();
        Shadow {
            waves: Vec::new(),
            sgprs,
            vgprs,
            wave_size: shape.wave_size,
            simple,
            reported: HashMap::new(),
            trials: Trials::default(),
        }
    }

    fn start(&mut self, _workgroup: [u32; 3], waves: usize) {
        for registers in &mut self.waves {
            registers.defined.reset(self.sgprs, self.vgprs);
            registers.spilled.clear();
            registers.results.clear();
            registers.proven.clear();
        }
        self.waves.resize_with(waves, || WaveShadow {
            defined: Definedness::new(self.sgprs, self.vgprs, self.wave_size),
            spilled: HashMap::new(),
            writing: Vec::new(),
            results: Vec::new(),
            proven: ByInstruction::new(self.simple.len()),
            undefine_count: 0,
        });
    }

    fn swap(&mut self, group: &mut InitGroup) {
        std::mem::swap(&mut self.waves, &mut group.0);
    }

    #[inline(always)]
    fn before(&mut self, step: &Step<'_>, effects: &Effects, report: &mut Report) {
        if self.prove(step.wave, step.index).is_none() {
            self.report_undefined(step, effects, report);
        }
    }
}

impl Shadow {
    /// Returns the lanes for which an instruction of a wave can run without reading or writing anything
    /// undefined; they include EXEC. A simple instruction is proven here if it was not yet. It must therefore
    /// be the next one to run, or follow only proven ones.
    #[inline(always)]
    pub fn prove(&mut self, wave: &Wave, index: usize) -> Option<u64> {
        match self.waves[wave.id as usize].proven.get(index) {
            Some(lanes) if wave.exec() & !lanes == 0 => Some(lanes),
            _ => self.prove_uncached(wave, index),
        }
    }

    #[inline(never)]
    fn prove_uncached(&mut self, wave: &Wave, index: usize) -> Option<u64> {
        let registers = &mut self.waves[wave.id as usize];
        let lanes = self.simple[index].as_ref()?.prove_and_define(&mut registers.defined, wave)?;
        registers.proven.set(index, Some(lanes));
        Some(lanes)
    }

    /// Returns whether the instruction that has just run was proven.
    #[inline]
    pub fn is_proven(&self, wave: u32, index: usize) -> bool {
        self.waves[wave as usize].proven.get(index).is_some()
    }

    /// Reports undefined values that an unproven instruction uses.
    fn report_undefined(&mut self, step: &Step<'_>, effects: &Effects, report: &mut Report) {
        let registers = &mut self.waves[step.wave.id as usize];
        registers.proven.set(step.index, None);
        registers.results.clear();
        let used = registers.undefined_uses(step, effects, &mut self.trials);
        let mut reporter = Reporter { reported: &mut self.reported, step, report };
        for undefined in used {
            let origin = registers.defined.origin(undefined.reg);
            reporter.report(undefined.reg, origin);
            // Further uses of the value are not reported.
            registers.defined.set(undefined.reg, 0, None);
        }
        registers.writing.clear();
        let wave = step.wave;
        registers.writing.extend(effects.writes.iter().map(|w| (w.start(wave), w.lane_mask(wave))));
    }

    /// Updates the shadow state after an instruction. Returns whether a register became undefined, which
    /// invalidates all proofs.
    pub fn after(
        &mut self,
        step: &Step<'_>,
        done: &Done<'_>,
        effects: &Effects,
        memory: &mut mem::Shadow,
    ) -> bool {
        let registers = &mut self.waves[step.wave.id as usize];
        let before = registers.undefine_count;
        if registers.proven.get(step.index).is_none() {
            registers.define_results(step, effects);
        }
        if done.accesses.is_empty() || effects.atomic {
            return registers.undefine_count != before;
        }
        if effects.returns && memory.any_unwritten() {
            registers.undefine_loaded(step, done.accesses, effects, memory);
        } else if effects.class == Class::Scratch && !effects.returns {
            registers.record_spill(step, done.accesses, effects, memory);
        }
        registers.undefine_count != before
    }
}

/// Returns whether a source is only moved to scratch, whose definedness is tracked.
fn is_spill(effects: &Effects, used: &Use) -> bool {
    effects.class == Class::Scratch && !effects.atomic && matches!(used.role, Role::Data | Role::Data1)
}

/// Returns whether an instruction may preserve old bits of a register that it writes.
pub fn is_partial_write(used: &Use) -> bool {
    let in_part = match used.file {
        File::Scc => false,
        File::Sgpr => used.bits != u32::MAX,
        File::Vgpr => used.bits != u32::MAX || !matches!(used.lanes, Lanes::Active | Lanes::All),
    };
    in_part || !used.always
}

/// Returns whether an instruction affects only registers and the PC.
pub fn computes(effects: &Effects) -> bool {
    match effects.class {
        // Reading a hardware register has no effect.
        Class::Valu | Class::Matrix | Class::Salu | Class::Branch => {
            effects.calls.iter().all(|call| *call == Control::GetReg)
        }
        // Lane permutations that the LDS hardware executes.
        Class::Lds => effects.memory.is_empty() && effects.calls.is_empty(),
        _ => false,
    }
}

impl WaveShadow {
    /// Returns undefined sources that an instruction uses, at most one per operand. For one that only
    /// computes, stores the undefined results in `results`.
    fn undefined_uses(&mut self, step: &Step<'_>, effects: &Effects, trials: &mut Trials) -> Vec<Undefined> {
        let wave = step.wave;
        let mut used = Vec::new();
        if effects.class.is_vector() {
            used.extend(self.undefined_exec(wave));
        }
        let index = |used: &Use| match used.relative {
            _ if used.index(wave).is_none() => 0,
            Some(Relative::M0 { index, .. }) => index.mask << index.shift,
            // The offset, and the operands to which it applies.
            Some(Relative::Mode { .. }) => INDEX_MASK | ENABLE_MASK,
            Some(Relative::Msb { .. } | Relative::Any) | None => 0,
        };
        let index = effects.reads.iter().chain(&effects.writes).fold(0, |all, used| all | index(used));
        used.extend(self.undefined_scalar(M0, index));
        let computes = computes(effects);
        let mut undefined = Vec::new();
        for source in effects.reads.iter().filter(|source| !is_spill(effects, source)) {
            let lanes = if computes { dependence::lanes(source, wave) } else { source.lane_mask(wave) };
            if !self.defined.is_defined(source, wave, lanes) {
                let first = undefined.len();
                self.defined.collect(source, wave, lanes, false, &mut undefined);
                used.extend(undefined.get(first).filter(|_| !computes));
            }
        }
        if !computes {
            return used;
        }
        let sources = undefined.len();
        for result in effects.writes.iter().filter(|result| is_partial_write(result)) {
            self.defined.collect(result, wave, dependence::lanes(result, wave), true, &mut undefined);
        }
        if undefined.is_empty() {
            return used;
        }
        match trials.outcome(step, effects, &undefined) {
            Some(outcome) if outcome.affects_control => used.extend(undefined[..sources].first()),
            Some(outcome) => {
                // Of several undefined sources, the first one is the origin. Without any, the undefined bits
                // are preserved old ones.
                let origin = undefined[..sources].first().map(|source| {
                    let mut origin = self.defined.origin(source.reg);
                    origin.read_by.get_or_insert(step.pc);
                    origin
                });
                for result in outcome.results {
                    let origin = origin.unwrap_or_else(|| self.defined.origin(result.reg));
                    self.results.push((result, origin));
                }
            }
            None => used.extend(undefined[..sources].first()),
        }
        used
    }

    /// Returns the undefined bits of EXEC for lanes that the wave has.
    fn undefined_exec(&self, wave: &Wave) -> Option<Undefined> {
        let lanes = wave.full_mask();
        let low = self.undefined_scalar(EXEC_LO, lanes as u32);
        low.or_else(|| self.undefined_scalar(EXEC_HI, (lanes >> 32) as u32))
    }

    /// Returns those of the given bits of a scalar register that are undefined.
    fn undefined_scalar(&self, register: usize, bits: u32) -> Option<Undefined> {
        let reg = RegisterLane { file: File::Sgpr, register: register as u16, lane: 0 };
        let bits = self.defined.undefined_bits(reg) & bits;
        (bits != 0).then_some(Undefined { reg, dword: 0, bits })
    }

    /// Defines the results of an instruction that has run, except for bits that depend on undefined ones.
    fn define_results(&mut self, step: &Step<'_>, effects: &Effects) {
        let computed = computes(effects);
        for (used, &(start, lanes)) in effects.writes.iter().zip(&self.writing) {
            for register in start..start.saturating_add(used.count) {
                if used.bits != u32::MAX && !computed && used.file == File::Vgpr {
                    define_bits(&mut self.defined, register, lanes, used.bits);
                } else {
                    self.defined.define(used.file, register, lanes);
                }
            }
        }
        if self.results.is_empty() {
            let lanes = self.provable_lanes(effects, step.wave);
            self.proven.set(step.index, lanes);
            return;
        }
        for (undefined, origin) in std::mem::take(&mut self.results) {
            self.undefine(undefined.reg, undefined.bits, origin);
        }
    }

    fn undefine(&mut self, reg: RegisterLane, bits: u32, origin: Origin) {
        if self.defined.set(reg, bits, Some(origin)) {
            self.proven.clear();
            self.undefine_count += 1;
        }
    }

    /// Returns the lanes for which the instruction that has just run would find everything defined and would
    /// define nothing new.
    fn provable_lanes(&self, effects: &Effects, wave: &Wave) -> Option<u64> {
        let mut lanes = u64::MAX;
        if effects.class.is_vector() && self.undefined_exec(wave).is_some() {
            return None;
        }
        let reads = effects.reads.iter().filter(|used| !is_spill(effects, used));
        for used in reads.chain(&effects.writes) {
            if used.relative.is_some() {
                return None;
            }
            if used.file != File::Vgpr {
                // Registers that the instruction writes are defined by now.
                if !self.defined.is_defined(used, wave, 0) {
                    return None;
                }
                continue;
            }
            let last = (used.first + used.count).min(ALL_VGPRS as u16);
            let all = (used.first..last).fold(u64::MAX, |all, r| all & self.defined.lanes(r));
            match used.lanes {
                Lanes::Active => lanes &= all,
                _ if all & wave.full_mask() == wave.full_mask() => {}
                _ => return None,
            }
        }
        Some(lanes)
    }

    /// Marks registers loaded from unwritten bytes as undefined.
    fn undefine_loaded(
        &mut self,
        step: &Step<'_>,
        accesses: &[Access],
        effects: &Effects,
        memory: &mem::Shadow,
    ) {
        if effects.class == Class::Smem {
            return self.undefine_loaded_scalars(step, accesses, effects, memory);
        }
        let Some(dest) = effects.writes.iter().find(|w| w.file == File::Vgpr) else { return };
        // The bytes of a lane's accesses are consecutive in its registers.
        let mut loaded = [0u64; 64];
        for a in accesses.iter().filter(|a| !a.write).flat_map(|a| a.each()) {
            let Some(lane) = a.lane.map(u32::from) else { continue };
            let offset = loaded[lane as usize & 63];
            loaded[lane as usize & 63] += a.size_bytes as u64;
            let unwritten = memory.unwritten(&a);
            for dword in 0..a.size_bytes.div_ceil(4) as u64 {
                let bytes = (unwritten >> (4 * dword)) as u32 & 0xf;
                let register = dest.first + ((offset + 4 * dword) / 4) as u16;
                if bytes == 0 || register as usize >= ALL_VGPRS {
                    continue;
                }
                let reg = RegisterLane { file: File::Vgpr, register, lane };
                let address = (a.address & !3) + 4 * dword;
                let spilled = self.spilled.get(&(lane, address)).copied();
                let (bits, origin) = match spilled {
                    Some((bits, origin)) if a.place == Place::Scratch => (bits, origin),
                    _ => {
                        let returned_by = match a.place {
                            Place::Scratch => memory.left_by(step.wave.id, address),
                            _ => None,
                        };
                        // A load of less than a dword may extend the sign.
                        let bits =
                            if a.size_bytes < 4 { dest.bits } else { dest.bits & bits_of_bytes(bytes) };
                        (bits, Origin { reg, loaded_by: Some(step.pc), returned_by, read_by: None })
                    }
                };
                self.undefine(reg, self.defined.undefined_bits(reg) & !dest.bits | bits, origin);
            }
        }
    }

    /// Marks scalar registers loaded from beyond the end of memory as undefined.
    fn undefine_loaded_scalars(
        &mut self,
        step: &Step<'_>,
        accesses: &[Access],
        effects: &Effects,
        memory: &mem::Shadow,
    ) {
        let Some(dest) = effects.writes.iter().find(|w| w.file == File::Sgpr) else { return };
        let mut offset = 0;
        for a in accesses.iter().filter(|a| !a.write) {
            let unwritten = memory.unwritten(a);
            for dword in 0..a.len_bytes().div_ceil(4).min(16) {
                let bytes = (unwritten >> (4 * dword)) as u32 & 0xf;
                let register = dest.first + ((offset + 4 * dword) / 4) as u16;
                if bytes != 0 && register < dest.first + dest.count {
                    let reg = RegisterLane { file: File::Sgpr, register, lane: 0 };
                    let origin = Origin { reg, loaded_by: Some(step.pc), returned_by: None, read_by: None };
                    // A load of less than a dword may extend the sign.
                    let bits = if a.len_bytes() < 4 { u32::MAX } else { bits_of_bytes(bytes) };
                    self.undefine(reg, bits, origin);
                }
            }
            offset += a.len_bytes();
        }
    }

    /// Records the undefined registers that an instruction stores to scratch.
    fn record_spill(
        &mut self,
        step: &Step<'_>,
        accesses: &[Access],
        effects: &Effects,
        memory: &mut mem::Shadow,
    ) {
        let Some(data) = effects.reads.iter().find(|r| r.role == Role::Data && r.file == File::Vgpr) else {
            return;
        };
        for a in accesses.iter().filter(|a| a.write && a.place == Place::Scratch).flat_map(|a| a.each()) {
            let Some(lane) = a.lane.map(u32::from) else { continue };
            for k in 0..data.count.min((a.size_bytes as u16).div_ceil(4)) {
                let reg = RegisterLane { file: File::Vgpr, register: data.first + k, lane };
                let address = a.address + 4 * k as u64;
                let bits = self.defined.undefined_bits(reg) & data.bits;
                if bits == 0 {
                    self.spilled.remove(&(lane, address));
                    continue;
                }
                self.spilled.insert((lane, address), (bits, self.defined.origin(reg)));
                memory.mark_unwritten(
                    step.wave.id as usize,
                    &Access { address, size_bytes: a.size_bytes.min(4), ..a },
                );
            }
        }
    }
}

/// Returns the bits of the bytes of a dword, given as a mask of four.
fn bits_of_bytes(bytes: u32) -> u32 {
    (0..4).filter(|byte| bytes >> byte & 1 == 1).fold(0, |bits, byte| bits | 0xff << (8 * byte))
}

/// Defines some bits of a register in some lanes.
fn define_bits(defined: &mut Definedness, register: u16, lanes: u64, bits: u32) {
    let mut rest = lanes & !defined.lanes(register);
    while rest != 0 {
        let reg = RegisterLane { file: File::Vgpr, register, lane: rest.trailing_zeros() };
        rest &= rest - 1;
        let origin = defined.origin(reg);
        defined.set(reg, defined.undefined_bits(reg) & !bits, Some(origin));
    }
}

/// Reports uses of undefined values, each value once.
struct Reporter<'r, 's> {
    reported: &'r mut HashMap<Origin, u64>,
    step: &'r Step<'s>,
    report: &'r mut Report,
}

impl Reporter<'_, '_> {
    /// Reports that the current instruction uses an undefined register.
    fn report(&mut self, used: RegisterLane, origin: Origin) {
        let step = self.step;
        let first = *self.reported.entry(origin).or_insert(step.pc);
        let (check, kind) = match origin.loaded_by {
            Some(_) if origin.returned_by.is_some() => (Check::Mem, "stack use after return"),
            Some(_) => (Check::Mem, "unwritten bytes"),
            None => (Check::Init, "unwritten register"),
        };
        // The cause is the first read of the undefined value; the use of its result is the related program
        // point.
        let at = origin.read_by.unwrap_or(step.pc);
        let related = origin.loaded_by.or(origin.read_by.map(|_| first));
        if !self.report.is_new(check, kind, at, related) {
            return;
        }
        let reg = if origin.read_by.is_some() { origin.reg } else { used };
        let name = register_name(step.program.arch, reg.file, reg.register, 1);
        let lane = (reg.file == File::Vgpr).then_some(reg.lane);
        let whose = lane.map_or(String::new(), |l| format!(" in lane {l}"));
        let other = |pc| Site::at(step, pc, step.wave.workgroup, step.wave.id);
        let site = Site { lane, ..other(at) };
        self.report.add(match (origin.loaded_by, origin.read_by) {
            (Some(load), _) => {
                let why = match origin.returned_by {
                    Some(_) => "belonged to the stack frame of a function that has returned",
                    None => "were never written",
                };
                let message = format!("{name} is used{whose}, but the bytes it was loaded from {why}");
                let returned = origin.returned_by.map(|pc| step.program.place(pc));
                let finding = Finding::new(check, kind, message, site)
                    .other("loaded by", other(load))
                    .register(reg.file, reg.register);
                match returned {
                    Some(place) => finding.hint(format!("the function returns at {place}")),
                    None => finding,
                }
            }
            (None, read) => {
                let message = format!("{name} is read{whose}, but was never written");
                let finding = Finding::new(check, kind, message, site).register(reg.file, reg.register);
                let finding = match read {
                    Some(_) => finding.other("the result is used by", other(step.pc)),
                    None => finding,
                };
                match lane {
                    Some(_) => finding.hint("a write does not change a register in lanes that are inactive"),
                    None => finding,
                }
            }
        });
    }
}

/// Returns the scalar registers that are defined at launch, as a mask by operand code, and the number of
/// defined VGPRs from v0 on.
pub fn initial(shape: &Shape) -> (u128, usize) {
    let mut sgprs = 0b11u128 << EXEC_LO;
    // Hardware initialises the trap temporaries.
    for code in TTMP {
        sgprs |= 1 << code;
    }
    for (first, values) in &shape.init.sgprs {
        for reg in *first as usize..*first as usize + values.len() {
            sgprs |= 1 << (reg & 127);
        }
    }
    match &shape.init.layout {
        Layout::Text { group_ids, item_ids } => {
            (0..3).filter(|d| group_ids[*d]).for_each(|d| sgprs |= 1 << d);
            (sgprs, item_ids.iter().rposition(|on| *on).map_or(0, |d| d + 1))
        }
        // The workgroup IDs are in trap temporaries.
        Layout::Hsa { architected: true, .. } => (sgprs, 1),
        Layout::Hsa { first_system_sgpr, group_ids, .. } => {
            let count = group_ids.iter().filter(|on| **on).count();
            (0..count).for_each(|d| sgprs |= 1 << ((*first_system_sgpr as usize + d) & 127));
            (sgprs, 1)
        }
        // Such machines clear their registers.
        Layout::Own(_) => (u128::MAX, ALL_VGPRS),
    }
}
