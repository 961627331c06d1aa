//! Round trips between the assembler and the disassembler. Comparisons with LLVM are in `llvm`.
//!
//! - Random legal fields of every entry: words -> text -> words.
//! - The text and the words of the conformance vectors, if available (`WAVESIM_SHARED`, or `../shared`).
//! - No text causes a panic.

use isa_spec::tables::EntryId;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use wavesim::arch::Arch;
use wavesim::asm::{self, NoSymbols, Options, print};
use wavesim::codec::{decode, encode};
use wavesim_tests::legal::{Random, random_inst};

fn words_of(text: &str, options: &Options) -> Result<Vec<u32>, String> {
    let parsed = asm::parse(text, options, &NoSymbols).map_err(|e| e.to_string())?;
    encode(options.arch, &parsed.inst).map(|w| w.to_vec()).map_err(|e| e.to_string())
}

fn text_of(words: &[u32], options: &Options) -> Result<String, String> {
    decode(options.arch, words).map(|inst| print::instruction(&inst, options)).map_err(|e| e.to_string())
}

/// Returns true if several encodings share this text, or the text does not express all bits of the words:
/// docs/llvm-differences.md.
fn ambiguous(text: &str, name: &str) -> bool {
    // The text is the same in both encodings; NSA with a single address.
    matches!(name, "V_NOP" | "V_PIPEFLUSH")
        || text.contains("dpp_ctrl")
        || name == "DS_SWIZZLE_B32"
        || name.starts_with("IMAGE")
}

#[test]
fn every_entry_reads_back() {
    for arch in Arch::AMD {
        let table = arch.table();
        for &wave in arch.wave_sizes() {
            let options = Options::new(arch).wave(wave);
            let mut random = Random(0x5eed + wave as u64);
            let mut failures = BTreeMap::new();
            let mut tried = 0;
            for entry in 0..table.entries.len() as EntryId {
                let e = &table.entries[entry as usize];
                let (name, encoding) =
                    (table.instructions[e.inst as usize].name, table.encodings[e.enc as usize].name);
                for _ in 0..6 {
                    let Some(inst) = random_inst(&options, entry, &mut random) else { continue };
                    let Ok(words) = encode(arch, &inst) else { continue };
                    let text = print::instruction(&inst, &options);
                    if ambiguous(&text, name) {
                        continue;
                    }
                    tried += 1;
                    match words_of(&text, &options) {
                        Ok(back) if back == *words => {}
                        Ok(back) if prints_as(&back, &text, &options) => {}
                        result => {
                            failures
                                .entry(encoding)
                                .or_insert_with(Vec::new)
                                .push(format!("{text}: {words:08x?} {result:08x?}"));
                        }
                    }
                }
            }
            let count: usize = failures.values().map(Vec::len).sum();
            let shown: Vec<String> = failures
                .iter()
                .flat_map(|(e, f)| f.iter().take(3).map(move |f| format!("{e} {f}")))
                .collect();
            assert!(tried > 5000, "{} wave{wave}: only {tried} instructions", arch.name());
            println!("{} wave{wave}: {} of {tried} read back", arch.name(), tried - count);
            assert_eq!(count, 0, "{} wave{wave}, of {tried}:\n{}", arch.name(), shown.join("\n"));
        }
    }
}

/// Returns true if other words have the same text, because they differ only in bits that the operation does
/// not read.
fn prints_as(back: &[u32], text: &str, options: &Options) -> bool {
    text_of(back, options).is_ok_and(|t| t == text)
}

// Conformance vectors.

fn shared() -> Option<PathBuf> {
    let given = std::env::var_os("WAVESIM_SHARED").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    given.into_iter().chain([beside]).find(|p| p.join("vectors").is_dir())
}

/// The text of each record was produced from its words by LLVM. The version is newer than 19: it writes
/// 16-bit halves as `v1.l` in addition to `op_sel:`, and the absent offset of a scalar load as `null`
/// (docs/llvm-differences.md). Such records are counted separately.
#[test]
fn vectors_have_their_text() {
    let Some(shared) = shared() else {
        println!("skipped: no conformance vectors");
        return;
    };
    for arch in [Arch::Rdna3, Arch::Rdna4] {
        let (mut same, mut newer_syntax, mut failures) = (0, 0, Vec::new());
        for path in isa_spec::data::files_below(&shared.join("vectors").join(arch.name()), "gz") {
            let file = flate2::read::GzDecoder::new(std::fs::File::open(&path).unwrap());
            for line in std::io::BufReader::new(file).lines() {
                let record: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
                let Some(text) = record["asm"].as_str() else { continue };
                let target = record["target"].as_str().and_then(Arch::from_mcpu).unwrap_or(arch);
                // Some records read more scalar operands than the hardware permits.
                let options = Options {
                    lenient: true,
                    ..Options::new(target).wave(record["wave"].as_u64().unwrap_or(32) as u32)
                };
                let words: Vec<u32> = record["words"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|w| u32::from_str_radix(w.as_str()?, 16).ok())
                    .collect();
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let (own, back) = (text_of(&words, &options), words_of(&text, &options));
                let halves = text.contains(".l") || text.contains(".h");
                if own.as_ref() == Ok(&text) && back.as_ref() == Ok(&words) {
                    same += 1;
                } else if halves || text.starts_with("s_load") && text.ends_with(", null") {
                    newer_syntax += 1;
                } else {
                    failures
                        .push(format!("{text}: prints {own:?}, assembles to {back:08x?}, is {words:08x?}"));
                }
            }
        }
        println!("{}: {same} vectors as recorded, {newer_syntax} in newer syntax", arch.name());
        // Guards against files without comparable records.
        assert!(same > 1000, "{}: only {same} vectors compared", arch.name());
        assert!(newer_syntax * 50 < same, "{}: {newer_syntax} of {same}", arch.name());
        let shown = failures[..failures.len().min(30)].join("\n");
        assert!(
            failures.is_empty(),
            "{}: {} of {}:\n{shown}",
            arch.name(),
            failures.len(),
            same + failures.len()
        );
    }
}

// Arbitrary input.

fn token() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z_]{1,12}",
        "[vs][0-9]{1,3}",
        "[vs]\\[[0-9]{1,3}:[0-9]{1,3}\\]",
        "-?[0-9]{1,20}",
        "0x[0-9a-f]{1,18}",
        "[0-9]{1,3}\\.[0-9e+-]{0,5}",
        Just("v_add_f32".to_string()),
        Just("s_waitcnt".to_string()),
        Just("image_sample".to_string()),
        Just("v_dual_mov_b32".to_string()),
        Just("::".to_string()),
        Just("|".to_string()),
        Just("neg(".to_string()),
        Just(")".to_string()),
        Just("quad_perm:[0,1".to_string()),
        Just("offset:".to_string()),
        Just("vmcnt(".to_string()),
        Just("hwreg(".to_string()),
        Just("[v1,".to_string()),
        Just(".long".to_string()),
        Just(".fill".to_string()),
        Just(".amdhsa_kernel".to_string()),
        Just("l:".to_string()),
        Just("1:".to_string()),
        Just("1b".to_string()),
        Just("done".to_string()),
        Just(".macro".to_string()),
        Just(".endm".to_string()),
        Just("m".to_string()),
        Just("\\a".to_string()),
        Just(".rept".to_string()),
        Just(".irp".to_string()),
        Just(".endr".to_string()),
        Just(".if".to_string()),
        Just(".else".to_string()),
        Just(".endif".to_string()),
        Just(".set".to_string()),
        Just(".section".to_string()),
        Just(".p2align".to_string()),
        Just(".org".to_string()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_line_parses_or_has_a_located_error(text in "\\PC{0,60}") {
        for arch in Arch::AMD {
            if let Err(e) = asm::parse(&text, &Options::new(arch), &NoSymbols) {
                prop_assert!(e.column(&text) <= text.chars().count() + 1);
            }
        }
    }

    #[test]
    fn any_tokens_parse_or_have_a_located_error(tokens in prop::collection::vec(token(), 0..10), comma in any::<bool>()) {
        let text = tokens.join(if comma { ", " } else { " " });
        for arch in Arch::AMD {
            if let Err(e) = asm::parse(&text, &Options::new(arch), &NoSymbols) {
                prop_assert!(e.column(&text) <= text.chars().count() + 1);
            }
        }
    }

    #[test]
    fn any_file_is_read_without_panics(lines in prop::collection::vec(prop::collection::vec(token(), 0..5), 0..8)) {
        let text = lines.iter().map(|l| l.join(" ")).collect::<Vec<_>>().join("\n");
        let options = Options::new(Arch::Rdna3);
        let (mut program, errors) = wavesim::assembler::read(&text, &options);
        if errors.is_empty() {
            let _ = wavesim::assembler::object::write(&mut program, &options);
        }
    }

    #[test]
    fn any_words_print(words in prop::collection::vec(any::<u32>(), 4..5)) {
        for arch in Arch::AMD {
            for &wave in arch.wave_sizes() {
                let _ = text_of(&words, &Options::new(arch).wave(wave));
            }
        }
    }
}

/// A suggestion starts with the same prefix as the unknown name: `v_ad_u32` is never corrected to a scalar
/// instruction.
#[test]
fn suggestions_have_the_same_prefix() {
    for name in
        ["v_ad_f32", "s_ad_u32", "v_mim_u32", "buffer_lod_b32", "global_stor_b64", "ds_lode_b32", "image_lod"]
    {
        let error =
            asm::parse(&format!("{name} v0, v1, v2"), &Options::new(Arch::Rdna3), &NoSymbols).unwrap_err();
        let family = &name[..=name.find('_').unwrap()];
        let help = error.help.unwrap_or_default();
        assert!(help.contains(&format!("did you mean `{family}")), "{name}: {help}");
    }
}

/// Small inputs that request excessive work are rejected quickly.
#[test]
fn resource_bombs_are_rejected_quickly() {
    use std::time::Duration;
    use wavesim_tests::processor_time;
    let n = 20_000;
    let lines = |of: &dyn Fn(usize) -> String| (0..33_000).map(|i| of(i) + "\n").collect::<String>();
    let nested = |open: &str, middle: &str, close: &str| open.repeat(n) + middle + &close.repeat(n);
    let files = [
        ("unknown mnemonics", lines(&|i| format!("v_ad{i}_f32 v0, v1, v2"))),
        ("unknown labels", (0..5000).map(|i| format!("l{i}: s_branch x{i}\n")).collect()),
        ("parentheses", format!("s_mov_b32 s0, {}", nested("(", "1", ")"))),
        ("parentheses of an index", format!("s_mov_b32 s0, s[{}]", nested("(", "1", ")"))),
        ("parentheses of a symbol", format!(".set x, {}", nested("(", "1", ")"))),
        ("brackets", format!("s_mov_b32 s0, {}", nested("[", "s0", "]"))),
        ("signs", format!("s_mov_b32 s0, {}1", "-".repeat(n))),
        ("absolute values", format!("v_add_f32 v0, {}, v1", nested("abs(", "v0", ")"))),
        ("halves", format!("v_dual_mov_b32 v0, v1{}", " :: v_dual_mov_b32 v1, v2".repeat(n))),
        ("repetitions", ".rept 1000000000\n.rept 1000000000\ns_nop 0\n.endr\n.endr\n".to_string()),
        ("macros", ".macro m\nm\nm\n.endm\nm\n".to_string()),
        ("arguments", ".macro d a:vararg\nd \\a, \\a\n.endm\nd 1\n".to_string()),
        ("conditionals", ".if 1\n".repeat(n) + &".endif\n".repeat(n)),
        ("space", ".space 0xfffffffff\n".to_string()),
    ];
    for (what, text) in files {
        let options = Options::new(Arch::Rdna3);
        let start = processor_time();
        let (mut program, mut errors) = wavesim::assembler::read(&text, &options);
        errors.extend(program.link(&options));
        assert!(!errors.is_empty(), "{what}");
        // Regression: unknown mnemonics once took most of a minute.
        let used = processor_time() - start;
        assert!(used < Duration::from_secs(2), "{what}: {used:?}");
    }
    let header = |lines: String| format!("---\n{lines}\n---\ns_endpgm\n");
    let kernels = [
        ("mnemonics of a kernel", lines(&|i| format!("v_ad{i}_f32 v0, v1, v2"))),
        ("labels of a kernel", (0..5000).map(|i| format!("l{i}: s_branch x{i}\n")).collect()),
        ("dimensions", header(format!("out_y: i32[1{}]", ",1".repeat(n)))),
        ("parentheses of a constant", header(format!("const N = {}", nested("(", "1", ")")))),
        ("types", header(lines(&|i| format!("a{i}: i33[1]")))),
        ("keys", header(lines(&|i| format!("lokal{i} = 1")))),
    ];
    for (what, text) in kernels {
        let start = processor_time();
        assert!(wavesim_tests::parse(&text, &wavesim_tests::Setup::default()).is_err(), "{what}");
        let used = processor_time() - start;
        assert!(used < Duration::from_secs(2), "{what}: {used:?}");
    }
}
