//! Operations of lanes with operands of any kind, by the handler that takes operands as they stand: sources are staged in lane vectors, their
//! modifiers applied, and the operation runs with these for its sources. So there is one function for all of them, not one of each.

use super::context::{Cx, Flow, Handler};
use super::dpp;
use super::modify;
use super::operands::{broadcast, scalar_words, splat};
use super::results::{Out, write_some};
use crate::exec::op::{Op, Source, Variant};
use crate::isa::{OPERATIONS, OpInfo};
use crate::state::wave::{DISCARD, NO_DENORMALS, STAGE, STAGE_VECS, is_denormal};
use crate::state::{Half, LaneVec};

/// [`Variant::General`] of operations whose fast handler does all that follows staging (`isa_lower::ir::Handlers::by_fast`).
///
/// # Safety
/// As for [`Handler`], on a host with AVX2.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
pub unsafe fn general(cx: &mut Cx<'_>, op: &Op) -> Flow {
    const FAST: usize = Variant::Fast as usize - Variant::General as usize;
    // SAFETY: O1; by the contract.
    unsafe {
        let body = *cx.narrow.get_unchecked(op.code as usize + FAST);
        // Jumps to functions of their own: what moves lanes alone needs less of a frame.
        if op.flags & Op::MOVED != 0 { moved(cx, op, body) } else { modified(cx, op, body) }
    }
}

/// # Safety
/// As for [`staged`], on a host with AVX2.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[inline(never)]
unsafe fn modified(cx: &mut Cx<'_>, op: &Op, body: Handler) -> Flow {
    // SAFETY: by the contract.
    unsafe { staged::<true>(cx, op, body) }
}

/// [`staged`] for [`Op::MOVED`]: only the first source is staged.
///
/// # Safety
/// As for [`staged`], on a host with AVX2.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[inline(never)]
unsafe fn moved(cx: &mut Cx<'_>, op: &Op, body: Handler) -> Flow {
    let ext = cx.raw(op);
    let Some(moves) = &ext.dpp else { return Flow::UNKNOWN };
    let (first, dwords) = (op.src[0].number() as usize, 1 + (ext.sign_at[0] == 63) as usize);
    let by_exec = dpp::depends_on_exec(cx, moves);
    let rare = by_exec || moves.across.is_some();
    let mut plain = *op;
    plain.flags &= !Op::MODIFY;
    plain.src[0] = Source::staged(0);
    for half in 0..cx.wave.halves() {
        let file = cx.wave.half(half);
        cx.file = file;
        // SAFETY: by the contract; O8 and W1.
        unsafe {
            let exec = file.exec();
            let mut active = exec & !moves.disabled[half & 1];
            if !moves.bound {
                active &= dpp::with_source(cx, moves, half, by_exec);
            }
            for k in 0..dwords {
                if rare {
                    dpp::stage(cx, moves, half, first + k, STAGE + k, by_exec);
                } else {
                    *file.at(STAGE + k) = dpp::permuted::<true>(&*file.at(first + k), &moves.from);
                    // Zeros are no denormals.
                    file.set_no_denormals(STAGE + k, file.flags(first + k) & NO_DENORMALS != 0);
                }
            }
            let narrowed = active != exec;
            if narrowed {
                file.set_exec(active);
            }
            let flow = body(cx, &plain);
            debug_assert!(flow == Flow::NEXT);
            if narrowed {
                // Of the registers, which the operation may have written.
                cx.wave.rebuild_mask(half);
            }
        }
    }
    Flow::NEXT
}

/// Any variant of such an operation on any host; `body` is its handler for the half that the context is at, and for operands as they stand.
///
/// # Safety
/// As for [`Handler`].
pub unsafe fn any_variant(cx: &mut Cx<'_>, op: &Op, body: Handler) -> Flow {
    if op.code as usize % Op::VARIANTS == Variant::General as usize {
        // SAFETY: by the contract.
        return unsafe { staged::<false>(cx, op, body) };
    }
    if op.flags & Op::BROADCAST != 0 {
        broadcast(cx, op);
    }
    for half in 0..cx.wave.halves() {
        cx.file = cx.wave.half(half);
        // SAFETY: O4; by the contract.
        let flow = unsafe { body(cx, op) };
        debug_assert!(flow == Flow::NEXT);
    }
    Flow::NEXT
}

/// Stages the sources, and runs the operation with them, half by half.
///
/// # Safety
/// As for [`Handler`], of an operation of lanes; `AVX2` only if the host has it. `body` is its handler for one half and operands as they
/// stand, which gives [`Flow::NEXT`].
#[inline(always)]
unsafe fn staged<const AVX2: bool>(cx: &mut Cx<'_>, op: &Op, body: Handler) -> Flow {
    let Some(info) = OPERATIONS.get(op.code as usize / Op::VARIANTS) else { return Flow::UNKNOWN };
    let halves = cx.wave.halves();
    let mut plain = Op { flags: op.flags & !(Op::MODIFY | Op::BROADCAST), ..*op };
    // For both halves before either runs: a mask result of one may be a source of the other.
    for (slot, dwords) in info.sources.into_iter().enumerate() {
        if dwords > 0 && !op.src[slot].is_vector() {
            let words = scalar_words(cx, op.src[slot], dwords as usize);
            let words = &words[..(dwords as usize).min(STAGE_VECS)];
            plain.src[slot] = Source::staged(slot);
            for half in 0..halves {
                let (file, at) = (cx.wave.half(half), STAGE + STAGE_VECS * slot);
                // SAFETY: W1: the staged sources are part of every file; `AVX2` by the contract. A fast handler may ask for the flags.
                unsafe {
                    splat::<AVX2>(file.at(at), words);
                    for (k, value) in words.iter().enumerate() {
                        file.set_no_denormals(at + k, !is_denormal(*value));
                    }
                }
            }
        }
    }
    let exec = cx.wave.exec();
    let mut active = [exec as u32, (exec >> 32) as u32];
    if op.flags & Op::MODIFY != 0 {
        let sources = plain.src;
        for (half, active) in active.iter_mut().enumerate().take(halves) {
            let (file, lanes) = (cx.wave.half(half), modify::lanes(cx, op, half, *active));
            *active = lanes.active;
            for (slot, dwords) in info.sources.into_iter().enumerate() {
                let vecs = file.at(sources[slot].number() as usize);
                // SAFETY: O2: the source is a lane vector, in place or staged above.
                if dwords > 0 && unsafe { modify::source::<AVX2>(cx, op, slot, half, lanes, vecs) } {
                    plain.src[slot] = Source::staged(slot);
                }
            }
        }
    }
    // The half that is written first must not be a part of the mask that the other half reads.
    let second_word = op.src[3].number() + 1;
    let backward = op.src[3].is_scalar() && (op.d1 == second_word || info.result == 0 && op.d == second_word);
    for turn in 0..halves {
        let half = if backward { halves - 1 - turn } else { turn };
        // SAFETY: by the contract; O2 to O4 hold of the staged operation.
        unsafe { one_half(cx, op, info, &mut plain, half, active[half], body) };
    }
    Flow::NEXT
}

/// Runs a staged operation in one half.
///
/// # Safety
/// As for [`staged`].
#[inline(always)]
unsafe fn one_half(
    cx: &mut Cx<'_>,
    op: &Op,
    info: &OpInfo,
    plain: &mut Op,
    half: usize,
    active: u32,
    body: Handler,
) {
    let file = cx.wave.half(half);
    cx.file = file;
    // SAFETY: W1; by the contract.
    unsafe {
        let narrowed = active != file.exec();
        if narrowed {
            file.set_exec(active);
        }
        let flow = match info.output {
            Some(kind) if op.flags & Op::OUTPUT != 0 => {
                with_output(cx, op, plain, (kind, info.result as usize), file, body)
            }
            _ => body(cx, plain),
        };
        debug_assert!(flow == Flow::NEXT);
        if narrowed {
            // Of the registers, which the operation may have written.
            cx.wave.rebuild_mask(half);
        }
    }
}

/// Runs a staged operation with a hidden result, and writes that after output modifiers.
///
/// # Safety
/// As for [`staged`]; the file is that of the half.
#[inline(never)]
unsafe fn with_output(
    cx: &mut Cx<'_>,
    op: &Op,
    plain: &mut Op,
    (kind, dwords): (Out, usize),
    file: Half,
    body: Handler,
) -> Flow {
    const { assert!(STAGE_VECS == 4, "as many as a result has, and are discarded") };
    let (dwords, d) = (dwords.min(STAGE_VECS), op.d as usize);
    let mut vecs = [LaneVec::ZERO; STAGE_VECS];
    // SAFETY: O3 and W1: the result and what is discarded are in the file; nothing else refers to them.
    unsafe {
        // The body may read what the result was.
        for k in 0..dwords {
            *file.at(DISCARD + k) = *file.at(d + k);
            file.set_no_denormals(DISCARD + k, false);
        }
        plain.d = DISCARD as u16;
        let flow = body(cx, plain);
        for (k, vec) in vecs.iter_mut().enumerate().take(dwords) {
            *vec = *file.at(DISCARD + k);
        }
        write_some(cx, file, op, file.exec(), kind, &mut vecs[..dwords]);
        flow
    }
}
