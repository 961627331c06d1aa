//! Host threads that run the workgroups of dispatches. They stay for a while after a dispatch: starting a thread takes as
//! long as a short dispatch, and programs often launch one kernel after the other.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a worker waits for the next dispatch before it ends.
const IDLE: Duration = Duration::from_secs(1);

/// Runs `own` on this thread. Once it calls its argument, up to `count` workers run `task`; a worker that is not free
/// before `own` ends does not. Returns the result of `own` when all workers that run `task` have ended.
pub fn run_with<R>(count: usize, task: &(dyn Fn() + Sync), own: impl FnOnce(&mut dyn FnMut()) -> R) -> R {
    let mut offer = Offer(None);
    let result = own(&mut || offer.make(count, task));
    if let Some(panic) = offer.close() {
        resume_unwind(panic);
    }
    result
}

/// The tasks of all dispatches.
static STATE: Mutex<State> =
    Mutex::new(State { process: 0, last_id: 0, jobs: Vec::new(), waiting: 0, starting: 0 });
/// A task can be taken.
static OPEN: Condvar = Condvar::new();
/// A worker has ended a task.
static ENDED: Condvar = Condvar::new();

struct State {
    /// The process that the workers belong to: a forked one has none.
    process: u32,
    last_id: u64,
    jobs: Vec<Job>,
    /// Workers that wait for a task, and those that have been started and have not looked for one.
    waiting: usize,
    starting: usize,
}

/// The task of a dispatch.
struct Job {
    id: u64,
    task: TaskPointer,
    /// How many more workers may take it.
    open: usize,
    running: usize,
    /// Of a worker that has panicked.
    panic: Option<Box<dyn Any + Send>>,
}

/// What workers of a dispatch run, each once.
type Task = dyn Fn() + Sync;

/// A task, which exists as long as its job ([`Offer::close`]).
#[derive(Clone, Copy)]
struct TaskPointer(*const Task);

// SAFETY: the task is `Sync`.
unsafe impl Send for TaskPointer {}

fn state() -> MutexGuard<'static, State> {
    // No change of the state is left half done: none of them can panic.
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The job that a dispatch has made, by its number.
struct Offer(Option<u64>);

impl Offer {
    #[allow(clippy::disallowed_methods, reason = "the one place that starts threads, by feature")]
    fn make(&mut self, count: usize, task: &(dyn Fn() + Sync)) {
        // SAFETY: only the lifetime changes. Workers use the task while the job exists, and the job is removed in
        // `close`, which `run_with` calls, or `drop` when it unwinds, while the task is borrowed.
        let task =
            TaskPointer(unsafe { std::mem::transmute::<*const (dyn Fn() + Sync + '_), *const Task>(task) });
        let mut state = state();
        let process = std::process::id();
        if state.process != process {
            *state = State { process, last_id: 0, jobs: Vec::new(), waiting: 0, starting: 0 };
        }
        state.last_id += 1;
        self.0 = Some(state.last_id);
        let id = state.last_id;
        state.jobs.push(Job { id, task, open: count, running: 0, panic: None });
        let open: usize = state.jobs.iter().map(|job| job.open).sum();
        let missing = open.saturating_sub(state.waiting + state.starting);
        state.starting += missing;
        drop(state);
        (0..count).for_each(|_| OPEN.notify_one());
        for _ in 0..missing {
            let name = "wavesim worker".to_string();
            if std::thread::Builder::new().name(name).spawn(work).is_err() {
                // The host has no more threads: the dispatch runs on those that it has.
                self::state().starting -= 1;
            }
        }
    }

    /// Lets no more workers take the job, waits for those that run it, and removes it. Returns the panic of one.
    fn close(&mut self) -> Option<Box<dyn Any + Send>> {
        let id = self.0.take()?;
        let mut state = state();
        loop {
            let index = state.jobs.iter().position(|job| job.id == id)?;
            let job = &mut state.jobs[index];
            job.open = 0;
            if job.running == 0 {
                return state.jobs.swap_remove(index).panic;
            }
            state = ENDED.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        self.close();
    }
}

/// Runs tasks until there has been none for a while.
fn work() {
    let mut state = state();
    state.starting -= 1;
    loop {
        if let Some(job) = state.jobs.iter_mut().find(|job| job.open > 0) {
            job.open -= 1;
            job.running += 1;
            let (id, task) = (job.id, job.task);
            drop(state);
            // SAFETY: the job is not removed while `running` counts this worker.
            let result = catch_unwind(AssertUnwindSafe(|| unsafe { (*task.0)() }));
            state = self::state();
            if let Some(job) = state.jobs.iter_mut().find(|job| job.id == id) {
                job.running -= 1;
                job.panic = result.err().or(job.panic.take());
            }
            ENDED.notify_all();
            continue;
        }
        state.waiting += 1;
        let (next, wait) = OPEN.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
        state = next;
        state.waiting -= 1;
        if wait.timed_out() && state.jobs.iter().all(|job| job.open == 0) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::run_with;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn workers_run_the_task_beside_the_caller() {
        for _ in 0..3 {
            let (meeting, runs) = (Barrier::new(3), AtomicU32::new(0));
            let task = || {
                meeting.wait();
                runs.fetch_add(1, Ordering::Relaxed);
            };
            let own = |start: &mut dyn FnMut()| {
                start();
                meeting.wait();
                7
            };
            assert_eq!(run_with(2, &task, own), 7);
            assert_eq!(runs.into_inner(), 2);
        }
    }

    #[test]
    fn dispatches_within_tasks_have_workers_of_their_own() {
        let inner_runs = AtomicU32::new(0);
        let nested = || {
            let meeting = Barrier::new(2);
            run_with(1, &|| _ = meeting.wait(), |start| {
                start();
                meeting.wait();
            });
            inner_runs.fetch_add(1, Ordering::Relaxed);
        };
        run_with(1, &nested, |start| {
            start();
            nested();
        });
        assert!(inner_runs.into_inner() >= 1);
    }

    #[test]
    fn a_panic_of_a_worker_reaches_the_caller() {
        let meeting = Barrier::new(2);
        let task = || {
            meeting.wait();
            panic!("of the task");
        };
        let own = |start: &mut dyn FnMut()| {
            start();
            meeting.wait();
        };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run_with(1, &task, own)));
        let panic = result.expect_err("the worker has panicked");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"of the task"));
    }

    #[test]
    fn a_task_that_is_not_started_does_not_run() {
        let runs = AtomicU32::new(0);
        run_with(2, &|| _ = runs.fetch_add(1, Ordering::Relaxed), |_| ());
        assert_eq!(runs.into_inner(), 0);
    }
}
