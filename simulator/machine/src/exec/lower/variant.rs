//! Which variant of its handler an operation runs by.

use super::slot;
use crate::exec::op::{Ext, Op, Place, Source, Variant};
use crate::isa::OpInfo;
use crate::state::wave::{ALL_VGPRS, NULL, SCALAR_CONSTS, SCALARS, SGPRS, VGPRS};
use isa_spec::pcode::ir::Shape;
use isa_spec::tables::Role;
use wavesim_isa::operand::Operand;

/// VGPRs of an address: both that a body may read if there is no scalar base, or a buffer's index and offset.
fn address_registers(op: &Op, ext: &Ext, info: &OpInfo) -> u8 {
    let is_buffer = info.fields.contains(&"IDXEN");
    let both = if is_buffer { ext.idxen & ext.offen & 1 != 0 } else { op.src[1] == Source::NULL };
    if both { info.sources[0] } else { info.sources[0].min(1) }
}

/// Whether an operand begins with a VGPR and ends after the last one.
pub(super) fn is_beyond(op: &Op, ext: &Ext, operands: &[Operand], info: &OpInfo) -> bool {
    // The two kinds of VGPRs have as many each.
    let beyond = |first: u16, dwords: u8| {
        (first as usize) < ALL_VGPRS && first as usize % VGPRS + dwords as usize > VGPRS
    };
    operands.iter().any(|operand| match (operand.role, slot(operand.role)) {
        (Role::VAddr, Some(slot)) => {
            op.src[slot].is_vector() && beyond(op.src[slot].number(), address_registers(op, ext, info))
        }
        (Role::D0, _) => {
            info.shape != Shape::Scalar && op.flags & Op::SCALAR_DEST == 0 && beyond(op.d, info.result)
        }
        (_, Some(slot)) => op.src[slot].is_vector() && beyond(op.src[slot].number(), info.sources[slot]),
        _ => false,
    })
}

/// As many registers as a lane's source has at most.
const WIDEST: u16 = 4;

/// An SGPR such that it and those after it are registers like all others.
fn is_ordinary_sgpr(source: Source) -> bool {
    matches!(source.place(), Place::Scalar(at) if at + WIDEST as usize <= NULL)
}

/// Whether an operation changes nothing of its vector sources and results.
fn is_unmodified(op: &Op) -> bool {
    op.flags & (Op::MODIFY | Op::OUTPUT | Op::HIGH | Op::SCALAR_DEST | Op::CLAMP) == 0
}

/// The variant of a load or store that copies coalesced elements as a block: fast if the lanes' part of the address and the data are vectors, and the
/// wave's part is in SGPRs, or is missing and the handler knows what to do then.
pub(super) fn block(op: &Op, info: &OpInfo) -> Variant {
    let dwords = info.sources;
    let vectors = [0, 2, 3].into_iter().all(|slot| dwords[slot] == 0 || op.src[slot].is_vector());
    let absent = info.wide && op.src[1].place() == Place::Scalar(NULL);
    let base = dwords[1] == 0 || absent || is_ordinary_sgpr(op.src[1]);
    if is_unmodified(op) && vectors && base { Variant::Fast } else { Variant::General }
}

/// How a scalar instruction runs whose sources have so many registers: plainly if they and the result are in the scalar file.
pub(super) fn scalar(op: &Op, info: &OpInfo) -> Variant {
    // None with a meaning of its own.
    let d_inside =
        info.result == 0 || op.flags & Op::SCALAR_DEST != 0 && (op.d + info.result as u16) as usize <= NULL;
    let inside = |(source, dwords): (Source, u8)| match source.place() {
        _ if dwords == 0 => true,
        // More words of null are null, not what follows it.
        Place::Scalar(NULL) => dwords == 1,
        Place::Scalar(at) => at + dwords as usize <= if at < SGPRS { SGPRS } else { SGPRS + SCALAR_CONSTS },
        _ => false,
    };
    let plain =
        op.flags & !Op::SCALAR_DEST == 0 && d_inside && op.src.into_iter().zip(info.sources).all(inside);
    if plain { Variant::Fast } else { Variant::General }
}

/// Whether, in a wave of 64, the second half would read what the first has written of a mask: only of pairs
/// at odd distances.
fn reads_what_it_writes(op: &Op, info: &OpInfo) -> bool {
    let after = op.src[3].number() + 1;
    op.src[3].is_scalar() && (op.d1 == after || info.result == 0 && op.d == after)
}

/// Whether nothing but DPP keeps a lane's instruction from running plainly ([`Op::MOVED`]).
pub(super) fn is_moved(op: &Op, ext: &Ext, info: &OpInfo) -> bool {
    let changed = ext.abs_bits | ext.neg_bits | ext.high_bits | ext.narrow_bits | ext.packed_bits;
    let vectors = op.src.into_iter().zip(info.sources).all(|(s, dwords)| dwords == 0 || s.is_vector());
    info.shape == Shape::Lane
        // The second half must not see an EXEC that the first has written.
        && ext.dpp.is_some_and(|dpp| dpp.across.is_none() || info.result > 0)
        && (changed, ext.sdwa) == (0, None)
        && op.flags & Op::OUTPUT == 0
        && info.sources[0] > 0
        && vectors
        && !reads_what_it_writes(op, info)
}

/// How a lane's instruction runs: plainly if its sources are vectors, or SGPRs that become vectors. Turns the SGPRs among its sources into
/// their hidden vectors, and lists them, unless they are too many.
pub(super) fn lanes(op: &mut Op, info: &OpInfo) -> Variant {
    let dwords = info.sources;
    // The mask source, and slots without an operand, have no registers to read.
    let read = |(source, dwords): &(Source, u8)| *dwords > 0 && !source.is_vector();
    if !is_unmodified(op) || !op.src.into_iter().zip(dwords).filter(read).all(|(s, _)| is_ordinary_sgpr(s)) {
        return Variant::General;
    }
    if reads_what_it_writes(op, info) {
        return Variant::General;
    }
    let (mut list, mut used) = ([Op::NO_SCALAR; 4], 0);
    let mut src = op.src;
    for (source, dwords) in src.iter_mut().zip(dwords).filter(|(source, n)| *n > 0 && !source.is_vector()) {
        let first = source.number();
        for sgpr in first..first + dwords as u16 {
            let sgpr = sgpr as u8;
            if list[..used].contains(&sgpr) {
                continue;
            }
            let Some(free) = list.get_mut(used) else { return Variant::General };
            *free = sgpr;
            used += 1;
        }
        let Some(copy) = Source::vector(SCALARS + first as usize) else { return Variant::General };
        *source = copy;
    }
    op.src = src;
    if used == 0 {
        return Variant::Fast;
    }
    op.flags |= Op::BROADCAST;
    op.imm = u32::from_le_bytes(list);
    Variant::FastBroadcast
}
