//! The lane-loop representation. Everything that typed bodies leave implicit is a node here: how wide the
//! integers are that hold values, which operands become lane vectors, where lanes that are switched off are
//! skipped, when memory is accessed, what is written back. It must not depend on Rust tokens, nor on
//! the host.
//!
//! [`Handlers`] are all that runs for one operation. Each is a [`Body`]: [`Lanes`] is a list of [`Step`]s for
//! every 32 lanes, of which one or more are [`LaneLoop`]s; [`Once`] runs once a wave. Both contain [`Stmt`]s
//! over [`Value`]s.

mod handlers;
mod step;
mod value;
mod vector;

use isa_spec::pcode::ir::{Control, LocalId, Space, State};

pub use handlers::{Block, Fast, Floats, Flushing, Handlers};
pub use step::{
    Addresses, Body, Halves, LaneLoop, LaneResult, Lanes, Memory, Once, Output, Read, Start, Step, Sum,
    WriteBack,
};
pub use value::{
    Compare, Conversion, FloatBits, FloatOp, Hold, Int, Mask, Op1, Op2, Scalar, Slot, Value, ValueKind, Var,
};
pub use vector::{
    LaneMove, MoveLanes, MovedValue, Numbers, Places, Product, ProductPart, Vector, VectorAt, VectorPlace,
    VectorRead, VectorWrite,
};

/// A statement of a lane, or of code that runs once a wave.
#[derive(Debug, Clone, PartialEq)]
pub enum Stmt {
    /// Assigns a variable; the value has the variable's holder.
    Set(Var, Value),
    /// Assigns the low `width` bits of a variable; the others stay.
    SetLow { var: Var, hold: Hold, width: u32, value: Value },
    /// Assigns an element of an array local; does nothing out of range.
    SetElement { id: LocalId, index: Value, value: Value },
    /// Assigns this lane's bit of a mask.
    SetBit(Mask, Value),
    /// Assigns architectural state.
    SetState(State, Value),
    /// Assigns a VGPR by lane and number.
    SetVgpr { lane: Value, reg: Value, value: Value },
    /// Assigns an SGPR by number.
    SetSgpr { reg: Value, value: Value },
    /// Assigns the scalar result, in code that runs once a wave.
    SetScalar { dwords: u32, direct: bool, value: Value },
    /// Assigns the whole mask that is the carry-out operand, in code that runs once a wave.
    SetMaskOperand(Value),
    /// Assigns parts of a value to several places: it is computed once, and is [`Var::Whole`] in the
    /// statements.
    Parts { value: Value, parts: Vec<Stmt> },
    /// A store in place, which may end the handler with a fault.
    Store { space: Space, addr: Value, bytes: u32, value: Value },
    /// The store of a read-modify-write: it happens only if memory still has what the lane's load gave, else
    /// the lane starts again.
    Exchange { space: Space, addr: Value, bytes: u32, value: Value },
    /// This lane's value for the store step that follows the loop, and its address unless the step has a
    /// [`Sum`].
    SetStored { address: Option<(Space, Value)>, value: Value, dwords: u32 },
    /// This lane's address for the memory step that follows.
    SetAddress { space: Space, addr: Value },
    /// The first arm whose condition is not 0, else `otherwise`.
    If { arms: Vec<(Value, Vec<Stmt>)>, otherwise: Vec<Stmt> },
    /// Counts `var` up from `from` to `to`, both included, signed.
    For { var: LocalId, from: Value, to: Value, body: Vec<Stmt> },
    /// Repeats while the condition is not 0.
    While { cond: Value, body: Vec<Stmt> },
    /// A loop whose reads come before all of its writes.
    Vector(Box<Vector>),
    /// The loops of a matrix product.
    Product(Box<Product>),
    /// Loops that move values from lane to lane.
    MoveLanes(Box<MoveLanes>),
    /// Ends the body, for this lane.
    Leave,
    /// A control builtin called for its effect; it may end the handler.
    Control { builtin: Control, args: Vec<Value> },
}
