//! Random legal instructions of every entry: LLVM's text for our words, and LLVM's words for our text.

use super::classes::{CLASSES, Case, Difference, UNKNOWN};
use super::referee::{disassemble, llvm, processor, refereed, replies, text_of, tool, words_of};
use isa_spec::tables::EntryId;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use wavesim::arch::Arch;
use wavesim::asm::{Options, print};
use wavesim::codec::encode;
use wavesim_tests::legal::{Random, random_inst};

/// Returns `each` random instructions of every entry with LLVM's text and words, or `None` if LLVM is not
/// installed.
fn cases(arch: Arch, each: usize) -> Option<Vec<Case>> {
    let options = Options::new(arch);
    let table = arch.table();
    let mut random = Random(2024);
    let mut cases: Vec<Case> = Vec::new();
    for entry in 0..table.entries.len() as EntryId {
        for _ in 0..each {
            let inst = random_inst(&options, entry, &mut random);
            let Some((inst, words)) = inst.and_then(|i| Some((i, encode(arch, &i).ok()?.to_vec()))) else {
                continue;
            };
            cases.push(Case {
                arch,
                name: inst.instruction(table).name,
                encoding: inst.encoding(table).name,
                text: print::instruction(&inst, &options),
                words,
                llvm_text: None,
                llvm_words: None,
            });
        }
    }
    let mut texts = String::new();
    for (at, case) in cases.iter().enumerate() {
        writeln!(texts, "{}\ns_nop 0x{:x}", case.text, at & 0xffff).ok()?;
    }
    let back = disassemble(arch, cases.iter().map(|case| case.words.as_slice()))?;
    let count = cases.len();
    for (case, reply) in cases.iter_mut().zip(back) {
        // A different length means that LLVM decoded the first words as another instruction.
        case.llvm_text = reply.filter(|(_, words)| words.len() == case.words.len()).map(|r| r.0);
    }
    let forth = llvm(arch, &[], texts)?;
    for (case, reply) in cases.iter_mut().zip(replies(&forth, count)) {
        case.llvm_words = reply.map(|r| r.1);
    }
    Some(cases)
}

#[test]
fn every_difference_has_a_class() {
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut unknown, mut tested_archs) = (Vec::new(), 0);
    for arch in refereed() {
        let Some(cases) = cases(arch, 3) else {
            println!("skipped: {} is not installed", tool(arch));
            continue;
        };
        tested_archs += 1;
        let mut same = [0; 2];
        for case in &cases {
            let differences = case.differences();
            let has = |kinds: [Difference; 2]| differences.iter().any(|d| kinds.contains(d));
            same[0] += usize::from(!has([Difference::NoText, Difference::Text]));
            same[1] += usize::from(!has([Difference::NoWords, Difference::Words]));
            for kind in differences {
                match case.class(kind) {
                    Some(class) => *found.entry(class.id).or_default() += 1,
                    None => unknown.push(format!(
                        "{} {kind:?} {} {}\n  ours {:08x?} {}\n  LLVM {:08x?} {:?}\n  read {:08x?}",
                        case.arch.name(),
                        case.encoding,
                        case.name,
                        case.words,
                        case.text,
                        case.llvm_words,
                        case.llvm_text,
                        words_of(&case.text, &Options::new(case.arch)),
                    )),
                }
            }
        }
        println!(
            "{}: of {} instructions {same:?} have LLVM's text, and LLVM's words",
            arch.name(),
            cases.len()
        );
    }
    println!("{found:?}");
    if let Some(path) = std::env::var_os("WAVESIM_DIFFERENCES") {
        std::fs::write(path, unknown.join("\n")).unwrap();
    }
    let shown = unknown.len().min(20);
    assert!(
        unknown.is_empty(),
        "{} differences without a class:\n{}",
        unknown.len(),
        unknown[..shown].join("\n")
    );
    if tested_archs == Arch::AMD.len() {
        // Few random instructions are in some classes, and perhaps only those of the golden files.
        let read = |arch: &Arch| std::fs::read_to_string(golden(*arch)).unwrap_or_default();
        let goldens: String = Arch::AMD.iter().map(read).collect();
        let classes: Vec<&str> = goldens.lines().filter_map(|line| Some(line.split_once(" ! ")?.1)).collect();
        let occurs = |id: &str| found.contains_key(id) || classes.iter().any(|list| list.contains(id));
        for class in CLASSES {
            assert!(occurs(class.id), "{}: no instruction is in this class any more", class.id);
        }
    }
}

fn golden(arch: Arch) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("filetests/llvm/assembly.{}.expected", arch.name()))
}

/// Returns the golden file: one instruction of every entry as `words | text`, followed by ` ! ` and the
/// classes of differences.
fn golden_text(arch: Arch) -> Option<String> {
    let mut out = format!(
        "# An instruction of every encoding of every instruction: its words, its text. LLVM ({}) has the same, or differs as\n\
         # docs/llvm-differences.md says under the names after ` ! `. Made by BLESS=1 cargo test -p wavesim-tests --test all -- llvm\n",
        processor(arch)
    );
    for case in cases(arch, 1)? {
        let words: Vec<String> = case.words.iter().map(|w| format!("{w:08x}")).collect();
        write!(out, "{} | {}", words.join(" "), case.text).ok()?;
        let mut classes: Vec<&str> = Vec::new();
        for kind in case.differences() {
            let class = case.class(kind).unwrap_or_else(|| panic!("{kind:?}: {} has no class", case.text));
            classes.push(class.id);
        }
        classes.dedup();
        if !classes.is_empty() {
            write!(out, " ! {}", classes.join(" ")).ok()?;
        }
        out.push('\n');
    }
    Some(out)
}

#[test]
fn golden_text_and_words() {
    for arch in refereed() {
        if wavesim_golden::blessing() {
            match golden_text(arch) {
                Some(text) => wavesim_golden::write(&golden(arch), &text).unwrap(),
                None => println!("{} is not installed: nothing blessed", tool(arch)),
            }
        }
        let options = Options::new(arch);
        // Generating the files for CDNA 4 and 5 requires a newer LLVM.
        if matches!(arch, Arch::Cdna4 | Arch::Cdna5) && !golden(arch).exists() {
            println!("skipped: {} is not there", golden(arch).display());
            continue;
        }
        let file = std::fs::read_to_string(golden(arch)).unwrap();
        let (mut failures, mut count) = (Vec::new(), 0);
        for line in file.lines().filter(|l| !l.starts_with('#')) {
            let (words, text) = line.split_once(" | ").unwrap_or_else(|| panic!("{line}"));
            let text = text.split(" ! ").next().unwrap_or_default();
            let words: Vec<u32> = words.split(' ').map(|w| u32::from_str_radix(w, 16).unwrap()).collect();
            let printed = text_of(&words, &options);
            if printed.as_deref() != Ok(text) {
                failures.push(format!("{text}\n  prints {printed:?}"));
            }
            // Bits that the text does not express may differ.
            let back = words_of(text, &options);
            let same =
                back.as_ref().is_ok_and(|b| *b == words || text_of(b, &options).as_deref() == Ok(text));
            if !same {
                failures.push(format!("{text}\n  assembles to {back:08x?}, not {words:08x?}"));
            }
            count += 1;
        }
        assert!(count > 2000, "{}: {count} instructions", arch.name());
        let shown = failures.len().min(20);
        assert!(
            failures.is_empty(),
            "{}: {} lines\n{}",
            arch.name(),
            failures.len(),
            failures[..shown].join("\n")
        );
    }
}

#[test]
fn every_class_is_documented() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/llvm-differences.md");
    let document = std::fs::read_to_string(document).unwrap();
    let listed: Vec<&str> =
        document.lines().filter_map(|l| l.strip_prefix("| `")?.split_once("` |").map(|l| l.0)).collect();
    let classes: Vec<&str> = CLASSES.iter().map(|c| c.id).collect();
    assert_eq!(listed, classes, "docs/llvm-differences.md lists the classes in this order");
    for (name, _) in UNKNOWN {
        assert!(document.contains(&format!("`{}`", name.to_lowercase())), "{name} is not listed");
    }
}
