//! Runs the cases of a campaign that have no result.

use crate::plan::{Campaign, Case, Keep, Limits, Shard};
use crate::process::{End, Ended, Program, Starter, Watchdog};
use crate::store::{Record, Status, Store, StoreError};
use serde_json::Value;
use std::collections::HashMap;
use std::hash::Hasher as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How a campaign is run.
pub struct Options<'a> {
    /// The program `wavesim`.
    pub program: &'a Program,
    /// Processes at the same time.
    pub jobs: usize,
    /// The part to run.
    pub shard: Shard,
    /// A folder for the logs of the processes, which is removed at the end.
    pub scratch: &'a Path,
    /// Whether to stop.
    pub interrupted: &'a (dyn Fn() -> bool + Sync),
    /// Called with the progress after each change, and several times a second.
    pub progress: &'a dyn Fn(&Progress),
}

/// The progress of a campaign.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Cases of the shard.
    pub total: u64,
    /// Cases whose result was there before.
    pub known: u64,
    /// Results of this run.
    pub done: u64,
    /// Those that have not passed.
    pub failed: u64,
}

/// The reason why a campaign ends early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The database reports an error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The program cannot be started.
    #[error("{program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// The error.
        source: std::io::Error,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The error.
        source: std::io::Error,
    },
}

/// Returns a hash of bytes (FNV-1a): a changed kernel has another one.
pub(crate) fn hash(bytes: &[u8]) -> i64 {
    let mut hash = fnv::FnvHasher::default();
    hash.write(bytes);
    hash.finish() as i64
}

/// Returns the hashes of the kernels.
///
/// # Errors
/// A kernel cannot be read.
pub fn contents(campaign: &Campaign) -> Result<HashMap<PathBuf, i64>, RunError> {
    let mut out = HashMap::new();
    for path in campaign.kernels() {
        if !out.contains_key(path) {
            let bytes = std::fs::read(path);
            let bytes = bytes.map_err(|source| RunError::Io { path: path.display().to_string(), source })?;
            out.insert(path.to_path_buf(), hash(&bytes));
        }
    }
    Ok(out)
}

/// What a worker sends.
type Sent = Result<Record, RunError>;

/// Runs all cases of a shard that have no result. Results are stored as they arrive.
///
/// # Errors
/// A file, the program or the database fails. Results up to then are stored.
pub fn run(campaign: &Campaign, store: &mut Store, options: &Options<'_>) -> Result<Progress, RunError> {
    let contents = contents(campaign)?;
    let io = |source| RunError::Io { path: options.scratch.display().to_string(), source };
    std::fs::create_dir_all(options.scratch).map_err(io)?;
    if let Some(folder) = &campaign.coverage {
        let io = |source| RunError::Io { path: folder.display().to_string(), source };
        std::fs::create_dir_all(folder).map_err(io)?;
    }
    let name = if campaign.plan.name.is_empty() { "campaign" } else { &campaign.plan.name };
    store.set("name", name)?;
    store.set("plan", &campaign.text)?;
    let done = store.done()?;
    let is_known = |case: &Case| {
        done.get(case.name.as_str()).is_some_and(|hash| Some(hash) == contents.get(&case.kernel))
    };
    let mut progress = Progress::default();
    for case in campaign.cases(options.shard) {
        progress.total += 1;
        progress.known += u64::from(is_known(&case));
    }
    (options.progress)(&progress);
    let waiting = Mutex::new(campaign.cases(options.shard).filter(|case| !is_known(case)));
    let (watchdog, stop) = (Watchdog::default(), AtomicBool::new(false));
    let result = std::thread::scope(|scope| {
        scope.spawn(|| watchdog.watch());
        let (sender, receiver) = sync_channel::<Sent>(4 * options.jobs);
        for worker in 0..options.jobs.max(1) {
            let (sender, contents, waiting, watchdog, stop) =
                (sender.clone(), &contents, &waiting, &watchdog, &stop);
            let scratch = options.scratch.join(format!("{}-{worker}.sarif", options.shard.index));
            let limits = campaign.plan.limits;
            let (keep, program) = (campaign.plan.keep, options.program);
            scope.spawn(move || {
                let job = Job { limits, keep, scratch: &scratch, watchdog };
                let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
                work(&job, &mut Starter::new(program.clone()), next, contents, stop, &sender);
            });
        }
        drop(sender);
        let result = collect(store, &receiver, &mut progress, options, &stop);
        // Workers that wait for room in the channel end when it is closed.
        stop.store(true, Ordering::Relaxed);
        drop(receiver);
        watchdog.close();
        result
    });
    // What remains is written again by the next run.
    let _ = std::fs::remove_dir_all(options.scratch);
    result.map(|()| progress)
}

/// Stores results until the workers have ended.
fn collect(
    store: &mut Store,
    receiver: &Receiver<Sent>,
    progress: &mut Progress,
    options: &Options<'_>,
    stop: &AtomicBool,
) -> Result<(), RunError> {
    const TICK: Duration = Duration::from_millis(100);
    loop {
        if (options.interrupted)() {
            stop.store(true, Ordering::Relaxed);
            return Ok(());
        }
        let first = match receiver.recv_timeout(TICK) {
            Ok(sent) => Some(sent),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        // All that have arrived are one transaction: writing cannot fall behind.
        let mut records = Vec::new();
        let mut error = None;
        for sent in first.into_iter().chain(receiver.try_iter()) {
            match sent {
                Ok(record) => records.push(record),
                Err(e) => error = Some(e),
            }
        }
        store.write(&records)?;
        progress.done += records.len() as u64;
        progress.failed += records.iter().filter(|r| r.status != Status::Passed).count() as u64;
        (options.progress)(progress);
        if let Some(error) = error {
            return Err(error);
        }
    }
}

/// How a worker runs cases.
pub struct Job<'a> {
    /// What each process may use.
    pub limits: Limits,
    /// Which outputs are kept.
    pub keep: Keep,
    /// A file for the log in SARIF.
    pub scratch: &'a Path,
    /// What ends processes in time.
    pub watchdog: &'a Watchdog,
}

fn work(
    job: &Job<'_>,
    starter: &mut Starter,
    next: impl Fn() -> Option<Case>,
    contents: &HashMap<PathBuf, i64>,
    stop: &AtomicBool,
    sender: &SyncSender<Sent>,
) {
    while !stop.load(Ordering::Relaxed) {
        let Some(case) = next() else { return };
        let content = contents.get(&case.kernel).copied().unwrap_or(0);
        let result = job.run(starter, &case, content);
        // A process that was ended because the campaign stops has no result.
        if stop.load(Ordering::Relaxed) || sender.send(result).is_err() {
            return;
        }
    }
}

impl Job<'_> {
    /// Runs a case to its end. `content` is the hash of its kernel.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn run(&self, starter: &mut Starter, case: &Case, content: i64) -> Result<Record, RunError> {
        let mut arguments = case.arguments.clone();
        if case.has_sarif {
            arguments.insert(1, format!("--sarif={}", self.scratch.display()));
        }
        let ended = starter.run(&arguments, self.limits, self.watchdog);
        let program = || starter.program().path.display().to_string();
        let ended = ended.map_err(|source| RunError::Start { program: program(), source })?;
        Ok(self.record(case, content, ended))
    }

    fn record(&self, case: &Case, content: i64, ended: Ended) -> Record {
        let (status, code) = match ended.end {
            End::Code(0) => (Status::Passed, 0),
            End::Code(1) => (Status::Failed, 1),
            End::Code(2) => (Status::Invalid, 2),
            End::Code(code) => (Status::Crashed, code),
            End::Signal(signal) => (Status::Crashed, -signal),
            End::Timeout => (Status::Timeout, 0),
        };
        let kept = self.keep == Keep::All || status != Status::Passed;
        let sarif = if case.has_sarif && status == Status::Failed { log(self.scratch) } else { None };
        Record {
            name: case.name.clone(),
            kernel: case.kernel.display().to_string(),
            target: case.target.clone(),
            content,
            status,
            code,
            seconds: ended.seconds,
            memory_kb: ended.memory_kb,
            output: if kept { ended.output } else { String::new() },
            messages: if kept { ended.messages } else { String::new() },
            sarif: sarif.unwrap_or_default(),
        }
    }
}

/// Takes the run of a log that a process has written, if it has results.
fn log(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    // The next case may end before it writes one.
    let _ = std::fs::remove_file(path);
    let mut log: Value = serde_json::from_str(&text).ok()?;
    let run = log.pointer_mut("/runs/0")?.take();
    let has_results = run.get("results").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    has_results.then(|| run.to_string())
}
