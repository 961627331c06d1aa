//! Functions of handlers that compiled code calls, for eight lanes of f64, where the host's arithmetic might
//! not be exact.

use crate::frame::{Frame, called};
use crate::lane_calls::for_each_lane;
use wavesim_machine::exec::rt::{Keep, fma_ldexp_f64, rsq_f64, trig_preop_f64};

called! {
    /// Computes `1 / sqrt(a)`.
    ///
    /// # Safety
    /// Must be called by compiled code with its frame, which has one argument per lane.
    pub unsafe fn exact_rsq_f64(frame: *mut Frame) -> () {
        // SAFETY: the contract guarantees a valid frame with one argument per lane.
        unsafe { for_each_lane(frame, |[a]| rsq_f64(&Keep, a)) }
    }
}

called! {
    /// Computes `(a * b + c) * 2^n`.
    ///
    /// # Safety
    /// Must be called by compiled code with its frame, which has four arguments per lane.
    pub unsafe fn exact_fma_ldexp_f64(frame: *mut Frame) -> () {
        // SAFETY: the contract guarantees a valid frame with four arguments per lane.
        unsafe { for_each_lane(frame, |[a, b, c, n]| fma_ldexp_f64(&Keep, a, b, c, n as u32)) }
    }
}

called! {
    /// Returns segment `n` of 2 / pi for `a`.
    ///
    /// # Safety
    /// Must be called by compiled code with its frame, which has two arguments per lane.
    pub unsafe fn exact_trig_preop(frame: *mut Frame) -> () {
        // SAFETY: the contract guarantees a valid frame with two arguments per lane.
        unsafe { for_each_lane(frame, |[a, n]| trig_preop_f64(&Keep, a, n as u32)) }
    }
}
