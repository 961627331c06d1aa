//! Lines that the printer never emits: alternative spellings, and lines that must be rejected.

use super::line_classes::{WRITTEN, Written};
use super::referee::{llvm, processor, refereed, replies, text_of, words_of};
use isa_spec::tables::EntryId;
use std::fmt::Write as _;
use std::path::Path;
use wavesim::arch::Arch;
use wavesim::asm::{self, NoSymbols, Options};
use wavesim::codec::decode;

/// Assembles lines with both assemblers. Each line has the entry that it was derived from, if any. Returns
/// `None` if LLVM is not installed.
pub fn written(arch: Arch, lines: Vec<(String, Option<EntryId>)>) -> Option<Vec<Written>> {
    let (options, table) = (Options::new(arch), arch.table());
    let ask = |lines: &[String]| {
        let mut input = String::new();
        for (at, text) in lines.iter().enumerate() {
            let _ = writeln!(input, "{text}\ns_nop 0x{:x}", at & 0xffff);
        }
        Some(replies(&llvm(arch, &[], input)?, lines.len()))
    };
    let texts: Vec<String> = lines.iter().map(|l| l.0.clone()).collect();
    let theirs = ask(&texts)?;
    // Undefined symbols are rejected when the file is linked.
    let complete = |t: &str| asm::parse(t, &options, &NoSymbols).is_ok_and(|p| p.fixups.is_empty());
    let own = |t: &String| words_of(t, &options).ok().filter(|_| complete(t));
    let ours: Vec<Option<Vec<u32>>> = texts.iter().map(own).collect();
    let printed = ours.iter().map(|w| w.as_ref().and_then(|w| text_of(w, &options).ok()).unwrap_or_default());
    let canonical = ask(&printed.collect::<Vec<_>>())?;
    let answers = ours.into_iter().zip(theirs).zip(canonical);
    let list = lines.into_iter().zip(answers).map(|((text, entry), ((ours, llvm), printed))| {
        let own = ours.as_ref().and_then(|w| decode(arch, w).ok());
        let entry = own.map(|i| i.entry).or(entry);
        let (name, encoding) = entry.map_or(("", ""), |entry| {
            let e = &table.entries[entry as usize];
            (table.instructions[e.inst as usize].name, table.encodings[e.enc as usize].name)
        });
        let printed = printed.map(|r| r.1) == ours;
        Written { arch, text, name, encoding, llvm: llvm.map(|l| l.1), ours, printed }
    });
    Some(list.collect())
}

/// Every line of `filetests/llvm/lines.txt` assembles to LLVM's words, is rejected like in LLVM, or has a
/// class.
#[test]
fn written_lines_are_assembled_or_rejected_like_llvm() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests/llvm/lines.txt");
    let file = std::fs::read_to_string(path).unwrap();
    for arch in refereed() {
        let lines: Vec<_> =
            file.lines().filter(|l| !l.starts_with('#')).map(|l| (l.to_string(), None)).collect();
        assert!(lines.len() > 500);
        // The golden file has LLVM's last results, for use without LLVM.
        let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("filetests/llvm/lines.{}.expected", arch.name()));
        let show = |w: &Option<Vec<u32>>| match w {
            Some(words) => words.iter().map(|w| format!("{w:08x}")).collect::<Vec<_>>().join(" "),
            None => "refused".to_string(),
        };
        if let Some(list) = written(arch, lines.clone()) {
            let differs = |w: &&Written| w.ours != w.llvm;
            let unexplained: Vec<String> = list
                .iter()
                .filter(differs)
                .filter(|w| w.class().is_none())
                .map(|w| format!("{}: ours {}, LLVM {}", w.text, show(&w.ours), show(&w.llvm)))
                .collect();
            assert!(unexplained.is_empty(), "{}:\n{}", arch.name(), unexplained.join("\n"));
            if wavesim_golden::blessing() {
                let mut out = format!(
                    "# What lines.txt comes to for {}, and after ` ! ` how LLVM 19 differs.\n",
                    processor(arch)
                );
                for w in &list {
                    let class = w.class().filter(|_| w.ours != w.llvm);
                    let class = class.map(|id| format!(" ! {id}")).unwrap_or_default();
                    let _ = writeln!(out, "{} | {}{class}", show(&w.ours), w.text);
                }
                wavesim_golden::write(&golden, &out).unwrap();
            }
        }
        let golden = std::fs::read_to_string(&golden).unwrap();
        let expected: Vec<&str> = golden.lines().filter(|l| !l.starts_with('#')).collect();
        assert_eq!(expected.len(), lines.len(), "BLESS=1 writes filetests/llvm/lines.*.expected anew");
        for ((text, _), expected) in lines.iter().zip(expected) {
            let words = words_of(text, &Options::new(arch)).ok();
            let own = format!("{} | {text}", show(&words));
            assert_eq!(own, expected.split(" ! ").next().unwrap_or_default(), "{}", arch.name());
        }
    }
}

#[test]
fn classes_of_lines_are_documented() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/llvm-differences.md");
    let document = std::fs::read_to_string(document).unwrap();
    let lines: Vec<&str> =
        document.lines().filter_map(|l| l.strip_prefix("- `")?.split_once("`: ").map(|l| l.0)).collect();
    let classes: Vec<&str> = WRITTEN.iter().map(|c| c.id).collect();
    assert_eq!(lines, classes, "docs/llvm-differences.md lists the classes of lines in this order");
}
