//! Tests of tables, decoder and encoder in one binary.

mod condition;
mod decode;
mod descriptor;
mod dpp;
mod encode;
mod format;
mod operand;
