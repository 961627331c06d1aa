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
pub mod rt;

pub use context::Context;
pub use interp::step;
