//! Address resolution of vector loads and stores. Before a run, the code finds the host memory of each
//! access, proves that all active lanes are inside it (otherwise it bails out to the interpreter), and
//! classifies the lanes' offsets.

use super::packet::Packet;
use super::val::Val;
use super::{Emitter, R, Unsupported};
use crate::access::{FOUND, RANGES, Ranges, find};
use crate::frame::{LANE_VEC_BYTES, at, of_wave};
use crate::parts::Part;
use isa_lower::ir::{Block, Hold, Op2, Slot, Value, ValueKind, Var};
use isa_lower::lower::operands::slot;
use isa_lower::visit::each_in;
use isa_spec::tables::Role;
use std::collections::{BTreeMap, HashSet};
use wavesim_machine::exec::op::{Op, Place};
use wavesim_machine::state::wave::{ALL_VGPRS, LAST_ADDRESSES};
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Class, Inst, Int1, Int2, Label, Mem, Size, Src, V, Width};

/// A vector load or store, before its address is resolved.
#[derive(Clone)]
pub struct Access {
    /// The register with the per-lane part of the address.
    pub register: u16,
    /// The per-lane part has 64 bits; its high words are in the next register.
    pub wide: bool,
    pub store: bool,
    /// Addresses are offsets in LDS.
    lds: bool,
    /// Registers per lane: 1, 2 or 4.
    pub registers: usize,
    /// Bytes per lane.
    pub bytes: usize,
    /// The uniform part of the address; in LDS, the offset that is added to the lanes' offsets.
    base: Val,
    /// The number of its operation.
    at: u32,
}

impl Access {
    pub fn is_in_lds(&self) -> bool {
        self.lds
    }

    /// Returns the constant that is added to the lanes' offsets in LDS or to their 64-bit addresses, and the
    /// end of the element that begins there.
    fn known_base(&self) -> Option<(i32, i32)> {
        match self.base {
            Val::Known(base) if (self.lds || self.wide) && base < 1 << 30 => {
                Some((base as i32, base as i32 + self.bytes as i32))
            }
            _ => None,
        }
    }

    /// Returns whether the addresses of two accesses differ by a constant.
    fn differs_by_known(&self, other: &Access) -> bool {
        let kind = |access: &Access| (access.register, access.lds, access.wide, access.store && access.wide);
        kind(self) == kind(other) && self.known_base().is_some() && other.known_base().is_some()
    }

    /// Returns the largest element end among the accesses that differ from this one by a constant.
    fn common_end(&self, all: &[Access]) -> i64 {
        let beside = all.iter().filter(|other| self.differs_by_known(other));
        beside.filter_map(Access::known_base).map(|(_, end)| end).max().unwrap_or(0).into()
    }
}

/// The LDS of a run.
#[derive(Default)]
struct LdsPlaces {
    /// Its host address and its size in bytes.
    memory: Option<[V; 2]>,
    /// The largest valid offset, by offset register.
    limits: BTreeMap<u16, V>,
}

/// An access with resolved addresses. Lane `n` is at `host + disp + offset[n]`; offsets must not exceed
/// `limit`.
#[derive(Clone)]
pub struct Located {
    pub access: Access,
    host: V,
    /// A constant that is added to the host address.
    disp: i32,
    limit: V,
    /// The origin that offsets of 64-bit addresses are relative to: as two words, and as one integer.
    pub from: Option<[V; 2]>,
    pub origin: Option<V>,
    /// The index of its [`Group`].
    pub group: usize,
}

impl Located {
    /// Returns the host address of a lane with offset 0, and the displacement.
    pub fn host(&self) -> (V, i32) {
        (self.host, self.disp)
    }

    /// Returns whether both accesses are statically known to have the same address in every lane.
    pub fn is_at(&self, other: &Located) -> bool {
        let (a, b) = (&self.access, &other.access);
        (a.register, a.wide, a.lds, a.bytes) == (b.register, b.wide, b.lds, b.bytes) && a.base == b.base
    }

    /// Returns whether the lanes have the same offsets in both accesses.
    pub fn is_beside(&self, other: &Located) -> bool {
        self.access.register == other.access.register && self.from == other.from
    }
}

/// Accesses with the same offsets and the same size, whose offsets are classified once.
#[derive(Clone, Copy)]
pub struct Group {
    /// 1 if all lanes are active and each packet's addresses are contiguous.
    pub together: V,
    /// 1 if all lanes are active and each packet's addresses are uniform.
    pub same: V,
}

/// Maximum of unsigned words.
pub const HIGHER: Code = Code::VEX_Vpmaxud_ymm_ymm_ymmm256;
/// Minimum of unsigned words.
pub const LOWER: Code = Code::VEX_Vpminud_ymm_ymm_ymmm256;

/// The classification of the lane offsets in a register.
pub struct Offsets {
    /// The EXEC that it holds for.
    exec: V,
    /// The largest offset of an active lane.
    farthest: V,
    /// A lower bound of the offsets.
    lowest: V,
    /// See [`Group::uniform`].
    same: V,
    /// See [`Group::contiguous`], by element size in bytes.
    together: BTreeMap<usize, V>,
}

/// The accesses of a run, resolved.
#[derive(Clone, Default)]
pub struct Places {
    pub located: Vec<Located>,
    pub groups: Vec<Group>,
    /// Code is being emitted for the fast path: see [`super::fast_path`].
    pub fast: bool,
}

impl Emitter<'_> {
    /// Returns the accesses of a load or store, and the first data register of a store.
    pub fn accesses(&mut self, block: &Block, part: Option<&Part>, op: &Op) -> R<(Vec<Access>, Option<u16>)> {
        let vector = |role: Role, words: usize| {
            let Slot::Source(at) = slot(role) else { return Err(Unsupported("an address")) };
            match op.src[at].place() {
                Place::Vector(first) if first + words <= ALL_VGPRS => Ok(first as u16),
                _ => Err(Unsupported("an address that is no register")),
            }
        };
        let (store, dwords, lds, offsets) = match block {
            Block::Global { offsets, store, dwords, .. } => (*store, *dwords, false, *offsets),
            Block::Lds { lanes, store, dwords, .. } => (*store, *dwords, true, *lanes),
        };
        let dwords = dwords as usize;
        let bytes = part.map_or(4 * dwords, |part| part.bytes);
        let wide = self.is_wide(block, op)?;
        let register = vector(offsets, 1 + wide as usize)?;
        let data = if store { Some(vector(Role::Data, dwords)?) } else { None };
        let terms: Vec<(&[Value], Hold)> = match block {
            Block::Global { wide: Some(terms), .. } if wide => vec![(&terms[..], Hold::W64)],
            Block::Global { base, .. } => vec![(&base[..], Hold::W64)],
            Block::Lds { plus, .. } => {
                plus.iter().map(|term| (std::slice::from_ref(term), Hold::W32)).collect()
            }
        };
        let mut accesses = Vec::new();
        for (terms, hold) in terms {
            let mut sum = Val::Known(0);
            for term in terms {
                let v = self.wave_value(term, op)?;
                let v = self.resized(v, term.hold, hold)?;
                sum = self.op2(Op2::Add, hold, sum, v)?;
            }
            let base = self.resized(sum, hold, Hold::W64)?;
            accesses.push(Access {
                register,
                wide,
                store,
                lds,
                registers: dwords,
                bytes,
                base,
                at: self.env.at,
            });
        }
        Ok((accesses, data))
    }

    /// Returns whether each lane supplies a 64-bit address.
    fn is_wide(&mut self, block: &Block, op: &Op) -> R<bool> {
        let Block::Global { unless: Some(unless), wide, .. } = block else { return Ok(false) };
        match (self.wave_value(unless, op)?, wide) {
            (Val::Known(0), _) => Ok(false),
            (Val::Known(_), Some(_)) => Ok(true),
            _ => Err(Unsupported("an address")),
        }
    }

    /// Emits a uniform term of a lane's address.
    fn wave_value(&mut self, value: &Value, op: &Op) -> R<Val> {
        let mut roles = Vec::new();
        each_in(value, &mut |v| {
            if let ValueKind::Var(Var::Operand(role)) = v.kind {
                roles.push(role);
            }
        });
        for role in roles {
            let Slot::Source(at) = slot(role) else { return Err(Unsupported("an address")) };
            let (low, high) = (self.source_word(op.src[at], 0)?, self.source_word(op.src[at], 1)?);
            let pair = self.pair(low, high)?;
            self.env.operands.insert(role, (pair, Hold::W64));
        }
        self.value(value)
    }

    /// Resolves the memory of the accesses; jumps to `bailout` if an active lane is outside.
    pub fn locate(&mut self, accesses: &[Access], [exec, full]: [V; 2], refused: Label) -> R<Places> {
        let mut located: Vec<Located> = Vec::new();
        let mut lds = LdsPlaces::default();
        // The registers of the first active lane.
        let mut lane = None;
        for access in accesses {
            let base = self.one(access.base, Hold::W64)?;
            let group = located.len();
            located.push(match (access.lds, access.wide) {
                (true, _) => self.in_lds(access, accesses, &mut lds, base, refused),
                (false, false) => {
                    let (range, rest) = self.in_range_of(access, base, refused);
                    let host = self.f.int2(Int2::Add, Width::W64, range.host, base);
                    let host = self.f.int2(Int2::Sub, Width::W64, host, range.base);
                    let access = access.clone();
                    Located { access, host, disp: 0, limit: rest, from: None, origin: None, group }
                }
                (false, true) => {
                    let beside = located.iter().find(|other| other.access.differs_by_known(access));
                    match (beside, access.known_base()) {
                        (Some(other), Some((disp, _))) => {
                            Located { access: access.clone(), disp, group, ..*other }
                        }
                        _ => self.at_addresses(access, accesses, [base, exec], &mut lane, refused),
                    }
                }
            });
        }
        let groups = self.check(&mut located, [exec, full], refused)?;
        for (n, place) in located.iter().enumerate() {
            if !located[..n].iter().any(|before| before.is_at(place)) {
                self.prefetch(place);
            }
        }
        Ok(Places { located, groups, fast: false })
    }

    /// Prefetches what the instruction will access four loop iterations from now if its address keeps
    /// advancing by the same step: kernels step through memory in strides that the host's prefetcher does not
    /// follow. The target is the second-level cache, which supports more outstanding lines than the first.
    fn prefetch(&mut self, place: &Located) {
        let Access { register, lds, bytes, at, .. } = place.access;
        if lds {
            return;
        }
        let mut offset = self.f.load(Size::B4, self.vectors, register as i32 * LANE_VEC_BYTES as i32);
        if let Some([low, _]) = place.from {
            offset = self.f.int2(Int2::Sub, Width::W32, offset, low);
        }
        let host = self.f.int2(Int2::Add, Width::W64, place.host, offset);
        let last = self.ops[at as usize].number as usize % LAST_ADDRESSES;
        let last = of_wave::LAST_ADDRESSES + 8 * last as i32;
        let before = self.f.load(Size::B8, self.sgprs, last);
        let step = self.f.int2(Int2::Sub, Width::W64, host, before);
        self.f.store(Size::B8, self.sgprs, last, host);
        let ahead = self.f.int2(Int2::Shl, Width::W64, step, 2);
        let base = self.f.int2(Int2::Add, Width::W64, host, ahead);
        let disp = place.disp;
        for line in 0..(bytes as i32 / 2).max(1) {
            self.f.push(Inst::Prefetch { from: Mem { base, disp: disp + 64 * line } });
        }
    }

    /// Resolves an access by 64-bit addresses. All lanes must be in the range that contains the first active
    /// lane.
    fn at_addresses(
        &mut self,
        access: &Access,
        all: &[Access],
        [base, exec]: [V; 2],
        lane: &mut Option<V>,
        refused: Label,
    ) -> Located {
        let first = self.first_address(access, exec, lane, refused);
        let first = self.f.int2(Int2::Add, Width::W64, first, base);
        let (range, _) = self.in_range_of(access, first, refused);
        // All accesses whose addresses differ by a constant share one range and one limit.
        let (origin, disp, limit) = match access.known_base() {
            Some((disp, _)) => {
                let end = access.common_end(all);
                let one = all.iter().filter(|other| access.differs_by_known(other)).count() == 1;
                if !one {
                    let end = self.f.iconst(end as u64);
                    self.f.branch(Cc::LtU, Width::W64, range.len, end, refused);
                }
                (range.base, disp, self.plus(range.len, -end))
            }
            None => {
                let origin = self.f.int2(Int2::Sub, Width::W64, range.base, base);
                (origin, 0, self.plus(range.len, -(access.bytes as i64)))
            }
        };
        let high = self.f.int2(Int2::Shr, Width::W64, origin, 32);
        let from = Some([self.f.int1(Int1::ZeroExtend32, Width::W32, origin), high]);
        Located {
            access: access.clone(),
            host: range.host,
            disp,
            limit,
            from,
            origin: Some(origin),
            group: 0,
        }
    }

    fn in_lds(
        &mut self,
        access: &Access,
        all: &[Access],
        lds: &mut LdsPlaces,
        base: V,
        refused: Label,
    ) -> Located {
        let [start, bytes] = *lds.memory.get_or_insert_with(|| {
            [at::LDS, at::LDS_BYTES].map(|part| self.f.load(Size::B8, self.frame, part))
        });
        let Some((disp, _)) = access.known_base() else {
            let end = self.plus(base, access.bytes as i64);
            self.f.branch(Cc::LtU, Width::W64, bytes, end, refused);
            let limit = self.f.int2(Int2::Sub, Width::W64, bytes, end);
            let host = self.f.int2(Int2::Add, Width::W64, start, base);
            let access = access.clone();
            return Located { access, host, disp: 0, limit, from: None, origin: None, group: 0 };
        };
        // All accesses whose offsets differ by a constant share one address and one limit.
        let limit = *lds.limits.entry(access.register).or_insert_with(|| {
            let end = access.common_end(all);
            let least = self.f.iconst(end as u64);
            self.f.branch(Cc::LtU, Width::W64, bytes, least, refused);
            self.plus(bytes, -end)
        });
        Located { access: access.clone(), host: start, disp, limit, from: None, origin: None, group: 0 }
    }

    /// Emits [`Emitter::find_range`] for an element of an access.
    fn in_range_of(&mut self, access: &Access, address: V, refused: Label) -> (FoundRange, V) {
        let number = self.ranges % RANGES + if access.store { RANGES } else { 0 };
        self.ranges += 1;
        self.in_range(number, access.bytes as i32, address, refused)
    }

    /// Finds the range that contains `bytes` bytes at an address, through entry `number` of the frame's range
    /// cache. Returns the range and the number of bytes in it after the element.
    pub fn in_range(&mut self, number: usize, bytes: i32, address: V, refused: Label) -> (FoundRange, V) {
        let at = |offset: usize| at::RANGES + offset as i32;
        let [look, search] = [(); 2].map(|()| self.f.label());
        self.f.push(Inst::Jump(look));
        self.f.push(Inst::Label(search));
        let wanted = [Src::Value(address), Src::Imm(number as i32), Src::Imm(bytes)];
        for (n, v) in (0..).zip(wanted) {
            self.f.store(Size::B8, self.frame, at::ROOM + 8 * n, v);
        }
        self.rare(find as *const () as u64);
        let there = self.f.load(Size::B8, self.frame, at::ROOM + 8 * FOUND as i32);
        self.unless(there, refused);
        self.f.push(Inst::Label(look));
        let base = self.f.load(Size::B8, self.frame, at(Ranges::base_at(number)));
        let len = self.f.load(Size::B8, self.frame, at(Ranges::len_at(number)));
        let offset = self.f.int2(Int2::Sub, Width::W64, address, base);
        self.f.branch(Cc::GeU, Width::W64, offset, len, search);
        let after = self.f.int2(Int2::Sub, Width::W64, len, offset);
        self.f.branch(Cc::LtU, Width::W64, after, bytes, search);
        let rest = self.plus(after, -(bytes as i64));
        let host = self.f.load(Size::B8, self.frame, at(Ranges::host_at(number)));
        (FoundRange { base, len, host }, rest)
    }

    /// Emits the 64-bit address of the first active lane.
    fn first_address(&mut self, access: &Access, exec: V, lane: &mut Option<V>, refused: Label) -> V {
        let lane = *lane.get_or_insert_with(|| {
            self.f.branch(Cc::Eq, Width::W64, exec, 0, refused);
            let lane = self.f.int1(Int1::TrailingZeros, Width::W64, exec);
            self.lane_place(lane)
        });
        let at = access.register as i32 * LANE_VEC_BYTES as i32;
        let low = self.f.load(Size::B4, lane, at);
        let high = self.f.load(Size::B4, lane, at + LANE_VEC_BYTES as i32);
        let high = self.f.int2(Int2::Shl, Width::W64, high, 32);
        self.f.int2(Int2::Or, Width::W64, low, high)
    }

    /// Jumps to `bailout` unless all active lanes are within the limits. Returns the groups of accesses.
    fn check(&mut self, located: &mut [Located], [exec, full]: [V; 2], refused: Label) -> R<Vec<Group>> {
        let mut kinds: Vec<Located> = Vec::new();
        for place in located.iter_mut() {
            let same = |kind: &Located| kind.is_beside(place) && kind.access.bytes == place.access.bytes;
            let known = kinds.iter().position(same);
            place.group = known.unwrap_or(kinds.len());
            if known.is_none() {
                kinds.push(place.clone());
            }
        }
        self.look_at(&kinds, [exec, full])?;
        let mut checked = HashSet::new();
        for place in located.iter() {
            let farthest = self.offsets_of(place).farthest;
            if !checked.insert((place.limit, farthest)) {
                continue;
            }
            self.f.branch(Cc::LtU, Width::W64, place.limit, farthest, refused);
        }
        Ok(kinds
            .iter()
            .map(|kind| {
                let known = self.offsets_of(kind);
                Group { together: known.together[&kind.access.bytes], same: known.same }
            })
            .collect())
    }

    /// Returns the lowest and the highest offset of the lanes.
    pub fn bounds_of(&self, place: &Located) -> [V; 2] {
        let Offsets { lowest, farthest, .. } = self.offsets_of(place);
        [*lowest, *farthest]
    }

    /// Returns the classification that [`Emitter::classify_offsets`] recorded.
    fn offsets_of(&self, place: &Located) -> &Offsets {
        &self.offsets[&(place.access.register, place.from)]
    }

    /// Classifies the offsets of the lanes, unless an earlier access has done so.
    fn look_at(&mut self, kinds: &[Located], [exec, full]: [V; 2]) -> R<()> {
        self.offsets.retain(|_, known| known.exec == exec);
        let is_known = |e: &Self, kind: &Located| {
            let known = e.offsets.get(&(kind.access.register, kind.from));
            known.is_some_and(|known| known.together.contains_key(&kind.access.bytes))
        };
        let kinds: Vec<&Located> = kinds.iter().filter(|kind| !is_known(self, kind)).collect();
        if kinds.is_empty() {
            return Ok(());
        }
        let (kept, others): (Vec<&Located>, Vec<&Located>) =
            kinds.into_iter().partition(|kind| self.kept(kind).is_some());
        if !others.is_empty() {
            let found = self.unless_lined_up(&others, full, |e| e.look(&others, [exec, full]))?;
            self.note_offsets(&others, exec, &found);
        }
        let numbers: Vec<usize> = kept.iter().filter_map(|kind| self.kept(kind)).collect();
        if !kept.is_empty() {
            let found = self.unless_kept(&numbers, full, |e| e.look(&kept, [exec, full]))?;
            self.note_offsets(&kept, exec, &found);
        }
        Ok(())
    }

    fn note_offsets(&mut self, kinds: &[&Located], exec: V, found: &[[V; 4]]) {
        for (kind, [farthest, together, same, lowest]) in kinds.iter().zip(found) {
            let known = self.offsets.entry((kind.access.register, kind.from)).or_insert_with(|| Offsets {
                exec,
                farthest: *farthest,
                lowest: *lowest,
                same: *same,
                together: BTreeMap::new(),
            });
            known.together.insert(kind.access.bytes, *together);
        }
    }

    /// Scans the lanes' offsets. Returns for each access: maximum, [`Group::contiguous`], [`Group::uniform`],
    /// minimum.
    fn look(&mut self, kinds: &[&Located], [exec, full]: [V; 2]) -> R<Vec<[V; 4]>> {
        // Accumulates maxima and the per-lane results of the stride tests over all packets.
        let mut found = Vec::new();
        self.each_packet(|e, base| {
            let mut packet = Packet::new(base);
            let (none, all) = (e.f.vconst([0; 8]), e.f.vconst([u32::MAX; 8]));
            for place in kinds {
                // The accumulators must be fresh values of this loop: they are modified in it.
                let [farthest, together, same, lowest] = [none, all, all, all].map(|first| {
                    let v = e.f.fresh(Class::Vec);
                    e.f.hoisted(|f| f.assign(v, first));
                    v
                });
                let offsets = e.offsets(place, exec, &mut packet)?;
                let in_order = e.in_steps(offsets, place.access.bytes as u32, &mut packet);
                let one = e.in_steps(offsets, 0, &mut packet);
                let and = Code::VEX_Vpand_ymm_ymm_ymmm256;
                for (code, v, b) in [
                    (HIGHER, farthest, offsets),
                    (and, together, in_order),
                    (and, same, one),
                    (LOWER, lowest, offsets),
                ] {
                    e.f.push(Inst::Rvm { code, d: v, a: v, b, imm: None });
                }
                found.push(([farthest, lowest], [together, same]));
            }
            Ok(())
        })?;
        let mut results = Vec::new();
        for ([farthest, lowest], orders) in found {
            let [together, same] = orders.map(|lanes| {
                let bits = self.f.sign_bits(lanes);
                let all = self.f.compare(Cc::Eq, Width::W32, bits, 0xff);
                self.f.int2(Int2::And, Width::W32, all, full)
            });
            let [farthest, lowest] =
                [(HIGHER, farthest), (LOWER, lowest)].map(|(code, v)| self.most(code, v));
            // Offsets from 2 GiB on are invalid: sign extension puts them beyond every limit.
            let farthest = self.f.int1(Int1::SignExtend32, Width::W64, farthest);
            results.push([farthest, together, same, lowest]);
        }
        Ok(results)
    }

    /// Reduces unsigned words to their maximum, sign-extended: values from 2 GiB on, which offsets may not
    /// have, exceed every limit.
    pub fn highest(&mut self, v: V) -> V {
        let v = self.most(HIGHER, v);
        self.f.int1(Int1::SignExtend32, Width::W64, v)
    }

    /// Reduces the words of a vector by a maximum or minimum instruction.
    fn most(&mut self, code: Code, v: V) -> V {
        let upper = self.f.upper_half(v);
        let mut v = self.f.rvm(code, v, upper, None);
        for order in [0x4e, 0xb1] {
            let other = self.f.rm(Code::VEX_Vpshufd_ymm_ymmm256_imm8, v, Some(order));
            v = self.f.rvm(code, v, other, None);
        }
        self.f.low_int(v)
    }

    /// Drops the classification of offsets in registers that are being written.
    pub fn forget_offsets(&mut self, written: impl Fn(u16) -> bool) {
        // The origin of 64-bit addresses is a different value in each run.
        self.offsets.retain(|(register, from), _| from.is_none() && !written(*register));
    }

    /// Returns the mask of lanes whose offset is that of lane 0 plus `lane * step`.
    pub fn in_steps(&mut self, offsets: V, step: u32, packet: &mut Packet) -> V {
        let rest = *packet.steps.entry(offsets).or_insert_with(|| {
            let first = self.f.rm(Code::VEX_Vpbroadcastd_ymm_xmmm32, offsets, None);
            self.isub(Hold::W32, offsets, first)
        });
        let lanes = self.f.vconst(std::array::from_fn(|lane| lane as u32 * step));
        self.icmp(Cc::Eq, Hold::W32, rest, lanes)
    }

    /// Returns the lanes' offsets, with 0 for inactive lanes.
    pub fn offsets(&mut self, place: &Located, exec: V, packet: &mut Packet) -> R<V> {
        let hold = Hold::W32;
        let register = place.access.register;
        let v = self.register(packet, register);
        let low = self.exact(v);
        let key = (low, place.from);
        if let Some(found) = packet.offsets.get(&key) {
            return Ok(*found);
        }
        let offsets = match place.from {
            None => low,
            Some(from) => {
                let v = self.register(packet, register + 1);
                let high = self.exact(v);
                let [from_low, from_high] = from.map(|v| self.spread(hold, v));
                let offset = self.isub(hold, low, from_low);
                let borrow = self.icmp(Cc::LtU, hold, low, from_low);
                let high = self.isub(hold, high, from_high);
                let high = self.iadd(hold, high, borrow);
                let near = self.is_zero(hold, high);
                // An address whose distance does not fit in a word becomes an offset beyond every limit.
                let far = self.bnot(hold, near);
                self.bor(hold, offset, far)
            }
        };
        let active = match packet.active {
            Some(active) => active,
            None => self.lanes_of(exec)?,
        };
        packet.active = Some(active);
        let offsets = self.band(hold, offsets, active);
        packet.offsets.insert(key, offsets);
        Ok(offsets)
    }
}

/// A range of global memory, in values.
pub struct FoundRange {
    pub base: V,
    len: V,
    pub host: V,
}
