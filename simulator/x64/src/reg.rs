//! The registers of the host, and what each is used for. Registers are identified by their numbers in encodings.

use crate::target::{Architecture, Target};
use iced_x86::Register;

/// A register class of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RegisterKind {
    R8,
    R16,
    R32,
    R64,
    Xmm,
    Ymm,
}

/// Scratch registers, which hold no values.
pub(crate) const RAX: u8 = 0;
pub(crate) const RCX: u8 = 1;
pub(crate) const X14: u8 = 14;
pub(crate) const X15: u8 = 15;
/// The stack pointer.
pub(crate) const RSP: u8 = 4;

/// Callee-saved general registers (System V ABI for x86-64, *Registers*).
pub(crate) const CALLEE_SAVED: [u8; 6] = [3, 5, 12, 13, 14, 15];
/// Caller-saved general registers that hold values.
pub(crate) const CALLER_SAVED: [u8; 7] = [2, 6, 7, 8, 9, 10, 11];
/// General registers that hold values, caller-saved ones first: all but RSP, and RAX and RCX, which are
/// scratch registers.
pub(crate) const INTS: [u8; 13] = [2, 6, 7, 8, 9, 10, 11, 3, 5, 12, 13, 14, 15];
/// Vector registers that hold values: the others are scratch registers. All are caller-saved.
pub(crate) const VECS: [u8; 14] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13];
/// The general registers of arguments (System V ABI for x86-64, *Parameter Passing*).
pub(crate) const ARGUMENTS: [u8; 6] = [7, 6, 2, 1, 8, 9];

impl RegisterKind {
    /// Returns the register with this number in encodings.
    pub fn register(self, number: u8) -> Register {
        use Register::*;
        let table = match self {
            RegisterKind::R8 => {
                &[AL, CL, DL, BL, SPL, BPL, SIL, DIL, R8L, R9L, R10L, R11L, R12L, R13L, R14L, R15L]
            }
            RegisterKind::R16 => {
                &[AX, CX, DX, BX, SP, BP, SI, DI, R8W, R9W, R10W, R11W, R12W, R13W, R14W, R15W]
            }
            RegisterKind::R32 => {
                &[EAX, ECX, EDX, EBX, ESP, EBP, ESI, EDI, R8D, R9D, R10D, R11D, R12D, R13D, R14D, R15D]
            }
            RegisterKind::R64 => {
                &[RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15]
            }
            RegisterKind::Xmm => &[
                XMM0, XMM1, XMM2, XMM3, XMM4, XMM5, XMM6, XMM7, XMM8, XMM9, XMM10, XMM11, XMM12, XMM13,
                XMM14, XMM15,
            ],
            RegisterKind::Ymm => &[
                YMM0, YMM1, YMM2, YMM3, YMM4, YMM5, YMM6, YMM7, YMM8, YMM9, YMM10, YMM11, YMM12, YMM13,
                YMM14, YMM15,
            ],
        };
        table[number as usize & 15]
    }
}

/// What register allocation must know.
pub(crate) static TARGET: Target = Target {
    architecture: Architecture::X64,
    ints: &INTS,
    callee_saved: &CALLEE_SAVED,
    caller_saved: &CALLER_SAVED,
    arguments: &ARGUMENTS,
    vecs: &VECS,
    separates_results: false,
    int_name: |number| format!("{:?}", RegisterKind::R64.register(number)).to_lowercase(),
    vec_name: |number| format!("{:?}", RegisterKind::Ymm.register(number)).to_lowercase(),
    shared_name: "ymm14",
};
