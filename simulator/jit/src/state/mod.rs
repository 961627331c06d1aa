//! The state of what is being emitted: types that emission shares.

pub mod access;
pub mod emitter;
pub mod env;
pub mod loops;
pub mod packet;
pub mod run;
pub mod scalars;
pub mod sequences;
