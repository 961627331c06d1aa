//! What only makes code faster: other copies of loops and of blocks, and prefetches.

pub mod prefetch;
pub mod sequence_values;
pub mod sequences;
pub mod versioning;
