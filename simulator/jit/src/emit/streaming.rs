//! Stores past the host's caches (non-temporal stores), in steady iterations that store whole cache lines:
//! see [`StoreTimes`].
//!
//! The host does not order such stores among themselves, nor with others. Other threads may observe their
//! order only if the kernel waits for its stores, and then there are none in the loop; at its end, the host
//! waits for them.

use super::Emitter;
use super::memory::{ResolvedAccess, ResolvedAccesses};
use super::packet::Packet;
use super::prefetch::covers_lines;
use super::steady::{Steady, SteadyOffsets};
use crate::frame::{frame_offset, wave_offset};
use crate::streaming::{begin_stores, end_stores};
use isa_lower::ir::{Body, Handlers, Stmt};
use isa_lower::visit::any_stmt;
use isa_spec::pcode::ir::Control;
use std::mem::offset_of;
use wavesim_isa::arch::Arch;
use wavesim_isa::arch::facts::Counter;
use wavesim_machine::state::store_times::StoreTimes;
use wavesim_machine::state::wave::STORE_TIMES;
use wavesim_x64::inst::{Cc, Inst, Int2, Mem, Size, Src, V, Width};

const UNMEASURED: i32 = StoreTimes::UNMEASURED as i32;
const STREAMING: i32 = StoreTimes::STREAMING as i32;
const MIN_SPAN: i32 = StoreTimes::MIN_SPAN as i32;

/// The size of a cache line in bytes.
const LINE: i32 = 64;

/// How the steady iterations of a loop store.
#[derive(Clone, Copy)]
pub struct StreamingStores {
    /// The index of the measurements.
    index: usize,
    /// The distance between iterations.
    step: V,
    /// The choice.
    choice: V,
    /// 0 if stores go past the caches.
    pub cached: V,
}

impl Emitter<'_> {
    /// Emits the choice for a loop. Returns `None` if no store that advances may go past the caches.
    pub fn begin_streaming(
        &mut self,
        resolved: &ResolvedAccesses,
        offsets: &[SteadyOffsets],
    ) -> Option<StreamingStores> {
        let step = |location: &ResolvedAccess| {
            let advances = |offsets: &&SteadyOffsets| offsets.register == location.access.register;
            Some(offsets.iter().find(advances)?.step)
        };
        let mut stores = resolved.accesses.iter().filter(|location| resolved.may_stream(location));
        let (store, step) = stores.find_map(|location| Some((location, step(location)?)))?;
        let index = self.ops[store.access.op_index as usize].number as usize % STORE_TIMES;
        let at = size_of::<StoreTimes>() * index + offset_of!(StoreTimes, choice);
        let choice = self.f.load(Size::B8, self.sgprs, wave_offset::STORE_TIMES + at as i32);
        let start = self.f.label();
        self.f.branch(Cc::Eq, Width::W32, choice, UNMEASURED, start);
        self.f.store(Size::B8, self.frame, frame_offset::LANE_BUFFER, Src::Imm(index as i32));
        self.call_cold(begin_stores as *const () as u64);
        self.f.push(Inst::Label(start));
        let cached = self.f.compare(Cc::Ne, Width::W32, choice, STREAMING);
        Some(StreamingStores { index, step, choice, cached })
    }

    /// Emits the end of a loop: its measurement, and the order of its stores with later ones.
    pub fn end_streaming(&mut self, steady: &Steady) {
        let Some(StreamingStores { index, step, choice, .. }) = steady.streaming else { return };
        let w = Width::W64;
        let [measured, done] = [(); 2].map(|()| self.f.label());
        let span = self.f.int2(Int2::Mul, w, steady.count, step);
        self.f.branch(Cc::Ne, Width::W32, choice, UNMEASURED, measured);
        let distance = self.f.int2(Int2::Add, w, span, MIN_SPAN);
        self.f.branch(Cc::LtU, w, distance, 2 * MIN_SPAN, done);
        self.f.push(Inst::Label(measured));
        for (n, arg) in (0..).zip([Src::Imm(index as i32), Src::Value(steady.count), Src::Value(span)]) {
            self.f.store(Size::B8, self.frame, frame_offset::LANE_BUFFER + 8 * n, arg);
        }
        self.call_cold(end_stores as *const () as u64);
        self.f.push(Inst::Label(done));
    }

    /// Stores vectors of a packet past the caches if the loop does so and they are whole cache lines;
    /// otherwise through the caches, where later iterations are prefetched.
    pub fn store_rows(
        &mut self,
        location: &ResolvedAccess,
        to: Mem,
        rows: &[V],
        resolved: &ResolvedAccesses,
        packet: &mut Packet,
    ) {
        let cached = resolved.cached.filter(|_| resolved.may_stream(location));
        let Some(cached) = cached else { return self.store_vectors(to, rows) };
        let [through, done] = [(); 2].map(|()| self.f.label());
        let address = self.add_imm(to.base, (to.disp % LINE).into());
        let within_line = self.f.int2(Int2::And, Width::W32, address, LINE - 1);
        let any = self.f.int2(Int2::Or, Width::W32, within_line, cached);
        self.f.branch(Cc::Ne, Width::W32, any, 0, through);
        for (n, v) in (0..).zip(rows) {
            self.f.push(Inst::VecStream { to: Mem { disp: to.disp + 32 * n, ..to }, v: *v });
        }
        self.f.push(Inst::Jump(done));
        self.f.push(Inst::Label(through));
        self.store_vectors(to, rows);
        let ahead = resolved.prefetches.iter().find(|(other, _)| other.has_same_address(location));
        if let Some((location, distance)) = ahead {
            self.prefetch_packet(location, *distance, packet);
        }
        self.f.push(Inst::Label(done));
    }
}

impl ResolvedAccesses {
    /// Returns whether an access may store past the caches: it stores whole lines, which have not just been
    /// loaded.
    pub fn may_stream(&self, location: &ResolvedAccess) -> bool {
        let loaded = |other: &ResolvedAccess| !other.access.store && other.has_same_address(location);
        let store = location.access.store && !location.access.is_in_lds();
        store && covers_lines(location) && !self.accesses.iter().any(loaded)
    }
}

/// Returns whether an instruction may make the order of stores observable: it waits for stores, or has to do
/// with the caches.
pub fn orders_stores(handlers: &Handlers, arch: Arch) -> bool {
    // What the instructions of other machines order is not known.
    let unknown = arch.machine().is_some();
    let orders = |builtin: Control| match builtin {
        Control::WaitIdle | Control::InvalidateCaches | Control::WriteBackCaches => true,
        wait => Counter::of(wait) == Some(arch.facts().counters.store),
    };
    let ordering = |s: &Stmt| matches!(s, Stmt::Control { builtin, .. } if orders(*builtin));
    unknown || matches!(&handlers.general, Body::Once(once) if any_stmt(&once.body, &ordering))
}
