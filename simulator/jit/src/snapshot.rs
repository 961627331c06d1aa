//! The compiler's copy of a program, so that another thread can compile while the program runs.

use std::collections::HashMap;
use std::sync::Arc;
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::effects::vgpr_msbs_after;
use wavesim_machine::exec::op::{Ext, Op};
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::rt::extended;

/// A copy of a program's operations.
pub struct ProgramSnapshot {
    pub arch: Arch,
    pub ops: Vec<Op>,
    pub exts: Arc<[Ext]>,
    pub consts: Arc<[u32]>,
    /// The first operation at each byte offset of the code.
    by_pc: Arc<HashMap<u32, u32>>,
    /// For each operation, what MODE's bits that extend VGPR numbers are afterwards, if it sets nothing else. Empty if
    /// no operation does: the bits are then zero wherever compiled code runs.
    msbs_after: Arc<[Option<u32>]>,
    /// The address of the program's first operation.
    address: usize,
    /// [`wavesim_machine::exec::lower::Lowered::id`].
    id: u64,
}

impl ProgramSnapshot {
    pub fn of(program: &Program) -> ProgramSnapshot {
        let lowered = program.lowered();
        let mut by_pc = HashMap::new();
        for (at, op) in (0..).zip(lowered.ops()).filter(|(_, op)| op.code != Op::END) {
            by_pc.entry(op.pc).or_insert(at);
        }
        let after: Vec<Option<u32>> =
            (0..program.insts.len()).map(|at| vgpr_msbs_after(program, at)).collect();
        let of_op = |op: &Op| after.get(op.number as usize).copied().flatten().filter(|_| op.code != Op::END);
        let sets_msbs = after.iter().any(Option::is_some);
        ProgramSnapshot {
            arch: program.arch,
            ops: lowered.ops().to_vec(),
            exts: lowered.exts().into(),
            consts: lowered.consts().into(),
            by_pc: Arc::new(by_pc),
            msbs_after: lowered.ops().iter().filter(|_| sets_msbs).map(of_op).collect(),
            address: lowered.ops().as_ptr().addr(),
            id: lowered.id(),
        }
    }

    /// Returns whether this is a copy of a program whose operations have not moved.
    pub fn matches(&self, program: &Program) -> bool {
        program.lowered().id() == self.id && program.lowered().ops().as_ptr().addr() == self.address
    }

    /// Returns whether some operation sets MODE's bits that extend VGPR numbers. Units then track them.
    pub fn tracks_msbs(&self) -> bool {
        !self.msbs_after.is_empty()
    }

    /// Returns the bits after an operation that only sets them.
    pub fn sets_msbs(&self, op_index: u32) -> Option<u32> {
        self.msbs_after.get(op_index as usize).copied().flatten()
    }

    /// Returns an operation with its VGPR numbers extended by these bits; `None` if it has a register that does not
    /// exist.
    pub fn extended(&self, op_index: u32, msbs: u32) -> Option<Op> {
        let op = &self.ops[op_index as usize];
        extended(op, self.exts[op.ext as usize].by_mode.msbs, msbs, self.arch).ok()
    }

    /// Returns a copy whose operations have their VGPR numbers extended by the bits before each of them.
    pub fn with_extended(&self, msbs: impl Iterator<Item = (u32, u32)>) -> ProgramSnapshot {
        let mut out = ProgramSnapshot {
            ops: self.ops.clone(),
            exts: self.exts.clone(),
            consts: self.consts.clone(),
            by_pc: self.by_pc.clone(),
            msbs_after: self.msbs_after.clone(),
            ..*self
        };
        for (at, msbs) in msbs {
            if let Some(op) = self.extended(at, msbs) {
                out.ops[at as usize] = op;
            }
        }
        out
    }

    /// Returns the address of an operation of the program.
    pub fn address_of(&self, op_index: u32) -> u64 {
        (self.address + op_index as usize * size_of::<Op>()) as u64
    }

    /// Returns the operation at a byte offset of the code.
    pub fn op_at(&self, pc: u64) -> Option<u32> {
        self.by_pc.get(&u32::try_from(pc).ok()?).copied()
    }
}
