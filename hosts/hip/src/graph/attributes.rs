//! Attributes of kernels in graphs.

use super::{Node, Step, with};
use crate::device::attribute as device_attribute;
use crate::ffi::Memory;
use crate::gpu::gpu;
use crate::op::{Invocation, Op, Work};
use crate::status::{Outcome, Status, call};
use crate::stream::Handle;
use std::ffi::c_int;

/// `hipLaunchAttributeAccessPolicyWindow`, `hipLaunchAttributeCooperative` and `hipLaunchAttributePriority`.
const WINDOW: c_int = 1;
const COOPERATIVE: c_int = 2;
const PRIORITY: c_int = 8;

/// `hipDeviceAttributeAccessPolicyMaxWindowSize`.
const MAX_WINDOW: c_int = 1;
/// `hipAccessPropertyPersisting`.
const PERSISTING: i32 = 2;
/// Size of `hipAccessPolicyWindow` in bytes.
const WINDOW_BYTES: usize = 32;

/// The attributes of a kernel. Windows for caches and priorities have no effect, and are kept for the program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct KernelAttributes {
    window: [u8; WINDOW_BYTES],
    cooperative: Option<i32>,
    priority: i32,
}

/// Checks a window as the API demands.
fn check_window(window: &[u8; WINDOW_BYTES]) -> Outcome {
    // The pointer at 0, the property of hits at 8, their ratio at 12, the property of misses at 16, the size at 24.
    let word = |at: usize| u32::from_le_bytes([window[at], window[at + 1], window[at + 2], window[at + 3]]);
    let len = u64::from(word(24)) | u64::from(word(28)) << 32;
    let most = device_attribute(gpu()?, MAX_WINDOW).unwrap_or(0);
    let valid = len <= u64::try_from(most).unwrap_or(0)
        && (0.0..=1.0).contains(&f32::from_bits(word(12)))
        && word(16) as i32 != PERSISTING;
    if valid { Ok(()) } else { Err(Status::INVALID_VALUE.into()) }
}

impl Node {
    /// Returns the launch of a node that is a kernel.
    fn invocation(&self) -> Outcome<&Invocation> {
        match self.op()? {
            Op::Kernel(invocation) => Ok(invocation),
            _ => Err(Status::INVALID_VALUE.because("the node is not a kernel")),
        }
    }

    /// Makes the attributes those of the launch.
    pub(super) fn apply_attributes(&mut self) {
        let Some(cooperative) = self.attributes.cooperative else { return };
        if let Ok(invocation) = self.invocation() {
            let invocation = Invocation { cooperative: cooperative != 0, ..invocation.clone() };
            self.step = Step::Work(Work::kernel(invocation));
        }
    }
}

/// `hipGraphKernelNodeSetAttribute`.
pub unsafe extern "C" fn hipGraphKernelNodeSetAttribute(
    node: Handle,
    attribute: c_int,
    value: Memory,
) -> c_int {
    call("hipGraphKernelNodeSetAttribute", || {
        if value.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller of the API passes the value of the attribute, which has this size.
        let bytes = |len| unsafe { value.read(len) };
        let number = || bytes(4).try_into().map(i32::from_le_bytes).map_err(|_| Status::INVALID_VALUE);
        let mut window = None;
        if attribute == WINDOW {
            let bytes = bytes(WINDOW_BYTES).try_into().map_err(|_| Status::INVALID_VALUE)?;
            check_window(&bytes)?;
            window = Some(bytes);
        }
        with(|graphs| {
            graphs.edit(node, |node| {
                node.invocation()?;
                match (attribute, window) {
                    (WINDOW, Some(window)) => node.attributes.window = window,
                    (COOPERATIVE, _) => node.attributes.cooperative = Some(number()?),
                    (PRIORITY, _) => node.attributes.priority = number()?,
                    _ => return Err(Status::INVALID_VALUE.into()),
                }
                node.apply_attributes();
                Ok(())
            })?
        })
    })
}

/// `hipGraphKernelNodeGetAttribute`.
pub unsafe extern "C" fn hipGraphKernelNodeGetAttribute(
    node: Handle,
    attribute: c_int,
    value: Memory,
) -> c_int {
    call("hipGraphKernelNodeGetAttribute", || {
        if value.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        let (attributes, cooperative) = with(|graphs| {
            graphs.edit(node, |node| Ok((node.attributes, node.invocation()?.cooperative)))?
        })?;
        let bytes = match attribute {
            WINDOW => attributes.window.to_vec(),
            COOPERATIVE => attributes.cooperative.unwrap_or(cooperative.into()).to_le_bytes().to_vec(),
            PRIORITY => attributes.priority.to_le_bytes().to_vec(),
            _ => return Err(Status::INVALID_VALUE.into()),
        };
        // SAFETY: the caller of the API passes memory for the value of any attribute.
        unsafe { value.write(&bytes) };
        Ok(())
    })
}

/// `hipGraphKernelNodeCopyAttributes`.
pub unsafe extern "C" fn hipGraphKernelNodeCopyAttributes(from: Handle, to: Handle) -> c_int {
    call("hipGraphKernelNodeCopyAttributes", || {
        with(|graphs| {
            let attributes = graphs.edit(from, |node| -> Outcome<KernelAttributes> {
                let cooperative = i32::from(node.invocation()?.cooperative);
                let cooperative = node.attributes.cooperative.or(Some(cooperative));
                Ok(KernelAttributes { cooperative, ..node.attributes })
            })??;
            graphs.edit(to, |node| {
                node.invocation()?;
                node.attributes = attributes;
                node.apply_attributes();
                Ok(())
            })?
        })
    })
}
