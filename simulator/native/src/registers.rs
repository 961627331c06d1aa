//! Instructions of 32 lanes on a register file in the L1 cache: a lower bound for interpreting such
//! instructions.

/// A register of 32 lanes.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct LaneVec(pub [u32; 32]);

/// Registers of the file.
pub const REGISTERS: usize = 64;

#[inline(always)]
fn each(file: &mut [LaneVec], rounds: usize, value: impl Fn(f32, f32, f32) -> f32) {
    for round in 0..rounds {
        // Sources and results rotate through the registers, so that consecutive instructions use different
        // ones.
        let at = round * 4 % REGISTERS;
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
    /// Runs `rounds` multiply-adds on [`REGISTERS`] registers.
    fma(file: &mut [LaneVec], rounds: usize) {
        each(file, rounds, |a, b, c| a.mul_add(b, c));
    }
}

by_host! {
    /// Runs `rounds` additions on [`REGISTERS`] registers.
    add(file: &mut [LaneVec], rounds: usize) {
        each(file, rounds, |a, b, _| a + b);
    }
}
