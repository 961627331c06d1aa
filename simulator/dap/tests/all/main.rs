//! Tests of the debug adapter in one binary.

mod wire;
