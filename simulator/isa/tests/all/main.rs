//! Tests of the tables, the decoder and the encoder, in one binary.

mod condition;
mod decode;
mod descriptor;
mod dpp;
mod encode;
mod operand;
