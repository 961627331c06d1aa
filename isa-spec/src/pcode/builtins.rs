//! The one table of builtins: name, parameters, result, kind and doc line. `docs/pseudocode.md` is generated from it; the
//! evaluator and the macro match on [`Bi`], so a new row makes the compiler name what is missing.

use super::ir::{Builtin, Ty};

/// What a builtin touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A function of its arguments (and of MODE, for float arithmetic).
    Pure,
    /// Reads or changes the wave or the workgroup.
    Control,
}

/// A parameter's accepted types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Param {
    /// Any float format; all `Float` arguments of a call have one format.
    Float,
    /// Any integer.
    Int,
    /// Exactly this type; integers convert.
    Is(Ty),
    /// A float or an integer.
    Any,
}

/// A call's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ret {
    /// The first argument's type.
    First,
    /// The first argument's width, unsigned.
    FirstUnsigned,
    Is(Ty),
    /// Nothing: a statement.
    None,
}

#[derive(Debug)]
pub struct BuiltinDef {
    pub id: Bi,
    pub name: &'static str,
    pub params: &'static [Param],
    pub ret: Ret,
    pub kind: Kind,
    pub doc: &'static str,
}

macro_rules! builtins {
    ($($id:ident $name:literal ($($param:expr),*) -> $ret:expr, $kind:ident, $doc:literal;)*) => {
        /// Identity of a builtin.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Bi { $(#[doc = $doc] $id,)* }

        /// Every builtin, in the order of [`Bi`].
        pub const BUILTINS: &[BuiltinDef] = &[
            $(BuiltinDef { id: Bi::$id, name: $name, params: &[$($param),*], ret: $ret, kind: Kind::$kind, doc: $doc },)*
        ];
    };
}

use Param::{Any, Float, Int};

const F16: Ty = Ty::F16;
const BF16: Ty = Ty::BF16;
const F32: Ty = Ty::F32;
const F64: Ty = Ty::F64;
const FP8: Ty = Ty::FP8;
const BF8: Ty = Ty::BF8;
const I16: Ty = Ty::I(16);
const I32: Ty = Ty::I(32);
const I64: Ty = Ty::I(64);
const U8: Ty = Ty::U(8);
const U16: Ty = Ty::U(16);
const U32: Ty = Ty::U(32);
const U64: Ty = Ty::U(64);
const BOOL: Ty = Ty::U(1);

const fn is(ty: Ty) -> Param {
    Param::Is(ty)
}

const fn to(ty: Ty) -> Ret {
    Ret::Is(ty)
}

builtins! {
    Fma "fma" (Float, Float, Float) -> Ret::First, Pure, "a * b + c, rounded once";
    FmaRtz "fma_rtz" (Float, Float, Float) -> Ret::First, Pure, "a * b + c, rounded once, toward zero whatever MODE says";
    FmaLdexp "fma_ldexp" (Float, Float, Float, is(I32)) -> Ret::First, Pure, "(a * b + c) * 2**n, rounded once";
    Abs "abs" (Any) -> Ret::First, Pure, "clears the sign of a float; absolute value of an integer";
    Floor "floor" (Float) -> Ret::First, Pure, "toward -infinity to an integral value";
    Ceil "ceil" (Float) -> Ret::First, Pure, "toward +infinity to an integral value";
    Trunc "trunc" (Float) -> Ret::First, Pure, "toward zero to an integral value";
    Rndne "rndne" (Float) -> Ret::First, Pure, "to the nearest integral value, ties to even";
    Fract "fract" (Float) -> Ret::First, Pure, "x - floor(x), below 1";
    Sqrt "sqrt" (Float) -> Ret::First, Pure, "square root, to nearest even; f32 denormals flushed";
    Rcp "rcp" (Float) -> Ret::First, Pure, "1 / x, to nearest even; f32 denormals flushed";
    Rsq "rsq" (Float) -> Ret::First, Pure, "1 / sqrt(x), to nearest even; f32 denormals flushed";
    Exp2 "exp2" (Float) -> Ret::First, Pure, "2 to the x";
    Log2 "log2" (Float) -> Ret::First, Pure, "logarithm to base 2";
    Sin "sin_turns" (Float) -> Ret::First, Pure, "sine of x turns: of 2 pi x";
    Cos "cos_turns" (Float) -> Ret::First, Pure, "cosine of x turns";
    Ldexp "ldexp" (Float, is(I32)) -> Ret::First, Pure, "x * 2**n, rounded once";
    FrexpExp "frexp_exp" (Float) -> to(I32), Pure, "exponent of x as a mantissa in [0.5, 1) times a power of 2; 0 for zero, infinity and NaN";
    FrexpMant "frexp_mant" (Float) -> Ret::First, Pure, "that mantissa with the sign of x; zero, infinity and NaN unchanged";
    Exponent "exponent" (Float) -> to(I32), Pure, "the biased exponent field";
    Mantissa "mantissa" (Float) -> Ret::First, Pure, "as frexp_mant";
    Sign "sign" (Float) -> to(BOOL), Pure, "the sign bit";
    IsNan "isNAN" (Float) -> to(BOOL), Pure, "any NaN";
    IsSignalNan "isSignalNAN" (Float) -> to(BOOL), Pure, "a signalling NaN";
    IsQuietNan "isQuietNAN" (Float) -> to(BOOL), Pure, "a quiet NaN";
    IsInf "isINF" (Float) -> to(BOOL), Pure, "an infinity";
    IsDenorm "isDENORM" (Float) -> to(BOOL), Pure, "a denormal number";
    CvtToQuietNan "cvtToQuietNAN" (Float) -> Ret::First, Pure, "sets the quiet bit of a NaN";
    Minimum "minimum" (Float, Float) -> Ret::First, Pure, "IEEE minimum: a NaN wins, -0 < +0";
    Maximum "maximum" (Float, Float) -> Ret::First, Pure, "IEEE maximum: a NaN wins, +0 > -0";
    MinimumNumber "minimumNumber" (Float, Float) -> Ret::First, Pure, "IEEE minimumNumber: a number beats a NaN, -0 < +0";
    MaximumNumber "maximumNumber" (Float, Float) -> Ret::First, Pure, "IEEE maximumNumber: a number beats a NaN, +0 > -0";
    SignExt "signext" (Int) -> to(I64), Pure, "the argument as signed in its own width, 64 bits wide";
    SignExtFromBit "signext_from_bit" (Int, is(U32)) -> Ret::First, Pure, "the low n bits as a signed number; n = 0 gives 0, n at or beyond the width the value itself";
    CountOnes "count_ones" (Int) -> to(U32), Pure, "number of set bits";
    CountLeadingZeros "count_leading_zeros" (Int) -> to(U32), Pure, "zeros above the highest set bit; the width for 0";
    CountTrailingZeros "count_trailing_zeros" (Int) -> to(U32), Pure, "zeros below the lowest set bit; the width for 0";
    ReverseBits "reverse_bits" (Int) -> Ret::FirstUnsigned, Pure, "bit order reversed";
    SelectBytes "select_bytes" (is(U32), is(U32), is(U32)) -> to(U32), Pure, "four bytes of the eight of high and low: byte k is the one that byte k of the third numbers, low's first; zero for 8 and above";
    F32ToF16 "f32_to_f16" (is(F32)) -> to(F16), Pure, "rounded by MODE";
    F16ToF32 "f16_to_f32" (is(F16)) -> to(F32), Pure, "exact";
    F32ToF16Rtz "f32_to_f16_rtz" (is(F32)) -> to(F16), Pure, "toward zero";
    F32ToBf16 "f32_to_bf16" (is(F32)) -> to(BF16), Pure, "rounded by MODE";
    Bf16ToF32 "bf16_to_f32" (is(BF16)) -> to(F32), Pure, "exact";
    F32ToF64 "f32_to_f64" (is(F32)) -> to(F64), Pure, "exact";
    F64ToF32 "f64_to_f32" (is(F64)) -> to(F32), Pure, "rounded by MODE";
    F32ToI32 "f32_to_i32" (is(F32)) -> to(I32), Pure, "toward zero, saturating, NaN gives 0";
    F32ToU32 "f32_to_u32" (is(F32)) -> to(U32), Pure, "toward zero, saturating, NaN gives 0";
    F32ToU8 "f32_to_u8" (is(F32)) -> to(U8), Pure, "rounded by MODE, saturating, NaN gives 0";
    F64ToI32 "f64_to_i32" (is(F64)) -> to(I32), Pure, "toward zero, saturating, NaN gives 0";
    F64ToU32 "f64_to_u32" (is(F64)) -> to(U32), Pure, "toward zero, saturating, NaN gives 0";
    F16ToI16 "f16_to_i16" (is(F16)) -> to(I16), Pure, "toward zero, saturating, NaN gives 0";
    F16ToU16 "f16_to_u16" (is(F16)) -> to(U16), Pure, "toward zero, saturating, NaN gives 0";
    I32ToF32 "i32_to_f32" (is(I32)) -> to(F32), Pure, "rounded by MODE";
    U32ToF32 "u32_to_f32" (is(U32)) -> to(F32), Pure, "rounded by MODE";
    I32ToF64 "i32_to_f64" (is(I32)) -> to(F64), Pure, "exact";
    U32ToF64 "u32_to_f64" (is(U32)) -> to(F64), Pure, "exact";
    I16ToF16 "i16_to_f16" (is(I16)) -> to(F16), Pure, "rounded by MODE";
    U16ToF16 "u16_to_f16" (is(U16)) -> to(F16), Pure, "rounded by MODE";
    F16ToSnorm "f16_to_snorm" (is(F16)) -> to(I16), Pure, "clamped to [-1, 1] and scaled to -32767..32767, nearest even";
    F16ToUnorm "f16_to_unorm" (is(F16)) -> to(U16), Pure, "clamped to [0, 1] and scaled to 0..65535, nearest even";
    F32ToSnorm "f32_to_snorm" (is(F32)) -> to(I16), Pure, "clamped to [-1, 1] and scaled to -32767..32767, nearest even";
    F32ToUnorm "f32_to_unorm" (is(F32)) -> to(U16), Pure, "clamped to [0, 1] and scaled to 0..65535, nearest even";
    Fp8ToF32 "fp8_to_f32" (is(FP8)) -> to(F32), Pure, "E4M3 to f32, exact";
    Bf8ToF32 "bf8_to_f32" (is(BF8)) -> to(F32), Pure, "E5M2 to f32, exact";
    F32ToFp8 "f32_to_fp8" (is(F32)) -> to(FP8), Pure, "nearest even; beyond the range NaN";
    F32ToBf8 "f32_to_bf8" (is(F32)) -> to(BF8), Pure, "nearest even; beyond the range infinity";
    F32ToFp8Sr "f32_to_fp8_sr" (is(F32), is(U32)) -> to(FP8), Pure, "stochastic rounding by the seed's high 20 bits";
    F32ToBf8Sr "f32_to_bf8_sr" (is(F32), is(U32)) -> to(BF8), Pure, "stochastic rounding by the seed's high 21 bits";
    U8ToU32 "u8_to_u32" (is(U8)) -> to(U32), Pure, "zero-extended";
    U4ToU32 "u4_to_u32" (is(Ty::U(4))) -> to(U32), Pure, "zero-extended";
    U16ToU32 "u16_to_u32" (is(U16)) -> to(U32), Pure, "zero-extended";
    I16ToI32 "i16_to_i32" (is(I16)) -> to(I32), Pure, "sign-extended";
    U32ToU16 "u32_to_u16" (is(U32)) -> to(U16), Pure, "the low half";
    I32ToI16 "i32_to_i16" (is(I32)) -> to(I16), Pure, "the low half";
    ClampU16 "clamp_u16" (Int) -> to(U16), Pure, "saturates to 16 bits unsigned if the instruction's clamp bit is set, else wraps";
    ClampI16 "clamp_i16" (Int) -> to(I16), Pure, "saturates to 16 bits signed if the instruction's clamp bit is set, else wraps";
    ClampU32 "clamp_u32" (Int) -> to(U32), Pure, "saturates to 32 bits unsigned if the instruction's clamp bit is set, else wraps";
    ClampI32 "clamp_i32" (Int) -> to(I32), Pure, "saturates to 32 bits signed if the instruction's clamp bit is set, else wraps";
    ClampU64 "clamp_u64" (Int) -> to(U64), Pure, "saturates to 64 bits unsigned if the instruction's clamp bit is set, else wraps";
    ClampI64 "clamp_i64" (Int) -> to(I64), Pure, "saturates to 64 bits signed if the instruction's clamp bit is set, else wraps";
    TrigPreop "trig_preop" (is(F64), is(U32)) -> to(F64), Pure, "a 53-bit segment of 2/pi for argument reduction";
    FormatBytes "format_bytes" (is(U32)) -> to(U32), Pure, "bytes of an element in a buffer format";
    FromFormat "from_format" (is(U32), is(Ty::U(128)), is(U32)) -> to(U32), Pure, "component n of a buffer element, converted to 32 bits";
    ToFormat "to_format" (is(U32), is(Ty::U(128))) -> to(Ty::U(128)), Pure, "a buffer element from four 32-bit components";
    FromFormat16 "from_format16" (is(U32), is(Ty::U(128)), is(U32)) -> to(U16), Pure, "component n of a buffer element, converted to 16 bits";
    ToFormat16 "to_format16" (is(U32), is(U64)) -> to(Ty::U(128)), Pure, "a buffer element from four 16-bit components";
    Nop "nop" () -> Ret::None, Control, "nothing";
    EndPgm "endpgm" () -> Ret::None, Control, "ends the wave";
    Illegal "illegal" () -> Ret::None, Control, "an illegal instruction: a fault";
    Trap "trap" (is(U64)) -> Ret::None, Control, "enters the trap handler: a fault that names the trap";
    Halt "halt" () -> Ret::None, Control, "halts the wave: a fault, as nothing could resume it";
    SendMsg "sendmsg" (is(U32)) -> Ret::None, Control, "sends a message";
    SendMsgRtn "sendmsg_rtn" (is(U32)) -> to(U64), Control, "sends a message and takes its answer";
    WaitVmcnt "wait_vmcnt" (is(U32)) -> Ret::None, Control, "waits for vector memory loads";
    WaitVscnt "wait_vscnt" (is(U32)) -> Ret::None, Control, "waits for vector memory stores";
    WaitLgkmcnt "wait_lgkmcnt" (is(U32)) -> Ret::None, Control, "waits for LDS, scalar memory and messages";
    WaitExpcnt "wait_expcnt" (is(U32)) -> Ret::None, Control, "waits for exports";
    WaitLoadcnt "wait_loadcnt" (is(U32)) -> Ret::None, Control, "waits for vector memory loads";
    WaitStorecnt "wait_storecnt" (is(U32)) -> Ret::None, Control, "waits for vector memory stores";
    WaitSamplecnt "wait_samplecnt" (is(U32)) -> Ret::None, Control, "waits for image sampling";
    WaitBvhcnt "wait_bvhcnt" (is(U32)) -> Ret::None, Control, "waits for ray intersections";
    WaitDscnt "wait_dscnt" (is(U32)) -> Ret::None, Control, "waits for LDS";
    WaitKmcnt "wait_kmcnt" (is(U32)) -> Ret::None, Control, "waits for scalar memory and messages";
    Barrier "barrier" () -> Ret::None, Control, "waits until all waves of the workgroup arrive";
    BarrierSignal "barrier_signal" (is(I32)) -> Ret::None, Control, "arrives at a barrier";
    BarrierSignalIsFirst "barrier_signal_isfirst" (is(I32)) -> to(BOOL), Control, "arrives at a barrier; 1 if first";
    BarrierWait "barrier_wait" (is(I32)) -> Ret::None, Control, "waits until a signalled barrier completes";
    BarrierLeave "barrier_leave" () -> to(BOOL), Control, "leaves the named barrier joined";
    BarrierInit "barrier_init" (is(I32), is(U32)) -> Ret::None, Control, "sets a named barrier's member count";
    BarrierJoin "barrier_join" (is(I32)) -> Ret::None, Control, "joins a named barrier";
    BarrierState "barrier_state" (is(I32)) -> to(U32), Control, "signal and member counts of a barrier";
    GetReg "getreg" (is(U32)) -> to(U32), Control, "a hardware register";
    SetReg "setreg" (is(U32), is(U32)) -> Ret::None, Control, "writes the writable bits of a hardware register";
    GwsUnsupported "gws" () -> Ret::None, Control, "global wave sync: not supported, a fault";
}

impl Bi {
    pub fn def(self) -> &'static BuiltinDef {
        &BUILTINS[self as usize]
    }
}

impl Builtin {
    pub fn def(self) -> &'static BuiltinDef {
        &BUILTINS[self.0 as usize]
    }

    pub fn id(self) -> Bi {
        self.def().id
    }
}

impl From<Bi> for Builtin {
    fn from(id: Bi) -> Builtin {
        Builtin(id as u16)
    }
}

/// By name, exact.
pub fn lookup(name: &str) -> Option<Builtin> {
    BUILTINS.iter().position(|b| b.name == name).map(|at| Builtin(at as u16))
}

/// Raw encoding fields that bodies may name, with their canonical name and the names encodings use.
pub const FIELDS: &[(&str, &[&str])] = &[
    ("OFFSET", &["OFFSET", "IOFFSET", "INST_OFFSET"]),
    ("OFFSET0", &["OFFSET0"]),
    ("OFFSET1", &["OFFSET1"]),
    ("NEG", &["NEG"]),
    ("NEG_HI", &["NEG_HI"]),
    ("ABS", &["ABS"]),
    ("OPSEL", &["OP_SEL"]),
    ("OPSEL_HI", &["OP_SEL_HI", "OP_SEL_HI_2"]),
    ("CLAMP", &["CLAMP"]),
    ("OMOD", &["OMOD"]),
    ("GLC", &["GLC", "TH"]),
    ("IDXEN", &["IDXEN"]),
    ("OFFEN", &["OFFEN"]),
    ("FORMAT", &["FORMAT"]),
    ("SVE", &["SVE"]),
    ("SIMM16", &["SIMM16"]),
    ("SIMM32", &["SIMM32", "LITERAL"]),
    ("WAIT_EXP", &["WAIT_EXP"]),
    ("ATTR", &["ATTR"]),
    ("ATTR_CHAN", &["ATTR_CHAN"]),
];
