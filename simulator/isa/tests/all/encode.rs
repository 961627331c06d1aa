//! Encoding, and round trips through the decoder.

use isa_spec::tables::{ArchTable, EntryId, MAX_FIELDS};
use proptest::prelude::*;
use wavesim_isa::arch::Arch;
use wavesim_isa::codec::{DecodeError, EncodeError, decode, encode};
use wavesim_isa::inst::Inst;

/// An instruction of `entry` with random free fields within their widths.
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
    decode(arch, &words).unwrap_or(Inst { entry, entry_y: EntryId::MAX, size: 0, fields: [0; MAX_FIELDS] })
}

fn name(table: &ArchTable, entry: EntryId) -> String {
    let e = &table.entries[entry as usize];
    format!("{} {}", table.encodings[e.enc as usize].name, table.instructions[e.inst as usize].name)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// For every entry with random fields, decoding and encoding preserves all fields.
    #[test]
    fn decoded_instructions_round_trip(random in any::<[u32; MAX_FIELDS]>()) {
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
    fn arbitrary_words_decode_or_fail(words in prop::collection::vec(any::<u32>(), 0..5)) {
        for arch in Arch::ALL {
            match decode(arch, &words) {
                Ok(inst) => prop_assert!(inst.size as usize <= words.len() * 4),
                Err(DecodeError::Truncated { needed, given, .. }) => prop_assert!(given < needed),
                Err(DecodeError::Unknown { .. }) => {}
            }
        }
    }

    #[test]
    fn arbitrary_fields_encode_or_fail(
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

    /// Every entry of any encoding is tried as the second half of each dual instruction.
    #[test]
    fn second_halves_belong_to_their_encoding(random in any::<[u32; MAX_FIELDS]>()) {
        let mut refused = 0;
        for arch in Arch::AMD {
            let table = arch.table();
            for entry in 0..table.entries.len() as EntryId {
                let e = &table.entries[entry as usize];
                let Some(y) = table.encodings[e.enc as usize].fields.iter().position(|f| f.name == "OPY") else {
                    continue;
                };
                // Use the same operation for both halves.
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
                        // The opcode does not fit the field, cannot be a second half, or belongs to the form
                        // with a literal.
                        Err(_) => prop_assert_ne!(entry_y, inst.entry_y),
                    }
                }
            }
        }
        prop_assert!(refused > 1000, "{}", refused);
    }
}

/// The results of a dual instruction must be an even and an odd register.
#[test]
fn dual_result_parity_is_checked() {
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

/// Codes that select another instruction or a longer encoding are rejected.
#[test]
fn encoded_words_decode_to_the_same_entry() {
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
    assert_eq!(encode(arch, &inst), Err(EncodeError::TooLarge { field: "SBASE", value: 100, bits: 6 }));
}
