//! The compiler's copy of a program, so that another thread can compile while the program runs.

use std::collections::HashMap;
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::op::{Ext, Op};
use wavesim_machine::exec::program::Program;

/// A copy of a program's operations.
pub struct ProgramSnapshot {
    pub arch: Arch,
    pub ops: Vec<Op>,
    pub exts: Vec<Ext>,
    pub consts: Vec<u32>,
    /// The first operation at each byte offset of the code.
    by_pc: HashMap<u32, u32>,
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
        ProgramSnapshot {
            arch: program.arch,
            ops: lowered.ops().to_vec(),
            exts: lowered.exts().to_vec(),
            consts: lowered.consts().to_vec(),
            by_pc,
            address: lowered.ops().as_ptr().addr(),
            id: lowered.id(),
        }
    }

    /// Returns whether this is a copy of a program whose operations have not moved.
    pub fn matches(&self, program: &Program) -> bool {
        program.lowered().id() == self.id && program.lowered().ops().as_ptr().addr() == self.address
    }

    /// Returns the address of an operation of the program.
    pub fn address_of(&self, at: u32) -> u64 {
        (self.address + at as usize * size_of::<Op>()) as u64
    }

    /// Returns the operation at a byte offset of the code.
    pub fn op_at(&self, pc: u64) -> Option<u32> {
        self.by_pc.get(&u32::try_from(pc).ok()?).copied()
    }
}
