//! Execution of lane operations with operands of any kind by the fast handler: sources are staged in lane
//! vectors, modifiers are applied, and the operation runs with the staged sources. So one function serves all
//! operations.

use super::context::{Cx, Flow, Handler};
use super::dpp;
use super::modify;
use super::operands::{broadcast, scalar_words, splat};
use super::results::{Out, write_some};
use crate::op::{Op, Source, Variant};
use crate::operations::{OPERATIONS, OpInfo};
use wavesim_state::wave::{DISCARD, NO_DENORMALS, STAGE, STAGE_VECS, is_denormal};
use wavesim_state::{Half, LaneVec};

/// [`Variant::General`] of operations whose fast handler does everything after staging
/// (`isa_lower::ir::Handlers::general_uses_fast`).
///
/// # Safety
/// As for [`Handler`], on a host with AVX2.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
pub unsafe fn general(cx: &mut Cx<'_>, op: &Op) -> Flow {
    const FAST: usize = Variant::Fast as usize - Variant::General as usize;
    // SAFETY: the code is in bounds (O1); the caller upholds the contract of `Handler`, on a host with AVX2.
    unsafe {
        let body = *cx.narrow.get_unchecked(op.code as usize + FAST);
        // These are separate functions because `with_dpp` needs a smaller stack frame.
        if op.flags & Op::DPP_ONLY != 0 { with_dpp(cx, op, body) } else { with_modifiers(cx, op, body) }
    }
}

/// Runs [`staged`] out of line.
///
/// # Safety
/// As for [`staged`], on a host with AVX2.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[inline(never)]
unsafe fn with_modifiers(cx: &mut Cx<'_>, op: &Op, body: Handler) -> Flow {
    // SAFETY: the caller upholds the same contract, on a host with AVX2.
    unsafe { staged::<true>(cx, op, body) }
}

/// [`staged`] for [`Op::DPP_ONLY`]: stages only the first source.
///
/// # Safety
/// As for [`staged`], on a host with AVX2.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[inline(never)]
unsafe fn with_dpp(cx: &mut Cx<'_>, op: &Op, body: Handler) -> Flow {
    let ext = cx.raw(op);
    let Some(moves) = &ext.dpp else { return Flow::UNKNOWN };
    let (first, dwords) = (op.src[0].number() as usize, 1 + (ext.sign_at[0] == 63) as usize);
    let by_exec = dpp::depends_on_exec(cx, moves);
    let slow = by_exec || moves.across.is_some();
    let mut plain = *op;
    plain.flags &= !Op::MODIFY;
    plain.src[0] = Source::staged(0);
    for half in 0..cx.wave.halves() {
        let file = cx.wave.half(half);
        cx.file = file;
        // SAFETY: the sources are lane vectors (O8) of a file that belongs to the wave (W1); the caller
        // upholds the contract of `staged`, on a host with AVX2.
        unsafe {
            let exec = file.exec();
            let mut active = exec & !moves.disabled[half & 1];
            if !moves.bound {
                active &= dpp::with_source(cx, moves, half, by_exec);
            }
            for k in 0..dwords {
                if slow {
                    dpp::stage(cx, moves, half, first + k, STAGE + k, by_exec);
                } else {
                    *file.at(STAGE + k) = dpp::permuted::<true>(&*file.at(first + k), &moves.from);
                    // The zeros of lanes without a source are not denormal.
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
                // From the EXEC registers, which the operation may have written.
                cx.wave.rebuild_mask(half);
            }
        }
    }
    Flow::NEXT
}

/// Runs any variant of such an operation on any host; `body` is its fast handler for the context's half.
///
/// # Safety
/// As for [`Handler`].
pub unsafe fn any_variant(cx: &mut Cx<'_>, op: &Op, body: Handler) -> Flow {
    if op.code as usize % Op::VARIANTS == Variant::General as usize {
        // SAFETY: the caller upholds the contract of `Handler`.
        return unsafe { staged::<false>(cx, op, body) };
    }
    if op.flags & Op::BROADCAST != 0 {
        broadcast(cx, op);
    }
    for half in 0..cx.wave.halves() {
        cx.file = cx.wave.half(half);
        // SAFETY: the operation is a fast one (O4); the caller upholds the contract of `Handler`.
        let flow = unsafe { body(cx, op) };
        debug_assert!(flow == Flow::NEXT);
    }
    Flow::NEXT
}

/// Stages the sources and runs the operation with them, half by half.
///
/// # Safety
/// As for [`Handler`], for a lane operation; `AVX2` is set only if the host has it. `body` is the operation's
/// fast handler for one half, which returns [`Flow::NEXT`].
#[inline(always)]
unsafe fn staged<const AVX2: bool>(cx: &mut Cx<'_>, op: &Op, body: Handler) -> Flow {
    let Some(info) = OPERATIONS.get(op.code as usize / Op::VARIANTS) else { return Flow::UNKNOWN };
    let halves = cx.wave.halves();
    let mut plain = Op { flags: op.flags & !(Op::MODIFY | Op::BROADCAST), ..*op };
    // Stage for both halves before either runs, because a mask result of one half may be a source of the
    // other.
    for (slot, dwords) in info.sources.into_iter().enumerate() {
        if dwords > 0 && !op.src[slot].is_vector() {
            let words = scalar_words(cx, op.src[slot], dwords as usize);
            let words = &words[..(dwords as usize).min(STAGE_VECS)];
            plain.src[slot] = Source::staged(slot);
            for half in 0..halves {
                let (file, at) = (cx.wave.half(half), STAGE + STAGE_VECS * slot);
                // SAFETY: the staging vectors are part of every file (W1); the caller guarantees AVX2 if it
                // is set. The flags are kept up to date for fast handlers.
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
                // SAFETY: the source is a lane vector, original or staged above (O2).
                if dwords > 0 && unsafe { modify::source::<AVX2>(cx, op, slot, half, lanes, vecs) } {
                    plain.src[slot] = Source::staged(slot);
                }
            }
        }
    }
    // The half that runs first must not overwrite part of the mask that the other half reads.
    let second_word = op.src[3].number() + 1;
    let backward = op.src[3].is_scalar() && (op.d1 == second_word || info.result == 0 && op.d == second_word);
    for turn in 0..halves {
        let half = if backward { halves - 1 - turn } else { turn };
        // SAFETY: the caller upholds the same contract; the staged operation satisfies O2 to O4.
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
    // SAFETY: the file belongs to the wave (W1); the caller upholds the same contract.
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
            // From the EXEC registers, which the operation may have written.
            cx.wave.rebuild_mask(half);
        }
    }
}

/// Runs a staged operation with a hidden destination, then writes the result after output modifiers.
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
    // SAFETY: the result and the discarded vectors are inside the file (O3, W1), and nothing else refers to
    // them.
    unsafe {
        // The semantics may read the old destination.
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
