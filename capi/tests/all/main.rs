//! Tests of the C API: its functions, its header, and the examples in C and Python.

mod abi;
mod examples;
mod header;
