//! The state of a wave.

pub mod wave;

pub use wave::{Row, VGPRS, Wave};
