//! Instructions on values. Scalar ones are close to the host's, vector ones are the host's, by their codes.

use crate::shape::Code;

/// A value: an integer of 64 bits, or a vector of 256 bits. It may be assigned more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct V(pub(crate) u32);

/// A place in a function that jumps lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(pub(crate) u32);

/// Which registers of the host hold a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// General registers.
    Int,
    /// Vector registers, YMM.
    Vec,
}

/// How many bits an operation on integers has. Results of 32 bits are zero-extended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    W32,
    W64,
}

/// A source of an operation on integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Src {
    Value(V),
    /// Sign-extended to the width.
    Imm(i32),
}

/// An operation on two integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Int2 {
    Add,
    Sub,
    Mul,
    And,
    Or,
    Xor,
    /// By the count modulo the width.
    Shl,
    /// Likewise.
    Shr,
    /// Likewise.
    Sar,
}

/// An operation on one integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Int1 {
    Not,
    Neg,
    CountOnes,
    /// The width for zero.
    LeadingZeros,
    /// The width for zero.
    TrailingZeros,
    SwapBytes,
    /// The low 32 bits, sign-extended.
    SignExtend32,
    /// The low 32 bits, zero-extended.
    ZeroExtend32,
}

/// A comparison of integers.
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

/// The size of what is loaded or stored. Loads zero-extend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    B1,
    B2,
    B4,
    B8,
}

/// A place in memory: the integer, and this many bytes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mem {
    pub base: V,
    pub disp: i32,
}

/// One instruction.
#[derive(Debug, Clone, PartialEq)]
pub enum Inst {
    /// A known integer.
    Const {
        d: V,
        bits: u64,
    },
    /// Another value of the same class.
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
    /// 1 if the comparison holds, else 0.
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
    /// Calls a function of this address by the C convention of System V, with integers. All of its arguments are live up to it.
    Call {
        function: u64,
        args: Vec<Src>,
        d: Option<V>,
    },
    /// As a call with one argument and no result, but it is rarely run: registers are saved around it, so that values live in them as if it
    /// were not there.
    Rare {
        function: u64,
        arg: V,
    },
    /// Returns an integer.
    Return {
        v: Src,
    },
    Label(Label),
    Jump(Label),
    /// Jumps if the comparison holds, else goes on.
    Branch {
        cc: Cc,
        width: Width,
        a: V,
        b: Src,
        to: Label,
    },
    /// Jumps if a bit is set in both vectors (`none`: in none), else goes on.
    BranchAny {
        a: V,
        b: V,
        none: bool,
        to: Label,
    },
    /// Jumps to the `index`-th label; the last, if there are not so many.
    Table {
        index: V,
        to: Vec<Label>,
    },
    /// A known vector: number of a constant of the function.
    VecConst {
        d: V,
        constant: u32,
    },
    /// A vector from memory, not aligned. `stays`: up to the last use of `d`, memory there is not written, and `from.base` keeps its value, so
    /// that it may be loaded where it is used.
    VecLoad {
        d: V,
        from: Mem,
        stays: bool,
    },
    VecStore {
        to: Mem,
        v: V,
    },
    /// 32 bits of memory in all elements.
    SplatLoad {
        d: V,
        from: Mem,
    },
    /// `code(d, b[, imm])`, as `VEX_Vmovsldup_ymm_ymmm256`, `VEX_Vpermq_ymm_ymmm256_imm8`, `VEX_Vpbroadcastd_ymm_xmmm32`, `VEX_Vcvtdq2ps_ymm_ymmm256`. `b` may become a memory
    /// operand, of which as many bytes are read as the code says.
    Rm {
        code: Code,
        d: V,
        b: V,
        imm: Option<u8>,
    },
    /// `code(d, a, b[, imm])`, as `VEX_Vaddps_ymm_ymm_ymmm256`; `b` may become a memory operand.
    Rvm {
        code: Code,
        d: V,
        a: V,
        b: V,
        imm: Option<u8>,
    },
    /// `code(d, a, b)` with `d` as the third source, as `VEX_Vfmadd231ps_ymm_ymm_ymmm256`: `d = a * b + c`, where `c` is moved to `d` before.
    /// One of the sources may become a memory operand; other forms of the code are chosen for that (213, 132).
    Fma {
        wide: bool,
        d: V,
        a: V,
        b: V,
        c: V,
    },
    /// By the highest bit of each 32-bit (wide: 64-bit) element of the mask: `b`, else `a`.
    Blend {
        wide: bool,
        d: V,
        a: V,
        b: V,
        mask: V,
    },
    /// The upper half of `b`, in the lower half of `d`.
    UpperHalf {
        d: V,
        b: V,
    },
    /// The low element in all elements, from an integer: 32 bits, or wide: 64.
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
    /// 16 bytes of memory at `low` as the lower half, and 16 at `high` as the upper half.
    LoadHalves {
        d: V,
        low: Mem,
        high: Mem,
    },
    /// The reverse.
    StoreHalves {
        v: V,
        low: Mem,
        high: Mem,
    },
    /// 32 bits of memory for each element, at its offset, which is signed.
    Gather {
        d: V,
        from: Mem,
        offsets: V,
    },
    /// Has the host load what is there into its second-level cache. Any address will do.
    Prefetch {
        from: Mem,
    },
    /// The host's float control register, MXCSR, from memory.
    FloatControl {
        from: Mem,
    },
}
