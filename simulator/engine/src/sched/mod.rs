//! From a dispatch to finished waves.

pub mod dispatch;
pub mod group;
pub mod order;
pub(crate) mod ring;
mod round;
pub mod start;
