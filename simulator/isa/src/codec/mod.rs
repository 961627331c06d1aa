//! Conversion between instruction words and [`Inst`](crate::inst::Inst), driven by the tables alone.

pub mod condition;
pub mod decode;
pub mod encode;

pub use decode::{DecodeError, decode};
pub use encode::{EncodeError, Words, encode};

/// Splits little-endian machine code into words. Up to three trailing bytes are ignored.
pub fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}
