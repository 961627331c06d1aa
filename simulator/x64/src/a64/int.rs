//! Selects host instructions for integer operations.

use crate::a64::assembler::{Access, Assembler, LOAD_W, LOAD_X, STORE_X};
use crate::a64::encode::{WIDE, bit_mask, d, m, n};
use crate::a64::reg::{T1, X15, X16, X17, ZR};
use crate::a64::rows::Row;
use crate::allocate::Location;
use crate::inst::{Cc, Inst, Int1, Int2, Size, Src, V, Width};

/// Returns the bit of the width.
pub fn wide(width: Width) -> u32 {
    if width == Width::W64 { WIDE } else { 0 }
}

/// Returns the host's condition.
pub fn condition_field(cc: Cc) -> u32 {
    match cc {
        Cc::Eq => 0,
        Cc::Ne => 1,
        Cc::GeU => 2,
        Cc::LtU => 3,
        Cc::GtU => 8,
        Cc::LeU => 9,
        Cc::GeS => 10,
        Cc::LtS => 11,
        Cc::GtS => 12,
        Cc::LeS => 13,
    }
}

pub fn inverse(cc: Cc) -> Cc {
    match cc {
        Cc::Eq => Cc::Ne,
        Cc::Ne => Cc::Eq,
        Cc::LtS => Cc::GeS,
        Cc::LeS => Cc::GtS,
        Cc::GtS => Cc::LeS,
        Cc::GeS => Cc::LtS,
        Cc::LtU => Cc::GeU,
        Cc::LeU => Cc::GtU,
        Cc::GtU => Cc::LeU,
        Cc::GeU => Cc::LtU,
    }
}

impl Assembler<'_> {
    /// Returns the constant that an operand is, extended to 64 bits from the width.
    fn constant(&self, src: Src, width: Width) -> Option<i64> {
        let bits = match src {
            Src::Imm(imm) => i64::from(imm),
            Src::Value(v) => match self.location(v) {
                Location::Const(bits) => bits as i64,
                _ => return None,
            },
        };
        Some(if width == Width::W32 { (bits as i32).into() } else { bits })
    }

    /// Returns the register of a second operand.
    fn second(&mut self, src: Src) -> u8 {
        match src {
            Src::Imm(0) => ZR,
            Src::Imm(imm) => {
                self.out.load_imm(X16, imm as i64 as u64);
                X16
            }
            Src::Value(v) => self.int(v, X16),
        }
    }

    /// Emits a comparison. Returns the condition that is true if the comparison is.
    pub fn condition(&mut self, cc: Cc, width: Width, a: V, b: Src) -> Cc {
        if let Some((v, held)) = self.flags.take() {
            debug_assert!(v == a);
            return if cc == Cc::Ne { held } else { inverse(held) };
        }
        let first = self.int(a, X15);
        match self.constant(b, width) {
            Some(imm @ 0..4096) => self.out.emit(Row::CMP_IMM, wide(width) | n(first) | (imm as u32) << 10),
            Some(imm @ -4095..0) => self.out.emit(Row::CMN_IMM, wide(width) | n(first) | (-imm as u32) << 10),
            _ => {
                let second = self.second(b);
                self.out.emit(Row::CMP, wide(width) | n(first) | m(second));
            }
        }
        cc
    }

    /// Emits an integer instruction. Returns false if it is not one.
    pub fn int_inst(&mut self, i: usize, inst: &Inst) -> bool {
        match *inst {
            Inst::Const { d, bits } => {
                if let Location::Register(_) | Location::Slot(_) = self.location(d) {
                    let to = self.int_target(d);
                    self.out.load_imm(to, bits);
                    self.finish(d, to);
                }
            }
            Inst::Move { d, a } if !self.is_vector(d) => {
                let to = self.int_target(d);
                let from = self.int(a, to);
                self.finish(d, from);
            }
            Inst::Int2 { op, width, d, a, b } => self.int2(op, width, d, a, b),
            Inst::Int1 { op, width, d, a } => self.int1(op, width, d, a),
            Inst::Compare { cc, width, d, a, b } => {
                let cc = self.condition(cc, width, a, b);
                if self.code.in_flags.binary_search(&i).is_ok() {
                    self.flags = Some((d, cc));
                } else {
                    let to = self.int_target(d);
                    let otherwise = condition_field(inverse(cc)) << 12;
                    self.out.emit(Row::CSINC, d_zero(to) | otherwise);
                    self.finish(d, to);
                }
            }
            Inst::Select { d, cond, a, b } => {
                let cc = self.condition(Cc::Ne, Width::W64, cond, Src::Imm(0));
                // The flags must be preserved from here on.
                let (a, b) = (self.int(a, X15), self.int(b, X16));
                let to = self.int_target(d);
                self.out.emit(Row::CSEL, WIDE | self::d(to) | n(a) | m(b) | condition_field(cc) << 12);
                self.finish(d, to);
            }
            Inst::Load { size, d, from } => {
                let to = self.int_target(d);
                let base = self.base(from);
                let access = match size {
                    Size::B1 => Access { scaled: Row::LDRB, unscaled: Row::LDURB, size: 1 },
                    Size::B2 => Access { scaled: Row::LDRH, unscaled: Row::LDURH, size: 2 },
                    Size::B4 => LOAD_W,
                    Size::B8 => LOAD_X,
                };
                self.access(access, to, base, from.disp);
                self.finish(d, to);
            }
            Inst::Store { size, to, v } => {
                let from = match v {
                    Src::Imm(0) => ZR,
                    _ if self.constant(v, Width::W64) == Some(0) => ZR,
                    Src::Imm(imm) => {
                        self.out.load_imm(X15, imm as i64 as u64);
                        X15
                    }
                    Src::Value(v) => self.int(v, X15),
                };
                let base = self.base(to);
                let access = match size {
                    Size::B1 => Access { scaled: Row::STRB, unscaled: Row::STURB, size: 1 },
                    Size::B2 => Access { scaled: Row::STRH, unscaled: Row::STURH, size: 2 },
                    Size::B4 => Access { scaled: Row::STR_W, unscaled: Row::STUR_W, size: 4 },
                    Size::B8 => STORE_X,
                };
                self.access(access, from, base, to.disp);
            }
            _ => return false,
        }
        true
    }

    fn int2(&mut self, op: Int2, width: Width, d: V, a: V, b: Src) {
        let to = self.int_target(d);
        let first = self.int(a, X15);
        let constant = self.constant(b, width);
        if !constant.is_some_and(|imm| self.with_constant(op, width, to, first, imm)) {
            let second = self.second(b);
            let row = match op {
                Int2::Add => Row::ADD,
                Int2::Sub => Row::SUB,
                Int2::Mul => Row::MUL,
                Int2::And => Row::AND,
                Int2::Or => Row::ORR,
                Int2::Xor => Row::EOR,
                Int2::Shl => Row::LSL,
                Int2::Shr => Row::LSR,
                Int2::Sar => Row::ASR,
            };
            self.out.emit(row, wide(width) | self::d(to) | n(first) | m(second));
        }
        self.finish(d, to);
    }

    /// Emits an operation whose second operand is an immediate of the host. Returns false if there is none.
    fn with_constant(&mut self, op: Int2, width: Width, to: u8, first: u8, imm: i64) -> bool {
        let is_wide = width == Width::W64;
        let (bits, registers) = (if is_wide { 64 } else { 32 }, wide(width) | d(to) | n(first));
        let same_width = if is_wide { WIDE | 1 << 22 } else { 0 };
        match op {
            Int2::Add | Int2::Sub => {
                let sum = if op == Int2::Add { imm } else { imm.wrapping_neg() };
                let row = if sum < 0 { Row::SUB_IMM } else { Row::ADD_IMM };
                match sum.unsigned_abs() {
                    size @ 0..4096 => self.out.emit(row, registers | (size as u32) << 10),
                    size if size < 1 << 24 && size.is_multiple_of(4096) => {
                        self.out.emit(row, registers | (size as u32 >> 12) << 10 | 1 << 22)
                    }
                    _ => return false,
                }
            }
            Int2::And | Int2::Or | Int2::Xor => {
                let row = match op {
                    Int2::And => Row::AND_IMM,
                    Int2::Or => Row::ORR_IMM,
                    _ => Row::EOR_IMM,
                };
                match bit_mask(imm as u64, is_wide) {
                    Some(mask) => self.out.emit(row, registers | mask),
                    None => return false,
                }
            }
            Int2::Mul => return false,
            Int2::Shl => {
                let count = imm as u32 & (bits - 1);
                let fields = ((bits - count) % bits) << 16 | (bits - 1 - count) << 10;
                self.out.emit(Row::UBFM, registers | same_width | fields);
            }
            Int2::Shr | Int2::Sar => {
                let count = imm as u32 & (bits - 1);
                let row = if op == Int2::Shr { Row::UBFM } else { Row::SBFM };
                self.out.emit(row, registers | same_width | count << 16 | (bits - 1) << 10);
            }
        }
        true
    }

    fn int1(&mut self, op: Int1, width: Width, d: V, a: V) {
        let to = self.int_target(d);
        let from = self.int(a, X15);
        let wide = wide(width);
        let both = wide | self::d(to) | n(from);
        match op {
            Int1::Not => self.out.emit(Row::MVN, wide | self::d(to) | m(from)),
            Int1::Neg => self.out.emit(Row::NEG, wide | self::d(to) | m(from)),
            Int1::SwapBytes if width == Width::W32 => self.out.dn(Row::REV_W, to, from),
            Int1::SwapBytes => self.out.dn(Row::REV_X, to, from),
            Int1::LeadingZeros => self.out.emit(Row::CLZ, both),
            Int1::TrailingZeros => {
                self.out.emit(Row::RBIT, wide | self::d(X17) | n(from));
                self.out.emit(Row::CLZ, wide | self::d(to) | n(X17));
            }
            Int1::CountOnes => {
                let mut from = from;
                if width == Width::W32 {
                    self.out.emit(Row::MOV, self::d(X17) | m(from));
                    from = X17;
                }
                self.out.dn(Row::FMOV_D_X, T1, from);
                self.out.dn(Row::CNT_8B, T1, T1);
                self.out.dn(Row::ADDV_8B, T1, T1);
                self.out.dn(Row::FMOV_W_S, to, T1);
            }
            Int1::SignExtend32 if width == Width::W64 => {
                self.out.emit(Row::SBFM, WIDE | 1 << 22 | self::d(to) | n(from) | 31 << 10)
            }
            Int1::SignExtend32 | Int1::ZeroExtend32 => self.out.emit(Row::MOV, self::d(to) | m(from)),
        }
        self.finish(d, to);
    }
}

/// Returns the fields of a result and of two sources that are zero.
fn d_zero(to: u8) -> u32 {
    d(to) | n(ZR) | m(ZR)
}
