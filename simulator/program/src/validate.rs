//! The invariants that handlers rely on, and their validation.
//!
//! # Invariants of lowered code
//!
//! Handlers, and the loops that call them, access registers and operations without bounds checks. That is
//! sound because of the following invariants, which `SAFETY` comments call *the invariants of lowered code*.
//! A change to a handler, to the lowering or to a register file must keep this list, [`operation`] and
//! [`program`] up to date.
//!
//! Of a wave, guaranteed by [`Wave`], whose register file is private:
//!
//! - **W1** The register file has [`LANE_VECS`] lane vectors for each 32 lanes, and at least one such file,
//!   of which operations can number [`OPERAND_VECS`]. The number of halves is derived from the file. A [`Half`]
//!   obtained from a wave or a [`Cx`] is one of them.
//! - **W2** The scalar file has [`SGPRS`] + [`SCALAR_CONSTS`] words.
//!
//! Of an operation, guaranteed by [`Lowered`], which appends none that [`operation`] rejects:
//!
//! - **O1** Its code is below [`Op::CODES`].
//! - **O2** Each source is in bounds: a word of the scalar file, or a lane vector that begins at least
//!   [`STAGE_VECS`] vectors before the end of the file. (`Source` has no other constructors.) A pool constant
//!   is inside the pool with all words that the handler reads; [`Op::ext`] is inside the table.
//! - **O3** The vectors that a lane handler writes are VGPRs, dropped results or temporaries: never a
//!   constant, a staged source or a copy of an SGPR.
//! - **O4** A handler that reads vectors directly ([`Variant::Fast`] and [`Variant::FastBroadcast`] of lane
//!   operations) has a vector in every slot that it reads, and no modifiers. `rt::general` converts other
//!   operations to this form: it stages sources that are not vectors or have modifiers; the remaining flags
//!   are ones that the handler ignores or applies itself.
//! - **O5** The SGPRs that [`Variant::FastBroadcast`] lists are below NULL, and the list is not empty; each
//!   copy of an SGPR that is read belongs to a listed SGPR.
//! - **O6** A handler that reads SGPRs directly ([`Variant::Fast`] of scalar operations) finds every word
//!   that it reads in the scalar file, and writes only registers below NULL.
//! - **O7** A handler that copies a block has vectors for offsets and data, and two words of the scalar file
//!   as a base.
//! - **O8** An operation with [`Op::DPP_ONLY`] has a vector in every slot that its handler reads.
//!
//! Of a program, guaranteed by [`Program`]:
//!
//! - **P1** The last operation, and no other, is [`Op::END`], whose handler does not continue. So an
//!   operation that continues has a successor.
//! - **P2** Jump targets are looked up: a PC that is not the start of an instruction yields no operation.
//!
//! Of the host:
//!
//! - **H1** Handlers compiled for AVX2 and related features are in tables that a [`Cx`] receives only with an
//!   [`Avx2`], which only the detection creates. The caller of [`Handlers::new`] guarantees that the tables
//!   are labelled correctly.
//!
//! [`Avx2`]: wavesim_state::host::Avx2
//! [`Handlers::new`]: wavesim_rt::Handlers::new
//! [`Half`]: wavesim_state::Half
//! [`LANE_VECS`]: wavesim_state::wave::LANE_VECS
//! [`Cx`]: wavesim_rt::Cx
//! [`Lowered`]: super::lower::Lowered
//! [`Program`]: super::program::Program
//! [`Wave`]: wavesim_state::Wave

use crate::isa::{OPERATIONS, OpInfo};
use isa_spec::pcode::ir::Shape;
use wavesim_rt::op::{DecodedSource, Ext, Op, Variant};
use wavesim_state::wave::{
    CONSTS, MAX_CONSTS, NULL, OPERAND_VECS, SCALAR_CONSTS, SCALARS, SGPRS, STAGE, STAGE_VECS,
};

/// A violated invariant of an operation or a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// O1: the code is not below [`Op::CODES`].
    #[error("O1: code {0} has no handler")]
    Code(u16),
    /// O2: the source in this slot is out of bounds.
    #[error("O2: source {0} is out of bounds")]
    Source(usize),
    /// O2: the constant in this slot is beyond the program's pool, or belongs to another slot.
    #[error("O2: source {0} is beyond the constant pool")]
    Pool(usize),
    /// O2: this index is beyond the program's table of modifiers, or the entry there names a bit beyond 63.
    #[error("O2: modifiers {0} are out of bounds")]
    Ext(u32),
    /// O3, O6: the result begins at this register, which instructions may not write.
    #[error("O3: the result at {0} is not in writable registers")]
    Result(u16),
    /// O4, O7, O8: the source in this slot is not a lane vector.
    #[error("O4: source {0} is not a vector")]
    NoVector(usize),
    /// O4: these flags request something that the handler variant does not do.
    #[error("O4: a fast handler does not apply flags {0:#x}")]
    Modified(u16),
    /// O5: this SGPR is listed but must not be, or is read but not listed; [`Op::NO_SCALAR`] if the list is
    /// empty.
    #[error("O5: SGPR {0} is listed or read wrongly")]
    List(u8),
    /// O6, O7: the source in this slot is not entirely in the scalar file.
    #[error("O6: source {0} is not in the scalar file")]
    NoScalar(usize),
    /// O4: the operation has no handler of this variant.
    #[error("O4: the operation has no such handler")]
    Variant,
    /// P1: the last operation, and no other, is [`Op::END`].
    #[error("P1: the end is missing or not last")]
    End,
}

/// Checks that an operation satisfies O1 to O8, in a program with this many constants (in words) and these
/// modifiers.
pub fn operation(op: &Op, constants: usize, exts: &[Ext]) -> Result<(), Violation> {
    let Some((info, variant)) = decode(op)? else { return Ok(()) };
    let Some(ext) = exts.get(op.ext as usize) else { return Err(Violation::Ext(op.ext)) };
    if ext.sign_at.iter().any(|at| *at > 63) {
        return Err(Violation::Ext(op.ext));
    }
    for (slot, (source, dwords)) in op.src.into_iter().zip(info.sources).enumerate() {
        match source.decode() {
            DecodedSource::Scalar(at) if at >= SGPRS + SCALAR_CONSTS => return Err(Violation::Source(slot)),
            DecodedSource::Vector(at) if at + STAGE_VECS > OPERAND_VECS => {
                return Err(Violation::Source(slot));
            }
            // A constant that is not installed there would be another program's.
            DecodedSource::Vector(at)
                if (CONSTS..CONSTS + MAX_CONSTS).contains(&at) && at - CONSTS >= constants =>
            {
                return Err(Violation::Pool(slot));
            }
            place
                if op.flags & Op::DPP_ONLY != 0
                    && dwords > 0
                    && !matches!(place, DecodedSource::Vector(_)) =>
            {
                return Err(Violation::NoVector(slot));
            }
            DecodedSource::Pool(of)
                if of != slot || ext.pool[slot] as usize + dwords as usize > constants =>
            {
                return Err(Violation::Pool(slot));
            }
            _ => {}
        }
    }
    if info.shape == Shape::Lane && info.result > 0 {
        let end = op.d as usize + info.result as usize;
        if op.flags & Op::SCALAR_DEST != 0 || end > STAGE {
            return Err(Violation::Result(op.d));
        }
    }
    match (variant, info.shape) {
        (Variant::General, _) => Ok(()),
        (Variant::Fast, Shape::Scalar) if info.staged => scalar(op, info),
        (Variant::Fast, Shape::Lane) if info.block => block(op, info),
        (Variant::Fast | Variant::FastBroadcast, Shape::Lane) if info.staged => lanes(op, info, variant),
        _ => Err(Violation::Variant),
    }
}

/// Checks that a program satisfies P1 and each of its operations O1 to O7; returns the index of the first
/// violation.
pub fn program(ops: &[Op], constants: usize, exts: &[Ext]) -> Result<(), (usize, Violation)> {
    for (at, op) in ops.iter().enumerate() {
        operation(op, constants, exts).map_err(|violation| (at, violation))?;
        if (op.code == Op::END) != (at + 1 == ops.len()) {
            return Err((at, Violation::End));
        }
    }
    if ops.is_empty() { Err((0, Violation::End)) } else { Ok(()) }
}

/// Decodes an operation's code into canonical operation and handler variant; `None` for codes that only stop.
fn decode(op: &Op) -> Result<Option<(&'static OpInfo, Variant)>, Violation> {
    if op.only_stops() && (op.code as usize) < Op::CODES {
        return Ok(None);
    }
    let info = OPERATIONS.get(op.code as usize / Op::VARIANTS).ok_or(Violation::Code(op.code))?;
    Ok(Some((info, Variant::ALL[op.code as usize % Op::VARIANTS])))
}

fn unmodified(op: &Op) -> Result<(), Violation> {
    const MODIFIED: u16 = Op::MODIFY | Op::OUTPUT | Op::HIGH | Op::SCALAR_DEST | Op::CLAMP | Op::NO_RESULT;
    if op.flags & MODIFIED != 0 { Err(Violation::Modified(op.flags)) } else { Ok(()) }
}

fn lanes(op: &Op, info: &OpInfo, variant: Variant) -> Result<(), Violation> {
    unmodified(op)?;
    let listed = (op.flags & Op::BROADCAST != 0) == (variant == Variant::FastBroadcast);
    if !listed {
        return Err(Violation::Modified(op.flags));
    }
    let list = op.imm.to_le_bytes();
    let count = list.iter().position(|sgpr| *sgpr == Op::NO_SCALAR).unwrap_or(list.len());
    let list = if variant == Variant::FastBroadcast { &list[..count] } else { &[] };
    if variant == Variant::FastBroadcast && list.is_empty() {
        return Err(Violation::List(Op::NO_SCALAR));
    }
    if let Some(wrong) = list.iter().find(|sgpr| **sgpr as usize >= NULL) {
        return Err(Violation::List(*wrong));
    }
    for (slot, (source, dwords)) in op.src.into_iter().zip(info.sources).enumerate() {
        match source.decode() {
            _ if dwords == 0 => {}
            DecodedSource::Vector(at) if at >= SCALARS => {
                let copies = at - SCALARS..at - SCALARS + dwords as usize;
                if let Some(absent) =
                    copies.into_iter().find(|n| !list.iter().any(|sgpr| *sgpr as usize == *n))
                {
                    return Err(Violation::List(absent as u8));
                }
            }
            DecodedSource::Vector(_) => {}
            _ => return Err(Violation::NoVector(slot)),
        }
    }
    Ok(())
}

fn scalar(op: &Op, info: &OpInfo) -> Result<(), Violation> {
    if op.flags & !(Op::SCALAR_DEST | Op::MORE) != 0 {
        return Err(Violation::Modified(op.flags));
    }
    for (slot, (source, dwords)) in op.src.into_iter().zip(info.sources).enumerate() {
        let inside = match source.decode() {
            _ if dwords == 0 => true,
            DecodedSource::Scalar(at) => at + dwords as usize <= SGPRS + SCALAR_CONSTS,
            _ => false,
        };
        if !inside {
            return Err(Violation::NoScalar(slot));
        }
    }
    match info.result == 0 || op.d as usize + info.result as usize <= NULL {
        true => Ok(()),
        false => Err(Violation::Result(op.d)),
    }
}

fn block(op: &Op, info: &OpInfo) -> Result<(), Violation> {
    unmodified(op)?;
    for (slot, (source, dwords)) in op.src.into_iter().zip(info.sources).enumerate() {
        match (slot, source.decode()) {
            _ if dwords == 0 => {}
            (1, DecodedSource::Scalar(at)) if at + 2 <= SGPRS + SCALAR_CONSTS => {}
            (1, _) => return Err(Violation::NoScalar(slot)),
            (_, DecodedSource::Vector(_)) => {}
            _ => return Err(Violation::NoVector(slot)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::Lowered;
    use wavesim_asm::{NoSymbols, Options, parse};
    use wavesim_isa::arch::Arch;
    use wavesim_rt::op::Source;
    use wavesim_state::wave::{DISCARD, M0};

    /// Lowers an instruction; returns its operation and the tables.
    fn lowered(text: &str) -> (Op, Lowered) {
        let mut lowered = Lowered::default();
        let inst = parse(text, &Options::new(Arch::Rdna3), &NoSymbols).expect(text).inst;
        lowered.push(Arch::Rdna3, &inst, 0, 0).expect("one instruction");
        (lowered.ops()[0], lowered)
    }

    /// Changes a valid operation and returns the violation that the validator reports.
    fn changed(text: &str, change: impl Fn(&mut Op)) -> Violation {
        let (mut op, lowered) = lowered(text);
        assert_eq!(operation(&op, lowered.pools.consts.len(), &lowered.pools.exts), Ok(()), "{text}");
        change(&mut op);
        operation(&op, lowered.pools.consts.len(), &lowered.pools.exts).expect_err(text)
    }

    fn vector(index: usize) -> Source {
        Source::vector(index).expect("a vector")
    }

    #[test]
    fn codes_are_handlers() {
        assert_eq!(
            changed("v_add_f32 v1, v2, v3", |op| op.code = Op::CODES as u16),
            Violation::Code(Op::CODES as u16)
        );
        assert_eq!(changed("v_add_f32 v1, v2, v3", |op| op.code = u16::MAX), Violation::Code(u16::MAX));
    }

    #[test]
    fn sources_are_in_bounds() {
        let add = "v_add_f32 v1, 0x12345678, v3";
        assert_eq!(changed(add, |op| op.src[0] = vector(CONSTS + 4)), Violation::Pool(0));
        assert_eq!(changed(add, |op| op.src[0] = Source::pool(1)), Violation::Pool(0));
        assert_eq!(changed(add, |op| op.ext = 1), Violation::Ext(1));
        let (mut op, lowered) = lowered(add);
        let mut exts = lowered.pools.exts.clone();
        (op.code, op.src[0]) = (op.code - op.code % Op::VARIANTS as u16, Source::pool(0));
        assert_eq!(operation(&op, 4, &exts), Ok(()));
        exts[0].pool[0] = 4;
        assert_eq!(operation(&op, 4, &exts), Err(Violation::Pool(0)));
        exts[0].pool[0] = u32::MAX;
        assert_eq!(operation(&op, 4, &exts), Err(Violation::Pool(0)));
        exts[0] = Ext { sign_at: [0, 0, 64, 0], ..Ext::default() };
        assert_eq!(operation(&op, 4, &exts), Err(Violation::Ext(0)));
    }

    #[test]
    fn results_are_registers() {
        for at in [STAGE, CONSTS, SCALARS, OPERAND_VECS, u16::MAX as usize] {
            let found = changed("v_add_f32 v1, v2, v3", |op| op.d = at as u16);
            assert_eq!(found, Violation::Result(at as u16));
        }
        assert_eq!(
            changed("v_add_f64 v[2:3], v[4:5], v[6:7]", |op| op.d = STAGE as u16 - 1),
            Violation::Result(STAGE as u16 - 1)
        );
        let found = changed("v_add_f32 v1, v2, v3", |op| op.flags |= Op::SCALAR_DEST);
        assert_eq!(found, Violation::Result(1));
        let (mut op, lowered) = lowered("v_add_f32 v1, v2, v3");
        op.d = DISCARD as u16;
        assert_eq!(operation(&op, 0, &lowered.pools.exts), Ok(()));
        assert_eq!(changed("s_add_u32 s1, s2, s3", |op| op.d = NULL as u16), Violation::Result(NULL as u16));
        assert_eq!(
            changed("s_mov_b64 s[2:3], s[4:5]", |op| op.d = NULL as u16 - 1),
            Violation::Result(NULL as u16 - 1)
        );
    }

    #[test]
    fn fast_handlers_require_unmodified_vectors() {
        let add = "v_add_f32 v1, v2, v3";
        assert_eq!(changed(add, |op| op.src[1] = Source::sgpr(3)), Violation::NoVector(1));
        assert_eq!(changed(add, |op| op.src[1] = Source::SCC), Violation::NoVector(1));
        for flag in [Op::MODIFY, Op::CLAMP, Op::HIGH, Op::OUTPUT, Op::NO_RESULT, Op::BROADCAST] {
            assert_eq!(changed(add, |op| op.flags |= flag), Violation::Modified(flag));
        }
        // A matrix instruction has a single handler variant.
        let matrix = "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]";
        assert_eq!(changed(matrix, |op| op.code += Variant::Fast as u16), Violation::Variant);
        assert_eq!(changed("s_add_u32 s1, s2, s3", |op| op.code += 1), Violation::Variant);
    }

    #[test]
    fn dpp_only_requires_vectors() {
        let add = "v_add_f32_dpp v1, v2, v3 row_shr:1 row_mask:0xf bank_mask:0xf";
        assert_eq!(lowered(add).0.flags & Op::DPP_ONLY, Op::DPP_ONLY);
        assert_eq!(changed(add, |op| op.src[1] = Source::sgpr(3)), Violation::NoVector(1));
        let negated = "v_add_f32_dpp v1, -v2, v3 row_shr:1 row_mask:0xf bank_mask:0xf";
        assert_eq!(lowered(negated).0.flags & Op::DPP_ONLY, 0);
    }

    #[test]
    fn listed_sgprs_have_copies() {
        let add = "v_add_f32 v1, s2, v3";
        let list = |sgprs: [u8; 4]| move |op: &mut Op| op.imm = u32::from_le_bytes(sgprs);
        assert_eq!(changed(add, list([0xff; 4])), Violation::List(0xff));
        assert_eq!(changed(add, list([2, 200, 0xff, 0xff])), Violation::List(200));
        assert_eq!(changed(add, list([2, M0 as u8, 0xff, 0xff])), Violation::List(M0 as u8));
        assert_eq!(changed(add, list([3, 0xff, 0xff, 0xff])), Violation::List(2));
        assert_eq!(changed(add, |op| op.src[0] = vector(SCALARS + 4)), Violation::List(4));
        assert_eq!(changed(add, |op| op.flags &= !Op::BROADCAST), Violation::Modified(0));
    }

    #[test]
    fn scalar_words_are_in_the_file() {
        let add = "s_add_u32 s1, s2, s3";
        assert_eq!(changed(add, |op| op.src[0] = Source::SCC), Violation::NoScalar(0));
        assert_eq!(changed(add, |op| op.src[0] = vector(3)), Violation::NoScalar(0));
        assert_eq!(
            changed(add, |op| op.flags |= Op::OUTPUT),
            Violation::Modified(Op::SCALAR_DEST | Op::OUTPUT)
        );
        let last = Source::scalar_constant(SCALAR_CONSTS - 1, 1).expect("the last");
        assert_eq!(changed("s_mov_b64 s[2:3], s[4:5]", |op| op.src[0] = last), Violation::NoScalar(0));
    }

    #[test]
    fn blocks_have_vectors_and_a_base() {
        let load = "global_load_b32 v1, v0, s[4:5]";
        assert_eq!(changed(load, |op| op.src[0] = Source::sgpr(3)), Violation::NoVector(0));
        assert_eq!(changed(load, |op| op.src[1] = vector(3)), Violation::NoScalar(1));
        assert_eq!(changed(load, |op| op.d = STAGE as u16), Violation::Result(STAGE as u16));
        assert_eq!(
            changed("global_store_b32 v0, v1, s[4:5]", |op| op.src[2] = Source::SCC),
            Violation::NoVector(2)
        );
        assert_eq!(changed(load, |op| op.flags |= Op::NO_RESULT), Violation::Modified(Op::NO_RESULT));
    }

    #[test]
    fn a_program_ends_once() {
        let (op, lowered) = lowered("v_add_f32 v1, v2, v3");
        let check = |ops: &[Op]| program(ops, 0, &lowered.pools.exts);
        assert_eq!(check(&[op, Op::end()]), Ok(()));
        assert_eq!(check(&[]), Err((0, Violation::End)));
        assert_eq!(check(&[op]), Err((0, Violation::End)));
        assert_eq!(check(&[op, Op::end(), Op::end()]), Err((1, Violation::End)));
        assert_eq!(check(&[op, Op { code: u16::MAX, ..op }, Op::end()]), Err((1, Violation::Code(u16::MAX))));
    }
}
