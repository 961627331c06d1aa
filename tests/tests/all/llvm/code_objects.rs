//! Compiled code: every instruction of the available code objects prints like LLVM, and LLVM's text assembles
//! to its words.

use super::referee::{llvm, mark, processor, refereed, replies, text_of, tool, words_of};
use object::{Object, ObjectSection};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use wavesim::arch::Arch;
use wavesim::asm::Options;
use wavesim::codec::decode;
use wavesim_tests::{root, shared};

/// Returns the distinct instructions in the code objects for an architecture.
fn instructions(arch: Arch) -> BTreeSet<Vec<u32>> {
    let own = root().join("tests/filetests/code_objects");
    let folders = [Some(own), shared("kernels")];
    let mut out = BTreeSet::new();
    for path in folders.iter().flatten().flat_map(|f| isa_spec::data::files_below(f, "co")) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let target = name.trim_end_matches(".co").rsplit('.').next().and_then(Arch::from_mcpu);
        let bytes = std::fs::read(&path).unwrap();
        let Ok(file) = object::File::parse(&*bytes) else { continue };
        let Some(text) = file.section_by_name(".text").filter(|_| target == Some(arch)) else { continue };
        let data = text.data().unwrap();
        let words: Vec<u32> =
            data.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
        let mut at = 0;
        while at < words.len() {
            // Padding is not a valid instruction on every architecture.
            let size = decode(arch, &words[at..]).map_or(1, |inst| inst.size as usize / 4);
            out.insert(words[at..at + size].to_vec());
            at += size;
        }
    }
    out
}

#[test]
fn compiled_code_has_llvms_text_and_words() {
    for arch in refereed() {
        let (options, all) = (Options::new(arch), instructions(arch));
        // The RDNA kernels are compiled for wave32.
        let mut input = String::new();
        for (at, words) in all.iter().enumerate() {
            for words in [words.as_slice(), &[mark(at)]] {
                let bytes = words.iter().flat_map(|w| w.to_le_bytes()).map(|b| format!("0x{b:02x}"));
                writeln!(input, "[{}]", bytes.collect::<Vec<_>>().join(" ")).unwrap();
            }
        }
        let Some(output) = llvm(arch, &["-disassemble"], input) else {
            println!("skipped: {} is not installed", tool(arch));
            continue;
        };
        let (mut compared, mut failures) = (0, Vec::new());
        for (words, reply) in all.iter().zip(replies(&output, all.len())) {
            let Some((text, _)) = reply.filter(|r| r.1.len() == words.len()) else { continue };
            // LLVM's text for words that are no instruction, such as padding.
            if text == "v_illegal" {
                continue;
            }
            compared += 1;
            let (own, back) = (text_of(words, &options), words_of(&text, &options));
            if own.as_ref() != Ok(&text) || back.as_ref() != Ok(words) {
                failures.push(format!("{text}: prints {own:?}, assembles to {back:08x?}, is {words:08x?}"));
            }
        }
        println!("{}: {compared} instructions of compiled code, {} differ", processor(arch), failures.len());
        // The repository alone has fewer code objects, and none for CDNA 4.
        let least = if shared("kernels").is_some() { 500 } else { 200 };
        assert!(compared > least || arch == Arch::Cdna4, "{}: {compared}", processor(arch));
        let shown = failures[..failures.len().min(20)].join("\n");
        assert!(failures.is_empty(), "{}: {} of {compared}\n{shown}", processor(arch), failures.len());
    }
}
