//! How far rounds may go.

/// Number of instructions in a wave's turn.
pub(super) const TURN: u64 = 4096;

/// How far the rounds of a workgroup may go, as instruction counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The count at which the part of the budget taken so far is used up.
    pub budget_end: u64,
    /// The count at which no further round begins.
    pub slice_end: u64,
}
