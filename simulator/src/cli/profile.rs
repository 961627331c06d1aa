//! `wavesim profile`: predicts how long a kernel takes on a device, and why.

use super::input::{ARG_HELP, InputArgs};
use super::{FAILED, INTERRUPTED, OK, device, emit, engine, progress};
use anyhow::{Context as _, bail};
use std::io::Write;
use std::path::{Path, PathBuf};
use wavesim_cost::data;
use wavesim_cost::model::{Effort, History};
use wavesim_cost::profile::{self, Costs, Profile};
use wavesim_cost::report;
use wavesim_cost::what_if::Changes;
use wavesim_loader::prepared::Prepared;
use wavesim_machine::fault::FaultKind;

/// Predict how long a kernel takes on a device, and where the time goes
#[derive(Debug, clap::Args)]
#[command(after_long_help = format!("\
Examples:
  wavesim profile examples/matmul.rdna
  wavesim profile examples/matmul.rdna --device rx7900xtx --html matmul.html
  wavesim profile vadd/launch.json --target gfx942 --device mi300a --json
  wavesim profile examples/matmul.rdna --what-if vgprs=96,lds=32k,banks=32

Predictions are not measurements: the first line says what of the model has been
calibrated (docs/cost.md).

{ARG_HELP}"))]
pub struct ProfileArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// Device, or a file (.toml) [default: the first one of the kernel's architecture]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Also predict with changed figures, such as vgprs=96,lds=32k,banks=64,l2=8M,device=mi300x or any constant of
    /// `wavesim isa cost` (chip.clock=2000)
    #[arg(long, value_name = "KEY=VALUE[,...]", value_parser = Changes::parse)]
    pub what_if: Option<Changes>,
    /// Print the N instructions that cost most [default: all]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Print one JSON object
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print the instructions as CSV
    #[arg(long)]
    pub csv: bool,
    /// Also write a report to a file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Also write a timeline for ui.perfetto.dev to a file
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
}

pub fn run(args: &ProfileArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    if args.what_if.is_some() && (args.json || args.csv) {
        bail!("--what-if prints a table: it has no --json or --csv");
    }
    let prepared = args.input.prepare(0)?;
    let device = match &args.device {
        Some(name) => device::open(name)?,
        None => std::borrow::Cow::Borrowed(data::device_of(prepared.program.arch)?),
    };
    let costs = Costs::of(&device)?;
    // Before the run, so that a wrong key prints no prediction.
    let changed = args.what_if.as_ref().map(|changes| changed_costs(changes, &costs)).transpose()?;
    if let Some(changed) = &changed {
        changed.check(&prepared.program, prepared.shape.wave_size)?;
    }
    let profile = match profiled(args, &prepared, &costs)? {
        Ok(profile) => profile,
        Err(code) => return Ok(code),
    };
    let program = &prepared.program;
    match () {
        () if args.json => writeln!(out, "{}", report::json(&profile, program))?,
        () if args.csv => write!(out, "{}", report::csv(&profile, program))?,
        () => write!(out, "{}", report::text(&profile, program, args.top))?,
    }
    let name = super::input_name(&args.input.file);
    let write = |path: &Path, text: String| {
        wavesim_files::write(path, |out| out.write_all(text.as_bytes()))
            .with_context(|| path.display().to_string())
    };
    if let Some(path) = &args.html {
        write(
            path,
            report::html(
                &profile,
                program,
                &name,
                &super::page::sources(&prepared, &args.input.kernel.files.access()?),
            ),
        )?;
    }
    if let Some(path) = &args.perfetto {
        write(path, report::perfetto(&profile, program).to_string())?;
    }
    if let Some(changed) = changed {
        // The run has changed the memory of the first one.
        let again = args.input.prepare(0)?;
        let changed = match profiled(args, &again, &changed)? {
            Ok(profile) => profile,
            Err(code) => return Ok(code),
        };
        write!(out, "\n{}", report::comparison(&profile, &changed))?;
    }
    Ok(OK)
}

/// Returns the costs of `--what-if`.
fn changed_costs(changes: &Changes, costs: &Costs) -> anyhow::Result<Costs> {
    let other =
        changes.device.as_ref().map(|name| anyhow::Ok(Costs::of(&*device::open(name)?)?)).transpose()?;
    Ok(other.as_ref().unwrap_or(costs).changed(changes)?)
}

/// Runs the kernel; returns its profile, or the exit code after a fault.
fn profiled(args: &ProfileArgs, prepared: &Prepared, costs: &Costs) -> anyhow::Result<Result<Profile, u8>> {
    let code = engine::Engine::Auto.code(&prepared.program)?;
    let mut dispatch = args.input.dispatch(prepared)?;
    dispatch.compiled = code.as_ref().map(|code| code as _);
    progress::catch_interrupts();
    let regions = profile::regions(prepared);
    let history = &mut History::default();
    let (_, result) = profile::run(
        &dispatch,
        &prepared.memory,
        &regions,
        costs,
        &Effort::report(&costs.model),
        (history, true),
    )?;
    Ok(match result {
        Ok(profile) => Ok(profile),
        Err(fault) => {
            emit(&fault);
            Err(if fault.kind == FaultKind::Interrupted { INTERRUPTED } else { FAILED })
        }
    })
}
