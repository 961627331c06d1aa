//! Vector loops in bodies that run once per wave: loops over consecutive elements or lanes, which
//! [`crate::passes::vector`] creates.

use super::{Conversion, Slot, Value};
use isa_spec::pcode::ir::LocalId;

/// A loop over consecutive elements or lanes, counted by [`Vector::var`]. In places, the variable has its
/// first value.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    /// The loop variable.
    pub var: LocalId,
    /// The first value of the loop variable.
    pub from: u32,
    /// Iterations, 8 to 32.
    pub count: u32,
    /// The loop is over all lanes of the wave and runs for each 32 lanes.
    pub lanes: bool,
    /// Vectors and values computed before the first iteration;
    /// [`ValueKind::VectorRead`](super::ValueKind::VectorRead) indexes them.
    pub reads: Vec<VectorRead>,
    /// Vectors written after the last iteration.
    pub writes: Vec<VectorWrite>,
}

/// A read that a [`Vector`] performs before its iterations.
#[derive(Debug, Clone, PartialEq)]
pub enum VectorRead {
    /// Consecutive elements, or a VGPR in consecutive lanes.
    Place(VectorPlace),
    /// A register of an operand, in consecutive lanes starting at `lane`.
    Lanes { slot: Slot, lane: Value, index: Value },
    /// A register of an operand in all lanes of the wave, for [`VectorAt::Lane`].
    Wave { slot: Slot, index: Value },
    /// A VGPR in all lanes of the wave, for [`VectorAt::Lane`].
    WaveVgpr { reg: Value },
    /// A loop-invariant value.
    Same(Value),
    /// The lane mask of 32 lanes, starting at the lane of the first iteration: all ones in active lanes, zero
    /// in inactive ones.
    Active,
    /// A conversion of each iteration's value that hosts can vectorise. It may use earlier reads.
    Converted(Conversion, Value),
}

/// The element of a read that an iteration uses.
#[derive(Debug, Clone, PartialEq)]
pub enum VectorAt {
    /// The element of this iteration.
    Own,
    /// The value of a [`VectorRead::Same`].
    Same,
    /// The element of a lane of the wave.
    Lane(Box<Value>),
}

/// The location of a vector.
#[derive(Debug, Clone, PartialEq)]
pub enum VectorPlace {
    /// Elements of an array local, starting at `start`.
    Elements { id: LocalId, start: Value },
    /// A VGPR in consecutive lanes, starting at `lane`.
    Vgpr { lane: Value, reg: Value },
}

impl VectorPlace {
    /// Returns the array local, for elements.
    pub fn array(&self) -> Option<LocalId> {
        match self {
            VectorPlace::Elements { id, .. } => Some(*id),
            VectorPlace::Vgpr { .. } => None,
        }
    }
}

/// A write that a [`Vector`] performs after its last iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorWrite {
    /// The destination, starting with the first value.
    pub to: VectorPlace,
    /// Condition of each iteration; an iteration whose condition is 0 writes nothing.
    pub when: Option<Value>,
    /// The value of each iteration.
    pub value: Value,
}

/// A move of values between lanes: each active lane's register `to` receives the value of the lane that it
/// selects, or a value that another lane sends to it. All reads precede all writes.
#[derive(Debug, Clone, PartialEq)]
pub struct MoveLanes {
    /// Whether lanes select their source or their destination.
    pub direction: MoveDirection,
    /// The loop over all lanes that computes the number of the other lane. Its only write provides the number
    /// and is not performed.
    pub lanes: Vector,
    /// The register whose lanes are moved.
    pub source: MoveSource,
    /// The number of the destination VGPR.
    pub to: Value,
}

/// The direction of a [`MoveLanes`], seen from the lane that computes the number.
#[derive(Debug, Clone, PartialEq)]
pub enum MoveDirection {
    /// Each lane takes the value of the other lane. If that lane is inactive and `fetch` is 0, the result is
    /// zero, or the old value if `bound` is 0 too. A number that is not a lane of the wave selects zero and
    /// counts as an inactive lane.
    Pull {
        /// Nonzero if inactive lanes may be sources.
        fetch: Value,
        /// Nonzero if a lane whose source is inactive receives zero.
        bound: Value,
    },
    /// Each lane sends its value to the other lane. If several lanes send to one, the value of the highest
    /// lane arrives; a lane that receives nothing gets zero. Values sent to a number that is not a lane of
    /// the wave are dropped.
    Push,
}

/// The register whose lanes a [`MoveLanes`] moves.
#[derive(Debug, Clone, PartialEq)]
pub enum MoveSource {
    /// The first register of an operand.
    Operand(Slot),
    /// The VGPR with this number.
    Vgpr(Value),
}

/// The accumulation of a matrix product: `d[row, column] += a[k, row] * b[k, column]` for every k in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Product {
    /// The type of the elements.
    pub element: ElementType,
    /// The number of values of k.
    pub depth: u32,
    /// Rows of `a` and `d`.
    pub rows: u32,
    /// Columns of `b` and `d`; the elements of a row are consecutive in their arrays.
    pub columns: u32,
    /// The factors, each shared by a row.
    pub a: ProductPart,
    /// The factors of the columns.
    pub b: ProductPart,
    /// For a sparse product: the row of `b` that each factor of `a` multiplies.
    pub sparse_rows: Option<SparseRows>,
    /// The accumulators.
    pub d: ProductPart,
}

/// The type of a matrix product's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementType {
    /// f32, with rounding and denormals by MODE.
    F32,
    /// f32, rounded to nearest even and with denormals in every mode.
    F32Nearest,
    /// Signed 32-bit factors and 64-bit accumulators, which wrap.
    Integer,
}

/// Row numbers of a sparse product: for each factor, the row of `b` starts at `stride` times the number.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseRows {
    /// The row numbers, laid out like the factors of `a`.
    pub numbers: ProductPart,
    /// Distance between rows of `b`.
    pub stride: u32,
}

/// A matrix in an array.
#[derive(Debug, Clone, PartialEq)]
pub struct ProductPart {
    /// The array.
    pub id: LocalId,
    /// Index of the first element.
    pub start: Value,
    /// Stride along K.
    pub depth: u32,
    /// Stride from row to row.
    pub row: u32,
}
