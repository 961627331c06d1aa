//! Simple instructions: those that require all sources to be defined and define all of their results. Nearly
//! all instructions are simple. Their reads and writes are known statically, so a straight-line region of
//! them can be proven in advance, for each wave, without observing their execution.

use super::definedness::Definedness;
use super::is_partial_write;
use wavesim_machine::exec::effects::{Class, Effects, File, Lanes, Use};
use wavesim_machine::state::wave::{EXEC_HI, EXEC_LO};
use wavesim_machine::state::{ALL_VGPRS, Wave};

/// The registers that a simple instruction reads and writes.
pub struct Simple {
    /// Scalar registers, by operand code. Vector instructions read EXEC.
    pub(super) reads: u128,
    pub(super) writes: u128,
    pub(super) reads_scc: bool,
    pub(super) writes_scc: bool,
    pub(super) vgprs: Box<[Span]>,
}

/// Consecutive VGPRs.
pub(super) struct Span {
    pub(super) first: u16,
    pub(super) end: u16,
    pub(super) write: bool,
    /// Whether all lanes are accessed, rather than the active ones.
    pub(super) all: bool,
}

/// Returns the summary of an instruction, if it is simple.
pub fn classify(effects: &Effects, wave_size: u32) -> Option<Simple> {
    let known = |used: &Use| {
        let lanes = used.file != File::Vgpr || matches!(used.lanes, Lanes::Active | Lanes::All);
        let end = used.first + used.count;
        let exists = match used.file {
            File::Sgpr => end <= 128,
            File::Vgpr => end as usize <= ALL_VGPRS,
            File::Scc => true,
        };
        used.relative.is_none() && lanes && exists
    };
    // Spills move undefined values, too.
    if effects.class == Class::Scratch
        || !effects.reads.iter().chain(&effects.writes).all(known)
        || effects.writes.iter().any(is_partial_write)
    {
        return None;
    }
    let mut out = Simple { reads: 0, writes: 0, reads_scc: false, writes_scc: false, vgprs: Box::default() };
    let mut vgprs = Vec::new();
    if effects.class.is_vector() {
        out.reads |= 1 << EXEC_LO;
        out.reads |= if wave_size == 64 { 1 << EXEC_HI } else { 0 };
    }
    for (used, write) in
        effects.reads.iter().map(|used| (used, false)).chain(effects.writes.iter().map(|used| (used, true)))
    {
        match (used.file, write) {
            (File::Sgpr, false) => out.reads |= codes(used),
            (File::Sgpr, true) => out.writes |= codes(used),
            (File::Scc, false) => out.reads_scc = true,
            (File::Scc, true) => out.writes_scc = true,
            (File::Vgpr, _) => {
                let (first, end) = (used.first, used.first + used.count);
                vgprs.push(Span { first, end, write, all: used.lanes == Lanes::All });
            }
        }
    }
    out.vgprs = vgprs.into();
    Some(out)
}

fn codes(used: &Use) -> u128 {
    let all = if used.count >= 128 { u128::MAX } else { (1 << used.count) - 1 };
    all << used.first
}

impl Simple {
    /// Defines the results of the instruction, which is about to run, if all of its sources are defined.
    /// Returns the lanes in which all registers that it uses are then defined.
    pub fn prove_and_define(&self, defined: &mut Definedness, wave: &Wave) -> Option<u64> {
        if !defined.has_scalars(self.reads, self.reads_scc) {
            return None;
        }
        let (exec, full) = (wave.exec(), wave.full_mask());
        let lanes = |span: &Span| if span.all { full } else { exec };
        for span in self.vgprs.iter().filter(|span| !span.write) {
            let lanes = lanes(span);
            if (span.first..span.end).any(|r| lanes & !defined.lanes(r) != 0) {
                return None;
            }
        }
        defined.define_scalars(self.writes, self.writes_scc);
        let mut proven = u64::MAX;
        for span in &self.vgprs {
            for r in span.first..span.end {
                if span.write {
                    defined.define(File::Vgpr, r, lanes(span));
                }
                if !span.all {
                    proven &= defined.lanes(r);
                }
            }
        }
        Some(proven)
    }
}
