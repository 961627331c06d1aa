//! Tests of typed arrays in one binary.

mod dtype;
mod file;
mod fill;
mod npy;
mod show;
