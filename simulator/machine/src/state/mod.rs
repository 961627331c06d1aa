//! The state of a wave and of its workgroup.

pub mod barrier;
mod file;
pub mod host;
pub mod store_times;
pub mod stream;
pub mod wave;

pub use barrier::Workgroup;
pub use file::Half;
pub use wave::{ALL_VGPRS, LaneVec, VGPRS, Wave};
