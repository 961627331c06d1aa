//! Code that runs once per wave: values, statements, registers, memory, unrolled loops.

pub mod memory;
pub mod registers;
pub mod stmt;
pub mod unroll;
pub mod value;
