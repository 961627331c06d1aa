//! Stores of one instruction to several LDS addresses.

use super::memory::ResolvedAccesses;
use super::packet::{Packet, PacketPosition};
use super::{Bug, Emitter, R};
use crate::frame::LANE_VEC_BYTES;
use crate::multi_store::register;
use crate::selected::MultiStore;
use wavesim_machine::exec::op::Op;
use wavesim_x64::inst::{Inst, Int2, Size, V, Width};

impl Emitter<'_> {
    /// Stores lane by lane in lane order, and in each lane in operand order: where addresses overlap, the
    /// last store wins.
    pub fn store_multiple(
        &mut self,
        op: &Op,
        multi_store: &MultiStore,
        resolved: &ResolvedAccesses,
        exec: V,
    ) -> R<()> {
        self.each_packet(|e, base| {
            let PacketPosition { n, .. } = e.packet.ok_or(Bug("a packet"))?;
            let mut packet = Packet::new(base);
            let mut addresses: Vec<(V, [V; 8])> = Vec::new();
            for location in &resolved.accesses {
                let (host, _) = location.host();
                if addresses.iter().all(|(other, _)| *other != host) {
                    let offsets = e.active_offsets(location, exec, &mut packet)?;
                    addresses.push((host, e.addresses(host, offsets)));
                }
            }
            let active = e.f.int2(Int2::Shr, Width::W64, exec, n);
            for lane in 0..8 {
                let next = e.f.label();
                let bit = e.f.int2(Int2::And, Width::W32, active, 1 << lane);
                e.branch_if_zero(bit, next);
                for (location, role) in resolved.accesses.iter().zip(&multi_store.data) {
                    let (host, disp) = location.host();
                    let found = addresses.iter().find(|(other, _)| *other == host);
                    let (_, to) = found.ok_or(Bug("an address"))?;
                    let data = register(op, *role).ok_or(Bug("data that is not a register"))?;
                    for k in 0..location.access.registers {
                        let from = ((data + k) * LANE_VEC_BYTES) as i32 + 4 * lane;
                        let word = e.f.load(Size::B4, base, from);
                        e.f.store(Size::B4, to[lane as usize], disp + 4 * k as i32, word);
                    }
                }
                e.f.push(Inst::Label(next));
            }
            Ok(())
        })
    }
}
