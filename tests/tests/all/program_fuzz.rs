//! Random programs, compiled by clang for the host and for random targets, levels and wave sizes, executed by
//! all engines and compared bit by bit. `cargo xtask program-fuzz` runs more of them.
//!
//! `WAVESIM_FUZZ_PROGRAMS` sets the number of programs, and `WAVESIM_SEED` or `PROPTEST_RNG_SEED` the first seed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use wavesim_tests::progfuzz::{self, Reason, Settings, build};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn programs_compute_what_the_host_computes() {
    if !build::installed() {
        println!("skipped: {} is not installed", build::CLANG);
        return;
    }
    let programs = number("WAVESIM_FUZZ_PROGRAMS").unwrap_or(15);
    let seed = number("WAVESIM_SEED").or(number("PROPTEST_RNG_SEED")).unwrap_or(1);
    let (next, runs) = (AtomicU64::new(0), AtomicU64::new(0));
    let failures = Mutex::new(String::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let index @ 0.. = next.fetch_add(1, Ordering::Relaxed)
                    && index < programs
                {
                    let seed = seed.wrapping_add(index);
                    let outcome = progfuzz::fuzz(seed, &Settings { builds: 1, ..Settings::default() });
                    runs.fetch_add(outcome.runs, Ordering::Relaxed);
                    let mut text = String::new();
                    for failure in outcome.failures {
                        let differences: String =
                            failure.differences.iter().map(|d| format!("  {d}\n")).collect();
                        text += &format!("seed {seed}: {}\n{differences}", failure.configuration);
                    }
                    for reason in outcome.abandoned {
                        match reason {
                            Reason::TooLong | Reason::Compiler(_) => println!("seed {seed}: {reason}"),
                            Reason::Error(_) => text += &format!("seed {seed}: {reason}\n"),
                        }
                    }
                    failures.lock().expect("no panic").push_str(&text);
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no panic");
    assert!(
        failures.is_empty(),
        "{failures}`cargo xtask program-fuzz --seed SEED --programs 1 --keep DIR` reduces a program"
    );
    // Half of the programs may run for too long.
    assert!(runs.into_inner() >= 2 * programs, "too few programs were run");
}
