//! Instructions that LLVM has and the ISA descriptions lack.

use super::referee::{disassemble, refereed, tool};
use isa_spec::tables::EntryId;
use std::collections::BTreeMap;
use std::path::Path;
use wavesim::arch::Arch;
use wavesim::asm::Options;
use wavesim::codec::{decode, encode};
use wavesim_tests::legal::{Random, random_inst};

/// Returns words with every opcode value that has no instruction on the architecture. The other fields come
/// from legal instructions.
fn opcodes_without_an_instruction(arch: Arch, each: usize) -> Vec<Vec<u32>> {
    let (options, table) = (Options::new(arch), arch.table());
    let mut random = Random(7);
    let mut out = Vec::new();
    for (at, encoding) in table.encodings.iter().enumerate() {
        // Literal and DPP variants share the opcode of a short encoding, which is covered itself.
        let Some(op) = encoding.op_field.map(|op| &encoding.fields[op as usize]) else { continue };
        let own: Vec<EntryId> = (0..table.entries.len() as EntryId)
            .filter(|e| table.entries[*e as usize].enc as usize == at)
            .collect();
        for round in 0..=each {
            let entry = own[random.below(own.len() as u32) as usize];
            let Some(mut inst) = random_inst(&options, entry, &mut random) else { continue };
            if round == each {
                // Also with all fields zero, because LLVM rejects nonzero unused bits.
                let fields = encoding.fields.iter().map(|f| f.fixed.unwrap_or(0));
                inst.fields.iter_mut().zip(fields).for_each(|(own, zero)| *own = zero);
            }
            let Ok(words) = encode(arch, &inst) else { continue };
            for opcode in 0..1u32 << op.width() {
                let mut words = words.to_vec();
                let mut left = opcode;
                for &(first, count) in op.ranges {
                    let (word, first) = (first as usize / 32, first % 32);
                    let mask = ((1u64 << count) - 1) as u32;
                    words[word] = words[word] & !(mask << first) | (left & mask) << first;
                    left >>= count;
                }
                if decode(arch, &words).is_err() {
                    out.push(words);
                }
            }
        }
    }
    out
}

/// The list of instructions that only LLVM has is exact.
#[test]
fn instructions_that_only_llvm_has_are_listed() {
    use wavesim::asm::dialect::absent::ABSENT;
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/llvm-differences.md");
    let document = std::fs::read_to_string(document).unwrap();
    for arch in refereed() {
        let listed: Vec<&str> = ABSENT.iter().filter(|a| a.1.contains(&arch)).map(|a| a.0).collect();
        let all = opcodes_without_an_instruction(arch, 12);
        let Some(replies) = disassemble(arch, all.iter().map(Vec::as_slice)) else {
            println!("skipped: {} is not installed", tool(arch));
            continue;
        };
        let mut found: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for (words, reply) in all.iter().zip(replies) {
            if let Some((text, _)) = reply.filter(|(_, read)| read == words) {
                let name = text.split_whitespace().next().unwrap_or_default().to_string();
                // LLVM's name for all-zero words, which are not an instruction.
                if name != "v_illegal" {
                    found.entry(name).or_insert_with(|| words.clone());
                }
            }
        }
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, listed, "{}: {found:08x?}", arch.name());
        for name in listed {
            assert!(document.contains(&format!("`{name}`")), "docs/llvm-differences.md does not list {name}");
        }
    }
}
