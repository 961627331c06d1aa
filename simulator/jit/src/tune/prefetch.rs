//! Prefetches of global memory in versioned iterations, whose strides are known: kernels step through memory in
//! strides that the host's prefetcher does not follow. No result, schedule or instruction count depends on
//! them, and nothing is measured or remembered.

use crate::state::access::{ResolvedAccess, ResolvedAccesses};
use crate::state::emitter::Emitter;
use crate::state::loops::{Versioned, VersionedOffsets};
use crate::state::packet::Packet;
use wavesim_x64::inst::{Inst, Int2, Mem, V, Width};

impl Emitter<'_> {
    fn prefetch_lines(&mut self, location: &ResolvedAccess, base: V, lines: i32) {
        let (_, disp) = location.host();
        for line in 0..lines {
            self.b.f.push(Inst::Prefetch { from: Mem { base, disp: disp + 64 * line } });
        }
    }

    /// Prefetches what versioned iterations access a few iterations from now. The target is the second-level
    /// cache, which supports more outstanding lines than the first. Returns the accesses that are prefetched
    /// packet by packet ([`Emitter::prefetch_packets`]), each with the distance.
    pub fn prefetch_versioned(&mut self, versioned: &Versioned) -> Vec<(ResolvedAccess, V)> {
        let w = Width::W64;
        let mut by_packet = Vec::new();
        for location in streams(&versioned.run.resolved) {
            let alike = |one: &&VersionedOffsets| one.offsets == location.access.offsets();
            let Some(offsets) = versioned.offsets.iter().find(alike) else { continue };
            let distance = self.b.f.int2(Int2::Shl, w, offsets.step, AHEAD_SHIFT);
            if covers_lines(location) {
                by_packet.push((location.clone(), distance));
                continue;
            }
            let (host, _) = location.host();
            let base = self.b.f.int2(Int2::Add, w, host, offsets.low);
            let base = self.b.f.int2(Int2::Add, w, base, distance);
            self.prefetch_lines(location, base, lines(location));
        }
        by_packet
    }

    /// Prefetches what a packet of a later iteration accesses. Between the packets, prefetches delay loads
    /// less than all at once.
    pub fn prefetch_packets(&mut self, resolved: &ResolvedAccesses, packet: &mut Packet) {
        for (location, distance) in &resolved.prefetches {
            let Mem { base, .. } = self.shared_first_lane(location, packet);
            let base = self.b.f.int2(Int2::Add, Width::W64, base, *distance);
            self.prefetch_lines(location, base, lines(location) / PACKETS);
        }
    }
}

/// Returns the accesses of global memory, one of those with the same address.
fn streams(resolved: &ResolvedAccesses) -> Vec<&ResolvedAccess> {
    let all = &resolved.accesses;
    let first = |n: usize| !all[..n].iter().any(|before| before.has_same_address(&all[n]));
    let distinct = all.iter().enumerate().filter(|(n, one)| first(*n) && !one.access.is_in_lds());
    distinct.map(|(_, one)| one).collect()
}

/// The number of packets of 32 lanes.
const PACKETS: i32 = 4;

/// Returns whether each packet of a coalesced access has whole cache lines.
fn covers_lines(location: &ResolvedAccess) -> bool {
    lines(location) >= PACKETS
}

/// How many loop iterations ahead memory is prefetched, as a power of two.
const AHEAD_SHIFT: i32 = 3;

/// Returns the number of cache lines of a coalesced access by 32 lanes.
fn lines(location: &ResolvedAccess) -> i32 {
    (location.access.bytes as i32 / 2).max(1)
}
