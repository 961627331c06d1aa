//! Atomic read-modify-writes of a wave: the addresses of all lanes are checked at once, then lanes access memory in their
//! order, as the handlers do. What is not alike in all lanes is left to the handler, before anything has been accessed.

use super::{Frame, called, run_handlers};
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering::SeqCst};
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::rt::{Cx, Flow, file};
use wavesim_machine::memory::access;
use wavesim_machine::state::Half;

/// What an atomic makes of the old value and the lane's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    Add,
    Sub,
    And,
    Or,
    Xor,
    Swap,
    MinUnsigned,
    MaxUnsigned,
    MinSigned,
    MaxSigned,
}

impl Update {
    const ALL: [Update; 10] = {
        use Update::*;
        [Add, Sub, And, Or, Xor, Swap, MinUnsigned, MaxUnsigned, MinSigned, MaxSigned]
    };
}

/// The operands of an atomic: registers, and the form of the addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Atomic {
    /// The register of the lanes' offsets, of 32 bits and shifted, or of 64.
    pub offsets: u16,
    pub shift: u8,
    pub address64: bool,
    /// The address is one in LDS.
    pub lds: bool,
    /// Registers of a lane's data: 1 or 2.
    pub dwords: u8,
    pub data: u16,
    /// The register that the old value is written to.
    pub result: Option<u16>,
    pub update: Update,
}

/// [`Atomic::result`] of an atomic that returns nothing.
const NO_RESULT: u16 = u16::MAX;

impl Atomic {
    /// Returns the operands as two arguments of [`run_atomic`].
    pub fn to_arguments(self) -> [u32; 2] {
        let flags = u32::from(self.shift) << 16
            | u32::from(self.address64) << 20
            | u32::from(self.lds) << 21
            | u32::from(self.dwords == 2) << 22
            | (self.update as u32) << 24;
        let result = self.result.unwrap_or(NO_RESULT);
        [u32::from(self.offsets) | u32::from(self.data) << 16, u32::from(result) | flags]
    }

    fn of_arguments([registers, flags]: [u32; 2]) -> Atomic {
        Atomic {
            offsets: registers as u16,
            shift: (flags >> 16 & 0xf) as u8,
            address64: flags >> 20 & 1 != 0,
            lds: flags >> 21 & 1 != 0,
            dwords: 1 + (flags >> 22 & 1) as u8,
            data: (registers >> 16) as u16,
            result: Some(flags as u16).filter(|result| *result != NO_RESULT),
            update: Update::ALL[(flags >> 24) as usize],
        }
    }
}

called! {
    /// Runs an atomic of the current wave. `base` is added to the lanes' offsets; the other arguments are
    /// [`Atomic::to_arguments`].
    ///
    /// # Safety
    /// As for [`run_handlers`]; the arguments are those of the operation, and its registers are VGPRs.
    pub unsafe fn run_atomic(frame: *mut Frame, op: *const Op, base: u64, registers: u32, flags: u32) -> u32 {
        let atomic = Atomic::of_arguments([registers, flags]);
        // SAFETY: the contract of `enter` guarantees that the frame has a valid context, which nothing else
        // references now; the caller guarantees the rest.
        unsafe {
            let cx = Frame::cx(frame);
            let lds = ((*frame).lds, (*frame).lds_bytes);
            let done = match atomic.address64 {
                true => run_lanes::<true>(cx, atomic, base, lds),
                false => run_lanes::<false>(cx, atomic, base, lds),
            };
            if done { Flow::NEXT.0 } else { run_handlers(frame, op, 1) }
        }
    }
}

/// The words of a register of 32 lanes.
#[derive(Clone, Copy)]
struct Words(*const u32);

impl Words {
    #[inline(always)]
    fn of(file: Half, register: u16) -> Words {
        Words(file.at(register as usize).cast_const().cast())
    }

    /// # Safety
    /// The register is one of a live wave, and nothing refers to it mutably.
    #[inline(always)]
    unsafe fn of_lane(self, lane: usize) -> u64 {
        // SAFETY: the caller guarantees a register, which has 32 words.
        u64::from(unsafe { self.0.add(lane).read() })
    }
}

/// The addresses of 32 lanes: each lane's own part of 32 bits, shifted, or of 64, and what all have in common.
#[derive(Clone, Copy)]
struct Addresses<const ADDRESS64: bool> {
    low: Words,
    high: Words,
    shift: u8,
    base: u64,
}

impl<const ADDRESS64: bool> Addresses<ADDRESS64> {
    /// # Safety
    /// As for [`Words::of_lane`].
    #[inline(always)]
    unsafe fn of_lane(self, lane: usize) -> u64 {
        // SAFETY: the caller upholds the same contract.
        let own = unsafe {
            match ADDRESS64 {
                true => self.low.of_lane(lane) | self.high.of_lane(lane) << 32,
                false => self.low.of_lane(lane) << self.shift,
            }
        };
        self.base.wrapping_add(own)
    }
}

/// Calls `f` with the index of each active lane, of 32.
#[inline(always)]
fn each_lane(mut exec: u32, mut f: impl FnMut(usize)) {
    if exec == u32::MAX {
        for lane in 0..32 {
            f(lane);
        }
        return;
    }
    while exec != 0 {
        f(exec.trailing_zeros() as usize);
        exec &= exec - 1;
    }
}

/// Performs an atomic if the words of all active lanes are inside one writable range of memory, and aligned; otherwise
/// returns false and accesses nothing.
///
/// # Safety
/// As for [`run_atomic`]; `lds` has the address and the size of LDS.
unsafe fn run_lanes<const ADDRESS64: bool>(
    cx: &Cx<'_>,
    atomic: Atomic,
    base: u64,
    lds: (*mut u8, u64),
) -> bool {
    let Atomic { offsets, shift, data, .. } = atomic;
    let exec = cx.wave.exec();
    let halves = || {
        let half = move |half| (file(cx, half), (exec >> (32 * half)) as u32);
        (0..cx.wave.halves()).map(half).filter(|(_, exec)| *exec != 0)
    };
    // What closures capture is copied: the compiler would load it again for each lane.
    let addresses = |file, base| {
        let (low, high) = (Words::of(file, offsets), Words::of(file, offsets + u16::from(ADDRESS64)));
        Addresses::<ADDRESS64> { low, high, shift, base }
    };
    let Some((first_file, first_exec)) = halves().next() else { return true };
    // SAFETY: the registers are VGPRs of the wave, which nothing else refers to now.
    let first = unsafe { addresses(first_file, base).of_lane(first_exec.trailing_zeros() as usize) };
    let (start, len, host) = if atomic.lds {
        (0, lds.1, lds.0)
    } else {
        let Some(range) = cx.memory.range_of(first).filter(|range| range.writable) else { return false };
        (range.base, range.len, range.host)
    };
    let bytes = 4 * u64::from(atomic.dwords);
    let Some(last) = len.checked_sub(bytes) else { return false };
    let (mut greatest, mut bits) = (0, 0);
    for (file, exec) in halves() {
        let addresses = addresses(file, base.wrapping_sub(start));
        each_lane(exec, |lane| {
            // SAFETY: as above.
            let offset = unsafe { addresses.of_lane(lane) };
            greatest = greatest.max(offset);
            bits |= offset;
        });
    }
    // LDS needs no alignment.
    if greatest > last || !atomic.lds && (bits | start | host as u64) & (bytes - 1) != 0 {
        return false;
    }
    let shared = !atomic.lds && cx.memory.is_shared();
    for (file, exec) in halves() {
        let addresses = addresses(file, base.wrapping_sub(start));
        // SAFETY: as above.
        let pointer = move |lane| host.wrapping_add(unsafe { addresses.of_lane(lane) } as usize);
        if shared {
            // Each lane locks a cache line, which another processor may have: they are fetched together.
            each_lane(exec, move |lane| prefetch_to_write(pointer(lane)));
        }
        // SAFETY: the data and the result are VGPRs of the wave; nothing else refers to them now. Pointers are valid, and
        // aligned unless the memory is LDS.
        unsafe {
            let low = Words::of(file, data);
            if atomic.dwords == 1 {
                let old = u32::update(atomic, shared, exec, pointer, move |lane| low.of_lane(lane) as u32);
                write_result(file, exec, atomic.result, &[old]);
            } else {
                let high = Words::of(file, data + 1);
                let data = move |lane| low.of_lane(lane) | high.of_lane(lane) << 32;
                let old = u64::update(atomic, shared, exec, pointer, data);
                let words = [0, 32].map(|shift| old.map(|value| (value >> shift) as u32));
                write_result(file, exec, atomic.result, &words);
            }
        }
    }
    true
}

/// Writes the active lanes' results to consecutive registers, if there is a result.
///
/// # Safety
/// The registers are those of the file, which belongs to a live wave; nothing else refers to them.
#[inline(always)]
unsafe fn write_result(file: Half, exec: u32, result: Option<u16>, words: &[[u32; 32]]) {
    let Some(result) = result else { return };
    for (register, words) in (result as usize..).zip(words) {
        // SAFETY: the caller guarantees valid registers.
        unsafe {
            file.set_no_denormals(register, false);
            let to = file.at(register);
            each_lane(exec, |lane| (&raw mut (*to).0[lane]).write(words[lane]));
        }
    }
}

/// Fetches the cache line of an address for a store.
#[inline(always)]
fn prefetch_to_write(pointer: *mut u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch accesses no memory in a way that can be seen. x86-64 hosts without this instruction execute it
    // as one that does nothing (Intel SDM, *PREFETCHW*).
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) pointer, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = pointer;
}

/// A word that atomics update.
trait Word: Sized {
    /// Updates the words of the active lanes, in their order: those at `pointer(lane)` with `data(lane)`. Returns the old
    /// values, if the atomic returns them.
    ///
    /// # Safety
    /// Pointers to the active lanes' words are valid, and aligned if memory is shared.
    unsafe fn update(
        atomic: Atomic,
        shared: bool,
        exec: u32,
        pointer: impl Fn(usize) -> *mut u8 + Copy,
        data: impl Fn(usize) -> Self + Copy,
    ) -> [Self; 32];
}

macro_rules! words {
    ($($word:ident, $signed:ident, $atomic:ident, $signed_atomic:ident;)*) => {
        $(impl Word for $word {
            #[inline(always)]
            unsafe fn update(
                atomic: Atomic,
                shared: bool,
                exec: u32,
                pointer: impl Fn(usize) -> *mut u8 + Copy,
                data: impl Fn(usize) -> $word + Copy,
            ) -> [$word; 32] {
                let mut all = [0; 32];
                if shared {
                    each_lane(exec, |lane| {
                        let (pointer, data) = (pointer(lane), data(lane));
                        // SAFETY: the caller guarantees valid, aligned pointers.
                        let word = unsafe { $atomic::from_ptr(pointer.cast()) };
                        // SAFETY: as above.
                        let signed = unsafe { $signed_atomic::from_ptr(pointer.cast()) };
                        all[lane] = match atomic.update {
                            Update::Add => word.fetch_add(data, SeqCst),
                            Update::Sub => word.fetch_sub(data, SeqCst),
                            Update::And => word.fetch_and(data, SeqCst),
                            Update::Or => word.fetch_or(data, SeqCst),
                            Update::Xor => word.fetch_xor(data, SeqCst),
                            Update::Swap => word.swap(data, SeqCst),
                            Update::MinUnsigned => word.fetch_min(data, SeqCst),
                            Update::MaxUnsigned => word.fetch_max(data, SeqCst),
                            Update::MinSigned => signed.fetch_min(data as $signed, SeqCst) as $word,
                            Update::MaxSigned => signed.fetch_max(data as $signed, SeqCst) as $word,
                        };
                    });
                    return all;
                }
                /// Updates memory that no other thread accesses.
                ///
                /// # Safety
                /// Pointers to the active lanes' words are valid.
                #[inline(always)]
                unsafe fn update_lanes<P: Fn(usize) -> *mut u8 + Copy, D: Fn(usize) -> $word + Copy>(
                    (exec, pointer, data): (u32, P, D),
                    all: Option<&mut [$word; 32]>,
                    new: impl Fn($word, $word) -> $word + Copy,
                ) {
                    let update = move |lane| {
                        let pointer = pointer(lane);
                        // SAFETY: the caller guarantees valid pointers.
                        unsafe {
                            let old = $word::from_le_bytes(access::load(pointer));
                            access::store(pointer, new(old, data(lane)).to_le_bytes());
                            old
                        }
                    };
                    match all {
                        Some(all) => each_lane(exec, |lane| all[lane] = update(lane)),
                        None => each_lane(exec, move |lane| _ = update(lane)),
                    }
                }
                let (lanes, old) = ((exec, pointer, data), Some(&mut all).filter(|_| atomic.result.is_some()));
                // SAFETY: the caller guarantees valid pointers.
                unsafe {
                    match atomic.update {
                        Update::Add => update_lanes(lanes, old, |old, data| old.wrapping_add(data)),
                        Update::Sub => update_lanes(lanes, old, |old, data| old.wrapping_sub(data)),
                        Update::And => update_lanes(lanes, old, |old, data| old & data),
                        Update::Or => update_lanes(lanes, old, |old, data| old | data),
                        Update::Xor => update_lanes(lanes, old, |old, data| old ^ data),
                        Update::Swap => update_lanes(lanes, old, |_, data| data),
                        Update::MinUnsigned => update_lanes(lanes, old, |old, data| old.min(data)),
                        Update::MaxUnsigned => update_lanes(lanes, old, |old, data| old.max(data)),
                        Update::MinSigned => {
                            update_lanes(lanes, old, |old, data| (old as $signed).min(data as $signed) as $word)
                        }
                        Update::MaxSigned => {
                            update_lanes(lanes, old, |old, data| (old as $signed).max(data as $signed) as $word)
                        }
                    }
                }
                all
            }
        })*
    };
}

words! {
    u32, i32, AtomicU32, AtomicI32;
    u64, i64, AtomicU64, AtomicI64;
}

#[cfg(test)]
mod tests {
    use super::{Atomic, Update};

    #[test]
    fn operands_survive_as_arguments() {
        for (n, update) in Update::ALL.into_iter().enumerate() {
            let result = [None, Some(0), Some(1023)][n % 3];
            for (address64, lds, dwords) in [(false, false, 1), (true, false, 2), (false, true, 2)] {
                let atomic =
                    Atomic { offsets: 1023, shift: 3, address64, lds, dwords, data: 511, result, update };
                assert_eq!(Atomic::of_arguments(atomic.to_arguments()), atomic);
            }
        }
    }
}
