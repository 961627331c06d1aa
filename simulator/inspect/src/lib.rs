//! What a run did, by observers: checks that hardware does not make, traces and profiles; and instruction conformance records.

pub mod check;
pub mod conform;
pub mod trace;
