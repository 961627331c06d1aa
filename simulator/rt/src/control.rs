//! The control builtins that handlers run themselves: hints, which have no effect, and barriers. Handlers call
//! the machine ([`MachineOps`](crate::MachineOps)) for the others.

use isa_spec::pcode::builtins::Control;
use wavesim_state::event::Event;
use wavesim_state::fault::FaultKind;
use wavesim_state::{Wave, Workgroup};

/// Builtins without effect in the simulator. Memory operations complete at once, so every counter is always
/// zero; caches are coherent; and messages have no receiver: interrupts and the release of registers do not
/// affect results.
#[doc(hidden)]
#[macro_export]
macro_rules! hints {
    () => {
        Control::Nop
            | Control::SendMsg
            | Control::WaitVmcnt
            | Control::WaitVscnt
            | Control::WaitLgkmcnt
            | Control::WaitExpcnt
            | Control::WaitLoadcnt
            | Control::WaitStorecnt
            | Control::WaitSamplecnt
            | Control::WaitBvhcnt
            | Control::WaitDscnt
            | Control::WaitKmcnt
            | Control::WaitAsynccnt
            | Control::WaitTensorcnt
            | Control::WaitXcnt
            | Control::WaitIdle
            | Control::WaitAlu
            | Control::InvalidateCaches
            | Control::WriteBackCaches
    };
}

/// Returns whether a builtin has no effect.
#[inline(always)]
pub fn does_nothing(builtin: Control) -> bool {
    matches!(builtin, hints!())
}

/// Builtins that signal to other waves of the workgroup, or wait for them.
#[doc(hidden)]
#[macro_export]
macro_rules! barriers {
    () => {
        Control::Barrier | Control::BarrierSignal | Control::BarrierSignalIsFirst | Control::BarrierWait
    };
}

/// Returns whether [`barrier`] implements a builtin.
#[inline(always)]
pub fn is_barrier(builtin: Control) -> bool {
    matches!(builtin, barriers!())
}

/// Runs a barrier builtin. Inlined, because `builtin` is a constant at most call sites.
#[inline(always)]
pub fn barrier(wave: &mut Wave, group: &mut Workgroup, builtin: Control, number: u32) -> Result<u32, Event> {
    match builtin {
        // Arrive, then wait for the completion that this arrival counts towards.
        Control::Barrier if group.is_multi_wave() => {
            wave.passed[0] = group.barrier(0).completed;
            group.signal(0);
            Err(Event::BarrierWait(0))
        }
        Control::BarrierSignal => index(group, number).map_or(Ok(0), |index| signal(group, index)),
        // Without such a barrier, as in a workgroup of one wave, it is S_NOP on CDNA 5: SCC stays, which LLVM relies
        // on. On RDNA 4, SCC is 0 (manuals, *S_BARRIER_SIGNAL_ISFIRST*).
        Control::BarrierSignalIsFirst => match index(group, number) {
            Some(index) => signal(group, index),
            None => Ok(if group.joins() { wave.scc } else { 0 }),
        },
        Control::BarrierWait => {
            waited_for(wave, group, number).map_or(Ok(0), |index| Err(Event::BarrierWait(index)))
        }
        _ => Ok(0),
    }
}

/// Returns the index of a barrier that the workgroup has.
pub fn index(group: &Workgroup, number: u32) -> Option<usize> {
    group.own_index(number as i32)
}

/// Returns the index of the barrier that S_BARRIER_WAIT waits for. On CDNA 5, any named barrier stands for the one
/// that the wave has joined (manual, *S_BARRIER_WAIT*).
#[inline(always)]
fn waited_for(wave: &Wave, group: &Workgroup, number: u32) -> Option<usize> {
    index(group, if number as i32 >= 0 && group.joins() { wave.joined } else { number })
}

#[inline]
fn signal(group: &mut Workgroup, index: usize) -> Result<u32, Event> {
    if group.barrier(index).members == 0 {
        let message =
            format!("barrier {index} has no members: M0[22:16] of S_BARRIER_INIT sets their number");
        return Err(Event::fault(FaultKind::Other, message));
    }
    Ok(group.signal(index) as u32)
}
