//! The code of a run: a loop over packets of eight lanes.

use super::load_store::FirstLane;
use super::memory::{Path, ResolvedAccesses};
use super::run::{LaneSource, MaskSource, RunOp, mask_register};
use super::stmt::Env;
use super::val::Val;
use super::{Bug, Emitter, R};
use crate::frame::{HALF_BYTES, LANE_VEC_BYTES, frame_offset};
use crate::lane_calls;
use crate::lowering::{LaneFunction, PacketBuiltin};
use isa_lower::ir::{Hold, LaneLoop, Op2, Start, Step, WriteBack};
use isa_spec::tables::Role;
use std::collections::{BTreeMap, HashMap, HashSet};
use wavesim_machine::exec::op::Op;
use wavesim_machine::state::wave::NO_DENORMALS;
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Size, Src, V, Width};

/// Lanes of a packet.
const LANES: i32 = lane_calls::LANES as i32;
/// The size of a packet's lanes of a register.
const PACKET_BYTES: i32 = 4 * LANES;

/// The bit of each lane of a wave32.
pub(super) static LANE_BITS: [u32; 32] = {
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
    pub mask_bits: Vec<V>,
    /// For each mask, whether the bits of inactive lanes are preserved.
    pub preserves: Vec<bool>,
    /// For each written register, whether it is free of denormals.
    pub denormal_free: DenormalFree,
    /// On the fast path, for each offset register that is written, what is added to it.
    pub steps: Vec<(u16, Option<Val>)>,
}

/// Registers, and whether they are free of f32 denormals.
pub type DenormalFree = Vec<(u16, bool)>;

impl Emitter<'_> {
    /// Emits the loop over packets for some instructions of a run.
    pub fn packets(
        &mut self,
        ops: &[RunOp],
        [exec, full]: [V; 2],
        resolved: &ResolvedAccesses,
        masks: &[usize],
    ) -> R<Results> {
        let mut result = None;
        self.each_packet(|e, base| {
            // The accumulators must be fresh values of this loop: they are modified in it.
            let mask_bits: Vec<V> = masks.iter().map(|_| e.f.fresh(Class::Int)).collect();
            e.f.hoist(|f| mask_bits.iter().for_each(|sum| f.push(Inst::Const { d: *sum, bits: 0 })));
            let packet = e.packet(ops, base, resolved)?;
            let preserves = e.gather_masks(&packet, masks.iter().zip(&mask_bits))?;
            let denormal_free = e.write_back(&packet, [exec, full], resolved.is_fast())?;
            let steps = e.offset_steps(&packet, resolved);
            result = Some(Results { mask_bits, preserves, denormal_free, steps });
            Ok(())
        })?;
        result.ok_or(Bug("no packet"))
    }

    /// Emits a loop over packets. `body` gets the address of the packet's lanes in the first register.
    pub fn each_packet(&mut self, body: impl FnOnce(&mut Self, V) -> R<()>) -> R<()> {
        self.forget_vectors();
        let top = self.f.label();
        self.f.begin_loop();
        let (n, base) = (self.f.fresh(Class::Int), self.f.fresh(Class::Int));
        let vectors = self.vectors;
        self.f.hoist(|f| {
            f.push(Inst::Const { d: n, bits: 0 });
            f.assign(base, vectors);
        });
        self.f.push(Inst::Label(top));
        self.packet = Some(PacketPosition { n, base, bits_distance: None });
        let result = body(self, base);
        self.packet = None;
        // Advance to the next packet.
        let own = |op, d, b| Inst::Int2 { op, width: Width::W64, d, a: d, b };
        self.f.push(own(Int2::Add, base, Src::Imm(PACKET_BYTES)));
        if self.wide_wave {
            let last = self.f.compare(Cc::Eq, Width::W32, n, 32 - LANES);
            let step = (HALF_BYTES - LANE_VEC_BYTES) as i32;
            let step = self.f.int2(Int2::Mul, Width::W64, last, step);
            self.f.push(own(Int2::Add, base, Src::Value(step)));
        }
        if !self.wide_wave && !self.f.is_read_in_loop(n) {
            let end = self.f.hoist(|f| f.int2(Int2::Add, Width::W64, vectors, LANE_VEC_BYTES as i32));
            self.f.branch(Cc::Ne, Width::W64, base, end, top);
            self.f.end_loop();
            self.forget_vectors();
            return result;
        }
        self.f.push(own(Int2::Add, n, Src::Imm(LANES)));
        let count = if self.wide_wave { 64 } else { 32 };
        self.f.branch(Cc::Ne, Width::W32, n, count, top);
        self.f.end_loop();
        self.forget_vectors();
        result
    }

    /// Emits a packet's instructions.
    fn packet(&mut self, ops: &[RunOp], base: V, resolved: &ResolvedAccesses) -> R<Packet> {
        let mut packet = Packet::new(base);
        let last = if resolved.is_fast() { self.last_writes(ops) } else { HashMap::new() };
        for (n, op) in ops.iter().enumerate() {
            match &op.access {
                Some(memory_op) if resolved.is_fast() => {
                    self.fast_access(memory_op, op.op_index, resolved, &mut packet)?
                }
                Some(memory_op) => self.load_words(memory_op, op.op_index, resolved, &mut packet)?,
                None => self.packet_op(op, &mut packet)?,
            }
            self.store_early(&mut packet, resolved.path, |register| last.get(&register) == Some(&n));
        }
        self.prefetch_packets(resolved, &mut packet);
        Ok(packet)
    }

    /// Adds a packet's mask bits to those of all lanes. Returns [`Results::preserves`].
    fn gather_masks<'m>(
        &mut self,
        packet: &Packet,
        masks: impl Iterator<Item = (&'m usize, &'m V)>,
    ) -> R<Vec<bool>> {
        let PacketPosition { n, .. } = self.packet.ok_or(Bug("a packet"))?;
        let mut preserves = Vec::new();
        for (code, sum) in masks {
            let mask = packet.masks.get(code).ok_or(Bug("a mask"))?;
            let (cond, keep) = (mask.cond, mask.keep);
            let bits = self.mask(cond)?;
            let bits = self.f.sign_bits(bits);
            let bits = self.f.int2(Int2::Shl, Width::W64, bits, n);
            self.f.push(Inst::Int2 {
                op: Int2::Or,
                width: Width::W64,
                d: *sum,
                a: *sum,
                b: Src::Value(bits),
            });
            preserves.push(keep);
        }
        Ok(preserves)
    }

    /// Returns [`Results::steps`].
    fn offset_steps(&self, packet: &Packet, resolved: &ResolvedAccesses) -> Vec<(u16, Option<Val>)> {
        let mut steps = BTreeMap::new();
        for access in resolved.accesses.iter().filter(|_| resolved.is_fast()).map(|one| &one.access) {
            for register in access.register..=access.register + access.wide as u16 {
                let Some((v, true)) = packet.registers.get(&register) else { continue };
                let sum = self.facts.sums.get(v).filter(|_| !access.wide);
                let own = sum.filter(|(from, _)| packet.home_registers.get(from) == Some(&register));
                steps.insert(register, own.map(|(_, step)| *step));
            }
        }
        steps.into_iter().collect()
    }

    /// Emits the lane numbers.
    pub fn lane_id(&mut self) -> R<Val> {
        let PacketPosition { n, .. } = self.packet.ok_or(Bug("a lane's number"))?;
        let (first, each) = (self.broadcast(Hold::W32, n), self.f.vconst(std::array::from_fn(|k| k as u32)));
        Ok(Val::Lanes(self.iadd(Hold::W32, first, each)))
    }

    /// Expands the lanes' bits to a mask.
    pub fn expand_mask(&mut self, bits: V) -> R<V> {
        let PacketPosition { n, base, bits_distance } = self.packet.ok_or(Bug("a lane's bit"))?;
        let (all, own) = if self.wide_wave {
            let bits = self.f.int2(Int2::Shr, Width::W64, bits, n);
            (self.f.splat(false, bits), self.f.vconst(std::array::from_fn(|k| 1 << k)))
        } else {
            // The table is as long as a register, so that its address advances as a register's address does.
            let vectors = self.vectors;
            let bits_distance = bits_distance.unwrap_or_else(|| {
                self.f.hoist(|f| {
                    let table = f.iconst(LANE_BITS.as_ptr().addr() as u64);
                    f.int2(Int2::Sub, Width::W64, table, vectors)
                })
            });
            self.packet = Some(PacketPosition { n, base, bits_distance: Some(bits_distance) });
            let address = self.f.int2(Int2::Add, Width::W64, base, bits_distance);
            (self.broadcast(Hold::W32, bits), self.f.vload(address, 0, true))
        };
        let own_bits = self.band(Hold::W32, all, own);
        Ok(self.icmp(Cc::Eq, Hold::W32, own_bits, own))
    }

    /// Returns a register's lanes, possibly with unflushed denormals.
    pub fn register(&mut self, packet: &mut Packet, register: u16) -> V {
        if let Some(v) = packet.registers.get(&register) {
            return v.0;
        }
        // Registers are written only at the end of a packet.
        let v = self.f.vload(packet.base, register_displacement(register), true);
        packet.read.insert(register);
        packet.registers.insert(register, (v, false));
        packet.home_registers.insert(v, register);
        v
    }

    /// Emits an instruction.
    pub fn packet_op(&mut self, run_op: &RunOp, packet: &mut Packet) -> R<()> {
        if let Some(scratch) = &run_op.scratch {
            return self.emit_scratch(run_op, scratch, packet);
        }
        let lanes = run_op.lanes()?;
        self.env = Env::new(run_op.op_index);
        let mut sources: Vec<(Role, Vec<Val>)> = Vec::new();
        for (role, staged) in &run_op.sources {
            let mut words = Vec::new();
            for (k, word) in staged.words.iter().enumerate() {
                let mut v = match word {
                    LaneSource::Register(register) => Val::Lanes(self.register(packet, *register)),
                    LaneSource::One(val) => *val,
                };
                v = self.modified(staged, k, v)?;
                words.push(v);
            }
            sources.push((*role, words));
        }
        self.env.carry = match &run_op.carry {
            None => None,
            Some(MaskSource::Run(code)) => Some(packet.masks.get(code).ok_or(Bug("a mask"))?.cond),
            Some(MaskSource::Wave(Val::Const(bits))) if *bits == 0 => Some(Val::Const(0)),
            Some(MaskSource::Wave(val)) => {
                let bits = self.uniform(*val, self.mask_hold())?;
                Some(Val::Mask(self.expand_mask(bits)?))
            }
        };
        self.env.active = run_op.active.map(|register| self.register(packet, register));
        match self.unproven_selector(lanes, &sources)? {
            // Two paths cannot both keep what the other has read.
            Some(at) if !self.preserves_result_parts(run_op) => {
                self.split_on_selector(at, run_op, &sources, packet)
            }
            _ => self.emit_steps(run_op, &sources, packet),
        }
    }

    /// Returns whether an instruction preserves parts of its result register, besides lanes that EXEC
    /// disables.
    fn preserves_result_parts(&self, run_op: &RunOp) -> bool {
        let op = &self.ops[run_op.op_index as usize];
        run_op.active.is_some() || self.exts[op.ext as usize].sdwa.is_some()
    }

    /// Emits the steps of an instruction whose sources are staged.
    pub fn emit_steps(&mut self, run_op: &RunOp, sources: &[(Role, Vec<Val>)], packet: &mut Packet) -> R<()> {
        let op = self.ops[run_op.op_index as usize];
        let lanes = run_op.lanes()?;
        for step in &lanes.steps {
            match step {
                Step::Simd { builtin, ty, calls, lanes } => {
                    self.read_operand_lanes(lanes, sources)?;
                    self.stmts(&lanes.body)?;
                    let mut results = Vec::new();
                    let builtin = PacketBuiltin::of(*builtin, *ty)?;
                    for args in calls {
                        let args = args.iter().map(|arg| self.value(arg)).collect::<R<Vec<Val>>>()?;
                        results.push(match (builtin, &args[..]) {
                            (PacketBuiltin::F32(function), [v]) => self.polynomial_builtin(function, *v)?,
                            (PacketBuiltin::F16(function), [v]) => {
                                self.call_per_lane(LaneFunction::F16(function), &[*v])?
                            }
                            (PacketBuiltin::SelectBytes, [a, b, c]) => self.byte_permute([*a, *b, *c])?,
                            _ => return Err(Bug("a builtin")),
                        });
                    }
                    self.env.calls = results;
                    self.env.locals.clear();
                }
                Step::Loop(lane_loop) => {
                    self.read_operand_lanes(lane_loop, sources)?;
                    if let Some(result) = &lane_loop.result {
                        let old = match result.start {
                            Start::Zero => Val::Const(0),
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
                    let cond = self.env.bits.get(mask).copied().unwrap_or(Val::Const(0));
                    let cond = match cond {
                        Val::Bool(_) | Val::Const(_) => Val::Mask(self.mask(cond)?),
                        cond => cond,
                    };
                    let cond = match self.env.active {
                        Some(active) => self.logical_op(true, cond, Val::Mask(active))?,
                        None => cond,
                    };
                    let code = mask_register(*mask, &op);
                    packet.masks.insert(code, Gathered { cond, keep: *keep });
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
                self.facts.joined.insert((low, high), v);
            }
            self.set_register(packet, op.d, low)?;
            return self.set_register(packet, op.d + 1, high);
        }
        let placed = self.insert_part(op, v, |e| e.register(packet, op.d))?;
        let v = match (placed, how) {
            (Some(v), _) => self.unflushed_lanes(v)?,
            (None, WriteBack::Half { .. }) if op.flags & Op::CLEAR_UPPER != 0 => {
                let half = self.op2(Op2::And, Hold::W32, v, Val::Const(0xffff))?;
                self.unflushed_lanes(half)?
            }
            (None, WriteBack::Half { .. }) => {
                let old = self.register(packet, op.d);
                self.insert_half(old, v, op.flags & Op::HIGH != 0)?
            }
            _ => self.unflushed_lanes(v)?,
        };
        self.set_register(packet, op.d, v)
    }

    /// Writes a register in the lanes that execute.
    fn set_register(&mut self, packet: &mut Packet, register: u16, v: V) -> R<()> {
        let v = match self.env.active {
            Some(active) => {
                let old = self.register(packet, register);
                let (v, old) = (self.flush_pending(v), self.flush_pending(old));
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
        Ok(Val::Wide(self.join_words(low, high)))
    }

    fn read_operand_lanes(&mut self, lanes: &LaneLoop, sources: &[(Role, Vec<Val>)]) -> R<()> {
        for read in &lanes.reads {
            let Some((_, words)) = sources.iter().find(|(role, _)| *role == read.role) else { continue };
            let hold = Hold::of(read.width);
            let v = match (words[..].first(), words.get(1), hold) {
                (Some(low), _, Hold::W32) => *low,
                (Some(low), Some(high), Hold::W64) if !low.is_varying() && !high.is_varying() => {
                    self.join_dwords(*low, *high)?
                }
                (Some(low), Some(high), Hold::W64) => {
                    let (low, high) = (self.lanes(*low)?, self.lanes(*high)?);
                    Val::Wide(self.join_words(low, high))
                }
                _ => return Err(Bug("a wide source")),
            };
            self.env.operands.insert(read.role, (v, hold));
        }
        Ok(())
    }

    /// Stores the written registers. Returns for each whether it is free of denormals.
    fn write_back(&mut self, packet: &Packet, [exec, full]: [V; 2], fast: bool) -> R<DenormalFree> {
        let mut written: Vec<(u16, V)> = packet.written().collect();
        if written.is_empty() && packet.stored_early.is_empty() {
            return Ok(Vec::new());
        }
        let registers: Vec<u16> = written.iter().map(|(register, _)| *register).collect();
        for (register, v) in &mut written {
            *v = self.flush_pending(*v);
            // The value is another register's old content, which must be copied before that register is
            // written.
            let home = packet.home_registers.get(v).filter(|home| *home != register);
            if home.is_some_and(|home| registers.contains(home)) {
                let copy = self.f.fresh(Class::Vec);
                self.f.assign(copy, *v);
                *v = copy;
            }
        }
        let [whole, join] = [(); 2].map(|()| self.f.label());
        if !fast {
            self.f.branch(Cc::Ne, Width::W32, full, 0, whole);
            let mask = self.expand_mask(exec)?;
            for (register, v) in &written {
                let old = self.f.vload(packet.base, register_displacement(*register), false);
                let v = self.f.blend(false, mask, *v, old);
                self.f.vstore(packet.base, register_displacement(*register), v);
            }
            self.f.push(Inst::Jump(join));
            self.f.push(Inst::Label(whole));
        }
        for (register, v) in &written {
            self.f.vstore(packet.base, register_displacement(*register), *v);
        }
        self.f.push(Inst::Label(join));
        let all = written.into_iter().chain(packet.stored_early.iter().map(|(register, v)| (*register, *v)));
        let mut denormal_free: DenormalFree =
            all.map(|(register, v)| (register, self.facts.denormal_free.contains(&v))).collect();
        denormal_free.sort_unstable();
        Ok(denormal_free)
    }

    /// Stores registers that no later instruction of the packet writes and whose old content nothing reads. A
    /// steady iteration does not store them.
    fn store_early(&mut self, packet: &mut Packet, path: Path, is_last: impl Fn(u16) -> bool) {
        let now: Vec<(u16, V)> = packet
            .written()
            .filter(|(register, _)| is_last(*register) && !packet.read.contains(register))
            .collect();
        for (register, v) in now {
            let v = self.flush_pending(v);
            if path != Path::Steady {
                self.f.vstore(packet.base, register_displacement(register), v);
            }
            packet.stored_early.insert(register, v);
        }
    }

    /// Updates the flags of written registers: those free of denormals keep theirs. Adjacent registers share
    /// one store. `full`: whether all lanes are active, if that is not statically known.
    pub fn set_flags(&mut self, full: Option<V>, denormal_free: &[(u16, bool)]) {
        if denormal_free.is_empty() {
            return;
        }
        let flags = self.f.load(Size::B8, self.frame, frame_offset::FLAGS);
        let halves = if self.wide_wave { 2 } else { 1 };
        let mut rest = denormal_free;
        while let Some((first, _)) = rest.first() {
            let adjacent =
                (*first..).zip(rest).take_while(|(register, (other, _))| register == other).count();
            let (size, count) = match adjacent {
                8.. => (Size::B8, 8),
                4..8 => (Size::B4, 4),
                _ => (Size::B1, 1),
            };
            let (these, others) = rest.split_at(count);
            rest = others;
            let byte = |denormal_free: bool| if denormal_free { NO_DENORMALS as u64 } else { 0 };
            let known = (0..)
                .zip(these)
                .fold(0, |all, (k, (_, denormal_free))| all | byte(*denormal_free) << (8 * k));
            for offset in (0..halves).map(|half| (half * HALF_BYTES + *first as usize) as i32) {
                let value = if let (Some(full), 1..) = (full, known) {
                    let known = self.f.iconst(known);
                    let old = self.f.load(size, flags, offset);
                    let old = self.f.int2(Int2::And, Width::W64, old, known);
                    Src::Value(self.f.select(full, known, old))
                } else if let Ok(known) = i32::try_from(known) {
                    Src::Imm(known)
                } else {
                    Src::Value(self.f.iconst(known))
                };
                self.f.store(size, flags, offset, value);
            }
        }
    }
}

/// The position of the packet that is being emitted.
#[derive(Clone, Copy)]
pub struct PacketPosition {
    /// The number of its first lane.
    pub n: V,
    /// The address of its lanes in the first register.
    pub base: V,
    /// The distance of the table of lane bits from the registers.
    bits_distance: Option<V>,
}

/// The state of a packet's lanes while they are emitted.
pub struct Packet {
    pub base: V,
    /// Register values, and whether they were written.
    pub registers: BTreeMap<u16, (V, bool)>,
    /// Values that are the content of a register before the packet.
    home_registers: HashMap<V, u16>,
    /// Registers whose content before the packet has been read.
    read: HashSet<u16>,
    /// Registers that have been stored already, with the stored value.
    stored_early: BTreeMap<u16, V>,
    masks: BTreeMap<usize, Gathered>,
    /// The mask of active lanes, once it has been emitted.
    pub active: Option<V>,
    /// Offsets of active lanes, by address register and origin.
    pub offsets: HashMap<(V, Option<[V; 2]>), V>,
    /// Each lane's offset minus that of lane 0, by offsets.
    pub lane_deltas: HashMap<V, V>,
    /// Loaded words, by index of the access.
    pub loaded: HashMap<usize, Vec<V>>,
    /// The first lane, by group.
    pub first_lanes: HashMap<usize, FirstLane>,
    /// Loaded words, with the same vectors in memory order.
    pub memory_order: Vec<(Vec<V>, Vec<V>)>,
}

struct Gathered {
    cond: Val,
    /// The bits of inactive lanes are preserved.
    keep: bool,
}

impl Packet {
    pub fn new(base: V) -> Packet {
        Packet {
            base,
            registers: BTreeMap::new(),
            home_registers: HashMap::new(),
            read: HashSet::new(),
            stored_early: BTreeMap::new(),
            masks: BTreeMap::new(),
            active: None,
            offsets: HashMap::new(),
            lane_deltas: HashMap::new(),
            loaded: HashMap::new(),
            first_lanes: HashMap::new(),
            memory_order: Vec::new(),
        }
    }

    /// Returns the registers that were written and are still to be stored.
    fn written(&self) -> impl Iterator<Item = (u16, V)> {
        let all = self
            .registers
            .iter()
            .filter(|(at, (_, written))| *written && !self.stored_early.contains_key(at));
        all.map(|(at, (v, _))| (*at, *v))
    }
}

/// The displacement of a register from the first one.
fn register_displacement(register: u16) -> i32 {
    register as i32 * LANE_VEC_BYTES as i32
}
