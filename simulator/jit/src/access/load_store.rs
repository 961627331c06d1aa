//! Loads and stores of a packet's lanes. Contiguous lanes are moved by vector instructions.

use crate::arith::builder::{Bug, PacketPosition, R};
use crate::frame::{LANE_VEC_BYTES, frame_offset};
use crate::state::access::{Access, ResolvedAccess, ResolvedAccesses};
use crate::state::emitter::Emitter;
use crate::state::packet::{FirstLane, Packet};
use crate::state::run::MemoryOp;
use std::collections::HashMap;
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Label, Mem, Size, V, Width};

impl Emitter<'_> {
    /// Loads the words of a packet's lanes.
    pub fn load_words(
        &mut self,
        memory_op: &MemoryOp,
        op_index: u32,
        resolved: &ResolvedAccesses,
        packet: &mut Packet,
    ) -> R<()> {
        let all = memory_op.first..memory_op.first + memory_op.count;
        for location in all.clone() {
            // A run stores nothing before its last load, so that all loads with the same offsets are emitted
            // together.
            if !packet.loaded.contains_key(&location) {
                self.load_group(memory_op.exec, resolved.accesses[location].group, resolved, packet)?;
            }
        }
        if let Some(subword) = &memory_op.subword {
            let v = packet.loaded[&memory_op.first][0];
            return self.finish_subword_load(
                op_index,
                subword,
                &resolved.accesses[memory_op.first].access,
                v,
                packet,
            );
        }
        let loaded = all.flat_map(|location| packet.loaded[&location].clone());
        let d = self.ops[op_index as usize].d;
        packet.registers.extend((d..).zip(loaded.map(|v| (v, true))));
        Ok(())
    }

    /// Loads all accesses of a group.
    fn load_group(
        &mut self,
        exec: V,
        group: usize,
        resolved: &ResolvedAccesses,
        packet: &mut Packet,
    ) -> R<()> {
        let is_load =
            |(_, location): &(usize, &ResolvedAccess)| location.group == group && !location.access.store;
        let members: Vec<(usize, &ResolvedAccess)> =
            resolved.accesses.iter().enumerate().filter(is_load).collect();
        let results: Vec<Vec<V>> = members
            .iter()
            .map(|(_, location)| (0..location.access.registers).map(|_| self.b.f.fresh(Class::Vec)).collect())
            .collect();
        let [gather, uniform, done] = [(); 3].map(|()| self.b.f.label());
        let group = &resolved.groups[group];
        self.b.f.branch(Cc::Eq, Width::W32, group.contiguous, 0, uniform);
        let mut first = FirstLane::of(self, members[0].1, packet.base);
        for ((_, location), out) in members.iter().zip(&results) {
            let from = first.address_in(self, location);
            self.load_contiguous_into(location.access.bytes, out, from);
        }
        self.b.f.push(Inst::Jump(done));
        self.b.f.push(Inst::Label(uniform));
        self.b.f.branch(Cc::Eq, Width::W32, group.uniform, 0, gather);
        let mut first = FirstLane::of(self, members[0].1, packet.base);
        for ((_, location), out) in members.iter().zip(&results) {
            let from = first.address_in(self, location);
            self.load_uniform(location.access.bytes, out, from);
        }
        self.b.f.push(Inst::Jump(done));
        self.b.f.push(Inst::Label(gather));
        // Values defined on this path do not dominate the others.
        let (known, mut inner) = (self.b.facts.clone(), Packet::new(packet.base));
        self.load_differing(&members, &results, exec, &mut inner)?;
        self.b.facts = known;
        self.b.f.push(Inst::Label(done));
        packet.loaded.extend(members.iter().map(|(at, _)| *at).zip(results));
        Ok(())
    }

    /// Loads a group whose packets differ in kind: tests each packet.
    fn load_differing(
        &mut self,
        members: &[(usize, &ResolvedAccess)],
        results: &[Vec<V>],
        exec: V,
        packet: &mut Packet,
    ) -> R<()> {
        let Access { registers, bytes, .. } = members[0].1.access;
        let offsets = self.active_offsets(members[0].1, exec, packet)?;
        let [uniform, each, done] = [(); 3].map(|()| self.b.f.label());
        let first = self.b.f.low_int(offsets);
        let mut first = FirstLane { offset: first, addresses: HashMap::new() };
        let mut from = Vec::new();
        for (_, location) in members {
            from.push(first.address_in(self, location));
        }
        self.branch_unless_stride(offsets, bytes as u32, uniform, packet);
        results.iter().zip(&from).for_each(|(out, from)| self.load_contiguous_into(bytes, out, *from));
        self.b.f.push(Inst::Jump(done));
        self.b.f.push(Inst::Label(uniform));
        self.branch_unless_stride(offsets, 0, each, packet);
        results.iter().zip(&from).for_each(|(out, from)| self.load_uniform(bytes, out, *from));
        self.b.f.push(Inst::Jump(done));
        self.b.f.push(Inst::Label(each));
        let mut addresses = HashMap::new();
        for ((_, location), out) in members.iter().zip(results) {
            let (base, disp) = location.host();
            if let ([d], true) = (&out[..], bytes >= 4) {
                let d = *d;
                self.b.f.push(Inst::Gather { d, from: Mem { base, disp }, offsets });
                continue;
            }
            let from = *addresses.entry(base).or_insert_with(|| self.addresses(base, offsets));
            let from = from.map(|base| Mem { base, disp });
            let loaded = match bytes {
                1 | 2 => vec![self.load_subwords_gather(bytes, from)],
                _ => self.load_gather(from, registers),
            };
            out.iter().zip(&loaded).for_each(|(to, from)| self.b.f.assign(*to, *from));
        }
        self.b.f.push(Inst::Label(done));
        Ok(())
    }

    /// Branches to a label unless each lane's offset is the previous one plus `step`.
    fn branch_unless_stride(&mut self, offsets: V, step: u32, to: Label, packet: &mut Packet) {
        let equal = self.stride_mask(offsets, step, packet);
        let bits = self.b.f.sign_bits(equal);
        self.b.f.branch(Cc::Ne, Width::W32, bits, 0xff, to);
    }

    /// Loads the words of contiguous lanes into given values.
    fn load_contiguous_into(&mut self, bytes: usize, out: &[V], from: Mem) {
        match *out {
            [d] if bytes < 4 => {
                let v = self.load_subwords_contiguous(bytes, from);
                self.b.f.assign(d, v);
            }
            [d] => self.b.f.push(Inst::VecLoad { d, from, foldable: false }),
            _ => {
                let loaded = self.load_deinterleaved(from, out.len());
                out.iter().zip(&loaded).for_each(|(to, from)| self.b.f.assign(*to, *from));
            }
        }
    }

    /// Loads the words of contiguous lanes. `foldable`: as for [`Inst::VecLoad`].
    pub fn load_contiguous(
        &mut self,
        bytes: usize,
        registers: usize,
        from: Mem,
        foldable: bool,
        packet: &mut Packet,
    ) -> Vec<V> {
        match registers {
            1 if bytes < 4 => vec![self.load_subwords_contiguous(bytes, from)],
            1 => vec![self.b.f.vload(from.base, from.disp, foldable)],
            _ => {
                // Loads whole vectors in memory order, then transposes them.
                let rows: Vec<V> = (0..registers as i32)
                    .map(|n| self.b.f.vload(from.base, from.disp + 32 * n, false))
                    .collect();
                let words = self.deinterleave_rows(&rows);
                packet.memory_order.push((words.clone(), rows));
                words
            }
        }
    }

    /// Transposes vectors in memory order, each of which has the words of some consecutive lanes, to one
    /// vector per word.
    fn deinterleave_rows(&mut self, rows: &[V]) -> Vec<V> {
        match *rows {
            [a, b] => {
                // Lanes 0, 1, 4, 5 and 2, 3, 6, 7.
                let (low, high) = (self.halves(a, b, 0x20), self.halves(a, b, 0x31));
                self.deinterleave_pairs(low, high)
            }
            [a, b, c, d] => {
                let rows = [(a, c, 0x20), (a, c, 0x31), (b, d, 0x20), (b, d, 0x31)];
                let rows = rows.map(|(a, b, which)| self.halves(a, b, which));
                self.transpose(rows).to_vec()
            }
            _ => rows.to_vec(),
        }
    }

    /// Separates the low and high words of lanes 0, 1, 4, 5 and 2, 3, 6, 7.
    fn deinterleave_pairs(&mut self, a: V, b: V) -> Vec<V> {
        [0x88, 0xdd]
            .map(|which| self.b.f.rvm(Code::VEX_Vshufps_ymm_ymm_ymmm256_imm8, a, b, Some(which)))
            .to_vec()
    }

    /// Returns the words of contiguous lanes as vectors in memory order. Values that were loaded so are not
    /// transposed twice.
    pub fn in_memory_order(&mut self, words: &[V], packet: &Packet) -> Vec<V> {
        match packet.memory_order.iter().find(|(loaded, _)| loaded == words) {
            Some((_, rows)) => rows.clone(),
            None => self.interleave_words(words),
        }
    }

    /// Stores vectors one after another.
    pub fn store_vectors(&mut self, to: Mem, vectors: &[V]) {
        (0..).zip(vectors).for_each(|(n, v)| self.b.f.vstore(to.base, to.disp + 32 * n, *v));
    }

    /// Loads the words that all lanes share.
    pub fn load_uniform(&mut self, bytes: usize, out: &[V], from: Mem) {
        if let ([d], 1 | 2) = (out, bytes) {
            let v = self.load_subwords_uniform(bytes, from);
            return self.b.f.assign(*d, v);
        }
        for (k, d) in (0..).zip(out) {
            self.b.f.push(Inst::SplatLoad { d: *d, from: at_offset(from, 4 * k) });
        }
    }

    /// Emits the host addresses of a packet's lanes.
    pub fn addresses(&mut self, host: V, offsets: V) -> [V; 8] {
        self.b.f.vstore(self.b.frame, frame_offset::LANE_BUFFER, offsets);
        std::array::from_fn(|lane| {
            let offset = self.b.f.load(Size::B4, self.b.frame, frame_offset::LANE_BUFFER + 4 * lane as i32);
            self.b.f.int2(Int2::Add, Width::W64, host, offset)
        })
    }

    /// Loads words from arbitrary addresses, as [`Emitter::load_deinterleaved`] does.
    fn load_gather(&mut self, from: [Mem; 8], dwords: usize) -> Vec<V> {
        if dwords == 4 {
            let rows = [0, 1, 2, 3].map(|k| self.load_halves([from[k], from[k + 4]]));
            return self.transpose(rows).to_vec();
        }
        for (lane, Mem { base, disp }) in (0..).zip(from) {
            let v = self.b.f.load(Size::B8, base, disp);
            self.b.f.store(Size::B8, self.b.frame, frame_offset::LANE_BUFFER + 8 * lane, v);
        }
        self.load_deinterleaved(Mem { base: self.b.frame, disp: frame_offset::LANE_BUFFER }, dwords)
    }

    /// Returns the address of the first lane of the packet whose registers are at `base`.
    pub fn first_lane(&mut self, location: &ResolvedAccess, base: V) -> Mem {
        FirstLane::of(self, location, base).address_in(self, location)
    }

    /// As [`Emitter::first_lane`], for the fast path: all accesses of a group share the offset.
    pub fn shared_first_lane(&mut self, location: &ResolvedAccess, packet: &mut Packet) -> Mem {
        let mut first = match packet.first_lanes.remove(&location.group) {
            Some(first) => first,
            None => FirstLane::of(self, location, packet.base),
        };
        let address = first.address_in(self, location);
        packet.first_lanes.insert(location.group, first);
        address
    }

    /// Stores registers of all lanes.
    pub fn store_words(
        &mut self,
        location: &ResolvedAccess,
        data: u16,
        exec: V,
        resolved: &ResolvedAccesses,
    ) -> R<()> {
        let dwords = location.access.registers;
        let group = &resolved.groups[location.group];
        self.each_packet(|e, base| {
            let mut packet = Packet::new(base);
            let PacketPosition { n, .. } = e.packet.ok_or(Bug("a packet"))?;
            let [gather, done] = [(); 2].map(|()| e.f.label());
            e.f.branch(Cc::Eq, Width::W32, group.contiguous, 0, gather);
            let rows: Vec<V> = (0..dwords as u16).map(|k| e.register(&mut packet, data + k)).collect();
            let to = e.first_lane(location, base);
            let rows = e.interleave_words(&rows);
            e.store_vectors(to, &rows);
            e.f.push(Inst::Jump(done));
            e.f.push(Inst::Label(gather));
            let mut packet = Packet::new(base);
            let offsets = e.active_offsets(location, exec, &mut packet)?;
            let (host, disp) = location.host();
            let host = e.add_imm(host, disp.into());
            // Stores are in lane order: of several lanes with the same address, the last one wins.
            let active = e.f.int2(Int2::Shr, Width::W64, exec, n);
            for (lane, to) in (0..).zip(e.addresses(host, offsets)) {
                let next = e.f.label();
                let bit = e.f.int2(Int2::And, Width::W32, active, 1 << lane);
                e.branch_if_zero(bit, next);
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
    fn load_deinterleaved(&mut self, mem: Mem, dwords: usize) -> Vec<V> {
        match dwords {
            1 => vec![self.b.f.vload(mem.base, mem.disp, false)],
            2 => {
                // Lanes 0, 1, 4, 5 and 2, 3, 6, 7, by vector halves.
                let [a, b] = [[0, 32], [16, 48]].map(|at| self.load_halves(at.map(|at| at_offset(mem, at))));
                self.deinterleave_pairs(a, b)
            }
            _ => {
                let rows = [0, 1, 2, 3].map(|k| self.load_halves([k, k + 4].map(|k| at_offset(mem, 16 * k))));
                self.transpose(rows).to_vec()
            }
        }
    }

    /// The inverse of [`Emitter::deinterleave_rows`].
    fn interleave_words(&mut self, words: &[V]) -> Vec<V> {
        match *words {
            [low, high] => {
                let a = self.b.f.rvm(Code::VEX_Vpunpckldq_ymm_ymm_ymmm256, low, high, None);
                let b = self.b.f.rvm(Code::VEX_Vpunpckhdq_ymm_ymm_ymmm256, low, high, None);
                vec![self.halves(a, b, 0x20), self.halves(a, b, 0x31)]
            }
            [a, b, c, d] => {
                // Lanes k and k + 4.
                let [a, b, c, d] = self.transpose([a, b, c, d]);
                [(a, b, 0x20), (c, d, 0x20), (a, b, 0x31), (c, d, 0x31)]
                    .map(|(a, b, which)| self.halves(a, b, which))
                    .to_vec()
            }
            _ => words.to_vec(),
        }
    }

    /// Joins the lower halves of two vectors (0x20), or the upper ones (0x31).
    fn halves(&mut self, a: V, b: V, which: u8) -> V {
        self.b.f.rvm(Code::VEX_Vperm2i128_ymm_ymm_ymmm256_imm8, a, b, Some(which))
    }

    /// Transposes four by four words, in each half of the vectors.
    fn transpose(&mut self, [a, b, c, d]: [V; 4]) -> [V; 4] {
        let (low, high) = (Code::VEX_Vpunpckldq_ymm_ymm_ymmm256, Code::VEX_Vpunpckhdq_ymm_ymm_ymmm256);
        let (low2, high2) = (Code::VEX_Vpunpcklqdq_ymm_ymm_ymmm256, Code::VEX_Vpunpckhqdq_ymm_ymm_ymmm256);
        let mut pair = |code, a, b| self.b.f.rvm(code, a, b, None);
        let (ab, cd, ab2, cd2) = (pair(low, a, b), pair(low, c, d), pair(high, a, b), pair(high, c, d));
        [pair(low2, ab, cd), pair(high2, ab, cd), pair(low2, ab2, cd2), pair(high2, ab2, cd2)]
    }
}

/// Returns an address `bytes` bytes further.
fn at_offset(mem: Mem, bytes: i32) -> Mem {
    Mem { disp: mem.disp + bytes, ..mem }
}
