//! The assembler and the disassembler against each other and against LLVM.
//!
//! - Random legal fields of every entry: words -> text -> words.
//! - `golden/assembly.*.txt`: text and words that LLVM 19 agrees with; kept without LLVM.
//! - Where the conformance vectors are at hand (`WAVESIM_SHARED`, or `../shared`): their text and their words.
//! - Where `llvm-mc-19` is installed: its text of our words, and its words of our text.
//! - Nothing panics on any text.

use isa_spec::tables::{EntryId, MAX_FIELDS};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wavesim::arch::Arch;
use wavesim::asm::form::{Constant, Kind};
use wavesim::asm::{self, NoSymbols, Options, print};
use wavesim::codec::{decode, encode};
use wavesim::inst::Inst;

fn words_of(text: &str, options: &Options) -> Result<Vec<u32>, String> {
    let parsed = asm::parse(text, options, &NoSymbols).map_err(|e| e.to_string())?;
    encode(options.arch, &parsed.inst).map(|w| w.to_vec()).map_err(|e| e.to_string())
}

fn text_of(words: &[u32], options: &Options) -> Result<String, String> {
    decode(options.arch, words).map(|inst| print::instruction(&inst, options)).map_err(|e| e.to_string())
}

/// A small generator, so that a failure names one seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as u32
    }

    fn below(&mut self, n: u32) -> u32 {
        self.next() % n
    }
}

/// Fields that say how operands are read: mostly 0, so that a wrong one does not hide behind another.
const RARE: [&str; 34] = [
    "CLAMP",
    "OMOD",
    "NEG",
    "ABS",
    "NEG_HI",
    "GLC",
    "SLC",
    "DLC",
    "TFE",
    "LWE",
    "UNORM",
    "R128",
    "A16",
    "D16",
    "OFFEN",
    "IDXEN",
    "DONE",
    "ROW_EN",
    "BOUND_CTRL",
    "FI",
    "GDS",
    "SVE",
    "SCOPE",
    "TH",
    "SRC0_NEG",
    "SRC0_ABS",
    "SRC1_NEG",
    "SRC1_ABS",
    "OP_SEL",
    "OP_SEL_HI",
    "OP_SEL_HI_2",
    "WAIT_EXP",
    "WAIT_VDST",
    "NSA",
];

/// Fields that are numbers in their own right.
const FREE: [&str; 24] = [
    "OFFSET",
    "IOFFSET",
    "OFFSET0",
    "OFFSET1",
    "SIMM16",
    "SIMM32",
    "LITERAL",
    "ROW_MASK",
    "BANK_MASK",
    "DMASK",
    "DIM",
    "EN",
    "LANE_SEL_0",
    "LANE_SEL_1",
    "LANE_SEL_2",
    "LANE_SEL_3",
    "LANE_SEL_4",
    "LANE_SEL_5",
    "LANE_SEL_6",
    "LANE_SEL_7",
    "ATTR",
    "ATTR_CHAN",
    "WAIT_VA_VDST",
    "WAIT_VM_VSRC",
];

/// An instruction of `entry` with random operands that its operand types allow; `None` where the fields are another instruction.
fn random_inst(arch: Arch, entry: EntryId, random: &mut Random) -> Option<Inst> {
    let table = arch.table();
    let e = &table.entries[entry as usize];
    let encoding = &table.encodings[e.enc as usize];
    let name = table.instructions[e.inst as usize].name;
    let mut fields = [0u32; MAX_FIELDS];
    let signed = matches!(encoding.name, "VOP3_SDST_ENC") || encoding.name.contains("VOP3");
    for (at, field) in encoding.fields.iter().enumerate() {
        let mask = if field.width() >= 32 { u32::MAX } else { (1 << field.width()) - 1 };
        if RARE.contains(&field.name) && random.below(4) == 0 && field.name != "NSA" {
            fields[at] = random.next() & mask;
        }
        if FREE.contains(&field.name) {
            fields[at] = random.next() & mask;
        }
    }
    let set = |fields: &mut [u32; MAX_FIELDS], name: &str, value: u32| {
        if let Some(at) = encoding.fields.iter().position(|f| f.name == name) {
            fields[at] = value;
        }
    };
    let get = |fields: &[u32; MAX_FIELDS], name: &str| {
        encoding.fields.iter().position(|f| f.name == name).map_or(0, |at| fields[at])
    };
    let form = asm::form::forms(arch).of(entry);
    for &(field, value) in &form.defaults {
        fields[field as usize] = value;
    }
    let mut literal = false;
    for (n, operand) in table.signatures[e.sig as usize].iter().enumerate() {
        let Some(field) = operand.field else { continue };
        let ty = &table.operand_types[operand.ty as usize];
        let registers = operand.size_bits.div_ceil(32).max(1) as u32;
        let names: Vec<&(&str, u32)> = ty.values.iter().filter(|v| v.0 != "src_literal").collect();
        let wants_literal =
            ty.values.iter().any(|v| v.0 == "src_literal") && form.literal.is_some() && !form.own_literal;
        fields[field as usize] = if wants_literal
            && !literal
            && (random.below(2) == 0 || n + 1 == table.signatures[e.sig as usize].len())
        {
            literal = true;
            ty.values.iter().find(|v| v.0 == "src_literal").map_or(0, |v| v.1)
        } else if names.is_empty() {
            fields[field as usize]
        } else {
            let (name, value) = *names[random.below(names.len() as u32) as usize];
            // Ranges end within the file and start where they may.
            let number = name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<u32>();
            let step = match registers {
                1 => 1,
                2 => 2,
                _ => 4,
            };
            match (name.chars().next(), number) {
                (Some('v'), Ok(n)) if registers > 1 => value - n + n.min(255 - registers),
                (Some('s'), Ok(n)) => value - n + n.min(104 - registers.min(104)) / step * step,
                (Some('t'), Ok(n)) if registers <= 8 => value - n + n.min(16 - registers) / step * step,
                (Some('v' | 'e' | 'm' | 't'), _) if registers > 1 => 0,
                _ => value,
            }
        };
        // Halves of registers in the short encodings: registers of 16-bit operands end at v127, and bit 7 is the half.
    }
    // What LLVM's syntax cannot say is not legal text.
    let packed = encoding.name.contains("VOP3P");
    let sources = form.sources as u32;
    if signed || packed {
        for name in ["NEG", "ABS", "NEG_HI"] {
            let value = get(&fields, name) & ((1 << sources) - 1);
            set(&mut fields, name, value);
        }
    }
    restrict(name, encoding.name, form, &mut fields, &set, &get, random);
    let mut bits = 0u128;
    for (at, field) in encoding.fields.iter().enumerate() {
        let mut value = fields[at];
        if let Some(fixed) = field.fixed {
            value = fixed;
        }
        if encoding.op_field == Some(at as u8) {
            value = e.opcode as u32;
        }
        bits = field.insert(bits, value);
    }
    // Second halves of dual instructions: the same operation, if it can be one.
    if encoding.name.starts_with("VOPD") {
        let at = encoding.fields.iter().position(|f| f.name == "OPY")?;
        bits = encoding.fields[at].insert(bits, e.opcode as u32);
    }
    let words: Vec<u32> = (0..encoding.bits as usize / 32).map(|at| (bits >> (32 * at)) as u32).collect();
    let inst = decode(arch, &words).ok()?;
    (inst.entry == entry && (!encoding.name.starts_with("VOPD") || inst.entry_y == entry)).then_some(inst)
}

type Set<'a> = &'a dyn Fn(&mut [u32; MAX_FIELDS], &str, u32);
type Get<'a> = &'a dyn Fn(&[u32; MAX_FIELDS], &str) -> u32;

/// Combinations that mean nothing, or the same as others.
fn restrict(
    name: &str,
    encoding: &str,
    form: &asm::form::Form,
    fields: &mut [u32; MAX_FIELDS],
    set: Set,
    get: Get,
    random: &mut Random,
) {
    let sources = form.sources;
    let listed = |what: &str| form.mods.iter().any(|m| m.name() == what);
    let clear = |fields: &mut [u32; MAX_FIELDS], names: &[&str]| {
        for n in names {
            set(fields, n, 0);
        }
    };
    // OP_SEL: a bit for each source that there is, and the destination's.
    let used = (1u32 << sources) - 1;
    let dest = if encoding.contains("VOP3P") { 0 } else { 8 };
    let op_sel = get(fields, "OP_SEL") & if listed("op_sel") { used | dest } else { 0 };
    set(fields, "OP_SEL", op_sel);
    if name.contains("PERMLANE") {
        set(fields, "OP_SEL", op_sel & 3);
    }
    if encoding.contains("VOP3P") && asm::modifier::packed_default(name) && sources < 3 {
        set(fields, "OP_SEL_HI_2", 1);
    }
    if encoding.contains("DPP16") {
        set(fields, "SRC0", 250);
        set(
            fields,
            "DPP_CTRL",
            [0xe4, 0x101, 0x112, 0x121, 0x140, 0x141, 0x155, 0x163][random.below(8) as usize],
        );
        clear(fields, &["SRC0_NEG", "SRC0_ABS", "SRC1_NEG", "SRC1_ABS"]);
    }
    if encoding.contains("DPP8") {
        set(fields, "SRC0", 233 + random.below(2));
    }
    if form.mods.is_empty() {
        clear(fields, &["GLC", "SLC", "DLC", "TH", "SCOPE", "OFFSET", "IOFFSET", "SOFFSET"]);
    }
    if !name.contains("_ATOMIC_") && get(fields, "TH") == 7 {
        set(fields, "TH", 0);
    }
    if get(fields, "TH") == 3 {
        set(fields, "SCOPE", 3);
    }
    if encoding == "ENC_FLAT" {
        let offset = get(fields, "OFFSET") & 0xfff;
        set(fields, "OFFSET", offset);
    }
    if encoding.contains("SCRATCH") && get(fields, "SVE") == 0 {
        clear(fields, &["VADDR", "ADDR"]);
    }
    if form.returns.is_some_and(|f| fields[f as usize] & 1 == 0) {
        clear(fields, &["VDST"]);
    }
    if encoding.contains("BUF") && get(fields, "IDXEN") + get(fields, "OFFEN") == 0 {
        clear(fields, &["VADDR"]);
    }
    if encoding.ends_with("EXP") || encoding.ends_with("EXPORT") {
        for n in 0..4 {
            if get(fields, "EN") >> n & 1 == 0 {
                set(fields, &format!("VSRC{n}"), 0);
            }
        }
    }
    if encoding.contains("MIMG") || encoding.contains("VIMAGE") || encoding.contains("VSAMPLE") {
        set(fields, "NSA", u32::from(encoding.ends_with("NSA")));
        if name.starts_with("IMAGE_BVH") {
            set(fields, "DIM", 0);
            clear(fields, &["D16", "TFE", "LWE", "GLC", "SLC", "DLC"]);
        }
    }
    if name == "S_ENDPGM" || !form.slots.iter().any(|s| s.field.is_some()) && encoding == "ENC_SOPP" {
        set(fields, "SIMM16", 0);
    }
    if name.starts_with("S_SENDMSG") {
        set(fields, "SIMM16", 1);
    }
    if encoding == "ENC_SMEM" && get(fields, "SOFFSET") == 124 && form.slots.is_empty() {
        clear(fields, &["SOFFSET"]);
    }
    if name.starts_with("S_PREFETCH") || name.starts_with("S_BUFFER_PREFETCH") || name.starts_with("S_ATC") {
        clear(fields, &["TH", "SCOPE"]);
        let length = get(fields, "SDATA") & 31;
        set(fields, "SDATA", length);
    }
    if name.starts_with("S_SUBVECTOR")
        || name.starts_with("S_DELAY")
        || name.contains("DEPCTR")
        || name == "S_WAIT_ALU"
    {
        let value = get(fields, "SIMM16") & if name.starts_with("S_DELAY") { 0x1b3 } else { 0xff9f };
        set(fields, "SIMM16", value);
    }
    if name == "S_WAITCNT" {
        // Bit 3 is no counter's.
        let value = get(fields, "SIMM16") & !8;
        set(fields, "SIMM16", value);
    }
    let format = get(fields, "FORMAT");
    set(fields, "FORMAT", if name.starts_with("TBUFFER") { format } else { format.min(1) });
    set(fields, "NV", 0);
    // In the microcode these count pairs and fours of registers, of which there are 106.
    set(fields, "SBASE", 2 * random.below(12));
    set(fields, "SRSRC", random.below(24));
    set(fields, "SSAMP", random.below(24));
    // A cascaded atomic's name leaves out whether it returns.
    if name.contains("_ATOMIC_") && get(fields, "TH") & 4 != 0 {
        set(fields, "TH", get(fields, "TH") & !1);
    }
    // 16-bit operands: a literal of 16 bits that is no inline constant, and no float for an integer, which is a literal in text.
    let sixteen = |c: Constant| matches!(c, Constant::Int16 | Constant::F16 | Constant::Bf16);
    if form.slots.iter().any(|s| sixteen(s.constant)) {
        for literal in ["LITERAL", "SIMM32"] {
            set(fields, literal, get(fields, literal) & 0xfff | 0x1000);
        }
    }
    for slot in form.slots.iter().filter(|s| s.constant == Constant::Int16 && s.kind == Kind::Value) {
        if let Some(field) = slot.field
            && (240..=248).contains(&fields[field as usize])
            && slot.source.is_some_and(|s| s < 3)
        {
            fields[field as usize] = 129;
        }
    }
}

/// Text that stands for several words, or words whose text says less than they hold: docs/llvm-differences.md.
fn ambiguous(text: &str, name: &str) -> bool {
    // The same text in both encodings; NSA with one address.
    matches!(name, "V_NOP" | "V_PIPEFLUSH")
        || text.contains("dpp_ctrl")
        || name == "DS_SWIZZLE_B32"
        || name.starts_with("IMAGE")
}

#[test]
fn every_entry_reads_back() {
    for arch in Arch::RDNA {
        let table = arch.table();
        for wave in [32, 64] {
            let options = Options::new(arch).wave(wave);
            let mut random = Random(0x5eed + wave as u64);
            let mut failures = BTreeMap::new();
            let mut tried = 0;
            for entry in 0..table.entries.len() as EntryId {
                let e = &table.entries[entry as usize];
                let (name, encoding) =
                    (table.instructions[e.inst as usize].name, table.encodings[e.enc as usize].name);
                for _ in 0..6 {
                    let Some(inst) = random_inst(arch, entry, &mut random) else { continue };
                    let Ok(words) = encode(arch, &inst) else { continue };
                    let text = print::instruction(&inst, &options);
                    if ambiguous(&text, name) {
                        continue;
                    }
                    tried += 1;
                    match words_of(&text, &options) {
                        Ok(back) if back == *words => {}
                        Ok(back) if print_same(&back, &text, &options) => {}
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

/// Other words with the same text: bits that an operation does not read.
fn print_same(back: &[u32], text: &str, options: &Options) -> bool {
    text_of(back, options).is_ok_and(|t| t == text)
}

// Golden.

fn golden(arch: Arch) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/assembly.{}.txt", arch.name()))
}

/// Lines `words | text`: what LLVM 19 disassembles and assembles so.
#[test]
fn golden_text_and_words() {
    for arch in Arch::RDNA {
        let options = Options::new(arch);
        let file = std::fs::read_to_string(golden(arch)).unwrap();
        let mut wrong = Vec::new();
        for line in file.lines().filter(|l| !l.starts_with('#')) {
            let Some((words, text)) = line.split_once(" | ") else { panic!("{line}") };
            let words: Vec<u32> = words.split(' ').map(|w| u32::from_str_radix(w, 16).unwrap()).collect();
            if text_of(&words, &options).as_deref() != Ok(text) {
                wrong.push(format!("{text}\n  prints {:?}", text_of(&words, &options)));
            }
            if words_of(text, &options).as_ref() != Ok(&words) {
                wrong.push(format!(
                    "{text}\n  assembles to {:08x?}, not {words:08x?}",
                    words_of(text, &options)
                ));
            }
        }
        assert!(
            wrong.is_empty(),
            "{}: {} lines\n{}",
            arch.name(),
            wrong.len(),
            wrong[..wrong.len().min(20)].join("\n")
        );
    }
}

// LLVM.

fn processor(arch: Arch) -> &'static str {
    match arch {
        Arch::Rdna35 => "gfx1150",
        Arch::Rdna4 => "gfx1201",
        _ => "gfx1100",
    }
}

fn llvm(arch: Arch, args: &[&str], input: &str) -> Option<String> {
    let mut child = Command::new("llvm-mc-19")
        .args(["-triple=amdgcn", "-show-encoding", &format!("-mcpu={}", processor(arch))])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take()?;
    let input = input.to_string();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().ok()?;
    let _ = writer.join();
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// LLVM's (text, words) of each input, told apart by `s_nop N` between them.
fn replies(output: &str, count: usize) -> Vec<Option<(String, Vec<u32>)>> {
    let mut out = Vec::new();
    let mut last = None;
    for line in output.lines() {
        let Some((text, bytes)) = line.split_once("; encoding: [") else { continue };
        let bytes: Option<Vec<u8>> = bytes
            .trim_end_matches(']')
            .split(',')
            .map(|b| u8::from_str_radix(b.trim().trim_start_matches("0x"), 16).ok())
            .collect();
        let Some(bytes) = bytes else { continue };
        let words: Vec<u32> =
            bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
        if words == [0xbf80_0000 | out.len() as u32 & 0xffff] {
            out.push(last.take());
        } else {
            let text = text.split("//").next().unwrap_or("").split_whitespace().collect::<Vec<_>>().join(" ");
            last = Some((text, words));
        }
    }
    out.resize(count, None);
    out
}

/// Our words to LLVM's text, and LLVM's words of that text to ours, for random instructions of every entry.
#[test]
fn llvm_agrees() {
    for arch in Arch::RDNA {
        let options = Options::new(arch);
        let mut random = Random(2024);
        let mut cases: Vec<(Inst, Vec<u32>)> = Vec::new();
        for entry in 0..arch.table().entries.len() as EntryId {
            for _ in 0..3 {
                let inst = random_inst(arch, entry, &mut random);
                cases.extend(inst.and_then(|i| Some((i, encode(arch, &i).ok()?.to_vec()))));
            }
        }
        let mut input = String::new();
        let list = |words: &[u32]| {
            let bytes: Vec<String> =
                words.iter().flat_map(|w| w.to_le_bytes()).map(|b| format!("0x{b:02x}")).collect();
            format!("[{}]\n", bytes.join(" "))
        };
        for (at, (_, words)) in cases.iter().enumerate() {
            input += &list(words);
            input += &list(&[0xbf80_0000 | at as u32 & 0xffff]);
        }
        let Some(output) = llvm(arch, &["-disassemble"], &input) else {
            println!("llvm-mc-19 is not installed: nothing compared");
            return;
        };
        let (mut same, mut other) = (0, BTreeMap::new());
        for ((inst, words), reply) in cases.iter().zip(replies(&output, cases.len())) {
            let Some((text, size)) = reply else { continue };
            if size.len() != words.len() || text.contains("/*") {
                continue;
            }
            let ours = print::instruction(inst, &options);
            if ours == text {
                same += 1;
            } else {
                let family = inst.encoding(arch.table()).name;
                other.entry(family).or_insert_with(Vec::new).push(format!("LLVM {text}\n    ours {ours}"));
            }
        }
        let count: usize = other.values().map(Vec::len).sum();
        println!("{}: {same} texts as LLVM has them, {count} others", arch.name());
        for (family, list) in &other {
            println!("  {family}: {}\n    {}", list.len(), list[0]);
        }
        // docs/llvm-differences.md says which: literals of mixed precision, and combinations that LLVM prints loosely.
        assert!(count * 30 < same, "{}: {count} texts differ from LLVM's", arch.name());
        let texts: Vec<String> = cases.iter().map(|c| print::instruction(&c.0, &options)).collect();
        let mut input = String::new();
        for (at, text) in texts.iter().enumerate() {
            input += &format!("{text}\ns_nop 0x{:x}\n", at & 0xffff);
        }
        let output = llvm(arch, &[], &input).unwrap_or_default();
        let (mut same, mut wrong) = (0, Vec::new());
        for (text, reply) in texts.iter().zip(replies(&output, texts.len())) {
            let Some((_, words)) = reply else { continue };
            match words_of(text, &options) {
                Ok(own) if own == words => same += 1,
                result => wrong.push(format!("{text}: LLVM {words:08x?}, ours {result:08x?}")),
            }
        }
        println!("{}: {same} lines assemble as LLVM does, {} do not", arch.name(), wrong.len());
        assert!(wrong.len() * 100 < same, "{}:\n{}", arch.name(), wrong[..wrong.len().min(20)].join("\n"));
    }
}

// Vectors.

fn shared() -> Option<PathBuf> {
    let given = std::env::var_os("WAVESIM_SHARED").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    given.into_iter().chain([beside]).find(|p| p.join("vectors").is_dir())
}

/// The records' text is LLVM's of their words.
#[test]
fn vectors_have_their_text() {
    let Some(shared) = shared() else {
        println!("there are no vectors at hand: nothing compared");
        return;
    };
    let (mut same, mut wrong) = (0, Vec::new());
    for arch in [Arch::Rdna3, Arch::Rdna4] {
        for path in isa_spec::data::files_below(&shared.join("vectors").join(arch.name()), "jsonl") {
            let file = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
            for line in file.lines() {
                let record: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
                let Some(text) = record["asm"].as_str() else { continue };
                let newer = record["target"].as_str().and_then(Arch::from_mcpu).unwrap_or(arch);
                let wave = record["wave"].as_u64().unwrap_or(32) as u32;
                let options = Options::new(newer).wave(wave);
                let words: Vec<u32> = record["words"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|w| u32::from_str_radix(w.as_str()?, 16).ok())
                    .collect();
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let (own, back) = (text_of(&words, &options), words_of(&text, &options));
                if own.as_ref() == Ok(&text) && back.as_ref() == Ok(&words) {
                    same += 1;
                } else {
                    wrong.push(format!("{text}: prints {own:?}, assembles to {back:08x?}, is {words:08x?}"));
                }
            }
        }
    }
    println!("{same} vectors read and print as recorded, {} do not", wrong.len());
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        same + wrong.len(),
        wrong[..wrong.len().min(30)].join("\n")
    );
}

// Anything.

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
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_line_reads_or_says_where(text in "\\PC{0,60}") {
        for arch in Arch::ALL {
            if let Err(e) = asm::parse(&text, &Options::new(arch), &NoSymbols) {
                prop_assert!(e.column(&text) <= text.chars().count() + 1);
            }
        }
    }

    #[test]
    fn any_tokens_read_or_say_where(tokens in prop::collection::vec(token(), 0..10), comma in any::<bool>()) {
        let text = tokens.join(if comma { ", " } else { " " });
        for arch in Arch::ALL {
            if let Err(e) = asm::parse(&text, &Options::new(arch), &NoSymbols) {
                prop_assert!(e.column(&text) <= text.chars().count() + 1);
            }
        }
    }

    #[test]
    fn any_file_reads_or_says_where(lines in prop::collection::vec(prop::collection::vec(token(), 0..5), 0..8)) {
        let text = lines.iter().map(|l| l.join(" ")).collect::<Vec<_>>().join("\n");
        let options = Options::new(Arch::Rdna3);
        let (mut program, errors) = asm::program::read(&text, &options);
        if errors.is_empty() {
            let _ = asm::object::write(&mut program, &options);
        }
    }

    #[test]
    fn any_words_print(words in prop::collection::vec(any::<u32>(), 4..5)) {
        for arch in Arch::ALL {
            for wave in [32, 64] {
                let _ = text_of(&words, &Options::new(arch).wave(wave));
            }
        }
    }
}
