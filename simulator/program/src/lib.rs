//! Programs: instructions and their semantics, lowering to operations and its invariants, the effects of
//! instructions, and the parts of the machine that handlers reach through pointers
//! ([`machine_ops`], [`hwreg`]). No handler depends on this crate.

// No files, threads, processes or clocks: clippy.toml lists the forbidden methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod code_range;
pub mod effects;
pub mod hwreg;
pub mod image;
pub mod isa;
pub mod issue;
pub mod linked;
pub mod location;
pub mod lower;
pub mod machine_ops;
pub mod overrides;
pub mod program;
pub mod record;
pub mod validate;
