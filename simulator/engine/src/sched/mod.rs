//! From a dispatch to finished waves.

pub mod dispatch;
pub mod group;
pub mod order;
mod round;
pub mod start;
