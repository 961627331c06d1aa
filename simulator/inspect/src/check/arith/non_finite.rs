//! Infinities and NaNs from the instruction that creates them to a store.

use super::super::kind::Check;
use super::super::report::{Finding, Report, Site};
use super::rules::{self, Rules};
use isa_spec::pcode::ir::Role;
use std::collections::HashMap;
use wavesim_engine::observe::{Done, Step};
use wavesim_machine::exec::effects::{Class, Effects, File, Lanes, Use, register_name};
use wavesim_machine::exec::watch::Place;
use wavesim_machine::state::Wave;

/// A register of a wave in a lane; scalar registers have lane 0.
type Register = (u32, File, u16, u32);

/// The instruction that created a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Origin {
    pc: u32,
    file: File,
    register: u16,
    lane: u8,
    nan: bool,
}

/// The infinities and NaNs in the registers and the scratch of a workgroup, and what the current instruction reads.
#[derive(Default)]
pub struct Origins {
    registers: HashMap<Register, Origin>,
    /// By wave, lane and address of the dword.
    scratch: HashMap<(u32, u32, u64), Origin>,
    /// EXEC before the instruction.
    exec: u64,
    /// For each half: the lanes whose sources are finite.
    finite: [u64; 2],
    /// Sources with an origin: the lane (of a vector register) and the value.
    sources: Vec<(Option<u32>, u32, Origin)>,
}

impl Origins {
    pub fn clear(&mut self) {
        self.registers.clear();
        self.scratch.clear();
    }

    /// Begins an instruction.
    pub fn begin(&mut self, step: &Step<'_>, effects: &Effects) {
        self.exec = step.wave.exec();
        self.finite = [0; 2];
        self.sources.clear();
        if self.registers.is_empty() {
            return;
        }
        for used in &effects.reads {
            for (register, lane) in self.lanes_of(used, step.wave, false) {
                if let Some(origin) = self.registers.get(&(step.wave.id, used.file, register, lane)) {
                    let value = value(step.wave, used.file, register, lane);
                    self.sources.push(((used.file == File::Vgpr).then_some(lane), value, *origin));
                }
            }
        }
    }

    /// Sets the lanes in which the sources of a half are finite.
    pub fn set_sources(&mut self, half: usize, finite: u64) {
        self.finite[half] = finite;
    }

    /// Returns the registers of a use in each of its lanes.
    fn lanes_of(&self, used: &Use, wave: &Wave, write: bool) -> Vec<(u16, u32)> {
        let mask = match (used.file, used.lanes) {
            (File::Vgpr, Lanes::Active) => self.exec,
            (File::Vgpr, Lanes::Data) => wave.full_mask(),
            (File::Vgpr, _) => used.lane_mask(wave),
            _ => 1,
        };
        let lanes = (0..64).filter(move |lane| mask >> lane & 1 == 1);
        used.registers(wave, write)
            .flat_map(|register| lanes.clone().map(move |lane| (register, lane)))
            .collect()
    }

    /// Follows the results of an instruction that has run, and reports the values that it stores.
    pub fn after(
        &mut self,
        step: &Step<'_>,
        done: &Done<'_>,
        effects: &Effects,
        rules: &[Option<Rules>; 2],
        report: &mut Report,
    ) {
        let stores = effects.class.is_memory() && !effects.returns;
        if stores && effects.class == Class::Scratch {
            return self.spill(step, done, effects);
        }
        if stores {
            let data = effects.reads.iter().filter(|used| matches!(used.role, Role::Data | Role::Data1));
            for used in data {
                for (register, lane) in self.lanes_of(used, step.wave, false) {
                    if let Some(origin) = self.registers.get(&(step.wave.id, used.file, register, lane)) {
                        report_stored(step, *origin, lane, report);
                    }
                }
            }
            return;
        }
        let creates = rules.iter().flatten().any(|rules| !rules.results.is_empty());
        if self.registers.is_empty() && self.scratch.is_empty() && !creates {
            return;
        }
        for used in effects.writes.iter().filter(|used| used.file != File::Scc) {
            let own = rules[used.second as usize].as_ref().filter(|rules| !rules.results.is_empty());
            let own = own.filter(|_| used.role == Role::D0);
            for (register, lane) in self.lanes_of(used, step.wave, true) {
                let origin = match own {
                    _ if effects.class == Class::Scratch => self.reloaded(step, done, used, register, lane),
                    Some(rules) => self.computed(step, used, rules, register, lane),
                    None => self.moved(step.wave, used.file, register, lane),
                };
                let key = (step.wave.id, used.file, register, lane);
                match origin {
                    Some(origin) => {
                        self.registers.insert(key, origin);
                    }
                    None if self.registers.is_empty() => {}
                    None => {
                        self.registers.remove(&key);
                    }
                }
            }
        }
    }

    /// Returns the origin of a float result, if it is not finite.
    fn computed(
        &self,
        step: &Step<'_>,
        used: &Use,
        rules: &Rules,
        register: u16,
        lane: u32,
    ) -> Option<Origin> {
        let result = result(used, step.wave, lane);
        let part = rules.results.iter().find(|part| rules::is_non_finite(part.ty, part.bits(result)))?;
        if self.finite[used.second as usize] >> lane & 1 == 1 {
            let nan = rules::is_nan(part.ty, part.bits(result));
            return Some(Origin { pc: step.pc as u32, file: used.file, register, lane: lane as u8, nan });
        }
        self.sources.iter().find(|(of, ..)| of.is_none_or(|of| of == lane)).map(|(.., origin)| *origin)
    }

    /// Returns the origin of the source that a result equals.
    fn moved(&self, wave: &Wave, file: File, register: u16, lane: u32) -> Option<Origin> {
        if self.sources.is_empty() {
            return None;
        }
        let value = value(wave, file, register, lane);
        self.sources.iter().find(|(_, source, _)| *source == value).map(|(.., origin)| *origin)
    }

    /// Records what a store to scratch saves.
    fn spill(&mut self, step: &Step<'_>, done: &Done<'_>, effects: &Effects) {
        if self.registers.is_empty() && self.scratch.is_empty() {
            return;
        }
        let wave = step.wave.id;
        let data: Vec<&Use> = effects.reads.iter().filter(|used| used.role == Role::Data).collect();
        for a in done.accesses.iter().filter(|a| a.place == Place::Scratch).flat_map(|a| a.each()) {
            let lane = u32::from(a.lane.unwrap_or(0));
            let registers = data.iter().flat_map(|used| used.registers(step.wave, false));
            for (k, register) in registers.take((a.size_bytes as usize).div_ceil(4)).enumerate() {
                let key = (wave, lane, a.address + 4 * k as u64);
                match self.registers.get(&(wave, File::Vgpr, register, lane)) {
                    Some(origin) => {
                        self.scratch.insert(key, *origin);
                    }
                    None => {
                        self.scratch.remove(&key);
                    }
                }
            }
        }
    }

    /// Returns the origin of a register that was loaded from scratch.
    fn reloaded(
        &self,
        step: &Step<'_>,
        done: &Done<'_>,
        used: &Use,
        register: u16,
        lane: u32,
    ) -> Option<Origin> {
        let k = u64::from(register - used.start(step.wave));
        let mut loads = done.accesses.iter().flat_map(|a| a.each());
        let load = loads.find(|a| a.lane == Some(lane as u8) && !a.write)?;
        self.scratch.get(&(step.wave.id, lane, load.address + 4 * k)).copied()
    }
}

/// Returns the value of the first registers of a result in a lane.
fn result(used: &Use, wave: &Wave, lane: u32) -> u128 {
    let shift = used.bits.trailing_zeros().min(31);
    let registers = used.registers(wave, true).take(4).enumerate();
    registers.fold(0, |all, (k, register)| {
        let value = (value(wave, used.file, register, lane) & used.bits) >> shift;
        all | u128::from(value) << (32 * k)
    })
}

fn value(wave: &Wave, file: File, register: u16, lane: u32) -> u32 {
    match file {
        File::Vgpr => wave.vgpr(lane, register.into()),
        _ => wave.sgpr(u32::from(register) & 127),
    }
}

/// Reports the store of an infinity or a NaN that has arisen from finite values.
fn report_stored(step: &Step<'_>, origin: Origin, lane: u32, report: &mut Report) {
    let kind = if origin.nan { "NaN from finite values" } else { "infinity from finite values" };
    if !report.is_new(Check::Arith, kind, origin.pc.into(), Some(step.pc)) {
        return;
    }
    let what = if origin.nan { "a NaN" } else { "an infinity" };
    let name = register_name(step.program.arch, origin.file, origin.register, 1);
    let message = format!("{name} becomes {what}, although its sources are finite");
    let mut site = Site::at(step, origin.pc.into(), step.wave.workgroup, step.wave.id);
    site.lane = (origin.file == File::Vgpr).then_some(origin.lane.into());
    report.add(
        Finding::new(Check::Arith, kind, message, site)
            .other("stored by", Site::new(step, Some(lane)))
            .register(origin.file, origin.register),
    );
}
