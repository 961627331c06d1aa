//! Exact floating-point arithmetic on bit patterns, as the ISA defines it: rounding and denormals follow the
//! MODE register, each operation rounds exactly once, and nothing depends on the host's floating point.
//!
//! Two layers:
//! - [`soft`], [`integral`], [`approx`]: the algorithms, generic over [`Format`];
//! - [`add`], [`fma`], [`convert`] … on `u128` patterns of a [`Ty`](crate::pcode::ir::Ty), for the evaluator.
//!
//! The tests compare with `rustc_apfloat` and exact rational arithmetic; the implementation uses neither.
//! Nothing here allocates. NaN results are quiet and have the payload of the first NaN operand.

pub mod approx;
pub mod block_format;
pub mod buffer_format;
mod by_type;
pub mod decimal;
mod env;
pub mod format;
mod int;
pub mod integral;
pub mod soft;
pub mod tiling;
pub mod trig_preop;

pub use block_format::{block_format, block_texel, format_block};
pub use buffer_format::{
    Component, component, format_bytes, from_format, from_format16, to_format, to_format16,
};
pub use by_type::*;
pub use env::{FloatEnv, Round};
pub use format::Format;
pub use int::*;
pub use tiling::{tile_block, tile_offset};
