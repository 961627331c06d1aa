//! Loads and stores of bytes and 16-bit halves: recognised as copies of words, plus the per-lane code around
//! the access.

use crate::arith::builder::{Bug, PacketPosition, R};
use crate::arith::facts::KnownBits;
use crate::arith::val::Val;
use crate::frame::frame_offset;
use crate::selected::Subword;
use crate::state::access::{Access, ResolvedAccess};
use crate::state::emitter::Emitter;
use crate::state::env::Env;
use crate::state::packet::Packet;
use isa_lower::ir::*;
use isa_lower::ir::{Block, HostWidth, Start, Var};
use isa_lower::lower::operands::slot;
use isa_lower::passes::block;
use isa_lower::visit::{each_stmt, each_value};
use isa_spec::tables::Role;
use wavesim_machine::exec::op::{DecodedSource, Op};
use wavesim_machine::state::wave::{ALL_VGPRS, NULL};
use wavesim_x64::Code;
use wavesim_x64::inst::{Inst, Int2, Mem, Size, V, Width};

/// Recognises a handler that consists of such an access.
pub fn find(lanes: &Lanes) -> Option<Subword> {
    let mut words = lanes.clone();
    let mut found = None;
    for step in &mut words.steps {
        match step {
            Step::Memory(memory)
                if found.is_none() && matches!(memory.bytes, 1 | 2) && memory.dwords == 1 =>
            {
                found = Some((memory.store, memory.bytes as usize, memory.space));
                memory.bytes = 4;
            }
            Step::Stage { .. } | Step::StageOld | Step::StoreRoom { .. } | Step::Loop(_) => {}
            Step::Write { dwords: 1, how: WriteBack::General { output: Output::Bits } } => {}
            _ => return None,
        }
    }
    let (store, bytes, space) = found?;
    let mut loops = words.steps.iter_mut().filter_map(|step| match step {
        Step::Loop(lanes) => Some(lanes),
        _ => None,
    });
    let lane_loop = loops.next()?;
    if loops.next().is_some() || lane_loop.leaves || lane_loop.retries {
        return None;
    }
    let own = lane_loop.clone();
    let word = |kind| Value { kind, host_width: HostWidth::W32 };
    if store {
        let Some(Stmt::SetStored { value, .. }) = lane_loop.body.last_mut() else { return None };
        *value = word(ValueKind::Var(Var::Operand(Role::Data)));
    } else {
        let loaded = word(ValueKind::Loaded { access: 0, dwords: 1 });
        lane_loop.body = vec![Stmt::Set(Var::Operand(Role::D0), loaded)];
    }
    let block = block::find(&words)?;
    let part = Subword { block, space, bytes, lanes: own };
    reads_only_access_operands(&part).then_some(part)
}

/// Returns whether the per-lane code reads only the lane's address operand, the accessed value and its
/// result.
fn reads_only_access_operands(part: &Subword) -> bool {
    let (Block::Global { offsets, .. } | Block::Lds { lanes: offsets, .. }) = &part.block;
    let (mut fine, mut stores) = (true, 0);
    each_value(&part.lanes.body, &mut |v| {
        if let ValueKind::Var(Var::Operand(role)) = &v.kind {
            fine &= role == offsets || matches!(role, Role::Data | Role::D0);
        }
    });
    each_stmt(&part.lanes.body, &mut |s| {
        stores += matches!(s, Stmt::SetStored { .. }) as usize;
        fine &= matches!(s, Stmt::Set(..) | Stmt::SetStored { .. });
    });
    let result = part.lanes.result.is_none_or(|r| r.width <= 32 && r.start != Start::OldHalf);
    fine && result && stores < 2
}

/// Returns whether the operands can be compiled; the conditions are those for copies of words.
pub fn operands_supported(op: &Op, block: &Block) -> bool {
    const MODIFIED: u16 = Op::MODIFY | Op::OUTPUT | Op::HIGH | Op::SCALAR_DEST | Op::CLAMP | Op::NO_RESULT;
    let vector = |role: Role, words: usize| match slot(role) {
        Slot::Source(at) => {
            matches!(op.src[at].decode(), DecodedSource::Vector(first) if first + words <= ALL_VGPRS)
        }
        _ => false,
    };
    let (offsets, store, base) = match block {
        Block::Global { offsets, store, unless, address64, .. } => {
            let base = match op.src[1].decode() {
                DecodedSource::Scalar(NULL) => unless.is_none() || address64.is_some() && vector(*offsets, 2),
                DecodedSource::Scalar(at) => at + 2 <= NULL,
                _ => false,
            };
            (*offsets, *store, base)
        }
        Block::Lds { lanes, store, .. } => (*lanes, *store, true),
    };
    let data = if store { vector(Role::Data, 1) } else { (op.d as usize) < ALL_VGPRS };
    op.flags & MODIFIED == 0 && base && vector(offsets, 1) && data
}

impl Emitter<'_> {
    /// Emits the per-lane code around a subword access: on the loaded value, or on the value to store.
    /// Returns the value that is stored.
    fn subword_code(
        &mut self,
        op: u32,
        subword: &Subword,
        register: (u16, bool),
        moved: Val,
        packet: &mut Packet,
    ) -> R<Option<Val>> {
        self.env = Env::new(op);
        let (Block::Global { offsets, .. } | Block::Lds { lanes: offsets, .. }) = &subword.block;
        let (first, address64) = register;
        let low = self.register(packet, first);
        let address = if address64 {
            let high = self.register(packet, first + 1);
            let [low, high] = [low, high].map(|v| self.flush_pending(v));
            Val::Lanes64(self.join_words(low, high))
        } else {
            Val::Lanes(low)
        };
        let host_width = |role: Role| {
            let read = subword.lanes.reads.iter().find(|read| read.role == role);
            read.map_or(HostWidth::W32, |read| HostWidth::of(read.width))
        };
        let wanted = host_width(*offsets);
        let own = if address64 { HostWidth::W64 } else { HostWidth::W32 };
        let address = self.resize(address, own, wanted)?;
        self.env.operands.insert(*offsets, (address, wanted));
        if let Some(result) = &subword.lanes.result {
            let d = self.env.op(self.ops).d;
            let old = match result.start {
                Start::Zero => Val::Const(0),
                _ => Val::Lanes(self.register(packet, d)),
            };
            self.env.operands.insert(Role::D0, (old, HostWidth::W32));
            self.env.memory_value = Some(moved);
            self.stmts(&subword.lanes.body)?;
            let v = self.env.var(Var::Operand(Role::D0));
            let v = self.unflushed_lanes(v)?;
            packet.registers.insert(d, (v, true));
            return Ok(None);
        }
        self.env.operands.insert(Role::Data, (moved, HostWidth::W32));
        self.stmts(&subword.lanes.body)?;
        Ok(self.env.memory_value)
    }

    /// Completes a load after its bytes have been loaded.
    pub fn finish_subword_load(
        &mut self,
        op: u32,
        subword: &Subword,
        access: &Access,
        v: V,
        packet: &mut Packet,
    ) -> R<()> {
        let zeros = u32::MAX << (8 * subword.bytes);
        self.b.facts.record_bits(v, KnownBits { zeros, ones: 0 });
        self.subword_code(op, subword, (access.register, access.address64), Val::Lanes(v), packet)?;
        Ok(())
    }

    /// Loads the elements of contiguous lanes.
    pub fn load_subwords_contiguous(&mut self, bytes: usize, from: Mem) -> V {
        if bytes == 1 {
            let all = self.b.f.load(Size::B8, from.base, from.disp);
            let all = self.b.f.splat(true, all);
            return self.b.f.rm(Code::VEX_Vpmovzxbd_ymm_xmmm64, all, None);
        }
        let all = self.load_halves([from; 2]);
        self.b.f.rm(Code::VEX_Vpmovzxwd_ymm_xmmm128, all, None)
    }

    /// Loads the element that all lanes share.
    pub fn load_subwords_uniform(&mut self, bytes: usize, from: Mem) -> V {
        let one = self.b.f.load(size(bytes), from.base, from.disp);
        self.b.f.splat(false, one)
    }

    /// Loads elements from arbitrary addresses.
    pub fn load_subwords_gather(&mut self, bytes: usize, from: [Mem; 8]) -> V {
        for (lane, Mem { base, disp }) in (0..).zip(from) {
            let v = self.b.f.load(size(bytes), base, disp);
            self.b.f.store(Size::B4, self.b.frame, frame_offset::LANE_BUFFER + 4 * lane, v);
        }
        self.b.f.vload(self.b.frame, frame_offset::LANE_BUFFER, false)
    }

    /// Stores the elements of all lanes in a loop of its own.
    pub fn store_subwords(
        &mut self,
        op: u32,
        subword: &Subword,
        location: &ResolvedAccess,
        data: u16,
        exec: V,
        contiguous: V,
    ) -> R<()> {
        self.each_packet(|e, base| {
            let mut packet = Packet::new(base);
            let PacketPosition { n, .. } = e.packet.ok_or(Bug("a packet"))?;
            let Access { register, address64, .. } = location.access;
            let data = e.register(&mut packet, data);
            let moved = e.subword_code(op, subword, (register, address64), Val::Lanes(data), &mut packet)?;
            let v = e.lanes(moved.ok_or(Bug("a store"))?)?;
            let [scatter, done] = [(); 2].map(|()| e.f.label());
            e.branch_if_zero(contiguous, scatter);
            let to = e.first_lane(location, base);
            let known = e.facts.clone();
            e.store_subwords_contiguous(subword.bytes, v, to);
            e.f.push(Inst::Jump(done));
            e.f.push(Inst::Label(scatter));
            e.facts = known;
            let mut packet = Packet::new(base);
            let offsets = e.active_offsets(location, exec, &mut packet)?;
            let (host, disp) = location.host();
            // Stores are in lane order: of several lanes with the same address, the last one wins.
            let addresses = e.addresses(host, offsets);
            e.b.f.vstore(e.b.frame, frame_offset::LANE_BUFFER, v);
            let active = e.f.int2(Int2::Shr, Width::W64, exec, n);
            for (lane, to) in (0..).zip(addresses) {
                let next = e.f.label();
                let bit = e.f.int2(Int2::And, Width::W32, active, 1 << lane);
                e.branch_if_zero(bit, next);
                let word = e.b.f.load(Size::B4, e.b.frame, frame_offset::LANE_BUFFER + 4 * lane);
                e.f.store(size(subword.bytes), to, disp, word);
                e.f.push(Inst::Label(next));
            }
            e.f.push(Inst::Label(done));
            Ok(())
        })
    }

    /// Stores the low bytes of contiguous lanes, whose other bytes are zero.
    fn store_subwords_contiguous(&mut self, bytes: usize, v: V, to: Mem) {
        let words = self.b.f.rvm(Code::VEX_Vpackusdw_ymm_ymm_ymmm256, v, v, None);
        let words = self.b.f.rm(Code::VEX_Vpermq_ymm_ymmm256_imm8, words, Some(0x88));
        if bytes == 2 {
            return self.store_halves(words, [to; 2]);
        }
        let all = self.b.f.rvm(Code::VEX_Vpackuswb_ymm_ymm_ymmm256, words, words, None);
        self.b.f.vstore(self.b.frame, frame_offset::LANE_BUFFER, all);
        let all = self.b.f.load(Size::B8, self.b.frame, frame_offset::LANE_BUFFER);
        self.b.f.store(Size::B8, to.base, to.disp, all);
    }
}

fn size(bytes: usize) -> Size {
    if bytes == 1 { Size::B1 } else { Size::B2 }
}
