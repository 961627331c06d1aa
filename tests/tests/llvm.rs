//! LLVM's assembler and disassembler as referees of ours, instruction by instruction.
//!
//! Random legal instructions of every entry of the tables go both ways where `llvm-mc-19` is installed: our words to LLVM's text, our text
//! to LLVM's words. Every difference must belong to a class of [`CLASSES`], which says why it is there; `docs/llvm-differences.md` lists the
//! same classes. `golden/assembly.*.txt` keeps one instruction of each entry for where LLVM is not installed (`BLESS=1` writes it).

use isa_spec::tables::EntryId;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wavesim::arch::Arch;
use wavesim::asm::{self, NoSymbols, Options, print};
use wavesim::codec::{decode, encode};
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
        let words: Vec<u32> =
            bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
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
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/assembly.{}.txt", arch.name()))
}

/// One instruction of every entry: `words | text`, and behind ` ! ` the classes by which LLVM differs.
fn golden_text(arch: Arch) -> Option<String> {
    let mut out = format!(
        "# An instruction of every encoding of every instruction: its words, its text. LLVM 19 ({}) has the same, or differs as\n\
         # docs/llvm-differences.md says under the names behind ` ! `. Made by BLESS=1 cargo test -p wavesim-tests --test llvm\n",
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
    use wavesim::asm::absent::ABSENT;
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
                // LLVM's name for words that are zero, which are no instruction.
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
