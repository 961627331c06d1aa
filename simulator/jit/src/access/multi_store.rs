//! Stores of one instruction to several LDS addresses, which each lane performs in order.

use crate::arith::builder::{Bug, PacketPosition, R};
use crate::frame::LANE_VEC_BYTES;
use crate::selected::MultiStore;
use crate::state::access::ResolvedAccesses;
use crate::state::emitter::Emitter;
use crate::state::packet::Packet;
use isa_lower::ir::*;
use isa_lower::lower::operands::slot;
use isa_lower::visit::any_in;
use isa_spec::pcode::ir::Space;
use isa_spec::tables::Role;
use wavesim_machine::exec::op::{DecodedSource, Op};
use wavesim_machine::state::wave::ALL_VGPRS;
use wavesim_x64::inst::{Inst, Int2, Size, V, Width};

/// Recognises a handler that consists of such stores.
pub fn find(lanes: &Lanes) -> Option<MultiStore> {
    let mut body = None;
    for step in &lanes.steps {
        match step {
            Step::Loop(lanes) if body.is_none() && !lanes.leaves && !lanes.retries => {
                body = Some(&lanes.body)
            }
            Step::Stage { .. } => {}
            _ => return None,
        }
    }
    let (mut offsets, mut size, mut plus, mut data) = (None, None, Vec::new(), Vec::new());
    for stmt in body? {
        let Stmt::Store { space: Space::Lds, addr, bytes: bytes @ (4 | 8), value } = stmt else {
            return None;
        };
        let (role, number) = terms(addr)?;
        if *offsets.get_or_insert(role) != role || *size.get_or_insert(*bytes) != *bytes {
            return None;
        }
        plus.push(number.clone());
        data.push(operand(value, 8 * bytes)?);
    }
    let block = Block::Lds { lanes: offsets?, plus, store: true, dwords: size? / 4 };
    Some(MultiStore { block, data })
}

/// Splits a 32-bit address into the lane's operand and a uniform value that is added.
fn terms(addr: &Value) -> Option<(Role, &Value)> {
    let ValueKind::Resize(sum) = &addr.kind else { return None };
    let ValueKind::Op2(Op2::Add, lanes, number) = &sum.kind else { return None };
    let field = |v: &Value| matches!(v.kind, ValueKind::Const(_) | ValueKind::Field(_) | ValueKind::Op2(..));
    let known = !any_in(number, &|v| !field(v) || v.host_width != HostWidth::W32);
    (sum.host_width == HostWidth::W32 && known).then_some((operand(lanes, 32)?, number))
}

/// Returns the role of an operand of `bits` bits.
fn operand(value: &Value, bits: u32) -> Option<Role> {
    match &value.kind {
        ValueKind::Var(Var::Operand(role)) if value.host_width.bits() == bits => Some(*role),
        ValueKind::Resize(inner) if inner.host_width <= value.host_width => operand(inner, bits),
        _ => None,
    }
}

/// Returns whether all operands are unmodified registers.
pub fn operands_supported(op: &Op, pair: &MultiStore) -> bool {
    const MODIFIED: u16 = Op::MODIFY | Op::OUTPUT | Op::HIGH | Op::SCALAR_DEST | Op::CLAMP | Op::NO_RESULT;
    let Block::Lds { lanes, dwords, .. } = &pair.block else { return false };
    let is_register =
        |(role, words): (Role, usize)| register(op, role).is_some_and(|first| first + words <= ALL_VGPRS);
    let data = pair.data.iter().map(|role| (*role, *dwords as usize));
    op.flags & MODIFIED == 0 && data.chain([(*lanes, 1)]).all(is_register)
}

/// Returns the register of an operand.
pub fn register(op: &Op, role: Role) -> Option<usize> {
    match slot(role) {
        Slot::Source(at) => match op.src[at].decode() {
            DecodedSource::Vector(first) if first < ALL_VGPRS => Some(first),
            _ => None,
        },
        _ => None,
    }
}

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
