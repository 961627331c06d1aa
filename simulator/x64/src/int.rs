//! Selects host instructions for integer operations.

use crate::allocate::Location;
use crate::assembler::Assembler;
use crate::encode::Rm;
use crate::inst::{Cc, Class, Inst, Int1, Int2, Size, Src, V, Width};
use crate::reg::{RAX, RCX, RegisterKind};
use iced_x86::Code;

/// The last operand of an operation.
#[derive(Clone, Copy)]
enum LastOperand {
    Imm(i32),
    Rm(Rm),
}

/// The codes of an operation for 32 and for 64 bits.
type Codes = [Code; 2];

fn for_width(codes: Codes, width: Width) -> Code {
    codes[usize::from(width == Width::W64)]
}

const STORE: Codes = [Code::Mov_rm32_r32, Code::Mov_rm64_r64];
const CMP: Codes = [Code::Cmp_r32_rm32, Code::Cmp_r64_rm64];
const CMP_MEMORY: Codes = [Code::Cmp_rm32_r32, Code::Cmp_rm64_r64];
const CMP_IMM: Codes = [Code::Cmp_rm32_imm32, Code::Cmp_rm64_imm32];
const CMP_IMM8: Codes = [Code::Cmp_rm32_imm8, Code::Cmp_rm64_imm8];
const TEST: Codes = [Code::Test_rm32_r32, Code::Test_rm64_r64];
const LEA: Codes = [Code::Lea_r32_m, Code::Lea_r64_m];

impl Assembler<'_> {
    /// Returns the last operand, with RCX as the scratch register.
    fn last(&mut self, src: Src, width: Width) -> LastOperand {
        match src {
            Src::Imm(imm) => LastOperand::Imm(imm),
            Src::Value(v) => {
                if let Location::Const(bits) = self.location(v) {
                    let fits = if width == Width::W32 { Ok(bits as i32) } else { i32::try_from(bits as i64) };
                    if let Ok(imm) = fits {
                        return LastOperand::Imm(imm);
                    }
                }
                LastOperand::Rm(self.rm(v, RCX))
            }
        }
    }

    /// Emits a comparison. Returns the condition that is true if the comparison is.
    pub fn condition(&mut self, cc: Cc, width: Width, a: V, b: Src) -> Cc {
        if let Some((v, held)) = self.flags.take() {
            debug_assert!(v == a);
            return if cc == Cc::Ne { held } else { inverse(held) };
        }
        let kind = width.kind();
        let mut first = self.rm(a, RAX);
        match (first, self.last(b, width)) {
            (Rm::Register(a), LastOperand::Imm(0)) => {
                self.out.rm_r(for_width(TEST, width), first, kind, kind.register(a))
            }
            (_, LastOperand::Imm(imm)) => {
                let code = if i8::try_from(imm).is_ok() {
                    for_width(CMP_IMM8, width)
                } else {
                    for_width(CMP_IMM, width)
                };
                self.out.rm_imm(code, first, kind, imm);
            }
            (_, LastOperand::Rm(Rm::Register(b))) => {
                self.out.rm_r(for_width(CMP_MEMORY, width), first, kind, kind.register(b))
            }
            (_, LastOperand::Rm(b)) => {
                if !matches!(first, Rm::Register(_)) {
                    self.int_load(width, RAX, first);
                    first = Rm::Register(RAX);
                }
                if let Rm::Register(a) = first {
                    self.out.r_rm(for_width(CMP, width), kind.register(a), b, kind);
                }
            }
        }
        cc
    }

    /// Emits an integer instruction. Returns false if it is not one.
    pub fn int_inst(&mut self, i: usize, inst: &Inst) -> bool {
        match *inst {
            Inst::Const { d, bits } => match self.location(d) {
                Location::Register(to) => self.load_imm(to, bits),
                Location::Slot(_) => {
                    let slot = self.rm(d, RAX);
                    match i32::try_from(bits as i64) {
                        Ok(bits) => self.out.rm_imm(Code::Mov_rm64_imm32, slot, RegisterKind::R64, bits),
                        Err(_) => {
                            self.load_imm(RAX, bits);
                            self.finish(d, RAX);
                        }
                    }
                }
                _ => {}
            },
            Inst::Move { d, a } if self.function.class(d) == Class::Int => match self.location(d) {
                Location::Register(to) => self.load_src(to, Src::Value(a)),
                _ => {
                    let from = self.int(a, RAX);
                    self.finish(d, from);
                }
            },
            Inst::Int2 { op, width, d, a, b } => self.int2(op, width, d, a, b),
            Inst::Int1 { op, width, d, a } => self.int1(op, width, d, a),
            Inst::Compare { cc, width, d, a, b } => {
                let cc = self.condition(cc, width, a, b);
                if self.code.in_flags.binary_search(&i).is_ok() {
                    self.flags = Some((d, cc));
                } else {
                    let to = self.int_target(d);
                    self.out.r(set_code(cc), RegisterKind::R8.register(to));
                    self.out.r_rm(
                        Code::Movzx_r32_rm8,
                        RegisterKind::R32.register(to),
                        Rm::Register(to),
                        RegisterKind::R8,
                    );
                    self.finish(d, to);
                }
            }
            Inst::Select { d, cond, a, b } => self.select(d, cond, a, b),
            Inst::Load { size, d, from } => {
                let from = self.memory(from, RAX);
                let to = self.int_target(d);
                match size {
                    Size::B1 => self.out.r_rm(
                        Code::Movzx_r32_rm8,
                        RegisterKind::R32.register(to),
                        from,
                        RegisterKind::R8,
                    ),
                    Size::B2 => self.out.r_rm(
                        Code::Movzx_r32_rm16,
                        RegisterKind::R32.register(to),
                        from,
                        RegisterKind::R16,
                    ),
                    Size::B4 => self.int_load(Width::W32, to, from),
                    Size::B8 => self.int_load(Width::W64, to, from),
                }
                self.finish(d, to);
            }
            Inst::Store { size, to, v } => {
                let width = if size == Size::B8 { Width::W64 } else { Width::W32 };
                let (kind, imm_code, code) = match size {
                    Size::B1 => (RegisterKind::R8, Code::Mov_rm8_imm8, Code::Mov_rm8_r8),
                    Size::B2 => (RegisterKind::R16, Code::Mov_rm16_imm16, Code::Mov_rm16_r16),
                    Size::B4 => (RegisterKind::R32, Code::Mov_rm32_imm32, for_width(STORE, width)),
                    Size::B8 => (RegisterKind::R64, Code::Mov_rm64_imm32, for_width(STORE, width)),
                };
                let last = self.last(v, width);
                if let LastOperand::Rm(from @ Rm::Memory(..)) = last {
                    self.int_load(width, RCX, from);
                }
                let to = self.memory(to, RAX);
                match last {
                    LastOperand::Imm(imm) if size == Size::B1 => {
                        self.out.rm_imm(imm_code, to, kind, (imm as u8).into())
                    }
                    LastOperand::Imm(imm) if size == Size::B2 => {
                        self.out.rm_imm(imm_code, to, kind, (imm as u16).into())
                    }
                    LastOperand::Imm(imm) => self.out.rm_imm(imm_code, to, kind, imm),
                    LastOperand::Rm(Rm::Register(v)) => self.out.rm_r(code, to, kind, kind.register(v)),
                    LastOperand::Rm(_) => self.out.rm_r(code, to, kind, kind.register(RCX)),
                }
            }
            _ => return false,
        }
        true
    }

    fn int2(&mut self, op: Int2, width: Width, d: V, a: V, b: Src) {
        let kind = width.kind();
        let to = self.int_target(d);
        let register = kind.register(to);
        let last = self.last(b, width);
        match op {
            Int2::Shl | Int2::Shr | Int2::Sar => self.shift(op, width, to, a, last),
            Int2::Mul => {
                if let LastOperand::Imm(imm) = last {
                    let a = self.rm(a, to);
                    let code = match i8::try_from(imm) {
                        Ok(_) => for_width([Code::Imul_r32_rm32_imm8, Code::Imul_r64_rm64_imm8], width),
                        Err(_) => for_width([Code::Imul_r32_rm32_imm32, Code::Imul_r64_rm64_imm32], width),
                    };
                    self.out.r_rm_imm(code, register, a, kind, imm);
                } else {
                    self.two_address(op, width, to, a, last);
                }
            }
            Int2::Add | Int2::Sub if self.sum(op, width, to, a, last) => {}
            _ => self.two_address(op, width, to, a, last),
        }
        self.finish(d, to);
    }

    /// Emits a sum by LEA, if the result's register differs from those of the operands.
    fn sum(&mut self, op: Int2, width: Width, to: u8, a: V, last: LastOperand) -> bool {
        let Location::Register(a) = self.location(a) else { return false };
        let kind = RegisterKind::R64;
        let disp = match (op, last) {
            (Int2::Add, LastOperand::Rm(Rm::Register(b))) if a != to && b != to => {
                self.out.lea(
                    for_width(LEA, width),
                    width.kind().register(to),
                    kind.register(a),
                    Some(kind.register(b)),
                    1,
                    0,
                );
                return true;
            }
            (Int2::Add, LastOperand::Imm(imm)) => Some(imm),
            (Int2::Sub, LastOperand::Imm(imm)) => imm.checked_neg(),
            _ => None,
        };
        match disp {
            Some(disp) if a != to => {
                self.out.lea(
                    for_width(LEA, width),
                    width.kind().register(to),
                    kind.register(a),
                    None,
                    1,
                    disp,
                );
                true
            }
            _ => false,
        }
    }

    fn two_address(&mut self, op: Int2, width: Width, to: u8, a: V, last: LastOperand) {
        let kind = width.kind();
        let register = kind.register(to);
        let (codes, imm_codes, imm8_codes) = codes(op);
        let a = self.rm(a, first_operand_scratch(to, last));
        if is_in_register(last, to) && a != Rm::Register(to) {
            if op == Int2::Sub {
                self.out.rm(for_width([Code::Neg_rm32, Code::Neg_rm64], width), Rm::Register(to), kind);
                self.out.r_rm(for_width([Code::Add_r32_rm32, Code::Add_r64_rm64], width), register, a, kind);
            } else {
                self.out.r_rm(for_width(codes, width), register, a, kind);
            }
            return;
        }
        if a != Rm::Register(to) {
            self.int_load(width, to, a);
        }
        match last {
            LastOperand::Imm(imm) => {
                let codes = if i8::try_from(imm).is_ok() { imm8_codes } else { imm_codes };
                self.out.rm_imm(for_width(codes, width), Rm::Register(to), kind, imm);
            }
            LastOperand::Rm(b) => self.out.r_rm(for_width(codes, width), register, b, kind),
        }
    }

    fn shift(&mut self, op: Int2, width: Width, to: u8, a: V, last: LastOperand) {
        let kind = width.kind();
        let a = self.rm(a, first_operand_scratch(to, last));
        match last {
            LastOperand::Imm(imm) => {
                let count = imm & if width == Width::W32 { 31 } else { 63 };
                if a != Rm::Register(to) || count == 0 {
                    self.int_load(width, to, a);
                }
                let codes = match op {
                    Int2::Shl => [Code::Shl_rm32_imm8, Code::Shl_rm64_imm8],
                    Int2::Shr => [Code::Shr_rm32_imm8, Code::Shr_rm64_imm8],
                    _ => [Code::Sar_rm32_imm8, Code::Sar_rm64_imm8],
                };
                if count != 0 {
                    self.out.rm_imm(for_width(codes, width), Rm::Register(to), kind, count);
                }
            }
            LastOperand::Rm(b) => {
                let count = match b {
                    Rm::Register(count) => count,
                    memory => {
                        self.int_load(width, RCX, memory);
                        RCX
                    }
                };
                let codes = match op {
                    Int2::Shl => [Code::VEX_Shlx_r32_rm32_r32, Code::VEX_Shlx_r64_rm64_r64],
                    Int2::Shr => [Code::VEX_Shrx_r32_rm32_r32, Code::VEX_Shrx_r64_rm64_r64],
                    _ => [Code::VEX_Sarx_r32_rm32_r32, Code::VEX_Sarx_r64_rm64_r64],
                };
                self.out.r_rm_r(for_width(codes, width), kind.register(to), a, kind, kind.register(count));
            }
        }
    }

    fn int1(&mut self, op: Int1, width: Width, d: V, a: V) {
        let to = self.int_target(d);
        let a = self.rm(a, RAX);
        let kind = width.kind();
        let in_place = |this: &mut Self, codes: Codes| {
            if a != Rm::Register(to) {
                this.int_load(width, to, a);
            }
            this.out.rm(for_width(codes, width), Rm::Register(to), kind);
        };
        let other = |this: &mut Self, codes: Codes| {
            this.out.r_rm(for_width(codes, width), kind.register(to), a, kind)
        };
        match op {
            Int1::Not => in_place(self, [Code::Not_rm32, Code::Not_rm64]),
            Int1::Neg => in_place(self, [Code::Neg_rm32, Code::Neg_rm64]),
            Int1::SwapBytes => {
                if a != Rm::Register(to) {
                    self.int_load(width, to, a);
                }
                self.out.r(for_width([Code::Bswap_r32, Code::Bswap_r64], width), kind.register(to));
            }
            Int1::CountOnes => other(self, [Code::Popcnt_r32_rm32, Code::Popcnt_r64_rm64]),
            Int1::LeadingZeros => other(self, [Code::Lzcnt_r32_rm32, Code::Lzcnt_r64_rm64]),
            Int1::TrailingZeros => other(self, [Code::Tzcnt_r32_rm32, Code::Tzcnt_r64_rm64]),
            Int1::SignExtend32 if width == Width::W64 => {
                self.out.r_rm(Code::Movsxd_r64_rm32, RegisterKind::R64.register(to), a, RegisterKind::R32)
            }
            Int1::SignExtend32 | Int1::ZeroExtend32 => self.int_load(Width::W32, to, a),
        }
        self.finish(d, to);
    }

    fn select(&mut self, d: V, cond: V, a: V, b: V) {
        let cc = self.condition(Cc::Ne, Width::W64, cond, Src::Imm(0));
        // The flags must be preserved from here on.
        let to = self.int_target(d);
        let register = RegisterKind::R64.register(to);
        if self.location(a) == Location::Register(to) {
            let b = self.rm(b, RCX);
            self.out.r_rm(move_code(inverse(cc)), register, b, RegisterKind::R64);
        } else {
            self.load_src(to, Src::Value(b));
            let a = self.rm(a, RCX);
            self.out.r_rm(move_code(cc), register, a, RegisterKind::R64);
        }
        self.finish(d, to);
    }
}

/// Returns whether an operand is in this register.
fn is_in_register(last: LastOperand, register: u8) -> bool {
    matches!(last, LastOperand::Rm(Rm::Register(b)) if b == register)
}

/// Returns a scratch register for the first operand that does not clobber the last one.
fn first_operand_scratch(to: u8, last: LastOperand) -> u8 {
    if is_in_register(last, to) { RAX } else { to }
}

/// Returns the codes with a register-or-memory operand, a 32-bit immediate, and an 8-bit immediate.
fn codes(op: Int2) -> (Codes, Codes, Codes) {
    use Code::*;
    match op {
        Int2::Add => {
            ([Add_r32_rm32, Add_r64_rm64], [Add_rm32_imm32, Add_rm64_imm32], [Add_rm32_imm8, Add_rm64_imm8])
        }
        Int2::Sub => {
            ([Sub_r32_rm32, Sub_r64_rm64], [Sub_rm32_imm32, Sub_rm64_imm32], [Sub_rm32_imm8, Sub_rm64_imm8])
        }
        Int2::And => {
            ([And_r32_rm32, And_r64_rm64], [And_rm32_imm32, And_rm64_imm32], [And_rm32_imm8, And_rm64_imm8])
        }
        Int2::Or => {
            ([Or_r32_rm32, Or_r64_rm64], [Or_rm32_imm32, Or_rm64_imm32], [Or_rm32_imm8, Or_rm64_imm8])
        }
        Int2::Xor => {
            ([Xor_r32_rm32, Xor_r64_rm64], [Xor_rm32_imm32, Xor_rm64_imm32], [Xor_rm32_imm8, Xor_rm64_imm8])
        }
        // These have instructions of their own for immediates.
        Int2::Mul | Int2::Shl | Int2::Shr | Int2::Sar => {
            ([Imul_r32_rm32, Imul_r64_rm64], [INVALID; 2], [INVALID; 2])
        }
    }
}

fn inverse(cc: Cc) -> Cc {
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

fn set_code(cc: Cc) -> Code {
    match cc {
        Cc::Eq => Code::Sete_rm8,
        Cc::Ne => Code::Setne_rm8,
        Cc::LtS => Code::Setl_rm8,
        Cc::LeS => Code::Setle_rm8,
        Cc::GtS => Code::Setg_rm8,
        Cc::GeS => Code::Setge_rm8,
        Cc::LtU => Code::Setb_rm8,
        Cc::LeU => Code::Setbe_rm8,
        Cc::GtU => Code::Seta_rm8,
        Cc::GeU => Code::Setae_rm8,
    }
}

fn move_code(cc: Cc) -> Code {
    match cc {
        Cc::Eq => Code::Cmove_r64_rm64,
        Cc::Ne => Code::Cmovne_r64_rm64,
        Cc::LtS => Code::Cmovl_r64_rm64,
        Cc::LeS => Code::Cmovle_r64_rm64,
        Cc::GtS => Code::Cmovg_r64_rm64,
        Cc::GeS => Code::Cmovge_r64_rm64,
        Cc::LtU => Code::Cmovb_r64_rm64,
        Cc::LeU => Code::Cmovbe_r64_rm64,
        Cc::GtU => Code::Cmova_r64_rm64,
        Cc::GeU => Code::Cmovae_r64_rm64,
    }
}
