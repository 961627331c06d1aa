//! Loads and stores of lanes. Before a run, the memory of each is found, and that all active lanes are in it; else the interpreter goes
//! on. In a packet, lanes that follow each other in memory are moved together.

use super::packet::Packet;
use super::run::Words;
use super::val::Val;
use super::{Emitter, R, Unsupported};
use crate::access::{RANGES, Range, find};
use crate::frame::{LANE_VEC_BYTES, at};
use isa_lower::ir::{Block, Fast, Handlers, Hold, Op2, Slot, Value, ValueKind, Var};
use isa_lower::lower::operands::slot;
use isa_lower::visit::each_in;
use isa_spec::tables::Role;
use wavesim_machine::exec::op::{Op, Place};
use wavesim_machine::state::wave::{ALL_VGPRS, LAST_ADDRESSES};
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Class, Inst, Int1, Int2, Label, Mem, Size, Src, V, Width};

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
    /// Words of each lane: 1, 2 or 4.
    pub dwords: usize,
    /// The wave's part of the address; in LDS, what is added to the lanes' offsets.
    base: Val,
    /// Its operation.
    at: u32,
}

/// Where the lanes of an access are: each at the host's address plus its offset, which is below the limit.
#[derive(Clone)]
pub struct Located {
    access: Access,
    host: V,
    limit: V,
    /// What offsets of 64-bit addresses are counted from.
    from: Option<[V; 2]>,
}

impl Emitter<'_> {
    /// The accesses of a load or store, and the first register of a store.
    pub fn accesses(&mut self, handlers: &Handlers, op: &Op) -> R<(Vec<Access>, Option<u16>)> {
        let Fast::Block(block) = &handlers.fast else { return Err(Unsupported("an access")) };
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
            accesses.push(Access { register, wide, store, lds, dwords, base, at: self.env.at });
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
    pub fn locate(&mut self, accesses: &[Access], exec: V, refused: Label) -> R<Vec<Located>> {
        let mut located = Vec::new();
        for access in accesses {
            let base = self.one(access.base, Hold::W64)?;
            located.push(match (access.lds, access.wide) {
                (true, _) => self.in_lds(access, base, refused),
                (false, false) => {
                    let (range, rest) = self.in_range(access, base, refused);
                    let host = self.f.int2(Int2::Add, Width::W64, range.host, base);
                    let host = self.f.int2(Int2::Sub, Width::W64, host, range.base);
                    Located { access: access.clone(), host, limit: rest, from: None }
                }
                (false, true) => {
                    let first = self.first_address(access, exec, refused);
                    let first = self.f.int2(Int2::Add, Width::W64, first, base);
                    let (range, _) = self.in_range(access, first, refused);
                    let limit = self.plus(range.len, -4 * access.dwords as i64);
                    let from = self.f.int2(Int2::Sub, Width::W64, range.base, base);
                    let high = self.f.int2(Int2::Shr, Width::W64, from, 32);
                    let from = [self.f.int1(Int1::ZeroExtend32, Width::W32, from), high];
                    Located { access: access.clone(), host: range.host, limit, from: Some(from) }
                }
            });
        }
        for place in &mut located {
            // Offsets are below 2 GiB, as signed numbers.
            let most = self.f.iconst(i32::MAX as u64);
            let less = self.f.compare(Cc::LtU, Width::W64, place.limit, most);
            place.limit = self.f.select(less, place.limit, most);
        }
        self.check(&located, exec, refused)?;
        for place in &located {
            self.prefetch(place);
        }
        Ok(located)
    }

    /// Prefetches what the same instruction will access four iterations of its loop from now, if its address moves on as it did: kernels
    /// step through memory in strides that the host's own prefetcher does not follow.
    fn prefetch(&mut self, place: &Located) {
        let Access { register, lds, dwords, at, .. } = place.access;
        if lds {
            return;
        }
        let mut offset = self.f.load(Size::B4, self.vectors, register as i32 * LANE_VEC_BYTES as i32);
        if let Some([low, _]) = place.from {
            offset = self.f.int2(Int2::Sub, Width::W32, offset, low);
        }
        let host = self.f.int2(Int2::Add, Width::W64, place.host, offset);
        let all = self.f.load(Size::B8, self.frame, at::LAST_ADDRESSES);
        let last = 8 * (self.ops[at as usize].number as usize % LAST_ADDRESSES) as i32;
        let before = self.f.load(Size::B8, all, last);
        let step = self.f.int2(Int2::Sub, Width::W64, host, before);
        self.f.store(Size::B8, all, last, host);
        let ahead = self.f.int2(Int2::Shl, Width::W64, step, 2);
        let base = self.f.int2(Int2::Add, Width::W64, host, ahead);
        for line in 0..2 * dwords as i32 {
            self.f.push(Inst::Prefetch { from: Mem { base, disp: 64 * line } });
        }
    }

    fn in_lds(&mut self, access: &Access, base: V, refused: Label) -> Located {
        let bytes = self.f.load(Size::B8, self.frame, at::LDS_BYTES);
        let end = self.plus(base, 4 * access.dwords as i64);
        self.f.branch(Cc::LtU, Width::W64, bytes, end, refused);
        let limit = self.f.int2(Int2::Sub, Width::W64, bytes, end);
        let lds = self.f.load(Size::B8, self.frame, at::LDS);
        let host = self.f.int2(Int2::Add, Width::W64, lds, base);
        Located { access: access.clone(), host, limit, from: None }
    }

    /// The range that an address is in, with an element after it, and how much further it goes on.
    fn in_range(&mut self, access: &Access, address: V, refused: Label) -> (FoundRange, V) {
        let number = self.ranges % RANGES + if access.store { RANGES } else { 0 };
        self.ranges += 1;
        let place = at::RANGES + (number * size_of::<Range>()) as i32;
        let bytes = 4 * access.dwords as i32;
        let [base, len, rest] = [(); 3].map(|()| self.f.fresh(Class::Int));
        let [again, search, found] = [(); 3].map(|()| self.f.label());
        // They are assigned here for the first time, for both ways.
        for v in [base, len, rest] {
            self.f.push(Inst::Const { d: v, bits: 0 });
        }
        self.f.push(Inst::Label(again));
        let loaded = self.f.load(Size::B8, self.frame, place + at::RANGE_BASE);
        self.f.assign(base, loaded);
        let loaded = self.f.load(Size::B8, self.frame, place + at::RANGE_LEN);
        self.f.assign(len, loaded);
        let offset = self.f.int2(Int2::Sub, Width::W64, address, base);
        self.f.branch(Cc::GeU, Width::W64, offset, len, search);
        let after = self.f.int2(Int2::Sub, Width::W64, len, offset);
        self.f.branch(Cc::LtU, Width::W64, after, bytes, search);
        let after = self.plus(after, -(bytes as i64));
        self.f.assign(rest, after);
        self.f.push(Inst::Jump(found));
        self.f.push(Inst::Label(search));
        let args = [Src::Value(self.frame), Src::Imm(number as i32), Src::Value(address), Src::Imm(bytes)];
        let there = self.f.call(find as *const () as u64, &args);
        self.f.branch(Cc::Ne, Width::W32, there, 0, again);
        self.f.push(Inst::Jump(refused));
        self.f.push(Inst::Label(found));
        let host = self.f.load(Size::B8, self.frame, place + at::RANGE_HOST);
        (FoundRange { base, len, host }, rest)
    }

    /// The 64-bit address of the first active lane.
    fn first_address(&mut self, access: &Access, exec: V, refused: Label) -> V {
        self.f.branch(Cc::Eq, Width::W64, exec, 0, refused);
        let lane = self.f.int1(Int1::TrailingZeros, Width::W64, exec);
        let lane = self.lane_place(lane);
        let at = access.register as i32 * LANE_VEC_BYTES as i32;
        let low = self.f.load(Size::B4, lane, at);
        let high = self.f.load(Size::B4, lane, at + LANE_VEC_BYTES as i32);
        let high = self.f.int2(Int2::Shl, Width::W64, high, 32);
        self.f.int2(Int2::Or, Width::W64, low, high)
    }

    /// Refuses unless all active lanes are within the limits.
    fn check(&mut self, located: &[Located], exec: V, refused: Label) -> R<()> {
        // Those with the same offsets are within their lowest limit.
        let mut limits: Vec<(&Located, V)> = Vec::new();
        for place in located {
            let same =
                |other: &Located| other.access.register == place.access.register && other.from == place.from;
            match limits.iter_mut().find(|(other, _)| same(other)) {
                Some((_, limit)) => {
                    let less = self.f.compare(Cc::LtU, Width::W64, place.limit, *limit);
                    *limit = self.f.select(less, place.limit, *limit);
                }
                None => limits.push((place, place.limit)),
            }
        }
        let mut inside = None;
        self.each_packet(|e, base| {
            let all = *inside.get_or_insert_with(|| {
                let all = e.f.fresh(Class::Int);
                e.f.hoisted(|f| f.push(Inst::Const { d: all, bits: 0xff }));
                all
            });
            let mut packet = Packet::new(base);
            for (place, limit) in &limits {
                let offsets = e.offsets(place, exec, &mut packet)?;
                let limit = e.spread(Hold::W32, *limit);
                let least = e.umin(offsets, limit);
                let fine = e.icmp(Cc::Eq, Hold::W32, least, offsets);
                let bits = e.f.sign_bits(fine);
                e.f.push(Inst::Int2 {
                    op: Int2::And,
                    width: Width::W32,
                    d: all,
                    a: all,
                    b: Src::Value(bits),
                });
            }
            Ok(())
        })?;
        let Some(all) = inside else { return Err(Unsupported("no packet")) };
        self.f.branch(Cc::Ne, Width::W32, all, 0xff, refused);
        Ok(())
    }

    /// The lanes' offsets; 0 for lanes that are switched off.
    fn offsets(&mut self, place: &Located, exec: V, packet: &mut Packet) -> R<V> {
        let hold = Hold::W32;
        let register = place.access.register;
        let v = self.register(packet, register);
        let low = self.exact(v);
        if place.from.is_none()
            && let Some(found) = packet.offsets.get(&low)
        {
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
        let active = self.lanes_of(exec)?;
        let offsets = self.band(hold, offsets, active);
        if place.from.is_none() {
            packet.offsets.insert(low, offsets);
        }
        Ok(offsets)
    }

    /// Loads the words of a packet's lanes.
    pub fn load_words(&mut self, words: &Words, d: u16, places: &[Located], packet: &mut Packet) -> R<()> {
        let exec = words.exec;
        // A result may be the address.
        let mut results = Vec::new();
        for k in 0..words.count {
            let place = &places[words.first + k];
            let dwords = place.access.dwords;
            let offsets = self.offsets(place, exec, packet)?;
            let out: Vec<V> = (0..dwords).map(|_| self.f.fresh(Class::Vec)).collect();
            let zero = self.f.vconst([0; 8]);
            // Either way assigns them: here they begin.
            out.iter().for_each(|v| self.f.assign(*v, zero));
            let [apart, done] = [(); 2].map(|()| self.f.label());
            let steps = self.steps_of(offsets, packet);
            self.unless_all(steps, 4 * dwords as u32, apart, packet);
            let from = self.f.int2(Int2::Add, Width::W64, place.host, steps.first);
            let loaded = self.loaded(from, dwords);
            self.assign_all(&out, &loaded);
            self.f.push(Inst::Jump(done));
            self.f.push(Inst::Label(apart));
            if dwords == 1 {
                let each = self.f.label();
                self.unless_all(steps, 0, each, packet);
                let from = self.f.int2(Int2::Add, Width::W64, place.host, steps.first);
                let one = self.f.load(Size::B4, from, 0);
                let same = self.f.splat(false, one);
                self.assign_all(&out, &[same]);
                self.f.push(Inst::Jump(done));
                self.f.push(Inst::Label(each));
            }
            let loaded = self.loaded_apart(place.host, offsets, dwords);
            self.assign_all(&out, &loaded);
            self.f.push(Inst::Label(done));
            results.extend(out);
        }
        packet.registers.extend((d..).zip(results.into_iter().map(|v| (v, true))));
        Ok(())
    }

    fn assign_all(&mut self, to: &[V], from: &[V]) {
        to.iter().zip(from).for_each(|(to, from)| self.f.assign(*to, *from));
    }

    fn steps_of(&mut self, offsets: V, packet: &mut Packet) -> Steps {
        if let Some(found) = packet.steps.get(&offsets) {
            return *found;
        }
        let first = self.f.low_int(offsets);
        let all = self.f.splat(false, first);
        let steps = Steps { first, rest: self.isub(Hold::W32, offsets, all) };
        packet.steps.insert(offsets, steps);
        steps
    }

    /// Goes to a label unless each lane is a step above the one before it.
    fn unless_all(&mut self, steps: Steps, step: u32, to: Label, packet: &mut Packet) {
        let known = packet.regular.get(&(steps.rest, step)).copied();
        let bits = known.unwrap_or_else(|| {
            let lanes = self.f.vconst(std::array::from_fn(|lane| lane as u32 * step));
            let equal = self.icmp(Cc::Eq, Hold::W32, steps.rest, lanes);
            self.f.sign_bits(equal)
        });
        if step > 0 {
            packet.regular.insert((steps.rest, step), bits);
        }
        self.f.branch(Cc::Ne, Width::W32, bits, 0xff, to);
    }

    /// The addresses of a packet's lanes.
    fn addresses(&mut self, host: V, offsets: V) -> [V; 8] {
        self.f.vstore(self.frame, at::ROOM, offsets);
        std::array::from_fn(|lane| {
            let offset = self.f.load(Size::B4, self.frame, at::ROOM + 4 * lane as i32);
            self.f.int2(Int2::Add, Width::W64, host, offset)
        })
    }

    /// As [`Emitter::loaded`], of lanes anywhere.
    fn loaded_apart(&mut self, host: V, offsets: V, dwords: usize) -> Vec<V> {
        let from = self.addresses(host, offsets);
        if dwords == 4 {
            let rows = [0, 1, 2, 3].map(|k| self.load_halves([from[k], from[k + 4]], [0, 0]));
            return self.transposed(rows).to_vec();
        }
        let size = if dwords == 1 { Size::B4 } else { Size::B8 };
        for (lane, from) in (0..).zip(from) {
            let v = self.f.load(size, from, 0);
            self.f.store(size, self.frame, at::ROOM + 4 * dwords as i32 * lane, v);
        }
        let room = self.plus(self.frame, at::ROOM as i64);
        self.loaded(room, dwords)
    }

    /// Stores registers of all lanes.
    pub fn store_words(&mut self, place: &Located, data: u16, exec: V, full: V) -> R<()> {
        let dwords = place.access.dwords;
        self.each_packet(|e, base| {
            let mut packet = Packet::new(base);
            let n = e.packet.ok_or(Unsupported("a packet"))?;
            let offsets = e.offsets(place, exec, &mut packet)?;
            let rows: Vec<V> = (0..dwords as u16).map(|k| e.register(&mut packet, data + k)).collect();
            let [apart, done] = [(); 2].map(|()| e.f.label());
            e.f.branch(Cc::Eq, Width::W32, full, 0, apart);
            let steps = e.steps_of(offsets, &mut packet);
            e.unless_all(steps, 4 * dwords as u32, apart, &mut packet);
            let to = e.f.int2(Int2::Add, Width::W64, place.host, steps.first);
            e.stored(to, &rows);
            e.f.push(Inst::Jump(done));
            e.f.push(Inst::Label(apart));
            // Lane by lane, in their order: of several at one address the last stays.
            let active = e.f.int2(Int2::Shr, Width::W64, exec, n);
            for (lane, to) in (0..).zip(e.addresses(place.host, offsets)) {
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

    /// The words of eight lanes, each lane's together, as one vector for each word.
    fn loaded(&mut self, place: V, dwords: usize) -> Vec<V> {
        match dwords {
            1 => vec![self.f.vload(place, 0, false)],
            2 => {
                // Lanes 0, 1, 4, 5 and 2, 3, 6, 7, by halves.
                let (a, b) = (self.load_halves([place; 2], [0, 32]), self.load_halves([place; 2], [16, 48]));
                let take =
                    |e: &mut Self, which| e.f.rvm(Code::VEX_Vshufps_ymm_ymm_ymmm256_imm8, a, b, Some(which));
                vec![take(self, 0x88), take(self, 0xdd)]
            }
            _ => {
                let rows = [0, 1, 2, 3].map(|k| self.load_halves([place; 2], [16 * k, 16 * (k + 4)]));
                self.transposed(rows).to_vec()
            }
        }
    }

    /// The reverse of [`Emitter::loaded`].
    fn stored(&mut self, place: V, rows: &[V]) {
        match *rows {
            [v] => self.f.vstore(place, 0, v),
            [low, high] => {
                let a = self.f.rvm(Code::VEX_Vpunpckldq_ymm_ymm_ymmm256, low, high, None);
                let b = self.f.rvm(Code::VEX_Vpunpckhdq_ymm_ymm_ymmm256, low, high, None);
                self.store_halves(a, place, 0, 32);
                self.store_halves(b, place, 16, 48);
            }
            [a, b, c, d] => {
                for (k, v) in (0..).zip(self.transposed([a, b, c, d])) {
                    self.store_halves(v, place, 16 * k, 16 * (k + 4));
                }
            }
            _ => {}
        }
    }

    /// Four by four words, in either half.
    fn transposed(&mut self, [a, b, c, d]: [V; 4]) -> [V; 4] {
        let (low, high) = (Code::VEX_Vpunpckldq_ymm_ymm_ymmm256, Code::VEX_Vpunpckhdq_ymm_ymm_ymmm256);
        let (low2, high2) = (Code::VEX_Vpunpcklqdq_ymm_ymm_ymmm256, Code::VEX_Vpunpckhqdq_ymm_ymm_ymmm256);
        let mut pair = |code, a, b| self.f.rvm(code, a, b, None);
        let (ab, cd, ab2, cd2) = (pair(low, a, b), pair(low, c, d), pair(high, a, b), pair(high, c, d));
        [pair(low2, ab, cd), pair(high2, ab, cd), pair(low2, ab2, cd2), pair(high2, ab2, cd2)]
    }
}

/// Offsets of lanes, by the first one's.
#[derive(Clone, Copy)]
pub struct Steps {
    first: V,
    /// How much each is above it.
    rest: V,
}

/// A range of global memory in values.
struct FoundRange {
    base: V,
    len: V,
    host: V,
}
