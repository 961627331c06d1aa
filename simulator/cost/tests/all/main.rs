//! Tests of costs.

mod mca;
mod model;
mod page;
mod remarks;
mod tables;
