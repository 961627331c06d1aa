//! The same difference with fewer preemptions: parts of a schedule are left out as long as the outcome stays wrong.

use crate::choice::{Follow, Segment, run, segments};
use crate::machine::{Event, Machine};
use crate::outcome::Outcome;

/// A schedule with its outcome.
#[derive(Debug, Clone)]
pub struct Found {
    /// The schedule.
    pub segments: Vec<Segment>,
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
        (self.preemptions, self.segments.len())
    }
}

/// Runs a schedule.
pub fn follow(machine: &mut Machine<'_>, schedule: &[Segment], limit: u64) -> Option<Found> {
    let mut chooser = Follow::new(schedule);
    let end = run(machine, &mut chooser, limit).end?;
    let outcome = Outcome::read(machine.prepared, end);
    let Follow { events, preemptions, .. } = chooser;
    Some(Found { segments: segments(&events), events, preemptions, outcome, runs: 1 })
}

/// Minimises a schedule whose outcome satisfies `wrong`. Ends after `budget` runs, or when `stop` returns true.
pub fn minimise(
    machine: &mut Machine<'_>,
    schedule: &[Segment],
    limit: u64,
    budget: u64,
    wrong: &dyn Fn(&Outcome) -> bool,
    stop: &dyn Fn() -> bool,
) -> Option<Found> {
    let mut search = Search { machine, limit, left: budget, wrong, stop, runs: 0 };
    let mut best = search.attempt(schedule)?;
    // What comes after the last switch that matters is left to the default.
    let mut kept = 0;
    while kept < best.segments.len() {
        let prefix = best.segments[..kept].to_vec();
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
        while index < prefix.len() && search.left > 0 {
            let mut without = prefix.clone();
            without.remove(index);
            let mut longer = prefix.clone();
            longer[index].steps = u64::MAX;
            let found = search.better(&without, &best).map(|found| (found, without));
            match found.or_else(|| search.better(&longer, &best).map(|found| (found, longer))) {
                Some((found, list)) => (best, prefix) = (found, list),
                None => index += 1,
            }
        }
        if best.size() == before || search.left == 0 {
            break;
        }
    }
    best.runs = search.runs;
    Some(best)
}

/// Returns the beginning of a schedule after which the default leads to the same outcome.
fn shortest(search: &mut Search<'_, '_>, best: &Found) -> Vec<Segment> {
    let mut prefix = best.segments.clone();
    while let Some((_, shorter)) = prefix.split_last() {
        let shorter = shorter.to_vec();
        match search.attempt(&shorter) {
            Some(found) if found.size() <= best.size() => prefix = shorter,
            _ => break,
        }
    }
    prefix
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
    fn attempt(&mut self, schedule: &[Segment]) -> Option<Found> {
        if self.left == 0 || (self.stop)() {
            self.left = 0;
            return None;
        }
        self.left -= 1;
        self.runs += 1;
        follow(self.machine, schedule, self.limit).filter(|found| (self.wrong)(&found.outcome))
    }

    fn better(&mut self, schedule: &[Segment], than: &Found) -> Option<Found> {
        self.attempt(schedule).filter(|found| found.size() < than.size())
    }
}
