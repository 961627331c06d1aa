//! Host instructions that workloads cost, counted by valgrind: figures without noise, for a guard against regressions.

use super::{BenchError, Prepared, Workload};
use std::path::Path;
use std::process::Command;
use wavesim_engine::interp::host_is_fast;
use wavesim_inspect::check::{Check, GUARD_BYTES};

/// Workloads whose counts are compared, unless others are named: arithmetic, scalars and branches, partial EXEC, memory and LDS.
pub const WATCHED: [&str; 7] = ["alu_f32", "salu", "divergent", "saxpy_b32", "copy_b128", "lds", "matmul"];

/// How far a count may be from the baseline, in percent.
pub const TOLERANCE: f64 = 3.0;

/// Why nothing was counted.
#[derive(Debug, thiserror::Error)]
pub enum CountError {
    #[error("valgrind is needed to count instructions: {0}")]
    NoValgrind(std::io::Error),
    #[error("valgrind counted nothing: {0}")]
    NoFigures(String),
}

/// What is counted, in the process under valgrind: one launch, with all checks or without. Gives its wave-instructions.
///
/// # Errors
/// A launch that fails, or computes something wrong.
pub fn launch(workload: &'static Workload, checked: bool) -> Result<u64, BenchError> {
    let prepared = Prepared::with_guard(workload, if checked { GUARD_BYTES } else { 0 })?;
    let instructions = counted_launch(&prepared, checked)?;
    (workload.check)(&prepared)?;
    Ok(instructions)
}

/// Valgrind counts from the entry of this function to its end: by name.
#[inline(never)]
fn counted_launch(prepared: &Prepared, checked: bool) -> Result<u64, BenchError> {
    let stats = if checked { prepared.checked(&Check::ALL)? } else { prepared.launch(1)? };
    Ok(stats.instructions)
}

/// Host instructions of a launch per wave-instruction, with all checks or without. `program` is this one: it is run under valgrind.
///
/// # Errors
/// No valgrind on the host, or none that understands its instructions.
pub fn count(program: &Path, workload: &Workload, checked: bool) -> Result<f64, CountError> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*counted_launch*"])
        .arg(program)
        .args(["bench", "--launch", workload.name])
        .args(checked.then_some("--checks"))
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

/// Counts that were recorded, and what they depend on.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// The compiler, and whether the host has vector instructions.
    pub made_by: String,
    pub counts: Vec<(String, f64)>,
}

impl Baseline {
    /// Of this compiler and host, without counts.
    pub fn here() -> Baseline {
        let output = Command::new("rustc").arg("--version").output();
        let rustc =
            output.map_or("rustc".to_string(), |o| String::from_utf8_lossy(&o.stdout).trim().to_string());
        let vectors = if host_is_fast() { "vectors" } else { "no vectors" };
        Baseline { made_by: format!("{rustc}, {}, {vectors}", std::env::consts::ARCH), counts: Vec::new() }
    }

    /// The first line says what made it, the others are a workload and its count.
    pub fn parse(text: &str) -> Baseline {
        let mut lines = text.lines();
        let made_by = lines.next().unwrap_or_default().to_string();
        let count = |line: &str| {
            let (name, count) = line.split_once(' ')?;
            Some((name.to_string(), count.trim().parse().ok()?))
        };
        Baseline { made_by, counts: lines.filter_map(count).collect() }
    }

    pub fn text(&self) -> String {
        let counts: String = self.counts.iter().map(|(name, count)| format!("{name} {count:.1}\n")).collect();
        format!("{}\n{counts}", self.made_by)
    }

    /// How far a count is from the recorded one, in percent; `None` if there is none.
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
        let plain = launch(salu, false).expect("a launch");
        assert!(plain > 100_000);
        assert_eq!(launch(salu, true).expect("a checked launch"), plain);
    }
}
