//! The instructions of a function. Scalar instructions are close to those of hosts; vector instructions are those of
//! x86-64, identified by their codes, and have exactly its meaning on every host: minimum and maximum return the second
//! operand if one is a NaN or both are zero; conversions to integers that do not fit make the least integer; counts of
//! shifts may be greater than the width; a NaN result is the first NaN of the operands, made quiet, or without one the
//! default NaN, which is negative. `vrsqrtps` is any estimate with a relative error of at most 1.5 * 2^-12.

use crate::code::Code;
use crate::reg::RegisterKind;

/// A value: a 64-bit integer or a 256-bit vector. It may be assigned more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct V(pub(crate) u32);

impl V {
    /// Returns the number of the value in its function.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A program point that jumps lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(pub(crate) u32);

impl Label {
    /// Returns the number of the label in its function.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The register class of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// General registers.
    Int,
    /// Vector registers of 256 bits: YMM, or pairs of NEON registers.
    Vec,
}

/// The width of an integer operation. 32-bit results are zero-extended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    W32,
    W64,
}

impl Width {
    /// Returns the class of registers of this width.
    pub(crate) fn kind(self) -> RegisterKind {
        match self {
            Width::W32 => RegisterKind::R32,
            Width::W64 => RegisterKind::R64,
        }
    }
}

/// An operand of an integer operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Src {
    Value(V),
    /// An immediate, sign-extended to the width.
    Imm(i32),
}

/// A binary integer operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Int2 {
    Add,
    Sub,
    Mul,
    And,
    Or,
    Xor,
    /// The count is taken modulo the width.
    Shl,
    /// The count is taken modulo the width.
    Shr,
    /// The count is taken modulo the width.
    Sar,
}

/// A unary integer operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Int1 {
    Not,
    Neg,
    CountOnes,
    /// Returns the width for zero.
    LeadingZeros,
    /// Returns the width for zero.
    TrailingZeros,
    SwapBytes,
    /// Sign-extends the low 32 bits.
    SignExtend32,
    /// Zero-extends the low 32 bits.
    ZeroExtend32,
}

/// A condition of an integer comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cc {
    Eq,
    Ne,
    LtS,
    LeS,
    GtS,
    GeS,
    LtU,
    LeU,
    GtU,
    GeU,
}

/// The size of a memory access. Loads zero-extend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    B1,
    B2,
    B4,
    B8,
}

impl Size {
    /// Returns the size in bytes.
    pub fn bytes(self) -> i32 {
        match self {
            Size::B1 => 1,
            Size::B2 => 2,
            Size::B4 => 4,
            Size::B8 => 8,
        }
    }
}

/// A memory operand: a base address and a displacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mem {
    pub base: V,
    pub disp: i32,
}

/// An instruction.
#[derive(Debug, Clone, PartialEq)]
pub enum Inst {
    /// A constant integer.
    Const {
        d: V,
        bits: u64,
    },
    /// Copies a value of the same class.
    Move {
        d: V,
        a: V,
    },
    Int2 {
        op: Int2,
        width: Width,
        d: V,
        a: V,
        b: Src,
    },
    Int1 {
        op: Int1,
        width: Width,
        d: V,
        a: V,
    },
    /// 1 if the comparison is true, else 0.
    Compare {
        cc: Cc,
        width: Width,
        d: V,
        a: V,
        b: Src,
    },
    /// `a` unless `cond` is 0, else `b`.
    Select {
        d: V,
        cond: V,
        a: V,
        b: V,
    },
    Load {
        size: Size,
        d: V,
        from: Mem,
    },
    Store {
        size: Size,
        to: Mem,
        v: Src,
    },
    /// Calls the function at this address by the calling convention of compiled functions (System V on x86-64, AAPCS64 on
    /// aarch64), with integer arguments. All arguments are live up to the call.
    Call {
        function: u64,
        args: Vec<Src>,
        d: Option<V>,
    },
    /// Calls a function with one argument and no result on a cold path. All registers are saved around it, so
    /// that live ranges across it need no callee-saved registers.
    ColdCall {
        function: u64,
        arg: V,
    },
    /// Returns an integer.
    Return {
        v: Src,
    },
    Label(Label),
    Jump(Label),
    /// Branches if the comparison is true.
    Branch {
        cc: Cc,
        width: Width,
        a: V,
        b: Src,
        to: Label,
    },
    /// Branches if any bit is set in both vectors (`none`: if no bit is).
    BranchAny {
        a: V,
        b: V,
        none: bool,
        to: Label,
    },
    /// Jumps to the `index`-th label, or to the last one if the index is too large.
    Table {
        index: V,
        to: Vec<Label>,
    },
    /// A constant vector, by its number in the function.
    VecConst {
        d: V,
        constant: u32,
    },
    /// Loads an unaligned vector. `foldable`: until the last use of `d`, this memory and `from.base` are not
    /// written, so that the load may be folded into its uses (rule 4 of [`verify()`](crate::verify())).
    VecLoad {
        d: V,
        from: Mem,
        foldable: bool,
    },
    /// Stores an unaligned vector.
    VecStore {
        to: Mem,
        v: V,
    },
    /// Stores a vector past the caches (a non-temporal store), in no order with other stores; the address
    /// must be a multiple of 32.
    VecStream {
        to: Mem,
        v: V,
    },
    /// Broadcasts 32 bits of memory to all elements.
    SplatLoad {
        d: V,
        from: Mem,
    },
    /// `code(d, b[, imm])`, e.g. `VEX_Vmovsldup_ymm_ymmm256`, `VEX_Vpermq_ymm_ymmm256_imm8`,
    /// `VEX_Vpbroadcastd_ymm_xmmm32` or `VEX_Vcvtdq2ps_ymm_ymmm256`. `b` may become a memory operand, of the
    /// size that the code specifies.
    Rm {
        code: Code,
        d: V,
        b: V,
        imm: Option<u8>,
    },
    /// `code(d, a, b[, imm])`, e.g. `VEX_Vaddps_ymm_ymm_ymmm256`; `b` may become a memory operand.
    Rvm {
        code: Code,
        d: V,
        a: V,
        b: V,
        imm: Option<u8>,
    },
    /// `d = a * b + c`, by a fused multiply-add, e.g. `VEX_Vfmadd231ps_ymm_ymm_ymmm256`. The form (231, 213
    /// or 132) depends on which operand is in the result's register and which one is in memory.
    Fma {
        wide: bool,
        d: V,
        a: V,
        b: V,
        c: V,
    },
    /// Selects by the highest bit of each 32-bit (wide: 64-bit) element of the mask: `b`, else `a`.
    Blend {
        wide: bool,
        d: V,
        a: V,
        b: V,
        mask: V,
    },
    /// Moves the upper half of `b` to the lower half of `d`.
    UpperHalf {
        d: V,
        b: V,
    },
    /// Broadcasts an integer to all elements of 32 bits (wide: 64 bits).
    Splat {
        wide: bool,
        d: V,
        a: V,
    },
    /// The low 32 bits of a vector as an integer.
    LowInt {
        d: V,
        a: V,
    },
    /// The highest bits of the eight 32-bit elements as an integer.
    SignBits {
        d: V,
        a: V,
    },
    /// Loads 16 bytes at `low` as the lower half, and 16 bytes at `high` as the upper half.
    LoadHalves {
        d: V,
        low: Mem,
        high: Mem,
    },
    /// Stores the halves, likewise.
    StoreHalves {
        v: V,
        low: Mem,
        high: Mem,
    },
    /// Loads 32 bits of memory for each element, at its signed offset.
    Gather {
        d: V,
        from: Mem,
        offsets: V,
    },
    /// Prefetches memory into the second-level cache. Any address is allowed.
    Prefetch {
        from: Mem,
    },
    /// Loads MXCSR, the float control register of x86-64, from memory: the rounding control, and DAZ, under which float
    /// operations read denormals as zeros. On aarch64, these are FPCR.RMode and FZ. Under DAZ, a result that is denormal
    /// after rounding is kept or made zero, as the host does; whoever needs its bits flushes it. A conversion to f16 to
    /// nearest requires that the rounding control is to nearest. Other bits must be those of the default, 0x1f80.
    LoadMxcsr {
        from: Mem,
    },
}
