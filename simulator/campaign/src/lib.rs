//! Campaigns: many runs of many kernels, each in a process of its own, with their results in a database.
//!
//! - [`plan`]: the file that lists kernels, inputs, architectures, schedules and seeds; every combination is a case
//! - [`process`]: one case as a process, with limits of time and memory; [`template`]: a process that forks those of cases
//! - [`store`]: the results in SQLite; one that is stored is not run again
//! - [`runner`]: the cases of a plan that have no result, on several threads
//! - [`report`]: results as HTML, JSON and SARIF; [`junit`]: as JUnit; [`annotation`]: for hosted jobs
//!
//! The crate knows nothing of simulation: a case is a command line of `wavesim` and its exit code.

#![warn(missing_docs)]

pub mod annotation;
pub mod junit;
#[cfg(feature = "campaigns")]
pub mod plan;
#[cfg(feature = "campaigns")]
pub mod process;
#[cfg(feature = "campaigns")]
pub mod report;
#[cfg(feature = "campaigns")]
pub mod runner;
pub mod shard;
#[cfg(feature = "campaigns")]
pub mod store;
#[cfg(all(unix, feature = "campaigns"))]
pub mod template;
