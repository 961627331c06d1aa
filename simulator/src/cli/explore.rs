//! `wavesim explore`: runs a kernel in many orders of its waves, or in all, and looks for one that changes its result.

mod formats;
mod html;
mod random;
mod report;
mod systematic;

use super::input::InputArgs;
use super::memory::Memory;
use super::output::emit;
use super::{FAILED, INTERRUPTED, OK, progress};
use anyhow::bail;
use indicatif::ProgressBar;
use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wavesim_campaign::shard::Shard;
use wavesim_engine::sched::dispatch::{self, Dispatch, INTERRUPT};
use wavesim_explore::assertion::Assertion;
use wavesim_explore::choice::Schedule;
use wavesim_explore::dpor::MOST_DELAYS;
use wavesim_explore::machine::Machine;
use wavesim_explore::outcome::{Outcome, Spread};
use wavesim_loader::compare::Tolerance;
use wavesim_loader::prepared::Prepared;

/// Run a kernel in many orders of its waves, and report a result that depends on the order, with a schedule that shows it
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ExploreArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// Number of random schedules
    #[arg(long, value_name = "N", default_value_t = 1000, conflicts_with = "systematic",
        value_parser = clap::value_parser!(u64).range(1..))]
    pub random: u64,
    /// Orderings that a bug needs, for which random schedules are made (PCT)
    #[arg(long, value_name = "D", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub depth: u32,
    /// The first seed of random schedules
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub first_seed: u64,
    /// Run all schedules, one of each set of equivalent ones
    #[arg(long)]
    pub systematic: bool,
    /// All schedules with at most this many preemptions: switches from a wave that could have gone on. Memory operations
    /// then take effect at once
    #[arg(long, value_name = "N", requires = "systematic")]
    pub preemptions: Option<u32>,
    /// All schedules in which at most this many memory operations are delayed: of those that some wave issues when one of
    /// the waves runs first
    #[arg(long, value_name = "N", requires = "systematic", conflicts_with = "preemptions",
        value_parser = clap::value_parser!(u8).range(0..=MOST_DELAYS as i64))]
    pub delays: Option<u8>,
    /// Print the set of outcomes with their numbers, and do not stop at the first that differs
    #[arg(long)]
    pub litmus: bool,
    /// What is expected of every schedule: `equal` results, or a condition such as 'out_x == 3 && out_r[1] != 0'
    #[arg(long, value_name = "CONDITION", default_value = "equal")]
    pub expect: String,
    /// Relative difference of floats that counts as equal, because sums depend on their order
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    pub tolerance: f64,
    /// Write the schedule that shows a difference to FILE [default: the name of the kernel with .sched, in the current
    /// folder]
    #[arg(long, value_name = "FILE.sched")]
    pub save: Option<PathBuf>,
    /// Keep the state of the exploration in FILE, and go on from there if it exists
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Host threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// Run only the Ith of N parts, as a job of an array
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    pub shard: Shard,
    /// When memory operations take effect: `delayed`, at times that are explored, between their issue and the wait that
    /// demands them, with garbage in registers, LDS and scratch at first; or `immediate`
    #[arg(long, value_name = "TIMING", default_value = "delayed", value_parser = Memory::parse)]
    pub memory: Memory,
    /// Megabytes that the workgroups of all threads may take
    #[arg(long, value_name = "MB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub memory_limit: u64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Also write a report to an HTML file: what differs, the two accesses that make the difference in a picture and in
    /// the source, all outcomes
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Also write the result to a file in JUnit's XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Also write a difference to a file in SARIF 2.1.0
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Print an annotation of GitHub Actions for a difference, which appears in the diff of a pull request
    #[arg(long, conflicts_with = "json")]
    pub annotate: bool,
    /// Show no progress bar
    #[arg(long, short = 'q')]
    pub quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  wavesim explore kernel.rdna
  wavesim explore kernel.rdna --random 10000 --depth 2 --threads 4
  wavesim explore kernel.rdna --systematic
  wavesim explore kernel.rdna --systematic --litmus \\
      --expect 'out_r[0] == 0 || out_r[1] == 1'
  wavesim debug kernel.rdna --schedule kernel.sched

Exit codes: 0 every schedule is as expected; 1 one is not; 2 bad usage or bad
input; 130 interrupted.";

/// What every schedule is compared with.
enum Expected {
    /// The outcome of the first run.
    Equal(Outcome, Tolerance),
    /// A condition.
    Condition(Assertion),
}

impl Expected {
    /// Returns whether an outcome is not as expected.
    fn is_wrong(&self, outcome: &Outcome) -> bool {
        match self {
            Expected::Equal(first, tolerance) => first.difference(outcome, *tolerance).is_some(),
            Expected::Condition(assertion) => !assertion.holds(outcome),
        }
    }
}

/// A schedule whose outcome is not as expected.
#[derive(Debug, Clone)]
struct Wrong {
    /// The place in the order of the exploration; the least one is reported.
    number: u64,
    schedule: Schedule,
    /// Its seed, if it was made at random.
    seed: Option<u64>,
}

/// Runs with the same outcome.
#[derive(Debug, Clone, Default)]
struct OutcomeRuns {
    count: u64,
    line: String,
    wrong: bool,
}

/// An exploration in progress, shared by its threads.
struct Exploration<'a> {
    args: &'a ExploreArgs,
    expected: Expected,
    /// The outcome of the first run.
    first: Outcome,
    /// Identifies the launch.
    kernel: u64,
    /// Steps after which waves take turns.
    limit: u64,
    /// Executions so far.
    done: AtomicU64,
    /// The number of the first schedule that is not as expected.
    least: AtomicU64,
    wrong: Mutex<Option<Wrong>>,
    outcomes: Mutex<BTreeMap<u64, OutcomeRuns>>,
    spread: Mutex<Spread>,
    bar: ProgressBar,
    started: std::time::Instant,
}

impl Exploration<'_> {
    fn is_interrupted(&self) -> bool {
        INTERRUPT.load(Ordering::Relaxed)
    }

    /// Whether schedules with this number and later ones need not run any more.
    fn is_needless(&self, number: u64) -> bool {
        self.is_interrupted() || !self.args.litmus && number > self.least.load(Ordering::Relaxed)
    }

    /// Returns whether every schedule so far is as expected, of those that count.
    fn has_nothing_wrong(&self) -> bool {
        self.args.litmus || lock(&self.wrong).is_none()
    }

    /// Forgets what has been recorded, for a search that begins again.
    fn forget(&mut self) {
        self.done.store(0, Ordering::Relaxed);
        self.least.store(u64::MAX, Ordering::Relaxed);
        *lock(&self.wrong) = None;
        lock(&self.outcomes).clear();
        *lock(&self.spread) = Spread::default();
    }

    /// Records the outcome of a schedule.
    fn record(&self, number: u64, outcome: &Outcome, seed: Option<u64>, schedule: impl FnOnce() -> Schedule) {
        self.done.fetch_add(1, Ordering::Relaxed);
        let wrong = self.expected.is_wrong(outcome);
        if self.args.litmus {
            let mut outcomes = lock(&self.outcomes);
            let group = outcomes.entry(outcome.hash()).or_default();
            group.count += 1;
            if group.count == 1 {
                (group.line, group.wrong) = (outcome.line(), wrong);
            }
        }
        if self.args.tolerance > 0.0 {
            lock(&self.spread).add(outcome);
        }
        if wrong && self.least.fetch_min(number, Ordering::Relaxed) > number {
            let mut known = lock(&self.wrong);
            if known.as_ref().is_none_or(|known| known.number > number) {
                *known = Some(Wrong { number, schedule: schedule(), seed });
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What an exploration has covered.
#[derive(Debug, Clone, PartialEq)]
enum Coverage {
    /// Random schedules, for the depth and with the number of steps of a run.
    Random { steps: u64 },
    /// All executions, or those within the bound of preemptions.
    Complete {
        redundant: u64,
        /// Number of arrangements of caches.
        arrangements: usize,
    },
    /// Some executions: why not all.
    Partial { redundant: u64, reason: String },
}

/// Creates the launch for a thread.
fn with_machine<R>(
    args: &ExploreArgs,
    body: impl FnOnce(&mut Machine<'_>) -> anyhow::Result<R>,
) -> anyhow::Result<R> {
    let prepared = args.input.prepare(0)?;
    let model = args.memory.model(&prepared);
    let mut dispatch = launch(args, &prepared)?;
    args.memory.apply(&mut dispatch, model.as_ref());
    let mut machine = Machine::new(&prepared, &dispatch)?;
    let bytes = (args.memory_limit << 20) / u64::from(args.threads);
    machine.limit_memory(bytes);
    body(&mut machine)
}

/// The launch without an order: it is what is explored.
fn launch<'p>(args: &ExploreArgs, prepared: &'p Prepared) -> anyhow::Result<Dispatch<'p>> {
    let dispatch = prepared.dispatch(args.input.max_instructions);
    dispatch.check()?;
    Ok(dispatch)
}

pub fn run(args: &ExploreArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    if !(0.0..=1.0).contains(&args.tolerance) {
        bail!("--tolerance {}: a relative difference is between 0 and 1", args.tolerance);
    }
    progress::catch_interrupts();
    let prepared = args.input.prepare(0)?;
    if prepared.memory.is_word_addressed() {
        bail!("assembly programs have no outputs to compare");
    }
    let kernel = prepared.identity();
    let dispatch = args.input.dispatch(&prepared)?;
    let first = Outcome::of_run(&prepared, dispatch::run(&dispatch, &prepared.memory));
    drop(dispatch);
    let tolerance = Tolerance { rtol: args.tolerance, atol: 0.0 };
    let expected = match &*args.expect {
        "equal" => Expected::Equal(first.clone(), tolerance),
        text => {
            let assertion = Assertion::parse(text).map_err(|e| anyhow::anyhow!("--expect: {e}"))?;
            if first.end == wavesim_explore::machine::End::Finished {
                assertion.check(&first).map_err(|e| anyhow::anyhow!("--expect: {e}"))?;
            }
            Expected::Condition(assertion)
        }
    };
    if INTERRUPT.load(Ordering::Relaxed) {
        return Ok(INTERRUPTED);
    }
    let mut exploration = Exploration {
        args,
        expected,
        first,
        kernel,
        limit: 0,
        done: AtomicU64::new(0),
        least: AtomicU64::new(u64::MAX),
        wrong: Mutex::default(),
        outcomes: Mutex::default(),
        spread: Mutex::default(),
        bar: bar(args),
        started: std::time::Instant::now(),
    };
    let coverage = match args.systematic {
        true => systematic::explore(&mut exploration)?,
        false => random::explore(&mut exploration)?,
    };
    exploration.bar.finish_and_clear();
    report::report(&exploration, &coverage, out)
}

/// Steps of a run that is no livelock, from those of one in which every wave runs as long as it can.
fn step_limit(steps: u64) -> u64 {
    const LEAST: u64 = 10_000;
    steps.saturating_mul(20).max(LEAST)
}

fn bar(args: &ExploreArgs) -> ProgressBar {
    if args.quiet || args.json || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let (bar, template) = match args.systematic {
        true => (ProgressBar::new_spinner(), "{elapsed_precise} {human_pos} executions{msg}"),
        false => (
            ProgressBar::new(args.random),
            "{elapsed_precise} {wide_bar} {human_pos}/{human_len} schedules{msg}{left}",
        ),
    };
    bar.set_style(progress::style(template));
    bar
}

/// The file that the schedule is written to.
fn schedule_file(args: &ExploreArgs) -> PathBuf {
    args.save.clone().unwrap_or_else(|| {
        let name = args.input.file.file_stem().filter(|_| args.input.file != Path::new("-"));
        Path::new(name.unwrap_or("kernel".as_ref())).with_extension("sched")
    })
}

/// Runs `work` on the threads of the exploration, each with its own launch. The first error of a thread is returned.
fn on_threads(
    exploration: &Exploration<'_>,
    work: impl Fn(&mut Machine<'_>) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<()> {
    let args = exploration.args;
    let stopped = AtomicBool::new(false);
    let one = || {
        let result = with_machine(args, |machine| work(machine));
        stopped.fetch_or(result.is_err(), Ordering::Relaxed);
        result
    };
    if args.threads == 1 {
        return one();
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..args.threads).map(|_| scope.spawn(one)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect::<anyhow::Result<Vec<()>>>().map(|_| ())
    })
}

/// The exit code: an interrupted exploration that has found nothing has no result.
fn exit_code(exploration: &Exploration<'_>, wrong: bool) -> u8 {
    match (wrong, exploration.is_interrupted()) {
        (true, _) => FAILED,
        (false, true) => INTERRUPTED,
        (false, false) => OK,
    }
}

/// Prints a message next to the results.
fn note(text: &str) {
    emit(format!("note: {text}"));
}
