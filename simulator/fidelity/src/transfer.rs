//! Inexact values between registers and memory.

use crate::origin::{Cause, SetId};
use crate::taint::{Fidelity, Sink};
use isa_spec::tables::Role;
use wavesim_engine::observe::{Done, Step};
use wavesim_inspect::check::dependence::RegisterLane;
use wavesim_machine::exec::effects::{Class, File, Use};
use wavesim_machine::exec::watch::{Access, Place};

/// An inexact register.
type Loaded = (RegisterLane, u32, SetId);

/// The bytes of registers that a lane transfers, in order: the register, and the first bit of the byte.
type Bytes = Vec<(u16, u32)>;

/// Returns the bytes of consecutive registers that a use covers.
fn bytes(used: &Use, start: u16) -> Bytes {
    let width = (32 - used.bits.leading_zeros()).saturating_sub(used.bits.trailing_zeros().min(31));
    let bits = (used.bits.trailing_zeros().min(31)..).step_by(8).take((width / 8) as usize);
    let registers = start..start.saturating_add(used.count);
    registers.flat_map(|register| bits.clone().map(move |bit| (register, bit))).collect()
}

/// Returns the accesses of each lane, in order.
fn by_lane(accesses: &[Access], write: bool) -> Vec<(u32, Vec<Access>)> {
    let wanted = accesses.iter().filter(|a| a.write == write && !a.outside && a.place != Place::Nowhere);
    let mut lanes: Vec<(u32, Vec<Access>)> = Vec::new();
    for access in wanted.flat_map(|a| a.each()) {
        let lane = u32::from(access.lane.unwrap_or(0));
        match lanes.iter_mut().find(|(other, _)| *other == lane) {
            Some((_, list)) => list.push(access),
            None => lanes.push((lane, vec![access])),
        }
    }
    lanes
}

impl Fidelity<'_> {
    /// Follows the accesses of an instruction that has run. Returns the registers that it has loaded inexact values
    /// into.
    pub(crate) fn transfer(&mut self, step: &Step<'_>, done: &Done<'_>) -> Vec<Loaded> {
        let effects = &self.effects[step.index];
        let (atomic, returns, to_lds) = (effects.atomic, effects.returns, effects.loads_to_lds());
        if atomic {
            return self.atomic(step, done);
        }
        if to_lds {
            self.copy_to_lds(step, done);
            return Vec::new();
        }
        if returns {
            return self.load(step, done);
        }
        self.store(step, done);
        Vec::new()
    }

    /// Returns the origins of what a lane finds in memory.
    fn of_memory(&mut self, wave: u32, accesses: &[Access]) -> Option<SetId> {
        let owner = self.owner(wave);
        let mut all = None;
        for access in accesses {
            for (_, cell) in self.memory.cells(access, owner).collect::<Vec<_>>() {
                all = self.sets.union_of(all, Some(cell.set));
            }
        }
        all
    }

    fn load(&mut self, step: &Step<'_>, done: &Done<'_>) -> Vec<Loaded> {
        if self.memory.is_exact() {
            return Vec::new();
        }
        let (wave, effects) = (step.wave.id, &self.effects[step.index]);
        let file = if effects.class == Class::Smem { File::Sgpr } else { File::Vgpr };
        let written = effects.writes.iter().zip(&self.group.waves[wave as usize].writing);
        let dest: Bytes = written
            .filter(|(used, _)| used.file == file)
            .flat_map(|(used, &(start, _))| bytes(used, start))
            .collect();
        let owner = self.owner(wave);
        let mut found: Vec<Loaded> = Vec::new();
        for (lane, accesses) in by_lane(done.accesses, false) {
            let size: usize = accesses.iter().map(|a| usize::from(a.size_bytes)).sum();
            // Extended, or converted from another format. A scalar load may fetch more than there are registers.
            if size < dest.len() || size > dest.len() && file == File::Vgpr {
                if let Some(set) = self.of_memory(wave, &accesses) {
                    for &(register, bit) in &dest {
                        found.push((RegisterLane { file, register, lane }, 0xff << bit, set));
                    }
                }
                continue;
            }
            let mut offset = 0;
            for access in &accesses {
                for (at, cell) in self.memory.cells(access, owner) {
                    for byte in 0..4 {
                        let position = at + byte;
                        let bits = cell.bits >> (8 * byte) & 0xff;
                        if bits == 0 || !(0..i64::from(access.size_bytes)).contains(&position) {
                            continue;
                        }
                        if let Some(&(register, bit)) = dest.get(offset + position as usize) {
                            found.push((RegisterLane { file, register, lane }, bits << bit, cell.set));
                        }
                    }
                }
                offset += usize::from(access.size_bytes);
            }
        }
        found
    }

    /// Returns the data operands of a store, in order.
    fn data(&self, step: &Step<'_>) -> Bytes {
        let reads = &self.effects[step.index].reads;
        let of = |role| reads.iter().filter(move |used| used.role == role && used.file == File::Vgpr);
        of(Role::Data).chain(of(Role::Data1)).flat_map(|used| bytes(used, used.start(step.wave))).collect()
    }

    /// Returns the inexact bits of a byte of a register, and where they come from.
    fn of_byte(&self, wave: u32, lane: u32, (register, bit): (u16, u32)) -> (u8, Option<SetId>) {
        let reg = RegisterLane { file: File::Vgpr, register, lane };
        let tainted = self.group.waves[wave as usize].registers.get(&reg);
        let bits = tainted.map_or(0, |tainted| (tainted.bits >> bit) as u8);
        (bits, tainted.filter(|_| bits != 0).map(|tainted| tainted.set))
    }

    /// Returns the origins of the data of a lane.
    fn of_data(&mut self, wave: u32, lane: u32, data: &[(u16, u32)]) -> Option<SetId> {
        let found: Vec<Option<SetId>> = data.iter().map(|byte| self.of_byte(wave, lane, *byte).1).collect();
        found.into_iter().fold(None, |all, set| self.sets.union_of(all, set))
    }

    fn store(&mut self, step: &Step<'_>, done: &Done<'_>) {
        let wave = step.wave.id;
        let data = self.data(step);
        let owner = self.owner(wave);
        let is_exact = self.group.waves[wave as usize].registers.is_empty();
        if is_exact && self.memory.is_exact() {
            return;
        }
        let mut global = None;
        for (lane, accesses) in by_lane(done.accesses, true) {
            let size: usize = accesses.iter().map(|a| usize::from(a.size_bytes)).sum();
            if size != data.len() {
                // Converted to another format.
                let set = self.of_data(wave, lane, &data);
                for access in &accesses {
                    self.memory.store(access, owner, set, step.index as u32, &mut self.sets);
                    global = self.noted(global, access, set);
                }
                continue;
            }
            let mut source = data.iter();
            for access in &accesses {
                for offset in 0..u64::from(access.size_bytes) {
                    let Some(byte) = source.next() else { break };
                    let value = self.of_byte(wave, lane, *byte);
                    self.memory.store_byte(access, owner, offset, value, step.index as u32, &mut self.sets);
                    global = self.noted(global, access, value.1);
                }
            }
        }
        if let Some(set) = global {
            self.sink(Sink::Store, step.index, set);
        }
    }

    /// Adds the origins of what is stored to global memory.
    fn noted(&mut self, all: Option<SetId>, access: &Access, set: Option<SetId>) -> Option<SetId> {
        if access.place == Place::Global { self.sets.union_of(all, set) } else { all }
    }

    fn copy_to_lds(&mut self, step: &Step<'_>, done: &Done<'_>) {
        let wave = step.wave.id;
        let owner = self.owner(wave);
        let loads = by_lane(done.accesses, false);
        for (lane, stores) in by_lane(done.accesses, true) {
            let loaded = loads.iter().find(|(other, _)| *other == lane);
            let set = loaded.and_then(|(_, accesses)| self.of_memory(wave, accesses));
            for access in &stores {
                self.memory.store(access, owner, set, step.index as u32, &mut self.sets);
            }
        }
    }

    fn atomic(&mut self, step: &Step<'_>, done: &Done<'_>) -> Vec<Loaded> {
        let (wave, index) = (step.wave.id, step.index);
        let data = self.data(step);
        let owner = self.owner(wave);
        let effects = &self.effects[index];
        let written = effects.writes.iter().zip(&self.group.waves[wave as usize].writing);
        let dest: Bytes = written
            .filter(|(used, _)| used.file == File::Vgpr)
            .flat_map(|(used, &(start, _))| bytes(used, start))
            .collect();
        let is_sum = self.sites[index].halves.iter().flatten().any(|half| half.exactness.order_dependent);
        let loads = by_lane(done.accesses, false);
        let mut found = Vec::new();
        let mut global = None;
        for (lane, stores) in by_lane(done.accesses, true) {
            let loaded = loads.iter().find(|(other, _)| *other == lane);
            let mut old = loaded.and_then(|(_, accesses)| self.of_memory(wave, accesses));
            let added = self.of_data(wave, lane, &data);
            for access in &stores {
                let mut set = self.sets.union_of(old, added);
                // The order of two sums matters; the first one has none.
                if is_sum && self.memory.count_sum(access, owner) > 0 {
                    let order = self.count_result(index, Cause::Order);
                    set = self.sets.union_of(set, Some(order));
                    old = self.sets.union_of(old, Some(order));
                }
                self.memory.store(access, owner, set, index as u32, &mut self.sets);
                global = self.noted(global, access, set);
            }
            if let Some(set) = old {
                found.extend(dest.iter().map(|&(register, bit)| {
                    (RegisterLane { file: File::Vgpr, register, lane }, 0xff << bit, set)
                }));
            }
        }
        if let Some(set) = global {
            self.sink(Sink::Store, index, set);
        }
        found
    }
}
