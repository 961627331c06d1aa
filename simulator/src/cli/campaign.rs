//! `wavesim campaign`: runs many cases in processes, and reports their results.

use super::output::emit;
#[cfg(unix)]
use super::{Cli, Command};
use super::{FAILED, INTERRUPTED, OK, progress};
use anyhow::{Context as _, bail};
use indicatif::ProgressBar;
use std::ffi::OsString;
use std::io::{IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use wavesim_campaign::plan::{Campaign, Shard};
use wavesim_campaign::process::{Program, TEMPLATE};
use wavesim_campaign::report;
use wavesim_campaign::runner::{self, Options, Progress};
use wavesim_campaign::store::{Status, Store};
use wavesim_engine::sched::dispatch::INTERRUPT;
use wavesim_inspect::check::sarif;
use wavesim_inspect::sharing::processors;
#[cfg(unix)]
use wavesim_isa::arch::Arch;

/// Run many kernels, inputs, targets, schedules and seeds, each in a process, with the results in a database
///
/// A campaign that was interrupted continues: cases with a result do not run again, unless their kernel has changed.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_long_help = EXAMPLES)]
pub struct CampaignArgs {
    #[command(subcommand)]
    pub command: Option<CampaignCommand>,
    /// The plan, in TOML (docs/scaling.md)
    #[arg(required = true)]
    pub plan: Option<PathBuf>,
    /// The database [default: the name of the plan with .db, in the current folder]
    #[arg(long, value_name = "FILE")]
    pub results: Option<PathBuf>,
    /// Processes at the same time [default: all processors]
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Run only the Ith of N parts, as a job of an array; each part has its own database
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    pub shard: Shard,
    /// List the cases, and run nothing
    #[arg(long)]
    pub list: bool,
    /// Show no progress bar
    #[arg(long, short = 'q')]
    pub quiet: bool,
    #[command(flatten)]
    pub reports: Reports,
}

#[derive(Debug, clap::Subcommand)]
pub enum CampaignCommand {
    /// Copy the results of databases into one
    Merge {
        /// The database to write to
        results: PathBuf,
        /// The databases to read
        #[arg(required = true)]
        parts: Vec<PathBuf>,
    },
    /// Report the results of a database
    Report {
        /// The database
        results: PathBuf,
        #[command(flatten)]
        reports: Reports,
    },
}

/// Files to write
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Reports")]
pub struct Reports {
    /// Write a report in HTML
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write all results as one JSON object
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write all results as JUnit's XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the findings of all checks as one log in SARIF 2.1.0
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Print an annotation of GitHub Actions for each finding, which appears in the diff of a pull request
    #[arg(long)]
    pub annotate: bool,
}

const EXAMPLES: &str = "\
Examples:
  wavesim campaign plan.toml --html report.html
  wavesim campaign plan.toml --shard 2/8 --results part2.db
  wavesim campaign merge all.db part1.db part2.db
  wavesim campaign report all.db --junit junit.xml --sarif findings.sarif

Exit codes: 0 all cases passed; 1 some did not; 2 bad usage or bad input; 130
interrupted.";

pub fn run(args: &CampaignArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    match &args.command {
        Some(CampaignCommand::Merge { results, parts }) => merge(results, parts, out),
        Some(CampaignCommand::Report { results, reports }) => {
            let store = Store::existing(results)?;
            summarise(&store, reports, out)
        }
        None => campaign(args, out),
    }
}

fn campaign(args: &CampaignArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let plan = args.plan.as_deref().context("the plan is missing")?;
    let campaign = Campaign::open(plan)?;
    if args.list {
        for case in campaign.cases(args.shard) {
            writeln!(out, "{}", case.name)?;
        }
        return Ok(OK);
    }
    let named = || plan.file_stem().map(|stem| Path::new(stem).with_extension("db"));
    let results = args.results.clone().or_else(named).context("the plan has no name; give --results")?;
    let mut store = Store::open(&results)?;
    let mut scratch = results.into_os_string();
    scratch.push("-work");
    let path = std::env::current_exe().context("the path of this program")?;
    let template = cfg!(unix).then(|| TEMPLATE.to_string());
    let program = Program { path, first: Vec::new(), template };
    progress::catch_interrupts();
    let bar = Bar::new(args.quiet);
    let done = runner::run(
        &campaign,
        &mut store,
        &Options {
            program: &program,
            jobs: args.jobs.map_or_else(processors, usize::from),
            shard: args.shard,
            scratch: Path::new(&scratch),
            interrupted: &|| INTERRUPT.load(Ordering::Relaxed),
            progress: &|progress| bar.show(progress),
        },
    );
    bar.0.finish_and_clear();
    let done = done?;
    if INTERRUPT.load(Ordering::Relaxed) {
        let left = done.total - done.known - done.done;
        emit(format!(
            "interrupted: {left} of {} cases have no result; the same command continues",
            done.total
        ));
        return Ok(INTERRUPTED);
    }
    if done.known > 0 && !args.quiet {
        emit(format!("note: {} of {} cases had a result", done.known, done.total));
    }
    summarise(&store, &args.reports, out)
}

/// Runs `wavesim campaign-template`, which campaigns start: forks a process for each case. Returns `None` for other command
/// lines.
#[cfg(unix)]
pub fn template(words: &[OsString]) -> Option<anyhow::Result<u8>> {
    let [own, _] = words else { return None };
    (words[1] == TEMPLATE).then(|| {
        let mut ready = Vec::new();
        let prepare = |arguments: &[String]| prepare(arguments, &mut ready);
        let case = |arguments: Vec<String>, parsed: Option<Cli>| match parsed {
            Some(cli) => super::parsed(&cli),
            // It reports what is wrong with them.
            None => {
                super::command(std::iter::once(own.clone()).chain(arguments.into_iter().map(OsString::from)))
            }
        };
        wavesim_campaign::template::serve(prepare, case).context("the campaign's connection")?;
        Ok(OK)
    })
}

/// Parses the arguments of a case, and reads the tables of its architecture, unless they are there (`ready`). A small kernel
/// that runs under all checks needs those that most kernels need; a case's own kernel is read by its own process, whatever
/// it is. Returns `None` for other subcommands and wrong arguments.
#[cfg(unix)]
fn prepare(arguments: &[String], ready: &mut Vec<Arch>) -> Option<Cli> {
    /// Parses the arguments of a subcommand, without those of all others, which takes a multiple of the time.
    fn parse<T: clap::Args>(arguments: &[String]) -> Option<T> {
        let command = T::augment_args(clap::Command::new("wavesim"));
        T::from_arg_matches(&command.try_get_matches_from(arguments).ok()?).ok()
    }
    let command = match arguments.first()?.as_str() {
        "run" => Command::Run(parse(arguments)?),
        "launch" => Command::Launch(parse(arguments)?),
        "check" => Command::Check(parse(arguments)?),
        _ => return None,
    };
    let arch = match &command {
        Command::Run(args) => args.kernel.machine.arch_or_default(),
        Command::Launch(args) => args.kernel.machine.arch_or_default(),
        Command::Check(args) => args.input.kernel.machine.arch_or_default(),
        _ => return None,
    };
    if !ready.contains(&arch) {
        ready.push(arch);
        let options = wavesim_text::Options { arch: Some(arch), global_bytes: 1 << 16, ..Default::default() };
        let text = "---\nout_x: i32\nlocal = 1, 1, 1\n---\n  s_endpgm\n";
        if let Ok(prepared) = wavesim_loader::text_kernel::prepare("template", text, &options, 0) {
            // Nothing depends on the result.
            let _ = super::check::checked(&prepared, &prepared.dispatch(100), &[], None);
        }
    }
    Some(Cli { command })
}

/// There are no templates: cases are processes of their own.
#[cfg(not(unix))]
pub fn template(_words: &[OsString]) -> Option<anyhow::Result<u8>> {
    None
}

fn merge(results: &Path, parts: &[PathBuf], out: &mut dyn Write) -> anyhow::Result<u8> {
    let mut store = Store::open(results)?;
    for part in parts {
        if part.canonicalize().ok() == results.canonicalize().ok() {
            bail!("{}: a database is not merged with itself", part.display());
        }
        let count = store.merge(&Store::existing(part)?)?;
        writeln!(out, "{}: {count} results", part.display())?;
    }
    writeln!(out, "{}: {}", results.display(), report::counts(&store)?)?;
    Ok(OK)
}

/// Writes the reports and a line about the results.
fn summarise(store: &Store, reports: &Reports, out: &mut dyn Write) -> anyhow::Result<u8> {
    let write = |path: &Path, text: &str| {
        wavesim_files::write(path, |out| out.write_all(text.as_bytes()))
            .with_context(|| path.display().to_string())
    };
    if let Some(path) = &reports.html {
        write(path, &report::html(store)?)?;
    }
    if let Some(path) = &reports.json {
        write(path, &format!("{}\n", report::json(store)?))?;
    }
    if let Some(path) = &reports.junit {
        write(path, &report::junit(store)?)?;
    }
    if reports.sarif.is_some() || reports.annotate {
        let wrap = |rules, results| sarif::wrap(rules, results, env!("CARGO_PKG_VERSION"));
        let log = report::sarif(store, wrap)?;
        if let Some(path) = &reports.sarif {
            write(path, &format!("{log:#}\n"))?;
        }
        if reports.annotate {
            report::annotations(&log).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
    }
    let counts = report::counts(store)?;
    writeln!(out, "{counts}; {:.1} s of processes", counts.seconds)?;
    Ok(if counts.of(Status::Passed) == counts.total() { OK } else { FAILED })
}

/// A bar with the number of cases, their rate and the remaining time.
struct Bar(ProgressBar);

impl Bar {
    fn new(quiet: bool) -> Bar {
        let hidden = quiet || !std::io::stderr().is_terminal();
        let bar = if hidden { ProgressBar::hidden() } else { ProgressBar::new(0) };
        let template = "{elapsed_precise} {wide_bar} {pos}/{len} cases, {per_sec}{left}{msg}";
        bar.set_style(progress::style(template));
        Bar(bar)
    }

    fn show(&self, progress: &Progress) {
        self.0.set_length(progress.total - progress.known);
        self.0.set_position(progress.done);
        if progress.failed > 0 {
            self.0.set_message(format!(", {} not passed", progress.failed));
        }
    }
}
