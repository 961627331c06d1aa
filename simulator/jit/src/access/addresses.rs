//! Address resolution of vector loads and stores. Before a run, the code finds the host memory of each
//! access, proves that all active lanes are inside it (otherwise it bails out to the interpreter), and
//! classifies the lanes' offsets.

use crate::arith::builder::{Bug, R};
use crate::arith::val::Val;
use crate::frame::{FOUND_SLOT, LANE_VEC_BYTES, check_range, find_range, frame_offset};
use crate::lowering::Field;
use crate::ranges::{RANGES, RangeCache};
use crate::selected::Subword;
use crate::state::access::{Access, AccessGroup, OffsetSummary, ResolvedAccess, ResolvedAccesses};
use crate::state::emitter::Emitter;
use crate::state::packet::Packet;
use isa_lower::ir::{Block, HostWidth, Op2, Scale, Slot, Value, ValueKind, Var};
use isa_lower::lower::operands::slot;
use isa_lower::visit::each_in;
use isa_spec::tables::Role;
use std::collections::{BTreeMap, HashSet};
use wavesim_machine::exec::op::{DecodedSource, Ext, Op};
use wavesim_machine::state::wave::ALL_VGPRS;
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Class, Inst, Int1, Int2, Label, Size, Src, V, Width};

/// The LDS of a run.
#[derive(Default)]
struct LdsState {
    /// Its host address and its size in bytes.
    memory: Option<[V; 2]>,
    /// The largest valid offset, by offset register.
    limits: BTreeMap<u16, V>,
}

/// Maximum of unsigned words.
pub const MAX_U32: Code = Code::VEX_Vpmaxud_ymm_ymm_ymmm256;
/// Minimum of unsigned words.
pub const MIN_U32: Code = Code::VEX_Vpminud_ymm_ymm_ymmm256;

impl Emitter<'_> {
    /// Returns the accesses of a load or store, and the first data register of a store.
    pub fn accesses(
        &mut self,
        block: &Block,
        subword: Option<&Subword>,
        op: &Op,
    ) -> R<(Vec<Access>, Option<u16>)> {
        let vector = |role: Role, words: usize| {
            let Slot::Source(at) = slot(role) else { return Err(Bug("an address")) };
            match op.src[at].decode() {
                DecodedSource::Vector(first) if first + words <= ALL_VGPRS => Ok(first as u16),
                _ => Err(Bug("an address that is not a register")),
            }
        };
        let (store, dwords, lds, offsets) = match block {
            Block::Global { offsets, store, dwords, .. } => (*store, *dwords, false, *offsets),
            Block::Lds { lanes, store, dwords, .. } => (*store, *dwords, true, *lanes),
        };
        let dwords = dwords as usize;
        let bytes = subword.map_or(4 * dwords, |subword| subword.bytes);
        let address64 = self.has_address64(block, op)?;
        let register = vector(offsets, 1 + address64 as usize)?;
        let shift = if address64 { 0 } else { offset_shift(block, op, &self.exts[op.ext as usize]) };
        let data = if store { Some(vector(Role::Data, dwords)?) } else { None };
        let terms: Vec<(&[Value], HostWidth)> = match block {
            Block::Global { address64: Some(terms), .. } if address64 => vec![(&terms[..], HostWidth::W64)],
            Block::Global { base, .. } => vec![(&base[..], HostWidth::W64)],
            Block::Lds { plus, .. } => {
                plus.iter().map(|term| (std::slice::from_ref(term), HostWidth::W32)).collect()
            }
        };
        let mut accesses = Vec::new();
        self.record_address(true);
        for (terms, host_width) in terms {
            let mut sum = Val::Const(0);
            for term in terms {
                let v = self.uniform_value(term, op)?;
                let v = self.resize(v, term.host_width, host_width)?;
                sum = self.op2(Op2::Add, host_width, sum, v)?;
            }
            let base = self.resize(sum, host_width, HostWidth::W64)?;
            accesses.push(Access {
                register,
                shift,
                address64,
                store,
                lds,
                registers: dwords,
                bytes,
                base,
                sequence: None,
            });
        }
        self.record_address(false);
        Ok((accesses, data))
    }

    /// Returns whether each lane supplies a 64-bit address.
    fn has_address64(&mut self, block: &Block, op: &Op) -> R<bool> {
        let Block::Global { unless: Some(unless), address64, .. } = block else { return Ok(false) };
        match (self.uniform_value(unless, op)?, address64) {
            (Val::Const(0), _) => Ok(false),
            (Val::Const(_), Some(_)) => Ok(true),
            _ => Err(Bug("an address")),
        }
    }

    /// Emits a uniform term of a lane's address.
    fn uniform_value(&mut self, value: &Value, op: &Op) -> R<Val> {
        let mut roles = Vec::new();
        each_in(value, &mut |v| {
            if let ValueKind::Var(Var::Operand(role)) = v.kind {
                roles.push(role);
            }
        });
        for role in roles {
            let Slot::Source(at) = slot(role) else { return Err(Bug("an address")) };
            let (low, high) = (self.source_word(op.src[at], 0)?, self.source_word(op.src[at], 1)?);
            let pair = self.join_dwords(low, high)?;
            self.env.operands.insert(role, (pair, HostWidth::W64));
        }
        self.value(value)
    }

    /// Resolves the memory of the accesses; jumps to `bailout` if an active lane is outside.
    pub fn resolve(
        &mut self,
        accesses: &[Access],
        [exec, full]: [V; 2],
        bailout: Label,
    ) -> R<ResolvedAccesses> {
        let mut resolved: Vec<ResolvedAccess> = Vec::new();
        let mut lds = LdsState::default();
        // The registers of the first active lane.
        let mut lane = None;
        for access in accesses {
            let base = self.uniform(access.base, HostWidth::W64)?;
            let group = resolved.len();
            if let Some(sequence) = access.sequence {
                resolved.push(self.resolve_sequence(access, sequence, base, bailout)?);
                continue;
            }
            resolved.push(match (access.lds, access.address64) {
                (true, _) => self.resolve_lds(access, accesses, &mut lds, base, bailout),
                (false, false) => {
                    let (range, remaining) = self.find_element_range(access, base, bailout);
                    let host = self.b.f.int2(Int2::Add, Width::W64, range.host, base);
                    let host = self.b.f.int2(Int2::Sub, Width::W64, host, range.base);
                    let access = access.clone();
                    ResolvedAccess {
                        access,
                        host,
                        disp: 0,
                        limit: remaining,
                        origin_words: None,
                        origin: None,
                        group,
                    }
                }
                (false, true) => {
                    let alike = resolved.iter().find(|other| other.access.differs_by_constant(access));
                    match (alike, access.constant_base()) {
                        (Some(other), Some((disp, _))) => {
                            ResolvedAccess { access: access.clone(), disp, group, ..*other }
                        }
                        _ => self.resolve_global(access, accesses, [base, exec], &mut lane, bailout),
                    }
                }
            });
        }
        let groups = self.check_limits(&mut resolved, [exec, full], bailout)?;
        Ok(ResolvedAccesses { accesses: resolved, groups, ..ResolvedAccesses::default() })
    }

    /// Resolves an access by 64-bit addresses. All lanes must be in the range that contains the first active
    /// lane.
    fn resolve_global(
        &mut self,
        access: &Access,
        all: &[Access],
        [base, exec]: [V; 2],
        lane: &mut Option<V>,
        bailout: Label,
    ) -> ResolvedAccess {
        let first = self.first_address(access, exec, lane, bailout);
        let first = self.b.f.int2(Int2::Add, Width::W64, first, base);
        let (range, _) = self.find_element_range(access, first, bailout);
        // All accesses whose addresses differ by a constant share one range and one limit.
        let (origin, disp, limit) = match access.constant_base() {
            Some((disp, _)) => {
                let end = access.common_end(all);
                let is_only = all.iter().filter(|other| access.differs_by_constant(other)).count() == 1;
                if !is_only {
                    let end = self.b.f.iconst(end as u64);
                    self.b.f.branch(Cc::LtU, Width::W64, range.len, end, bailout);
                }
                (range.base, disp, self.add_imm(range.len, -end))
            }
            None => {
                let origin = self.b.f.int2(Int2::Sub, Width::W64, range.base, base);
                (origin, 0, self.add_imm(range.len, -(access.bytes as i64)))
            }
        };
        let high = self.b.f.int2(Int2::Shr, Width::W64, origin, 32);
        let origin_words = Some([self.b.f.int1(Int1::ZeroExtend32, Width::W32, origin), high]);
        ResolvedAccess {
            access: access.clone(),
            host: range.host,
            disp,
            limit,
            origin_words,
            origin: Some(origin),
            group: 0,
        }
    }

    fn resolve_lds(
        &mut self,
        access: &Access,
        all: &[Access],
        lds: &mut LdsState,
        base: V,
        bailout: Label,
    ) -> ResolvedAccess {
        let [start, bytes] = *lds.memory.get_or_insert_with(|| {
            [frame_offset::LDS, frame_offset::LDS_BYTES]
                .map(|part| self.b.f.load(Size::B8, self.b.frame, part))
        });
        let Some((disp, _)) = access.constant_base() else {
            let end = self.add_imm(base, access.bytes as i64);
            self.b.f.branch(Cc::LtU, Width::W64, bytes, end, bailout);
            let limit = self.b.f.int2(Int2::Sub, Width::W64, bytes, end);
            let host = self.b.f.int2(Int2::Add, Width::W64, start, base);
            let access = access.clone();
            return ResolvedAccess {
                access,
                host,
                disp: 0,
                limit,
                origin_words: None,
                origin: None,
                group: 0,
            };
        };
        // All accesses whose offsets differ by a constant share one address and one limit.
        let limit = *lds.limits.entry(access.register).or_insert_with(|| {
            let end = access.common_end(all);
            let min_bytes = self.b.f.iconst(end as u64);
            self.b.f.branch(Cc::LtU, Width::W64, bytes, min_bytes, bailout);
            self.add_imm(bytes, -end)
        });
        ResolvedAccess {
            access: access.clone(),
            host: start,
            disp,
            limit,
            origin_words: None,
            origin: None,
            group: 0,
        }
    }

    /// Emits [`Emitter::find_range`] for an element of an access.
    pub fn find_element_range(&mut self, access: &Access, address: V, bailout: Label) -> (RangeValues, V) {
        let number = self.addresses.range_count % RANGES + if access.store { RANGES } else { 0 };
        self.addresses.range_count += 1;
        self.find_range(number, access.bytes as i32, address, bailout)
    }

    /// Finds the range that contains `bytes` bytes at an address, through entry `number` of the frame's range
    /// cache. Returns the range and the number of bytes in it after the element.
    pub fn find_range(&mut self, number: usize, bytes: i32, address: V, bailout: Label) -> (RangeValues, V) {
        let at = |offset: usize| frame_offset::RANGES + offset as i32;
        let [lookup, miss] = [(); 2].map(|()| self.b.f.label());
        self.b.f.push(Inst::Jump(lookup));
        self.b.f.push(Inst::Label(miss));
        let wanted = [Src::Value(address), Src::Imm(number as i32), Src::Imm(bytes)];
        self.pass_arguments(wanted);
        self.call_cold(find_range as *const () as u64);
        let is_found =
            self.b.f.load(Size::B8, self.b.frame, frame_offset::LANE_BUFFER + 8 * FOUND_SLOT as i32);
        self.branch_if_zero(is_found, bailout);
        self.b.f.push(Inst::Label(lookup));
        let base = self.b.f.load(Size::B8, self.b.frame, at(RangeCache::base_at(number)));
        let len = self.b.f.load(Size::B8, self.b.frame, at(RangeCache::len_at(number)));
        let offset = self.b.f.int2(Int2::Sub, Width::W64, address, base);
        self.b.f.branch(Cc::GeU, Width::W64, offset, len, miss);
        let after = self.b.f.int2(Int2::Sub, Width::W64, len, offset);
        self.b.f.branch(Cc::LtU, Width::W64, after, bytes, miss);
        if self.context.checked {
            self.pass_arguments(wanted);
            self.call_cold(check_range as *const () as u64);
        }
        let remaining = self.add_imm(after, -(bytes as i64));
        let host = self.b.f.load(Size::B8, self.b.frame, at(RangeCache::host_at(number)));
        (RangeValues { base, len, host }, remaining)
    }

    /// Emits the 64-bit address of the first active lane.
    fn first_address(&mut self, access: &Access, exec: V, lane: &mut Option<V>, bailout: Label) -> V {
        let lane = *lane.get_or_insert_with(|| {
            self.b.f.branch(Cc::Eq, Width::W64, exec, 0, bailout);
            let lane = self.b.f.int1(Int1::TrailingZeros, Width::W64, exec);
            self.lane_address(lane)
        });
        let at = access.register as i32 * LANE_VEC_BYTES as i32;
        let low = self.b.f.load(Size::B4, lane, at);
        let high = self.b.f.load(Size::B4, lane, at + LANE_VEC_BYTES as i32);
        let high = self.b.f.int2(Int2::Shl, Width::W64, high, 32);
        self.b.f.int2(Int2::Or, Width::W64, low, high)
    }

    /// Jumps to `bailout` unless all active lanes are within the limits. Returns the groups of accesses.
    fn check_limits(
        &mut self,
        resolved: &mut [ResolvedAccess],
        [exec, full]: [V; 2],
        bailout: Label,
    ) -> R<Vec<AccessGroup>> {
        let mut locations: Vec<ResolvedAccess> = Vec::new();
        for location in resolved.iter_mut() {
            let alike = |other: &ResolvedAccess| {
                other.has_same_offsets(location) && other.access.bytes == location.access.bytes
            };
            let group = locations.iter().position(alike);
            location.group = group.unwrap_or(locations.len());
            if group.is_none() {
                locations.push(location.clone());
            }
        }
        let classified: Vec<ResolvedAccess> =
            locations.iter().filter(|location| location.access.sequence.is_none()).cloned().collect();
        self.classify_offsets(&classified, [exec, full])?;
        let mut checked = HashSet::new();
        for location in resolved.iter().filter(|location| location.access.sequence.is_none()) {
            let max_offset = self.offset_summary(location).max_offset;
            if !checked.insert((location.limit, max_offset)) {
                continue;
            }
            self.b.f.branch(Cc::LtU, Width::W64, location.limit, max_offset, bailout);
        }
        Ok(locations
            .iter()
            .map(|location| {
                if let Some(sequence) = location.access.sequence {
                    let [contiguous, uniform] =
                        [sequence.stride != 0, sequence.stride == 0].map(|is| self.b.f.iconst(is as u64));
                    return AccessGroup { contiguous, uniform };
                }
                let summary = self.offset_summary(location);
                AccessGroup {
                    contiguous: summary.contiguous[&location.access.bytes],
                    uniform: summary.uniform,
                }
            })
            .collect())
    }

    /// Returns the lowest and the highest offset of the lanes.
    pub fn offset_bounds(&mut self, location: &ResolvedAccess) -> [V; 2] {
        if let Some(sequence) = location.access.sequence {
            return [0, self.span(sequence.stride.into())].map(|offset| self.b.f.iconst(offset));
        }
        let OffsetSummary { min_offset, max_offset, .. } = self.offset_summary(location);
        [*min_offset, *max_offset]
    }

    /// Returns the classification that [`Emitter::classify_offsets`] recorded.
    fn offset_summary(&self, location: &ResolvedAccess) -> &OffsetSummary {
        &self.addresses.summaries[&(location.access.offsets(), location.origin_words)]
    }

    /// Classifies the offsets of the lanes, unless an earlier access has done so.
    fn classify_offsets(&mut self, locations: &[ResolvedAccess], [exec, full]: [V; 2]) -> R<()> {
        self.addresses.summaries.retain(|_, summary| summary.exec == exec);
        let is_classified = |e: &Self, location: &ResolvedAccess| {
            let summary = e.addresses.summaries.get(&(location.access.offsets(), location.origin_words));
            summary.is_some_and(|summary| summary.contiguous.contains_key(&location.access.bytes))
        };
        let locations: Vec<&ResolvedAccess> =
            locations.iter().filter(|location| !is_classified(self, location)).collect();
        if locations.is_empty() {
            return Ok(());
        }
        let (cached, uncached): (Vec<&ResolvedAccess>, Vec<&ResolvedAccess>) =
            locations.into_iter().partition(|location| self.offset_slot(location).is_some());
        if !uncached.is_empty() {
            let found =
                self.scan_unless_regular(&uncached, full, |e| e.scan_offsets(&uncached, [exec, full]))?;
            self.record_offsets(&uncached, exec, &found);
        }
        let slots: Vec<usize> = cached.iter().filter_map(|location| self.offset_slot(location)).collect();
        if !cached.is_empty() {
            let found = self.scan_unless_cached(&slots, full, |e| e.scan_offsets(&cached, [exec, full]))?;
            self.record_offsets(&cached, exec, &found);
        }
        Ok(())
    }

    fn record_offsets(&mut self, locations: &[&ResolvedAccess], exec: V, found: &[[V; 4]]) {
        for (location, [max_offset, contiguous, uniform, min_offset]) in locations.iter().zip(found) {
            let summary = self
                .addresses
                .summaries
                .entry((location.access.offsets(), location.origin_words))
                .or_insert_with(|| OffsetSummary {
                    exec,
                    max_offset: *max_offset,
                    min_offset: *min_offset,
                    uniform: *uniform,
                    contiguous: BTreeMap::new(),
                });
            summary.contiguous.insert(location.access.bytes, *contiguous);
        }
    }

    /// Scans the lanes' offsets. Returns per access: maximum, [`AccessGroup::contiguous`], [`AccessGroup::uniform`],
    /// minimum.
    fn scan_offsets(&mut self, locations: &[&ResolvedAccess], [exec, full]: [V; 2]) -> R<Vec<[V; 4]>> {
        // Accumulates maxima and the per-lane results of the stride tests over all packets.
        let mut found = Vec::new();
        self.each_packet(|e, base| {
            let mut packet = Packet::new(base);
            let (none, all) = (e.f.vconst([0; 8]), e.f.vconst([u32::MAX; 8]));
            for location in locations {
                // The accumulators must be fresh values of this loop: they are modified in it.
                let [max_offset, contiguous, uniform, min_offset] = [none, all, all, all].map(|first| {
                    let v = e.f.fresh(Class::Vec);
                    e.f.hoist(|f| f.assign(v, first));
                    v
                });
                let offsets = e.active_offsets(location, exec, &mut packet)?;
                let contiguous_lanes = e.stride_mask(offsets, location.access.bytes as u32, &mut packet);
                let uniform_lanes = e.stride_mask(offsets, 0, &mut packet);
                let and = Code::VEX_Vpand_ymm_ymm_ymmm256;
                for (code, v, b) in [
                    (MAX_U32, max_offset, offsets),
                    (and, contiguous, contiguous_lanes),
                    (and, uniform, uniform_lanes),
                    (MIN_U32, min_offset, offsets),
                ] {
                    e.f.push(Inst::Rvm { code, d: v, a: v, b, imm: None });
                }
                found.push(([max_offset, min_offset], [contiguous, uniform]));
            }
            Ok(())
        })?;
        let mut results = Vec::new();
        for ([max_offset, min_offset], orders) in found {
            let [contiguous, uniform] = orders.map(|lanes| {
                let bits = self.b.f.sign_bits(lanes);
                let all = self.b.f.compare(Cc::Eq, Width::W32, bits, 0xff);
                self.b.f.int2(Int2::And, Width::W32, all, full)
            });
            let [max_offset, min_offset] =
                [(MAX_U32, max_offset), (MIN_U32, min_offset)].map(|(code, v)| self.reduce(code, v));
            // Offsets from 2 GiB on are invalid: sign extension puts them beyond every limit.
            let max_offset = self.b.f.int1(Int1::SignExtend32, Width::W64, max_offset);
            results.push([max_offset, contiguous, uniform, min_offset]);
        }
        Ok(results)
    }

    /// Reduces unsigned words to their maximum, sign-extended: values from 2 GiB on, which offsets may not
    /// have, exceed every limit.
    pub fn reduce_max(&mut self, v: V) -> V {
        let v = self.reduce(MAX_U32, v);
        self.b.f.int1(Int1::SignExtend32, Width::W64, v)
    }

    /// Reduces the words of a vector by a maximum or minimum instruction.
    fn reduce(&mut self, code: Code, v: V) -> V {
        let upper = self.b.f.upper_half(v);
        let mut v = self.b.f.rvm(code, v, upper, None);
        for order in [0x4e, 0xb1] {
            let other = self.b.f.rm(Code::VEX_Vpshufd_ymm_ymmm256_imm8, v, Some(order));
            v = self.b.f.rvm(code, v, other, None);
        }
        self.b.f.low_int(v)
    }

    /// Drops the classification of offsets in registers that are being written.
    pub fn forget_offsets(&mut self, written: impl Fn(u16) -> bool) {
        // The origin of 64-bit addresses is a different value in each run.
        self.addresses.summaries.retain(|(offsets, from), _| from.is_none() && !written(offsets.register));
    }

    /// Returns the mask of lanes whose offset is that of lane 0 plus `lane * step`.
    pub fn stride_mask(&mut self, offsets: V, step: u32, packet: &mut Packet) -> V {
        let remaining = *packet.lane_deltas.entry(offsets).or_insert_with(|| {
            let first = self.b.f.rm(Code::VEX_Vpbroadcastd_ymm_xmmm32, offsets, None);
            self.isub(HostWidth::W32, offsets, first)
        });
        let lanes = self.b.f.vconst(std::array::from_fn(|lane| lane as u32 * step));
        self.icmp(Cc::Eq, HostWidth::W32, remaining, lanes)
    }

    /// Returns the lanes' offsets, with 0 for inactive lanes.
    pub fn active_offsets(&mut self, location: &ResolvedAccess, exec: V, packet: &mut Packet) -> R<V> {
        let host_width = HostWidth::W32;
        let (register, shift) = (location.access.register, location.access.shift);
        let v = self.register(packet, register);
        let low = self.flush_pending(v);
        let key = (low, shift, location.origin_words);
        if let Some(found) = packet.offsets.get(&key) {
            return Ok(*found);
        }
        let offsets = match location.origin_words {
            None if shift > 0 => {
                // What does not fit in a word becomes an offset beyond every limit.
                let largest = self.b.f.vconst([u32::MAX >> shift; 8]);
                let offset = self.b.f.rvm(MIN_U32, low, largest, None);
                self.b.f.rm(Code::VEX_Vpslld_ymm_ymm_imm8, offset, Some(shift))
            }
            None => low,
            Some(from) => {
                let v = self.register(packet, register + 1);
                let high = self.flush_pending(v);
                let [from_low, from_high] = from.map(|v| self.broadcast(host_width, v));
                let offset = self.isub(host_width, low, from_low);
                let borrow = self.icmp(Cc::LtU, host_width, low, from_low);
                let high = self.isub(host_width, high, from_high);
                let high = self.iadd(host_width, high, borrow);
                let in_range = self.is_zero(host_width, high);
                // An address whose distance does not fit in a word becomes an offset beyond every limit.
                let out_of_range = self.bnot(host_width, in_range);
                self.bor(host_width, offset, out_of_range)
            }
        };
        let active = match packet.active {
            Some(active) => active,
            None => self.expand_mask(exec)?,
        };
        packet.active = Some(active);
        let offsets = self.band(host_width, offsets, active);
        packet.offsets.insert(key, offsets);
        Ok(offsets)
    }
}

/// Returns by how many bits an operation's offsets of 32 bits are shifted left.
pub fn offset_shift(block: &Block, op: &Op, ext: &Ext) -> u8 {
    match block {
        Block::Global { scale: Some(Scale { field, factor }), .. }
            if Field::named(field).is_some_and(|field| field.of(op, ext) != 0) =>
        {
            factor.trailing_zeros() as u8
        }
        _ => 0,
    }
}

/// Returns whether elements of `bytes` bytes at these offsets can be compiled.
pub fn scale_supported(block: &Block, bytes: usize) -> bool {
    match block {
        Block::Global { scale: Some(Scale { field, factor }), .. } => {
            factor.is_power_of_two()
                && bytes.is_multiple_of(*factor as usize)
                && Field::named(field).is_some()
        }
        _ => true,
    }
}

/// A range of global memory, in values.
pub struct RangeValues {
    pub base: V,
    len: V,
    pub host: V,
}
