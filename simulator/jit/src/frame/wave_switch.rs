//! Switches to other waves when a wave ends or waits at a barrier.

use super::{
    CHAIN, CodeMode, Flow, Frame, OVER, RESUME, ResumePoint, SWITCHED, WavePointers, called, run_handlers,
    sync_lane_masks,
};
use crate::wave_cache::WaveCaches;
use isa_spec::pcode::ir::Control;
use wavesim_engine::interp::{self, BarrierScheduler, Next};
use wavesim_machine::exec::machine_ops::{Event, barrier};
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::rt::Cx;
use wavesim_machine::state::{Wave, Workgroup};

/// The availability of a [`BarrierScheduler`] of waves.
pub(super) enum SchedulerState {
    /// It has not been queried, or the context has switched waves since.
    Unknown,
    /// The waves provide no scheduler.
    None,
    Shared {
        scheduler: BarrierScheduler,
        /// The context still has an earlier wave than the current one.
        stale: bool,
    },
}

called! {
    /// As [`run_handlers`], but if the wave stops for an event that is not a fault, another wave runs.
    /// Returns [`RESUME`] if code continues with that wave at [`Frame::entry`].
    ///
    /// # Safety
    /// As for [`run_handlers`].
    pub unsafe fn run_and_switch(frame: *mut Frame, op: *const Op, count: u32) -> u32 {
        // SAFETY: the contract, and that of `enter`, guarantee a valid frame.
        unsafe {
            let flow = run_handlers(frame, op, count);
            if flow != Flow::EVENT.0 {
                return flow;
            }
            switch_wave(frame)
        }
    }
}

/// Handles an event of an operation: switches to another wave, unless the event is a fault.
///
/// # Safety
/// As for [`run_handlers`].
unsafe fn switch_wave(frame: *mut Frame) -> u32 {
    // SAFETY: the contract, and that of `enter`, guarantee a valid frame, context and program.
    unsafe {
        let cx = Frame::cx(frame);
        let (program, op) = (&*(*frame).program, &*(*frame).op);
        let Some(event) = cx.event.take_if(|event| !matches!(event, Event::Fault(_))) else {
            return Flow::EVENT.0;
        };
        let before = cx.instructions;
        cx.instructions = (*frame).base.wrapping_add(op.complete() as u64);
        (*frame).scheduler = SchedulerState::Unknown;
        match interp::switch_wave(cx, program, event, &mut *(*frame).waves) {
            Next::Event(event) => {
                (cx.event, cx.instructions) = (Some(event), before);
                return Flow::EVENT.0;
            }
            Next::None => return OVER.0,
            Next::Wave(end) => (*frame).end = end,
            Next::Workgroup(end) => {
                (*frame).end = end;
                WaveCaches::forget_facts((*frame).wave_caches);
            }
        }
        resume(frame, &raw mut *cx.wave)
    }
}

called! {
    /// Runs an operation that only ends the wave. `complete` and `pc` are as for [`arrive_at_barrier`]. Returns a flow
    /// as [`run_and_switch`] does.
    ///
    /// # Safety
    /// As for [`run_handlers`].
    pub unsafe fn end_wave(frame: *mut Frame, op: *const Op, complete: u32, pc: u32) -> u32 {
        // SAFETY: the contract guarantees a valid frame, wave, context and operation. The context may be stale; its
        // wave is not used before `Frame::cx` has synchronised it.
        unsafe {
            let (cx, wave): (*mut Cx<'_>, _) = ((*frame).cx.cast(), (*frame).wave.wave());
            if (*wave).exec() != (*frame).wave.mask_exec {
                sync_lane_masks(frame, &mut *wave);
            }
            let group: *mut Workgroup = (*cx).workgroup;
            if (*group).live() == 1 || !has_ring(frame) {
                return handle_event(frame, op, Event::EndPgm);
            }
            let SchedulerState::Shared { scheduler, stale } = &mut (*frame).scheduler else {
                return handle_event(frame, op, Event::EndPgm);
            };
            let count = (*frame).base.wrapping_add(complete as u64);
            (*cx).instructions = count;
            (*wave).pc = pc as u64;
            let Some((wave, end)) = scheduler.end((*wave).joined, &mut *group, count) else { return OVER.0 };
            (*stale, (*frame).end) = (true, end);
            // A wave that starts may have other bits of MODE that extend VGPR numbers than one at the same PC.
            if (*frame).tracked_mode != 0 { resume(frame, wave) } else { run_next(frame, wave, count) }
        }
    }
}

called! {
    /// Runs an operation that is only a barrier. `complete`: the number of instructions up to and including
    /// it; `pc`: the PC of the next one. Returns a flow as [`run_and_switch`] does.
    ///
    /// # Safety
    /// As for [`run_handlers`].
    pub unsafe fn arrive_at_barrier(frame: *mut Frame, op: *const Op, complete: u32, pc: u32) -> u32 {
        // SAFETY: the contract is that of `barrier_op`.
        unsafe { barrier_op(frame, op, [complete, pc], Control::Barrier, 0) }
    }
}

called! {
    /// As [`arrive_at_barrier`], for an operation that only waits for a numbered barrier.
    ///
    /// # Safety
    /// As for [`run_handlers`].
    pub unsafe fn wait_for_barrier(
        frame: *mut Frame,
        op: *const Op,
        complete: u32,
        pc: u32,
        number: u32,
    ) -> u32 {
        // SAFETY: the contract is that of `barrier_op`.
        unsafe { barrier_op(frame, op, [complete, pc], Control::BarrierWait, number) }
    }
}

/// Executes an operation that consists of this builtin only. Returns a flow as [`run_and_switch`] does.
///
/// # Safety
/// As for [`run_handlers`].
#[inline(always)]
unsafe fn barrier_op(
    frame: *mut Frame,
    op: *const Op,
    [complete, pc]: [u32; 2],
    builtin: Control,
    number: u32,
) -> u32 {
    // SAFETY: the contract, and that of `enter`, guarantee a valid frame. The context may be stale; its wave
    // is not used before `Frame::cx` has synchronised it.
    unsafe {
        let (cx, wave): (*mut Cx<'_>, _) = ((*frame).cx.cast(), (*frame).wave.wave());
        // Out-of-line calls from here on are tail calls, so that no registers must be saved.
        let SchedulerState::Shared { scheduler, stale } = &mut (*frame).scheduler else {
            return barrier_slow_path(frame, op, [complete, pc], builtin, number);
        };
        if (*wave).exec() != (*frame).wave.mask_exec {
            return barrier_slow_path(frame, op, [complete, pc], builtin, number);
        }
        let group: *mut Workgroup = (*cx).workgroup;
        let waits = match barrier(&mut *wave, &mut *group, builtin, number) {
            Ok(_) => return Flow::NEXT.0,
            Err(Event::BarrierWait(waits)) => waits,
            Err(event) => return handle_event(frame, op, event),
        };
        let count = (*frame).base.wrapping_add(complete as u64);
        (*cx).instructions = count;
        (*wave).pc = pc as u64;
        let Some((wave, end)) = scheduler.wait(waits, &*group, count) else { return OVER.0 };
        (*stale, (*frame).end) = (true, end);
        run_next(frame, wave, count)
    }
}

/// Runs a wave that the scheduler has chosen, while the context is stale; `count` instructions have been executed.
/// Returns a flow as [`run_and_switch`] does.
///
/// # Safety
/// As for [`run_handlers`].
#[inline(always)]
unsafe fn run_next(frame: *mut Frame, wave: *mut Wave, count: u64) -> u32 {
    // SAFETY: the contract guarantees a valid frame and wave.
    unsafe {
        // A wave that has run in this frame has a mode that the code is specialised for: operations that
        // change to another one leave the code.
        let Some((pointers, cache)) = WaveCaches::get((*frame).wave_caches, wave, (*wave).id) else {
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
        (*cache).enter_unit((*frame).code as usize);
        (*frame).wave = WavePointers { cache, mask_exec: (*wave).exec(), ..pointers };
        RESUME.0
    }
}

/// The slow path of [`barrier_op`]: establishes its preconditions first.
///
/// # Safety
/// As for [`run_handlers`].
#[inline(never)]
unsafe fn barrier_slow_path(
    frame: *mut Frame,
    op: *const Op,
    counts: [u32; 2],
    builtin: Control,
    number: u32,
) -> u32 {
    // SAFETY: the contract guarantees a valid frame, wave and context.
    unsafe {
        let wave = (*frame).wave.wave();
        sync_lane_masks(frame, &mut *wave);
        if has_ring(frame) {
            return barrier_op(frame, op, counts, builtin, number);
        }
        let cx: *mut Cx<'_> = (*frame).cx.cast();
        match barrier(&mut *wave, (*cx).workgroup, builtin, number) {
            Ok(_) => Flow::NEXT.0,
            Err(event) => handle_event(frame, op, event),
        }
    }
}

/// Records an event of an operation and handles it.
///
/// # Safety
/// As for [`run_handlers`].
#[inline(never)]
unsafe fn handle_event(frame: *mut Frame, op: *const Op, event: Event) -> u32 {
    // SAFETY: the contract guarantees a valid frame and operation.
    unsafe {
        let cx = Frame::cx(frame);
        (cx.op, cx.event, (*frame).op) = (&*op, Some(event), op);
        switch_wave(frame)
    }
}

/// Returns whether waves can be switched by a [`BarrierScheduler`].
///
/// # Safety
/// As for [`run_handlers`].
#[inline(always)]
unsafe fn has_ring(frame: *mut Frame) -> bool {
    // SAFETY: the contract guarantees a valid frame.
    unsafe {
        if let SchedulerState::Unknown = (*frame).scheduler {
            query_ring(frame);
        }
        matches!((*frame).scheduler, SchedulerState::Shared { .. })
    }
}

/// # Safety
/// As for [`run_handlers`].
#[cold]
#[inline(never)]
unsafe fn query_ring(frame: *mut Frame) {
    // SAFETY: the contract guarantees a valid frame with valid waves.
    unsafe {
        (*frame).scheduler = match (*(*frame).waves).barrier_scheduler() {
            Some(scheduler) => SchedulerState::Shared { scheduler, stale: false },
            None => SchedulerState::None,
        };
    }
}

/// Resumes a wave at its PC. Returns [`RESUME`] or [`CHAIN`] if there is code for it. The context has the
/// wave, or is stale.
///
/// # Safety
/// As for [`run_handlers`].
#[inline(never)]
unsafe fn resume(frame: *mut Frame, wave: *mut Wave) -> u32 {
    // SAFETY: the contract, and that of `enter`, guarantee a valid frame and context.
    unsafe {
        let Some((number, flow)) = find_entry(frame, wave) else { return SWITCHED.0 };
        let cx: *mut Cx<'_> = (*frame).cx.cast();
        (*frame).base = (*cx).instructions.wrapping_sub(number as u64);
        (*frame).wave = match WaveCaches::get((*frame).wave_caches, wave, (*wave).id) {
            Some((pointers, cache)) => {
                (*cache).enter_unit((*frame).code as usize);
                WavePointers { cache, mask_exec: (*wave).exec(), ..pointers }
            }
            None => WavePointers::new(Frame::cx(frame), (*frame).wave_caches, (*frame).code),
        };
        flow.0
    }
}

/// Sets the code and entry at which a wave resumes. Returns the number of the operation there, and
/// [`RESUME`], or [`CHAIN`] if the code is that of another unit; `None` if there is no code.
///
/// # Safety
/// As for [`run_handlers`].
unsafe fn find_entry(frame: *mut Frame, wave: *mut Wave) -> Option<(u32, Flow)> {
    // SAFETY: the contract guarantees a valid frame and wave.
    unsafe {
        let (pc, wave64) = ((*wave).pc, (*wave).halves() == 2);
        let program = &*(*frame).program;
        let next = program.op_at(pc)?;
        let slot = (&(*(*frame).entries)).get(program.index_of(next))?;
        let (code, entry) = slot.code()?;
        let tracked = (*frame).tracked_mode;
        if !slot.has_msbs((*wave).mode & tracked) {
            return None;
        }
        let same_mode = (*wave).mode == (*frame).wave_mode && wave64 == (*frame).mode.wave64;
        let of = |cx: &Cx<'_>| CodeMode::of(cx, tracked != 0).map(CodeMode::index);
        if !same_mode {
            if of(Frame::cx(frame)) != Some((*frame).mode.index()) {
                return None;
            }
            (*frame).wave_mode = (*wave).mode;
        }
        let resumed = ResumePoint { pc, number: next.number, entry };
        let flow = if code as usize == (*frame).code as usize {
            (*frame).resumed = [resumed, (*frame).resumed[0]];
            RESUME
        } else {
            (*frame).resumed = [resumed, ResumePoint::NOWHERE];
            CHAIN
        };
        ((*frame).code, (*frame).entry) = (code, entry);
        Some((next.number, flow))
    }
}
