//! Explores the schedules of a kernel: runs it again and again, with another order of its waves each time, and looks for
//! one in which it computes something else.
//!
//! - [`machine`]: a launch whose waves run step by step; a step is one visible operation, which other waves can notice,
//!   and the instructions up to the next one
//! - [`choice`]: who decides which wave runs next; [`pct`]: at random, with a bound for the probability of finding a bug
//! - [`dpor`]: all inequivalent executions, each once (dynamic partial-order reduction)
//! - [`outcome`]: what a run computes, and in what two runs differ; [`assertion`]: what the user expects of it
//! - [`state`]: what an exploration has done, as text, so that it can go on
//! - [`mutate`]: variants of a program with weaker waits, barriers, cache controls and scopes
//! - [`minimise`]: the same outcome with fewer preemptions and delays; [`cause`]: the accesses whose order makes the
//!   difference; [`delay`]: what does not wait for a delayed operation
//!
//! The crate starts no threads: callers that explore in parallel create a [`machine::Machine`] for each.

#![warn(missing_docs)]
// No files, threads, processes or clocks; clippy.toml lists the disallowed methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod assertion;
pub mod cause;
pub mod choice;
pub mod delay;
pub mod dpor;
pub mod footprint;
pub mod machine;
pub mod minimise;
pub mod mutate;
pub mod outcome;
pub mod pct;
pub mod stale;
pub mod state;
mod visible;
