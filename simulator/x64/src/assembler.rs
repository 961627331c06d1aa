//! The state while host instructions are emitted, and access to the operands of instructions: registers, stack
//! slots, constants and folded loads.

use crate::allocate::Location;
use crate::allocated::Allocated;
use crate::encode::{Buffer, Rm};
use crate::error::CompileError;
use crate::frame::Frame;
use crate::function::Function;
use crate::inst::{Cc, Class, Mem, Src, V, Width};
use crate::reg::{RAX, RSP, RegisterKind, X14, X15};
use crate::share::Vector;
use iced_x86::Code;

pub(crate) const YMM: RegisterKind = RegisterKind::Ymm;

pub(crate) struct Assembler<'a> {
    pub function: &'a Function,
    pub code: &'a Allocated<'a>,
    pub out: Buffer,
    pub frame: Frame,
    pub has_vectors: bool,
    /// The vector in memory that is also in `X14`.
    pub in_scratch: Option<Vector>,
    /// The value that exists only in the flags, and the condition under which it is not 0.
    pub flags: Option<(V, Cc)>,
}

impl<'a> Assembler<'a> {
    pub fn new(code: &'a Allocated<'a>) -> Result<Assembler<'a>, CompileError> {
        let function = code.function;
        Ok(Assembler {
            function,
            code,
            frame: Frame::new(code)?,
            out: Buffer::new(function.labels, 16 + 8 * function.insts.len())?,
            has_vectors: function.classes.contains(&Class::Vec),
            in_scratch: None,
            flags: None,
        })
    }

    pub fn location(&self, v: V) -> Location {
        self.code.location(v)
    }

    /// Returns a value's register or memory operand. `scratch` may be used for a base address, or to
    /// materialise a constant.
    pub fn rm(&mut self, v: V, scratch: u8) -> Rm {
        let location = self.location(v);
        if self.in_scratch.is_some_and(|vector| vector.is(v, location)) {
            return Rm::Register(X14);
        }
        self.home(v, location, scratch)
    }

    /// As [`Self::rm`], but never a register that only has a copy of the value.
    pub fn home(&mut self, v: V, location: Location, scratch: u8) -> Rm {
        match location {
            Location::Register(register) => Rm::Register(register),
            Location::Slot(n) => match self.function.class(v) {
                Class::Int => Rm::Memory(RSP, self.frame.int_slots + 8 * n as i32),
                Class::Vec => Rm::Memory(RSP, self.frame.vec_slots + 32 * n as i32),
            },
            Location::Const(bits) => {
                self.load_imm(scratch, bits);
                Rm::Register(scratch)
            }
            Location::VecConst(n) => Rm::Constant(n),
            Location::Folded(mem) => self.memory(mem, scratch),
            // The value is read but never written: any register will do.
            Location::Unused => {
                Rm::Register(if self.function.class(v) == Class::Int { scratch } else { X15 })
            }
        }
    }

    pub fn memory(&mut self, mem: Mem, scratch: u8) -> Rm {
        Rm::Memory(self.int(mem.base, scratch), mem.disp)
    }

    pub fn load_imm(&mut self, to: u8, bits: u64) {
        // Does not use XOR, which would change the flags.
        if let Ok(bits) = u32::try_from(bits) {
            self.out.r_imm32(Code::Mov_r32_imm32, RegisterKind::R32.register(to), bits);
        } else if let Ok(bits) = i32::try_from(bits as i64) {
            self.out.rm_imm(Code::Mov_rm64_imm32, Rm::Register(to), RegisterKind::R64, bits);
        } else {
            self.out.r_imm64(Code::Mov_r64_imm64, RegisterKind::R64.register(to), bits);
        }
    }

    /// Returns a register that holds the value: `scratch` if the value is not in one.
    pub fn int(&mut self, v: V, scratch: u8) -> u8 {
        match self.rm(v, scratch) {
            Rm::Register(register) => register,
            memory => {
                self.int_load(Width::W64, scratch, memory);
                scratch
            }
        }
    }

    pub fn int_load(&mut self, width: Width, to: u8, from: Rm) {
        // A 32-bit move of a register to itself clears the upper half.
        if from != Rm::Register(to) || width == Width::W32 {
            let kind = width.kind();
            let code = if width == Width::W32 { Code::Mov_r32_rm32 } else { Code::Mov_r64_rm64 };
            self.out.r_rm(code, kind.register(to), from, kind);
        }
    }

    /// Loads an operand. Preserves the flags.
    pub fn load_src(&mut self, to: u8, src: Src) {
        match src {
            Src::Imm(imm) => self.load_imm(to, imm as i64 as u64),
            Src::Value(v) => {
                let from = self.rm(v, to);
                self.int_load(Width::W64, to, from);
            }
        }
    }

    /// Returns the register that a result is computed in.
    pub fn int_target(&self, d: V) -> u8 {
        match self.location(d) {
            Location::Register(register) => register,
            _ => RAX,
        }
    }

    /// Moves a result from the register it was computed in to its location.
    pub fn finish(&mut self, d: V, made: u8) {
        match self.location(d) {
            Location::Register(register) => self.int_load(Width::W64, register, Rm::Register(made)),
            Location::Slot(_) => {
                let slot = self.rm(d, RAX);
                self.out.rm_r(Code::Mov_rm64_r64, slot, RegisterKind::R64, RegisterKind::R64.register(made));
            }
            _ => {}
        }
    }

    /// Returns the register that a result is computed in.
    pub fn vec_target(&self, d: V) -> u8 {
        match self.location(d) {
            Location::Register(register) => register,
            _ => X15,
        }
    }

    /// Moves a result from the register it was computed in to its location.
    pub fn vec_finish(&mut self, d: V, made: u8) {
        match self.location(d) {
            Location::Register(register) => self.vec_load(register, Rm::Register(made)),
            location @ Location::Slot(_) => {
                let slot = self.home(d, location, RAX);
                self.out.rm_r(Code::VEX_Vmovups_ymmm256_ymm, slot, YMM, YMM.register(made));
            }
            _ => {}
        }
    }

    pub fn vec_load(&mut self, to: u8, from: Rm) {
        match from {
            Rm::Register(register) if register == to => {}
            Rm::Register(_) => self.out.r_rm(Code::VEX_Vmovaps_ymm_ymmm256, YMM.register(to), from, YMM),
            _ => self.out.r_rm(Code::VEX_Vmovups_ymm_ymmm256, YMM.register(to), from, YMM),
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

    pub fn in_register(&self, v: V) -> Option<u8> {
        match self.location(v) {
            Location::Register(register) => Some(register),
            _ => None,
        }
    }

    pub fn vec_ones(&mut self, to: u8) {
        self.out.rr_rm(
            Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256,
            YMM.register(to),
            YMM.register(to),
            Rm::Register(to),
            YMM,
        );
    }
}
