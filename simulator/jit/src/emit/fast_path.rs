//! The fast path of runs with memory accesses. On it, all lanes are active, and each access is contiguous, or
//! uniform in each packet, as its offsets suggest. No packet branches, loads are emitted where they are
//! needed, and stores are part of the packet, so that stored values need not be loaded again. A check before
//! it proves that no packet stores what another one accesses. If any of this does not hold, the run takes its
//! slow path.

use super::memory::{Access, Located, Places};
use super::moves::First;
use super::packet::Packet;
use super::run::{Buffered, Run, Words};
use super::{Emitter, R};
use std::collections::HashMap;
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Label, Src, V, Width};

/// If the addresses of two contiguous accesses are closer than this, one packet's bytes overlap in them.
const PACKET_BYTES: i32 = 32;

impl Emitter<'_> {
    /// Emits both paths of a run. Returns for each mask its bits, and whether bits of inactive lanes are
    /// preserved.
    pub fn both_paths(
        &mut self,
        run: &Run,
        [exec, full]: [V; 2],
        places: &Places,
        masks: &[usize],
    ) -> R<Vec<(V, bool)>> {
        if run.accesses.is_empty() {
            let made = self.packets(&run.ops, [exec, full], places, masks)?;
            self.set_flags(Some(full), &made.normal);
            return Ok(made.sums.into_iter().zip(made.keeps).collect());
        }
        let [other, done]: [Label; 2] = [(); 2].map(|()| self.f.label());
        let sums: Vec<V> = masks.iter().map(|_| self.f.fresh(Class::Int)).collect();
        self.unless_fast(places, other);
        let fast = Places { fast: true, ..places.clone() };
        let made = self.packets(&run.ops, [exec, full], &fast, masks)?;
        self.set_flags(None, &made.normal);
        made.sums.iter().zip(&sums).for_each(|(from, to)| self.f.assign(*to, *from));
        self.f.push(Inst::Jump(done));
        self.f.push(Inst::Label(other));
        // Masks are written only by instructions before the first store.
        let mut masks = masks;
        let mut rest = &run.ops[..];
        while !rest.is_empty() {
            let store =
                |op: &Buffered| op.access.as_ref().and_then(|words| Some((words.first, words.store?)));
            let count = rest.iter().position(|op| store(op).is_some()).unwrap_or(rest.len());
            let (ops, after) = rest.split_at(count);
            if !ops.is_empty() {
                let made = self.packets(ops, [exec, full], places, masks)?;
                self.set_flags(Some(full), &made.normal);
                made.sums.iter().zip(&sums).for_each(|(from, to)| self.f.assign(*to, *from));
                masks = &[];
            }
            rest = after;
            if let Some((first, data)) = rest.first().and_then(store) {
                self.store_words(&places.located[first], data, exec, places)?;
                rest = &rest[1..];
            }
        }
        self.f.push(Inst::Label(done));
        Ok(sums.into_iter().zip(made.keeps).collect())
    }

    /// Returns the index of the last instruction that writes each register.
    pub fn last_writes(&mut self, ops: &[Buffered]) -> HashMap<u16, usize> {
        let mut last = HashMap::new();
        for (n, buffered) in ops.iter().enumerate() {
            let op = &self.ops[buffered.at as usize];
            last.extend((op.d..op.d + buffered.result_dwords()).map(|register| (register, n)));
        }
        last
    }

    /// Branches to a label unless the fast path of a run is equivalent to the slow one.
    fn unless_fast(&mut self, places: &Places, other: Label) {
        for (group, known) in places.groups.iter().enumerate() {
            let as_guessed = if places.is_coalesced(group) { known.together } else { known.same };
            self.unless(as_guessed, other);
        }
        for (n, store) in places.located.iter().enumerate().filter(|(_, place)| place.access.store) {
            for before in &places.located[..n] {
                self.unless_apart(before, store, other);
            }
        }
    }

    /// Branches to a label if a packet may store what another one accesses.
    fn unless_apart(&mut self, a: &Located, store: &Located, other: Label) {
        let w = Width::W64;
        if a.access.is_in_lds() != store.access.is_in_lds() || a.is_at(store) {
            return;
        }
        let bytes = [a, store].map(|place| place.access.bytes as i64);
        let [[a_lowest, a_farthest], [b_lowest, b_farthest]] = [a, store].map(|place| self.bounds_of(place));
        let [a_host, b_host] = [a, store].map(|place| {
            let (host, disp) = place.host();
            self.plus(host, disp.into())
        });
        let away = self.f.int2(Int2::Sub, w, b_host, a_host);
        let on = self.f.label();
        if a.is_beside(store) && bytes[0] == bytes[1] {
            // Same addresses: each lane accesses only its own element.
            self.f.branch(Cc::Eq, w, away, 0, on);
        }
        let (a_length, b_length) = {
            let a = self.f.int2(Int2::Sub, w, a_farthest, a_lowest);
            let b = self.f.int2(Int2::Sub, w, b_farthest, b_lowest);
            (self.plus(a, bytes[0]), self.plus(b, bytes[1]))
        };
        let away = self.f.int2(Int2::Add, w, away, b_lowest);
        let away = self.f.int2(Int2::Sub, w, away, a_lowest);
        self.f.branch(Cc::LtU, w, away, a_length, other);
        let zero = self.f.iconst(0);
        let away = self.f.int2(Int2::Sub, w, zero, away);
        self.f.branch(Cc::LtU, w, away, Src::Value(b_length), other);
        self.f.push(Inst::Label(on));
    }

    /// Emits a load or store on the fast path of a run.
    pub fn fast_access(&mut self, words: &Words, at: u32, places: &Places, packet: &mut Packet) -> R<()> {
        // A store may overwrite loaded memory: the load must not be folded past it.
        let stays = !places.located.iter().any(|place| place.access.store);
        let mut loaded: Vec<V> = Vec::new();
        for place in &places.located[words.first..words.first + words.count] {
            let mut first = match packet.firsts.remove(&place.group) {
                Some(first) => first,
                None => First::of(self, place, packet.base),
            };
            let from = first.of_lane(self, place);
            packet.firsts.insert(place.group, first);
            let Access { bytes, registers, .. } = place.access;
            if let Some(data) = words.store {
                let values: Vec<V> = (data..data + registers as u16)
                    .map(|register| {
                        let v = self.register(packet, register);
                        self.exact(v)
                    })
                    .collect();
                self.store_coalesced(from, &values, packet);
            } else if places.is_coalesced(place.group) {
                // Global memory is read only once, because other threads may write it concurrently.
                let stays = stays && place.access.is_in_lds();
                loaded.extend(self.load_coalesced(bytes, registers, from, stays, packet));
            } else {
                let out: Vec<V> = (0..registers).map(|_| self.f.fresh(Class::Vec)).collect();
                self.load_same(bytes, &out, from);
                loaded.extend(out);
            }
        }
        if let Some(part) = &words.part {
            return self.loaded_part(at, part, &places.located[words.first].access, loaded[0], packet);
        }
        let d = self.ops[at as usize].d;
        packet.registers.extend((d..).zip(loaded.into_iter().map(|v| (v, true))));
        Ok(())
    }
}

impl Places {
    /// Returns whether a group is expected to be contiguous rather than uniform. If each lane loads
    /// consecutive words, these are mostly a matrix row or list items that all lanes share.
    fn is_coalesced(&self, group: usize) -> bool {
        let members = || self.located.iter().filter(|place| place.group == group);
        if members().any(|place| place.access.store) {
            return true;
        }
        let mut places: Vec<(V, i32)> = members().map(Located::host).collect();
        places.sort_unstable();
        places.dedup();
        !places.windows(2).any(|pair| pair[0].0 == pair[1].0 && pair[1].1 - pair[0].1 < PACKET_BYTES)
    }
}
