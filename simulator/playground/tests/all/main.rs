//! Tests of requests in the form in which a page sends them.

use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use wavesim_isa::arch::Arch;
use wavesim_playground::compile::{Compiled, Compiler, SourceCode};
use wavesim_playground::{Playground, disassemble, program};

const HEADER: &str =
    "---\narg_x: u32[4] = arange(4)\nout_y: u32[4]\nlocal = 4, 1, 1\nglobal = 1, 1, 1\n---\n";

const ADD_ONE: &str = "  s_load_b128 s[4:7], s[3:4], 0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_b32 v2, v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_add_nc_u32 v2, 1, v2
  global_store_b32 v1, v2, s[6:7]
  s_endpgm
";

fn send(playground: &mut Playground, request: &Value) -> Result<Value, String> {
    let answer: Value = serde_json::from_str(&playground.request(&request.to_string())).unwrap();
    match answer.get("error") {
        Some(message) => Err(message.as_str().unwrap().to_string()),
        None => Ok(answer["ok"].clone()),
    }
}

fn once(request: &Value) -> Result<Value, String> {
    send(&mut Playground::default(), request)
}

fn kernel(body: &str) -> Value {
    json!({"name": "kernel.rdna", "text": format!("{HEADER}{body}")})
}

fn run(program: &Value) -> Result<Value, String> {
    once(&json!({"op": "run", "program": program, "max_instructions": 10_000}))
}

fn words(array: &Value) -> Vec<u32> {
    let bytes = program::decode(array["data"].as_str().unwrap(), 1 << 20).unwrap();
    bytes.chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
}

/// Returns the text that a diagnostic underlines, by the positions that a browser uses.
fn underlined(text: &str, diagnostic: &Value) -> String {
    let units: Vec<u16> = text.encode_utf16().collect();
    let at = |key: &str| diagnostic[key].as_u64().unwrap() as usize;
    String::from_utf16_lossy(&units[at("from")..at("to")])
}

#[test]
fn invalid_requests_are_errors() {
    let texts = ["", "{}", "[1", r#"{"op":"fly"}"#, r#"{"op":"names"}"#, r#"{"op":"command","view":{}}"#];
    for text in texts {
        let answer: Value = serde_json::from_str(&Playground::default().request(text)).unwrap();
        assert!(answer["error"].is_string(), "{text}: {answer}");
    }
}

#[test]
fn a_run_returns_outputs_and_counts() {
    let result = run(&kernel(ADD_ONE)).unwrap();
    assert_eq!(words(&result["outputs"][0]), [1, 2, 3, 4]);
    assert_eq!((&result["outputs"][0]["type"], &result["instructions"]), (&json!("u32[4]"), &json!(8)));
    assert!(result["fault"].is_null());
}

/// Images are shown as pictures: a texel has components, or is one number.
#[test]
fn images_have_channels() {
    for (format, channels) in [("rgba8unorm", 4), ("rg16float", 2), ("r32float", 1), ("rgb10a2unorm", 1)] {
        let text =
            format!("---\nout_y: image2d<{format}>[3, 2]\nout_z: u8[2, 3, 4]\nlocal = 4\n---\n  s_endpgm\n");
        let result = run(&json!({"name": "kernel.rdna", "text": text})).unwrap();
        let (image, array) = (&result["outputs"][0], &result["outputs"][1]);
        assert_eq!((&image["channels"], &array["channels"]), (&json!(channels), &Value::Null), "{format}");
    }
}

#[test]
fn times_are_predicted_for_the_devices_of_the_architecture() {
    let profile = |device: Option<&str>, body: &str| {
        let program = kernel(body);
        once(&json!({"op": "profile", "program": program, "max_instructions": 10_000, "device": device}))
    };
    let answer = profile(None, ADD_ONE).unwrap();
    assert_eq!(answer["devices"], json!([{"name": "rx7900xtx", "title": "Radeon RX 7900 XTX"}]));
    let own = &answer["profile"];
    assert_eq!((&own["schema"], &own["device"]), (&json!("wavesim-profile-1"), &json!("rx7900xtx")));
    let rows: Vec<_> = own["instructions"].as_array().unwrap().iter().map(|row| &row["line"]).collect();
    assert_eq!(rows, (7..15).collect::<Vec<_>>());
    assert!(own["microseconds"]["predicted"].as_f64().unwrap() > 1.0);
    assert_eq!(profile(Some("rx7900xtx"), ADD_ONE).unwrap(), answer);
    assert!(profile(Some("mi300a"), ADD_ONE).unwrap_err().contains("cdna3"));
    let unknown = profile(Some("/etc/passwd.toml"), ADD_ONE).unwrap_err();
    assert!(unknown.contains("rx9070xt"), "{unknown}");
    let endless = profile(None, "again:\n  s_branch again\n  s_endpgm\n").unwrap();
    assert_eq!((&endless["profile"], &endless["fault"]["kind"]), (&Value::Null, &json!("instruction-limit")));
}

#[test]
fn statistics_count_lines_and_prints_are_shown() {
    let text = ADD_ONE.replace("  v_add", "  print v2:u32\n  v_add");
    let request =
        json!({"op": "run", "program": kernel(&text), "max_instructions": 10_000, "statistics": true});
    let result = once(&request).unwrap();
    assert_eq!(result["statistics"]["lines"][0], json!([7, 1, 4]));
    assert_eq!(result["statistics"]["instructions"][1], json!([8, 1, 4]));
    assert!(result["printed"].as_str().unwrap().contains("v2"), "{}", result["printed"]);
}

#[test]
fn an_endless_loop_ends_at_the_limit() {
    let result = run(&kernel("loop:\n  s_branch loop\n")).unwrap();
    assert_eq!(result["fault"]["kind"], "instruction-limit");
    assert_eq!(result["fault"]["line"], 8);
}

#[test]
fn inputs_name_no_files() {
    let text = HEADER.replace("arange(4)", "file(\"/etc/passwd\", u32)");
    let error = run(&json!({"text": format!("{text}{ADD_ONE}")})).unwrap_err();
    assert!(error.contains("files cannot be named here"), "{error}");
    let error = run(&json!({"text": ".include \"/etc/passwd\"\n.amdhsa_kernel x\n"})).unwrap_err();
    assert!(error.contains("files cannot be named here"), "{error}");
}

#[test]
fn sizes_are_bounded() {
    let error = run(&json!({"text": "x".repeat(program::MAX_TEXT + 1)})).unwrap_err();
    assert!(error.contains("at most 1 MB"), "{error}");
    let text = HEADER.replace("u32[4]", "u32[1000000000000]");
    assert!(run(&json!({"text": format!("{text}{ADD_ONE}")})).is_err());
    let text = HEADER.replace("local = 4, 1, 1", "local = 4000, 4000, 4000");
    assert!(run(&json!({"text": format!("{text}{ADD_ONE}")})).is_err());
    let nested = format!("instruction V_ADD_F32 {{ D0.f32 = {} }}", "(".repeat(100_000));
    let found = once(&json!({"op": "diagnose-semantics", "text": nested})).unwrap();
    assert_eq!(found["diagnostics"][0]["severity"], "error");
}

#[test]
fn errors_have_utf16_positions() {
    // The comment has characters of one, two and four bytes: one, one and two UTF-16 code units.
    let program = kernel("; a é 😀\n  v_add_f33 v0, v0, v0\n  s_endpgm\n");
    let found = once(&json!({"op": "diagnose", "program": program})).unwrap();
    let d = &found["diagnostics"][0];
    assert_eq!(underlined(program["text"].as_str().unwrap(), d), "v_add_f33");
    assert!(!d["message"].as_str().unwrap().starts_with("line"), "{d}");
    assert!(d.to_string().contains("v_add_f32"), "{d}");
}

#[test]
fn errors_in_assembly_have_positions() {
    let descriptor =
        ".amdhsa_kernel x\n  .amdhsa_next_free_vgpr 1\n  .amdhsa_next_free_sgpr 1\n.end_amdhsa_kernel\n";
    let text = format!("x:\n  v_mov_b32 v0, v999\n  s_endpgm\n{descriptor}");
    let found = once(&json!({"op": "diagnose", "program": {"text": text}})).unwrap();
    assert_eq!(found["kind"], "assembly");
    assert!(underlined(&text, &found["diagnostics"][0]).contains("v999"), "{found}");
}

#[test]
fn a_race_has_two_program_points() {
    let text = include_str!("../../../../examples/broken/race.rdna");
    let request = json!({"op": "check", "program": {"text": text}, "max_instructions": 100_000});
    let found = once(&request).unwrap();
    let race = found["findings"].as_array().unwrap().iter().find(|f| f["check"] == "race").unwrap();
    assert!(race["line"].is_u64() && race["other"]["line"].is_u64(), "{race}");
}

fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    list.as_array().unwrap().iter().find(|r| r["name"] == name).unwrap()
}

#[test]
fn the_debugger_steps_forward_and_back() {
    let mut page = Playground::default();
    let start = json!({"op": "start", "program": kernel(ADD_ONE), "max_instructions": 10_000});
    let state = send(&mut page, &start).unwrap();
    assert_eq!((&state["time"], &state["waves"][0]["line"]), (&json!(0), &json!(7)));
    let command = |line: &str| json!({"op": "command", "line": line, "view": {"grid": 2, "lane": 3}});
    let state = send(&mut page, &command("step 6")).unwrap();
    assert_eq!((&state["time"], &state["lane"]), (&json!(6), &json!(3)));
    assert_eq!(state["waves"][0]["grid"][3], 4);
    assert_eq!(named(&state["sgprs"], "s4")["points"], "arg_x");
    assert_eq!(named(&state["vgprs"], "v2")["values"][3], 4);
    assert_eq!(state["instruction"], "global_store_b32");
    let state = send(&mut page, &command("back")).unwrap();
    assert_eq!(named(&state["vgprs"], "v2")["values"][3], 3);
    assert!(state["explain"].as_str().unwrap().contains("V_ADD_NC_U32"), "{}", state["explain"]);
    let written = json!({"op": "last-write", "wave": 0, "lane": 3, "register": "v2"});
    assert_eq!(send(&mut page, &written).unwrap()["time"], 3);
    // The request has not changed the time.
    let state = send(&mut page, &json!({"op": "command", "view": {}})).unwrap();
    assert_eq!(state["time"], 5);
    let state = send(&mut page, &command("continue")).unwrap();
    assert_eq!((&state["finished"], &state["paused"]), (&json!(true), &json!(false)));
    let memory = send(&mut page, &json!({"op": "memory", "name": "out_y"})).unwrap();
    assert_eq!((words(&memory), &memory["total"]), (vec![1, 2, 3, 4], &json!(16)));
    let part = json!({"op": "memory", "name": "out_y", "from": 4, "len": 8});
    let memory = send(&mut page, &part).unwrap();
    assert_eq!((words(&memory), &memory["from"]), (vec![2, 3], &json!(4)));
    let behind = json!({"op": "memory", "name": "out_y", "from": u64::MAX, "len": 8});
    assert_eq!(words(&send(&mut page, &behind).unwrap()), [0u32; 0]);
    assert!(send(&mut page, &json!({"op": "memory", "name": "z"})).is_err());
    let state = send(&mut page, &command("no-such-command")).unwrap();
    assert!(state["failed"].as_str().unwrap().contains("no command"), "{state}");
    send(&mut page, &json!({"op": "end"})).unwrap();
    assert!(send(&mut page, &command("step")).is_err());
}

#[test]
fn a_long_command_returns_to_the_page() {
    let mut page = Playground::default();
    let program = kernel("loop:\n  s_branch loop\n");
    let start = json!({"op": "start", "program": program, "max_instructions": 1_000_000_000_u64});
    send(&mut page, &start).unwrap();
    let go_on = json!({"op": "command", "line": "continue", "view": {}});
    let first = send(&mut page, &go_on).unwrap();
    assert_eq!(first["paused"], true);
    let second = send(&mut page, &go_on).unwrap();
    assert!(second["time"].as_u64() > first["time"].as_u64());
}

#[test]
fn user_defined_pseudocode_runs() {
    let mut program = kernel(ADD_ONE);
    program["semantics"] = json!("instruction V_ADD_NC_U32 { D0.u32 = S0.u32 + S1.u32 * 10U; }");
    assert_eq!(words(&run(&program).unwrap()["outputs"][0]), [1, 11, 21, 31]);
    program["semantics"] = json!("instruction V_ADD_NC_U32 { D0.u32 = S7.u32; }");
    assert!(run(&program).unwrap_err().contains("changes.pcode:1:"));
    let text = "instruction V_ADD_NC_U32 {\n  D0.u32 = S7.u32;\n}";
    let found = once(&json!({"op": "diagnose-semantics", "text": text})).unwrap();
    assert_eq!(underlined(text, &found["diagnostics"][0]), "S7");
    assert_eq!(found["diagnostics"][0]["severity"], "error");
}

#[test]
fn every_instruction_is_described() {
    for arch in wavesim_isa::arch::Arch::RDNA {
        let names = once(&json!({"op": "names", "arch": arch.name()})).unwrap();
        for entry in names["instructions"].as_array().unwrap() {
            let request = json!({"op": "describe", "arch": arch.name(), "name": entry[0]});
            let d = once(&request).unwrap();
            assert_eq!(d["pseudocode"].is_string(), entry[2] == true, "{d}");
            assert!(!d["forms"].as_array().unwrap().is_empty(), "{d}");
        }
    }
    let request = |name: &str| json!({"op": "describe", "arch": "rdna3", "name": name});
    assert_eq!(once(&request("v_add_f32_e64")).unwrap()["name"], "v_add_f32");
    let near = once(&request("v_add_f33")).unwrap_err();
    assert!(near.contains("did you mean `v_add_f32`?"), "{near}");
    let d = once(&request("v_add_f32")).unwrap();
    let form =
        &d["forms"].as_array().unwrap().iter().find(|f| f["encodings"][0].to_string().contains("ENC_VOP2,"));
    assert!(form.unwrap()["operands"][1].as_str().unwrap().contains("src0[8:0]"), "{d}");
    assert!(form.unwrap()["fields"].as_str().unwrap().contains("op[30:25] = 0x3"), "{d}");
    let names = once(&json!({"op": "names", "arch": "rdna4"})).unwrap();
    assert!(names["suffixes"].as_array().unwrap().contains(&json!("_e64_dpp")));
    assert!(names["modifiers"].as_array().unwrap().contains(&json!("scope:")));
    assert_eq!(names["counters"], json!([]));
}

/// The built-in pseudocode that the page shows is accepted as a redefinition.
#[test]
fn shown_pseudocode_is_accepted_as_a_redefinition() {
    let names = once(&json!({"op": "names", "arch": "rdna3"})).unwrap();
    let mut blocks = String::new();
    for entry in names["instructions"].as_array().unwrap().iter().filter(|e| e[2] == true) {
        let d = once(&json!({"op": "describe", "arch": "rdna3", "name": entry[0]})).unwrap();
        let name = d["name"].as_str().unwrap().to_uppercase();
        blocks += &format!("instruction {name} for rdna3 {{\n{}\n}}\n", d["pseudocode"].as_str().unwrap());
    }
    let found = once(&json!({"op": "diagnose-semantics", "text": blocks})).unwrap();
    let errors = found["diagnostics"].as_array().unwrap().iter().filter(|d| d["severity"] == "error");
    assert_eq!(errors.map(|d| d["message"].clone()).collect::<Vec<_>>(), Vec::<Value>::new());
}

#[test]
fn a_code_object_is_disassembled_and_run() {
    let text = include_str!("../../../../examples/scale.s");
    let assembled = wavesim_loader::assembly::AssemblyOptions::default().assemble("scale.s", text).unwrap();
    let object = program::encode(&assembled.object);
    let listed = once(&json!({"op": "disassemble", "object": object})).unwrap();
    assert_eq!(listed["kernels"][0]["name"], "scale");
    assert!(listed["listing"].as_str().unwrap().contains("s_endpgm"));
    let args = ["x: f32[50]=arange(50)", "out_y: f32[50]", "2.5", "i32=50"];
    let program = json!({"object": object, "grid": [2, 1, 1], "block": [32, 1, 1], "args": args});
    let result = run(&program).unwrap();
    assert_eq!(f32::from_bits(words(&result["outputs"][0])[49]), 122.5);
    // All arguments share the memory limit.
    let mut large = program.clone();
    large["args"] = json!(["x: f32[10000000]", "out_y: f32[10000000]", "2.5", "i32=50"]);
    assert!(run(&large).unwrap_err().contains("out_y"), "{}", run(&large).unwrap_err());
    large["args"] = json!(vec!["1"; 300]);
    assert!(run(&large).unwrap_err().contains("at most 256"));
    // The same kernel as text.
    let program = json!({"text": text, "grid": [2, 1, 1], "block": [32, 1, 1], "args": args});
    assert_eq!(run(&program).unwrap()["outputs"], result["outputs"]);
    assert!(once(&json!({"op": "disassemble", "object": program::encode(b"hello")})).is_err());
}

#[test]
fn the_debugger_shows_user_defined_pseudocode() {
    let mut page = Playground::default();
    let mut program = kernel(ADD_ONE);
    program["semantics"] = json!("instruction V_ADD_NC_U32 { D0.u32 = S0.u32 + S1.u32 * 10U; }");
    send(&mut page, &json!({"op": "start", "program": program, "max_instructions": 10_000})).unwrap();
    let at = |line: &str| json!({"op": "command", "line": line, "view": {"lane": 3}});
    let state = send(&mut page, &at("step 5")).unwrap();
    let text = state["explain"].as_str().unwrap();
    assert!(text.contains("V_ADD_NC_U32 (changed)") && text.contains("= 1 + 3 * 10U"), "{text}");
    // Other instructions keep their built-in semantics.
    let state = send(&mut page, &at("step")).unwrap();
    assert!(state["explain"].as_str().unwrap().contains(".pcode:"), "{}", state["explain"]);
}

#[test]
fn scratch_is_of_the_selected_lane() {
    let mut page = Playground::default();
    let text = "---\nlocal = 4, 1, 1\nscratch = 16\n---\n  v_mov_b32 v1, 8\n  scratch_store_b32 v1, v0, off\n  s_endpgm\n";
    let start = json!({"op": "start", "program": {"text": text}, "max_instructions": 10_000});
    let state = send(&mut page, &start).unwrap();
    assert_eq!(state["scratch"], 16);
    send(&mut page, &json!({"op": "command", "line": "step 2", "view": {"lane": 3}})).unwrap();
    let memory = send(&mut page, &json!({"op": "memory", "name": "scratch"})).unwrap();
    assert_eq!(words(&memory), [0, 0, 3, 0]);
}

/// Runs a debugger far into an endless loop.
fn run_far(page: &mut Playground, steps: u64) {
    let program = kernel("  v_mov_b32 v1, 1\nloop:\n  v_add_nc_u32 v2, v1, v2\n  s_branch loop\n");
    send(page, &json!({"op": "start", "program": program, "max_instructions": 1_000_000_000_u64})).unwrap();
    let mut time = 0;
    while time < steps {
        let state = send(page, &json!({"op": "command", "line": "continue", "view": {}})).unwrap();
        time = state["time"].as_u64().unwrap();
    }
}

#[test]
fn a_long_search_is_cancelled() {
    let mut page = Playground::default();
    run_far(&mut page, 3_000_000);
    let before = send(&mut page, &json!({"op": "command", "view": {}})).unwrap();
    let written = |register: &str| json!({"op": "last-write", "wave": 0, "lane": 3, "register": register});
    assert_eq!(send(&mut page, &written("v1")).unwrap()["unknown"], true);
    assert!(send(&mut page, &written("v2")).unwrap()["time"].is_u64());
    // The request has not changed the time.
    assert_eq!(send(&mut page, &json!({"op": "command", "view": {}})).unwrap()["time"], before["time"]);
}

/// Answers a request while another thread sets `stop`. Also returns the time from then to the answer.
fn interrupted(
    mut page: Playground,
    stop: &AtomicBool,
    request: Value,
) -> (Result<Value, String>, std::time::Duration) {
    use std::sync::atomic::Ordering::Relaxed;
    std::thread::scope(|scope| {
        let stopper = scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(400));
            stop.store(true, Relaxed);
            std::time::Instant::now()
        });
        let answer = send(&mut page, &request);
        let end = std::time::Instant::now();
        let stopped = stopper.join().unwrap();
        (answer, end.saturating_duration_since(stopped))
    })
}

/// An interrupt takes effect within a single instruction whose pseudocode takes long in every lane.
#[test]
fn an_interrupt_ends_an_instruction_that_is_evaluated() {
    let flag = Arc::new(AtomicBool::new(false));
    let mut program = kernel("loop:\n  v_add_nc_u32 v2, 1, v2\n  s_branch loop\n");
    program["text"] = json!(program["text"].as_str().unwrap().replace("local = 4", "local = 1024"));
    program["semantics"] = json!(
        "instruction V_ADD_NC_U32 {\n  declare x : 32'U;\n  x = 0U;\n  for i in 0 : 900000 do\n    x = x + 1U;\n  endfor\n  D0.u32 = x;\n}"
    );
    let request = json!({"op": "run", "program": program, "max_instructions": 1_000_000_000_u64});
    let (answer, took) = interrupted(Playground::with_interrupt(flag.clone()), &flag, request);
    assert_eq!(answer.unwrap()["fault"]["kind"], "interrupted");
    assert!(took < std::time::Duration::from_secs(5), "{took:?}");
}

#[test]
fn an_interrupt_ends_a_search_back() {
    let flag = Arc::new(AtomicBool::new(false));
    let mut page = Playground::with_interrupt(flag.clone());
    run_far(&mut page, 2_000_000);
    // The flag is set from the start of the search on: the duration of the search depends on the host.
    flag.store(true, std::sync::atomic::Ordering::Relaxed);
    let answer = send(&mut page, &json!({"op": "command", "line": "last-write v1", "view": {}})).unwrap();
    assert!(answer["failed"].as_str().unwrap_or_default().contains("interrupted"), "{answer}");
}

/// A compiler without a compiler.
#[derive(Debug)]
struct Fixed;

impl Compiler for Fixed {
    fn compilers(&self, arch: Arch) -> Vec<(String, String)> {
        vec![("fixed".to_string(), format!("1.0 for {}", arch.name()))]
    }

    fn compile(&self, source: &SourceCode, _: Arch, _: &AtomicBool) -> Result<Compiled, String> {
        let bad = source.text.contains("bad");
        let log = if bad { "kernel.cl:1:13: error: no\n" } else { "" };
        Ok(Compiled { object: (!bad).then(|| compiled("neighbours.gfx1100.co")), log: log.to_string() })
    }
}

/// A code object with debug information.
fn compiled(name: &str) -> Vec<u8> {
    let path = format!("{}/../../tests/filetests/check/objects/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).unwrap()
}

#[test]
fn source_code_needs_a_compiler() {
    let source = json!({"language": "opencl", "text": "kernel void bad() {}"});
    let refused = once(&json!({"op": "compile", "source": source})).unwrap_err();
    assert!(refused.contains("wavesim serve"), "{refused}");
    assert_eq!(once(&json!({"op": "compilers"})).unwrap(), json!({"available": false, "compilers": []}));
    let mut page = Playground::default().with_compiler(Arc::new(Fixed));
    let listed = send(&mut page, &json!({"op": "compilers", "arch": "rdna4"})).unwrap();
    assert_eq!(listed["compilers"], json!([{"name": "fixed", "version": "1.0 for rdna4"}]));
    let answer = send(&mut page, &json!({"op": "compile", "source": source})).unwrap();
    assert!(answer["object"].is_null() && answer["disassembly"].is_null(), "{answer}");
    assert_eq!(underlined("kernel void bad() {}", &answer["diagnostics"][0]), "bad");
}

#[test]
fn instructions_are_linked_to_lines_of_the_source() {
    let bytes = compiled("neighbours.gfx1100.co");
    let shown = disassemble::code(&bytes, None, Some("neighbours.cl")).unwrap();
    let rows = shown["rows"].as_array().unwrap();
    // The arguments have the types of the source; it has no names of them.
    let texts: Vec<_> = shown["kernels"][0]["args"].as_array().unwrap().iter().map(|a| &a["text"]).collect();
    let suggested: Vec<_> =
        shown["kernels"][0]["args"].as_array().unwrap().iter().map(|a| &a["suggestion"]).collect();
    assert_eq!(texts, ["float*", "float*"]);
    assert_eq!(suggested, ["arg0: f32[64]", "arg1: f32[64]"]);
    assert_eq!(rows.len(), shown["listing"].as_str().unwrap().lines().count());
    let line = |address: u64| rows.iter().find(|row| row[0] == json!(address)).unwrap()[1].clone();
    assert_eq!((line(0x1640), line(0x1648)), (json!(3), json!(5)));
    let other = disassemble::code(&bytes, None, Some("bours.cl")).unwrap();
    assert!(other["rows"].as_array().unwrap().iter().all(|row| row[1].is_null()));
    // Findings, too, are in lines of the source.
    let mut page = Playground::default().with_compiler(Arc::new(Fixed));
    let source = json!({"language": "opencl", "text": ""});
    let object = send(&mut page, &json!({"op": "compile", "source": source})).unwrap()["object"].clone();
    let mut program = json!({"name": "kernel.cl", "object": object, "source": "neighbours.cl", "args": ["x: f32[8]", "out_y: f32[8]"]});
    let lines = |program: &Value| -> Vec<Value> {
        let request =
            json!({"op": "run", "program": program, "max_instructions": 10_000, "statistics": true});
        let answer = once(&request).unwrap();
        answer["statistics"]["lines"].as_array().unwrap().iter().map(|row| row[0].clone()).collect()
    };
    assert_eq!(lines(&program), [3, 5, 9, 10, 11]);
    program["source"] = json!("other.cl");
    assert_eq!(lines(&program), [0u32; 0]);
}

/// Sessions of the command whose kernel is text without options: the page's debugger answers the same.
#[test]
fn commands_are_those_of_the_command_line() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sessions = 0;
    for entry in std::fs::read_dir(root.join("tests/filetests/debug")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "txt") {
            continue;
        }
        let script = std::fs::read_to_string(&path).unwrap();
        let name = script.lines().next().unwrap().strip_prefix("# args: ").unwrap();
        if !name.ends_with(".rdna") || name.contains(' ') {
            continue;
        }
        let text = std::fs::read_to_string(root.join(name)).unwrap();
        let mut page = Playground::default();
        let program = json!({"name": name, "text": text});
        let start = json!({"op": "start", "program": program, "max_instructions": 1_000_000_000_u64});
        send(&mut page, &start).unwrap();
        let mut shown = String::new();
        for line in script.lines() {
            shown += &format!("(wavesim) {line}\n");
            // The page repeats a command that has been paused.
            loop {
                let state = send(&mut page, &json!({"op": "command", "line": line, "view": {}})).unwrap();
                if state["paused"] == true {
                    continue;
                }
                match state["failed"].as_str() {
                    Some(message) => shown += &format!("error: {message}\n"),
                    None => shown += state["text"].as_str().unwrap_or_default(),
                }
                break;
            }
        }
        let expected = std::fs::read_to_string(path.with_extension("expected")).unwrap();
        // The command also prints the first position and its exit status.
        let expected: Vec<&str> = expected.lines().collect();
        let shown: Vec<&str> = shown.lines().collect();
        assert_eq!(shown, expected[1..expected.len() - 1], "{}", path.display());
        sessions += 1;
    }
    assert!(sessions > 10, "{sessions}");
}
