//! The code of a run: a loop over packets of eight lanes.

use super::memory::Places;
use super::moves::First;
use super::run::{Bits, Buffered, Lane, mask_register};
use super::stmt::Env;
use super::val::Val;
use super::{Emitter, R, Unsupported};
use crate::frame::{HALF_BYTES, LANE_VEC_BYTES, at};
use crate::lanes as functions;
use crate::plan;
use isa_lower::ir::{Hold, LaneLoop, Mask, Start, Step, WriteBack};
use isa_spec::pcode::ir::Ty;
use isa_spec::tables::Role;
use std::collections::{BTreeMap, HashMap, HashSet};
use wavesim_machine::exec::op::Op;
use wavesim_machine::state::wave::NO_DENORMALS;
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Size, Src, V, Width};

/// Lanes of a packet.
const LANES: i32 = functions::LANES as i32;
/// The size of a packet's lanes of a register.
const BYTES: i32 = 4 * LANES;

/// The bit of each lane of a wave32.
static LANE_BITS: [u32; 32] = {
    let mut bits = [0; 32];
    let mut lane = 0;
    while lane < 32 {
        bits[lane] = 1 << lane;
        lane += 1;
    }
    bits
};

/// The results of a loop over packets.
pub struct Results {
    /// The bits of each mask.
    pub sums: Vec<V>,
    /// For each mask, whether the bits of inactive lanes are preserved.
    pub keeps: Vec<bool>,
    /// For each written register, whether it is free of denormals.
    pub normal: Normal,
}

/// Registers, and whether they are free of f32 denormals.
type Normal = Vec<(u16, bool)>;

impl Emitter<'_> {
    /// Emits the loop over packets for some instructions of a run.
    pub fn packets(
        &mut self,
        ops: &[Buffered],
        [exec, full]: [V; 2],
        places: &Places,
        masks: &[usize],
    ) -> R<Results> {
        let mut made = None;
        self.each_packet(|e, base| {
            // The accumulators must be fresh values of this loop: they are modified in it.
            let sums: Vec<V> = masks.iter().map(|_| e.f.fresh(Class::Int)).collect();
            e.f.hoisted(|f| sums.iter().for_each(|sum| f.push(Inst::Const { d: *sum, bits: 0 })));
            let (keeps, normal) = e.packet(ops, [exec, full], base, places, masks.iter().zip(&sums))?;
            made = Some(Results { sums, keeps, normal });
            Ok(())
        })?;
        made.ok_or(Unsupported("no packet"))
    }

    /// Emits a loop over packets. `body` gets the address of the packet's lanes in the first register.
    pub fn each_packet(&mut self, body: impl FnOnce(&mut Self, V) -> R<()>) -> R<()> {
        self.forget_vectors();
        let top = self.f.label();
        self.f.begin_loop();
        let (n, base) = (self.f.fresh(Class::Int), self.f.fresh(Class::Int));
        let vectors = self.vectors;
        self.f.hoisted(|f| {
            f.push(Inst::Const { d: n, bits: 0 });
            f.assign(base, vectors);
        });
        self.f.push(Inst::Label(top));
        self.packet = Some(PacketAt { n, base, away: None });
        let made = body(self, base);
        self.packet = None;
        // Advance to the next packet.
        let own = |op, d, b| Inst::Int2 { op, width: Width::W64, d, a: d, b };
        self.f.push(own(Int2::Add, base, Src::Imm(BYTES)));
        if self.wide_wave {
            let last = self.f.compare(Cc::Eq, Width::W32, n, 32 - LANES);
            let step = (HALF_BYTES - LANE_VEC_BYTES) as i32;
            let step = self.f.int2(Int2::Mul, Width::W64, last, step);
            self.f.push(own(Int2::Add, base, Src::Value(step)));
        }
        if !self.wide_wave && !self.f.is_read_in_loop(n) {
            let end = self.f.hoisted(|f| f.int2(Int2::Add, Width::W64, vectors, LANE_VEC_BYTES as i32));
            self.f.branch(Cc::Ne, Width::W64, base, end, top);
            self.f.end_loop();
            self.forget_vectors();
            return made;
        }
        self.f.push(own(Int2::Add, n, Src::Imm(LANES)));
        let count = if self.wide_wave { 64 } else { 32 };
        self.f.branch(Cc::Ne, Width::W32, n, count, top);
        self.f.end_loop();
        self.forget_vectors();
        made
    }

    /// Emits a packet's instructions. Returns [`Results::preserves`] and [`Results::denormal_free`].
    fn packet<'m>(
        &mut self,
        ops: &[Buffered],
        [exec, full]: [V; 2],
        base: V,
        places: &Places,
        masks: impl Iterator<Item = (&'m usize, &'m V)>,
    ) -> R<(Vec<bool>, Normal)> {
        let mut packet = Packet::new(base);
        let last = if places.fast { self.last_writes(ops) } else { HashMap::new() };
        for (n, op) in ops.iter().enumerate() {
            match &op.access {
                Some(words) if places.fast => self.fast_access(words, op.at, places, &mut packet)?,
                Some(words) => self.load_words(words, op.at, places, &mut packet)?,
                None => self.packet_op(op, &mut packet)?,
            }
            self.write_early(&mut packet, |register| last.get(&register) == Some(&n));
        }
        let PacketAt { n, .. } = self.packet.ok_or(Unsupported("a packet"))?;
        // Shift the packet's mask bits to their lanes.
        let mut keeps = Vec::new();
        for (code, sum) in masks {
            let mask = packet.masks.get(code).ok_or(Unsupported("a mask"))?;
            let (truth, keep) = (mask.truth, mask.keep);
            let bits = self.mask(truth)?;
            let bits = self.f.sign_bits(bits);
            let bits = self.f.int2(Int2::Shl, Width::W64, bits, n);
            self.f.push(Inst::Int2 {
                op: Int2::Or,
                width: Width::W64,
                d: *sum,
                a: *sum,
                b: Src::Value(bits),
            });
            keeps.push(keep);
        }
        let normal = self.write_back(&packet, [exec, full], places.fast)?;
        Ok((keeps, normal))
    }

    /// Emits the lane numbers.
    pub fn lane_id(&mut self) -> R<Val> {
        let PacketAt { n, .. } = self.packet.ok_or(Unsupported("a lane's number"))?;
        let (first, each) = (self.spread(Hold::W32, n), self.f.vconst(std::array::from_fn(|k| k as u32)));
        Ok(Val::Lanes(self.iadd(Hold::W32, first, each)))
    }

    /// Expands the lanes' bits to a mask.
    pub fn lanes_of(&mut self, bits: V) -> R<V> {
        let PacketAt { n, base, away } = self.packet.ok_or(Unsupported("a lane's bit"))?;
        let (all, own) = if self.wide_wave {
            let bits = self.f.int2(Int2::Shr, Width::W64, bits, n);
            (self.f.splat(false, bits), self.f.vconst(std::array::from_fn(|k| 1 << k)))
        } else {
            // The table is as long as a register, so that its address advances as a register's address does.
            let vectors = self.vectors;
            let away = away.unwrap_or_else(|| {
                self.f.hoisted(|f| {
                    let table = f.iconst(LANE_BITS.as_ptr().addr() as u64);
                    f.int2(Int2::Sub, Width::W64, table, vectors)
                })
            });
            self.packet = Some(PacketAt { n, base, away: Some(away) });
            let place = self.f.int2(Int2::Add, Width::W64, base, away);
            (self.spread(Hold::W32, bits), self.f.vload(place, 0, true))
        };
        let own_bits = self.band(Hold::W32, all, own);
        Ok(self.icmp(Cc::Eq, Hold::W32, own_bits, own))
    }

    /// Emits the lanes' bits of a mask operand.
    pub fn lane_bit(&mut self, mask: Mask) -> R<Val> {
        match mask {
            Mask::Vcc => self.env.carry.ok_or(Unsupported("a mask")),
            Mask::D0 | Mask::Exec => Err(Unsupported("a mask")),
        }
    }

    /// Returns a register's lanes, possibly with unflushed denormals.
    pub fn register(&mut self, packet: &mut Packet, register: u16) -> V {
        if let Some(v) = packet.registers.get(&register) {
            return v.0;
        }
        // Registers are written only at the end of a packet.
        let v = self.f.vload(packet.base, place(register), true);
        packet.read.insert(register);
        packet.registers.insert(register, (v, false));
        packet.homes.insert(v, register);
        v
    }

    /// Emits an instruction.
    pub fn packet_op(&mut self, buffered: &Buffered, packet: &mut Packet) -> R<()> {
        if let Some(scratch) = &buffered.scratch {
            return self.move_scratch(buffered, scratch, packet);
        }
        let lanes = plan::lanes(&buffered.handlers).ok_or(Unsupported("an operation"))?;
        self.env = Env::new(buffered.at);
        let mut sources: Vec<(Role, Vec<Val>)> = Vec::new();
        for (role, staged) in &buffered.sources {
            let mut words = Vec::new();
            for (k, word) in staged.words.iter().enumerate() {
                let mut v = match word {
                    Lane::Register(register) => Val::Lanes(self.register(packet, *register)),
                    Lane::One(val) => *val,
                };
                v = self.modified(staged, k, v)?;
                words.push(v);
            }
            sources.push((*role, words));
        }
        self.env.carry = match &buffered.carry {
            None => None,
            Some(Bits::Run(code)) => Some(packet.masks.get(code).ok_or(Unsupported("a mask"))?.truth),
            Some(Bits::Wave(Val::Known(bits))) if *bits == 0 => Some(Val::Known(0)),
            Some(Bits::Wave(val)) => {
                let bits = self.one(*val, self.mask_hold())?;
                Some(Val::Mask(self.lanes_of(bits)?))
            }
        };
        self.env.active = buffered.active.map(|register| self.register(packet, register));
        match self.unsure_selector(lanes, &sources)? {
            // Two paths cannot both keep what the other has read.
            Some(at) if !self.keeps_lanes(buffered) => self.by_selector(at, buffered, &sources, packet),
            _ => self.steps(buffered, &sources, packet),
        }
    }

    /// Returns whether an instruction preserves parts of its result register, besides lanes that EXEC
    /// disables.
    fn keeps_lanes(&self, buffered: &Buffered) -> bool {
        let op = &self.ops[buffered.at as usize];
        buffered.active.is_some() || self.exts[op.ext as usize].sdwa.is_some()
    }

    /// Emits the steps of an instruction whose sources are staged.
    pub fn steps(&mut self, buffered: &Buffered, sources: &[(Role, Vec<Val>)], packet: &mut Packet) -> R<()> {
        let op = self.ops[buffered.at as usize];
        let lanes = plan::lanes(&buffered.handlers).ok_or(Unsupported("an operation"))?;
        for step in &lanes.steps {
            match step {
                Step::Simd { builtin, ty, calls, lanes } => {
                    self.read_lanes(lanes, sources)?;
                    self.stmts(&lanes.body)?;
                    let mut results = Vec::new();
                    let function = functions::builtin(*builtin, *ty, self.flush);
                    for args in calls {
                        if let Some(function) = function {
                            let v = self.value(&args[0])?;
                            results.push(match ty {
                                Ty::F32 => self.by_polynomial(*builtin, function, v)?,
                                _ => self.by_lane(function, &[v])?,
                            });
                            continue;
                        }
                        let args = [self.value(&args[0])?, self.value(&args[1])?, self.value(&args[2])?];
                        results.push(self.select_bytes(args)?);
                    }
                    self.env.calls = results;
                    self.env.locals.clear();
                }
                Step::Loop(lane_loop) => {
                    self.read_lanes(lane_loop, sources)?;
                    if let Some(result) = &lane_loop.result {
                        let old = match result.start {
                            Start::Zero => Val::Known(0),
                            Start::OldHalf => {
                                let old = self.old_result(packet, op.d, 1)?;
                                self.half_at(old, if op.flags & Op::HIGH != 0 { 16 } else { 0 })?
                            }
                            Start::Old => self.old_result(packet, op.d, result.dwords())?,
                        };
                        self.env.operands.insert(Role::D0, (old, Hold::of(result.width)));
                    }
                    self.stmts(&lane_loop.body)?;
                }
                Step::Gather { mask, keep } => {
                    let truth = self.env.bits.get(mask).copied().unwrap_or(Val::Known(0));
                    let truth = match truth {
                        Val::Truth(_) | Val::Known(_) => Val::Mask(self.mask(truth)?),
                        truth => truth,
                    };
                    let truth = match self.env.active {
                        Some(active) => self.either(true, truth, Val::Mask(active))?,
                        None => truth,
                    };
                    let code = mask_register(*mask, &op);
                    packet.masks.insert(code, Gathered { truth, keep: *keep });
                }
                Step::Write { dwords, how } => self.write_result(packet, &op, *dwords, *how)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes a result to the packet's registers.
    fn write_result(&mut self, packet: &mut Packet, op: &Op, dwords: u32, how: WriteBack) -> R<()> {
        let v = self.env.var(isa_lower::ir::Var::Operand(Role::D0));
        let v = match how {
            WriteBack::General { output } | WriteBack::Half { output } => self.output(op, output, v)?,
            WriteBack::Fast { .. } => v,
        };
        if dwords != 1 {
            let v = self.wide(v)?;
            let (low, high) = (self.low_words(v), self.high_words(v));
            if self.env.active.is_none() {
                self.known.wholes.insert((low, high), v);
            }
            self.set_register(packet, op.d, low)?;
            return self.set_register(packet, op.d + 1, high);
        }
        let placed = self.placed(op, v, |e| e.register(packet, op.d))?;
        let v = match (placed, how) {
            (Some(v), _) => self.raw_lanes(v)?,
            (None, WriteBack::Half { .. }) => {
                let old = self.register(packet, op.d);
                self.in_half(old, v, op.flags & Op::HIGH != 0)?
            }
            _ => self.raw_lanes(v)?,
        };
        self.set_register(packet, op.d, v)
    }

    /// Writes a register in the lanes that execute.
    fn set_register(&mut self, packet: &mut Packet, register: u16, v: V) -> R<()> {
        let v = match self.env.active {
            Some(active) => {
                let old = self.register(packet, register);
                let (v, old) = (self.exact(v), self.exact(old));
                self.f.blend(false, active, v, old)
            }
            None => v,
        };
        packet.registers.insert(register, (v, true));
        Ok(())
    }

    fn old_result(&mut self, packet: &mut Packet, d: u16, dwords: u32) -> R<Val> {
        let low = self.register(packet, d);
        if dwords == 1 {
            return Ok(Val::Lanes(low));
        }
        let high = self.register(packet, d + 1);
        Ok(Val::Wide(self.joined(low, high)))
    }

    fn read_lanes(&mut self, lanes: &LaneLoop, sources: &[(Role, Vec<Val>)]) -> R<()> {
        for read in &lanes.reads {
            let Some((_, words)) = sources.iter().find(|(role, _)| *role == read.role) else { continue };
            let hold = Hold::of(read.width);
            let v = match (words[..].first(), words.get(1), hold) {
                (Some(low), _, Hold::W32) => *low,
                (Some(low), Some(high), Hold::W64) if !low.varies() && !high.varies() => {
                    self.pair(*low, *high)?
                }
                (Some(low), Some(high), Hold::W64) => {
                    let (low, high) = (self.lanes(*low)?, self.lanes(*high)?);
                    Val::Wide(self.joined(low, high))
                }
                _ => return Err(Unsupported("a wide source")),
            };
            self.env.operands.insert(read.role, (v, hold));
        }
        Ok(())
    }

    /// Stores the written registers. Returns for each whether it is free of denormals.
    fn write_back(&mut self, packet: &Packet, [exec, full]: [V; 2], fast: bool) -> R<Normal> {
        let mut written: Vec<(u16, V)> = packet.written().collect();
        if written.is_empty() && packet.early.is_empty() {
            return Ok(Vec::new());
        }
        let registers: Vec<u16> = written.iter().map(|(register, _)| *register).collect();
        for (register, v) in &mut written {
            *v = self.exact(*v);
            // The value is another register's old content, which must be copied before that register is
            // written.
            let home = packet.homes.get(v).filter(|home| *home != register);
            if home.is_some_and(|home| registers.contains(home)) {
                let copy = self.f.fresh(Class::Vec);
                self.f.assign(copy, *v);
                *v = copy;
            }
        }
        let [whole, on] = [(); 2].map(|()| self.f.label());
        if !fast {
            self.f.branch(Cc::Ne, Width::W32, full, 0, whole);
            let mask = self.lanes_of(exec)?;
            for (register, v) in &written {
                let old = self.f.vload(packet.base, place(*register), false);
                let v = self.f.blend(false, mask, *v, old);
                self.f.vstore(packet.base, place(*register), v);
            }
            self.f.push(Inst::Jump(on));
            self.f.push(Inst::Label(whole));
        }
        for (register, v) in &written {
            self.f.vstore(packet.base, place(*register), *v);
        }
        self.f.push(Inst::Label(on));
        let all = written.into_iter().chain(packet.early.iter().map(|(register, v)| (*register, *v)));
        let mut normal: Normal =
            all.map(|(register, v)| (register, self.known.normal.contains(&v))).collect();
        normal.sort_unstable();
        Ok(normal)
    }

    /// Stores registers that no later instruction of the packet writes and whose old content nothing reads.
    fn write_early(&mut self, packet: &mut Packet, is_last: impl Fn(u16) -> bool) {
        let now: Vec<(u16, V)> = packet
            .written()
            .filter(|(register, _)| is_last(*register) && !packet.read.contains(register))
            .collect();
        for (register, v) in now {
            let v = self.exact(v);
            self.f.vstore(packet.base, place(register), v);
            packet.early.insert(register, v);
        }
    }

    /// Updates the flags of written registers: those free of denormals keep theirs. Adjacent registers share
    /// one store. `full`: whether all lanes are active, if that is not statically known.
    pub fn set_flags(&mut self, full: Option<V>, normal: &[(u16, bool)]) {
        if normal.is_empty() {
            return;
        }
        let flags = self.f.load(Size::B8, self.frame, at::FLAGS);
        let halves = if self.wide_wave { 2 } else { 1 };
        let mut rest = normal;
        while let Some((first, _)) = rest.first() {
            let together =
                (*first..).zip(rest).take_while(|(register, (other, _))| register == other).count();
            let (size, count) = match together {
                8.. => (Size::B8, 8),
                4..8 => (Size::B4, 4),
                _ => (Size::B1, 1),
            };
            let (these, others) = rest.split_at(count);
            rest = others;
            let byte = |normal: bool| if normal { NO_DENORMALS as u64 } else { 0 };
            let known = (0..).zip(these).fold(0, |all, (k, (_, normal))| all | byte(*normal) << (8 * k));
            for place in (0..halves).map(|half| (half * HALF_BYTES + *first as usize) as i32) {
                let value = if let (Some(full), 1..) = (full, known) {
                    let known = self.f.iconst(known);
                    let old = self.f.load(size, flags, place);
                    let old = self.f.int2(Int2::And, Width::W64, old, known);
                    Src::Value(self.f.select(full, known, old))
                } else if let Ok(known) = i32::try_from(known) {
                    Src::Imm(known)
                } else {
                    Src::Value(self.f.iconst(known))
                };
                self.f.store(size, flags, place, value);
            }
        }
    }
}

/// The position of the packet that is being emitted.
#[derive(Clone, Copy)]
pub struct PacketAt {
    /// The number of its first lane.
    pub n: V,
    /// The address of its lanes in the first register.
    pub base: V,
    /// The distance of the table of lane bits from the registers.
    away: Option<V>,
}

/// The state of a packet's lanes while they are emitted.
pub struct Packet {
    pub base: V,
    /// Register values, and whether they were written.
    pub registers: BTreeMap<u16, (V, bool)>,
    /// Values that are the content of a register before the packet.
    homes: HashMap<V, u16>,
    /// Registers whose content before the packet has been read.
    read: HashSet<u16>,
    /// Registers that have been stored already, with the stored value.
    early: BTreeMap<u16, V>,
    masks: BTreeMap<usize, Gathered>,
    /// The mask of active lanes, once it has been emitted.
    pub active: Option<V>,
    /// Offsets of active lanes, by address register and origin.
    pub offsets: HashMap<(V, Option<[V; 2]>), V>,
    /// Each lane's offset minus that of lane 0, by offsets.
    pub steps: HashMap<V, V>,
    /// Loaded words, by index of the access.
    pub loaded: HashMap<usize, Vec<V>>,
    /// The first lane, by group.
    pub firsts: HashMap<usize, First>,
    /// Loaded words, with the same vectors in memory order.
    pub rows: Vec<(Vec<V>, Vec<V>)>,
}

struct Gathered {
    truth: Val,
    /// The bits of inactive lanes are preserved.
    keep: bool,
}

impl Packet {
    pub fn new(base: V) -> Packet {
        Packet {
            base,
            registers: BTreeMap::new(),
            homes: HashMap::new(),
            read: HashSet::new(),
            early: BTreeMap::new(),
            masks: BTreeMap::new(),
            active: None,
            offsets: HashMap::new(),
            steps: HashMap::new(),
            loaded: HashMap::new(),
            firsts: HashMap::new(),
            rows: Vec::new(),
        }
    }

    /// Returns the registers that were written and are still to be stored.
    fn written(&self) -> impl Iterator<Item = (u16, V)> {
        let all = self.registers.iter().filter(|(at, (_, written))| *written && !self.early.contains_key(at));
        all.map(|(at, (v, _))| (*at, *v))
    }
}

/// The displacement of a register from the first one.
fn place(register: u16) -> i32 {
    register as i32 * LANE_VEC_BYTES as i32
}
