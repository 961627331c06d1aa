//! Tests of the platform, in one binary.

mod api;
mod compile;
mod handle;
mod launch;
mod printf;
mod programs;
