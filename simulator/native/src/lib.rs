//! The computations of the benchmarks' workloads on the host, as references for their results and run times;
//! and [`registers`], which measures the host itself. A crate of its own, because these loops are compiled
//! for speed and the command for size.
//!
//! Each computation is a plain loop, compiled once with AVX2 and FMA and once without.

/// Defines a function that runs its body with AVX2 and FMA if the host has them.
macro_rules! by_host {
    ($(#[$doc:meta])* $name:ident($($arg:ident : $ty:ty),*) $body:block) => {
        $(#[$doc])*
        pub fn $name($($arg: $ty),*) {
            #[inline(always)]
            fn body($($arg: $ty),*) $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn fast($($arg: $ty),*) {
                    body($($arg),*)
                }
                if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
                    // SAFETY: the host has AVX2 and FMA, as just detected.
                    return unsafe { fast($($arg),*) };
                }
            }
            body($($arg),*)
        }
    };
}

pub mod registers;

by_host! {
    /// `c = a * b`, `n` x `n`, row-major; added in the same order as in the kernel.
    matmul(a: &[f32], b: &[f32], c: &mut [f32], n: usize) {
        for (row, c) in c.chunks_exact_mut(n).enumerate() {
            c.fill(0.0);
            for (k, b) in b.chunks_exact(n).enumerate() {
                let a = a[row * n + k];
                for (c, b) in c.iter_mut().zip(b) {
                    *c = a.mul_add(*b, *c);
                }
            }
        }
    }
}

by_host! {
    /// One force evaluation. `pos` and `acc` have x, y, z and mass of each body.
    nbody(pos: &[f32], acc: &mut [f32]) {
        for (p, out) in pos.chunks_exact(4).zip(acc.chunks_exact_mut(4)) {
            let (mut x, mut y, mut z) = (0.0f32, 0.0f32, 0.0f32);
            for q in pos.chunks_exact(4) {
                let (dx, dy, dz) = (q[0] - p[0], q[1] - p[1], q[2] - p[2]);
                let d2 = dx.mul_add(dx, dy.mul_add(dy, dz.mul_add(dz, 0.01)));
                let inv = 1.0 / d2.sqrt();
                let s = q[3] * inv * inv * inv;
                x = dx.mul_add(s, x);
                y = dy.mul_add(s, y);
                z = dz.mul_add(s, z);
            }
            out.copy_from_slice(&[x, y, z, 0.0]);
        }
    }
}

by_host! {
    /// Iterations until escape, for a square of `2^log2w` pixels a side.
    mandelbrot(out: &mut [u32], log2w: u32, limit: u32, step: f32) {
        let width = 1usize << log2w;
        for (i, out) in out.iter_mut().enumerate() {
            let cx = ((i & (width - 1)) as f32).mul_add(step, -2.2);
            let cy = ((i >> log2w) as f32).mul_add(step, -1.5);
            let (mut x, mut y, mut k) = (0.0f32, 0.0f32, 0);
            while k < limit {
                let (x2, y2) = (x * x, y * y);
                if x2 + y2 > 4.0 {
                    break;
                }
                y = (2.0 * x).mul_add(y, cy);
                x = x2 - y2 + cx;
                k += 1;
            }
            *out = k;
        }
    }
}

by_host! {
    /// `y = a * x + y`.
    saxpy(a: f32, x: &[f32], y: &mut [f32]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y = a.mul_add(*x, *y);
        }
    }
}

by_host! {
    /// The light that reaches each of `width * width` pixels from spheres given by eight numbers: center,
    /// radius, emission, colour.
    pathtrace(out: &mut [f64], spheres: &[f64], width: u32) {
        for (i, out) in out.chunks_exact_mut(3).enumerate() {
            out.copy_from_slice(&light(i as u32, spheres, width));
        }
    }
}

/// Returns a pseudorandom number in [0, 1).
fn next(state: &mut u32) -> f64 {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    *state as f64 / (1u64 << 32) as f64
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn normal(v: [f64; 3]) -> [f64; 3] {
    let length = dot(v, v).sqrt();
    [v[0] / length, v[1] / length, v[2] / length]
}

/// The light along the path of pixel `i`.
fn light(i: u32, spheres: &[f64], width: u32) -> [f64; 3] {
    let mut state = i.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let scale = 1.0 / width as f64;
    let x = ((i % width) as f64 + next(&mut state)) * scale - 0.5;
    let y = ((i / width) as f64 + next(&mut state)) * scale - 0.5;
    let mut d = normal([x, y, 1.0]);
    let (mut o, mut light, mut weight) = ([0.0, 0.0, -3.0], [0.0; 3], [1.0; 3]);
    for _ in 0..6 {
        let (mut best, mut hit) = (1e30, None);
        for s in spheres.chunks_exact(8) {
            let to = [s[0] - o[0], s[1] - o[1], s[2] - o[2]];
            let along = dot(to, d);
            let squared = along * along - dot(to, to) + s[3] * s[3];
            if squared > 0.0 {
                let root = squared.sqrt();
                let t = if along - root < 1e-6 { along + root } else { along - root };
                if t > 1e-6 && t < best {
                    (best, hit) = (t, Some(s));
                }
            }
        }
        let Some(s) = hit else { break };
        for c in 0..3 {
            o[c] += d[c] * best;
            light[c] += weight[c] * s[4];
            weight[c] *= s[5 + c];
        }
        let mut n = [(o[0] - s[0]) / s[3], (o[1] - s[1]) / s[3], (o[2] - s[2]) / s[3]];
        if dot(n, d) > 0.0 {
            n = [-n[0], -n[1], -n[2]];
        }
        let (inside, square) = loop {
            let v: [f64; 3] = std::array::from_fn(|_| 2.0 * next(&mut state) - 1.0);
            let square = dot(v, v);
            if square < 1.0 {
                break (v, square);
            }
        };
        let length = square.sqrt();
        d = normal([n[0] + inside[0] / length, n[1] + inside[1] / length, n[2] + inside[2] / length]);
    }
    light
}

/// The result of `alu_f32` in work-item `gid`.
pub fn alu_f32(gid: u32, iters: u32) -> f32 {
    let base = (gid & 255) as f32 / 256.0;
    let mut a = [base, 1.0 + base, 0.5 + base, 2.0 + base];
    let (mut e, mut f, g) = (1.0 + a[1], 1.0 + a[2], 1.0 + a[3]);
    let mut m = [0.5 + e, 0.5 + f, 0.5 + g, 2.0 + a[1]];
    for _ in 0..2 * iters {
        for (a, m) in a.iter_mut().zip(&m) {
            *a = a.mul_add(0.25, *m);
        }
        m = [0.25 * a[0], 0.25 * a[1], 0.5 * a[2], 0.5 * a[3]];
        let n = [m[0] + 1.0, m[1] + 1.0, 1.0 + m[2], 0.5 + m[3]];
        e = n[0].mul_add(0.25, e);
        f = n[1].mul_add(0.25, f);
        e = e.mul_add(0.5, n[2]);
        f = f.mul_add(0.5, n[3]);
    }
    a[0] + a[1] + a[2] + a[3] + e + f
}

/// The result of `salu` in work-item `gid`.
pub fn salu(gid: u32, iters: u32) -> u32 {
    let (mut low, mut high, mut mix, mut sum) = (1u32, 0u32, 0x0123_4567u32, 0u32);
    for left in (1..=iters).rev() {
        let (next, carry) = low.overflowing_add(mix);
        low = next;
        high = high.wrapping_add(carry as u32);
        mix = (mix ^ low).rotate_left(3);
        if left & 1 == 1 {
            sum = sum.wrapping_add(high);
        }
    }
    sum.wrapping_add(mix).wrapping_add(gid)
}

/// The results of `lds` in the work-items of workgroup `group`.
pub fn lds(group: u32, iters: u32) -> Vec<u32> {
    let mut own: Vec<u32> = (0..256).map(|i| group * 256 + i + 1).collect();
    for _ in 0..iters {
        let shared = own.clone();
        for (i, v) in own.iter_mut().enumerate() {
            *v = v.wrapping_add(shared[(i + 32) & 255]) ^ 0x5a;
        }
    }
    own
}
