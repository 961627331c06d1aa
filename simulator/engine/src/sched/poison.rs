//! Garbage in registers, LDS and scratch at the start of a workgroup. Hardware leaves there what the workgroup before
//! has written; a kernel whose results depend on it is wrong.

use super::order::splitmix64;
use wavesim_isa::arch::Arch;
use wavesim_machine::state::wave::{M0, VCC_HI, VCC_LO};
use wavesim_machine::state::{LaneVec, Wave};

/// Garbage that is derived from a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Poison(pub u64);

/// A sequence of pseudorandom numbers.
struct Numbers(u64);

impl Iterator for Numbers {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
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
    /// so many accumulation VGPRs that it declares, SGPRs, VCC and M0.
    pub(super) fn fill_registers(self, arch: Arch, accumulation: u16, wave: &mut Wave) {
        let mut numbers = self.numbers(wave.workgroup, 2 + u64::from(wave.id));
        let mut word = || numbers.next().unwrap_or_default() as u32;
        let last = u32::from(arch.facts().scalar_codes.last_sgpr());
        for code in (0..=last).chain([VCC_LO, VCC_HI, M0].map(|code| code as u32)) {
            wave.set_sgpr(code, word());
        }
        let accumulation = if arch.facts().vgprs.accumulation { accumulation } else { 0 };
        let first = wavesim_machine::state::VGPRS as u32;
        let vgprs = (0..wave.vgpr_count()).chain(first..first + u32::from(accumulation));
        for register in vgprs {
            for half in 0..wave.halves() {
                wave.set_lane_vec(half, register as usize, LaneVec(std::array::from_fn(|_| word())));
            }
        }
    }
}
