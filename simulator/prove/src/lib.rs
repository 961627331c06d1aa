//! Proofs that two pieces of machine code are equal for all inputs. The typed bodies of the pseudocode are executed
//! with terms for values ([`isa_export::smt`]), and an SMT solver is asked for inputs for which the results differ.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod assume;
mod bodies;
mod execute;
mod machine;
mod proof;
mod replay;
mod routes;
mod samples;
mod search;
mod setup;
mod solver;
mod state;
mod summary;
mod sweep;

pub use assume::{AssumeError, register};
pub use bodies::{Bodies, Body, compare_bodies};
pub use isa_export::smt::{Inputs, Unsupported};
pub use proof::{Code, Counterexample, Difference, Live, ProofError, Question, Verdict};
pub use routes::Register;
pub use search::{Equivalent, Found, Search, SearchError, TESTED, Window};
pub use setup::Setup;
pub use solver::{Answer as SolverAnswer, Solver, SolverError};
pub use state::register_name;
pub use summary::{Summary, WaveSummary, initial_of_wave};
