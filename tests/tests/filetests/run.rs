//! `run/x.rdna`: small programs with the state before and after, derived by hand from the manuals
//! (`wavesim_tests::cases`).

use crate::files;
use libtest_mimic::{Failed, Trial};
use std::path::Path;

pub fn trials() -> Vec<Trial> {
    files("run", "rdna", cases)
}

fn cases(path: &Path) -> Result<(), Failed> {
    wavesim_tests::cases::check(&std::fs::read_to_string(path)?)?;
    Ok(())
}
