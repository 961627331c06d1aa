//! HIP programs, compiled by clang and run with this library in place of ROCm's. With ROCm's headers and
//! device libraries (`WAVESIM_ROCM_PATH`, `WAVESIM_DEVICE_LIBS`: see `docs/hip.md`), all programs run.
//! Without them, only programs that work with the tests' own small header run. Without clang, the objects in
//! `prebuilt`, which `cargo xtask test-hip --prebuild` generates, are linked instead.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use wavesim_clang::Clang;
use wavesim_golden::page;

/// A compiled program, and the directory of the library.
struct Program {
    path: PathBuf,
    library: PathBuf,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

fn succeed(command: &mut Command) {
    let output = run(command);
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// The variables that name HIP's headers and the device libraries.
const HEADERS: &str = "WAVESIM_ROCM_PATH, WAVESIM_DEVICE_LIBS";

/// Compiles a program for the default target.
fn compile(name: &str, needs_rocm: bool) -> Option<Program> {
    let clang = variable("WAVESIM_CLANG").unwrap_or_else(|| "clang-19".to_string());
    compile_for("gfx1100", &clang, name, needs_rocm)
}

/// Compiles a program for CDNA 5, with the small header.
fn compile_for_cdna5(name: &str) -> Option<Program> {
    match Clang::for_processor("gfx1250") {
        Ok(clang) => compile_for("gfx1250", clang.program(), name, false),
        Err(message) => {
            println!("skipped: {message}");
            None
        }
    }
}

/// Compiles a program: first the kernels, then the host code that embeds them, like clang does with a bundle.
/// If a tool is missing, prints the reason and returns `None`.
fn compile_for(processor: &str, clang: &str, name: &str, needs_rocm: bool) -> Option<Program> {
    // Device libraries may lack the latest processors; small programs do not need them.
    let rocm = variable("WAVESIM_ROCM_PATH").zip(variable("WAVESIM_DEVICE_LIBS"));
    let rocm = rocm.filter(|_| processor == "gfx1100");
    let compiles = Command::new(clang).arg("--version").output().is_ok() && (!needs_rocm || rocm.is_some());
    let prebuilt = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/prebuilt/{name}.o"));
    let links = cfg!(target_arch = "x86_64")
        && prebuilt.is_file()
        && Command::new("c++").arg("--version").output().is_ok();
    if !compiles && !links {
        println!("skipped: no {clang}, or no headers of HIP and device libraries ({HEADERS})");
        return None;
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let source = tests.join(format!("{name}.hip"));
    // Tests run concurrently, also in several processes, so each one has a directory of its own.
    static FOLDERS: AtomicU32 = AtomicU32::new(0);
    let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{number}-{}", std::process::id()));
    let library = folder.join("lib");
    std::fs::create_dir_all(&library).unwrap();
    // Cargo places the library next to the test executable.
    let built = std::env::current_exe().unwrap();
    let built = built.parent().unwrap().join("libamdhip64.so");
    let versions = ["libamdhip64.so", "libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7"];
    for version in versions.into_iter().chain(["libhiprtc.so"]) {
        let link = library.join(version);
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(&built, link).unwrap();
    }
    let (code, object, path) = (folder.join("kernels.co"), folder.join("host.o"), folder.join(name));
    let link = |object: &Path| {
        succeed(
            Command::new("c++").arg(object).arg("-L").arg(&library).arg("-lamdhip64").arg("-o").arg(&path),
        );
    };
    if !compiles {
        link(&prebuilt);
        return Some(Program { path, library });
    }
    let base = || {
        let mut command = Command::new(clang);
        command.arg(format!("--offload-arch={processor}"));
        command.args(["-x", "hip", "-O2", "-g1", "-Wno-unused-result", "-std=c++17", "-fdeclspec"]);
        match &rocm {
            Some((headers, libraries)) => {
                command
                    .arg(format!("--rocm-path={headers}"))
                    .arg(format!("--rocm-device-lib-path={libraries}"));
            }
            None => {
                command.args(["-nogpuinc", "-nogpulib", "-include"]).arg(tests.join("small_hip.h"));
            }
        }
        command
    };
    let kernels = ["--cuda-device-only", "--no-gpu-bundle-output"];
    succeed(base().args(kernels).arg(&source).arg("-o").arg(&code));
    let embedded = ["--cuda-host-only", "-c", "-Xclang", "-fcuda-include-gpubinary", "-Xclang"];
    succeed(base().args(embedded).arg(&code).arg(&source).arg("-o").arg(&object));
    link(&object);
    Some(Program { path, library })
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.path.parent().map(std::fs::remove_dir_all);
    }
}

impl Program {
    fn output(&self, environment: &[(&str, &str)]) -> Output {
        let mut command = Command::new(&self.path);
        command.env("LD_LIBRARY_PATH", &self.library).envs(environment.iter().copied());
        run(&mut command)
    }

    fn run(&self, environment: &[(&str, &str)]) -> (String, String) {
        let output = self.output(environment);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    }
}

#[test]
fn vectors_are_added() {
    let Some(program) = compile("vector_add", false) else { return };
    let (out, errors) = program.run(&[]);
    assert_eq!(out, "wavesim gfx1100, no error: c[1] = 2.5, c[999] = 1000.5\n", "{errors}");
    assert_eq!(errors, "");
}

#[test]
fn the_page_shows_what_is_printed() {
    let (Some(add), Some(wrong)) = (compile("vector_add", false), compile("wrong", false)) else { return };
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = own.join("../../docs/hip.md");
    page::shows(&page, "wavesim gfx1100, no error", &add.run(&[]).0).unwrap();
    // The page's program was compiled in the folder of the crate.
    let errors = wrong.run(&[]).1.replace(&format!("{}/", own.display()), "");
    page::shows(&page, "wavesim: out-of-bounds", &errors).unwrap();
}

/// Kernels call functions of other code objects by their addresses.
#[test]
fn kernels_call_functions_of_other_modules() {
    let Some(program) = compile("callbacks", false) else { return };
    let other = program.path.with_file_name("kernels.co");
    for (engine, check) in [("interpreter", ""), ("jit", ""), ("auto", ""), ("interpreter", "all")] {
        let mut command = Command::new(&program.path);
        command.arg(&other).env("LD_LIBRARY_PATH", &program.library);
        let output = run(command.env("WAVESIM_ENGINE", engine).env("WAVESIM_CHECK", check));
        let (out, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let expected = "own and other functions: 0 wrong\nafter unloading: hipErrorLaunchFailure\n";
        assert_eq!(out, expected, "{engine} {check}: {errors}");
        let found = errors.contains("the program counter left the program");
        assert!(found && !errors.contains("launch 1\n"), "{engine} {check}: {errors}");
    }
}

#[test]
fn vectors_are_added_on_cdna5() {
    let Some(program) = compile_for_cdna5("vector_add") else { return };
    for check in ["", "all"] {
        let (out, errors) = program.run(&[("WAVESIM_TARGET", "gfx1250"), ("WAVESIM_CHECK", check)]);
        assert_eq!(out, "wavesim gfx1250, no error: c[1] = 2.5, c[999] = 1000.5\n", "{errors}");
        assert_eq!(errors, "");
    }
}

/// A tile of a matrix is copied by the tensor data mover, and added up by WMMA.
#[test]
fn tensors_are_copied_on_cdna5() {
    let Some(program) = compile_for_cdna5("tensor") else { return };
    for check in ["", "all"] {
        let (out, errors) = program.run(&[("WAVESIM_TARGET", "gfx1250"), ("WAVESIM_CHECK", check)]);
        assert_eq!(out, "wrong sums: 0 of 256, sum[0] = 2928, sum[255] = 4203\n", "{errors}");
        assert_eq!(errors, "");
    }
}

/// Two clusters of four workgroups, by an attribute of the launch.
#[test]
fn clusters_meet_at_their_barrier() {
    let Some(program) = compile_for_cdna5("cluster") else { return };
    for check in ["", "all"] {
        let (out, errors) = program.run(&[("WAVESIM_TARGET", "gfx1250"), ("WAVESIM_CHECK", check)]);
        assert_eq!(out, "no error: 6 6 6 6 406 406 406 406\n", "{errors}");
        assert_eq!(errors, "");
    }
}

/// Two devices with their own memory, variables, streams and failures.
#[test]
fn several_devices_share_what_programs_enable() {
    let Some(program) = compile("devices", false) else { return };
    let expected = "\
2 devices, current 0, peers 1, device 1 at 0000:01:00.0
no device 7: hipErrorInvalidDevice
times 2 and 3: 60
an event of another device: hipErrorInvalidHandle
in turn on host memory: 120, the second stream is of device 1
enable: hipSuccess, again: hipErrorPeerAccessAlreadyEnabled
from the peer: hipSuccess
times 2: 120
disable: hipSuccess
without access: hipErrorIllegalAddress
on device 1: hipSuccess
box: hipSuccess, hipSuccess, 42 43 42 43 46 47 46 47 0 0 0 0 0 0 0 0 58 59 58 59 62 63 62 63, to device 7: hipErrorInvalidDevice
free: hipSuccess hipSuccess
";
    for check in ["", "all"] {
        let (out, errors) = program.run(&[("WAVESIM_DEVICES", "gfx1100*2"), ("WAVESIM_CHECK", check)]);
        // The check reports the loads in place of a fault.
        let without = if check.is_empty() { "hipErrorIllegalAddress" } else { "hipSuccess" };
        assert_eq!(out, expected.replace("hipErrorIllegalAddress", without), "{errors}");
        assert!(errors.contains("of device 1, to which device 0 has not enabled peer access"), "{errors}");
        assert!(errors.contains("devices.hip:25"), "{errors}");
    }
}

/// Managed variables of modules, statuses of the module API, and launches on two devices in one call.
#[test]
fn modules_have_managed_variables_and_devices_launch_together() {
    let Some(program) = compile("modules", true) else { return };
    let (out, errors) = program.run(&[("WAVESIM_DEVICES", "gfx1100*2")]);
    let expected = "\
compile 0
counter 5, 4 bytes
seen 7, counter 9, number 2.5
managed 1
one handle: 1 1
refused: hipErrorInvalidValue hipErrorInvalidValue hipErrorInvalidValue hipErrorInvalidValue hipErrorInvalidValue
items: hipSuccess, seen 9, hipSuccess hipErrorInvalidValue
70000 workgroups: hipSuccess, seen 9
version 110
variables: hipErrorInvalidValue hipErrorInvalidValue hipErrorNotFound
unload: hipSuccess hipErrorNotFound hipErrorInvalidHandle, load: hipErrorInvalidValue
managed 0
grids: hipSuccess, sums 66560 66560
of two shapes: hipErrorInvalidValue
kernels: hipSuccess, stored 3 3 4 0
refused: hipErrorInvalidValue hipErrorInvalidValue hipErrorInvalidValue hipErrorInvalidDevice hipErrorInvalidHandle
";
    assert_eq!(out, expected, "{errors}");
}

/// Handles of memory and events, between two processes.
#[test]
fn processes_share_memory_and_events() {
    let Some(program) = compile("processes", false) else { return };
    let (out, errors) = program.run(&[]);
    let expected = "\
parent: hipSuccess hipSuccess
parent: a local event: hipErrorInvalidValue
parent: its own handle: hipErrorInvalidContext
child: hipSuccess hipSuccess
child: 1050
child: hipSuccess, again hipErrorInvalidValue
parent: 1050
";
    assert_eq!(out, expected, "{errors}");
}

#[test]
fn invalid_uses_are_api_errors() {
    let Some(program) = compile("wrong", false) else { return };
    let (out, errors) = program.run(&[]);
    let expected = "\
copy beyond the end: hipErrorInvalidValue
copy to the host's memory: hipErrorInvalidValue
too many work-items: hipErrorInvalidConfiguration
no workgroups: hipErrorInvalidConfiguration
stale stream: hipErrorContextIsDestroyed
unknown function: hipErrorInvalidDeviceFunction
another process: hipErrorInvalidValue
beyond the allocation: hipErrorIllegalAddress
after that: hipErrorIllegalAddress
reset: hipSuccess
free: hipSuccess
free twice: hipErrorInvalidValue
freed memory: hipErrorIllegalAddress
";
    assert_eq!(out, expected, "{errors}");
    for part in [
        "only 160 are left in the allocation",
        "is not device memory",
        "hipIpcCloseMemHandle: the memory was not opened by hipIpcOpenMemHandle",
        "kernel `fill(int*, int)`, launch 1",
        "wrong.hip:10",
        "it has been freed already",
        "use after free",
    ] {
        assert!(errors.contains(part), "no `{part}` in\n{errors}");
    }
}

#[test]
fn textures() {
    let Some(program) = compile("textures", true) else { return };
    let (out, errors) = program.run(&[]);
    let expected = "\
fetch 0 0.2 0.4 1 1 0 0 0 0.2 0.2 0.2 0.2
pitched 0.25 1.25 2.25 3 4.25 5.25 6.25 7
one 0 1 2 3 4 5 5 5
two 0.75 0.75 1.75 2.75 4.75 4.75 5.75 6.75
narrow 4
wide 1.28571
part 5 6
ints 998 2996 5006 -6992
three 0 1 2 3 4 5 6 7 8 9 10 11
layered 4 5 6 7 12 13 14 15 20 21 22 23 24 25 26 27
layer 12 13 14 15
levels 10 15 20 25 30
smaller 20 25 30 30 30
cubes 0 3 6 11 14 17 23 24 27 30 35 38 41 47
surface 1 51 102 100 0 0 0 100 52 51 51 101 2 2 3 101
nearest 0 1 2 3 4 5 6 7
filtered 0.25 1.25 2.25 3 4.25 5.25 6.25 7
changed 0 1 2 3 4 5 6 7
rows 0 1 2 3 4 5 6 7
line 0 0.2 0.4 1 0
bound 1 1 0 hipErrorInvalidValue
unbound hipErrorInvalidValue
own 1
fetch 0 0.2 0.4 1 1 0 0 0 0.2 0.2 0.2 0.2
fetch 0 0.2 0.4 1 1 0 0 0 0.2 0.2 0.2 0.2
flags 2
info 8 1 2 2 2
freed hipErrorContextIsDestroyed
beyond hipErrorInvalidValue
linear hipErrorInvalidValue
channels hipErrorInvalidValue
";
    assert_eq!(out, expected, "{errors}");
}

/// Memory of `hipMalloc` is undefined until a launch or the host has written it, byte by byte.
#[test]
fn undefined_memory_is_reported_across_launches() {
    let Some(program) = compile("undefined", false) else { return };
    let errors = |arguments: &[&str]| {
        let mut command = Command::new(&program.path);
        command.args(arguments).env("LD_LIBRARY_PATH", &program.library).env("WAVESIM_CHECK", "all");
        let output = run(&mut command);
        assert_eq!(output.stdout, b"hipSuccess\n");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let found = errors(&[]);
    assert!(
        found.contains("mem: v1 is used in lane 31, but the bytes it was loaded from were never written"),
        "{found}"
    );
    assert!(found.contains("undefined.hip:10") && found.contains("launch 2"), "{found}");
    assert_eq!(errors(&["all"]), "");
}

#[test]
fn checks_name_the_line() {
    let Some(program) = compile("wrong", false) else { return };
    let (_, errors) = program.run(&[("WAVESIM_CHECK", "all")]);
    assert!(errors.contains("wrong.hip:10") && errors.contains("hipMalloc"), "{errors}");
}

/// `WAVESIM_EXPLORE` reports a kernel whose result depends on the order, and leaves the program as it is.
#[test]
fn schedules_are_explored() {
    let Some(program) = compile("order", false) else { return };
    let (explore, status) = (("WAVESIM_EXPLORE", "50"), ("WAVESIM_ERROR_EXITCODE", "86"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let output = program.output(&[explore, status]);
    let errors = text(&output.stderr);
    assert_eq!((output.status.code(), &*text(&output.stdout)), (Some(86), "2 0\n"), "{errors}");
    let expected =
        "the result depends on the order of waves, or on delays of memory operations, as in schedule";
    assert!(errors.contains(expected) && errors.contains("last"), "{errors}");
    let output = program.output(&[explore, status, ("CLEAN", "1")]);
    assert_eq!((output.status.code(), &*text(&output.stdout)), (Some(0), "1 2\n"));
    assert!(!text(&output.stderr).contains("depends on the order"));
}

#[test]
fn findings_set_the_exit_status() {
    let (check, status) = (("WAVESIM_CHECK", "all"), ("WAVESIM_ERROR_EXITCODE", "86"));
    let Some(program) = compile("wrong", false) else { return };
    assert_eq!(program.output(&[check]).status.code(), Some(0));
    let output = program.output(&[check, status]);
    assert_eq!(output.status.code(), Some(86));
    // The program's buffered output is not lost.
    assert!(String::from_utf8_lossy(&output.stdout).contains("freed memory: "));
    // A fault sets the status too. A program without findings and faults keeps its own status.
    assert_eq!(program.output(&[status]).status.code(), Some(86));
    let Some(program) = compile("vector_add", false) else { return };
    assert_eq!(program.output(&[check, status]).status.code(), Some(0));
}

#[test]
fn target_errors_name_the_alternatives() {
    let Some(program) = compile("vector_add", false) else { return };
    let (_, errors) = program.run(&[("WAVESIM_TARGET", "gfx1201")]);
    // A bare code object has an architecture; bundles, as in the prebuilt objects, name targets.
    let names = [["rdna3", "rdna4"], ["gfx1100", "gfx1201"]];
    assert!(names.iter().any(|pair| pair.iter().all(|name| errors.contains(name))), "{errors}");
    let (_, errors) = program.run(&[("WAVESIM_TARGET", "gfx9999")]);
    // Every call fails for the same reason, which is reported once.
    assert_eq!(errors.matches("`gfx9999` is not a target").count(), 1, "{errors}");
}

#[test]
fn features() {
    let Some(program) = compile("features", true) else { return };
    let (out, errors) = program.run(&[]);
    let mut talk = String::new();
    for block in 0..2 {
        for thread in [1, 33] {
            let quarter = thread as f64 / 4.0;
            talk += &format!("block {block}, thread {thread:3}: text {quarter:.2} x %\n");
        }
    }
    let expected = format!(
        "\
reduce 12497500
variables 768 8 9
atomics 319 299 {} 250
{talk}lists: 0 wrong
streams 6 5005 time
graph 9 3
grid 512 512
product: 0 wrong
bodies: balanced
",
        (0..5000u64).map(|i| i % 251).sum::<u64>()
    );
    // Waves may print in any order.
    let sorted = |text: &str| {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines.join("\n")
    };
    assert_eq!(sorted(&out), sorted(&expected), "{errors}");
}

#[test]
fn kernels_are_compiled_at_run_time() {
    let Some(program) = compile("rtc", true) else { return };
    let (out, errors) = program.run(&[]);
    let expected = "\
create 0
too early 9
load 0
function _Z5scaleIfEvPT_i 0
variable offset 0 4
launch 0
x[63] = 127.5
name 10
late 8
destroy 0 4
wrong: HIPRTC_ERROR_COMPILATION, wrong.hip:1:34: error: use of undeclared identifier 'y'
code 4
option 5
link 0
part 0 4 0 0 0
part 0 4 0 0 0
kind 3
no bitcode 3
file 2
complete 0
load 0
function _Z3addILi3EEvPi 0
x[31] = 65
destroy 0 3
";
    assert_eq!(out, expected, "{errors}");
}

#[test]
fn functions_are_found_by_name() {
    let Some(program) = compile("symbols", false) else { return };
    let (out, errors) = program.run(&[]);
    let expected = "\
hipGetDeviceCount: 0 0, 1 device
hipNothing: 500 1, nothing
flags: 1
properties: another function before 6.0
stream of the thread: another function
";
    assert_eq!(out, expected, "{errors}");
}

#[test]
fn algorithms_of_hipcub() {
    let headers = |rocm: String| Path::new(&rocm).join("include/hipcub/hipcub.hpp").is_file();
    if !variable("WAVESIM_ROCM_PATH").is_some_and(headers) {
        println!("skipped: no headers of hipCUB in WAVESIM_ROCM_PATH");
        return;
    }
    let Some(program) = compile("cub", true) else { return };
    let (out, errors) = program.run(&[]);
    let names = ["reduce", "scan", "scans of workgroups", "select", "partition", "radix sort"];
    let expected: String = names.map(|name| format!("{name}: as the host\n")).concat();
    assert_eq!(out, expected, "{errors}");
}

/// Repeats all tests of this binary with compiled code, on hosts with AVX2.
#[test]
#[cfg(target_arch = "x86_64")]
fn all_pass_with_compiled_code() {
    if std::is_x86_feature_detected!("avx2") {
        wavesim_golden::run_again("WAVESIM_ENGINE", "jit");
    }
}

/// A launch is debugged while the program waits: it is stopped, its memory is read and changed, it goes back, and
/// the program gets the results.
#[test]
fn a_launch_is_debugged() {
    let Some(program) = compile("vector_add", false) else { return };
    let commands = program.path.with_file_name("commands.txt");
    let script = "\
backtrace
until s_endpgm
p arg2[0].f32
continue
p arg2[990].f32
last-write arg2[990]
p arg2[990].f32
continue
set arg2[1].f32 = 42
quit
";
    std::fs::write(&commands, script).unwrap();
    let commands = commands.to_str().unwrap();
    let debug = |launch| [("WAVESIM_DEBUG", launch), ("WAVESIM_DEBUG_COMMANDS", commands)];
    let (out, errors) = program.run(&debug("add:1"));
    assert_eq!(out, "wavesim gfx1100, no error: c[1] = 42, c[999] = 1000.5\n", "{errors}");
    for part in [
        "launch 1 of `_Z3addPKfS0_Pfi`\n[step 0] workgroup (0,0,0) wave 0: ",
        "#0  ",
        "arg2[0].f32 = 1.5\n",
        "arg2[990].f32 = 991.5\n",
        "arg2[990].f32 = 0.0\n",
    ] {
        assert!(errors.contains(part), "no `{part}` in\n{errors}");
    }
    // Other launches run as usual.
    let (out, errors) = program.run(&debug("add:2"));
    assert_eq!(out, "wavesim gfx1100, no error: c[1] = 2.5, c[999] = 1000.5\n", "{errors}");
    // The program says at its end that there was no such launch.
    let launches = "1 of `add(float const*, float const*, float*, int)`";
    assert_eq!(errors, format!("wavesim: WAVESIM_DEBUG=add:2: no such launch; there were {launches}\n"));
}

/// An editor attaches to a launch of the program, with the token that the program has printed.
#[test]
fn an_editor_attaches_to_a_launch() {
    let Some(program) = compile("vector_add", false) else { return };
    let mut command = Command::new(&program.path);
    command.env("LD_LIBRARY_PATH", &program.library);
    command.envs([("WAVESIM_DEBUG", "add"), ("WAVESIM_DEBUG_LISTEN", "0")]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    let (address, token) = line
        .split_once(" on ")
        .and_then(|(_, rest)| rest.split_once(' '))
        .and_then(|(place, _)| place.split_once('/'))
        .unwrap_or_else(|| panic!("{line}"));
    let mut stream = BufReader::new(TcpStream::connect(address).unwrap());
    let mut seq = 0;
    // Sends a request, and returns the messages up to the response or, with an event, up to it.
    let mut request = |command: &str, arguments: &str, until: &str| {
        seq += 1;
        let body =
            format!(r#"{{"seq":{seq},"type":"request","command":"{command}","arguments":{arguments}}}"#);
        let message = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        stream.get_mut().write_all(message.as_bytes()).unwrap();
        let mut all = String::new();
        while !all.contains(until) {
            let mut header = String::new();
            stream.read_line(&mut header).unwrap();
            let len: usize = header.trim().rsplit(' ').next().unwrap().parse().unwrap();
            let mut bytes = vec![0; 2 + len];
            stream.read_exact(&mut bytes).unwrap();
            all.push_str(std::str::from_utf8(&bytes[2..]).unwrap());
            all.push('\n');
        }
        all
    };
    let response = r#""type":"response""#;
    request("initialize", "{}", response);
    let refused = request("attach", r#"{"token":"0"}"#, response);
    assert!(refused.contains(r#""success":false"#), "{refused}");
    request("attach", &format!(r#"{{"token":"{token}"}}"#), "initialized");
    let stopped = request("configurationDone", "{}", r#""event":"stopped""#);
    assert!(stopped.contains(r#""reason":"entry""#), "{stopped}");
    let frames = request("stackTrace", r#"{"threadId":1}"#, "stackFrames");
    assert!(frames.contains("vector_add.hip"), "{frames}");
    let set = r#"{"expression":"set v0 = 0","context":"repl"}"#;
    request("evaluate", set, response);
    request("disconnect", "{}", response);
    drop(stream);
    let out = child.wait_with_output().unwrap().stdout;
    // All lanes of the first wave have added the first elements.
    assert_eq!(String::from_utf8_lossy(&out), "wavesim gfx1100, no error: c[1] = 0, c[999] = 1000.5\n");
}
