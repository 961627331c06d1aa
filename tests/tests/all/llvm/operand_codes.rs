//! The codes of registers and constants that each operand accepts, compared with LLVM's disassembler.

use super::referee::{Reply, disassemble, refereed, tool};
use isa_spec::tables::EntryId;
use std::collections::{BTreeMap, BTreeSet};
use wavesim::arch::Arch;
use wavesim::asm::{Options, legal, print};
use wavesim::codec::{decode, encode};
use wavesim::operand::unlisted_code;
use wavesim_tests::legal::{Random, random_inst};

/// Returns pairs of words: of an instruction, and of the same with another code in one operand of up to 32
/// bits, which can begin at any register. All codes for the first operand of a type in a field of an encoding,
/// some for the others.
fn changed(arch: Arch) -> Vec<[Vec<u32>; 2]> {
    let table = arch.table();
    let options = Options::new(arch);
    let mut random = Random(7);
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    for (entry, e) in table.entries.iter().enumerate() {
        for operand in table.signatures[e.sig as usize].iter().filter(|o| o.size_bits <= 32) {
            let Some(field) = operand.field else { continue };
            let width = table.encodings[e.enc as usize].fields[field as usize].width();
            let listed = table.operand_types[operand.ty as usize].values;
            if width > 9 || listed.is_empty() {
                continue;
            }
            let count = 1 << width;
            let codes: Vec<u32> = match seen.insert((e.enc, field, operand.ty)) {
                true => (0..count).collect(),
                false => (0..4).map(|_| random.below(count)).collect(),
            };
            for code in codes {
                // LLVM 22 crashes when it prints a literal of an operand that has none.
                if arch == Arch::Cdna5 && code == 255 && !listed.iter().any(|v| v.1 == code) {
                    continue;
                }
                let Some(inst) = random_inst(&options, entry as EntryId, &mut random) else { continue };
                let mut other = inst;
                other.fields[field as usize] = code;
                if let (Ok(words), Ok(others)) = (encode(arch, &inst), encode(arch, &other)) {
                    out.push([words.to_vec(), others.to_vec()]);
                }
            }
        }
    }
    out
}

/// Returns whether LLVM accepts an instruction for a reason that this comparison excludes.
fn llvm_is_lax(arch: Arch, code: u32, ours: &str) -> bool {
    // Sources that LLVM names on every target, and the ISA's description of this one does not list: the
    // apertures, VCCZ, EXECZ, SCC and others.
    (235..=239).contains(&code) || (251..=254).contains(&code)
        // LLVM 22 names the bases of scratch on processors without architected scratch, too.
        || arch == Arch::Cdna4 && (230..=231).contains(&code)
        // and where no register of theirs is meant: numbers of barriers, and numbers relative to M0.
        || arch == Arch::Cdna5 && (230..=231).contains(&code)
        // CDNA has no null.
        || arch.is_cdna() && code == 125
        // LLVM's assembler rejects scalars and constants in place of a VGPR, but its disassembler accepts them
        // in some encodings, such as DPP. Ours comments on the error.
        || ours.contains("/*Invalid")
        // Register numbers relative to M0 need a register.
        || ours.starts_with("s_movrelsd_2")
}

/// Returns whether LLVM rejects an instruction for a reason that this comparison excludes.
fn llvm_is_strict(ours: &str) -> bool {
    // LLVM 19 does not disassemble high halves, and knows no scalar in DPP of mixed-precision instructions of
    // RDNA 3.5, and none in interpolations of RDNA 3 and 3.5. M0 and EXEC are registers as any other.
    // LLVM 22 requires the code of EXEC in the unused field of V_CMPX.
    let names = ["v_movrel", "v_fma_mix", "v_interp", "v_cmpx"];
    ours.contains(".h") || ours.contains("<code 12") || names.iter().any(|name| ours.starts_with(name))
}

#[test]
fn operands_accept_the_codes_that_llvm_accepts() {
    for arch in refereed() {
        let all = changed(arch);
        let list: Vec<&[u32]> = all.iter().flatten().map(Vec::as_slice).collect();
        let Some(replies) = disassemble(arch, list.into_iter()) else {
            println!("skipped: {} is not installed", tool(arch));
            continue;
        };
        let accepted = |reply: &Reply| reply.as_ref().is_some_and(|(text, _)| !text.contains("/*Invalid"));
        let options = Options::new(arch);
        let mut differences = BTreeMap::new();
        let (mut both_accept, mut both_reject) = (0, 0);
        for ([_, words], reply) in all.iter().zip(replies.chunks(2)) {
            let Ok(inst) = decode(arch, words) else { continue };
            if !accepted(&reply[0]) || legal::check_decoded(&inst, &options).is_err() {
                continue;
            }
            let text = print::instruction(&inst, &options);
            let excused = match (accepted(&reply[1]), unlisted_code(arch, &inst)) {
                (true, None) => {
                    both_accept += 1;
                    continue;
                }
                (false, Some(_)) => {
                    both_reject += 1;
                    continue;
                }
                (true, Some(code)) => llvm_is_lax(arch, code, &text),
                (false, None) => llvm_is_strict(&text),
            };
            if !excused {
                differences.insert(inst.instruction(arch.table()).name, (words, text, &reply[1]));
            }
        }
        assert!(differences.is_empty(), "{}: {differences:08x?}", arch.name());
        assert!(both_accept > 5_000 && both_reject > 500, "{}: {both_accept}, {both_reject}", arch.name());
    }
}
