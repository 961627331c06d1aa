//! Exact floating-point arithmetic on bit patterns, as the ISA defines it: rounding and denormals by the MODE
//! register, exactly one rounding an operation, no dependence on the host's floating point.
//!
//! Three layers:
//! - [`soft`], [`integral`], [`approx`]: the algorithms, generic over [`Format`];
//! - [`add`], [`fma`], [`convert`] … on `u128` patterns of a [`Ty`](crate::pcode::ir::Ty): what the evaluator calls;
//! - `<type>_<operation>` ([`f32_add`], [`f16_to_f32`], [`f64_rsq`] …) on native integers, for compiled code. Where the
//!   host's operation gives the same bits (f32 and f64, nearest even) they take it.
//!
//! `rustc_apfloat` and exact rational arithmetic are the tests' referees, and no part of the computation. Nothing here
//! allocates. NaN results are quiet; their payload is that of the first NaN operand in the first two layers and
//! unspecified where the host computes.

pub mod approx;
pub mod buffer_format;
mod by_type;
mod env;
pub mod format;
mod int;
pub mod integral;
mod named;
pub mod soft;
pub mod trig_preop;

pub use buffer_format::{format_bytes, from_format, from_format16, to_format, to_format16};
pub use by_type::*;
pub use env::{FloatEnv, Round};
pub use format::Format;
pub use int::*;
pub use named::*;

#[cfg(test)]
mod tests;
