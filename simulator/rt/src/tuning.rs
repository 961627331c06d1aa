//! What makes the interpreter faster on this host and has no other effect: no result, schedule or instruction
//! count depends on it. It belongs to a turn rather than to the wave, so that no copy of a wave has it.

/// The number of operations that are told apart.
const OPERATIONS: usize = 64;

/// Hints of a turn.
pub(super) struct Tuning {
    /// The address that each memory instruction accessed last, by operation modulo the length.
    last: [u64; OPERATIONS],
}

impl Tuning {
    /// Returns hints that know of no access.
    #[inline(always)]
    pub(super) const fn new() -> Tuning {
        Tuning { last: [0; OPERATIONS] }
    }

    /// Records an access, and returns its distance from the last one of the same operation: the step that its
    /// address is likely to advance by again.
    #[inline(always)]
    pub(super) fn step(&mut self, operation: usize, address: u64) -> u64 {
        let last = &mut self.last[operation % OPERATIONS];
        address.wrapping_sub(std::mem::replace(last, address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_those_of_an_operation() {
        let mut tuning = Tuning::new();
        let steps: Vec<u64> =
            [(1, 100), (2, 900), (1, 164), (2, 800), (1, 228)].map(|(op, at)| tuning.step(op, at)).into();
        assert_eq!(steps, [100, 900, 64, 0u64.wrapping_sub(100), 64]);
    }
}
