//! The code generator of the compiled engine, for x86-64 hosts with AVX2, FMA, BMI1, BMI2, LZCNT, POPCNT and
//! F16C.
//!
//! - `reg`: the registers of the host; `code`: vector instructions and their operands
//! - [`inst`]: the instructions of a function
//! - [`Function`]: a list of instructions, with its builder
//! - `operands`: the values that instructions read and write
//! - `text`, `parse`: functions as text
//! - `cfg`: basic blocks; [`verify()`]: the rules that functions keep
//! - `live`: dead code elimination and live ranges
//! - `allocate`: register allocation; `share`: vectors without a register that are loaded once for several
//!   instructions; `allocated`: all decisions about the locations of values
//! - `check`: the check of these decisions
//! - `mutate`: wrong decisions, to test that check
//! - `frame`: the stack frame
//! - `assembler`: access to operands; `int`, `vector`, `control`: selection of host instructions; `assemble`:
//!   the whole function
//! - `encode`: encoding
//! - [`compile()`]: the pipeline
//! - [`list()`]: the same, with the text of each stage
//! - [`Host`]: the requirements on the host
//! - [`Memory`]: executable memory
//!
//! No module uses another one in a circle.

mod a64;
mod allocate;
mod allocated;
mod assemble;
mod assembler;
mod backend;
mod cfg;
mod check;
mod code;
mod compile;
mod control;
mod encode;
mod error;
mod frame;
mod function;
mod host;
pub mod inst;
mod int;
mod listing;
mod live;
mod memory;
#[doc(hidden)]
pub mod mutate;
mod operands;
mod parse;
mod reg;
mod share;
mod target;
mod text;
mod vector;
mod verify;
mod violation;

#[cfg(feature = "disassembly")]
#[doc(hidden)]
pub use a64::disassemble::a64_samples;
pub use check::CheckError;
pub use code::Code;
pub use compile::{Compiled, checks, compile};
pub use error::CompileError;
pub use function::Function;
pub use host::{Host, UnsupportedHost};
pub use listing::{Listing, list};
pub use memory::Memory;
pub use parse::ParseError;
pub use verify::{Problem, VerifyError, verify};
pub use violation::Violation;
