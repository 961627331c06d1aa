//! Garbage in registers, LDS and scratch at the start of a workgroup. Hardware leaves there what the workgroup before
//! has written; a kernel whose results depend on it is wrong.

use super::order::splitmix64;
use wavesim_isa::arch::Arch;
use wavesim_machine::state::wave::{M0, VCC_HI, VCC_LO};
use wavesim_machine::state::{LaneVec, VGPRS, Wave};

/// Garbage that is derived from a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Poison(pub u64);

/// A sequence of pseudorandom numbers.
struct Numbers(u64);

/// Distance of the states of two consecutive numbers.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Iterator for Numbers {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.0 = self.0.wrapping_add(STEP);
        Some(splitmix64(self.0))
    }
}

impl Poison {
    /// Returns the numbers for a part of a workgroup.
    fn numbers(self, [x, y, z]: [u32; 3], part: u64) -> Numbers {
        Numbers(splitmix64(self.0 ^ u64::from(x) ^ u64::from(y) << 20 ^ u64::from(z) << 40 ^ part << 56))
    }

    /// Fills LDS and scratch of a workgroup.
    pub(super) fn fill(self, workgroup: [u32; 3], lds: &mut [u8], scratch: &mut [u8]) {
        for (part, bytes) in (0..).zip([lds, scratch]) {
            let numbers = self.numbers(workgroup, part);
            for (chunk, number) in bytes.chunks_mut(8).zip(numbers) {
                chunk.copy_from_slice(&number.to_le_bytes()[..chunk.len()]);
            }
        }
    }

    /// Fills the registers of a wave that its kernel can name, before those with initial values are set: VGPRs and
    /// so many accumulation VGPRs that it declares, SGPRs, VCC and M0. `named`: the VGPRs that its instructions name, if they
    /// are known, in ascending order; others are left as they are.
    pub(super) fn fill_registers(
        self,
        arch: Arch,
        accumulation: u16,
        named: Option<&[u16]>,
        wave: &mut Wave,
    ) {
        let mut numbers = self.numbers(wave.workgroup, 2 + u64::from(wave.id));
        let last = u32::from(arch.facts().scalar_codes.last_sgpr());
        for code in (0..=last).chain([VCC_LO, VCC_HI, M0].map(|code| code as u32)) {
            wave.set_sgpr(code, numbers.next().unwrap_or_default() as u32);
        }
        let accumulation = if arch.facts().vgprs.accumulation { accumulation } else { 0 };
        let (vgprs, first) = (wave.vgpr_count(), VGPRS as u32);
        // A register has the same numbers, whichever others are filled.
        let words = 32 * wave.halves() as u64;
        let mut fill = |register: u32| {
            let index = match register {
                _ if register < vgprs => register,
                _ if (first..first + u32::from(accumulation)).contains(&register) => vgprs + register - first,
                _ => return,
            };
            let skipped = STEP.wrapping_mul(u64::from(index) * words);
            let mut own = Numbers(numbers.0.wrapping_add(skipped));
            for half in 0..wave.halves() {
                let word = |_| own.next().unwrap_or_default() as u32;
                wave.set_lane_vec(half, register as usize, LaneVec(std::array::from_fn(word)));
            }
        };
        match named {
            Some(named) => named.iter().for_each(|register| fill(u32::from(*register))),
            None => (0..vgprs).chain(first..first + u32::from(accumulation)).for_each(fill),
        }
    }
}
