//! Instructions that read other lanes by computed lane numbers: loops over the lanes of the wave in scalar
//! code. Each becomes a loop over packets, which gathers values of other lanes from the register file.

use crate::arith::builder::{Bug, PacketPosition, R};
use crate::arith::val::Val;
use crate::frame::{BAILOUT, HALF_BYTES, LANE_VEC_BYTES, frame_offset};
use crate::state::emitter::Emitter;
use crate::state::env::LaneRead;
use crate::wave_cache::WaveCache;
use isa_lower::ir::{
    HostWidth, Op2, Slot, Stmt, Value, ValueKind, Vector, VectorAt, VectorPlace, VectorRead,
};
use isa_lower::visit::{any_stmt, each_stmt};
use std::collections::HashSet;
use wavesim_machine::exec::op::{DecodedSource, Op};
use wavesim_machine::state::wave::{ALL_VGPRS, VGPRS};
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Mem, Size, V, Width};

/// Returns whether the loops over lanes, and the register writes, of a body can be emitted: none is nested,
/// registers are those of operands, and no loop writes what it reads of other lanes.
pub fn is_supported(body: &[Stmt]) -> bool {
    let writes = |s: &Stmt| matches!(s, Stmt::Vector(_) | Stmt::SetVgpr { .. });
    let (mut all, mut arrays) = (0, HashSet::new());
    each_stmt(body, &mut |s| {
        all += writes(s) as usize;
        if let Stmt::Vector(vector) = s {
            arrays.extend(vector.writes.iter().filter_map(|write| write.to.array()));
        }
    });
    if all == 0 {
        return true;
    }
    let plain = |s: &Stmt| match s {
        Stmt::Vector(vector) => vector_supported(vector),
        Stmt::SetVgpr { reg, .. } => is_operand_register(reg),
        _ => true,
    };
    let own = body.iter().filter(|s| writes(s)).count();
    // The array shares the frame's lane buffer with functions of lanes.
    let calls = |v: &Value| {
        matches!(v.kind, ValueKind::Float { .. } | ValueKind::Conversion(..) | ValueKind::Simd { .. })
    };
    let others = any_stmt(body, &|s| matches!(s, Stmt::SetElement { .. } | Stmt::For { .. }));
    let calls = isa_lower::visit::any_value(body, &calls);
    own == all && arrays.len() <= 1 && !others && !calls && body.iter().all(plain)
}

fn is_operand_register(reg: &Value) -> bool {
    matches!(reg.kind, ValueKind::OperandNumber(Slot::Source(_) | Slot::ScalarResult | Slot::VectorResult))
}

fn vector_supported(vector: &Vector) -> bool {
    let counter = |v: &Value| v.kind == ValueKind::Var(isa_lower::ir::Var::Local(vector.var));
    let place_supported = |place: &VectorPlace| match place {
        VectorPlace::Elements { start, .. } => counter(start),
        VectorPlace::Vgpr { lane, reg } => counter(lane) && is_operand_register(reg),
    };
    let zero = |index: &Value| index.kind == ValueKind::Const(0);
    let read = |read: &VectorRead| match read {
        VectorRead::Place(from) => place_supported(from),
        VectorRead::Lanes { slot: Slot::Source(_), lane, index } => counter(lane) && zero(index),
        VectorRead::Wave { slot: Slot::Source(_), index } => zero(index),
        VectorRead::WaveVgpr { reg } => is_operand_register(reg),
        VectorRead::Same(_) => true,
        _ => false,
    };
    let others = |read: &VectorRead| matches!(read, VectorRead::Wave { .. } | VectorRead::WaveVgpr { .. });
    let registers = vector.writes.iter().any(|write| write.to.array().is_none());
    let words = vector.writes.iter().all(|write| write.value.host_width == HostWidth::W32);
    vector.lanes
        && vector.from == 0
        && vector.count == 32
        && words
        && vector.reads.iter().all(read)
        && vector.writes.iter().all(|write| place_supported(&write.to))
        && !(registers && vector.reads.iter().any(others))
}

/// Returns whether the operands of an operation can be compiled.
pub fn operands_supported(op: &Op, body: &[Stmt]) -> bool {
    let writes = |s: &Stmt| matches!(s, Stmt::Vector(_) | Stmt::SetVgpr { .. });
    let source = |at: usize| match op.src[at].decode() {
        DecodedSource::Vector(first) => !(VGPRS..ALL_VGPRS).contains(&first),
        _ => true,
    };
    !body.iter().any(writes) || (op.d as usize) < VGPRS && (0..4).all(source)
}

impl Emitter<'_> {
    /// Resolves a register number, which must be constant.
    fn constant_register(&mut self, reg: &Value) -> R<u16> {
        // Accumulation VGPRs have numbers of their own; extended ones do not.
        let extended = self.context.program.arch.facts().vgprs.msbs;
        let count = if extended { ALL_VGPRS } else { VGPRS };
        match self.value(reg)? {
            Val::Const(number) if number < count as u128 => Ok(number as u16),
            _ => Err(Bug("a computed register number")),
        }
    }

    /// Bails out if the wave has no such register.
    fn bail_out_beyond(&mut self, most: u16) {
        let join = self.b.f.label();
        let resources = self.wave_resources();
        let count = self.b.f.load(Size::B4, resources, WaveCache::VGPRS);
        self.b.f.branch(Cc::GtU, Width::W32, count, most as i32, join);
        let saved = (self.scalars.clone(), self.daz);
        self.flush_scalars();
        self.exit_at(self.env.op_index, BAILOUT);
        (self.scalars, self.daz) = saved;
        self.b.f.push(Inst::Label(join));
    }

    /// Invalidates what is known about a register after it has been written outside of a run.
    fn note_register_write(&mut self, register: u16) {
        let some = self.b.f.iconst(0);
        self.set_flags(Some(some), &[(register, false)]);
        self.forget_cached_offsets(|other| other == register);
        self.forget_offsets(|other| other == register);
    }

    /// Writes a register in one lane.
    pub fn set_lane(&mut self, lane: &Value, reg: &Value, value: &Value) -> R<()> {
        self.close_run()?;
        let (lane, register, v) = (self.value(lane)?, self.constant_register(reg)?, self.value(value)?);
        let (lane, v) = (self.uniform(lane, HostWidth::W32)?, self.uniform(v, HostWidth::W32)?);
        self.bail_out_beyond(register);
        let lanes = if self.wave64 { 64 } else { 32 };
        let outside = self.b.f.label();
        self.b.f.branch(Cc::GeU, Width::W32, lane, lanes, outside);
        let address = self.lane_address(lane);
        self.b.f.store(Size::B4, address, register as i32 * LANE_VEC_BYTES as i32, v);
        self.b.f.push(Inst::Label(outside));
        self.note_register_write(register);
        Ok(())
    }

    /// Emits a loop over the lanes of the wave. `initialised`: an earlier loop has initialised the array.
    pub fn cross_lane(&mut self, vector: &Vector, initialised: bool) -> R<()> {
        self.close_run()?;
        if !initialised {
            let none = self.b.f.vconst([0; 8]);
            (0..8).for_each(|k| self.b.f.vstore(self.b.frame, frame_offset::LANE_BUFFER + 32 * k, none));
        }
        let mut same = Vec::new();
        for read in &vector.reads {
            same.push(match read {
                VectorRead::Same(value) => Some(self.value(value)?),
                VectorRead::Wave { slot: Slot::Source(at), .. }
                | VectorRead::Lanes { slot: Slot::Source(at), .. } => {
                    let source = self.env.op(self.ops).src[*at];
                    match source.decode() {
                        DecodedSource::Vector(first) if first < VGPRS => None,
                        _ => Some(self.read_lane_operand(*at, Val::Const(0), 0)?),
                    }
                }
                _ => None,
            });
        }
        let mut registers = Vec::new();
        for read in &vector.reads {
            if let VectorRead::WaveVgpr { reg } | VectorRead::Place(VectorPlace::Vgpr { reg, .. }) = read {
                registers.push(self.constant_register(reg)?);
            }
        }
        let mut written = Vec::new();
        for write in &vector.writes {
            if let VectorPlace::Vgpr { reg, .. } = &write.to {
                written.push(self.constant_register(reg)?);
            }
        }
        if let Some(most) = registers.iter().chain(&written).max() {
            self.bail_out_beyond(*most);
        }
        let env = self.env.clone();
        self.each_packet(|e, base| e.cross_lane_packet(vector, &same, base))?;
        self.env = env;
        written.into_iter().for_each(|register| self.note_register_write(register));
        Ok(())
    }

    fn cross_lane_packet(&mut self, vector: &Vector, same: &[Option<Val>], base: V) -> R<()> {
        let lane = self.lane_id()?;
        self.env.locals.insert(vector.var, (lane, HostWidth::W32));
        let PacketPosition { n, .. } = self.packet.ok_or(Bug("a packet"))?;
        let ahead = self.b.f.int2(Int2::Shl, Width::W64, n, 2);
        let array = self.b.f.int2(Int2::Add, Width::W64, self.b.frame, ahead);
        let displacement = |register: u16| register as i32 * LANE_VEC_BYTES as i32;
        let mut reads = Vec::new();
        for (read, same) in vector.reads.iter().zip(same) {
            reads.push(match (read, same) {
                (_, Some(val)) => LaneRead::Uniform(*val),
                (VectorRead::Wave { slot: Slot::Source(at), .. }, _) => {
                    LaneRead::Register(self.env.op(self.ops).src[*at].number())
                }
                (VectorRead::Lanes { slot: Slot::Source(at), .. }, _) => {
                    let register = self.env.op(self.ops).src[*at].number();
                    LaneRead::OwnLane(Val::Lanes(self.b.f.vload(base, displacement(register), false)))
                }
                (VectorRead::WaveVgpr { reg }, _) => LaneRead::Register(self.constant_register(reg)?),
                (VectorRead::Place(VectorPlace::Vgpr { reg, .. }), _) => {
                    let register = self.constant_register(reg)?;
                    LaneRead::OwnLane(Val::Lanes(self.b.f.vload(base, displacement(register), false)))
                }
                (VectorRead::Place(VectorPlace::Elements { .. }), _) => {
                    LaneRead::OwnLane(Val::Lanes(self.b.f.vload(array, frame_offset::LANE_BUFFER, false)))
                }
                _ => return Err(Bug("a read of lanes")),
            });
        }
        self.env.reads = reads;
        let mut results = Vec::new();
        for write in &vector.writes {
            let v = self.value(&write.value)?;
            let v = self.lanes(v)?;
            let when = match &write.when {
                Some(when) => {
                    let cond = self.value(when)?;
                    let cond = self.boolean(cond, when.host_width)?;
                    Some(self.mask(cond)?)
                }
                None => None,
            };
            let (to, disp) = match &write.to {
                VectorPlace::Elements { .. } => (array, frame_offset::LANE_BUFFER),
                VectorPlace::Vgpr { reg, .. } => (base, displacement(self.constant_register(reg)?)),
            };
            results.push((to, disp, v, when));
        }
        for (to, disp, v, when) in results {
            let v = match when {
                Some(when) => {
                    let old = self.b.f.vload(to, disp, false);
                    self.b.f.blend(false, when, v, old)
                }
                None => v,
            };
            self.b.f.vstore(to, disp, v);
        }
        Ok(())
    }

    /// Emits the use of a value that the iteration has read.
    pub fn vector_read(&mut self, read: usize, place: &VectorAt) -> R<Val> {
        let read = *self.env.reads.get(read).ok_or(Bug("a read of lanes"))?;
        let (register, lane) = match (read, place) {
            (LaneRead::OwnLane(val) | LaneRead::Uniform(val), VectorAt::Own | VectorAt::Same) => {
                return Ok(val);
            }
            (LaneRead::Uniform(val), VectorAt::Lane(lane)) => {
                let lane = self.value(lane)?;
                let inside = self.is_lane(lane, 64)?;
                return self.select(inside, HostWidth::W32, val, Val::Const(0));
            }
            (LaneRead::Register(register), VectorAt::Lane(lane)) => (register, self.value(lane)?),
            _ => return Err(Bug("a read of lanes")),
        };
        let lanes: u32 = if self.wave64 { 64 } else { 32 };
        let inside = self.is_lane(lane, lanes)?;
        let host_width = HostWidth::W32;
        let own = self.op2(Op2::And, host_width, lane, Val::Const(31))?;
        let own = self.shift(crate::lowering::Shift::Left, host_width, own, Val::Const(2))?;
        let mut offsets = self.lanes(own)?;
        if self.wave64 {
            let half = self.op2(Op2::And, host_width, lane, Val::Const(32))?;
            let half = self.op2(Op2::Mul, host_width, half, Val::Const((HALF_BYTES / 32) as u128))?;
            let half = self.lanes(half)?;
            offsets = self.iadd(host_width, offsets, half);
        }
        let d = self.b.f.fresh(Class::Vec);
        let from = Mem { base: self.b.vectors, disp: register as i32 * LANE_VEC_BYTES as i32 };
        self.b.f.push(Inst::Gather { d, from, offsets });
        self.select(inside, host_width, Val::Lanes(d), Val::Const(0))
    }

    /// Compares a lane number with the number of lanes.
    fn is_lane(&mut self, lane: Val, lanes: u32) -> R<Val> {
        self.compare_op(HostWidth::W32, lane, Val::Const(lanes as u128), |e, host_width, a, b| {
            e.icmp(Cc::LtU, host_width, a, b)
        })
    }
}
