//! Emits what moves control: the prologue and the epilogue, calls, jumps and branches.

use crate::a64::assembler::{Assembler, LOAD_X, STORE_X};
use crate::a64::encode::{WIDE, d, m, n};
use crate::a64::int::{condition_field, wide};
use crate::a64::reg::{
    ARGUMENTS, CALLER_SAVED, PAIR_A, PAIR_D, SP, T0, T1, VECS, X15, X16, X17, ZR, high, low,
};
use crate::a64::rows::Row;
use crate::allocate::Location;
use crate::error::CompileError;
use crate::inst::{Cc, Inst, Label, Src, V, Width};

/// The operating system grows the stack when each of its pages is touched in turn.
const PAGE: i32 = 4096;

impl Assembler<'_> {
    pub fn prologue(&mut self) {
        for page in 1..=self.frame.size / PAGE {
            self.out.add_imm(X17, SP, (-page * PAGE).into());
            self.access(STORE_X, ZR, X17, 0);
        }
        self.out.add_imm(SP, SP, (-self.frame.size).into());
        self.caller_registers(Row::STP_X, STORE_X, Row::STP_D);
        let (mut moves, mut stores) = (Vec::new(), Vec::new());
        for (&param, &from) in self.function.params.iter().zip(&ARGUMENTS) {
            match self.location(param) {
                Location::Register(to) => moves.push((to, from)),
                Location::Slot(_) => stores.push((param, from)),
                _ => {}
            }
        }
        for (param, from) in stores {
            self.finish(param, from);
        }
        self.parallel_moves(moves);
        if self.function.params.len() > ARGUMENTS.len() {
            self.out.fail(CompileError::Parameters(self.function.params.len()));
        }
    }

    pub fn epilogue(&mut self) {
        self.caller_registers(Row::LDP_X, LOAD_X, Row::LDP_D);
        self.out.add_imm(SP, SP, self.frame.size.into());
        self.out.emit(Row::RET, 0);
    }

    /// Performs parallel moves between general registers, given as `(to, from)`.
    fn parallel_moves(&mut self, mut moves: Vec<(u8, u8)>) {
        moves.retain(|(to, from)| to != from);
        while !moves.is_empty() {
            let ready = moves.iter().position(|&(to, _)| moves.iter().all(|&(_, from)| from != to));
            if let Some(ready) = ready {
                let (to, from) = moves.swap_remove(ready);
                self.out.mov(to, from);
            } else {
                // A cycle: break it by moving one value to a scratch register.
                let waits = moves[0].1;
                self.out.mov(X15, waits);
                moves.iter_mut().filter(|(_, from)| *from == waits).for_each(|(_, from)| *from = X15);
            }
        }
    }

    pub fn call(&mut self, function: u64, args: &[Src], d: Option<V>) {
        for (at, &arg) in (0..).step_by(8).zip(args.iter().skip(ARGUMENTS.len())) {
            self.load_src(X15, arg);
            self.access(STORE_X, X15, SP, at);
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
        self.out.load_imm(X16, function);
        self.out.emit(Row::BLR, n(X16));
        if let Some(d) = d {
            self.finish(d, 0);
        }
    }

    /// Emits a jump, unless its target follows immediately.
    pub fn jump(&mut self, i: usize, to: Label) {
        if !matches!(self.code.next(i), Some(Inst::Label(next)) if *next == to) {
            self.out.jump(Row::B, 0, to);
        }
    }

    pub fn branch(&mut self, cc: Cc, width: Width, a: V, b: Src, to: Label) {
        if let (Cc::Eq | Cc::Ne, Src::Imm(0), None) = (cc, b, self.flags) {
            let a = self.int(a, X15);
            let row = if cc == Cc::Eq { Row::CBZ } else { Row::CBNZ };
            return self.out.jump(row, wide(width) | d(a), to);
        }
        let cc = self.condition(cc, width, a, b);
        self.out.jump(Row::B_COND, condition_field(cc), to);
    }

    pub fn jump_table(&mut self, index: V, to: &[Label]) {
        let Some(last) = to.len().checked_sub(1) else {
            return self.out.fail(CompileError::EmptyTable);
        };
        let index = self.int(index, X15);
        self.out.load_imm(X16, last as u64);
        self.out.emit(Row::CMP, WIDE | n(index) | m(X16));
        let below = condition_field(Cc::LtU) << 12;
        self.out.emit(Row::CSEL, WIDE | d(X15) | n(index) | m(X16) | below);
        self.out.table(X16, to.to_vec());
        self.out.dnm(Row::LDRSW_LSL2, X15, X16, X15);
        self.out.emit(Row::ADD, WIDE | d(X15) | n(X15) | m(X16));
        self.out.emit(Row::BR, n(X15));
    }

    pub fn branch_any(&mut self, a: V, b: V, none: bool, to: Label) {
        let first = self.vec(a, PAIR_A);
        let second = if a == b { first } else { self.vec(b, PAIR_D) };
        let halves = if first == second {
            [low(first), high(first)]
        } else {
            self.out.dnm(Row::VAND, T0, low(first), low(second));
            self.out.dnm(Row::VAND, T1, high(first), high(second));
            [T0, T1]
        };
        self.out.dnm(Row::VORR, T0, halves[0], halves[1]);
        self.out.dn(Row::UMAXV_4S, T0, T0);
        self.out.dn(Row::FMOV_W_S, X15, T0);
        self.out.jump(if none { Row::CBZ } else { Row::CBNZ }, d(X15), to);
    }

    /// Emits a cold call: see [`Inst::ColdCall`].
    pub fn cold_call(&mut self, i: usize, function: u64, arg: V) {
        let at = self.frame.cold_save_area;
        let ints_at = at + 32 * VECS.len() as i32;
        let found = self.code.cold_calls.binary_search_by_key(&i, |(i, _)| *i);
        let [ints, vecs] = found.map_or([u32::MAX; 2], |n| self.code.cold_calls[n].1);
        let is_live = |all: u32| move |(_, r): &(i32, u8)| all >> r & 1 == 1;
        let vec_saves = || (at..).step_by(32).zip(VECS).filter(is_live(vecs));
        let int_saves = || (ints_at..).step_by(8).zip(CALLER_SAVED).filter(is_live(ints));
        vec_saves().for_each(|(at, pair)| self.access_pair(Row::STP_Q, pair, SP, at));
        int_saves().for_each(|(at, register)| self.access(STORE_X, register, SP, at));
        self.load_src(ARGUMENTS[0], Src::Value(arg));
        self.out.load_imm(X16, function);
        self.out.emit(Row::BLR, n(X16));
        vec_saves().for_each(|(at, pair)| self.access_pair(Row::LDP_Q, pair, SP, at));
        int_saves().for_each(|(at, register)| self.access(LOAD_X, register, SP, at));
    }
}
