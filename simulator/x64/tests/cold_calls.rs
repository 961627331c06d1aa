//! Cold calls.

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

mod common;

use common::abi::{called, clobber};
use common::{host, run};
use wavesim_x64::Function;
use wavesim_x64::inst::{Inst, Int2, Size, V, Width};

called! {
    /// Clobbers caller-saved registers.
    fn count(place: *mut u64) -> () {
        // SAFETY: the caller passes a valid pointer to its own variable.
        unsafe { *place += 1 };
        clobber();
    }
}

/// Values keep their registers across a cold call.
#[test]
fn cold_calls_preserve_registers() {
    if host().is_none() {
        return;
    }
    let mut f = Function::new(2);
    let values: Vec<V> = (0..20).map(|k| f.int2(Int2::Add, Width::W64, f.param(0), k)).collect();
    let vectors: Vec<V> = (0..20).map(|k| f.splat(true, values[k])).collect();
    for _ in 0..2 {
        f.push(Inst::ColdCall { function: count as *const () as u64, arg: f.param(1) });
    }
    let mut sum = f.load(Size::B8, f.param(1), 0);
    for (&v, &w) in values.iter().zip(&vectors) {
        let low = f.low_int(w);
        sum = f.int2(Int2::Add, Width::W64, sum, v);
        sum = f.int2(Int2::Mul, Width::W64, sum, 3);
        sum = f.int2(Int2::Add, Width::W64, sum, low);
    }
    f.push(Inst::Return { v: sum.into() });
    let mut place = 5u64;
    let made = run(&f, 100, &raw mut place as u64);
    let expected = (100..120).fold(7u64, |s, v| s.wrapping_add(v).wrapping_mul(3).wrapping_add(v));
    assert_eq!((made, place), (expected, 7));
}
