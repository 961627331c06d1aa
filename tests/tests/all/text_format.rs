//! Tests of the text format against its specification: valid and invalid lines, error messages, all forms of
//! the header, and the initial state of kernels.

use wavesim::arch::Arch;
use wavesim_tests::{Setup, f32s, parse, prepare, run, words};

fn body(lines: &str) -> String {
    format!("---\nout_x: u32[64]\nlocal = 32, 1, 1\n---\n{lines}\n")
}

fn setup(arch: Arch) -> Setup {
    Setup { arch, ..Setup::default() }
}

/// Checks that a line is rejected on every architecture, with `words` in the report.
fn rejected(line: &str, words: &str) {
    for arch in Arch::RDNA {
        let report = parse(&body(line), &setup(arch)).expect_err(line);
        assert!(report.contains(words), "{line}: wanted `{words}` in\n{report}");
        assert!(report.contains("line 5: ") && report.contains("kernel.rdna:5:"), "{report}");
        assert!(report.contains('^'), "{report}");
    }
}

fn accepted(line: &str) {
    for arch in Arch::RDNA {
        if let Err(report) = parse(&body(line), &setup(arch)) {
            panic!("{} refuses {line}:\n{report}", arch.name());
        }
    }
}

#[test]
fn valid_modifiers() {
    accepted("v_add_f32 v0, -v1, |v2|");
    accepted("v_mul_f32 v0, -|v1|, v2");
    accepted("v_add_f32 v0, -1.0, v1");
    accepted("v_add_f32_e64 v0, -v1, v2");
    accepted("v_mov_b32 v0, -0xFF");
    accepted("s_mov_b32 s0, -42");
}

#[test]
fn refused_by_the_operand() {
    rejected("s_mov_b32 s0, -s1", "modifiers are not allowed on SGPRs");
    rejected("v_add_f32 v0, |s1|, v2", "modifiers are not allowed on SGPRs");
    rejected("v_add_f32 v0, -|s2|, v2", "modifiers are not allowed on SGPRs");
    rejected("v_add_f32 v0, -v[1:3], v2", "modifiers are not allowed on ranges");
    rejected("v_add_f32 v0, |s[0:1]|, v2", "modifiers are not allowed on ranges");
    for special in ["-vcc_lo", "|vcc_lo|", "|exec_hi|", "-m0", "|scc|"] {
        rejected(&format!("v_add_f32 v0, {special}, v1"), "modifiers are not allowed on special registers");
    }
    for immediate in ["|42|", "|1.0|", "-|0xFF|"] {
        rejected(&format!("v_add_f32 v0, {immediate}, v1"), "absolute value is not allowed on immediates");
    }
    rejected("v_add_f32 v0, --v1, v2", "double negation");
    rejected("v_add_f32 v0, |-v1|, v2", "absolute value after negation");
    rejected("v_add_f32 v0, ||v1||, v2", "double absolute value");
}

#[test]
fn refused_by_the_encoding() {
    rejected("s_mov_b32 s0, -v1", "scalar instruction doesn't support modifiers");
    rejected("v_add_nc_u32 v0, |v1|, v2", "integer operation doesn't support abs modifier");
    rejected("v_add_nc_u32 v0, -v1, v2", "integer operation doesn't support neg modifier");
    rejected("v_add_u32 v0, |v1|, v2", "integer operation doesn't support abs modifier");
    rejected("v_add_f32_e32 v0, -v1, v2", "the 32-bit encodings (_e32) don't support modifiers");
    rejected("v_pk_add_f16 v0, |v1|, v2", "packed instructions have bits for neg only");
}

#[test]
fn errors_in_the_specifications_words() {
    rejected("s_mov_b33 s0, s1", "line 5: unknown instruction 's_mov_b33'");
    let report = parse(&body("s_waitcnt 0, 0"), &Setup::default()).unwrap_err();
    assert!(report.contains("line 5: instruction 's_waitcnt' expects 1 operand, got 2"), "{report}");
    rejected(
        "s_mov_b32 s0, omod",
        "line 5: instruction 's_mov_b32' operand 2 expects a register or a number, got the flag `omod`",
    );
    rejected(
        "s_mov_b32 s0, glc",
        "line 5: instruction 's_mov_b32' operand 2 expects a register or a number, got the flag `glc`",
    );
    rejected("s_mov_b32 s0", "line 5: instruction 's_mov_b32' expects 2 operands, got 1");
    rejected(
        "s_mov_b32 v0, s1",
        "line 5: instruction 's_mov_b32' operand 1 expects a scalar register, got the vector register `v0`",
    );
    rejected(
        "v_mov_b32 s0, v1",
        "line 5: instruction 'v_mov_b32' operand 1 expects a vector register, got the scalar register `s0`",
    );
    rejected("v_mov_b32 v256, v1", "v256");
    rejected("s_branch nowhere", "there is no label or constant 'nowhere'");
    rejected("a: a:", "already defined");
}

/// Text kernels reject the same illegal instructions as the assembler. Regression: all of these were once
/// accepted.
#[test]
fn illegal_instructions_are_rejected() {
    rejected("v_add3_u32 v0, s4, s5, 0x1234", "this reads 3 scalar values: s4, s5, the literal");
    rejected("v_lshlrev_b64 v[0:1], s4, s[6:7]", "this reads 2 scalar values");
    rejected("s_load_b128 s[5:8], s[3:4], 0", "4 scalar registers start at a multiple of 4, not at s5");
    rejected("buffer_load_b32 v0, off, s[5:8], 0", "4 scalar registers start at a multiple of 4, not at s5");
    rejected("s_load_b32 s6, s[3:4], 2", "the offset 0x2 of a scalar load is not a multiple of 4");
    rejected("v_dual_add_f32 v0, v4, v1 :: v_dual_mul_f32 v1, v8, v2", "are in the same bank");
    rejected("v_add_f16 v0, s0.h, v1", "only vector registers have halves");
    rejected("v_add_f16_e32 v200, v0, v1", "32-bit encodings only reach v0 to v127");
    rejected("v_mov_b32_dpp v0, v1", "needs its lane movement");
}

#[test]
fn halves_beyond_the_short_encodings_take_the_long_one() {
    for text in ["v_add_f16 v200, v0, v1", "v_cmp_lt_f16 vcc_lo, v128, v1", "v_cvt_f32_f16 v0, v255"] {
        let kernel = parse(&body(text), &Setup::default()).unwrap();
        let inst = &kernel.instructions[0].0;
        let encoding = inst.encoding(Arch::Rdna3.table()).name;
        assert!(encoding.contains("VOP3"), "{text}: {encoding}");
    }
}

/// `op_sel_hi` selects the half of each source for the high result. Sources missing from the list use the low
/// half.
#[test]
fn missing_op_sel_hi_elements_are_zero() {
    for (short, long) in [
        ("v_pk_fma_f16 v0, v1, v2, v3 op_sel_hi:[1,1]", "v_pk_fma_f16 v0, v1, v2, v3 op_sel_hi:[1,1,0]"),
        ("v_pk_add_f16 v0, v1, v2 op_sel_hi:[0]", "v_pk_add_f16 v0, v1, v2 op_sel_hi:[0,0]"),
        ("v_dot2_f32_f16 v0, v1, v2, v3 op_sel_hi:[0]", "v_dot2_f32_f16 v0, v1, v2, v3 op_sel_hi:[0,0,0]"),
    ] {
        let inst = |text: &str| parse(&body(text), &Setup::default()).unwrap().instructions[0].0.fields;
        assert_eq!(inst(short), inst(long), "{short}");
    }
}

#[test]
fn all_errors_of_a_file_in_one_run() {
    let source = "---\narg_x: f33\nout_y: f32[0]\nlokal = 1\nwave = 48\n---\ns_mov_b33 s0, 0\nv_add_f32 v0, --v1, v2\nprint v0:f31\ns_endpgm\n";
    let report = parse(source, &Setup::default()).unwrap_err();
    let lines: Vec<&str> = report.lines().filter(|l| l.starts_with("error: line ")).collect();
    assert_eq!(
        lines,
        [
            "error: line 2: unknown type `f33`",
            "error: line 3: a dimension must be an integer of at least 1, not 0",
            "error: line 4: `lokal` is not a launch key",
            "error: line 5: a wave has 32 or 64 lanes, not 48",
            "error: line 7: unknown instruction 's_mov_b33'",
            "error: line 8: double negation is not allowed (only one NEG bit exists)",
            "error: line 9: unknown type `f31`",
        ],
        "{report}"
    );
    assert!(report.contains("help: did you mean `s_mov_b32`?"), "{report}");
    assert!(report.contains("help: did you mean `local`?"), "{report}");
}

#[test]
fn operands_flags_and_special_syntax() {
    for line in [
        "s_mov_b64 s[2:3], s[5:6]",
        "s_mov_b32 m0, 0b1010",
        "s_mov_b32 null, 0xDEADBEEF",
        "s_mov_b64 vcc, exec",
        "s_mov_b32 vcc_hi, exec_lo",
        "v_mov_b32 v[0], -3.14",
        "v_cmp_lt_f32 vcc, v0, v1",
        "v_cmp_lt_f32 vcc_lo, v0, v1",
        "s_and_saveexec_b32 s5, vcc",
        "s_mov_b32 exec, -1",
        "v_add_f32_e32 v0, v1, v2",
        "v_add_f32_e64 v0, v1, v2",
        "v_add_f32 v0, v1, v2 clamp",
        "v_add_f32 v0, v1, v2, clamp",
        "s_mov_b32 s0, s1 glc",
        "s_mov_b32 s0, s1 omod",
        "global_load_b32 v0, v1, s[5:6] offset:16",
        "global_load_b32 v0, v1, s[6:7] offset:16 glc slc",
        "global_load_b32 v0, v1, s[6:7] nt",
        "global_load_b32 v0, v[2:3], off",
        "buffer_load_b32 v0, v1, s[8:11], 0 offen offset:4",
        "buffer_load_b32 v0, v1, s[8:11], 0 idxen",
        "s_load_b64 s[6:7], s[3:4], 0x10",
        "s_load_b64 s[6:7], s[3:4], offset:16",
        "s_waitcnt lgkmcnt(0) vmcnt(0)",
        "s_waitcnt 0x0000",
        "s_sendmsg sendmsg(MSG_GS_DONE, GS_OP_NOP)",
        "s_barrier",
        "V_MOV_B32 v0, v1",
        "here: s_branch here // a loop",
        "print wave=0, thread=all, v0, s[2:3], exec, vcc, scc, v3:f32\n  s_endpgm",
    ] {
        accepted(line);
    }
    for wide in ["v_cmp_lt_f32 vcc, v0, v1", "s_and_saveexec_b64 s[8:9], vcc"] {
        let setup = Setup { wave: Some(64), ..Setup::default() };
        parse(&body(wide), &setup).unwrap_or_else(|report| panic!("{report}"));
    }
}

#[test]
fn immediates_are_folded() {
    let kernel = "---\nout_x: u32[6]\n---
        s_load_b64 s[6:7], s[3:4], 0
        v_mov_b32 v0, 0
        v_mov_b32 v1, -42
        v_mov_b32 v2, -0xFF
        v_mov_b32 v3, -1.0
        v_mov_b32 v4, -3.5
        v_mov_b32 v5, 0b101
        v_mov_b32 v6, 0.5
        global_store_b32 v0, v1, s[6:7]
        global_store_b32 v0, v2, s[6:7] offset:4
        global_store_b32 v0, v3, s[6:7] offset:8
        global_store_b32 v0, v4, s[6:7] offset:12
        global_store_b32 v0, v5, s[6:7] offset:16
        global_store_b32 v0, v6, s[6:7] offset:20
        s_endpgm";
    for arch in Arch::RDNA {
        let out = run(kernel, &setup(arch)).unwrap();
        let expected =
            [(-42i32) as u32, (-255i32) as u32, (-1f32).to_bits(), (-3.5f32).to_bits(), 5, 0.5f32.to_bits()];
        assert_eq!(words(&out["out_x"]), expected);
    }
}

/// Negation and absolute value take effect in encodings that have them.
#[test]
fn modifiers_take_effect() {
    let kernel = "---\nout_x: f32[4]\n---
        s_load_b64 s[6:7], s[3:4], 0
        v_mov_b32 v9, 0
        v_mov_b32 v1, -3.0
        v_mov_b32 v2, 2.0
        v_add_f32 v3, -v1, |v2|
        v_mul_f32 v4, -|v1|, v2
        v_mov_b32 v5, v1
        v_add_f32 v6, -1.0, v1
        global_store_b32 v9, v3, s[6:7]
        global_store_b32 v9, v4, s[6:7] offset:4
        global_store_b32 v9, v5, s[6:7] offset:8
        global_store_b32 v9, v6, s[6:7] offset:12
        s_endpgm";
    assert_eq!(f32s(&run(kernel, &Setup::default()).unwrap()["out_x"]), [5.0, -6.0, -3.0, -4.0]);
}

#[test]
fn packed_negation_negates_both_halves() {
    let kernel = "---\nout_x: f16[4]\n---
        s_load_b64 s[6:7], s[3:4], 0
        v_mov_b32 v9, 0
        v_mov_b32 v1, 0x40003c00        ; 1.0, 2.0
        v_mov_b32 v2, 0x44004200        ; 3.0, 4.0
        v_pk_add_f16 v3, -v1, v2
        v_pk_mul_f16 v4, -v1, -v2
        global_store_b64 v9, v[3:4], s[6:7]
        s_endpgm";
    for arch in Arch::RDNA {
        let out = run(kernel, &setup(arch)).unwrap();
        assert_eq!(out["out_x"].values().map(|n| n.as_f64()).collect::<Vec<_>>(), [2.0, 2.0, 3.0, 8.0]);
    }
}

/// Workgroup and work-item ids in three dimensions, and partial last waves.
#[test]
fn ids_and_table() {
    let kernel = "---
        out_b: u32[2,2,2,5,3,2]   ; an output before an input: the table has inputs first
        arg_a: u32 = 1000000
        local = (2, 3, 5)
        global = 2, 2, 2
        ---
        s_load_b64 s[6:7], s[3:4], 0          ; arg_a
        s_load_b64 s[8:9], s[3:4], 8          ; out_b
        s_waitcnt lgkmcnt(0)
        s_load_b32 s10, s[6:7], 0
        s_mul_i32 s11, s2, 4
        s_lshl_b32 s12, s1, 1
        s_add_u32 s11, s11, s12
        s_add_u32 s11, s11, s0                ; workgroup, x fastest
        v_mul_u32_u24 v3, v2, 3
        v_add_nc_u32 v3, v3, v1
        v_lshl_add_u32 v3, v3, 1, v0          ; work-item, x fastest
        s_mul_i32 s12, s11, 30
        v_add_nc_u32 v4, s12, v3
        v_lshlrev_b32 v5, 2, v4
        s_waitcnt lgkmcnt(0)
        v_add_nc_u32 v4, s10, v4
        global_store_b32 v5, v4, s[8:9]
        s_endpgm";
    for arch in Arch::RDNA {
        for wave in [32, 64] {
            let out = run(kernel, &Setup { arch, wave: Some(wave), ..Setup::default() }).unwrap();
            assert_eq!(
                words(&out["out_b"]),
                (1_000_000..1_000_240).collect::<Vec<_>>(),
                "{} {wave}",
                arch.name()
            );
        }
    }
}

/// The HSA ABI: kernarg pointer in s[0:1] followed by workgroup ids (in ttmp registers on RDNA 4), scalars by
/// value, packed work-item ids.
#[test]
fn hsa_abi() {
    for arch in Arch::RDNA {
        let group = if arch == Arch::Rdna4 { "ttmp9" } else { "s2" };
        let kernel = format!(
            "---
            arg_n: u32 = 5
            arg_m: u64 = 7
            out_x: u32[4,2,8]
            local = 8, 2, 1
            global = 4, 1, 1
            abi = hsa
            ---
            s_load_b32 s8, s[0:1], 0
            s_load_b64 s[10:11], s[0:1], 8
            s_load_b64 s[12:13], s[0:1], 16
            v_and_b32 v1, 0x3ff, v0
            v_bfe_u32 v2, v0, 10, 10
            v_lshl_add_u32 v1, v2, 3, v1
            s_lshl_b32 s9, {group}, 4
            v_add_nc_u32 v1, s9, v1
            v_lshlrev_b32 v2, 2, v1
            s_waitcnt lgkmcnt(0)
            s_mul_i32 s8, s8, s10
            v_add_nc_u32 v1, s8, v1
            global_store_b32 v2, v1, s[12:13]
            s_endpgm"
        );
        let out = run(&kernel, &setup(arch)).unwrap();
        assert_eq!(words(&out["out_x"]), (35..99).collect::<Vec<_>>());
    }
}

fn initial(line: &str) -> wavesim::array::Array {
    let source = format!("---\n{line}\n---\ns_endpgm");
    parse(&source, &Setup::default()).unwrap_or_else(|e| panic!("{e}")).header.args.remove(0).array
}

fn values(line: &str) -> Vec<f64> {
    initial(line).values().map(|n| n.as_f64()).collect()
}

#[test]
fn initialisers() {
    assert_eq!(values("s: i32[4] = 1, 2, 3, 4"), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(values("m: f32[2,2] = 1.0, 2.0, -3.5, 4e2"), [1.0, 2.0, -3.5, 400.0]);
    assert_eq!(values("x: u8[3] = repeat(0b101)"), [5.0; 3]);
    assert_eq!(values("x: f32[4] = arange(4)"), [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(values("x: i16[3] = arange(-1, 2)"), [-1.0, 0.0, 1.0]);
    assert_eq!(values("x: i64[3] = arange(10, 4, -2)"), [10.0, 8.0, 6.0]);
    assert_eq!(values("x: f32[4] = arange(0, 1, 0.25)"), [0.0, 0.25, 0.5, 0.75]);
    assert_eq!(values("counter: i32"), [0.0]);
    assert_eq!(values("x: u32 = 0xDEADBEEF"), [f64::from(0xdead_beefu32)]);
    assert_eq!(initial("x: i32 = 0xFFFFFFFF").bytes, [0xff; 4]);
    assert_eq!(initial("x: bf16[2] = 1.0, -2.0").bytes, [0x80, 0x3f, 0x00, 0xc0]);
    assert!(values("x: f32[100] = rand()").iter().all(|v| (0.0..1.0).contains(v)));
    assert!(values("x: i8[100] = rand()").iter().all(|v| (0.0..100.0).contains(v)));
    assert_eq!(initial("x: u64[2] = 18446744073709551615, 0").bytes[..8], [0xff; 8]);
}

#[test]
fn header_errors() {
    for (line, words) in [
        ("x: i32[4] = 1, 2, 3", "the list gives 3 values, i32[4] has 4"),
        ("x: i32[4] = 1", "repeat(value)"),
        ("x: f32[4] = arange(5)", "arange gives 5 values, f32[4] has 4"),
        ("x: f32[4] = arange(0, 4, 0)", "a step of 0"),
        ("x: f32[4] = arrange(4)", "did you mean `arange`?"),
        ("x: u8 = 256", "256 is not a valid u8 (0 to 255)"),
        ("x: i32 = 2.5", "2.5 is not a valid i32"),
        ("x: f32[N]", "`N` has no value"),
        ("x: f32[4", "`]` is missing"),
        ("x: f32[4] = rand(1)", "rand(): 1 values are given"),
        ("x: f32[4] = file(\"none.bin\", f32)", "none.bin"),
        ("x: f32[4] = file(\"none.bin", "closing quote"),
        ("x: f32[1000000000]", "needs 4000000000 bytes"),
        ("x: f32[1000000,1000000,1000000,1000000]", "larger than any memory"),
        ("local = 1, 2, 3, 4", "three dimensions"),
        ("local = 0", "at least 1"),
        ("local = 1\nlocal = 1", "already given in line 2"),
        ("x: f32\nx: f32", "already given in line 2"),
        ("abi = cuda", "the ABIs are `text` and `hsa`"),
        ("x f32", "neither"),
        ("?", "missing"),
    ] {
        let report = parse(&format!("---\n{line}\n---\ns_endpgm"), &Setup::default()).expect_err(line);
        assert!(report.contains(words), "{line}: wanted `{words}` in\n{report}");
    }
    let open = parse("---\nlocal = 1\n", &Setup::default()).unwrap_err();
    assert!(open.contains("no closing `---`"), "{open}");
}

#[test]
fn files_are_relative_to_the_kernel() {
    let dir = std::env::temp_dir().join(format!("wavesim-file-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let bytes: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    std::fs::write(dir.join("x.bin"), bytes).unwrap();
    let kernel = dir.join("kernel.rdna");
    std::fs::write(&kernel, "---\nout_x: f64[2] = file(\"x.bin\", f32)\nout_y: i64 = -1\n---\ns_endpgm\n")
        .unwrap();
    let path = kernel.to_string_lossy();
    let (code, text) = wavesim_tests::wavesim(&["run", &path]);
    assert_eq!((code, text.as_str()), (0, "out_x: f64[2] =\n[ 1.5 -2. ]\nout_y: i64 =\n-1\n"));
    let (code, text) =
        wavesim_tests::wavesim(&["run", &path, "--json", "--out-dir", &dir.join("o").to_string_lossy()]);
    assert_eq!(code, 0);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "schema": "wavesim-run-1",
            "outputs": {
                "out_x": {"dtype": "f64", "shape": [2], "data": [1.5, -2.0]},
                "out_y": {"dtype": "i64", "shape": [], "data": ["ffffffffffffffff"]},
            },
            "instructions": 1,
            "waves": 1,
        })
    );
    let mut written: Vec<String> = std::fs::read_dir(dir.join("o"))
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    written.sort();
    assert_eq!(written, ["out_x.npy", "out_y.npy"]);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn faults_and_exit_codes() {
    let dir = std::env::temp_dir().join(format!("wavesim-fault-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let kernel = dir.join("kernel.rdna");
    let source = "---\nout_x: f32[2]\n---\nv_mov_b32 v0, 0\nglobal_load_b32 v1, v0, s[20:21]\ns_endpgm\n";
    std::fs::write(&kernel, source).unwrap();
    let (path, out) = (kernel.to_string_lossy(), dir.join("o"));
    let (code, text) = wavesim_tests::wavesim(&["run", &path, "--json", "--out-dir", &out.to_string_lossy()]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let fault = &json["fault"];
    assert_eq!(code, 1);
    assert_eq!(
        (&fault["kind"], &fault["line"], &fault["pc"], &fault["wave"], &fault["lane"], &fault["address"]),
        (&"out-of-bounds".into(), &5.into(), &4.into(), &0.into(), &0.into(), &"0".into()),
        "{json}"
    );
    assert_eq!(fault["workgroup"], serde_json::json!([0, 0, 0]));
    assert!(!out.exists(), "no output of a run that failed");
    std::fs::write(&kernel, "---\nout_x: f32[2]\n---\nloop: s_branch loop\n").unwrap();
    let (code, text) = wavesim_tests::wavesim(&["run", &path, "--json", "--max-instructions", "1000"]);
    assert!(code == 1 && text.contains("instruction-limit"), "{text}");
    std::fs::write(&kernel, "---\nout_x: f33\n---\n").unwrap();
    assert_eq!(wavesim_tests::wavesim(&["run", &path]).0, 2);
    assert_eq!(wavesim_tests::wavesim(&["run", "/no/such/file.rdna"]).0, 2);
    std::fs::write(&kernel, "---\nlocal = 2000\n---\ns_endpgm\n").unwrap();
    assert_eq!(wavesim_tests::wavesim(&["run", &path]).0, 2, "no device takes such a workgroup");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn semantics_replaced_at_run_time() {
    let dir = std::env::temp_dir().join(format!("wavesim-pcode-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let kernel = dir.join("kernel.rdna");
    let pcode = dir.join("mine.pcode");
    std::fs::write(&pcode, "instruction V_ADD_F32 { D0.f32 = S0.f32 * S1.f32; }").unwrap();
    let source = "---\narg_x: f32[4] = arange(4)\nout_y: f32[4]\nlocal = 4\n---
        s_load_b64 s[6:7], s[3:4], 0
        s_load_b64 s[8:9], s[3:4], 8
        v_lshlrev_b32 v1, 2, v0
        global_load_b32 v2, v1, s[6:7]
        v_add_f32 v2, 4.0, v2
        global_store_b32 v1, v2, s[8:9]
        s_endpgm\n";
    std::fs::write(&kernel, source).unwrap();
    let (path, pcode) = (kernel.to_string_lossy(), pcode.to_string_lossy());
    assert_eq!(wavesim_tests::wavesim(&["run", &path]), (0, "out_y: f32[4] =\n[4. 5. 6. 7.]\n".to_string()));
    let replaced = (0, "out_y: f32[4] =\n[ 0.  4.  8. 12.]\n".to_string());
    assert_eq!(wavesim_tests::wavesim(&["run", &path, "--semantics", &pcode]), replaced);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn prints_are_kept_with_their_place() {
    let kernel =
        prepare("---\n---\ns_nop 0\nprint v0\nprint s[0:1]\ns_nop 0\nprint exec\n", &Setup::default())
            .unwrap();
    let positions: Vec<(u64, u32)> = kernel.prints.iter().map(|p| (p.pc, p.line)).collect();
    assert_eq!(positions, [(4, 4), (4, 5), (8, 7)]);
}
