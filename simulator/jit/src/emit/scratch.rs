//! Loads and stores of scratch. Since lanes have disjoint scratch memory, they are ordinary instructions of a
//! run and keep their order. Before the run, all active lanes' addresses are checked against the scratch
//! size; if one is outside, the code bails out to the interpreter. This requires that the run does not write
//! the registers of an address before its access.

use super::packet::{Packet, PacketPosition};
use super::run::{LaneSource, Run, RunOp, Sources};
use super::stmt::Env;
use super::val::Val;
use super::{Bug, Emitter, R};
use crate::frame::{cache_resources, check_resources, frame_offset};
use crate::scratch::data;
use crate::selected::Scratch;
use crate::wave_cache::WaveCache;
use isa_lower::ir::{Hold, LaneLoop, Start, Stmt, Value, ValueKind, Var};
use isa_spec::tables::Role;
use std::sync::Arc;
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Label, Mem, Size, V, Width};

/// A scratch access of a run.
pub struct ScratchAccess {
    pub access: Arc<Scratch>,
    /// EXEC.
    pub exec: V,
    /// The address, if it is uniform, as a 64-bit integer.
    uniform_address: Option<V>,
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
        at: u32,
        access: Arc<Scratch>,
        sources: &Sources,
        exec: V,
    ) -> R<ScratchAccess> {
        // Placeholders for lane values only show whether the address depends on them.
        let env = std::mem::replace(&mut self.env, Env::new(at));
        let any = self.f.vconst([0; 8]);
        let staged = |(role, staged): &(Role, super::run::StagedSource)| {
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
            false => Some(self.uniform(address, Hold::W32)?),
        };
        Ok(ScratchAccess { access, exec, uniform_address })
    }

    /// Returns the address of the wave's [`WaveCache`], after its resources have been looked up.
    pub fn wave_resources(&mut self) -> V {
        let is_cached = self.f.label();
        let cache = self.f.load(Size::B8, self.frame, frame_offset::WAVE_CACHE);
        let valid = self.f.load(Size::B8, cache, WaveCache::VALID);
        self.f.branch(Cc::LtS, Width::W64, valid, 0, is_cached);
        self.call_cold(cache_resources as *const () as u64);
        self.f.push(Inst::Label(is_cached));
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
                self.env.operands.insert(read.role, (words[0], Hold::W32));
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
        let stride = self.f.load(Size::B8, resources, WaveCache::STRIDE);
        self.f.branch(Cc::LtU, Width::W64, stride, most as i32, bailout);
        let mut lanes = Vec::new();
        for (op, scratch) in &all {
            match scratch.uniform_address {
                Some(address) => {
                    let limit = self.add_imm(stride, -(scratch.access.bytes as i64));
                    self.f.branch(Cc::LtU, Width::W64, limit, address, bailout);
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
                let address = e.band(Hold::W32, address, active);
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
            self.f.branch(Cc::LtU, Width::W64, limit, last, bailout);
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
            return self.scatter(access.bytes, [base, offsets, scratch.exec], &words);
        }
        if access.copy {
            for k in 0..access.registers as u16 {
                let d = self.f.fresh(Class::Vec);
                self.f.push(Inst::Gather { d, from: Mem { base, disp: 4 * k as i32 }, offsets });
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
        self.env.operands.insert(Role::D0, (old, Hold::W32));
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
        let frame = self.frame;
        let [memory, stride] = self.f.hoist(|f| {
            let resources = f.load(Size::B8, frame, frame_offset::WAVE_CACHE);
            [WaveCache::SCRATCH, WaveCache::STRIDE].map(|part| f.load(Size::B8, resources, part))
        });
        let hold = Hold::W32;
        let broadcast = self.f.hoist(|f| f.splat(false, stride));
        let numbers = self.f.vconst(std::array::from_fn(|k| k as u32));
        let lane_distances = self.imul(hold, broadcast, numbers);
        let before = self.f.int2(Int2::Mul, Width::W64, stride, n);
        let base = self.f.int2(Int2::Add, Width::W64, memory, before);
        if let Some(address) = scratch.uniform_address {
            return Ok((self.f.int2(Int2::Add, Width::W64, base, address), lane_distances));
        }
        let address = self.scratch_address(&scratch.access, sources)?;
        let address = self.lanes(address)?;
        let active = self.expand_mask(scratch.exec)?;
        let address = self.band(hold, address, active);
        Ok((base, self.iadd(hold, lane_distances, address)))
    }

    /// Stores the words of active lanes, or the low bytes of one word.
    fn scatter(&mut self, bytes: usize, [base, offsets, exec]: [V; 3], words: &[V]) -> R<()> {
        let PacketPosition { n, .. } = self.packet.ok_or(Bug("a packet"))?;
        let size = match bytes {
            1 => Size::B1,
            2 => Size::B2,
            _ => Size::B4,
        };
        self.f.vstore(self.frame, frame_offset::LANE_BUFFER, offsets);
        for (k, v) in (1..).zip(words) {
            self.f.vstore(self.frame, frame_offset::LANE_BUFFER + 32 * k, *v);
        }
        let active = self.f.int2(Int2::Shr, Width::W64, exec, n);
        for lane in 0..8 {
            let next = self.f.label();
            let bit = self.f.int2(Int2::And, Width::W32, active, 1 << lane);
            self.branch_if_zero(bit, next);
            let offset = self.f.load(Size::B4, self.frame, frame_offset::LANE_BUFFER + 4 * lane);
            let to = self.f.int2(Int2::Add, Width::W64, base, offset);
            for k in 0..words.len() as i32 {
                let word =
                    self.f.load(Size::B4, self.frame, frame_offset::LANE_BUFFER + 32 * (k + 1) + 4 * lane);
                self.f.store(size, to, 4 * k, word);
            }
            self.f.push(Inst::Label(next));
        }
        Ok(())
    }
}
