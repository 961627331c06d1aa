//! Turns of other waves, where one waits at a barrier.

use super::{
    CHAIN, Flow, Form, Frame, OVER, OfWave, ResumePoint, SWITCHED, TURN, called, run_handlers, take_exec,
};
use crate::kept::OfWaves;
use isa_spec::pcode::ir::Control;
use wavesim_engine::interp::{self, BarrierScheduler, Next};
use wavesim_machine::exec::machine_ops::{Event, barrier};
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::rt::Cx;
use wavesim_machine::state::{Wave, Workgroup};

/// The waves as `Waves::ring` gives them.
pub(super) enum Turns {
    /// It has not been asked, or the context has had another wave since.
    Unknown,
    /// It gives none.
    None,
    Ring {
        ring: BarrierScheduler,
        /// The wave whose turn it is is not in the context yet.
        behind: bool,
    },
}

called! {
    /// [`run_handlers`]; where a wave stops for an event that is not a fault, another one has its turn. [`TURN`] if code goes on with that, at
    /// [`Frame::entry`].
    ///
    /// # Safety
    /// As for [`run_handlers`].
    pub unsafe fn run_turn(frame: *mut Frame, op: *const Op, count: u32) -> u32 {
        // SAFETY: by the contract, and that of `enter`.
        unsafe {
            let flow = run_handlers(frame, op, count);
            if flow != Flow::EVENT.0 {
                return flow;
            }
            end_turn(frame)
        }
    }
}

/// After an operation has given an event: another wave's turn, unless it is a fault.
///
/// # Safety
/// As for [`run_handlers`].
unsafe fn end_turn(frame: *mut Frame) -> u32 {
    // SAFETY: by the contract, and that of `enter`.
    unsafe {
        let cx = Frame::cx(frame);
        let (program, op) = (&*(*frame).program, &*(*frame).op);
        let Some(event) = cx.event.take_if(|event| !matches!(event, Event::Fault(_))) else {
            return Flow::EVENT.0;
        };
        let before = cx.instructions;
        cx.instructions = (*frame).base.wrapping_add(op.complete() as u64);
        (*frame).turns = Turns::Unknown;
        match interp::switch_wave(cx, program, event, &mut *(*frame).waves) {
            Next::Event(event) => {
                (cx.event, cx.instructions) = (Some(event), before);
                return Flow::EVENT.0;
            }
            Next::None => return OVER.0,
            Next::Wave(end) => (*frame).end = end,
        }
        resume(frame, &raw mut *cx.wave)
    }
}

called! {
    /// Runs an operation that is a barrier and nothing else. `complete`: instructions of the program up to it; `pc`: of the next one.
    /// Otherwise as [`run_turn`].
    ///
    /// # Safety
    /// As for [`run_handlers`].
    pub unsafe fn meet(frame: *mut Frame, op: *const Op, complete: u32, pc: u32) -> u32 {
        // SAFETY: by the contract.
        unsafe { wait_by(frame, op, [complete, pc], Control::Barrier, 0) }
    }
}

called! {
    /// As [`meet`], of an operation that waits for the barrier of a number and does nothing else.
    ///
    /// # Safety
    /// As for [`run_handlers`].
    pub unsafe fn wait(frame: *mut Frame, op: *const Op, complete: u32, pc: u32, number: u32) -> u32 {
        // SAFETY: by the contract.
        unsafe { wait_by(frame, op, [complete, pc], Control::BarrierWait, number) }
    }
}

/// What the handler of an operation does that has this builtin alone, then as [`run_turn`].
///
/// # Safety
/// As for [`run_handlers`].
#[inline(always)]
unsafe fn wait_by(
    frame: *mut Frame,
    op: *const Op,
    [complete, pc]: [u32; 2],
    builtin: Control,
    number: u32,
) -> u32 {
    // SAFETY: by the contract, and that of `enter`. The context may be behind: its wave is not used before it has caught up.
    unsafe {
        let (cx, wave): (*mut Cx<'_>, _) = ((*frame).cx.cast(), (*frame).wave.wave());
        // Nothing is called from here that returns: there are no registers to save.
        let Turns::Ring { ring, behind } = &mut (*frame).turns else {
            return wait_slowly(frame, op, [complete, pc], builtin, number);
        };
        if (*wave).exec() != (*frame).wave.masked {
            return wait_slowly(frame, op, [complete, pc], builtin, number);
        }
        let group: *mut Workgroup = (*cx).workgroup;
        let waits = match barrier(&mut *wave, &mut *group, builtin, number) {
            Ok(_) => return Flow::NEXT.0,
            Err(Event::BarrierWait(waits)) => waits,
            Err(event) => return stop(frame, op, event),
        };
        let count = (*frame).base.wrapping_add(complete as u64);
        (*cx).instructions = count;
        (*wave).pc = pc as u64;
        let Some((wave, end)) = ring.wait(waits, &*group, count) else { return OVER.0 };
        (*behind, (*frame).end) = (true, end);
        // One that has run in this frame is in a mode that its code is for: what changes the mode ends the code.
        let Some((of, kept)) = OfWaves::get((*frame).known, wave, (*wave).id) else {
            return resume(frame, wave);
        };
        let pc = (*wave).pc;
        if (*frame).resumed[0].pc != pc {
            if (*frame).resumed[1].pc != pc {
                return resume(frame, wave);
            }
            (*frame).resumed.swap(0, 1);
        }
        let ResumePoint { number, entry, .. } = (*frame).resumed[0];
        (*frame).entry = entry;
        (*frame).base = count.wrapping_sub(number as u64);
        (*frame).wave = OfWave { kept, masked: (*wave).exec(), ..of };
        TURN.0
    }
}

/// [`wait_by`], after what it takes for granted has been seen to.
///
/// # Safety
/// As for [`run_handlers`].
#[inline(never)]
unsafe fn wait_slowly(
    frame: *mut Frame,
    op: *const Op,
    counts: [u32; 2],
    builtin: Control,
    number: u32,
) -> u32 {
    // SAFETY: by the contract.
    unsafe {
        let wave = (*frame).wave.wave();
        take_exec(frame, &mut *wave);
        if is_ring(frame) {
            return wait_by(frame, op, counts, builtin, number);
        }
        let cx: *mut Cx<'_> = (*frame).cx.cast();
        match barrier(&mut *wave, (*cx).workgroup, builtin, number) {
            Ok(_) => Flow::NEXT.0,
            Err(event) => stop(frame, op, event),
        }
    }
}

/// An operation gave an event.
///
/// # Safety
/// As for [`run_handlers`].
#[cold]
#[inline(never)]
unsafe fn stop(frame: *mut Frame, op: *const Op, event: Event) -> u32 {
    // SAFETY: by the contract.
    unsafe {
        let cx = Frame::cx(frame);
        (cx.op, cx.event, (*frame).op) = (&*op, Some(event), op);
        end_turn(frame)
    }
}

/// Whether waves may take turns by [`BarrierScheduler`].
///
/// # Safety
/// As for [`run_handlers`].
#[inline(always)]
unsafe fn is_ring(frame: *mut Frame) -> bool {
    // SAFETY: by the contract.
    unsafe {
        if let Turns::Unknown = (*frame).turns {
            ask_ring(frame);
        }
        matches!((*frame).turns, Turns::Ring { .. })
    }
}

/// # Safety
/// As for [`run_handlers`].
#[cold]
#[inline(never)]
unsafe fn ask_ring(frame: *mut Frame) {
    // SAFETY: by the contract.
    unsafe {
        (*frame).turns = match (*(*frame).waves).barrier_scheduler() {
            Some(ring) => Turns::Ring { ring, behind: false },
            None => Turns::None,
        };
    }
}

/// [`TURN`] or [`CHAIN`] if a wave resumes in code, at its PC. The context has it, or is behind.
///
/// # Safety
/// As for [`run_handlers`].
#[inline(never)]
unsafe fn resume(frame: *mut Frame, wave: *mut Wave) -> u32 {
    // SAFETY: by the contract, and that of `enter`.
    unsafe {
        let Some((number, flow)) = find_entry(frame, wave) else { return SWITCHED.0 };
        let cx: *mut Cx<'_> = (*frame).cx.cast();
        (*frame).base = (*cx).instructions.wrapping_sub(number as u64);
        (*frame).wave = match OfWaves::get((*frame).known, wave, (*wave).id) {
            Some((of, kept)) => OfWave { kept, masked: (*wave).exec(), ..of },
            None => OfWave::new(Frame::cx(frame), (*frame).known),
        };
        flow.0
    }
}

/// Sets where a wave resumes that is in the context, or will be. Gives the number of the operation there, and [`TURN`], or [`CHAIN`]
/// if that is other code; nothing, if there is none.
///
/// # Safety
/// As for [`run_handlers`].
unsafe fn find_entry(frame: *mut Frame, wave: *mut Wave) -> Option<(u32, Flow)> {
    // SAFETY: by the contract.
    unsafe {
        let (pc, wide) = ((*wave).pc, (*wave).halves() == 2);
        let program = &*(*frame).program;
        let next = program.op_at(pc)?;
        let (code, entry) = (&(*(*frame).places)).get(program.index_of(next))?.trusted_code()?;
        let same = (*wave).mode == (*frame).mode && wide == (*frame).form.wide;
        if !same && Form::of(Frame::cx(frame)) != Some((*frame).form) {
            return None;
        }
        let resumed = ResumePoint { pc, number: next.number, entry };
        let flow = if code as usize == (*frame).code as usize {
            (*frame).resumed = [resumed, (*frame).resumed[0]];
            TURN
        } else {
            (*frame).resumed = [resumed, ResumePoint::NOWHERE];
            CHAIN
        };
        ((*frame).code, (*frame).entry) = (code, entry);
        Some((next.number, flow))
    }
}
