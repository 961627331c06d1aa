//! Vector loops in bodies that run once a wave: loops over adjacent elements or lanes, as
//! [`crate::passes::vector`] makes them.

use super::{Conversion, Slot, Value};
use isa_spec::pcode::ir::LocalId;

/// A loop over adjacent elements or lanes. [`Vector::var`] counts; in places it has its first value.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    /// The loop variable.
    pub var: LocalId,
    /// Its first value.
    pub from: u32,
    /// Iterations, 8 to 32.
    pub count: u32,
    /// The loop is over all lanes of the wave: it runs for each 32 of them.
    pub lanes: bool,
    /// Vectors and values computed before the first iteration;
    /// [`ValueKind::VectorRead`](super::ValueKind::VectorRead) indexes them.
    pub reads: Vec<VectorRead>,
    /// Vectors written after the last iteration.
    pub writes: Vec<VectorWrite>,
}

/// What a [`Vector`] reads before its iterations.
#[derive(Debug, Clone, PartialEq)]
pub enum VectorRead {
    /// Adjacent elements, or a VGPR of adjacent lanes.
    Place(VectorPlace),
    /// A register of an operand, in adjacent lanes from `lane` on.
    Lanes { slot: Slot, lane: Value, index: Value },
    /// A register of an operand in all lanes of the wave, for [`VectorAt::Lane`].
    Wave { slot: Slot, index: Value },
    /// A VGPR in all lanes of the wave, for [`VectorAt::Lane`].
    WaveVgpr { reg: Value },
    /// A value that is the same for all iterations.
    Same(Value),
    /// All ones in active lanes, zero in others, from the first iteration's lane on.
    Active,
    /// A conversion of each iteration's value, for which hosts have vectors. It may use reads before it.
    Converted(Conversion, Value),
}

/// Which part of a read an iteration takes.
#[derive(Debug, Clone, PartialEq)]
pub enum VectorAt {
    /// The element of this iteration.
    Own,
    /// The one value of a [`VectorRead::Same`].
    Same,
    /// The element of a lane of the wave.
    Lane(Box<Value>),
}

/// Where the vector of a [`Vector`] begins.
#[derive(Debug, Clone, PartialEq)]
pub enum VectorPlace {
    /// Elements of an array local from `start` on.
    Elements { id: LocalId, start: Value },
    /// A VGPR in the lanes from `lane` on.
    Vgpr { lane: Value, reg: Value },
}

impl VectorPlace {
    /// The array local, for elements.
    pub fn array(&self) -> Option<LocalId> {
        match self {
            VectorPlace::Elements { id, .. } => Some(*id),
            VectorPlace::Vgpr { .. } => None,
        }
    }
}

/// What a [`Vector`] writes after its last iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorWrite {
    /// Where the first value goes.
    pub to: VectorPlace,
    /// An iteration whose condition is 0 writes nothing.
    pub when: Option<Value>,
    /// Computed in each iteration.
    pub value: Value,
}

/// Each active lane's register `to` takes a value of another lane, or what another lane sends. All lanes read
/// before one writes.
#[derive(Debug, Clone, PartialEq)]
pub struct MoveLanes {
    /// What lanes do.
    pub how: LaneMove,
    /// The loop over all lanes that computes the number of the other lane. Its one write is not made.
    pub lanes: Vector,
    /// The register of which lanes have values.
    pub value: MovedValue,
    /// The register that is written, by number.
    pub to: Value,
}

/// What lanes do in [`MoveLanes`].
#[derive(Debug, Clone, PartialEq)]
pub enum LaneMove {
    /// A lane takes the other one's value. If that is inactive and `fetch` is 0, it takes zero, or keeps what
    /// it has if `bound` is 0 too. Numbers of no lane give zero, and count as inactive.
    Pull {
        /// Inactive lanes have values too.
        fetch: Value,
        /// Lanes take the zero of an inactive lane.
        bound: Value,
    },
    /// A lane sends its value to the other one. Of several to one lane, the highest lane's arrives; zero if
    /// there is none. Nothing happens to what is sent to no lane.
    Push,
}

/// A register of all lanes.
#[derive(Debug, Clone, PartialEq)]
pub enum MovedValue {
    /// The first one of an operand.
    Operand(Slot),
    /// A VGPR by number.
    Vgpr(Value),
}

/// The sums of a matrix product: `d[row, column] += a[k, row] * b[k, column]` for every k in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Product {
    /// What the numbers are.
    pub numbers: Numbers,
    /// Steps of k.
    pub depth: u32,
    /// Rows of `a` and `d`.
    pub rows: u32,
    /// Columns of `b` and `d`, which are consecutive in their arrays.
    pub columns: u32,
    /// The factor that is the same for a row.
    pub a: ProductPart,
    /// The factors of the columns.
    pub b: ProductPart,
    /// Sparse: which row of `b` a factor of `a` is for.
    pub places: Option<Places>,
    /// The sums.
    pub d: ProductPart,
}

/// Numbers of a matrix product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// f32 by MODE.
    Floats,
    /// f32 to nearest even and with denormals, whatever MODE says.
    FloatsNearest,
    /// Factors of 32 bits with a sign, sums of 64 bits, which wrap.
    Integers,
}

/// Rows of a matrix by number: `b` begins for a factor at `step` times the number.
#[derive(Debug, Clone, PartialEq)]
pub struct Places {
    /// The numbers, as `a` has its factors.
    pub at: ProductPart,
    /// Between rows of `b`.
    pub step: u32,
}

/// A matrix in an array.
#[derive(Debug, Clone, PartialEq)]
pub struct ProductPart {
    /// The array.
    pub id: LocalId,
    /// Its first element.
    pub start: Value,
    /// From an element to the next one along K.
    pub depth: u32,
    /// From an element to the one in the next row.
    pub row: u32,
}
