//! The one instruction type: what every front end produces and what the decoder, encoder, disassembler,
//! debugger and the lowering to the interpreter's operations consume.

use isa_spec::tables::{ArchTable, Encoding, Entry, EntryId, Instruction, MAX_FIELDS};

/// A decoded instruction: which (instruction, encoding) pair, and the value of every encoding field.
///
/// Field values are as in the microcode, except that register fields count single registers: SBASE and SRSRC
/// hold the SGPR number (the microcode drops low bits), VDSTY holds the VGPR number. So the text format can
/// name register pairs that the microcode cannot (`s[3:4]` as a base); the encoder refuses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inst {
    /// Index in [`ArchTable::entries`]; for VOPD the entry of the first half.
    pub entry: EntryId,
    /// VOPD only: the entry of the second half's instruction (its opcode is in OPY); otherwise
    /// `EntryId::MAX`.
    pub entry_y: EntryId,
    /// In bytes, literal included.
    pub size: u8,
    /// By index in the encoding's `fields`.
    pub fields: [u32; MAX_FIELDS],
}

impl Inst {
    /// The table's entry. Panics if the instruction is of another architecture and its index out of range.
    pub fn entry(&self, table: &'static ArchTable) -> &'static Entry {
        &table.entries[self.entry as usize]
    }

    /// The encoding of its entry.
    pub fn encoding(&self, table: &'static ArchTable) -> &'static Encoding {
        &table.encodings[self.entry(table).enc as usize]
    }

    /// The instruction of its entry; the first half's for VOPD.
    pub fn instruction(&self, table: &'static ArchTable) -> &'static Instruction {
        &table.instructions[self.entry(table).inst as usize]
    }

    /// Index of the second half's instruction; of the instruction itself where there is no second half.
    pub fn instruction_y(&self, table: &'static ArchTable) -> usize {
        table.entries.get(self.entry_y as usize).unwrap_or(self.entry(table)).inst as usize
    }

    /// Value of the field called `name`, if the encoding has it.
    pub fn field(&self, table: &'static ArchTable, name: &str) -> Option<u32> {
        let at = self.encoding(table).fields.iter().position(|f| f.name == name)?;
        Some(self.fields[at])
    }
}
