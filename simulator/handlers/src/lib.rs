//! The handlers of every operation for hosts with AVX2, in two float modes, generated from the pseudocode.
//! They are a crate of their own so that only changes of semantics recompile them.

#![allow(unused_variables, unused_mut, unused_assignments, unused_parens, unused_labels, unused_imports)]
#![allow(unused_unsafe, unused_must_use, unreachable_code, dead_code, unsafe_op_in_unsafe_fn)]
#![allow(clippy::all, clippy::undocumented_unsafe_blocks)]

// Generated code has no lints enabled, so clippy need not expand it: it sees these tables instead.
#[cfg(not(clippy))]
isa_macros::handlers!();
#[cfg(clippy)]
mod tables {
    use wavesim_rt::op::Op;
    use wavesim_rt::{Cx, Flow, Numbered};

    unsafe fn unknown(_: &mut Cx<'_>, _: &Op) -> Flow {
        Flow::UNKNOWN
    }

    pub const KEEP: Numbered = Numbered::only(&[unknown]);
    pub const FLUSH: Numbered = Numbered::only(&[unknown]);
    pub const KEEP_64: Numbered = Numbered::only(&[unknown]);
    pub const FLUSH_64: Numbered = Numbered::only(&[unknown]);
}
#[cfg(clippy)]
pub use tables::*;
