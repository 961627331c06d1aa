//! Selects host instructions for vector operations.

use crate::allocate::Location;
use crate::assembler::{Assembler, YMM};
use crate::code::Code;
use crate::encode::Rm;
use crate::error::CompileError;
use crate::inst::{Inst, Mem, V};
use crate::reg::{RAX, RCX, RegisterKind, X14, X15};
use iced_x86::{Code as Host, Register};

const XMM: RegisterKind = RegisterKind::Xmm;

fn x(number: u8) -> Register {
    XMM.register(number)
}

fn y(number: u8) -> Register {
    YMM.register(number)
}

impl Assembler<'_> {
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
                self.out.r_rm(Host::VEX_Vbroadcastss_ymm_m32, y(to), from, XMM);
                self.vec_finish(d, to);
            }
            Inst::VecStore { to, v } => {
                let v = self.vec(v, X15);
                let to = self.memory(to, RAX);
                self.out.rm_r(Host::VEX_Vmovups_ymmm256_ymm, to, YMM, y(v));
            }
            Inst::VecStream { to, v } => {
                let v = self.vec(v, X15);
                let to = self.memory(to, RAX);
                self.out.rm_r(Host::VEX_Vmovntps_m256_ymm, to, YMM, y(v));
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
                    Host::VEX_Vblendvpd_ymm_ymm_ymmm256_ymm
                } else {
                    Host::VEX_Vblendvps_ymm_ymm_ymmm256_ymm
                };
                self.out.rr_rm_r(code, y(to), y(a), b, YMM, y(mask));
                self.vec_finish(d, to);
            }
            Inst::UpperHalf { d, b } => {
                let to = self.vec_target(d);
                match self.rm(b, RAX) {
                    Rm::Memory(base, disp) if disp < i32::MAX - 16 => {
                        self.out.r_rm(Host::VEX_Vmovups_xmm_xmmm128, x(to), Rm::Memory(base, disp + 16), XMM);
                    }
                    _ => {
                        let b = self.vec(b, X15);
                        self.out.rm_r_imm(
                            Host::VEX_Vextractf128_xmmm128_ymm_imm8,
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
                    if wide { Host::VEX_Vpbroadcastq_ymm_xmmm64 } else { Host::VEX_Vpbroadcastd_ymm_xmmm32 };
                let mut from = self.rm(a, RAX);
                if let Rm::Register(_) = from {
                    let (code, kind) = if wide {
                        (Host::VEX_Vmovq_xmm_rm64, RegisterKind::R64)
                    } else {
                        (Host::VEX_Vmovd_xmm_rm32, RegisterKind::R32)
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
                        self.out.rm_r(Host::VEX_Vmovd_rm32_xmm, Rm::Register(to), RegisterKind::R32, x(a))
                    }
                    memory => self.out.r_rm(
                        Host::Mov_r32_rm32,
                        RegisterKind::R32.register(to),
                        memory,
                        RegisterKind::R32,
                    ),
                }
                self.finish(d, to);
            }
            Inst::SignBits { d, a } => {
                let to = self.int_target(d);
                let a = self.vec(a, X15);
                self.out.rr(Host::VEX_Vmovmskps_r32_ymm, RegisterKind::R32.register(to), y(a));
                self.finish(d, to);
            }
            Inst::LoadHalves { d, low, high } => self.load_halves(d, low, high),
            Inst::Gather { d, from, offsets } => self.gather(d, from, offsets),
            Inst::StoreHalves { v, low, high } => {
                let v = self.vec(v, X15);
                let low = self.memory(low, RAX);
                let high = self.memory(high, RCX);
                self.out.rm_r(Host::VEX_Vmovups_xmmm128_xmm, low, XMM, x(v));
                self.out.rm_r_imm(Host::VEX_Vextractf128_xmmm128_ymm_imm8, high, XMM, y(v), 1);
            }
            Inst::Prefetch { from } => {
                let from = self.memory(from, RAX);
                self.out.rm(Host::Prefetcht1_m8, from, RegisterKind::R32);
            }
            Inst::LoadMxcsr { from } => {
                let from = self.memory(from, RAX);
                self.out.rm(Host::VEX_Vldmxcsr_m32, from, RegisterKind::R32);
            }
            _ => unreachable!("`inst` and `int_inst` handle all other instructions"),
        }
    }

    fn vec_constant(&mut self, to: u8, constant: u32) {
        let words = self.function.constants[constant as usize];
        if words == [0; 8] {
            self.out.rr_rm(Host::VEX_Vpxor_xmm_xmm_xmmm128, x(to), x(to), Rm::Register(to), XMM);
        } else if words == [u32::MAX; 8] {
            self.vec_ones(to);
        } else {
            self.vec_load(to, Rm::Constant(constant));
        }
    }

    fn vec_rm(&mut self, code: Code, d: V, b: V, imm: Option<u8>) {
        let (shape, host) = (code.shape(), code.to_iced());
        let &[to_kind, kind] = shape.kinds else { return self.out.fail(CompileError::Operands(code)) };
        let b = if shape.accepts_memory() { self.rm(b, RAX) } else { Rm::Register(self.vec(b, X14)) };
        let to = self.vec_target(d);
        let register = to_kind.register(to);
        match imm {
            Some(imm) => self.out.r_rm_imm(host, register, b, kind, imm.into()),
            None => self.out.r_rm(host, register, b, kind),
        }
        self.vec_finish(d, to);
    }

    fn vec_rvm(&mut self, code: Code, d: V, mut a: V, mut b: V, imm: Option<u8>) {
        let (shape, host) = (code.shape(), code.to_iced());
        let &[to_kind, a_kind, kind] = shape.kinds else {
            return self.out.fail(CompileError::Operands(code));
        };
        if shape.is_commutative() && self.in_register(a).is_none() && self.in_register(b).is_some() {
            (a, b) = (b, a);
        }
        let a = self.vec(a, X14);
        let b = if shape.accepts_memory() { self.rm(b, RAX) } else { Rm::Register(self.vec(b, X15)) };
        let to = self.vec_target(d);
        let (to_register, a) = (to_kind.register(to), a_kind.register(a));
        match imm {
            Some(imm) => self.out.rr_rm_imm(host, to_register, a, b, kind, imm),
            None => self.out.rr_rm(host, to_register, a, b, kind),
        }
        self.vec_finish(d, to);
    }

    /// Selects the form by the operand that the result replaces: a in `x1 * x3 + x2` (132), b in `x2 * x1 +
    /// x3` (213), c in `x2 * x3 + x1` (231). In each form a precedes b, so that the resulting NaN does not
    /// depend on the locations of values.
    fn fma(&mut self, wide: bool, d: V, a: V, b: V, c: V) {
        let pick = |single, double| if wide { double } else { single };
        let f231 = pick(Host::VEX_Vfmadd231ps_ymm_ymm_ymmm256, Host::VEX_Vfmadd231pd_ymm_ymm_ymmm256);
        let f213 = pick(Host::VEX_Vfmadd213ps_ymm_ymm_ymmm256, Host::VEX_Vfmadd213pd_ymm_ymm_ymmm256);
        let f132 = pick(Host::VEX_Vfmadd132ps_ymm_ymm_ymmm256, Host::VEX_Vfmadd132pd_ymm_ymm_ymmm256);
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
            self.out.rm_r(Host::VEX_Vmovups_ymmm256_ymm, slot, YMM, y(BORROWED));
            self.vec_load(BORROWED, Rm::Register(X15));
            offsets = BORROWED;
        } else if to == offsets {
            self.vec_load(X15, Rm::Register(offsets));
            offsets = X15;
        }
        self.vec_ones(X14);
        self.out.gather(y(to), RegisterKind::R64.register(base), y(offsets), from.disp, y(X14));
        if borrows {
            let slot = self.rm(d, RCX);
            self.vec_load(BORROWED, slot);
        }
        self.vec_finish(d, to);
    }

    fn load_halves(&mut self, d: V, low: Mem, high: Mem) {
        let to = self.vec_target(d);
        let low = self.memory(low, RAX);
        let high = self.memory(high, RCX);
        self.out.r_rm(Host::VEX_Vmovups_xmm_xmmm128, x(to), low, XMM);
        self.out.rr_rm_imm(Host::VEX_Vinsertf128_ymm_ymm_xmmm128_imm8, y(to), y(to), high, XMM, 1);
        self.vec_finish(d, to);
    }
}
