//! Instruction words <-> [`Inst`](crate::inst::Inst), driven by the tables alone.

pub mod decode;

pub use decode::{DecodeError, decode};
