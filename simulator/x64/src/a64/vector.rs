//! Selects host instructions for vector operations.

use crate::a64::assembler::{Access, Assembler, LOAD_Q, LOAD_S, STORE_Q};
use crate::a64::encode::{WIDE, d, m, n};
use crate::a64::int::condition_field;
use crate::a64::reg::{PAIR_A, PAIR_B, PAIR_D, T0, T1, X15, X16, X17, high, low};
use crate::a64::rows::Row;
use crate::allocate::Location;
use crate::code::Code;
use crate::error::CompileError;
use crate::inst::{Cc, Inst, Mem, V};

/// How two operands are used in an instruction on each half.
enum Each {
    /// In their order.
    Same(Row),
    Exchanged(Row),
}

fn each_half(code: Code) -> Option<Each> {
    use Each::{Exchanged, Same};
    Some(match code {
        Code::VEX_Vpaddb_ymm_ymm_ymmm256 => Same(Row::ADD_16B),
        Code::VEX_Vpaddd_ymm_ymm_ymmm256 => Same(Row::ADD_4S),
        Code::VEX_Vpaddq_ymm_ymm_ymmm256 => Same(Row::ADD_2D),
        Code::VEX_Vpaddusb_ymm_ymm_ymmm256 => Same(Row::UQADD_16B),
        Code::VEX_Vpsubd_ymm_ymm_ymmm256 => Same(Row::SUB_4S),
        Code::VEX_Vpsubq_ymm_ymm_ymmm256 => Same(Row::SUB_2D),
        Code::VEX_Vpand_ymm_ymm_ymmm256 => Same(Row::VAND),
        // The first operand is inverted.
        Code::VEX_Vpandn_ymm_ymm_ymmm256 => Exchanged(Row::VBIC),
        Code::VEX_Vpor_ymm_ymm_ymmm256 => Same(Row::VORR),
        Code::VEX_Vpxor_ymm_ymm_ymmm256 => Same(Row::VEOR),
        Code::VEX_Vpcmpeqb_ymm_ymm_ymmm256 => Same(Row::CMEQ_16B),
        Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256 => Same(Row::CMEQ_4S),
        Code::VEX_Vpcmpeqq_ymm_ymm_ymmm256 => Same(Row::CMEQ_2D),
        Code::VEX_Vpcmpgtb_ymm_ymm_ymmm256 => Same(Row::CMGT_16B),
        Code::VEX_Vpcmpgtd_ymm_ymm_ymmm256 => Same(Row::CMGT_4S),
        Code::VEX_Vpcmpgtq_ymm_ymm_ymmm256 => Same(Row::CMGT_2D),
        Code::VEX_Vpmaxsd_ymm_ymm_ymmm256 => Same(Row::SMAX_4S),
        Code::VEX_Vpmaxud_ymm_ymm_ymmm256 => Same(Row::UMAX_4S),
        Code::VEX_Vpminsd_ymm_ymm_ymmm256 => Same(Row::SMIN_4S),
        Code::VEX_Vpminud_ymm_ymm_ymmm256 => Same(Row::UMIN_4S),
        Code::VEX_Vpmulld_ymm_ymm_ymmm256 => Same(Row::MUL_4S),
        Code::VEX_Vpunpckldq_ymm_ymm_ymmm256 => Same(Row::ZIP1_4S),
        Code::VEX_Vpunpckhdq_ymm_ymm_ymmm256 => Same(Row::ZIP2_4S),
        Code::VEX_Vpunpcklqdq_ymm_ymm_ymmm256 => Same(Row::ZIP1_2D),
        Code::VEX_Vpunpckhqdq_ymm_ymm_ymmm256 => Same(Row::ZIP2_2D),
        _ => return None,
    })
}

impl Assembler<'_> {
    pub fn vec_inst(&mut self, inst: &Inst) {
        match *inst {
            Inst::Move { d, a } => {
                let made = self.vec_target(d);
                let from = self.vec(a, made);
                self.vec_finish(d, from);
            }
            Inst::VecConst { d, constant } => {
                if let Location::Register(_) | Location::Slot(_) = self.location(d) {
                    let made = self.vec_target(d);
                    self.vec_constant(made, constant);
                    self.vec_finish(d, made);
                }
            }
            Inst::VecLoad { d, from, .. } => {
                if let Location::Register(_) | Location::Slot(_) = self.location(d) {
                    let made = self.vec_target(d);
                    let base = self.base(from);
                    self.access_pair(Row::LDP_Q, made, base, from.disp);
                    self.vec_finish(d, made);
                }
            }
            Inst::SplatLoad { d, from } => {
                let made = self.vec_target(d);
                let base = self.base(from);
                self.access(LOAD_S, low(made), base, from.disp);
                self.element_to_all(made, low(made), false);
                self.vec_finish(d, made);
            }
            Inst::VecStore { to, v } => {
                let v = self.vec(v, PAIR_A);
                let base = self.base(to);
                self.access_pair(Row::STP_Q, v, base, to.disp);
            }
            Inst::VecStream { to, v } => {
                let v = self.vec(v, PAIR_A);
                let base = self.base(to);
                self.access_pair(Row::STNP_Q, v, base, to.disp);
            }
            Inst::Rm { code, d, b, imm } => self.vec_rm(code, d, b, imm),
            Inst::Rvm { code, d, a, b, imm } => self.vec_rvm(code, d, a, b, imm),
            Inst::Fma { wide, d, a, b, c } => self.fma(wide, d, a, b, c),
            Inst::Blend { wide, d, a, b, mask } => self.blend(wide, d, a, b, mask),
            Inst::UpperHalf { d, b } => {
                let from = self.vec(b, PAIR_A);
                self.narrow_finish(d, high(from));
            }
            Inst::Splat { wide, d, a } => {
                let made = self.vec_target(d);
                let from = self.int(a, X15);
                let row = if wide { Row::DUP_2D_X } else { Row::DUP_4S_W };
                self.out.dn(row, low(made), from);
                self.out.vmov(high(made), low(made));
                self.vec_finish(d, made);
            }
            Inst::LowInt { d, a } => {
                let to = self.int_target(d);
                let from = self.vec(a, PAIR_A);
                self.out.dn(Row::FMOV_W_S, to, low(from));
                self.finish(d, to);
            }
            Inst::SignBits { d, a } => {
                let to = self.int_target(d);
                let from = self.vec(a, PAIR_A);
                // The sign of the upper half's lane k is bit 4 of a word that is shifted by k.
                self.shift_imm(Row::USHR_4S, T0, low(from), 32 - 31);
                self.shift_imm(Row::USHR_4S, T1, high(from), 32 - 31);
                self.shift_imm(Row::SLI_4S, T0, T1, 4);
                self.half_constant(T1, [0, 1, 2, 3]);
                self.out.dnm(Row::USHL_4S, T0, T0, T1);
                self.out.dn(Row::ADDV_4S, T0, T0);
                self.out.dn(Row::FMOV_W_S, to, T0);
                self.finish(d, to);
            }
            Inst::LoadHalves { d, low: lower, high: upper } => {
                let made = self.vec_target(d);
                let base = self.base(lower);
                self.access(LOAD_Q, low(made), base, lower.disp);
                let base = self.base(upper);
                self.access(LOAD_Q, high(made), base, upper.disp);
                self.vec_finish(d, made);
            }
            Inst::StoreHalves { v, low: lower, high: upper } => {
                let v = self.vec(v, PAIR_A);
                let base = self.base(lower);
                self.access(STORE_Q, low(v), base, lower.disp);
                let base = self.base(upper);
                self.access(STORE_Q, high(v), base, upper.disp);
            }
            Inst::Gather { d, from, offsets } => self.gather(d, from, offsets),
            Inst::Prefetch { from } => {
                let base = self.base(from);
                let prefetch =
                    Access { scaled: Row::PREFETCH_L2, unscaled: Row::PREFETCH_L2_UNSCALED, size: 8 };
                self.access(prefetch, 0, base, from.disp);
            }
            Inst::LoadMxcsr { from } => self.load_float_control(from),
            _ => unreachable!("`inst` and `int_inst` handle all other instructions"),
        }
    }

    /// Emits an instruction for each half of a vector.
    pub fn each_rm(&mut self, row: Row, to: V, b: V) {
        let (from, made) = (self.vec(b, PAIR_A), self.vec_target(to));
        self.out.dn(row, low(made), low(from));
        self.out.dn(row, high(made), high(from));
        self.vec_finish(to, made);
    }

    /// Emits a shift, with the value of its field.
    pub fn shift_imm(&mut self, row: Row, to: u8, from: u8, field: u32) {
        self.out.emit(row, d(to) | n(from) | field << 16);
    }

    /// Broadcasts the lowest element of 32 or 64 bits.
    pub fn element_to_all(&mut self, pair: u8, from: u8, wide: bool) {
        let row = if wide { Row::DUP_2D } else { Row::DUP_4S };
        self.out.dn(row, low(pair), from);
        self.out.vmov(high(pair), low(pair));
    }

    fn vec_rm(&mut self, code: Code, to: V, b: V, imm: Option<u8>) {
        if code.sources() != 1 || code.has_imm() != imm.is_some() {
            return self.out.fail(CompileError::Operands(code));
        }
        if self.float_rm(code, to, b, imm) || self.permute_rm(code, to, b, imm) {
            return;
        }
        let imm = imm.unwrap_or(0);
        match code {
            Code::VEX_Vpabsd_ymm_ymmm256 => self.each_rm(Row::ABS_4S, to, b),
            Code::VEX_Vpslld_ymm_ymm_imm8 => self.shift(Row::SHL_4S, to, b, imm, 32),
            Code::VEX_Vpsllq_ymm_ymm_imm8 => self.shift(Row::SHL_2D, to, b, imm, 64),
            Code::VEX_Vpsrld_ymm_ymm_imm8 => self.shift(Row::USHR_4S, to, b, imm, 32),
            Code::VEX_Vpsrlq_ymm_ymm_imm8 => self.shift(Row::USHR_2D, to, b, imm, 64),
            Code::VEX_Vpsrad_ymm_ymm_imm8 => self.shift(Row::SSHR_4S, to, b, imm, 32),
            _ => self.out.fail(CompileError::Operands(code)),
        }
    }

    fn shift(&mut self, row: Row, to: V, b: V, count: u8, bits: u32) {
        let (from, made) = (self.vec(b, PAIR_A), self.vec_target(to));
        let mut count = u32::from(count);
        if row == Row::SSHR_4S {
            count = count.min(31);
        }
        for half in [low, high] {
            match count {
                0 => self.out.vmov(half(made), half(from)),
                _ if count >= bits => self.splat_constant(half(made), 0),
                _ if matches!(row, Row::SHL_4S | Row::SHL_2D) => {
                    self.shift_imm(row, half(made), half(from), count)
                }
                _ => self.shift_imm(row, half(made), half(from), bits - count),
            }
        }
        self.vec_finish(to, made);
    }

    fn vec_rvm(&mut self, code: Code, to: V, a: V, b: V, imm: Option<u8>) {
        if code.sources() != 2 || code.has_imm() != imm.is_some() {
            return self.out.fail(CompileError::Operands(code));
        }
        if self.float_rvm(code, to, a, b, imm) || self.permute_rvm(code, to, a, b, imm) {
            return;
        }
        let (x, y) = (self.vec(a, PAIR_A), self.vec(b, PAIR_B));
        let made = self.vec_target(to);
        if let Some(each) = each_half(code) {
            let (row, x, y) = match each {
                Each::Same(row) => (row, x, y),
                Each::Exchanged(row) => (row, y, x),
            };
            self.out.dnm(row, low(made), low(x), low(y));
            self.out.dnm(row, high(made), high(x), high(y));
            return self.vec_finish(to, made);
        }
        match code {
            Code::VEX_Vpsllvd_ymm_ymm_ymmm256 => self.shift_words(Row::USHL_4S, 32, false, made, x, y),
            Code::VEX_Vpsrlvd_ymm_ymm_ymmm256 => self.shift_words(Row::USHL_4S, 32, true, made, x, y),
            Code::VEX_Vpsravd_ymm_ymm_ymmm256 => self.shift_words(Row::SSHL_4S, 32, true, made, x, y),
            Code::VEX_Vpsllvq_ymm_ymm_ymmm256 => self.shift_doublewords(false, made, x, y),
            Code::VEX_Vpsrlvq_ymm_ymm_ymmm256 => self.shift_doublewords(true, made, x, y),
            Code::VEX_Vpsrld_ymm_ymm_xmmm128 => {
                // The count is the lower half's first 64 bits.
                self.out.dn(Row::FMOV_X_D, X15, low(y));
                self.out.load_imm(X16, 32);
                self.out.emit(Row::CMP, WIDE | n(X15) | m(X16));
                let below = condition_field(Cc::LtU) << 12;
                self.out.emit(Row::CSEL, WIDE | d(X15) | n(X15) | m(X16) | below);
                self.out.emit(Row::NEG, d(X15) | m(X15));
                self.out.dn(Row::DUP_4S_W, T0, X15);
                self.out.dnm(Row::USHL_4S, low(made), low(x), T0);
                self.out.dnm(Row::USHL_4S, high(made), high(x), T0);
            }
            Code::VEX_Vpmuldq_ymm_ymm_ymmm256 => self.multiply_words(Row::SMULL_2D, made, x, y),
            Code::VEX_Vpmuludq_ymm_ymm_ymmm256 => self.multiply_words(Row::UMULL_2D, made, x, y),
            Code::VEX_Vpmaddwd_ymm_ymm_ymmm256 => {
                for half in [low, high] {
                    self.out.dnm(Row::SMULL_4S, T0, half(x), half(y));
                    self.out.dnm(Row::SMULL2_4S, T1, half(x), half(y));
                    self.out.dnm(Row::ADDP_4S, half(made), T0, T1);
                }
            }
            Code::VEX_Vpmaddubsw_ymm_ymm_ymmm256 => self.multiply_bytes(made, x, y),
            Code::VEX_Vpsadbw_ymm_ymm_ymmm256 => {
                for half in [low, high] {
                    self.out.dnm(Row::UABD_16B, T0, half(x), half(y));
                    self.out.dn(Row::UADDLP_8H, T0, T0);
                    self.out.dn(Row::UADDLP_4S, T0, T0);
                    self.out.dn(Row::UADDLP_2D, half(made), T0);
                }
            }
            _ => return self.out.fail(CompileError::Operands(code)),
        }
        self.vec_finish(to, made);
    }

    /// Shifts words by the words of `y`: counts from 32 on are as 32. The host's counts are signed bytes, and
    /// negative ones shift to the right.
    fn shift_words(&mut self, row: Row, most: u32, right: bool, made: u8, x: u8, y: u8) {
        self.splat_constant(T1, most);
        for half in [low, high] {
            self.out.dnm(Row::UMIN_4S, T0, half(y), T1);
            if right {
                self.out.dn(Row::NEG_4S, T0, T0);
            }
            self.out.dnm(row, half(made), half(x), T0);
        }
    }

    fn shift_doublewords(&mut self, right: bool, made: u8, x: u8, y: u8) {
        for half in [low, high] {
            self.half_constant(T0, [63, 0, 63, 0]);
            // Greater counts make zero.
            self.out.dnm(Row::CMHI_2D, T0, half(y), T0);
            let mut count = half(y);
            if right {
                self.out.dn(Row::NEG_2D, T1, half(y));
                count = T1;
            }
            self.out.dnm(Row::USHL_2D, T1, half(x), count);
            self.out.dnm(Row::VBIC, half(made), T1, T0);
        }
    }

    /// Multiplies the even words.
    fn multiply_words(&mut self, row: Row, made: u8, x: u8, y: u8) {
        for half in [low, high] {
            self.out.dn(Row::XTN_2S, T0, half(x));
            self.out.dn(Row::XTN_2S, T1, half(y));
            self.out.dnm(row, half(made), T0, T1);
        }
    }

    /// Adds neighbouring products of unsigned and signed bytes.
    fn multiply_bytes(&mut self, made: u8, x: u8, y: u8) {
        // Operands are not in this register, and the upper half of a result is written last.
        let products = high(PAIR_D);
        for half in [low, high] {
            self.out.dn(Row::UXTL_8H, T0, half(x));
            self.out.dn(Row::SXTL_8H, T1, half(y));
            self.out.dnm(Row::MUL_8H, products, T0, T1);
            self.out.dn(Row::UXTL2_8H, T0, half(x));
            self.out.dn(Row::SXTL2_8H, T1, half(y));
            self.out.dnm(Row::MUL_8H, T1, T0, T1);
            self.out.dnm(Row::UZP1_8H, T0, products, T1);
            self.out.dnm(Row::UZP2_8H, T1, products, T1);
            self.out.dnm(Row::SQADD_8H, half(made), T0, T1);
        }
    }

    fn blend(&mut self, wide: bool, to: V, a: V, b: V, mask: V) {
        let (x, y) = (self.vec(a, PAIR_A), self.vec(b, PAIR_B));
        let z = self.vec(mask, PAIR_D);
        let made = self.vec_target(to);
        let (row, field) = if wide { (Row::SSHR_2D, 64 - 63) } else { (Row::SSHR_4S, 32 - 31) };
        for half in [low, high] {
            self.shift_imm(row, T0, half(z), field);
            if half(made) == half(x) {
                self.out.dnm(Row::VBIT, half(made), half(y), T0);
            } else if half(made) == half(y) {
                self.out.dnm(Row::VBIF, half(made), half(x), T0);
            } else {
                self.out.dnm(Row::VBSL, T0, half(y), half(x));
                self.out.vmov(half(made), T0);
            }
        }
        self.vec_finish(to, made);
    }

    fn gather(&mut self, to: V, from: Mem, offsets: V) {
        let offsets = self.vec(offsets, PAIR_A);
        let made = self.vec_target(to);
        let mut base = self.base(from);
        if from.disp != 0 {
            self.out.add_imm(X16, base, from.disp.into());
            base = X16;
        } else if base == X17 {
            self.out.mov(X16, X17);
            base = X16;
        }
        for half in [low, high] {
            for lane in 0..4 {
                let element = lane << 19;
                self.out.emit(Row::UMOV_W, d(X17) | n(half(offsets)) | element);
                self.out.dnm(Row::LDR_W_SXTW, X17, base, X17);
                self.out.emit(Row::INS_S_W, d(half(made)) | n(X17) | element);
            }
        }
        self.vec_finish(to, made);
    }
}
