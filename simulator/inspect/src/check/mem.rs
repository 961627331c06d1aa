//! `mem`: accesses outside of every argument, misaligned ones, and loads of LDS or scratch that nothing has written.
//!
//! Global memory counts as written from the start: arguments without an initialiser are zero. An allocation is the bound, and a checked
//! run has gaps between allocations ([`super::GUARD_BYTES`]), so that an index a little too large is seen.

use super::Check;
use super::report::{Finding, Report, Site, access_name, describe};
use wavesim_engine::observe::{Done, Step};
use wavesim_loader::prepared::{Prepared, Shape};
use wavesim_machine::exec::effects::{Class, Effects};
use wavesim_machine::exec::watch::{Access, Place};
use wavesim_machine::memory::Region;

/// Bytes of a line of the scalar cache (RDNA manuals).
const SCALAR_LINE: u64 = 64;

/// Which bytes have been written.
pub struct Shadow {
    lds: Bits,
    /// All of LDS has been written.
    lds_full: bool,
    /// Of all waves, lane by lane, as the scheduler lays it out.
    scratch: Bits,
    scratch_bytes: u64,
    wave_size: u64,
    /// Loads of the running instruction that met unwritten bytes, by index in the log, with the byte.
    unwritten: Vec<(Access, u64)>,
    /// Allocations accessed before, each from its first byte to after its last: most accesses are in one of these.
    inside: [std::ops::Range<u64>; 2],
}

/// Bytes of a workgroup's LDS and scratch that have been written.
pub struct Group {
    lds: Bits,
    lds_full: bool,
    scratch: Bits,
}

/// A bit a byte.
#[derive(Default, Clone)]
struct Bits(Vec<u64>);

impl Bits {
    /// The range's words, each with the bits that are in it.
    fn words(at: u64, len: u64) -> impl Iterator<Item = (usize, u64)> {
        let end = at + len;
        (at / 64..end.div_ceil(64)).map(move |word| {
            let (from, to) = (at.max(word * 64) - word * 64, end.min(word * 64 + 64) - word * 64);
            (word as usize, u64::MAX >> (64 - (to - from)) << from)
        })
    }

    /// The range as bits of one word, if it is inside of one: most are.
    #[inline(always)]
    fn one_word(at: u64, len: u64) -> Option<(usize, u64)> {
        let from = at % 64;
        (len != 0 && from + len <= 64).then(|| ((at / 64) as usize, u64::MAX >> (64 - len) << from))
    }

    #[inline(always)]
    fn set(&mut self, at: u64, len: u64, on: bool) {
        match Bits::one_word(at, len) {
            Some((word, bits)) => self.set_word(word, bits, on),
            None => Bits::words(at, len).for_each(|(word, bits)| self.set_word(word, bits, on)),
        }
    }

    #[inline(always)]
    fn set_word(&mut self, word: usize, bits: u64, on: bool) {
        if let Some(word) = self.0.get_mut(word) {
            *word = if on { *word | bits } else { *word & !bits };
        }
    }

    /// Whether all of the range is set. What is beyond the end counts as set.
    #[inline(always)]
    fn all(&self, at: u64, len: u64) -> bool {
        match Bits::one_word(at, len) {
            Some((word, bits)) => self.0.get(word).is_none_or(|word| word & bits == bits),
            None => self.clear(at, len).is_none(),
        }
    }

    /// First byte of the range that is not set, relative to its start.
    #[inline(never)]
    fn clear(&self, at: u64, len: u64) -> Option<u64> {
        Bits::words(at, len).find_map(|(word, bits)| {
            let absent = !self.0.get(word).copied().unwrap_or(u64::MAX) & bits;
            (absent != 0).then(|| word as u64 * 64 + absent.trailing_zeros() as u64 - at)
        })
    }
}

impl Shadow {
    /// With room for the LDS and scratch of a workgroup.
    pub fn new(shape: &Shape) -> Shadow {
        let items: u64 = shape.block.iter().map(|d| *d as u64).product();
        let lanes = items.div_ceil(shape.wave_size as u64) * shape.wave_size as u64;
        let words = |bytes: u64| vec![0; bytes.div_ceil(64) as usize];
        Shadow {
            lds: Bits(words(shape.lds_bytes as u64)),
            lds_full: false,
            scratch: Bits(words(shape.scratch_bytes as u64 * lanes)),
            scratch_bytes: shape.scratch_bytes as u64,
            wave_size: shape.wave_size as u64,
            unwritten: Vec::new(),
            inside: [0..0, 0..0],
        }
    }

    /// A workgroup begins, with nothing written.
    pub fn start(&mut self) {
        self.lds.0.fill(0);
        self.lds_full = false;
        self.scratch.0.fill(0);
    }

    /// What nothing has written to.
    pub fn group(&self) -> Group {
        let empty = |bits: &Bits| Bits(vec![0; bits.0.len()]);
        Group { lds: empty(&self.lds), lds_full: false, scratch: empty(&self.scratch) }
    }

    /// Exchanges the workgroup that it follows.
    pub fn swap(&mut self, group: &mut Group) {
        std::mem::swap(&mut self.lds, &mut group.lds);
        std::mem::swap(&mut self.lds_full, &mut group.lds_full);
        std::mem::swap(&mut self.scratch, &mut group.scratch);
    }

    /// Notes whether all of LDS has been written, now that waves have met at a barrier.
    pub fn meet(&mut self) {
        // The last word may have bits beyond the end, which nothing writes.
        self.lds_full = self.lds.0.iter().all(|word| *word == u64::MAX);
    }

    /// Whether all of LDS has been written.
    #[inline(always)]
    pub fn is_lds_full(&self) -> bool {
        self.lds_full
    }

    pub fn before(&mut self) {
        self.unwritten.clear();
    }

    /// Whether the instruction's loads met bytes that nothing wrote.
    pub fn any_unwritten(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// Bits and place of a local access.
    fn local(&mut self, wave: usize, a: &Access) -> Option<(&mut Bits, u64)> {
        match a.place {
            Place::Lds => Some((&mut self.lds, a.address)),
            Place::Scratch => {
                let lane = wave as u64 * self.wave_size + a.lane.unwrap_or(0) as u64;
                Some((&mut self.scratch, lane * self.scratch_bytes + a.address))
            }
            _ => None,
        }
    }

    /// The first byte of a load that nothing wrote.
    pub fn unwritten(&self, a: &Access) -> Option<u64> {
        self.unwritten.iter().find(|u| u.0 == *a).map(|u| u.1)
    }

    /// Marks bytes as unwritten: what was stored there was never written either.
    pub fn forget(&mut self, wave: usize, a: &Access) {
        self.lds_full &= a.place != Place::Lds;
        if let Some((bits, at)) = self.local(wave, a) {
            bits.set(at, a.size_bytes as u64, false);
        }
    }

    /// Whether a plain access is certainly right: it is where the last ones were, aligned, and of bytes that were written, which is noted of
    /// a store. All others are for [`Shadow::after`].
    #[inline(always)]
    pub fn is_fine(&mut self, a: &Access, unaligned_lds: bool) -> bool {
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
                holds(&self.inside[0]) | holds(&self.inside[1])
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

    /// Reports accesses that are out of bounds, misaligned or of bytes that nothing wrote; notes what was written.
    pub fn after(
        &mut self,
        step: &Step<'_>,
        done: &Done<'_>,
        effects: &Effects,
        prepared: &Prepared,
        report: &mut Report,
    ) {
        let wave = step.wave.id as usize;
        let mut last: Option<&Region> = None;
        // An atomic's load and store are one access.
        let once = effects.atomic && done.accesses.iter().any(|a| !a.write);
        for a in done.accesses {
            if once && a.write {
                if let Some((bits, at)) = self.local(wave, a).filter(|_| !a.outside) {
                    bits.set(at, a.len_bytes(), true);
                }
                continue;
            }
            match a.place {
                Place::Global => {
                    let end = a.address.saturating_add(a.len_bytes());
                    let holds = |r: &std::ops::Range<u64>| r.start <= a.address && end <= r.end;
                    if !self.inside.iter().any(holds) {
                        bounds(step, a, effects, prepared, &mut last, report);
                        if let Some(r) = last {
                            self.inside.swap(0, 1);
                            self.inside[0] = r.base..r.base.saturating_add(r.len);
                            // What a scalar load fetches beyond the end is nothing that may be used.
                            let left = self.inside[0].end.saturating_sub(a.address);
                            if effects.class == Class::Smem && !a.write && left < a.len_bytes() {
                                self.unwritten.push((*a, left));
                            }
                        }
                    }
                }
                Place::Lds | Place::Scratch if a.outside => {
                    a.each().for_each(|a| outside(step, &a, effects, prepared, report));
                }
                Place::Lds | Place::Scratch => {
                    let len = a.len_bytes();
                    let Some((bits, at)) = self.local(wave, a) else { continue };
                    if a.write {
                        bits.set(at, len, true);
                    } else if !bits.all(at, len) {
                        self.unwritten_lanes(step, a, effects, prepared, report);
                    }
                }
                Place::Nowhere => {}
            }
            if a.place != Place::Nowhere {
                alignment(step, a, effects, prepared, report);
            }
        }
    }
}

impl Shadow {
    /// Which lanes of a load met unwritten bytes.
    fn unwritten_lanes(
        &mut self,
        step: &Step<'_>,
        a: &Access,
        effects: &Effects,
        prepared: &Prepared,
        report: &mut Report,
    ) {
        for one in a.each() {
            let Some((bits, at)) = self.local(step.wave.id as usize, &one) else { continue };
            let Some(byte) = bits.clear(at, one.size_bytes as u64) else { continue };
            self.unwritten.push((one, byte));
            if effects.atomic {
                uninitialised(step, &one, prepared, report);
            }
        }
    }
}

fn lane(a: &Access) -> Option<u32> {
    a.lane.map(u32::from)
}

/// Global accesses lie in one allocation.
fn bounds<'p>(
    step: &Step<'_>,
    a: &Access,
    effects: &Effects,
    prepared: &'p Prepared,
    last: &mut Option<&'p Region>,
    report: &mut Report,
) {
    let size = a.len_bytes();
    // Compilers fetch more kernel arguments than there are: scalar loads stay within a line of the scalar cache.
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
        return a.each().for_each(|a| bounds(step, &a, effects, prepared, last, report));
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
    // The nearest argument is the likeliest to be meant. A memory that counts words is the only one.
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

fn outside(step: &Step<'_>, a: &Access, effects: &Effects, prepared: &Prepared, report: &mut Report) {
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
        finding = finding.hint("hardware says nothing: such loads give zero and such stores are dropped");
    }
    report.add(finding);
}

/// An atomic on bytes that nothing wrote: no register shows it.
fn uninitialised(step: &Step<'_>, a: &Access, prepared: &Prepared, report: &mut Report) {
    let kind = "unwritten bytes";
    if !report.is_new(Check::Mem, kind, step.pc, None) {
        return;
    }
    let what = describe(prepared, a.place, a.address, a.size_bytes as u32);
    let message = format!("atomic on {what}, which nothing has written");
    let finding = Finding::new(Check::Mem, kind, message, Site::new(step, lane(a))).address(a.address);
    report.add(finding.hint(format!("{} has no defined content at the start", a.place.name())));
}

/// Lanes in a row are as aligned as the first. Atomics need their size. Plain accesses to global memory and scratch need nothing in compute
/// kernels; those to LDS need nothing in the unaligned mode, else dwords, or their size if that is smaller (manuals, *Alignment*).
#[inline]
fn alignment(step: &Step<'_>, a: &Access, effects: &Effects, prepared: &Prepared, report: &mut Report) {
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
        true => finding.note().hint("the hardware allows it, and takes longer"),
        false => finding,
    });
}
