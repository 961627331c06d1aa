//! From files to dispatches.

pub mod code_object;
pub mod launch;
pub mod prepared;
