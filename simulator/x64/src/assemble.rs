//! The host's instructions: the frame, control, and what the others share.

use crate::allocate::{ARGUMENTS, CHANGED, Place, Places, SAVED, VECS};
use crate::compile::CompileError;
use crate::encode::{Buffer, Kind, Rm};
use crate::function::Function;
use crate::inst::{Cc, Class, Inst, Label, Mem, Src, V};
use crate::live::Live;
use iced_x86::{Code, Register};

/// Scratch registers, which hold no value.
pub(crate) const RAX: u8 = 0;
pub(crate) const RCX: u8 = 1;
pub(crate) const RSP: u8 = 4;
pub(crate) const X14: u8 = 14;
pub(crate) const X15: u8 = 15;

/// More than this is no sensible stack frame.
const FRAME_LIMIT: u64 = 1 << 20;
/// The stack grows by touching each of its pages.
const PAGE: i32 = 4096;

pub(crate) struct Assembler<'a> {
    pub function: &'a Function,
    pub live: &'a Live,
    pub places: &'a Places,
    pub out: Buffer,
    /// Of the slots, from RSP.
    ints_at: i32,
    vecs_at: i32,
    /// Where the former RSP is saved, if vectors are aligned.
    former: Option<i32>,
    frame: i32,
    /// Where registers are saved around what is rarely called.
    pub rare_at: i32,
    /// Such calls, by their numbers in the function, and the general and vector registers that hold values during them: a bit each.
    pub rare: Vec<(usize, [u16; 2])>,
    has_vectors: bool,
    /// The value that only the flags hold, and the condition for it not to be 0.
    pub flags: Option<(V, Cc)>,
}

impl<'a> Assembler<'a> {
    pub fn new(
        function: &'a Function,
        live: &'a Live,
        places: &'a Places,
    ) -> Result<Assembler<'a>, CompileError> {
        let more_args = function.insts.iter().map(|inst| match inst {
            Inst::Call { args, .. } => args.len().saturating_sub(ARGUMENTS.len()),
            _ => 0,
        });
        let ints_at = 8 * more_args.max().unwrap_or(0) as u64;
        let mut end = ints_at + 8 * u64::from(places.int_slots);
        let former = (places.vec_slots > 0).then_some(end);
        if former.is_some() {
            end += 8;
        }
        let vecs_at = end.next_multiple_of(32);
        if places.vec_slots > 0 {
            end = vecs_at + 32 * u64::from(places.vec_slots);
        }
        let rare = rare_calls(function, live, places);
        let rare_at = end as i32;
        if !rare.is_empty() {
            end += 32 * VECS.len() as u64 + 8 * CHANGED.len() as u64;
        }
        // At the entry, the stack is 8 bytes off an alignment of 16.
        let pushed = 8 + 8 * u64::from(places.saved.count_ones());
        let frame = (end + pushed).next_multiple_of(16) - pushed;
        if frame > FRAME_LIMIT {
            return Err(CompileError::Frame(frame));
        }
        let has_vectors = function.classes.contains(&Class::Vec);
        Ok(Assembler {
            function,
            live,
            places,
            out: Buffer::new(function.labels, 16 + 8 * function.insts.len())?,
            ints_at: ints_at as i32,
            vecs_at: vecs_at as i32,
            former: former.map(|at| at as i32),
            frame: frame as i32,
            rare_at,
            rare,
            has_vectors,
            flags: None,
        })
    }

    pub fn run(mut self) -> Result<Vec<u8>, CompileError> {
        self.prologue();
        let function = self.function;
        let mut open = true;
        for (i, inst) in function.insts.iter().enumerate() {
            if self.live.keep[i] {
                open = !matches!(inst, Inst::Return { .. } | Inst::Jump(_) | Inst::Table { .. });
                self.inst(i, inst);
            }
        }
        if open {
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
            Inst::Rare { function, arg } => self.rare(i, *function, *arg),
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

    /// The next instruction that is needed.
    pub fn next(&self, i: usize) -> Option<&'a Inst> {
        let mut rest = self.function.insts[i + 1..].iter().zip(&self.live.keep[i + 1..]);
        rest.find(|(_, keep)| **keep).map(|(inst, _)| inst)
    }

    fn prologue(&mut self) {
        let saved = self.saved();
        for &register in &saved {
            self.out.r(Code::Push_r64, Kind::R64.register(register));
        }
        if self.former.is_some() {
            self.out.rr(Code::Mov_r64_rm64, Register::RAX, Register::RSP);
        }
        for page in 1..=self.frame / PAGE {
            self.out.rm_imm(Code::Or_rm32_imm8, Rm::Memory(RSP, -page * PAGE), Kind::R32, 0);
        }
        if self.frame > 0 {
            self.out.rm_imm(Code::Sub_rm64_imm32, Rm::Register(RSP), Kind::R64, self.frame);
        }
        if let Some(former) = self.former {
            self.out.rm_imm(Code::And_rm64_imm8, Rm::Register(RSP), Kind::R64, -32);
            self.out.rm_r(Code::Mov_rm64_r64, Rm::Memory(RSP, former), Kind::R64, Register::RAX);
        }
        let (mut moves, mut stores) = (Vec::new(), Vec::new());
        for (&param, &from) in self.function.params.iter().zip(&ARGUMENTS) {
            match self.place(param) {
                Place::Register(to) => moves.push((to, from)),
                Place::Slot(_) => stores.push((param, from)),
                _ => {}
            }
        }
        for (param, from) in stores {
            let slot = self.rm(param, RAX);
            self.out.rm_r(Code::Mov_rm64_r64, slot, Kind::R64, Kind::R64.register(from));
        }
        self.parallel(moves);
        if self.function.params.len() > ARGUMENTS.len() {
            self.out.fail(CompileError::Parameters(self.function.params.len()));
        }
    }

    /// Registers that are saved, in the order that they are pushed.
    fn saved(&self) -> Vec<u8> {
        SAVED.into_iter().filter(|register| self.places.saved >> register & 1 == 1).collect()
    }

    fn epilogue(&mut self) {
        if self.has_vectors {
            self.out.bare(Code::VEX_Vzeroupper);
        }
        if let Some(former) = self.former {
            self.out.r_rm(Code::Mov_r64_rm64, Register::RSP, Rm::Memory(RSP, former), Kind::R64);
        } else if self.frame > 0 {
            self.out.rm_imm(Code::Add_rm64_imm32, Rm::Register(RSP), Kind::R64, self.frame);
        }
        for register in self.saved().into_iter().rev() {
            self.out.r(Code::Pop_r64, Kind::R64.register(register));
        }
        self.out.bare(Code::Retnq);
    }

    /// Moves between general registers, `(to, from)`, at once.
    fn parallel(&mut self, mut moves: Vec<(u8, u8)>) {
        moves.retain(|(to, from)| to != from);
        while !moves.is_empty() {
            let ready = moves.iter().position(|&(to, _)| moves.iter().all(|&(_, from)| from != to));
            if let Some(ready) = ready {
                let (to, from) = moves.swap_remove(ready);
                self.out.rr(Code::Mov_r64_rm64, Kind::R64.register(to), Kind::R64.register(from));
            } else {
                // A circle: one of its values waits in scratch.
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
                && let Place::Register(from) = self.place(v)
            {
                moves.push((to, from));
            }
        }
        self.parallel(moves);
        for (&arg, &to) in args.iter().zip(&ARGUMENTS) {
            match arg {
                Src::Value(v) if matches!(self.place(v), Place::Register(_)) => {}
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

    /// Nothing, if the label is next.
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

    pub fn place(&self, v: V) -> Place {
        self.places.of[v.0 as usize]
    }

    /// A value that has a register, or a place in memory; `scratch` may be used for a base, or for an integer that is known.
    pub fn rm(&mut self, v: V, scratch: u8) -> Rm {
        match self.place(v) {
            Place::Register(register) => Rm::Register(register),
            Place::Slot(n) => match self.function.class(v) {
                Class::Int => Rm::Memory(RSP, self.ints_at + 8 * n as i32),
                Class::Vec => Rm::Memory(RSP, self.vecs_at + 32 * n as i32),
            },
            Place::Int(bits) => {
                self.load_imm(scratch, bits);
                Rm::Register(scratch)
            }
            Place::Constant(n) => Rm::Constant(n),
            Place::Loaded(mem) => self.memory(mem, scratch),
            // Read, and never written: any register does.
            Place::Nowhere => Rm::Register(if self.function.class(v) == Class::Int { scratch } else { X15 }),
        }
    }

    pub fn memory(&mut self, mem: Mem, scratch: u8) -> Rm {
        Rm::Memory(self.int(mem.base, scratch), mem.disp)
    }
}

/// See [`Assembler::rare`].
fn rare_calls(function: &Function, live: &Live, places: &Places) -> Vec<(usize, [u16; 2])> {
    let all = function.insts.iter().enumerate();
    let mut calls: Vec<(usize, [u16; 2])> =
        all.filter(|(_, inst)| matches!(inst, Inst::Rare { .. })).map(|(i, _)| (i, [0; 2])).collect();
    if calls.is_empty() {
        return calls;
    }
    for (v, (life, place)) in live.of.iter().zip(&places.of).enumerate() {
        let Place::Register(register) = place else { continue };
        let first = calls.partition_point(|(i, _)| 2 * (*i as u32) < life.start);
        for (_, kept) in calls[first..].iter_mut().take_while(|(i, _)| 2 * (*i as u32) < life.end) {
            kept[usize::from(function.classes[v] == Class::Vec)] |= 1 << register;
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
