//! How far the result of an operation is specified: [`Exactness`], which is derived from the typed body, so that no
//! list of instructions is needed. Exports, `wavesim isa` and reports of runs (`--fidelity`) share it.
//!
//! `docs/accuracy.md` gives the sources of the bounds; a test compares its table with [`documented`].
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod builtin;
mod sums;

pub use builtin::{BuiltinKind, kind};

use isa_spec::pcode::ir::{Builtin, Expr, ExprKind, Pure, Semantics, Ty};
use isa_spec::pcode::visit::{Visitor, walk_expr};
use serde_json::{Value, json};
use std::fmt;

/// The class of an operation or of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The specification determines every bit.
    Exact,
    /// Hardware returns a value near the exact one; wavesim returns the nearest one.
    Approximate,
    /// The result depends on the order in which waves or lanes add to the same memory.
    OrderDependent,
    /// The specification leaves it to the implementation.
    ImplementationDefined,
}

impl Class {
    /// All classes.
    pub const ALL: [Class; 4] =
        [Class::Exact, Class::Approximate, Class::OrderDependent, Class::ImplementationDefined];

    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Class::Exact => "exact",
            Class::Approximate => "approximate",
            Class::OrderDependent => "order-dependent",
            Class::ImplementationDefined => "implementation-defined",
        }
    }
}

/// The documented error of hardware, in units in the last place (ULP) of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Bound {
    /// At most this many.
    Ulp(u64),
    /// The manuals give none.
    Undocumented,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Ulp(n) if *n >= 1 << 16 && n.is_power_of_two() => {
                write!(f, "2^{} ULP", n.trailing_zeros())
            }
            Bound::Ulp(n) => write!(f, "{n} ULP"),
            Bound::Undocumented => f.write_str("no bound is documented"),
        }
    }
}

/// A function that hardware approximates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Approximation {
    /// The function.
    pub function: Pure,
    /// The format of the result.
    pub ty: Ty,
    /// The documented error.
    pub bound: Bound,
}

/// What the specification leaves to the implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Aspect {
    /// The order and the intermediate rounding of a sum of several floats.
    Sum,
    /// The integer that results from a float outside of its range, or from a NaN.
    Conversion,
    /// Sign and payload of a NaN.
    Nan,
}

impl Aspect {
    /// All aspects.
    pub const ALL: [Aspect; 3] = [Aspect::Sum, Aspect::Conversion, Aspect::Nan];

    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Aspect::Sum => "sum",
            Aspect::Conversion => "conversion",
            Aspect::Nan => "nan",
        }
    }

    /// Returns a description for reports.
    pub fn title(self) -> &'static str {
        match self {
            Aspect::Sum => "order and rounding within a sum",
            Aspect::Conversion => "conversion out of range",
            Aspect::Nan => "sign and payload of a NaN",
        }
    }
}

/// How far the result of an operation is specified.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exactness {
    /// The functions that hardware approximates, each once.
    pub approximate: Vec<Approximation>,
    /// It adds floats to memory atomically.
    pub order_dependent: bool,
    /// What is left to the implementation; [`Aspect::Conversion`] and [`Aspect::Nan`] for some operands only.
    pub implementation_defined: Vec<Aspect>,
}

impl Exactness {
    /// Derives the exactness of a body.
    pub fn of(sem: &Semantics) -> Exactness {
        let mut found = Found { exactness: Exactness::default(), in_memory: sem.uses.memory_read };
        found.stmts(&sem.body);
        let mut out = found.exactness;
        let sums = sums::of(sem);
        out.order_dependent = sums.in_memory;
        if sums.of_several {
            out.add(Aspect::Sum);
        }
        out.implementation_defined.sort_unstable();
        out
    }

    /// Returns the class of results for ordinary operands: finite ones in the range of the result.
    pub fn class(&self) -> Class {
        match () {
            () if self.order_dependent => Class::OrderDependent,
            () if !self.approximate.is_empty() => Class::Approximate,
            () if self.has(Aspect::Sum) => Class::ImplementationDefined,
            () => Class::Exact,
        }
    }

    /// Returns whether an aspect is left to the implementation.
    pub fn has(&self, aspect: Aspect) -> bool {
        self.implementation_defined.contains(&aspect)
    }

    /// Returns the largest documented error, unless there is an approximation without one.
    pub fn bound(&self) -> Option<Bound> {
        self.approximate.iter().map(|one| one.bound).max()
    }

    /// Returns the exactness as JSON: the class; the approximated functions with their documented error in ULP, or null;
    /// and what is implementation-defined.
    pub fn json(&self) -> Value {
        let one = |one: &Approximation| {
            let ulp = match one.bound {
                Bound::Ulp(n) => json!(n),
                Bound::Undocumented => Value::Null,
            };
            json!({ "function": one.function.def().name, "type": one.ty.to_string(), "ulp": ulp })
        };
        json!({
            "class": self.class().name(),
            "approximate": self.approximate.iter().map(one).collect::<Vec<_>>(),
            "implementation_defined":
                self.implementation_defined.iter().map(|aspect| aspect.name()).collect::<Vec<_>>(),
        })
    }

    fn add(&mut self, aspect: Aspect) {
        if !self.has(aspect) {
            self.implementation_defined.push(aspect);
        }
    }
}

/// In one line: the class, the bound, and what else is left to the implementation.
impl fmt::Display for Exactness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = self.class();
        f.write_str(class.name())?;
        match (class, self.bound()) {
            (Class::Approximate, Some(bound)) => write!(f, " ({bound})")?,
            (Class::OrderDependent, _) => f.write_str(" (a float sum in memory)")?,
            (Class::ImplementationDefined, _) => write!(f, " ({})", Aspect::Sum.title())?,
            _ => {}
        }
        let named = |aspect: &Aspect| *aspect == Aspect::Sum && class == Class::ImplementationDefined;
        let others = self.implementation_defined.iter().filter(|aspect| !named(aspect));
        let others: Vec<&str> = others.map(|aspect| aspect.title()).collect();
        if !others.is_empty() {
            write!(f, "; implementation-defined: {}", others.join(", "))?;
        }
        Ok(())
    }
}

/// Returns the error that the manuals give for a function in a format.
pub fn documented(function: Pure, ty: Ty) -> Bound {
    match (function, ty) {
        (Pure::Rcp | Pure::Rsq | Pure::Sqrt | Pure::Exp2 | Pure::Log2, Ty::F16 | Ty::F32) => Bound::Ulp(1),
        (Pure::Rcp | Pure::Rsq | Pure::Sqrt, Ty::F64) => Bound::Ulp(1 << 29),
        _ => Bound::Undocumented,
    }
}

struct Found {
    exactness: Exactness,
    /// The body loads from memory: its functions are those of the texture unit, which the bounds do not cover.
    in_memory: bool,
}

impl Found {
    /// Adds an approximated function whose result is converted to a format.
    fn approximation(&mut self, function: Pure, ty: Ty) {
        let bound = if self.in_memory { Bound::Undocumented } else { documented(function, ty) };
        let one = Approximation { function, ty, bound };
        if !self.exactness.approximate.contains(&one) {
            self.exactness.approximate.push(one);
        }
    }
}

/// Returns the approximated function that an expression is a call of.
pub fn approximated(expr: &Expr) -> Option<Pure> {
    match expr.kind {
        ExprKind::Call(Builtin::Pure(function), _) if kind(function) == BuiltinKind::Approximate => {
            Some(function)
        }
        _ => None,
    }
}

impl<'a> Visitor<'a> for Found {
    fn expr(&mut self, expr: &'a Expr) {
        match &expr.kind {
            // A function that is computed in another format (BF16).
            ExprKind::Call(Builtin::Pure(outer), args)
                if expr.ty.is_float()
                    && kind(*outer) == BuiltinKind::Rounds
                    && args.len() == 1
                    && approximated(&args[0]).is_some() =>
            {
                if let Some(function) = approximated(&args[0]) {
                    self.approximation(function, expr.ty);
                }
                self.exactness.add(Aspect::Nan);
                return walk_expr(self, &args[0]);
            }
            ExprKind::Call(Builtin::Pure(function), _) => match kind(*function) {
                BuiltinKind::Approximate => {
                    self.approximation(*function, expr.ty);
                    self.exactness.add(Aspect::Nan);
                }
                BuiltinKind::Rounds => self.exactness.add(Aspect::Nan),
                BuiltinKind::ToInteger => self.exactness.add(Aspect::Conversion),
                BuiltinKind::Other => {}
            },
            ExprKind::Binary(op, ..) if expr.ty.is_float() && sums::is_arithmetic(*op) => {
                self.exactness.add(Aspect::Nan);
            }
            ExprKind::Convert(from) => match (from.ty.is_float(), expr.ty.is_float()) {
                (true, true) => self.exactness.add(Aspect::Nan),
                (true, false) => self.exactness.add(Aspect::Conversion),
                _ => {}
            },
            _ => {}
        }
        walk_expr(self, expr);
    }
}
