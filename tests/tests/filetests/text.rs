//! Invalid and faulting text kernels.
//!
//! - `text/fail/x.rdna`: its diagnostics are `x.expected`;
//! - `text/fault/x.rdna`: its fault is reported as `x.expected`.

use crate::{expect, files};
use libtest_mimic::{Failed, Trial};
use std::path::Path;
use wavesim::arch::Arch;
use wavesim_tests::Setup;

pub fn trials() -> Vec<Trial> {
    [files("text/fail", "rdna", fail), files("text/fault", "rdna", fault)].into_iter().flatten().collect()
}

/// Returns the configuration for the architecture in the header.
fn as_written(source: &str) -> Setup {
    let arch = source.lines().find_map(|l| Arch::from_name(l.strip_prefix("arch = ")?));
    Setup { arch: arch.unwrap_or(Arch::Rdna3), ..Setup::default() }
}

fn fail(path: &Path) -> Result<(), Failed> {
    let source = std::fs::read_to_string(path)?;
    match wavesim_tests::parse(&source, &as_written(&source)) {
        Ok(_) => Err("there is no error in this file".into()),
        Err(report) => expect(path, &report),
    }
}

fn fault(path: &Path) -> Result<(), Failed> {
    let source = std::fs::read_to_string(path)?;
    match wavesim_tests::run(&source, &as_written(&source)) {
        Ok(_) => Err("this kernel does not fault".into()),
        Err(fault) => expect(path, &format!("{fault}\n")),
    }
}
