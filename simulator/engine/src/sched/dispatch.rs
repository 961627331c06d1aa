//! Runs dispatches. The waves of a workgroup take turns (`group`). Workgroups run one after another or on
//! several threads; long ones take turns as well.

pub use super::cancel::INTERRUPT;
use super::cluster::Cluster;
use super::follow;
use super::launch::SHORT_SLICE;
pub use super::launch::{
    Budget, Dispatch, DispatchError, InitialState, Layout, MAX_LDS, MAX_SCRATCH, Progress, Registers,
    RunStats, Shape, parse_group,
};
pub use super::order::{GroupOrder, Schedule};
use super::queue::{Claims, Followers, Queue};
pub use super::slot::{MAX_ITEMS, MAX_WAVES};
#[cfg(feature = "threads")]
use super::workers;
use crate::observe::{NoObserver, Observer};
use std::collections::VecDeque;
use std::sync::Mutex;
#[cfg(feature = "threads")]
use std::sync::atomic::{AtomicU64, Ordering};
use wavesim_machine::fault::{Fault, FaultKind};
use wavesim_machine::memory::Memory;

/// Runs the dispatch until it ends, or until the first fault in workgroup order.
pub fn run(dispatch: &Dispatch<'_>, memory: &Memory) -> Result<RunStats, Box<Fault>> {
    dispatch.check().map_err(launch_fault)?;
    dispatch.begin();
    if let Some(recorded) = &dispatch.recorded {
        dispatch.check_recorded().map_err(launch_fault)?;
        let (stats, result) = follow::run(dispatch, memory, recorded, &mut NoObserver);
        return result.map(|()| stats);
    }
    let total = dispatch.workgroups();
    let threads = if cfg!(feature = "threads") { dispatch.threads.max(1) } else { 1 };
    let clusters = total / u64::from(dispatch.cluster_workgroups());
    let threads = (threads as u64).min(clusters.max(1)) as usize;
    let work = Work {
        dispatch,
        memory,
        threads,
        budget: Budget::new(dispatch.max_instructions),
        queue: Queue::new(clusters, threads),
        fault: Mutex::new(None),
    };
    let _running = memory.register_threads(threads as u32);
    let instructions = if threads == 1 { work.run(None) } else { run_on_threads(threads, &work) };
    match work.fault.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        Some((_, fault)) => Err(fault),
        None => Ok(RunStats { instructions, waves: total * dispatch.waves() as u64 }),
    }
}

/// Runs on this thread and, unless the dispatch is short, on others.
#[cfg(feature = "threads")]
fn run_on_threads(threads: usize, work: &Work<'_>) -> u64 {
    let executed = AtomicU64::new(0);
    let task = || _ = executed.fetch_add(work.run(None), Ordering::Relaxed);
    let own = workers::run_with(threads - 1, &task, |start| work.run(Some(start)));
    own + executed.into_inner()
}

#[cfg(not(feature = "threads"))]
fn run_on_threads(_: usize, work: &Work<'_>) -> u64 {
    work.run(None)
}

/// As [`run`] on one thread, with an observer of every instruction. Returns the instruction count after a
/// fault as well.
pub fn run_observed<O: Observer + ?Sized>(
    dispatch: &Dispatch<'_>,
    memory: &Memory,
    observer: &mut O,
) -> (RunStats, Result<(), Box<Fault>>) {
    let mut stats = RunStats::default();
    if let Err(e) = dispatch.check().and_then(|()| dispatch.check_recorded()) {
        return (stats, Err(launch_fault(e)));
    }
    dispatch.begin();
    if let Some(recorded) = &dispatch.recorded {
        return follow::run(dispatch, memory, recorded, observer);
    }
    let budget = Budget::new(dispatch.max_instructions);
    let groups = u64::from(dispatch.cluster_workgroups());
    let (total, waves) = (dispatch.workgroups() / groups, u64::from(dispatch.waves()) * groups);
    let mut spare = Some(Cluster::new(dispatch, memory));
    let resident = dispatch.resident_bytes / spare.as_ref().map_or(1, |cluster| cluster.bytes()).max(1);
    let mut parked: VecDeque<Cluster<'_>> = VecDeque::new();
    let mut first = dispatch.first_slice().min(OBSERVED_SLICE);
    let mut next = 0;
    let mut preemption = dispatch.schedule.preemption();
    loop {
        if groups == 1 && next < total {
            next = observer.next_workgroup(next).max(next);
        }
        let mut starts = next < total && parked.len() < resident.max(1);
        if let Some(random) = &mut preemption {
            starts &= parked.is_empty() || random.starts();
            random.choose(&mut parked);
        }
        let (mut cluster, slice) = if starts {
            let mut cluster = spare.take().unwrap_or_else(|| Cluster::new(dispatch, memory));
            cluster.start(next);
            next += 1;
            stats.waves += waves;
            (cluster, first)
        } else if let Some(cluster) = parked.pop_front() {
            (cluster, NEXT_SLICE)
        } else {
            break;
        };
        let slice = preemption.as_mut().map_or(slice, |random| random.slice());
        // An observer's time counts the instructions of the whole dispatch.
        cluster.executed = stats.instructions;
        let before = cluster.executed;
        let result = cluster.run_observed(&budget, slice, observer);
        dispatch.count_instructions(cluster.executed - before);
        stats.instructions = cluster.executed;
        match result {
            Ok(true) => {
                dispatch.count_cluster();
                spare = Some(cluster);
            }
            Ok(false) => {
                first = SHORT_SLICE;
                parked.push_back(cluster);
            }
            Err(fault) => {
                dispatch.count_cluster();
                return (stats, Err(fault));
            }
        }
    }
    spare.into_iter().for_each(|cluster| cluster.recycle());
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
    threads: usize,
    budget: Budget,
    queue: Queue,
    fault: Mutex<Option<(u64, Box<Fault>)>>,
}

/// [`Dispatch::first_slice`] for an observed run, in which instructions take longer.
const OBSERVED_SLICE: u64 = 1 << 20;
/// Instructions in each later turn of a suspended workgroup.
const NEXT_SLICE: u64 = 64 << 10;

/// What the start of a cluster counts as in [`Dispatch::alone`].
const START: u64 = 64;

impl<'a> Work<'a> {
    /// Runs workgroups until none are left; returns the number of instructions executed. Calls `start_others` once
    /// there has been enough work for other threads.
    fn run(&self, mut start_others: Option<&mut dyn FnMut()>) -> u64 {
        let (mut executed, mut begun_clusters) = (0, 0);
        let claims = Claims::new(&self.queue);
        // A cluster has pointers to its workgroups, because moving these would take a good part of the time of a
        // short one.
        let new = || Cluster::new(self.dispatch, self.memory);
        let mut spare = Some(new());
        let bytes = spare.as_ref().map_or(1, |cluster| cluster.bytes()).max(1);
        let resident = (self.dispatch.resident_bytes / self.threads / bytes).max(1);
        let mut waiting: VecDeque<Cluster<'a>> = VecDeque::new();
        let mut first = self.dispatch.first_slice();
        let mut left = true;
        let mut preemption = self.dispatch.schedule.preemption();
        loop {
            if let Some(start) =
                start_others.take_if(|_| executed + START * begun_clusters >= self.dispatch.alone)
            {
                start();
            }
            let alone = start_others.is_some();
            let mut begun = None;
            let mut starts = left && waiting.len() < resident;
            if let Some(random) = &mut preemption {
                starts &= waiting.is_empty() || random.starts();
                random.choose(&mut waiting);
            }
            if starts {
                let index = claims.take();
                left = index.is_some();
                if let Some(index) = index {
                    let mut cluster = spare.take().unwrap_or_else(new);
                    cluster.start(index);
                    begun = Some((cluster, first));
                    begun_clusters += 1;
                }
            }
            let next = begun.or_else(|| waiting.pop_front().map(|cluster| (cluster, NEXT_SLICE)));
            let Some((mut cluster, slice)) = next else {
                spare.into_iter().for_each(|cluster| cluster.recycle());
                return executed;
            };
            if self.queue.is_needless(cluster.index) {
                continue;
            }
            let slice = preemption.as_mut().map_or(slice, |random| random.slice());
            let slice = if alone { slice.min(self.dispatch.alone) } else { slice };
            let before = cluster.executed;
            // In random turns, each workgroup has its own.
            let followers =
                (preemption.is_none() && !alone).then_some(Followers { claims: &claims, slice: first });
            let result = cluster.run(&self.budget, slice, followers);
            executed += cluster.executed - before;
            self.dispatch.count_instructions(cluster.executed - before);
            match result {
                Ok(false) => {
                    if !alone {
                        first = SHORT_SLICE;
                    }
                    waiting.push_back(cluster);
                    continue;
                }
                Ok(true) => {}
                Err(fault) => self.record(cluster.index, fault),
            }
            self.dispatch.count_cluster();
            spare = Some(cluster);
        }
    }

    /// Records a fault. The dispatch reports the first one in workgroup order.
    fn record(&self, index: u64, fault: Box<Fault>) {
        self.queue.record_fault(index);
        let mut first = self.fault.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if first.as_ref().is_none_or(|f| index < f.0) {
            *first = Some((index, fault));
        }
    }
}
