//! Execution.

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
/// What generated handlers call. What relies on the invariants of lowered code ([`validate`]) is unsafe.
#[doc(hidden)]
pub mod rt;
pub mod validate;

pub use context::Context;
pub use rt::watch;
