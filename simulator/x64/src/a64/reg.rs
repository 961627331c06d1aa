//! The registers of aarch64, and what each is used for.

use crate::target::{Architecture, Target};

/// Scratch registers, which hold no values: results and first operands, second operands, and addresses.
pub const X15: u8 = 15;
pub const X16: u8 = 16;
pub const X17: u8 = 17;
/// The link register.
pub const LR: u8 = 30;
/// The stack pointer, where an instruction's operand can be it.
pub const SP: u8 = 31;
/// Zero, where it cannot.
pub const ZR: u8 = 31;

/// Pairs of vector registers that are scratch registers: for operands `a`, `b` (and vectors that are loaded once for
/// several instructions), and for results.
pub const PAIR_A: u8 = 12;
pub const PAIR_B: u8 = 13;
pub const PAIR_D: u8 = 14;
/// Single scratch registers of vectors.
pub const T0: u8 = 30;
pub const T1: u8 = 31;
/// The pair of these.
pub const PAIR_T: u8 = T0 / 2;

/// Callee-saved general registers (AAPCS64, *General-purpose Registers*).
pub const CALLEE_SAVED: [u8; 10] = [19, 20, 21, 22, 23, 24, 25, 26, 27, 28];
/// Caller-saved general registers that hold values. The platform owns x18.
pub const CALLER_SAVED: [u8; 15] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];
const INTS: [u8; 25] =
    [8, 9, 10, 11, 12, 13, 14, 7, 6, 5, 4, 3, 2, 1, 0, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28];
/// The general registers of arguments (AAPCS64, *Parameter passing*).
pub const ARGUMENTS: [u8; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
/// Pairs that hold values. Those whose low halves the function must preserve, v8 to v15, come last.
pub const VECS: [u8; 12] = [0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7];
/// The pairs of v8 to v15.
pub const PRESERVED_PAIRS: std::ops::Range<u8> = 4..8;

/// What register allocation must know.
pub static TARGET: Target = Target {
    architecture: Architecture::A64,
    ints: &INTS,
    callee_saved: &CALLEE_SAVED,
    caller_saved: &CALLER_SAVED,
    arguments: &ARGUMENTS,
    vecs: &VECS,
    separates_results: true,
    int_name: |number| format!("x{number}"),
    vec_name: |pair| format!("v{}:{}", 2 * pair, 2 * pair + 1),
    shared_name: "v26:27",
};

/// Returns the register with the lower half of a pair.
pub fn low(pair: u8) -> u8 {
    2 * pair
}

/// Returns the register with the upper half of a pair.
pub fn high(pair: u8) -> u8 {
    2 * pair + 1
}
