//! The meaning of host operations, and proofs about compiled code. Without a solver or a compiled engine, proofs are
//! skipped.

mod host;
mod passes;
mod proven;
mod rules;
mod sweep;
