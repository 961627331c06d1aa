//! Compares the decoder with a naive one, which tries each encoding: first the fixed fields, then the opcode,
//! then the condition.

use isa_spec::tables::{ArchTable, Encoding, EntryId, Field, MAX_FIELDS};
use proptest::prelude::*;
use std::collections::HashMap;
use wavesim_isa::arch::Arch;
use wavesim_isa::codec::{DecodeError, decode, encode, words};
use wavesim_isa::inst::Inst;

/// Entries by encoding and opcode.
type Entries = HashMap<(usize, u32), EntryId>;

fn entries(table: &ArchTable) -> Entries {
    let keys = table.entries.iter().map(|e| (e.enc as usize, e.opcode as u32));
    keys.zip(0..).collect()
}

/// The field called `name`, if the encoding has it.
fn field(encoding: &Encoding, name: &str) -> Option<usize> {
    encoding.fields.iter().position(|f| f.name == name)
}

/// Returns whether an encoding applies to an entry. With a mandatory literal, it is the instruction's only
/// encoding, so it applies regardless of the condition. For a dual instruction, this means that the encoding
/// without literal lacks one half.
fn applies(
    table: &ArchTable,
    entries: &Entries,
    index: usize,
    entry: EntryId,
    values: &[u32; MAX_FIELDS],
) -> bool {
    let (encoding, entry) = (&table.encodings[index], &table.entries[entry as usize]);
    if encoding.conditions[entry.cond as usize].expr.eval(values) != 0 {
        return true;
    }
    let Some(y) = field(encoding, "OPY") else {
        let instruction = &table.instructions[entry.inst as usize];
        return table.entries_of(instruction).iter().all(|e| e.enc as usize == index);
    };
    let plain = |e: &Encoding| field(e, "OPY").is_some() && field(e, "LITERAL").is_none();
    let plain = table.encodings.iter().position(plain).expect("dual instructions without a literal");
    let halves = [entry.opcode as u32, values[y]];
    index != plain && halves.iter().any(|opcode| !entries.contains_key(&(plain, *opcode)))
}

fn naive(table: &ArchTable, entries: &Entries, bits: u128) -> Option<Inst> {
    let mut order: Vec<usize> = (0..table.encodings.len()).collect();
    order.sort_by_key(|&at| table.encodings[at].order);
    order.into_iter().find_map(|at| {
        let encoding = &table.encodings[at];
        let differs = |f: &Field| {
            f.fixed.is_some_and(|fixed| (f.extract(bits) ^ fixed) & f.extract(encoding.mask) != 0)
        };
        if encoding.fields.iter().any(differs) {
            return None;
        }
        let mut fields = [0; MAX_FIELDS];
        for (value, field) in fields.iter_mut().zip(encoding.fields) {
            *value = field.fixed.unwrap_or_else(|| field.extract(bits));
        }
        let opcode = encoding.op_field.map_or(0, |op| fields[op as usize]);
        let entry = *entries.get(&(at, opcode))?;
        // Operations of dual instructions may be possible in one half only.
        let writes = |entry: EntryId, name| {
            let sig = table.signatures[table.entries[entry as usize].sig as usize];
            sig.iter().any(|o| o.field.map(usize::from) == field(encoding, name))
        };
        let entry_y = match field(encoding, "OPY") {
            Some(y) => *entries.get(&(at, fields[y])).filter(|e| writes(**e, "VDSTY"))?,
            None => EntryId::MAX,
        };
        if entry_y != EntryId::MAX && !writes(entry, "VDSTX") {
            return None;
        }
        if !applies(table, entries, at, entry, &fields) {
            return None;
        }
        // Fields that count groups or omit a bit are converted to single registers.
        for operand in table
            .entries
            .iter()
            .filter(|e| e.enc as usize == at)
            .flat_map(|e| table.signatures[e.sig as usize])
        {
            let sgprs = table.operand_types[operand.ty as usize].name.starts_with("OPR_SREG");
            if let Some(number) = operand.field.filter(|_| sgprs) {
                let field = &encoding.fields[number as usize];
                fields[number as usize] = field.extract(bits) << 7u32.saturating_sub(field.width());
            }
        }
        if let (Some(x), Some(y)) = (field(encoding, "VDSTX"), field(encoding, "VDSTY"))
            && encoding.fields[y].width() == 7
        {
            fields[y] = 2 * fields[y] + (1 - fields[x] % 2);
        }
        Some(Inst { entry, entry_y, size: (encoding.bits / 8) as u8, fields })
    })
}

/// Words of `entry` with random free fields, many of which hold codes that select another encoding.
fn words_of(table: &ArchTable, entry: EntryId, random: &[(u8, u32); MAX_FIELDS]) -> [u32; 4] {
    let entry = &table.entries[entry as usize];
    let encoding = &table.encodings[entry.enc as usize];
    let mut bits = 0u128;
    for (at, field) in encoding.fields.iter().enumerate() {
        let value = match (field.fixed, random[at]) {
            (Some(value), _) => value,
            _ if encoding.op_field == Some(at as u8) => entry.opcode as u32,
            (None, (0..96, code)) => [233, 234, 249, 250, 255][code as usize % 5],
            (None, (_, value)) => value,
        };
        bits = field.insert(bits, value);
    }
    [0, 32, 64, 96].map(|at| (bits >> at) as u32)
}

#[test]
fn words_are_little_endian() {
    assert_eq!(words(&[1, 2, 3, 0x84, 5, 0, 0, 0, 9, 9]), [0x8403_0201, 5]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn decoder_agrees_with_the_naive_one(random in any::<[(u8, u32); MAX_FIELDS]>(), any in any::<[u32; 4]>()) {
        for arch in Arch::ALL {
            let (table, entries) = (arch.table(), entries(arch.table()));
            let of_entries = (0..table.entries.len() as EntryId).map(|entry| words_of(table, entry, &random));
            for words in of_entries.chain([any]) {
                let bits = words.iter().rev().fold(0, |bits, word| bits << 32 | *word as u128);
                let expected = naive(table, &entries, bits);
                prop_assert_eq!(decode(arch, &words).ok(), expected, "{} {:08x?}", arch.name(), words);
                let Some(inst) = expected else { continue };
                // Fewer words decode to another instruction or to none.
                let needed = inst.size as usize / 4;
                for given in 1..needed {
                    match decode(arch, &words[..given]) {
                        Ok(other) => prop_assert!(other.size as usize <= given * 4),
                        Err(DecodeError::Truncated { needed, given: said, .. }) => {
                            prop_assert!(needed > given && said == given)
                        }
                        Err(DecodeError::Unknown { .. }) => {}
                    }
                }
            }
        }
    }
}

/// V_WMMA_SCALE_F32_16X16X128_F8F6F4 has a source field without an operand. LLVM 22 writes 0x100 (v0) to it, and later
/// versions write 0x80 (the constant 0).
#[test]
fn a_source_without_an_operand_has_any_value() {
    let words = |second| [0xcc35_0000, second, 0xcc33_4010, 0x0442_8d00];
    let [first, second] =
        [0x0402_8b4e, 0x0202_8b4e].map(|second| decode(Arch::Cdna5, &words(second)).unwrap());
    assert_eq!(first, second);
    assert_eq!(*encode(Arch::Cdna5, &first).unwrap(), words(0x0402_8b4e));
}
