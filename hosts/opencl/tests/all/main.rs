//! Tests of the OpenCL platform.

mod api;
mod compile;
mod handle;
mod launch;
mod printf;
mod programs;
