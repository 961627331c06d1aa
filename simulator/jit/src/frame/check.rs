//! Checked code: each use of a cached fact is compared with what the fact is about. The functions below
//! recompute it from registers and memory, and record the first difference; the engine reports it when code
//! returns. Debug builds check all code, and tests may ask for it in any build
//! ([`Jit::checked`](crate::Jit::checked)).

use super::{Frame, called};
use crate::ranges::{FIRST_SCALAR_RANGE, RANGES};
use crate::wave_cache::{OffsetSummary, Resources};
use std::cell::RefCell;
use wavesim_machine::exec::rt::{Cx, file};
use wavesim_machine::state::wave::{ALL_VGPRS, NO_DENORMALS, is_denormal};

/// A cached fact that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Slots of another unit, or one that is not valid.
    #[error("operation {op} uses slot {slot} of the offset cache, which does not belong to its unit")]
    ForeignSlot { op: u32, slot: usize },
    #[error(
        "operation {op}: offsets of {bytes} bytes in v{register} << {shift} are cached as {cached:?}, but are {actual:?}"
    )]
    Offsets {
        op: u32,
        register: usize,
        shift: u32,
        bytes: u32,
        cached: Option<OffsetSummary>,
        actual: OffsetSummary,
    },
    #[error(
        "entry {entry} of the range cache is {cached:x?} for address {address:#x}, but memory has {actual:x?}"
    )]
    Range {
        entry: usize,
        address: u64,
        cached: Option<(u64, u64, *mut u8)>,
        actual: Option<(u64, u64, *mut u8)>,
    },
    #[error("the wave's resources are cached as {cached:?}, but are {actual:?}")]
    Resources { cached: Option<Resources>, actual: Resources },
    #[error("v{register} of half {half} is flagged as free of denormals, but has {value:#010x}")]
    Denormal { register: usize, half: usize, value: u32 },
}

thread_local! {
    /// The first violation since code was entered: not in the frame, which unchecked code has, too.
    static FOUND: RefCell<Option<Violation>> = const { RefCell::new(None) };
}

/// Records a violation, if it is the first one.
fn record(violation: Violation) {
    FOUND.with_borrow_mut(|found| _ = found.get_or_insert(violation));
}

called! {
    /// Checks a slot of the wave's offset cache that is about to be used. [`Frame::lane_buffer`] has the
    /// slot, the register and its shift, the size of the elements in bytes and the number of the operation.
    ///
    /// # Safety
    /// Must be called by compiled code with its frame.
    pub unsafe fn check_offsets(frame: *mut Frame) -> () {
        // SAFETY: the contract guarantees a valid frame, whose buffer has the arguments, with a valid wave.
        unsafe {
            let [slot, register, rest @ ..] = (&raw const (*frame).lane_buffer).cast::<[u64; 5]>().read();
            let (slot, register, [shift, bytes, op]) =
                (slot as usize, register as usize, rest.map(|arg| arg as u32));
            let halves = if (*frame).mode.wave64 { 2 } else { 1 };
            let wave = &*(*frame).wave_ptr();
            let offsets = (0..halves).flat_map(|half| wave.lane_vec(half, register).0);
            let offsets = offsets.map(|offset| offset.min(u32::MAX >> shift) << shift);
            let actual = classify(&offsets.collect::<Vec<u32>>(), bytes);
            let cache = &*(*frame).wave.cache;
            let cached = cache.summary(slot);
            if !cache.belongs_to((*frame).code as usize) {
                record(Violation::ForeignSlot { op, slot });
            } else if cached != Some(actual) {
                record(Violation::Offsets { op, register, shift, bytes, cached, actual });
            }
        }
    }
}

/// Classifies the offsets of all lanes as compiled code does.
fn classify(offsets: &[u32], bytes: u32) -> OffsetSummary {
    let has_stride = |stride: u32| {
        let packet = |packet: &[u32]| {
            (0u32..).zip(packet).all(|(lane, offset)| *offset == packet[0].wrapping_add(lane * stride))
        };
        offsets.chunks(8).all(packet) as u32
    };
    OffsetSummary {
        max_offset: offsets.iter().max().map_or(0, |max| *max as i32 as u64),
        min_offset: offsets.iter().min().map_or(0, |min| *min as u64),
        contiguous: has_stride(bytes),
        uniform: has_stride(0),
    }
}

called! {
    /// Checks an entry of the range cache that is about to be used. [`Frame::lane_buffer`] has the address,
    /// the entry's index and the number of bytes.
    ///
    /// # Safety
    /// Must be called by compiled code with its frame.
    pub unsafe fn check_range(frame: *mut Frame) -> () {
        // SAFETY: the contract guarantees a valid frame, whose buffer has the arguments; no other reference
        // to the context exists during the call.
        unsafe {
            let [address, entry, bytes] = (&raw const (*frame).lane_buffer).cast::<[u64; 3]>().read();
            let (entry, cx) = (entry as usize, Frame::cx(frame));
            let store = (RANGES..FIRST_SCALAR_RANGE).contains(&entry);
            let range = cx.memory.range_of(address);
            let actual = range
                .filter(|range| range.host_of(address, bytes, store).is_some())
                .map(|range| (range.base, range.len, range.host));
            let cached = (*frame).ranges.entry(entry);
            if cached != actual {
                record(Violation::Range { entry, address, cached, actual });
            }
        }
    }
}

called! {
    /// Checks the cached resources of the wave, which are about to be used.
    ///
    /// # Safety
    /// Must be called by compiled code with its frame.
    pub unsafe fn check_resources(frame: *mut Frame) -> () {
        // SAFETY: the contract guarantees a valid frame, wave and context.
        unsafe {
            let cached = (*(*frame).wave.cache).resources();
            let actual = Resources::of(Frame::cx(frame));
            if cached != Some(actual) {
                record(Violation::Resources { cached, actual });
            }
        }
    }
}

/// Returns the first violation in code that has returned on this thread, including the flags that it has left
/// in the wave.
#[cold]
pub fn find_violation(cx: &Cx<'_>) -> Option<Violation> {
    FOUND.take().or_else(|| check_flags(cx))
}

fn check_flags(cx: &Cx<'_>) -> Option<Violation> {
    let halves = 0..cx.wave.halves();
    halves.flat_map(|half| (0..ALL_VGPRS).map(move |register| (half, register))).find_map(
        |(half, register)| {
            // SAFETY: the context's wave is alive and has this half; all VGPRs have flags.
            let flags = unsafe { file(cx, half).flags(register) };
            if flags & NO_DENORMALS == 0 {
                return None;
            }
            let value = cx.wave.lane_vec(half, register).0.into_iter().find(|value| is_denormal(*value))?;
            Some(Violation::Denormal { register, half, value })
        },
    )
}
