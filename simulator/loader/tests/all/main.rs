//! Tests of the loader in one binary.

mod abi;
mod bundle;
mod code_object;
mod compare;
mod debug_info;
mod generic;
mod image;
mod launch;
mod line_table;
mod request;
