//! What the host can do: upper bounds for the speed of the interpreter.

use wavesim_machine::state::LaneVec;

/// Rates of this host, one thread.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// Wave32 FMA instructions per second on a register file in the L1 cache.
    pub fma_l1_per_s: f64,
    /// Wave32 additions per second on the same register file.
    pub add_l1_per_s: f64,
    /// Bytes read and written per second by `y = a * x + y` on arrays larger than the caches.
    pub triad_bytes_per_s: f64,
}

macro_rules! row_loop {
    ($name:ident, $($feature:literal)?, |$a:ident, $b:ident, $c:ident| $value:expr) => {
        $(#[cfg_attr(target_arch = "x86_64", target_feature(enable = $feature))])?
        fn $name(file: &mut [LaneVec], rounds: usize) {
            for round in 0..rounds {
                // Sources and results move through 64 registers, so that they differ between instructions.
                let at = round * 4 & 63;
                let (x, y, z) = (file[at], file[at + 1], file[at + 2]);
                let out = &mut file[at + 3];
                for lane in 0..32 {
                    let ($a, $b, $c) =
                        (f32::from_bits(x.0[lane]), f32::from_bits(y.0[lane]), f32::from_bits(z.0[lane]));
                    out.0[lane] = ($value).to_bits();
                }
            }
        }
    };
}

row_loop!(fma_fast, "avx2,fma", |a, b, c| a.mul_add(b, c));
row_loop!(add_fast, "avx2,fma", |a, b, _c| a + b);
row_loop!(fma_base, , |a, b, c| a.mul_add(b, c));
row_loop!(add_base, , |a, b, _c| a + b);

/// Instructions per measured call.
const ROUNDS: usize = 1 << 16;

fn rate(mut run: impl FnMut(&mut [LaneVec], usize)) -> f64 {
    let mut file = vec![LaneVec([0x3f00_0000; 32]); 64];
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
    let fast = wavesim_engine::interp::host_is_fast();
    let pick = |is_fma: bool| {
        move |file: &mut [LaneVec], rounds: usize| match (fast, is_fma) {
            // SAFETY: the host has the features.
            (true, true) => unsafe { fma_fast(file, rounds) },
            // SAFETY: the host has the features.
            (true, false) => unsafe { add_fast(file, rounds) },
            (false, true) => fma_base(file, rounds),
            (false, false) => add_base(file, rounds),
        }
    };
    const TRIAD: usize = 4 << 20;
    let (x, mut y) = (vec![1.0f32; TRIAD], vec![2.0f32; TRIAD]);
    let triad = super::median(0.05, || {
        super::native::saxpy(0.5, &x, &mut y);
        std::hint::black_box(&mut y);
        Ok(())
    });
    Host {
        fma_l1_per_s: rate(pick(true)),
        add_l1_per_s: rate(pick(false)),
        triad_bytes_per_s: (3 * 4 * TRIAD) as f64 / triad.unwrap_or(f64::INFINITY),
    }
}
