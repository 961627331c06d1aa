//! One instruction on a state of terms: what the reference executor does with words.

use crate::routes::{Bit, Reader, Register, Route, Routes};
use crate::setup::{Lanes, Setup};
use crate::state::{Event, MemoryId, OTHER_LANES, State, with_bit};
use isa_export::smt::{self, Op, Setting, Sort, Term, Terms, Unsupported};
use isa_spec::arith::FloatEnv;
use isa_spec::pcode::builtins::Control;
use isa_spec::pcode::ir::{Role, Semantics, Shape, Space, State as Name};
use std::cell::Cell;
use std::collections::BTreeMap;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{self, Binding, Fmt, Operand};
use wavesim_machine::memory::{PRIVATE_BASE, SHARED_BASE};
use wavesim_machine::state::wave::{EXEC_HI, EXEC_LO, M0, NULL, SGPRS, VCC_HI, VCC_LO};

type Result<T> = std::result::Result<T, Unsupported>;

fn unsupported<T>(what: impl Into<String>) -> Result<T> {
    Err(Unsupported(what.into()))
}

/// What an instruction leaves.
pub struct After {
    pub state: State,
    /// The target of a jump, an address.
    pub jump: Option<Term>,
    /// The wave has ended.
    pub ended: bool,
}

/// The semantics of an instruction's first half, and of VOPD's second.
pub type Halves<'a> = (&'a Semantics, Option<&'a Semantics>);

/// Executes instructions.
pub struct Executor<'a> {
    pub setup: &'a Setup,
    pub lanes: Lanes,
    pub routes: &'a Routes,
    /// The semantics of both halves.
    pub semantics: &'a dyn Fn(&Inst) -> Option<Halves<'a>>,
    /// The number of the program, and of masks that it has written: what other lanes write has a name of its own
    /// each time.
    pub program: usize,
    pub masks: Cell<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MaskTarget {
    D0,
    Vcc,
    Exec,
}

impl Executor<'_> {
    /// Executes an instruction at an address.
    pub fn step(&self, terms: &mut Terms, inst: &Inst, pc: u64, state: &State) -> Result<After> {
        let table = self.setup.arch.table();
        let name = inst.instruction(table).name;
        let at = |e: Unsupported| Unsupported(format!("{}: {e}", name.to_lowercase()));
        let Some((first, second)) = (self.semantics)(inst) else {
            return unsupported(format!("{} has no semantics", name.to_lowercase()));
        };
        let mut after = After { state: state.clone(), jump: None, ended: false };
        let mut writes = Vec::new();
        for (second, sem) in [(false, Some(first)), (true, second)] {
            let Some(sem) = sem else { continue };
            let machine = Machine {
                executor: (self.program, &self.masks),
                setup: self.setup,
                lanes: self.lanes,
                routes: self.routes,
                inst,
                sem,
                second,
                binding: operand::binding(self.setup.arch, if second { inst.entry_y } else { inst.entry }),
                pc,
                state: after.state,
                writes: BTreeMap::new(),
                masks: BTreeMap::new(),
                jump: None,
                ended: false,
                active: None,
            };
            let done = machine.run(terms).map_err(at)?;
            // Both halves read before either writes.
            writes.extend(done.writes);
            after = After { state: done.state, jump: done.jump, ended: done.ended };
        }
        for ((lane, number), value) in writes {
            after.state.set(lane, Register::Vector(number), value);
        }
        Ok(after)
    }
}

#[derive(Clone)]
struct Machine<'a> {
    executor: (usize, &'a Cell<u32>),
    setup: &'a Setup,
    lanes: Lanes,
    routes: &'a Routes,
    inst: &'a Inst,
    sem: &'a Semantics,
    second: bool,
    binding: &'static Binding,
    pc: u64,
    state: State,
    /// VGPRs that the body has written, which it does not read.
    writes: BTreeMap<(u32, u32), Term>,
    masks: BTreeMap<MaskTarget, Term>,
    jump: Option<Term>,
    ended: bool,
    /// The condition that the lane is active, while a body runs for it.
    active: Option<Term>,
}

impl<'a> Machine<'a> {
    fn reader(&self) -> Reader<'a> {
        Reader { inst: self.inst, sem: self.sem, second: self.second }
    }

    fn setting(&self) -> Setting {
        Setting {
            env: FloatEnv::from_mode(self.setup.mode),
            clamp: self.binding.get(self.inst, self.binding.mods.clamp) != 0,
            uninterpreted_float: self.setup.uninterpreted_float,
        }
    }

    fn run(mut self, terms: &mut Terms) -> Result<Self> {
        if self.binding.has_dpp() || self.binding.mods.sdwa.is_some() && self.sem.shape != Shape::Lane {
            return unsupported("DPP");
        }
        if self.sem.shape != Shape::Lane {
            if self.sem.shape == Shape::Wave && self.lanes != Lanes::All {
                return unsupported("lanes that see each other");
            }
            let setting = self.setting();
            return smt::evaluate(terms, self.sem, self, None, setting);
        }
        if self.has_output_modifiers() {
            return unsupported("output modifiers (omod, clamp)");
        }
        let uses = &self.sem.uses;
        if uses.writes.contains(&Role::D0)
            && let Some(o) = self.operand_of(Role::D0).filter(|o| o.fmt == Fmt::Mask)
        {
            let old = if o.input {
                let old = self.read_mask(terms, Role::D0);
                let exec = self.exec(terms);
                let inactive = terms.not(exec);
                terms.and(old, inactive)
            } else {
                terms.constant(0, 64)
            };
            self.masks.insert(MaskTarget::D0, old);
        }
        for (used, target) in [
            (uses.writes.contains(&Role::Vcc), MaskTarget::Vcc),
            (uses.state_writes.contains(&Name::Exec), MaskTarget::Exec),
        ] {
            if used {
                let zero = terms.constant(0, 64);
                self.masks.insert(target, zero);
            }
        }
        let exec = self.exec(terms);
        let list = match self.lanes {
            Lanes::One(lane) => lane..lane + 1,
            Lanes::All => 0..self.setup.wave_size,
        };
        for lane in list {
            let active = terms.extract(exec, lane, 1);
            if terms.truth(active) == Some(false) {
                continue;
            }
            let (before, setting) = (self.clone(), self.setting());
            self.active = Some(active);
            let mut after = smt::evaluate(terms, self.sem, self, Some(lane), setting)?;
            after.active = None;
            self = <Machine<'_> as smt::Machine>::merge(terms, active, after, before)?;
        }
        for (target, value) in std::mem::take(&mut self.masks) {
            let value = match self.lanes {
                Lanes::All => value,
                // Only the lane's own bit is known. The name says which instruction the others are of.
                Lanes::One(lane) => {
                    let (program, masks) = self.executor;
                    masks.set(masks.get() + 1);
                    let name = format!("{OTHER_LANES}.{program}.{}", masks.get());
                    let others = terms.var(&name, Sort::Bits(64));
                    let bit = terms.extract(value, lane, 1);
                    with_bit(terms, others, lane, bit)
                }
            };
            match target {
                MaskTarget::Exec => {
                    self.write_scalars(terms, EXEC_LO as u32, self.setup.wave_size / 32, value)
                }
                MaskTarget::D0 => self.write_mask(terms, Role::D0, value),
                MaskTarget::Vcc => self.write_mask(terms, Role::Vcc, value),
            }
        }
        Ok(self)
    }

    /// Output modifiers change values, not places.
    fn has_output_modifiers(&self) -> bool {
        let float =
            |o: &Operand| matches!(o.fmt, Fmt::F16 | Fmt::F32 | Fmt::F64 | Fmt::BF16 | Fmt::Packed(_));
        let float = self.operand_of(Role::D0).is_some_and(|o| float(&o));
        let modified = |field| self.binding.get(self.inst, field) != 0;
        float
            && (modified(self.binding.mods.omod)
                || modified(self.binding.mods.clamp) && !self.sem.uses.fields.contains("CLAMP"))
    }

    fn operand_of(&self, role: Role) -> Option<Operand> {
        let list = if self.second { &self.binding.y } else { &self.binding.operands };
        list.iter().find(|o| o.role == role).copied()
    }

    fn get(&self, terms: &mut Terms, lane: u32, register: Register) -> Term {
        let mut value = self.state.get(terms, self.setup, self.lanes, lane, register);
        // The body runs where the lane is active: what an inactive lane has does not matter.
        while let (Op::Ite, Some(active)) = (&terms.node(value).op, self.active)
            && terms.node(value).args[0] == active
        {
            value = terms.node(value).args[1];
        }
        value
    }

    /// An SGPR by operand code.
    fn scalar(&self, terms: &mut Terms, code: u32) -> Term {
        if code as usize >= SGPRS {
            return terms.constant(0, 32);
        }
        self.get(terms, 0, Register::Scalar(code))
    }

    fn pair(&self, terms: &mut Terms, code: u32) -> Term {
        let (low, high) = (self.scalar(terms, code), self.scalar(terms, code + 1));
        terms.concat(high, low)
    }

    fn write_scalars(&mut self, terms: &mut Terms, code: u32, count: u32, value: Term) {
        // Writes beyond the file are dropped.
        let exists = |k: &u32| code as usize != NULL && ((code + k) as usize) < SGPRS;
        for k in (0..count).filter(exists) {
            let word = terms.extract(value, 32 * k, 32);
            self.state.set(0, Register::Scalar(code + k), word);
        }
    }

    fn exec(&self, terms: &mut Terms) -> Term {
        self.mask(terms, EXEC_LO as u32)
    }

    /// A mask of lanes, of 64 bits.
    fn mask(&self, terms: &mut Terms, code: u32) -> Term {
        if self.setup.wave_size == 64 && code as usize != NULL {
            return self.pair(terms, code);
        }
        let low = self.scalar(terms, code);
        terms.zero_extend(low, 64)
    }

    fn mask_register(&self, role: Role, output: bool) -> u32 {
        let list = if self.second { &self.binding.y } else { &self.binding.operands };
        let operand = list.iter().find(|o| o.role == role && if output { o.output } else { o.input });
        match operand.and_then(|o| Some(operand::mask_register(o, self.binding.value(self.inst, o)?))) {
            Some(code) => code as u32,
            None => VCC_LO as u32,
        }
    }

    fn read_mask(&self, terms: &mut Terms, role: Role) -> Term {
        let code = self.mask_register(role, false);
        self.mask(terms, code)
    }

    fn write_mask(&mut self, terms: &mut Terms, role: Role, value: Term) {
        let code = self.mask_register(role, true);
        self.write_scalars(terms, code, self.setup.wave_size / 32, value);
    }

    /// Joins bits that are next to each other in a register.
    fn follow(&self, terms: &mut Terms, route: &Route, get: &dyn Fn(&mut Terms, Register) -> Term) -> Term {
        let mut value: Option<Term> = None;
        let mut at = 0;
        while at < route.len() {
            let next = |from: Bit, k: u32| match from {
                Bit::Constant(_) => from,
                Bit::Register { register, bit, inverted } => {
                    Bit::Register { register, bit: bit + k, inverted }
                }
            };
            let same = (0..).zip(&route[at..]).take_while(|(k, bit)| **bit == next(route[at], *k)).count();
            let part = match route[at] {
                Bit::Constant(bit) => terms.constant(if bit { u128::MAX } else { 0 }, same as u32),
                Bit::Register { register, bit, inverted } => {
                    let whole = get(terms, register);
                    let part = terms.extract(whole, bit, same as u32);
                    if inverted { terms.not(part) } else { part }
                }
            };
            value = Some(value.map_or(part, |low| terms.concat(part, low)));
            at += same;
        }
        value.unwrap_or_else(|| terms.constant(0, 32))
    }

    /// The width in which an operand is read.
    fn width_of(&self, role: Role) -> u32 {
        self.operand_of(role).map_or(32, |o| (o.size_bits as u32).div_ceil(32).clamp(1, 4) * 32)
    }

    /// A location that an address of an address space names.
    fn place(
        &mut self,
        terms: &mut Terms,
        space: Space,
        address: Term,
        lane: Option<u32>,
    ) -> Result<(MemoryId, Term)> {
        let narrow = |terms: &mut Terms| terms.resize(address, 32);
        Ok(match space {
            Space::Global | Space::Flat | Space::Buffer | Space::Scalar => {
                let address = terms.resize(address, 64);
                self.state.addresses.push(address);
                (MemoryId::Global, address)
            }
            Space::Lds => (MemoryId::Lds, narrow(terms)),
            Space::Scratch => {
                let lane = if self.lanes == Lanes::All { lane.unwrap_or(0) } else { 0 };
                (MemoryId::Scratch(lane), narrow(terms))
            }
            Space::Word => return unsupported("memory of words"),
        })
    }

    /// The condition that a buffer access is inside the buffer.
    fn inside(&self, terms: &mut Terms, space: Space, address: Term) -> Term {
        if space != Space::Buffer {
            return terms.bool(true);
        }
        let nowhere = terms.constant(u64::MAX as u128, 64);
        let address = terms.resize(address, 64);
        let outside = terms.eq(address, nowhere);
        terms.not(outside)
    }
}

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
            words.insert(register, replace(terms, old, part, bit));
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

    fn operand_index(&mut self, role: Role) -> Result<u32> {
        self.routes.index(self.setup, self.reader(), role)
    }

    fn operand_lane(&mut self, terms: &mut Terms, role: Role, lane: Term, index: Term) -> Result<Term> {
        let Some(index) = terms.value(index) else { return unsupported("a computed part of an operand") };
        let route = self.routes.dword(self.setup, self.reader(), role, index as u32)?;
        self.in_lane(terms, lane, |this, terms, lane| {
            this.follow(terms, &route, &|terms, register| this.get(terms, lane, register))
        })
    }

    fn field(&mut self, name: &str) -> u32 {
        self.binding.named_field(self.inst, self.setup.arch.table(), name)
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
        self.state.loads_after_stores |= shared && !self.state.events.is_empty();
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

/// The address of the first instruction, of which nothing is known.
pub fn code_base(terms: &mut Terms) -> Term {
    terms.var("code", Sort::Bits(64))
}

/// Replaces bits from a position on.
fn replace(terms: &mut Terms, old: Term, part: Term, at: u32) -> Term {
    let (of, width) = (terms.width(old), terms.width(part));
    let mut result = part;
    if at > 0 {
        let below = terms.extract(old, 0, at);
        result = terms.concat(result, below);
    }
    if at + width < of {
        let above = terms.extract(old, at + width, of - at - width);
        result = terms.concat(above, result);
    }
    result
}
