//! `cargo bench --bench instructions`: host instructions that workloads cost, counted by valgrind: figures without noise.
//!
//! With `-- --check` they are compared with `instructions.txt`, 3 % either way; `-- --bless` writes that file. The figures are a compiler's:
//! under another version of rustc the comparison is made and shown, and not held against anyone.

use std::process::{Command, ExitCode};
use wavesim::bench::{Prepared, WORKLOADS};

const WATCHED: [&str; 3] = ["alu_f32", "salu", "matmul"];
const BASELINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions.txt");
/// Percent.
const TOLERANCE: f64 = 3.0;

/// What is counted: one launch.
#[inline(never)]
fn counted_launch(prepared: &Prepared) -> u64 {
    prepared.launch(1).expect("a launch").instructions
}

/// In the process under valgrind.
fn launch(name: &str) {
    let workload = WORKLOADS.iter().find(|w| w.name == name).expect("a workload");
    let prepared = Prepared::new(workload).expect("a workload made ready");
    println!("wave-instructions: {}", counted_launch(&prepared));
    (workload.check)(&prepared).expect("the right result");
}

/// Host instructions of a launch per 1000 wave-instructions.
fn count(name: &str) -> Result<u64, String> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*counted_launch*"])
        .arg(own)
        .args(["--launch", name])
        .output()
        .map_err(|e| format!("valgrind: {e}"))?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let number = |text: &str, label: &str| -> Option<u64> {
        text.lines().find_map(|line| line.split_once(label)?.1.split_whitespace().next()?.parse().ok())
    };
    match (number(&out, "wave-instructions:"), number(&err, "Collected :")) {
        (Some(wave), Some(host)) if wave > 0 && host > wave => Ok(host * 1000 / wave),
        _ => Err(format!("{name}: no figures: {err}")),
    }
}

fn rustc() -> String {
    let output = Command::new("rustc").arg("--version").output();
    output.map_or("rustc".to_string(), |o| String::from_utf8_lossy(&o.stdout).trim().to_string())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = args.iter().position(|a| a == "--launch") {
        launch(&args[at + 1]);
        return ExitCode::SUCCESS;
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("valgrind is not installed: nothing counted");
        return ExitCode::SUCCESS;
    }
    let (check, bless) = (args.iter().any(|a| a == "--check"), args.iter().any(|a| a == "--bless"));
    let baseline = std::fs::read_to_string(BASELINE).unwrap_or_default();
    let same_compiler = baseline.lines().next() == Some(&rustc());
    let mut text = format!("{}\n", rustc());
    let mut wrong = 0;
    for name in WATCHED {
        let now = match count(name) {
            Ok(now) => now,
            Err(e) => {
                eprintln!("{e}");
                return ExitCode::FAILURE;
            }
        };
        text += &format!("{name} {now}\n");
        let before: Option<u64> =
            baseline.lines().find_map(|l| l.strip_prefix(name)?.trim_start().parse().ok());
        let change = before.map(|before| 100.0 * (now as f64 / before as f64 - 1.0));
        let change_text = change.map_or("new".to_string(), |c| format!("{c:+.1} %"));
        println!(
            "{name:<10} {:>8.1} host instructions per wave-instruction  {change_text}",
            now as f64 / 1000.0
        );
        wrong += change.is_none_or(|c| c.abs() > TOLERANCE) as u32;
    }
    if bless {
        if let Err(e) = std::fs::write(BASELINE, text) {
            eprintln!("{BASELINE}: {e}");
            return ExitCode::FAILURE;
        }
    } else if check && wrong > 0 && same_compiler {
        eprintln!("{wrong} of {} differ from {BASELINE} by more than {TOLERANCE} %", WATCHED.len());
        eprintln!("if that is meant: cargo bench --bench instructions -- --bless");
        return ExitCode::FAILURE;
    } else if check && !same_compiler {
        println!("the baseline is another compiler's: {}", baseline.lines().next().unwrap_or("none"));
    }
    ExitCode::SUCCESS
}
