//! Queues of work: what one is given runs in order on a thread of its own. HIP's streams and OpenCL's command queues are made of them.
//!
//! A task can also wait for tickets of other queues. A ticket exists only for work that was submitted before, so that tasks cannot
//! wait for each other in a circle.

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Stands for submitted work.
#[derive(Clone, Default)]
pub struct Ticket(Arc<Completion>);

#[derive(Default)]
struct Completion {
    at: Mutex<Option<Instant>>,
    changed: Condvar,
}

/// Locks. A task that panics leaves nothing half done behind these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ticket {
    /// When the work ended, if it has.
    pub fn ended(&self) -> Option<Instant> {
        *lock(&self.0.at)
    }

    /// Waits for the work to end.
    pub fn wait(&self) -> Instant {
        let mut at = lock(&self.0.at);
        loop {
            match *at {
                Some(end) => return end,
                None => at = self.0.changed.wait(at).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn end(&self) {
        *lock(&self.0.at) = Some(Instant::now());
        self.0.changed.notify_all();
    }
}

/// Ends the ticket when dropped, so that a task that panics does not leave others waiting.
struct Ending(Ticket);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Work of the program, which ends when this is dropped: OpenCL's user events. Queues whose tasks wait for it stand still until then.
pub struct Promise(Ending);

impl Default for Promise {
    fn default() -> Promise {
        Promise(Ending(Ticket::default()))
    }
}

impl Promise {
    /// Stands for the work.
    pub fn ticket(&self) -> Ticket {
        self.0.0.clone()
    }
}

struct Task {
    after: Vec<Ticket>,
    work: Box<dyn FnOnce() + Send>,
    ending: Ending,
}

impl Task {
    fn run(self) {
        for ticket in &self.after {
            ticket.wait();
        }
        // A panic is the work's own to report (HIP's operations do); the queue goes on.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(self.work));
        drop(self.ending);
    }
}

/// A queue. Its thread starts with the first task that is not run by its submitter, and ends with the queue, after its tasks.
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
    /// The last task, if it has not ended.
    fn pending(&mut self) -> Option<&Ticket> {
        self.last.take_if(|ticket| ticket.ended().is_some());
        self.last.as_ref()
    }

    /// Gives the task to the thread. It comes back if there is none.
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

/// Work that has its place in a queue. Programs that order several queues hold a lock while they place work, and start it without
/// the lock.
#[must_use = "work that no thread of the queue takes is done by `start`"]
pub struct Placed {
    ticket: Ticket,
    /// No thread takes it.
    left: Option<Task>,
}

impl Placed {
    /// Lets it begin. If the host has no more threads, the caller does the work.
    pub fn start(self) -> Ticket {
        if let Some(task) = self.left {
            task.run();
        }
        self.ticket
    }
}

/// A place in a queue for work of the calling thread. The queue's later work waits until it is used or dropped.
pub struct Turn {
    after: Vec<Ticket>,
    ending: Ending,
}

impl Turn {
    /// Runs work, when its turn has come.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        let Turn { after, ending: _ending } = self;
        for ticket in after {
            ticket.wait();
        }
        work()
    }
}

impl Queue {
    /// Submits work, to be run when what was submitted before and the tickets `after` have ended.
    pub fn submit(&self, after: Vec<Ticket>, work: impl FnOnce() + Send + 'static) -> Ticket {
        self.place(after, work).start()
    }

    /// Submits work. It may begin at once.
    pub fn place(&self, mut after: Vec<Ticket>, work: impl FnOnce() + Send + 'static) -> Placed {
        let ticket = Ticket::default();
        let mut state = lock(&self.state);
        // The queue's thread has its own tasks in order; those of other threads it does not know.
        after.extend(state.pending().cloned());
        state.last = Some(ticket.clone());
        let task = Task { after, work: Box::new(work), ending: Ending(ticket.clone()) };
        Placed { ticket, left: state.send(task) }
    }

    /// Runs work on the calling thread, when what was submitted before and the tickets `after` have ended.
    pub fn run<T>(&self, after: Vec<Ticket>, work: impl FnOnce() -> T) -> T {
        self.turn(after).run(work)
    }

    /// A place for work of the calling thread, after what was submitted before and the tickets `after`.
    pub fn turn(&self, mut after: Vec<Ticket>) -> Turn {
        let ticket = Ticket::default();
        let mut state = lock(&self.state);
        after.extend(state.pending().cloned());
        state.last = Some(ticket.clone());
        Turn { after, ending: Ending(ticket) }
    }

    /// The last submitted work, if it has not ended.
    pub fn pending(&self) -> Option<Ticket> {
        lock(&self.state).pending().cloned()
    }

    /// Waits for everything that was submitted.
    pub fn wait(&self) {
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
    fn work_is_done_in_order() {
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
    fn submitted_work_waits_for_work_of_other_threads() {
        let (queue, seen) = (Queue::default(), Arc::new(Mutex::new(Vec::new())));
        let turn = queue.turn(Vec::new());
        let last = seen.clone();
        let ticket = queue.submit(Vec::new(), move || last.lock().unwrap().push("submitted"));
        std::thread::sleep(Duration::from_millis(20));
        assert!(ticket.ended().is_none());
        turn.run(|| seen.lock().unwrap().push("run"));
        ticket.wait();
        assert_eq!(*seen.lock().unwrap(), ["run", "submitted"]);
        drop(queue.turn(Vec::new()));
        assert!(queue.pending().is_none());
    }

    #[test]
    fn a_promise_holds_a_queue() {
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
