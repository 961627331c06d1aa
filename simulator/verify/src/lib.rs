//! Proofs that the compiled engine's code computes what the pseudocode says, for all inputs: the manner of the
//! verification of Cranelift's lowering rules.
//!
//! - [`host`]: the meaning of each operation of the code generator's functions, as terms. Tests compare it with the
//!   execution of host code.
//! - `run`: symbolic execution of the function that is compiled for a program
//! - [`verify()`]: the comparison with the typed bodies, as `wavesim-prove` executes them
//!
//! All that lies between is part of the proof: the passes that lower a body to lane loops, the selection of host
//! operations with all facts that it uses, masks of lanes, and the reading and writing of operands. What follows, register
//! allocation and encoding, is checked by the code generator itself.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod host;
mod listing;
mod lowered;
mod memory;
mod proof;
mod run;

pub use listing::{Listed, function};
pub use lowered::{Pass, PassAnswer, digest_of_passes, verify_passes, verify_passes_with};
pub use proof::{Answer, Counterexample, verify, verify_function};

/// Code that is not proven, for this reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The instruction, or the code, has something that the proof does not know.
    #[error("{0}")]
    Unsupported(String),
    /// The solver cannot be used.
    #[error("{0}")]
    Solver(String),
}

/// Something that the proof does not know.
pub(crate) fn unsupported<T>(what: impl Into<String>) -> Result<T, VerifyError> {
    Err(VerifyError::Unsupported(what.into()))
}
