//! The state of a wave and of its workgroup.

pub mod barrier;
pub mod host;
pub mod wave;

pub use barrier::Workgroup;
pub use wave::{ALL_VGPRS, LaneVec, VGPRS, Wave};
