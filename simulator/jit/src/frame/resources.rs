//! Resources of a wave that few operations need; the first one that does looks them up.

use super::{Frame, called};
use crate::wave_cache::Resources;
use wavesim_machine::exec::rt::Cx;

called! {
    /// Looks up the wave's scratch and its number of VGPRs, and caches them.
    ///
    /// # Safety
    /// Must be called by compiled code with its frame.
    pub unsafe fn cache_resources(frame: *mut Frame) -> () {
        // SAFETY: the contract of `enter` guarantees that the frame has a valid wave and context.
        unsafe {
            let resources = Resources::of(Frame::cx(frame));
            (*(*frame).wave.cache).set_resources(resources);
        }
    }
}

impl Resources {
    /// Returns the resources of the context's wave.
    pub fn of(cx: &mut Cx<'_>) -> Resources {
        let stride = cx.scratch_stride as u64;
        let all = stride * cx.wave.size() as u64;
        // Lanes have whole dwords in all but a few tests.
        let fits = all <= cx.scratch.len() as u64 && all < 1 << 31 && stride.is_multiple_of(4);
        Resources {
            scratch: cx.scratch.as_mut_ptr(),
            stride: if fits { stride } else { 0 },
            vgprs: cx.wave.vgpr_count(),
        }
    }
}
