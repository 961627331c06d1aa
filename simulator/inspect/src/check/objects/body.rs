//! Evaluates the semantics of an instruction on what is known of its sources.

use super::value::{OFFSET, Value};
use isa_spec::pcode::ir::{
    BinOp, Builtin, Expr, ExprKind, LocalId, Place, PlaceKind, Pure, Semantics, Space, State, Stmt,
};
use isa_spec::tables::Role;
use std::collections::HashMap;
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{self, Binding, Code, Operand};
use wavesim_machine::state::wave::NULL;

/// The registers before an instruction.
pub trait Registers {
    /// Returns what is known of a VGPR in the active lanes.
    fn vgpr(&self, number: u16) -> Value;
    /// Returns what is known of a scalar register.
    fn sgpr(&self, number: u16) -> Value;
}

/// One instruction, or half of one.
pub struct Body<'a, R> {
    pub arch: Arch,
    pub inst: &'a Inst,
    pub binding: &'a Binding,
    pub sem: &'a Semantics,
    pub second: bool,
    /// The address of the instruction, in the file.
    pub address: Value,
    pub registers: &'a R,
    locals: HashMap<LocalId, Value>,
    /// The result.
    pub result: Option<Value>,
    /// The addresses of its loads and stores.
    pub accesses: Vec<(Space, Value)>,
}

impl<'a, R: Registers> Body<'a, R> {
    pub fn new(
        arch: Arch,
        inst: &'a Inst,
        sem: &'a Semantics,
        second: bool,
        address: Value,
        registers: &'a R,
    ) -> Self {
        let entry = if second { inst.entry_y } else { inst.entry };
        let binding = operand::binding(arch, entry);
        Body {
            arch,
            inst,
            binding,
            sem,
            second,
            address,
            registers,
            locals: HashMap::new(),
            result: None,
            accesses: Vec::new(),
        }
    }

    /// Evaluates the body.
    pub fn run(&mut self) {
        let sem = self.sem;
        self.stmts(&sem.body, true);
    }

    /// Evaluates statements, which are executed always or perhaps.
    fn stmts(&mut self, list: &'a [Stmt], always: bool) {
        for stmt in list {
            match stmt {
                Stmt::Assign { place, value, .. } => {
                    let value = self.eval(value);
                    self.assign(place, if always { value } else { Value::Any });
                }
                Stmt::If { arms, otherwise, .. } => {
                    for (cond, body) in arms {
                        self.eval(cond);
                        self.stmts(body, false);
                    }
                    self.stmts(otherwise, false);
                }
                Stmt::For { var, body, .. } => {
                    self.locals.insert(*var, OFFSET);
                    self.stmts(body, false);
                }
                Stmt::While { body, .. } => self.stmts(body, false),
                Stmt::Call { args, .. } => self.eval_all(args),
                Stmt::Return { .. } => {}
            }
        }
    }

    fn assign(&mut self, place: &'a Place, value: Value) {
        match &place.kind {
            PlaceKind::Local(id) => {
                self.locals.insert(*id, value);
            }
            PlaceKind::Operand(Role::D0) => self.result = Some(value),
            PlaceKind::Mem { space, addr } => {
                let address = self.eval(addr);
                self.accesses.push((*space, address));
            }
            PlaceKind::Slice { base, .. } => self.assign(base, Value::Any),
            PlaceKind::Concat(places) => {
                // The last one is the least significant.
                let last = places.len().saturating_sub(1);
                for (at, place) in places.iter().enumerate() {
                    self.assign(place, if at == last { value } else { Value::Any });
                }
            }
            _ => {}
        }
    }

    fn eval(&mut self, expr: &'a Expr) -> Value {
        match &expr.kind {
            ExprKind::Const(bits) => Value::constant(*bits as u32),
            ExprKind::Local(id) => self.locals.get(id).copied().unwrap_or(Value::Any),
            ExprKind::Operand(role) => self.operand(*role),
            ExprKind::OperandIndex(role) => {
                let number = self.find(*role).and_then(|o| self.binding.value(self.inst, o).map(|v| (o, v)));
                let number =
                    number.map_or(NULL as u32, |(o, value)| match operand::code(self.arch, o, value) {
                        Code::Vgpr(reg) | Code::Fixed(reg) | Code::Sgpr(reg) => u32::from(reg),
                        _ => NULL as u32,
                    });
                Value::constant(number)
            }
            ExprKind::Field(name) => {
                Value::constant(self.binding.named_field(self.inst, self.arch.table(), name))
            }
            ExprKind::State(State::Pc) => self.address,
            ExprKind::State(State::InstSize) => Value::constant(self.inst.size as u32),
            // The low dword of an aperture is zero.
            ExprKind::State(State::SharedBase | State::PrivateBase) => Value::constant(0),
            ExprKind::State(_) => OFFSET,
            ExprKind::Slice { base, lo } => {
                let (base, lo) = (self.eval(base), self.eval(lo));
                match lo.number() {
                    Some(0) => base,
                    _ => base.binary(BinOp::Shr, OFFSET),
                }
            }
            ExprKind::Binary(op, left, right) => {
                let (left, right) = (self.eval(left), self.eval(right));
                if expr.ty.is_float() { Value::Any } else { left.binary(*op, right) }
            }
            ExprKind::Select(cond, yes, no) => match self.eval(cond).number() {
                Some(0) => self.eval(no),
                Some(_) => self.eval(yes),
                None => {
                    let (yes, no) = (self.eval(yes), self.eval(no));
                    if yes == no { yes } else { Value::Any }
                }
            },
            ExprKind::Convert(base) | ExprKind::Bits(base) => self.eval(base),
            ExprKind::Mem { space, addr } => {
                let address = self.eval(addr);
                self.accesses.push((*space, address));
                Value::Any
            }
            ExprKind::Concat(parts) => {
                let values: Vec<Value> = parts.iter().map(|part| self.eval(part)).collect();
                values.last().copied().unwrap_or(Value::Any)
            }
            ExprKind::Unary(_, base) => {
                self.eval(base);
                Value::Any
            }
            // It wraps, unless the instruction clamps.
            ExprKind::Call(Builtin::Pure(Pure::ClampU32 | Pure::ClampI32), args) => {
                let value = args.first().map_or(Value::Any, |arg| self.eval(arg));
                let clamps = self.binding.get(self.inst, self.binding.mods.clamp) & 1 != 0;
                if clamps { Value::Any } else { value }
            }
            ExprKind::Call(_, args) => {
                self.eval_all(args);
                Value::Any
            }
            ExprKind::Element(..)
            | ExprKind::OperandLane { .. }
            | ExprKind::Vgpr { .. }
            | ExprKind::Sgpr { .. } => Value::Any,
        }
    }

    fn eval_all(&mut self, list: &'a [Expr]) {
        for expr in list {
            self.eval(expr);
        }
    }

    fn find(&self, role: Role) -> Option<&'a Operand> {
        let binding: &'a Binding = self.binding;
        let operands = if self.second { &binding.y } else { &binding.operands };
        operands.iter().find(|o| o.role == role)
    }

    /// Returns what is known of the low dword of an operand.
    fn operand(&self, role: Role) -> Value {
        let Some(o) = self.find(role) else { return OFFSET };
        let Some(value) = self.binding.value(self.inst, o) else { return OFFSET };
        match operand::code(self.arch, o, value) {
            Code::Vgpr(reg) => self.registers.vgpr(self.binding.register(o, reg)),
            Code::Sgpr(code) if code as usize == NULL => Value::constant(0),
            Code::Sgpr(code) => self.registers.sgpr(code),
            code @ (Code::Int(_) | Code::Literal | Code::Literal64) => {
                Value::constant(self.binding.constant(self.inst, code, o, 0))
            }
            // The low dword of an aperture is zero.
            Code::SharedBase | Code::PrivateBase => Value::constant(0),
            Code::Scc | Code::Vccz | Code::Execz | Code::Float(_) => OFFSET,
            _ => Value::Any,
        }
    }
}
