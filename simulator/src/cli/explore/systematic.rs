//! All executions, each once, in parts that threads and shards share.

use super::{Coverage, Exploration, ExploreArgs, lock, on_threads, step_limit, with_machine};
use anyhow::{Context as _, bail};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wavesim_explore::choice::{Follow, Schedule, run};
use wavesim_explore::dpor::{Bounds, Counts, Search, late_sets, parts};
use wavesim_explore::machine::{Machine, StoredLines};
use wavesim_explore::outcome::Outcome;
use wavesim_explore::pct::Pct;
use wavesim_explore::state::{Part, State};
use wavesim_files as files;

/// Interval of saved states.
const SAVE: Duration = Duration::from_secs(10);
/// Parts for each thread of each shard, so that none is idle for long.
const PARTS: usize = 8;
/// Sets of delayed operations, at most.
const MOST_SETS: usize = 1 << 16;
/// Bytes of choices and clocks of a search.
const MOST_BYTES: usize = 1 << 30;

/// Numbers of random schedules that show to which lines of memory executions store: the search begins again with more of
/// them if an execution stores elsewhere, and then without constant lines.
const SHOWING: [u64; 2] = [16, 512];

/// Runs all executions of the shard.
pub fn explore(exploration: &mut Exploration<'_>) -> anyhow::Result<Coverage> {
    for schedules in SHOWING {
        let stored = Arc::new(stored_lines(exploration.args, schedules)?);
        if let Some(coverage) = explore_with(exploration, Some(&stored))? {
            return Ok(coverage);
        }
        exploration.forget();
    }
    explore_with(exploration, None)?.context("the search has not ended")
}

/// Returns the lines to which the executions of some random schedules store.
fn stored_lines(args: &ExploreArgs, schedules: u64) -> anyhow::Result<StoredLines> {
    with_machine(args, |machine| {
        machine.record_stores();
        let steps = run(machine, &mut Follow::new(&[]), step_limit(0)).steps;
        let limit = step_limit(steps);
        // Without caches, it does not matter.
        for seed in 0..if machine.arrangements().len() > 1 { schedules } else { 0 } {
            let mut pct = Pct::new(seed, machine.threads(), steps, args.depth).with_delays();
            run(machine, &mut pct, limit);
        }
        let mut stored = StoredLines::default();
        stored.add(machine);
        Ok(stored)
    })
}

/// Runs all executions of the shard; `stored` are the lines that are not constant. Returns `None` if there are others.
fn explore_with(
    exploration: &mut Exploration<'_>,
    stored: Option<&Arc<StoredLines>>,
) -> anyhow::Result<Option<Coverage>> {
    let args = exploration.args;
    let (mut bounds, mut all, arrangements) = with_machine(args, |machine| {
        machine.assume_constant(stored.cloned());
        if machine.is_clustered() {
            bail!("--systematic does not know clusters of workgroups; use --random");
        }
        if !machine.fits() {
            bail!(
                "--systematic runs all workgroups at a time, for which --memory-limit is too low; use --random"
            );
        }
        let mut chooser = Follow::new(&[]);
        let steps = step_limit(run(machine, &mut chooser, step_limit(0)).steps);
        let bounds = Bounds { preemptions: args.preemptions, steps, caches: None, late: None };
        let workers = args.threads as usize * args.shard.count as usize;
        let wanted = if workers == 1 { 1 } else { PARTS * workers };
        let arrangements = match args.preemptions {
            None => machine.arrangements(),
            Some(_) => &[None],
        };
        let mut all: Vec<Part> = Vec::new();
        if let Some(most) = args.delays.filter(|_| machine.has_delays()) {
            let Some(sets) = late_sets(machine, most as usize, steps, MOST_SETS) else {
                bail!(
                    "there are more than {MOST_SETS} sets of {most} delayed operations; use a lower --delays"
                );
            };
            let part =
                |late, caches: &Option<_>| Part { late: Some(late), caches: *caches, ..Part::default() };
            all.extend(sets.iter().flat_map(|late| arrangements.iter().map(|caches| part(*late, caches))));
            return Ok((bounds, all, arrangements.len()));
        }
        for caches in arrangements {
            let choices = parts(machine, Bounds { caches: *caches, ..bounds }, wanted);
            all.extend(choices.into_iter().map(|choices| Part {
                caches: *caches,
                choices,
                ..Part::default()
            }));
        }
        Ok((bounds, all, arrangements.len()))
    })?;
    exploration.limit = bounds.steps;
    bounds.steps = bounds.steps.saturating_mul(2);
    let mut number = 0;
    all.retain(|_| {
        number += 1;
        args.shard.has(number - 1)
    });
    let mut list = all;
    if let Some(State::Systematic(saved)) = load_state(exploration)? {
        let same = saved.len() == list.len()
            && saved
                .iter()
                .zip(&list)
                .all(|(a, b)| (a.late, a.caches, &a.choices) == (b.late, b.caches, &b.choices));
        if !same && stored.is_some() {
            return Ok(None);
        }
        if !same {
            bail!("the saved state has other parts: use the same --threads and --shard, or remove the file");
        }
        list = saved;
    }
    let before: u64 = list.iter().map(|part| part.counts.executions).sum();
    exploration.done.store(before, Ordering::Relaxed);
    let (list, saved) = (Mutex::new(list), Mutex::new(Instant::now()));
    let shared = Parts { list, next: AtomicUsize::new(0), saved, stored: stored.cloned() };
    let exploration = &*exploration;
    on_threads(exploration, |machine| {
        machine.assume_constant(stored.cloned());
        shared.work(exploration, machine, bounds)
    })?;
    // What has been found is as wrong in any search.
    if shared.must_begin_again() && !exploration.is_interrupted() && exploration.has_nothing_wrong() {
        return Ok(None);
    }
    shared.save(exploration)?;
    let list = lock(&shared.list);
    let sum = |of: fn(&Counts) -> u64| list.iter().map(|part| of(&part.counts)).sum::<u64>();
    let (redundant, cut) = (sum(|counts| counts.redundant), sum(|counts| counts.cut));
    let reason = match (list.iter().all(|part| part.complete), cut) {
        (true, 0) => return Ok(Some(Coverage::Complete { redundant, arrangements })),
        (true, _) => format!("{cut} executions did not end after {} steps", bounds.steps),
        (false, _) if exploration.is_interrupted() => "interrupted".to_string(),
        (false, _) => "ended at the first one that is not as expected".to_string(),
    };
    Ok(Some(Coverage::Partial { redundant, reason }))
}

struct Parts {
    list: Mutex<Vec<Part>>,
    next: AtomicUsize,
    saved: Mutex<Instant>,
    /// The lines that are not constant.
    stored: Option<Arc<StoredLines>>,
}

impl Parts {
    /// Returns whether an execution has stored to a line that was taken to be constant.
    fn must_begin_again(&self) -> bool {
        self.stored.as_ref().is_some_and(|stored| stored.are_incomplete())
    }

    fn work(
        &self,
        exploration: &Exploration<'_>,
        machine: &mut Machine<'_>,
        bounds: Bounds,
    ) -> anyhow::Result<()> {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = lock(&self.list).get(index).cloned() else { return Ok(()) };
            if part.complete {
                continue;
            }
            let bounds = Bounds { caches: part.caches, late: part.late, ..bounds };
            // Executions of earlier parts come first.
            let number = (index as u64) << 40;
            if exploration.is_needless(number) || self.must_begin_again() {
                return Ok(());
            }
            let mut search = match &part.position {
                None => Search::of_part(machine, bounds, &part.choices),
                Some(position) => Search::resume(machine, bounds, position, part.choices.len(), part.counts),
            }
            .map_err(anyhow::Error::msg)?;
            let mut ran = part.position.is_some();
            loop {
                let number = number + search.counts.executions;
                let stop = || exploration.is_needless(number) || self.must_begin_again();
                let next = search.next(machine, &stop);
                ran |= search.counts != part.counts;
                let Some(run) = next else {
                    let complete = !stop();
                    self.note(index, &search, complete, ran);
                    break;
                };
                if let Some(end) = run.end
                    && !exploration.is_interrupted()
                {
                    let outcome = Outcome::read(machine.prepared, end);
                    exploration.record(number, &outcome, None, || Schedule::of(machine, search.threads()));
                }
                if search.bytes() > MOST_BYTES {
                    bail!(
                        "an execution has too many steps for --systematic; use --random, or a smaller launch"
                    );
                }
                let mut last = lock(&self.saved);
                if last.elapsed() >= SAVE {
                    *last = Instant::now();
                    self.note(index, &search, false, ran);
                    self.save(exploration)?;
                }
                exploration.bar.set_position(exploration.done.load(Ordering::Relaxed));
            }
        }
    }

    fn note(&self, index: usize, search: &Search, complete: bool, ran: bool) {
        if let Some(part) = lock(&self.list).get_mut(index) {
            part.complete = complete;
            part.counts = search.counts;
            part.position = (ran && !complete).then(|| search.position());
        }
    }

    fn save(&self, exploration: &Exploration<'_>) -> anyhow::Result<()> {
        if exploration.args.state.is_none() {
            return Ok(());
        }
        let list = lock(&self.list).clone();
        save_state(exploration, &State::Systematic(list))
    }
}

/// Identifies the exploration in a state file.
fn key(exploration: &Exploration<'_>) -> String {
    let args = exploration.args;
    let how = match args.systematic {
        true => format!(
            "systematic, preemptions {:?}, delays {:?}, steps {}",
            args.preemptions, args.delays, exploration.limit
        ),
        false => format!("random, depth {}, first seed {}", args.depth, args.first_seed),
    };
    format!("{:016x}, {how}, shard {}/{}", exploration.kernel, args.shard.index, args.shard.count)
}

/// Reads the state file, if there is one.
pub fn load_state(exploration: &Exploration<'_>) -> anyhow::Result<Option<State>> {
    let Some(path) = exploration.args.state.as_ref().filter(|path| path.exists()) else { return Ok(None) };
    let text = files::read_text(path)?;
    Ok(Some(State::parse(&text, &key(exploration)).with_context(|| path.display().to_string())?))
}

/// Writes the state file, if one is wanted.
pub fn save_state(exploration: &Exploration<'_>, state: &State) -> anyhow::Result<()> {
    let Some(path) = &exploration.args.state else { return Ok(()) };
    let json = state.json(&key(exploration));
    files::write(path, |out| writeln!(out, "{json}")).with_context(|| path.display().to_string())
}
