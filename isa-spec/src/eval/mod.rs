//! The reference evaluator: a tree walk over typed semantics, slow and obvious.
//!
//! The evaluator defines the meaning of a body; the [`Machine`] provides registers, memory and barriers.
//! [`eval`] runs a body once: the driver of a lane-shaped body calls it for each active lane, in ascending
//! order.
//!
//! A lane's bit of a mask (`D0.u64[laneId] = …`) is a slice of the whole mask: the evaluator reads the mask
//! with [`Machine::destination`], sets the bit and stores the mask with [`Machine::set_operand`]. The driver
//! initialises such a mask to zero, which clears the bits of inactive lanes, and writes the register after
//! the last lane.

mod builtin;
mod expr;
mod operator;

pub use builtin::pure;
pub use operator::{binary, convert};

use crate::arith::{self, FloatEnv};
use crate::pcode::ir::*;
use crate::source::Span;

/// The state that a body can access. Values are bit patterns; `lane` is the running lane (`None` outside lane
/// shape).
///
/// Accesses to registers and operands cannot fail: a nonexistent register reads zero. Memory, state and
/// control can fail with [`Stop`].
pub trait Machine {
    /// Called before [`Machine::operand`] with the bits of the value that the body uses.
    fn reading(&mut self, _role: Role, _lane: Option<u32>, _bits: u128) {}
    /// Returns an operand's value with modifiers applied; the evaluator ignores bits above the type it needs.
    fn operand(&mut self, role: Role, lane: Option<u32>) -> u128;
    /// Returns the current contents of a destination, for partial writes: its register, or the mask being
    /// built.
    fn destination(&mut self, role: Role, lane: Option<u32>) -> u128;
    /// Writes an operand. `width` is the width of the value; a narrower write keeps the destination's upper
    /// bits.
    fn set_operand(&mut self, role: Role, lane: Option<u32>, value: u128, width: u32);
    /// Returns the number of the operand's register: `VGPR[lane][SRC0.u32]`.
    fn operand_index(&mut self, role: Role) -> u32;
    /// Returns dword `index` of a multi-register operand in any lane.
    fn operand_lane(&mut self, role: Role, lane: u32, index: u32) -> u32;
    /// Returns a raw encoding field by its canonical name; 0 if the encoding has no such field.
    fn field(&mut self, name: &str) -> u32;
    /// Returns the value of architectural state.
    fn state(&mut self, state: State, lane: Option<u32>) -> u128;
    /// Like `destination`, for state.
    fn state_destination(&mut self, state: State) -> u128;
    /// Writes architectural state.
    fn set_state(&mut self, state: State, value: u128) -> Result<(), Stop>;
    /// Returns a VGPR of a lane by its number.
    fn vgpr(&mut self, lane: u32, reg: u32) -> u32;
    /// Like `destination`, for a register by its number.
    fn old_vgpr(&mut self, lane: u32, reg: u32) -> u32;
    /// Writes a VGPR of a lane.
    fn set_vgpr(&mut self, lane: u32, reg: u32, value: u32);
    /// Returns an SGPR by its number.
    fn sgpr(&mut self, reg: u32) -> u32;
    /// Writes an SGPR.
    fn set_sgpr(&mut self, reg: u32, value: u32);
    /// Loads a little-endian value of `bytes` bytes.
    fn load(&mut self, space: Space, addr: u64, bytes: u32, lane: Option<u32>) -> Result<u128, Stop>;
    /// Stores `bytes` bytes of a little-endian value.
    fn store(
        &mut self,
        space: Space,
        addr: u64,
        bytes: u32,
        value: u128,
        lane: Option<u32>,
    ) -> Result<(), Stop>;
    /// Executes a control builtin; returns its value, if it has one.
    fn control(&mut self, builtin: Control, args: &[u128]) -> Result<u128, Stop>;
    /// Returns the rounding and denormal modes; called once when the body starts.
    fn env(&self) -> FloatEnv;
    /// Returns the instruction's clamp bit.
    fn clamp(&self) -> bool;
    /// Called after every assignment with the stored value, for the debugger.
    fn assigned(&mut self, _stmt: &Stmt, _value: u128, _lane: Option<u32>) {}
    /// Called after every condition of an `if` or `while`, with the condition's span.
    fn decided(&mut self, _at: Span, _taken: bool, _lane: Option<u32>) {}
}

/// The reason why a body stopped early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// `return`.
    Return,
    /// Raised by the machine: a fault, the end of the wave, a barrier.
    Machine(u32),
    /// The body exceeds the limit of steps.
    TooLong,
}

/// Limit on the statements and loop iterations of a body. The longest bodies, matrix multiplications, take
/// some ten thousand.
const STEP_LIMIT: u32 = 4_000_000;

/// Runs the body once.
pub fn eval(sem: &Semantics, machine: &mut dyn Machine, lane: Option<u32>) -> Result<(), Stop> {
    let mut e = Eval {
        locals: sem.locals.iter().map(|l| vec![0; l.len.unwrap_or(1).max(1) as usize]).collect(),
        env: if sem.ignores_mode { FloatEnv::KEEP } else { machine.env() },
        machine,
        lane,
        steps: 0,
    };
    match e.stmts(&sem.body) {
        Err(Stop::Return) => Ok(()),
        other => other,
    }
}

struct Eval<'a> {
    /// The elements of each local; a local that is not an array has one.
    locals: Vec<Vec<u128>>,
    machine: &'a mut dyn Machine,
    lane: Option<u32>,
    env: FloatEnv,
    steps: u32,
}

impl Eval<'_> {
    fn step(&mut self) -> Result<(), Stop> {
        self.steps += 1;
        if self.steps > STEP_LIMIT { Err(Stop::TooLong) } else { Ok(()) }
    }

    fn stmts(&mut self, list: &[Stmt]) -> Result<(), Stop> {
        for stmt in list {
            self.step()?;
            match stmt {
                Stmt::Assign { place, value, .. } => {
                    let value = self.expr(value)? & arith::mask(place.ty.width());
                    self.assign(place, value)?;
                    self.machine.assigned(stmt, value, self.lane);
                }
                Stmt::If { arms, otherwise, .. } => {
                    let mut taken = otherwise;
                    for (cond, body) in arms {
                        if self.condition(cond)? {
                            taken = body;
                            break;
                        }
                    }
                    self.stmts(taken)?;
                }
                Stmt::For { var, from, to, body, .. } => {
                    let from = self.expr(from)? as u32 as i32;
                    let to = self.expr(to)? as u32 as i32;
                    for i in from..=to {
                        self.step()?;
                        self.locals[*var as usize][0] = i as u32 as u128;
                        self.stmts(body)?;
                    }
                }
                Stmt::While { cond, body, .. } => {
                    while self.condition(cond)? {
                        self.step()?;
                        self.stmts(body)?;
                    }
                }
                Stmt::Return { .. } => return Err(Stop::Return),
                Stmt::Call { builtin, args, .. } => {
                    let args = self.args(args)?;
                    self.machine.control(*builtin, &args)?;
                }
            }
        }
        Ok(())
    }

    fn condition(&mut self, cond: &Expr) -> Result<bool, Stop> {
        let taken = self.expr(cond)? != 0;
        self.machine.decided(cond.span, taken, self.lane);
        Ok(taken)
    }

    /// Stores `value`, which has no bits beyond the place's width.
    fn assign(&mut self, place: &Place, value: u128) -> Result<(), Stop> {
        let width = place.ty.width();
        match &place.kind {
            PlaceKind::Local(id) => self.locals[*id as usize][0] = value,
            PlaceKind::Element(id, index) => {
                let index = self.expr(index)? as u32 as usize;
                if let Some(slot) = self.locals[*id as usize].get_mut(index) {
                    *slot = value;
                }
            }
            PlaceKind::Operand(role) => self.machine.set_operand(*role, self.lane, value, width),
            PlaceKind::State(state) => self.machine.set_state(*state, value)?,
            PlaceKind::Slice { base, lo } => {
                let lo = self.expr(lo)? as u32;
                let base_width = base.ty.width();
                if lo >= base_width {
                    return Ok(());
                }
                let bits = arith::mask(width) << lo & arith::mask(base_width);
                let old = self.old(base)?;
                self.assign(base, old & !bits | value << lo & bits)?;
            }
            PlaceKind::Vgpr { lane, reg } => {
                let (lane, reg) = (self.expr(lane)? as u32, self.expr(reg)? as u32);
                self.machine.set_vgpr(lane, reg, value as u32);
            }
            PlaceKind::Sgpr { reg } => {
                let reg = self.expr(reg)? as u32;
                self.machine.set_sgpr(reg, value as u32);
            }
            PlaceKind::Mem { space, addr } => {
                let addr = self.expr(addr)? as u64;
                self.machine.store(*space, addr, width.div_ceil(8), value, self.lane)?;
            }
            PlaceKind::Concat(parts) => {
                // The last part holds the lowest bits.
                let mut rest = value;
                for part in parts.iter().rev() {
                    let width = part.ty.width();
                    self.assign(part, rest & arith::mask(width))?;
                    rest = rest.checked_shr(width).unwrap_or(0);
                }
            }
        }
        Ok(())
    }

    /// Returns the current value of a whole place.
    fn old(&mut self, place: &Place) -> Result<u128, Stop> {
        let width = place.ty.width();
        let value = match &place.kind {
            PlaceKind::Local(id) => self.locals[*id as usize][0],
            PlaceKind::Element(id, index) => self.element(*id, index)?,
            PlaceKind::Operand(role) => self.machine.destination(*role, self.lane),
            PlaceKind::State(state) => self.machine.state_destination(*state),
            PlaceKind::Slice { base, lo } => {
                let lo = self.expr(lo)? as u32;
                self.old(base)?.checked_shr(lo).unwrap_or(0)
            }
            PlaceKind::Vgpr { lane, reg } => {
                let (lane, reg) = (self.expr(lane)? as u32, self.expr(reg)? as u32);
                self.machine.old_vgpr(lane, reg) as u128
            }
            PlaceKind::Sgpr { reg } => self.sgpr(reg)?,
            PlaceKind::Mem { space, addr } => self.load(*space, addr, width)?,
            PlaceKind::Concat(parts) => {
                let mut out = 0u128;
                for part in parts {
                    out = out.checked_shl(part.ty.width()).unwrap_or(0) | self.old(part)?;
                }
                out
            }
        };
        Ok(value & arith::mask(width))
    }
}
