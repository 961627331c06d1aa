//! Float results that the host computes in another way than x86-64, and the code that replaces them.
//!
//! A result that is a NaN on the host may be another NaN on x86-64, whose rule is: the first NaN of the operands, made
//! quiet, or without one the default NaN, which is negative. On aarch64, a signalling NaN precedes a quiet one, the
//! addend of a fused sum its factors, and the default NaN is positive.
//!
//! Where denormals are flushed (FPCR.FZ), the host makes a result zero that is denormal before it is rounded, on x86-64
//! with DAZ a number is kept that rounds to the least normal one.
//!
//! Code tests each result for these cases with a few instructions, and jumps out of line, where flags of FPSR tell whether
//! the result may differ. If so, [`repair`] computes it.

use crate::a64::assembler::Assembler;
use crate::a64::encode::{a, d, m, n};
use crate::a64::pending::{Float, Operand, Repair};
use crate::a64::reg::{LR, PAIR_T, SP, T0, T1, X15, X16, X17, ZR, high, low};
use crate::a64::rows::Row;

/// The bits of FPSR: an invalid operation, an underflow.
const INVALID: u64 = 1;
const UNDERFLOW: u64 = 8;
/// FPCR.FZ.
const FLUSH: u32 = 24;
/// The condition that a comparison was unordered.
const UNORDERED: u32 = 6;

/// The bytes that [`Assembler::emit_repairs`] saves registers in: general registers, FPCR, and v0 to v29.
const SAVED_INTS: u32 = 8 * 18;
const SAVED: u32 = SAVED_INTS + 16 * 30;
const OPERANDS: i64 = 3 * 32;

impl Assembler<'_> {
    /// Jumps out of line if a result may differ from that of x86-64. The operands must still be in their pairs.
    pub fn guard(&mut self, float: Float, wide: bool, operands: [Operand; 3], result: u8) {
        let entry = if self.flushes && float.underflows() {
            // Lanes that are zero or NaN. An f32 result of two is in T0 itself.
            let (lo, hi) = (low(result), high(result));
            let row = if wide && float != Float::Narrow { Row::FACGT_2D } else { Row::FACGT_4S };
            let scratch = if float == Float::Narrow { T1 } else { T0 };
            self.splat_constant(T1, 0);
            if float == Float::Narrow {
                self.out.dnm(row, T1, lo, T1);
            } else {
                self.out.dnm(row, T0, lo, T1);
                self.out.dnm(row, T1, hi, T1);
                self.out.dnm(Row::VAND, T0, T0, T1);
            }
            self.out.dn(Row::UMINV_4S, scratch, scratch);
            self.out.dn(Row::FMOV_W_S, X15, scratch);
            self.out.forward(Row::CBZ, d(X15))
        } else if float == Float::Narrow {
            // The conversion of a NaN is the same.
            return;
        } else {
            self.compare_nans(wide, result);
            self.out.forward(Row::B_COND, UNORDERED)
        };
        let back = self.out.position();
        self.repairs.push(Repair { entry, back, float, wide, operands, result });
    }

    /// Sets the flags to unordered if a lane is NaN.
    fn compare_nans(&mut self, wide: bool, pair: u8) {
        let (row, across, compare) = match wide {
            false => (Row::FMAX_4S, Row::FMAXV_4S, Row::FCMP_S),
            true => (Row::FMAX_2D, Row::FMAXP_2D, Row::FCMP_D),
        };
        self.out.dnm(row, T0, low(pair), high(pair));
        self.out.dn(across, T0, T0);
        self.out.emit(compare, n(T0) | m(T0));
    }

    /// Emits the code out of line.
    pub fn emit_repairs(&mut self) {
        let mut calls = Vec::new();
        for Repair { entry, back, float, wide, operands, result } in std::mem::take(&mut self.repairs) {
            self.out.arrive(entry);
            let mut certain = None;
            if float.reorders_nans() && self.flushes {
                self.compare_nans(wide, result);
                certain = Some(self.out.forward(Row::B_COND, UNORDERED));
            }
            if !float.reorders_nans() || self.flushes {
                self.out.emit(Row::MRS_FPSR, d(X15));
                self.out.load_imm(X16, if self.flushes { INVALID | UNDERFLOW } else { INVALID });
                self.out.emit(Row::TST, n(X15) | m(X16));
                self.out.back(Row::B_COND, 0, back);
            }
            if let Some(certain) = certain {
                self.out.arrive(certain);
            }
            let pairs = operands.map(|operand| match operand {
                Operand::Pair(pair) => pair,
                Operand::Reloaded(v) => self.vec(v, PAIR_T),
            });
            self.out.add_imm(SP, SP, -OPERANDS);
            for (at, pair) in (0..).step_by(32).zip(pairs) {
                self.access_pair(Row::STP_Q, pair, SP, at);
            }
            self.out.load_imm(X16, float as u64 | u64::from(wide) << 8);
            calls.push(self.out.forward(Row::BL, 0));
            self.access_pair(Row::LDP_Q, result, SP, 0);
            self.out.add_imm(SP, SP, OPERANDS);
            self.out.back(Row::B, 0, back);
        }
        if calls.is_empty() {
            return;
        }
        calls.into_iter().for_each(|call| self.out.arrive(call));
        self.call_repair();
    }

    /// Emits a function that calls [`repair`] for the operands on the stack, and preserves all registers.
    fn call_repair(&mut self) {
        let fpcr_at = 8 * 16;
        self.out.add_imm(SP, SP, -i64::from(SAVED));
        self.repair_registers(Row::STP_X, Row::STP_Q);
        self.out.emit(Row::STR_X, d(LR) | n(SP) | 15 << 10);
        self.out.emit(Row::MRS_FPCR, d(X15));
        self.out.emit(Row::STR_X, d(X15) | n(SP) | (fpcr_at / 8) << 10);
        self.out.add_imm(0, SP, SAVED.into());
        self.out.mov(1, X16);
        self.out.ubfx(2, X15, FLUSH, 1);
        self.out.bfi(X15, ZR, FLUSH, 1);
        self.out.emit(Row::MSR_FPCR, d(X15));
        self.out.load_imm(X17, repair as *const () as u64);
        self.out.emit(Row::BLR, n(X17));
        self.out.emit(Row::LDR_X, d(X15) | n(SP) | (fpcr_at / 8) << 10);
        self.out.emit(Row::MSR_FPCR, d(X15));
        // What is found later has happened since.
        self.out.emit(Row::MSR_FPSR, d(ZR));
        self.out.emit(Row::LDR_X, d(LR) | n(SP) | 15 << 10);
        self.repair_registers(Row::LDP_X, Row::LDP_Q);
        self.out.add_imm(SP, SP, SAVED.into());
        self.out.emit(Row::RET, 0);
    }

    fn repair_registers(&mut self, ints: Row, vectors: Row) {
        for first in (0..14).step_by(2) {
            self.out.emit(ints, d(first) | a(first + 1) | n(SP) | u32::from(first) << 15);
        }
        let x14 = if ints == Row::STP_X { Row::STR_X } else { Row::LDR_X };
        self.out.emit(x14, d(14) | n(SP) | 14 << 10);
        for first in (0..30).step_by(2) {
            let at = SAVED_INTS / 16 + u32::from(first);
            self.out.emit(vectors, d(first) | a(first + 1) | n(SP) | at << 15);
        }
    }
}

/// Computes an operation on eight lanes as x86-64 does. Writes the result in place of the first operand.
///
/// # Safety
/// `operands` must be valid and not be used by anyone else. The host must keep denormals.
unsafe extern "C" fn repair(operands: *mut [[u32; 8]; 3], operation: u32, flush: u32) {
    // SAFETY: the caller guarantees that the operands are valid and unique.
    let operands = unsafe { &mut *operands };
    let float = Float::ALL[operation as usize & 7];
    operands[0] = result(float, operation >> 8 != 0, *operands, flush != 0);
}

/// Returns the result of an operation of x86-64 on vectors. If `flush`, denormals are zeros.
pub fn result(float: Float, wide: bool, operands: [[u32; 8]; 3], flush: bool) -> [u32; 8] {
    let double =
        |vector: [u32; 8], lane: usize| u64::from(vector[2 * lane]) | u64::from(vector[2 * lane + 1]) << 32;
    match (float, wide) {
        (Float::Narrow, _) => std::array::from_fn(|lane| match lane {
            0..4 => narrow(double(operands[0], lane), flush),
            _ => 0,
        }),
        (_, false) => std::array::from_fn(|lane| single(float, operands.map(|of| of[lane]), flush)),
        (_, true) => std::array::from_fn(|word| {
            let result = wide_lane(float, operands.map(|of| double(of, word / 2)), flush);
            (result >> (32 * (word & 1))) as u32
        }),
    }
}

macro_rules! lane {
    ($name:ident $bits:ident $float:ident $quiet:literal $infinity:literal) => {
        fn $name(float: Float, operands: [$bits; 3], flush: bool) -> $bits {
            const SIGN: $bits = 1 << ($bits::BITS - 1);
            const LEAST_NORMAL: $bits = $infinity & (!$infinity + 1);
            let flushed = |bits: $bits| {
                if flush && bits & !SIGN < LEAST_NORMAL { bits & SIGN } else { bits }
            };
            let operands = operands.map(flushed);
            let count = match float {
                Float::Sqrt | Float::Narrow => 1,
                Float::Fma => 3,
                _ => 2,
            };
            if let Some(nan) = operands[..count].iter().find(|bits| **bits & !SIGN > $infinity) {
                return nan | $quiet;
            }
            let [a, b, c] = operands.map($float::from_bits);
            let result = match float {
                Float::Add => a + b,
                Float::Sub => a - b,
                Float::Mul => a * b,
                Float::Div => a / b,
                Float::Sqrt => a.sqrt(),
                Float::Fma => a.mul_add(b, c),
                Float::Narrow => a,
            };
            if result.is_nan() { SIGN | $infinity | $quiet } else { flushed(result.to_bits()) }
        }
    };
}

lane!(single u32 f32 0x0040_0000 0x7f80_0000);
lane!(wide_lane u64 f64 0x0008_0000_0000_0000 0x7ff0_0000_0000_0000);

fn narrow(bits: u64, flush: bool) -> u32 {
    let value = f64::from_bits(bits);
    let sign = (bits >> 32) as u32 & 0x8000_0000;
    let result = (value as f32).to_bits();
    if value.is_nan() {
        sign | 0x7fc0_0000 | (bits >> 29) as u32 & 0x003f_ffff
    } else if flush && result & 0x7fff_ffff < 0x0080_0000 {
        sign
    } else {
        result
    }
}
