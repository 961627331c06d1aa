//! Functions of ROCm's libraries for profilers, `libroctx64` and `libroctracer64`, which libraries such as rocBLAS and
//! CuPy call in each run. There is no profiler: markers count their ranges and have no other effect.

use crate::ffi::Memory;
use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    /// Number of ranges that are open in this thread.
    static OPEN: Cell<c_int> = const { Cell::new(0) };
}

/// Identifiers of ranges that threads share.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// `roctx_version_major`.
pub unsafe extern "C" fn roctx_version_major() -> u32 {
    4
}

/// `roctx_version_minor`.
pub unsafe extern "C" fn roctx_version_minor() -> u32 {
    1
}

/// `roctxMarkA`: a marker of a point in time.
pub unsafe extern "C" fn roctxMarkA(_message: Memory) {}

/// `roctxRangePushA`. Returns the number of ranges that contain the new one.
pub unsafe extern "C" fn roctxRangePushA(_message: Memory) -> c_int {
    OPEN.replace(OPEN.get().saturating_add(1))
}

/// `roctxRangePop`. Returns the number of ranges that contained the one that ends, or -1 if there was none.
pub unsafe extern "C" fn roctxRangePop() -> c_int {
    match OPEN.get() {
        0 => -1,
        open => {
            OPEN.set(open - 1);
            open - 1
        }
    }
}

/// `roctxRangeStartA`. Returns the identifier of a range that any thread can end.
pub unsafe extern "C" fn roctxRangeStartA(_message: Memory) -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// `roctxRangeStop`.
pub unsafe extern "C" fn roctxRangeStop(_range: u64) {}

/// `roctxRegisterTracerCallback`. The function of a tracer is never called.
pub unsafe extern "C" fn roctxRegisterTracerCallback(_callback: usize) {}

/// `roctracer_start`.
pub unsafe extern "C" fn roctracer_start() {}

/// `roctracer_stop`.
pub unsafe extern "C" fn roctracer_stop() {}
