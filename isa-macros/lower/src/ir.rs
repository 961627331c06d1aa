//! The lane-loop representation. It makes explicit everything that typed bodies leave implicit: the widths of
//! the integers that hold values, the operands that become lane vectors, the loops that skip inactive lanes,
//! the order of memory accesses, and the write-back. It depends neither on Rust tokens nor on the host.
//!
//! [`Handlers`] is the code of one operation. Each handler is a [`Body`]: [`Lanes`] is a list of [`Step`]s
//! for every 32 lanes, at least one of which is a [`LaneLoop`]; [`Once`] runs once per wave. Both contain
//! [`Stmt`]s over [`Value`]s.

mod handlers;
mod step;
mod value;
mod vector;

use isa_spec::pcode::ir::{Control, LocalId, Space, State};

pub use handlers::{Block, Fast, Floats, Flushing, Handlers};
pub use step::{
    Addresses, Body, Halves, LaneLoop, LaneResult, Lanes, Memory, Once, Outer, Output, Read, Scale, Start,
    Step, Sum, WriteBack,
};
pub use value::{
    Compare, Conversion, FloatBits, FloatOp, HostWidth, Int, Mask, Op1, Op2, Scalar, Slot, Value, ValueKind,
    Var,
};
pub use vector::{
    ElementType, MoveDirection, MoveLanes, MoveSource, Product, ProductPart, SparseRows, Vector, VectorAt,
    VectorPlace, VectorRead, VectorWrite,
};

/// A statement of a lane, or of code that runs once per wave.
#[derive(Debug, Clone, PartialEq)]
pub enum Stmt {
    /// Assigns a variable; the value has the host width of the variable.
    Set(Var, Value),
    /// Assigns the low `width` bits of a variable; the other bits keep their values.
    SetLow { var: Var, host_width: HostWidth, width: u32, value: Value },
    /// Assigns an element of an array local; does nothing if the index is out of range.
    SetElement { id: LocalId, index: Value, value: Value },
    /// Assigns an element of an array with elements for each lane; the index is the same for all lanes.
    SetLaneElement { id: LocalId, index: Value, value: Value },
    /// Assigns this lane's bit of a mask.
    SetBit(Mask, Value),
    /// Assigns architectural state.
    SetState(State, Value),
    /// Assigns a VGPR by lane and number.
    SetVgpr { lane: Value, reg: Value, value: Value },
    /// Assigns an SGPR by number.
    SetSgpr { reg: Value, value: Value },
    /// Assigns the scalar result, in code that runs once per wave.
    SetScalar { dwords: u32, direct: bool, value: Value },
    /// Assigns the whole mask of the carry-out operand, in code that runs once per wave.
    SetMaskOperand(Value),
    /// Assigns parts of a value to several places. The value is computed once; the statements refer to it as
    /// [`Var::Whole`].
    Parts { value: Value, parts: Vec<Stmt> },
    /// A store that is performed immediately and may end the handler with a fault.
    Store { space: Space, addr: Value, bytes: u32, value: Value },
    /// The store of an atomic read-modify-write (compare-exchange): if memory no longer has the value that
    /// the lane loaded, the lane starts again instead.
    Exchange { space: Space, addr: Value, bytes: u32, value: Value },
    /// Sets this lane's value for the store step after the loop, and its address unless the step has a
    /// [`Sum`].
    SetStored { address: Option<(Space, Value)>, value: Value, dwords: u32 },
    /// Sets this lane's address for the memory step after the loop.
    SetAddress { space: Space, addr: Value },
    /// Runs the first arm whose condition is not 0, else `otherwise`.
    If { arms: Vec<(Value, Vec<Stmt>)>, otherwise: Vec<Stmt> },
    /// Counts `var` up from `from` to `to`, both inclusive, signed.
    For { var: LocalId, from: Value, to: Value, body: Vec<Stmt> },
    /// Repeats while the condition is not 0.
    While { cond: Value, body: Vec<Stmt> },
    /// A loop whose reads precede all of its writes.
    Vector(Box<Vector>),
    /// The loops of a matrix product.
    Product(Box<Product>),
    /// Loops that move values from lane to lane.
    MoveLanes(Box<MoveLanes>),
    /// Ends the body, for this lane.
    Leave,
    /// Calls a control builtin for its side effects; it may end the handler.
    Control { builtin: Control, args: Vec<Value> },
}
