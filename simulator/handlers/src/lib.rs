//! The handlers of every operation for hosts with AVX2, in two float modes, generated from the pseudocode. A crate of their own, so that
//! nothing but a change of meaning compiles them again.

#![allow(unused_variables, unused_mut, unused_assignments, unused_parens, unused_labels, unused_imports)]
#![allow(unused_unsafe, unused_must_use, unreachable_code, dead_code, unsafe_op_in_unsafe_fn)]
#![allow(clippy::all, clippy::undocumented_unsafe_blocks)]

isa_macros::handlers!();
