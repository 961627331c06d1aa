//! Loads and stores of bytes and 16-bit halves.

use super::facts::KnownBits;
use super::memory::{Access, ResolvedAccess};
use super::packet::{Packet, PacketPosition};
use super::stmt::Env;
use super::val::Val;
use super::{Bug, Emitter, R};
use crate::frame::frame_offset;
use crate::selected::Subword;
use isa_lower::ir::{Block, Hold, Start, Var};
use isa_spec::tables::Role;
use wavesim_x64::Code;
use wavesim_x64::inst::{Inst, Int2, Mem, Size, V, Width};

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
        let (first, wide) = register;
        let low = self.register(packet, first);
        let address = if wide {
            let high = self.register(packet, first + 1);
            let [low, high] = [low, high].map(|v| self.flush_pending(v));
            Val::Wide(self.join_words(low, high))
        } else {
            Val::Lanes(low)
        };
        let hold = |role: Role| {
            let read = subword.lanes.reads.iter().find(|read| read.role == role);
            read.map_or(Hold::W32, |read| Hold::of(read.width))
        };
        let wanted = hold(*offsets);
        let own = if wide { Hold::W64 } else { Hold::W32 };
        let address = self.resize(address, own, wanted)?;
        self.env.operands.insert(*offsets, (address, wanted));
        if let Some(result) = &subword.lanes.result {
            let d = self.env.op(self.ops).d;
            let old = match result.start {
                Start::Zero => Val::Const(0),
                _ => Val::Lanes(self.register(packet, d)),
            };
            self.env.operands.insert(Role::D0, (old, Hold::W32));
            self.env.memory_value = Some(moved);
            self.stmts(&subword.lanes.body)?;
            let v = self.env.var(Var::Operand(Role::D0));
            let v = self.unflushed_lanes(v)?;
            packet.registers.insert(d, (v, true));
            return Ok(None);
        }
        self.env.operands.insert(Role::Data, (moved, Hold::W32));
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
        self.facts.record_bits(v, KnownBits { zeros, ones: 0 });
        self.subword_code(op, subword, (access.register, access.wide), Val::Lanes(v), packet)?;
        Ok(())
    }

    /// Loads the elements of contiguous lanes.
    pub fn load_subwords_contiguous(&mut self, bytes: usize, from: Mem) -> V {
        if bytes == 1 {
            let all = self.f.load(Size::B8, from.base, from.disp);
            let all = self.f.splat(true, all);
            return self.f.rm(Code::VEX_Vpmovzxbd_ymm_xmmm64, all, None);
        }
        let all = self.load_halves([from; 2]);
        self.f.rm(Code::VEX_Vpmovzxwd_ymm_xmmm128, all, None)
    }

    /// Loads the element that all lanes share.
    pub fn load_subwords_uniform(&mut self, bytes: usize, from: Mem) -> V {
        let one = self.f.load(size(bytes), from.base, from.disp);
        self.f.splat(false, one)
    }

    /// Loads elements from arbitrary addresses.
    pub fn load_subwords_gather(&mut self, bytes: usize, from: [Mem; 8]) -> V {
        for (lane, Mem { base, disp }) in (0..).zip(from) {
            let v = self.f.load(size(bytes), base, disp);
            self.f.store(Size::B4, self.frame, frame_offset::LANE_BUFFER + 4 * lane, v);
        }
        self.f.vload(self.frame, frame_offset::LANE_BUFFER, false)
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
            let Access { register, wide, .. } = location.access;
            let data = e.register(&mut packet, data);
            let moved = e.subword_code(op, subword, (register, wide), Val::Lanes(data), &mut packet)?;
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
            e.f.vstore(e.frame, frame_offset::LANE_BUFFER, v);
            let active = e.f.int2(Int2::Shr, Width::W64, exec, n);
            for (lane, to) in (0..).zip(addresses) {
                let next = e.f.label();
                let bit = e.f.int2(Int2::And, Width::W32, active, 1 << lane);
                e.branch_if_zero(bit, next);
                let word = e.f.load(Size::B4, e.frame, frame_offset::LANE_BUFFER + 4 * lane);
                e.f.store(size(subword.bytes), to, disp, word);
                e.f.push(Inst::Label(next));
            }
            e.f.push(Inst::Label(done));
            Ok(())
        })
    }

    /// Stores the low bytes of contiguous lanes, whose other bytes are zero.
    fn store_subwords_contiguous(&mut self, bytes: usize, v: V, to: Mem) {
        let words = self.f.rvm(Code::VEX_Vpackusdw_ymm_ymm_ymmm256, v, v, None);
        let words = self.f.rm(Code::VEX_Vpermq_ymm_ymmm256_imm8, words, Some(0x88));
        if bytes == 2 {
            return self.store_halves(words, [to; 2]);
        }
        let all = self.f.rvm(Code::VEX_Vpackuswb_ymm_ymm_ymmm256, words, words, None);
        self.f.vstore(self.frame, frame_offset::LANE_BUFFER, all);
        let all = self.f.load(Size::B8, self.frame, frame_offset::LANE_BUFFER);
        self.f.store(Size::B8, to.base, to.disp, all);
    }
}

fn size(bytes: usize) -> Size {
    if bytes == 1 { Size::B1 } else { Size::B2 }
}
