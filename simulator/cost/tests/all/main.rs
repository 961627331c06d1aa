//! Tests of costs.

mod model;
mod remarks;
mod tables;
