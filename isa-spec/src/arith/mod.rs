//! Exact arithmetic on bit patterns: what the evaluator computes with, and what compiled code calls where the host's own
//! instructions do not give the same bits (round modes, small formats, approximated functions).
//!
//! Every operation takes and gives `u128` bit patterns of a [`Ty`](crate::pcode::ir::Ty); typed wrappers are in [`typed`].

mod approx;
mod env;
mod float;
mod formats;
mod int;
pub mod typed;

pub use approx::{cos, exp2, log2, rcp, rsq, sin, sqrt, trig_preop};
pub use env::{FloatEnv, Round};
pub use float::*;
pub use formats::{format_bytes, from_format, from_format16, to_format, to_format16};
pub use int::*;
