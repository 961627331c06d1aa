//! Sets of registers.

use wavesim_isa::arch::facts::{Facts, HalfWrite};
use wavesim_machine::exec::effects::{Effects, File, Use};
use wavesim_machine::state::ALL_VGPRS;

/// A set of VGPRs and SGPRs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Registers {
    /// Accumulation VGPRs follow the others.
    vgprs: [u64; ALL_VGPRS / 64],
    /// Of those, the VGPRs of which only the low half, or only the high half, is in the set.
    only: [[u64; ALL_VGPRS / 64]; 2],
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
    pub fn of(effects: &Effects, facts: &Facts) -> Registers {
        let mut out = Registers::default();
        let all = Registers { vgprs: [u64::MAX; ALL_VGPRS / 64], sgprs: u128::MAX, ..Registers::default() };
        for used in &effects.reads {
            match used.relative {
                None => out.insert(used.file, used.first, used.count, used.bits),
                Some(_) => out = all,
            }
        }
        for used in &effects.writes {
            match used.relative {
                None => out.insert(used.file, used.first, used.count, touched_bits(effects, used, facts)),
                Some(_) => out = all,
            }
        }
        out
    }

    /// Returns the registers that an instruction without relative operands writes.
    pub fn written(effects: &Effects, facts: &Facts) -> Registers {
        let mut out = Registers::default();
        effects
            .writes
            .iter()
            .for_each(|w| out.insert(w.file, w.first, w.count, written_bits(effects, w, facts)));
        out
    }

    /// Returns the summary of the set.
    pub fn summary(&self) -> Summary {
        let vgprs = self.vgprs.iter().fold(0, |all, word| all | word);
        Summary { vgprs, sgprs: self.sgprs as u64 | (self.sgprs >> 64) as u64 }
    }

    /// Adds some bits of consecutive registers.
    pub fn insert(&mut self, file: File, start: u16, count: u16, bits: u32) {
        match file {
            File::Sgpr => self.sgprs |= consecutive(start, count),
            File::Vgpr => {
                for r in start..(start + count).min(ALL_VGPRS as u16) {
                    let bit = 1 << (r % 64);
                    let halves = [bits & 0xffff, bits >> 16].map(|half| if half == 0 { 0 } else { bit });
                    self.add((r / 64) as usize, halves);
                }
            }
            File::Scc => {}
        }
    }

    /// Adds the low and the high halves of VGPRs in a word of the set.
    fn add(&mut self, word: usize, [low, high]: [u64; 2]) {
        let all = self.vgprs[word];
        let (low, high) = (low | all & !self.only[1][word], high | all & !self.only[0][word]);
        self.vgprs[word] = low | high;
        (self.only[0][word], self.only[1][word]) = (low & !high, high & !low);
    }

    /// Adds all registers of another set.
    #[inline]
    pub fn join(&mut self, other: &Registers) {
        for word in 0..self.vgprs.len() {
            let all = other.vgprs[word];
            self.add(word, [all & !other.only[1][word], all & !other.only[0][word]]);
        }
        self.sgprs |= other.sgprs;
    }

    /// Returns whether the sets have a register in common.
    #[inline]
    pub fn intersects(&self, other: &Registers) -> bool {
        // A fold instead of a short-circuiting search avoids a branch per word.
        let vgprs = self.vgprs.iter().zip(&other.vgprs).fold(0, |all, (a, b)| all | a & b);
        self.sgprs & other.sgprs != 0 || vgprs != 0 && self.shares_half(other)
    }

    /// Returns whether the sets have a half of a VGPR in common.
    #[cold]
    fn shares_half(&self, other: &Registers) -> bool {
        let shared = |word: usize| {
            let apart = self.only[0][word] & other.only[1][word] | self.only[1][word] & other.only[0][word];
            self.vgprs[word] & other.vgprs[word] & !apart != 0
        };
        (0..self.vgprs.len()).any(shared)
    }
}

/// Returns the bits of each register that an instruction writes when it completes.
pub fn written_bits(effects: &Effects, used: &Use, facts: &Facts) -> u32 {
    let write = if effects.class.is_memory() { facts.half_writes.load } else { facts.half_writes.result };
    if write == HalfWrite::Register { u32::MAX } else { used.bits }
}

/// Returns the bits of each register to which nothing else may write at the time of an instruction's write:
/// also the other half if the instruction merges its result into the register.
pub fn touched_bits(effects: &Effects, used: &Use, facts: &Facts) -> u32 {
    let write = if effects.class.is_memory() { facts.half_writes.load } else { facts.half_writes.result };
    if write == HalfWrite::Half { used.bits } else { u32::MAX }
}

fn consecutive(start: u16, count: u16) -> u128 {
    let all = if count >= 128 { u128::MAX } else { (1 << count) - 1 };
    all << (start & 127)
}
