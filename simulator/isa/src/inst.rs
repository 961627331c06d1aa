//! The instruction type shared by all components: front ends and the decoder produce it; the encoder,
//! disassembler, debugger and the lowering to operations consume it.

use isa_spec::tables::{ArchTable, Encoding, Entry, EntryId, Instruction, MAX_FIELDS};

/// A decoded instruction: the table entry (instruction and encoding), and the values of all encoding fields.
///
/// Field values are as in the microcode, except that register fields count single registers: SBASE and SRSRC
/// hold the SGPR number (the microcode drops low bits), VDSTY holds the VGPR number. The text format can thus
/// name register pairs that the microcode cannot (`s[3:4]` as a base); the encoder rejects them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inst {
    /// Index into [`ArchTable::entries`]; for VOPD, the entry of the first half.
    pub entry: EntryId,
    /// VOPD only: the entry of the second half (its opcode is in OPY); otherwise `EntryId::MAX`.
    pub entry_y: EntryId,
    /// Size in bytes, including the literal.
    pub size: u8,
    /// Field values, parallel to the encoding's `fields`.
    pub fields: [u32; MAX_FIELDS],
}

impl Inst {
    /// The table entry. May panic if the instruction belongs to another architecture.
    pub fn entry(&self, table: &'static ArchTable) -> &'static Entry {
        &table.entries[self.entry as usize]
    }

    /// The encoding of the entry.
    pub fn encoding(&self, table: &'static ArchTable) -> &'static Encoding {
        &table.encodings[self.entry(table).enc as usize]
    }

    /// The instruction of the entry; for VOPD, of the first half.
    pub fn instruction(&self, table: &'static ArchTable) -> &'static Instruction {
        &table.instructions[self.entry(table).inst as usize]
    }

    /// Index of the second half's instruction, or of the instruction itself if there is no second half.
    pub fn instruction_y(&self, table: &'static ArchTable) -> usize {
        table.entries.get(self.entry_y as usize).unwrap_or(self.entry(table)).inst as usize
    }

    /// The value of the field called `name`, if the encoding has it.
    pub fn field(&self, table: &'static ArchTable, name: &str) -> Option<u32> {
        let at = self.encoding(table).fields.iter().position(|f| f.name == name)?;
        Some(self.fields[at])
    }
}
