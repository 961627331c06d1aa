//! The text of each stage of compilation.

#![cfg(target_arch = "x86_64")]

mod common;

use common::graph::graph;
use common::host;
use std::path::Path;
use wavesim_x64::inst::Inst;
use wavesim_x64::{Function, compile, list};

/// Values in registers, in the flags, folded and rematerialised; calls of both kinds.
const TEXT: &str = "\
function(i0, i1) {
    c0 = 0x1, 0x2, 0x3, 0x4, 0x5, 0x6, 0x7, 0x8
    i2 = const 0x7f0012345678
    v3 = vconst c0
    i4 = const 0x3
    i9 = load.8 [i0 + 8]
L0:
    v5 = vload.foldable [i0 + 32]
    v6 = vpaddd v3, v5
    vstore [i1 - 32], v6
    i4 = sub.64 i4, 1
    i7 = compare.ne.64 i4, 0
    branch.ne.64 i7, 0, L0
    i8 = call 0x7f0000001000(i2, i4)
    cold_call 0x7f0000002000(i1)
    i8 = add.64 i8, i9
    return i8
}
";

#[test]
fn stages() {
    let Some(host) = host() else { return };
    let f = Function::parse(TEXT).expect("a function");
    let name = |address: u64| {
        let name = match address {
            0x7f00_1234_5678 => "table",
            0x7f00_0000_1000 => "look_up",
            0x7f00_0000_2000 => "report",
            _ => return None,
        };
        Some(name.to_string())
    };
    let (code, listing) = list(&f, &host, &name).expect("compiles");
    assert_eq!(code.bytes(), compile(&f, &host).expect("compiles").bytes());
    let named = [("0x7f0012345678", "table"), ("0x7f0000001000", "look_up"), ("0x7f0000002000", "report")];
    let expected = named.iter().fold(TEXT.to_string(), |text, (address, name)| text.replace(address, name));
    assert_eq!(listing.ir, expected);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/listing.expected");
    wavesim_golden::check(&file, &format!("{}\n{}", listing.allocated, listing.host));
}

/// Host code is decoded from the bytes: every instruction of the function is in it, in order.
#[test]
fn all_instructions_are_listed() {
    let Some(host) = host() else { return };
    for seed in 0..50 {
        let f = graph(seed);
        let (_, listing) = list(&f, &host, &|_| None).expect("compiles");
        assert_eq!(listing.ir, f.to_string());
        assert!(!listing.host.contains("(bad)"), "{}", listing.host);
        let of_ir: Vec<&str> = listing.host.lines().filter(|line| line.starts_with("; ")).collect();
        let kept =
            listing.allocated.lines().filter(|line| !line.starts_with("; ") && !line.contains("function("));
        assert_eq!(of_ir.len(), kept.filter(|line| !line.trim_start().starts_with("; ")).count());
        let returns = f.insts().iter().filter(|inst| matches!(inst, Inst::Return { .. })).count();
        assert_eq!(listing.host.matches("  ret\n").count(), returns, "{}", listing.host);
    }
}
