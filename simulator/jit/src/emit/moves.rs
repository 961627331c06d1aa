//! Loads and stores of a packet's lanes. Contiguous lanes are moved by vector instructions.

use super::memory::{Access, Located, Places};
use super::packet::{Packet, PacketAt};
use super::run::Words;
use super::{Emitter, R, Unsupported};
use crate::frame::{LANE_VEC_BYTES, at};
use std::collections::HashMap;
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Label, Mem, Size, V, Width};

impl Emitter<'_> {
    /// Loads the words of a packet's lanes.
    pub fn load_words(&mut self, words: &Words, at: u32, places: &Places, packet: &mut Packet) -> R<()> {
        let all = words.first..words.first + words.count;
        for place in all.clone() {
            // A run stores nothing before its last load, so that all loads with the same offsets are emitted
            // together.
            if !packet.loaded.contains_key(&place) {
                self.load_group(words.exec, places.located[place].group, places, packet)?;
            }
        }
        if let Some(part) = &words.part {
            let v = packet.loaded[&words.first][0];
            return self.loaded_part(at, part, &places.located[words.first].access, v, packet);
        }
        let loaded = all.flat_map(|place| packet.loaded[&place].clone());
        let d = self.ops[at as usize].d;
        packet.registers.extend((d..).zip(loaded.map(|v| (v, true))));
        Ok(())
    }

    /// Loads all accesses of a group.
    fn load_group(&mut self, exec: V, group: usize, places: &Places, packet: &mut Packet) -> R<()> {
        let is_load = |(_, place): &(usize, &Located)| place.group == group && !place.access.store;
        let members: Vec<(usize, &Located)> = places.located.iter().enumerate().filter(is_load).collect();
        let results: Vec<Vec<V>> = members
            .iter()
            .map(|(_, place)| (0..place.access.registers).map(|_| self.f.fresh(Class::Vec)).collect())
            .collect();
        let [apart, same, done] = [(); 3].map(|()| self.f.label());
        let group = &places.groups[group];
        self.f.branch(Cc::Eq, Width::W32, group.together, 0, same);
        let mut first = First::of(self, members[0].1, packet.base);
        for ((_, place), out) in members.iter().zip(&results) {
            let from = first.of_lane(self, place);
            self.load_together(place.access.bytes, out, from);
        }
        self.f.push(Inst::Jump(done));
        self.f.push(Inst::Label(same));
        self.f.branch(Cc::Eq, Width::W32, group.same, 0, apart);
        let mut first = First::of(self, members[0].1, packet.base);
        for ((_, place), out) in members.iter().zip(&results) {
            let from = first.of_lane(self, place);
            self.load_same(place.access.bytes, out, from);
        }
        self.f.push(Inst::Jump(done));
        self.f.push(Inst::Label(apart));
        // Values defined on this path do not dominate the others.
        let (known, mut inner) = (self.known.clone(), Packet::new(packet.base));
        self.load_apart(&members, &results, exec, &mut inner)?;
        self.known = known;
        self.f.push(Inst::Label(done));
        packet.loaded.extend(members.iter().map(|(at, _)| *at).zip(results));
        Ok(())
    }

    /// Loads a group whose packets differ in kind: tests each packet.
    fn load_apart(
        &mut self,
        members: &[(usize, &Located)],
        results: &[Vec<V>],
        exec: V,
        packet: &mut Packet,
    ) -> R<()> {
        let Access { registers, bytes, .. } = members[0].1.access;
        let offsets = self.offsets(members[0].1, exec, packet)?;
        let [same, each, done] = [(); 3].map(|()| self.f.label());
        let first = self.f.low_int(offsets);
        let mut first = First { offset: first, addresses: HashMap::new() };
        let mut from = Vec::new();
        for (_, place) in members {
            from.push(first.of_lane(self, place));
        }
        self.unless_in_steps(offsets, bytes as u32, same, packet);
        results.iter().zip(&from).for_each(|(out, from)| self.load_together(bytes, out, *from));
        self.f.push(Inst::Jump(done));
        self.f.push(Inst::Label(same));
        self.unless_in_steps(offsets, 0, each, packet);
        results.iter().zip(&from).for_each(|(out, from)| self.load_same(bytes, out, *from));
        self.f.push(Inst::Jump(done));
        self.f.push(Inst::Label(each));
        let mut addresses = HashMap::new();
        for ((_, place), out) in members.iter().zip(results) {
            let (base, disp) = place.host();
            if let ([d], true) = (&out[..], bytes >= 4) {
                let d = *d;
                self.f.push(Inst::Gather { d, from: Mem { base, disp }, offsets });
                continue;
            }
            let from = *addresses.entry(base).or_insert_with(|| self.addresses(base, offsets));
            let from = from.map(|base| Mem { base, disp });
            let loaded = match bytes {
                1 | 2 => vec![self.part_apart(bytes, from)],
                _ => self.loaded_apart(from, registers),
            };
            out.iter().zip(&loaded).for_each(|(to, from)| self.f.assign(*to, *from));
        }
        self.f.push(Inst::Label(done));
        Ok(())
    }

    /// Branches to a label unless each lane's offset is the previous one plus `step`.
    fn unless_in_steps(&mut self, offsets: V, step: u32, to: Label, packet: &mut Packet) {
        let equal = self.in_steps(offsets, step, packet);
        let bits = self.f.sign_bits(equal);
        self.f.branch(Cc::Ne, Width::W32, bits, 0xff, to);
    }

    /// Loads the words of contiguous lanes into given values.
    fn load_together(&mut self, bytes: usize, out: &[V], from: Mem) {
        match *out {
            [d] if bytes < 4 => {
                let v = self.part_together(bytes, from);
                self.f.assign(d, v);
            }
            [d] => self.f.push(Inst::VecLoad { d, from, stays: false }),
            _ => {
                let loaded = self.loaded(from, out.len());
                out.iter().zip(&loaded).for_each(|(to, from)| self.f.assign(*to, *from));
            }
        }
    }

    /// Loads the words of contiguous lanes. `stays`: as for [`Inst::VecLoad`].
    pub fn load_coalesced(
        &mut self,
        bytes: usize,
        registers: usize,
        from: Mem,
        stays: bool,
        packet: &mut Packet,
    ) -> Vec<V> {
        match registers {
            1 if bytes < 4 => vec![self.part_together(bytes, from)],
            1 => vec![self.f.vload(from.base, from.disp, stays)],
            _ => {
                // Loads whole vectors in memory order, then transposes them.
                let rows: Vec<V> = (0..registers as i32)
                    .map(|n| self.f.vload(from.base, from.disp + 32 * n, false))
                    .collect();
                let words = self.words_of_rows(&rows);
                packet.rows.push((words.clone(), rows));
                words
            }
        }
    }

    /// Transposes vectors in memory order, each of which has the words of some consecutive lanes, to one
    /// vector per word.
    fn words_of_rows(&mut self, rows: &[V]) -> Vec<V> {
        let mut halves =
            |a, b, which| self.f.rvm(Code::VEX_Vperm2i128_ymm_ymm_ymmm256_imm8, a, b, Some(which));
        match *rows {
            [a, b] => {
                // Lanes 0, 1, 4, 5 and 2, 3, 6, 7.
                let (low, high) = (halves(a, b, 0x20), halves(a, b, 0x31));
                self.words_of_pairs(low, high)
            }
            [a, b, c, d] => {
                let rows = [(a, c, 0x20), (a, c, 0x31), (b, d, 0x20), (b, d, 0x31)];
                let rows = rows.map(|(a, b, which)| halves(a, b, which));
                self.transposed(rows).to_vec()
            }
            _ => rows.to_vec(),
        }
    }

    /// Separates the low and high words of lanes 0, 1, 4, 5 and 2, 3, 6, 7.
    fn words_of_pairs(&mut self, a: V, b: V) -> Vec<V> {
        [0x88, 0xdd]
            .map(|which| self.f.rvm(Code::VEX_Vshufps_ymm_ymm_ymmm256_imm8, a, b, Some(which)))
            .to_vec()
    }

    /// Stores the words of contiguous lanes. Values that were loaded in memory order are not transposed
    /// twice.
    pub fn store_coalesced(&mut self, to: Mem, words: &[V], packet: &Packet) {
        match packet.rows.iter().find(|(loaded, _)| loaded == words) {
            Some((_, rows)) => {
                (0..).zip(rows).for_each(|(n, row)| self.f.vstore(to.base, to.disp + 32 * n, *row));
            }
            None => self.stored(to, words),
        }
    }

    /// Loads the words that all lanes share.
    pub fn load_same(&mut self, bytes: usize, out: &[V], from: Mem) {
        if let ([d], 1 | 2) = (out, bytes) {
            let v = self.part_same(bytes, from);
            return self.f.assign(*d, v);
        }
        for (k, d) in (0..).zip(out) {
            self.f.push(Inst::SplatLoad { d: *d, from: after(from, 4 * k) });
        }
    }

    /// Emits the host addresses of a packet's lanes.
    pub fn addresses(&mut self, host: V, offsets: V) -> [V; 8] {
        self.f.vstore(self.frame, at::ROOM, offsets);
        std::array::from_fn(|lane| {
            let offset = self.f.load(Size::B4, self.frame, at::ROOM + 4 * lane as i32);
            self.f.int2(Int2::Add, Width::W64, host, offset)
        })
    }

    /// Loads words from arbitrary addresses, as [`Emitter::load_deinterleaved`] does.
    fn loaded_apart(&mut self, from: [Mem; 8], dwords: usize) -> Vec<V> {
        if dwords == 4 {
            let rows = [0, 1, 2, 3].map(|k| self.load_halves([from[k], from[k + 4]]));
            return self.transposed(rows).to_vec();
        }
        for (lane, Mem { base, disp }) in (0..).zip(from) {
            let v = self.f.load(Size::B8, base, disp);
            self.f.store(Size::B8, self.frame, at::ROOM + 8 * lane, v);
        }
        self.loaded(Mem { base: self.frame, disp: at::ROOM }, dwords)
    }

    /// Returns the address of the first lane of the packet whose registers are at `base`.
    pub fn first_lane(&mut self, place: &Located, base: V) -> Mem {
        First::of(self, place, base).of_lane(self, place)
    }

    /// Stores registers of all lanes.
    pub fn store_words(&mut self, place: &Located, data: u16, exec: V, places: &Places) -> R<()> {
        let dwords = place.access.registers;
        let group = &places.groups[place.group];
        self.each_packet(|e, base| {
            let mut packet = Packet::new(base);
            let PacketAt { n, .. } = e.packet.ok_or(Unsupported("a packet"))?;
            let [apart, done] = [(); 2].map(|()| e.f.label());
            e.f.branch(Cc::Eq, Width::W32, group.together, 0, apart);
            let rows: Vec<V> = (0..dwords as u16).map(|k| e.register(&mut packet, data + k)).collect();
            let to = e.first_lane(place, base);
            e.stored(to, &rows);
            e.f.push(Inst::Jump(done));
            e.f.push(Inst::Label(apart));
            let mut packet = Packet::new(base);
            let offsets = e.offsets(place, exec, &mut packet)?;
            let (host, disp) = place.host();
            let host = e.plus(host, disp.into());
            // Stores are in lane order: of several lanes with the same address, the last one wins.
            let active = e.f.int2(Int2::Shr, Width::W64, exec, n);
            for (lane, to) in (0..).zip(e.addresses(host, offsets)) {
                let next = e.f.label();
                let bit = e.f.int2(Int2::And, Width::W32, active, 1 << lane);
                e.unless(bit, next);
                for k in 0..dwords as i32 {
                    let from = (data as i32 + k) * LANE_VEC_BYTES as i32 + 4 * lane;
                    let word = e.f.load(Size::B4, base, from);
                    e.f.store(Size::B4, to, 4 * k, word);
                }
                e.f.push(Inst::Label(next));
            }
            e.f.push(Inst::Label(done));
            Ok(())
        })
    }

    /// Loads the words of eight contiguous lanes as one vector per word.
    fn loaded(&mut self, place: Mem, dwords: usize) -> Vec<V> {
        match dwords {
            1 => vec![self.f.vload(place.base, place.disp, false)],
            2 => {
                // Lanes 0, 1, 4, 5 and 2, 3, 6, 7, by vector halves.
                let [a, b] = [[0, 32], [16, 48]].map(|at| self.load_halves(at.map(|at| after(place, at))));
                self.words_of_pairs(a, b)
            }
            _ => {
                let rows = [0, 1, 2, 3].map(|k| self.load_halves([k, k + 4].map(|k| after(place, 16 * k))));
                self.transposed(rows).to_vec()
            }
        }
    }

    /// The inverse of [`Emitter::load_deinterleaved`].
    fn stored(&mut self, place: Mem, rows: &[V]) {
        match *rows {
            [v] => self.f.vstore(place.base, place.disp, v),
            [low, high] => {
                let a = self.f.rvm(Code::VEX_Vpunpckldq_ymm_ymm_ymmm256, low, high, None);
                let b = self.f.rvm(Code::VEX_Vpunpckhdq_ymm_ymm_ymmm256, low, high, None);
                self.store_halves(a, [0, 32].map(|at| after(place, at)));
                self.store_halves(b, [16, 48].map(|at| after(place, at)));
            }
            [a, b, c, d] => {
                for (k, v) in (0..).zip(self.transposed([a, b, c, d])) {
                    self.store_halves(v, [k, k + 4].map(|k| after(place, 16 * k)));
                }
            }
            _ => {}
        }
    }

    /// Transposes four by four words, in each half of the vectors.
    fn transposed(&mut self, [a, b, c, d]: [V; 4]) -> [V; 4] {
        let (low, high) = (Code::VEX_Vpunpckldq_ymm_ymm_ymmm256, Code::VEX_Vpunpckhdq_ymm_ymm_ymmm256);
        let (low2, high2) = (Code::VEX_Vpunpcklqdq_ymm_ymm_ymmm256, Code::VEX_Vpunpckhqdq_ymm_ymm_ymmm256);
        let mut pair = |code, a, b| self.f.rvm(code, a, b, None);
        let (ab, cd, ab2, cd2) = (pair(low, a, b), pair(low, c, d), pair(high, a, b), pair(high, c, d));
        [pair(low2, ab, cd), pair(high2, ab, cd), pair(low2, ab2, cd2), pair(high2, ab2, cd2)]
    }
}

/// The first lane of a packet all of whose lanes are active.
pub struct First {
    offset: V,
    /// Host addresses, by the base that the offset was added to.
    addresses: HashMap<V, V>,
}

impl First {
    /// `base`: the packet's registers.
    pub fn of(e: &mut Emitter<'_>, place: &Located, base: V) -> First {
        let register = place.access.register as i32 * LANE_VEC_BYTES as i32;
        let mut offset = e.f.load(Size::B4, base, register);
        if let Some([low, _]) = place.from {
            offset = e.f.int2(Int2::Sub, Width::W32, offset, low);
        }
        First { offset, addresses: HashMap::new() }
    }

    /// Returns the address of the lane's element in an access.
    pub fn of_lane(&mut self, e: &mut Emitter<'_>, place: &Located) -> Mem {
        let (host, disp) = place.host();
        let add = || e.f.int2(Int2::Add, Width::W64, host, self.offset);
        Mem { base: *self.addresses.entry(host).or_insert_with(add), disp }
    }
}

/// Returns an address `bytes` bytes further.
fn after(place: Mem, bytes: i32) -> Mem {
    Mem { disp: place.disp + bytes, ..place }
}
