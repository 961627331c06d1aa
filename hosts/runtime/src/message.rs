//! What hosts say on standard error.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// A message on standard error.
pub fn complain(message: &str) {
    // Nobody may be listening.
    let _ = writeln!(std::io::stderr(), "wavesim: {message}");
}

/// Says, the first time, that a function is not supported. `list` is the command that lists what is.
pub fn unsupported(name: &'static str, list: &str) {
    static NAMED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    if NAMED.lock().unwrap_or_else(PoisonError::into_inner).insert(name) {
        complain(&format!("{name} is not supported (`{list}` lists what is)"));
    }
}
