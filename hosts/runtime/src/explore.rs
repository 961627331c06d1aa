//! `WAVESIM_EXPLORE`: runs a kernel in random orders of its waves, with random delays of its memory operations, before its
//! launch, and reports results that depend on them.

use crate::launch::RunOptions;
use crate::{Error, exit, message};
use std::ops::Range;
use wavesim::delayed::{DelayedMemory, Delays};
use wavesim::explore::cause;
use wavesim::explore::choice::{Follow, Schedule, run as run_schedule};
use wavesim::explore::delay::{self, Delay};
use wavesim::explore::machine::{End, Machine};
use wavesim::explore::minimise::minimise;
use wavesim::explore::outcome::Outcome;
use wavesim::explore::pct::Pct;
use wavesim::fault::FaultKind;
use wavesim::loader::compare::Tolerance;
use wavesim::loader::prepared::Prepared;
use wavesim::sched::dispatch::{Dispatch, DispatchError};
use wavesim::sched::poison::Poison;

/// Memory that is copied, at most.
const MOST_BYTES: u64 = 1 << 30;
/// Orderings that a bug needs, for which schedules are made.
const DEPTH: u32 = 3;
/// Runs of the minimisation, at most.
const BUDGET: u64 = 200;
/// Late operations that are described, at most.
const SHOWN: usize = 3;
/// Steps after which waves take turns, at least.
const LIMIT: u64 = 10_000;
/// Differences of floats that sums by atomics may have.
const TOLERANCE: Tolerance = Tolerance { rtol: 1e-5, atol: 1e-9 };

/// Runs the kernel of a prepared launch in `runs` schedules, and reports a result that depends on the order. Memory, of
/// which `writable` belongs to the host, is then as before.
///
/// # Errors
/// The launch cannot run.
pub(crate) fn run(
    prepared: &Prepared,
    options: &RunOptions<'_>,
    runs: u64,
    writable: &[Range<u64>],
) -> Result<(), Error> {
    let kernel = format!("{} (launch {})", options.kernel, options.number);
    let bytes: u64 = writable.iter().map(|range| range.end - range.start).sum();
    if bytes > MOST_BYTES {
        message::report(&format!("{kernel}: not explored, as it can access {} MiB of memory", bytes >> 20));
        return Ok(());
    }
    // Machines without counters of outstanding operations have no delayed memory.
    let wave_size = prepared.shape.wave_size;
    let model = DelayedMemory::new(&prepared.program, wave_size, Delays::Demanded).ok();
    let mut dispatch = prepared.dispatch(options.max_instructions);
    dispatch.cancel = options.cancel;
    dispatch.delayed = model.as_ref();
    dispatch.poison = model.as_ref().map(|_| Poison(1));
    if let Some(text) = find(prepared, &dispatch, runs, writable)? {
        message::report(&format!("{kernel}: {text}"));
        exit::record_failure();
    }
    Ok(())
}

/// Looks for a schedule in which a launch computes something else, and describes it.
fn find(
    prepared: &Prepared,
    dispatch: &Dispatch<'_>,
    runs: u64,
    writable: &[Range<u64>],
) -> Result<Option<String>, DispatchError> {
    let mut machine = Machine::with_host_memory(prepared, dispatch, writable)?;
    machine.limit_memory(MOST_BYTES);
    let first = run_schedule(&mut machine, &mut Follow::new(&[]), u64::MAX / 2);
    let limit = first.steps.saturating_mul(20).max(LIMIT);
    let Some(end) = first.end else { return Ok(None) };
    let expected = Outcome::read(prepared, end);
    let mut found = None;
    for seed in 0..runs {
        let mut pct = Pct::new(seed, machine.threads(), first.steps, DEPTH);
        if machine.has_delays() {
            pct = pct.with_delays();
        }
        let Some(end) = run_schedule(&mut machine, &mut pct, limit).end else { continue };
        if matches!(&end, End::Fault(fault) if fault.kind == FaultKind::Interrupted) {
            break;
        }
        let outcome = Outcome::read(prepared, end);
        if let Some(difference) = expected.difference(&outcome, TOLERANCE) {
            let schedule = Schedule::of(&machine, pct.threads);
            let cause = explain(&mut machine, &schedule, &expected, limit);
            found = Some(format!(
                "the result depends on the order of waves, or on delays of memory operations, as in schedule \
                 {} of {runs}:\n{difference}{cause}",
                seed + 1
            ));
            break;
        }
    }
    machine.restart();
    Ok(found)
}

/// Describes the accesses whose order makes the difference, and the operations that are late.
fn explain(machine: &mut Machine<'_>, schedule: &Schedule, expected: &Outcome, limit: u64) -> String {
    let wrong = |outcome: &Outcome| expected.difference(outcome, TOLERANCE).is_some();
    let Some(found) = minimise(machine, schedule, limit, BUDGET, &wrong, &|| false) else {
        return String::new();
    };
    let mut out = String::new();
    for Delay { operation, why } in delay::describe(machine, &found).iter().take(SHOWN) {
        out += &format!("\nlate: {operation}");
        why.iter().take(1).for_each(|line| out += &format!("\n  {line}"));
    }
    let pairs = cause::of_difference(machine, &found, limit, &wrong);
    out.extend(pairs.iter().take(1).map(|pair| format!("\n{}", cause::describe(machine, pair))));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavesim::loader::text_kernel::{self, Options};

    /// Both waves store to the same word.
    const RACE: &str = "---
out_y: u32[2]
local = 64, 1, 1
global = 1, 1, 1
wave = 32
---
  s_load_b64 s[6:7], s[3:4], 0
  v_mov_b32 v1, 0
  v_readfirstlane_b32 s5, v0
  v_mov_b32 v2, s5
  s_waitcnt lgkmcnt(0)
  global_store_b32 v1, v2, s[6:7]
  s_endpgm
";

    #[test]
    fn a_result_that_depends_on_the_order_is_found() {
        let explore = |source: &str| {
            let prepared = text_kernel::prepare("k.rdna", source, &Options::default(), 0).unwrap();
            let before = prepared.memory.snapshot();
            let found = find(&prepared, &prepared.dispatch(1 << 20), 20, &[]).unwrap();
            assert_eq!(prepared.memory.snapshot(), before, "memory is restored");
            found
        };
        let text = explore(RACE).unwrap();
        assert!(text.contains("[0]: 32 in the first run, 0 in this schedule"), "{text}");
        assert!(text.contains("wave 1 stores at line 12"), "{text}");
        assert_eq!(explore(&RACE.replace("v_mov_b32 v2, s5", "v_mov_b32 v2, 7")), None);
    }
}
