//! The statements that are compiled.

use super::{Scope, Why};
use crate::scalar::unroll;
use isa_lower::ir::*;
use isa_spec::pcode::ir::{Control, LocalId, State};
use wavesim_machine::exec::machine_ops::does_nothing;

/// The way in which a statement is compiled.
#[derive(Debug, Clone, Copy)]
pub enum StatementLowering<'s> {
    Set(Var, &'s Value),
    SetLow {
        var: Var,
        host_width: HostWidth,
        width: u32,
        value: &'s Value,
    },
    SetBit(Mask, &'s Value),
    If {
        arms: &'s [(Value, Vec<Stmt>)],
        otherwise: &'s [Stmt],
    },
    Parts {
        value: &'s Value,
        parts: &'s [Stmt],
    },
    Nothing,
    /// A loop that is unrolled.
    For {
        var: LocalId,
        host_width: HostWidth,
        first: u32,
        last: u32,
        body: &'s [Stmt],
    },
    /// The value that the lane stores.
    Stored(&'s Value),
    Vector(&'s Vector),
    SetLane {
        lane: &'s Value,
        reg: &'s Value,
        value: &'s Value,
    },
    SetState(WaveState, &'s Value),
    SetElement {
        id: LocalId,
        index: &'s Value,
        value: &'s Value,
    },
    SetSgpr {
        reg: &'s Value,
        value: &'s Value,
    },
    SetScalar {
        dwords: u32,
        value: &'s Value,
    },
    /// A load of three or four registers.
    LoadScalar {
        dwords: u32,
        addr: &'s Value,
    },
    SetMaskOperand(&'s Value),
    /// A jump: the last effect of its operation.
    Jump(&'s Value),
}

/// The state that compiled code writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaveState {
    Exec,
    ExecLo,
    ExecHi,
    Vcc,
    VccLo,
    VccHi,
    Scc,
    M0,
}

/// Returns how a statement is compiled, and where; nested statements and values are to be asked for
/// separately.
pub fn recognise_statement(stmt: &Stmt) -> Result<(StatementLowering<'_>, Scope), Why> {
    use {Scope::*, StatementLowering as S};
    Ok(match stmt {
        Stmt::Set(var, value) => (S::Set(*var, value), Any),
        Stmt::SetLow { var, host_width, width, value } => {
            (S::SetLow { var: *var, host_width: *host_width, width: *width, value }, Any)
        }
        Stmt::If { arms, otherwise } => (S::If { arms, otherwise }, Any),
        Stmt::Parts { value, parts } => (S::Parts { value, parts }, Any),
        Stmt::SetBit(mask, value) => (S::SetBit(*mask, value), Lane),
        Stmt::Control { builtin, .. } if does_nothing(*builtin) => (S::Nothing, Any),
        Stmt::Control { builtin, .. } => return Err(control(*builtin)),
        Stmt::SetScalar { dwords: dwords @ 0..=2, value, .. } => {
            (S::SetScalar { dwords: *dwords, value }, Wave)
        }
        Stmt::SetScalar { dwords, value, .. } => match unroll::wide_load(value, *dwords) {
            Some(addr) => (S::LoadScalar { dwords: *dwords, addr }, Wave),
            None => return Err(Why("a scalar result of more than two registers")),
        },
        Stmt::For { var, from, to, body } => match unroll::bounds(from, to) {
            Some((first, last)) => {
                (S::For { var: *var, host_width: from.host_width, first, last, body }, Any)
            }
            None => return Err(Why("a loop whose length is not known")),
        },
        Stmt::SetElement { id, index, value } => (S::SetElement { id: *id, index, value }, Wave),
        Stmt::SetSgpr { reg, value } => (S::SetSgpr { reg, value }, Wave),
        Stmt::SetMaskOperand(value) => (S::SetMaskOperand(value), Wave),
        Stmt::Vector(vector) => (S::Vector(vector), Wave),
        Stmt::SetLaneElement { .. } => return Err(Why("an array of several loops over lanes")),
        Stmt::SetVgpr { lane, reg, value } => (S::SetLane { lane, reg, value }, Wave),
        Stmt::SetStored { value, .. } => (S::Stored(value), Access),
        Stmt::SetState(state, value) => {
            let state = match state {
                State::Pc => return Ok((S::Jump(value), Wave)),
                State::Exec => WaveState::Exec,
                State::ExecLo => WaveState::ExecLo,
                State::ExecHi => WaveState::ExecHi,
                State::Vcc => WaveState::Vcc,
                State::VccLo => WaveState::VccLo,
                State::VccHi => WaveState::VccHi,
                State::Scc => WaveState::Scc,
                State::M0 => WaveState::M0,
                State::Mode => return Err(Why("a write of MODE")),
                _ => return Err(Why("a write of unusual state")),
            };
            (S::SetState(state, value), Wave)
        }
        Stmt::Store { .. } => return Err(Why("a store by each lane, in pseudocode")),
        Stmt::Exchange { .. } => return Err(Why("an atomic operation")),
        Stmt::SetAddress { .. } => return Err(Why("an address of each lane")),
        Stmt::While { .. } => return Err(Why("a loop whose length is not known")),
        Stmt::Product(_) => return Err(Why("a matrix product")),
        Stmt::MoveLanes(_) => return Err(Why("a permutation of lanes")),
        Stmt::Leave => return Err(Why("an early end of a lane")),
    })
}

/// Returns what an operation with a control builtin does.
fn control(builtin: Control) -> Why {
    match builtin {
        Control::EndPgm => Why("the end of the program"),
        Control::Barrier | Control::BarrierWait => Why("a barrier"),
        _ => Why("a message or a query of the machine"),
    }
}
