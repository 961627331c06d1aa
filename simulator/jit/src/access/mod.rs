//! Loads and stores of lanes.

pub mod addresses;
pub mod atomic;
pub mod fast_path;
pub mod load_store;
pub mod multi_store;
pub mod offset_cache;
pub mod scratch;
pub mod subword;
pub mod unit_stride;
