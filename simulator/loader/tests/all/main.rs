//! Tests of the loader in one binary.

mod abi;
mod bundle;
mod compare;
mod image;
mod line_table;
mod plain;
mod request;
