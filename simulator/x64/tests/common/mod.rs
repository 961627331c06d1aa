//! Compiles and calls functions.

pub mod abi;
pub mod eval;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub mod graph;
pub mod meaning;
pub mod operations;

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
    // SAFETY: the entry is that of a function of two integers with the calling convention of compiled functions, whose
    // code lives in `memory`.
    let call: abi::Entry = unsafe { std::mem::transmute(entry) };
    call(a, b)
}

/// A generator of random numbers (SplitMix64).
#[allow(dead_code, reason = "not every test is random")]
pub struct Rng(pub u64);

#[allow(dead_code, reason = "not every test is random")]
impl Rng {
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.word() % end as u64) as usize
    }

    /// Returns true in one of `n` cases.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}
