//! Loads and stores of bytes and 16-bit halves.

use super::known::Bits;
use super::memory::{Access, Located};
use super::packet::{Packet, PacketAt};
use super::stmt::Env;
use super::val::Val;
use super::{Emitter, R, Unsupported};
use crate::frame::at;
use crate::parts::Part;
use isa_lower::ir::{Block, Hold, Start, Var};
use isa_spec::tables::Role;
use wavesim_x64::Code;
use wavesim_x64::inst::{Inst, Int2, Mem, Size, V, Width};

impl Emitter<'_> {
    /// Emits the per-lane code around a subword access: on the loaded value, or on the value to store.
    /// Returns the value that is stored.
    fn part(
        &mut self,
        op: u32,
        part: &Part,
        register: (u16, bool),
        moved: Val,
        packet: &mut Packet,
    ) -> R<Option<Val>> {
        self.env = Env::new(op);
        let (Block::Global { offsets, .. } | Block::Lds { lanes: offsets, .. }) = &part.block;
        let (first, wide) = register;
        let low = self.register(packet, first);
        let address = if wide {
            let high = self.register(packet, first + 1);
            let [low, high] = [low, high].map(|v| self.exact(v));
            Val::Wide(self.joined(low, high))
        } else {
            Val::Lanes(low)
        };
        let hold = |role: Role| {
            let read = part.lanes.reads.iter().find(|read| read.role == role);
            read.map_or(Hold::W32, |read| Hold::of(read.width))
        };
        let wanted = hold(*offsets);
        let own = if wide { Hold::W64 } else { Hold::W32 };
        let address = self.resized(address, own, wanted)?;
        self.env.operands.insert(*offsets, (address, wanted));
        if let Some(result) = &part.lanes.result {
            let d = self.env.op(self.ops).d;
            let old = match result.start {
                Start::Zero => Val::Known(0),
                _ => Val::Lanes(self.register(packet, d)),
            };
            self.env.operands.insert(Role::D0, (old, Hold::W32));
            self.env.moved = Some(moved);
            self.stmts(&part.lanes.body)?;
            let v = self.env.var(Var::Operand(Role::D0));
            let v = self.raw_lanes(v)?;
            packet.registers.insert(d, (v, true));
            return Ok(None);
        }
        self.env.operands.insert(Role::Data, (moved, Hold::W32));
        self.stmts(&part.lanes.body)?;
        Ok(self.env.moved)
    }

    /// Completes a load after its bytes have been loaded.
    pub fn loaded_part(&mut self, op: u32, part: &Part, access: &Access, v: V, packet: &mut Packet) -> R<()> {
        let zeros = u32::MAX << (8 * part.bytes);
        self.known.note_bits(v, Bits { zeros, ones: 0 });
        self.part(op, part, (access.register, access.wide), Val::Lanes(v), packet)?;
        Ok(())
    }

    /// Loads the elements of contiguous lanes.
    pub fn part_together(&mut self, bytes: usize, from: Mem) -> V {
        if bytes == 1 {
            let all = self.f.load(Size::B8, from.base, from.disp);
            let all = self.f.splat(true, all);
            return self.f.rm(Code::VEX_Vpmovzxbd_ymm_xmmm64, all, None);
        }
        let all = self.load_halves([from; 2]);
        self.f.rm(Code::VEX_Vpmovzxwd_ymm_xmmm128, all, None)
    }

    /// Loads the element that all lanes share.
    pub fn part_same(&mut self, bytes: usize, from: Mem) -> V {
        let one = self.f.load(size(bytes), from.base, from.disp);
        self.f.splat(false, one)
    }

    /// Loads elements from arbitrary addresses.
    pub fn part_apart(&mut self, bytes: usize, from: [Mem; 8]) -> V {
        for (lane, Mem { base, disp }) in (0..).zip(from) {
            let v = self.f.load(size(bytes), base, disp);
            self.f.store(Size::B4, self.frame, at::ROOM + 4 * lane, v);
        }
        self.f.vload(self.frame, at::ROOM, false)
    }

    /// Stores the elements of all lanes in a loop of its own.
    pub fn store_part(
        &mut self,
        op: u32,
        part: &Part,
        place: &Located,
        data: u16,
        exec: V,
        together: V,
    ) -> R<()> {
        self.each_packet(|e, base| {
            let mut packet = Packet::new(base);
            let PacketAt { n, .. } = e.packet.ok_or(Unsupported("a packet"))?;
            let Access { register, wide, .. } = place.access;
            let data = e.register(&mut packet, data);
            let moved = e.part(op, part, (register, wide), Val::Lanes(data), &mut packet)?;
            let v = e.lanes(moved.ok_or(Unsupported("a store"))?)?;
            let [apart, done] = [(); 2].map(|()| e.f.label());
            e.unless(together, apart);
            let to = e.first_lane(place, base);
            let known = e.known.clone();
            e.stored_together(part.bytes, v, to);
            e.f.push(Inst::Jump(done));
            e.f.push(Inst::Label(apart));
            e.known = known;
            let mut packet = Packet::new(base);
            let offsets = e.offsets(place, exec, &mut packet)?;
            let (host, disp) = place.host();
            // Stores are in lane order: of several lanes with the same address, the last one wins.
            let addresses = e.addresses(host, offsets);
            e.f.vstore(e.frame, at::ROOM, v);
            let active = e.f.int2(Int2::Shr, Width::W64, exec, n);
            for (lane, to) in (0..).zip(addresses) {
                let next = e.f.label();
                let bit = e.f.int2(Int2::And, Width::W32, active, 1 << lane);
                e.unless(bit, next);
                let word = e.f.load(Size::B4, e.frame, at::ROOM + 4 * lane);
                e.f.store(size(part.bytes), to, disp, word);
                e.f.push(Inst::Label(next));
            }
            e.f.push(Inst::Label(done));
            Ok(())
        })
    }

    /// Stores the low bytes of contiguous lanes, whose other bytes are zero.
    fn stored_together(&mut self, bytes: usize, v: V, to: Mem) {
        let words = self.f.rvm(Code::VEX_Vpackusdw_ymm_ymm_ymmm256, v, v, None);
        let words = self.f.rm(Code::VEX_Vpermq_ymm_ymmm256_imm8, words, Some(0x88));
        if bytes == 2 {
            return self.store_halves(words, [to; 2]);
        }
        let all = self.f.rvm(Code::VEX_Vpackuswb_ymm_ymm_ymmm256, words, words, None);
        self.f.vstore(self.frame, at::ROOM, all);
        let all = self.f.load(Size::B8, self.frame, at::ROOM);
        self.f.store(Size::B8, to.base, to.disp, all);
    }
}

fn size(bytes: usize) -> Size {
    if bytes == 1 { Size::B1 } else { Size::B2 }
}
