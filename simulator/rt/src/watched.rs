//! The accesses of handlers in an observed run, which go through the [`Watch`] of their context.

use super::access_log::{IN_LDS, LdsLoad, append, for_runs};
use super::context::{Cx, Flow};
use super::patterns::{extent, one_stride};
use super::watch::{Access, Place, Watch};
use isa_spec::pcode::ir::Space;
use wavesim_state::LaneVec;

/// Loads `bytes.len()` bytes through the watch, if there is one.
#[cold]
#[inline(never)]
pub fn load(
    cx: &mut Cx<'_>,
    space: Space,
    addr: u64,
    lane: Option<u32>,
    bytes: &mut [u8],
) -> Option<Result<(), Flow>> {
    let loaded = cx.watch.as_mut()?.load(space, addr, lane, bytes);
    Some(loaded.map_err(|event| cx.fault(event)))
}

/// Stores bytes through the watch, if there is one.
#[cold]
#[inline(never)]
pub fn store(
    cx: &mut Cx<'_>,
    space: Space,
    addr: u64,
    lane: Option<u32>,
    bytes: &[u8],
) -> Option<Result<(), Flow>> {
    let stored = cx.watch.as_mut()?.store(space, addr, lane, bytes);
    Some(stored.map_err(|event| cx.fault(event)))
}

/// Swaps the real memory with the empty one.
fn exchange<'a>(cx: &mut Cx<'a>, watch: &mut Watch<'a>) {
    std::mem::swap(&mut cx.memory, &mut watch.memory);
    std::mem::swap(&mut cx.lds, &mut watch.lds);
    std::mem::swap(&mut cx.scratch, &mut watch.scratch);
    std::mem::swap(&mut cx.scratch_stride, &mut watch.scratch_stride);
}

/// Runs `access`, the loads or stores of 32 lanes, on the real memory and logs them. Returns `None`, without
/// logging, if there is no watch or a lane's access failed. The slow path then goes lane by lane and repeats
/// any stores made before the failure.
pub fn lane_vecs<'a, R>(
    cx: &mut Cx<'a>,
    space: Space,
    (addresses, size_bytes): (&[u64; 32], usize),
    (exec, lane_base): (u32, u32),
    write: bool,
    access: impl FnOnce(&mut Cx<'a>) -> Result<R, Flow>,
) -> Option<R> {
    let watch = cx.watch.take()?;
    if write {
        watch.keep_vecs(space, addresses, size_bytes, exec);
    }
    exchange(cx, watch);
    let result = access(cx);
    exchange(cx, watch);
    match result {
        Ok(result) => {
            watch.log_vecs(space, addresses, size_bytes as u8, exec, lane_base as u8, write);
            cx.watch = Some(watch);
            Some(result)
        }
        Err(_) => {
            cx.event = None;
            cx.watch = Some(watch);
            None
        }
    }
}

/// Returns the host address of a block of 32 consecutive elements of `size_bytes` in real memory, and logs
/// the access. Returns `None` if there is no watch, or if the block is not entirely in one range.
///
/// # Safety
/// The host has AVX2 (H1).
#[cold]
#[inline(never)]
pub unsafe fn block(cx: &mut Cx<'_>, address: u64, size_bytes: usize, write: bool) -> Option<*mut u8> {
    let first = 32 * cx.half() as u8;
    let watch = cx.watch.as_mut()?;
    let host = watch.memory.host(address, 32 * size_bytes as u64, write)?;
    let place = Place::Global;
    if write {
        // SAFETY: `host` is the start of as many lane vectors as an element has dwords; the caller guarantees
        // AVX2.
        unsafe { watch.logs.replaced.keep_block(address, host, size_bytes / 4) };
    }
    let size_bytes = size_bytes as u8;
    let (lanes, stride) = (32, size_bytes);
    watch.logs.accesses.push(Access {
        place,
        address,
        size_bytes,
        lanes,
        stride,
        write,
        outside: false,
        lane: Some(first),
    });
    Some(host)
}

/// Returns a pointer to the real LDS for elements of 32 lanes at their offsets plus each of `plus`, and logs
/// the accesses, or keeps the loads unconverted. Returns `None` if there is no watch, or if an element is
/// beyond the end.
///
/// # Safety
/// The host has AVX2 (H1).
#[cold]
#[inline(never)]
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
pub unsafe fn lds(
    cx: &mut Cx<'_>,
    offsets: &LaneVec,
    plus: &[u32],
    size_bytes: usize,
    write: bool,
) -> Option<*mut u8> {
    let lane = 32 * cx.half() as u8;
    let watch = cx.watch.as_mut()?;
    let last = u32::try_from(watch.lds.len().checked_sub(size_bytes)?).ok()?;
    let last = plus.iter().try_fold(last, |least, plus| Some(least.min(last.checked_sub(*plus)?)))?;
    let size_bytes = size_bytes as u8;
    let (farthest, together) = extent(offsets);
    if farthest > last {
        return None;
    }
    if watch.keeps_loads && !write {
        let (plus, count) = match plus {
            [one] => ([*one; 2], 1),
            [one, other] => ([*one, *other], 2),
            _ => ([1; 2], 0),
        };
        if (together | plus[0] | plus[1]).is_multiple_of(4) {
            watch.logs.loads.push(LdsLoad { plus, count, size_bytes, lane }, offsets);
            return Some(watch.lds.as_mut_ptr());
        }
    }
    watch.logs.log_loads();
    let any = Access { size_bytes, write, lane: Some(lane), ..IN_LDS };
    for plus in plus {
        if let Some(stride) = one_stride(offsets, size_bytes as u32) {
            let address = offsets.0[0] as u64 + *plus as u64;
            watch.logs.accesses.push(Access { address, lanes: 32, stride, ..any });
            if write {
                watch.keep(Place::Lds, address, size_bytes as usize + 31 * stride as usize);
            }
            continue;
        }
        for_runs(any, offsets, *plus, |run| {
            append(&mut watch.logs.accesses, run);
            if write {
                watch.keep(Place::Lds, run.address, run.len_bytes() as usize);
            }
        });
    }
    Some(watch.lds.as_mut_ptr())
}
