//! Random schedules.

use super::{Coverage, Exploration, lock, on_threads, step_limit, with_machine};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wavesim_explore::choice::{Follow, Schedule, run};
use wavesim_explore::outcome::Outcome;
use wavesim_explore::pct::Pct;
use wavesim_explore::state::{RandomState, State};

/// Interval of saved states.
const SAVE: Duration = Duration::from_secs(10);

/// Runs the schedules of all seeds of the shard.
pub fn explore(exploration: &mut Exploration<'_>) -> anyhow::Result<Coverage> {
    let args = exploration.args;
    // The number of steps of a run, which the random choices need.
    let steps = with_machine(args, |machine| {
        let mut chooser = Follow::new(&[]);
        Ok(run(machine, &mut chooser, step_limit(0)).steps)
    })?;
    exploration.limit = step_limit(steps);
    let mut begin = 0;
    if let Some(State::Random(saved)) = super::systematic::load_state(exploration)? {
        begin = saved.next;
        exploration.done.store(saved.done, Ordering::Relaxed);
    }
    let next = AtomicU64::new(begin);
    let saved = Mutex::new(Instant::now());
    // By thread: the number of the schedule that it runs.
    let running = Mutex::new(Vec::<u64>::new());
    let exploration = &*exploration;
    on_threads(exploration, |machine| {
        let threads = machine.threads();
        loop {
            let number = {
                let mut running = lock(&running);
                let number = next.fetch_add(1, Ordering::Relaxed);
                running.push(number);
                number
            };
            if number >= args.random || exploration.is_needless(number) {
                // Whoever goes on from here has to run it.
                return Ok(());
            }
            if args.shard.has(number) {
                let seed = args.first_seed.wrapping_add(number);
                let mut pct = Pct::new(seed, threads, steps, args.depth);
                if machine.has_delays() {
                    pct = pct.with_delays();
                }
                if let Some(end) = run(machine, &mut pct, exploration.limit).end {
                    if exploration.is_interrupted() {
                        return Ok(());
                    }
                    let outcome = Outcome::read(machine.prepared, end);
                    exploration.record(number, &outcome, Some(seed), || Schedule::of(machine, pct.threads));
                }
            }
            let least = {
                let mut running = lock(&running);
                running.retain(|known| *known != number);
                running.iter().copied().min().unwrap_or(number + 1)
            };
            exploration.bar.set_position(number);
            let mut last = lock(&saved);
            if last.elapsed() >= SAVE {
                *last = Instant::now();
                save(exploration, least)?;
            }
        }
    })?;
    let left = lock(&running).iter().copied().min().unwrap_or(args.random).min(args.random);
    save(exploration, left)?;
    Ok(Coverage::Random { steps })
}

fn save(exploration: &Exploration<'_>, next: u64) -> anyhow::Result<()> {
    let done = exploration.done.load(Ordering::Relaxed);
    super::systematic::save_state(exploration, &State::Random(RandomState { next, done }))
}
