//! The encoder: converts the field values of an [`Inst`] to microcode words.

use super::decode::{self, decode};
use crate::arch::Arch;
use crate::inst::Inst;
use isa_spec::tables::Field;
use std::ops::Deref;

/// The words of one instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    words: [u32; 4],
    len: u8,
}

impl Deref for Words {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.words[..self.len as usize]
    }
}

/// The reason why field values cannot be encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum EncodeError {
    /// The entry index is out of range.
    #[error("there is no entry {0} in the tables")]
    NoEntry(u16),
    /// The value is wider than its field.
    #[error("{field} holds {bits} bits; {value} (0x{value:x}) does not fit")]
    TooLarge { field: &'static str, value: u32, bits: u32 },
    /// The register does not start a group, in a field that counts groups.
    #[error("{field} names registers in groups of {group}; {value} does not start one")]
    Unaligned { field: &'static str, value: u32, group: u32 },
    /// Both VOPD results have the same parity; VOPD stores a single low bit for both.
    #[error(
        "the two results of a dual instruction need one even and one odd register; these are v{x} and v{y}"
    )]
    SameParity { x: u32, y: u32 },
    /// The entry cannot be the second half of VOPD.
    #[error("{name} is not a second half of a dual instruction")]
    NoSecondHalf { name: &'static str },
    /// The field values decode to another instruction.
    #[error("these fields are another instruction: {found} instead of {name}")]
    DecodesDifferently { name: &'static str, found: &'static str },
    /// A source selects a literal in an encoding without one.
    #[error("a source names a literal, and {encoding} has none")]
    NoLiteral { encoding: &'static str },
}

/// Encodes `inst`. The result is guaranteed to decode to the same entry; field values that would decode to
/// another entry are rejected.
pub fn encode(arch: Arch, inst: &Inst) -> Result<Words, EncodeError> {
    let table = arch.table();
    let entry = table.entries.get(inst.entry as usize).ok_or(EncodeError::NoEntry(inst.entry))?;
    let encoding = &table.encodings[entry.enc as usize];
    let name = table.instructions[entry.inst as usize].name;
    let enc = decode::encoding(arch, entry.enc);
    let mut fields = inst.fields;
    if let Some(at) = encoding.op_field {
        fields[at as usize] = entry.opcode as u32;
    }
    if let Some(vopd) = &enc.vopd {
        let y = table.entries.get(inst.entry_y as usize).ok_or(EncodeError::NoEntry(inst.entry_y))?;
        fields[vopd.op_y] = y.opcode as u32;
        // The second result's low bit is not stored; it is the inverse of the first's.
        let (x, y) = (fields[vopd.dst_x], fields[vopd.dst_y]);
        if vopd.parity {
            if (x ^ y) & 1 == 0 {
                return Err(EncodeError::SameParity { x, y });
            }
            fields[vopd.dst_y] = y >> 1;
        }
    }
    let mut halves = [enc.value as u64, (enc.value >> 64) as u64];
    for range in &enc.ranges {
        let at = range.field as usize;
        if fields[at] & !enc.valid_bits[at] != 0 {
            return Err(illegal(&encoding.fields[at], fields[at], enc.shift[at]));
        }
        range.insert(&mut halves, fields[at]);
    }
    let words = halves.map(|half| [half as u32, (half >> 32) as u32]);
    let words = [words[0][0], words[0][1], words[1][0], words[1][1]];
    let words = Words { words, len: (encoding.bits / 32) as u8 };
    match decode(arch, &words) {
        Ok(back) if back.entry == inst.entry && back.entry_y == inst.entry_y => Ok(words),
        Ok(back) if back.entry == inst.entry => {
            Err(EncodeError::NoSecondHalf { name: table.instructions[inst.instruction_y(table)].name })
        }
        Ok(back) => Err(EncodeError::DecodesDifferently { name, found: back.instruction(table).name }),
        // A literal code in an encoding without literal: decoding needs another word or fails.
        Err(_) => Err(EncodeError::NoLiteral { encoding: encoding.name }),
    }
}

/// The error for a value with bits outside of its field.
fn illegal(field: &Field, value: u32, shift: u8) -> EncodeError {
    let group = 1 << shift;
    match value % group {
        0 => EncodeError::TooLarge { field: field.name, value: value / group, bits: field.width() },
        _ => EncodeError::Unaligned { field: field.name, value, group },
    }
}
