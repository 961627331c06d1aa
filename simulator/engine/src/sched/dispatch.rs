//! Runs dispatches. The waves of a workgroup take turns (`group`). Workgroups run one after another or on
//! several threads; long ones take turns as well.

pub use super::cancel::INTERRUPT;
use super::group::Group;
use super::launch::SHORT_SLICE;
pub use super::launch::{
    Budget, Dispatch, DispatchError, InitialState, Layout, MAX_LDS, MAX_SCRATCH, Progress, Registers,
    RunStats, Shape, parse_group,
};
pub use super::order::{GroupOrder, Schedule};
pub use super::slot::{MAX_ITEMS, MAX_WAVES};
use crate::observe::Observer;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use wavesim_machine::fault::{Fault, FaultKind};
use wavesim_machine::memory::Memory;

/// Runs the dispatch until it ends, or until the first fault in workgroup order.
pub fn run(dispatch: &Dispatch<'_>, memory: &Memory) -> Result<RunStats, Box<Fault>> {
    dispatch.check().map_err(launch_fault)?;
    let total = dispatch.workgroups();
    let threads = if cfg!(feature = "threads") { dispatch.threads.max(1) } else { 1 };
    let threads = (threads as u64).min(total.max(1)) as usize;
    let work = Work {
        dispatch,
        memory,
        total,
        threads,
        budget: Budget::new(dispatch.max_instructions),
        next: AtomicU64::new(0),
        first_faulty: AtomicU64::new(u64::MAX),
        fault: Mutex::new(None),
    };
    let _running = memory.register_threads(threads as u32);
    let instructions = if threads == 1 { work.run() } else { run_on_threads(threads, &work) };
    match work.fault.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        Some((_, fault)) => Err(fault),
        None => Ok(RunStats { instructions, waves: total * dispatch.waves() as u64 }),
    }
}

#[cfg(feature = "threads")]
#[allow(clippy::disallowed_methods, reason = "the one place that starts threads, by feature")]
fn run_on_threads(threads: usize, work: &Work<'_>) -> u64 {
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| work.run())).collect();
        workers.into_iter().map(|w| w.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).sum()
    })
}

#[cfg(not(feature = "threads"))]
fn run_on_threads(_: usize, work: &Work<'_>) -> u64 {
    work.run()
}

/// As [`run`] on one thread, with an observer of every instruction. Returns the instruction count after a
/// fault as well.
pub fn run_observed<O: Observer + ?Sized>(
    dispatch: &Dispatch<'_>,
    memory: &Memory,
    observer: &mut O,
) -> (RunStats, Result<(), Box<Fault>>) {
    let mut stats = RunStats::default();
    if let Err(e) = dispatch.check() {
        return (stats, Err(launch_fault(e)));
    }
    let budget = Budget::new(dispatch.max_instructions);
    let (total, waves) = (dispatch.workgroups(), dispatch.waves() as usize);
    let mut spare = Some(Group::new(dispatch, memory));
    let resident = dispatch.resident_bytes / spare.as_ref().map_or(1, |group| group.bytes()).max(1);
    let mut parked: VecDeque<Group<'_>> = VecDeque::new();
    let mut first = dispatch.first_slice().min(OBSERVED_SLICE);
    let mut next = 0;
    loop {
        let (mut group, slice) = if next < total && parked.len() < resident.max(1) {
            let mut group = spare.take().unwrap_or_else(|| Group::new(dispatch, memory));
            group.start(dispatch.workgroup(next));
            next += 1;
            stats.waves += waves as u64;
            observer.group_started(group.id, waves);
            (group, first)
        } else if let Some(group) = parked.pop_front() {
            observer.group_resumed(group.id);
            (group, NEXT_SLICE)
        } else {
            break;
        };
        // An observer's time counts the instructions of the whole dispatch.
        group.executed = stats.instructions;
        let before = group.executed;
        let result = group.run_observed(&budget, slice, observer);
        dispatch.count_instructions(group.executed - before);
        stats.instructions = group.executed;
        match result {
            Ok(true) => {
                observer.group_ended(group.id);
                dispatch.count_group();
                spare = Some(group);
            }
            Ok(false) => {
                first = SHORT_SLICE;
                observer.group_parked(group.id);
                parked.push_back(group);
            }
            Err(fault) => {
                dispatch.count_group();
                return (stats, Err(fault));
            }
        }
    }
    spare.into_iter().for_each(|group| group.recycle());
    (stats, Ok(()))
}

fn launch_fault(e: DispatchError) -> Box<Fault> {
    Box::new(Fault {
        kind: FaultKind::Other,
        message: e.to_string(),
        line: 0,
        file: None,
        pc: 0,
        instruction: "(not started)".to_string(),
        workgroup: [0; 3],
        wave: 0,
        lane: None,
        address: None,
    })
}

/// State shared by the threads.
struct Work<'a> {
    dispatch: &'a Dispatch<'a>,
    memory: &'a Memory,
    /// Number of workgroups.
    total: u64,
    threads: usize,
    budget: Budget,
    /// The next workgroup to start.
    next: AtomicU64,
    /// Index of the first workgroup known to have faulted. Those before it still finish, so that the reported
    /// fault does not depend on the number of threads.
    first_faulty: AtomicU64,
    fault: Mutex<Option<(u64, Box<Fault>)>>,
}

/// [`Dispatch::first_slice`] for an observed run, in which instructions take longer.
const OBSERVED_SLICE: u64 = 1 << 20;
/// Instructions in each later turn of a suspended workgroup.
const NEXT_SLICE: u64 = 64 << 10;

impl<'a> Work<'a> {
    /// Runs workgroups until none are left; returns the number of instructions executed.
    fn run(&self) -> u64 {
        let mut executed = 0;
        // Boxed, because workgroups are moved several times, which is a good part of the time of a short one.
        let new = || Box::new(Group::new(self.dispatch, self.memory));
        let mut spare = Some(new());
        let bytes = spare.as_ref().map_or(1, |group| group.bytes()).max(1);
        let resident = (self.dispatch.resident_bytes / self.threads / bytes).max(1);
        let mut waiting: VecDeque<(u64, Box<Group<'a>>)> = VecDeque::new();
        let mut first = self.dispatch.first_slice();
        let mut left = true;
        loop {
            let mut begun = None;
            if left && waiting.len() < resident {
                let index = self.next.fetch_add(1, Ordering::Relaxed);
                left = index < self.total && index <= self.first_faulty.load(Ordering::Relaxed);
                if left {
                    let mut group = spare.take().unwrap_or_else(new);
                    group.start(self.dispatch.workgroup(index));
                    begun = Some((index, group, first));
                }
            }
            let next = begun.or_else(|| waiting.pop_front().map(|(index, group)| (index, group, NEXT_SLICE)));
            let Some((index, mut group, slice)) = next else {
                spare.into_iter().for_each(|group| group.recycle());
                return executed;
            };
            if index > self.first_faulty.load(Ordering::Relaxed) {
                continue;
            }
            let before = group.executed;
            let result = group.run(&self.budget, slice);
            executed += group.executed - before;
            self.dispatch.count_instructions(group.executed - before);
            match result {
                Ok(false) => {
                    first = SHORT_SLICE;
                    waiting.push_back((index, group));
                    continue;
                }
                Ok(true) => {}
                Err(fault) => self.record(index, fault),
            }
            self.dispatch.count_group();
            spare = Some(group);
        }
    }

    /// Records a fault. The dispatch reports the first one in workgroup order.
    fn record(&self, index: u64, fault: Box<Fault>) {
        self.first_faulty.fetch_min(index, Ordering::Relaxed);
        let mut first = self.fault.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if first.as_ref().is_none_or(|f| index < f.0) {
            *first = Some((index, fault));
        }
    }
}
