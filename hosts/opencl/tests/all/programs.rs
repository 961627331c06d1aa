//! C programs that use the system's `libOpenCL`, which loads this library through an `.icd` file. Requires a
//! C compiler, `libOpenCL` with its headers, and clang with libclc or ROCm's device libraries
//! (`docs/opencl.md`).
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use wavesim_clang::{Clang, Libraries};
use wavesim_golden::page;

/// A compiled program, and the directory of the `.icd` file.
struct Program {
    path: PathBuf,
    vendors: PathBuf,
}

/// Compiles a program. If a requirement is missing, prints the reason and returns `None`.
fn compile(name: &str, test: &str) -> Option<Program> {
    let clang = Clang::for_processor("gfx1100");
    if !clang.is_ok_and(|clang| Libraries::find(&clang).is_some()) {
        println!("skipped: no clang, or neither libclc nor the device libraries of ROCm");
        return None;
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    // Tests run concurrently, also in several processes, so each one has a directory of its own.
    let own = format!("opencl-{test}-{}", std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(own);
    let vendors = folder.join("vendors");
    std::fs::create_dir_all(&vendors).unwrap();
    // Cargo places the library next to the test executable.
    let built = std::env::current_exe().unwrap().with_file_name("libwavesim_opencl.so");
    std::fs::write(vendors.join("wavesim.icd"), format!("{}\n", built.display())).unwrap();
    let path = folder.join(name);
    let source = tests.join(format!("{name}.c"));
    let compiled = Command::new("cc").arg(source).arg("-lOpenCL").arg("-o").arg(&path).output();
    match compiled {
        Ok(output) if output.status.success() => Some(Program { path, vendors }),
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            // A missing requirement is not a failure of the test; any other compiler error is.
            assert!(errors.contains("CL/cl.h") || errors.contains("-lOpenCL"), "{errors}");
            println!("skipped: no libOpenCL with its headers");
            None
        }
        Err(e) => {
            println!("skipped: no C compiler: {e}");
            None
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.path.parent().map(std::fs::remove_dir_all);
    }
}

impl Program {
    fn output(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        let mut command = Command::new(&self.path);
        command.args(arguments).env("OCL_ICD_VENDORS", &self.vendors).envs(environment.iter().copied());
        command.output().unwrap()
    }

    fn run(&self, arguments: &[&str], environment: &[(&str, &str)]) -> (String, String) {
        let output = self.output(arguments, environment);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    }
}

#[test]
fn vectors_are_added() {
    let Some(program) = compile("vector_add", "add") else { return };
    let expected = |target: &str| format!("wavesim {target}: c[1] = 2.5, c[999] = 1000.5\n");
    let (out, errors) = program.run(&[], &[]);
    assert_eq!(out, expected("gfx1100"), "{errors}");
    assert_eq!(errors, "");
    let (out, errors) = program.run(&[], &[("WAVESIM_TARGET", "gfx1201")]);
    assert_eq!(out, expected("gfx1201"), "{errors}");
}

#[test]
fn the_page_shows_what_is_printed() {
    let Some(program) = compile("vector_add", "page") else { return };
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/opencl.md");
    page::shows(&page, "wavesim gfx1100: c[1]", &program.run(&[], &[]).0).unwrap();
    let (out, errors) = program.run(&["wrong"], &[]);
    page::shows(&page, "wavesim: out-of-bounds", &(errors + &out)).unwrap();
    page::shows(&page, "wavesim: mem", &program.run(&["wrong"], &[("WAVESIM_CHECK", "all")]).1).unwrap();
}

/// With an LLVM that knows the processor: another one than the default compiler.
#[test]
fn vectors_are_added_on_cdna5() {
    match Clang::for_processor("gfx1250") {
        Err(message) => return println!("skipped: {message}"),
        Ok(clang) if Libraries::find(&clang).is_none() => return println!("skipped: no libclc of LLVM 22"),
        Ok(_) => {}
    }
    let Some(program) = compile("vector_add", "cdna5") else { return };
    for check in ["", "all"] {
        let (out, errors) = program.run(&[], &[("WAVESIM_TARGET", "gfx1250"), ("WAVESIM_CHECK", check)]);
        assert_eq!(out, "wavesim gfx1250: c[1] = 2.5, c[999] = 1000.5\n", "{errors}");
        assert_eq!(errors, "");
    }
}

#[test]
fn faults_return_a_status_and_report_their_line() {
    let Some(program) = compile("vector_add", "fault") else { return };
    let (out, errors) = program.run(&["wrong"], &[]);
    assert_eq!(out, "wavesim gfx1100: status -5\n", "{errors}");
    for part in ["out-of-bounds: load of 4 bytes", "program.cl:3", "kernel `add`, launch 1", "clCreateBuffer"]
    {
        assert!(errors.contains(part), "no `{part}` in\n{errors}");
    }
    let status = ("WAVESIM_ERROR_EXITCODE", "86");
    assert_eq!(program.output(&["wrong"], &[status]).status.code(), Some(86));
}

#[test]
fn checks_name_the_line() {
    let Some(program) = compile("vector_add", "check") else { return };
    let (out, errors) = program.run(&["wrong"], &[("WAVESIM_CHECK", "all")]);
    assert!(out.contains("c[999] = 1000.5"), "{out}");
    assert!(errors.contains("mem: store of 4 bytes") && errors.contains("program.cl:3"), "{errors}");
    assert_eq!(program.run(&[], &[("WAVESIM_CHECK", "all")]).1, "");
}

/// Two devices share the memory of their context; others than the first are left out.
#[test]
fn devices_share_the_memory_of_a_context() {
    let Some(program) = compile("devices", "devices") else { return };
    let (out, errors) = program.run(&[], &[("WAVESIM_DEVICES", "gfx1100*2,gfx942")]);
    let expected = "\
2 devices, 2 in the context, different: 1, in another context: -33
binaries of equal size: 1
squares: 0, on its device: 1
twice: 0, on its device: 1
twice the square of 9: 162
";
    assert_eq!(out, expected, "{errors}");
    assert!(errors.contains("OpenCL lists only the devices of WAVESIM_DEVICES that are gfx1100"), "{errors}");
}

/// Events report the predicted times of a GPU, which are the same in every run; one line says so.
#[test]
fn events_report_predicted_times() {
    let Some(program) = compile("timed", "timed") else { return };
    let times = |device: &str| {
        let (out, errors) = program.run(&[], &[("WAVESIM_TIMING", device)]);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines.get(2), Some(&"2"), "{out}{errors}");
        assert_eq!(errors.matches("times are predicted for").count(), 1, "{errors}");
        let time = |line: &str| line.strip_prefix("1 ").and_then(|ns| ns.parse::<u64>().ok());
        let times = (time(lines[0]), time(lines[1]));
        let (Some(short), Some(long)) = times else { panic!("{out}") };
        (short, long)
    };
    let (short, long) = times("rx7900xtx");
    // 10,000 dependent multiply-adds take five clocks each, which are 20 us.
    assert!(short > 1000 && long > short + 18_000, "{short} {long}");
    assert_eq!(times("rx7900xtx"), (short, long));
    let (_, slower) = times("rx7900xtx,chip.clock=1150");
    assert!(slower > long + 18_000, "{slower} {long}");
    let (_, errors) = program.run(&[], &[("WAVESIM_TIMING", "rx7900xt")]);
    assert!(errors.contains("rx7900xtx") && errors.contains("WAVESIM_TIMING"), "{errors}");
    assert!(!program.run(&[], &[]).1.contains("predicted"));
}

/// A launch is stopped in the debugger: arguments by name, a changed result, and the program goes on.
#[test]
fn a_launch_is_debugged() {
    let Some(program) = compile("vector_add", "debug") else { return };
    let commands = program.vendors.with_file_name("commands.txt");
    let script = "\
p b[0..1]
tbreak 3
continue
bt
until s_endpgm
p c[1]
last-write c[1]
p c[1]
until s_endpgm
set c[1] = 42
";
    std::fs::write(&commands, script).unwrap();
    let debug = [("WAVESIM_DEBUG", "add:1"), ("WAVESIM_DEBUG_COMMANDS", commands.to_str().unwrap())];
    let (out, errors) = program.run(&[], &debug);
    for part in [
        "launch 1 of `add`",
        "b[0..1] =\n     0: 1.5 1.5\n",
        // The build has debug information, and the line is one of the program, not of a header.
        "#0  add(a@start = 0x",
        ") at program.cl:3\n",
        "c[1] = 2.5\n",
        "c[1] = 0.0\n",
    ] {
        assert!(errors.contains(part), "no `{part}` in\n{errors}");
    }
    assert_eq!(out, "wavesim gfx1100: c[1] = 42, c[999] = 1000.5\n", "{errors}");
}

#[test]
fn features() {
    let Some(program) = compile("features", "features") else { return };
    let (out, errors) = program.run(&[], &[]);
    let expected = "\
library 1, 20
kernels doubled;ids;sum;text
waits 1
sum 12497500, callback 7, time 1
ids 322 622 632
square 422 522 432 532
v = 1.0,2.5,-3.0,4.0, c = 5: text %
workgroup 8 4, argument c
shared 126
binary with 4 kernels
released buffer -52
released handle -38
argument -49 -51
workgroup -54
beyond -30
pipe -59
build -11, program.cl:1:43: error: use of undeclared identifier 'y'
";
    assert_eq!(out, expected, "{errors}");
    for part in [
        "argument 0 (`in`) of kernel `sum` is a memory object that was released",
        "kernel `sum` has 4 arguments, not 5",
        "clCreatePipe is not supported",
    ] {
        assert!(errors.contains(part), "no `{part}` in\n{errors}");
    }
}

#[test]
fn images() {
    let Some(program) = compile("images", "images") else { return };
    let expected = "\
support 1
formats 90 86 90 90 90 90 2
sizes 4 2 7 10 7 1, type 10d2, order 10b0
linear 60 255, repeated 120 255, border 0 0
levels 10 20 30 of 3
in buffer 4 4 260 260
pitch -65
mapped at 9, row 32, 8 8
image 1 1 1 1, 1 8 99 1
copied 8 99
beyond -30
formats -9 -10 -39
overlap -8
type -50
buffer -38, image -38
size -40
sampler -30
";
    for target in ["gfx1100", "gfx1151", "gfx1201"] {
        let (out, errors) = program.run(&[], &[("WAVESIM_TARGET", target)]);
        assert_eq!(out, expected, "{target}: {errors}");
    }
    for target in ["gfx942", "gfx1250"] {
        let (out, errors) = program.run(&[], &[("WAVESIM_TARGET", target)]);
        assert_eq!(out, "support 0\ncreate -59\n", "{target}: {errors}");
        assert!(errors.contains("the device has no images"), "{errors}");
    }
}

/// The example of `docs/images.md`.
#[test]
fn pictures_are_halved() {
    let Some(program) = compile("halve", "halve") else { return };
    let (out, errors) = program.run(&[], &[("WAVESIM_CHECK", "all")]);
    assert_eq!((out.as_str(), errors.as_str()), ("100 10\n0 65\n", ""));
}

/// Repeats all tests of this binary with compiled code, on hosts with AVX2.
#[test]
#[cfg(target_arch = "x86_64")]
fn all_pass_with_compiled_code() {
    if std::is_x86_feature_detected!("avx2") {
        wavesim_golden::run_again("WAVESIM_ENGINE", "jit");
    }
}
