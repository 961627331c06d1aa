//! Execution of vector instructions while MODE offsets or extends the numbers of their VGPRs, or skips them
//! (CDNA 3 and 4 manuals, *VGPR Indexing* and S_SETVSKIP; CDNA 5 manual, *Waves with up to 1024 VGPRs*). These modes have a handler table of their own, so that other handlers need not
//! test for them.

use super::context::{Cx, Flow};
use crate::op::{Msb, Op, Source};
use wavesim_isa::arch::Arch;
use wavesim_isa::relative::{self, GPR_IDX_EN, VSKIP};
use wavesim_state::event::Event;
use wavesim_state::fault::FaultKind;
use wavesim_state::wave::{ALL_VGPRS, M0, VGPRS};

/// Runs an operation with its regular handler, after offsetting its VGPRs as MODE requires.
///
/// # Safety
/// As for [`super::Handler`].
pub unsafe fn by_mode(cx: &mut Cx<'_>, op: &Op) -> Flow {
    let info = cx.raw(op).by_mode;
    let handler = cx.by_arithmetic(cx.wave.size() == 64)[op.code as usize];
    if cx.wave.mode & VSKIP != 0 && info.vector {
        return Flow::NEXT;
    }
    let msbs = cx.arch.facts().vgprs.msbs;
    if !msbs && cx.wave.mode & GPR_IDX_EN == 0 {
        // SAFETY: the caller upholds the contract of `Handler`.
        return unsafe { handler(cx, op) };
    }
    let plain = cx.op;
    let moved =
        if msbs { extended(op, info.msbs, cx.wave.mode, cx.arch) } else { resolved(cx, op, info.vgprs) };
    match moved {
        Ok(moved) => {
            // SAFETY: `Cx::op` refers to `moved` only until the handler returns.
            cx.op = unsafe { &*std::ptr::from_ref(&moved) };
            // SAFETY: the caller upholds the contract of `Handler`. The new registers are VGPRs that the wave
            // has, as the original ones were (O2 to O4).
            let flow = unsafe { handler(cx, &moved) };
            cx.op = plain;
            flow
        }
        Err(e) => cx.fault(Event::fault(FaultKind::IllegalInstruction, e.to_string())),
    }
}

/// Returns an operation with the numbers of its VGPRs extended by the bits in MODE, given its [`ByMode::msbs`].
///
/// # Errors
/// A register is beyond the last one.
///
/// [`ByMode::msbs`]: crate::op::ByMode::msbs
pub fn extended(op: &Op, msbs: [Msb; 5], mode: u32, arch: Arch) -> Result<Op, relative::OutOfRange> {
    let (mut out, most) = (*op, arch.facts().vgprs.most());
    for (slot, msb) in msbs.into_iter().enumerate().filter(|(_, msb)| msb.position > 0) {
        let from = op.src.get(slot).map_or(op.d, |source| source.number());
        // A source that was copied to the temporary vector is no longer a VGPR.
        if from as usize >= ALL_VGPRS {
            continue;
        }
        let to = relative::extended(from as u32, msb.dwords, mode, msb.position, most)? as u16;
        match out.src.get_mut(slot) {
            Some(source) => *source = Source::vgpr(to),
            None => out.d = to,
        }
    }
    Ok(out)
}

fn resolved(cx: &Cx<'_>, op: &Op, dwords: [u8; 4]) -> Result<Op, relative::OutOfRange> {
    let (mut out, m0, count) = (*op, cx.wave.sgprs[M0], cx.wave.vgpr_count().min(VGPRS as u32));
    for (slot, dwords) in dwords.into_iter().enumerate().filter(|(_, dwords)| *dwords > 0) {
        let Some(index) = relative::index(cx.wave.mode, m0, 12 + slot as u32) else { continue };
        let from = op.src.get(slot).filter(|_| slot < 3).map_or(op.d, |source| source.number());
        // A source that was copied to the temporary vector is no longer a VGPR.
        if from as usize >= VGPRS {
            continue;
        }
        let to = relative::offset(from as u32, dwords, index, count)? as u16;
        match slot {
            3 => out.d = to,
            _ => out.src[slot] = Source::vgpr(to),
        }
    }
    Ok(out)
}
