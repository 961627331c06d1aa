//! Selects host instructions for float operations.

use crate::a64::assembler::{Assembler, LOAD_W};
use crate::a64::encode::{d, n};
use crate::a64::pending::{Float, Operand};
use crate::a64::reg::{PAIR_A, PAIR_B, PAIR_D, PAIR_T, T0, T1, X15, X16, X17, ZR, high, low};
use crate::a64::rows::Row;
use crate::code::Code;
use crate::inst::{Mem, V};

impl Assembler<'_> {
    /// Emits a float operation of one vector. Returns false if it is not one.
    pub fn float_rm(&mut self, code: Code, to: V, b: V, imm: Option<u8>) -> bool {
        match code {
            Code::VEX_Vsqrtps_ymm_ymmm256 => self.root(to, b, false),
            Code::VEX_Vsqrtpd_ymm_ymmm256 => self.root(to, b, true),
            Code::VEX_Vroundps_ymm_ymmm256_imm8 => self.round(to, b, false, imm.unwrap_or(0)),
            Code::VEX_Vroundpd_ymm_ymmm256_imm8 => self.round(to, b, true, imm.unwrap_or(0)),
            Code::VEX_Vrsqrtps_ymm_ymmm256 => {
                // Any estimate will do: this one is exact but for rounding.
                let (from, made) = (self.vec(b, PAIR_A), self.vec_target(to));
                self.splat_constant(T1, 1f32.to_bits());
                for half in [low, high] {
                    self.out.dn(Row::FSQRT_4S, T0, half(from));
                    self.out.dnm(Row::FDIV_4S, half(made), T1, T0);
                }
                self.vec_finish(to, made);
            }
            Code::VEX_Vcvtdq2ps_ymm_ymmm256 => self.each_rm(Row::SCVTF_4S, to, b),
            Code::VEX_Vcvttps2dq_ymm_ymmm256 => self.truncate(to, b),
            Code::VEX_Vcvttpd2dq_xmm_ymmm256 => self.truncate_wide(to, b),
            Code::VEX_Vcvtdq2pd_ymm_xmmm128 => {
                let (from, made) = (low(self.vec(b, PAIR_A)), self.vec_target(to));
                self.out.dn(Row::SXTL2_2D, high(made), from);
                self.out.dn(Row::SXTL_2D, low(made), from);
                self.out.dn(Row::SCVTF_2D, high(made), high(made));
                self.out.dn(Row::SCVTF_2D, low(made), low(made));
                self.vec_finish(to, made);
            }
            Code::VEX_Vcvtps2pd_ymm_xmmm128 => self.widen(Row::FCVTL_2D, Row::FCVTL2_2D, to, b),
            Code::VEX_Vcvtph2ps_ymm_xmmm128 => self.widen(Row::FCVTL_4S, Row::FCVTL2_4S, to, b),
            Code::VEX_Vcvtpd2ps_xmm_ymmm256 => {
                let from = self.vec(b, PAIR_A);
                self.out.dn(Row::FCVTN_2S, T0, low(from));
                self.out.dn(Row::FCVTN2_4S, T0, high(from));
                self.guard(Float::Narrow, true, [Operand::Pair(from); 3], PAIR_T);
                self.narrow_finish(to, T0);
            }
            Code::VEX_Vcvtps2ph_xmmm128_ymm_imm8 => self.half_precision(to, b, imm.unwrap_or(0)),
            _ => return false,
        }
        true
    }

    /// Emits a float operation of two vectors. Returns false if it is not one.
    pub fn float_rvm(&mut self, code: Code, to: V, a: V, b: V, imm: Option<u8>) -> bool {
        use Float::{Add, Div, Mul, Sub};
        let (float, wide, row) = match code {
            Code::VEX_Vaddps_ymm_ymm_ymmm256 => (Add, false, Row::FADD_4S),
            Code::VEX_Vaddpd_ymm_ymm_ymmm256 => (Add, true, Row::FADD_2D),
            Code::VEX_Vsubps_ymm_ymm_ymmm256 => (Sub, false, Row::FSUB_4S),
            Code::VEX_Vsubpd_ymm_ymm_ymmm256 => (Sub, true, Row::FSUB_2D),
            Code::VEX_Vmulps_ymm_ymm_ymmm256 => (Mul, false, Row::FMUL_4S),
            Code::VEX_Vmulpd_ymm_ymm_ymmm256 => (Mul, true, Row::FMUL_2D),
            Code::VEX_Vdivps_ymm_ymm_ymmm256 => (Div, false, Row::FDIV_4S),
            Code::VEX_Vdivpd_ymm_ymm_ymmm256 => (Div, true, Row::FDIV_2D),
            Code::VEX_Vminps_ymm_ymm_ymmm256 => return self.min_max(to, a, b, false, true),
            Code::VEX_Vminpd_ymm_ymm_ymmm256 => return self.min_max(to, a, b, true, true),
            Code::VEX_Vmaxps_ymm_ymm_ymmm256 => return self.min_max(to, a, b, false, false),
            Code::VEX_Vmaxpd_ymm_ymm_ymmm256 => return self.min_max(to, a, b, true, false),
            Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8 => return self.compare(to, a, b, false, imm.unwrap_or(0)),
            Code::VEX_Vcmppd_ymm_ymm_ymmm256_imm8 => return self.compare(to, a, b, true, imm.unwrap_or(0)),
            _ => return false,
        };
        let (x, y) = (self.vec(a, PAIR_A), self.vec(b, PAIR_B));
        let target = self.vec_target(to);
        let made = if target == x || target == y { PAIR_D } else { target };
        self.out.dnm(row, low(made), low(x), low(y));
        self.out.dnm(row, high(made), high(x), high(y));
        self.guard(float, wide, [x, y, y].map(Operand::Pair), made);
        self.vec_finish(to, made);
        true
    }

    /// `to = a * b + c`.
    pub fn fma(&mut self, wide: bool, to: V, a: V, b: V, c: V) {
        let (x, y) = (self.vec(a, PAIR_A), self.vec(b, PAIR_B));
        let target = self.vec_target(to);
        // The sum replaces the addend, which a repair needs, too.
        let made = if target == x || target == y { PAIR_D } else { target };
        let z = self.vec(c, made);
        let addend = if z == made && self.in_register(c) == Some(z) {
            self.move_pair(PAIR_D, z);
            Operand::Pair(PAIR_D)
        } else if z == made {
            Operand::Reloaded(c)
        } else {
            self.move_pair(made, z);
            Operand::Pair(z)
        };
        let row = if wide { Row::FMLA_2D } else { Row::FMLA_4S };
        self.out.dnm(row, low(made), low(x), low(y));
        self.out.dnm(row, high(made), high(x), high(y));
        self.guard(Float::Fma, wide, [Operand::Pair(x), Operand::Pair(y), addend], made);
        self.vec_finish(to, made);
    }

    fn root(&mut self, to: V, b: V, wide: bool) {
        let (from, target) = (self.vec(b, PAIR_A), self.vec_target(to));
        let made = if target == from { PAIR_D } else { target };
        let row = if wide { Row::FSQRT_2D } else { Row::FSQRT_4S };
        self.out.dn(row, low(made), low(from));
        self.out.dn(row, high(made), high(from));
        self.guard(Float::Sqrt, wide, [Operand::Pair(from); 3], made);
        self.vec_finish(to, made);
    }

    fn round(&mut self, to: V, b: V, wide: bool, imm: u8) {
        let rows = match imm & 7 {
            0 => [Row::FRINTN_4S, Row::FRINTN_2D],
            1 => [Row::FRINTM_4S, Row::FRINTM_2D],
            2 => [Row::FRINTP_4S, Row::FRINTP_2D],
            3 => [Row::FRINTZ_4S, Row::FRINTZ_2D],
            _ => [Row::FRINTI_4S, Row::FRINTI_2D],
        };
        self.each_rm(rows[usize::from(wide)], to, b);
    }

    /// Emits `a < b ? a : b`, or with `>`: of two zeros, or with a NaN, the second operand.
    fn min_max(&mut self, to: V, a: V, b: V, wide: bool, less: bool) -> bool {
        let (x, y) = (self.vec(a, PAIR_A), self.vec(b, PAIR_B));
        let made = self.vec_target(to);
        let (greater, is_zero, shift) = match wide {
            false => (Row::FCMGT_4S, Row::FCMEQ_ZERO_4S, Row::USHR_4S),
            true => (Row::FCMGT_2D, Row::FCMEQ_ZERO_2D, Row::USHR_2D),
        };
        for half in [low, high] {
            let (first, second) = if less { (y, x) } else { (x, y) };
            self.out.dnm(greater, T0, half(first), half(second));
            self.out.dnm(Row::VBSL, T0, half(x), half(y));
            if self.flushes {
                // Denormals are equal to zero if they are flushed: only the sign remains.
                self.out.dn(is_zero, T1, T0);
                // A shift to the right by one.
                let by_one = if wide { 63 << 16 } else { 31 << 16 };
                self.out.emit(shift, d(T1) | n(T1) | by_one);
                self.out.dnm(Row::VBIC, half(made), T0, T1);
            } else {
                self.out.vmov(half(made), T0);
            }
        }
        self.vec_finish(to, made);
        true
    }

    /// Emits a comparison by a predicate of x86-64 (Intel SDM, *CMPPS*): bit 4 only says which exceptions are raised.
    fn compare(&mut self, to: V, a: V, b: V, wide: bool, imm: u8) -> bool {
        let (x, y) = (self.vec(a, PAIR_A), self.vec(b, PAIR_B));
        let made = self.vec_target(to);
        let [equal, at_least, greater] = match wide {
            false => [Row::FCMEQ_4S, Row::FCMGE_4S, Row::FCMGT_4S],
            true => [Row::FCMEQ_2D, Row::FCMGE_2D, Row::FCMGT_2D],
        };
        // A comparison, with exchanged operands or not; another one of which one must hold; whether neither may.
        let (first, second, inverted) = match imm & 15 {
            0 => (Some((equal, false)), None, false),
            1 => (Some((greater, true)), None, false),
            2 => (Some((at_least, true)), None, false),
            3 => (Some((at_least, false)), Some((greater, true)), true),
            4 => (Some((equal, false)), None, true),
            5 => (Some((greater, true)), None, true),
            6 => (Some((at_least, true)), None, true),
            7 => (Some((at_least, false)), Some((greater, true)), false),
            8 => (Some((greater, false)), Some((greater, true)), true),
            9 => (Some((at_least, false)), None, true),
            10 => (Some((greater, false)), None, true),
            11 => (None, None, false),
            12 => (Some((greater, false)), Some((greater, true)), false),
            13 => (Some((at_least, false)), None, false),
            14 => (Some((greater, false)), None, false),
            _ => (None, None, true),
        };
        for half in [low, high] {
            let Some((row, exchanged)) = first else {
                self.splat_constant(half(made), if inverted { u32::MAX } else { 0 });
                continue;
            };
            let operands = |exchanged: bool| if exchanged { (y, x) } else { (x, y) };
            let (p, q) = operands(exchanged);
            let into = if second.is_some() || inverted { T0 } else { half(made) };
            self.out.dnm(row, into, half(p), half(q));
            if let Some((row, exchanged)) = second {
                let (p, q) = operands(exchanged);
                self.out.dnm(row, T1, half(p), half(q));
                self.out.dnm(Row::VORR, if inverted { T0 } else { half(made) }, T0, T1);
            }
            if inverted {
                self.out.dn(Row::VNOT, half(made), T0);
            }
        }
        self.vec_finish(to, made);
        true
    }

    /// Converts f32 toward zero; what does not fit becomes the least integer.
    fn truncate(&mut self, to: V, b: V) {
        let (from, made) = (self.vec(b, PAIR_A), self.vec_target(to));
        for half in [low, high] {
            // 2^31.
            self.splat_constant(T0, 0x4f00_0000);
            self.out.dnm(Row::FCMGT_4S, T0, T0, half(from));
            self.out.dn(Row::FCVTZS_4S, half(made), half(from));
            self.splat_constant(T1, 0x8000_0000);
            self.out.dnm(Row::VBIF, half(made), T1, T0);
        }
        self.vec_finish(to, made);
    }

    /// Converts f64 toward zero; what does not fit becomes the least integer.
    fn truncate_wide(&mut self, to: V, b: V) {
        let from = self.vec(b, PAIR_A);
        for half in [low, high] {
            let made = half(PAIR_D);
            // The saturated result is the integer if it fits; a NaN does not.
            self.out.dn(Row::FCVTZS_2D, T0, half(from));
            self.out.dnm(Row::FCMEQ_2D, T1, half(from), half(from));
            self.out.dn(Row::SQXTN_2S, made, T0);
            self.out.dn(Row::SXTL_2D, made, made);
            self.out.dnm(Row::CMEQ_2D, T0, T0, made);
            self.out.dnm(Row::VAND, T0, T0, T1);
            self.splat_constant(T1, 0x8000_0000);
            self.out.dnm(Row::VBIF, made, T1, T0);
        }
        self.out.dnm(Row::UZP1_4S, T0, low(PAIR_D), high(PAIR_D));
        self.narrow_finish(to, T0);
    }

    fn widen(&mut self, lower: Row, upper: Row, to: V, b: V) {
        let (from, made) = (low(self.vec(b, PAIR_A)), self.vec_target(to));
        self.out.dn(upper, high(made), from);
        self.out.dn(lower, low(made), from);
        self.vec_finish(to, made);
    }

    /// Converts f32 to f16: rounded to nearest (0), down (1), up (2), toward zero (3), or as the host is set (4).
    fn half_precision(&mut self, to: V, b: V, imm: u8) {
        let from = self.vec(b, PAIR_A);
        // Arm's numbers of these modes: up and down are exchanged.
        let mode = [0, 2, 1, 3][usize::from(imm & 3)];
        let changes = imm & 4 == 0 && mode != 0;
        if changes {
            self.out.emit(Row::MRS_FPCR, d(X15));
            self.out.mov(X16, X15);
            self.out.load_imm(X17, mode);
            self.out.bfi(X16, X17, 22, 2);
            self.out.emit(Row::MSR_FPCR, d(X16));
        }
        self.out.dn(Row::FCVTN_4H, T0, low(from));
        self.out.dn(Row::FCVTN2_8H, T0, high(from));
        if changes {
            self.out.emit(Row::MSR_FPCR, d(X15));
        }
        self.narrow_finish(to, T0);
    }

    /// Moves a lower half to a result whose upper half is zero.
    pub fn narrow_finish(&mut self, to: V, from: u8) {
        let made = self.vec_target(to);
        self.out.vmov(low(made), from);
        self.splat_constant(high(made), 0);
        self.vec_finish(to, made);
    }

    /// Sets the host's float control as MXCSR in memory says: DAZ (bit 6) is FZ (bit 24), and the rounding control (bits
    /// 13 and 14) is that of bits 22 and 23, with up and down exchanged.
    pub fn load_float_control(&mut self, from: Mem) {
        let base = self.base(from);
        self.access(LOAD_W, X15, base, from.disp);
        self.out.mov(X16, ZR);
        for (bit, to) in [(6, 24), (13, 23), (14, 22)] {
            self.out.ubfx(X17, X15, bit, 1);
            self.out.bfi(X16, X17, to, 1);
        }
        self.out.emit(Row::MSR_FPCR, d(X16));
    }
}
