//! Statements and steps of lane loops, for one lane of a wave.

use super::{Machine, State, name_of};
use crate::{VerifyError, unsupported};
use isa_export::smt::{Sort, Term};
use isa_lower::ir::{
    Addresses, Body, HostWidth, LaneLoop, Lanes, Mask, Memory, Once, Outer, Start, Step, Stmt, Sum, Value,
    ValueKind, Var,
};
use isa_spec::pcode::ir::{LocalId, Role, Space, State as Name};

type Result<T> = std::result::Result<T, VerifyError>;

/// Iterations of a `while` whose condition is not constant.
const MAX_ITERATIONS: u32 = 66;

impl Machine<'_> {
    /// Runs a handler.
    pub(super) fn body(&mut self, body: &Body) -> Result<()> {
        match body {
            Body::Lanes(lanes) => self.lanes(lanes),
            Body::Once(once) => self.once(once),
        }
    }

    /// Runs code that runs once per wave.
    pub(super) fn once(&mut self, once: &Once) -> Result<()> {
        for (role, value) in &once.operands {
            let value = self.value(value)?;
            self.state.operands.insert(*role, value);
        }
        self.stmts(&once.body)
    }

    /// Runs the steps for one lane.
    pub(super) fn lanes(&mut self, lanes: &Lanes) -> Result<()> {
        self.steps(&lanes.steps)
    }

    fn steps(&mut self, steps: &[Step]) -> Result<()> {
        for step in steps {
            match step {
                // Sources are what they are with modifiers, which all handlers have in common.
                Step::Stage { .. } | Step::StageOld | Step::Modify { .. } | Step::ReadMask => {}
                Step::StoreRoom { .. } => {}
                Step::Simd { builtin, ty, calls, lanes } => {
                    let before = self.state.clone();
                    self.stmts(&lanes.body)?;
                    for args in calls {
                        let args = args.iter().map(|arg| self.value(arg)).collect::<Result<Vec<Term>>>()?;
                        let value = self.call(*builtin, *ty, &args, HostWidth::of(ty.width()).bits());
                        self.simd.push(value);
                    }
                    self.state = before;
                }
                Step::Memory(memory) => self.memory(memory)?,
                Step::Loop(lane) => self.lane(lane)?,
                Step::Declare { same, lanes, rows } => {
                    same.iter().chain(lanes).chain(rows).for_each(|id| self.clear(*id));
                }
                Step::Once { body, .. } => self.stmts(body)?,
                Step::If { arms, otherwise } => self.step_arms(arms, otherwise)?,
                Step::For { var, from, to, body } => {
                    self.count(*var, from, to, &mut |machine| machine.steps(body))?;
                }
                Step::Masked { mask, steps } => {
                    let mask = Value::new(ValueKind::Var(Var::Local(*mask)), HostWidth::W32);
                    let cond = self.condition(&mask)?;
                    self.branch(cond, &mut |machine| machine.steps(steps), &mut |_| Ok(()))?;
                }
                Step::Gather { mask, .. } => {
                    let name = match mask {
                        Mask::D0 => "D0.bit",
                        Mask::Vcc => "VCC_OUT.bit",
                        Mask::Exec => "exec_out.bit",
                    };
                    let none = self.terms.bool(false);
                    let bit = self.state.bits.get(mask).copied().unwrap_or(none);
                    self.state.named.insert(name.into(), bit);
                }
                Step::Write { .. } => {
                    let value = self.operand(Role::D0);
                    self.state.named.insert("D0".into(), value);
                }
            }
        }
        Ok(())
    }

    /// Sets a local to zero.
    fn clear(&mut self, id: LocalId) {
        for k in 0..self.state.locals[id as usize].len() {
            let bits = self.terms.width(self.state.locals[id as usize][k]);
            self.state.locals[id as usize][k] = self.terms.constant(0, bits);
        }
    }

    fn lane(&mut self, lane: &LaneLoop) -> Result<()> {
        if !lane.outer.is_empty() {
            // All other locals are those of the loop.
            let Outer { same, lanes, rows } = &lane.outer;
            let shared = |id: &LocalId| [same, lanes, rows].iter().any(|list| list.contains(id));
            (0..self.state.locals.len() as LocalId).filter(|id| !shared(id)).for_each(|id| self.clear(id));
        }
        if let Some(result) = lane.result {
            let bits = 32 * result.dwords();
            let start = match result.start {
                Start::Zero => self.terms.constant(0, bits),
                Start::Old | Start::OldHalf => self.raw(Role::D0, result.dwords()),
            };
            self.state.operands.insert(Role::D0, start);
        }
        self.stmts(&lane.body)
    }

    /// A memory access of all lanes.
    fn memory(&mut self, memory: &Memory) -> Result<()> {
        let (guard, address) = match &memory.addresses {
            Addresses::Set => self.address()?,
            Addresses::Computed(lane) => {
                let before = self.state.clone();
                self.stmts(&lane.body)?;
                let address = self.address()?;
                self.state = before;
                address
            }
            Addresses::Sum(sum) => self.sum(sum)?,
        };
        if memory.store {
            let Some((_, value)) = self.state.stored else { return unsupported("a store of nothing") };
            let value = self.terms.resize(value, 8 * memory.bytes);
            return self.store(memory.space, address, value, guard);
        }
        let value = self.load(memory.space, address, memory.bytes)?;
        self.loaded.insert(memory.number, value);
        Ok(())
    }

    /// The address that the lane has set, and the condition that it has.
    fn address(&mut self) -> Result<(Term, Term)> {
        let missing = VerifyError::Unsupported("an address that is not set".into());
        self.state.address.ok_or(missing)
    }

    fn sum(&mut self, sum: &Sum) -> Result<(Term, Term)> {
        let mut address = self.terms.constant(0, 64);
        for value in &sum.base {
            let value = self.value(value)?;
            let value = self.terms.resize(value, 64);
            address = self.terms.add_bits(address, value);
        }
        let lane = self.raw(sum.offsets, 1);
        let mut lane = self.terms.zero_extend(lane, 64);
        if let Some(scale) = sum.scale {
            let field = self.terms.var(&format!("field.{}", scale.field.to_lowercase()), Sort::Bits(32));
            let set = self.is_set(field);
            let factor = self.terms.constant(scale.factor as u128, 64);
            let scaled = self.terms.mul(lane, factor);
            lane = self.terms.ite(set, scaled, lane);
        }
        address = self.terms.add_bits(address, lane);
        let always = self.terms.bool(true);
        let stored = self.state.stored.map_or(always, |(guard, _)| guard);
        let Some((unless, lane)) = &sum.unless else { return Ok((stored, address)) };
        let unless = self.condition(unless)?;
        let before = self.state.clone();
        self.stmts(&lane.body)?;
        let (_, other) = self.address()?;
        self.state = before;
        Ok((stored, self.terms.ite(unless, other, address)))
    }

    fn stmts(&mut self, list: &[Stmt]) -> Result<()> {
        list.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    /// What a variable has after an assignment: the old value if the lane has left.
    fn unless_left(&mut self, old: Option<Term>, new: Term) -> Term {
        match old {
            Some(old) => self.terms.ite(self.state.left, old, new),
            None => new,
        }
    }

    fn set(&mut self, var: Var, value: Term) -> Result<()> {
        match var {
            Var::Local(id) => {
                let old = self.state.locals[id as usize][0];
                let value = self.terms.resize(value, self.terms.width(old));
                self.state.locals[id as usize][0] = self.unless_left(Some(old), value);
            }
            Var::Operand(role) => {
                let old = self.operand(role);
                let value = self.terms.resize(value, self.terms.width(old));
                let value = self.unless_left(Some(old), value);
                self.state.operands.insert(role, value);
            }
            Var::Whole => return unsupported("an assignment to a whole"),
        }
        Ok(())
    }

    /// Sets something that has a name.
    fn set_named(&mut self, name: &str, value: Term) {
        let old = self.named(name, self.terms.node(value).sort);
        let value = self.unless_left(Some(old), value);
        self.state.named.insert(name.to_string(), value);
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<()> {
        self.steps += 1;
        if self.steps > 20_000 || self.terms.len() > 200_000 {
            return unsupported("too many steps");
        }
        match stmt {
            Stmt::Set(var, value) => {
                let value = self.value(value)?;
                self.set(*var, value)
            }
            Stmt::SetLow { var, width, value, .. } => {
                let value = self.value(value)?;
                let part = self.terms.extract(value, 0, *width);
                let old = match var {
                    Var::Local(id) => self.state.locals[*id as usize][0],
                    Var::Operand(role) => self.operand(*role),
                    Var::Whole => return unsupported("an assignment to a whole"),
                };
                let new = self.terms.replace(old, part, 0);
                self.set(*var, new)
            }
            Stmt::SetElement { id, index, value } | Stmt::SetLaneElement { id, index, value } => {
                let (index, value) = (self.value(index)?, self.value(value)?);
                for k in 0..self.state.locals[*id as usize].len() {
                    let old = self.state.locals[*id as usize][k];
                    let number = self.terms.constant(k as u128, self.terms.width(index));
                    let here = self.terms.eq(index, number);
                    let new = self.terms.resize(value, self.terms.width(old));
                    let new = self.terms.ite(here, new, old);
                    self.state.locals[*id as usize][k] = self.unless_left(Some(old), new);
                }
                Ok(())
            }
            Stmt::SetBit(mask, value) => {
                let value = self.value(value)?;
                let bit = self.terms.extract(value, 0, 1);
                let none = self.terms.bool(false);
                let old = self.state.bits.get(mask).copied().unwrap_or(none);
                let bit = self.unless_left(Some(old), bit);
                self.state.bits.insert(*mask, bit);
                Ok(())
            }
            Stmt::SetState(state, value) => {
                let value = self.value(value)?;
                self.set_state(*state, value)
            }
            Stmt::SetScalar { dwords, value, .. } => {
                let value = self.value(value)?;
                let value = self.terms.resize(value, 32 * dwords);
                self.set_named("D0", value);
                Ok(())
            }
            Stmt::SetMaskOperand(value) => {
                let value = self.value(value)?;
                let value = self.terms.resize(value, 64);
                self.set_named("VCC_OUT", value);
                Ok(())
            }
            Stmt::Parts { value, parts } => {
                let value = self.value(value)?;
                let outer = self.whole.replace(value);
                self.stmts(parts)?;
                self.whole = outer;
                Ok(())
            }
            Stmt::Store { space, addr, bytes, value } | Stmt::Exchange { space, addr, bytes, value } => {
                let (addr, value) = (self.value(addr)?, self.value(value)?);
                let value = self.terms.resize(value, 8 * bytes);
                let guard = self.terms.not(self.state.left);
                self.store(*space, addr, value, guard)
            }
            Stmt::SetStored { address, value, .. } => {
                let value = self.value(value)?;
                let guard = self.terms.not(self.state.left);
                self.state.stored = Some((guard, value));
                if let Some((_, addr)) = address {
                    let addr = self.value(addr)?;
                    self.state.address = Some((guard, addr));
                }
                Ok(())
            }
            Stmt::SetAddress { addr, .. } => {
                let addr = self.value(addr)?;
                let guard = self.terms.not(self.state.left);
                self.state.address = Some((guard, addr));
                Ok(())
            }
            Stmt::If { arms, otherwise } => self.arms(arms, otherwise),
            Stmt::For { var, from, to, body } => {
                self.count(*var, from, to, &mut |machine| machine.stmts(body))
            }
            Stmt::While { cond, body } => self.repeat(cond, body, MAX_ITERATIONS),
            Stmt::Leave => {
                self.state.left = self.terms.bool(true);
                Ok(())
            }
            Stmt::SetVgpr { .. } | Stmt::SetSgpr { .. } => unsupported("registers by number"),
            Stmt::Vector(_) | Stmt::Product(_) | Stmt::MoveLanes(_) => unsupported("a loop over lanes"),
            Stmt::Control { builtin, .. } => unsupported(format!("`{}`", builtin.def().name)),
        }
    }

    fn arms(&mut self, arms: &[(Value, Vec<Stmt>)], otherwise: &[Stmt]) -> Result<()> {
        let Some(((cond, body), rest)) = arms.split_first() else { return self.stmts(otherwise) };
        let cond = self.condition(cond)?;
        self.branch(cond, &mut |machine| machine.stmts(body), &mut |machine| machine.arms(rest, otherwise))
    }

    fn step_arms(&mut self, arms: &[(Value, Vec<Step>)], otherwise: &[Step]) -> Result<()> {
        let Some(((cond, steps), rest)) = arms.split_first() else { return self.steps(otherwise) };
        let cond = self.condition(cond)?;
        self.branch(cond, &mut |machine| machine.steps(steps), &mut |machine| {
            machine.step_arms(rest, otherwise)
        })
    }

    /// Runs one of two parts, or both if the condition is not constant.
    fn branch(
        &mut self,
        cond: Term,
        yes: &mut dyn FnMut(&mut Self) -> Result<()>,
        no: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        match self.terms.truth(cond) {
            Some(true) => yes(self),
            Some(false) => no(self),
            None => {
                let before = self.state.clone();
                no(self)?;
                let other = std::mem::replace(&mut self.state, before);
                yes(self)?;
                self.merge(cond, other)
            }
        }
    }

    fn count(
        &mut self,
        var: LocalId,
        from: &Value,
        to: &Value,
        body: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let (from, to) = (self.value(from)?, self.value(to)?);
        let (Some(from), Some(to)) = (self.terms.value(from), self.terms.value(to)) else {
            return unsupported("a loop whose bounds are not constant");
        };
        for k in from as u32 as i32..=to as u32 as i32 {
            let number = self.terms.constant(k as u32 as u128, 32);
            self.set(Var::Local(var), number)?;
            body(self)?;
        }
        Ok(())
    }

    fn repeat(&mut self, cond: &Value, body: &[Stmt], limit: u32) -> Result<()> {
        let taken = self.condition(cond)?;
        let going = self.terms.not(self.state.left);
        let taken = self.terms.and(taken, going);
        match self.terms.truth(taken) {
            Some(false) => Ok(()),
            _ if limit == 0 => unsupported("a loop of the pseudocode has no constant bound"),
            _ => {
                let before = self.state.clone();
                self.stmts(body)?;
                self.repeat(cond, body, limit - 1)?;
                self.merge(taken, before)
            }
        }
    }

    /// Makes the state that where the condition holds, and another one elsewhere.
    fn merge(&mut self, cond: Term, other: State) -> Result<()> {
        let empty = State::new(self.terms);
        let mine = std::mem::replace(&mut self.state, empty);
        let t = &mut *self.terms;
        let mut merged = State { left: t.ite(cond, mine.left, other.left), ..State::new(t) };
        for (local, others) in mine.locals.iter().zip(&other.locals) {
            merged.locals.push(local.iter().zip(others).map(|(a, b)| t.ite(cond, *a, *b)).collect());
        }
        let none = t.bool(false);
        for mask in mine.bits.keys().chain(other.bits.keys()) {
            let [a, b] = [&mine, &other].map(|state| state.bits.get(mask).copied().unwrap_or(none));
            merged.bits.insert(*mask, t.ite(cond, a, b));
        }
        for (name, value) in mine.named.iter().chain(&other.named) {
            let sort = t.node(*value).sort;
            let old = t.var(name, sort);
            let [a, b] = [&mine, &other].map(|state| state.named.get(name).copied().unwrap_or(old));
            merged.named.insert(name.clone(), t.ite(cond, a, b));
        }
        for role in mine.operands.keys().chain(other.operands.keys()) {
            let raw = self.raw(*role, self.dwords(*role));
            let [a, b] = [&mine, &other].map(|state| state.operands.get(role).copied().unwrap_or(raw));
            let value = self.terms.ite(cond, a, b);
            merged.operands.insert(*role, value);
        }
        let t = &mut *self.terms;
        let not = t.not(cond);
        let mut access = |a: Option<(Term, Term)>, b: Option<(Term, Term)>| match (a, b) {
            (Some((x, a)), Some((y, b))) => Some((t.ite(cond, x, y), t.ite(cond, a, b))),
            (Some((x, a)), None) => Some((t.and(cond, x), a)),
            (None, Some((y, b))) => Some((t.and(not, y), b)),
            (None, None) => None,
        };
        merged.address = access(mine.address, other.address);
        merged.stored = access(mine.stored, other.stored);
        self.state = merged;
        Ok(())
    }

    /// Architectural state, with the names of exports.
    pub(super) fn read_state(&mut self, state: Name) -> Result<Term> {
        let whole = |this: &mut Self, name: &str, bits: u32| this.named(name, Sort::Bits(bits));
        let is = |this: &mut Self, name: &str, bits: u32, value: u128| {
            let (whole, number) = (whole(this, name, bits), this.terms.constant(value, bits));
            this.terms.eq(whole, number)
        };
        Ok(match state {
            Name::ExecLo | Name::ExecHi | Name::VccLo | Name::VccHi => {
                let exec = matches!(state, Name::ExecLo | Name::ExecHi);
                let whole = whole(self, if exec { "exec" } else { "vcc" }, 64);
                let lo = if matches!(state, Name::ExecLo | Name::VccLo) { 0 } else { 32 };
                self.terms.extract(whole, lo, 32)
            }
            Name::Execz => is(self, "exec", 64, 0),
            Name::Vccz => is(self, "vcc", 64, 0),
            Name::Wave32 => is(self, "wave_size", 32, 32),
            Name::Wave64 => is(self, "wave_size", 32, 64),
            Name::LaneId => self.terms.var("lane", Sort::Bits(32)),
            Name::Exec | Name::Vcc | Name::Pc => whole(self, &super::snake(state), 64),
            Name::SharedBase | Name::PrivateBase | Name::ScratchBase | Name::TrapBase => {
                whole(self, &super::snake(state), 64)
            }
            Name::Scc => whole(self, "scc", 1),
            _ => whole(self, &super::snake(state), 32),
        })
    }

    fn set_state(&mut self, state: Name, value: Term) -> Result<()> {
        let (name, part) = match state {
            Name::ExecLo => ("exec".to_string(), Some(0)),
            Name::ExecHi => ("exec".to_string(), Some(32)),
            Name::VccLo => ("vcc".to_string(), Some(0)),
            Name::VccHi => ("vcc".to_string(), Some(32)),
            _ => (super::snake(state), None),
        };
        let bits = match state {
            Name::Scc => 1,
            Name::M0 | Name::Mode => 32,
            Name::Exec | Name::Vcc | Name::Pc => 64,
            _ if part.is_some() => 64,
            _ => return unsupported("state that is read-only"),
        };
        let value = match part {
            Some(lo) => {
                let (old, word) = (self.named(&name, Sort::Bits(64)), self.terms.resize(value, 32));
                self.terms.replace(old, word, lo)
            }
            None => self.terms.resize(value, bits),
        };
        self.set_named(&name, value);
        Ok(())
    }

    /// The array of an address space, and the address in it.
    fn place(&mut self, space: Space, address: Term) -> Result<(&'static str, Sort, Term)> {
        Ok(match space {
            Space::Global | Space::Flat | Space::Buffer | Space::Scalar => {
                ("memory", Sort::Memory(64), self.terms.resize(address, 64))
            }
            Space::Lds => ("lds", Sort::Memory(32), self.terms.resize(address, 32)),
            Space::Scratch => ("scratch", Sort::Memory(32), self.terms.resize(address, 32)),
            Space::Word => return unsupported("memory of words"),
        })
    }

    pub(super) fn load(&mut self, space: Space, address: Term, bytes: u32) -> Result<Term> {
        let (name, sort, address) = self.place(space, address)?;
        let (inside, memory) =
            (isa_export::smtlib::inside(self.terms, space, address), self.named(name, sort));
        let width = self.terms.width(address);
        let mut value: Option<Term> = None;
        for k in 0..bytes {
            let offset = self.terms.constant(k as u128, width);
            let at = self.terms.add_bits(address, offset);
            let byte = self.terms.select(memory, at);
            value = Some(value.map_or(byte, |low| self.terms.concat(byte, low)));
        }
        let zero = self.terms.constant(0, 8 * bytes);
        Ok(self.terms.ite(inside, value.unwrap_or(zero), zero))
    }

    fn store(&mut self, space: Space, address: Term, value: Term, guard: Term) -> Result<()> {
        let (name, sort, address) = self.place(space, address)?;
        let inside = isa_export::smtlib::inside(self.terms, space, address);
        let guard = self.terms.and(guard, inside);
        let before = self.named(name, sort);
        let (mut memory, width) = (before, self.terms.width(address));
        for k in 0..self.terms.width(value) / 8 {
            let offset = self.terms.constant(k as u128, width);
            let at = self.terms.add_bits(address, offset);
            let byte = self.terms.extract(value, 8 * k, 8);
            memory = self.terms.store(memory, at, byte);
        }
        let memory = self.terms.ite(guard, memory, before);
        self.state.named.insert(name.to_string(), memory);
        Ok(())
    }

    /// The staged value of an operand.
    pub(super) fn operand(&mut self, role: Role) -> Term {
        let raw = self.raw(role, self.dwords(role));
        self.state.operands.get(&role).copied().unwrap_or(raw)
    }

    /// Registers of an operand: the bits that the pseudocode reads, and bits above of which nothing is known.
    pub(super) fn raw(&mut self, role: Role, dwords: u32) -> Term {
        let name = name_of(role);
        let width = self.widths.get(&role).copied().unwrap_or(32);
        let own = self.terms.var(&name, Sort::Bits(width));
        if width >= 32 * dwords {
            return self.terms.extract(own, 0, 32 * dwords);
        }
        let above = self.terms.var(&format!("{name}.above"), Sort::Bits(32 * dwords - width));
        self.terms.concat(above, own)
    }
}
