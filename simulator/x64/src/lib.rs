//! Code for x86-64 hosts with AVX2, FMA, BMI1, BMI2, LZCNT and POPCNT, for the compiled engine.
//!
//! - [`inst`]: instructions on values
//! - [`Function`]: a list of them, with its builder
//! - `operands`: what instructions read and write
//! - `live`: which are needed, and how long values live
//! - `allocate`: which registers hold the values
//! - `assemble`, `int`, `vector`: the host's instructions for each; `shape`: the vector ones, and their operands
//! - `encode`: bytes
//! - [`Host`]: what the host must be able to do
//! - [`Memory`]: executable memory

mod allocate;
mod assemble;
mod compile;
mod encode;
mod function;
mod host;
pub mod inst;
mod int;
mod live;
mod memory;
mod operands;
mod shape;
mod vector;

pub use compile::{CompileError, Compiled, compile};
pub use function::Function;
pub use host::{Host, Refused};
pub use memory::Memory;
pub use shape::Code;
