//! Lowered code, its effects, and the runtime that executes it.

pub mod context;
pub mod effects;
pub mod hwreg;
pub mod location;
pub mod lower;
pub mod machine_ops;
pub mod op;
pub mod output;
pub mod overrides;
pub mod program;
/// The runtime that generated handlers call. Functions that rely on the invariants of lowered code
/// ([`validate`]) are unsafe.
#[doc(hidden)]
pub mod rt;
pub mod validate;

pub use context::Context;
pub use rt::watch;
