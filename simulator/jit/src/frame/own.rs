//! What few operations ask of a wave: it is found when one does.

use super::{Frame, called};
use crate::kept::Own;

called! {
    /// Finds what the wave has of its own, and keeps it.
    ///
    /// # Safety
    /// Called by compiled code with its frame.
    pub unsafe fn find_own(frame: *mut Frame) -> () {
        // SAFETY: by the contract of `enter`; the frame has its wave.
        unsafe {
            let cx = Frame::cx(frame);
            let stride = cx.scratch_stride as u64;
            let all = stride * cx.wave.size() as u64;
            let fits = all <= cx.scratch.len() as u64 && all < 1 << 31;
            (*(*frame).wave.kept).set_own(Own {
                scratch: cx.scratch.as_mut_ptr(),
                stride: if fits { stride } else { 0 },
                vgprs: cx.wave.vgpr_count(),
            });
        }
    }
}
