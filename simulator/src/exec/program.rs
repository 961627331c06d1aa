//! A decoded program: instructions, their places, and the dense operations the interpreter runs.

use super::lower::Lowered;
use super::op::Op;
use super::overrides::Overrides;
use crate::arch::Arch;
use crate::codec::decode;
use crate::inst::Inst;
use isa_spec::pcode::ir::Semantics;
use isa_spec::tables::EntryId;
use std::sync::Arc;

/// Writes an instruction for waves of so many lanes as text. The machine knows no syntax: who makes a program gives it one.
pub type Syntax = fn(&Inst, Arch, u32) -> String;

/// The mnemonic alone: for programs that nobody gave a syntax.
fn mnemonic(inst: &Inst, arch: Arch, _wave_size: u32) -> String {
    inst.instruction(arch.table()).name.to_lowercase()
}

/// Code, decoded once.
pub struct Program {
    pub arch: Arch,
    pub insts: Vec<Inst>,
    /// Byte offset of each instruction.
    pub pcs: Vec<u64>,
    /// Source line of each instruction (1-based; 0: none).
    pub lines: Vec<u32>,
    /// Lanes of the waves that run it, for its text: 32 unless set.
    pub wave_size: u32,
    syntax: Syntax,
    /// The last operation is [`Op::END`]: the loop needs no bounds check.
    pub lowered: Lowered,
    /// Operation by dword of the code; `u32::MAX` inside an instruction.
    by_dword: Vec<u32>,
    /// Meanings that replace the compiled ones.
    overrides: Option<Arc<Overrides>>,
}

impl Program {
    /// `(instruction, source line)` in order.
    pub fn new(arch: Arch, list: Vec<(Inst, u32)>) -> Program {
        let mut p = Program::empty(arch);
        for (inst, line) in list {
            p.push(inst, line);
        }
        p.finish()
    }

    /// Machine code from its first instruction on. Words that decode to nothing become one-dword holes that fault when reached:
    /// padding and data between functions are legal.
    pub fn from_words(arch: Arch, words: &[u32]) -> Program {
        let mut p = Program::empty(arch);
        let mut at = 0;
        while at < words.len() {
            match decode(arch, &words[at..]) {
                Ok(inst) => {
                    at += inst.size as usize / 4;
                    p.push(inst, 0);
                }
                Err(_) => {
                    p.insert(Op::hole(), 1);
                    at += 1;
                }
            }
        }
        p.finish()
    }

    /// As [`Program::from_words`], from bytes as memory holds them; an incomplete last word is left out.
    pub fn from_bytes(arch: Arch, bytes: &[u8]) -> Program {
        let words: Vec<u32> =
            bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
        Program::from_words(arch, &words)
    }

    fn empty(arch: Arch) -> Program {
        Program {
            arch,
            insts: Vec::new(),
            pcs: Vec::new(),
            lines: Vec::new(),
            wave_size: 32,
            syntax: mnemonic,
            lowered: Lowered::default(),
            by_dword: Vec::new(),
            overrides: None,
        }
    }

    fn push(&mut self, inst: Inst, line: u32) {
        let pc = self.end();
        self.by_dword.push(self.lowered.ops.len() as u32);
        self.by_dword.resize(self.by_dword.len() + inst.size as usize / 4 - 1, u32::MAX);
        self.lowered.push(self.arch, &inst, pc as u32, self.insts.len() as u32);
        self.pcs.push(pc);
        self.lines.push(line);
        self.insts.push(inst);
    }

    /// An operation that is no instruction.
    fn insert(&mut self, op: Op, dwords: usize) {
        let pc = self.end() as u32;
        self.by_dword.resize(self.by_dword.len() + dwords, self.lowered.ops.len() as u32);
        self.lowered.ops.push(Op { pc, number: self.insts.len() as u32, ..op });
    }

    fn finish(mut self) -> Program {
        self.insert(Op::end(), 0);
        self
    }

    /// From now on, the instructions that `overrides` names run through the evaluator.
    pub fn replace_semantics(&mut self, overrides: Arc<Overrides>) {
        self.overrides = Some(overrides);
        for at in 0..self.insts.len() {
            let pc = self.pcs[at];
            if self.replaced(pc).is_none() {
                continue;
            }
            let op = self.by_dword[(pc / 4) as usize] as usize;
            // The instruction is evaluated as a whole: its first operation stands for all of them.
            self.lowered.ops[op].code = Op::UNKNOWN;
            self.lowered.ops[op].flags &= !Op::MORE;
        }
    }

    /// The instruction at `pc` and its meaning (VOPD: those of both halves), if that is not, or not all, the compiled one.
    pub fn replaced(&self, pc: u64) -> Option<(&Inst, &Semantics, Option<&Semantics>)> {
        let overrides = self.overrides.as_deref()?;
        let inst = &self.insts[self.inst_at(pc)?];
        let table = self.arch.table();
        let own = |entry: EntryId| {
            let entry = table.entries.get(entry as usize)?;
            overrides.get(self.arch, table.instructions[entry.inst as usize].name)
        };
        own(inst.entry).or(own(inst.entry_y))?;
        let sem = overrides.semantics(self.arch, inst.entry)?;
        let sem_y = if inst.entry_y == EntryId::MAX {
            None
        } else {
            Some(overrides.semantics(self.arch, inst.entry_y)?)
        };
        Some((inst, sem, sem_y))
    }

    /// Byte offset behind the last instruction.
    pub fn end(&self) -> u64 {
        self.by_dword.len() as u64 * 4
    }

    /// Operation at a byte offset.
    #[inline(always)]
    pub fn op_at(&self, pc: u64) -> Option<&Op> {
        if !pc.is_multiple_of(4) {
            return None;
        }
        // Of what is inside an instruction there is none.
        self.lowered.ops.get(*self.by_dword.get((pc / 4) as usize)? as usize)
    }

    /// The operation behind one, in the order of the code; behind the last the last itself.
    #[inline(always)]
    pub fn op_after(&self, op: &Op) -> &Op {
        let ops = &self.lowered.ops[..];
        let at = std::ptr::from_ref(op).addr().wrapping_sub(ops.as_ptr().addr()) / size_of::<Op>();
        ops.get(at.wrapping_add(1)).unwrap_or(&ops[ops.len() - 1])
    }

    /// Name of the instruction at a byte offset.
    pub fn name_at(&self, pc: u64) -> Option<&'static str> {
        self.inst_at(pc).map(|at| self.insts[at].instruction(self.arch.table()).name)
    }

    /// Index of the instruction at a byte offset.
    pub fn inst_at(&self, pc: u64) -> Option<usize> {
        self.pcs.binary_search(&pc).ok()
    }

    /// Index of the last instruction, if a byte offset is that of its end.
    pub fn ending_at(&self, pc: u64) -> Option<usize> {
        let last = self.insts.len().checked_sub(1)?;
        (self.pcs[last] + self.insts[last].size as u64 == pc).then_some(last)
    }

    /// For waves of another size than 32.
    pub fn for_wave_size(self, wave_size: u32) -> Program {
        Program { wave_size, ..self }
    }

    /// With instructions as text in a syntax, in messages and listings.
    pub fn with_syntax(self, syntax: Syntax) -> Program {
        Program { syntax, ..self }
    }

    /// The instruction as text.
    pub fn text(&self, index: usize) -> String {
        (self.syntax)(&self.insts[index], self.arch, self.wave_size)
    }

    /// `line 12` or, without source, `pc 0x30`.
    pub fn place(&self, pc: u64) -> String {
        match self.inst_at(pc).map(|at| self.lines[at]) {
            Some(line) if line != 0 => format!("line {line}"),
            _ => format!("pc 0x{pc:x}"),
        }
    }
}
