//! A decoded program: its instructions, their offsets and source locations, and the dense operations that the
//! interpreter runs.

use super::code_range::{Code, Linked};
use super::location::{Location, SourceFile, SourceLine};
use super::lower::{LimitExceeded, Lowered};
use super::overrides::{self, Overrides};
use super::validate;
use crate::isa;
use isa_spec::facts::Facts;
use isa_spec::pcode::ir::{Semantics, Space};
use isa_spec::tables::EntryId;
use std::sync::{Arc, OnceLock};
use wavesim_isa::arch::Arch;
use wavesim_isa::codec::{decode, words};
use wavesim_isa::inst::Inst;
use wavesim_rt::op::Op;

/// Formats an instruction as text for waves of a given size. The machine knows no assembly syntax; the
/// creator of a program supplies one.
pub type Syntax = fn(&Inst, Arch, u32) -> String;

/// Formats the mnemonic alone, for programs without a syntax.
fn mnemonic(inst: &Inst, arch: Arch, _wave_size: u32) -> String {
    inst.instruction(arch.table()).name.to_lowercase()
}

/// The error of a program that exceeds a limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: the program needs {limit}")]
pub struct TooLarge {
    /// Location of the first instruction that exceeds the limit: see [`Program::place`].
    pub place: String,
    /// The limit that is exceeded.
    pub limit: LimitExceeded,
}

/// Bytes of code that 32-bit offsets can address.
const MAX_CODE: u64 = u32::MAX as u64;

/// Decoded and lowered code.
pub struct Program {
    /// The architecture of the instructions.
    pub arch: Arch,
    /// The instructions in code order; words that do not decode are left out.
    pub insts: Vec<Inst>,
    /// Byte offset of each instruction.
    pub pcs: Vec<u64>,
    /// Source line of each instruction (1-based; 0: none).
    pub lines: Vec<u32>,
    /// Source files and columns of each instruction, if there is debug information.
    pub(super) debug: Option<(Vec<SourceFile>, Vec<SourceLine>)>,
    /// Address of the first instruction in the code object, which listings show; 0 for programs without a
    /// code object.
    pub base: u64,
    /// Size of the waves that run the program, which affects its text: 32 unless set.
    pub wave_size: u32,
    syntax: Syntax,
    /// Ends with [`Op::END`], so that the interpreter loop needs no bounds check.
    pub(super) lowered: Lowered,
    /// The program's own code.
    pub(super) own: Code,
    /// Code of other code objects.
    pub(super) linked: Vec<Linked>,
    /// Semantics that replace the compiled ones.
    overrides: Option<Arc<Overrides>>,
    /// The result of [`Program::meets`], once it is known.
    meets: OnceLock<bool>,
}

impl Program {
    /// Creates a program from `(instruction, source line)` pairs in order.
    pub fn new(arch: Arch, list: Vec<(Inst, u32)>) -> Result<Program, TooLarge> {
        Program::empty(arch).append_all(list)
    }

    fn append_all(mut self, list: Vec<(Inst, u32)>) -> Result<Program, TooLarge> {
        for (inst, line) in list {
            self.push(inst, line)?;
        }
        self.finish()
    }

    /// Creates a program from machine code. Words that do not decode become one-dword holes, which fault when
    /// reached: padding and data between functions are legal.
    pub fn from_words(arch: Arch, words: &[u32]) -> Result<Program, TooLarge> {
        let mut p = Program::empty(arch);
        p.decode(words)?;
        p.finish()
    }

    /// Appends machine code.
    pub(super) fn decode(&mut self, words: &[u32]) -> Result<(), TooLarge> {
        let mut at = 0;
        while at < words.len() {
            match decode(self.arch, &words[at..]) {
                Ok(inst) => {
                    at += inst.size as usize / 4;
                    self.push(inst, 0)?;
                }
                Err(_) => {
                    self.insert(Op::hole(), 1)?;
                    at += 1;
                }
            }
        }
        Ok(())
    }

    /// As [`Program::from_words`], from bytes in memory order; an incomplete last word is ignored.
    pub fn from_bytes(arch: Arch, bytes: &[u8]) -> Result<Program, TooLarge> {
        Program::from_words(arch, &words(bytes))
    }

    fn empty(arch: Arch) -> Program {
        Program {
            arch,
            insts: Vec::new(),
            pcs: Vec::new(),
            lines: Vec::new(),
            debug: None,
            base: 0,
            wave_size: 32,
            syntax: mnemonic,
            lowered: Lowered::default(),
            own: Code::default(),
            linked: Vec::new(),
            overrides: None,
            meets: OnceLock::new(),
        }
    }

    fn push(&mut self, inst: Inst, line: u32) -> Result<(), TooLarge> {
        let pc = self.end();
        let dwords = (inst.size as usize / 4).max(1);
        self.check_code_size(dwords, line)?;
        let first = self.lowered.ops.len() as u32;
        let lowered = self.lowered.push(self.arch, &inst, pc as u32, self.insts.len() as u32);
        lowered.map_err(|limit| self.too_large(limit, line))?;
        self.own.by_dword.push(first);
        self.own.by_dword.resize(self.own.by_dword.len() + dwords - 1, u32::MAX);
        self.pcs.push(pc);
        self.lines.push(line);
        self.insts.push(inst);
        Ok(())
    }

    /// Appends an operation that is not an instruction.
    pub(super) fn insert(&mut self, op: Op, dwords: usize) -> Result<(), TooLarge> {
        let pc = self.end() as u32;
        self.check_code_size(dwords, 0)?;
        let at = self.lowered.insert(Op { pc, number: self.insts.len() as u32, ..op });
        let at = at.map_err(|limit| self.too_large(limit, 0))?;
        self.own.by_dword.resize(self.own.by_dword.len() + dwords, at);
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Program, TooLarge> {
        self.insert(Op::end(), 0)?;
        let Lowered { ops, pools, .. } = &self.lowered;
        debug_assert_eq!(validate::program(ops, pools.consts.len(), &pools.exts), Ok(()));
        Ok(self)
    }

    /// Checks that 32 bits can still address the code after `dwords` more.
    fn check_code_size(&self, dwords: usize, line: u32) -> Result<(), TooLarge> {
        match self.end() + 4 * dwords as u64 <= MAX_CODE {
            true => Ok(()),
            false => Err(self.too_large(LimitExceeded::Code(MAX_CODE), line)),
        }
    }

    /// Returns the error of exceeding a limit with the next instruction.
    fn too_large(&self, limit: LimitExceeded, line: u32) -> TooLarge {
        let pc = self.end();
        TooLarge { place: if line != 0 { format!("line {line}") } else { format!("pc 0x{pc:x}") }, limit }
    }

    /// Returns the program with `with` in the place of one instruction, given by its index. All others stay where they
    /// are.
    ///
    /// Returns `None` if the sizes differ, if a limit is exceeded, or if the program has code of other code objects.
    pub fn with_replaced(&self, index: usize, with: &[Inst]) -> Option<Program> {
        let size = |list: &[Inst]| list.iter().map(|inst| u64::from(inst.size)).sum::<u64>();
        if size(with) != size(&[*self.insts.get(index)?]) || !self.linked.is_empty() {
            return None;
        }
        let (base, wave_size, syntax) = (self.base, self.wave_size, self.syntax);
        let mut out = Program { base, wave_size, syntax, ..Program::empty(self.arch) };
        // The instruction of the original that each one stands for.
        let mut of = Vec::new();
        for (at, inst) in self.insts.iter().enumerate() {
            while out.end() < self.pcs[at] {
                out.insert(Op::hole(), 1).ok()?;
            }
            let one = [*inst];
            for inst in if at == index { with } else { &one } {
                out.push(*inst, self.lines[at]).ok()?;
                of.push(at);
            }
        }
        while out.end() < self.end() {
            out.insert(Op::hole(), 1).ok()?;
        }
        let mut out = out.finish().ok()?;
        let lines = |(files, lines): &(Vec<SourceFile>, Vec<SourceLine>)| {
            (files.clone(), of.iter().map(|at| lines[*at]).collect())
        };
        out.debug = self.debug.as_ref().map(lines);
        if let Some(overrides) = &self.overrides {
            out.replace_semantics(overrides.clone());
        }
        Some(out)
    }

    /// Returns the instructions' names as in the tables.
    pub fn mnemonics(&self) -> impl Iterator<Item = &'static str> {
        let table = self.arch.table();
        self.insts
            .iter()
            .map(|inst| table.instructions[table.entries[inst.entry as usize].inst as usize].name)
    }

    /// Returns the replaced semantics, if there are any.
    pub fn overrides(&self) -> Option<&Overrides> {
        self.overrides.as_deref()
    }

    /// Makes the evaluator run the instructions that `overrides` names, from now on.
    pub fn replace_semantics(&mut self, overrides: Arc<Overrides>) {
        self.overrides = Some(overrides);
        // Compiled code refers to the old program, so this one gets a new id.
        self.lowered.pools.id = super::lower::fresh_id();
        for at in 0..self.insts.len() {
            let pc = self.pcs[at];
            if self.replaced_semantics(pc).is_none() {
                continue;
            }
            let Some(op) = self.index_at(pc) else { continue };
            // The evaluator runs the instruction as a whole: its first operation stands for all of them.
            self.lowered.ops[op].code = Op::UNKNOWN;
            self.lowered.ops[op].flags &= !Op::MORE;
        }
    }

    /// Returns the instruction at `pc` and its semantics (for VOPD, those of both halves), if any of them is
    /// replaced.
    pub fn replaced_semantics(&self, pc: u64) -> Option<(&Inst, &Semantics, Option<&Semantics>)> {
        let overrides = self.overrides.as_deref()?;
        let inst = &self.insts[self.inst_at(pc)?];
        let table = self.arch.table();
        let own = |entry: EntryId| {
            let entry = table.entries.get(entry as usize)?;
            overrides.get(self.arch, table.instructions[entry.inst as usize].name)
        };
        own(inst.entry).or(own(inst.entry_y))?;
        self.semantics(pc)
    }

    /// Returns the instruction at `pc` and its semantics (for VOPD, those of both halves), replaced or not.
    pub fn semantics(&self, pc: u64) -> Option<(&Inst, &Semantics, Option<&Semantics>)> {
        let inst = &self.insts[self.inst_at(pc)?];
        let of = |entry: EntryId| match self.overrides.as_deref() {
            Some(overrides) => overrides.semantics(self.arch, entry),
            None => overrides::compiled(self.arch, entry),
        };
        let sem_y = if inst.entry_y == EntryId::MAX { None } else { Some(of(inst.entry_y)?) };
        Some((inst, of(inst.entry)?, sem_y))
    }

    /// Returns the facts of an entry's semantics, compiled or replaced, in waves of this size, if it has any.
    pub fn facts(&self, entry: EntryId, wave_size: u32) -> Option<&Facts> {
        let at = self.arch.table().entries[entry as usize].inst as usize;
        let name = self.arch.table().instructions[at].name;
        let own = self.overrides.as_deref().and_then(|o| o.facts(self.arch, name, wave_size));
        own.or_else(|| isa::facts(self.arch, entry, wave_size))
    }

    /// Returns whether any instruction jumps to an address in registers.
    pub fn jumps_to_registers(&self) -> bool {
        self.insts.iter().any(|inst| inst.instruction(self.arch.table()).flags().indirect_branch)
    }

    /// Returns whether any instruction accesses one of these address spaces.
    pub fn accesses(&self, spaces: &[Space]) -> bool {
        let facts = |inst: &Inst| self.facts(inst.entry, self.wave_size);
        let mut memory = self.insts.iter().filter_map(facts).flat_map(|facts| facts.memory.iter());
        memory.any(|m| spaces.contains(&m.space))
    }

    /// Returns whether waves of different workgroups may meet: an instruction is one of global wave sync.
    pub fn meets(&self) -> bool {
        *self.meets.get_or_init(|| {
            let calls = |inst: &Inst| self.facts(inst.entry, self.wave_size).map(|facts| facts.calls.iter());
            self.insts.iter().filter_map(calls).flatten().any(|call| call.meets())
        })
    }

    /// The operations and the tables that they index.
    pub fn lowered(&self) -> &Lowered {
        &self.lowered
    }

    /// Byte offset after the last instruction of the program's own code.
    pub fn end(&self) -> u64 {
        self.own.end()
    }

    /// Returns the operation at a byte offset of the program's own code.
    #[inline(always)]
    pub fn op_at(&self, pc: u64) -> Option<&Op> {
        self.lowered.ops.get(self.own.index(pc)?)
    }

    /// Returns the operation at a byte offset.
    pub fn any_op_at(&self, pc: u64) -> Option<&Op> {
        self.lowered.ops.get(self.index_at(pc)?)
    }

    /// Returns the index of the operation at a byte offset; out of bounds inside an instruction.
    fn index_at(&self, pc: u64) -> Option<usize> {
        self.own.index(pc).or_else(|| self.linked.iter().find_map(|linked| linked.code.index(pc)))
    }

    /// Returns the index of an operation of this program; for another program's operation, an arbitrary
    /// number.
    #[inline(always)]
    pub fn index_of(&self, op: &Op) -> usize {
        std::ptr::from_ref(op).addr().wrapping_sub(self.lowered.ops.as_ptr().addr()) / size_of::<Op>()
    }

    /// Returns the operation after `op` in code order; the last one if `op` is the last.
    #[inline(always)]
    pub fn op_after(&self, op: &Op) -> &Op {
        let ops = &self.lowered.ops[..];
        ops.get(self.index_of(op).wrapping_add(1)).unwrap_or(&ops[ops.len() - 1])
    }

    /// Returns the name of the instruction at a byte offset.
    pub fn name_at(&self, pc: u64) -> Option<&'static str> {
        self.inst_at(pc).map(|at| self.insts[at].instruction(self.arch.table()).name)
    }

    /// Returns the index of the instruction at a byte offset.
    pub fn inst_at(&self, pc: u64) -> Option<usize> {
        self.pcs.binary_search(&pc).ok()
    }

    /// Returns the index of the last instruction, if it ends at this byte offset.
    pub fn ending_at(&self, pc: u64) -> Option<usize> {
        let last = self.insts.len().checked_sub(1)?;
        (self.pcs[last] + self.insts[last].size as u64 == pc).then_some(last)
    }

    /// Sets the wave size, which is 32 by default.
    pub fn for_wave_size(self, wave_size: u32) -> Program {
        Program { wave_size, ..self }
    }

    /// Sets the syntax of instructions in diagnostics and listings.
    pub fn with_syntax(self, syntax: Syntax) -> Program {
        Program { syntax, ..self }
    }

    /// Formats an instruction.
    pub fn text(&self, index: usize) -> String {
        (self.syntax)(&self.insts[index], self.arch, self.wave_size)
    }

    /// Sets source lines from debug information: `line_at` maps a byte offset to a line in one of `files`.
    pub fn with_debug_lines(
        mut self,
        files: Vec<SourceFile>,
        line_at: impl Fn(u64) -> Option<SourceLine>,
    ) -> Program {
        self.set_debug_lines(files, line_at);
        self
    }

    /// Replaces the source lines, as [`Program::with_debug_lines`] sets them.
    pub fn set_debug_lines(&mut self, files: Vec<SourceFile>, line_at: impl Fn(u64) -> Option<SourceLine>) {
        const NONE: SourceLine = SourceLine { file: 0, line: 0, column: 0 };
        let known = |l: &SourceLine| (l.file as usize) < files.len();
        let lines: Vec<SourceLine> =
            self.pcs.iter().map(|&pc| line_at(pc).filter(known).unwrap_or(NONE)).collect();
        self.lines = lines.iter().map(|l| l.line).collect();
        self.debug = Some((files, lines));
    }

    /// Returns the source files that debug information names.
    pub fn source_files(&self) -> &[SourceFile] {
        self.debug.as_ref().map_or(&[], |(files, _)| files)
    }

    /// Returns the line of an instruction (by index) in one of [`Program::source_files`].
    pub fn source_line(&self, index: usize) -> Option<SourceLine> {
        self.debug.as_ref().and_then(|(_, lines)| lines.get(index)).copied().filter(|l| l.line != 0)
    }

    /// Returns the source location of the instruction at a byte offset, if it is known.
    pub fn location(&self, pc: u64) -> Option<Location> {
        let index = self.inst_at(pc)?;
        let line = self.lines[index];
        if line == 0 {
            return None;
        }
        let Some((files, lines)) = &self.debug else {
            return Some(Location { file: None, line, column: 0 });
        };
        let SourceLine { file, column, .. } = lines[index];
        Some(Location { file: Some(files[file as usize].name.clone()), line, column })
    }

    /// Converts a byte offset to an address as listings show it: in the machine's own unit, relative to the
    /// code object.
    pub fn address(&self, pc: u64) -> u64 {
        let (base, offset) = match self.linked_at(pc) {
            Some(linked) => (linked.base, pc - linked.code.start),
            None => (self.base, pc),
        };
        self.arch.machine_pc(base.wrapping_add(offset))
    }

    /// Converts an address in listings to a byte offset of the program's own code.
    pub fn pc_at(&self, address: u64) -> u64 {
        self.arch.byte_pc(address).wrapping_sub(self.base)
    }

    /// Describes a byte offset as `line 12`, `kernel.cl:12` or, without source, `pc 0x1930`, as listings show
    /// it.
    pub fn place(&self, pc: u64) -> String {
        match self.location(pc) {
            Some(location) => location.to_string(),
            None => format!("pc 0x{:x}", self.address(pc)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavesim_asm::{NoSymbols, Options, parse};

    fn adds(count: u32) -> Vec<(Inst, u32)> {
        let add = |n: u32| {
            parse(&format!("v_add_nc_u32 v1, 0x{:x}, v1", 1000 + n), &Options::new(Arch::Rdna3), &NoSymbols)
        };
        (0..count).map(|n| (add(n).expect("an instruction").inst, n + 1)).collect()
    }

    fn limited(change: impl Fn(&mut Lowered)) -> Program {
        let mut program = Program::empty(Arch::Rdna3);
        change(&mut program.lowered);
        program
    }

    #[test]
    fn an_instruction_is_replaced_by_others_of_its_size() {
        let parse =
            |text: &str| parse(text, &Options::new(Arch::Rdna3), &NoSymbols).expect("an instruction").inst;
        let texts = ["s_nop 1", "buffer_gl0_inv", "s_endpgm"];
        let program =
            Program::new(Arch::Rdna3, texts.iter().zip(1..).map(|(t, n)| (parse(t), n)).collect()).unwrap();
        let nop = parse("s_nop 0");
        assert!(program.with_replaced(1, &[nop]).is_none(), "the sizes differ");
        let other = program.with_replaced(1, &[nop, nop]).unwrap();
        assert_eq!((&other.pcs[..], &other.lines[..]), (&[0, 4, 8, 12][..], &[1, 2, 2, 3][..]));
        assert_eq!(other.end(), program.end());
        assert_eq!(other.insts[3], program.insts[2]);
        let words = [0xbf80_0000, 0xffff_ffff, 0xbfb0_0000];
        let holes = Program::from_words(Arch::Rdna3, &words).unwrap();
        let other = holes.with_replaced(0, &[parse("s_nop 3")]).unwrap();
        assert_eq!((other.end(), &other.pcs[..]), (holes.end(), &holes.pcs[..]));
    }

    /// Whichever limit a program exceeds, the error names the first instruction that does.
    #[test]
    fn exceeded_limits_are_errors_with_a_location() {
        let result = limited(|l| l.limits.constants = 4 * 300).append_all(adds(301)).map(|_| ());
        assert_eq!(result.as_ref().unwrap_err().limit, LimitExceeded::Constants(1200));
        assert_eq!(
            result.unwrap_err().to_string(),
            "line 301: the program needs more than 1200 words of distinct constants"
        );
        assert!(limited(|l| l.limits.constants = 4 * 300).append_all(adds(300)).is_ok());
        // Constants in the register files need no modifiers: 64 of 4 words, then one entry per constant, and
        // the default.
        let result = limited(|l| l.limits.modifiers = 11).append_all(adds(75)).map(|_| ());
        assert_eq!(
            result.unwrap_err(),
            TooLarge { place: "line 75".into(), limit: LimitExceeded::Modifiers(11) }
        );
        // One operation each, room for the largest instruction, and the end.
        let result = limited(|l| l.limits.operations = 10).append_all(adds(9)).map(|_| ());
        assert_eq!(
            result.unwrap_err(),
            TooLarge { place: "line 6".into(), limit: LimitExceeded::Operations(10) }
        );
    }
}
