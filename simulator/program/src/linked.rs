//! Code of other code objects, which a program can call by address.
//!
//! Each range of such code follows the program's own at byte offsets of its own choice, so that byte offsets identify
//! instructions. While a wave executes it, the wave's [`code_base`](Wave::code_base) is such that the sum of both is the
//! address of the instruction. A jump that leaves a range is found by its address ([`Program::jump`]).

use super::code_range::{Code, Linked};
use super::location::{SourceFile, SourceLine};
use super::program::{Program, TooLarge};
use wavesim_isa::codec::words;
use wavesim_rt::op::Op;
use wavesim_state::Wave;

/// Distance between ranges in bytes: no jump to a constant distance (16 bits, in dwords) reaches another range.
const DISTANCE: u64 = 1 << 20;

/// A byte offset where no code is.
const NOWHERE: u64 = !3;

/// Code of another code object.
pub struct CallableCode {
    /// The address of the first byte.
    pub address: u64,
    /// The address of the first byte in listings of its code object.
    pub base: u64,
    /// The code.
    pub bytes: Vec<u8>,
}

/// Source lines by address in listings of a code object.
pub type Lines<'a> = (&'a [SourceFile], &'a dyn Fn(u64) -> Option<SourceLine>);

impl Program {
    /// Adds the code of other code objects. `code_base` is the address of the program's own.
    ///
    /// # Errors
    /// The program exceeds a limit.
    pub fn link(mut self, code_base: u64, others: &[(CallableCode, Lines<'_>)]) -> Result<Program, TooLarge> {
        if others.is_empty() {
            return Ok(self);
        }
        let own_end = self.end();
        self.reopen()?;
        let own = Linked { code: Code::default(), base: self.base, code_base };
        // The program's own code is found by its address, too.
        self.linked.push(own);
        let mut start = own_end.next_multiple_of(DISTANCE) + DISTANCE;
        for (other, (files, line_at)) in others {
            let first = self.insts.len();
            let code = self.decode_linked(start, &words(&other.bytes))?;
            self.add_lines(first, (other.base, start), files, *line_at);
            let code_base = other.address.wrapping_sub(start);
            start = code.end().next_multiple_of(DISTANCE) + DISTANCE;
            self.linked.push(Linked { code, base: other.base, code_base });
        }
        self.finish()
    }

    /// Appends machine code of another code object, which begins at a byte offset `start`.
    fn decode_linked(&mut self, start: u64, words: &[u32]) -> Result<Code, TooLarge> {
        let own = std::mem::replace(&mut self.own, Code { start, by_dword: Vec::new() });
        let decoded = self.decode(words).and_then(|()| self.insert(Op::hole(), 1));
        let code = std::mem::replace(&mut self.own, own);
        decoded.map(|()| code)
    }

    /// Removes the operation that ends the program, so that more code can follow.
    fn reopen(&mut self) -> Result<(), TooLarge> {
        self.lowered.ops.pop();
        // Execution does not continue in the code that follows.
        self.insert(Op::hole(), 1)
    }

    /// Sets the source lines of the instructions from `first` on, whose code is at `base` in listings and at the byte
    /// offset `start`.
    fn add_lines(
        &mut self,
        first: usize,
        (base, start): (u64, u64),
        files: &[SourceFile],
        line_at: &dyn Fn(u64) -> Option<SourceLine>,
    ) {
        const NONE: SourceLine = SourceLine { file: 0, line: 0, column: 0 };
        let debug = self.debug.get_or_insert_default();
        debug.1.resize(first, NONE);
        let before = debug.0.len() as u32;
        debug.0.extend_from_slice(files);
        for at in first..self.insts.len() {
            let line = line_at(self.pcs[at] - start + base).filter(|line| (line.file as usize) < files.len());
            let line = line.map_or(NONE, |line| SourceLine { file: before + line.file, ..line });
            debug.1.push(line);
            self.lines[at] = line.line;
        }
    }

    /// Returns the range of another code object's code that contains a byte offset.
    pub(super) fn linked_at(&self, pc: u64) -> Option<&Linked> {
        self.linked.iter().find(|linked| linked.contains(pc))
    }

    /// Sets the PC of a wave after a jump to a byte offset, which may be the address of code of another code object.
    #[inline(always)]
    pub fn jump(&self, wave: &mut Wave, to: u64) {
        wave.pc = to;
        if !self.linked.is_empty() {
            self.jump_by_address(wave);
        }
    }

    #[cold]
    fn jump_by_address(&self, wave: &mut Wave) {
        let address = wave.code_base.wrapping_add(wave.pc);
        let Some((own, others)) = self.linked.split_first() else { return };
        let found = others.iter().find(|other| other.contains(address.wrapping_sub(other.code_base)));
        let code_base = found.unwrap_or(own).code_base;
        let pc = address.wrapping_sub(code_base);
        // An address without code must not have the byte offset of other code.
        let is_wrong = found.is_none() && self.linked_at(pc).is_some();
        (wave.code_base, wave.pc) = (code_base, if is_wrong { NOWHERE } else { pc });
    }

    /// Returns the address of an instruction in memory, given its byte offset and the address of the program's own code.
    pub fn address_in_memory(&self, pc: u64, code_base: u64) -> u64 {
        self.linked_at(pc).map_or(code_base, |linked| linked.code_base).wrapping_add(pc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavesim_isa::arch::Arch;

    const NOP: [u8; 4] = [0, 0, 0x80, 0xbf];
    const END: [u8; 4] = [0, 0, 0xb0, 0xbf];

    /// A program at 0x10000 with code of another code object at 0x8000, before it.
    fn linked() -> Program {
        let program = Program::from_bytes(Arch::Rdna3, &[NOP, END].concat()).expect("a program");
        let other = CallableCode { address: 0x8000, base: 0x100, bytes: [NOP, NOP, END].concat() };
        let files = [SourceFile { name: "f.hip".into(), path: "/f.hip".into() }];
        let line = |at: u64| Some(SourceLine { file: 0, line: at as u32, column: 1 });
        program.link(0x10000, &[(other, (&files, &line))]).expect("a program")
    }

    fn wave() -> Wave {
        let mut wave = Wave::new(32);
        wave.code_base = 0x10000;
        wave
    }

    #[test]
    fn a_jump_finds_the_code_of_another_object_by_its_address() {
        let (program, mut wave) = (linked(), wave());
        assert_eq!(program.insts.len(), 5);
        program.jump(&mut wave, 0x8004u64.wrapping_sub(0x10000));
        assert_eq!(program.inst_at(wave.pc), Some(3));
        assert_eq!(wave.code_base.wrapping_add(wave.pc), 0x8004);
        assert!(program.op_at(wave.pc).is_none() && program.any_op_at(wave.pc).is_some());
        assert_eq!((program.address(wave.pc), program.place(wave.pc)), (0x104, "f.hip:260".to_string()));
        assert_eq!(program.address_in_memory(wave.pc, 0x10000), 0x8004);
        // A jump in the same code, and the return.
        let next = wave.pc + 4;
        program.jump(&mut wave, next);
        assert_eq!(program.inst_at(wave.pc), Some(4));
        let back = 0x10004u64.wrapping_sub(wave.code_base);
        program.jump(&mut wave, back);
        assert_eq!((wave.pc, wave.code_base, program.inst_at(4)), (4, 0x10000, Some(1)));
        assert!(program.op_at(4).is_some());
    }

    #[test]
    fn addresses_without_code_are_outside() {
        let (program, mut wave) = (linked(), wave());
        let start = program.pcs[2];
        // An address that has the byte offset of other code, from the program's own; and one within an instruction.
        for address in [0x10000 + start, 0x8002, 0x7ffc, 0x8000 + 0x100] {
            let to = address.wrapping_sub(wave.code_base);
            program.jump(&mut wave, to);
            assert!(program.any_op_at(wave.pc).is_none(), "0x{address:x}");
        }
        // Execution does not continue after the last instruction.
        for last in [2 * 4, start + 3 * 4] {
            assert!(program.any_op_at(last).is_some_and(|op| op.only_stops()));
        }
    }

    #[test]
    fn programs_without_other_code_jump_anywhere() {
        let program = Program::from_bytes(Arch::Rdna3, &[NOP, END].concat()).expect("a program");
        let program = program.link(0x10000, &[]).expect("a program");
        let mut wave = wave();
        program.jump(&mut wave, 1 << 40);
        assert_eq!((wave.pc, wave.code_base), (1 << 40, 0x10000));
        assert!(program.any_op_at(wave.pc).is_none());
    }
}
