//! From a dispatch to finished waves.

pub mod dispatch;
