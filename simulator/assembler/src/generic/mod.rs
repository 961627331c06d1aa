//! Programs of machines with a description of their own ([`wavesim_asm::generic`]). A line holds one instruction,
//! labels, a comment, or a directive for the launch size.

mod reader;

use super::program::{LineError, Listed, Program};
use reader::Reader;
use std::collections::HashMap;
use wavesim_asm::Options;
use wavesim_asm::generic::branch_words;
use wavesim_isa::arch::Arch;
use wavesim_isa::arch::machine::Machine;
use wavesim_isa::codec::encode;
use wavesim_isa::inst::Inst;

/// A program that has been read.
#[derive(Debug, Default)]
pub struct Unit {
    /// The instructions with their line numbers, from 1.
    pub insts: Vec<(Inst, u32)>,
    /// Names and byte offsets of the labels, in source order.
    pub labels: Vec<(String, u64)>,
    /// Number of workgroups.
    pub groups: u32,
    /// Number of waves per workgroup.
    pub waves: u32,
}

/// Reads a program. Reading continues after errors; the returned unit then holds everything that could be
/// read.
pub fn read(text: &str, arch: Arch, machine: &'static Machine) -> (Unit, Vec<LineError>) {
    let mut reader = Reader::new(arch, machine);
    for (number, line) in (1..).zip(text.lines()) {
        if let Err(error) = reader.line(number, line) {
            reader.errors.push(LineError::on_line(number, line, error));
        }
    }
    reader.finish()
}

impl Unit {
    /// Converts to the representation of the LLVM front end: one section and its listing.
    pub fn program(&self, arch: Arch, machine: &'static Machine) -> Program {
        let table = arch.table();
        let label_at: HashMap<u64, &str> = self.labels.iter().map(|l| (l.1, l.0.as_str())).collect();
        let mut bytes = Vec::new();
        let mut listing = Vec::new();
        for (inst, line) in &self.insts {
            let here = bytes.len() as u64;
            let Ok(words) = encode(arch, inst) else { continue };
            bytes.extend(words.iter().flat_map(|w| w.to_le_bytes()));
            let target = branch_words(inst, arch, machine)
                .and_then(|words| label_at.get(&(here + inst.size as u64).wrapping_add_signed(4 * words)));
            let flags = &inst.instruction(table).flags();
            let label = target.filter(|_| flags.branch).copied();
            listing.push(Listed {
                line: *line as usize,
                section: 0,
                offset: here,
                inst: *inst,
                words,
                options: Options::new(arch),
                label: label.map(str::to_string),
            });
        }
        Program::of_text(arch, bytes, listing)
    }
}
