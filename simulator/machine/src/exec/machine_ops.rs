//! Control builtins: what reaches beyond registers and memory. One implementation for the interpreter and the reference executor.

use super::hwreg;
use crate::fault::FaultKind;
use crate::memory::{MemError, Memory};
use crate::state::{Wave, Workgroup};
use isa_spec::pcode::builtins::Bi;
use wavesim_isa::arch::Arch;

/// Why a wave stops running for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    EndPgm,
    /// Continue when the barrier with this index (`Workgroup::index`) has completed more often than the wave has passed it.
    BarrierWait(usize),
    Fault {
        kind: FaultKind,
        message: String,
        lane: Option<u32>,
        address: Option<u64>,
    },
}

impl Event {
    pub fn fault(kind: FaultKind, message: impl Into<String>) -> Event {
        Event::Fault { kind, message: message.into(), lane: None, address: None }
    }

    /// An access to global memory that failed.
    pub fn out_of_bounds(memory: &Memory, e: MemError, lane: Option<u32>) -> Event {
        Event::Fault {
            kind: FaultKind::OutOfBounds { size_bytes: e.size_bytes, write: e.write },
            message: memory.explain(&e),
            lane,
            address: Some(memory.own_address(e.address)),
        }
    }

    /// An access beyond the lane's private memory; `e.address` is the offset in it.
    pub fn scratch_overflow(e: MemError, lane_bytes: u32, lane: Option<u32>) -> Event {
        let what = if e.write { "store" } else { "load" };
        let MemError { address, size_bytes, write } = e;
        Event::Fault {
            kind: FaultKind::OutOfBounds { size_bytes, write },
            message: format!(
                "{what} of {size_bytes} bytes at scratch offset 0x{address:x} is beyond the lane's {lane_bytes} bytes of scratch"
            ),
            lane,
            address: Some(address),
        }
    }

    /// An atomic whose address is no multiple of its size.
    pub fn misaligned(e: MemError, lane: Option<u32>) -> Event {
        let MemError { address, size_bytes, .. } = e;
        Event::Fault {
            kind: FaultKind::Misaligned { size_bytes },
            message: format!(
                "atomic of {size_bytes} bytes at 0x{address:x}, which is no multiple of {size_bytes}"
            ),
            lane,
            address: Some(address),
        }
    }
}

/// Builtins that change nothing here.
#[inline(always)]
pub fn does_nothing(bi: Bi) -> bool {
    match bi {
        // Memory operations are complete when they return: every counter is zero.
        Bi::WaitVmcnt
        | Bi::WaitVscnt
        | Bi::WaitLgkmcnt
        | Bi::WaitExpcnt
        | Bi::WaitLoadcnt
        | Bi::WaitStorecnt
        | Bi::WaitSamplecnt
        | Bi::WaitBvhcnt
        | Bi::WaitDscnt
        | Bi::WaitKmcnt => true,
        // Nobody listens: interrupts and the release of registers have no effect on results.
        Bi::Nop | Bi::SendMsg => true,
        _ => false,
    }
}

/// Runs a control builtin. `instructions`: executed so far, which stands for time.
pub fn control(
    arch: Arch,
    wave: &mut Wave,
    group: &mut Workgroup,
    instructions: u64,
    bi: Bi,
    args: &[u128],
) -> Result<u128, Event> {
    let a = args.first().copied().unwrap_or(0);
    let b = args.get(1).copied().unwrap_or(0);
    match bi {
        _ if does_nothing(bi) => {}
        Bi::EndPgm => return Err(Event::EndPgm),
        Bi::Illegal => {
            return Err(Event::fault(
                FaultKind::IllegalInstruction,
                "reached padding after the program's end",
            ));
        }
        Bi::Trap => return Err(Event::fault(FaultKind::Trap, format!("trap {a}: there is no trap handler"))),
        Bi::Halt => {
            return Err(Event::fault(FaultKind::Trap, "the wave halted itself; nothing would resume it"));
        }
        Bi::GwsUnsupported => {
            return Err(Event::fault(FaultKind::Unimplemented, "global wave sync is not supported"));
        }
        Bi::SendMsgRtn => return Ok(message(a as u32, instructions)),
        Bi::GetReg => return Ok(hwreg::get(arch, wave, group, instructions, a as u32) as u128),
        Bi::SetReg => hwreg::set(arch, wave, a as u32, b as u32),
        Bi::BarrierState => return Ok(hwreg::barrier_state(group, a as u32 as i32) as u128),
        Bi::Barrier => return s_barrier(wave, group),
        Bi::BarrierLeave => {
            let joined = std::mem::take(&mut wave.joined) as usize;
            if joined != 0 {
                group.leave(joined);
            }
            return Ok((joined != 0) as u128);
        }
        Bi::BarrierSignal
        | Bi::BarrierSignalIsFirst
        | Bi::BarrierWait
        | Bi::BarrierInit
        | Bi::BarrierJoin => {
            return split_barrier(wave, group, bi, a as u32 as i32, b as u32);
        }
        _ => {}
    }
    Ok(0)
}

/// S_SENDMSG_RTN: what comes back (RDNA4 manual, *Send Message Types*). There is no doorbell, trap handler or second shader engine.
fn message(number: u32, instructions: u64) -> u128 {
    const RTN_GET_REALTIME: u32 = 0x83;
    if number == RTN_GET_REALTIME { instructions as u128 } else { 0 }
}

/// S_BARRIER: arrive, then wait for the completion that this arrival counts towards.
fn s_barrier(wave: &mut Wave, group: &mut Workgroup) -> Result<u128, Event> {
    if !group.in_group() {
        return Ok(0);
    }
    wave.passed[0] = group.barrier(0).completed;
    group.signal(0);
    Err(Event::BarrierWait(0))
}

fn split_barrier(
    wave: &mut Wave,
    group: &mut Workgroup,
    bi: Bi,
    number: i32,
    members: u32,
) -> Result<u128, Event> {
    let Some(index) = Workgroup::index(number) else { return Ok(0) };
    if !group.in_group() {
        return Ok(0);
    }
    match bi {
        Bi::BarrierInit if index != 0 => group.init(index, members),
        Bi::BarrierJoin if index != 0 => {
            wave.joined = index as u32;
            wave.passed[index] = group.barrier(index).completed;
        }
        Bi::BarrierSignal | Bi::BarrierSignalIsFirst => {
            if group.barrier(index).members == 0 {
                let message = format!("barrier {number} has no members: S_BARRIER_INIT gives it some");
                return Err(Event::fault(FaultKind::Other, message));
            }
            return Ok(group.signal(index) as u128);
        }
        Bi::BarrierWait => return Err(Event::BarrierWait(index)),
        _ => {}
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(wave: &mut Wave, group: &mut Workgroup, bi: Bi, number: i32) -> Result<u128, Event> {
        control(Arch::Rdna4, wave, group, 0, bi, &[number as u32 as u128, 2])
    }

    /// A fast wave signals the next phase before a slow one has waited for this phase: the slow one must pass.
    #[test]
    fn a_wait_is_for_the_completion_before_it() {
        let mut group = Workgroup::new(2);
        let (mut fast, mut slow) = (Wave::new(32), Wave::new(32));
        call(&mut fast, &mut group, Bi::BarrierSignal, -1).unwrap();
        call(&mut slow, &mut group, Bi::BarrierSignal, -1).unwrap();
        let passes = |wave: &mut Wave, group: &Workgroup| {
            let now = group.barrier(0).completed;
            std::mem::replace(&mut wave.passed[0], now) != now
        };
        assert_eq!(call(&mut fast, &mut group, Bi::BarrierWait, -1), Err(Event::BarrierWait(0)));
        assert!(passes(&mut fast, &group));
        call(&mut fast, &mut group, Bi::BarrierSignal, -1).unwrap();
        assert!(passes(&mut slow, &group));
        assert!(!passes(&mut slow, &group));
    }

    #[test]
    fn one_wave_has_no_barriers() {
        let mut group = Workgroup::new(1);
        let mut wave = Wave::new(32);
        for bi in [Bi::Barrier, Bi::BarrierWait, Bi::BarrierSignalIsFirst] {
            assert_eq!(call(&mut wave, &mut group, bi, -1), Ok(0), "{bi:?}");
        }
    }

    #[test]
    fn the_trap_barrier_is_not_a_programs() {
        let mut group = Workgroup::new(2);
        let mut wave = Wave::new(32);
        assert_eq!(call(&mut wave, &mut group, Bi::BarrierWait, -2), Ok(0));
        assert_eq!(call(&mut wave, &mut group, Bi::BarrierSignalIsFirst, 0), Ok(0));
    }

    #[test]
    fn named_barriers_are_set_up_first() {
        let mut group = Workgroup::new(2);
        let mut wave = Wave::new(32);
        assert!(matches!(call(&mut wave, &mut group, Bi::BarrierSignal, 3), Err(Event::Fault { .. })));
        call(&mut wave, &mut group, Bi::BarrierInit, 3).unwrap();
        call(&mut wave, &mut group, Bi::BarrierJoin, 3).unwrap();
        assert_eq!(call(&mut wave, &mut group, Bi::BarrierSignalIsFirst, 3), Ok(1));
        assert_eq!(call(&mut wave, &mut group, Bi::BarrierLeave, 0), Ok(1));
        assert_eq!(call(&mut wave, &mut group, Bi::BarrierLeave, 0), Ok(0));
        assert_eq!(group.barrier(3).completed, 1, "the one left has signalled");
    }

    #[test]
    fn messages_answer() {
        assert_eq!(message(0x83, 42), 42);
        assert_eq!(message(0x80, 42), 0);
    }
}
