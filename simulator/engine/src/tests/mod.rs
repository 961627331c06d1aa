//! Tests of the machine that execute instructions.

mod block;
mod memory;
mod program;
mod rounds;
mod start;
