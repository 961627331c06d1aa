//! The handlers of every operation for any host and any float mode, generated from the pseudocode. They are compiled for size: on the hosts that
//! people use they run only in rare float modes.

#![allow(unused_variables, unused_mut, unused_assignments, unused_parens, unused_labels, unused_imports)]
#![allow(unused_unsafe, unused_must_use, unreachable_code, dead_code, unsafe_op_in_unsafe_fn)]
#![allow(clippy::all, clippy::undocumented_unsafe_blocks)]

isa_macros::portable_handlers!();
