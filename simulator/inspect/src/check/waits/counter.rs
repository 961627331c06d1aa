//! The counters of outstanding memory operations.

use wavesim_asm::dialect::advice;
use wavesim_isa::arch::facts::Counter;

/// Returns the instruction that waits until at most `n` operations of a counter are outstanding.
pub fn wait_instruction(counter: Counter, n: usize) -> String {
    advice::wait_instruction(counter.name(), n)
}
