//! Measures how long large functions take to compile. The figures are printed, not asserted.

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

mod common;

use common::host;
use std::time::Instant;
use wavesim_x64::inst::{Cc, Inst, Int2, Size, V, Width};
use wavesim_x64::{Code, CompileError, Function, compile};

/// Builds a function of about `count` instructions, with loops; most values are short-lived, some long-lived.
fn large(count: usize) -> (Function, usize) {
    let mut f = Function::new(2);
    let base = f.param(0);
    let ones: Vec<V> = (0..24).map(|n| f.vconst([n; 8])).collect();
    let mut made = 24;
    while made < count {
        let label = f.label();
        f.push(Inst::Label(label));
        for n in 0..40 {
            let at = 32 * (n & 15);
            let (x, y) = (f.vload(base, at, true), f.vload(base, at + 1024, false));
            let p = f.rvm(Code::VEX_Vpaddd_ymm_ymm_ymmm256, x, y, None);
            let q = f.rvm(Code::VEX_Vmulps_ymm_ymm_ymmm256, p, ones[n as usize % 24], None);
            let r = f.fma(false, p, q, x);
            let s = f.rm(Code::VEX_Vpslld_ymm_ymm_imm8, r, Some(3));
            f.vstore(base, at, s);
            let i = f.load(Size::B8, base, at);
            let j = f.int2(Int2::And, Width::W64, i, 0xff);
            let k = f.int2(Int2::Shl, Width::W64, j, i);
            f.store(Size::B8, base, at, k);
            made += 11;
        }
        let i = f.load(Size::B4, base, 0);
        f.branch(Cc::Eq, Width::W32, i, 12345, label);
        made += 3;
    }
    f.push(Inst::Return { v: 0.into() });
    (f, made)
}

#[test]
fn time_per_instruction() {
    let Some(host) = host() else { return };
    for count in [1_000, 10_000, 50_000, 200_000] {
        let (f, made) = large(count);
        let code = match compile(&f, &host) {
            Ok(code) => code,
            // On aarch64, constants and the targets of conditional branches are at most 1 MiB away.
            Err(CompileError::TooFar(bytes)) if cfg!(target_arch = "aarch64") && bytes > 1 << 20 => {
                println!("{made} instructions: {bytes} bytes are too many for this host");
                continue;
            }
            Err(error) => panic!("{made} instructions: {error}"),
        };
        let rounds = 3;
        let start = Instant::now();
        for _ in 0..rounds {
            std::hint::black_box(compile(&f, &host).expect("compiles"));
        }
        let nanoseconds = start.elapsed().as_nanos() as usize / rounds;
        println!(
            "{made} instructions: {} us, {} ns each, {} bytes",
            nanoseconds / 1000,
            nanoseconds / made,
            code.bytes().len()
        );
        assert!(code.bytes().len() > made);
    }
}
