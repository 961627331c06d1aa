//! The variables of the operation that is being emitted.

use crate::arith::val::Val;
use isa_lower::ir::{HostWidth, Mask, Var};
use isa_spec::pcode::ir::{LocalId, Role};
use std::collections::BTreeMap;
use wavesim_machine::exec::op::Op;
use wavesim_x64::inst::V;

/// The variables of an operation.
#[derive(Debug, Clone, Default)]
pub struct Env {
    /// The number of the operation.
    pub op_index: u32,
    pub locals: BTreeMap<LocalId, (Val, HostWidth)>,
    pub operands: BTreeMap<Role, (Val, HostWidth)>,
    pub whole: Option<Val>,
    /// The lane's bits of the masks that the body writes.
    pub bits: BTreeMap<Mask, Val>,
    /// The carry-in of each lane.
    pub carry: Option<Val>,
    /// The mask of executing lanes, if it differs from EXEC.
    pub active: Option<V>,
    /// Results of calls that were emitted ahead of their use.
    pub calls: Vec<Val>,
    /// The values that the current loop over lanes reads; and whether an earlier loop has initialised the
    /// array.
    pub reads: Vec<LaneRead>,
    pub array_initialised: bool,
    /// The value that a lane has loaded, or stores.
    pub memory_value: Option<Val>,
    /// Elements of arrays.
    pub elements: BTreeMap<(LocalId, u32), Val>,
    /// The remaining executions of the statements, including the current one.
    pub remaining: u64,
    /// Host memory that scalar loads have resolved.
    pub found: Option<ScalarRange>,
}

impl Env {
    pub fn new(op_index: u32) -> Env {
        Env { op_index, remaining: 1, ..Env::default() }
    }

    pub fn op(&self, ops: &[Op]) -> Op {
        ops[self.op_index as usize]
    }

    pub fn var(&self, var: Var) -> Val {
        match var {
            Var::Local(id) => self.locals.get(&id).map_or(Val::Const(0), |v| v.0),
            Var::Operand(role) => self.operands.get(&role).map_or(Val::Const(0), |v| v.0),
            Var::Whole => self.whole.unwrap_or(Val::Const(0)),
        }
    }

    pub fn set(&mut self, var: Var, val: Val, host_width: HostWidth) {
        match var {
            Var::Local(id) => drop(self.locals.insert(id, (val, host_width))),
            Var::Operand(role) => drop(self.operands.insert(role, (val, host_width))),
            Var::Whole => self.whole = Some(val),
        }
    }
}

/// A value that an iteration reads.
#[derive(Debug, Clone, Copy)]
pub enum LaneRead {
    /// A value of the iteration's own lane.
    OwnLane(Val),
    /// A uniform value.
    Uniform(Val),
    /// A register, read in any lane.
    Register(u16),
}

/// Host memory that an operation has resolved.
#[derive(Debug, Clone, Copy)]
pub struct ScalarRange {
    /// The base that offsets are relative to.
    pub base: Val,
    pub from: u64,
    pub end: u64,
    /// The host address of offset `from`.
    pub host: V,
}
