//! The runtime that generated handlers and compiled code call: operations, operands, results, memory, control,
//! and float arithmetic by mode. Handlers depend on this crate and on [`wavesim_state`]; nothing else of the
//! machine may be here, because every edit compiles all handlers again.
//!
//! Functions that rely on the invariants of lowered code (`wavesim_program::validate`) are unsafe.

// No files, threads, processes or clocks: clippy.toml lists the forbidden methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod access_log;
mod block;
mod by_mode;
mod bytes;
mod context;
pub mod control;
mod double;
mod dpp;
mod float;
mod float_mode;
mod flush;
mod general;
mod half;
mod half_conversions;
mod halves;
mod int;
mod lane_moves;
mod lds;
mod memory;
mod modify;
mod nan;
pub mod op;
mod operands;
pub mod operations;
#[cfg(target_arch = "x86_64")]
pub mod ordered;
pub mod output;
mod patterns;
mod place;
mod polynomials;
mod product;
mod replaced;
mod results;
mod tables;
mod transpose;
mod tuning;
mod vectors;
pub mod watch;
mod watched;

pub use block::{load_block, load_lds_block, store_block, store_lds_block};
pub use by_mode::{by_mode, extended};
pub use bytes::{U32x8, select_bytes, select_bytes_x8};
pub use context::{Cx, Flow, Handler, Handlers, Numbered, Tables, control, read_only, status};
pub use double::*;
pub use float::*;
pub use float_mode::FloatMode;
pub use flush::*;
pub use general::{any_variant, general};
pub use half::*;
pub use half_conversions::{half_to_single, single_to_half};
pub use halves::{both_halves, both_halves_broadcast, broadcast_first, each_half};
pub use int::*;
pub use isa_spec::pcode::builtins::{Control, Pure};
pub use isa_spec::pcode::ir::{Space, Ty};
pub use lane_moves::{LaneMove, MoveSource, pull, pull_lanes, push, push_lanes};
pub use lds::{lds_offset, lds_size, load_lds, store_lds};
pub use memory::{
    exchange, load, load_buffer, load_offsets, load_scaled_offsets, load_vecs, store, store_buffer,
    store_offsets, store_scaled_offsets, store_vecs,
};
pub use modify::modify;
pub use operands::*;
pub use polynomials::*;
pub use product::{Part, Places, product, product_of_integers};
pub use results::*;
pub use tables::MachineOps;
pub use vectors::*;
pub use wavesim_state::LaneVec;
pub use wavesim_state::memory::{PRIVATE_BASE, SHARED_BASE, word_address};
pub use wavesim_state::wave::{EXEC_HI, EXEC_LO, M0, VCC_HI, VCC_LO};

/// Converts component `index` of an element to 32 bits, as the evaluator does. For formats that are common it is a
/// function of few instructions, so that it is not called by way of [`pure`].
pub use isa_spec::arith::from_format;

/// Evaluates a builtin with the evaluator's definition.
pub fn pure(builtin: Pure, args: &[u128], types: &[Ty], env: &isa_spec::arith::FloatEnv) -> u128 {
    isa_spec::eval::pure(builtin, args, types, env, false)
}

/// Returns `x` to the power of `y` by the evaluator's definition; `right` is the type of `y`.
pub fn pow(x: u128, y: u128, ty: Ty, right: Ty, env: &isa_spec::arith::FloatEnv) -> u128 {
    isa_spec::eval::binary(isa_spec::pcode::ir::BinOp::Pow, x, y, ty, right, env)
}

/// Converts a value by the evaluator's definition; the result is in the low bits.
pub fn convert(v: u128, from: Ty, to: Ty, env: &isa_spec::arith::FloatEnv) -> u128 {
    isa_spec::eval::convert(v, from, to, env)
}

#[cfg(test)]
mod tests;
