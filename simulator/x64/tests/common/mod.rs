//! Compiles and calls functions.

use wavesim_x64::{Function, Host, Memory, compile};

/// Returns the host if it is supported. On other hosts, tests are skipped.
pub fn host() -> Option<Host> {
    match Host::detect() {
        Ok(host) => Some(host),
        Err(unsupported) => {
            eprintln!("skipped: {unsupported}");
            None
        }
    }
}

/// Runs a function of two integers.
#[allow(dead_code, reason = "not every test runs code")]
pub fn run(function: &Function, a: u64, b: u64) -> u64 {
    let host = host().expect("checked before");
    let mut memory = Memory::new();
    let code = compile(function, &host).expect("compiles");
    let entry = memory.add(code).expect("memory");
    // SAFETY: the entry is that of a function of two integers with the System V calling convention, whose
    // code lives in `memory`.
    let call: extern "sysv64" fn(u64, u64) -> u64 = unsafe { std::mem::transmute(entry) };
    call(a, b)
}
