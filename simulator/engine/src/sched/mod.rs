//! The scheduler: runs dispatches, their workgroups, and the waves of each workgroup.

pub(crate) mod barrier;
mod cancel;
pub mod cluster;
pub mod controlled;
pub mod dispatch;
mod follow;
pub mod group;
mod launch;
pub(crate) mod next_ready;
pub mod order;
pub mod poison;
mod pool;
mod queue;
pub mod recorded;
pub(crate) mod round;
pub(crate) mod slot;
pub mod start;
#[cfg(feature = "threads")]
mod workers;
