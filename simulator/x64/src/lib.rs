//! The code generator of the compiled engine, for x86-64 hosts with AVX2, FMA, BMI1, BMI2, LZCNT, POPCNT and
//! F16C.
//!
//! - [`inst`]: the instructions of a function
//! - [`Function`]: a list of instructions, with its builder
//! - `operands`: the values that instructions read and write
//! - `live`: dead code elimination and live ranges
//! - `allocate`: register allocation; `share`: vectors without a register that are loaded once for several
//!   instructions
//! - `assemble`, `int`, `vector`: selection of host instructions; `shape`: vector instructions and their
//!   operands
//! - `encode`: encoding
//! - [`Host`]: the requirements on the host
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
mod share;
mod vector;

pub use compile::{CompileError, Compiled, compile};
pub use function::Function;
pub use host::{Host, UnsupportedHost};
pub use memory::Memory;
pub use shape::Code;
