//! The handlers of every operation for any host and any float mode, generated from the pseudocode. They are
//! compiled for size: on common hosts they run only in rare float modes.

#![allow(unused_variables, unused_mut, unused_assignments, unused_parens, unused_labels, unused_imports)]
#![allow(unused_unsafe, unused_must_use, unreachable_code, dead_code, unsafe_op_in_unsafe_fn)]
#![allow(clippy::all, clippy::undocumented_unsafe_blocks)]

// Generated code has no lints enabled, so clippy need not expand it: it sees these tables instead.
#[cfg(not(clippy))]
isa_macros::portable_handlers!();
#[cfg(clippy)]
mod tables {
    use wavesim_rt::op::Op;
    use wavesim_rt::{Cx, Flow, Numbered};

    unsafe fn unknown(_: &mut Cx<'_>, _: &Op) -> Flow {
        Flow::UNKNOWN
    }

    pub const BASE: Numbered = Numbered::only(&[unknown]);
}
#[cfg(clippy)]
pub use tables::*;
