//! The observer: counts inexact results, and follows them through registers and memory.

use crate::memory::{Owner, TaintedMemory};
use crate::origin::{Cause, Origin, SetId, Sets};
use crate::sites::{self, Half, Site};
use foldhash::{HashMap, HashMapExt as _};
use isa_spec::tables::Role;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use wavesim_engine::observe::{Done, Observer, Step};
use wavesim_inspect::check::dependence::{
    RegisterLane, Trials, Undefined, computes, copy_touched, is_partial_write, lanes,
};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::{self, Class, Effects, File, Lanes, Use};
use wavesim_machine::state::Wave;
use wavesim_machine::state::wave::{EXEC_HI, EXEC_LO};

/// What an inexact value has decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sink {
    /// A store to global memory has written it.
    Store,
    /// It is part of an address.
    Address,
    /// It decides where the wave continues.
    Branch,
    /// It decides which lanes are active.
    Exec,
    /// It is sent by a message, or used by another instruction that does more than compute.
    Control,
}

/// Inexact bits of a register.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tainted {
    pub bits: u32,
    pub set: SetId,
}

/// The state of a wave.
#[derive(Default)]
pub(crate) struct WaveState {
    pub registers: HashMap<RegisterLane, Tainted>,
    /// For each write of the current instruction: the first register, and the lanes.
    pub writing: Vec<(u16, u64)>,
    /// Inexact results that the current instruction computes from inexact sources.
    results: Vec<(RegisterLane, Tainted)>,
    /// Lanes in which a conversion of the current instruction is out of range, for each half.
    converted: [u64; 2],
}

/// The waves of a workgroup, and its number.
#[derive(Default)]
pub(crate) struct WorkgroupTaint {
    pub number: u64,
    pub waves: Vec<WaveState>,
}

/// Counts the results of a run by their class, and follows inexact values.
pub struct Fidelity<'a> {
    pub(crate) prepared: &'a Prepared,
    pub(crate) effects: Vec<Effects>,
    pub(crate) sites: Vec<Site>,
    pub(crate) sets: Sets,
    pub(crate) memory: TaintedMemory,
    pub(crate) group: WorkgroupTaint,
    parked: HashMap<[u32; 3], WorkgroupTaint>,
    groups: u64,
    trials: Trials,
    copy: Option<Wave>,
    /// By instruction: its executions.
    pub(crate) counts: Vec<u64>,
    /// By origin: the number of inexact results, one for each lane.
    pub(crate) results: BTreeMap<Origin, u64>,
    /// What inexact values have decided, at which instruction: the number of executions.
    pub(crate) sinks: BTreeMap<(Sink, u32, SetId), u64>,
}

impl<'a> Fidelity<'a> {
    /// Creates the observer of a launch.
    pub fn new(prepared: &'a Prepared) -> Fidelity<'a> {
        let program = &prepared.program;
        Fidelity {
            prepared,
            effects: effects::table(program, prepared.shape.wave_size),
            sites: sites::of(program),
            sets: Sets::default(),
            memory: TaintedMemory::default(),
            group: WorkgroupTaint::default(),
            parked: HashMap::new(),
            groups: 0,
            trials: Trials::default(),
            copy: None,
            counts: vec![0; program.insts.len()],
            results: BTreeMap::new(),
            sinks: BTreeMap::new(),
        }
    }

    /// Records that an inexact value has decided something.
    pub(crate) fn sink(&mut self, sink: Sink, index: usize, set: SetId) {
        *self.sinks.entry((sink, index as u32, set)).or_default() += 1;
    }

    pub(crate) fn wave(&mut self, wave: u32) -> &mut WaveState {
        &mut self.group.waves[wave as usize]
    }

    pub(crate) fn owner(&self, wave: u32) -> Owner {
        Owner { group: self.group.number, wave }
    }

    /// Adds an inexact result to a register.
    pub(crate) fn taint(&mut self, wave: u32, reg: RegisterLane, bits: u32, set: SetId) {
        let before = self.wave(wave).registers.get(&reg).copied();
        let all = match before {
            Some(before) => Tainted { bits: before.bits | bits, set: self.sets.union(before.set, set) },
            None => Tainted { bits, set },
        };
        self.wave(wave).registers.insert(reg, all);
    }

    /// Follows the inexact sources of an instruction that is about to run.
    fn begin(&mut self, step: &Step<'_>) {
        let (wave, id) = (step.wave, step.wave.id);
        let effects = &self.effects[step.index];
        let (sources, used_at) = sources(&self.group.waves[id as usize], effects, wave);
        if !computes(effects) {
            let decides = |at: &usize| is_address(effects, &effects.reads[used_at[*at]]);
            let deciding: Vec<RegisterLane> =
                (0..sources.len()).filter(decides).map(|at| sources[at].reg).collect();
            let sink = if effects.class.is_memory() { Sink::Address } else { Sink::Control };
            if let Some(set) = self.origins(id, deciding) {
                self.sink(sink, step.index, set);
            }
            return;
        }
        let mut undefined = sources.clone();
        let old = effects.writes.iter().filter(|used| is_partial_write(used));
        old.for_each(|used| {
            collect(&self.group.waves[id as usize], used, wave, lanes(used, wave), true, &mut undefined);
        });
        if undefined.is_empty() {
            return;
        }
        let Some(outcome) = self.trials.outcome(step, effects, &undefined) else { return };
        let lanewise =
            effects.reads.iter().all(|used| used.file != File::Vgpr || used.lanes == Lanes::Active);
        let class = effects.class;
        if outcome.affects_control
            && let Some(set) = self.origins(id, sources.iter().map(|source| source.reg))
        {
            let sink = if class == Class::Branch { Sink::Branch } else { Sink::Control };
            self.sink(sink, step.index, set);
        }
        let mut exec = None;
        for result in outcome.results {
            let lane = (lanewise && result.reg.file == File::Vgpr).then_some(result.reg.lane);
            let in_lane =
                |reg: &RegisterLane| lane.is_none_or(|lane| reg.file != File::Vgpr || reg.lane == lane);
            let all = undefined.iter().map(|source| source.reg);
            let set = self.origins(id, all.clone().filter(in_lane)).or_else(|| self.origins(id, all));
            let Some(set) = set else { continue };
            let register = usize::from(result.reg.register);
            if result.reg.file == File::Sgpr && (EXEC_LO..=EXEC_HI).contains(&register) {
                exec = self.sets.union_of(exec, Some(set));
            } else {
                self.wave(id).results.push((result.reg, Tainted { bits: result.bits, set }));
            }
        }
        // The lanes that are active now are those of this run: what they compute is not followed further.
        if let Some(set) = exec {
            self.sink(Sink::Exec, step.index, set);
        }
    }

    /// Returns the origins of some registers of a wave, if any of them is inexact.
    fn origins(&mut self, wave: u32, list: impl IntoIterator<Item = RegisterLane>) -> Option<SetId> {
        let registers = &self.group.waves[wave as usize].registers;
        let sets = &mut self.sets;
        let own = list.into_iter().map(|reg| registers.get(&reg).map(|tainted| tainted.set));
        own.fold(None, |all, set| sets.union_of(all, set))
    }

    /// Finds conversions out of range before the instruction runs.
    fn convert(&mut self, step: &Step<'_>) {
        for second in [false, true] {
            let half = self.sites[step.index].halves[usize::from(second)].as_ref();
            let Some(half) = half.filter(|half| !half.conversions.is_empty()) else { continue };
            let copy = self.copy.get_or_insert_with(|| step.wave.clone());
            copy_touched(step.wave, &self.effects[step.index], copy);
            let lanes = half.unrepresentable(step.program, step.pc, second, copy);
            self.group.waves[step.wave.id as usize].converted[usize::from(second)] = lanes;
        }
    }

    /// Clears the registers that the instruction has overwritten, and adds the results of inexact sources.
    fn finish(&mut self, step: &Step<'_>) {
        let effects = &self.effects[step.index];
        let state = &mut self.group.waves[step.wave.id as usize];
        if !state.registers.is_empty() {
            let computed = computes(effects);
            for (used, &(start, lanes)) in effects.writes.iter().zip(&state.writing) {
                let kept = if computed || used.file != File::Vgpr { 0 } else { !used.bits };
                for register in start..start.saturating_add(used.count) {
                    let mut rest = if used.file == File::Vgpr { lanes } else { 1 };
                    while rest != 0 {
                        let reg = RegisterLane { file: used.file, register, lane: rest.trailing_zeros() };
                        rest &= rest - 1;
                        match state.registers.get_mut(&reg) {
                            Some(tainted) if tainted.bits & kept != 0 => tainted.bits &= kept,
                            Some(_) => {
                                state.registers.remove(&reg);
                            }
                            None => {}
                        }
                    }
                }
            }
        }
        for (reg, tainted) in std::mem::take(&mut self.wave(step.wave.id).results) {
            self.taint(step.wave.id, reg, tainted.bits, tainted.set);
        }
    }

    /// Adds the inexact results of the instruction itself.
    fn create(&mut self, step: &Step<'_>) {
        let id = step.wave.id;
        for second in [false, true] {
            let Some(half) = &self.sites[step.index].halves[usize::from(second)] else { continue };
            let half: Half = half.clone();
            if half.exactness.order_dependent {
                continue;
            }
            let converted = std::mem::take(&mut self.wave(id).converted[usize::from(second)]);
            let uses = self.effects[step.index].writes.iter().zip(&self.group.waves[id as usize].writing);
            // Texture units return into their data operand.
            let is_result =
                |used: &Use| used.role == Role::D0 || half.whole.is_some() && used.role == Role::Data;
            let uses =
                uses.filter(|(used, _)| used.second == second && is_result(used) && used.file != File::Scc);
            let uses: Vec<(Use, u16, u64)> =
                uses.map(|(used, &(start, lanes))| (*used, start, lanes)).collect();
            for (used, start, lanes) in uses {
                let mut rest = if used.file == File::Vgpr { lanes } else { 1 };
                while rest != 0 {
                    let lane = rest.trailing_zeros();
                    rest &= rest - 1;
                    self.create_in(step, &half, &used, start, lane, converted >> lane & 1 == 1);
                }
            }
        }
    }

    fn create_in(
        &mut self,
        step: &Step<'_>,
        half: &Half,
        used: &Use,
        start: u16,
        lane: u32,
        converted: bool,
    ) {
        let shift = used.bits.trailing_zeros().min(31);
        let value = (start..start + used.count.min(4)).enumerate().fold(0, |all, (k, register)| {
            let value = (register_value(step.wave, used.file, register, lane) & used.bits) >> shift;
            all | u128::from(value) << (32 * k)
        });
        for (bits, cause) in half.inexact_bits(value, converted) {
            let origin = sites::origin(step.index, cause);
            *self.results.entry(origin).or_default() += 1;
            let set = self.sets.single(origin);
            for k in 0..used.count {
                // Beyond four registers, all are alike.
                let bits = (bits >> (32 * k.min(3))) as u32;
                let bits = bits << shift & used.bits;
                if bits != 0 {
                    let reg = RegisterLane { file: used.file, register: start + k, lane };
                    self.taint(step.wave.id, reg, bits, set);
                }
            }
        }
    }

    /// Counts an inexact result in memory.
    pub(crate) fn count_result(&mut self, index: usize, cause: Cause) -> SetId {
        let origin = sites::origin(index, cause);
        *self.results.entry(origin).or_default() += 1;
        self.sets.single(origin)
    }
}

/// Returns the inexact registers that an instruction reads, each with the index of its use.
fn sources(state: &WaveState, effects: &Effects, wave: &Wave) -> (Vec<Undefined>, Vec<usize>) {
    let (mut sources, mut used_at) = (Vec::new(), Vec::new());
    if state.registers.is_empty() {
        return (sources, used_at);
    }
    for (at, used) in effects.reads.iter().enumerate() {
        collect(state, used, wave, lanes(used, wave), false, &mut sources);
        used_at.resize(sources.len(), at);
    }
    (sources, used_at)
}

/// Appends the inexact registers among those of a use.
fn collect(state: &WaveState, used: &Use, wave: &Wave, lanes: u64, write: bool, out: &mut Vec<Undefined>) {
    if state.registers.is_empty() {
        return;
    }
    for (dword, register) in (0..).zip(used.registers(wave, write)) {
        let mut rest = if used.file == File::Vgpr { lanes } else { 1 };
        while rest != 0 {
            let reg = RegisterLane { file: used.file, register, lane: rest.trailing_zeros() };
            rest &= rest - 1;
            let Some(tainted) = state.registers.get(&reg) else { continue };
            let bits = tainted.bits & if write { u32::MAX } else { used.bits };
            if bits != 0 && out.iter().all(|known| known.reg != reg) {
                out.push(Undefined { reg, dword, bits });
            }
        }
    }
}

/// Returns whether a source of an instruction that does more than compute is not data that it stores.
fn is_address(effects: &Effects, used: &Use) -> bool {
    !(effects.class.is_memory() && matches!(used.role, Role::Data | Role::Data1))
}

fn register_value(wave: &Wave, file: File, register: u16, lane: u32) -> u32 {
    match file {
        File::Vgpr => wave.vgpr(lane, register.into()),
        _ => wave.sgpr(u32::from(register) & 127),
    }
}

impl Observer for Fidelity<'_> {
    fn group_started(&mut self, _workgroup: [u32; 3], waves: usize) {
        self.groups += 1;
        let waves = (0..waves).map(|_| WaveState::default()).collect();
        self.group = WorkgroupTaint { number: self.groups, waves };
    }

    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        let effects = &self.effects[step.index];
        let state = &mut self.group.waves[step.wave.id as usize];
        state.results.clear();
        state.writing.clear();
        state
            .writing
            .extend(effects.writes.iter().map(|used| (used.start(step.wave), used.lane_mask(step.wave))));
        if !state.registers.is_empty() {
            self.begin(step);
        }
        if self.sites[step.index].is_inexact() {
            self.convert(step);
        }
        ControlFlow::Continue(())
    }

    fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        self.counts[step.index] += 1;
        let is_inexact = self.sites[step.index].is_inexact();
        if self.group.waves[step.wave.id as usize].registers.is_empty()
            && self.memory.is_exact()
            && !is_inexact
        {
            return;
        }
        // What a store writes is read before its results are cleared.
        let transfer = (!done.accesses.is_empty()).then(|| self.transfer(step, done));
        self.finish(step);
        for (reg, bits, set) in transfer.into_iter().flatten() {
            self.taint(step.wave.id, reg, bits, set);
        }
        if is_inexact {
            self.create(step);
        }
    }

    fn group_parked(&mut self, workgroup: [u32; 3]) {
        self.parked.insert(workgroup, std::mem::take(&mut self.group));
    }

    fn group_resumed(&mut self, workgroup: [u32; 3]) {
        if let Some(group) = self.parked.remove(&workgroup) {
            self.group = group;
        }
    }

    fn group_ended(&mut self, _workgroup: [u32; 3]) {
        if !self.memory.is_exact() {
            self.memory.end_group(self.group.number);
        }
        self.group.waves.clear();
    }
}
