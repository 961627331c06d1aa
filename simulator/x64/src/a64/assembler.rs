//! The state while host instructions are emitted, and access to the operands of instructions: registers, stack
//! slots, constants and folded loads.

use crate::a64::encode::{Buffer, a, d, n};
use crate::a64::frame::Frame;
use crate::a64::pending::Repair;
use crate::a64::reg::{LR, PAIR_B, PAIR_D, SP, X15, X17, high, low};
use crate::a64::rows::Row;
use crate::allocate::Location;
use crate::allocated::Allocated;
use crate::encode::Assembled;
use crate::error::CompileError;
use crate::function::Function;
use crate::inst::{Cc, Class, Inst, Mem, Src, V};
use crate::share::{Shared, Vector};

pub struct Assembler<'a> {
    pub function: &'a Function,
    pub code: &'a Allocated<'a>,
    pub out: Buffer,
    pub frame: Frame,
    /// The vector in memory that is also in `PAIR_B`.
    pub in_scratch: Option<Vector>,
    /// The value that exists only in the flags, and the condition under which it is not 0.
    pub flags: Option<(V, Cc)>,
    /// The function writes float control: denormals may be flushed.
    pub flushes: bool,
    /// Code out of line.
    pub repairs: Vec<Repair>,
}

/// The rows that access memory: with an offset in units of the access, and with any offset from -256 to 255.
#[derive(Clone, Copy)]
pub struct Access {
    pub scaled: Row,
    pub unscaled: Row,
    pub size: i32,
}

pub const LOAD_W: Access = Access { scaled: Row::LDR_W, unscaled: Row::LDUR_W, size: 4 };
pub const LOAD_X: Access = Access { scaled: Row::LDR_X, unscaled: Row::LDUR_X, size: 8 };
pub const STORE_X: Access = Access { scaled: Row::STR_X, unscaled: Row::STUR_X, size: 8 };
pub const LOAD_S: Access = Access { scaled: Row::LDR_S, unscaled: Row::LDUR_S, size: 4 };
pub const LOAD_Q: Access = Access { scaled: Row::LDR_Q, unscaled: Row::LDUR_Q, size: 16 };
pub const STORE_Q: Access = Access { scaled: Row::STR_Q, unscaled: Row::STUR_Q, size: 16 };

/// Returns the bytes of a function: code, tables, constants. Calls `begin` with the index and the offset of each
/// instruction.
pub fn assemble(
    code: &Allocated<'_>,
    mut begin: impl FnMut(usize, usize),
) -> Result<Assembled, CompileError> {
    let mut this = Assembler::new(code)?;
    this.prologue();
    let function = this.function;
    let mut shared = code.shared.iter().peekable();
    for (i, inst) in function.insts.iter().enumerate() {
        if !code.live.keep[i] {
            continue;
        }
        begin(i, 4 * this.out.position() as usize);
        let current = shared.peek().copied().filter(|shared| shared.first <= i);
        if let Some(&Shared { vector, .. }) = current.filter(|shared| shared.first == i) {
            this.vec(vector.v, PAIR_B);
            this.in_scratch = Some(vector);
        }
        this.inst(i, inst);
        if current.is_some_and(|shared| shared.last == i) {
            this.in_scratch = None;
            shared.next();
        }
    }
    this.out.emit(Row::BRK, 0);
    this.emit_repairs();
    this.out.finish()
}

impl<'a> Assembler<'a> {
    fn new(code: &'a Allocated<'a>) -> Result<Assembler<'a>, CompileError> {
        let function = code.function;
        Ok(Assembler {
            function,
            code,
            frame: Frame::new(code)?,
            out: Buffer::new(function.labels, 16 + 4 * function.insts.len()),
            in_scratch: None,
            flags: None,
            flushes: function.insts.iter().any(|inst| matches!(inst, Inst::LoadMxcsr { .. })),
            repairs: Vec::new(),
        })
    }

    fn inst(&mut self, i: usize, inst: &Inst) {
        match inst {
            Inst::Label(label) => self.out.label(*label),
            Inst::Jump(to) => self.jump(i, *to),
            Inst::Branch { cc, width, a, b, to } => self.branch(*cc, *width, *a, *b, *to),
            Inst::BranchAny { a, b, none, to } => self.branch_any(*a, *b, *none, *to),
            Inst::ColdCall { function, arg } => self.cold_call(i, *function, *arg),
            Inst::Table { index, to } => self.jump_table(*index, to),
            Inst::Return { v } => {
                self.load_src(0, *v);
                self.epilogue();
            }
            Inst::Call { function, args, d } => self.call(*function, args, *d),
            _ if self.int_inst(i, inst) => {}
            _ => self.vec_inst(inst),
        }
    }

    pub fn location(&self, v: V) -> Location {
        self.code.location(v)
    }

    /// Accesses memory at a base, which may be the stack pointer. Changes `X17` if the displacement is large.
    pub fn access(&mut self, access: Access, register: u8, base: u8, disp: i32) {
        let scaled = disp / access.size;
        if disp >= 0 && disp % access.size == 0 && scaled < 4096 {
            self.out.emit(access.scaled, d(register) | n(base) | (scaled as u32) << 10);
        } else if (-256..256).contains(&disp) {
            self.out.emit(access.unscaled, d(register) | n(base) | (disp as u32 & 0x1ff) << 12);
        } else {
            self.out.add_imm(X17, base, disp.into());
            self.out.emit(access.scaled, d(register) | n(X17));
        }
    }

    /// Loads or stores a pair of vector registers. Changes `X17` if the displacement is large.
    pub fn access_pair(&mut self, row: Row, pair: u8, base: u8, disp: i32) {
        let aligned = disp % 16 == 0;
        let single = match row {
            Row::LDP_Q => Some(LOAD_Q),
            Row::STP_Q => Some(STORE_Q),
            _ => None,
        };
        if aligned && (-1024..1024).contains(&disp) {
            return self.pair(row, pair, base, disp / 16);
        }
        // Offsets of single registers reach farther.
        if let Some(single) = single
            && aligned
            && (0..16 * 4095).contains(&disp)
        {
            self.access(single, low(pair), base, disp);
            return self.access(single, high(pair), base, disp + 16);
        }
        self.out.add_imm(X17, base, disp.into());
        self.pair(row, pair, X17, 0);
    }

    fn pair(&mut self, row: Row, pair: u8, base: u8, offset: i32) {
        self.out.emit(row, d(low(pair)) | a(high(pair)) | n(base) | (offset as u32 & 0x7f) << 15);
    }

    /// Returns the register of a base address.
    pub fn base(&mut self, mem: Mem) -> u8 {
        self.int(mem.base, X17)
    }

    /// Returns a register that holds the value: `scratch` if the value is not in one. Preserves the flags.
    pub fn int(&mut self, v: V, scratch: u8) -> u8 {
        match self.location(v) {
            Location::Register(register) => register,
            Location::Slot(slot) => {
                self.access(LOAD_X, scratch, SP, self.frame.int_slots + 8 * slot as i32);
                scratch
            }
            Location::Const(bits) => {
                self.out.load_imm(scratch, bits);
                scratch
            }
            // The value is read but never written: any register will do.
            Location::Unused | Location::VecConst(_) | Location::Folded(_) => scratch,
        }
    }

    /// Loads an operand. Preserves the flags.
    pub fn load_src(&mut self, to: u8, src: Src) {
        match src {
            Src::Imm(imm) => self.out.load_imm(to, imm as i64 as u64),
            Src::Value(v) => {
                let from = self.int(v, to);
                self.out.mov(to, from);
            }
        }
    }

    /// Returns the register that a result is computed in.
    pub fn int_target(&self, d: V) -> u8 {
        match self.location(d) {
            Location::Register(register) => register,
            _ => X15,
        }
    }

    /// Moves a result from the register it was computed in to its location.
    pub fn finish(&mut self, d: V, made: u8) {
        match self.location(d) {
            Location::Register(register) => self.out.mov(register, made),
            Location::Slot(slot) => self.access(STORE_X, made, SP, self.frame.int_slots + 8 * slot as i32),
            _ => {}
        }
    }

    pub fn in_register(&self, v: V) -> Option<u8> {
        match self.location(v) {
            Location::Register(register) => Some(register),
            _ => None,
        }
    }

    /// Returns the pair that holds a vector: `scratch` if the vector is not in one.
    pub fn vec(&mut self, v: V, scratch: u8) -> u8 {
        let location = self.location(v);
        if self.in_scratch.is_some_and(|vector| vector.is(v, location)) {
            return PAIR_B;
        }
        match location {
            Location::Register(pair) => return pair,
            Location::Slot(slot) => {
                self.access_pair(Row::LDP_Q, scratch, SP, self.frame.vec_slots + 32 * slot as i32)
            }
            Location::VecConst(number) => self.vec_constant(scratch, number),
            Location::Folded(mem) => {
                let base = self.base(mem);
                self.access_pair(Row::LDP_Q, scratch, base, mem.disp);
            }
            Location::Unused | Location::Const(_) => {}
        }
        scratch
    }

    /// Returns the pair that a result is computed in.
    pub fn vec_target(&self, d: V) -> u8 {
        match self.location(d) {
            Location::Register(pair) => pair,
            _ => PAIR_D,
        }
    }

    /// Moves a result from the pair it was computed in to its location.
    pub fn vec_finish(&mut self, d: V, made: u8) {
        match self.location(d) {
            Location::Register(pair) => self.move_pair(pair, made),
            Location::Slot(slot) => {
                self.access_pair(Row::STP_Q, made, SP, self.frame.vec_slots + 32 * slot as i32)
            }
            _ => {}
        }
    }

    pub fn move_pair(&mut self, to: u8, from: u8) {
        self.out.vmov(low(to), low(from));
        self.out.vmov(high(to), high(from));
    }

    /// Loads a constant of the function.
    pub fn vec_constant(&mut self, to: u8, number: u32) {
        let words = self.function.constants[number as usize];
        let [a, b, c, d, rest @ ..] = words;
        self.half_constant(low(to), [a, b, c, d]);
        if rest == [a, b, c, d] {
            self.out.vmov(high(to), low(to));
        } else {
            self.half_constant(high(to), rest);
        }
    }

    /// Loads a constant to a vector register.
    pub fn half_constant(&mut self, to: u8, words: [u32; 4]) {
        match immediate(words) {
            Some((row, value)) => self.out.emit(row, d(to) | (value & 31) << 5 | (value >> 5) << 16),
            None => self.out.load_constant(to, words),
        }
    }

    /// Broadcasts 32 bits to a vector register.
    pub fn splat_constant(&mut self, to: u8, word: u32) {
        self.half_constant(to, [word; 4]);
    }

    /// Saves or restores the registers of the caller.
    pub fn caller_registers(&mut self, pair: Row, one: Access, vectors: Row) {
        let saved = self.code.allocation.callee_saved;
        let mut registers: Vec<u8> = (0..32).filter(|register| saved >> register & 1 == 1).collect();
        registers.push(LR);
        // Offsets of pairs reach as far as this.
        let near = self.frame.saved < 256;
        let (base, mut at) = if near { (SP, self.frame.saved) } else { (X17, 0) };
        if !near {
            self.out.add_imm(X17, SP, self.frame.saved.into());
        }
        for two in registers.chunks(2) {
            match *two {
                [first, second] => {
                    self.out.emit(pair, d(first) | a(second) | n(base) | (at as u32 / 8) << 15)
                }
                _ => self.access(one, two[0], base, at),
            }
            at += 16;
        }
        if self.frame.saves_vectors {
            for register in [8, 10, 12, 14] {
                self.out.emit(vectors, d(register) | a(register + 1) | n(base) | (at as u32 / 8) << 15);
                at += 16;
            }
        }
    }

    pub fn is_vector(&self, v: V) -> bool {
        self.function.class(v) == Class::Vec
    }
}

/// Returns the row and the immediate of a constant that needs no memory.
fn immediate(words: [u32; 4]) -> Option<(Row, u32)> {
    let [word, ..] = words;
    if words == [word; 4] {
        let bytes = word.to_le_bytes();
        if bytes == [bytes[0]; 4] {
            return Some((Row::MOVI_16B, bytes[0].into()));
        }
        let rows = [
            (Row::MOVI_4S, Row::MVNI_4S),
            (Row::MOVI_4S_8, Row::MVNI_4S_8),
            (Row::MOVI_4S_16, Row::MVNI_4S_16),
            (Row::MOVI_4S_24, Row::MVNI_4S_24),
        ];
        for (shift, (plain, inverted)) in (0..).step_by(8).zip(rows) {
            for (row, word) in [(plain, word), (inverted, !word)] {
                if word & !(0xff << shift) == 0 {
                    return Some((row, word >> shift));
                }
            }
        }
    }
    if words[..2] == words[2..] {
        let bytes = u64::from(words[0]) | u64::from(words[1]) << 32;
        let is_mask = bytes.to_le_bytes().into_iter().all(|byte| matches!(byte, 0 | 0xff));
        return is_mask
            .then(|| (Row::MOVI_2D, (0..8).map(|k| (bytes >> (8 * k) & 1) as u32 * (1 << k)).sum()));
    }
    None
}
