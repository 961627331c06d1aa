//! What is read, and how it is laid out for a kernel, in one binary.

mod abi;
mod bundle;
mod compare;
mod image;
mod line_table;
mod plain;
mod request;
