//! Cold calls.

#![cfg(target_arch = "x86_64")]

mod common;

use common::{host, run};
use wavesim_x64::Function;
use wavesim_x64::inst::{Inst, Int2, Size, V, Width};

/// Clobbers caller-saved registers.
extern "sysv64" fn clobber(place: *mut u64) {
    // SAFETY: the caller passes a valid pointer to its own variable; all clobbers are declared.
    unsafe {
        *place += 1;
        std::arch::asm!(
            "vpcmpeqd ymm0, ymm0, ymm0", "vpcmpeqd ymm1, ymm1, ymm1", "vpcmpeqd ymm7, ymm7, ymm7",
            "vpcmpeqd ymm13, ymm13, ymm13", "xor edx, edx", "xor esi, esi", "xor r8d, r8d", "xor r11d, r11d",
            out("ymm0") _, out("ymm1") _, out("ymm7") _, out("ymm13") _,
            out("rdx") _, out("rsi") _, out("r8") _, out("r11") _,
        );
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
        f.push(Inst::ColdCall { function: clobber as *const () as u64, arg: f.param(1) });
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
