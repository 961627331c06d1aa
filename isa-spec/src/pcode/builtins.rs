//! The table of builtins: name, parameters, result and doc line. A test compares it with the tables in
//! `docs/pseudocode.md`.
//!
//! A builtin is either [`Pure`], a function of its arguments, or [`Control`], which the machine executes.
//! Evaluator, lowering and machine match on these enums exhaustively, so a new row does not compile until
//! each of them implements it.

use super::ir::Ty;

/// The types that a parameter accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Param {
    /// Any float format; all `Float` arguments of a call have one format.
    Float,
    /// Any integer.
    Int,
    /// Exactly this type; integers are converted.
    Is(Ty),
    /// A float or an integer.
    Any,
}

/// The type of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ret {
    /// The first argument's type.
    First,
    /// The first argument's width, unsigned.
    FirstUnsigned,
    /// This type, whatever the arguments.
    Is(Ty),
    /// No value: the call is a statement.
    None,
}

/// A row of the table.
#[derive(Debug)]
pub struct BuiltinDef {
    /// The builtin that this row describes.
    pub builtin: Builtin,
    /// As written in pseudocode.
    pub name: &'static str,
    /// Accepted types, one per parameter.
    pub params: &'static [Param],
    /// The type of a call.
    pub ret: Ret,
    /// One line of Markdown.
    pub doc: &'static str,
}

/// Identity of a builtin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Builtin {
    /// A function of its arguments.
    Pure(Pure),
    /// An effect that the machine executes.
    Control(Control),
}

macro_rules! builtins {
    ($(#[$doc:meta])* $Kind:ident $TABLE:ident; $($id:ident $name:literal ($($param:expr),*) -> $ret:expr, $text:literal;)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $Kind { $(#[doc = $text] $id,)* }

        /// Rows in the order of the enum.
        static $TABLE: &[BuiltinDef] = &[
            $(BuiltinDef { builtin: Builtin::$Kind($Kind::$id), name: $name, params: &[$($param),*], ret: $ret, doc: $text },)*
        ];

        impl $Kind {
            /// Returns the builtin's row of the table.
            pub fn def(self) -> &'static BuiltinDef {
                &$TABLE[self as usize]
            }
        }

        impl From<$Kind> for Builtin {
            fn from(builtin: $Kind) -> Builtin {
                Builtin::$Kind(builtin)
            }
        }
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
    /// A function of its arguments (and of MODE, for float arithmetic).
    Pure PURE;

    Fma "fma" (Float, Float, Float) -> Ret::First, "a * b + c, rounded once";
    FmaRtz "fma_rtz" (Float, Float, Float) -> Ret::First, "a * b + c, rounded once, toward zero in every mode";
    FmaNearest "fma_nearest" (Float, Float, Float) -> Ret::First, "a * b + c, rounded once, to nearest even and with denormals in every mode";
    FmaLdexp "fma_ldexp" (Float, Float, Float, is(I32)) -> Ret::First, "(a * b + c) * 2**n, rounded once";
    Abs "abs" (Any) -> Ret::First, "clears the sign of a float; absolute value of an integer";
    Floor "floor" (Float) -> Ret::First, "toward -infinity to an integral value";
    Ceil "ceil" (Float) -> Ret::First, "toward +infinity to an integral value";
    Trunc "trunc" (Float) -> Ret::First, "toward zero to an integral value";
    Rndne "rndne" (Float) -> Ret::First, "to the nearest integral value, ties to even";
    Fract "fract" (Float) -> Ret::First, "x - floor(x), below 1";
    Sqrt "sqrt" (Float) -> Ret::First, "square root, to nearest even; f32 denormals flushed";
    Rcp "rcp" (Float) -> Ret::First, "1 / x, to nearest even; f32 denormals flushed";
    Rsq "rsq" (Float) -> Ret::First, "1 / sqrt(x), to nearest even; f32 denormals flushed";
    Exp2 "exp2" (Float) -> Ret::First, "2 to the x";
    Log2 "log2" (Float) -> Ret::First, "logarithm to base 2";
    Sin "sin_turns" (Float) -> Ret::First, "sine of x turns: of 2 pi x";
    Cos "cos_turns" (Float) -> Ret::First, "cosine of x turns";
    Tanh "tanh" (Float) -> Ret::First, "hyperbolic tangent";
    Ldexp "ldexp" (Float, is(I32)) -> Ret::First, "x * 2**n, rounded once";
    FrexpExp "frexp_exp" (Float) -> to(I32), "exponent of x as a mantissa in [0.5, 1) times a power of 2; 0 for zero, infinity and NaN";
    FrexpMant "frexp_mant" (Float) -> Ret::First, "that mantissa with the sign of x; zero, infinity and NaN unchanged";
    Exponent "exponent" (Float) -> to(I32), "the biased exponent field";
    Mantissa "mantissa" (Float) -> Ret::First, "as frexp_mant";
    Sign "sign" (Float) -> to(BOOL), "the sign bit";
    IsNan "isNAN" (Float) -> to(BOOL), "any NaN";
    IsSignalNan "isSignalNAN" (Float) -> to(BOOL), "a signalling NaN";
    IsQuietNan "isQuietNAN" (Float) -> to(BOOL), "a quiet NaN";
    IsInf "isINF" (Float) -> to(BOOL), "an infinity";
    IsDenorm "isDENORM" (Float) -> to(BOOL), "a denormal number";
    CvtToQuietNan "cvtToQuietNAN" (Float) -> Ret::First, "sets the quiet bit of a NaN";
    Minimum "minimum" (Float, Float) -> Ret::First, "IEEE minimum: a NaN wins, -0 < +0";
    Maximum "maximum" (Float, Float) -> Ret::First, "IEEE maximum: a NaN wins, +0 > -0";
    MinimumNumber "minimumNumber" (Float, Float) -> Ret::First, "IEEE minimumNumber: a number beats a NaN, -0 < +0";
    MaximumNumber "maximumNumber" (Float, Float) -> Ret::First, "IEEE maximumNumber: a number beats a NaN, +0 > -0";
    SignExt "signext" (Int) -> to(I64), "the argument as signed in its own width, 64 bits wide";
    SignExtFromBit "signext_from_bit" (Int, is(U32)) -> Ret::First, "the low n bits as a signed number; n = 0 gives 0, n at or beyond the width the value itself";
    CountOnes "count_ones" (Int) -> to(U32), "number of set bits";
    CountLeadingZeros "count_leading_zeros" (Int) -> to(U32), "zeros above the highest set bit; the width for 0";
    CountTrailingZeros "count_trailing_zeros" (Int) -> to(U32), "zeros below the lowest set bit; the width for 0";
    ReverseBits "reverse_bits" (Int) -> Ret::FirstUnsigned, "bit order reversed";
    SelectBytes "select_bytes" (is(U32), is(U32), is(U32)) -> to(U32), "byte permute: byte k of the third argument selects byte k of the result among the bytes of low (0 to 3) and high (4 to 7); zero for 8 and above";
    F32ToF16 "f32_to_f16" (is(F32)) -> to(F16), "rounded by MODE";
    F16ToF32 "f16_to_f32" (is(F16)) -> to(F32), "exact";
    F32ToF16Rtz "f32_to_f16_rtz" (is(F32)) -> to(F16), "toward zero";
    F32ToBf16 "f32_to_bf16" (is(F32)) -> to(BF16), "rounded by MODE";
    Bf16ToF32 "bf16_to_f32" (is(BF16)) -> to(F32), "exact";
    F32ToF64 "f32_to_f64" (is(F32)) -> to(F64), "exact";
    F64ToF32 "f64_to_f32" (is(F64)) -> to(F32), "rounded by MODE";
    F32ToI32 "f32_to_i32" (is(F32)) -> to(I32), "toward zero, saturating, NaN gives 0";
    F32ToU32 "f32_to_u32" (is(F32)) -> to(U32), "toward zero, saturating, NaN gives 0";
    F32ToU8 "f32_to_u8" (is(F32)) -> to(U8), "rounded by MODE, saturating, NaN gives 0";
    F64ToI32 "f64_to_i32" (is(F64)) -> to(I32), "toward zero, saturating, NaN gives 0";
    F64ToU32 "f64_to_u32" (is(F64)) -> to(U32), "toward zero, saturating, NaN gives 0";
    F16ToI16 "f16_to_i16" (is(F16)) -> to(I16), "toward zero, saturating, NaN gives 0";
    F16ToU16 "f16_to_u16" (is(F16)) -> to(U16), "toward zero, saturating, NaN gives 0";
    I32ToF32 "i32_to_f32" (is(I32)) -> to(F32), "rounded by MODE";
    U32ToF32 "u32_to_f32" (is(U32)) -> to(F32), "rounded by MODE";
    I32ToF64 "i32_to_f64" (is(I32)) -> to(F64), "exact";
    U32ToF64 "u32_to_f64" (is(U32)) -> to(F64), "exact";
    I16ToF16 "i16_to_f16" (is(I16)) -> to(F16), "rounded by MODE";
    U16ToF16 "u16_to_f16" (is(U16)) -> to(F16), "rounded by MODE";
    F16ToSnorm "f16_to_snorm" (is(F16)) -> to(I16), "clamped to [-1, 1] and scaled to -32767..32767, nearest even";
    F16ToUnorm "f16_to_unorm" (is(F16)) -> to(U16), "clamped to [0, 1] and scaled to 0..65535, nearest even";
    F32ToSnorm "f32_to_snorm" (is(F32)) -> to(I16), "clamped to [-1, 1] and scaled to -32767..32767, nearest even";
    F32ToUnorm "f32_to_unorm" (is(F32)) -> to(U16), "clamped to [0, 1] and scaled to 0..65535, nearest even";
    Fp8ToF32 "fp8_to_f32" (is(FP8)) -> to(F32), "E4M3 to f32, exact";
    Bf8ToF32 "bf8_to_f32" (is(BF8)) -> to(F32), "E5M2 to f32, exact";
    F32ToFp8 "f32_to_fp8" (is(F32)) -> to(FP8), "nearest even; beyond the range NaN";
    F32ToBf8 "f32_to_bf8" (is(F32)) -> to(BF8), "nearest even; beyond the range infinity";
    F32ToFp8Sr "f32_to_fp8_sr" (is(F32), is(U32)) -> to(FP8), "stochastic rounding by the seed's high 20 bits";
    F32ToBf8Sr "f32_to_bf8_sr" (is(F32), is(U32)) -> to(BF8), "stochastic rounding by the seed's high 21 bits";
    U8ToU32 "u8_to_u32" (is(U8)) -> to(U32), "zero-extended";
    U4ToU32 "u4_to_u32" (is(Ty::U(4))) -> to(U32), "zero-extended";
    U16ToU32 "u16_to_u32" (is(U16)) -> to(U32), "zero-extended";
    I16ToI32 "i16_to_i32" (is(I16)) -> to(I32), "sign-extended";
    U32ToU16 "u32_to_u16" (is(U32)) -> to(U16), "saturates to 16 bits";
    I32ToI16 "i32_to_i16" (is(I32)) -> to(I16), "saturates to 16 bits";
    ClampU16 "clamp_u16" (Int) -> to(U16), "saturates to 16 bits unsigned if the instruction's clamp bit is set, else wraps";
    ClampI16 "clamp_i16" (Int) -> to(I16), "saturates to 16 bits signed if the instruction's clamp bit is set, else wraps";
    ClampU32 "clamp_u32" (Int) -> to(U32), "saturates to 32 bits unsigned if the instruction's clamp bit is set, else wraps";
    ClampI32 "clamp_i32" (Int) -> to(I32), "saturates to 32 bits signed if the instruction's clamp bit is set, else wraps";
    ClampU64 "clamp_u64" (Int) -> to(U64), "saturates to 64 bits unsigned if the instruction's clamp bit is set, else wraps";
    ClampI64 "clamp_i64" (Int) -> to(I64), "saturates to 64 bits signed if the instruction's clamp bit is set, else wraps";
    TrigPreop "trig_preop" (is(F64), is(U32)) -> to(F64), "a 53-bit segment of 2/pi for argument reduction";
    FormatBytes "format_bytes" (is(U32)) -> to(U32), "bytes of an element in the format of a buffer or image";
    FormatBlock "format_block" (is(U32)) -> to(U32), "width and height in texels of an element: 4 for compressed blocks, else 1";
    BlockFormat "block_format" (is(U32)) -> to(U32), "the format of a decompressed texel; a format without blocks itself";
    BlockTexel "block_texel" (is(U32), is(Ty::U(128)), is(U32), is(U32)) -> to(Ty::U(128)), "the texel of a compressed block in column and row, decompressed";
    TileBlock "tile_block" (is(U32), is(U32)) -> to(U32), "a block of a tiled image: the logarithms of its bytes, width, height, and depth of 6 bits, then its two properties; 0 without a layout (data/layout)";
    TileOffset "tile_offset" (is(U32), is(U32), is(U64)) -> to(U32), "offset of an element in a block of a tiled image, by column, row, slice and sample, 16 bits each";
    FromFormat "from_format" (is(U32), is(Ty::U(128)), is(U32)) -> to(U32), "component n of a buffer element, converted to 32 bits";
    ToFormat "to_format" (is(U32), is(Ty::U(128))) -> to(Ty::U(128)), "a buffer element from four 32-bit components";
    FromFormat16 "from_format16" (is(U32), is(Ty::U(128)), is(U32)) -> to(U16), "component n of a buffer element, converted to 16 bits";
    ToFormat16 "to_format16" (is(U32), is(U64)) -> to(Ty::U(128)), "a buffer element from four 16-bit components";
}

builtins! {
    /// Reads or changes the state of the wave or the workgroup.
    Control CONTROL;

    Nop "nop" () -> Ret::None, "nothing";
    EndPgm "endpgm" () -> Ret::None, "ends the wave";
    Illegal "illegal" () -> Ret::None, "an illegal instruction: a fault";
    Trap "trap" (is(U64)) -> Ret::None, "enters the trap handler: a fault that names the trap";
    Halt "halt" () -> Ret::None, "halts the wave: a fault, as nothing could resume it";
    SendMsg "sendmsg" (is(U32)) -> Ret::None, "sends a message";
    SendMsgRtn "sendmsg_rtn" (is(U32)) -> to(U64), "sends a message and returns the answer";
    WaitVmcnt "wait_vmcnt" (is(U32)) -> Ret::None, "waits for vector memory loads";
    WaitVscnt "wait_vscnt" (is(U32)) -> Ret::None, "waits for vector memory stores";
    WaitLgkmcnt "wait_lgkmcnt" (is(U32)) -> Ret::None, "waits for LDS, scalar memory and messages";
    WaitExpcnt "wait_expcnt" (is(U32)) -> Ret::None, "waits for exports";
    WaitLoadcnt "wait_loadcnt" (is(U32)) -> Ret::None, "waits for vector memory loads";
    WaitStorecnt "wait_storecnt" (is(U32)) -> Ret::None, "waits for vector memory stores";
    WaitSamplecnt "wait_samplecnt" (is(U32)) -> Ret::None, "waits for image sampling";
    WaitBvhcnt "wait_bvhcnt" (is(U32)) -> Ret::None, "waits for ray intersections";
    WaitDscnt "wait_dscnt" (is(U32)) -> Ret::None, "waits for LDS";
    WaitKmcnt "wait_kmcnt" (is(U32)) -> Ret::None, "waits for scalar memory and messages";
    WaitAsynccnt "wait_asynccnt" (is(U32)) -> Ret::None, "waits for copies between global memory and LDS";
    WaitTensorcnt "wait_tensorcnt" (is(U32)) -> Ret::None, "waits for tensor copies";
    WaitXcnt "wait_xcnt" (is(U32)) -> Ret::None, "waits for address translation";
    WaitIdle "wait_idle" () -> Ret::None, "waits for everything outstanding";
    WaitAlu "wait_alu" () -> Ret::None, "waits for results of the vector unit";
    InvalidateCaches "invalidate_caches" (is(U32)) -> Ret::None, "discards the contents of caches: a bit each for L0, L1 and the scalar cache";
    WriteBackCaches "write_back_caches" () -> Ret::None, "writes back the contents of caches";
    Barrier "barrier" () -> Ret::None, "waits until all waves of the workgroup arrive";
    BarrierSignal "barrier_signal" (is(I32)) -> Ret::None, "arrives at a barrier";
    BarrierSignalIsFirst "barrier_signal_isfirst" (is(I32)) -> to(BOOL), "arrives at a barrier; 1 if first";
    BarrierWait "barrier_wait" (is(I32)) -> Ret::None, "waits until a signalled barrier completes";
    BarrierLeave "barrier_leave" () -> to(BOOL), "leaves the joined named barrier; 1 if it was the last member";
    BarrierInit "barrier_init" (is(I32)) -> Ret::None, "clears a named barrier's signals";
    BarrierMembers "barrier_members" (is(I32), is(U32)) -> Ret::None, "sets a named barrier's member count";
    BarrierJoin "barrier_join" (is(I32)) -> Ret::None, "joins a named barrier";
    BarrierState "barrier_state" (is(I32)) -> to(U32), "signal and member counts of a barrier";
    GetReg "getreg" (is(U32)) -> to(U32), "a hardware register";
    SetReg "setreg" (is(U32), is(U32)) -> Ret::None, "writes the writable bits of a hardware register";
    UnknownLayout "unknown_layout" () -> Ret::None, "an image whose layout in memory is not known: a fault";
    GwsInit "gws_init" (is(U32), is(U32)) -> Ret::None, "sets the counter of a resource of global wave sync";
    GwsBarrier "gws_barrier" (is(U32), is(U32)) -> Ret::None, "waits at a resource until the counter's waves and one more have arrived, which then is the second argument";
    GwsSemaP "gws_sema_p" (is(U32)) -> Ret::None, "waits until a resource lets a wave pass, as a semaphore";
    GwsSemaBr "gws_sema_br" (is(U32), is(U32)) -> Ret::None, "lets this many waves pass a resource";
    GwsSemaReleaseAll "gws_sema_release_all" (is(U32)) -> Ret::None, "lets all waves pass that wait at a resource";
}

impl Control {
    /// Returns whether the builtin waits for operations that the wave itself has issued.
    pub fn is_wait(self) -> bool {
        use Control::{
            WaitAlu, WaitAsynccnt, WaitBvhcnt, WaitDscnt, WaitExpcnt, WaitIdle, WaitKmcnt, WaitLgkmcnt,
            WaitLoadcnt, WaitSamplecnt, WaitStorecnt, WaitTensorcnt, WaitVmcnt, WaitVscnt, WaitXcnt,
        };
        let memory = matches!(
            self,
            WaitVmcnt | WaitVscnt | WaitLgkmcnt | WaitLoadcnt | WaitStorecnt | WaitDscnt | WaitKmcnt
        );
        let memory = memory || matches!(self, WaitAsynccnt | WaitTensorcnt | WaitXcnt);
        memory || matches!(self, WaitExpcnt | WaitSamplecnt | WaitBvhcnt | WaitIdle | WaitAlu)
    }

    /// Returns whether the builtin is one of global wave sync, by which waves of different workgroups meet.
    pub fn meets(self) -> bool {
        use Control::{GwsBarrier, GwsInit, GwsSemaBr, GwsSemaP, GwsSemaReleaseAll};
        matches!(self, GwsInit | GwsBarrier | GwsSemaP | GwsSemaBr | GwsSemaReleaseAll)
    }

    /// Returns whether the builtin signals a barrier, with or without waiting at it.
    pub fn signals_barrier(self) -> bool {
        matches!(self, Control::Barrier | Control::BarrierSignal | Control::BarrierSignalIsFirst)
    }
}

impl Builtin {
    /// Returns the builtin's row of the table.
    pub fn def(self) -> &'static BuiltinDef {
        match self {
            Builtin::Pure(builtin) => builtin.def(),
            Builtin::Control(builtin) => builtin.def(),
        }
    }
}

/// Iterates over every builtin.
pub fn all() -> impl Iterator<Item = &'static BuiltinDef> {
    PURE.iter().chain(CONTROL)
}

/// Looks up a builtin by its exact name.
pub fn lookup(name: &str) -> Option<Builtin> {
    all().find(|b| b.name == name).map(|b| b.builtin)
}

/// Raw encoding fields that bodies may name: the canonical name, and the names in encodings.
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
    // The major version of the target (9: CDNA, 11: RDNA 3, 12: RDNA 4), whose rules buffer instructions
    // follow, and whether a buffer load writes to LDS.
    ("GFX", &[]),
    ("TO_LDS", &[]),
    ("CBSZ", &["CBSZ"]),
    ("ABID", &["ABID"]),
    ("BLGP", &["BLGP"]),
    ("SIMM16", &["SIMM16"]),
    // The code of S_SET_GPR_IDX_ON's second source, as a number.
    ("SIMM4", &["SSRC1"]),
    ("SIMM32", &["SIMM32", "LITERAL", "LITERAL64"]),
    ("SIMM32_HI", &["LITERAL64_HI"]),
    // The halves of scaled matrix products: modifiers, and the codes of the scales' operands as numbers.
    ("SCALE_NEG", &["SCALE_NEG"]),
    ("SCALE_NEG_HI", &["SCALE_NEG_HI"]),
    ("SCALE_OPSEL", &["SCALE_OP_SEL"]),
    ("SCALE_OPSEL_HI", &["SCALE_OP_SEL_HI"]),
    ("SCALE_CODE_A", &["SCALE_SRC0"]),
    ("SCALE_CODE_B", &["SCALE_SRC1"]),
    ("SCALE_OFFSET", &["SCALE_OFFSET"]),
    ("WAIT_EXP", &["WAIT_EXP"]),
    ("ATTR", &["ATTR"]),
    ("ATTR_CHAN", &["ATTR_CHAN"]),
    // Images: modifiers; the numbers of the registers of addresses and of the sampler's first one; whether addresses
    // have fields of their own; the suffixes of the name (`mnemonic::ImageSuffixes`); and a bit for each dword of
    // the address and of the data that the instruction has.
    ("DIM", &["DIM"]),
    ("DMASK", &["DMASK"]),
    ("A16", &["A16"]),
    ("D16", &["D16"]),
    ("UNORM", &["UNORM"]),
    ("R128", &["R128"]),
    ("TFE", &["TFE"]),
    ("LWE", &["LWE"]),
    ("VADDR0", &["VADDR0"]),
    ("VADDR1", &["VADDR1"]),
    ("VADDR2", &["VADDR2"]),
    ("VADDR3", &["VADDR3"]),
    ("VADDR4", &["VADDR4"]),
    ("SAMP", &["SAMP", "SSAMP"]),
    ("NSA", &["NSA"]),
    ("SUFFIXES", &[]),
    ("ADDRESS_MASK", &[]),
    ("DATA_MASK", &[]),
];
