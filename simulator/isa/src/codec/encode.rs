//! The encoder: field values of an [`Inst`] to microcode words.

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

/// Why field values do not encode an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum EncodeError {
    /// An entry index out of range.
    #[error("there is no entry {0} in the tables")]
    NoEntry(u16),
    /// A value that is wider than its field.
    #[error("{field} holds {bits} bits; {value} (0x{value:x}) does not fit")]
    TooGreat { field: &'static str, value: u32, bits: u32 },
    /// A register that does not start a group, in a field that counts groups.
    #[error("{field} names registers in groups of {group}; {value} does not start one")]
    Unaligned { field: &'static str, value: u32, group: u32 },
    /// Two VGPRs of the same parity as the results of VOPD, which stores one low bit for both.
    #[error(
        "the two results of a dual instruction need one even and one odd register; these are v{x} and v{y}"
    )]
    SameParity { x: u32, y: u32 },
    /// An entry that VOPD does not have in its second half.
    #[error("{name} is not a second half of a dual instruction")]
    NoSecondHalf { name: &'static str },
    /// Field values that decode to another instruction.
    #[error("these fields are another instruction: {found} instead of {name}")]
    Other { name: &'static str, found: &'static str },
    /// A source code for a literal, in an encoding without one.
    #[error("a source names a literal, and {encoding} has none")]
    NoLiteral { encoding: &'static str },
}

/// Encodes `inst`. What comes back decodes to the same entry: field values that would be read as another one
/// are refused.
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
        // The second result's low bit is not stored: it is the opposite of the first's.
        let (x, y) = (fields[vopd.dst_x], fields[vopd.dst_y]);
        if (x ^ y) & 1 == 0 {
            return Err(EncodeError::SameParity { x, y });
        }
        fields[vopd.dst_y] = y >> 1;
    }
    let mut halves = [enc.value as u64, (enc.value >> 64) as u64];
    for piece in &enc.pieces {
        let at = piece.field as usize;
        if fields[at] & !enc.legal[at] != 0 {
            return Err(illegal(&encoding.fields[at], fields[at], enc.unit[at]));
        }
        piece.insert(&mut halves, fields[at]);
    }
    let words = halves.map(|half| [half as u32, (half >> 32) as u32]);
    let words = [words[0][0], words[0][1], words[1][0], words[1][1]];
    let words = Words { words, len: (encoding.bits / 32) as u8 };
    match decode(arch, &words) {
        Ok(back) if back.entry == inst.entry && back.entry_y == inst.entry_y => Ok(words),
        Ok(back) if back.entry == inst.entry => {
            Err(EncodeError::NoSecondHalf { name: table.instructions[inst.instruction_y(table)].name })
        }
        Ok(back) => Err(EncodeError::Other { name, found: back.instruction(table).name }),
        // The code of a literal in an encoding without one: the word needs another word, or decodes to
        // nothing.
        Err(_) => Err(EncodeError::NoLiteral { encoding: encoding.name }),
    }
}

/// The error for a value with bits that its field does not have.
fn illegal(field: &Field, value: u32, unit: u8) -> EncodeError {
    let group = 1 << unit;
    match value % group {
        0 => EncodeError::TooGreat { field: field.name, value: value / group, bits: field.width() },
        _ => EncodeError::Unaligned { field: field.name, value, group },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::DecodeError;
    use isa_spec::tables::{ArchTable, EntryId, MAX_FIELDS};
    use proptest::prelude::*;

    /// An instruction of `entry` whose free fields come from `random`, as near to legal as field widths say.
    fn arbitrary(arch: Arch, entry: EntryId, random: &[u32; MAX_FIELDS]) -> Inst {
        let table = arch.table();
        let e = &table.entries[entry as usize];
        let encoding = &table.encodings[e.enc as usize];
        let mut bits = 0u128;
        for (at, field) in encoding.fields.iter().enumerate() {
            let value = match field.fixed {
                Some(value) => value,
                None if encoding.op_field == Some(at as u8) => e.opcode as u32,
                None => random[at],
            };
            bits = field.insert(bits, value);
        }
        let words: Vec<u32> = (0..4).map(|at| (bits >> (32 * at)) as u32).collect();
        decode(arch, &words).unwrap_or(Inst {
            entry,
            entry_y: EntryId::MAX,
            size: 0,
            fields: [0; MAX_FIELDS],
        })
    }

    fn name(table: &ArchTable, entry: EntryId) -> String {
        let e = &table.entries[entry as usize];
        format!("{} {}", table.encodings[e.enc as usize].name, table.instructions[e.inst as usize].name)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        /// Every entry, each with random fields: what decodes, encodes to the same bits of every field.
        #[test]
        fn decoded_instructions_encode_to_themselves(random in any::<[u32; MAX_FIELDS]>()) {
            for arch in Arch::ALL {
                for entry in 0..arch.table().entries.len() as EntryId {
                    let inst = arbitrary(arch, entry, &random);
                    if inst.size == 0 {
                        continue;
                    }
                    let words = encode(arch, &inst);
                    let words = words.unwrap_or_else(|e| panic!("{}: {e}", name(arch.table(), inst.entry)));
                    prop_assert_eq!(decode(arch, &words), Ok(inst), "{}", name(arch.table(), inst.entry));
                }
            }
        }

        #[test]
        fn any_words_decode_or_say_why(words in prop::collection::vec(any::<u32>(), 0..5)) {
            for arch in Arch::ALL {
                match decode(arch, &words) {
                    Ok(inst) => prop_assert!(inst.size as usize <= words.len() * 4),
                    Err(DecodeError::Truncated { needed, given, .. }) => prop_assert!(given < needed),
                    Err(DecodeError::Unknown { .. }) => {}
                }
            }
        }

        #[test]
        fn any_fields_encode_or_say_why(
            entry in any::<u16>(),
            entry_y in any::<u16>(),
            fields in any::<[u32; MAX_FIELDS]>(),
        ) {
            for arch in Arch::ALL {
                let entries = arch.table().entries.len() as u16;
                let inst = Inst { entry: entry % (entries + 1), entry_y, size: 4, fields };
                if let Ok(words) = encode(arch, &inst) {
                    prop_assert!(decode(arch, &words).is_ok());
                }
            }
        }

        /// An entry of any encoding as the second half of each dual instruction.
        #[test]
        fn second_halves_are_those_of_their_encoding(random in any::<[u32; MAX_FIELDS]>()) {
            let mut refused = 0;
            for arch in Arch::AMD {
                let table = arch.table();
                for entry in 0..table.entries.len() as EntryId {
                    let e = &table.entries[entry as usize];
                    let Some(y) = table.encodings[e.enc as usize].fields.iter().position(|f| f.name == "OPY") else {
                        continue;
                    };
                    // Twice the same operation.
                    let mut random = random;
                    random[y] = e.opcode as u32;
                    let inst = arbitrary(arch, entry, &random);
                    if inst.size == 0 {
                        continue;
                    }
                    for entry_y in 0..table.entries.len() as EntryId {
                        let other = Inst { entry_y, ..inst };
                        match encode(arch, &other) {
                            Ok(words) => {
                                let back = decode(arch, &words).map(|back| (back.entry, back.entry_y));
                                prop_assert_eq!(back, Ok((inst.entry, entry_y)));
                            }
                            Err(EncodeError::NoSecondHalf { name }) => {
                                let y = &table.entries[entry_y as usize];
                                prop_assert_eq!(name, table.instructions[y.inst as usize].name);
                                prop_assert_ne!(y.enc, table.entries[inst.entry as usize].enc);
                                refused += 1;
                            }
                            // Opcodes that the field does not have, or no half, or the halves of a form with a literal.
                            Err(_) => prop_assert_ne!(entry_y, inst.entry_y),
                        }
                    }
                }
            }
            prop_assert!(refused > 1000, "{}", refused);
        }
    }

    /// The results of a dual instruction are an even and an odd register.
    #[test]
    fn parity_is_checked() {
        let (arch, zero) = (Arch::Rdna3, [0; MAX_FIELDS]);
        let mut duals = (0..arch.table().entries.len() as EntryId).map(|entry| arbitrary(arch, entry, &zero));
        let mut inst =
            duals.find(|inst| inst.size == 8 && inst.entry_y != EntryId::MAX).expect("a dual instruction");
        let fields = inst.encoding(arch.table()).fields;
        let [x, y] = ["VDSTX", "VDSTY"].map(|name| fields.iter().position(|f| f.name == name).unwrap());
        for (first, second) in [(0, 1), (1, 0), (6, 3), (5, 2)] {
            (inst.fields[x], inst.fields[y]) = (first, second);
            let words = encode(arch, &inst).expect("one even, one odd");
            assert_eq!(decode(arch, &words), Ok(inst));
        }
        for (first, second) in [(0, 0), (4, 6), (1, 1), (7, 5)] {
            (inst.fields[x], inst.fields[y]) = (first, second);
            assert_eq!(encode(arch, &inst), Err(EncodeError::SameParity { x: first, y: second }));
        }
    }

    /// Codes that make it another instruction, or a longer one, are refused.
    #[test]
    fn what_is_encoded_is_read_as_the_same_entry() {
        let mut refused = 0;
        for arch in Arch::ALL {
            let table = arch.table();
            for entry in 0..table.entries.len() as EntryId {
                let inst = arbitrary(arch, entry, &[0; MAX_FIELDS]);
                if inst.size == 0 {
                    continue;
                }
                for at in 0..inst.encoding(table).fields.len() {
                    for code in [0, 1, 3, 125, 233, 249, 250, 255] {
                        let mut other = inst;
                        other.fields[at] = code;
                        match encode(arch, &other) {
                            Ok(words) => {
                                let back = decode(arch, &words).map(|back| (back.entry, back.entry_y));
                                assert_eq!(back, Ok((inst.entry, inst.entry_y)), "{}", name(table, entry));
                            }
                            Err(EncodeError::NoLiteral { encoding }) => {
                                assert_eq!(encoding, inst.encoding(table).name);
                                refused += 1;
                            }
                            Err(_) => {}
                        }
                    }
                }
            }
        }
        assert!(refused > 10_000, "{refused}");
    }

    #[test]
    fn groups_and_widths_are_checked() {
        let arch = Arch::Rdna3;
        let mut inst = decode(arch, &[0xf400_0000, 0xf800_0000]).unwrap();
        let at = inst.encoding(arch.table()).fields.iter().position(|f| f.name == "SBASE").unwrap();
        inst.fields[at] = 3;
        assert_eq!(encode(arch, &inst), Err(EncodeError::Unaligned { field: "SBASE", value: 3, group: 2 }));
        inst.fields[at] = 200;
        assert_eq!(encode(arch, &inst), Err(EncodeError::TooGreat { field: "SBASE", value: 100, bits: 6 }));
    }
}
