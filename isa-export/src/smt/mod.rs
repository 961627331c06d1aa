//! Bodies as terms of the SMT-LIB theories of bit vectors, arrays and floating-point numbers.
//!
//! A value is a bit vector, as in the reference evaluator; a condition is a bit vector of one bit. Float
//! arithmetic is a function of bit patterns, too: [`Terms`] has nodes for the operations of IEEE 754, which
//! [`Script`] writes with the theory of floating-point numbers, and the rules that the theory leaves open (which
//! NaN results, denormals) are made of bit vectors around them.

mod approximate;
mod builtin;
mod evaluate;
mod float;
mod polynomial;
pub(crate) mod script;
mod substitute;
mod tape;
mod term;
mod value;

pub use builtin::{Setting, arithmetic};
pub use evaluate::{Machine, Unsupported, ends, evaluate};
pub use script::Script;
pub use tape::Tape;
pub use term::{FloatOp, Node, Op, Rounding, Sort, Term, Terms};
pub use value::Inputs;
