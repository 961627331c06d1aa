//! Loads and stores of scratch. Since lanes have disjoint scratch memory, they are ordinary instructions of a
//! run and keep their order. Before the run, all active lanes' addresses are checked against the scratch
//! size; if one is outside or not aligned, the code bails out to the interpreter. This requires that the run does
//! not write the registers of an address before its access.
//!
//! In host memory, dwords of a packet's lanes at one address are adjacent ([`wavesim_machine::state::scratch`]): if the
//! address is uniform, as in spills, the access is one of vectors.

use crate::arith::builder::{Bug, PacketPosition, R};
use crate::arith::val::Val;
use crate::frame::{cache_resources, check_resources, frame_offset};
use crate::lowering::{Region, check_value, check_values};
use crate::selected::Scratch;
use crate::state::emitter::Emitter;
use crate::state::env::Env;
use crate::state::packet::Packet;
use crate::state::run::{LaneSource, Run, RunOp, ScratchAccess, Sources};
use crate::wave_cache::WaveCache;
use isa_lower::ir::*;
use isa_lower::ir::{HostWidth, LaneLoop, Start, Stmt, Value, ValueKind, Var};
use isa_lower::lower::operands::slot;
use isa_lower::visit::{any_in, any_value, each_stmt};
use isa_spec::pcode::ir::Space;
use isa_spec::tables::Role;
use std::sync::Arc;
use wavesim_machine::exec::op::{DecodedSource, Op};
use wavesim_machine::state::scratch::DWORD_DISTANCE;
use wavesim_machine::state::wave::ALL_VGPRS;
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Label, Mem, Size, V, Width};

/// The distance between the dwords of a lane as a displacement, and as a shift of the address.
const DISTANCE: i32 = DWORD_DISTANCE as i32;
const DISTANCE_SHIFT: u8 = (DWORD_DISTANCE / 4).trailing_zeros() as u8;

/// Recognises a handler that consists of a scratch access.
pub fn find(lanes: &Lanes) -> Option<Scratch> {
    let (mut memory, mut own) = (None, None);
    for step in &lanes.steps {
        match step {
            Step::Memory(found) if memory.is_none() && found.space == Space::Scratch => memory = Some(found),
            Step::Loop(lanes) if own.is_none() && !lanes.leaves && !lanes.retries => own = Some(lanes),
            Step::Stage { .. } | Step::StageOld | Step::StoreRoom { .. } => {}
            Step::Write { how: WriteBack::General { output: Output::Bits }, .. } => {}
            _ => return None,
        }
    }
    let (memory, own) = (memory?, own?.clone());
    let address_code = match &memory.addresses {
        Addresses::Computed(lanes) => lanes.clone(),
        Addresses::Set => own.clone(),
        Addresses::Sum(_) => return None,
    };
    let address = address(&address_code.body)?;
    let (bytes, registers) = (memory.bytes as usize, memory.dwords as usize);
    let copy = bytes == 4 * registers && is_copy(&own.body, memory.store, bytes);
    let found = Scratch { store: memory.store, bytes, registers, copy, address_code, address, lanes: own };
    (is_supported(&found) && (copy || matches!(bytes, 1 | 2))).then_some(found)
}

/// Returns the 32-bit value that a 64-bit scratch address is zero-extended from.
fn address(body: &[Stmt]) -> Option<Value> {
    let found = body.iter().find_map(|stmt| match stmt {
        Stmt::SetAddress { space: Space::Scratch, addr }
        | Stmt::SetStored { address: Some((Space::Scratch, addr)), .. } => Some(addr),
        _ => None,
    })?;
    let value = match &found.kind {
        ValueKind::Var(Var::Local(id)) => {
            let mut values = body.iter().filter_map(|stmt| match stmt {
                Stmt::Set(Var::Local(to), value) if to == id => Some(value),
                _ => None,
            });
            values.next().filter(|_| values.next().is_none())?
        }
        _ => found,
    };
    match &value.kind {
        ValueKind::Resize(word) if word.host_width == HostWidth::W32 => Some((**word).clone()),
        _ => None,
    }
}

/// Returns whether the per-lane code moves whole registers unchanged.
fn is_copy(body: &[Stmt], store: bool, bytes: usize) -> bool {
    let whole = |v: &Value| v.kind == ValueKind::Const(u128::MAX >> (128 - 8 * bytes));
    fn inner<'v>(v: &'v Value, whole: &dyn Fn(&Value) -> bool) -> &'v Value {
        match &v.kind {
            ValueKind::Op2(Op2::And, a, b) if whole(b) => inner(a, whole),
            ValueKind::Resize(a) if a.host_width >= v.host_width || whole(a) => a,
            _ => v,
        }
    }
    match body.last() {
        Some(Stmt::Set(Var::Operand(Role::D0), v)) if !store => {
            matches!(inner(v, &whole).kind, ValueKind::Loaded { .. })
        }
        Some(Stmt::SetStored { value, .. }) if store => {
            inner(value, &whole).kind == ValueKind::Var(Var::Operand(Role::Data))
        }
        _ => false,
    }
}

fn is_supported(found: &Scratch) -> bool {
    // The address code is also emitted outside of loops over lanes.
    let of_wave = |v: &Value| !matches!(v.kind, ValueKind::State(_) | ValueKind::LaneBit(_));
    let lane = Region::Lane;
    let sets = found.address_code.body.iter().take_while(|stmt| matches!(stmt, Stmt::Set(Var::Local(_), _)));
    let sets: Vec<Stmt> = sets.cloned().collect();
    let ends = matches!(
        found.address_code.body.get(sets.len()),
        Some(Stmt::SetAddress { .. } | Stmt::SetStored { .. })
    );
    let before = ends
        && check_values(&sets, lane).is_ok()
        && check_value(&found.address, lane).is_ok()
        && !any_value(&sets, &|v| !of_wave(v))
        && !any_in(&found.address, &|v| !of_wave(v));
    let mut stores = 0;
    each_stmt(&found.lanes.body, &mut |s| stores += matches!(s, Stmt::SetStored { .. }) as usize);
    // Wide values that are only moved are not lowered.
    let own = found.copy || {
        let set = |s: &Stmt| matches!(s, Stmt::Set(..) | Stmt::SetStored { .. });
        found.lanes.body.iter().all(set) && check_values(&found.lanes.body, Region::Access).is_ok()
    };
    let word = |read: &Read| read.width <= 32 || found.copy && read.role == Role::Data;
    before && own && stores == found.store as usize && found.address_code.reads.iter().all(word)
}

/// Returns whether the operands can be compiled.
pub fn operands_supported(op: &Op, found: &Scratch) -> bool {
    const MODIFIED: u16 = Op::MODIFY | Op::OUTPUT | Op::HIGH | Op::SCALAR_DEST | Op::CLAMP | Op::NO_RESULT;
    op.flags & MODIFIED == 0
        && match data(op, found) {
            Some(data) => data + found.registers <= ALL_VGPRS,
            None => false,
        }
}

/// Returns the first register that is loaded or stored.
pub fn data(op: &Op, found: &Scratch) -> Option<usize> {
    if !found.store {
        return Some(op.d as usize);
    }
    let Slot::Source(at) = slot(Role::Data) else { return None };
    match op.src[at].decode() {
        DecodedSource::Vector(first) => Some(first),
        _ => None,
    }
}

/// Returns the shift by which the low bits of a misaligned address reach the highest ones, where they exceed every size of
/// scratch; `None` if no address is misaligned.
fn misaligned_bits(bytes: usize) -> Option<u8> {
    match bytes {
        1 => None,
        2 => Some(31),
        _ => Some(30),
    }
}

impl Emitter<'_> {
    /// Closes the run if it writes the registers of a scratch access's address.
    pub fn prepare_scratch(&mut self, access: &Arc<Scratch>, sources: &Sources) -> R<()> {
        let is_address = |role: Role| access.address_code.reads.iter().any(|read| read.role == role);
        let mut words = sources.iter().filter(|(role, _)| *role != Role::Data && is_address(*role));
        let is_written =
            |word: &LaneSource| matches!(word, LaneSource::Register(at) if self.run.written.contains(at));
        let waits = words.any(|(_, staged)| staged.words.iter().any(is_written));
        if waits { self.close_run() } else { Ok(()) }
    }

    /// Creates a scratch access, and finds out whether its address is uniform.
    pub fn scratch_access(
        &mut self,
        op_index: u32,
        access: Arc<Scratch>,
        sources: &Sources,
        exec: V,
    ) -> R<ScratchAccess> {
        // Placeholders for lane values only show whether the address depends on them.
        let env = std::mem::replace(&mut self.env, Env::new(op_index));
        let any = self.b.f.vconst([0; 8]);
        let staged = |(role, staged): &(Role, crate::state::run::StagedSource)| {
            let words = staged.words.iter().map(|word| match word {
                LaneSource::Register(_) => Val::Lanes(any),
                LaneSource::One(val) => *val,
            });
            (*role, words.collect())
        };
        let sources: Vec<(Role, Vec<Val>)> = sources.iter().map(staged).collect();
        let address = self.scratch_address(&access, &sources)?;
        self.forget_vectors();
        self.env = env;
        let uniform_address = match address.is_varying() {
            true => None,
            false => Some(self.uniform(address, HostWidth::W32)?),
        };
        Ok(ScratchAccess { access, exec, uniform_address })
    }

    /// Returns the address of the wave's [`WaveCache`], after its resources have been looked up.
    pub fn wave_resources(&mut self) -> V {
        let is_cached = self.b.f.label();
        let cache = self.b.f.load(Size::B8, self.b.frame, frame_offset::WAVE_CACHE);
        let valid = self.b.f.load(Size::B8, cache, WaveCache::VALID);
        self.b.f.branch(Cc::LtS, Width::W64, valid, 0, is_cached);
        self.call_cold(cache_resources as *const () as u64);
        self.b.f.push(Inst::Label(is_cached));
        if self.context.checked {
            self.call_cold(check_resources as *const () as u64);
        }
        cache
    }

    fn scratch_address(&mut self, access: &Scratch, sources: &[(Role, Vec<Val>)]) -> R<Val> {
        self.read_words(&access.address_code, sources);
        for stmt in &access.address_code.body {
            match stmt {
                Stmt::SetAddress { .. } | Stmt::SetStored { .. } => break,
                // The zero-extended address itself.
                Stmt::Set(Var::Local(_), Value { kind: ValueKind::Resize(word), .. })
                    if **word == access.address => {}
                stmt => self.stmt(stmt)?,
            }
        }
        self.value(&access.address)
    }

    /// Reads the operands of one word.
    fn read_words(&mut self, lanes: &LaneLoop, sources: &[(Role, Vec<Val>)]) {
        for read in lanes.reads.iter().filter(|read| read.width <= 32) {
            if let Some((_, words)) = sources.iter().find(|(role, _)| *role == read.role) {
                self.env.operands.insert(read.role, (words[0], HostWidth::W32));
            }
        }
    }

    /// Jumps to `bailout` unless all active lanes of all scratch accesses are inside.
    pub fn check_scratch(&mut self, run: &Run, bailout: Label) -> R<()> {
        let all: Vec<(&RunOp, &ScratchAccess)> =
            run.ops.iter().filter_map(|op| op.scratch.as_ref().map(|scratch| (op, scratch))).collect();
        let Some((_, first)) = all.first() else { return Ok(()) };
        let exec = first.exec;
        let most = all.iter().map(|(_, scratch)| scratch.access.bytes).max().unwrap_or(0);
        let resources = self.wave_resources();
        let stride = self.b.f.load(Size::B8, resources, WaveCache::STRIDE);
        self.b.f.branch(Cc::LtU, Width::W64, stride, most as i32, bailout);
        let mut lanes = Vec::new();
        for (op, scratch) in &all {
            match scratch.uniform_address {
                Some(address) => {
                    let address = match misaligned_bits(scratch.access.bytes) {
                        None => address,
                        Some(shift) => {
                            let high = self.b.f.int2(Int2::Shl, Width::W32, address, shift as i32);
                            self.b.f.int2(Int2::Or, Width::W32, address, high)
                        }
                    };
                    let limit = self.add_imm(stride, -(scratch.access.bytes as i64));
                    self.b.f.branch(Cc::LtU, Width::W64, limit, address, bailout);
                }
                None => lanes.push((*op, *scratch)),
            }
        }
        if lanes.is_empty() {
            return Ok(());
        }
        let mut max_offset = Vec::new();
        let env = self.env.clone();
        self.each_packet(|e, base| {
            let mut packet = Packet::new(base);
            let none = e.f.vconst([0; 8]);
            let active = e.expand_mask(exec)?;
            for (op, scratch) in &lanes {
                let v = e.f.fresh(Class::Vec);
                e.f.hoist(|f| f.assign(v, none));
                let sources = e.staged_values(op, &mut packet)?;
                e.env = Env::new(op.op_index);
                let address = e.scratch_address(&scratch.access, &sources)?;
                let address = e.lanes(address)?;
                let mut address = e.band(HostWidth::W32, address, active);
                if let Some(shift) = misaligned_bits(scratch.access.bytes) {
                    let high = e.f.rm(Code::VEX_Vpslld_ymm_ymm_imm8, address, Some(shift));
                    address = e.bor(HostWidth::W32, address, high);
                }
                let code = Code::VEX_Vpmaxud_ymm_ymm_ymmm256;
                e.f.push(Inst::Rvm { code, d: v, a: v, b: address, imm: None });
                max_offset.push((v, scratch.access.bytes));
            }
            Ok(())
        })?;
        self.env = env;
        for (v, bytes) in max_offset {
            let last = self.reduce_max(v);
            let limit = self.add_imm(stride, -(bytes as i64));
            self.b.f.branch(Cc::LtU, Width::W64, limit, last, bailout);
        }
        Ok(())
    }

    /// Returns the sources of an instruction in the lanes of a packet.
    fn staged_values(&mut self, op: &RunOp, packet: &mut Packet) -> R<Vec<(Role, Vec<Val>)>> {
        let mut sources = Vec::new();
        for (role, staged) in &op.sources {
            let mut words = Vec::new();
            for word in &staged.words {
                words.push(match word {
                    LaneSource::Register(register) => Val::Lanes(self.register(packet, *register)),
                    LaneSource::One(val) => *val,
                });
            }
            sources.push((*role, words));
        }
        Ok(sources)
    }

    /// Emits the loads or stores of a packet's lanes.
    pub fn emit_scratch(&mut self, run_op: &RunOp, scratch: &ScratchAccess, packet: &mut Packet) -> R<()> {
        let op = self.ops[run_op.op_index as usize];
        let access = &scratch.access;
        let sources = self.staged_values(run_op, packet)?;
        self.env = Env::new(run_op.op_index);
        let (base, offsets) = self.scratch_addresses(scratch, &sources)?;
        let first = data(&op, access).ok_or(Bug("data that is not a register"))? as u16;
        if access.store {
            let mut words = Vec::new();
            for k in 0..access.registers as u16 {
                let v = self.register(packet, first + k);
                words.push(self.flush_pending(v));
            }
            if !access.copy {
                self.env = Env::new(run_op.op_index);
                self.read_words(&access.lanes, &sources);
                self.stmts(&access.lanes.body)?;
                let v = self.env.memory_value.ok_or(Bug("a store"))?;
                words = vec![self.lanes(v)?];
            }
            if access.copy && scratch.uniform_address.is_some() {
                let active = self.expand_mask(scratch.exec)?;
                for (k, v) in (0..).zip(words) {
                    let old = self.b.f.vload(base, DISTANCE * k, false);
                    let v = self.b.f.blend(false, active, v, old);
                    self.b.f.vstore(base, DISTANCE * k, v);
                }
                return Ok(());
            }
            return self.scatter(access.bytes, [base, offsets, scratch.exec], &words);
        }
        if access.copy {
            for k in 0..access.registers as u16 {
                let disp = DISTANCE * k as i32;
                let d = match scratch.uniform_address {
                    Some(_) => self.b.f.vload(base, disp, false),
                    None => {
                        let d = self.b.f.fresh(Class::Vec);
                        self.b.f.push(Inst::Gather { d, from: Mem { base, disp }, offsets });
                        d
                    }
                };
                packet.registers.insert(first + k, (d, true));
            }
            return Ok(());
        }
        let from = self.addresses(base, offsets).map(|base| Mem { base, disp: 0 });
        let v = self.load_subwords_gather(access.bytes, from);
        self.env = Env::new(run_op.op_index);
        self.read_words(&access.lanes, &sources);
        let old = match access.lanes.result {
            Some(result) if result.start != Start::Zero => Val::Lanes(self.register(packet, op.d)),
            _ => Val::Const(0),
        };
        self.env.operands.insert(Role::D0, (old, HostWidth::W32));
        self.env.memory_value = Some(Val::Lanes(v));
        self.stmts(&access.lanes.body)?;
        let v = self.env.var(Var::Operand(Role::D0));
        let v = self.unflushed_lanes(v)?;
        packet.registers.insert(op.d, (v, true));
        Ok(())
    }

    /// Returns a host address and each lane's offset from it. The addresses of inactive lanes are valid, too.
    fn scratch_addresses(&mut self, scratch: &ScratchAccess, sources: &[(Role, Vec<Val>)]) -> R<(V, V)> {
        let PacketPosition { n, .. } = self.packet.ok_or(Bug("a packet"))?;
        let frame = self.b.frame;
        let [memory, stride] = self.b.f.hoist(|f| {
            let resources = f.load(Size::B8, frame, frame_offset::WAVE_CACHE);
            [WaveCache::SCRATCH, WaveCache::STRIDE].map(|part| f.load(Size::B8, resources, part))
        });
        let host_width = HostWidth::W32;
        let lane_distances = self.b.f.vconst(std::array::from_fn(|k| 4 * k as u32));
        // The second half of a wave of 64 follows the first one.
        let half = match self.b.wave64 {
            true => {
                let first = self.b.f.int2(Int2::And, Width::W64, n, 32);
                let before = self.b.f.int2(Int2::Mul, Width::W64, stride, first);
                self.b.f.int2(Int2::Add, Width::W64, memory, before)
            }
            false => memory,
        };
        let lane = self.b.f.int2(Int2::And, Width::W64, n, 31);
        let before = self.b.f.int2(Int2::Shl, Width::W64, lane, 2);
        let base = self.b.f.int2(Int2::Add, Width::W64, half, before);
        // Bytes and halfwords may be anywhere in a dword.
        let in_dword = scratch.access.bytes < 4;
        if let Some(address) = scratch.uniform_address {
            let mut whole = address;
            if in_dword {
                whole = self.b.f.int2(Int2::And, Width::W64, address, !3);
            }
            let mut at = self.b.f.int2(Int2::Shl, Width::W64, whole, DISTANCE_SHIFT as i32);
            if in_dword {
                let rest = self.b.f.int2(Int2::And, Width::W64, address, 3);
                at = self.b.f.int2(Int2::Add, Width::W64, at, rest);
            }
            return Ok((self.b.f.int2(Int2::Add, Width::W64, base, at), lane_distances));
        }
        let address = self.scratch_address(&scratch.access, sources)?;
        let address = self.lanes(address)?;
        let active = self.expand_mask(scratch.exec)?;
        let address = self.band(host_width, address, active);
        let mut whole = address;
        if in_dword {
            let dwords = self.b.f.vconst([!3; 8]);
            whole = self.band(host_width, address, dwords);
        }
        let mut at = self.b.f.rm(Code::VEX_Vpslld_ymm_ymm_imm8, whole, Some(DISTANCE_SHIFT));
        if in_dword {
            let low = self.b.f.vconst([3; 8]);
            let rest = self.band(host_width, address, low);
            at = self.iadd(host_width, at, rest);
        }
        Ok((base, self.iadd(host_width, lane_distances, at)))
    }

    /// Stores the words of active lanes, or the low bytes of one word.
    fn scatter(&mut self, bytes: usize, [base, offsets, exec]: [V; 3], words: &[V]) -> R<()> {
        let PacketPosition { n, .. } = self.packet.ok_or(Bug("a packet"))?;
        let size = match bytes {
            1 => Size::B1,
            2 => Size::B2,
            _ => Size::B4,
        };
        self.b.f.vstore(self.b.frame, frame_offset::LANE_BUFFER, offsets);
        for (k, v) in (1..).zip(words) {
            self.b.f.vstore(self.b.frame, frame_offset::LANE_BUFFER + 32 * k, *v);
        }
        let active = self.b.f.int2(Int2::Shr, Width::W64, exec, n);
        for lane in 0..8 {
            let next = self.b.f.label();
            let bit = self.b.f.int2(Int2::And, Width::W32, active, 1 << lane);
            self.branch_if_zero(bit, next);
            let offset = self.b.f.load(Size::B4, self.b.frame, frame_offset::LANE_BUFFER + 4 * lane);
            let to = self.b.f.int2(Int2::Add, Width::W64, base, offset);
            for k in 0..words.len() as i32 {
                let word = self.b.f.load(
                    Size::B4,
                    self.b.frame,
                    frame_offset::LANE_BUFFER + 32 * (k + 1) + 4 * lane,
                );
                self.b.f.store(size, to, DISTANCE * k, word);
            }
            self.b.f.push(Inst::Label(next));
        }
        Ok(())
    }
}
