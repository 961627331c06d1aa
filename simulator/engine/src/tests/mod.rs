//! Tests of the machine that run instructions.

mod block;
mod memory;
mod program;
