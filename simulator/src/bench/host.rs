//! Measures the host: upper bounds for the speed of the interpreter.

use wavesim_native::registers::{self, LaneVec, REGISTERS};

/// Rates of one thread of this host.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// Wave32 FMA instructions per second on a register file in the L1 cache.
    pub fma_l1_per_s: f64,
    /// Wave32 additions per second on the same register file.
    pub add_l1_per_s: f64,
    /// Bytes read and written per second by `y = a * x + y` on arrays larger than the caches.
    pub triad_bytes_per_s: f64,
}

/// Instructions per measured call.
const ROUNDS: usize = 1 << 16;

fn rate(run: impl Fn(&mut [LaneVec], usize)) -> f64 {
    let mut file = vec![LaneVec([0x3f00_0000; 32]); REGISTERS];
    run(&mut file, ROUNDS);
    let seconds = super::median(0.05, || {
        run(&mut file, ROUNDS);
        std::hint::black_box(&mut file);
        Ok(())
    });
    ROUNDS as f64 / seconds.unwrap_or(f64::INFINITY)
}

/// Measures the host. Takes a fraction of a second.
pub fn measure() -> Host {
    const TRIAD: usize = 4 << 20;
    let (x, mut y) = (vec![1.0f32; TRIAD], vec![2.0f32; TRIAD]);
    let triad = super::median(0.05, || {
        wavesim_native::saxpy(0.5, &x, &mut y);
        std::hint::black_box(&mut y);
        Ok(())
    });
    Host {
        fma_l1_per_s: rate(registers::fma),
        add_l1_per_s: rate(registers::add),
        triad_bytes_per_s: (3 * 4 * TRIAD) as f64 / triad.unwrap_or(f64::INFINITY),
    }
}
