//! `mem`: accesses outside of every argument, misaligned accesses, and loads of undefined bytes of LDS or
//! scratch.
//!
//! Global memory counts as defined from the start, except for the padding between kernel arguments, and for the
//! allocations of a host program until they are written ([`Written`]): arguments without an initialiser are zero.
//! The bounds are
//! those of allocations. A checked run leaves gaps between allocations ([`super::GUARD_BYTES`]), which catch
//! an index that is slightly too large.

use super::bitmap::Bitmap;
use super::heap;
use super::kind::{Check, CheckState, Setup};
use super::objects;
use super::race::is_atomic_pair;
use super::report::{Finding, Report, Site, access_name, describe};
use super::written::Written;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wavesim_engine::observe::{Done, Step};
use wavesim_loader::prepared::{Prepared, Shape};
use wavesim_machine::exec::effects::{Class, Effects};
use wavesim_machine::exec::watch::{Access, Place};
use wavesim_machine::memory::Region;

/// Number of allocations that are compared first: a kernel's buffers, its arguments and what they point to.
const RECENT: usize = 6;
/// Line size of the scalar cache in bytes (RDNA manuals).
const SCALAR_LINE: u64 = 64;

/// Shadow memory of one bit per byte: whether the byte has been written.
pub struct Shadow {
    lds: Bitmap,
    /// Whether all of LDS has been written.
    lds_full: bool,
    /// Scratch of all waves, lane by lane, as the scheduler lays it out.
    scratch: Bitmap,
    scratch_bytes: u64,
    /// By wave: the end of the scratch bytes that its lanes have written, and the last return.
    stacks: Vec<Stack>,
    wave_size: u64,
    /// Loads of the current instruction that read unwritten bytes, each with a mask of those bytes.
    unwritten: Vec<(Access, u64)>,
    /// The written bytes of global memory whose contents are undefined at first.
    written: Option<Arc<Mutex<Written>>>,
    /// Address ranges to which the program may not store, and a range that contains all of them.
    constant: Vec<std::ops::Range<u64>>,
    constants: std::ops::Range<u64>,
    objects: objects::Shadow,
    heap: heap::Shadow,
    /// The blocks that the allocator has just returned: address and size.
    fresh: Vec<(u64, u64)>,
    /// The memory of the launch.
    memory: Vec<Region>,
    /// Address ranges of the allocations accessed last, without constants; most accesses hit one of these.
    recent: [std::ops::Range<u64>; RECENT],
}

/// Shadow memory of a workgroup's LDS and scratch.
#[derive(Default)]
pub struct MemGroup {
    lds: Bitmap,
    lds_full: bool,
    scratch: Bitmap,
    stacks: Vec<Stack>,
    calls: heap::HeapGroup,
}

/// The use of scratch as a stack by a wave.
#[derive(Debug, Clone, Copy, Default)]
struct Stack {
    /// The end of the bytes that lanes have written.
    end: u64,
    /// The bytes of frames that the last return has left, and its PC.
    left: (u64, u64, u64),
}

impl CheckState for Shadow {
    type WorkgroupState = MemGroup;

    fn new(setup: &Setup<'_>) -> Shadow {
        let mut shadow = Shadow::of_shape(&setup.prepared.shape);
        shadow.set_constant(&setup.prepared.constant);
        shadow.objects = objects::Shadow::new(setup);
        shadow.heap = heap::Shadow::new(setup.prepared, setup.effects);
        shadow.memory = setup.prepared.memory.regions().to_vec();
        if !setup.prepared.padding.is_empty() {
            let mut written = Written::default();
            setup
                .prepared
                .padding
                .iter()
                .for_each(|bytes| written.track(bytes.start, bytes.end - bytes.start));
            shadow.set_written(Arc::new(Mutex::new(written)));
        }
        shadow
    }

    fn start(&mut self, _workgroup: [u32; 3], waves: usize) {
        self.heap.start(waves);
        self.lds.0.fill(0);
        self.lds_full = false;
        self.scratch.0.fill(0);
        self.stacks.fill(Stack::default());
    }

    fn swap(&mut self, group: &mut MemGroup) {
        std::mem::swap(&mut self.lds, &mut group.lds);
        std::mem::swap(&mut self.lds_full, &mut group.lds_full);
        std::mem::swap(&mut self.scratch, &mut group.scratch);
        std::mem::swap(&mut self.stacks, &mut group.stacks);
        self.heap.swap(&mut group.calls);
    }

    fn observes(&self, index: usize) -> bool {
        self.heap.observes(index)
    }

    /// Sees calls of the allocator.
    fn before(&mut self, step: &Step<'_>, _effects: &Effects, report: &mut Report) {
        if self.heap.observes(step.index) {
            self.see_allocator(step, report);
        }
    }

    fn park(&mut self) -> MemGroup {
        let empty = |bits: &Bitmap| Bitmap(vec![0; bits.0.len()]);
        let mut group = MemGroup {
            lds: empty(&self.lds),
            lds_full: false,
            scratch: empty(&self.scratch),
            stacks: vec![Stack::default(); self.stacks.len()],
            calls: heap::HeapGroup::default(),
        };
        self.swap(&mut group);
        group
    }
}

impl Shadow {
    /// Creates shadow memory for the LDS and scratch of a workgroup.
    fn of_shape(shape: &Shape) -> Shadow {
        let items: u64 = shape.block.iter().map(|d| *d as u64).product();
        let lanes = items.div_ceil(shape.wave_size as u64) * shape.wave_size as u64;
        Shadow {
            lds: Bitmap::new(shape.lds_bytes as u64),
            lds_full: false,
            scratch: Bitmap::new(shape.scratch_bytes as u64 * lanes),
            scratch_bytes: shape.scratch_bytes as u64,
            stacks: vec![Stack::default(); lanes as usize / shape.wave_size as usize],
            wave_size: shape.wave_size as u64,
            unwritten: Vec::new(),
            written: None,
            constant: Vec::new(),
            constants: 0..0,
            objects: objects::Shadow::default(),
            heap: heap::Shadow::default(),
            fresh: Vec::new(),
            memory: Vec::new(),
            recent: [const { 0..0 }; RECENT],
        }
    }

    /// Marks the bytes of a wave's scratch from an offset on as undefined again: the function to which they
    /// belonged returns at `pc`.
    pub fn leave_frame(&mut self, wave: usize, from: u64, pc: u64) {
        let stack = &mut self.stacks[wave];
        if stack.end <= from {
            return;
        }
        let len = stack.end - from;
        *stack = Stack { end: from, left: (from, stack.end, pc) };
        for lane in wave as u64 * self.wave_size..(wave as u64 + 1) * self.wave_size {
            self.scratch.set(lane * self.scratch_bytes + from, len, false);
        }
    }

    /// Returns the PC of the return that has left the frame to which a byte of scratch belonged, if it is the
    /// last one.
    pub fn left_by(&self, wave: u32, address: u64) -> Option<u64> {
        let (start, end, pc) = self.stacks.get(wave as usize)?.left;
        (start..end).contains(&address).then_some(pc)
    }

    /// Updates the flag for fully written LDS; called after a barrier.
    pub fn update_lds_full(&mut self) {
        // The last word may have bits beyond the end, which are never set.
        self.lds_full = self.lds.0.iter().all(|word| *word == u64::MAX);
    }

    /// Returns whether all of LDS has been written.
    #[inline(always)]
    pub fn is_lds_full(&self) -> bool {
        self.lds_full
    }

    /// Records what the allocator has allocated and freed. The contents of a new block are undefined.
    #[cold]
    fn see_allocator(&mut self, step: &Step<'_>, report: &mut Report) {
        let new = self.heap.before(step, &self.memory, report);
        if new.is_empty() {
            return;
        }
        // The last accessed allocations may contain blocks.
        self.recent = [const { 0..0 }; RECENT];
        let mut written = lock(self.written.get_or_insert_with(Arc::default));
        for &(address, len) in &new {
            written.forget(address);
            if len != 0 && !written.tracks(address, len) {
                written.track(address, len);
            }
        }
        drop(written);
        self.fresh.extend(new);
    }

    /// Returns whether the program allocates.
    pub fn has_allocator(&self) -> bool {
        self.heap.is_used()
    }

    /// Takes the blocks that the allocator has just returned.
    #[inline(always)]
    pub fn take_fresh(&mut self) -> Option<Vec<(u64, u64)>> {
        (!self.fresh.is_empty()).then(|| std::mem::take(&mut self.fresh))
    }

    /// Uses the blocks of device `malloc` that other launches share.
    pub fn set_blocks(&mut self, blocks: Arc<Mutex<heap::Blocks>>) {
        self.heap.set_blocks(blocks, &self.memory);
    }

    /// Reports what remains at the end of the run.
    pub fn report_leaks(&self, report: &mut Report) {
        self.heap.report_leaks(report);
    }

    /// Returns whether accesses of an instruction, given by its index, are compared with the bounds of variables.
    #[inline(always)]
    pub fn watches(&self, index: usize) -> bool {
        self.objects.watches(index)
    }

    /// Returns whether this holds for accesses to LDS.
    #[inline(always)]
    pub fn watches_lds(&self) -> bool {
        self.objects.watches_lds
    }

    pub fn begin_instruction(&mut self) {
        self.unwritten.clear();
    }

    /// Returns whether the instruction's loads read unwritten bytes.
    pub fn any_unwritten(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// Returns the bitmap of a local access, and its position there.
    fn bitmap_of(&mut self, wave: usize, a: &Access) -> Option<(&mut Bitmap, u64)> {
        match a.place {
            Place::Lds => Some((&mut self.lds, a.address)),
            Place::Scratch => {
                let lane = wave as u64 * self.wave_size + a.lane.unwrap_or(0) as u64;
                Some((&mut self.scratch, lane * self.scratch_bytes + a.address))
            }
            _ => None,
        }
    }

    /// Returns a mask of the bytes of a load that are unwritten; 0 if there are none.
    pub fn unwritten(&self, a: &Access) -> u64 {
        self.unwritten.iter().find(|u| u.0 == *a).map_or(0, |u| u.1)
    }

    /// Ends the tracking of some ranges.
    pub fn forget(&self, ranges: &[std::ops::Range<u64>]) {
        if let Some(written) = &self.written {
            let mut written = lock(written);
            ranges.iter().for_each(|range| written.forget(range.start));
        }
    }

    /// Sets the address ranges to which the program may not store.
    pub fn set_constant(&mut self, ranges: &[std::ops::Range<u64>]) {
        let start = ranges.iter().map(|r| r.start).min().unwrap_or(0);
        self.constants = start..ranges.iter().map(|r| r.end).max().unwrap_or(0);
        self.constant = ranges.to_vec();
    }

    /// Tracks which bytes of global memory have been written.
    pub fn set_written(&mut self, written: Arc<Mutex<Written>>) {
        self.written = Some(written);
    }

    /// Marks bytes as undefined again, after a store of undefined data.
    pub fn mark_unwritten(&mut self, wave: usize, a: &Access) {
        self.lds_full &= a.place != Place::Lds;
        if let Some((bits, at)) = self.bitmap_of(wave, a) {
            bits.set(at, a.size_bytes as u64, false);
        }
    }

    /// Fast path: returns whether a plain access is known to be valid, that is, aligned, within a recently
    /// accessed allocation, and of written bytes. Marks the bytes of a store as written. Other accesses are
    /// left to [`Shadow::after`].
    #[inline(always)]
    pub fn is_valid_access(&mut self, a: &Access, unaligned_lds: bool) -> bool {
        if !unaligned_lds && a.address & 3 != 0 {
            let size = (a.size_bytes as u64).next_power_of_two().min(4);
            if a.address & (size - 1) != 0 {
                return false;
            }
        }
        match a.place {
            Place::Global => {
                let end = a.address.saturating_add(a.len_bytes());
                let holds = |r: &std::ops::Range<u64>| (r.start <= a.address) & (end <= r.end);
                self.recent.iter().any(holds) || !a.write && holds(&self.constants)
            }
            Place::Lds if !a.outside => {
                if !a.write && self.lds_full {
                    return true;
                }
                let len = a.len_bytes();
                if a.write {
                    self.lds.set(a.address, len, true);
                    return true;
                }
                self.lds.all(a.address, len)
            }
            _ => false,
        }
    }

    /// Reports accesses that are out of bounds, misaligned or of unwritten bytes; marks the bytes of stores
    /// as written.
    pub fn after(
        &mut self,
        step: &Step<'_>,
        done: &Done<'_>,
        effects: &Effects,
        prepared: &Prepared,
        report: &mut Report,
    ) {
        let wave = step.wave.id as usize;
        if self.objects.watches(step.index) {
            self.objects.after(step, done.accesses, effects.atomic, prepared, report);
        }
        let mut last: Option<&Region> = None;
        // An atomic's load and store are one access.
        let once = effects.atomic && done.accesses.iter().any(|a| !a.write);
        let mut defined: Option<&Access> = None;
        for a in done.accesses {
            if is_masked(step, a) {
                continue;
            }
            if once && a.write {
                if defined.is_some_and(|load| is_atomic_pair(load, a)) {
                    continue;
                }
                if a.place == Place::Global && self.written.is_some() {
                    self.record_global(step, a, effects, prepared, report);
                } else if let Some((bits, at)) = self.bitmap_of(wave, a).filter(|_| !a.outside) {
                    bits.set(at, a.len_bytes(), true);
                }
                continue;
            }
            self.heap.check(step, a, effects.atomic, prepared, report);
            match a.place {
                Place::Global => {
                    let end = a.address.saturating_add(a.len_bytes());
                    let holds = |r: &std::ops::Range<u64>| r.start <= a.address && end <= r.end;
                    if a.write && self.constant.iter().any(|r| a.address < r.end && r.start < end) {
                        a.each().for_each(|a| self.report_constant(step, &a, effects, prepared, report));
                    }
                    if !self.recent.iter().any(holds) {
                        check_bounds(step, a, effects, prepared, &mut last, report);
                        if let Some(r) = last {
                            let bounds = r.base..r.base.saturating_add(r.len);
                            if let Some(writable) = self.without_constants(&bounds, a.address)
                                && !self.heap.covers(r.base)
                                && self.is_complete(r)
                            {
                                self.recent.rotate_right(1);
                                self.recent[0] = writable;
                            }
                            // Data that a scalar load fetches beyond the end is undefined.
                            let left = bounds.end.saturating_sub(a.address);
                            if effects.class == Class::Smem && !a.write && left < a.len_bytes() {
                                self.unwritten.push((*a, u64::MAX << left));
                            }
                        }
                        if self.written.is_some() {
                            self.record_global(step, a, effects, prepared, report);
                        }
                    }
                }
                Place::Lds | Place::Scratch if a.outside => {
                    a.each().for_each(|a| report_outside(step, &a, effects, prepared, report));
                }
                Place::Lds | Place::Scratch => {
                    let len = a.len_bytes();
                    let Some((bits, at)) = self.bitmap_of(wave, a) else { continue };
                    if a.write {
                        bits.set(at, len, true);
                        if a.place == Place::Scratch {
                            let stack = &mut self.stacks[wave];
                            stack.end = stack.end.max(a.address + len);
                        }
                    } else if !bits.all(at, len) {
                        self.record_unwritten_lanes(step, a, effects, prepared, report);
                    } else if once {
                        defined = Some(a);
                    }
                }
                Place::Nowhere => {}
            }
            if a.place != Place::Nowhere {
                check_alignment(step, a, effects, prepared, report);
            }
        }
    }
}

impl Shadow {
    /// Returns whether all of a region has been written.
    fn is_complete(&self, region: &Region) -> bool {
        let written = self.written.as_ref().map(|written| lock(written));
        written.is_none_or(|written| written.is_complete(region.base, region.len))
    }

    /// Returns the part of a region that contains an address, without constants and what is between them.
    fn without_constants(&self, region: &std::ops::Range<u64>, address: u64) -> Option<std::ops::Range<u64>> {
        let constants = &self.constants;
        let (start, end) = match address {
            _ if constants.is_empty() => (region.start, region.end),
            at if at < constants.start => (region.start, region.end.min(constants.start)),
            at if at >= constants.end => (region.start.max(constants.end), region.end),
            _ => return None,
        };
        Some(start..end)
    }

    /// Records an access to global memory whose written bytes are tracked: the bytes that a store writes, or the
    /// unwritten ones that a load reads.
    #[cold]
    fn record_global(
        &mut self,
        step: &Step<'_>,
        a: &Access,
        effects: &Effects,
        prepared: &Prepared,
        report: &mut Report,
    ) {
        let Some(written) = &self.written else { return };
        let mut written = lock(written);
        if a.write {
            return written.write(a.address, a.len_bytes());
        }
        if written.is_written(a.address, a.len_bytes()) {
            return;
        }
        for one in a.each() {
            let mask = written.unwritten(one.address, one.size_bytes as u64);
            if mask == 0 {
                continue;
            }
            match self.unwritten.iter_mut().find(|u| u.0 == one) {
                Some(known) => known.1 |= mask,
                None => self.unwritten.push((one, mask)),
            }
            if effects.atomic {
                report_unwritten_atomic(step, &one, prepared, report);
            }
        }
    }

    /// Reports a store to constant data.
    #[cold]
    fn report_constant(
        &self,
        step: &Step<'_>,
        a: &Access,
        effects: &Effects,
        prepared: &Prepared,
        report: &mut Report,
    ) {
        let kind = "store to constant data";
        let end = a.address.saturating_add(a.size_bytes as u64);
        let hit = self.constant.iter().any(|r| a.address < r.end && r.start < end);
        if !hit || !report.is_new(Check::Mem, kind, step.pc, None) {
            return;
        }
        let what = describe(prepared, a.place, a.address, a.size_bytes as u32);
        let name = access_name(a, effects.atomic);
        let message = format!("{name} of {what} is to constant data or code");
        report.add(
            Finding::new(Check::Mem, kind, message, Site::new(step, lane(a)))
                .address(a.address)
                .hint("on hardware, the store changes it for other launches, or faults"),
        );
    }

    /// Records the lanes of a load that read unwritten bytes.
    fn record_unwritten_lanes(
        &mut self,
        step: &Step<'_>,
        a: &Access,
        effects: &Effects,
        prepared: &Prepared,
        report: &mut Report,
    ) {
        for one in a.each() {
            let Some((bits, at)) = self.bitmap_of(step.wave.id as usize, &one) else { continue };
            let mask = bits.clear_mask(at, one.size_bytes as u64);
            if mask == 0 {
                continue;
            }
            self.unwritten.push((one, mask));
            if effects.atomic {
                report_unwritten_atomic(step, &one, prepared, report);
            }
        }
    }
}

/// A panic of another thread leaves the bits valid.
fn lock(written: &Mutex<Written>) -> MutexGuard<'_, Written> {
    written.lock().unwrap_or_else(PoisonError::into_inner)
}

fn lane(a: &Access) -> Option<u32> {
    a.lane.map(u32::from)
}

/// Reports a global access that is not within one allocation.
fn check_bounds<'p>(
    step: &Step<'_>,
    a: &Access,
    effects: &Effects,
    prepared: &'p Prepared,
    last: &mut Option<&'p Region>,
    report: &mut Report,
) {
    let size = a.len_bytes();
    // Compilers load more kernel arguments than there are; a scalar load may extend to the end of the scalar
    // cache line.
    let scalar = effects.class == Class::Smem;
    let len = |r: &Region| if scalar { r.len.next_multiple_of(SCALAR_LINE) } else { r.len };
    let holds = |r: &Region| a.address >= r.base && a.address - r.base + size <= len(r);
    if last.is_some_and(holds) {
        return;
    }
    let regions = prepared.memory.regions();
    let at = regions.partition_point(|r| r.base <= a.address);
    let region = at.checked_sub(1).map(|at| &regions[at]);
    let own = prepared.memory.own_address(a.address);
    if region.is_some_and(holds) {
        *last = region;
        return;
    }
    if a.lanes > 1 {
        return a.each().for_each(|a| check_bounds(step, &a, effects, prepared, last, report));
    }
    let kind = "out of bounds";
    if !report.is_new(Check::Mem, kind, step.pc, None) {
        return;
    }
    let what = describe(prepared, a.place, a.address, a.size_bytes as u32);
    let of = if prepared.memory.is_word_addressed() { "memory" } else { "every argument" };
    let mut finding = Finding::new(
        Check::Mem,
        kind,
        format!("{} of {what} is outside of {of}", access_name(a, effects.atomic)),
        Site::new(step, lane(a)),
    )
    .address(own);
    // The nearest argument is most likely the intended one. A memory that counts words has only one.
    if let Some(r) = region.filter(|_| !prepared.memory.is_word_addressed()) {
        let offset = a.address - r.base;
        let next = regions.get(at).map_or(u64::MAX, |next| next.base - a.address);
        if offset < r.len {
            let inside = r.len - offset;
            finding = finding
                .hint(format!("`{}` ends {inside} bytes into the access: it has {} bytes", r.name, r.len));
        } else if offset - r.len < super::GUARD_BYTES.min(next) {
            let beyond = offset - r.len;
            finding = finding.hint(format!(
                "`{}` has {} bytes; the access starts {beyond} bytes beyond its end",
                r.name, r.len
            ));
        }
    }
    report.add(finding);
}

/// Returns whether an access is beyond LDS because its compiler has masked the lane.
fn is_masked(step: &Step<'_>, a: &Access) -> bool {
    let beyond = a.outside && a.place == Place::Lds;
    let mask = beyond.then(|| step.program.arch.facts().lds_mask).flatten().map(u64::from);
    mask.is_some_and(|mask| (mask..=mask + u64::from(u16::MAX)).contains(&a.address))
}

fn report_outside(step: &Step<'_>, a: &Access, effects: &Effects, prepared: &Prepared, report: &mut Report) {
    let (kind, has, of) = match a.place {
        Place::Lds => ("out of LDS", prepared.shape.lds_bytes, "the workgroup's"),
        _ => ("out of scratch", prepared.shape.scratch_bytes, "the lane's"),
    };
    if !report.is_new(Check::Mem, kind, step.pc, None) {
        return;
    }
    let what = describe(prepared, a.place, a.address, a.size_bytes as u32);
    let name = access_name(a, effects.atomic);
    let message = format!("{name} of {what} is beyond {of} {has} bytes of {}", a.place.name());
    let mut finding = Finding::new(Check::Mem, kind, message, Site::new(step, lane(a))).address(a.address);
    if a.place == Place::Lds {
        finding =
            finding.hint("hardware reports no error: such loads return zero and such stores are dropped");
    }
    report.add(finding);
}

/// Reports an atomic on unwritten bytes; the definedness of registers does not cover it.
fn report_unwritten_atomic(step: &Step<'_>, a: &Access, prepared: &Prepared, report: &mut Report) {
    let kind = "unwritten bytes";
    if !report.is_new(Check::Mem, kind, step.pc, None) {
        return;
    }
    let what = describe(prepared, a.place, a.address, a.size_bytes as u32);
    let message = format!("atomic on {what}, which was never written");
    let finding = Finding::new(Check::Mem, kind, message, Site::new(step, lane(a))).address(a.address);
    report.add(finding.hint(format!("{} is uninitialised at the start", a.place.name())));
}

/// Reports a misaligned access. The lanes of a strided access are all aligned like the first one. Atomics
/// require natural alignment. In compute kernels, plain accesses to global memory and scratch require none.
/// Those to LDS require none in unaligned mode; otherwise they require the smaller of their size and a dword
/// (manuals, *Alignment*).
#[inline]
fn check_alignment(step: &Step<'_>, a: &Access, effects: &Effects, prepared: &Prepared, report: &mut Report) {
    let size = a.size_bytes as u64;
    let unaligned = a.place != Place::Lds || prepared.modes.unaligned_lds;
    let needed = match effects.atomic {
        true => size.next_power_of_two(),
        false if prepared.modes.unaligned_lds => 1,
        false => size.next_power_of_two().min(4),
    };
    if needed <= 1 || a.address.is_multiple_of(needed) || effects.class == Class::Smem {
        return;
    }
    let kind = "misaligned";
    if !report.is_new(Check::Mem, kind, step.pc, None) {
        return;
    }
    let what = describe(prepared, a.place, a.address, a.size_bytes as u32);
    let name = access_name(a, effects.atomic);
    let message = format!("{name} of {what} is not aligned to {needed} bytes");
    let finding = Finding::new(Check::Mem, kind, message, Site::new(step, lane(a))).address(a.address);
    report.add(match unaligned && !effects.atomic {
        true => finding.note().hint("the hardware supports it, but more slowly"),
        false => finding,
    });
}
