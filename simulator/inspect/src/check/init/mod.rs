//! `init`: results that depend on registers that nothing has written.
//!
//! Bits of registers are *undefined* until something writes them. Instructions that only compute pass them on: copies, spills to scratch,
//! and arithmetic, whose results are undefined in the bits that depend on undefined ones ([`dependence`]). So a function may save
//! registers of its caller, a load may fetch more than is wanted, and the unselected operand of a select may be anything. What is
//! reported is a use that others can see: an address, data that is stored, EXEC of a vector instruction, a branch, a message.

mod block;
mod definedness;
mod dependence;
mod simple;

use super::Check;
use super::mem;
use super::report::{Finding, Report, Site};
pub use block::Block;
use definedness::{Definedness, Place as Register, Root, Undefined};
use dependence::Trials;
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

/// The registers of a wave.
struct Registers {
    defined: Definedness,
    /// Undefined values in scratch, by lane and address of the dword. Bytes that are unwritten for [`mem`] and that are not here are
    /// wholly undefined.
    spilled: HashMap<(u32, u64), (u32, Root)>,
    /// Of the instruction at hand: numbers and lanes of the registers it writes.
    writing: Vec<(u16, u64)>,
    /// Of the instruction at hand: undefined results.
    results: Vec<(Undefined, Root)>,
    /// By instruction, memoised: lanes with which it can run again without reading or writing anything undefined. Registers mostly become
    /// defined; where one becomes undefined, all of this is invalid.
    proven: Vec<Option<u64>>,
    /// How often a register became undefined.
    undefines: u64,
}

/// The state of the waves of a workgroup.
#[derive(Default)]
pub struct Group(Vec<Registers>);

/// Which registers of every wave of the workgroup are defined.
pub struct Shadow {
    waves: Vec<Registers>,
    sgprs: u128,
    vgprs: usize,
    wave_size: u32,
    /// By instruction, those that are.
    simple: Vec<Option<Simple>>,
    /// Undefined values that were reported, with the PC of the first use: what else follows from them is no news.
    reported: HashMap<Root, u64>,
    trials: Trials,
}

impl Shadow {
    /// With the registers defined that the launch sets.
    pub fn new(effects: &[Effects], shape: &Shape) -> Shadow {
        let (sgprs, vgprs) = initial(shape);
        let simple = effects.iter().map(|effects| simple::simple(effects, shape.wave_size)).collect();
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

    /// A workgroup of so many waves begins, in the state after launch.
    pub fn start(&mut self, waves: usize) {
        for registers in &mut self.waves {
            registers.defined.reset(self.sgprs, self.vgprs);
            registers.spilled.clear();
            registers.results.clear();
            registers.proven.fill(None);
        }
        self.waves.resize_with(waves, || Registers {
            defined: Definedness::new(self.sgprs, self.vgprs, self.wave_size),
            spilled: HashMap::new(),
            writing: Vec::new(),
            results: Vec::new(),
            proven: vec![None; self.simple.len()],
            undefines: 0,
        });
    }

    /// Exchanges the workgroup that it follows.
    pub fn swap(&mut self, group: &mut Group) {
        std::mem::swap(&mut self.waves, &mut group.0);
    }

    /// Lanes with which an instruction of a wave can run without reading or writing anything undefined, EXEC among them. An instruction that
    /// has not been proven and is simple is so from now on, as it is the next one that runs, or comes after others that are proven.
    #[inline(always)]
    pub fn prove(&mut self, wave: &Wave, index: usize) -> Option<u64> {
        match self.waves[wave.id as usize].proven[index] {
            Some(lanes) if wave.exec() & !lanes == 0 => Some(lanes),
            _ => self.prove_now(wave, index),
        }
    }

    #[inline(never)]
    fn prove_now(&mut self, wave: &Wave, index: usize) -> Option<u64> {
        let registers = &mut self.waves[wave.id as usize];
        let lanes = self.simple[index].as_ref()?.run(&mut registers.defined, wave)?;
        registers.proven[index] = Some(lanes);
        Some(lanes)
    }

    /// Whether the instruction that has just run was proven.
    #[inline]
    pub fn is_proven_now(&self, wave: u32, index: usize) -> bool {
        self.waves[wave as usize].proven[index].is_some()
    }

    /// Reports what an instruction that is not proven uses and nothing has written.
    pub fn before(&mut self, step: &Step<'_>, effects: &Effects, report: &mut Report) {
        let registers = &mut self.waves[step.wave.id as usize];
        registers.proven[step.index] = None;
        registers.results.clear();
        let used = registers.uses(step, effects, &mut self.trials);
        let mut reporter = Reporter { reported: &mut self.reported, step, report };
        for undefined in used {
            let root = registers.defined.root(undefined.place);
            reporter.report(undefined.place, root);
            // What follows from it is no news.
            registers.defined.set(undefined.place, 0, None);
        }
        registers.writing.clear();
        let wave = step.wave;
        registers.writing.extend(effects.writes.iter().map(|w| (w.start(wave), w.lane_mask(wave))));
    }

    /// Whether a register became undefined: nothing is proven then.
    pub fn after(
        &mut self,
        step: &Step<'_>,
        done: &Done<'_>,
        effects: &Effects,
        memory: &mut mem::Shadow,
    ) -> bool {
        let registers = &mut self.waves[step.wave.id as usize];
        let before = registers.undefines;
        if registers.proven[step.index].is_none() {
            registers.written(step, effects);
        }
        if done.accesses.is_empty() || effects.atomic {
            return registers.undefines != before;
        }
        if effects.returns && memory.any_unwritten() {
            registers.loaded(step, done.accesses, effects, memory);
        } else if effects.class == Class::Scratch && !effects.returns {
            registers.spill(step, done.accesses, effects, memory);
        }
        registers.undefines != before
    }
}

/// Whether a source is only moved to memory that keeps track of what is defined.
fn is_spill(effects: &Effects, used: &Use) -> bool {
    effects.class == Class::Scratch && !effects.atomic && matches!(used.role, Role::Data | Role::Data1)
}

/// Whether an instruction may keep old bits of a register that it writes.
fn keeps(used: &Use) -> bool {
    let in_part = match used.file {
        File::Scc => false,
        File::Sgpr => used.bits != u32::MAX,
        File::Vgpr => used.bits != u32::MAX || !matches!(used.lanes, Lanes::Active | Lanes::All),
    };
    in_part || !used.always
}

/// Instructions without effects on anything but registers and the PC.
fn computes(effects: &Effects) -> bool {
    match effects.class {
        Class::Valu | Class::Matrix | Class::Salu | Class::Branch => effects.calls.is_empty(),
        // Lane moves that LDS hardware does.
        Class::Lds => effects.memory.is_empty() && effects.calls.is_empty(),
        _ => false,
    }
}

impl Registers {
    /// Undefined sources that an instruction uses, one for each operand. Undefined results of one that computes are kept in `results`.
    fn uses(&mut self, step: &Step<'_>, effects: &Effects, trials: &mut Trials) -> Vec<Undefined> {
        let wave = step.wave;
        let mut used = Vec::new();
        if effects.class.is_vector() {
            used.extend(self.exec(wave));
        }
        let index = |used: &Use| match used.relative {
            _ if used.index(wave).is_none() => 0,
            Some(Relative::M0 { index, .. }) => index.mask << index.shift,
            // The offset, and for which operands it is.
            Some(Relative::Mode { .. }) => INDEX_MASK | ENABLE_MASK,
            Some(Relative::Any) | None => 0,
        };
        let index = effects.reads.iter().chain(&effects.writes).fold(0, |all, used| all | index(used));
        used.extend(self.hole(M0, index));
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
        for result in effects.writes.iter().filter(|result| keeps(result)) {
            self.defined.collect(result, wave, dependence::lanes(result, wave), true, &mut undefined);
        }
        if undefined.is_empty() {
            return used;
        }
        match trials.outcome(step, effects, &undefined) {
            Some(outcome) if outcome.steers => used.extend(undefined[..sources].first()),
            Some(outcome) => {
                // Of several undefined sources the first is named. Without any, undefined bits are old ones that are kept.
                let root = undefined[..sources].first().map(|source| {
                    let mut root = self.defined.root(source.place);
                    root.read_by.get_or_insert(step.pc);
                    root
                });
                for result in outcome.results {
                    let root = root.unwrap_or_else(|| self.defined.root(result.place));
                    self.results.push((result, root));
                }
            }
            None => used.extend(undefined[..sources].first()),
        }
        used
    }

    /// Undefined bits of EXEC for lanes that the wave has.
    fn exec(&self, wave: &Wave) -> Option<Undefined> {
        let lanes = wave.full_mask();
        let low = self.hole(EXEC_LO, lanes as u32);
        low.or_else(|| self.hole(EXEC_HI, (lanes >> 32) as u32))
    }

    /// Undefined bits of a scalar register, of those given.
    fn hole(&self, register: usize, bits: u32) -> Option<Undefined> {
        let place = Register { file: File::Sgpr, register: register as u16, lane: 0 };
        let bits = self.defined.undefined_bits(place) & bits;
        (bits != 0).then_some(Undefined { place, dword: 0, bits })
    }

    /// The instruction has run: its results are defined, but for what depends on undefined bits.
    fn written(&mut self, step: &Step<'_>, effects: &Effects) {
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
            self.proven[step.index] = self.proves(effects, step.wave);
            return;
        }
        for (undefined, root) in std::mem::take(&mut self.results) {
            self.undefine(undefined.place, undefined.bits, root);
        }
    }

    fn undefine(&mut self, place: Register, bits: u32, root: Root) {
        if self.defined.set(place, bits, Some(root)) {
            self.proven.fill(None);
            self.undefines += 1;
        }
    }

    /// Lanes with which the instruction, which has just run, would find everything defined and write nothing that was not.
    fn proves(&self, effects: &Effects, wave: &Wave) -> Option<u64> {
        let mut lanes = u64::MAX;
        if effects.class.is_vector() && self.exec(wave).is_some() {
            return None;
        }
        let reads = effects.reads.iter().filter(|used| !is_spill(effects, used));
        for used in reads.chain(&effects.writes) {
            if used.relative.is_some() {
                return None;
            }
            if used.file != File::Vgpr {
                // Of those that are written each is defined now.
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

    /// Registers loaded from bytes that nothing wrote.
    fn loaded(&mut self, step: &Step<'_>, accesses: &[Access], effects: &Effects, memory: &mem::Shadow) {
        if effects.class == Class::Smem {
            return self.loaded_scalars(step, accesses, effects, memory);
        }
        let Some(dest) = effects.writes.iter().find(|w| w.file == File::Vgpr) else { return };
        // The bytes of a lane's accesses lie consecutively in its registers.
        let mut loaded = [0u64; 64];
        for a in accesses.iter().filter(|a| !a.write).flat_map(|a| a.each()) {
            let Some(lane) = a.lane.map(u32::from) else { continue };
            let offset = loaded[lane as usize & 63];
            loaded[lane as usize & 63] += a.size_bytes as u64;
            let Some(byte) = memory.unwritten(&a) else { continue };
            let register = dest.first + ((offset + byte) / 4) as u16;
            if register as usize >= ALL_VGPRS {
                continue;
            }
            let place = Register { file: File::Vgpr, register, lane };
            let spilled = self.spilled.get(&(lane, (a.address + byte) & !3)).copied();
            let (bits, root) = match spilled {
                Some((bits, root)) if a.place == Place::Scratch => (bits, root),
                _ => (dest.bits, Root { place, loaded_by: Some(step.pc), read_by: None }),
            };
            self.undefine(place, self.defined.undefined_bits(place) & !dest.bits | bits, root);
        }
    }

    /// Scalar registers loaded from beyond the end of memory.
    fn loaded_scalars(
        &mut self,
        step: &Step<'_>,
        accesses: &[Access],
        effects: &Effects,
        memory: &mem::Shadow,
    ) {
        let Some(dest) = effects.writes.iter().find(|w| w.file == File::Sgpr) else { return };
        let mut offset = 0;
        for a in accesses.iter().filter(|a| !a.write) {
            if let Some(byte) = memory.unwritten(a) {
                let (first, end) = ((offset + byte) / 4, (offset + a.len_bytes()).div_ceil(4));
                for register in (dest.first..dest.first + dest.count).take(end as usize).skip(first as usize)
                {
                    let place = Register { file: File::Sgpr, register, lane: 0 };
                    let root = Root { place, loaded_by: Some(step.pc), read_by: None };
                    self.undefine(place, u32::MAX, root);
                }
            }
            offset += a.len_bytes();
        }
    }

    /// Scratch stores of registers that are undefined.
    fn spill(&mut self, step: &Step<'_>, accesses: &[Access], effects: &Effects, memory: &mut mem::Shadow) {
        let Some(data) = effects.reads.iter().find(|r| r.role == Role::Data && r.file == File::Vgpr) else {
            return;
        };
        for a in accesses.iter().filter(|a| a.write && a.place == Place::Scratch).flat_map(|a| a.each()) {
            let Some(lane) = a.lane.map(u32::from) else { continue };
            for k in 0..data.count.min((a.size_bytes as u16).div_ceil(4)) {
                let place = Register { file: File::Vgpr, register: data.first + k, lane };
                let address = a.address + 4 * k as u64;
                let bits = self.defined.undefined_bits(place) & data.bits;
                if bits == 0 {
                    self.spilled.remove(&(lane, address));
                    continue;
                }
                self.spilled.insert((lane, address), (bits, self.defined.root(place)));
                memory
                    .forget(step.wave.id as usize, &Access { address, size_bytes: a.size_bytes.min(4), ..a });
            }
        }
    }
}

/// Some bits of a register are defined in some lanes.
fn define_bits(defined: &mut Definedness, register: u16, lanes: u64, bits: u32) {
    let mut rest = lanes & !defined.lanes(register);
    while rest != 0 {
        let place = Register { file: File::Vgpr, register, lane: rest.trailing_zeros() };
        rest &= rest - 1;
        let root = defined.root(place);
        defined.set(place, defined.undefined_bits(place) & !bits, Some(root));
    }
}

/// Reports uses of undefined values, each value once.
struct Reporter<'r, 's> {
    reported: &'r mut HashMap<Root, u64>,
    step: &'r Step<'s>,
    report: &'r mut Report,
}

impl Reporter<'_, '_> {
    /// The instruction at hand uses a place that is undefined.
    fn report(&mut self, used: Register, root: Root) {
        let step = self.step;
        let first = *self.reported.entry(root).or_insert(step.pc);
        let (check, kind) = match root.loaded_by {
            Some(_) => (Check::Mem, "unwritten bytes"),
            None => (Check::Init, "unwritten register"),
        };
        // The cause is where the undefined value is read first; what uses the result stands beside it.
        let at = root.read_by.unwrap_or(step.pc);
        let beside = root.loaded_by.or(root.read_by.map(|_| first));
        if !self.report.is_new(check, kind, at, beside) {
            return;
        }
        let place = if root.read_by.is_some() { root.place } else { used };
        let name = register_name(step.program.arch, place.file, place.register, 1);
        let lane = (place.file == File::Vgpr).then_some(place.lane);
        let whose = lane.map_or(String::new(), |l| format!(" in lane {l}"));
        let other = |pc| Site::at(step, pc, step.wave.workgroup, step.wave.id);
        let site = Site { lane, ..other(at) };
        self.report.add(match (root.loaded_by, root.read_by) {
            (Some(load), _) => {
                let message = format!("{name} is used{whose}, but the bytes it was loaded from were never written");
                Finding::new(check, kind, message, site)
                    .other("loaded by", other(load))
                    .register(place.file, place.register)
            }
            (None, read) => {
                let message = format!("{name} is read{whose}, but nothing has written it");
                let finding = Finding::new(check, kind, message, site).register(place.file, place.register);
                let finding = match read {
                    Some(_) => finding.other("the result is used by", other(step.pc)),
                    None => finding,
                };
                match lane {
                    Some(_) => finding.hint(
                        "a register keeps its old content in lanes that EXEC had switched off when it was written",
                    ),
                    None => finding,
                }
            }
        });
    }
}

/// SGPRs written at the start, as a mask by operand code, and the number of VGPRs from v0 on.
pub fn initial(shape: &Shape) -> (u128, usize) {
    let mut sgprs = 0b11u128 << EXEC_LO;
    // Trap temporaries have what the hardware put there.
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
        // They are in trap temporaries.
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
