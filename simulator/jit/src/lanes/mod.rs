//! Code for lanes: runs of vector instructions, and packets of eight lanes.

pub mod buffer;
pub mod byte_permute;
pub mod cross_lane;
pub mod dpp;
pub mod modifiers;
pub mod output;
pub mod packets;
