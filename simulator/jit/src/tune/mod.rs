//! What only makes code faster: another copy of loops, and prefetches.

pub mod prefetch;
pub mod versioning;
