//! Sums of floats: those of several products or elements, whose order and intermediate rounding no manual specifies, and
//! those in memory, which other waves add to.
//!
//! Values are followed in the order of statements. Each has the properties of the values that it is computed from.

use isa_spec::pcode::ir::*;
use std::collections::HashMap;

/// The sums of a body.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sums {
    /// A sum is an operand of another one.
    pub of_several: bool,
    /// A sum with a value from memory is stored there.
    pub in_memory: bool,
}

/// Properties of a value, as a set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Value {
    /// A float sum.
    sum: bool,
    /// Loaded from memory.
    loaded: bool,
    /// A float sum with a value from memory.
    sum_of_loaded: bool,
}

impl Value {
    fn or(self, other: Value) -> Value {
        Value {
            sum: self.sum | other.sum,
            loaded: self.loaded | other.loaded,
            sum_of_loaded: self.sum_of_loaded | other.sum_of_loaded,
        }
    }
}

/// What is assigned: a variable or an operand. Slices of operands are different values if their bounds are constants,
/// as in packed instructions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Variable {
    Local(LocalId),
    Operand(Role, Option<u128>),
}

#[derive(Default)]
struct Walk {
    values: HashMap<Variable, Value>,
    found: Sums,
}

/// Returns the sums of a body.
pub fn of(sem: &Semantics) -> Sums {
    let mut walk = Walk::default();
    walk.stmts(&sem.body);
    walk.found
}

/// Returns whether an operator computes with the values of its operands.
pub fn is_arithmetic(op: BinOp) -> bool {
    matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div | BinOp::Rem | BinOp::Pow)
}

/// Returns whether an expression is a constant: such a sum is a step of a conversion.
fn is_const(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Const(_) => true,
        ExprKind::Convert(a) | ExprKind::Bits(a) | ExprKind::Unary(_, a) => is_const(a),
        _ => false,
    }
}

impl Walk {
    fn stmts(&mut self, list: &[Stmt]) {
        for stmt in list {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign { place, value, .. } => {
                let value = self.value(value);
                self.assign(place, value);
            }
            Stmt::If { arms, otherwise, .. } => {
                let before = self.values.clone();
                let mut after = before.clone();
                let bodies = arms.iter().map(|(_, body)| body).chain([otherwise]);
                for body in bodies {
                    self.values.clone_from(&before);
                    self.stmts(body);
                    for (variable, value) in &self.values {
                        let all = after.entry(variable.clone()).or_default();
                        *all = all.or(*value);
                    }
                }
                self.values = after;
            }
            // The second time, the body sees the values of the first one.
            Stmt::For { body, .. } | Stmt::While { body, .. } => {
                self.stmts(body);
                self.stmts(body);
            }
            Stmt::Return { .. } | Stmt::Call { .. } => {}
        }
    }

    fn assign(&mut self, place: &Place, value: Value) {
        match &place.kind {
            PlaceKind::Mem { .. } => self.found.in_memory |= value.sum_of_loaded,
            PlaceKind::Concat(parts) => parts.iter().for_each(|part| self.assign(part, value)),
            PlaceKind::Local(id) => {
                self.values.insert(Variable::Local(*id), value);
            }
            PlaceKind::Operand(role) => {
                self.values.retain(|known, _| !matches!(known, Variable::Operand(other, _) if other == role));
                self.values.insert(Variable::Operand(*role, None), value);
            }
            PlaceKind::Slice { base, lo } => match (&base.kind, &lo.kind) {
                (PlaceKind::Operand(role), ExprKind::Const(lo)) => {
                    self.values.insert(Variable::Operand(*role, Some(*lo)), value);
                }
                // Which lane or element of a packed result it is, a loop decides: each is a value of its own.
                (PlaceKind::Operand(_), _) => {}
                _ => self.merge(base, value),
            },
            PlaceKind::Element(..) => self.merge(place, value),
            PlaceKind::State(_) | PlaceKind::Vgpr { .. } | PlaceKind::Sgpr { .. } => {}
        }
    }

    /// Assigns a part of a variable.
    fn merge(&mut self, place: &Place, value: Value) {
        match &place.kind {
            PlaceKind::Local(id) | PlaceKind::Element(id, _) => {
                let all = self.values.entry(Variable::Local(*id)).or_default();
                *all = all.or(value);
            }
            PlaceKind::Slice { base, .. } => self.merge(base, value),
            _ => {}
        }
    }

    fn variable(&self, variable: &Variable) -> Value {
        self.values.get(variable).copied().unwrap_or_default()
    }

    fn value(&mut self, expr: &Expr) -> Value {
        match &expr.kind {
            ExprKind::Const(_)
            | ExprKind::OperandIndex(_)
            | ExprKind::OperandLane { .. }
            | ExprKind::Field(_)
            | ExprKind::State(_)
            | ExprKind::Vgpr { .. }
            | ExprKind::Sgpr { .. } => Value::default(),
            ExprKind::Local(id) | ExprKind::Element(id, _) => self.variable(&Variable::Local(*id)),
            ExprKind::Operand(role) => {
                let parts = self
                    .values
                    .iter()
                    .filter(|(known, _)| matches!(known, Variable::Operand(other, _) if other == role));
                parts.fold(Value::default(), |all, (_, value)| all.or(*value))
            }
            ExprKind::Slice { base, lo } => match (&base.kind, &lo.kind) {
                (ExprKind::Operand(role), ExprKind::Const(lo)) => {
                    let whole = self.variable(&Variable::Operand(*role, None));
                    whole.or(self.variable(&Variable::Operand(*role, Some(*lo))))
                }
                _ => self.value(base),
            },
            ExprKind::Mem { .. } => Value { loaded: true, ..Value::default() },
            ExprKind::Unary(UnOp::Neg | UnOp::Not, a) | ExprKind::Convert(a) | ExprKind::Bits(a) => {
                self.value(a)
            }
            ExprKind::Unary(UnOp::LogicalNot, _) => Value::default(),
            ExprKind::Select(_, a, b) => self.value(a).or(self.value(b)),
            ExprKind::Concat(parts) => {
                parts.iter().fold(Value::default(), |all, part| all.or(self.value(part)))
            }
            ExprKind::Binary(op, a, b) => {
                let both = self.value(a).or(self.value(b));
                match op {
                    BinOp::Add | BinOp::Sub if expr.ty.is_float() && !is_const(a) && !is_const(b) => {
                        self.sum(both)
                    }
                    BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge | BinOp::Lg => {
                        Value::default()
                    }
                    _ => both,
                }
            }
            ExprKind::Call(builtin, args) => {
                let all = args.iter().fold(Value::default(), |all, arg| all.or(self.value(arg)));
                match builtin {
                    Builtin::Pure(Pure::Fma | Pure::FmaRtz | Pure::FmaNearest | Pure::FmaLdexp)
                        if args.get(2).is_some_and(|addend| !is_const(addend)) =>
                    {
                        self.sum(all)
                    }
                    _ if expr.ty.is_float() || matches!(expr.ty, Ty::B(_)) => all,
                    _ => Value::default(),
                }
            }
        }
    }

    /// Returns the sum of values with these properties.
    fn sum(&mut self, operands: Value) -> Value {
        self.found.of_several |= operands.sum;
        Value { sum: true, sum_of_loaded: operands.sum_of_loaded | operands.loaded, loaded: false }
    }
}
