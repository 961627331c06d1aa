//! Selection of the wave that runs next when a wave of a workgroup waits at a barrier or ends. The interpreter's
//! rounds and compiled code share it, so that both order waves alike and notice cancellation at the same point.

use super::cancel::is_cancelled;
use std::sync::atomic::AtomicBool;

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

/// Returns the turn of the next wave that is ready, and the instruction count up to which it may run. `turn` is
/// that of the wave that has just stopped, of `count` turns in a round. The order stays the same from round to
/// round. `None` if no wave is ready or a limit is reached, or, which is tested once a round, if the run is
/// cancelled.
#[inline(always)]
pub fn next_ready(
    turn: usize,
    count: usize,
    limits: Limits,
    cancel: Option<&AtomicBool>,
    instructions: u64,
    mut is_ready: impl FnMut(usize) -> bool,
) -> Option<(usize, u64)> {
    let end = instructions + TURN;
    if end > limits.budget_end {
        return None;
    }
    let mut next = turn;
    loop {
        next += 1;
        if next == count {
            if instructions >= limits.slice_end || is_cancelled(cancel) {
                return None;
            }
            next = 0;
        }
        if is_ready(next) {
            return Some((next, end));
        }
        if next == turn {
            return None;
        }
    }
}
