//! Sets of registers.

use wavesim_machine::exec::effects::{Effects, File};
use wavesim_machine::state::ALL_VGPRS;

/// A set of VGPRs and SGPRs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Registers {
    /// Accumulation VGPRs follow the others.
    vgprs: [u64; ALL_VGPRS / 64],
    sgprs: u128,
}

/// A set folded to one word per register file: if two summaries are disjoint, so are the sets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    vgprs: u64,
    sgprs: u64,
}

impl Summary {
    /// Returns whether the sets may have a register in common.
    #[inline(always)]
    pub fn intersects(self, other: Summary) -> bool {
        self.vgprs & other.vgprs | self.sgprs & other.sgprs != 0
    }

    /// Returns the summary of the union.
    #[inline(always)]
    pub fn union(self, other: Summary) -> Summary {
        Summary { vgprs: self.vgprs | other.vgprs, sgprs: self.sgprs | other.sgprs }
    }
}

impl Registers {
    /// Returns the registers that an instruction reads or writes. Relative addressing may reach any VGPR or
    /// SGPR.
    pub fn of(effects: &Effects) -> Registers {
        let mut out = Registers::default();
        for used in effects.reads.iter().chain(&effects.writes) {
            match used.relative {
                None => out.insert(used.file, used.first, used.count),
                Some(_) => out = Registers { vgprs: [u64::MAX; ALL_VGPRS / 64], sgprs: u128::MAX },
            }
        }
        out
    }

    /// Returns the registers that an instruction without relative operands writes.
    pub fn written(effects: &Effects) -> Registers {
        let mut out = Registers::default();
        effects.writes.iter().for_each(|w| out.insert(w.file, w.first, w.count));
        out
    }

    /// Returns the summary of the set.
    pub fn summary(&self) -> Summary {
        let vgprs = self.vgprs.iter().fold(0, |all, word| all | word);
        Summary { vgprs, sgprs: self.sgprs as u64 | (self.sgprs >> 64) as u64 }
    }

    /// Adds consecutive registers.
    pub fn insert(&mut self, file: File, start: u16, count: u16) {
        match file {
            File::Sgpr => self.sgprs |= bits(start, count),
            File::Vgpr => {
                for r in start..(start + count).min(ALL_VGPRS as u16) {
                    self.vgprs[(r / 64) as usize] |= 1 << (r % 64);
                }
            }
            File::Scc => {}
        }
    }

    /// Adds all registers of another set.
    #[inline]
    pub fn join(&mut self, other: &Registers) {
        for (a, b) in self.vgprs.iter_mut().zip(other.vgprs) {
            *a |= b;
        }
        self.sgprs |= other.sgprs;
    }

    /// Returns whether the sets have a register in common.
    #[inline]
    pub fn intersects(&self, other: &Registers) -> bool {
        // A fold instead of a short-circuiting search avoids a branch per word.
        let vgprs = self.vgprs.iter().zip(&other.vgprs).fold(0, |all, (a, b)| all | a & b);
        vgprs != 0 || self.sgprs & other.sgprs != 0
    }
}

fn bits(start: u16, count: u16) -> u128 {
    let all = if count >= 128 { u128::MAX } else { (1 << count) - 1 };
    all << (start & 127)
}
