//! Arithmetic on values: integers and floats, uniform or of eight lanes.

pub mod builder;
pub mod coerce;
pub mod convert;
pub mod exact;
pub mod facts;
pub mod float;
pub mod frexp;
pub mod half;
pub mod integers;
pub mod lane_calls;
pub mod ops;
pub mod polynomial;
pub mod shift;
pub mod val;
