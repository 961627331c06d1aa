//! The instructions of a program whose results are not exact, and which of the results of an execution are not.

use crate::origin::{Cause, Origin};
use isa_exactness::{Aspect, Bound, BuiltinKind, Exactness, kind};
use isa_spec::pcode::ir::{Builtin, Expr, ExprKind, Role, Semantics, Ty};
use isa_spec::pcode::visit::each_expr;
use wavesim_engine::reference;
use wavesim_inspect::check::arith_rules::{Part, Rules, is_nan, is_non_finite};
use wavesim_machine::exec::program::Program;
use wavesim_machine::state::Wave;

/// A conversion of an operand to an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversion {
    /// The operand, of a float type.
    pub part: Part,
    /// The type of the result.
    pub to: Ty,
}

/// An instruction, or half of one, with results that may be inexact.
#[derive(Debug, Clone, Default)]
pub struct Half {
    /// The class and the details.
    pub exactness: Exactness,
    /// The documented error and the type of an approximated result, which is the whole of D0.
    pub approximate: Option<(Bound, Ty)>,
    /// All results are inexact: the bounds of its functions, if there are any, are not those of the result.
    pub whole: Option<Cause>,
    /// Operands that are converted to integers.
    pub conversions: Vec<Conversion>,
    /// The floats of D0, of which NaNs are inexact.
    pub floats: Vec<Part>,
}

/// An instruction with results that may be inexact. Of a dual instruction, there are two halves.
#[derive(Debug, Clone, Default)]
pub struct Site {
    /// The halves.
    pub halves: [Option<Half>; 2],
}

impl Site {
    /// Returns whether some result can be inexact.
    pub fn is_inexact(&self) -> bool {
        self.halves.iter().any(Option::is_some)
    }
}

/// Returns the sites of a program, one for each instruction.
pub fn of(program: &Program) -> Vec<Site> {
    (0..program.insts.len()).map(|index| site(program, index)).collect()
}

fn site(program: &Program, index: usize) -> Site {
    let Some((inst, first, second)) = program.semantics(program.pcs[index]) else { return Site::default() };
    let table = program.arch.table();
    let of = |sem: &Semantics, entry| half(sem, &Rules::of(sem, table, entry));
    Site { halves: [of(first, inst.entry), second.and_then(|sem| of(sem, inst.entry_y))] }
}

fn half(sem: &Semantics, rules: &Rules) -> Option<Half> {
    let exactness = Exactness::of(sem);
    if exactness == Exactness::default() {
        return None;
    }
    let mut half = Half::default();
    match exactness.approximate[..] {
        [one] if !sem.uses.memory_read => half.approximate = Some((one.bound, one.ty)),
        [] => {}
        _ => half.whole = Some(Cause::Approximation(Bound::Undocumented)),
    }
    if exactness.has(Aspect::Sum) {
        half.whole.get_or_insert(Cause::Left(Aspect::Sum));
    }
    if exactness.has(Aspect::Conversion) && half.whole.is_none() {
        half.conversions = conversions(sem);
    }
    if exactness.has(Aspect::Nan) {
        half.floats.clone_from(&rules.results);
    }
    half.exactness = exactness;
    Some(half)
}

/// Returns the operands that a body converts to integers.
fn conversions(sem: &Semantics) -> Vec<Conversion> {
    let mut found: Vec<Conversion> = Vec::new();
    each_expr(&sem.body, |expr| {
        let source = match &expr.kind {
            ExprKind::Call(Builtin::Pure(function), args) if kind(*function) == BuiltinKind::ToInteger => {
                args.first()
            }
            ExprKind::Convert(from) if from.ty.is_float() && !expr.ty.is_float() => Some(&**from),
            _ => None,
        };
        if let Some(part) = source.and_then(operand) {
            let one = Conversion { part, to: expr.ty };
            if !found.contains(&one) {
                found.push(one);
            }
        }
    });
    found
}

/// Returns the operand that a float is computed from by rounding to an integer.
fn operand(expr: &Expr) -> Option<Part> {
    match &expr.kind {
        ExprKind::Operand(role) => Some(Part { role: *role, lo: 0, ty: expr.ty }),
        ExprKind::Bits(base) => {
            let base = operand(base)?;
            Some(Part { ty: expr.ty, ..base })
        }
        ExprKind::Slice { base, lo } => {
            let ExprKind::Const(lo) = lo.kind else { return None };
            let base = operand(base)?;
            Some(Part { lo: base.lo + lo as u32, ty: expr.ty, ..base })
        }
        ExprKind::Call(Builtin::Pure(_), args) if args.len() == 1 => operand(&args[0]),
        // Half is added before the rounding.
        ExprKind::Binary(_, a, b) if matches!(b.kind, ExprKind::Const(_)) => operand(a),
        _ => None,
    }
}

/// Returns the number that the bits of a float type stand for.
pub fn number(ty: Ty, bits: u128) -> Option<f64> {
    let dtype = match ty {
        Ty::F16 => wavesim_array::DType::F16,
        Ty::BF16 => wavesim_array::DType::BF16,
        Ty::F32 => wavesim_array::DType::F32,
        Ty::F64 => wavesim_array::DType::F64,
        _ => return None,
    };
    Some(dtype.decode(&bits.to_le_bytes()).as_f64())
}

/// Returns whether a type of integers has no value for a float.
fn is_out_of_range(to: Ty, value: f64) -> bool {
    let width = to.width() as i32;
    let (low, high) = match to.is_signed() {
        true => (-(f64::from(width - 1).exp2()), f64::from(width - 1).exp2()),
        false => (0.0, f64::from(width).exp2()),
    };
    // Rounding may reach the bounds.
    !(value > low - 1.0 && value < high)
}

impl Half {
    /// Returns the lanes in which a conversion is out of range, before the instruction runs. `copy` has the registers
    /// that it touches.
    pub fn unrepresentable(&self, program: &Program, pc: u64, second: bool, copy: &mut Wave) -> u64 {
        let Some((inst, first, other)) = program.semantics(pc) else { return 0 };
        let Some(sem) = (if second { other } else { Some(first) }) else { return 0 };
        let scalar = sem.shape == isa_spec::pcode::ir::Shape::Scalar;
        let mask = if scalar { 1 } else { copy.exec() };
        let roles: Vec<Role> = self.conversions.iter().map(|one| one.part.role).collect();
        let values = reference::operands(program.arch, inst, sem, second, copy, &roles, mask);
        let lanes = (0..64).filter(|lane| mask >> lane & 1 == 1);
        let mut found = 0;
        for (at, lane) in lanes.enumerate() {
            let out = self.conversions.iter().zip(&values).any(|(one, values)| {
                let value = values.get(at).and_then(|value| number(one.part.ty, one.part.bits(*value)));
                value.is_some_and(|value| is_out_of_range(one.to, value))
            });
            found |= u64::from(out) << lane;
        }
        found
    }

    /// Returns the inexact bits of the value of D0 in one lane, with the causes. `converted` says that a conversion was
    /// out of range.
    pub fn inexact_bits(&self, value: u128, converted: bool) -> Vec<(u128, Cause)> {
        let mut found = Vec::new();
        if let Some(cause) = self.whole {
            found.push((u128::MAX, cause));
        }
        if let Some((bound, ty)) = self.approximate {
            let bits = value & mask(ty.width());
            let zero = bits & mask(ty.width() - 1) == 0;
            // Special values are exact.
            if !zero && !is_non_finite(ty, bits) {
                found.push((mask(ty.width()), Cause::Approximation(bound)));
            }
        }
        if converted {
            found.push((u128::MAX, Cause::Left(Aspect::Conversion)));
        }
        for part in &self.floats {
            if is_nan(part.ty, part.bits(value)) {
                found.push((payload(part.ty) << part.lo, Cause::Left(Aspect::Nan)));
            }
        }
        found
    }
}

/// Returns the sign and the payload of a NaN, without the quiet bit.
fn payload(ty: Ty) -> u128 {
    match ty {
        Ty::F16 => 0x81ff,
        Ty::BF16 => 0x803f,
        Ty::F32 => 0x803f_ffff,
        Ty::F64 => 0x8007_ffff_ffff_ffff,
        _ => 0,
    }
}

fn mask(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

/// Returns the origin of a cause at an instruction.
pub fn origin(index: usize, cause: Cause) -> Origin {
    Origin { index: index as u32, cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_out_of_range() {
        let i32_ = Ty::I(32);
        for (value, out) in [
            (2147483647.0, false),
            (2147483648.0, true),
            (-2147483648.0, false),
            (-2147483649.0, true),
            (f64::NAN, true),
            (f64::NEG_INFINITY, true),
        ] {
            assert_eq!(is_out_of_range(i32_, value), out, "{value}");
        }
        assert!(is_out_of_range(Ty::U(32), -1.0) && !is_out_of_range(Ty::U(32), -0.5));
        assert!(is_out_of_range(Ty::U(8), 256.0) && !is_out_of_range(Ty::U(8), 255.5));
    }

    #[test]
    fn special_values_are_exact() {
        let rcp = Half { approximate: Some((Bound::Ulp(1), Ty::F32)), ..Half::default() };
        assert!(rcp.inexact_bits(0, false).is_empty());
        assert!(rcp.inexact_bits(0x8000_0000, false).is_empty());
        assert!(rcp.inexact_bits(0x7f80_0000, false).is_empty());
        assert_eq!(rcp.inexact_bits(0x3f80_0000, false).len(), 1);
        let part = Part { role: Role::D0, lo: 16, ty: Ty::F16 };
        let add = Half { floats: vec![part], ..Half::default() };
        assert_eq!(add.inexact_bits(0x7e01_3c00, false), [(0x81ff_0000, Cause::Left(Aspect::Nan))]);
        assert!(add.inexact_bits(0x3c00_7e01, false).is_empty());
    }
}
