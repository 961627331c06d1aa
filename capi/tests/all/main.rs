//! The C interface: its calls, its header, and the examples in C and Python.

mod abi;
mod examples;
mod header;
