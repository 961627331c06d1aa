//! The meaning of host operations. Without AVX2, tests are skipped.

mod host;
