//! Emits what moves control: the prologue and the epilogue, calls, jumps and branches.

use crate::allocate::Location;
use crate::assembler::{Assembler, YMM};
use crate::encode::Rm;
use crate::error::CompileError;
use crate::inst::{Cc, Inst, Label, Src, V};
use crate::reg::{ARGUMENTS, CALLEE_SAVED, CALLER_SAVED, RAX, RCX, RSP, RegisterKind, VECS, X14};
use iced_x86::{Code, Register};

/// The operating system grows the stack when each of its pages is touched in turn.
const PAGE: i32 = 4096;

impl Assembler<'_> {
    pub fn prologue(&mut self) {
        let saved = self.callee_saved();
        for &register in &saved {
            self.out.r(Code::Push_r64, RegisterKind::R64.register(register));
        }
        if self.frame.saved_rsp.is_some() {
            self.out.rr(Code::Mov_r64_rm64, Register::RAX, Register::RSP);
        }
        for page in 1..=self.frame.size / PAGE {
            self.out.rm_imm(Code::Or_rm32_imm8, Rm::Memory(RSP, -page * PAGE), RegisterKind::R32, 0);
        }
        if self.frame.size > 0 {
            self.out.rm_imm(Code::Sub_rm64_imm32, Rm::Register(RSP), RegisterKind::R64, self.frame.size);
        }
        if let Some(saved_rsp) = self.frame.saved_rsp {
            self.out.rm_imm(Code::And_rm64_imm8, Rm::Register(RSP), RegisterKind::R64, -32);
            self.out.rm_r(Code::Mov_rm64_r64, Rm::Memory(RSP, saved_rsp), RegisterKind::R64, Register::RAX);
        }
        let (mut moves, mut stores) = (Vec::new(), Vec::new());
        for (&param, &from) in self.function.params.iter().zip(&ARGUMENTS) {
            match self.location(param) {
                Location::Register(to) => moves.push((to, from)),
                Location::Slot(_) => stores.push((param, from)),
                _ => {}
            }
        }
        for (param, from) in stores {
            let slot = self.rm(param, RAX);
            self.out.rm_r(Code::Mov_rm64_r64, slot, RegisterKind::R64, RegisterKind::R64.register(from));
        }
        self.parallel_moves(moves);
        if self.function.params.len() > ARGUMENTS.len() {
            self.out.fail(CompileError::Parameters(self.function.params.len()));
        }
    }

    /// Returns the callee-saved registers in use, in the order in which they are pushed.
    fn callee_saved(&self) -> Vec<u8> {
        CALLEE_SAVED
            .into_iter()
            .filter(|register| self.code.allocation.callee_saved >> register & 1 == 1)
            .collect()
    }

    pub fn epilogue(&mut self) {
        if self.has_vectors {
            self.out.bare(Code::VEX_Vzeroupper);
        }
        if let Some(saved_rsp) = self.frame.saved_rsp {
            self.out.r_rm(Code::Mov_r64_rm64, Register::RSP, Rm::Memory(RSP, saved_rsp), RegisterKind::R64);
        } else if self.frame.size > 0 {
            self.out.rm_imm(Code::Add_rm64_imm32, Rm::Register(RSP), RegisterKind::R64, self.frame.size);
        }
        for register in self.callee_saved().into_iter().rev() {
            self.out.r(Code::Pop_r64, RegisterKind::R64.register(register));
        }
        self.out.bare(Code::Retnq);
    }

    /// Performs parallel moves between general registers, given as `(to, from)`.
    fn parallel_moves(&mut self, mut moves: Vec<(u8, u8)>) {
        moves.retain(|(to, from)| to != from);
        while !moves.is_empty() {
            let ready = moves.iter().position(|&(to, _)| moves.iter().all(|&(_, from)| from != to));
            if let Some(ready) = ready {
                let (to, from) = moves.swap_remove(ready);
                self.out.rr(
                    Code::Mov_r64_rm64,
                    RegisterKind::R64.register(to),
                    RegisterKind::R64.register(from),
                );
            } else {
                // A cycle: break it by moving one value to a scratch register.
                let waits = moves[0].1;
                self.out.rr(Code::Mov_r64_rm64, Register::RAX, RegisterKind::R64.register(waits));
                moves.iter_mut().filter(|(_, from)| *from == waits).for_each(|(_, from)| *from = RAX);
            }
        }
    }

    pub fn call(&mut self, function: u64, args: &[Src], d: Option<V>) {
        for (n, &arg) in args.iter().enumerate().skip(ARGUMENTS.len()) {
            self.load_src(RAX, arg);
            let at = 8 * (n - ARGUMENTS.len()) as i32;
            self.out.rm_r(Code::Mov_rm64_r64, Rm::Memory(RSP, at), RegisterKind::R64, Register::RAX);
        }
        let mut moves = Vec::new();
        for (&arg, &to) in args.iter().zip(&ARGUMENTS) {
            if let Src::Value(v) = arg
                && let Location::Register(from) = self.location(v)
            {
                moves.push((to, from));
            }
        }
        self.parallel_moves(moves);
        for (&arg, &to) in args.iter().zip(&ARGUMENTS) {
            match arg {
                Src::Value(v) if matches!(self.location(v), Location::Register(_)) => {}
                _ => self.load_src(to, arg),
            }
        }
        if self.has_vectors {
            self.out.bare(Code::VEX_Vzeroupper);
        }
        self.load_imm(RAX, function);
        self.out.r(Code::Call_rm64, Register::RAX);
        if let Some(d) = d {
            self.finish(d, RAX);
        }
    }

    /// Emits a jump, unless its target follows immediately.
    pub fn jump(&mut self, i: usize, to: Label) {
        if !matches!(self.code.next(i), Some(Inst::Label(next)) if *next == to) {
            self.out.jump(Code::Jmp_rel32_64, to);
        }
    }

    pub fn jump_table(&mut self, index: V, to: &[Label]) {
        let Some(last) = to.len().checked_sub(1) else {
            return self.out.fail(CompileError::EmptyTable);
        };
        let (rax, rcx) = (Register::RAX, Register::RCX);
        self.load_src(RAX, Src::Value(index));
        self.load_imm(RCX, last as u64);
        self.out.rr(Code::Cmp_r64_rm64, rax, rcx);
        self.out.rr(Code::Cmova_r64_rm64, rax, rcx);
        self.out.table(rcx, to.to_vec());
        self.out.lea(Code::Lea_r64_m, rax, rcx, Some(rax), 4, 0);
        self.out.r_rm(Code::Movsxd_r64_rm32, rax, Rm::Memory(RAX, 0), RegisterKind::R32);
        self.out.rr(Code::Add_r64_rm64, rax, rcx);
        self.out.r(Code::Jmp_rm64, rax);
    }

    pub fn branch_any(&mut self, mut a: V, mut b: V, none: bool, to: Label) {
        if self.in_register(a).is_none() && self.in_register(b).is_some() {
            (a, b) = (b, a);
        }
        let a = self.vec(a, X14);
        let b = self.rm(b, RAX);
        self.out.r_rm(Code::VEX_Vptest_ymm_ymmm256, YMM.register(a), b, YMM);
        self.out.jump(if none { Code::Je_rel32_64 } else { Code::Jne_rel32_64 }, to);
    }

    /// Emits a cold call: see [`Inst::ColdCall`].
    pub fn cold_call(&mut self, i: usize, function: u64, arg: V) {
        let at = self.frame.cold_save_area;
        let int_slots_offset = at + 32 * VECS.len() as i32;
        let found = self.code.cold_calls.binary_search_by_key(&i, |(i, _)| *i);
        let [ints, vecs] = found.map_or([u32::MAX; 2], |n| self.code.cold_calls[n].1);
        let is_live = |all: u32| move |(_, r): &(i32, u8)| all >> r & 1 == 1;
        let vec_saves = || (0..).map(|n| 32 * n).zip(VECS).filter(is_live(vecs));
        let int_saves = || (0..).map(|n| int_slots_offset + 8 * n).zip(CALLER_SAVED).filter(is_live(ints));
        vec_saves().for_each(|(n, r)| {
            self.out.rm_r(Code::VEX_Vmovups_ymmm256_ymm, Rm::Memory(RSP, at + n), YMM, YMM.register(r))
        });
        int_saves().for_each(|(at, r)| {
            self.out.rm_r(
                Code::Mov_rm64_r64,
                Rm::Memory(RSP, at),
                RegisterKind::R64,
                RegisterKind::R64.register(r),
            )
        });
        self.load_src(ARGUMENTS[0], Src::Value(arg));
        self.out.bare(Code::VEX_Vzeroupper);
        self.load_imm(RAX, function);
        self.out.r(Code::Call_rm64, Register::RAX);
        vec_saves().for_each(|(n, r)| self.vec_load(r, Rm::Memory(RSP, at + n)));
        int_saves().for_each(|(at, r)| {
            self.out.r_rm(
                Code::Mov_r64_rm64,
                RegisterKind::R64.register(r),
                Rm::Memory(RSP, at),
                RegisterKind::R64,
            )
        });
    }
}

pub(crate) fn jump_code(cc: Cc) -> Code {
    match cc {
        Cc::Eq => Code::Je_rel32_64,
        Cc::Ne => Code::Jne_rel32_64,
        Cc::LtS => Code::Jl_rel32_64,
        Cc::LeS => Code::Jle_rel32_64,
        Cc::GtS => Code::Jg_rel32_64,
        Cc::GeS => Code::Jge_rel32_64,
        Cc::LtU => Code::Jb_rel32_64,
        Cc::LeU => Code::Jbe_rel32_64,
        Cc::GtU => Code::Ja_rel32_64,
        Cc::GeU => Code::Jae_rel32_64,
    }
}
