//! The code of a run: a loop over packets of eight lanes.

use crate::arith::builder::{Bug, PacketPosition, R};
use crate::arith::lane_calls;
use crate::arith::val::Val;
use crate::frame::{HALF_BYTES, LANE_VEC_BYTES, frame_offset};
use crate::lanes::buffer::mask_register;
use crate::lowering::{LaneFunction, PacketBuiltin};
use crate::state::access::{Path, ResolvedAccesses};
use crate::state::emitter::Emitter;
use crate::state::env::Env;
use crate::state::packet::{DenormalFree, Gathered, Packet};
use crate::state::run::{LaneSource, MaskSource, RunOp};
use isa_lower::ir::{HostWidth, LaneLoop, Op2, Start, Step, WriteBack};
use isa_spec::tables::Role;
use std::collections::{BTreeMap, HashMap};
use wavesim_machine::exec::op::Op;
use wavesim_machine::state::wave::NO_DENORMALS;
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Size, Src, V, Width};

/// Lanes of a packet.
const LANES: i32 = lane_calls::LANES as i32;
/// The size of a packet's lanes of a register.
const PACKET_BYTES: i32 = 4 * LANES;

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
        let top = self.b.f.label();
        self.b.f.begin_loop();
        let (n, base) = (self.b.f.fresh(Class::Int), self.b.f.fresh(Class::Int));
        let vectors = self.b.vectors;
        self.b.f.hoist(|f| {
            f.push(Inst::Const { d: n, bits: 0 });
            f.assign(base, vectors);
        });
        self.b.f.push(Inst::Label(top));
        self.packet = Some(PacketPosition { n, base, bits_distance: None });
        let result = body(self, base);
        self.packet = None;
        // Advance to the next packet.
        let own = |op, d, b| Inst::Int2 { op, width: Width::W64, d, a: d, b };
        self.b.f.push(own(Int2::Add, base, Src::Imm(PACKET_BYTES)));
        if self.wave64 {
            let last = self.b.f.compare(Cc::Eq, Width::W32, n, 32 - LANES);
            let step = (HALF_BYTES - LANE_VEC_BYTES) as i32;
            let step = self.b.f.int2(Int2::Mul, Width::W64, last, step);
            self.b.f.push(own(Int2::Add, base, Src::Value(step)));
        }
        if !self.wave64 && !self.b.f.is_read_in_loop(n) {
            let end = self.b.f.hoist(|f| f.int2(Int2::Add, Width::W64, vectors, LANE_VEC_BYTES as i32));
            self.b.f.branch(Cc::Ne, Width::W64, base, end, top);
            self.b.f.end_loop();
            self.forget_vectors();
            return result;
        }
        self.b.f.push(own(Int2::Add, n, Src::Imm(LANES)));
        let count = if self.wave64 { 64 } else { 32 };
        self.b.f.branch(Cc::Ne, Width::W32, n, count, top);
        self.b.f.end_loop();
        self.forget_vectors();
        result
    }

    /// Emits a packet's instructions.
    fn packet(&mut self, ops: &[RunOp], base: V, resolved: &ResolvedAccesses) -> R<Packet> {
        let mut packet = Packet::new(base);
        let last = if resolved.is_fast() { self.last_writes(ops) } else { HashMap::new() };
        for (n, op) in ops.iter().enumerate() {
            for (register, sequence) in &op.sequences {
                let v = self.sequence_in_packet(*sequence)?;
                packet.registers.insert(*register, (v, false));
            }
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
            let bits = self.b.f.sign_bits(bits);
            let bits = self.b.f.int2(Int2::Shl, Width::W64, bits, n);
            self.b.f.push(Inst::Int2 {
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
            for register in access.register..=access.register + access.address64 as u16 {
                let Some((v, true)) = packet.registers.get(&register) else { continue };
                let sum = self.b.facts.sums.get(v).filter(|_| !access.address64);
                let own = sum.filter(|(from, _)| packet.home_registers.get(from) == Some(&register));
                steps.insert(register, own.map(|(_, step)| *step));
            }
        }
        steps.into_iter().collect()
    }

    /// Returns a register's lanes, possibly with unflushed denormals.
    pub fn register(&mut self, packet: &mut Packet, register: u16) -> V {
        if let Some(v) = packet.registers.get(&register) {
            return v.0;
        }
        // Registers are written only at the end of a packet.
        let v = self.b.f.vload(packet.base, register_displacement(register), true);
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
                let bits = self.b.uniform(*val, self.b.mask_width())?;
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
                        self.env.operands.insert(Role::D0, (old, HostWidth::of(result.width)));
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
            let v = self.lanes64(v)?;
            let (low, high) = (self.low_words(v), self.high_words(v));
            if self.env.active.is_none() {
                self.b.facts.joined.insert((low, high), v);
            }
            self.set_register(packet, op.d, low)?;
            return self.set_register(packet, op.d + 1, high);
        }
        let placed = self.insert_part(op, v, |e| e.register(packet, op.d))?;
        let v = match (placed, how) {
            (Some(v), _) => self.unflushed_lanes(v)?,
            (None, WriteBack::Half { .. }) if op.flags & Op::CLEAR_UPPER != 0 => {
                let half = self.op2(Op2::And, HostWidth::W32, v, Val::Const(0xffff))?;
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
                self.b.f.blend(false, active, v, old)
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
        Ok(Val::Lanes64(self.join_words(low, high)))
    }

    fn read_operand_lanes(&mut self, lanes: &LaneLoop, sources: &[(Role, Vec<Val>)]) -> R<()> {
        for read in &lanes.reads {
            let Some((_, words)) = sources.iter().find(|(role, _)| *role == read.role) else { continue };
            let host_width = HostWidth::of(read.width);
            let v = match (words[..].first(), words.get(1), host_width) {
                (Some(low), _, HostWidth::W32) => *low,
                (Some(low), Some(high), HostWidth::W64) if !low.is_varying() && !high.is_varying() => {
                    self.join_dwords(*low, *high)?
                }
                (Some(low), Some(high), HostWidth::W64) => {
                    let (low, high) = (self.lanes(*low)?, self.lanes(*high)?);
                    Val::Lanes64(self.join_words(low, high))
                }
                _ => return Err(Bug("a wide source")),
            };
            self.env.operands.insert(read.role, (v, host_width));
        }
        Ok(())
    }

    /// Stores the written registers. Returns for each whether it is free of denormals.
    fn write_back(&mut self, packet: &Packet, [exec, full]: [V; 2], fast: bool) -> R<DenormalFree> {
        let stored_later = &self.sequences.stored_later;
        let mut written: Vec<(u16, V)> =
            packet.written().filter(|(register, _)| !stored_later.contains(register)).collect();
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
                let copy = self.b.f.fresh(Class::Vec);
                self.b.f.assign(copy, *v);
                *v = copy;
            }
        }
        let [whole, join] = [(); 2].map(|()| self.b.f.label());
        if !fast {
            self.b.f.branch(Cc::Ne, Width::W32, full, 0, whole);
            let mask = self.expand_mask(exec)?;
            for (register, v) in &written {
                let old = self.b.f.vload(packet.base, register_displacement(*register), false);
                let v = self.b.f.blend(false, mask, *v, old);
                self.b.f.vstore(packet.base, register_displacement(*register), v);
            }
            self.b.f.push(Inst::Jump(join));
            self.b.f.push(Inst::Label(whole));
        }
        for (register, v) in &written {
            self.b.f.vstore(packet.base, register_displacement(*register), *v);
        }
        self.b.f.push(Inst::Label(join));
        let all = written.into_iter().chain(packet.stored_early.iter().map(|(register, v)| (*register, *v)));
        let mut denormal_free: DenormalFree =
            all.map(|(register, v)| (register, self.b.facts.denormal_free.contains(&v))).collect();
        denormal_free.sort_unstable();
        Ok(denormal_free)
    }

    /// Stores registers that no later instruction of the packet writes and whose old content nothing reads. A
    /// versioned iteration does not store them.
    fn store_early(&mut self, packet: &mut Packet, path: Path, is_last: impl Fn(u16) -> bool) {
        let now: Vec<(u16, V)> = packet
            .written()
            .filter(|(register, _)| is_last(*register) && !packet.read.contains(register))
            .filter(|(register, _)| !self.sequences.stored_later.contains(register))
            .collect();
        for (register, v) in now {
            let v = self.flush_pending(v);
            if path != Path::Versioned {
                self.b.f.vstore(packet.base, register_displacement(register), v);
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
        let flags = self.b.f.load(Size::B8, self.b.frame, frame_offset::FLAGS);
        let halves = if self.wave64 { 2 } else { 1 };
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
                    let known = self.b.f.iconst(known);
                    let old = self.b.f.load(size, flags, offset);
                    let old = self.b.f.int2(Int2::And, Width::W64, old, known);
                    Src::Value(self.b.f.select(full, known, old))
                } else if let Ok(known) = i32::try_from(known) {
                    Src::Imm(known)
                } else {
                    Src::Value(self.b.f.iconst(known))
                };
                self.b.f.store(size, flags, offset, value);
            }
        }
    }
}

/// The displacement of a register from the first one.
fn register_displacement(register: u16) -> i32 {
    register as i32 * LANE_VEC_BYTES as i32
}
