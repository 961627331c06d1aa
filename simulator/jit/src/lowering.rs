//! What is compiled: the only list of values and statements that become code. Selection asks it whether an
//! operation is compiled, and emission asks it how. Neither has a list of its own.

mod check;
mod statement;

pub use check::{Region, check, check_value, check_values};
pub use statement::{StatementLowering, WaveState, recognise_statement};

use crate::wide_sums;
use isa_lower::ir::*;
use isa_spec::pcode::ir::{LocalId, Pure, Space, State, Ty};
use wavesim_machine::exec::op::{Ext, Op};

/// Why something is not compiled: a noun phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[error("{0}")]
pub struct Why(pub &'static str);

/// Where a value or statement is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Any,
    /// In loops over packets of lanes.
    Lane,
    /// In code that runs once per wave.
    Wave,
    /// In the code around a load or store of each lane.
    Access,
}

/// The way in which a value is compiled, with the values that it is computed from.
#[derive(Debug, Clone, Copy)]
pub enum Lowering<'v> {
    /// MODE.IEEE, which code is specialised for.
    Ieee,
    /// MODE, of which only IEEE may be used.
    Mode,
    Const(u128),
    Var(Var),
    Element(LocalId, &'v Value),
    /// What the lane has loaded.
    Loaded,
    Load {
        addr: &'v Value,
        bytes: u32,
    },
    Field(Field),
    SourceBit(SourceBit, usize),
    /// The number of a source's register, or of the destination's.
    SourceNumber(usize),
    DestinationNumber,
    State(State),
    /// The lane's carry-in.
    Carry,
    Operand {
        slot: Slot,
        dwords: u32,
        how: Scalar,
    },
    OperandLane {
        source: usize,
        lane: &'v Value,
        index: u32,
    },
    Resize(&'v Value),
    SignExtend(&'v Value, u32),
    Op1(Op1, &'v Value),
    Op2(Op2, &'v Value, &'v Value),
    /// A sum of 128 bits: see [`wide_sums::signed_sum`].
    SignedSum([&'v Value; 3]),
    Shift(Shift, &'v Value, Count<'v>),
    /// An arithmetic shift of so many bits.
    ShiftSigned {
        value: &'v Value,
        count: &'v Value,
        width: u32,
    },
    Compare(Compare, Int, &'v Value, &'v Value),
    LogicalAnd(&'v Value, &'v Value),
    LogicalOr(&'v Value, &'v Value),
    Select([&'v Value; 3]),
    Extract {
        value: &'v Value,
        lo: &'v Value,
    },
    Insert {
        old: &'v Value,
        value: &'v Value,
        lo: &'v Value,
        width: u32,
    },
    Concat(&'v [(Value, u32)]),
    Saturate {
        value: &'v Value,
        from: Int,
        to: Int,
    },
    /// Arithmetic of f32 or f64 with the host's instructions.
    Arithmetic(Arithmetic, FloatFormat, &'v [Value]),
    /// Arithmetic of f16, by way of f32.
    HalfArithmetic(Arithmetic, &'v [Value]),
    FloatBits(FloatBits, Ty, &'v Value),
    Conversion(Conversion, &'v Value),
    /// A function of handlers, lane by lane.
    Function(LaneFunction, &'v [Value]),
    TrigPreop(&'v Value, &'v Value),
    SelectBytes([&'v Value; 3]),
    /// The result of a call that has been emitted.
    CallResult(usize),
    VectorRead(usize, &'v VectorAt),
}

/// Kinds of shifts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shift {
    Left,
    Right,
    Arithmetic,
}

/// A shift count.
#[derive(Debug, Clone, Copy)]
pub enum Count<'v> {
    Const(u32),
    Value(&'v Value),
}

/// The host's float formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatFormat {
    F32,
    F64,
}

/// Float operations that the host's instructions compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    Compare(FloatCompare),
    Round(Rounding),
    Add,
    Sub,
    Mul,
    Div,
    Fma,
    /// Rounded to nearest, with denormals, in every mode.
    FmaNearest,
    /// A minimum (`less`) or maximum; of a number and a NaN, the NaN or the number is the result.
    MinMax {
        less: bool,
        nan_wins: bool,
    },
    Sqrt,
    Rcp,
    Rsq,
    FmaLdexp,
    Fract,
    FrexpMantissa,
    FrexpExponent,
    Ldexp,
}

/// Comparisons of floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatCompare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    LessOrGreater,
}

/// Roundings to integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    Down,
    Up,
    ToZero,
    Nearest,
}

/// Functions of handlers that compiled code calls for all lanes of a packet, where the host has no
/// instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneFunction {
    F32ToBf16,
    F32ToFp8,
    F32ToBf8,
    Fp8ToF32,
    Bf8ToF32,
    F16ToSnorm,
    F16ToUnorm,
    F32ToSnorm,
    F32ToUnorm,
    F32ToU8,
    ToFp8Sr,
    ToBf8Sr,
    FmaRtz,
    LdexpF16,
    FrexpMantissaF16,
    FrexpExponentF16,
    F16(Transcendental),
    F32(Transcendental),
}

/// Functions of one argument that are computed for a packet at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transcendental {
    Exp2,
    Log2,
    Sin,
    Cos,
}

/// Encoding fields, which are constants at compile time.
#[derive(Debug, Clone, Copy)]
pub struct Field(fn(&Op, &Ext) -> u32);

impl Field {
    /// Returns the field of an operation.
    pub fn of(self, op: &Op, ext: &Ext) -> u32 {
        (self.0)(op, ext)
    }

    /// Returns a field by its name in pseudocode.
    pub fn named(name: &str) -> Option<Field> {
        Some(Field(match name {
            "OFFSET" | "SIMM16" | "SIMM4" => |op, _| op.imm,
            "OFFSET0" => |op, _| op.imm & 0xff,
            "OFFSET1" => |op, _| op.imm >> 8 & 0xff,
            "SIMM32" => |_, ext| ext.simm32,
            "SIMM32_HI" => |_, ext| ext.simm32_hi,
            "NEG" => |_, ext| ext.neg,
            "NEG_HI" => |_, ext| ext.neg_hi,
            "ABS" => |_, ext| ext.abs,
            "OPSEL" => |_, ext| ext.op_sel,
            "OPSEL_HI" => |_, ext| ext.op_sel_hi,
            "CLAMP" => |op, _| (op.flags & Op::CLAMP != 0) as u32,
            "SVE" => |_, ext| ext.sve,
            "SCALE_OFFSET" => |_, ext| ext.scale_offset,
            "OMOD" => |_, ext| ext.omod as u32,
            _ => return None,
        }))
    }
}

/// Fields with a bit for each source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceBit {
    Neg,
    NegHi,
    OpSel,
    OpSelHi,
}

impl Arithmetic {
    fn of(op: FloatOp) -> Option<Arithmetic> {
        use Arithmetic::*;
        Some(match op {
            FloatOp::Eq => Compare(FloatCompare::Equal),
            FloatOp::Ne => Compare(FloatCompare::NotEqual),
            FloatOp::Lt => Compare(FloatCompare::Less),
            FloatOp::Le => Compare(FloatCompare::LessOrEqual),
            FloatOp::Gt => Compare(FloatCompare::Greater),
            FloatOp::Ge => Compare(FloatCompare::GreaterOrEqual),
            FloatOp::Lg => Compare(FloatCompare::LessOrGreater),
            FloatOp::Floor => Round(Rounding::Down),
            FloatOp::Ceil => Round(Rounding::Up),
            FloatOp::Trunc => Round(Rounding::ToZero),
            FloatOp::Rndne => Round(Rounding::Nearest),
            FloatOp::Add => Add,
            FloatOp::Sub => Sub,
            FloatOp::Mul => Mul,
            FloatOp::Div => Div,
            FloatOp::Fma => Fma,
            FloatOp::FmaNearest => FmaNearest,
            FloatOp::MinimumNumber => MinMax { less: true, nan_wins: false },
            FloatOp::MaximumNumber => MinMax { less: false, nan_wins: false },
            FloatOp::Minimum => MinMax { less: true, nan_wins: true },
            FloatOp::Maximum => MinMax { less: false, nan_wins: true },
            FloatOp::Sqrt => Sqrt,
            FloatOp::Rcp => Rcp,
            FloatOp::Rsq => Rsq,
            FloatOp::FmaLdexp => FmaLdexp,
            FloatOp::Fract => Fract,
            FloatOp::FrexpMant => FrexpMantissa,
            FloatOp::FrexpExp => FrexpExponent,
            FloatOp::Ldexp => Ldexp,
            FloatOp::FmaRtz | FloatOp::ToFp8Sr | FloatOp::ToBf8Sr | FloatOp::TrigPreop => return None,
        })
    }
}

impl LaneFunction {
    fn of_float(op: FloatOp, ty: Ty) -> Option<LaneFunction> {
        Some(match (op, ty) {
            (FloatOp::ToFp8Sr, Ty::F32) => LaneFunction::ToFp8Sr,
            (FloatOp::ToBf8Sr, Ty::F32) => LaneFunction::ToBf8Sr,
            (FloatOp::FmaRtz, Ty::F32) => LaneFunction::FmaRtz,
            (FloatOp::Ldexp, Ty::F16) => LaneFunction::LdexpF16,
            (FloatOp::FrexpMant, Ty::F16) => LaneFunction::FrexpMantissaF16,
            (FloatOp::FrexpExp, Ty::F16) => LaneFunction::FrexpExponentF16,
            _ => return None,
        })
    }
}

/// A builtin that is computed for all lanes of a packet at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketBuiltin {
    SelectBytes,
    F16(Transcendental),
    F32(Transcendental),
}

impl PacketBuiltin {
    /// Recognises a builtin whose result has this type.
    pub fn of(builtin: Pure, ty: Ty) -> Result<PacketBuiltin, Why> {
        let function = match builtin {
            Pure::SelectBytes => return Ok(PacketBuiltin::SelectBytes),
            Pure::Exp2 => Transcendental::Exp2,
            Pure::Log2 => Transcendental::Log2,
            Pure::Sin => Transcendental::Sin,
            Pure::Cos => Transcendental::Cos,
            _ => return Err(Why("a builtin of lanes")),
        };
        match ty {
            Ty::F16 => Ok(PacketBuiltin::F16(function)),
            Ty::F32 => Ok(PacketBuiltin::F32(function)),
            _ => Err(Why("a function of an unusual float format")),
        }
    }
}

/// Returns how a value is compiled, and where; its operands are values of their own.
pub fn recognise(value: &Value) -> Result<(Lowering<'_>, Scope), Why> {
    use {Lowering as L, Scope::*, ValueKind as K};
    const WIDE: Why = Why("arithmetic of 128 bits");
    let wide = value.host_width == HostWidth::W128;
    let narrow = |lowering| if wide { Err(WIDE) } else { Ok((lowering, Any)) };
    Ok(match &value.kind {
        _ if crate::mode::is_ieee_bit(value) => (L::Ieee, Any),
        K::Const(bits) => (L::Const(*bits), Any),
        K::Var(var) => (L::Var(*var), Any),
        K::Element(id, index) => (L::Element(*id, index), Wave),
        K::LaneElement(..) => return Err(Why("an array of several loops over lanes")),
        K::Loaded { .. } => (L::Loaded, Access),
        K::Load { space: Space::Scalar, addr, bytes, retry: false } => match bytes {
            1 | 2 | 4 | 8 | 12 | 16 => (L::Load { addr, bytes: *bytes }, Wave),
            _ => return Err(Why("a long scalar load")),
        },
        K::Load { retry: true, .. } => return Err(Why("an atomic operation")),
        K::Load { .. } => return Err(Why("a load of memory by each lane, in pseudocode")),
        K::Field(name) => (L::Field(Field::named(name).ok_or(Why("an encoding field"))?), Any),
        K::SourceBit { field, source } => {
            let field = match *field {
                "NEG" => SourceBit::Neg,
                "NEG_HI" => SourceBit::NegHi,
                "OPSEL" => SourceBit::OpSel,
                "OPSEL_HI" => SourceBit::OpSelHi,
                _ => return Err(Why("a bit of an encoding field")),
            };
            if *source >= 4 {
                return Err(Why("a fifth source"));
            }
            (L::SourceBit(field, *source), Any)
        }
        K::OperandNumber(Slot::Source(at)) => (L::SourceNumber(*at), Any),
        K::OperandNumber(_) => (L::DestinationNumber, Any),
        K::State(state) => match state {
            State::LaneId => (L::State(*state), Lane),
            State::InstSize => (L::Field(Field(|op, _| op.imm)), Any),
            State::Wave32 | State::Wave64 | State::WaveSize => (L::State(*state), Any),
            State::Mode => (L::Mode, Lane),
            State::Status => return Err(Why("the status register")),
            State::WaveId => return Err(Why("the number of the wave")),
            State::LdsSize => return Err(Why("the size of LDS")),
            _ => (L::State(*state), Wave),
        },
        K::LaneBit(Mask::Vcc) => (L::Carry, Lane),
        K::LaneBit(_) => return Err(Why("a bit of a mask that the instruction writes")),
        K::Scalar { slot, dwords: dwords @ 0..=2, how } => {
            (L::Operand { slot: *slot, dwords: *dwords, how: *how }, Wave)
        }
        K::Scalar { .. } => return Err(Why("an operand of more than two registers")),
        K::OperandLane { slot: Slot::Source(source), lane, index } => match index.kind {
            K::Const(index) => (L::OperandLane { source: *source, lane, index: index as u32 }, Wave),
            _ => return Err(Why("a computed register number")),
        },
        K::OperandLane { .. } => return Err(Why("the result's old value in other lanes")),
        K::Resize(inner) => (L::Resize(inner), Any),
        K::SignExtend { value: inner, width } => {
            (L::SignExtend(inner, *width), if wide { Lane } else { Any })
        }
        K::Op1(op, inner) => narrow(L::Op1(*op, inner))?,
        K::Op2(op, a, b) => {
            let product = *op == Op2::Mul && is_sign_extended_word(a) && is_sign_extended_word(b);
            let lowering = L::Op2(*op, a, b);
            match (wide, wide_sums::signed_sum(value)) {
                (false, _) => (lowering, Any),
                (true, Some(terms)) => (L::SignedSum(terms), Lane),
                _ if matches!(op, Op2::And | Op2::Or | Op2::Xor) => (lowering, Any),
                _ if product || is_wide_product_or_sum(*op, a, b) => (lowering, Lane),
                _ => return Err(WIDE),
            }
        }
        K::ShlConst(inner, n) => narrow(L::Shift(Shift::Left, inner, Count::Const(*n)))?,
        K::ShrConst(inner, n) => (L::Shift(Shift::Right, inner, Count::Const(*n)), Any),
        K::Shl(inner, n) => narrow(L::Shift(Shift::Left, inner, Count::Value(n)))?,
        K::Shr(inner, n) => narrow(L::Shift(Shift::Right, inner, Count::Value(n)))?,
        K::Sar { value: inner, count, width } => {
            narrow(L::ShiftSigned { value: inner, count, width: *width })?
        }
        K::Compare { op, int, a, b } => {
            let lowering = L::Compare(*op, *int, a, b);
            match a.host_width {
                HostWidth::W128 if is_carry(*op, a, b) => (lowering, Lane),
                HostWidth::W128 => return Err(WIDE),
                _ => (lowering, Any),
            }
        }
        K::LogicalAnd(a, b) => (L::LogicalAnd(a, b), Any),
        K::LogicalOr(a, b) => (L::LogicalOr(a, b), Any),
        K::Select(cond, a, b) => (L::Select([cond, a, b]), Any),
        K::Extract { value: inner, lo } => narrow(L::Extract { value: inner, lo })?,
        K::Insert { old, value: new, lo, width } => narrow(L::Insert { old, value: new, lo, width: *width })?,
        K::Concat(parts) if wide && parts.iter().any(|(_, lo)| *lo != 0) => return Err(WIDE),
        K::Concat(parts) => (L::Concat(parts), Any),
        K::Saturate { value: inner, from, to } => narrow(L::Saturate { value: inner, from: *from, to: *to })?,
        K::Float { op, ty, args } => float(*op, *ty, args)?,
        K::FloatBits { op, ty, value: inner } => match ty {
            Ty::F32 | Ty::F64 => (L::FloatBits(*op, *ty, inner), Any),
            Ty::F16 => (L::FloatBits(*op, *ty, inner), Lane),
            _ => return Err(Why("a test of an unusual float format")),
        },
        K::Conversion(conversion, inner) => {
            let scope = match conversion {
                Conversion::I32ToF32
                | Conversion::U32ToF32
                | Conversion::F32ToI32
                | Conversion::F32ToU32
                | Conversion::F32ToI16
                | Conversion::F32ToU16
                | Conversion::F32ToF64
                | Conversion::F64ToF32
                | Conversion::I32ToF64
                | Conversion::U32ToF64
                | Conversion::F64ToI32
                | Conversion::F64ToU32 => Any,
                _ => Lane,
            };
            (L::Conversion(*conversion, inner), scope)
        }
        K::Simd { builtin: Pure::SelectBytes, args, .. } => match &args[..] {
            [a, b, c] => (L::SelectBytes([a, b, c]), Lane),
            _ => return Err(Why("a builtin of lanes")),
        },
        K::Simd { .. } => return Err(Why("a builtin of lanes")),
        K::SimdResult { call } => (L::CallResult(*call), Lane),
        K::VectorRead { read, at } => (L::VectorRead(*read, at), Wave),
        K::MaskOperand(_) => return Err(Why("a whole mask in a lane")),
        K::StagedLane { .. } | K::StagedDword { .. } => return Err(Why("registers of other lanes")),
        K::Vgpr { .. } | K::Sgpr { .. } => return Err(Why("a computed register number")),
        K::WordAddress(_) => return Err(Why("a word address")),
        K::Div { .. } => return Err(Why("an integer division")),
        K::Convert { .. } => return Err(Why("a conversion of an unusual float format")),
        K::Pow { .. } => return Err(Why("a power")),
        K::Pure { .. } => return Err(Why("a builtin that the evaluator computes")),
        K::Control { .. } => return Err(Why("a message or a query of the machine")),
    })
}

fn float(op: FloatOp, ty: Ty, args: &[Value]) -> Result<(Lowering<'_>, Scope), Why> {
    if let Some(function) = LaneFunction::of_float(op, ty) {
        return Ok((Lowering::Function(function, args), Scope::Lane));
    }
    if let (FloatOp::TrigPreop, Ty::F64, [a, n]) = (op, ty, args) {
        return Ok((Lowering::TrigPreop(a, n), Scope::Lane));
    }
    let arithmetic = Arithmetic::of(op).ok_or(Why("an unusual float operation"))?;
    let format = match ty {
        Ty::F32 => FloatFormat::F32,
        Ty::F64 => FloatFormat::F64,
        Ty::F16 if matches!(arithmetic, Arithmetic::FmaNearest | Arithmetic::FmaLdexp) => {
            return Err(Why("an unusual float operation"));
        }
        Ty::F16 => return Ok((Lowering::HalfArithmetic(arithmetic, args), Scope::Lane)),
        _ => return Err(Why("arithmetic of an unusual float format")),
    };
    let scope = match arithmetic {
        Arithmetic::FrexpMantissa | Arithmetic::FrexpExponent => Scope::Lane,
        _ => Scope::Any,
    };
    Ok((Lowering::Arithmetic(arithmetic, format, args), scope))
}

/// Recognises products of words, and their sums with 64 bits, which have at most one carry: no other 128-bit
/// operations are compiled.
fn is_wide_product_or_sum(op: Op2, a: &Value, b: &Value) -> bool {
    let extended =
        |v: &Value, from: HostWidth| matches!(&v.kind, ValueKind::Resize(inner) if inner.host_width == from);
    let product = |v: &Value| matches!(&v.kind, ValueKind::Op2(Op2::Mul, a, b) if extended(a, HostWidth::W32) && extended(b, HostWidth::W32));
    match op {
        Op2::Mul => extended(a, HostWidth::W32) && extended(b, HostWidth::W32),
        Op2::Add => product(a) && extended(b, HostWidth::W64),
        _ => false,
    }
}

fn is_sign_extended_word(v: &Value) -> bool {
    matches!(&v.kind, ValueKind::SignExtend { value, width: 32 } if value.host_width == HostWidth::W32)
}

/// Recognises tests of a sum's bits from 64 on.
fn is_carry(op: Compare, a: &Value, b: &Value) -> bool {
    let above = matches!(a.kind, ValueKind::ShrConst(_, 64)) || wide_sums::is_bit_64(a);
    above && matches!(op, Compare::Eq | Compare::Ne) && b.kind == ValueKind::Const(0)
}
