//! Exactness classes of instructions: the derivation agrees with `docs/accuracy.md` and finds what its text names.

use clap::Parser as _;
use isa_exactness::{Aspect, Bound, Class, Exactness};
use std::collections::BTreeSet;
use wavesim::arch::Arch;
use wavesim::cli::{Cli, dispatch};
use wavesim::isa;
use wavesim_tests::root;

/// Returns the exactness of every instruction of AMD's architectures, by lower-case name.
fn all() -> Vec<(Arch, String, Exactness)> {
    let of = |arch: Arch| {
        arch.table().instructions.iter().enumerate().filter_map(move |(at, inst)| {
            let operation = isa::operation(isa::number(arch, at)?)?;
            Some((arch, inst.name.to_lowercase(), Exactness::of(&operation.sem)))
        })
    };
    Arch::AMD.into_iter().flat_map(of).collect()
}

/// The rows of the table of approximations: patterns of names, and the documented bound.
fn rows() -> Vec<(Vec<String>, Bound)> {
    let text = std::fs::read_to_string(root().join("docs/accuracy.md")).unwrap();
    let table = text.split("| instruction | hardware, documented |").nth(1).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let bound = match cells[2] {
            "none given" => Bound::Undocumented,
            "2^29 ULP" => Bound::Ulp(1 << 29),
            ulp => Bound::Ulp(ulp.trim_end_matches(" ULP").parse().unwrap()),
        };
        let names = cells[1].split('`').skip(1).step_by(2).map(str::to_string);
        (names.collect(), bound)
    })
    .collect()
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
        None => pattern == name,
    }
}

#[test]
fn bounds_are_those_of_the_documentation() {
    let (all, rows) = (all(), rows());
    assert!(rows.len() > 8, "{rows:?}");
    let mut used = BTreeSet::new();
    for (arch, name, exactness) in &all {
        if exactness.class() != Class::Approximate || name.starts_with("image_") {
            continue;
        }
        // The last row is the most specific one.
        let name = name.replace("_legacy", "");
        let row = rows.iter().find(|(patterns, _)| patterns.iter().any(|p| matches(p, &name)));
        let (patterns, bound) = row.unwrap_or_else(|| panic!("{} {name} is not documented", arch.name()));
        assert_eq!(exactness.bound(), Some(*bound), "{} {name}: {patterns:?}", arch.name());
        used.insert(patterns.clone());
    }
    assert_eq!(used.len(), rows.len(), "every row names an approximate instruction");
}

#[test]
fn classes_follow_from_the_bodies() {
    let all = all();
    let class = |name: &str| {
        let mut found = all.iter().filter(|(_, other, _)| other == name).map(|(.., exactness)| exactness);
        let first = found.next().unwrap_or_else(|| panic!("{name}"));
        assert!(found.all(|other| other.class() == first.class()), "{name}");
        first.clone()
    };
    for name in [
        "v_add_f32",
        "v_fma_f32",
        "v_fmac_f32",
        "v_pk_fma_f16",
        "v_pk_fma_f32",
        "v_div_fmas_f32",
        "v_div_scale_f64",
        "v_trig_preop_f64",
        "v_fract_f32",
        "v_min_f32",
        "v_mov_b32",
        "s_add_u32",
        "ds_max_f32",
        "global_atomic_add_u32",
        "global_atomic_swap_b32",
        "v_dot4_u32_u8",
        "v_wmma_i32_16x16x16_iu8",
        "v_mfma_i32_16x16x32_i8",
        "v_cvt_scale_pk8_f32_fp8",
    ] {
        assert_eq!(class(name).class(), Class::Exact, "{name}");
    }
    for name in [
        "ds_add_f32",
        "ds_add_rtn_f64",
        "global_atomic_add_f32",
        "global_atomic_pk_add_f16",
        "image_atomic_add_flt",
    ] {
        assert_eq!(class(name).class(), Class::OrderDependent, "{name}");
    }
    for name in
        ["v_dot2_f32_f16", "v_wmma_f32_16x16x16_f16", "v_mfma_f32_32x32x8_f16", "image_bvh_intersect_ray"]
    {
        let exactness = class(name);
        assert_eq!(exactness.class(), Class::ImplementationDefined, "{name}");
        assert!(exactness.has(Aspect::Sum), "{name}");
    }
    assert_eq!(class("v_cvt_i32_f32").implementation_defined, [Aspect::Conversion]);
    assert_eq!(class("v_add_f32").implementation_defined, [Aspect::Nan]);
    assert_eq!(class("v_cndmask_b32").implementation_defined, []);
    assert_eq!(class("v_min_f32").implementation_defined, []);
    // Integer sums, and dot products of integers, are exact in any order.
    assert!(all.iter().filter(|(_, name, _)| name.contains("atomic_add_u")).all(|a| !a.2.order_dependent));
}

#[test]
fn the_command_shows_classes() {
    let show = |words: &[&str]| {
        let mut out = Vec::new();
        let words = ["wavesim", "isa"].iter().chain(words);
        assert_eq!(dispatch(&Cli::parse_from(words).command, &mut out).unwrap(), 0);
        String::from_utf8(out).unwrap()
    };
    let text = show(&["show", "v_rcp_f32", "--arch", "rdna4"]);
    assert!(
        text.contains("\n  approximate (1 ULP); implementation-defined: sign and payload of a NaN\n"),
        "{text}"
    );
    let text = show(&["exactness", "--arch", "rdna4", "--class", "order-dependent"]);
    assert!(text.contains("\n  ds_add_f32 ") && !text.contains("v_rcp"), "{text}");
    let text = show(&["exactness", "--arch", "cdna3", "--json"]);
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let rcp = lines.iter().find(|line| line["name"] == "v_rcp_f64").unwrap();
    assert_eq!(rcp["approximate"][0]["ulp"], 1 << 29);
    assert!(lines.iter().all(|line| line["name"] != "v_mov_b32"));
}
