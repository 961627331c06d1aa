//! Control builtins, whose effects go beyond registers and memory. One implementation serves the interpreter
//! and the reference executor.

use super::hwreg;
use crate::fault::FaultKind;
use crate::memory::{MemError, Memory};
use crate::state::{Wave, Workgroup};
use isa_spec::pcode::builtins::Control;
use wavesim_isa::arch::Arch;

/// An event that stops a wave, for now or for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// S_ENDPGM: the wave has ended.
    EndPgm,
    /// The wave continues when the barrier with this index (`Workgroup::index`) has completed more often than
    /// the wave has passed it.
    BarrierWait(usize),
    /// The wave cannot continue. The scheduler turns this into a [`Fault`](crate::fault::Fault), which
    /// includes the location. Boxed, because turns end with an event, and most events are barriers.
    Fault(Box<Cause>),
}

/// The cause of a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// [`Fault::kind`](crate::fault::Fault::kind).
    pub kind: FaultKind,
    /// [`Fault::message`](crate::fault::Fault::message).
    pub message: String,
    /// [`Fault::lane`](crate::fault::Fault::lane).
    pub lane: Option<u32>,
    /// [`Fault::address`](crate::fault::Fault::address).
    pub address: Option<u64>,
}

// An event fits in two words, so handlers return it in registers.
const _: () = assert!(size_of::<Event>() == 2 * size_of::<usize>());

impl Event {
    /// Creates a fault without lane and address.
    pub fn fault(kind: FaultKind, message: impl Into<String>) -> Event {
        Event::Fault(Box::new(Cause { kind, message: message.into(), lane: None, address: None }))
    }

    /// Creates the fault of a failed access to global memory.
    pub fn out_of_bounds(memory: &Memory, e: MemError, lane: Option<u32>) -> Event {
        Event::Fault(Box::new(Cause {
            kind: FaultKind::OutOfBounds { size_bytes: e.size_bytes, write: e.write },
            message: memory.explain(&e),
            lane,
            address: Some(memory.own_address(e.address)),
        }))
    }

    /// Creates the fault of an access beyond the lane's scratch; `e.address` is the offset in it.
    pub fn scratch_overflow(e: MemError, lane_bytes: u32, lane: Option<u32>) -> Event {
        let what = if e.write { "store" } else { "load" };
        let MemError { address, size_bytes, write } = e;
        Event::Fault(Box::new(Cause {
            kind: FaultKind::OutOfBounds { size_bytes, write },
            message: format!(
                "{what} of {size_bytes} bytes at scratch offset 0x{address:x} is beyond the lane's {lane_bytes} bytes of scratch"
            ),
            lane,
            address: Some(address),
        }))
    }

    /// Creates the fault of an atomic whose address is not a multiple of its size.
    pub fn misaligned(e: MemError, lane: Option<u32>) -> Event {
        let MemError { address, size_bytes, .. } = e;
        Event::Fault(Box::new(Cause {
            kind: FaultKind::Misaligned { size_bytes },
            message: format!(
                "atomic of {size_bytes} bytes at 0x{address:x}, which is not a multiple of {size_bytes}"
            ),
            lane,
            address: Some(address),
        }))
    }
}

/// Builtins without effect in the simulator. Memory operations complete at once, so every counter is always
/// zero; caches are coherent; and messages have no receiver: interrupts and the release of registers do not
/// affect results.
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
        Control::BarrierSignal | Control::BarrierSignalIsFirst => {
            index(group, number).map_or(Ok(0), |index| signal(group, index))
        }
        Control::BarrierWait => index(group, number).map_or(Ok(0), |index| Err(Event::BarrierWait(index))),
        _ => Ok(0),
    }
}

/// Runs a control builtin. `instructions` is the number executed so far, which is the value of the clock.
pub fn control(
    arch: Arch,
    wave: &mut Wave,
    group: &mut Workgroup,
    instructions: u64,
    builtin: Control,
    args: &[u128],
) -> Result<u128, Event> {
    let a = args.first().copied().unwrap_or(0);
    let b = args.get(1).copied().unwrap_or(0);
    match builtin {
        hints!() => {}
        Control::EndPgm => return Err(Event::EndPgm),
        Control::Illegal => {
            return Err(Event::fault(
                FaultKind::IllegalInstruction,
                "reached padding after the program's end",
            ));
        }
        Control::Trap => {
            return Err(Event::fault(FaultKind::Trap, format!("trap {a}: there is no trap handler")));
        }
        Control::Halt => {
            return Err(Event::fault(FaultKind::Trap, "the wave halted itself, and nothing resumes it"));
        }
        Control::GwsUnsupported => {
            return Err(Event::fault(FaultKind::Unimplemented, "global wave sync is not supported"));
        }
        Control::SendMsgRtn => return Ok(message(a as u32, instructions)),
        Control::GetReg => return Ok(hwreg::get(arch, wave, group, instructions, a as u32) as u128),
        Control::SetReg => hwreg::set(arch, wave, a as u32, b as u32),
        Control::BarrierState => return Ok(hwreg::barrier_state(group, a as u32 as i32) as u128),
        Control::BarrierLeave => {
            let joined = std::mem::take(&mut wave.joined) as usize;
            if joined != 0 {
                group.leave(joined);
            }
            return Ok((joined != 0) as u128);
        }
        barriers!() => return Ok(barrier(wave, group, builtin, a as u32)? as u128),
        // Barrier 0 is the workgroup's own, of which every wave is a member from the start.
        Control::BarrierInit => {
            if let Some(index @ 1..) = index(group, a as u32) {
                group.init(index, b as u32);
            }
        }
        Control::BarrierJoin => {
            if let Some(index @ 1..) = index(group, a as u32) {
                wave.joined = index as u32;
                wave.passed[index] = group.barrier(index).completed;
            }
        }
    }
    Ok(0)
}

/// Returns the answer to S_SENDMSG_RTN (RDNA4 manual, *Send Message Types*). There is no doorbell, trap
/// handler or second shader engine.
fn message(number: u32, instructions: u64) -> u128 {
    const RTN_GET_REALTIME: u32 = 0x83;
    if number == RTN_GET_REALTIME { instructions as u128 } else { 0 }
}

/// Returns the index of a barrier; `None` if the workgroup has a single wave and thus no barriers.
fn index(group: &Workgroup, number: u32) -> Option<usize> {
    Workgroup::index(number as i32).filter(|_| group.is_multi_wave())
}

#[inline]
fn signal(group: &mut Workgroup, index: usize) -> Result<u32, Event> {
    if group.barrier(index).members == 0 {
        let message = format!("barrier {index} has no members: S_BARRIER_INIT sets their number");
        return Err(Event::fault(FaultKind::Other, message));
    }
    Ok(group.signal(index) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(wave: &mut Wave, group: &mut Workgroup, builtin: Control, number: i32) -> Result<u128, Event> {
        control(Arch::Rdna4, wave, group, 0, builtin, &[number as u32 as u128, 2])
    }

    /// A fast wave signals the next phase before a slow one has waited for this phase: the slow one must
    /// still pass.
    #[test]
    fn a_wait_passes_once_its_phase_completes() {
        let mut group = Workgroup::new(2);
        let (mut fast, mut slow) = (Wave::new(32), Wave::new(32));
        call(&mut fast, &mut group, Control::BarrierSignal, -1).unwrap();
        call(&mut slow, &mut group, Control::BarrierSignal, -1).unwrap();
        let passes = |wave: &mut Wave, group: &Workgroup| {
            let now = group.barrier(0).completed;
            std::mem::replace(&mut wave.passed[0], now) != now
        };
        assert_eq!(call(&mut fast, &mut group, Control::BarrierWait, -1), Err(Event::BarrierWait(0)));
        assert!(passes(&mut fast, &group));
        call(&mut fast, &mut group, Control::BarrierSignal, -1).unwrap();
        assert!(passes(&mut slow, &group));
        assert!(!passes(&mut slow, &group));
    }

    #[test]
    fn one_wave_has_no_barriers() {
        let mut group = Workgroup::new(1);
        let mut wave = Wave::new(32);
        for bi in [Control::Barrier, Control::BarrierWait, Control::BarrierSignalIsFirst] {
            assert_eq!(call(&mut wave, &mut group, bi, -1), Ok(0), "{bi:?}");
        }
    }

    #[test]
    fn programs_cannot_use_the_trap_barrier() {
        let mut group = Workgroup::new(2);
        let mut wave = Wave::new(32);
        assert_eq!(call(&mut wave, &mut group, Control::BarrierWait, -2), Ok(0));
        assert_eq!(call(&mut wave, &mut group, Control::BarrierSignalIsFirst, 0), Ok(0));
    }

    #[test]
    fn named_barriers_are_set_up_first() {
        let mut group = Workgroup::new(2);
        let mut wave = Wave::new(32);
        assert!(matches!(call(&mut wave, &mut group, Control::BarrierSignal, 3), Err(Event::Fault(_))));
        call(&mut wave, &mut group, Control::BarrierInit, 3).unwrap();
        call(&mut wave, &mut group, Control::BarrierJoin, 3).unwrap();
        assert_eq!(call(&mut wave, &mut group, Control::BarrierSignalIsFirst, 3), Ok(1));
        assert_eq!(call(&mut wave, &mut group, Control::BarrierLeave, 0), Ok(1));
        assert_eq!(call(&mut wave, &mut group, Control::BarrierLeave, 0), Ok(0));
        assert_eq!(group.barrier(3).completed, 1, "the one left has signalled");
    }

    #[test]
    fn messages_return_values() {
        assert_eq!(message(0x83, 42), 42);
        assert_eq!(message(0x80, 42), 0);
    }
}
