//! Instruction words <-> [`Inst`](crate::inst::Inst), driven by the tables alone.

mod condition;
pub mod decode;
pub mod encode;

pub use decode::{DecodeError, decode};
pub use encode::{EncodeError, Words, encode};
