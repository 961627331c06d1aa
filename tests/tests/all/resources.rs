//! Resource limits: excessive sizes are errors before anything is allocated, and uses of registers or LDS
//! beyond the declared ones are findings.

use clap::Parser;
use isa_spec::source::SourceMap;
use std::time::Duration;
use wavesim::cli::{self, Cli};
use wavesim::exec::overrides::Overrides;
use wavesim_tests::processor_time;

/// Runs a command. Returns its output and exit code, or the error message if it is rejected.
fn run(args: &[&str]) -> Result<(String, u8), String> {
    // These kernels do not declare a launch size.
    let compiled = args.iter().any(|arg| arg.ends_with(".s") || arg.ends_with(".co")) && args[0] != "asm";
    let call: &[&str] = if compiled { &["--grid", "1", "--block", "1"] } else { &[] };
    let args = [args, call].concat();
    let cli = Cli::try_parse_from(std::iter::once("wavesim").chain(args.iter().copied()))
        .map_err(|e| e.to_string())?;
    let mut out = Vec::new();
    let code = cli::dispatch(&cli.command, &mut out).map_err(|e| format!("{e:#}"))?;
    Ok((String::from_utf8(out).expect("text"), code))
}

fn file(name: &str, text: &str) -> String {
    let path = crate::temporary(module_path!(), name);
    std::fs::write(&path, text).expect("writable");
    path.display().to_string()
}

fn text_kernel(name: &str, header: &str) -> String {
    file(&format!("{name}.rdna"), &format!("---\n{header}\nout_y: u32[32]\n---\n  s_endpgm\n"))
}

/// Writes an assembly file with a kernel and the given descriptor directives.
fn assembly(name: &str, directives: &[(&str, u64)], body: &str) -> String {
    let directives: String =
        directives.iter().map(|(key, value)| format!("  .amdhsa_{key} {value}\n")).collect();
    let text = format!(
        ".amdgcn_target \"amdgcn-amd-amdhsa--gfx1100\"\n.text\n.globl k\n.p2align 8\nk:\n{body}\n  s_endpgm\n\
         .rodata\n.p2align 6\n.amdhsa_kernel k\n{directives}.end_amdhsa_kernel\n"
    );
    file(&format!("{name}.s"), &text)
}

/// Every command that runs kernels rejects excessive sizes with the same message, immediately.
#[test]
fn excessive_sizes_are_rejected_by_every_command() {
    let lds = "3000000000 bytes of LDS: a workgroup has at most 65536";
    let kernels = [
        (text_kernel("much_lds", "lds = 3000000000"), lds),
        (text_kernel("some_lds", "lds = 65537"), "65537 bytes of LDS: a workgroup has at most 65536"),
        (text_kernel("much_scratch", "scratch = 4000000000"), "a workgroup has at most 134217728"),
        (
            text_kernel("some_scratch", "scratch = 67108864\nlocal = 64, 1, 1"),
            "a workgroup has at most 134217728",
        ),
        (text_kernel("much_work", "local = 4000000000, 4, 1"), "1 to 1024 are possible"),
        (
            assembly("much_lds", &[("next_free_vgpr", 8), ("group_segment_fixed_size", 3_000_000_000)], ""),
            lds,
        ),
        (
            assembly(
                "much_scratch",
                &[("next_free_vgpr", 8), ("private_segment_fixed_size", 3_000_000_000)],
                "",
            ),
            "a workgroup has at most 134217728",
        ),
        (text_kernel("much_memory", "arg_x: f32[4000000000]"), "arg_x needs 16000000000 bytes"),
    ];
    for (kernel, expected) in &kernels {
        let commands: [&[&str]; 5] = [
            &["run"],
            &["launch"],
            &["check"],
            &["debug", "--batch", "-e", "quit"],
            &["run", "--threads", "4"],
        ];
        for command in commands {
            if command[0] == "launch" && kernel.ends_with(".rdna") {
                continue;
            }
            let start = processor_time();
            let args = [command, &[kernel.as_str()]].concat();
            // Errors in headers are reported on standard error with a position; all others are errors of the
            // command.
            match run(&args) {
                Ok((out, code)) => {
                    assert!(code == 2 && kernel.contains("much_memory"), "{args:?}: {code}\n{out}")
                }
                Err(error) => assert!(error.contains(expected), "{args:?}: {error}"),
            }
            assert!(processor_time() - start < Duration::from_secs(2), "{args:?}");
        }
    }
}

#[test]
fn sparsely_used_scratch_is_cheap() {
    let body = "\
  s_load_b64 s[6:7], s[3:4], 0
  v_lshlrev_b32 v1, 2, v0
  scratch_store_b32 off, v0, off offset:4
  scratch_load_b32 v2, off, off offset:4
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_store_b32 v1, v2, s[6:7]
  s_endpgm
";
    let header = "---\nout_y: u32[32]\nlocal = 32, 1, 1\nglobal = 200, 1, 1\nscratch = 4194304\n---\n";
    let start = processor_time();
    let (out, code) =
        run(&["run", &file("deep_scratch.rdna", &format!("{header}{body}"))]).expect("a result");
    assert!(code == 0 && out.contains("[ 0  1  2  3  4"), "{out}");
    // 200 workgroups of 128 MiB: clearing all scratch would write 25 GiB.
    assert!(processor_time() - start < Duration::from_secs(3));
}

#[test]
fn undeclared_registers_are_findings() {
    let body = "\
  v_mov_b32 v0, 1
  v_mov_b32 v4, v0
  v_mov_b32 v5, v0
  v_lshlrev_b64 v[4:5], 1, v[0:1]
  s_mov_b32 s9, 1
  s_mov_b32 s10, 1
  s_mov_b64 vcc, 0
  s_mov_b32 m0, 0";
    let path = assembly("undeclared", &[("next_free_vgpr", 5), ("next_free_sgpr", 10)], body);
    let (out, code) = run(&["check", &path, "--check", "hazard"]).expect("findings");
    assert_eq!(code, 1, "{out}");
    let found: Vec<&str> = out.lines().filter(|line| line.starts_with("hazard:")).collect();
    let expected = [
        "hazard: v5 is beyond the 5 VGPRs that the kernel declares (.amdhsa_next_free_vgpr)",
        "hazard: v[4:5] is beyond the 5 VGPRs that the kernel declares (.amdhsa_next_free_vgpr)",
        "hazard: s10 is beyond the 10 SGPRs that the kernel declares (.amdhsa_next_free_sgpr)",
    ];
    assert_eq!(found, expected, "{out}");
    assert!(out.contains("at line 8: v_mov_b32_e32 v5, v0"), "{out}");
    // A code object only has the number of VGPR granules: v5 is in the first granule, v8 is not.
    let object = path.replace(".s", ".co");
    let clean = run(&["asm", &path, "-o", &object]);
    clean.unwrap_or_else(|e| panic!("{e}"));
    let (out, code) = run(&["check", &object, "--check", "hazard"]).expect("a result");
    assert_eq!(code, 0, "{out}");
    let path = assembly("undeclared8", &[("next_free_vgpr", 5), ("next_free_sgpr", 10)], "  v_mov_b32 v8, 0");
    let object = path.replace(".s", ".co");
    run(&["asm", &path, "-o", &object]).expect("assembled");
    let (out, code) = run(&["check", &object, "--check", "hazard"]).expect("a result");
    assert!(code == 1 && out.contains("v8 is beyond the 8 VGPRs") && out.contains("pc 0x1000"), "{out}");
}

/// Checks an assembly kernel for `target` with these directives, and returns its findings.
fn hazards_of(name: &str, target: &str, directives: &str, body: &str) -> Vec<String> {
    let source = format!(
        ".amdgcn_target \"amdgcn-amd-amdhsa--{target}\"\n.text\n.globl k\n.p2align 8\n.type k,@function\nk:\n{body}\n  \
         s_endpgm\n.section .rodata,\"a\"\n.p2align 6\n.amdhsa_kernel k\n{directives}\n.end_amdhsa_kernel\n"
    );
    let (out, _) = run(&["check", &file(name, &source), "--check", "hazard"]).expect("a result");
    out.lines().filter(|line| line.contains("hazard:")).map(str::to_string).collect()
}

#[test]
fn registers_beyond_the_accumulation_offset_are_findings() {
    let body = "\
  v_mov_b32 v7, 1
  v_mov_b32 v8, 1
  v_accvgpr_write_b32 a3, v7
  v_accvgpr_write_b32 a4, v7";
    let directives = "\
  .amdhsa_next_free_vgpr 12
  .amdhsa_next_free_sgpr 10
  .amdhsa_accum_offset 8";
    let expected = [
        "hazard: v8 is beyond the 8 VGPRs that the kernel declares (.amdhsa_next_free_vgpr and .amdhsa_accum_offset)",
        "hazard: a4 is beyond the 4 accumulation VGPRs that the kernel declares (.amdhsa_next_free_vgpr beyond \
         .amdhsa_accum_offset)",
    ];
    assert_eq!(hazards_of("accumulation.s", "gfx942", directives, body), expected);
}

#[test]
fn vector_hazards_of_processors_are_findings() {
    let directives = "\
  .amdhsa_next_free_vgpr 8
  .amdhsa_next_free_sgpr 10
  .amdhsa_wavefront_size32 1";
    let hazard = "\
  v_cvt_f32_u32 v1, v0
  v_exp_f32 v2, v1
  v_mul_f32 v3, v2, v1";
    let found = hazards_of("transcendental.s", "gfx1100", directives, hazard);
    assert_eq!(found, ["hazard: a vector instruction reads the result of a transcendental one too early"]);
    // gfx11.5 and later wait by themselves.
    assert!(hazards_of("transcendental.s", "gfx1150", directives, hazard).is_empty());
    // Other instructions in between give it the time, or a wait.
    let others = "  v_mov_b32 v4, 0\n".repeat(6);
    for between in [&others, "  s_waitcnt_depctr 0xfff\n", "  v_rcp_f32 v5, v1\n  v_rcp_f32 v6, v1\n"] {
        let body = hazard.replace("  v_mul", &format!("{between}  v_mul"));
        assert!(hazards_of("transcendental.s", "gfx1100", directives, &body).is_empty(), "{body}");
    }
}

#[test]
fn lds_beyond_the_group_segment_is_a_finding() {
    let body = "\
  v_mov_b32 v0, 1
  v_mov_b32 v1, 0x3000
  ds_store_b32 v1, v0
  ds_load_b32 v2, v1
  s_waitcnt lgkmcnt(0)";
    let directives = [("next_free_vgpr", 8), ("next_free_sgpr", 8), ("group_segment_fixed_size", 16)];
    let (out, code) = run(&["check", &assembly("small_lds", &directives, body)]).expect("findings");
    assert_eq!(code, 1, "{out}");
    for access in ["store", "load"] {
        let line = format!(
            "mem: {access} of 4 bytes at LDS offset 0x3000 is beyond the workgroup's 16 bytes of LDS"
        );
        assert!(out.contains(&line), "{out}");
    }
}

/// Checks that the effect analysis of supplied semantics takes bounded time. Each body is a test of its own, so
/// that they run in parallel.
fn analysis_is_bounded(body: &str) {
    let start = processor_time();
    let text = format!("instruction S_MOVK_I32 {{ {body} }}");
    let own = Overrides::parse("bomb.pcode".to_string(), text);
    assert!(own.is_ok(), "{own:?}");
    let used = processor_time() - start;
    assert!(used < Duration::from_secs(10), "{used:?}: {body:.80}");
}

#[test]
fn analysis_of_a_huge_loop_is_bounded() {
    analysis_is_bounded("for i in 0 : 2147483646 do nop(); endfor");
}

#[test]
fn analysis_of_nested_loops_is_bounded() {
    analysis_is_bounded(
        "for i in 0 : 2147483646 do for j in 0 : 2147483646 do SGPR[j] = M0 + 32'U(i); endfor endfor",
    );
}

#[test]
fn analysis_of_a_condition_in_a_loop_is_bounded() {
    analysis_is_bounded("for i in 0 : 2147483646 do if SIMM16 == 32'U(i) then D0.u32 = M0; endif endfor");
}

#[test]
fn analysis_of_an_index_in_a_loop_is_bounded() {
    analysis_is_bounded(
        "for i in 0 : 2147483646 do if SIMM16 == 32'U(i) then SGPR[SDST + 32'U(i)] = M0; endif endfor",
    );
}

#[test]
fn analysis_of_many_conditions_is_bounded() {
    let conditions: String =
        (0..3000).map(|i| format!("if SIMM16 == {i}U then D0.u32 = M0; endif ")).collect();
    analysis_is_bounded(&conditions);
}

#[test]
fn analysis_of_many_locals_is_bounded() {
    let locals: String = (0..2000).map(|i| format!("a{i} = 32'U(SCC); D0.u32 = a{i}; ")).collect();
    analysis_is_bounded(&format!(
        "{locals} for i in 0 : 2147483646 do if SCC then D0.u32 = a7; endif endfor"
    ));
}

/// Function calls that expand exponentially are rejected quickly, even in thousands of instructions.
#[test]
fn expansion_is_bounded() {
    // Of one type; with an operand of the instruction; with another constant in each call.
    let functions = [["x + x", "x", "x"], ["x + S1.u32", "x", "x"], ["x + S1.u32", "x * 2", "x * 2 + 1"]];
    let texts = functions.map(|[lowest, first, second]| {
        let mut text = format!("function f0(x) {{ return {lowest}; }}\n");
        for level in 1..30 {
            text +=
                &format!("function f{level}(x) {{ return f{0}({first}) + f{0}({second}); }}\n", level - 1);
        }
        for at in 0..1000 {
            text += &format!("instruction V_TEST_{at} {{ D0.u32 = 32'U(f29(1)) + f29(S0.u32); }}\n");
        }
        text
    });
    let mut lambdas = String::from("instruction V_TEST { g0 = lambda(x) (x + x);\n");
    for level in 1..30 {
        lambdas += &format!("g{level} = lambda(x) (g{}(x) * g{0}(x));\n", level - 1);
    }
    lambdas += "D0.u32 = g29(S0.u32); }\n";
    for text in texts.into_iter().chain([lambdas]) {
        let start = processor_time();
        let mut sources = SourceMap::default();
        let file = sources.add("bomb.pcode", text);
        let report = isa_spec::report::check_files(&sources, &[file], &[], &[]);
        let first = report.diagnostics.first().map(|d| d.message.as_str()).unwrap_or_default();
        assert!(first.contains("too large when its calls are expanded"), "{first}");
        let used = processor_time() - start;
        assert!(used < Duration::from_secs(5), "{used:?}");
    }
}
