//! Selects host instructions for what moves elements of vectors.

use crate::a64::assembler::Assembler;
use crate::a64::encode::{d, m, n};
use crate::a64::reg::{PAIR_A, PAIR_B, PAIR_D, T0, T1, high, low};
use crate::a64::rows::Row;
use crate::code::Code;
use crate::inst::V;

/// Returns the bytes of four words that are selected by their numbers.
fn bytes_of_words(words: [u8; 4]) -> [u32; 4] {
    words.map(|word| 0x0302_0100 + 0x0404_0404 * u32::from(word))
}

/// Returns the four fields of two bits.
fn fields(imm: u8) -> [u8; 4] {
    [0, 2, 4, 6].map(|at| imm >> at & 3)
}

impl Assembler<'_> {
    /// Emits a permutation of one vector. Returns false if it is not one.
    pub fn permute_rm(&mut self, code: Code, to: V, b: V, imm: Option<u8>) -> bool {
        let imm = imm.unwrap_or(0);
        match code {
            Code::VEX_Vmovsldup_ymm_ymmm256 => {
                let (from, made) = (self.vec(b, PAIR_A), self.vec_target(to));
                for half in [low, high] {
                    self.out.dnm(Row::TRN1_4S, half(made), half(from), half(from));
                }
                self.vec_finish(to, made);
            }
            Code::VEX_Vpbroadcastd_ymm_xmmm32 | Code::VEX_Vpbroadcastq_ymm_xmmm64 => {
                let (from, made) = (self.vec(b, PAIR_A), self.vec_target(to));
                self.element_to_all(made, low(from), code == Code::VEX_Vpbroadcastq_ymm_xmmm64);
                self.vec_finish(to, made);
            }
            Code::VEX_Vpermq_ymm_ymmm256_imm8 => self.permute_doublewords(to, b, fields(imm)),
            Code::VEX_Vpmovsxdq_ymm_xmmm128 => self.extend(Row::SXTL_2D, Row::SXTL2_2D, to, b),
            Code::VEX_Vpmovzxdq_ymm_xmmm128 => self.extend(Row::UXTL_2D, Row::UXTL2_2D, to, b),
            Code::VEX_Vpmovzxwd_ymm_xmmm128 => self.extend(Row::UXTL_4S, Row::UXTL2_4S, to, b),
            Code::VEX_Vpmovzxbd_ymm_xmmm64 => {
                let (from, made) = (self.vec(b, PAIR_A), self.vec_target(to));
                self.out.dn(Row::UXTL_8H, T0, low(from));
                self.out.dn(Row::UXTL_4S, low(made), T0);
                self.out.dn(Row::UXTL2_4S, high(made), T0);
                self.vec_finish(to, made);
            }
            Code::VEX_Vpshufd_ymm_ymmm256_imm8 => self.permute_words(to, b, fields(imm)),
            Code::VEX_Vpsrldq_ymm_ymm_imm8 => {
                let (from, made) = (self.vec(b, PAIR_A), self.vec_target(to));
                self.splat_constant(T0, 0);
                for half in [low, high] {
                    if imm < 16 {
                        self.ext(half(made), half(from), T0, imm);
                    } else {
                        self.out.vmov(half(made), T0);
                    }
                }
                self.vec_finish(to, made);
            }
            _ => return false,
        }
        true
    }

    /// Emits a permutation of two vectors. Returns false if it is not one.
    pub fn permute_rvm(&mut self, code: Code, to: V, a: V, b: V, imm: Option<u8>) -> bool {
        let imm = imm.unwrap_or(0);
        match code {
            Code::VEX_Vpackssdw_ymm_ymm_ymmm256 => self.pack(Row::SQXTN_4H, Row::SQXTN2_8H, to, a, b),
            Code::VEX_Vpackusdw_ymm_ymm_ymmm256 => self.pack(Row::SQXTUN_4H, Row::SQXTUN2_8H, to, a, b),
            Code::VEX_Vpackuswb_ymm_ymm_ymmm256 => self.pack(Row::SQXTUN_8B, Row::SQXTUN2_16B, to, a, b),
            Code::VEX_Vpblendd_ymm_ymm_ymmm256_imm8 => {
                let (x, y) = (self.vec(a, PAIR_A), self.vec(b, PAIR_B));
                let made = self.vec_target(to);
                for (half, mask) in [(low as fn(u8) -> u8, imm & 15), (high, imm >> 4)] {
                    match mask {
                        0 => self.out.vmov(half(made), half(x)),
                        15 => self.out.vmov(half(made), half(y)),
                        _ => {
                            self.half_constant(
                                T0,
                                [0, 1, 2, 3].map(|lane| 0u32.wrapping_sub(u32::from(mask >> lane & 1))),
                            );
                            self.out.dnm(Row::VBSL, T0, half(y), half(x));
                            self.out.vmov(half(made), T0);
                        }
                    }
                }
                self.vec_finish(to, made);
            }
            Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8 => {
                let (x, y) = (self.vec(a, PAIR_A), self.vec(b, PAIR_B));
                let halves = if imm & 1 == 0 { [low(y), high(x)] } else { [low(x), low(y)] };
                self.halves(to, halves.map(Some));
            }
            Code::VEX_Vperm2i128_ymm_ymm_ymmm256_imm8 => {
                let (x, y) = (self.vec(a, PAIR_A), self.vec(b, PAIR_B));
                let select = |field: u8| match field & 11 {
                    0 => Some(low(x)),
                    1 => Some(high(x)),
                    2 => Some(low(y)),
                    3 => Some(high(y)),
                    _ => None,
                };
                self.halves(to, [select(imm), select(imm >> 4)]);
            }
            Code::VEX_Vpermd_ymm_ymm_ymmm256 => {
                // The numbers of words, and the words.
                let (x, y) = (self.vec(a, PAIR_A), self.vec(b, PAIR_B));
                let made = self.vec_target(to);
                let into = if made == y { PAIR_D } else { made };
                for half in [low, high] {
                    self.splat_constant(T1, 7);
                    self.out.dnm(Row::VAND, T0, half(x), T1);
                    self.splat_constant(T1, 0x0404_0404);
                    self.out.dnm(Row::MUL_4S, T0, T0, T1);
                    self.splat_constant(T1, 0x0302_0100);
                    self.out.dnm(Row::ADD_4S, T0, T0, T1);
                    self.out.dnm(Row::TBL2, half(into), low(y), T0);
                }
                self.vec_finish(to, into);
            }
            Code::VEX_Vpshufb_ymm_ymm_ymmm256 => {
                let (x, y) = (self.vec(a, PAIR_A), self.vec(b, PAIR_B));
                let made = self.vec_target(to);
                // Bytes from 128 on select zero on both hosts; of others, four bits count.
                self.splat_constant(T1, 0x8f8f_8f8f);
                for half in [low, high] {
                    self.out.dnm(Row::VAND, T0, half(y), T1);
                    self.out.dnm(Row::TBL1, half(made), half(x), T0);
                }
                self.vec_finish(to, made);
            }
            Code::VEX_Vshufps_ymm_ymm_ymmm256_imm8 => self.shuffle_words(to, a, b, imm),
            _ => return false,
        }
        true
    }

    fn ext(&mut self, to: u8, lower: u8, upper: u8, bytes: u8) {
        self.out.emit(Row::EXT, d(to) | n(lower) | m(upper) | u32::from(bytes) << 11);
    }

    /// Extends the elements of a lower half.
    fn extend(&mut self, lower: Row, upper: Row, to: V, b: V) {
        let (from, made) = (low(self.vec(b, PAIR_A)), self.vec_target(to));
        self.out.dn(upper, high(made), from);
        self.out.dn(lower, low(made), from);
        self.vec_finish(to, made);
    }

    fn pack(&mut self, first: Row, second: Row, to: V, a: V, b: V) {
        let (x, y) = (self.vec(a, PAIR_A), self.vec(b, PAIR_B));
        let made = self.vec_target(to);
        for half in [low, high] {
            let into = if half(made) == half(y) { T0 } else { half(made) };
            self.out.dn(first, into, half(x));
            self.out.dn(second, into, half(y));
            self.out.vmov(half(made), into);
        }
        self.vec_finish(to, made);
    }

    /// Moves registers to the halves of a result; `None` is zero.
    fn halves(&mut self, to: V, from: [Option<u8>; 2]) {
        let made = self.vec_target(to);
        let [lower, mut upper] = from;
        if upper == Some(low(made)) && lower != upper {
            self.out.vmov(T0, low(made));
            upper = Some(T0);
        }
        for (register, from) in [(low(made), lower), (high(made), upper)] {
            match from {
                Some(from) => self.out.vmov(register, from),
                None => self.splat_constant(register, 0),
            }
        }
        self.vec_finish(to, made);
    }

    fn permute_doublewords(&mut self, to: V, b: V, select: [u8; 4]) {
        let (from, made) = (self.vec(b, PAIR_A), self.vec_target(to));
        let register = |number: u8| if number < 2 { low(from) } else { high(from) };
        // Halves of the source as they are.
        let whole = |first: u8, second: u8| (first & 1 == 0 && second == first + 1).then(|| register(first));
        let [a, b, c, e] = select;
        if let (Some(lower), Some(upper)) = (whole(a, b), whole(c, e)) {
            return self.halves(to, [Some(lower), Some(upper)]);
        }
        let mut half = |into: u8, first: u8, second: u8| {
            let (x, y) = (register(first), register(second));
            match (first & 1, second & 1) {
                (0, 0) => self.out.dnm(Row::ZIP1_2D, into, x, y),
                (1, 1) => self.out.dnm(Row::ZIP2_2D, into, x, y),
                (1, _) => self.out.emit(Row::EXT, d(into) | n(x) | m(y) | 8 << 11),
                (_, _) => {
                    if x != y {
                        self.out.vmov(T1, x);
                        self.out.emit(Row::INS_D, d(T1) | n(y) | 1 << 20 | 1 << 14);
                    }
                    self.out.vmov(into, if x == y { x } else { T1 });
                }
            }
        };
        if made == from {
            half(T0, a, b);
            half(high(made), c, e);
            self.out.vmov(low(made), T0);
        } else {
            half(low(made), a, b);
            half(high(made), c, e);
        }
        self.vec_finish(to, made);
    }

    /// Permutes the words of each half.
    fn permute_words(&mut self, to: V, b: V, select: [u8; 4]) {
        let (from, made) = (self.vec(b, PAIR_A), self.vec_target(to));
        let simple = |select: [u8; 4]| {
            Some(match select {
                [0, 0, 2, 2] => (Row::TRN1_4S, true),
                [1, 0, 3, 2] => (Row::REV64_4S, false),
                [0, 1, 0, 1] => (Row::ZIP1_2D, true),
                [2, 3, 2, 3] => (Row::ZIP2_2D, true),
                [0, 0, 1, 1] => (Row::ZIP1_4S, true),
                [2, 2, 3, 3] => (Row::ZIP2_4S, true),
                [0, 2, 0, 2] => (Row::UZP1_4S, true),
                [1, 3, 1, 3] => (Row::UZP2_4S, true),
                _ => return None,
            })
        };
        match (simple(select), select) {
            (Some((row, twice)), _) => {
                for half in [low, high] {
                    let second = if twice { m(half(from)) } else { 0 };
                    self.out.emit(row, d(half(made)) | n(half(from)) | second);
                }
            }
            (_, [first, b, c, e]) if b == (first + 1) & 3 && c == (first + 2) & 3 && e == (first + 3) & 3 => {
                for half in [low, high] {
                    self.ext(half(made), half(from), half(from), 4 * first);
                }
            }
            (_, [a, b, c, e]) if a == b && a == c && a == e => {
                for half in [low, high] {
                    self.out.emit(Row::DUP_4S, d(half(made)) | n(half(from)) | u32::from(a) << 19);
                }
            }
            _ => {
                self.half_constant(T0, bytes_of_words(select));
                for half in [low, high] {
                    self.out.dnm(Row::TBL1, half(made), half(from), T0);
                }
            }
        }
        self.vec_finish(to, made);
    }

    /// Selects the first two words of each half from `a`, and the others from `b`.
    fn shuffle_words(&mut self, to: V, a: V, b: V, imm: u8) {
        let (x, y) = (self.vec(a, PAIR_A), self.vec(b, PAIR_B));
        let made = self.vec_target(to);
        let [p, q, r, s] = fields(imm);
        let row = match [p, q, r, s] {
            [0, 2, 0, 2] => Some(Row::UZP1_4S),
            [1, 3, 1, 3] => Some(Row::UZP2_4S),
            [0, 1, 0, 1] => Some(Row::ZIP1_2D),
            [2, 3, 2, 3] => Some(Row::ZIP2_2D),
            _ => None,
        };
        for half in [low, high] {
            if let Some(row) = row {
                self.out.dnm(row, half(made), half(x), half(y));
                continue;
            }
            // The words of each in a register of their own.
            self.half_constant(T0, bytes_of_words([0, 0, r, s]));
            self.out.dnm(Row::TBL1, T0, half(y), T0);
            self.half_constant(T1, bytes_of_words([p, q, 0, 0]));
            self.out.dnm(Row::TBL1, T1, half(x), T1);
            self.out.emit(Row::INS_D, d(T1) | n(T0) | 1 << 20 | 1 << 14);
            self.out.vmov(half(made), T1);
        }
        self.vec_finish(to, made);
    }
}
