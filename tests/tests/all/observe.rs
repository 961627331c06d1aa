//! Tests of observers: traces, timelines, statistics and listings. The kernels in `tests/filetests/observe/`
//! are small enough to count by hand; their complete output is tested with files there.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use wavesim_tests::{root, wavesim};

fn kernel(name: &str) -> String {
    root().join("tests/filetests/observe").join(name).display().to_string()
}

/// Returns the path of a temporary file.
fn temporary(name: &str) -> String {
    crate::temporary(module_path!(), name).display().to_string()
}

fn stats(args: &[&str]) -> Value {
    let (code, text) = wavesim(&[&["run"], args, &["--stats", "json"]].concat());
    assert_eq!(code, 0, "{text}");
    let line = text.lines().find(|l| l.contains("wavesim-stats-1")).unwrap_or_else(|| panic!("{text}"));
    serde_json::from_str(line).unwrap()
}

#[test]
fn stats_match_hand_counts() {
    let s = stats(&[&kernel("counts.rdna")]);
    // Two waves: 4, then 3 iterations of 3, then 3, one instruction that wave 1 jumps over, and 18 more.
    assert_eq!((&s["instructions"], &s["waves"]), (&json!(2 * (4 + 9 + 3 + 18) + 1), &json!(2)));
    let opcodes = json!({
        "s_load_b64": 4, "v_lshlrev_b32": 6, "s_mov_b32": 4, "s_sub_u32": 6, "s_cmp_lg_u32": 6, "s_cbranch_scc1": 6,
        "v_cmp_gt_u32": 2, "s_and_saveexec_b32": 2, "s_cbranch_execz": 2, "v_mov_b32": 3, "s_waitcnt": 8, "v_and_b32": 2,
        "global_load_b32": 4, "ds_store_b32": 6, "s_barrier": 2, "ds_load_b32": 2, "global_store_b32": 2, "s_endpgm": 2,
    });
    assert_eq!(s["opcodes"].as_object().unwrap(), opcodes.as_object().unwrap());
    let total: u64 = s["opcodes"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    let by_class: u64 = s["classes"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!((total, by_class), (69, 69));
    // 13 vector instructions per wave with all lanes active, and one with 8 of 32.
    assert_eq!(s["vector_instructions"], 2 * 13 + 1);
    assert_eq!(s["lane_utilisation"], json!((26.0 * 32.0 + 8.0) / (27.0 * 32.0)));
    // Per wave three executions of scc1, taken twice, and one of execz, taken only by wave 1.
    assert_eq!(s["branches"], json!({"conditional": 8, "taken": 5}));
    // The saveexec of wave 0 disables some lanes and counts as divergence. That of wave 1 disables all lanes
    // and does not count, and neither does re-enabling lanes.
    assert_eq!(s["exec"], json!({"writes": 4, "divergent": 1}));
    let lanes = 64u64;
    assert_eq!(
        s["memory"]["global"],
        json!({"loads": 2 * lanes + 4, "loaded_bytes": 8 * lanes + 4 * 8, "stores": lanes, "stored_bytes": 4 * lanes})
    );
    assert_eq!(
        s["memory"]["lds"],
        json!({"loads": lanes, "loaded_bytes": 4 * lanes, "stores": 3 * lanes, "stored_bytes": 12 * lanes})
    );
    assert_eq!(s["memory"]["scratch"]["loads"], 0);
    // A wave requests 128 bytes three times: from one cache line, from 32 lines, from one line.
    assert_eq!(s["memory"]["coalescing"], json!(3.0 / 34.0));
    // 0, 1, 31 and 0 conflict cycles; lanes that read the same dword do not conflict.
    assert_eq!(s["lds"], json!({"instructions": 8, "bank_conflict_cycles": 2 * 32}));
    assert_eq!(s["barriers"], 2);
}

/// 64 lanes need at least two cycles. The accesses have 0, 2 and 62 conflict cycles.
#[test]
fn stats_of_64_lanes() {
    let file = temporary("wave64.rdna");
    let body = "v_lshlrev_b32 v1, 2, v0\nv_lshlrev_b32 v2, 3, v0\nv_lshlrev_b32 v3, 7, v0\n\
        ds_store_b32 v1, v0\nds_store_b32 v2, v0\nds_store_b32 v3, v0\ns_endpgm\n";
    std::fs::write(&file, format!("---\nlocal = 64, 1, 1\nwave = 64\nlds = 8192\n---\n{body}")).unwrap();
    let s = stats(&[&file]);
    assert_eq!(
        (&s["waves"], &s["vector_instructions"], &s["lane_utilisation"]),
        (&json!(1), &json!(6), &json!(1.0))
    );
    assert_eq!(s["lds"], json!({"instructions": 3, "bank_conflict_cycles": 64}));
}

/// Runs with `--trace` to a file. Returns the lines of the trace.
fn trace(file: &str, name: &str, more: &[&str]) -> Vec<Value> {
    let path = temporary(name);
    let (code, text) = wavesim(&[&["run", file, "--trace", &path], more].concat());
    assert_eq!(code, 0, "{text}");
    let text = std::fs::read_to_string(&path).unwrap();
    text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
}

#[test]
fn trace_has_one_line_per_instruction() {
    let file = kernel("counts.rdna");
    let lines = trace(&file, "all.jsonl", &[]);
    assert_eq!(lines.len(), 69);
    for (at, line) in lines.iter().enumerate() {
        assert_eq!(line["step"], at + 1);
        assert_eq!(line["workgroup"], json!([0, 0, 0]));
        assert!(line["pc"].is_u64() && line["line"].is_u64() && line["exec"].is_string(), "{line}");
    }
    let source = std::fs::read_to_string(&file).unwrap();
    let of = |wave: u64, start: &str| {
        let found =
            lines.iter().find(|l| l["wave"] == wave && l["text"].as_str().unwrap().starts_with(start));
        found.unwrap_or_else(|| panic!("{start}"))
    };
    let shift = of(0, "v_lshlrev_b32");
    let line = source.lines().nth(shift["line"].as_u64().unwrap() as usize - 1).unwrap();
    assert!(line.contains("v_lshlrev_b32 v1, 2, v0"), "{line}");
    assert_eq!((&shift["exec"], &shift["pc"]), (&json!("ffffffff"), &json!(16)));
    let offsets: Vec<String> = (0..32).map(|l| format!("{:x}", 4 * l)).collect();
    assert_eq!(shift["writes"], json!({"v1": offsets}));
    // Scalar results, including both registers of a pair.
    assert_eq!(of(0, "v_cmp_gt_u32")["writes"], json!({"vcc_lo": "ff"}));
    let save = of(0, "s_and_saveexec_b32");
    assert_eq!(
        (&save["exec"], &save["writes"]),
        (&json!("ffffffff"), &json!({"s11": "ffffffff", "exec_lo": "ff", "scc": 1}))
    );
    assert_eq!(of(0, "s_load_b64")["writes"]["s[6:7]"].as_array().unwrap().len(), 2);
    // Inactive lanes keep their values.
    let off = of(0, "v_mov_b32");
    assert_eq!(off["exec"], "ff");
    let values = off["writes"]["v2"].as_array().unwrap();
    assert!(values[..8].iter().all(|v| *v == "1") && values[8..].iter().all(Value::is_null), "{off}");
    let store = of(1, "ds_store_b32 v1");
    assert_eq!(store["writes"], json!({}));
    let memory = store["memory"].as_array().unwrap();
    assert_eq!(memory.len(), 32);
    assert_eq!(
        memory[5],
        json!({"space": "LDS", "address": format!("{:x}", 4 * 37), "bytes": 4, "write": true, "lane": 5})
    );
}

#[test]
fn trace_filters_by_wave_workgroup_and_pc() {
    let file = kernel("counts.rdna");
    let of_wave = trace(&file, "wave.jsonl", &["--trace-wave", "1"]);
    assert_eq!(of_wave.len(), 34);
    assert!(of_wave.iter().all(|l| l["wave"] == 1));
    // The loop starts at 0x18 and has three instructions of four bytes.
    let of_loop = trace(&file, "loop.jsonl", &["--trace-pc", "0x18..0x20"]);
    assert_eq!(of_loop.len(), 2 * 9);
    let both =
        trace(&file, "both.jsonl", &["--trace-pc", "18..20", "--trace-wave", "0", "--trace-wave", "1"]);
    assert_eq!(both, of_loop);
    let one = trace(&file, "one.jsonl", &["--trace-pc", "0x10", "--trace-wave", "0"]);
    assert_eq!(one.iter().map(|l| l["text"].clone()).collect::<Vec<_>>(), ["v_lshlrev_b32_e32 v1, 2, v0"]);
    let groups = trace(&kernel("prints.rdna"), "group.jsonl", &["--trace-group", "1,0,0"]);
    assert!(!groups.is_empty() && groups.iter().all(|l| l["workgroup"] == json!([1, 0, 0])));
}

/// The Trace Event format as read by Perfetto: complete events that do not overlap within a track, and names
/// for the tracks.
#[test]
fn chrome_timeline() {
    let path = temporary("timeline.json");
    let (code, _) = wavesim(&["run", &kernel("counts.rdna"), "--trace", &path, "--trace-format", "chrome"]);
    assert_eq!(code, 0);
    let all: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let events = all.as_array().unwrap();
    let named = |name: &str| -> BTreeSet<String> {
        let of = events.iter().filter(|e| e["ph"] == "M" && e["name"] == name);
        of.map(|e| e["args"]["name"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(named("process_name"), BTreeSet::from(["workgroup 0,0,0".to_string()]));
    assert_eq!(named("thread_name"), BTreeSet::from(["wave 0".to_string(), "wave 1".to_string()]));
    let slices: Vec<&Value> = events.iter().filter(|e| e["ph"] == "X").collect();
    assert_eq!(slices.len() + 3, events.len());
    let category = |name: &str| slices.iter().filter(|e| e["cat"] == name).count();
    assert_eq!((category("wait"), category("barrier")), (8, 2));
    assert_eq!(slices.len(), 69 + 2);
    let mut tracks: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for slice in &slices {
        assert!(slice["pid"].is_u64() && !slice["name"].as_str().unwrap().is_empty(), "{slice}");
        let (start, length) = (slice["ts"].as_u64().unwrap(), slice["dur"].as_u64().unwrap());
        tracks.entry(slice["tid"].as_u64().unwrap()).or_default().push((start, start + length));
    }
    for spans in tracks.values_mut() {
        spans.sort();
        assert!(spans.windows(2).all(|w| w[0].1 <= w[1].0), "slices overlap: {spans:?}");
    }
    // Wave 0 arrives at the barrier first and waits for wave 1.
    let first = slices.iter().find(|e| e["cat"] == "barrier" && e["tid"] == 0).unwrap();
    assert!(first["dur"].as_u64().unwrap() > 20 && first["name"] == "waits at line 36", "{first}");
}

/// A trace that ends in a fault is valid JSON and complete up to the fault.
#[test]
fn chrome_timeline_of_a_fault_is_json() {
    let path = temporary("fault.json");
    let file = temporary("fault.rdna");
    std::fs::write(&file, "---\nlocal = 32, 1, 1\n---\n  v_mov_b32 v1, 0\n  v_mov_b32 v2, 0\n  global_load_b32 v3, v[1:2], off\n  s_endpgm\n").unwrap();
    let (code, _) = wavesim(&["run", &file, "--trace", &path, "--trace-format", "chrome"]);
    assert_eq!(code, 1);
    let all: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(all.as_array().unwrap().len(), 2 + 3);
}

/// The kernel's prints and outputs go to standard error.
#[test]
fn trace_to_standard_output_is_alone() {
    let (code, text) =
        wavesim(&["run", &kernel("prints.rdna"), "--trace", "-", "--trace-pc", "0..4", "--trace-group", "0"]);
    assert_eq!(code, 0);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines.iter().all(|line| line.starts_with("{\"step\":")), "{text}");
}
