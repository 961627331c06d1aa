//! The scheduler: runs dispatches, their workgroups, and the waves of each workgroup.

pub mod dispatch;
pub mod group;
pub mod order;
pub(crate) mod barrier;
mod round;
pub mod start;
