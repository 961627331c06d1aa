//! Selection of the handler variant of an operation.

use super::slot;
use crate::isa::OpInfo;
use isa_spec::pcode::ir::Shape;
use isa_spec::tables::Role;
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{self, Operand};
use wavesim_rt::op::{DecodedSource, Ext, Op, Source, Variant};
use wavesim_state::wave::{ALL_VGPRS, NULL, SCALAR_CONSTS, SCALARS, SGPRS};

/// Returns whether an operand begins at a VGPR and extends beyond the last one.
pub(super) fn exceeds_vgprs(op: &Op, arch: Arch, inst: &Inst, operands: &[Operand], info: &OpInfo) -> bool {
    // Both kinds have the same number of VGPRs.
    let most = arch.facts().vgprs.most() as usize;
    let exceeds = |first: u16, dwords: u8| {
        (first as usize) < ALL_VGPRS && first as usize % most + dwords as usize > most
    };
    operands.iter().any(|operand| match (operand.role, slot(operand.role)) {
        (Role::VAddr, Some(slot)) => {
            let registers = operand::address_registers(arch, inst).map_or(u8::MAX, |count| count as u8);
            op.src[slot].is_vector() && exceeds(op.src[slot].number(), registers.min(info.sources[slot]))
        }
        (Role::D0, _) => {
            info.shape != Shape::Scalar && op.flags & Op::SCALAR_DEST == 0 && exceeds(op.d, info.result)
        }
        (_, Some(slot)) => op.src[slot].is_vector() && exceeds(op.src[slot].number(), info.sources[slot]),
        _ => false,
    })
}

/// The largest number of registers of a per-lane source.
const MAX_SOURCE_REGISTERS: u16 = 4;

/// Returns whether a source begins at an SGPR and includes no special register.
fn is_ordinary_sgpr(source: Source) -> bool {
    matches!(source.decode(), DecodedSource::Scalar(at) if at + MAX_SOURCE_REGISTERS as usize <= NULL)
}

/// Returns whether an operation has neither modifiers on its vector sources and results nor a scalar
/// destination.
fn is_unmodified(op: &Op) -> bool {
    op.flags & (Op::MODIFY | Op::OUTPUT | Op::HIGH | Op::SCALAR_DEST | Op::CLAMP) == 0
}

/// Selects the variant of a load or store that copies coalesced elements as a block: fast if the per-lane
/// address and the data are vectors, and the base is in SGPRs, or is absent and the handler supports that.
pub(super) fn block_variant(op: &Op, info: &OpInfo) -> Variant {
    let dwords = info.sources;
    let vectors = [0, 2, 3].into_iter().all(|slot| dwords[slot] == 0 || op.src[slot].is_vector());
    let absent = info.address64 && op.src[1].decode() == DecodedSource::Scalar(NULL);
    let base = dwords[1] == 0 || absent || is_ordinary_sgpr(op.src[1]);
    if is_unmodified(op) && vectors && base { Variant::Fast } else { Variant::General }
}

/// Selects the variant of a scalar operation: fast if its sources and result are in the scalar file.
pub(super) fn scalar_variant(op: &Op, info: &OpInfo) -> Variant {
    // No result register has a special meaning.
    let d_inside =
        info.result == 0 || op.flags & Op::SCALAR_DEST != 0 && (op.d + info.result as u16) as usize <= NULL;
    let inside = |(source, dwords): (Source, u8)| match source.decode() {
        _ if dwords == 0 => true,
        // All dwords of null are zero, rather than the registers after it.
        DecodedSource::Scalar(NULL) => dwords == 1,
        DecodedSource::Scalar(at) => {
            at + dwords as usize <= if at < SGPRS { SGPRS } else { SGPRS + SCALAR_CONSTS }
        }
        _ => false,
    };
    let fast =
        op.flags & !Op::SCALAR_DEST == 0 && d_inside && op.src.into_iter().zip(info.sources).all(inside);
    if fast { Variant::Fast } else { Variant::General }
}

/// Returns whether, in wave64, the second half would read part of a mask that the first half has written.
/// That can happen only for pairs at odd distances.
fn second_half_reads_result(op: &Op, info: &OpInfo) -> bool {
    let after = op.src[3].number() + 1;
    op.src[3].is_scalar() && (op.d1 == after || info.result == 0 && op.d == after)
}

/// Returns whether a lane operation would be fast without its DPP modifier ([`Op::DPP_ONLY`]).
pub(super) fn has_only_dpp(op: &Op, ext: &Ext, info: &OpInfo) -> bool {
    let changed = ext.abs_bits | ext.neg_bits | ext.high_bits | ext.narrow_bits | ext.packed_bits;
    let vectors = op.src.into_iter().zip(info.sources).all(|(s, dwords)| dwords == 0 || s.is_vector());
    info.shape == Shape::Lane
        // If sources cross rows, the second half must not see bits of EXEC that the first half has written.
        && ext.dpp.is_some_and(|dpp| dpp.across.is_none() || info.result > 0)
        && (changed, ext.sdwa) == (0, None)
        && op.flags & Op::OUTPUT == 0
        && info.sources[0] > 0
        && vectors
        && !second_half_reads_result(op, info)
}

/// Selects the variant of a lane operation: fast if its sources are vectors or can be broadcast to vectors.
/// Replaces the SGPRs among its sources with their hidden vectors and lists them, unless there are too many.
pub(super) fn lane_variant(op: &mut Op, info: &OpInfo) -> Variant {
    let dwords = info.sources;
    // The mask source, and slots without an operand, read no registers.
    let read = |(source, dwords): &(Source, u8)| *dwords > 0 && !source.is_vector();
    if !is_unmodified(op) || !op.src.into_iter().zip(dwords).filter(read).all(|(s, _)| is_ordinary_sgpr(s)) {
        return Variant::General;
    }
    if second_half_reads_result(op, info) {
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
