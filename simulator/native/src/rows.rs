//! Instructions of 32 lanes on a register file in the L1 cache: a lower bound for interpreting such
//! instructions.

/// A register of 32 lanes.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct Row(pub [u32; 32]);

/// Registers of the file.
pub const ROWS: usize = 64;

#[inline(always)]
fn each(file: &mut [Row], rounds: usize, value: impl Fn(f32, f32, f32) -> f32) {
    for round in 0..rounds {
        // Sources and results move through the registers, so that they differ between instructions.
        let at = round * 4 % ROWS;
        let (x, y, z) = (file[at], file[at + 1], file[at + 2]);
        let out = &mut file[at + 3];
        for lane in 0..32 {
            // `map` of an array stays a call.
            let (a, b, c) = (f32::from_bits(x.0[lane]), f32::from_bits(y.0[lane]), f32::from_bits(z.0[lane]));
            out.0[lane] = value(a, b, c).to_bits();
        }
    }
}

by_host! {
    /// So many multiply-adds, on [`ROWS`] registers.
    fma(file: &mut [Row], rounds: usize) {
        each(file, rounds, |a, b, c| a.mul_add(b, c));
    }
}

by_host! {
    /// So many additions, on [`ROWS`] registers.
    add(file: &mut [Row], rounds: usize) {
        each(file, rounds, |a, b, _| a + b);
    }
}
