//! Handlers that run other handlers: on both halves of a wave of 64 lanes, and after broadcasts of SGPRs.

use super::context::{Cx, Flow};
use super::operands::{fast_broadcast, fast_broadcast_both};
use crate::op::{Op, Variant};

/// Runs [`Cx::op`] in a wave of 64 lanes as two halves of 32, one after the other. For operations that access
/// no lane of the other half and cannot stop the wave. The second call is a tail call, for which nothing but
/// the context stays in registers.
///
/// # Safety
/// As for [`Handler`](super::Handler), in a wave of 64 lanes, and `op` is [`Cx::op`]. The handler for one half returns
/// [`Flow::NEXT`].
pub unsafe fn both_halves(cx: &mut Cx<'_>, op: &Op) -> Flow {
    debug_assert!(std::ptr::eq(cx.op, op));
    cx.file = cx.first;
    // SAFETY: the code is in bounds (O1); the caller upholds the contract of `Handler`.
    let flow = unsafe { cx.narrow.get_unchecked(op.code as usize)(cx, op) };
    debug_assert!(flow == Flow::NEXT);
    let (op, [_, second]) = (cx.op, cx.both());
    cx.file = second;
    // SAFETY: the code is in bounds (O1); the caller upholds the contract of `Handler`.
    unsafe { cx.narrow.get_unchecked(op.code as usize)(cx, op) }
}

/// [`both_halves`] for [`Variant::FastBroadcast`]: SGPRs are broadcast before a mask result of the first half
/// can change one.
///
/// # Safety
/// As for [`both_halves`]; the operation lists SGPRs (O5), and the host has AVX2 (H1).
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
pub unsafe fn both_halves_broadcast(cx: &mut Cx<'_>, op: &Op) -> Flow {
    // SAFETY: the caller upholds the contracts of both.
    unsafe {
        fast_broadcast_both(cx, op);
        both_halves_copied(cx, op)
    }
}

/// The second part of [`both_halves_broadcast`]: a function of its own, so that the broadcasts need no
/// callee-saved registers.
///
/// # Safety
/// As for [`both_halves_broadcast`].
#[inline(never)]
unsafe fn both_halves_copied(cx: &mut Cx<'_>, op: &Op) -> Flow {
    debug_assert!(std::ptr::eq(cx.op, op));
    cx.file = cx.first;
    // SAFETY: the code is in bounds (O1); the caller upholds the contract of `Handler`.
    let flow = unsafe { cx.narrow.get_unchecked(op.code as usize - COPIED)(cx, op) };
    debug_assert!(flow == Flow::NEXT);
    let (op, [_, second]) = (cx.op, cx.both());
    cx.file = second;
    // SAFETY: the code is in bounds (O1); the caller upholds the contract of `Handler`.
    unsafe { cx.narrow.get_unchecked(op.code as usize - COPIED)(cx, op) }
}

/// [`Variant::FastBroadcast`] in a wave of 32 lanes: broadcasts the SGPRs and continues as [`Variant::Fast`].
/// A single function for all operations, so that each is compiled once.
///
/// # Safety
/// As for [`Handler`](super::Handler), in a wave of 32; the operation lists SGPRs (O5), and the host has AVX2 (H1).
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
pub unsafe fn broadcast_first(cx: &mut Cx<'_>, op: &Op) -> Flow {
    // SAFETY: the code is in bounds (O1); the caller upholds the contract of `Handler`.
    unsafe {
        fast_broadcast(cx, op, cx.file);
        cx.narrow.get_unchecked(op.code as usize - COPIED)(cx, op)
    }
}

/// Distance from the handler that broadcasts SGPRs to the one that finds them broadcast.
const COPIED: usize = Variant::FastBroadcast as usize - Variant::Fast as usize;

/// [`both_halves`] for operations that may stop the wave: the second half then does not run.
///
/// # Safety
/// As for [`Handler`](super::Handler), in a wave of 64.
pub unsafe fn each_half(cx: &mut Cx<'_>, op: &Op) -> Flow {
    cx.file = cx.first;
    // SAFETY: the code is in bounds (O1); the caller upholds the contract of `Handler`.
    let flow = unsafe { cx.narrow.get_unchecked(op.code as usize)(cx, op) };
    if flow != Flow::NEXT {
        return flow;
    }
    [_, cx.file] = cx.both();
    // SAFETY: the code is in bounds (O1); the caller upholds the contract of `Handler`.
    unsafe { cx.narrow.get_unchecked(op.code as usize)(cx, op) }
}
