//! Execution.

pub mod context;
pub mod effects;
pub mod hwreg;
pub mod interp;
pub mod lower;
pub mod machine_ops;
pub mod observe;
pub mod op;
pub mod output;
pub mod overrides;
pub mod plan;
pub mod program;
pub mod reference;
// What generated handlers may call, whether or not a body of today does.
#[allow(dead_code, unused_imports)]
pub(crate) mod rt;
pub mod validate;

pub use context::Context;
pub use interp::step;
pub use rt::watch;
