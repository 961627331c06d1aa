//! Straight-line code of simple instructions as one: what it needs to be defined, and what it then defines. The same for all waves.

use super::simple::Simple;
use super::{Registers, Shadow};
use wavesim_machine::exec::effects::File;
use wavesim_machine::state::{ALL_VGPRS, Wave};

/// Several instructions in a row.
#[derive(Default)]
pub struct Block {
    /// What is read and not written before, by operand code.
    reads: u128,
    reads_scc: bool,
    vgprs: [u64; ALL_VGPRS / 64],
    writes: u128,
    writes_scc: bool,
    written: Box<[u16]>,
}

impl Block {
    /// Of instructions that are all simple.
    pub(super) fn new<'s>(instructions: impl Iterator<Item = &'s Simple>) -> Block {
        let mut out = Block::default();
        let mut written = Vec::new();
        for simple in instructions {
            out.reads |= simple.reads & !out.writes;
            out.reads_scc |= simple.reads_scc && !out.writes_scc;
            for span in simple.vgprs.iter().filter(|span| !span.write) {
                for r in (span.first..span.end).filter(|r| !written.contains(r)) {
                    out.vgprs[r as usize / 64] |= 1 << (r % 64);
                }
            }
            out.writes |= simple.writes;
            out.writes_scc |= simple.writes_scc;
            for span in simple.vgprs.iter().filter(|span| span.write) {
                let new: Vec<u16> = (span.first..span.end).filter(|r| !written.contains(r)).collect();
                written.extend(new);
            }
        }
        out.written = written.into();
        out
    }
}

impl Shadow {
    /// Straight-line code as one, if all of it is simple.
    pub fn block(&self, first: usize, len: usize) -> Option<Block> {
        let simple = self.simple.get(first..first + len)?;
        simple.iter().all(Option::is_some).then(|| Block::new(simple.iter().flatten()))
    }

    /// As [`Shadow::prove`] of each instruction of a block, which begins at `first`: if all lanes are active and all that it reads is
    /// defined in all of them.
    pub fn prove_block(&mut self, wave: &Wave, first: usize, len: usize, block: &Block) -> Option<u64> {
        let Registers { defined, proven, .. } = &mut self.waves[wave.id as usize];
        let lanes = wave.full_mask();
        let ready = wave.exec() == lanes
            && defined.has_scalars(block.reads, block.reads_scc)
            && defined.has_vgprs(&block.vgprs);
        if !ready {
            return None;
        }
        defined.define_scalars(block.writes, block.writes_scc);
        block.written.iter().for_each(|r| defined.define(File::Vgpr, *r, lanes));
        proven.get_mut(first..first + len)?.fill(Some(lanes));
        Some(lanes)
    }
}
