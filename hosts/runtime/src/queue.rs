//! In-order work queues. Each queue runs its tasks on a thread of its own. HIP's streams and OpenCL's command
//! queues are built on them.
//!
//! A task can also wait for tickets of other queues. A ticket exists only for work that has already been
//! submitted, so tasks cannot form a cycle of waits.

use crate::clock::{self, Submission};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Handle to submitted work.
#[derive(Clone, Default)]
pub struct Ticket(Arc<Completion>);

#[derive(Default)]
struct Completion {
    at: Mutex<Option<Instant>>,
    changed: Condvar,
}

/// Locks, ignoring poisoning: a panic cannot leave the protected state inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ticket {
    /// Returns the time at which the work ended, if it has.
    pub fn ended(&self) -> Option<Instant> {
        *lock(&self.0.at)
    }

    /// Waits for the work to end. Returns the time at which it ended.
    pub fn wait(&self) -> Instant {
        clock::host_waits();
        self.block()
    }

    /// As [`Ticket::wait`], for a queue.
    fn block(&self) -> Instant {
        let mut at = lock(&self.0.at);
        loop {
            match *at {
                Some(end) => return end,
                None => at = self.0.changed.wait(at).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn end(&self) {
        *lock(&self.0.at) = Some(clock::now());
        self.0.changed.notify_all();
    }
}

/// Completes the ticket when dropped, even if the task panics, so that waiters are always released.
struct CompletionGuard(Ticket);

impl Drop for CompletionGuard {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Work that the program completes itself, as with OpenCL's user events. Dropping the promise completes it;
/// until then, queues whose tasks wait for it are blocked.
pub struct Promise(CompletionGuard);

impl Default for Promise {
    fn default() -> Promise {
        Promise(CompletionGuard(Ticket::default()))
    }
}

impl Promise {
    /// Returns a handle to the work.
    pub fn ticket(&self) -> Ticket {
        self.0.0.clone()
    }
}

struct Task {
    after: Vec<Ticket>,
    work: Box<dyn FnOnce() + Send>,
    submission: Submission,
    completion: CompletionGuard,
}

impl Task {
    fn run(self) {
        for ticket in &self.after {
            ticket.block();
        }
        // The work itself reports panics (as HIP's operations do). The queue continues with the next task.
        let work = std::panic::AssertUnwindSafe(|| self.submission.run(self.work));
        let _ = std::panic::catch_unwind(work);
        drop(self.completion);
    }
}

/// An in-order work queue. The first task for the queue's thread starts the thread. After the queue is
/// dropped, the thread finishes the remaining tasks and exits.
#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    worker: Option<Sender<Task>>,
    last: Option<Ticket>,
}

impl State {
    /// Returns the ticket of the last task, if it has not ended.
    fn pending(&mut self) -> Option<&Ticket> {
        self.last.take_if(|ticket| ticket.ended().is_some());
        self.last.as_ref()
    }

    /// Sends the task to the thread. Returns the task if no thread can be started.
    fn send(&mut self, task: Task) -> Option<Task> {
        let task = match &self.worker {
            Some(worker) => match worker.send(task) {
                Ok(()) => return None,
                Err(mpsc::SendError(task)) => task,
            },
            None => task,
        };
        let (sender, receiver) = mpsc::channel::<Task>();
        let spawned = std::thread::Builder::new().name("wavesim queue".to_string()).spawn(move || {
            for task in receiver {
                task.run();
            }
        });
        match spawned {
            Ok(_) => {
                // The thread has just started, and receives until the sender is dropped.
                let _ = sender.send(task);
                self.worker = Some(sender);
                None
            }
            Err(_) => Some(task),
        }
    }
}

/// Work that has a position in a queue. Callers that order several queues hold a lock while they enqueue
/// work, and call [`EnqueuedTask::start`] after releasing the lock.
#[must_use = "`start` runs the work if the queue has no thread"]
pub struct EnqueuedTask {
    ticket: Ticket,
    /// The task, if the queue has no thread that could run it.
    unsent: Option<Task>,
}

impl EnqueuedTask {
    /// Ensures that the work runs. If the host could not start a thread, runs the work on the calling thread.
    pub fn start(self) -> Ticket {
        if let Some(task) = self.unsent {
            task.run();
        }
        self.ticket
    }
}

/// A reserved position in a queue for work of the calling thread. Later work of the queue waits until the
/// reservation is used or dropped.
pub struct Reservation {
    after: Vec<Ticket>,
    submission: Submission,
    completion: CompletionGuard,
}

impl Reservation {
    /// Waits for the preceding work, then runs `work` on the calling thread.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        let Reservation { after, submission, completion: _completion } = self;
        for ticket in after {
            ticket.block();
        }
        submission.run(work)
    }
}

impl Queue {
    /// Submits work that runs after all previously submitted work and the tickets `after`.
    pub fn submit(&self, after: Vec<Ticket>, work: impl FnOnce() + Send + 'static) -> Ticket {
        self.enqueue(after, work).start()
    }

    /// Adds work to the queue. The work may start before this function returns.
    pub fn enqueue(&self, mut after: Vec<Ticket>, work: impl FnOnce() + Send + 'static) -> EnqueuedTask {
        let ticket = Ticket::default();
        let mut state = lock(&self.state);
        // The thread runs its own tasks in order, but the preceding work may run on another thread.
        after.extend(state.pending().cloned());
        state.last = Some(ticket.clone());
        let completion = CompletionGuard(ticket.clone());
        let task = Task { after, work: Box::new(work), submission: Submission::now(), completion };
        EnqueuedTask { ticket, unsent: state.send(task) }
    }

    /// Runs work on the calling thread, after all previously submitted work and the tickets `after`.
    pub fn run<T>(&self, after: Vec<Ticket>, work: impl FnOnce() -> T) -> T {
        self.reserve(after).run(work)
    }

    /// Reserves a position for work of the calling thread, after all previously submitted work and
    /// the tickets `after`.
    pub fn reserve(&self, mut after: Vec<Ticket>) -> Reservation {
        let ticket = Ticket::default();
        let mut state = lock(&self.state);
        after.extend(state.pending().cloned());
        state.last = Some(ticket.clone());
        Reservation { after, submission: Submission::now(), completion: CompletionGuard(ticket) }
    }

    /// Returns the ticket of the last submitted work, if it has not ended.
    pub fn pending(&self) -> Option<Ticket> {
        lock(&self.state).pending().cloned()
    }

    /// Waits for all submitted work.
    pub fn wait(&self) {
        clock::host_waits();
        if let Some(ticket) = self.pending() {
            ticket.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[test]
    fn work_runs_in_order() {
        let (queue, seen) = (Queue::default(), Arc::new(Mutex::new(Vec::new())));
        for n in 0..100 {
            let seen = seen.clone();
            queue.submit(Vec::new(), move || seen.lock().unwrap().push(n));
        }
        let len = queue.run(Vec::new(), || seen.lock().unwrap().len());
        assert_eq!(len, 100);
        assert_eq!(*seen.lock().unwrap(), (0..100).collect::<Vec<_>>());
        assert!(queue.pending().is_none());
    }

    #[test]
    fn tickets_order_queues() {
        let (first, second) = (Queue::default(), Queue::default());
        let count = Arc::new(AtomicUsize::new(0));
        let (a, b) = (count.clone(), count.clone());
        let slow = first.submit(Vec::new(), move || {
            std::thread::sleep(Duration::from_millis(20));
            a.store(7, Ordering::SeqCst);
        });
        let ticket = second.submit(vec![slow.clone()], move || {
            assert_eq!(b.fetch_add(1, Ordering::SeqCst), 7);
        });
        assert!(slow.wait() <= ticket.wait());
        assert_eq!(count.load(Ordering::SeqCst), 8);
    }

    #[test]
    fn submitted_work_waits_for_reservations() {
        let (queue, seen) = (Queue::default(), Arc::new(Mutex::new(Vec::new())));
        let reservation = queue.reserve(Vec::new());
        let last = seen.clone();
        let ticket = queue.submit(Vec::new(), move || last.lock().unwrap().push("submitted"));
        std::thread::sleep(Duration::from_millis(20));
        assert!(ticket.ended().is_none());
        reservation.run(|| seen.lock().unwrap().push("run"));
        ticket.wait();
        assert_eq!(*seen.lock().unwrap(), ["run", "submitted"]);
        drop(queue.reserve(Vec::new()));
        assert!(queue.pending().is_none());
    }

    #[test]
    fn a_promise_blocks_a_queue() {
        let (queue, promise) = (Queue::default(), Promise::default());
        let ticket = queue.submit(vec![promise.ticket()], || ());
        std::thread::sleep(Duration::from_millis(5));
        assert!(ticket.ended().is_none());
        drop(promise);
        ticket.wait();
    }

    #[test]
    fn a_panic_does_not_stop_a_queue() {
        let queue = Queue::default();
        queue.submit(Vec::new(), || panic!("as planned"));
        queue.wait();
        assert_eq!(queue.run(Vec::new(), || 5), 5);
    }
}
