//! Symbolic evaluation: the reference evaluator with terms for values. Both arms of a branch are evaluated, and
//! what they leave is merged.

use super::builtin::{Operators, Setting};
use super::term::{Term, Terms};
use isa_spec::arith::FloatEnv;
use isa_spec::pcode::builtins::Control;
use isa_spec::pcode::ir::*;

/// A body, or an access, that terms cannot express.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsupported(pub String);

/// The result of an access.
pub type Result<T> = std::result::Result<T, Unsupported>;

/// The state that a body can access, as in `isa_spec::eval::Machine`. Operands have their own widths.
pub trait Machine: Clone {
    /// Returns an operand's value with modifiers applied.
    fn operand(&mut self, terms: &mut Terms, role: Role, lane: Option<u32>) -> Result<Term>;
    /// Returns the current contents of a destination, for partial writes.
    fn destination(&mut self, terms: &mut Terms, role: Role, lane: Option<u32>) -> Result<Term>;
    /// Writes an operand.
    fn set_operand(&mut self, terms: &mut Terms, role: Role, lane: Option<u32>, value: Term) -> Result<()>;
    /// Returns the number of the operand's register.
    fn operand_index(&mut self, terms: &mut Terms, role: Role) -> Result<Term>;
    /// Returns a dword of a multi-register operand in any lane.
    fn operand_lane(&mut self, terms: &mut Terms, role: Role, lane: Term, index: Term) -> Result<Term>;
    /// Returns a raw encoding field.
    fn field(&mut self, terms: &mut Terms, name: &str) -> Term;
    /// Returns the instruction's clamp bit, one bit.
    fn clamp(&mut self, terms: &mut Terms) -> Term;
    /// Returns the value of architectural state.
    fn state(&mut self, terms: &mut Terms, state: State, lane: Option<u32>) -> Result<Term>;
    /// Like [`Machine::destination`], for state.
    fn state_destination(&mut self, terms: &mut Terms, state: State) -> Result<Term>;
    /// Writes architectural state.
    fn set_state(&mut self, terms: &mut Terms, state: State, value: Term) -> Result<()>;
    /// Returns the position in masks of the lane that a body runs for. It may differ from the lane's number.
    fn mask_position(&self, lane: Option<u32>) -> Option<u32>;
    /// Returns a VGPR of a lane by its number.
    fn vgpr(&mut self, terms: &mut Terms, lane: Term, reg: Term) -> Result<Term>;
    /// Writes a VGPR of a lane.
    fn set_vgpr(&mut self, terms: &mut Terms, lane: Term, reg: Term, value: Term) -> Result<()>;
    /// Returns an SGPR by its number.
    fn sgpr(&mut self, terms: &mut Terms, reg: Term) -> Result<Term>;
    /// Writes an SGPR.
    fn set_sgpr(&mut self, terms: &mut Terms, reg: Term, value: Term) -> Result<()>;
    /// Loads bytes, the first lowest.
    fn load(
        &mut self,
        terms: &mut Terms,
        space: Space,
        address: Term,
        bytes: u32,
        lane: Option<u32>,
    ) -> Result<Term>;
    /// Stores bytes.
    fn store(
        &mut self,
        terms: &mut Terms,
        space: Space,
        address: Term,
        value: Term,
        lane: Option<u32>,
    ) -> Result<()>;
    /// Executes a control builtin; the result has the builtin's width.
    fn control(&mut self, terms: &mut Terms, builtin: Control, args: &[Term]) -> Result<Term>;
    /// Returns the state that is `yes` where the condition holds, and `no` elsewhere.
    fn merge(terms: &mut Terms, cond: Term, yes: Self, no: Self) -> Result<Self>;
}

/// Iterations of a `while` whose condition is not constant.
const MAX_ITERATIONS: u32 = 66;

/// Limit on statements, as in the reference evaluator.
const MAX_STEPS: u32 = 2_000_000;

/// Returns whether a body does not go on after a builtin.
pub fn ends(builtin: Control) -> bool {
    matches!(builtin, Control::Illegal | Control::EndPgm)
}

/// Evaluates a body once on a machine.
pub fn evaluate<M: Machine>(
    terms: &mut Terms,
    sem: &Semantics,
    machine: M,
    lane: Option<u32>,
    setting: Setting,
) -> Result<M> {
    let mut locals = Vec::new();
    for local in &sem.locals {
        let zero = terms.constant(0, local.ty.width());
        locals.push(vec![zero; local.len.unwrap_or(1).max(1) as usize]);
    }
    let mut setting = setting;
    if sem.ignores_mode {
        setting.env = FloatEnv::KEEP;
    }
    let done = terms.bool(false);
    let mut machine = machine;
    let clamp = machine.clamp(terms);
    let mut evaluation = Evaluation { terms, machine, locals, done, lane, setting, clamp, steps: 0 };
    evaluation.stmts(&sem.body)?;
    Ok(evaluation.machine)
}

struct Evaluation<'t, M> {
    terms: &'t mut Terms,
    machine: M,
    /// The elements of each local.
    locals: Vec<Vec<Term>>,
    /// The body has returned.
    done: Term,
    lane: Option<u32>,
    setting: Setting,
    clamp: Term,
    steps: u32,
}

/// What a branch can change.
struct Saved<M> {
    machine: M,
    locals: Vec<Vec<Term>>,
    done: Term,
}

fn unsupported<T>(what: impl Into<String>) -> Result<T> {
    Err(Unsupported(what.into()))
}

impl<M: Machine> Evaluation<'_, M> {
    fn save(&self) -> Saved<M> {
        Saved { machine: self.machine.clone(), locals: self.locals.clone(), done: self.done }
    }

    fn restore(&mut self, saved: Saved<M>) {
        (self.machine, self.locals, self.done) = (saved.machine, saved.locals, saved.done);
    }

    /// Makes the current state that where the condition holds, and another one elsewhere.
    fn merge(&mut self, cond: Term, other: Saved<M>) -> Result<()> {
        self.machine = M::merge(self.terms, cond, self.machine.clone(), other.machine)?;
        for (local, other) in self.locals.iter_mut().zip(other.locals) {
            for (element, other) in local.iter_mut().zip(other) {
                *element = self.terms.ite(cond, *element, other);
            }
        }
        self.done = self.terms.ite(cond, self.done, other.done);
        Ok(())
    }

    /// Runs statements where a condition holds.
    fn guarded(&mut self, cond: Term, run: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        match self.terms.truth(cond) {
            Some(true) => run(self),
            Some(false) => Ok(()),
            None => {
                let before = self.save();
                run(self)?;
                self.merge(cond, before)
            }
        }
    }

    fn stmts(&mut self, list: &[Stmt]) -> Result<()> {
        for (at, stmt) in list.iter().enumerate() {
            self.stmt(stmt)?;
            match self.terms.truth(self.done) {
                Some(true) => return Ok(()),
                Some(false) => {}
                None => {
                    let going = self.terms.not(self.done);
                    return self.guarded(going, |this| {
                        this.done = this.terms.bool(false);
                        this.stmts(&list[at + 1..])
                    });
                }
            }
        }
        Ok(())
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<()> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return unsupported("the instruction takes too many steps");
        }
        if self.terms.len() > self.setting.max_terms {
            return unsupported(format!("there are more than {} terms", self.setting.max_terms));
        }
        match stmt {
            Stmt::Assign { place, value, .. } => {
                let value = self.expr(value)?;
                let value = self.terms.resize(value, place.ty.width());
                self.assign(place, value)
            }
            Stmt::If { arms, otherwise, .. } => self.arms(arms, otherwise),
            Stmt::For { var, from, to, body, .. } => {
                let bound = |this: &mut Self, e: &Expr| {
                    let term = this.expr(e)?;
                    let value = this.terms.value(term);
                    value
                        .map(|v| v as u32 as i32)
                        .ok_or(Unsupported("a loop whose bounds are not constant".into()))
                };
                let (from, to) = (bound(self, from)?, bound(self, to)?);
                for i in from..=to {
                    let width = self.terms.width(self.locals[*var as usize][0]);
                    self.locals[*var as usize][0] = self.terms.constant(i as u32 as u128, width);
                    self.stmts(body)?;
                    if self.terms.truth(self.done) == Some(true) {
                        break;
                    }
                }
                Ok(())
            }
            Stmt::While { cond, body, .. } => self.repeat(cond, body, MAX_ITERATIONS),
            Stmt::Return { .. } => {
                self.done = self.terms.bool(true);
                Ok(())
            }
            Stmt::Call { builtin, args, .. } => {
                let args = self.args(args)?;
                self.machine.control(self.terms, *builtin, &args)?;
                if ends(*builtin) {
                    self.done = self.terms.bool(true);
                }
                Ok(())
            }
        }
    }

    fn arms(&mut self, arms: &[(Expr, Vec<Stmt>)], otherwise: &[Stmt]) -> Result<()> {
        let Some(((cond, body), rest)) = arms.split_first() else { return self.stmts(otherwise) };
        let cond = self.condition(cond)?;
        match self.terms.truth(cond) {
            Some(true) => self.stmts(body),
            Some(false) => self.arms(rest, otherwise),
            None => {
                let before = self.save();
                self.arms(rest, otherwise)?;
                let other = self.save();
                self.restore(before);
                self.stmts(body)?;
                self.merge(cond, other)
            }
        }
    }

    fn repeat(&mut self, cond: &Expr, body: &[Stmt], mut limit: u32) -> Result<()> {
        loop {
            let taken = self.condition(cond)?;
            match self.terms.truth(taken) {
                Some(false) => return Ok(()),
                Some(true) => self.stmts(body)?,
                None if limit == 0 => return unsupported("a loop of the pseudocode has no constant bound"),
                None => {
                    limit -= 1;
                    return self.guarded(taken, |this| {
                        this.stmts(body)?;
                        let going = this.terms.not(this.done);
                        this.guarded(going, |this| this.repeat(cond, body, limit))
                    });
                }
            }
            self.steps += 1;
            if self.steps > MAX_STEPS || self.terms.truth(self.done) == Some(true) {
                return Ok(());
            }
        }
    }

    /// A condition of one bit.
    fn condition(&mut self, cond: &Expr) -> Result<Term> {
        let value = self.expr(cond)?;
        Ok(self.is_set(value))
    }

    fn is_set(&mut self, value: Term) -> Term {
        let zero = self.terms.constant(0, self.terms.width(value));
        let is_zero = self.terms.eq(value, zero);
        self.terms.not(is_zero)
    }

    /// Stores a value of the place's width.
    fn assign(&mut self, place: &Place, value: Term) -> Result<()> {
        match &place.kind {
            PlaceKind::Local(id) => self.locals[*id as usize][0] = value,
            PlaceKind::Element(id, index) => {
                let index = self.expr(index)?;
                let at = *id as usize;
                for k in 0..self.locals[at].len() {
                    let number = self.terms.constant(k as u128, self.terms.width(index));
                    let here = self.terms.eq(index, number);
                    self.locals[at][k] = self.terms.ite(here, value, self.locals[at][k]);
                }
            }
            PlaceKind::Operand(role) => self.machine.set_operand(self.terms, *role, self.lane, value)?,
            PlaceKind::State(state) => self.machine.set_state(self.terms, *state, value)?,
            PlaceKind::Slice { base, lo } => {
                let (old, lo) = (self.old(base)?, self.position(lo)?);
                let merged = self.insert(old, value, lo);
                self.assign(base, merged)?;
            }
            PlaceKind::Vgpr { lane, reg } => {
                let (lane, reg) = (self.expr(lane)?, self.expr(reg)?);
                self.machine.set_vgpr(self.terms, lane, reg, value)?;
            }
            PlaceKind::Sgpr { reg } => {
                let reg = self.expr(reg)?;
                self.machine.set_sgpr(self.terms, reg, value)?;
            }
            PlaceKind::Mem { space, addr } => {
                let addr = self.expr(addr)?;
                let value = self.terms.resize(value, place.ty.width().div_ceil(8) * 8);
                self.machine.store(self.terms, *space, addr, value, self.lane)?;
            }
            PlaceKind::Concat(parts) => {
                // The last part holds the lowest bits.
                let mut lo = 0;
                for part in parts.iter().rev() {
                    let width = part.ty.width();
                    let bits = self.terms.extract(value, lo, width);
                    self.assign(part, bits)?;
                    lo += width;
                }
            }
        }
        Ok(())
    }

    /// The position of a slice: the bit of the current lane, which is where the machine says, or a value.
    fn position(&mut self, lo: &Expr) -> Result<Term> {
        let mut inner = lo;
        while let ExprKind::Convert(of) | ExprKind::Bits(of) = &inner.kind {
            inner = of;
        }
        if inner.kind == ExprKind::State(State::LaneId)
            && let Some(position) = self.machine.mask_position(self.lane)
        {
            return Ok(self.terms.constant(position as u128, 32));
        }
        self.expr(lo)
    }

    /// Replaces bits from a position on; those beyond the end are dropped.
    fn insert(&mut self, old: Term, value: Term, lo: Term) -> Term {
        let t = &mut *self.terms;
        let (of, width) = (t.width(old), t.width(value));
        match t.value(lo) {
            Some(lo) if lo >= of as u128 => old,
            Some(lo) => {
                let lo = lo as u32;
                let part = t.extract(value, 0, width.min(of - lo));
                t.replace(old, part, lo)
            }
            None => {
                let count = t.resize(lo, of);
                let ones = t.constant(isa_spec::arith::mask(width), of);
                let mask = t.shl(ones, count);
                let bits = t.resize(value, of);
                let bits = t.shl(bits, count);
                let others = t.not(mask);
                let kept = t.and(old, others);
                t.or(kept, bits)
            }
        }
    }

    /// Bits from a position on; those beyond the end are zero.
    fn slice(&mut self, base: Term, lo: Term, width: u32) -> Term {
        let t = &mut *self.terms;
        let of = t.width(base);
        match t.value(lo) {
            Some(lo) if lo >= of as u128 => t.constant(0, width),
            Some(lo) => {
                let kept = width.min(of - lo as u32);
                let bits = t.extract(base, lo as u32, kept);
                t.zero_extend(bits, width)
            }
            None => {
                let wide = of.max(width).max(t.width(lo));
                let (base, count) = (t.zero_extend(base, wide), t.zero_extend(lo, wide));
                let shifted = t.lshr(base, count);
                t.extract(shifted, 0, width)
            }
        }
    }

    /// The current value of a whole place.
    fn old(&mut self, place: &Place) -> Result<Term> {
        let width = place.ty.width();
        let value = match &place.kind {
            PlaceKind::Local(id) => self.locals[*id as usize][0],
            PlaceKind::Element(id, index) => self.element(*id, index)?,
            PlaceKind::Operand(role) => self.machine.destination(self.terms, *role, self.lane)?,
            PlaceKind::State(state) => self.machine.state_destination(self.terms, *state)?,
            PlaceKind::Slice { base, lo } => {
                let (base, lo) = (self.old(base)?, self.position(lo)?);
                self.slice(base, lo, width)
            }
            PlaceKind::Vgpr { lane, reg } => {
                let (lane, reg) = (self.expr(lane)?, self.expr(reg)?);
                self.machine.vgpr(self.terms, lane, reg)?
            }
            PlaceKind::Sgpr { reg } => {
                let reg = self.expr(reg)?;
                self.machine.sgpr(self.terms, reg)?
            }
            PlaceKind::Mem { space, addr } => self.load(*space, addr, width)?,
            PlaceKind::Concat(parts) => {
                let mut parts = parts.iter();
                let Some(first) = parts.next() else { return unsupported("an empty concatenation") };
                let mut value = self.old(first)?;
                for part in parts {
                    let below = self.old(part)?;
                    value = self.terms.concat(value, below);
                }
                value
            }
        };
        Ok(self.terms.resize(value, width))
    }

    /// Evaluates an expression to `e.ty.width()` bits.
    fn expr(&mut self, e: &Expr) -> Result<Term> {
        let width = e.ty.width();
        let value = match &e.kind {
            ExprKind::Const(bits) => self.terms.constant(*bits, width),
            ExprKind::Local(id) => self.locals[*id as usize][0],
            ExprKind::Element(id, index) => self.element(*id, index)?,
            ExprKind::Operand(role) => self.machine.operand(self.terms, *role, self.lane)?,
            ExprKind::OperandIndex(role) => {
                let index = self.machine.operand_index(self.terms, *role)?;
                self.terms.resize(index, width)
            }
            ExprKind::OperandLane { role, lane, index } => {
                let (lane, index) = (self.expr(lane)?, self.expr(index)?);
                self.machine.operand_lane(self.terms, *role, lane, index)?
            }
            ExprKind::Field(name) => {
                let value = self.machine.field(self.terms, name);
                self.terms.resize(value, width)
            }
            ExprKind::State(state) => self.machine.state(self.terms, *state, self.lane)?,
            ExprKind::Slice { base, lo } => {
                let (base_width, lo) = (base.ty.width(), self.position(lo)?);
                let base = self.expr(base)?;
                let base = self.terms.resize(base, base_width);
                self.slice(base, lo, width)
            }
            ExprKind::Unary(op, a) => {
                let v = self.expr(a)?;
                match op {
                    UnOp::Not => self.terms.not(v),
                    UnOp::LogicalNot => {
                        let set = self.is_set(v);
                        self.terms.not(set)
                    }
                    UnOp::Neg if a.ty.is_float() => {
                        let sign = self.terms.constant(1 << (width - 1), width);
                        self.terms.xor(v, sign)
                    }
                    UnOp::Neg => self.terms.neg(v),
                }
            }
            ExprKind::Binary(op, a, b) => {
                let x = self.expr(a)?;
                // The right side is evaluated only if needed, which matters only if it accesses something.
                if let (BinOp::LogicalAnd, Some(false)) | (BinOp::LogicalOr, Some(true)) =
                    (*op, self.terms.truth(x))
                {
                    return Ok(self.terms.bool(*op == BinOp::LogicalOr));
                }
                let y = self.expr(b)?;
                self.operators().binary(*op, x, y, a.ty, b.ty, width)
            }
            ExprKind::Select(c, a, b) => {
                let c = self.condition(c)?;
                match self.terms.truth(c) {
                    Some(true) => self.expr(a)?,
                    Some(false) => self.expr(b)?,
                    None => {
                        let (a, b) = (self.expr(a)?, self.expr(b)?);
                        self.terms.ite(c, a, b)
                    }
                }
            }
            ExprKind::Convert(a) => {
                let v = self.expr(a)?;
                self.operators().convert(v, a.ty, e.ty)
            }
            ExprKind::Bits(a) => {
                let own = a.ty.width();
                let value = self.expr(a)?;
                self.terms.resize(value, own)
            }
            ExprKind::Call(builtin, list) => {
                let types: Vec<Ty> = list.iter().map(|a| a.ty).collect();
                let args = self.args(list)?;
                match *builtin {
                    Builtin::Pure(builtin) => self.operators().pure(builtin, &args, &types, width),
                    Builtin::Control(builtin) => self.machine.control(self.terms, builtin, &args)?,
                }
            }
            ExprKind::Vgpr { lane, reg } => {
                let (lane, reg) = (self.expr(lane)?, self.expr(reg)?);
                self.machine.vgpr(self.terms, lane, reg)?
            }
            ExprKind::Sgpr { reg } => {
                let reg = self.expr(reg)?;
                self.machine.sgpr(self.terms, reg)?
            }
            ExprKind::Mem { space, addr } => self.load(*space, addr, width)?,
            ExprKind::Concat(parts) => {
                let mut value: Option<Term> = None;
                for part in parts {
                    let below = self.expr(part)?;
                    value = Some(value.map_or(below, |above| self.terms.concat(above, below)));
                }
                value.ok_or(Unsupported("an empty concatenation".into()))?
            }
        };
        Ok(self.terms.resize(value, width))
    }

    fn operators(&mut self) -> Operators<'_> {
        Operators { terms: self.terms, setting: self.setting, clamp: self.clamp }
    }

    fn args(&mut self, args: &[Expr]) -> Result<Vec<Term>> {
        args.iter().map(|a| self.expr(a)).collect()
    }

    /// An element of an array; an index out of range reads 0.
    fn element(&mut self, id: LocalId, index: &Expr) -> Result<Term> {
        let index = self.expr(index)?;
        let elements = self.locals[id as usize].clone();
        let width = self.terms.width(elements[0]);
        if let Some(index) = self.terms.value(index) {
            let zero = self.terms.constant(0, width);
            return Ok(elements.get(index as usize).copied().unwrap_or(zero));
        }
        let mut value = self.terms.constant(0, width);
        for (k, element) in elements.into_iter().enumerate() {
            let number = self.terms.constant(k as u128, self.terms.width(index));
            let here = self.terms.eq(index, number);
            value = self.terms.ite(here, element, value);
        }
        Ok(value)
    }

    fn load(&mut self, space: Space, addr: &Expr, width: u32) -> Result<Term> {
        let addr = self.expr(addr)?;
        self.machine.load(self.terms, space, addr, width.div_ceil(8), self.lane)
    }
}
