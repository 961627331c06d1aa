//! Damaged text kernels and launch descriptions: an error, a fault or a result, never a panic, a hang or all of the memory.

use isa_spec::source::SourceMap;
use proptest::prelude::*;
use wavesim::arch::Arch;
use wavesim::loader::launch::{self, Wanted};
use wavesim::loader::prepared::Source;
use wavesim::loader::request;
use wavesim::memory::Memory;
use wavesim::sched::dispatch;
use wavesim::text::{self, Options};
use wavesim_tests::root;

const GLOBAL_BYTES: u64 = 1 << 18;

/// Reads, and if that succeeds runs for a moment.
fn survive(source: &str, arch: Arch, wave: Option<u32>) {
    let options = Options { arch: Some(arch), wave, global_bytes: GLOBAL_BYTES, ..Options::default() };
    let mut sources = SourceMap::default();
    let file = sources.add("fuzz.rdna", source);
    let kernel = match text::parse(&sources, file, &options) {
        Ok(kernel) => kernel,
        Err(diagnostics) => {
            assert!(!text::render(&sources, &diagnostics).is_empty());
            return;
        }
    };
    let Ok(memory) = Memory::new(GLOBAL_BYTES) else { return };
    let source = Source { name: "fuzz.rdna".to_string(), text: source.to_string() };
    let Ok(prepared) = text::layout::load(kernel, source, memory) else { return };
    let dispatch = prepared.dispatch(500);
    if dispatch.check().is_ok() && dispatch.scratch_bytes <= 4096 {
        // A fault is as good as a result.
        let _ = dispatch::run(&dispatch, &prepared.memory);
    }
}

/// All kernels of the project.
fn kernels() -> Vec<String> {
    let mut out = Vec::new();
    for folder in ["examples", "tests/kernels"] {
        for entry in std::fs::read_dir(root().join(folder)).expect(folder).flatten() {
            if entry.path().extension().is_some_and(|e| e == "rdna") {
                out.push(std::fs::read_to_string(entry.path()).expect("readable"));
            }
        }
    }
    out.sort();
    out
}

/// Pieces of the language, and what is like them.
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
        "é",
        "\u{0}",
        "\r\n",
    ];
    prop_oneof![9 => prop::sample::select(words.to_vec()).prop_map(str::to_string), 1 => any::<String>()]
}

/// A text with some places replaced, doubled or cut out.
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
        survive(&text, arch, wave);
    }

    #[test]
    fn token_soup(tokens in prop::collection::vec(token(), 0..40), arch in arch()) {
        survive(&tokens.join(" "), arch, None);
        survive(&format!("---\nout_x: u32[4]\n---\n{}\n", tokens.join(" ")), arch, None);
    }

    #[test]
    fn arguments_of_the_command_line(text in prop::collection::vec(token(), 0..8)) {
        let _ = request::argument(&text.concat(), 0, GLOBAL_BYTES);
    }

    #[test]
    fn damaged_launches(text in damaged(vec![LAUNCH.to_string()])) {
        for target in [Wanted::default(), Wanted::target("gfx1201")] {
            if let Ok((launch, _)) = launch::parse(&text, &target) {
                let _ = launch::request(&launch, &root(), GLOBAL_BYTES);
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
fn the_undamaged_launch_is_right() {
    let (launch, target) = launch::parse(LAUNCH, &Wanted::default()).expect("valid");
    assert_eq!((target.as_str(), launch.block), ("gfx1100", [64, 1, 1]));
    let (launch, target) = launch::parse(LAUNCH, &Wanted::target("gfx1201")).expect("valid");
    assert_eq!((target.as_str(), launch.block, launch.dynamic_lds), ("gfx1201", [32, 1, 1], 4096));
}
