//! Corrupted files of every input format must yield an error, a fault or a result, and never a panic, a hang
//! or excessive memory use. The fuzz targets are those of `fuzz/`. `WAVESIM_FUZZ_CASES` sets the number of
//! inputs per target.

use crate::counting::{LIVE_BYTES, PEAK_BYTES};
use proptest::prelude::*;
use std::path::Path;
use wavesim::arch::Arch;
use wavesim::files::Files;
use wavesim::loader::launch::{self, TargetSelection};
use wavesim::loader::request;
use wavesim::text;
use wavesim_tests::random::{self, Rng};
use wavesim_tests::whole::{self, Entries, Features};
use wavesim_tests::{fuzz, root};

const GLOBAL_BYTES: u64 = 1 << 18;

/// Limit on live memory while processing an input: a base, and an allowance per byte of input.
const MEMORY: usize = 64 << 20;
const MEMORY_PER_BYTE: usize = 1 << 10;

/// Runs a fuzz target. Panics if it exceeds the memory limit.
fn bounded(name: &str, data: &[u8]) {
    PEAK_BYTES.set(LIVE_BYTES.get());
    let before = LIVE_BYTES.get();
    fuzz::body(name)(data);
    let used = PEAK_BYTES.get().saturating_sub(before);
    let allowed = MEMORY + MEMORY_PER_BYTE * data.len();
    assert!(used <= allowed, "{name}: {used} bytes of memory for {} bytes of input", data.len());
}

#[test]
fn memory_is_counted() {
    PEAK_BYTES.set(LIVE_BYTES.get());
    let before = LIVE_BYTES.get();
    drop(std::hint::black_box(vec![0u8; 1 << 20]));
    assert!(PEAK_BYTES.get() - before >= 1 << 20 && LIVE_BYTES.get() == before);
}

fn cases() -> ProptestConfig {
    let cases = std::env::var("WAVESIM_FUZZ_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(400);
    ProptestConfig { cases, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() }
}

/// Returns the small files of the repository with these extensions, as seeds.
fn files(folders: &[&str], endings: &[&str]) -> Vec<Vec<u8>> {
    fn walk(folder: &Path, endings: &[&str], out: &mut Vec<(std::path::PathBuf, Vec<u8>)>) {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, endings, out);
            } else if endings.iter().any(|e| path.to_string_lossy().ends_with(e))
                && entry.metadata().is_ok_and(|m| m.len() < 64 << 10)
            {
                out.push((path.clone(), std::fs::read(&path).expect("readable")));
            }
        }
    }
    let mut out = Vec::new();
    folders.iter().for_each(|folder| walk(&root().join(folder), endings, &mut out));
    out.sort();
    assert!(!out.is_empty(), "{endings:?}");
    out.into_iter().map(|(_, bytes)| bytes).collect()
}

/// A mutation of a byte string.
#[derive(Debug, Clone)]
enum Edit {
    Set(u8),
    Flip(u8),
    Word(u32),
    Long(u64),
    Cut(usize),
    Double(usize),
    End,
    /// Replaces bytes with those of another file.
    Splice {
        from: usize,
        at: prop::sample::Index,
        len: usize,
    },
}

fn edit() -> impl Strategy<Value = (prop::sample::Index, Edit)> {
    let edge = prop::sample::select(vec![
        0u64,
        1,
        2,
        7,
        64,
        127,
        128,
        255,
        256,
        0x7fff,
        0xffff,
        1 << 20,
        1 << 31,
        u32::MAX as u64,
        1 << 32,
        1 << 40,
        i64::MAX as u64,
        u64::MAX - 7,
        u64::MAX,
    ]);
    let kind = prop_oneof![
        4 => any::<u8>().prop_map(Edit::Set),
        4 => (0u8..8).prop_map(Edit::Flip),
        2 => prop_oneof![edge.clone().prop_map(|v| v as u32), any::<u32>()].prop_map(Edit::Word),
        2 => edge.prop_map(Edit::Long),
        2 => (0usize..200).prop_map(Edit::Cut),
        2 => (0usize..200).prop_map(Edit::Double),
        1 => Just(Edit::End),
        3 => (any::<usize>(), any::<prop::sample::Index>(), 0usize..200)
            .prop_map(|(from, at, len)| Edit::Splice { from, at, len }),
    ];
    (any::<prop::sample::Index>(), kind)
}

/// Generates mutations of the files in `seeds`.
fn damaged_bytes(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let all = seeds.clone();
    (prop::sample::select(seeds), prop::collection::vec(edit(), 1..8)).prop_map(move |(mut data, edits)| {
        for (at, edit) in edits {
            let at = at.index(data.len() + 1);
            let put = |data: &mut Vec<u8>, bytes: &[u8]| {
                let end = (at + bytes.len()).min(data.len());
                data.splice(at..end, bytes.iter().copied());
            };
            match edit {
                Edit::Set(value) => put(&mut data, &[value]),
                Edit::Flip(bit) => data.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << bit),
                Edit::Word(value) => put(&mut data, &value.to_le_bytes()),
                Edit::Long(value) => put(&mut data, &value.to_le_bytes()),
                Edit::Cut(len) => drop(data.drain(at..(at + len).min(data.len()))),
                Edit::Double(len) => {
                    let part = data[at..(at + len).min(data.len())].to_vec();
                    data.splice(at..at, part);
                }
                Edit::End => data.truncate(at),
                Edit::Splice { from, at: start, len } => {
                    let from = &all[from % all.len()];
                    let start = start.index(from.len() + 1);
                    put(&mut data, &from[start..(start + len).min(from.len())]);
                }
            }
        }
        data
    })
}

/// Prepends the byte that selects the machine.
fn on_any_machine(texts: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    (any::<u8>(), texts).prop_map(|(machine, mut data)| {
        data.insert(0, machine);
        data
    })
}

/// Generates mutated files, with random bytes or with tokens of the language.
fn damaged_text(folders: &[&str], endings: &[&str]) -> impl Strategy<Value = Vec<u8>> + use<> {
    let seeds = files(folders, endings);
    let texts = seeds.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect();
    prop_oneof![damaged_bytes(seeds), damaged(texts).prop_map(String::into_bytes)]
}

/// Generates mutated lines of kernels, and random lines.
fn damaged_lines() -> impl Strategy<Value = Vec<u8>> {
    let kernels = files(&["examples", "tests"], &[".rdna", ".s"]);
    let mut lines: Vec<String> = kernels
        .iter()
        .flat_map(|bytes| String::from_utf8_lossy(bytes).lines().map(str::to_string).collect::<Vec<_>>())
        .filter(|line| !line.trim().is_empty() && !line.contains(".rept"))
        .collect();
    lines.sort();
    lines.dedup();
    let bytes = lines.iter().map(|line| line.clone().into_bytes()).collect();
    let noise = "\\PC{0,60}".prop_map(String::into_bytes);
    prop_oneof![damaged_bytes(bytes), damaged(lines).prop_map(String::into_bytes), noise]
}

fn code_objects() -> Vec<Vec<u8>> {
    files(&["tests/filetests/code_objects", "simulator/bench"], &[".co", ".bundle"])
}

/// Generates mutated code objects, and random words.
fn code() -> impl Strategy<Value = Vec<u8>> {
    let noise = prop::collection::vec(any::<u32>(), 1..16)
        .prop_map(|words| words.iter().flat_map(|w| w.to_le_bytes()).collect());
    prop_oneof![damaged_bytes(code_objects()), noise]
}

/// Generates machine code that consists mostly of valid instructions of all table entries with random fields,
/// and some random words. Prepends the byte that selects the machine.
fn instructions() -> impl Strategy<Value = Vec<u8>> {
    (any::<u8>(), any::<u64>(), 1usize..48).prop_map(|(machine, seed, len)| program(machine, seed, len))
}

fn program(machine: u8, seed: u64, len: usize) -> Vec<u8> {
    let arch = fuzz::machine(&[machine]).0;
    let table = arch.table();
    let mut rng = Rng(seed);
    let mut data = vec![machine];
    for _ in 0..len {
        let any = |rng: &mut Rng| rng.below(table.entries.len() as u64) as usize;
        // Prefers computation, because most random addresses and branch targets end the run.
        let computes = |entry: &usize| {
            matches!(table.instructions[table.entries[*entry].inst as usize].group(), "VALU" | "SALU")
        };
        let entry = match rng.chance(16) {
            true => any(&mut rng),
            false => (0..8).map(|_| any(&mut rng)).find(computes).unwrap_or(0),
        };
        let words = random::instruction(&mut rng, arch, entry as _)
            .and_then(|inst| wavesim::codec::encode(arch, &inst).ok())
            .filter(|_| !rng.chance(40))
            .map_or_else(|| vec![rng.bits() as u32], |words| words.to_vec());
        data.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
    data
}

/// Guards the generator of [`whole_run`]: not all of its programs end at the first instruction.
#[test]
fn random_programs_run() {
    let counts = (0..60u64).map(|seed| fuzz::count_whole_run(&program(seed as u8, seed, 40)));
    let all: u64 = counts.sum();
    assert!(all > 100, "{all} instructions of 60 programs");
}

/// Programs of 10,000 instructions, many with literals, run to completion in the interpreter, on two threads
/// and with all checks. `WAVESIM_PROGRAMS` sets the number of programs per machine.
#[test]
fn long_random_programs_run() {
    let programs: u64 = std::env::var("WAVESIM_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    for machine in 0..9u8 {
        let (arch, wave, _) = fuzz::machine(&[machine]);
        let kind = Features { arch, size: wave.unwrap_or(32), floats: true, mode: true, memory: false };
        let entries = Entries::new(kind);
        for seed in 0..programs {
            let program = whole::program(&mut Rng(seed << 8 | machine as u64), kind, &entries, 10_000);
            let mut data = vec![machine];
            for inst in &program.insts {
                // Instructions without an encoding are replaced by nops of the same size, so that jumps stay
                // valid.
                let nops = || vec![0xbf80_0000; inst.size as usize / 4];
                let words = wavesim::codec::encode(arch, inst).map_or_else(|_| nops(), |w| w.to_vec());
                data.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            }
            let executed = fuzz::count_whole_run(&data);
            assert!(executed > 8_000, "{} seed {seed}: {executed} instructions", arch.name());
        }
    }
}

/// Image instructions whose descriptors are anywhere, also beyond the last scalar register.
#[test]
fn descriptors_anywhere() {
    let mut found = 0;
    for machine in 0..9u8 {
        let (arch, _, _) = fuzz::machine(&[machine]);
        let table = arch.table();
        let name = |entry: usize| table.instructions[table.entries[entry].inst as usize].name;
        for entry in (0..table.entries.len()).filter(|entry| name(*entry).starts_with("IMAGE_")) {
            let mut rng = Rng(entry as u64);
            let insts = (0..8).filter_map(|_| random::instruction(&mut rng, arch, entry as _));
            for words in insts.filter_map(|inst| wavesim::codec::encode(arch, &inst).ok()) {
                let bytes = words.iter().flat_map(|word| word.to_le_bytes());
                bounded("whole_run", &[machine].into_iter().chain(bytes).collect::<Vec<u8>>());
                found += 1;
            }
        }
    }
    assert!(found > 4_000, "{found} instructions");
}

/// Generates input for `whole_run`. Mostly generated instructions, because corrupted programs rarely run far.
fn runs() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![3 => instructions(), 1 => on_any_machine(code())]
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn whole_run(data in runs()) {
        bounded("whole_run", &data);
    }

    #[test]
    fn decoder(data in on_any_machine(code())) {
        bounded("decoder", &data);
    }

    #[test]
    fn assembler(data in on_any_machine(damaged_text(&["tests", "simulator/bench"], &[".s", ".inc"]))) {
        bounded("assembler", &data);
    }

    #[test]
    fn text_kernel(data in on_any_machine(damaged_text(&["examples", "tests"], &[".rdna"]))) {
        bounded("text_kernel", &data);
    }

    /// Single lines, because a corrupted file is rarely parsed to its end.
    #[test]
    fn line(data in on_any_machine(damaged_lines())) {
        fuzz::line(&data);
    }

    #[test]
    fn code_object(data in damaged_bytes(code_objects())) {
        bounded("code_object", &data);
    }

    #[test]
    fn launch_description(data in damaged_text(&["tests/filetests/code_objects"], &["launch.json"])) {
        bounded("launch", &data);
    }

    #[test]
    fn pcode(data in damaged_text(&["pseudocode", "tests/filetests"], &[".pcode"])) {
        bounded("pcode", &data);
    }

    #[test]
    fn isa_xml(data in damaged_bytes(files(&["isa-spec/tests/fixtures"], &[".xml"]))) {
        bounded("isa_xml", &data);
    }
}

/// `fuzz/` has exactly the targets in `fuzz::BODIES`.
#[test]
fn fuzz_targets_are_complete() {
    let manifest = std::fs::read_to_string(root().join("fuzz/Cargo.toml")).expect("readable");
    for (name, _) in fuzz::BODIES {
        let target = root().join("fuzz/fuzz_targets").join(name).with_extension("rs");
        let text = std::fs::read_to_string(&target).unwrap_or_else(|e| panic!("{}: {e}", target.display()));
        assert!(text.contains(&format!("wavesim_tests::fuzz::{name}(data)")), "{name}");
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
    }
    let targets = std::fs::read_dir(root().join("fuzz/fuzz_targets")).expect("a folder").count();
    assert_eq!(targets, fuzz::BODIES.len());
}

/// Returns all text kernels of the project.
fn kernels() -> Vec<String> {
    let mut out = Vec::new();
    for folder in ["examples", "tests/filetests/kernels"] {
        for entry in std::fs::read_dir(root().join(folder)).expect(folder).flatten() {
            if entry.path().extension().is_some_and(|e| e == "rdna") {
                out.push(std::fs::read_to_string(entry.path()).expect("readable"));
            }
        }
    }
    out.sort();
    out
}

/// Generates tokens of the language, and near misses.
fn token() -> impl Strategy<Value = String> {
    let words = [
        "---",
        "\n",
        " ",
        ",",
        ":",
        "=",
        "[",
        "]",
        "(",
        ")",
        "-",
        "|",
        "+",
        "*",
        "/",
        "%",
        "\"",
        ";",
        "#",
        "0",
        "1",
        "-1",
        "0x",
        "0b2",
        "1e999",
        "4294967296",
        "18446744073709551615",
        "99999999999999999999",
        "3.5",
        "nan",
        "inf",
        "f32",
        "bf16",
        "u64",
        "local",
        "global",
        "wave",
        "lds",
        "scratch",
        "abi = hsa",
        "const N = 3",
        "N",
        "arange(3)",
        "rand()",
        "repeat(",
        "file(\"x\", u8)",
        "out_y: f32[2]",
        "v0",
        "s0",
        "v[0:3]",
        "s[3:4]",
        "s[105:106]",
        "v255",
        "v[255:256]",
        "vcc",
        "exec",
        "m0",
        "null",
        "scc",
        "off",
        "offset:16",
        "offset:-1",
        "glc",
        "clamp",
        "omod",
        "lgkmcnt(0)",
        "sendmsg(MSG_GS_DONE, GS_OP_NOP)",
        "s_waitcnt",
        "s_branch loop",
        "loop:",
        "print v0:f32",
        "print s[2:3]",
        "v_add_f32",
        "v_mov_b32",
        "global_load_b32",
        "ds_load_b32",
        "scratch_store_b32",
        "s_load_b64",
        "v_dual_add_f32",
        "::",
        "row_ror:1",
        "s_endpgm",
        "s_setpc_b64 s[0:1]",
        ".section ",
        ".section \"a\\0\", \"aw\"\n",
        ".set ",
        ".type ",
        ".size ",
        ".comm ",
        ".byte ",
        ".quad ",
        ".asciz \"\\377\\0\"",
        ".p2align 3, , 5\n",
        ".fill 3, 2, 1\n",
        ".org .+",
        ".if ",
        ".else\n",
        ".endif\n",
        ".rept 3\n",
        ".irp x, 1, 2\n",
        ".endr\n",
        ".macro m a:req, b=1, c:vararg\n",
        "\\a",
        ".endm\n",
        "1f-1b",
        ".amdhsa_kernel ",
        ".end_amdhsa_kernel\n",
        "é",
        "\u{0}",
        "\r\n",
    ];
    prop_oneof![9 => prop::sample::select(words.to_vec()).prop_map(str::to_string), 1 => any::<String>()]
}

/// Generates texts with parts replaced by tokens, or tokens inserted.
fn damaged(texts: Vec<String>) -> impl Strategy<Value = String> {
    let edit = (any::<prop::sample::Index>(), 0usize..12, token(), any::<bool>());
    (prop::sample::select(texts), prop::collection::vec(edit, 1..6)).prop_map(|(mut text, edits)| {
        for (at, len, token, keep) in edits {
            let boundary =
                |at: usize| (0..=at.min(text.len())).rev().find(|&k| text.is_char_boundary(k)).unwrap_or(0);
            let start = boundary(at.index(text.len() + 1));
            let end = if keep { start } else { boundary(start + len).max(start) };
            text.replace_range(start..end, &token);
        }
        text
    })
}

fn arch() -> impl Strategy<Value = Arch> {
    prop::sample::select(Arch::RDNA.to_vec())
}

fn wave() -> impl Strategy<Value = Option<u32>> {
    prop::sample::select(vec![None, Some(32), Some(64)])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn damaged_kernels(text in damaged(kernels()), arch in arch(), wave in wave()) {
        fuzz::text_kernel_for(&text, arch, wave);
    }

    #[test]
    fn token_soup(tokens in prop::collection::vec(token(), 0..40), arch in arch()) {
        fuzz::text_kernel_for(&tokens.join(" "), arch, None);
        fuzz::text_kernel_for(&format!("---\nout_x: u32[4]\n---\n{}\n", tokens.join(" ")), arch, None);
    }

    #[test]
    fn arguments_of_the_command_line(text in prop::collection::vec(token(), 0..8)) {
        let _ = request::argument(&text.concat(), 0, &text::Options { global_bytes: GLOBAL_BYTES, ..text::Options::default() });
    }

    #[test]
    fn damaged_launches(text in damaged(vec![LAUNCH.to_string()])) {
        for target in [TargetSelection::default(), TargetSelection::target("gfx1201")] {
            if let Ok((launch, _)) = launch::parse(&text, &target) {
                let _ = launch::request(&launch, &root(), &Files::any(), GLOBAL_BYTES);
            }
        }
    }
}

const LAUNCH: &str = r#"{
  "schema": "wavesim-launch-1", "kernel": "k", "grid": [4, 1, 1], "block": [64, 1, 1], "dynamic_lds": 16,
  "args": [
    {"name": "a", "kind": "buffer", "dtype": "f32", "shape": [4, 2], "init": {"fill": -7}},
    {"name": "b", "kind": "buffer", "dtype": "u32", "shape": [16], "init": {"arange": {"start": 1, "step": 2}}},
    {"name": "c", "kind": "buffer", "dtype": "i8", "shape": [16], "init": {"zeros": true}},
    {"name": "d", "kind": "buffer", "dtype": "f16", "shape": [16], "init": {"file": "none.npy"}},
    {"name": "n", "kind": "scalar", "dtype": "u64", "value": 18446744073709551615},
    {"name": "s", "kind": "struct", "bytes": "00ff12", "size": 3},
    {"name": "l", "kind": "local", "size": 64}
  ],
  "expected": [{"arg": "c", "file": "c.npy", "rtol": 0.0, "atol": 1e-6}],
  "per_target": {"gfx1201": {"block": [32, 1, 1], "dynamic_lds": 4096}},
  "code": {"gfx1100": "k.gfx1100.co", "gfx1201": "k.gfx1201.co"}
}"#;

#[test]
fn the_unmodified_launch_is_valid() {
    let (launch, target) = launch::parse(LAUNCH, &TargetSelection::default()).expect("valid");
    assert_eq!((target.as_str(), launch.block), ("gfx1100", [64, 1, 1]));
    let (launch, target) = launch::parse(LAUNCH, &TargetSelection::target("gfx1201")).expect("valid");
    assert_eq!((target.as_str(), launch.block, launch.dynamic_lds), ("gfx1201", [32, 1, 1], 4096));
}
