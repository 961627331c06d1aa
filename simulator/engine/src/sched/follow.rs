//! Runs that follow a recorded schedule.

use super::controlled::Controlled;
use super::launch::{Dispatch, RunStats};
use super::next_ready::TURN;
use super::recorded::{Recorded, Turn};
use crate::observe::Observer;
use wavesim_machine::fault::{Fault, FaultKind};
use wavesim_machine::memory::Memory;

/// Runs a dispatch in the order of its recorded schedule.
pub(super) fn run<O: Observer + ?Sized>(
    dispatch: &Dispatch<'_>,
    memory: &Memory,
    recorded: &Recorded,
    observer: &mut O,
) -> (RunStats, Result<(), Box<Fault>>) {
    let mut machine = Controlled::new(dispatch, memory);
    let result = follow(&mut machine, recorded, observer);
    let stats =
        RunStats { instructions: machine.executed, waves: machine.started() * u64::from(dispatch.waves()) };
    machine.recycle();
    (stats, result)
}

fn follow<O: Observer + ?Sized>(
    machine: &mut Controlled<'_>,
    recorded: &Recorded,
    observer: &mut O,
) -> Result<(), Box<Fault>> {
    for turn in recorded.turns() {
        let Turn { group, wave, instructions } = *turn;
        let mut left = instructions;
        while left > 0 {
            let time = machine.executed;
            act(machine, recorded, observer)?;
            let most = left.min(recorded.next_action(time) - time);
            let executed = match machine.can_run(group, wave as usize) {
                true => machine.run(group, wave as usize, most, observer)?,
                false => 0,
            };
            if executed == 0 {
                return Err(machine.fault(
                    FaultKind::Other,
                    format!(
                        "the recorded schedule does not fit this run: wave {wave} of the workgroup that starts as number \
                         {group} cannot run after {} instructions",
                        machine.executed
                    ),
                ));
            }
            left -= executed.min(left);
        }
    }
    act(machine, recorded, observer)?;
    machine.run_fairly(TURN, observer)
}

/// Lets delayed operations do what is recorded for this time.
fn act<O: Observer + ?Sized>(
    machine: &mut Controlled<'_>,
    recorded: &Recorded,
    observer: &mut O,
) -> Result<(), Box<Fault>> {
    for action in recorded.actions_at(machine.executed) {
        machine.act(action.operation, action.act, observer)?;
    }
    Ok(())
}
