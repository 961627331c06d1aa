//! A run of vector instructions that have not been emitted yet.

use crate::arith::builder::{Bug, R};
use crate::arith::val::Val;
use crate::selected::{Scratch, Subword};
use crate::state::access::Access;
use crate::state::scalars::Scalars;
use crate::state::sequences::Sequence;
use isa_lower::ir::Lanes;
use isa_spec::tables::Role;
use std::collections::HashSet;
use std::sync::Arc;
use wavesim_machine::exec::op::{Ext, Op, Part};
use wavesim_x64::inst::V;

/// Vector instructions that have not been emitted yet.
#[derive(Default)]
pub struct Run {
    pub ops: Vec<RunOp>,
    /// The first operation, and the scalar values before it.
    pub start: Option<(u32, Scalars)>,
    /// Loads, then stores.
    pub accesses: Vec<Access>,
    /// Registers written by these and other instructions of the run.
    pub written: HashSet<u16>,
    /// The number of hidden registers in use for sources from other lanes.
    pub hidden_registers: usize,
    /// Mask registers that the run writes, by operand code.
    pub masks: Vec<usize>,
    /// The EXEC of all instructions.
    pub exec: Option<Val>,
}

/// An instruction with its uniform inputs.
pub struct RunOp {
    pub op_index: u32,
    /// The per-lane code, unless the instruction is an access.
    pub lanes: Option<Arc<Lanes>>,
    /// The number of registers that it writes, likewise.
    pub result_dwords: u16,
    pub sources: Sources,
    pub carry: Option<MaskSource>,
    /// The register with the mask of executing lanes, if it differs from EXEC.
    pub active: Option<u16>,
    /// The access, if the instruction loads or stores scratch.
    pub scratch: Option<ScratchAccess>,
    /// The access, if the instruction is another load or store.
    pub access: Option<MemoryOp>,
    /// The registers that it may read and that have not been stored to the wave: they are sequences.
    pub sequences: Vec<(u16, Sequence)>,
}

/// The memory accesses of an instruction.
pub struct MemoryOp {
    /// The index of its first access in the run.
    pub first: usize,
    /// The number of consecutive accesses.
    pub count: usize,
    /// EXEC.
    pub exec: V,
    /// The subword access, if it is one.
    pub subword: Option<Arc<Subword>>,
    /// The first data register of a store.
    pub store: Option<u16>,
    /// The number of registers that it loads or stores.
    pub registers: usize,
}

/// Sources by their roles.
pub type Sources = Vec<(Role, StagedSource)>;

/// A source, dword by dword.
pub struct StagedSource {
    /// The source's slot.
    pub slot: usize,
    pub words: Vec<LaneSource>,
    pub modified: Option<Modifiers>,
}

#[derive(Clone, Copy)]
pub enum LaneSource {
    Register(u16),
    One(Val),
}

/// The mask that lanes read their carry-in from.
pub enum MaskSource {
    /// A mask of the wave.
    Wave(Val),
    /// A mask register that an earlier instruction of the run writes.
    Run(usize),
}

impl RunOp {
    /// Returns the per-lane code.
    pub fn lanes(&self) -> R<&Arc<Lanes>> {
        self.lanes.as_ref().ok_or(Bug("an operation without code for lanes"))
    }

    /// Returns the number of registers that the instruction writes.
    pub fn result_dwords(&self) -> u16 {
        match &self.access {
            None => self.result_dwords,
            Some(memory_op) if memory_op.store.is_some() => 0,
            Some(memory_op) => memory_op.registers as u16,
        }
    }
}

impl Run {
    /// Returns the number of pairs to check for overlap if one more store is added.
    pub fn overlap_checks_with_store(&self) -> usize {
        let stores = self.accesses.iter().filter(|access| access.store).count();
        self.accesses.len() * (stores + 1)
    }

    /// Returns whether the run contains a store. After a store, a run accepts neither loads nor instructions
    /// that read or write masks.
    pub fn has_store(&self) -> bool {
        self.accesses.last().is_some_and(|access| access.store)
    }

    /// Returns the first operation of the run and the scalar values before it.
    pub fn start(&self) -> Option<(u32, Scalars)> {
        self.start.clone()
    }
}

/// A scratch access of a run.
pub struct ScratchAccess {
    pub access: Arc<Scratch>,
    /// EXEC.
    pub exec: V,
    /// The address, if it is uniform, as a 64-bit integer.
    pub uniform_address: Option<V>,
}

/// The modifiers of a source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Modifiers {
    /// The part of each word that is read, and whether it is sign-extended.
    pub part: Option<(Part, bool)>,
    /// The bit position of the half that a 16-bit source reads.
    pub half: Option<u32>,
    /// The bit positions of the two halves that make up a packed source, and the bits that are flipped in the
    /// result.
    pub halves: Option<([u32; 2], u32)>,
    /// The word with the sign bits.
    pub last: usize,
    /// The bits of that word that are kept, and those that are flipped.
    pub keep: u32,
    pub flip: u32,
}

impl Modifiers {
    /// Returns the modifiers of an operation's source, if it has any.
    pub fn of(op: &Op, ext: &Ext, role: Role, slot: usize) -> Option<Modifiers> {
        let bit = |bits: u8| (bits >> slot & 1) as u32;
        let numbered = [Role::S0, Role::S1, Role::S2, Role::S3].contains(&role);
        let all = ext.abs_bits | ext.neg_bits | ext.narrow_bits | ext.packed_bits;
        let sdwa = ext.sdwa.filter(|_| op.flags & Op::MODIFY != 0 && slot < 2);
        let part =
            sdwa.map(|sdwa| (sdwa.sources[slot], sdwa.signed[slot])).filter(|(part, _)| *part != Part::WHOLE);
        if op.flags & Op::MODIFY == 0 || !numbered || bit(all) == 0 && part.is_none() {
            return None;
        }
        let sign = 1u32 << (ext.sign_at[slot] & 31);
        let signs = bit(ext.packed_neg) << 15 | bit(ext.packed_neg_hi) << 31;
        Some(Modifiers {
            part,
            half: (bit(ext.narrow_bits) == 1).then(|| 16 * bit(ext.high_bits)),
            halves: (bit(ext.packed_bits) == 1)
                .then(|| ([ext.packed_sel, ext.packed_sel_hi].map(|sel| 16 * bit(sel)), signs)),
            last: if ext.sign_at[slot] == 63 { 1 } else { 0 },
            keep: !(sign * bit(ext.abs_bits)),
            flip: sign * bit(ext.neg_bits),
        })
    }
}
