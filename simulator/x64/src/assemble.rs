//! Selects host instructions: the stack frame, control flow, and helpers that integer and vector instructions
//! share.

use crate::allocate::{ARGUMENTS, Allocation, CALLEE_SAVED, CALLER_SAVED, Location, VECS};
use crate::compile::CompileError;
use crate::encode::{Buffer, Kind, Rm};
use crate::function::Function;
use crate::inst::{Cc, Class, Inst, Label, Mem, Src, V};
use crate::live::Liveness;
use crate::share::{Shared, Vector, shared};
use iced_x86::{Code, Register};

/// Scratch registers, which hold no values.
pub(crate) const RAX: u8 = 0;
pub(crate) const RCX: u8 = 1;
pub(crate) const RSP: u8 = 4;
pub(crate) const X14: u8 = 14;
pub(crate) const X15: u8 = 15;

/// The maximum size of a stack frame.
const FRAME_LIMIT: u64 = 1 << 20;
/// The operating system grows the stack when each of its pages is touched in turn.
const PAGE: i32 = 4096;

pub(crate) struct Assembler<'a> {
    pub function: &'a Function,
    pub live: &'a Liveness,
    pub allocation: &'a Allocation,
    pub out: Buffer,
    /// Offsets of the slots from RSP.
    int_slots_offset: i32,
    vec_slots_offset: i32,
    /// The offset at which the original RSP is saved, if the frame is aligned for vectors.
    saved_rsp: Option<i32>,
    frame: i32,
    /// The offset at which registers are saved around cold calls.
    pub cold_save_area: i32,
    /// The cold calls: their indices in the function, and the general and vector registers that are live
    /// across them, a bit each.
    pub cold_calls: Vec<(usize, [u16; 2])>,
    has_vectors: bool,
    /// Vectors that are loaded to `X14` once for several instructions, in order.
    shared: Vec<Shared>,
    /// The vector in memory that is also in `X14`.
    in_scratch: Option<Vector>,
    /// The value that exists only in the flags, and the condition under which it is not 0.
    pub flags: Option<(V, Cc)>,
}

impl<'a> Assembler<'a> {
    pub fn new(
        function: &'a Function,
        live: &'a Liveness,
        allocation: &'a Allocation,
    ) -> Result<Assembler<'a>, CompileError> {
        let more_args = function.insts.iter().map(|inst| match inst {
            Inst::Call { args, .. } => args.len().saturating_sub(ARGUMENTS.len()),
            _ => 0,
        });
        let int_slots_offset = 8 * more_args.max().unwrap_or(0) as u64;
        let mut end = int_slots_offset + 8 * u64::from(allocation.int_slots);
        let saved_rsp = (allocation.vec_slots > 0).then_some(end);
        if saved_rsp.is_some() {
            end += 8;
        }
        let vec_slots_offset = end.next_multiple_of(32);
        if allocation.vec_slots > 0 {
            end = vec_slots_offset + 32 * u64::from(allocation.vec_slots);
        }
        let cold_calls = cold_calls(function, live, allocation);
        let cold_save_area = end as i32;
        if !cold_calls.is_empty() {
            end += 32 * VECS.len() as u64 + 8 * CALLER_SAVED.len() as u64;
        }
        // At function entry, RSP is 8 bytes off a 16-byte alignment.
        let pushed = 8 + 8 * u64::from(allocation.callee_saved.count_ones());
        let frame = (end + pushed).next_multiple_of(16) - pushed;
        if frame > FRAME_LIMIT {
            return Err(CompileError::Frame(frame));
        }
        let has_vectors = function.classes.contains(&Class::Vec);
        Ok(Assembler {
            function,
            live,
            allocation,
            out: Buffer::new(function.labels, 16 + 8 * function.insts.len())?,
            int_slots_offset: int_slots_offset as i32,
            vec_slots_offset: vec_slots_offset as i32,
            saved_rsp: saved_rsp.map(|at| at as i32),
            frame: frame as i32,
            cold_save_area,
            cold_calls,
            has_vectors,
            shared: shared(function, live, allocation),
            in_scratch: None,
            flags: None,
        })
    }

    pub fn run(mut self) -> Result<Vec<u8>, CompileError> {
        self.prologue();
        let function = self.function;
        let mut falls_through = true;
        let shared = std::mem::take(&mut self.shared);
        let mut shared = shared.iter().peekable();
        for (i, inst) in function.insts.iter().enumerate() {
            if self.live.keep[i] {
                falls_through = !matches!(inst, Inst::Return { .. } | Inst::Jump(_) | Inst::Table { .. });
                if let Some(&&Shared { first, last, vector }) = shared.peek() {
                    if i == first {
                        self.vec(vector.v, X14);
                        self.in_scratch = Some(vector);
                    }
                    self.inst(i, inst);
                    if i == last {
                        self.in_scratch = None;
                        shared.next();
                    }
                } else {
                    self.inst(i, inst);
                }
            }
        }
        if falls_through {
            self.out.bare(Code::Ud2);
        }
        self.out.finish(&function.constants)
    }

    fn inst(&mut self, i: usize, inst: &Inst) {
        match inst {
            Inst::Label(label) => self.out.label(*label),
            Inst::Jump(to) => self.jump(i, *to),
            Inst::Branch { cc, width, a, b, to } => {
                let cc = self.condition(*cc, *width, *a, *b);
                self.out.jump(jump_code(cc), *to);
            }
            Inst::BranchAny { a, b, none, to } => self.branch_any(*a, *b, *none, *to),
            Inst::ColdCall { function, arg } => self.cold_call(i, *function, *arg),
            Inst::Table { index, to } => self.jump_table(*index, to),
            Inst::Return { v } => {
                self.load_src(RAX, *v);
                self.epilogue();
            }
            Inst::Call { function, args, d } => self.call(*function, args, *d),
            _ if self.int_inst(i, inst) => {}
            _ => self.vec_inst(inst),
        }
    }

    /// Returns the next instruction that is not dead.
    pub fn next(&self, i: usize) -> Option<&'a Inst> {
        let mut rest = self.function.insts[i + 1..].iter().zip(&self.live.keep[i + 1..]);
        rest.find(|(_, keep)| **keep).map(|(inst, _)| inst)
    }

    fn prologue(&mut self) {
        let saved = self.callee_saved();
        for &register in &saved {
            self.out.r(Code::Push_r64, Kind::R64.register(register));
        }
        if self.saved_rsp.is_some() {
            self.out.rr(Code::Mov_r64_rm64, Register::RAX, Register::RSP);
        }
        for page in 1..=self.frame / PAGE {
            self.out.rm_imm(Code::Or_rm32_imm8, Rm::Memory(RSP, -page * PAGE), Kind::R32, 0);
        }
        if self.frame > 0 {
            self.out.rm_imm(Code::Sub_rm64_imm32, Rm::Register(RSP), Kind::R64, self.frame);
        }
        if let Some(saved_rsp) = self.saved_rsp {
            self.out.rm_imm(Code::And_rm64_imm8, Rm::Register(RSP), Kind::R64, -32);
            self.out.rm_r(Code::Mov_rm64_r64, Rm::Memory(RSP, saved_rsp), Kind::R64, Register::RAX);
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
            self.out.rm_r(Code::Mov_rm64_r64, slot, Kind::R64, Kind::R64.register(from));
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
            .filter(|register| self.allocation.callee_saved >> register & 1 == 1)
            .collect()
    }

    fn epilogue(&mut self) {
        if self.has_vectors {
            self.out.bare(Code::VEX_Vzeroupper);
        }
        if let Some(saved_rsp) = self.saved_rsp {
            self.out.r_rm(Code::Mov_r64_rm64, Register::RSP, Rm::Memory(RSP, saved_rsp), Kind::R64);
        } else if self.frame > 0 {
            self.out.rm_imm(Code::Add_rm64_imm32, Rm::Register(RSP), Kind::R64, self.frame);
        }
        for register in self.callee_saved().into_iter().rev() {
            self.out.r(Code::Pop_r64, Kind::R64.register(register));
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
                self.out.rr(Code::Mov_r64_rm64, Kind::R64.register(to), Kind::R64.register(from));
            } else {
                // A cycle: break it by moving one value to a scratch register.
                let waits = moves[0].1;
                self.out.rr(Code::Mov_r64_rm64, Register::RAX, Kind::R64.register(waits));
                moves.iter_mut().filter(|(_, from)| *from == waits).for_each(|(_, from)| *from = RAX);
            }
        }
    }

    fn call(&mut self, function: u64, args: &[Src], d: Option<V>) {
        for (n, &arg) in args.iter().enumerate().skip(ARGUMENTS.len()) {
            self.load_src(RAX, arg);
            let at = 8 * (n - ARGUMENTS.len()) as i32;
            self.out.rm_r(Code::Mov_rm64_r64, Rm::Memory(RSP, at), Kind::R64, Register::RAX);
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
    fn jump(&mut self, i: usize, to: Label) {
        if !matches!(self.next(i), Some(Inst::Label(next)) if *next == to) {
            self.out.jump(Code::Jmp_rel32_64, to);
        }
    }

    fn jump_table(&mut self, index: V, to: &[Label]) {
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
        self.out.r_rm(Code::Movsxd_r64_rm32, rax, Rm::Memory(RAX, 0), Kind::R32);
        self.out.rr(Code::Add_r64_rm64, rax, rcx);
        self.out.r(Code::Jmp_rm64, rax);
    }

    pub fn location(&self, v: V) -> Location {
        self.allocation.locations[v.0 as usize]
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
                Class::Int => Rm::Memory(RSP, self.int_slots_offset + 8 * n as i32),
                Class::Vec => Rm::Memory(RSP, self.vec_slots_offset + 32 * n as i32),
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
}

/// Returns the cold calls with the registers that are live across them: see [`Assembler::cold_calls`].
fn cold_calls(function: &Function, live: &Liveness, allocation: &Allocation) -> Vec<(usize, [u16; 2])> {
    let all = function.insts.iter().enumerate();
    let mut calls: Vec<(usize, [u16; 2])> =
        all.filter(|(_, inst)| matches!(inst, Inst::ColdCall { .. })).map(|(i, _)| (i, [0; 2])).collect();
    if calls.is_empty() {
        return calls;
    }
    for (v, (range, location)) in live.ranges.iter().zip(&allocation.locations).enumerate() {
        let Location::Register(register) = location else { continue };
        let first = calls.partition_point(|(i, _)| 2 * (*i as u32) < range.start);
        for (_, live_registers) in calls[first..].iter_mut().take_while(|(i, _)| 2 * (*i as u32) < range.end)
        {
            live_registers[usize::from(function.classes[v] == Class::Vec)] |= 1 << register;
        }
    }
    calls
}

fn jump_code(cc: Cc) -> Code {
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
