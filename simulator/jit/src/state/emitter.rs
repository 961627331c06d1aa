//! The emitter: a builder of arithmetic, and the state of what is being emitted. Each part of the state belongs
//! to the modules that it is named after; the parts know nothing of each other.

use crate::arith::builder::Builder;
use crate::context::CompileContext;
use crate::selected::Selections;
use crate::state::access::Addresses;
use crate::state::env::Env;
use crate::state::loops::Loops;
use crate::state::run::Run;
use crate::state::scalars::Scalars;
use crate::state::sequences::SequenceVersions;
use crate::stats::CompiledPaths;
use std::collections::{BTreeMap, HashMap};
use std::ops::{Deref, DerefMut};
use wavesim_machine::exec::op::{Ext, Op};
use wavesim_x64::inst::{Label, V};

/// Emits a unit.
pub struct Emitter<'f> {
    pub b: Builder,
    pub context: CompileContext<'f>,
    pub ops: &'f [Op],
    pub exts: &'f [Ext],
    pub selections: &'f Selections,
    /// The unit's labels.
    pub unit: UnitLabels,
    /// Scalar registers.
    pub scalars: Scalars,
    /// Pending vector instructions.
    pub run: Run,
    /// The variables of the operation.
    pub env: Env,
    pub addresses: Addresses,
    pub loops: Loops,
    pub sequences: SequenceVersions,
    /// The special paths emitted so far.
    pub paths: CompiledPaths,
}

/// The labels of a unit.
pub struct UnitLabels {
    /// Labels of the unit's blocks, by their first operation.
    pub blocks: HashMap<u32, Label>,
    /// MODE's bits that extend VGPR numbers, before each operation, if they are tracked.
    pub msbs: Option<BTreeMap<u32, u32>>,
    /// The dispatch: jumps to the block whose number is in `entry`.
    pub dispatch: Label,
    pub entry: V,
    /// The exit: returns `flow`.
    pub exit: Label,
    pub flow: V,
    /// MXCSR.DAZ is set between blocks.
    pub daz_between_blocks: bool,
}

impl Deref for Emitter<'_> {
    type Target = Builder;

    fn deref(&self) -> &Builder {
        &self.b
    }
}

impl DerefMut for Emitter<'_> {
    fn deref_mut(&mut self) -> &mut Builder {
        &mut self.b
    }
}

/// The destination of a jump.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// A byte offset in the program.
    Static(u64),
    /// A computed address.
    Computed(V),
}
