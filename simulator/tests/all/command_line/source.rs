//! Source files as input, which the installed clang compiles.

use super::{Ended, folder, refused, wavesim, workspace, write};

/// Runs a command on source files; `None` if the compiler or the functions of its languages are not installed.
fn compiled(args: &[&str]) -> Option<Ended> {
    let ended = wavesim(args);
    let missing = ["no compiler is installed", "device libraries are installed"];
    if missing.iter().any(|text| ended.err.contains(text)) {
        println!("skipped: {}", ended.err.trim_end());
        return None;
    }
    Some(ended)
}

const KERNELS: &str = "\
#ifndef STEP
#define STEP 1
#endif
kernel void add(global const int *x, global int *out_y, int n) {
  size_t i = get_global_id(0);
  if (i < n) out_y[i] = x[i] + STEP;
}
kernel void far(global int *out_y) { out_y[get_global_id(0)] = 1; }
kernel void lanes(global int *out_y) { out_y[0] = __builtin_amdgcn_wavefrontsize(); }
";

#[test]
fn opencl_c_runs() {
    let example = workspace("examples/axpy.cl");
    let launch = ["--grid=2", "--block=64", "--arg=x:f32[4]=arange(4)", "--arg=out_y:f32[4]=repeat(1)"];
    let rest = ["--arg=0.5", "--arg=4"];
    for arch in ["rdna3", "rdna4", "cdna3"] {
        let args = [&["run", &example, "--arch", arch][..], &launch, &rest].concat();
        let Some(ended) = compiled(&args) else { return };
        assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{arch}");
        assert_eq!(ended.out.trim_end(), "out_y: f32[4] =\n[1.  1.5 2.  2.5]", "{arch}");
    }
}

#[test]
fn definitions_options_and_kernels_are_selected() {
    let path = write(&folder("source_0"), "kernels.cl", KERNELS);
    let launch = ["--grid=1", "--block=4", "--arg=x:i32[4]=arange(4)", "--arg=out_y:i32[4]", "--arg=4"];
    let args = [&["run", &path, "--kernel", "add", "-D", "STEP=10", "--json"][..], &launch].concat();
    let Some(ended) = compiled(&args) else { return };
    assert!(ended.out.contains("10") && ended.out.contains("13"), "{}{}", ended.out, ended.err);
    let args = [&["run", &path, "--kernel", "add", "--clang=-DSTEP=20", "--json"][..], &launch].concat();
    let ended = wavesim(&args);
    assert!(ended.out.contains("20") && ended.out.contains("23"), "{}{}", ended.out, ended.err);
    for wave in ["32", "64"] {
        let args =
            ["run", &path, "--kernel=lanes", "--grid=1", "--block=1", "--arg=out_y:i32[1]", "--wave", wave];
        let ended = wavesim(&args);
        assert!(ended.code == 0 && ended.out.contains(wave), "{}{}", ended.out, ended.err);
    }
    refused(&["run", &path, "--grid=1", "--block=1"], &["select a kernel with --kernel: add, far, lanes"]);
    refused(
        &["run", &path, "--kernel=lanes", "--arch=cdna3", "--wave=32"],
        &["cdna3 has no waves of 32 lanes"],
    );
}

#[test]
fn errors_and_findings_name_the_line_of_the_source() {
    let path = write(&folder("source_1"), "wrong.cl", KERNELS.replace("+ STEP", "+ STEPS"));
    let args = ["run", &path, "--grid=1", "--block=1"];
    let Some(ended) = compiled(&args) else { return };
    assert_eq!(ended.code, 2);
    assert!(
        ended.err.contains("wrong.cl:6:32: error: use of undeclared identifier 'STEPS'"),
        "{}",
        ended.err
    );
    let path = write(&folder("source_2"), "far.cl", KERNELS);
    let launch = ["--kernel=far", "--grid=1", "--block=64", "--arg=out_y:i32[60]"];
    let ended = wavesim(&[&["check", &path][..], &launch].concat());
    assert_eq!(ended.code, 1, "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("far.cl:8"), "{}{}", ended.out, ended.err);
}

/// Of two waves, each prints one line and a vector; a name of the format string is not a format.
const PRINTS: &str = "\
kernel void k(global int *out_y) {
  int i = get_global_id(0);
  out_y[i] = 7;
  if (i % 32 == 5) printf(\"%s %3d: %.2f %v2d %%d\\n\", \"items\", i, i * 0.5f, (int2)(i, -i));
}
";

#[test]
fn what_a_kernel_prints_is_shown() {
    let path = write(&folder("source_3"), "prints.cl", PRINTS);
    let launch = ["--grid=1", "--block=64", "--arg=out_y:i32[64]"];
    let text = "items   5: 2.50 5,-5 %d\nitems  37: 18.50 37,-37 %d\n";
    for arch in ["rdna3", "rdna4", "cdna3"] {
        let Some(ended) = compiled(&[&["run", &path, "--arch", arch][..], &launch].concat()) else { return };
        assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{arch}");
        assert!(ended.out.starts_with(&format!("{text}out_y: i32[64] =\n[7 ")), "{arch}: {}", ended.out);
    }
    let ended = wavesim(&[&["check", &path][..], &launch].concat());
    assert!(
        ended.code == 0 && ended.out.starts_with(&format!("{text}clean: ")),
        "{}{}",
        ended.out,
        ended.err
    );
    // What programs read is alone on standard output.
    let ended = wavesim(&[&["run", &path, "--json"][..], &launch].concat());
    assert!(ended.out.starts_with("{\"schema\"") && ended.err == text, "{}{}", ended.out, ended.err);
    let ended = wavesim(&[&["check", &path, "--orders=3", "--json"][..], &launch].concat());
    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("", text));
}

/// HIP's `printf` asks the host while the kernel runs.
#[test]
fn what_a_hip_kernel_prints_is_shown() {
    let object = workspace("hosts/hip/tests/prebuilt/features.o");
    let launch = [&object, "--kernel=talk", "--grid=1", "--block=32"];
    let text = "block 0, thread   1: text 0.25 x %\n";
    let ended = wavesim(&[&["run"][..], &launch].concat());
    assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (0, text, ""));
    let ended = wavesim(&[&["check"][..], &launch].concat());
    assert!(
        ended.code == 0 && ended.out.starts_with(&format!("{text}clean: ")),
        "{}{}",
        ended.out,
        ended.err
    );
}

#[test]
fn the_printf_buffer_has_an_end() {
    let source = "kernel void k(global int *out_y) { for (int i = 0; i < 3000; i++) printf(\"%d\\n\", i); }";
    let path = write(&folder("source_4"), "prints_much.cl", source);
    let launch = ["--grid=1", "--block=64", "--arg=out_y:i32[1]"];
    let Some(ended) = compiled(&[&["run", &path][..], &launch].concat()) else { return };
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.err.contains("bytes of output exceed the buffer of 1048568 bytes"), "{}", ended.err);
    assert_eq!(ended.out.lines().filter(|line| line.parse::<u32>().is_ok()).count(), 1_048_568 / 8);
}

/// Clang would open files outside of the folder.
#[test]
fn source_files_are_refused_where_files_are_restricted() {
    let folder = folder("source_below");
    let path = write(&folder, "reads.cl", "#include \"/etc/passwd\"\n");
    let below = folder.display().to_string();
    for command in ["run", "check"] {
        let args = [command, &path, "--files-below", &below, "--grid=1", "--block=1"];
        refused(&args, &["reads.cl", "--files-below is not for source files"]);
        assert!(!wavesim(&args).err.contains("root:"));
    }
}

#[test]
fn other_languages_are_refused() {
    let path = write(&folder("source_4"), "kernel.cu", "__global__ void k() {}");
    refused(&["run", &path], &["this is source code", ".hip"]);
}
