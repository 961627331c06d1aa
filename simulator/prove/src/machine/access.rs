//! What the body of an instruction reads and writes.

use super::{Machine, MaskTarget, Result, code_base, unsupported};
use crate::routes::Register;
use crate::setup::Lanes;
use crate::state::{Event, MemoryId};
use isa_export::smt::{self, Sort, Term, Terms};
use isa_spec::pcode::builtins::Control;
use isa_spec::pcode::ir::{Role, Shape, Space, State as Name};
use std::collections::BTreeMap;
use wavesim_isa::operand::Fmt;
use wavesim_machine::memory::{PRIVATE_BASE, SHARED_BASE};
use wavesim_machine::state::wave::{EXEC_HI, EXEC_LO, M0, VCC_HI, VCC_LO};

impl smt::Machine for Machine<'_> {
    fn operand(&mut self, terms: &mut Terms, role: Role, lane: Option<u32>) -> Result<Term> {
        if role == Role::Vcc {
            return Ok(self.read_mask(terms, role));
        }
        let Some(operand) = self.operand_of(role) else { return Ok(terms.constant(0, 32)) };
        if role == Role::D0 {
            return self.destination(terms, role, lane);
        }
        if operand.fmt == Fmt::Mask {
            return Ok(self.read_mask(terms, role));
        }
        let route = self.routes.source(self.setup, self.reader(), role, self.width_of(role))?;
        let lane = lane.unwrap_or(0);
        if role == Role::S0 && self.binding.has_dpp() {
            return Ok(self.permuted(terms, &route, lane));
        }
        Ok(self.follow(terms, &route, &|terms, register| self.get(terms, lane, register)))
    }

    fn destination(&mut self, terms: &mut Terms, role: Role, lane: Option<u32>) -> Result<Term> {
        let target = if role == Role::Vcc { MaskTarget::Vcc } else { MaskTarget::D0 };
        if let Some(mask) = self.masks.get(&target) {
            return Ok(*mask);
        }
        if role == Role::Vcc {
            return Ok(self.read_mask(terms, role));
        }
        if role != Role::D0 {
            return unsupported(format!("a part of operand {role:?} is written"));
        }
        let route = self.routes.source(self.setup, self.reader(), role, self.width_of(role))?;
        let lane = lane.unwrap_or(0);
        Ok(self.follow(terms, &route, &|terms, register| {
            let written = match register {
                Register::Vector(n) => self.writes.get(&(lane, n)).copied(),
                _ => None,
            };
            written.unwrap_or_else(|| self.get(terms, lane, register))
        }))
    }

    fn set_operand(&mut self, terms: &mut Terms, role: Role, lane: Option<u32>, value: Term) -> Result<()> {
        let target = if role == Role::Vcc { MaskTarget::Vcc } else { MaskTarget::D0 };
        if let Some(mask) = self.masks.get_mut(&target) {
            *mask = terms.resize(value, 64);
            return Ok(());
        }
        let Some(operand) = self.operand_of(role) else { return Ok(()) };
        if operand.fmt == Fmt::Mask {
            let value = terms.resize(value, 64);
            self.write_mask(terms, role, value);
            return Ok(());
        }
        let value = self.output(terms, &operand, value);
        let effect = self.routes.effect(self.setup, self.reader(), role, terms.width(value))?;
        let lane = lane.unwrap_or(0);
        let mut words: BTreeMap<Register, Term> = BTreeMap::new();
        let mut at = 0;
        while at < effect.len() {
            let (register, bit, origin) = effect[at];
            let next = |k: u32| (register, bit + k, origin.map(|from| from + k));
            let same = (0..).zip(&effect[at..]).take_while(|(k, item)| **item == next(*k)).count();
            let part = match origin {
                Ok(from) => terms.extract(value, from, same as u32),
                Err(constant) => terms.constant(if constant { u128::MAX } else { 0 }, same as u32),
            };
            let old = match words.get(&register) {
                Some(word) => *word,
                None => match register {
                    Register::Vector(n) => match self.writes.get(&(lane, n)) {
                        Some(written) => *written,
                        None => self.get(terms, lane, register),
                    },
                    _ => self.get(terms, lane, register),
                },
            };
            words.insert(register, terms.replace(old, part, bit));
            at += same;
        }
        for (register, word) in words {
            match register {
                Register::Vector(n) => drop(self.writes.insert((lane, n), word)),
                _ => self.state.set(lane, register, word),
            }
        }
        Ok(())
    }

    fn operand_index(&mut self, terms: &mut Terms, role: Role) -> Result<Term> {
        let index = self.routes.index(self.setup, self.reader(), role)?;
        Ok(terms.constant(index as u128, 32))
    }

    fn operand_lane(&mut self, terms: &mut Terms, role: Role, lane: Term, index: Term) -> Result<Term> {
        let Some(index) = terms.value(index) else { return unsupported("a computed part of an operand") };
        let route = self.routes.dword(self.setup, self.reader(), role, index as u32)?;
        self.in_lane(terms, lane, |this, terms, lane| {
            this.follow(terms, &route, &|terms, register| this.get(terms, lane, register))
        })
    }

    fn field(&mut self, terms: &mut Terms, name: &str) -> Term {
        let value = self.binding.named_field(self.inst, self.setup.arch.table(), name);
        terms.constant(value as u128, 32)
    }

    fn clamp(&mut self, terms: &mut Terms) -> Term {
        terms.bool(self.binding.get(self.inst, self.binding.mods.clamp) != 0)
    }

    fn state(&mut self, terms: &mut Terms, state: Name, lane: Option<u32>) -> Result<Term> {
        let is_zero = |terms: &mut Terms, mask: Term| {
            let zero = terms.constant(0, 64);
            terms.eq(mask, zero)
        };
        let size = self.setup.wave_size;
        Ok(match state {
            Name::Exec => self.exec(terms),
            Name::ExecLo => self.scalar(terms, EXEC_LO as u32),
            Name::ExecHi => self.scalar(terms, EXEC_HI as u32),
            Name::Vcc => self.mask(terms, VCC_LO as u32),
            Name::VccLo => self.scalar(terms, VCC_LO as u32),
            Name::VccHi => self.scalar(terms, VCC_HI as u32),
            Name::Vccz => {
                let mask = self.mask(terms, VCC_LO as u32);
                is_zero(terms, mask)
            }
            Name::Execz => {
                let mask = self.exec(terms);
                is_zero(terms, mask)
            }
            Name::Scc => self.get(terms, 0, Register::Scc),
            Name::M0 => self.scalar(terms, M0 as u32),
            Name::Pc => {
                let (base, pc) = (code_base(terms), terms.constant(self.pc as u128, 64));
                terms.add_bits(base, pc)
            }
            Name::InstSize => terms.constant(self.inst.size as u128, 32),
            Name::Mode => terms.constant(self.setup.mode as u128, 32),
            Name::LaneId => match lane {
                Some(lane) => terms.constant(lane as u128, 32),
                None => terms.constant(0, 32),
            },
            Name::Wave32 => terms.bool(size == 32),
            Name::Wave64 => terms.bool(size == 64),
            Name::WaveSize => terms.constant(size as u128, 32),
            Name::VgprSize => terms.constant(256, 32),
            Name::SharedBase => terms.constant(SHARED_BASE as u128, 64),
            Name::PrivateBase => terms.constant(PRIVATE_BASE as u128, 64),
            Name::WaveId => terms.var("wave_id", Sort::Bits(32)),
            // Beyond every access: what is outside of LDS is not modelled.
            Name::LdsSize => terms.constant(u32::MAX as u128, 32),
            Name::ScratchBase | Name::TrapBase => terms.constant(0, 64),
            Name::Status => return unsupported("STATUS"),
        })
    }

    fn state_destination(&mut self, terms: &mut Terms, state: Name) -> Result<Term> {
        match self.masks.get(&MaskTarget::Exec) {
            Some(mask) if state == Name::Exec => Ok(*mask),
            _ => self.state(terms, state, None),
        }
    }

    fn set_state(&mut self, terms: &mut Terms, state: Name, value: Term) -> Result<()> {
        let size = self.setup.wave_size / 32;
        let word = |terms: &mut Terms| terms.resize(value, 32);
        match state {
            Name::Exec => {
                let value = terms.resize(value, 64);
                match self.masks.get_mut(&MaskTarget::Exec) {
                    Some(mask) => *mask = value,
                    None => self.write_scalars(terms, EXEC_LO as u32, size, value),
                }
            }
            Name::Vcc => {
                let value = terms.resize(value, 64);
                self.write_scalars(terms, VCC_LO as u32, size, value);
            }
            Name::ExecLo | Name::ExecHi | Name::VccLo | Name::VccHi | Name::M0 => {
                let code = match state {
                    Name::ExecLo => EXEC_LO,
                    Name::ExecHi => EXEC_HI,
                    Name::VccLo => VCC_LO,
                    Name::VccHi => VCC_HI,
                    _ => M0,
                };
                let value = word(terms);
                self.write_scalars(terms, code as u32, 1, value);
            }
            Name::Scc => {
                let bit = terms.resize(value, 1);
                self.state.set(0, Register::Scc, bit);
            }
            Name::Pc => self.jump = Some(terms.resize(value, 64)),
            _ => return unsupported("the pseudocode writes state that is read-only"),
        }
        Ok(())
    }

    fn mask_position(&self, lane: Option<u32>) -> Option<u32> {
        lane
    }

    fn vgpr(&mut self, terms: &mut Terms, lane: Term, reg: Term) -> Result<Term> {
        let Some(reg) = terms.value(reg) else { return unsupported("a computed VGPR number") };
        self.in_lane(terms, lane, |this, terms, lane| {
            let written = this.writes.get(&(lane, reg as u32)).copied();
            written.unwrap_or_else(|| this.get(terms, lane, Register::Vector(reg as u32)))
        })
    }

    fn set_vgpr(&mut self, terms: &mut Terms, lane: Term, reg: Term, value: Term) -> Result<()> {
        let Some(reg) = terms.value(reg).map(|reg| reg as u32) else {
            return unsupported("a computed VGPR number");
        };
        if self.lanes != Lanes::All {
            return unsupported("lanes that see each other");
        }
        for number in 0..self.setup.wave_size {
            let this = terms.constant(number as u128, terms.width(lane));
            let here = terms.eq(lane, this);
            if terms.truth(here) == Some(false) {
                continue;
            }
            let old = match self.writes.get(&(number, reg)) {
                Some(written) if self.sem.shape == Shape::Lane => *written,
                _ => self.get(terms, number, Register::Vector(reg)),
            };
            let new = terms.ite(here, value, old);
            if self.sem.shape == Shape::Lane {
                self.writes.insert((number, reg), new);
            } else {
                self.state.set(number, Register::Vector(reg), new);
            }
        }
        Ok(())
    }

    fn sgpr(&mut self, terms: &mut Terms, reg: Term) -> Result<Term> {
        match terms.value(reg) {
            Some(reg) => Ok(self.scalar(terms, reg as u32)),
            None => unsupported("a computed SGPR number"),
        }
    }

    fn set_sgpr(&mut self, terms: &mut Terms, reg: Term, value: Term) -> Result<()> {
        let Some(reg) = terms.value(reg) else { return unsupported("a computed SGPR number") };
        let value = terms.resize(value, 32);
        self.write_scalars(terms, reg as u32, 1, value);
        Ok(())
    }

    fn load(
        &mut self,
        terms: &mut Terms,
        space: Space,
        address: Term,
        bytes: u32,
        lane: Option<u32>,
    ) -> Result<Term> {
        let inside = self.inside(terms, space, address);
        let (id, address) = self.place(terms, space, address, lane)?;
        let shared = !matches!(id, MemoryId::Scratch(_));
        self.state.loads_after_stores |= shared && self.state.events.iter().any(|event| event.memory == id);
        let memory = self.state.memory(terms, id);
        let mut value: Option<Term> = None;
        for k in 0..bytes {
            let offset = terms.constant(k as u128, id.address_bits());
            let at = terms.add_bits(address, offset);
            let byte = terms.select(memory, at);
            value = Some(value.map_or(byte, |low| terms.concat(byte, low)));
        }
        let zero = terms.constant(0, 8 * bytes);
        Ok(terms.ite(inside, value.unwrap_or(zero), zero))
    }

    fn store(
        &mut self,
        terms: &mut Terms,
        space: Space,
        address: Term,
        value: Term,
        lane: Option<u32>,
    ) -> Result<()> {
        let guard = self.inside(terms, space, address);
        let (id, address) = self.place(terms, space, address, lane)?;
        let before = self.state.memory(terms, id);
        let mut memory = before;
        for k in 0..terms.width(value) / 8 {
            let offset = terms.constant(k as u128, id.address_bits());
            let at = terms.add_bits(address, offset);
            let byte = terms.extract(value, 8 * k, 8);
            memory = terms.store(memory, at, byte);
        }
        let memory = terms.ite(guard, memory, before);
        self.state.set_memory(id, memory);
        if !matches!(id, MemoryId::Scratch(_)) {
            self.state.events.push(Event { guard, address, memory: id, value });
            // Of an atomic, a lane sees what the lanes before it have stored.
            self.state.loads_after_stores |= self.sem.uses.memory_read;
        }
        Ok(())
    }

    fn control(&mut self, terms: &mut Terms, builtin: Control, _args: &[Term]) -> Result<Term> {
        let nothing = matches!(builtin, Control::Nop | Control::InvalidateCaches | Control::WriteBackCaches);
        if builtin == Control::EndPgm {
            self.ended = true;
        } else if !(nothing || builtin.is_wait()) {
            return unsupported(format!("`{}` cannot be part of a proof", builtin.def().name));
        }
        Ok(terms.constant(0, 64))
    }

    fn merge(terms: &mut Terms, cond: Term, yes: Self, no: Self) -> Result<Self> {
        if yes.ended != no.ended {
            return unsupported("a wave that ends under a condition");
        }
        let (setup, lanes) = (yes.setup, yes.lanes);
        let mut merged = yes.clone();
        for at in yes.writes.keys().chain(no.writes.keys()) {
            let old = |this: &Self, terms: &mut Terms| match this.writes.get(at) {
                Some(value) => *value,
                None => this.get(terms, at.0, Register::Vector(at.1)),
            };
            let (a, b) = (old(&yes, terms), old(&no, terms));
            let value = terms.ite(cond, a, b);
            merged.writes.insert(*at, value);
        }
        for (target, mask) in &mut merged.masks {
            if let Some(other) = no.masks.get(target) {
                *mask = terms.ite(cond, *mask, *other);
            }
        }
        merged.jump = match (yes.jump, no.jump) {
            (None, None) => None,
            (a, b) => {
                let base = code_base(terms);
                let next = terms.constant(yes.pc as u128 + yes.inst.size as u128, 64);
                let next = terms.add_bits(base, next);
                Some(terms.ite(cond, a.unwrap_or(next), b.unwrap_or(next)))
            }
        };
        merged.state = yes.state.merge(terms, setup, lanes, cond, no.state)?;
        Ok(merged)
    }
}

impl Machine<'_> {
    /// The value that a function of the lane has in a lane that is a term.
    fn in_lane(
        &self,
        terms: &mut Terms,
        lane: Term,
        value: impl Fn(&Self, &mut Terms, u32) -> Term,
    ) -> Result<Term> {
        if self.lanes != Lanes::All {
            return unsupported("lanes that see each other");
        }
        if let Some(lane) = terms.value(lane) {
            let lane = lane as u32;
            let inside = lane < self.setup.wave_size;
            return Ok(if inside { value(self, terms, lane) } else { terms.constant(0, 32) });
        }
        let mut result = terms.constant(0, 32);
        for number in (0..self.setup.wave_size).rev() {
            let this = terms.constant(number as u128, terms.width(lane));
            let (here, own) = (terms.eq(lane, this), value(self, terms, number));
            result = terms.ite(here, own, result);
        }
        Ok(result)
    }
}
