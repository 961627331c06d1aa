//! LLVM's assembler and disassembler as referees of ours, instruction by instruction.
//!
//! Random legal instructions of every entry of the tables go both ways where `llvm-mc-19` is installed: our words to LLVM's text, our text
//! to LLVM's words. Every difference must belong to a class of [`CLASSES`], which says why it is there; `docs/llvm-differences.md` lists the
//! same classes. `filetests/llvm/assembly.*.expected` keeps one instruction of each entry for where LLVM is not installed (`BLESS=1` writes it).

use isa_spec::tables::EntryId;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wavesim::arch::Arch;
use wavesim::asm::{self, NoSymbols, Options, print};
use wavesim::codec::{decode, encode, words};
use wavesim_tests::legal::{Random, random_inst};

/// What the two say differently of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// LLVM knows no instruction of these words.
    NoText,
    Text,
    /// LLVM does not read our text.
    NoWords,
    Words,
}

/// An instruction with what LLVM says of it.
struct Case {
    arch: Arch,
    name: &'static str,
    encoding: &'static str,
    words: Vec<u32>,
    text: String,
    llvm_text: Option<String>,
    llvm_words: Option<Vec<u32>>,
}

impl Case {
    fn differences(&self) -> Vec<Kind> {
        let mut out = Vec::new();
        match &self.llvm_text {
            None => out.push(Kind::NoText),
            Some(text) if *text != self.text => out.push(Kind::Text),
            Some(_) => {}
        }
        match &self.llvm_words {
            None => out.push(Kind::NoWords),
            Some(words) if words_of(&self.text, &Options::new(self.arch)).as_ref() != Ok(words) => {
                out.push(Kind::Words);
            }
            Some(_) => {}
        }
        out
    }

    fn class(&self, kind: Kind) -> Option<&'static Class> {
        CLASSES.iter().find(|c| c.kinds.contains(&kind) && (c.holds)(self))
    }
}

/// A reason for which LLVM 19 and we differ.
struct Class {
    id: &'static str,
    kinds: &'static [Kind],
    holds: fn(&Case) -> bool,
}

const ALL: &[Kind] = &[Kind::NoText, Kind::Text, Kind::NoWords, Kind::Words];

/// Instructions, or forms of them, that LLVM 19 does not have: name, and how the encoding's name begins (without `ENC_`).
const UNKNOWN: [(&str, &str); 28] = [
    ("DS_NOP", ""),
    ("DS_BPERMUTE_FI_B32", ""),
    ("DS_BVH_STACK_PUSH4_POP1_RTN_B32", ""),
    ("DS_BVH_STACK_PUSH8_POP1_RTN_B32", ""),
    ("DS_BVH_STACK_PUSH8_POP2_RTN_B64", ""),
    ("DS_ORDERED_COUNT", ""),
    ("GLOBAL_ATOMIC_CMPSWAP_F32", ""),
    ("GLOBAL_LOAD_LDS_ADDTID_B32", ""),
    ("GLOBAL_LOAD_LDS_B32", ""),
    ("GLOBAL_LOAD_LDS_I16", ""),
    ("GLOBAL_LOAD_LDS_I8", ""),
    ("GLOBAL_LOAD_LDS_U16", ""),
    ("GLOBAL_LOAD_LDS_U8", ""),
    ("IMAGE_BVH8_INTERSECT_RAY", ""),
    ("IMAGE_BVH_DUAL_INTERSECT_RAY", ""),
    ("SCRATCH_LOAD_LDS_B32", ""),
    ("SCRATCH_LOAD_LDS_I16", ""),
    ("SCRATCH_LOAD_LDS_I8", ""),
    ("SCRATCH_LOAD_LDS_U16", ""),
    ("SCRATCH_LOAD_LDS_U8", ""),
    ("S_ALLOC_VGPR", ""),
    ("S_ENDPGM_ORDERED_PS_DONE", ""),
    ("V_DOT2_F32_BF16", "VOP3P_VOP_DPP"),
    ("V_DUAL_DOT2ACC_F32_BF16", ""),
    ("V_DUAL_DOT2ACC_F32_F16", ""),
    ("V_FMA_DX9_ZERO_F32", "VOP3_VOP_DPP"),
    ("V_MOV_B16", "VOP3"),
    ("V_READFIRSTLANE_B32", "VOP3"),
];

static CLASSES: &[Class] = &[
    Class {
        id: "unknown",
        kinds: ALL,
        holds: |c| {
            let encoding = c.encoding.trim_start_matches("ENC_");
            let listed = UNKNOWN.iter().any(|(name, begin)| c.name == *name && encoding.starts_with(begin));
            listed || c.name == "V_SWAP_B16"
        },
    },
    Class {
        id: "short-halves",
        kinds: ALL,
        holds: |c| {
            let encoding = c.encoding.trim_start_matches("ENC_");
            let short = ["VOP1", "VOP2", "VOPC"].iter().any(|e| encoding.starts_with(e));
            short && c.text.contains(".h")
        },
    },
    Class {
        id: "mixed-literal",
        kinds: &[Kind::Text, Kind::NoWords, Kind::Words],
        holds: |c| c.name.starts_with("V_FMA_MIX") && c.encoding.ends_with("INST_LITERAL"),
    },
    Class {
        id: "mixed-lanes",
        kinds: &[Kind::NoText, Kind::Text, Kind::NoWords],
        holds: |c| c.name.starts_with("V_FMA_MIX") && c.encoding.contains("DPP"),
    },
    Class {
        id: "relative-move",
        kinds: &[Kind::NoText, Kind::Text, Kind::NoWords],
        holds: |c| c.name.starts_with("V_MOVRELS"),
    },
    Class {
        id: "scalar-compare",
        kinds: &[Kind::NoText, Kind::Text],
        holds: |c| c.name.starts_with("S_CMP_") && c.name.ends_with("_F16"),
    },
    Class {
        id: "wide-literal-sign",
        kinds: &[Kind::NoWords],
        holds: |c| {
            let sign = c.text.contains("neg(0x") || c.text.contains("|0x");
            c.name.contains("F64") && c.encoding.ends_with("INST_LITERAL") && sign
        },
    },
    Class { id: "null-ranges", kinds: &[Kind::NoWords], holds: |c| c.text.contains(" null") },
    Class {
        id: "one-address",
        kinds: &[Kind::Text],
        // The only one, in brackets or not.
        holds: |c| c.encoding == "ENC_MIMG_NSA" && !c.text.contains(", ["),
    },
    Class {
        id: "byte-modifiers",
        kinds: ALL,
        holds: |c| {
            let modified = [" clamp", " mul:", " div:"].iter().any(|m| c.text.contains(m));
            matches!(c.name, "V_CVT_F32_FP8" | "V_CVT_F32_BF8") && modified
        },
    },
    Class {
        id: "dot-modifiers",
        kinds: ALL,
        holds: |c| {
            let modified = [" clamp", " mul:", " div:", "op_sel"].iter().any(|m| c.text.contains(m));
            matches!(c.name, "V_DOT2_F16_F16" | "V_DOT2_BF16_BF16") && modified
        },
    },
    Class {
        id: "accumulator-half",
        kinds: &[Kind::NoText, Kind::Words],
        holds: |c| c.name == "V_FMAC_F16" && c.text.contains("op_sel:"),
    },
];

fn words_of(text: &str, options: &Options) -> Result<Vec<u32>, String> {
    let parsed = asm::parse(text, options, &NoSymbols).map_err(|e| e.to_string())?;
    encode(options.arch, &parsed.inst).map(|w| w.to_vec()).map_err(|e| e.to_string())
}

fn text_of(words: &[u32], options: &Options) -> Result<String, String> {
    decode(options.arch, words).map(|inst| print::instruction(&inst, options)).map_err(|e| e.to_string())
}

fn processor(arch: Arch) -> &'static str {
    match arch {
        Arch::Rdna35 => "gfx1150",
        Arch::Rdna4 => "gfx1201",
        _ => "gfx1100",
    }
}

fn llvm(arch: Arch, args: &[&str], input: String) -> Option<String> {
    let mut child = Command::new("llvm-mc-19")
        .args(["-triple=amdgcn", "-show-encoding", &format!("-mcpu={}", processor(arch))])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take()?;
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().ok()?;
    let _ = writer.join();
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Between inputs stand `s_nop N`, which tell answers apart.
fn mark(at: usize) -> u32 {
    0xbf80_0000 | at as u32 & 0xffff
}

/// LLVM's (text, words) of each input.
fn replies(output: &str, count: usize) -> Vec<Option<(String, Vec<u32>)>> {
    let mut out = Vec::new();
    let mut last: Option<(String, Vec<u32>)> = None;
    for line in output.lines() {
        let Some((text, bytes)) = line.split_once("; encoding: [") else { continue };
        let bytes = bytes.trim_end_matches(']').split(',');
        let bytes: Option<Vec<u8>> =
            bytes.map(|b| u8::from_str_radix(b.trim().trim_start_matches("0x"), 16).ok()).collect();
        let Some(bytes) = bytes else { continue };
        let words = words(&bytes);
        if words == [mark(out.len())] {
            out.push(last.take());
        } else {
            let text = text.split("//").next().unwrap_or("").split_whitespace().collect::<Vec<_>>().join(" ");
            last = Some((text, words));
        }
    }
    out.resize(count, None);
    out
}

/// `each` random instructions of every entry, and what LLVM says of them. `None` where it is not installed.
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
    let list = |words: &[u32]| {
        let bytes: Vec<String> =
            words.iter().flat_map(|w| w.to_le_bytes()).map(|b| format!("0x{b:02x}")).collect();
        format!("[{}]\n", bytes.join(" "))
    };
    let (mut words, mut texts) = (String::new(), String::new());
    for (at, case) in cases.iter().enumerate() {
        words += &list(&case.words);
        words += &list(&[mark(at)]);
        writeln!(texts, "{}\ns_nop 0x{:x}", case.text, at & 0xffff).ok()?;
    }
    let back = llvm(arch, &["-disassemble"], words)?;
    let count = cases.len();
    for (case, reply) in cases.iter_mut().zip(replies(&back, count)) {
        // Another length means that LLVM read the first words as something else.
        case.llvm_text = reply.filter(|(_, words)| words.len() == case.words.len()).map(|r| r.0);
    }
    let forth = llvm(arch, &[], texts)?;
    for (case, reply) in cases.iter_mut().zip(replies(&forth, count)) {
        case.llvm_words = reply.map(|r| r.1);
    }
    Some(cases)
}

#[test]
fn every_difference_has_its_reason() {
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    let mut unknown = Vec::new();
    for arch in Arch::RDNA {
        let Some(cases) = cases(arch, 3) else {
            println!("skipped: llvm-mc-19 is not installed");
            return;
        };
        let mut same = [0; 2];
        for case in &cases {
            let differences = case.differences();
            let has = |kinds: [Kind; 2]| differences.iter().any(|d| kinds.contains(d));
            same[0] += usize::from(!has([Kind::NoText, Kind::Text]));
            same[1] += usize::from(!has([Kind::NoWords, Kind::Words]));
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
        "{} differences without a reason:\n{}",
        unknown.len(),
        unknown[..shown].join("\n")
    );
    for class in CLASSES {
        assert!(found.contains_key(class.id), "{}: nothing differs so any more", class.id);
    }
}

fn golden(arch: Arch) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("filetests/llvm/assembly.{}.expected", arch.name()))
}

/// One instruction of every entry: `words | text`, and after ` ! ` the classes by which LLVM differs.
fn golden_text(arch: Arch) -> Option<String> {
    let mut out = format!(
        "# An instruction of every encoding of every instruction: its words, its text. LLVM 19 ({}) has the same, or differs as\n\
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
    for arch in Arch::RDNA {
        if std::env::var_os("BLESS").is_some() {
            match golden_text(arch) {
                Some(text) => std::fs::write(golden(arch), text).unwrap(),
                None => println!("llvm-mc-19 is not installed: nothing blessed"),
            }
        }
        let options = Options::new(arch);
        let file = std::fs::read_to_string(golden(arch)).unwrap();
        let (mut wrong, mut count) = (Vec::new(), 0);
        for line in file.lines().filter(|l| !l.starts_with('#')) {
            let (words, text) = line.split_once(" | ").unwrap_or_else(|| panic!("{line}"));
            let text = text.split(" ! ").next().unwrap_or_default();
            let words: Vec<u32> = words.split(' ').map(|w| u32::from_str_radix(w, 16).unwrap()).collect();
            let printed = text_of(&words, &options);
            if printed.as_deref() != Ok(text) {
                wrong.push(format!("{text}\n  prints {printed:?}"));
            }
            // Bits that the text does not say may be others.
            let back = words_of(text, &options);
            let same =
                back.as_ref().is_ok_and(|b| *b == words || text_of(b, &options).as_deref() == Ok(text));
            if !same {
                wrong.push(format!("{text}\n  assembles to {back:08x?}, not {words:08x?}"));
            }
            count += 1;
        }
        assert!(count > 3000, "{}: {count} instructions", arch.name());
        let shown = wrong.len().min(20);
        assert!(wrong.is_empty(), "{}: {} lines\n{}", arch.name(), wrong.len(), wrong[..shown].join("\n"));
    }
}

/// Words of every opcode that an encoding's field has room for and the architecture has no instruction for, its other fields as some
/// legal instructions have them.
fn opcodes_without_an_instruction(arch: Arch, each: usize) -> Vec<Vec<u32>> {
    let (options, table) = (Options::new(arch), arch.table());
    let mut random = Random(7);
    let mut out = Vec::new();
    for (at, encoding) in table.encodings.iter().enumerate() {
        // Literals and lane movements follow a short encoding's opcode, which is one of those below.
        let Some(op) = encoding.op_field.map(|op| &encoding.fields[op as usize]) else { continue };
        let own: Vec<EntryId> = (0..table.entries.len() as EntryId)
            .filter(|e| table.entries[*e as usize].enc as usize == at)
            .collect();
        for round in 0..=each {
            let entry = own[random.below(own.len() as u32) as usize];
            let Some(mut inst) = random_inst(&options, entry, &mut random) else { continue };
            if round == each {
                // One whose fields are zero: LLVM minds bits that its opcode has no use for.
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

/// No instruction of LLVM's is overlooked: those that the ISA descriptions lack are listed, and nothing else.
#[test]
fn instructions_that_llvm_alone_has_are_listed() {
    use wavesim::asm::dialect::absent::ABSENT;
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/llvm-differences.md");
    let document = std::fs::read_to_string(document).unwrap();
    for arch in Arch::RDNA {
        let listed: Vec<&str> = ABSENT.iter().filter(|a| a.1.contains(&arch)).map(|a| a.0).collect();
        let all = opcodes_without_an_instruction(arch, 12);
        let mut input = String::new();
        for (at, words) in all.iter().enumerate() {
            for words in [words.as_slice(), &[mark(at)]] {
                let bytes: Vec<String> =
                    words.iter().flat_map(|w| w.to_le_bytes()).map(|b| format!("0x{b:02x}")).collect();
                writeln!(input, "[{}]", bytes.join(" ")).unwrap();
            }
        }
        let Some(output) = llvm(arch, &["-disassemble"], input) else {
            println!("skipped: llvm-mc-19 is not installed");
            return;
        };
        let mut found: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for (words, reply) in all.iter().zip(replies(&output, all.len())) {
            if let Some((text, _)) = reply.filter(|(_, read)| read == words) {
                let name = text.split_whitespace().next().unwrap_or_default().to_string();
                // LLVM's name for words that are zero, which are not an instruction.
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

// Lines that an instruction cannot be printed as: other spellings, and what must be refused.

/// A line with what the two assemblers make of it; `None` is a refusal.
struct Written {
    arch: Arch,
    text: String,
    /// Of the instruction that it was made of.
    name: &'static str,
    encoding: &'static str,
    ours: Option<Vec<u32>>,
    llvm: Option<Vec<u32>>,
    /// LLVM takes the instruction as we print it.
    printed: bool,
}

struct WrittenClass {
    id: &'static str,
    holds: fn(&Written) -> bool,
}

fn has_any(text: &str, parts: &[&str]) -> bool {
    parts.iter().any(|part| text.contains(part))
}

static WRITTEN: &[WrittenClass] = &[
    WrittenClass { id: "spelling", holds: |w| w.llvm.is_none() && w.printed },
    WrittenClass { id: "halves", holds: |w| has_any(&w.text, &[".h", ".l", "op_sel:"]) },
    WrittenClass { id: "literal", holds: |w| w.text.contains("lit(") },
    WrittenClass {
        id: "meaningless",
        holds: |w| {
            w.llvm.is_none()
                && has_any(
                    &w.text,
                    &[" clamp", " mul:", " div:", " d16", " unorm", " glc", " gds", "neg_", "index_key:"],
                )
        },
    },
    WrittenClass {
        id: "truncated",
        holds: |w| {
            w.ours.is_none()
                && has_any(
                    &w.text,
                    &[
                        "fi:2",
                        "bound_ctrl:2",
                        "row_mask:0x10",
                        "offset:",
                        "0x10000",
                        "0x12345",
                        "op_sel_hi:[",
                    ],
                )
        },
    },
    WrittenClass {
        id: "registers",
        holds: |w| {
            w.ours.is_none()
                && has_any(&w.text, &["scc", "src_", "shared_", "exec", "m0", "null", "lds_direct"])
        },
    },
    WrittenClass { id: "suffixes", holds: |w| w.ours.is_none() && has_any(&w.text, &["_e32 ", "_e64 "]) },
    WrittenClass { id: "null-ranges", holds: |w| w.llvm.is_none() && w.text.contains("null") },
    WrittenClass {
        id: "wide-literal-sign",
        holds: |w| w.llvm.is_none() && w.name.contains("F64") && has_any(&w.text, &["|0x", "(0x"]),
    },
    WrittenClass { id: "mixed", holds: |w| w.name.starts_with("V_FMA_MIX") },
    WrittenClass { id: "dot-modifiers", holds: |w| matches!(w.name, "V_DOT2_F16_F16" | "V_DOT2_BF16_BF16") },
    WrittenClass {
        id: "scalar-compare",
        holds: |w| w.name.starts_with("S_CMP_") && w.name.ends_with("_F16"),
    },
    WrittenClass { id: "relative-move", holds: |w| w.name.starts_with("V_MOVRELS") },
    WrittenClass {
        id: "lane-select",
        holds: |w| w.llvm.is_none() && matches!(w.name, "V_READLANE_B32" | "V_WRITELANE_B32"),
    },
    WrittenClass { id: "moves", holds: |w| w.llvm.is_none() && w.name.starts_with("V_MOV_B") },
    WrittenClass { id: "returns", holds: |w| w.ours.is_none() && w.text.contains("TH_ATOMIC_RETURN") },
    WrittenClass { id: "delay-bars", holds: |w| w.text.starts_with("s_delay_alu") },
    WrittenClass { id: "waits", holds: |w| w.arch == Arch::Rdna4 && w.text.starts_with("s_waitcnt ") },
    WrittenClass { id: "messages", holds: |w| w.ours.is_none() && w.text.starts_with("s_sendmsg") },
    WrittenClass {
        id: "unknown",
        holds: |w| {
            let encoding = w.encoding.trim_start_matches("ENC_");
            UNKNOWN.iter().any(|(name, begin)| w.name == *name && encoding.starts_with(begin))
        },
    },
];

impl Written {
    fn class(&self) -> Option<&'static str> {
        WRITTEN.iter().find(|c| (c.holds)(self)).map(|c| c.id)
    }
}

/// What both make of lines, each with the instruction that it came from. `None` where LLVM is not installed.
fn written(arch: Arch, lines: Vec<(String, Option<EntryId>)>) -> Option<Vec<Written>> {
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
    // A symbol that nothing defines is refused when the file is linked.
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

/// Every line of `filetests/llvm/lines.txt` comes to LLVM's words or is refused as LLVM refuses it, or has a class.
#[test]
fn written_lines_come_to_llvms_words_or_are_refused() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests/llvm/lines.txt");
    let file = std::fs::read_to_string(path).unwrap();
    for arch in Arch::RDNA {
        let lines: Vec<_> =
            file.lines().filter(|l| !l.starts_with('#')).map(|l| (l.to_string(), None)).collect();
        assert!(lines.len() > 500);
        // Without LLVM, what it last said.
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
            if std::env::var_os("BLESS").is_some() {
                let mut out = format!(
                    "# What lines.txt comes to for {}, and after ` ! ` how LLVM 19 differs.\n",
                    processor(arch)
                );
                for w in &list {
                    let class = w.class().filter(|_| w.ours != w.llvm);
                    let class = class.map(|id| format!(" ! {id}")).unwrap_or_default();
                    let _ = writeln!(out, "{} | {}{class}", show(&w.ours), w.text);
                }
                std::fs::write(&golden, out).unwrap();
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

/// In the place of any operand.
const OPERANDS: [&str; 55] = [
    "v1",
    "v255",
    "v256",
    "v127",
    "v128",
    "v[1:2]",
    "v[2:3]",
    "v[4:7]",
    "v[255:256]",
    "s1",
    "s105",
    "s106",
    "s[2:3]",
    "s[3:4]",
    "s[4:7]",
    "s[5:8]",
    "s[6:9]",
    "s[104:105]",
    "vcc",
    "vcc_lo",
    "exec",
    "exec_lo",
    "m0",
    "null",
    "ttmp1",
    "ttmp[2:3]",
    "ttmp16",
    "0",
    "1",
    "-1",
    "64",
    "65",
    "-17",
    "0.5",
    "1.0",
    "-4.0",
    "3.0",
    "0x1234",
    "0xffff",
    "0x12345678",
    "0x123456789",
    "-0x80000001",
    "0x3ff0000000000000",
    "1e40",
    "|v1|",
    "-v1",
    "-|v1|",
    "neg(v1)",
    "-s1",
    "|s1|",
    "neg(1)",
    "|1.0|",
    "[v1]",
    "[s[2:3]]",
    "s1.h",
];

/// Beside any others.
const MODIFIERS: [&str; 48] = [
    "mul:2",
    "mul:3",
    "div:2",
    "op_sel_hi:[0]",
    "op_sel_hi:[0,1]",
    "neg_lo:[1]",
    "neg_lo:[1,0,2]",
    "op_sel:[]",
    "byte_sel:4",
    "offset:0",
    "offset:4095",
    "offset:-1",
    "offset:65536",
    "offset:8388608",
    "offset:-8388609",
    "offset0:255",
    "offset0:256",
    "gds",
    "slc",
    "tfe",
    "lwe",
    "a16",
    "offen",
    "idxen",
    "lds",
    "th:TH_LOAD_NT",
    "th:TH_STORE_NT",
    "th:TH_ATOMIC_NT",
    "th:TH_STORE_BYPASS",
    "scope:SCOPE_SYS",
    "scope:4",
    "quad_perm:[0,1,2,4]",
    "row_shl:1",
    "row_shl:16",
    "row_mirror",
    "row_share:16",
    "bank_mask:0x10",
    "bound_ctrl:1",
    "dpp8:[7,6,5,4,3,2,1,0]",
    "dpp8:[0,1]",
    "dim:SQ_RSRC_IMG_2D",
    "dmask:0x3",
    "dmask:0x10",
    "format:128",
    "wait_exp:8",
    "wait_vdst:16",
    "vm",
    "done",
];

/// A printed instruction's mnemonic, operands and modifiers.
fn parts(text: &str) -> (&str, Vec<&str>, Vec<&str>) {
    let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
    let split = |text: &'_ str, at: char| -> Vec<(usize, usize)> {
        let (mut depth, mut from, mut out) = (0, 0, Vec::new());
        for (place, c) in text.char_indices() {
            match c {
                '[' | '(' => depth += 1,
                ']' | ')' => depth -= 1,
                _ if c == at && depth == 0 => {
                    out.push((from, place));
                    from = place + 1;
                }
                _ => {}
            }
        }
        out.push((from, text.len()));
        out
    };
    let mut operands: Vec<&str> = split(rest, ',').into_iter().map(|(a, b)| rest[a..b].trim()).collect();
    let last = operands.pop().unwrap_or_default();
    let mut words: Vec<&str> =
        split(last, ' ').into_iter().map(|(a, b)| &last[a..b]).filter(|w| !w.is_empty()).collect();
    if !words.is_empty() && !words[0].contains(':')
        || words.first().is_some_and(|w| w.contains('[') && !w.contains(":["))
    {
        operands.push(words.remove(0));
    }
    (name, operands, words)
}

/// Lines made of a legal one by one change: an operand, a modifier more or less, an operand less, another suffix.
fn changed(text: &str, random: &mut Random) -> Vec<String> {
    let (name, operands, modifiers) = parts(text);
    let join = |name: &str, operands: &[&str], modifiers: &[&str]| {
        let space = if modifiers.is_empty() { "" } else { " " };
        format!("{name} {}{space}{}", operands.join(", "), modifiers.join(" "))
    };
    let mut out = Vec::new();
    for at in 0..operands.len() {
        let mut other = operands.clone();
        other[at] = OPERANDS[random.below(OPERANDS.len() as u32) as usize];
        out.push(join(name, &other, &modifiers));
    }
    for _ in 0..2 {
        let more = MODIFIERS[random.below(MODIFIERS.len() as u32) as usize];
        out.push(join(name, &operands, &[&modifiers[..], &[more]].concat()));
    }
    if !modifiers.is_empty() {
        let mut fewer = modifiers.clone();
        fewer.remove(random.below(modifiers.len() as u32) as usize);
        out.push(join(name, &operands, &fewer));
    }
    if !operands.is_empty() {
        out.push(join(name, &operands[1..], &modifiers));
    }
    let bare = ["_e64_dpp", "_e64", "_e32", "_dpp"].iter().find_map(|s| name.strip_suffix(s)).unwrap_or(name);
    if bare != name {
        out.push(join(bare, &operands, &modifiers));
        out.push(join(&format!("{bare}_e64"), &operands, &modifiers));
    }
    out
}

/// What LLVM refuses we refuse, and what it takes we take, but for the classes: of lines made by one change of a legal instruction, at most
/// one in 200 is judged otherwise without a class. `WAVESIM_LINES=1` makes of every instruction what is otherwise made of one in eight.
#[test]
fn changed_lines_are_judged_as_llvm_judges_them() {
    let every = if std::env::var_os("WAVESIM_LINES").is_some() { 1 } else { 8 };
    for arch in Arch::RDNA {
        let (options, mut random) = (Options::new(arch), Random(77));
        let mut lines = Vec::new();
        for entry in (0..arch.table().entries.len() as EntryId).filter(|e| e.is_multiple_of(every)) {
            let Some(inst) = random_inst(&options, entry, &mut random) else { continue };
            let text = print::instruction(&inst, &options);
            // Halves are a class; dual instructions and exports have operands of their own kinds, which `lines.txt` has.
            if has_any(&text, &["::", "exp", "<code", ".h", ".l"]) {
                continue;
            }
            lines.extend(changed(&text, &mut random).into_iter().map(|l| (l, Some(entry))));
        }
        let Some(list) = written(arch, lines) else {
            println!("skipped: llvm-mc-19 is not installed");
            return;
        };
        let different: Vec<&Written> = list.iter().filter(|w| w.ours != w.llvm).collect();
        let unexplained: Vec<&&Written> = different.iter().filter(|w| w.class().is_none()).collect();
        let mut found: BTreeMap<&str, usize> = BTreeMap::new();
        different.iter().for_each(|w| *found.entry(w.class().unwrap_or("none")).or_default() += 1);
        println!("{}: {} lines, {} judged otherwise: {found:?}", arch.name(), list.len(), different.len());
        let shown: Vec<String> = unexplained
            .iter()
            .take(60)
            .map(|w| format!("{}: ours {:08x?}, LLVM {:08x?}", w.text, w.ours, w.llvm))
            .collect();
        println!("{}", shown.join("\n"));
        assert!(list.len() > 2000, "{}", list.len());
        assert!(unexplained.len() * 200 <= list.len(), "{} of {} lines", unexplained.len(), list.len());
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
