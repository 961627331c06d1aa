//! Invariants of the shipped ISA descriptions and of the tables built from them, over every encoding, entry
//! and operand.

use isa_spec::data::{self, Loaded};
use isa_spec::diag::render;
use isa_spec::tables::*;
use isa_spec::xml;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// All architectures with their overlays and rules; no pseudocode.
static LOADED: LazyLock<Loaded> = LazyLock::new(|| {
    let data = root().join("data");
    let loaded = data::load(data::AMD, &data, &data.join("overlay"), &data.join("none"), &root());
    let shown: Vec<String> = loaded.diagnostics.iter().map(|d| render(&loaded.sources, d)).collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
    loaded
});

fn tables() -> &'static [&'static ArchTable] {
    &LOADED.tables
}

#[test]
fn counts_of_the_base_documents() {
    for (file, instructions, forms) in
        [("isa_rdna3.xml", 1150, 3358), ("isa_rdna35.xml", 1227, 3494), ("isa_rdna4.xml", 1268, 3488)]
    {
        let text = std::fs::read_to_string(root().join("data").join(file)).unwrap();
        let spec = xml::load(file, &text).unwrap_or_else(|_| panic!("{file} is refused"));
        let count: usize = spec.instructions.iter().map(|i| i.encodings.len()).sum();
        assert_eq!((spec.instructions.len(), count), (instructions, forms), "{file}");
    }
}

/// The data of compare-and-swap is a pair; the result is one value.
#[test]
fn compare_and_swap_returns_half_of_its_data() {
    let mut found = 0;
    for table in tables() {
        for entry in table.entries {
            let name = table.instructions[entry.inst as usize].name;
            if !name.starts_with("GLOBAL_ATOMIC_CMPSWAP") && !name.starts_with("FLAT_ATOMIC_CMPSWAP") {
                continue;
            }
            let size = |role| {
                table.signatures[entry.sig as usize].iter().find(|o| o.role == role).unwrap().size_bits
            };
            assert_eq!(size(Role::D0) * 2, size(Role::Data), "{}: {name}", table.name);
            found += 1;
        }
    }
    assert_eq!(found, 6 + 6 + 4 + 4 + 4 + 4);
}

#[test]
fn indices_are_in_range() {
    for table in tables() {
        let mut next = 0;
        for (at, inst) in table.instructions.iter().enumerate() {
            // Entries of one instruction are contiguous and in instruction order.
            assert_eq!(inst.entries.0, next, "{}", inst.name);
            next += inst.entries.1;
            assert!(inst.entries.1 > 0, "{} has no encoding", inst.name);
            assert!(table.entries_of(inst).iter().all(|e| e.inst as usize == at), "{}", inst.name);
        }
        assert_eq!(next as usize, table.entries.len());
        for entry in table.entries {
            let name = table.instructions[entry.inst as usize].name;
            let encoding = &table.encodings[entry.enc as usize];
            assert!((entry.cond as usize) < encoding.conditions.len(), "{name}");
            for operand in table.signatures[entry.sig as usize] {
                assert!((operand.ty as usize) < table.operand_types.len(), "{name}");
                assert!((operand.format as usize) < table.formats.len(), "{name}");
                assert!(operand.field.is_none_or(|f| (f as usize) < encoding.fields.len()), "{name}");
                assert_eq!(operand.field.is_some(), operand.in_microcode, "{name}");
                assert!(operand.input || operand.output, "{name}: an operand neither read nor written");
            }
        }
    }
}

#[test]
fn fields_fit_and_do_not_share_bits() {
    for table in tables() {
        for encoding in table.encodings {
            assert!(encoding.fields.len() <= MAX_FIELDS, "{}", encoding.name);
            let mut used = 0u128;
            for field in encoding.fields {
                let bits = field.insert(0, u32::MAX);
                assert_eq!(bits.count_ones(), field.width(), "{} {}", encoding.name, field.name);
                assert_eq!(used & bits, 0, "{} {} shares bits", encoding.name, field.name);
                assert!(
                    u128::BITS - bits.leading_zeros() <= encoding.bits.into(),
                    "{} {}",
                    encoding.name,
                    field.name
                );
                used |= bits;
            }
            // Identifier bits belong to fields, which the encoder sets; bits outside of fields are 0.
            for id in encoding.identifiers {
                assert_eq!(id & !used, 0, "{}: identifier bits in no field", encoding.name);
            }
        }
    }
}

/// The constant fields of an encoding and the opcode form one of its identifiers.
#[test]
fn every_entry_has_its_identifier() {
    for table in tables() {
        for entry in table.entries {
            let encoding = &table.encodings[entry.enc as usize];
            let name = table.instructions[entry.inst as usize].name;
            if encoding.name.starts_with("VOPD") {
                continue; // Its identifiers leave the opcodes out.
            }
            let mut bits = 0;
            for field in encoding.fields {
                bits = field.fixed.map_or(bits, |value| field.insert(bits, value));
            }
            if let Some(op) = encoding.op_field {
                bits = encoding.fields[op as usize].insert(bits, entry.opcode as u32);
            }
            assert!(encoding.identifiers.contains(&(bits & encoding.mask)), "{} {name}", encoding.name);
        }
    }
}

#[test]
fn an_opcode_means_one_instruction() {
    for table in tables() {
        let mut seen = BTreeMap::new();
        for entry in table.entries {
            let name = table.instructions[entry.inst as usize].name;
            let other = seen.insert((entry.enc, entry.cond, entry.opcode), name);
            assert_eq!(other, None, "{name} in {}", table.encodings[entry.enc as usize].name);
        }
    }
}

#[test]
fn names_are_unambiguous() {
    for table in tables() {
        let mut names = BTreeSet::new();
        for inst in table.instructions {
            for name in std::iter::once(&inst.name).chain(inst.aliases()) {
                assert!(names.insert(*name), "{name} names two instructions of {}", table.name);
                assert_eq!(*name, name.to_uppercase());
            }
        }
    }
}

/// The index finds what a search finds: instructions by name and alias, each in its own architecture.
#[test]
fn the_index_of_names_agrees_with_a_search() {
    let index = NameIndex::of(tables());
    let names: BTreeSet<&str> = tables()
        .iter()
        .flat_map(|table| table.instructions)
        .flat_map(|inst| std::iter::once(&inst.name).chain(inst.aliases()))
        .copied()
        .chain(["", "V_NONE"])
        .collect();
    for table in tables() {
        for name in &names {
            let found = index.instruction(table, name).map(|inst| inst.name);
            assert_eq!(found, table.instruction(name).map(|inst| inst.name), "{name} of {}", table.name);
            let named = table.instructions.iter().position(|inst| inst.name == *name);
            assert_eq!(index.named(table, name), named, "{name} of {}", table.name);
        }
    }
}

/// Pairs of encodings that can match the same word. `Order` decides; the third column says why that is
/// correct. The test fails on an entry that matches no word.
const DECIDED_BY_ORDER: &[(&str, &str, &str)] = &[
    ("VOP3_INST_LITERAL", "VOP3_VOP_DPP16", "no instruction has a literal and DPP: the word is invalid"),
    ("VOP3_INST_LITERAL", "VOP3_VOP_DPP8", "likewise"),
    ("VOP3_SDST_ENC_INST_LITERAL", "VOP3_SDST_ENC_VOP_DPP16", "likewise"),
    ("VOP3_SDST_ENC_INST_LITERAL", "VOP3_SDST_ENC_VOP_DPP8", "likewise"),
    ("VOP3P_INST_LITERAL", "VOP3P_VOP_DPP16", "likewise"),
    ("VOP3P_INST_LITERAL", "VOP3P_VOP_DPP8", "likewise"),
];

#[test]
fn no_word_is_in_two_encodings() {
    let mut used = BTreeSet::new();
    for table in tables() {
        for (at, a) in table.encodings.iter().enumerate() {
            for b in &table.encodings[at + 1..] {
                if !overlap(a, b) {
                    continue;
                }
                let pair = DECIDED_BY_ORDER.iter().find(|(x, y, _)| (*x, *y) == (a.name, b.name));
                assert!(pair.is_some(), "{}: {} and {} take one word", table.name, a.name, b.name);
                assert_ne!(a.order, b.order);
                used.insert((a.name, b.name));
            }
        }
    }
    for (a, b, _) in DECIDED_BY_ORDER {
        assert!(used.contains(&(*a, *b)), "{a} and {b} never overlap: remove the exception");
    }
}

/// Returns whether some word has an identifier and satisfies a condition of both encodings.
fn overlap(a: &Encoding, b: &Encoding) -> bool {
    let common = a.mask & b.mask;
    let of_b: BTreeSet<u128> = b.identifiers.iter().map(|id| id & common).collect();
    let shared: Vec<u128> =
        a.identifiers.iter().copied().filter(|id| of_b.contains(&(id & common))).collect();
    if shared.is_empty() {
        return false;
    }
    // Conditions only test source fields, for the codes of literals and DPP.
    let sources: Vec<&Field> = a.fields.iter().filter(|f| f.name.contains("SRC")).collect();
    let codes = [0u32, 233, 234, 250, 255, 256];
    let words = codes.len().pow(sources.len() as u32);
    (0..words).any(|mut n| {
        let mut bits = shared[0];
        for field in &sources {
            bits = field.insert(bits, codes[n % codes.len()]);
            n /= codes.len();
        }
        holds(a, bits) && holds(b, bits)
    })
}

fn holds(encoding: &Encoding, bits: u128) -> bool {
    let fields: Vec<u32> = encoding.fields.iter().map(|f| f.extract(bits)).collect();
    encoding.conditions.is_empty() || encoding.conditions.iter().any(|c| c.expr.eval(&fields) != 0)
}

/// Pseudocode names operands by role, so roles must be unique, except those that bodies name in another way.
#[test]
fn roles_name_one_operand() {
    for table in tables() {
        for entry in table.entries {
            let name = table.instructions[entry.inst as usize].name;
            let mut seen = BTreeSet::new();
            for operand in table.signatures[entry.sig as usize] {
                let key = match operand.role {
                    Role::State | Role::Other | Role::Imm => continue,
                    // Carry in and carry out.
                    Role::Vcc => (Role::Vcc, operand.output),
                    role => (role, false),
                };
                assert!(seen.insert(key), "{name}: two operands are {:?}", operand.role);
            }
        }
    }
}

/// All forms of an instruction have the same roles with the same sizes.
#[test]
fn all_forms_of_an_instruction_have_the_same_roles() {
    for table in tables() {
        for inst in table.instructions {
            let shape = |e: &Entry| {
                let mut list: Vec<_> = table.signatures[e.sig as usize]
                    .iter()
                    // A compare's mask is VCC or EXEC in e32, an operand in VOP3. Operands of the other half of a
                    // dual instruction are listed where the instruction can be the first half.
                    .filter(|o| !matches!(o.role, Role::State | Role::Other))
                    .filter(|o| !matches!(o.role, Role::Y0Dst | Role::Y0Src0 | Role::Y0Src1 | Role::Y0Src2))
                    .map(|o| (o.role, o.size_bits, o.input, o.output))
                    .collect();
                list.sort();
                list
            };
            let forms = table.entries_of(inst);
            for form in forms {
                assert_eq!(
                    shape(form),
                    shape(&forms[0]),
                    "{} in {}",
                    inst.name,
                    table.encodings[form.enc as usize].name
                );
            }
        }
    }
}

/// AMD lists a literal form once for each position of the literal. Rewriting our description in that form
/// yields the same tables.
#[test]
fn literal_variants_of_every_instruction_give_the_same_tables() {
    for (name, file) in data::AMD {
        let text = std::fs::read_to_string(root().join("data").join(file)).unwrap();
        let mut ours = xml::load(file, &text).unwrap_or_else(|_| panic!("{file} is refused"));
        let mut amds = ours.clone();
        let mut variants = 0;
        for inst in &mut amds.instructions {
            let forms = std::mem::take(&mut inst.encodings);
            for form in &forms {
                let family = form.encoding.strip_suffix("_INST_LITERAL");
                let plain =
                    family.is_some_and(|f| forms.iter().any(|p| p.encoding.trim_start_matches("ENC_") == f));
                let literal = if form.encoding.starts_with("SOP") { "SIMM32" } else { "LITERAL" };
                let sources = (0..form.operands.len()).filter(|&at| {
                    plain && form.operands[at].field.as_ref().is_some_and(|f| f.contains("SRC"))
                });
                let before = inst.encodings.len();
                for at in sources {
                    let mut variant = form.clone();
                    variant.condition = format!("has_lit_{at}");
                    variant.operands[at].field = Some(literal.to_string());
                    variant.operands[at].ty = "OPR_SIMM32".to_string();
                    inst.encodings.push(variant);
                    variants += 1;
                }
                if inst.encodings.len() == before {
                    inst.encodings.push(form.clone());
                }
            }
        }
        for encoding in amds.encodings.iter_mut().filter(|e| e.name.ends_with("_INST_LITERAL")) {
            for at in 0..4 {
                let mut condition = encoding.conditions[0].clone();
                condition.name = format!("has_lit_{at}");
                encoding.conditions.push(condition);
            }
        }
        assert!(variants > 500, "{name}: {variants}");
        xml::normalize(&mut amds);
        // Splits wide fields.
        xml::normalize(&mut ours);
        let (a, b) = (xml::to_tables(&ours, name), xml::to_tables(&amds, name));
        assert_eq!(a.instructions, b.instructions);
        assert_eq!(a.signatures, b.signatures);
        assert_eq!(a.entries, b.entries);
    }
}

proptest! {
    /// Inserting and extracting every field of every encoding returns the values.
    #[test]
    fn fields_round_trip(values in prop::array::uniform24(any::<u32>()), junk in any::<u128>()) {
        for table in tables() {
            for encoding in table.encodings {
                let mut bits = junk;
                for (field, value) in encoding.fields.iter().zip(values) {
                    bits = field.insert(bits, value);
                }
                for (field, value) in encoding.fields.iter().zip(values) {
                    let mask = ((1u64 << field.width()) - 1) as u32;
                    prop_assert_eq!(field.extract(bits), value & mask, "{} {}", encoding.name, field.name);
                    // No other bits change.
                    bits = field.insert(bits, field.extract(junk));
                }
                prop_assert_eq!(bits, junk);
            }
        }
    }
}
