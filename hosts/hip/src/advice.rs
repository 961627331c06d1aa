//! Advice on managed memory, and where the program has prefetched it. Memory is shared by all devices, so that neither has an
//! effect; both are attributes of ranges of pages.

use crate::ffi::{In, Memory};
use crate::gpu::{gpu, gpu_at, lock};
use crate::graph::existing;
use crate::memory::{AllocationInfo, AllocationKind};
use crate::status::{Outcome, Status, call};
use crate::stream::Handle;
use crate::virtual_memory::Location;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_int, c_uint};
use std::sync::Mutex;

const PAGE: u64 = 4096;
/// `hipCpuDeviceId` and `hipInvalidDeviceId`.
const HOST: c_int = -1;
const NO_DEVICE: c_int = -2;

/// What the program has said of pages.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Advice {
    read_mostly: bool,
    preferred: c_int,
    accessed_by: BTreeSet<c_int>,
    prefetched: c_int,
    coarse_grained: bool,
}

const NO_ADVICE: Advice = Advice {
    read_mostly: false,
    preferred: NO_DEVICE,
    accessed_by: BTreeSet::new(),
    prefetched: NO_DEVICE,
    coarse_grained: false,
};

/// Ranges of pages with advice, which are disjoint: their ends and advice, by the first address.
#[derive(Default)]
struct Ranges(BTreeMap<u64, (u64, Advice)>);

static RANGES: Mutex<Ranges> = Mutex::new(Ranges(BTreeMap::new()));

/// Returns the bounds of the pages that contain a range.
fn pages(address: u64, len: u64) -> (u64, u64) {
    let end = address.saturating_add(len);
    (address - address % PAGE, end.checked_next_multiple_of(PAGE).unwrap_or(end))
}

impl Ranges {
    /// Makes an address the border of two ranges.
    fn split(&mut self, at: u64) {
        let Some((start, (end, advice))) = self.0.range(..at).next_back() else { return };
        let (start, end, advice) = (*start, *end, advice.clone());
        if end > at {
            self.0.insert(start, (at, advice.clone()));
            self.0.insert(at, (end, advice));
        }
    }

    fn change(&mut self, (from, to): (u64, u64), change: impl Fn(&mut Advice)) {
        self.split(from);
        self.split(to);
        let inside: Vec<(u64, u64)> =
            self.0.range(from..to).map(|(start, (end, _))| (*start, *end)).collect();
        let mut at = from;
        for (start, end) in inside.into_iter().chain([(to, to)]) {
            if at < start {
                self.0.insert(at, (start, NO_ADVICE));
            }
            at = end;
        }
        self.0.range_mut(from..to).for_each(|(_, (_, advice))| change(advice));
    }

    /// Returns the advice of all parts of a range.
    fn of(&self, (from, to): (u64, u64)) -> Vec<Advice> {
        let before = self.0.range(..from).next_back().filter(|(_, (end, _))| *end > from);
        let (mut at, mut out) = (from, Vec::new());
        for (start, (end, advice)) in before.into_iter().chain(self.0.range(from..to)) {
            if at < *start {
                out.push(NO_ADVICE);
            }
            out.push(advice.clone());
            at = *end;
        }
        if at < to {
            out.push(NO_ADVICE);
        }
        out
    }
}

/// Forgets what was said of memory that has been freed.
pub fn forget(address: u64, len: u64) {
    let (from, to) = pages(address, len);
    let mut ranges = lock(&RANGES);
    ranges.split(from);
    ranges.split(to);
    ranges.0.retain(|start, _| *start < from || *start >= to);
}

/// Checks a device that advice names.
fn check_device(device: c_int) -> Outcome {
    if device == HOST { Ok(()) } else { gpu_at(device).map(drop) }
}

fn advise(address: u64, len: u64, advice: c_int, device: c_int) -> Outcome {
    let found = gpu()?.find_allocation(address);
    let refused = |found: AllocationInfo| {
        found.kind == AllocationKind::Device || len > found.len - (address - found.address)
    };
    if address == 0 || len == 0 || found.is_some_and(refused) {
        return Err(Status::INVALID_VALUE.into());
    }
    if matches!(advice, 3 | 5) {
        check_device(device)?;
    }
    let change = |change: &dyn Fn(&mut Advice)| lock(&RANGES).change(pages(address, len), change);
    match advice {
        // hipMemAdviseSetReadMostly and hipMemAdviseUnsetReadMostly, and so on.
        1 | 2 => change(&|of| of.read_mostly = advice == 1),
        3 => change(&|of| of.preferred = device),
        4 => change(&|of| of.preferred = NO_DEVICE),
        5 => change(&|of| _ = of.accessed_by.insert(device)),
        6 => change(&|of| _ = of.accessed_by.remove(&device)),
        100 | 101 => change(&|of| of.coarse_grained = advice == 100),
        _ => return Err(Status::INVALID_VALUE.into()),
    }
    Ok(())
}

/// `hipMemAdvise`.
pub unsafe extern "C" fn hipMemAdvise(address: u64, len: usize, advice: c_int, device: c_int) -> c_int {
    call("hipMemAdvise", || advise(address, len as u64, advice, device))
}

/// `hipMemAdvise_v2`.
pub unsafe extern "C" fn hipMemAdvise_v2(
    address: u64,
    len: usize,
    advice: c_int,
    location: Location,
) -> c_int {
    call("hipMemAdvise_v2", || advise(address, len as u64, advice, location.device_or_host()))
}

fn prefetch(address: u64, len: u64, device: c_int, stream: Handle) -> Outcome {
    let gpu = gpu()?;
    existing(stream)?;
    check_device(device)?;
    let found = gpu.find_allocation(address).ok_or(Status::INVALID_VALUE)?;
    if len == 0 || len > found.len - (address - found.address) {
        return Err(Status::INVALID_VALUE.into());
    }
    lock(&RANGES).change(pages(address, len), |of| of.prefetched = device);
    Ok(())
}

/// `hipMemPrefetchAsync`. Nothing is copied, since all memory is shared.
pub unsafe extern "C" fn hipMemPrefetchAsync(
    address: u64,
    len: usize,
    device: c_int,
    stream: Handle,
) -> c_int {
    call("hipMemPrefetchAsync", || prefetch(address, len as u64, device, stream))
}

/// `hipMemPrefetchAsync_v2`. Nothing is copied, since all memory is shared.
pub unsafe extern "C" fn hipMemPrefetchAsync_v2(
    address: u64,
    len: usize,
    location: Location,
    _flags: c_uint,
    stream: Handle,
) -> c_int {
    call("hipMemPrefetchAsync_v2", || prefetch(address, len as u64, location.device_or_host(), stream))
}

/// Returns the value that all parts have.
fn common(values: impl Iterator<Item = c_int>) -> Option<c_int> {
    let values: BTreeSet<c_int> = values.collect();
    if values.len() == 1 { values.first().copied() } else { None }
}

/// `hipMemRangeAttributeCoherencyMode`.
const COHERENCY: c_int = 100;

/// Stores an attribute of managed memory.
fn put_attribute(data: Memory, size: usize, attribute: c_int, address: u64, len: usize) -> Outcome {
    let found = gpu()?.find_allocation(address).ok_or(Status::INVALID_VALUE)?;
    let wrong = data.is_null() || size == 0 || !size.is_multiple_of(4) || len == 0;
    // All other memory has a coherency, too.
    if wrong || (found.kind != AllocationKind::Managed && attribute != COHERENCY) {
        return Err(Status::INVALID_VALUE.into());
    }
    let parts = lock(&RANGES).of(pages(address, len as u64));
    let values = match attribute {
        // hipMemRangeAttributeReadMostly
        1 => vec![common(parts.iter().map(|of| of.read_mostly.into())).unwrap_or(0)],
        // hipMemRangeAttributePreferredLocation
        2 => vec![common(parts.iter().map(|of| of.preferred)).unwrap_or(NO_DEVICE)],
        // hipMemRangeAttributeAccessedBy
        3 => {
            let all = |device: &c_int| parts.iter().all(|of| of.accessed_by.contains(device));
            let by: Vec<c_int> =
                parts.first().into_iter().flat_map(|of| of.accessed_by.iter().copied()).filter(all).collect();
            (0..size / 4).map(|at| by.get(at).copied().unwrap_or(NO_DEVICE)).collect()
        }
        // hipMemRangeAttributeLastPrefetchLocation
        4 => vec![common(parts.iter().map(|of| of.prefetched)).unwrap_or(NO_DEVICE)],
        // Fine or coarse grain, or hipMemRangeCoherencyModeIndeterminate.
        COHERENCY if found.kind == AllocationKind::Device => vec![1],
        COHERENCY => vec![common(parts.iter().map(|of| of.coarse_grained.into())).unwrap_or(2)],
        _ => return Err(Status::INVALID_VALUE.into()),
    };
    if attribute != 3 && size != 4 {
        return Err(Status::INVALID_VALUE.into());
    }
    let bytes: Vec<u8> = values.into_iter().flat_map(c_int::to_le_bytes).collect();
    // SAFETY: the caller of the API passes memory of this size.
    unsafe { data.write(&bytes) };
    Ok(())
}

/// `hipMemRangeGetAttribute`.
pub unsafe extern "C" fn hipMemRangeGetAttribute(
    data: Memory,
    size: usize,
    attribute: c_int,
    address: u64,
    len: usize,
) -> c_int {
    call("hipMemRangeGetAttribute", || put_attribute(data, size, attribute, address, len))
}

/// `hipMemRangeGetAttributes`.
pub unsafe extern "C" fn hipMemRangeGetAttributes(
    data: In<Memory>,
    sizes: In<usize>,
    attributes: In<c_int>,
    count: usize,
    address: u64,
    len: usize,
) -> c_int {
    call("hipMemRangeGetAttributes", || {
        if count == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller of the API passes arrays of this length.
        let (data, sizes, attributes) =
            unsafe { (data.list(count)?, sizes.list(count)?, attributes.list(count)?) };
        let rows = data.into_iter().zip(sizes).zip(attributes);
        rows.into_iter()
            .try_for_each(|((data, size), attribute)| put_attribute(data, size, attribute, address, len))
    })
}
