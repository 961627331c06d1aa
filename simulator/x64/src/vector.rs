//! Selects host instructions for vector operations.

use crate::allocate::{ARGUMENTS, CALLER_SAVED, Location, VECS};
use crate::assemble::{Assembler, RAX, RCX, RSP, X14, X15};
use crate::encode::{Kind, Rm};
use crate::inst::{Inst, Label, Mem, Src, V};
use crate::shape::{self, Shape};
use iced_x86::{Code, Register};

const XMM: Kind = Kind::Xmm;
const YMM: Kind = Kind::Ymm;

fn x(number: u8) -> Register {
    XMM.register(number)
}

fn y(number: u8) -> Register {
    YMM.register(number)
}

impl Assembler<'_> {
    /// Returns the register that a result is computed in.
    fn vec_target(&self, d: V) -> u8 {
        match self.location(d) {
            Location::Register(register) => register,
            _ => X15,
        }
    }

    /// Moves a result from the register it was computed in to its location.
    fn vec_finish(&mut self, d: V, made: u8) {
        match self.location(d) {
            Location::Register(register) => self.vec_load(register, Rm::Register(made)),
            location @ Location::Slot(_) => {
                let slot = self.home(d, location, RAX);
                self.out.rm_r(Code::VEX_Vmovups_ymmm256_ymm, slot, YMM, y(made));
            }
            _ => {}
        }
    }

    fn vec_load(&mut self, to: u8, from: Rm) {
        match from {
            Rm::Register(register) if register == to => {}
            Rm::Register(_) => self.out.r_rm(Code::VEX_Vmovaps_ymm_ymmm256, y(to), from, YMM),
            _ => self.out.r_rm(Code::VEX_Vmovups_ymm_ymmm256, y(to), from, YMM),
        }
    }

    /// Returns a register that holds the value: `scratch` if the value is not in one.
    pub fn vec(&mut self, v: V, scratch: u8) -> u8 {
        match self.rm(v, RAX) {
            Rm::Register(register) => register,
            memory => {
                self.vec_load(scratch, memory);
                scratch
            }
        }
    }

    fn in_register(&self, v: V) -> Option<u8> {
        match self.location(v) {
            Location::Register(register) => Some(register),
            _ => None,
        }
    }

    pub fn vec_inst(&mut self, inst: &Inst) {
        match *inst {
            Inst::Move { d, a } => match self.in_register(d) {
                Some(to) => {
                    let from = self.rm(a, RAX);
                    self.vec_load(to, from);
                }
                None => {
                    let from = self.vec(a, X15);
                    self.vec_finish(d, from);
                }
            },
            Inst::VecConst { d, constant } => {
                if let Location::Register(_) | Location::Slot(_) = self.location(d) {
                    let to = self.vec_target(d);
                    self.vec_constant(to, constant);
                    self.vec_finish(d, to);
                }
            }
            Inst::VecLoad { d, from, .. } => {
                if let Location::Register(_) | Location::Slot(_) = self.location(d) {
                    let to = self.vec_target(d);
                    let from = self.memory(from, RAX);
                    self.vec_load(to, from);
                    self.vec_finish(d, to);
                }
            }
            Inst::SplatLoad { d, from } => {
                let to = self.vec_target(d);
                let from = self.memory(from, RAX);
                self.out.r_rm(Code::VEX_Vbroadcastss_ymm_m32, y(to), from, XMM);
                self.vec_finish(d, to);
            }
            Inst::VecStore { to, v } => {
                let v = self.vec(v, X15);
                let to = self.memory(to, RAX);
                self.out.rm_r(Code::VEX_Vmovups_ymmm256_ymm, to, YMM, y(v));
            }
            Inst::VecStream { to, v } => {
                let v = self.vec(v, X15);
                let to = self.memory(to, RAX);
                self.out.rm_r(Code::VEX_Vmovntps_m256_ymm, to, YMM, y(v));
            }
            Inst::Rm { code, d, b, imm } => self.vec_rm(code, d, b, imm),
            Inst::Rvm { code, d, a, b, imm } => self.vec_rvm(code, d, a, b, imm),
            Inst::Fma { wide, d, a, b, c } => self.fma(wide, d, a, b, c),
            Inst::Blend { wide, d, a, b, mask } => {
                let a = self.vec(a, X14);
                let mask = self.vec(mask, X15);
                let b = self.rm(b, RAX);
                let to = self.vec_target(d);
                let code = if wide {
                    Code::VEX_Vblendvpd_ymm_ymm_ymmm256_ymm
                } else {
                    Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm
                };
                self.out.rr_rm_r(code, y(to), y(a), b, YMM, y(mask));
                self.vec_finish(d, to);
            }
            Inst::UpperHalf { d, b } => {
                let to = self.vec_target(d);
                match self.rm(b, RAX) {
                    Rm::Memory(base, disp) if disp < i32::MAX - 16 => {
                        self.out.r_rm(Code::VEX_Vmovups_xmm_xmmm128, x(to), Rm::Memory(base, disp + 16), XMM);
                    }
                    _ => {
                        let b = self.vec(b, X15);
                        self.out.rm_r_imm(
                            Code::VEX_Vextractf128_xmmm128_ymm_imm8,
                            Rm::Register(to),
                            XMM,
                            y(b),
                            1,
                        );
                    }
                }
                self.vec_finish(d, to);
            }
            Inst::Splat { wide, d, a } => {
                let to = self.vec_target(d);
                let broadcast =
                    if wide { Code::VEX_Vpbroadcastq_ymm_xmmm64 } else { Code::VEX_Vpbroadcastd_ymm_xmmm32 };
                let mut from = self.rm(a, RAX);
                if let Rm::Register(_) = from {
                    let (code, kind) = if wide {
                        (Code::VEX_Vmovq_xmm_rm64, Kind::R64)
                    } else {
                        (Code::VEX_Vmovd_xmm_rm32, Kind::R32)
                    };
                    self.out.r_rm(code, x(to), from, kind);
                    from = Rm::Register(to);
                }
                self.out.r_rm(broadcast, y(to), from, XMM);
                self.vec_finish(d, to);
            }
            Inst::LowInt { d, a } => {
                let to = self.int_target(d);
                match self.rm(a, RAX) {
                    Rm::Register(a) => {
                        self.out.rm_r(Code::VEX_Vmovd_rm32_xmm, Rm::Register(to), Kind::R32, x(a))
                    }
                    memory => self.out.r_rm(Code::Mov_r32_rm32, Kind::R32.register(to), memory, Kind::R32),
                }
                self.finish(d, to);
            }
            Inst::SignBits { d, a } => {
                let to = self.int_target(d);
                let a = self.vec(a, X15);
                self.out.rr(Code::VEX_Vmovmskps_r32_ymm, Kind::R32.register(to), y(a));
                self.finish(d, to);
            }
            Inst::LoadHalves { d, low, high } => self.load_halves(d, low, high),
            Inst::Gather { d, from, offsets } => self.gather(d, from, offsets),
            Inst::StoreHalves { v, low, high } => {
                let v = self.vec(v, X15);
                let low = self.memory(low, RAX);
                let high = self.memory(high, RCX);
                self.out.rm_r(Code::VEX_Vmovups_xmmm128_xmm, low, XMM, x(v));
                self.out.rm_r_imm(Code::VEX_Vextractf128_xmmm128_ymm_imm8, high, XMM, y(v), 1);
            }
            Inst::Prefetch { from } => {
                let from = self.memory(from, RAX);
                self.out.rm(Code::Prefetcht1_m8, from, Kind::R32);
            }
            Inst::LoadMxcsr { from } => {
                let from = self.memory(from, RAX);
                self.out.rm(Code::VEX_Vldmxcsr_m32, from, Kind::R32);
            }
            _ => unreachable!("`inst` and `int_inst` handle all other instructions"),
        }
    }

    pub fn branch_any(&mut self, mut a: V, mut b: V, none: bool, to: Label) {
        if self.in_register(a).is_none() && self.in_register(b).is_some() {
            (a, b) = (b, a);
        }
        let a = self.vec(a, X14);
        let b = self.rm(b, RAX);
        self.out.r_rm(Code::VEX_Vptest_ymm_ymmm256, y(a), b, YMM);
        self.out.jump(if none { Code::Je_rel32_64 } else { Code::Jne_rel32_64 }, to);
    }

    fn vec_constant(&mut self, to: u8, constant: u32) {
        let words = self.function.constants[constant as usize];
        if words == [0; 8] {
            self.out.rr_rm(Code::VEX_Vpxor_xmm_xmm_xmmm128, x(to), x(to), Rm::Register(to), XMM);
        } else if words == [u32::MAX; 8] {
            self.vec_ones(to);
        } else {
            self.vec_load(to, Rm::Constant(constant));
        }
    }

    fn vec_rm(&mut self, code: shape::Code, d: V, b: V, imm: Option<u8>) {
        let (shape, code) = (Shape::of(code), code.to_iced());
        let b = if shape.accepts_memory() { self.rm(b, RAX) } else { Rm::Register(self.vec(b, X14)) };
        let to = self.vec_target(d);
        let (register, kind) = (shape.kind(0).register(to), shape.kind(1));
        match imm {
            Some(imm) => self.out.r_rm_imm(code, register, b, kind, imm.into()),
            None => self.out.r_rm(code, register, b, kind),
        }
        self.vec_finish(d, to);
    }

    fn vec_rvm(&mut self, code: shape::Code, d: V, mut a: V, mut b: V, imm: Option<u8>) {
        let (shape, code) = (Shape::of(code), code.to_iced());
        if shape.is_commutative() && self.in_register(a).is_none() && self.in_register(b).is_some() {
            (a, b) = (b, a);
        }
        let a = self.vec(a, X14);
        let b = if shape.accepts_memory() { self.rm(b, RAX) } else { Rm::Register(self.vec(b, X15)) };
        let to = self.vec_target(d);
        let (to_register, a, kind) = (shape.kind(0).register(to), shape.kind(1).register(a), shape.kind(2));
        match imm {
            Some(imm) => self.out.rr_rm_imm(code, to_register, a, b, kind, imm),
            None => self.out.rr_rm(code, to_register, a, b, kind),
        }
        self.vec_finish(d, to);
    }

    /// Selects the form by the operand that the result replaces: a in `x1 * x3 + x2` (132), b in `x2 * x1 +
    /// x3` (213), c in `x2 * x3 + x1` (231). In each form a precedes b, so that the resulting NaN does not
    /// depend on the locations of values.
    fn fma(&mut self, wide: bool, d: V, a: V, b: V, c: V) {
        let pick = |single, double| if wide { double } else { single };
        let f231 = pick(Code::VEX_Vfmadd231ps_ymm_ymm_ymmm256, Code::VEX_Vfmadd231pd_ymm_ymm_ymmm256);
        let f213 = pick(Code::VEX_Vfmadd213ps_ymm_ymm_ymmm256, Code::VEX_Vfmadd213pd_ymm_ymm_ymmm256);
        let f132 = pick(Code::VEX_Vfmadd132ps_ymm_ymm_ymmm256, Code::VEX_Vfmadd132pd_ymm_ymm_ymmm256);
        let to = self.vec_target(d);
        let tied = |v: V| self.in_register(v) == Some(to);
        let none = !tied(a) && !tied(b) && !tied(c);
        let (code, first, second, last) = if tied(c) {
            (f231, c, a, b)
        } else if tied(a) || none && self.in_register(a).is_none() && self.in_register(c).is_some() {
            // The 132 form is also better if a must be loaded anyway.
            (f132, a, c, b)
        } else if tied(b) {
            (f213, b, a, c)
        } else {
            (f231, c, a, b)
        };
        let first = self.rm(first, RAX);
        self.vec_load(to, first);
        let second = self.vec(second, X14);
        let last = self.rm(last, RAX);
        self.out.rr_rm(code, y(to), y(second), last, YMM);
        self.vec_finish(d, to);
    }

    fn gather(&mut self, d: V, from: Mem, offsets: V) {
        // The result, the offsets and the lane mask, which the host clears, must be in different registers.
        const BORROWED: u8 = 0;
        let (to, mut offsets) = (self.vec_target(d), self.vec(offsets, X15));
        let base = self.int(from.base, RAX);
        let borrows = to == X15 && offsets == X15;
        if borrows {
            let slot = self.rm(d, RCX);
            self.out.rm_r(Code::VEX_Vmovups_ymmm256_ymm, slot, YMM, y(BORROWED));
            self.vec_load(BORROWED, Rm::Register(X15));
            offsets = BORROWED;
        } else if to == offsets {
            self.vec_load(X15, Rm::Register(offsets));
            offsets = X15;
        }
        self.vec_ones(X14);
        self.out.gather(y(to), Kind::R64.register(base), y(offsets), from.disp, y(X14));
        if borrows {
            let slot = self.rm(d, RCX);
            self.vec_load(BORROWED, slot);
        }
        self.vec_finish(d, to);
    }

    /// Emits a cold call: see [`Inst::ColdCall`].
    pub fn cold_call(&mut self, i: usize, function: u64, arg: V) {
        let at = self.cold_save_area;
        let int_slots_offset = at + 32 * VECS.len() as i32;
        let found = self.cold_calls.binary_search_by_key(&i, |(i, _)| *i);
        let [ints, vecs] = found.map_or([u16::MAX; 2], |n| self.cold_calls[n].1);
        let is_live = |all: u16| move |(_, r): &(i32, u8)| all >> r & 1 == 1;
        let vec_saves = || (0..).map(|n| 32 * n).zip(VECS).filter(is_live(vecs));
        let int_saves = || (0..).map(|n| int_slots_offset + 8 * n).zip(CALLER_SAVED).filter(is_live(ints));
        vec_saves().for_each(|(n, r)| {
            self.out.rm_r(Code::VEX_Vmovups_ymmm256_ymm, Rm::Memory(RSP, at + n), YMM, y(r))
        });
        int_saves().for_each(|(at, r)| {
            self.out.rm_r(Code::Mov_rm64_r64, Rm::Memory(RSP, at), Kind::R64, Kind::R64.register(r))
        });
        self.load_src(ARGUMENTS[0], Src::Value(arg));
        self.out.bare(Code::VEX_Vzeroupper);
        self.load_imm(RAX, function);
        self.out.r(Code::Call_rm64, Register::RAX);
        vec_saves().for_each(|(n, r)| self.vec_load(r, Rm::Memory(RSP, at + n)));
        int_saves().for_each(|(at, r)| {
            self.out.r_rm(Code::Mov_r64_rm64, Kind::R64.register(r), Rm::Memory(RSP, at), Kind::R64)
        });
    }

    fn vec_ones(&mut self, to: u8) {
        self.out.rr_rm(Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256, y(to), y(to), Rm::Register(to), YMM);
    }

    fn load_halves(&mut self, d: V, low: Mem, high: Mem) {
        let to = self.vec_target(d);
        let low = self.memory(low, RAX);
        let high = self.memory(high, RCX);
        self.out.r_rm(Code::VEX_Vmovups_xmm_xmmm128, x(to), low, XMM);
        self.out.rr_rm_imm(Code::VEX_Vinsertf128_ymm_ymm_xmmm128_imm8, y(to), y(to), high, XMM, 1);
        self.vec_finish(d, to);
    }
}
