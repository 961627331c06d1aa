//! The scheduler: runs dispatches, their workgroups, and the waves of each workgroup.

pub(crate) mod barrier;
pub mod dispatch;
pub mod group;
pub mod order;
mod round;
pub mod start;
