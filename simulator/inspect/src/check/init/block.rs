//! Straight-line regions of simple instructions, summarised: the registers that must be defined at entry and
//! those that the region defines. A summary is the same for all waves.

use super::simple::Simple;
use super::{Shadow, WaveShadow};
use wavesim_machine::exec::effects::File;
use wavesim_machine::state::{ALL_VGPRS, Wave};

/// Summary of consecutive instructions.
#[derive(Default)]
pub struct Block {
    /// Scalar registers that are read before they are written, by operand code.
    reads: u128,
    reads_scc: bool,
    active: Vgprs,
    /// VGPRs that are accessed in all lanes, whatever EXEC is.
    all: Vgprs,
    writes: u128,
    writes_scc: bool,
}

/// VGPRs that a block reads before it writes them, and those that it writes.
#[derive(Default)]
struct Vgprs {
    read: [u64; ALL_VGPRS / 64],
    written: Vec<u16>,
}

impl Block {
    /// Summarises instructions that are all simple.
    pub(super) fn new<'s>(instructions: impl Iterator<Item = &'s Simple>) -> Block {
        let mut out = Block::default();
        for simple in instructions {
            out.reads |= simple.reads & !out.writes;
            out.reads_scc |= simple.reads_scc && !out.writes_scc;
            for span in simple.vgprs.iter().filter(|span| !span.write) {
                // What the block has written in the active lanes may be undefined in others.
                let Block { active, all, .. } = &mut out;
                for r in span.first..span.end {
                    if !all.written.contains(&r) && (span.all || !active.written.contains(&r)) {
                        let vgprs = if span.all { &mut *all } else { &mut *active };
                        vgprs.read[r as usize / 64] |= 1 << (r % 64);
                    }
                }
            }
            out.writes |= simple.writes;
            out.writes_scc |= simple.writes_scc;
            for span in simple.vgprs.iter().filter(|span| span.write) {
                let written = if span.all { &mut out.all.written } else { &mut out.active.written };
                let new: Vec<u16> = (span.first..span.end).filter(|r| !written.contains(r)).collect();
                written.extend(new);
            }
        }
        out
    }
}

impl Shadow {
    /// Returns the summary of straight-line code, if all of its instructions are simple.
    pub fn block(&self, first: usize, len: usize) -> Option<Block> {
        let simple = self.simple.get(first..first + len)?;
        simple.iter().all(Option::is_some).then(|| Block::new(simple.iter().flatten()))
    }

    /// Proves all instructions of a block that begins at `first`, as [`Shadow::prove`] would one by one.
    /// Succeeds if everything that the block reads is defined when it begins. Returns the lanes in which it is.
    pub fn prove_block(&mut self, wave: &Wave, first: usize, len: usize, block: &Block) -> Option<u64> {
        let WaveShadow { defined, proven, .. } = &mut self.waves[wave.id as usize];
        if !defined.has_scalars(block.reads, block.reads_scc) || !defined.has_vgprs(&block.all.read) {
            return None;
        }
        let mut lanes = defined.common_lanes(&block.active.read);
        if wave.exec() & !lanes != 0 {
            return None;
        }
        defined.define_scalars(block.writes, block.writes_scc);
        for r in &block.all.written {
            defined.define(File::Vgpr, *r, wave.full_mask());
        }
        for r in &block.active.written {
            defined.define(File::Vgpr, *r, wave.exec());
            lanes &= defined.lanes(*r);
        }
        (first..first + len).for_each(|index| proven.set(index, Some(lanes)));
        Some(lanes)
    }
}
