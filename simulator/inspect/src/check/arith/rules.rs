//! What the semantics of an instruction and the formats of its operands say about its arithmetic. There is no list of
//! instructions.

use isa_spec::pcode::ir::{BinOp, Expr, ExprKind, Role, Semantics, Ty};
use isa_spec::pcode::visit::each_expr;
use isa_spec::tables::{ArchTable, EntryId};

/// Part of an operand, interpreted as a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The operand.
    pub role: Role,
    /// The lowest bit.
    pub lo: u32,
    /// The type of the bits.
    pub ty: Ty,
}

impl Part {
    /// Returns the bits of this part of an operand's value.
    pub fn bits(self, value: u128) -> u128 {
        let width = self.ty.width();
        let value = value.checked_shr(self.lo).unwrap_or(0);
        if width >= 128 { value } else { value & ((1 << width) - 1) }
    }

    /// Returns the value of this part as a signed integer.
    pub fn signed(self, value: u128) -> i128 {
        let unused = 128 - self.ty.width().clamp(1, 128);
        (self.bits(value) << unused) as i128 >> unused
    }
}

/// A shift of an operand by the low bits of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shift {
    /// The operand with the count.
    pub count: Role,
    /// The width of the operand that is shifted, in bits.
    pub width: u32,
}

/// Signed arithmetic on two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signed {
    /// Addition, subtraction or multiplication.
    pub op: BinOp,
    /// The first operand.
    pub left: Part,
    /// The second operand.
    pub right: Part,
    /// The width of the result in bits.
    pub width: u32,
}

impl Signed {
    /// Returns the exact result if it does not fit.
    pub fn overflow(self, left: i128, right: i128) -> Option<i128> {
        let exact = match self.op {
            BinOp::Add => left.checked_add(right),
            BinOp::Sub => left.checked_sub(right),
            _ => left.checked_mul(right),
        }?;
        let limit = 1i128 << (self.width - 1);
        (!(-limit..limit).contains(&exact)).then_some(exact)
    }
}

/// The arithmetic of one body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Shifts by the low bits of an operand.
    pub shifts: Vec<Shift>,
    /// Signed arithmetic on operands.
    pub signed: Vec<Signed>,
    /// Sources that are floats, or may be.
    pub sources: Vec<Part>,
    /// Floats in the result, D0.
    pub results: Vec<Part>,
}

impl Rules {
    /// Returns the rules of an entry and its body; they are empty if it has none of the arithmetic.
    pub fn of(sem: &Semantics, table: &ArchTable, entry: EntryId) -> Rules {
        let mut rules = Rules::default();
        each_expr(&sem.body, |expr| rules.add(expr));
        for operand in table.signatures[table.entries[entry as usize].sig as usize] {
            let (known, maybe) = floats(table.formats[operand.format as usize].name);
            let parts = |list: &[(Ty, u32)]| -> Vec<Part> {
                list.iter().map(|&(ty, lo)| Part { role: operand.role, lo, ty }).collect()
            };
            if operand.output && operand.role == Role::D0 {
                rules.results.extend(parts(known));
            }
            if operand.input {
                rules.sources.extend(parts(known).into_iter().chain(parts(maybe)));
            }
        }
        if rules.results.is_empty() {
            rules.sources.clear();
        }
        rules
    }

    /// Adds sums and products of unsigned integers as if they were signed: the source says so.
    pub fn add_declared(&mut self, sem: &Semantics) {
        each_expr(&sem.body, |expr| {
            let ExprKind::Binary(op @ (BinOp::Add | BinOp::Sub | BinOp::Mul), left, right) = &expr.kind
            else {
                return;
            };
            let (Some(left), Some(right)) = (part(left), part(right)) else { return };
            let whole = |part: Part| part.lo == 0 && part.ty == Ty::U(32);
            if whole(left) && whole(right) {
                self.signed.push(Signed { op: *op, left, right, width: 32 });
            }
        });
    }

    fn add(&mut self, expr: &Expr) {
        let ExprKind::Binary(op, left, right) = &expr.kind else { return };
        let (Some(left), Some(right)) = (part(left), part(right)) else { return };
        match op {
            BinOp::Shl | BinOp::Shr => {
                let bits = right.ty.width();
                // The instruction ignores the other bits of the count.
                if right.lo == 0 && bits < 32 && 1 << bits == left.ty.width() {
                    self.shifts.push(Shift { count: right.role, width: left.ty.width() });
                }
            }
            BinOp::Add | BinOp::Sub | BinOp::Mul => {
                let whole = |part: Part| part.lo == 0 && matches!(part.ty, Ty::I(16 | 32 | 64));
                if whole(left) && whole(right) {
                    // Sums of extended operands are cut off or clamped afterwards, products are not.
                    let width = match op {
                        BinOp::Mul => expr.ty.width(),
                        _ => left.ty.width().max(right.ty.width()),
                    };
                    self.signed.push(Signed { op: *op, left, right, width });
                }
            }
            _ => {}
        }
    }
}

/// Returns the part of an operand that an expression is, up to extensions of its sign and reinterpretations.
fn part(expr: &Expr) -> Option<Part> {
    match &expr.kind {
        ExprKind::Operand(role) => Some(Part { role: *role, lo: 0, ty: expr.ty }),
        ExprKind::Bits(base) => {
            let base = part(base)?;
            // A wider type has zeros above the part.
            Some(if base.ty.width() >= expr.ty.width() { Part { ty: expr.ty, ..base } } else { base })
        }
        ExprKind::Convert(base) => {
            let base = part(base)?;
            (!base.ty.is_float() && !expr.ty.is_float() && expr.ty.width() >= base.ty.width()).then_some(base)
        }
        ExprKind::Slice { base, lo } => {
            let ExprKind::Const(lo) = lo.kind else { return None };
            let base = part(base)?;
            Some(Part { lo: base.lo + lo as u32, ty: expr.ty, ..base })
        }
        _ => None,
    }
}

/// Floats in a value: their types, and their first bits.
type Floats = &'static [(Ty, u32)];

/// Returns the floats of a data format, with their lowest bits, and those that untyped bits may hold.
fn floats(format: &str) -> (Floats, Floats) {
    match format.strip_prefix("FMT_NUM_").unwrap_or(format) {
        "F16" => (&[(Ty::F16, 0)], &[]),
        "BF16" => (&[(Ty::BF16, 0)], &[]),
        "F32" => (&[(Ty::F32, 0)], &[]),
        "F64" => (&[(Ty::F64, 0)], &[]),
        "PK2_F16" => (&[(Ty::F16, 0), (Ty::F16, 16)], &[]),
        "PK2_BF16" => (&[(Ty::BF16, 0), (Ty::BF16, 16)], &[]),
        "PK2_F32" => (&[(Ty::F32, 0), (Ty::F32, 32)], &[]),
        "B16" => (&[], &[(Ty::F16, 0)]),
        "B32" => (&[], &[(Ty::F32, 0), (Ty::F16, 0), (Ty::F16, 16)]),
        "B64" => (&[], &[(Ty::F64, 0)]),
        _ => (&[], &[]),
    }
}

/// Returns whether bits of a float type are an infinity or a NaN. The 8-bit formats, one of which has no infinity, are
/// left out.
pub fn is_non_finite(ty: Ty, bits: u128) -> bool {
    let exponent: u128 = match ty {
        Ty::F16 => 0x7c00,
        Ty::BF16 => 0x7f80,
        Ty::F32 => 0x7f80_0000,
        Ty::F64 => 0x7ff0_0000_0000_0000,
        _ => return false,
    };
    bits & exponent == exponent
}

/// Returns whether non-finite bits of a float type are a NaN.
pub fn is_nan(ty: Ty, bits: u128) -> bool {
    let mantissa: u128 = match ty {
        Ty::F16 => 0x3ff,
        Ty::BF16 => 0x7f,
        Ty::F32 => 0x7f_ffff,
        Ty::F64 => 0xf_ffff_ffff_ffff,
        _ => return false,
    };
    is_non_finite(ty, bits) && bits & mantissa != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavesim_isa::arch::Arch;
    use wavesim_machine::isa;

    fn rules(name: &str) -> Rules {
        let table = Arch::Rdna3.table();
        let at = table.instructions.iter().position(|inst| inst.name == name).unwrap();
        let entry = table.entries.iter().position(|entry| entry.inst as usize == at).unwrap();
        Rules::of(
            &isa::operation(isa::number(Arch::Rdna3, at).unwrap()).unwrap().sem,
            table,
            entry as EntryId,
        )
    }

    #[test]
    fn rules_follow_from_the_semantics() {
        assert_eq!(rules("V_LSHLREV_B32").shifts, [Shift { count: Role::S0, width: 32 }]);
        assert_eq!(rules("S_ASHR_I64").shifts, [Shift { count: Role::S1, width: 64 }]);
        assert_eq!(rules("V_LSHLREV_B16").shifts, [Shift { count: Role::S0, width: 16 }]);
        // A rotation by any number.
        assert_eq!(rules("V_ALIGNBIT_B32").shifts, []);
        assert_eq!(rules("V_ADD_NC_U32"), Rules::default());
        for (name, op) in [("S_ADD_I32", BinOp::Add), ("V_SUB_NC_I32", BinOp::Sub)] {
            let [signed] = rules(name).signed[..] else { panic!("{name}") };
            assert_eq!((signed.op, signed.width), (op, 32), "{name}");
            assert_eq!(signed.overflow(i128::from(i32::MAX), 0), None, "{name}");
        }
        let fma = rules("V_FMA_F32");
        assert_eq!(fma.sources.len(), 3);
        assert_eq!(fma.results, [Part { role: Role::D0, lo: 0, ty: Ty::F32 }]);
        let packed = rules("V_PK_ADD_F16");
        assert_eq!((packed.results.len(), packed.sources.len()), (2, 4));
        // Bits of which OP_SEL says what they are.
        assert_eq!(rules("V_FMA_MIX_F32").sources.len(), 9);
        assert_eq!(rules("V_MOV_B32").results, []);
        assert_eq!(rules("V_CNDMASK_B32").results, []);
    }

    #[test]
    fn values_outside_of_the_range_overflow() {
        let part = |role| Part { role, lo: 0, ty: Ty::I(32) };
        let add = Signed { op: BinOp::Add, left: part(Role::S0), right: part(Role::S1), width: 32 };
        let max = u128::from(i32::MAX as u32);
        assert_eq!(add.overflow(part(Role::S0).signed(max), 1), Some(1 << 31));
        assert_eq!(add.overflow(part(Role::S0).signed(0xffff_ffff), 1), None);
        let sub = Signed { op: BinOp::Sub, ..add };
        assert_eq!(sub.overflow(i128::from(i32::MIN), 1), Some(-(1 << 31) - 1));
    }

    #[test]
    fn infinities_and_nans_are_not_finite() {
        for (ty, inf, nan, max) in [
            (Ty::F16, 0x7c00, 0x7e00, 0x7bff),
            (Ty::F32, 0x7f80_0000, 0xffc0_0000, 0x7f7f_ffff),
            (Ty::F64, 0x7ff0_0000_0000_0000, 0x7ff8_0000_0000_0000, 0x7fef_ffff_ffff_ffff),
        ] {
            assert!(is_non_finite(ty, inf) && is_non_finite(ty, nan) && !is_non_finite(ty, max));
            assert!(is_nan(ty, nan) && !is_nan(ty, inf));
        }
    }
}
