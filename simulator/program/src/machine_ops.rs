//! Control builtins, whose effects go beyond registers and memory. One implementation serves the interpreter
//! and the reference executor.

use super::hwreg;
use isa_spec::pcode::builtins::Control;
use wavesim_isa::arch::Arch;
use wavesim_rt::control::{barrier, index};
use wavesim_rt::{MachineOps, barriers, hints};
use wavesim_state::barrier::CLUSTER_BARRIER;
use wavesim_state::event::Event;
use wavesim_state::fault::FaultKind;
use wavesim_state::gws;
use wavesim_state::{Wave, Workgroup};

/// What handlers call of the machine.
pub const MACHINE_OPS: MachineOps = MachineOps { control, status: hwreg::status };

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
        Control::UnknownLayout => {
            return Err(Event::fault(
                FaultKind::Unimplemented,
                "the layout of the image is not known: `sw_mode` of its descriptor is none of this architecture for images \
                 of its `type`, `format` and number of samples, or it has metadata",
            ));
        }
        Control::GwsInit => group.gws().init(a as u32, b as u32),
        Control::GwsSemaBr => group.gws().release(a as u32, b as u32),
        Control::GwsSemaReleaseAll => group.gws().release_all(a as u32),
        Control::GwsSemaP => {
            let ticket = group.gws().acquire(a as u32);
            return wait_at(wave, a as u32, true, ticket);
        }
        Control::GwsBarrier => {
            let ticket = group.gws().arrive(a as u32, b as u32);
            return wait_at(wave, a as u32, false, ticket);
        }
        Control::SendMsgRtn => return Ok(message(arch, group, a as u32, instructions)),
        Control::GetReg => return Ok(hwreg::get(arch, wave, group, instructions, a as u32) as u128),
        Control::SetReg => hwreg::set(arch, wave, a as u32, b as u32),
        Control::BarrierState => return Ok(hwreg::barrier_state(arch, group, a as u32 as i32) as u128),
        Control::BarrierLeave => {
            let joined = std::mem::take(&mut wave.joined) as usize;
            if joined == 0 {
                return Ok(0);
            }
            group.leave(joined);
            return Ok((group.barrier(joined).members == 0) as u128);
        }
        barriers!() => return Ok(barrier(wave, group, builtin, a as u32)? as u128),
        // Index 0 is the workgroup's own, of which every wave is a member from the start. The pseudocode calls
        // these with the numbers of named barriers only.
        Control::BarrierInit => {
            if let Some(index @ 1..) = index(group, a as u32) {
                group.init(index);
            }
        }
        Control::BarrierMembers => {
            if let Some(index @ 1..) = index(group, a as u32) {
                group.set_members(index, b as u32);
            }
        }
        Control::BarrierJoin if a == 0 => wave.joined = 0,
        Control::BarrierJoin => {
            if let Some(index @ 1..) = index(group, a as u32) {
                wave.joined = index as u32;
                wave.passed[index] = group.barrier(index).completed;
            }
        }
    }
    Ok(0)
}

/// Makes a wave wait at a resource of global wave sync, if it has got a ticket there.
fn wait_at(wave: &mut Wave, resource: u32, semaphore: bool, ticket: Option<u32>) -> Result<u128, Event> {
    let Some(ticket) = ticket else { return Ok(0) };
    wave.passed[gws::TICKET] = ticket;
    let index = gws::FIRST + 2 * (resource as usize % gws::RESOURCES) + semaphore as usize;
    Err(Event::BarrierWait(index))
}

/// Returns the answer to S_SENDMSG_RTN (RDNA4 and CDNA5 manuals, *Send Message Types*). There is no doorbell, trap
/// handler or second shader engine.
fn message(arch: Arch, group: &Workgroup, number: u32, instructions: u64) -> u128 {
    const RTN_GET_REALTIME: u32 = 0x83;
    const RTN_GET_CLUSTER_BARRIER_STATE: u32 = 0x88;
    match number {
        RTN_GET_REALTIME => instructions as u128,
        RTN_GET_CLUSTER_BARRIER_STATE => hwreg::barrier_state(arch, group, CLUSTER_BARRIER) as u128,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavesim_state::ClusterPlace;

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
    fn waves_wait_at_resources() {
        let (mut group, mut wave) = (Workgroup::new(1), Wave::new(32));
        let index = gws::FIRST + 2 * 7;
        call(&mut wave, &mut group, Control::GwsInit, 7).unwrap();
        assert_eq!(call(&mut wave, &mut group, Control::GwsBarrier, 7), Err(Event::BarrierWait(index)));
        assert!(!group.has_released(index, &wave.passed));
        let mut other = Wave::new(32);
        assert!(call(&mut other, &mut group, Control::GwsBarrier, 7).is_err());
        assert_eq!(call(&mut other, &mut group, Control::GwsBarrier, 7), Ok(0), "the counter was 2");
        assert!(group.release(index, &mut wave.passed));
        assert!(call(&mut wave, &mut group, Control::GwsSemaP, 8).is_err());
        call(&mut other, &mut group, Control::GwsSemaReleaseAll, 8).unwrap();
        assert!(group.release(gws::FIRST + 2 * 8 + 1, &mut wave.passed));
    }

    #[test]
    fn one_wave_has_no_barriers() {
        let mut group = Workgroup::new(1);
        let mut wave = Wave::new(32);
        for bi in [Control::Barrier, Control::BarrierWait, Control::BarrierSignalIsFirst] {
            assert_eq!(call(&mut wave, &mut group, bi, -1), Ok(0), "{bi:?}");
        }
        wave.scc = 1;
        assert_eq!(call(&mut wave, &mut group, Control::BarrierSignalIsFirst, -1), Ok(0), "SCC on RDNA 4");
        group.set_named_barriers(0, true);
        assert_eq!(
            call(&mut wave, &mut group, Control::BarrierSignalIsFirst, -1),
            Ok(1),
            "unchanged on CDNA 5"
        );
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
        call(&mut wave, &mut group, Control::BarrierMembers, 3).unwrap();
        call(&mut wave, &mut group, Control::BarrierJoin, 3).unwrap();
        assert_eq!(call(&mut wave, &mut group, Control::BarrierSignalIsFirst, 3), Ok(1));
        assert_eq!(call(&mut wave, &mut group, Control::BarrierLeave, 0), Ok(0), "not the last member");
        assert_eq!(group.barrier(3).completed, 1, "the one left has signalled");
        assert_eq!(call(&mut wave, &mut group, Control::BarrierLeave, 0), Ok(0), "of no barrier");
        call(&mut wave, &mut group, Control::BarrierJoin, 3).unwrap();
        assert_eq!(call(&mut wave, &mut group, Control::BarrierLeave, 0), Ok(1), "the last one");
    }

    #[test]
    fn messages_return_values() {
        let group = Workgroup::new(2);
        assert_eq!(message(Arch::Rdna4, &group, 0x83, 42), 42);
        assert_eq!(message(Arch::Rdna4, &group, 0x80, 42), 0);
    }

    #[test]
    fn a_wave_waits_for_the_named_barrier_that_it_has_joined() {
        let mut group = Workgroup::new(2);
        group.set_named_barriers(16, true);
        let mut wave = Wave::new(32);
        assert_eq!(call(&mut wave, &mut group, Control::BarrierWait, 3), Ok(0), "none is joined");
        call(&mut wave, &mut group, Control::BarrierJoin, 2).unwrap();
        assert_eq!(call(&mut wave, &mut group, Control::BarrierWait, 3), Err(Event::BarrierWait(2)));
        call(&mut wave, &mut group, Control::BarrierJoin, 0).unwrap();
        assert_eq!(call(&mut wave, &mut group, Control::BarrierWait, 2), Ok(0));
    }

    #[test]
    fn barriers_beyond_those_of_the_kernel_do_nothing() {
        let mut group = Workgroup::new(2);
        group.set_named_barriers(4, true);
        let mut wave = Wave::new(32);
        assert_eq!(call(&mut wave, &mut group, Control::BarrierSignal, 5), Ok(0));
        call(&mut wave, &mut group, Control::BarrierJoin, 5).unwrap();
        assert_eq!(wave.joined, 0);
    }

    #[test]
    fn the_cluster_barrier_reports_its_state() {
        let mut group = Workgroup::new(1);
        let place = ClusterPlace { id: 1, position: [0; 3], workgroup: [0; 3], size: [3, 1, 1] };
        group.set_cluster(place);
        let mut wave = Wave::new(32);
        assert_eq!(call(&mut wave, &mut group, Control::BarrierSignal, -3), Ok(1));
        assert_eq!(call(&mut wave, &mut group, Control::BarrierWait, -3), Err(Event::BarrierWait(17)));
        assert_eq!(message(Arch::Cdna5, &group, 0x88, 0), 1 | 3 << 4 | 1 << 16 | 4 << 24);
    }
}
