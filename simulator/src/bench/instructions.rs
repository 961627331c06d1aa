//! Host instructions per wave-instruction of workloads, counted with Valgrind. The counts are free of noise
//! and therefore suitable for regression tests.

use super::{BenchError, Form, Prepared, Workload};
use std::path::Path;
use std::process::Command;
use wavesim_engine::interp::host_is_fast;
use wavesim_engine::sched::dispatch::RunStats;
use wavesim_inspect::check::{Check, GUARD_BYTES};

/// Workloads that are counted by default: arithmetic, scalars and branches, partial EXEC, memory and LDS.
pub const DEFAULT_COUNTED: [&str; 7] =
    ["alu_f32", "salu", "divergent", "saxpy_b32", "copy_b128", "lds", "matmul"];

/// The largest accepted difference from the baseline, in percent.
pub const TOLERANCE: f64 = 3.0;

/// The reason why nothing was counted.
#[derive(Debug, thiserror::Error)]
pub enum CountError {
    /// Valgrind cannot be run.
    #[error("valgrind is needed to count instructions: {0}")]
    NoValgrind(std::io::Error),
    /// Valgrind's output has no counts.
    #[error("valgrind counted nothing: {0}")]
    NoFigures(String),
}

/// The way in which a launch is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchMode {
    /// Interpreted.
    Plain,
    /// With all checks.
    Checked,
    /// With previously compiled code.
    Compiled,
}

/// Runs one launch in the process under Valgrind. Returns the number of wave-instructions.
///
/// # Errors
/// The launch fails or its result is wrong, or the build or the host does not support compiled code.
pub fn launch(workload: &'static Workload, form: Form, mode: LaunchMode) -> Result<u64, BenchError> {
    let prepared = Prepared::new(workload, form, if mode == LaunchMode::Checked { GUARD_BYTES } else { 0 })?;
    let counted = |run: &mut dyn FnMut() -> Result<RunStats, BenchError>| {
        toggle_collect();
        let stats = run();
        toggle_collect();
        stats
    };
    let stats = match mode {
        LaunchMode::Plain => counted(&mut || prepared.launch(1))?,
        LaunchMode::Checked => {
            // The analysis of the program is not part of the launch.
            let mut checker = prepared.checker(&Check::DEFAULT)?;
            counted(&mut || prepared.checked(&mut checker))?
        }
        #[cfg(feature = "jit")]
        LaunchMode::Compiled => {
            let code = wavesim_jit::Jit::new(&prepared.run.program)?;
            // A block is compiled when it has been interpreted some times, which may be in a later launch.
            loop {
                let before = code.stats().units;
                prepared.launch_compiled(1, &code)?;
                prepared.reset()?;
                if code.stats().units == before {
                    break;
                }
            }
            counted(&mut || prepared.launch_compiled(1, &code))?
        }
        #[cfg(not(feature = "jit"))]
        LaunchMode::Compiled => {
            let what = "this build has no compiled code".to_string();
            return Err(BenchError::Wrong { workload: workload.name, what });
        }
    };
    (workload.check)(&prepared)?;
    Ok(stats.instructions)
}

/// Makes Callgrind, or on aarch64 a plug-in of qemu, start or stop counting. No effect if the process does not run under it.
fn toggle_collect() {
    /// `CALLGRIND_TOGGLE_COLLECT` of Valgrind's `callgrind.h`: tool `CT`, request 2.
    const TOGGLE_COLLECT: usize = (b'C' as usize) << 24 | (b'T' as usize) << 16 | 2;
    let request = [TOGGLE_COLLECT, 0, 0, 0, 0, 0];
    // A client request, as described in Valgrind's manual, section "The Client Request mechanism", and its
    // `valgrind.h`.
    // SAFETY: outside of Valgrind the sequence has no effect: the rotations of RDI add up to two full turns,
    // and the exchange is of a register with itself; RDI is declared as clobbered, RBX keeps its value.
    // Valgrind recognises the sequence, reads the six words at RAX, which `request` provides for the duration
    // of the block, and writes only RDX, which is declared as an output.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") request.as_ptr(),
            inout("rdx") 0usize => _,
            inout("rdi") 0usize => _,
            options(nostack),
        );
    }
    // What scripts/qemu-count.c looks for: a move that no compiler emits.
    // SAFETY: a register is moved to itself.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("mov x21, x21", options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = request;
}

/// Returns the number of host instructions per wave-instruction of a launch. `program` is the path of this
/// program, which runs under Valgrind.
///
/// # Errors
/// The host has no Valgrind, or one that does not support the host's instructions, or is not an x86-64.
pub fn count(program: &Path, workload: &Workload, form: Form, mode: LaunchMode) -> Result<f64, CountError> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
        .arg(program)
        .args(["bench", "--launch", workload.name])
        .args(form.arguments())
        .args(match mode {
            LaunchMode::Plain => &[][..],
            LaunchMode::Checked => &["--checks"],
            LaunchMode::Compiled => &["--engine", "jit"],
        })
        .output()
        .map_err(CountError::NoValgrind)?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let number = |text: &str, label: &str| -> Option<f64> {
        text.lines().find_map(|line| line.split_once(label)?.1.split_whitespace().next()?.parse().ok())
    };
    match (number(&out, ""), number(&err, "Collected :")) {
        (Some(wave), Some(host)) if wave > 0.0 && host > wave => Ok(host / wave),
        _ => Err(CountError::NoFigures(err.trim().to_string())),
    }
}

/// Recorded counts, and the compiler and host on which they depend.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// The compiler, the host, and whether the host has AVX2.
    pub made_by: String,
    /// Workloads and their counts.
    pub counts: Vec<(String, f64)>,
}

impl Baseline {
    /// Creates an empty baseline for this compiler and host.
    pub fn for_this_host() -> Baseline {
        let output = Command::new("rustc").arg("--version").output();
        let rustc =
            output.map_or("rustc".to_string(), |o| String::from_utf8_lossy(&o.stdout).trim().to_string());
        let vectors = if host_is_fast() { "vectors" } else { "no vectors" };
        Baseline { made_by: format!("{rustc}, {}, {vectors}", std::env::consts::ARCH), counts: Vec::new() }
    }

    /// Parses a baseline: the first line is [`Baseline::made_by`]; each other line has a workload and its
    /// count.
    pub fn parse(text: &str) -> Baseline {
        let mut lines = text.lines();
        let made_by = lines.next().unwrap_or_default().to_string();
        let count = |line: &str| {
            let (name, count) = line.split_once(' ')?;
            Some((name.to_string(), count.trim().parse().ok()?))
        };
        Baseline { made_by, counts: lines.filter_map(count).collect() }
    }

    /// Returns the text that [`Baseline::parse`] parses.
    pub fn text(&self) -> String {
        let counts: String = self.counts.iter().map(|(name, count)| format!("{name} {count:.1}\n")).collect();
        format!("{}\n{counts}", self.made_by)
    }

    /// Returns the difference of a count from the recorded one, in percent; `None` if none is recorded.
    pub fn change(&self, name: &str, count: f64) -> Option<f64> {
        let (_, before) = self.counts.iter().find(|(n, _)| n == name)?;
        Some(100.0 * (count / before - 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_baseline_is_read_as_it_was_written() {
        let made = Baseline { made_by: "rustc 1".to_string(), counts: vec![("salu".to_string(), 54.5)] };
        assert_eq!(Baseline::parse(&made.text()), made);
        assert_eq!(made.change("salu", 109.0), Some(100.0));
        assert_eq!(made.change("other", 1.0), None);
    }

    #[test]
    fn a_launch_counts_its_wave_instructions() {
        let salu = super::super::WORKLOADS.iter().find(|w| w.name == "salu").expect("a workload");
        let plain = launch(salu, Form::Wave32, LaunchMode::Plain).expect("a launch");
        assert!(plain > 100_000);
        assert_eq!(launch(salu, Form::Wave64, LaunchMode::Plain).expect("a launch"), plain / 2);
        assert_eq!(launch(salu, Form::Wave32, LaunchMode::Checked).expect("a checked launch"), plain);
    }

    /// The same assembly: the results are those of the host, and as many instructions are executed.
    #[test]
    fn rdna4_and_cdna5_execute_the_same_workloads() {
        for name in ["lds", "saxpy_b32", "copy_b128"] {
            let workload = super::super::WORKLOADS.iter().find(|w| w.name == name).expect("a workload");
            let [rdna, cdna] = [Form::Rdna4, Form::Cdna5]
                .map(|form| launch(workload, form, LaunchMode::Plain).expect("a launch"));
            assert_eq!(rdna, cdna, "{name}");
        }
    }
}
