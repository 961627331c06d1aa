//! Markers for profilers.

use amdhip64::ffi::Memory;
use amdhip64::profiling::{roctxRangePop, roctxRangePushA};

#[test]
fn ranges_are_counted_by_thread() {
    // SAFETY: the functions do not access the messages.
    let (push, pop) = (|| unsafe { roctxRangePushA(Memory::null()) }, || unsafe { roctxRangePop() });
    assert_eq!([push(), push(), pop(), push(), pop(), pop(), pop()], [0, 1, 1, 1, 1, 0, -1]);
    push();
    assert_eq!(std::thread::spawn(move || (push(), pop())).join().unwrap(), (0, 0));
}
