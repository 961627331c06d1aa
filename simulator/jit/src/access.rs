//! Where the lanes of loads and stores are in the host's memory: found once for a run of vector instructions, before its first packet.

// A lane number indexes several lane vectors at once.
#![allow(clippy::needless_range_loop)]

use crate::frame::Frame;
use std::mem::MaybeUninit;
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::rt::{Cx, Space, load_lds, load_offsets, load_vecs};
use wavesim_machine::memory::{HostRange, access};
use wavesim_machine::state::LaneVec;
use wavesim_machine::state::wave::LAST_ADDRESSES;

/// Loads and stores of one run at most.
pub const ACCESSES: usize = 8;

/// A load or a store of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The register with the lanes' part of the address.
    pub register: u16,
    /// That part has 64 bits: the higher ones are in the next register.
    pub wide: bool,
    /// Only the last access of a run is one.
    pub store: bool,
    /// Addresses are offsets in LDS.
    pub lds: bool,
    /// Words of each lane: 1, 2 or 4.
    pub dwords: u8,
    /// The operation, of the program that the code was made for.
    pub op: *const Op,
}

// SAFETY: operations are plain data of a program, which threads share.
unsafe impl Send for Access {}

/// The part of the frame that is about them.
#[repr(C)]
pub struct Accesses {
    /// EXEC of the run.
    pub exec: u64,
    /// The wave's part of each address; in LDS, what is added to the lanes' offsets.
    pub bases: [MaybeUninit<u64>; ACCESSES],
    /// Where the words of lane 0 are; those of other lanes follow.
    pub places: [MaybeUninit<*mut u8>; ACCESSES],
    /// The store went to [`Accesses::rooms`], and has to be brought to its lanes' addresses.
    pub scattered: u32,
    /// Where the lanes of the store go then.
    targets: [MaybeUninit<*mut u8>; 32],
    /// For lanes that do not lie one after the other in memory.
    rooms: [MaybeUninit<[LaneVec; 4]>; ACCESSES],
}

impl Accesses {
    /// None.
    pub fn new() -> Accesses {
        Accesses {
            exec: 0,
            bases: [MaybeUninit::uninit(); ACCESSES],
            places: [MaybeUninit::uninit(); ACCESSES],
            scattered: 0,
            targets: [MaybeUninit::uninit(); 32],
            rooms: [MaybeUninit::uninit(); ACCESSES],
        }
    }
}

/// Finds the places of a run's accesses; what lanes load from all over memory is copied to a room in the frame. 0: an active lane's
/// address is outside of the memory, or the store would be seen by a load of the run.
///
/// # Safety
/// The host has AVX2, without which there is no compiled code. Called by compiled code of a wave of 32 with its frame, whose `exec` and `bases` are set, and a list of at most [`ACCESSES`] accesses,
/// of which only the last may be a store.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
pub unsafe extern "sysv64" fn locate(frame: *mut Frame, list: *const Access, count: u32) -> u32 {
    // SAFETY: by the contract, here and below. The frame and the context do not overlap.
    let (list, cx) = unsafe { (std::slice::from_raw_parts(list, count as usize), Frame::cx(frame)) };
    // SAFETY: likewise.
    let (vectors, accesses) = unsafe { (Frame::vectors(frame), &mut (*frame).accesses) };
    accesses.scattered = 0;
    for (k, found) in list.iter().enumerate() {
        // SAFETY: registers of the list are the wave's; the base of each access is set.
        let place = unsafe {
            let offsets = &*vectors.add(found.register as usize);
            let high = found.wide.then(|| &*vectors.add(found.register as usize + 1));
            let base = accesses.bases[k].assume_init();
            let lanes = Lanes { access: found, base, offsets, high, exec: accesses.exec as u32 };
            match lanes.coalesced(cx).filter(|place| !found.store || is_apart(accesses, list, k, *place)) {
                Some(place) => Some(place),
                None => lanes.apart(cx, accesses, k),
            }
        };
        let Some(place) = place else { return 0 };
        accesses.places[k] = MaybeUninit::new(place);
    }
    1
}

/// Whether no load before the store is of the same memory, but lane by lane of the same.
///
/// # Safety
/// The places of accesses before `at` are set.
unsafe fn is_apart(accesses: &Accesses, list: &[Access], at: usize, place: *mut u8) -> bool {
    let size = |access: &Access| 128 * access.dwords as usize;
    list[..at].iter().zip(&accesses.places).all(|(load, loaded)| {
        // SAFETY: by the contract.
        let (loaded, place) = (unsafe { loaded.assume_init() }.addr(), place.addr());
        let same = loaded == place && load.dwords == list[at].dwords;
        same || loaded + size(load) <= place || place + size(&list[at]) <= loaded
    })
}

/// The addresses of an access.
struct Lanes<'a> {
    access: &'a Access,
    base: u64,
    offsets: &'a LaneVec,
    high: Option<&'a LaneVec>,
    exec: u32,
}

impl Lanes<'_> {
    /// Where the first lane is, if all lanes are active and each follows the one before it.
    #[inline(always)]
    fn coalesced(&self, cx: &mut Cx<'_>) -> Option<*mut u8> {
        let (bytes, first) = (4 * self.access.dwords as usize, self.offsets.0[0]);
        if self.exec != u32::MAX
            || !follow(self.offsets, bytes as u32)
            || first > u32::MAX - 32 * bytes as u32
            || self.high.is_some_and(|high| !follow(high, 0))
        {
            return None;
        }
        let address = self.address(0);
        if self.access.lds {
            return lds(cx, address, 32 * bytes);
        }
        let host = cx.memory.range_of(address)?.host_of(address, 32 * bytes as u64, self.access.store)?;
        // SAFETY: an operation of the program.
        let number = unsafe { (*self.access.op).number };
        prefetch(cx, number, host, address, 32 * bytes);
        Some(host)
    }

    #[inline(always)]
    fn address(&self, lane: usize) -> u64 {
        let offset = self.offsets.0[lane];
        if self.access.lds {
            return offset.wrapping_add(self.base as u32) as u64;
        }
        let high = self.high.map_or(0, |high| high.0[lane]);
        self.base.wrapping_add(offset as u64 | (high as u64) << 32)
    }

    /// A room with what active lanes load, or for what they store.
    ///
    /// # Safety
    /// `k` is the number of the access in the list, whose operation is the program's.
    unsafe fn apart(&self, cx: &mut Cx<'_>, accesses: &mut Accesses, k: usize) -> Option<*mut u8> {
        let room = accesses.rooms[k].as_mut_ptr().cast::<u8>();
        if self.access.store {
            self.find_targets(cx, accesses)?;
            accesses.scattered = 1;
            return Some(room);
        }
        // SAFETY: by the contract, here and below.
        cx.op = unsafe { &*self.access.op };
        unsafe {
            match self.access.dwords {
                1 => self.load::<4, 1>(cx, room),
                2 => self.load::<8, 2>(cx, room),
                _ => self.load::<16, 4>(cx, room),
            }
        }
    }

    /// Loads as the interpreter's handlers do, to a room. A fault is theirs, when they come to it.
    ///
    /// # Safety
    /// There is room for `DWORDS` words of each lane; the lane vectors are the wave's.
    unsafe fn load<const BYTES: usize, const DWORDS: usize>(
        &self,
        cx: &mut Cx<'_>,
        room: *mut u8,
    ) -> Option<*mut u8> {
        let loaded = if self.access.lds {
            let mut offsets = *self.offsets;
            for lane in 0..32 {
                offsets.0[lane] = offsets.0[lane].wrapping_add(self.base as u32);
            }
            load_lds::<BYTES, DWORDS>(cx, &offsets, self.exec, 0)
        } else if self.access.wide {
            let addresses = std::array::from_fn(|lane| self.address(lane));
            load_vecs::<BYTES, DWORDS>(cx, Space::Global, &addresses, self.exec, 0)
        } else {
            // SAFETY: by the contract.
            unsafe { load_offsets::<BYTES, DWORDS>(cx, self.base, self.offsets, self.exec, 0) }
        };
        let Ok(rows) = loaded else {
            cx.event = None;
            return None;
        };
        // SAFETY: by the contract.
        unsafe {
            if DWORDS == 1 {
                room.cast::<LaneVec>().write(rows[0]);
            } else {
                let words = room.cast::<u32>();
                for lane in 0..32 {
                    for (k, row) in rows.iter().enumerate() {
                        words.add(lane * DWORDS + k).write(row.0[lane]);
                    }
                }
            }
        }
        Some(room)
    }

    fn find_targets(&self, cx: &mut Cx<'_>, accesses: &mut Accesses) -> Option<()> {
        let bytes = 4 * self.access.dwords as usize;
        let mut range = HostRange::EMPTY;
        for lane in 0..32 {
            if self.exec >> lane & 1 == 0 {
                continue;
            }
            let address = self.address(lane);
            let host = if self.access.lds {
                lds(cx, address, bytes)?
            } else {
                if !range.contains(address) {
                    range = cx.memory.range_of(address)?;
                }
                range.host_of(address, bytes as u64, true)?
            };
            accesses.targets[lane] = MaybeUninit::new(host);
        }
        Some(())
    }
}

/// Brings what a run has stored to its room, which [`Accesses::scattered`] says, to the lanes' addresses.
///
/// # Safety
/// As for [`locate`], after it, with the number of the store.
pub unsafe extern "sysv64" fn scatter(frame: *mut Frame, store: *const Access, k: u32) -> u32 {
    // SAFETY: by the contract.
    let (store, accesses) = unsafe { (&*store, &mut (*frame).accesses) };
    let bytes = 4 * store.dwords as usize;
    let room = accesses.rooms[k as usize].as_ptr().cast::<u8>();
    for lane in (0..32).filter(|lane| accesses.exec >> lane & 1 == 1) {
        let from = room.wrapping_add(lane * bytes);
        // SAFETY: `locate` has set the targets of active lanes, for this store; code has written the room.
        unsafe {
            let to = accesses.targets[lane].assume_init();
            match bytes {
                4 => access::store(to, from.cast::<[u8; 4]>().read()),
                8 => access::store(to, from.cast::<[u8; 8]>().read()),
                _ => access::store(to, from.cast::<[u8; 16]>().read()),
            }
        }
    }
    0
}

/// Bytes of LDS, if there are so many.
#[inline(always)]
fn lds(cx: &mut Cx<'_>, at: u64, bytes: usize) -> Option<*mut u8> {
    cx.lds.get_mut(at as usize..(at as usize).checked_add(bytes)?).map(<[u8]>::as_mut_ptr)
}

/// Whether each lane's number is `step` above that of the lane before it.
#[inline(always)]
fn follow(lanes: &LaneVec, step: u32) -> bool {
    let (first, mut gaps) = (lanes.0[0], 0);
    // A loop, as closures would be compiled without the host's features.
    for lane in 0..32 {
        gaps |= lanes.0[lane].wrapping_sub(first) ^ (lane as u32 * step);
    }
    gaps == 0
}

/// As the interpreter's handlers do it: what the same operation accesses two iterations of its loop from now.
#[inline(always)]
fn prefetch(cx: &mut Cx<'_>, number: u32, host: *const u8, address: u64, len: usize) {
    let last = &mut cx.wave.last_addresses[number as usize % LAST_ADDRESSES];
    let step = address.wrapping_sub(*last);
    *last = address;
    #[cfg(target_arch = "x86_64")]
    if step != 0 {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let next = host.wrapping_add(step.wrapping_mul(2) as usize);
        for line in (0..len).step_by(64) {
            // SAFETY: a prefetch reads nothing, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(next.wrapping_add(line).cast()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (host, len, step);
}
