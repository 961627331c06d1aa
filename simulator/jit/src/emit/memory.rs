//! Where loads and stores of lanes go. Before a run, the memory of each is found, that all active lanes are in it, or else the interpreter
//! goes on, and how the lanes lie in it.

use super::packet::Packet;
use super::val::Val;
use super::{Emitter, R, Unsupported};
use crate::access::{FOUND, RANGES, Ranges, find};
use crate::frame::{LANE_VEC_BYTES, at};
use crate::parts::Part;
use isa_lower::ir::{Block, Hold, Op2, Slot, Value, ValueKind, Var};
use isa_lower::lower::operands::slot;
use isa_lower::visit::each_in;
use isa_spec::tables::Role;
use std::collections::{BTreeMap, HashSet};
use wavesim_machine::exec::op::{Op, Place};
use wavesim_machine::state::wave::ALL_VGPRS;
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Class, Inst, Int1, Int2, Label, Size, Src, V, Width};

/// What a load or store moves.
#[derive(Clone)]
pub struct Access {
    /// The register with the lanes' part of the address.
    pub register: u16,
    /// That part has 64 bits: the higher ones are in the next register.
    pub wide: bool,
    pub store: bool,
    /// Addresses are offsets in LDS.
    lds: bool,
    /// Registers of each lane: 1, 2 or 4.
    pub registers: usize,
    /// Bytes of each lane.
    pub bytes: usize,
    /// The wave's part of the address; in LDS, what is added to the lanes' offsets.
    base: Val,
    /// Its operation.
    pub at: u32,
}

impl Access {
    pub fn is_in_lds(&self) -> bool {
        self.lds
    }

    /// What is added to the lanes' offsets in LDS, or to their addresses, if it is known, and where the element ends that begins there.
    fn known_base(&self) -> Option<(i32, i32)> {
        match self.base {
            Val::Known(base) if (self.lds || self.wide) && base < 1 << 30 => {
                Some((base as i32, base as i32 + self.bytes as i32))
            }
            _ => None,
        }
    }

    /// Whether nothing but what is known is between it and another access.
    fn differs_by_known(&self, other: &Access) -> bool {
        let kind = |access: &Access| (access.register, access.lds, access.wide, access.store && access.wide);
        kind(self) == kind(other) && self.known_base().is_some() && other.known_base().is_some()
    }

    /// Where the last element ends of all that differ from this one by known numbers.
    fn common_end(&self, all: &[Access]) -> i64 {
        let beside = all.iter().filter(|other| self.differs_by_known(other));
        beside.filter_map(Access::known_base).map(|(_, end)| end).max().unwrap_or(0).into()
    }
}

/// LDS, in a run.
#[derive(Default)]
struct LdsPlaces {
    /// Where it is, and its bytes.
    memory: Option<[V; 2]>,
    /// By the register with offsets, what they may be at most.
    limits: BTreeMap<u16, V>,
}

/// Where the lanes of an access are: each at the host's address plus its offset, which is below the limit.
#[derive(Clone)]
pub struct Located {
    pub access: Access,
    host: V,
    /// What is added to the host's address.
    disp: i32,
    limit: V,
    /// What offsets of 64-bit addresses are counted from, by words, and as one.
    pub from: Option<[V; 2]>,
    pub origin: Option<V>,
    /// Number of its [`Group`].
    pub group: usize,
}

impl Located {
    /// The host's address of the lane with offset 0, and what is to be added to it.
    pub fn host(&self) -> (V, i32) {
        (self.host, self.disp)
    }

    /// Whether lanes are where they are in another access, which is known before it runs.
    pub fn is_at(&self, other: &Located) -> bool {
        let (a, b) = (&self.access, &other.access);
        (a.register, a.wide, a.lds, a.bytes) == (b.register, b.wide, b.lds, b.bytes) && a.base == b.base
    }

    /// Whether lanes have the same offsets as those of another access.
    pub fn is_beside(&self, other: &Located) -> bool {
        self.access.register == other.access.register && self.from == other.from
    }
}

/// Accesses with the same offsets, of as many bytes: one look at the offsets decides how all of them are moved.
#[derive(Clone, Copy)]
pub struct Group {
    /// 1 if all lanes are active, and those of each packet follow each other.
    pub together: V,
    /// 1 if all lanes are active, and those of each packet are at one place.
    pub same: V,
}

/// The higher one of unsigned words.
pub const HIGHER: Code = Code::VEX_Vpmaxud_ymm_ymm_ymmm256;
/// The lower one.
pub const LOWER: Code = Code::VEX_Vpminud_ymm_ymm_ymmm256;

/// What is known of the offsets of lanes in a register.
pub struct Offsets {
    /// The active lanes.
    exec: V,
    /// The highest one.
    farthest: V,
    /// No other one is lower.
    lowest: V,
    /// See [`Group::same`].
    same: V,
    /// See [`Group::together`], by bytes.
    together: BTreeMap<usize, V>,
}

/// The accesses of a run.
#[derive(Clone, Default)]
pub struct Places {
    pub located: Vec<Located>,
    pub groups: Vec<Group>,
    /// Code is emitted for the fast path: see [`super::fast_path`].
    pub fast: bool,
}

impl Emitter<'_> {
    /// The accesses of a load or store, and the first register of a store.
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

    /// Whether addresses are 64 bits of each lane.
    fn is_wide(&mut self, block: &Block, op: &Op) -> R<bool> {
        let Block::Global { unless: Some(unless), wide, .. } = block else { return Ok(false) };
        match (self.wave_value(unless, op)?, wide) {
            (Val::Known(0), _) => Ok(false),
            (Val::Known(_), Some(_)) => Ok(true),
            _ => Err(Unsupported("an address")),
        }
    }

    /// A value of the wave in the address of a lane.
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

    /// Finds the memory of accesses, or refuses.
    pub fn locate(&mut self, accesses: &[Access], [exec, full]: [V; 2], refused: Label) -> R<Places> {
        let mut located: Vec<Located> = Vec::new();
        let mut lds = LdsPlaces::default();
        // The first active lane, in the first register.
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

    /// Where the lanes of an access by 64-bit addresses are: in the range that the first one is in.
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
        // One range and one limit for all accesses whose places differ by known numbers.
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
        // One address and one limit for all accesses whose places differ by known numbers.
        let limit = *lds.limits.entry(access.register).or_insert_with(|| {
            let end = access.common_end(all);
            let least = self.f.iconst(end as u64);
            self.f.branch(Cc::LtU, Width::W64, bytes, least, refused);
            self.plus(bytes, -end)
        });
        Located { access: access.clone(), host: start, disp, limit, from: None, origin: None, group: 0 }
    }

    /// [`Emitter::in_range`], of an element.
    fn in_range_of(&mut self, access: &Access, address: V, refused: Label) -> (FoundRange, V) {
        let number = self.ranges % RANGES + if access.store { RANGES } else { 0 };
        self.ranges += 1;
        self.in_range(number, access.bytes as i32, address, refused)
    }

    /// The range that bytes at an address are in, kept at this place of the frame, and how much further it goes on.
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

    /// The 64-bit address of the first active lane.
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

    /// Refuses unless all active lanes are within the limits. Groups the accesses.
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

    /// The lowest and the highest offset of lanes.
    pub fn bounds_of(&self, place: &Located) -> [V; 2] {
        let Offsets { lowest, farthest, .. } = self.offsets_of(place);
        [*lowest, *farthest]
    }

    /// What [`Emitter::look_at`] has found.
    fn offsets_of(&self, place: &Located) -> &Offsets {
        &self.offsets[&(place.access.register, place.from)]
    }

    /// Finds out about the offsets of lanes, unless it is known from an access before.
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

    /// Looks at the lanes' offsets. Of each: the highest, [`Group::together`], [`Group::same`] and the lowest.
    fn look(&mut self, kinds: &[&Located], [exec, full]: [V; 2]) -> R<Vec<[V; 4]>> {
        // The highest offsets, and lanes of a packet that are in order, in all packets.
        let mut found = Vec::new();
        self.each_packet(|e, base| {
            let mut packet = Packet::new(base);
            let (none, all) = (e.f.vconst([0; 8]), e.f.vconst([u32::MAX; 8]));
            for place in kinds {
                // They are the loop's own: what is made of them stays in it.
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
            // From 2 GiB on, beyond every limit, which offsets may not have.
            let farthest = self.f.int1(Int1::SignExtend32, Width::W64, farthest);
            results.push([farthest, together, same, lowest]);
        }
        Ok(results)
    }

    /// The highest of unsigned words; beyond every limit from 2 GiB on, which offsets may not have.
    pub fn highest(&mut self, v: V) -> V {
        let v = self.most(HIGHER, v);
        self.f.int1(Int1::SignExtend32, Width::W64, v)
    }

    /// The highest of unsigned words, or the lowest.
    fn most(&mut self, code: Code, v: V) -> V {
        let upper = self.f.upper_half(v);
        let mut v = self.f.rvm(code, v, upper, None);
        for order in [0x4e, 0xb1] {
            let other = self.f.rm(Code::VEX_Vpshufd_ymm_ymmm256_imm8, v, Some(order));
            v = self.f.rvm(code, v, other, None);
        }
        self.f.low_int(v)
    }

    /// What is known of offsets in registers that are written now.
    pub fn forget_offsets(&mut self, written: impl Fn(u16) -> bool) {
        // What 64-bit addresses are counted from is another value in each run.
        self.offsets.retain(|(register, from), _| from.is_none() && !written(*register));
    }

    /// Lanes that are by a step above the one before them, if those before are, too.
    pub fn in_steps(&mut self, offsets: V, step: u32, packet: &mut Packet) -> V {
        let rest = *packet.steps.entry(offsets).or_insert_with(|| {
            let first = self.f.rm(Code::VEX_Vpbroadcastd_ymm_xmmm32, offsets, None);
            self.isub(Hold::W32, offsets, first)
        });
        let lanes = self.f.vconst(std::array::from_fn(|lane| lane as u32 * step));
        self.icmp(Cc::Eq, Hold::W32, rest, lanes)
    }

    /// The lanes' offsets; 0 for lanes that are switched off.
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
                // Beyond every limit otherwise.
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

/// A range of global memory in values.
pub struct FoundRange {
    pub base: V,
    len: V,
    pub host: V,
}
