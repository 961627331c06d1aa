//! The offset of `ds_swizzle_b32`, a lane permutation pattern (ISA manuals, *DS_SWIZZLE_B32*).

use super::error::{AsmError, Span};
use super::operand::{ArgValue, Call};
use crate::dialect::SWIZZLE_FFT_AND_ROTATE;
use wavesim_isa::arch::Arch;

const QUAD: u16 = 0x8000;

/// The modes of patterns above QUAD_PERM, which fewer processors have: butterflies, and rotations.
const FFT: u16 = 0xe000;
const ROTATE: u16 = 0xc000;

/// Prints a pattern in LLVM's syntax; a number if it is not a pattern.
pub fn print(value: u16, arch: Arch) -> String {
    if value & 0xff00 == QUAD {
        let lane = |n: u16| value >> (2 * n) & 3;
        return format!("swizzle(QUAD_PERM,{},{},{},{})", lane(0), lane(1), lane(2), lane(3));
    }
    if SWIZZLE_FFT_AND_ROTATE.has(arch) && value >= FFT {
        return format!("swizzle(FFT,{})", value & 31);
    }
    if SWIZZLE_FFT_AND_ROTATE.has(arch) && value >= ROTATE {
        return format!("swizzle(ROTATE,{},{})", value >> 10 & 1, value >> 5 & 31);
    }
    if value & QUAD != 0 {
        return value.to_string();
    }
    let (and, or, xor) = (value & 31, value >> 5 & 31, value >> 10 & 31);
    let group = 32 - and;
    if and == 31 && or == 0 && xor.count_ones() == 1 {
        format!("swizzle(SWAP,{xor})")
    } else if and == 31 && or == 0 && xor > 0 && (xor + 1).is_power_of_two() {
        format!("swizzle(REVERSE,{})", xor + 1)
    } else if group > 1 && group.is_power_of_two() && or < group && xor == 0 {
        format!("swizzle(BROADCAST,{group},{or})")
    } else {
        let (zeros, ones) = (or ^ xor, (and | or) ^ xor);
        let bits: String = (0..5)
            .rev()
            .map(|at| match (zeros >> at & 1, ones >> at & 1) {
                (0, 0) => '0',
                (1, 1) => '1',
                (0, _) => 'p',
                _ => 'i',
            })
            .collect();
        format!("swizzle(BITMASK_PERM,\"{bits}\")")
    }
}

/// Parses `swizzle(…)` of DS_SWIZZLE_B32 to the 16-bit offset; an error if the mode or the arguments are
/// invalid.
pub fn parse(call: &Call, span: Span, arch: Arch) -> Result<u16, AsmError> {
    let wrong = |what: &str| AsmError::new(span, format!("swizzle() takes {what}"));
    let int = |at: usize| match call.args.get(at).map(|a| &a.value) {
        Some(ArgValue::Int(v)) => u16::try_from(*v).ok(),
        _ => None,
    };
    let word = |at: usize| match call.args.get(at).map(|a| &a.value) {
        Some(ArgValue::Word(w)) => *w,
        _ => "",
    };
    match (word(0), call.args.len()) {
        ("QUAD_PERM", 5) => {
            let mut out = QUAD;
            for at in 0..4 {
                let lane = int(at + 1).filter(|l| *l < 4).ok_or_else(|| wrong("lanes from 0 to 3"))?;
                out |= lane << (2 * at);
            }
            Ok(out)
        }
        ("BROADCAST", 3) => {
            let size = |n: &u16| (2..=32).contains(n) && n.is_power_of_two();
            let group = int(1).filter(size).ok_or_else(|| wrong("a group of 2, 4, 8, 16 or 32 lanes"))?;
            let lane = int(2).filter(|l| *l < group).ok_or_else(|| wrong("a lane of the group"))?;
            Ok((32 - group) | lane << 5)
        }
        ("SWAP", 2) => {
            let size = |n: &u16| (1..=16).contains(n) && n.is_power_of_two();
            let group = int(1).filter(size).ok_or_else(|| wrong("a group of 1, 2, 4, 8 or 16 lanes"))?;
            Ok(31 | group << 10)
        }
        ("REVERSE", 2) => {
            let size = |n: &u16| (2..=32).contains(n) && n.is_power_of_two();
            let group = int(1).filter(size).ok_or_else(|| wrong("a group of 2, 4, 8, 16 or 32 lanes"))?;
            Ok(31 | (group - 1) << 10)
        }
        ("FFT", 2) if SWIZZLE_FFT_AND_ROTATE.has(arch) => {
            Ok(FFT | int(1).filter(|n| *n < 32).ok_or_else(|| wrong("a number from 0 to 31"))?)
        }
        ("ROTATE", 3) if SWIZZLE_FFT_AND_ROTATE.has(arch) => {
            let left = int(1).filter(|n| *n < 2).ok_or_else(|| wrong("a direction, 0 or 1"))?;
            let lanes = int(2).filter(|n| *n < 32).ok_or_else(|| wrong("a rotation by 0 to 31 lanes"))?;
            Ok(ROTATE | left << 10 | lanes << 5)
        }
        ("BITMASK_PERM", 2) => {
            let mask = match call.args[1].value {
                ArgValue::Text(mask) if mask.len() == 5 => mask,
                _ => return Err(wrong("a mask of five characters in quotes, as in \"ppii0\"")),
            };
            let (mut and, mut or, mut xor) = (0, 0, 0);
            for (at, c) in mask.bytes().enumerate() {
                let bit = 1 << (4 - at);
                match c {
                    b'0' => {}
                    b'1' => or |= bit,
                    b'p' => and |= bit,
                    b'i' => {
                        and |= bit;
                        xor |= bit;
                    }
                    _ => return Err(wrong("a mask of the letters 0, 1, p and i")),
                }
            }
            Ok(and | or << 5 | xor << 10)
        }
        _ => Err(wrong("QUAD_PERM, BITMASK_PERM, BROADCAST, SWAP or REVERSE with its numbers")),
    }
}
