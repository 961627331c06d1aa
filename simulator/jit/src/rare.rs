//! What compiled code calls for lanes whose results are not certain: the functions of handlers, for eight lanes of f64.

use crate::frame::{Frame, called};
use crate::lanes::each;
use wavesim_machine::exec::rt::{Keep, fma_ldexp_f64, rsq_f64, trig_preop_f64};

called! {
    /// `1 / sqrt(a)`.
    ///
    /// # Safety
    /// Called by compiled code with its frame, where one argument of each lane is.
    pub unsafe fn exact_reciprocal_roots(frame: *mut Frame) -> () {
        // SAFETY: by the contract.
        unsafe { each(frame, |[a]| rsq_f64(&Keep, a)) }
    }
}

called! {
    /// `(a * b + c) 2^n`.
    ///
    /// # Safety
    /// Called by compiled code with its frame, where four arguments of each lane are.
    pub unsafe fn exact_scaled_sums(frame: *mut Frame) -> () {
        // SAFETY: by the contract.
        unsafe { each(frame, |[a, b, c, n]| fma_ldexp_f64(&Keep, a, b, c, n as u32)) }
    }
}

called! {
    /// A segment of 2 / pi for `a`, by its number.
    ///
    /// # Safety
    /// Called by compiled code with its frame, where two arguments of each lane are.
    pub unsafe fn exact_segments(frame: *mut Frame) -> () {
        // SAFETY: by the contract.
        unsafe { each(frame, |[a, n]| trig_preop_f64(&Keep, a, n as u32)) }
    }
}
