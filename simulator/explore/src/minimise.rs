//! The same difference with fewer preemptions and delays: parts of a schedule are left out as long as the outcome stays
//! wrong.

use crate::choice::{Follow, Schedule, run, segments};
use crate::machine::{Event, Machine, Thread};
use crate::outcome::Outcome;
use wavesim_engine::caches::Arrangement;

/// A schedule with its outcome.
#[derive(Debug, Clone)]
pub struct Found {
    /// The schedule.
    pub schedule: Schedule,
    /// The steps of the run.
    pub events: Vec<Event>,
    /// Number of switches from a wave that could have gone on.
    pub preemptions: usize,
    /// What the run computes.
    pub outcome: Outcome,
    /// Number of runs that the search took.
    pub runs: u64,
}

impl Found {
    fn size(&self) -> (usize, usize) {
        let caches = usize::from(self.schedule.caches.is_some());
        (self.preemptions + self.schedule.late.len() + caches, self.schedule.segments.len())
    }
}

/// Runs a schedule.
pub fn follow(machine: &mut Machine<'_>, schedule: &Schedule, limit: u64) -> Option<Found> {
    let mut chooser = Follow::schedule(schedule);
    let end = run(machine, &mut chooser, limit).end?;
    let outcome = Outcome::read(machine.prepared, end);
    let Follow { events, preemptions, .. } = chooser;
    // Operations that were not issued are not delayed.
    let issued = |thread: &Thread| events.iter().any(|event| event.issued.contains(thread));
    let late = schedule.late.iter().copied().filter(issued).collect();
    let schedule = Schedule { segments: segments(&events), late, caches: machine.caches() };
    Some(Found { schedule, events, preemptions, outcome, runs: 1 })
}

/// Minimises a schedule whose outcome satisfies `wrong`. Ends after `budget` runs, or when `stop` returns true.
pub fn minimise(
    machine: &mut Machine<'_>,
    schedule: &Schedule,
    limit: u64,
    budget: u64,
    wrong: &dyn Fn(&Outcome) -> bool,
    stop: &dyn Fn() -> bool,
) -> Option<Found> {
    let mut search = Search { machine, limit, left: budget, wrong, stop, runs: 0 };
    let mut best = search.attempt(schedule)?;
    if best.schedule.caches.is_some() {
        // Coherent caches, and then the plainest arrangements.
        for caches in [None, Some(Arrangement::TOGETHER), Some(Arrangement::APART)] {
            if let Some(found) = search.attempt(&Schedule { caches, ..best.schedule.clone() }) {
                best = found;
                break;
            }
        }
    }
    best = fewer_delays(&mut search, best);
    // What comes after the last switch that matters is left to the default.
    let mut kept = 0;
    while kept < best.schedule.segments.len() {
        let prefix = prefix(&best.schedule, kept);
        match search.better(&prefix, &best) {
            Some(found) => {
                best = found;
                break;
            }
            None if search.left == 0 => break,
            None => kept = (kept + 1).max(kept + kept / 8),
        }
    }
    let mut prefix = shortest(&mut search, &best);
    loop {
        let before = best.size();
        let mut index = 0;
        while index < prefix.segments.len() && search.left > 0 {
            let mut without = prefix.clone();
            without.segments.remove(index);
            let mut longer = prefix.clone();
            longer.segments[index].steps = u64::MAX;
            let found = search.better(&without, &best).map(|found| (found, without));
            match found.or_else(|| search.better(&longer, &best).map(|found| (found, longer))) {
                Some((found, list)) => (best, prefix) = (found, list),
                None => index += 1,
            }
        }
        for operation in prefix.late.clone() {
            let without = prefix.without(&[operation]);
            if let Some(found) = search.better(&without, &best) {
                (best, prefix) = (found, without);
            }
        }
        if best.size() == before || search.left == 0 {
            break;
        }
    }
    best.runs = search.runs;
    Some(best)
}

/// The first segments of a schedule.
fn prefix(schedule: &Schedule, segments: usize) -> Schedule {
    Schedule {
        segments: schedule.segments[..segments].to_vec(),
        late: schedule.late.clone(),
        caches: schedule.caches,
    }
}

/// Leaves out delays, in ever smaller parts.
fn fewer_delays(search: &mut Search<'_, '_>, mut best: Found) -> Found {
    let mut size = best.schedule.late.len();
    while size > 0 && search.left > 0 {
        let all: Vec<Thread> = best.schedule.late.iter().copied().collect();
        let mut fewer = false;
        for part in all.chunks(size) {
            let without = best.schedule.without(part);
            if let Some(found) =
                search.attempt(&without).filter(|found| found.schedule.late.len() < best.schedule.late.len())
            {
                (best, fewer) = (found, true);
            }
        }
        if !fewer || size > 1 {
            size /= 2;
        }
    }
    best
}

/// Returns the beginning of a schedule after which the default leads to the same outcome.
fn shortest(search: &mut Search<'_, '_>, best: &Found) -> Schedule {
    let mut kept = best.schedule.clone();
    while let Some(shorter) = kept.segments.len().checked_sub(1) {
        let shorter = prefix(&kept, shorter);
        match search.attempt(&shorter) {
            Some(found) if found.size() <= best.size() => kept = shorter,
            _ => break,
        }
    }
    kept
}

struct Search<'m, 'a> {
    machine: &'m mut Machine<'a>,
    limit: u64,
    left: u64,
    wrong: &'m dyn Fn(&Outcome) -> bool,
    stop: &'m dyn Fn() -> bool,
    runs: u64,
}

impl Search<'_, '_> {
    /// Runs a schedule; returns it if its outcome is wrong, too.
    fn attempt(&mut self, schedule: &Schedule) -> Option<Found> {
        if self.left == 0 || (self.stop)() {
            self.left = 0;
            return None;
        }
        self.left -= 1;
        self.runs += 1;
        follow(self.machine, schedule, self.limit).filter(|found| (self.wrong)(&found.outcome))
    }

    fn better(&mut self, schedule: &Schedule, than: &Found) -> Option<Found> {
        self.attempt(schedule).filter(|found| found.size() < than.size())
    }
}
