//! `--coverage` of runs, and `wavesim coverage`: merges and reports their files.

use super::input::FileArgs;
use super::page::SOURCE_LIMIT;
use super::{FAILED, OK};
use anyhow::{Context as _, bail};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use wavesim_coverage::file::Coverage;
use wavesim_coverage::lines::Share;
use wavesim_coverage::{html, lcov, report};

/// Merge and report files of --coverage: which lines, branches, instructions and operands of kernels have run
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct CoverageArgs {
    #[command(subcommand)]
    pub command: CoverageCommand,
}

#[derive(Debug, clap::Subcommand)]
pub enum CoverageCommand {
    /// Add the counts of files into one
    Merge {
        /// The files to read
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// The file to write, which may be one of them
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Report what has run
    Report {
        /// Files of --coverage, which are merged
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Write the sources with counts beside the lines to an HTML file
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        /// Write a tracefile for lcov, genhtml and editors
        #[arg(long, value_name = "FILE")]
        lcov: Option<PathBuf>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// The folder in which source files are looked up whose names are relative
        #[arg(long, value_name = "DIR", default_value = ".")]
        sources: PathBuf,
        #[command(flatten)]
        access: FileArgs,
        /// Exit with 1 if less than this share of the source lines has run (without source lines: of the instructions)
        #[arg(long, value_name = "PERCENT", value_parser = percent)]
        fail_under: Option<f64>,
    },
}

const EXAMPLES: &str = "\
Examples:
  wavesim run examples/saxpy.rdna --coverage one.json
  wavesim run examples/saxpy.rdna --arch rdna4 --coverage two.json
  wavesim coverage merge one.json two.json -o all.json
  wavesim coverage report all.json --html coverage.html --lcov coverage.info

Exit codes: 0 success; 1 less has run than --fail-under demands; 2 bad usage or
bad input, such as a file of another version.";

fn percent(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| (0.0..=100.0).contains(value));
    value.ok_or_else(|| format!("`{text}` is not a number from 0 to 100"))
}

/// Reads a file.
pub fn read(path: &Path) -> anyhow::Result<Coverage> {
    let name = || path.display().to_string();
    let text = wavesim_files::read_text(path)?;
    Coverage::parse(&text).with_context(name)
}

fn read_all(paths: &[PathBuf]) -> anyhow::Result<Coverage> {
    let mut all = Coverage::default();
    for path in paths {
        all.merge(&read(path)?).with_context(|| path.display().to_string())?;
    }
    Ok(all)
}

/// Writes a file.
pub fn write(path: &Path, coverage: &Coverage) -> anyhow::Result<()> {
    write_text(path, &coverage.text())
}

fn write_text(path: &Path, text: &str) -> anyhow::Result<()> {
    wavesim_files::write(path, |out| out.write_all(text.as_bytes()))
        .with_context(|| path.display().to_string())
}

/// The coverage of the runs of one command, which several threads may add to.
#[derive(Debug, Default)]
pub struct Collected(Mutex<Coverage>);

impl Collected {
    /// Adds a run.
    ///
    /// # Errors
    /// Two programs with one identity differ.
    pub fn add(&self, coverage: &Coverage) -> anyhow::Result<()> {
        Ok(self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).merge(coverage)?)
    }

    /// Writes all runs to a file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        write(path, &self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

pub fn run(args: &CoverageArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    match &args.command {
        CoverageCommand::Merge { files, output } => {
            let all = read_all(files)?;
            write(output, &all)?;
            let programs = all.programs.len();
            writeln!(out, "{}: {} launches of {programs} programs", output.display(), all.launches)?;
            Ok(OK)
        }
        CoverageCommand::Report { files, html, lcov, json, sources, access, fail_under } => {
            let all = read_all(files)?;
            if all.programs.is_empty() {
                bail!("no program has run");
            }
            match json {
                true => writeln!(out, "{}", report::json(&all))?,
                false => write!(out, "{}", report::text(&all))?,
            }
            if let Some(path) = html {
                let access = access.access()?;
                let source = |name: &str| access.read_text(&sources.join(name), SOURCE_LIMIT).ok();
                write_text(path, &html::page(&all, &source))?;
            }
            if let Some(path) = lcov {
                write_text(path, &lcov::text(&all))?;
            }
            let share = share(&all);
            match fail_under {
                Some(least) if share.percent() < *least => {
                    super::emit(format!("{:.1} % has run, less than {least} %", share.percent()));
                    Ok(FAILED)
                }
                _ => Ok(OK),
            }
        }
    }
}

/// Returns the share of source lines that have run; without any, that of instructions.
fn share(all: &Coverage) -> Share {
    let files = wavesim_coverage::lines::by_file(all);
    let lines = files.values().map(wavesim_coverage::lines::SourceFile::line_share);
    let lines = lines.fold(Share::default(), |sum, own| Share {
        covered: sum.covered + own.covered,
        total: sum.total + own.total,
    });
    if lines.total > 0 { lines } else { report::Totals::of(all).instructions }
}
