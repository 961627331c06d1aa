//! The common part of `run` and `launch`: execution of a kernel, and the report of its results.

use super::coverage::Collected;
use super::engine::Engine;
use super::memory::MemoryArgs;
use super::observe::{self, ObserveArgs};
use super::output::{self, emit};
use super::schedule::WaveOrder;
use super::{Diagnostics, FAILED, INTERRUPTED, OK, progress, words};
use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wavesim_array::{Array, json, npy, picture, show};
use wavesim_coverage::Coverage;
use wavesim_engine::sched::dispatch::{GroupOrder, RunStats, Schedule};
use wavesim_fidelity::Report;
use wavesim_fidelity::perturb::{Baseline, Differences, End, depends_on_order, perturb};
use wavesim_files::Files;
use wavesim_inspect::check::fault_json;
use wavesim_inspect::sharing::{Threads, sharing};
use wavesim_loader::compare::Mismatch;
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::overrides::{OverrideError, Overrides};
use wavesim_machine::fault::{Fault, FaultKind};
use wavesim_services::launch::Services;

/// Runs with `--perturb` in other orders of waves and workgroups, if the order of float sums is open.
const ORDERS: u32 = 4;

/// How a kernel is executed, and what is done with its outputs
#[derive(Debug, Clone, clap::Args)]
pub struct Execution {
    /// Stop with a fault after this many wave-instructions
    #[arg(long, value_name = "N", default_value_t = 10_000_000_000)]
    pub max_instructions: u64,
    /// Order of the waves of a workgroup: round-robin, reverse, random:SEED, or fine:SEED (turns of a few instructions);
    /// or a file (`.sched`) in which `wavesim explore` has recorded the order of all waves
    #[arg(long, value_name = "ORDER", default_value = "round-robin", value_parser = WaveOrder::parse)]
    pub schedule: WaveOrder,
    /// Host threads that run workgroups; auto: one for each processor if workgroups cannot observe one another, else one
    #[arg(long, value_name = "N", default_value = "auto")]
    pub threads: Threads,
    /// The execution engine; observed runs (--trace, --stats, --profile-lines, --fidelity, --coverage) always use the interpreter
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    pub engine: Engine,
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Replace the semantics of the instructions that this file defines (slow: they are interpreted)
    #[arg(long, value_name = "FILE.pcode")]
    pub semantics: Option<PathBuf>,
    /// Print every element of long arrays
    #[arg(long)]
    pub full: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Print no outputs, and show no progress bar
    #[arg(long, short = 'q')]
    pub quiet: bool,
    /// Write each output to DIR/NAME.npy; images of 8-bit colors also to DIR/NAME.png
    #[arg(long, value_name = "DIR")]
    pub out_dir: Option<PathBuf>,
    /// Write each unit of compiled code to a file in DIR: its instructions, the code generator's function, the locations
    /// of values, and host code. Selects --engine jit
    #[arg(long, value_name = "DIR")]
    pub dump_jit: Option<PathBuf>,
    #[command(flatten)]
    pub observe: ObserveArgs,
}

/// A completed run.
pub struct Completed {
    pub stats: RunStats,
    pub seconds: f64,
}

/// The end of a run.
pub struct RunOutcome {
    pub result: Result<Completed, Box<Fault>>,
    /// The counts of `--stats`, for JSON output.
    statistics: Option<Value>,
    /// The report of `--fidelity`, for JSON output.
    fidelity: Option<Value>,
    /// What has run, for `--coverage`.
    coverage: Option<Coverage>,
}

/// Replaces the built-in semantics with those of a pseudocode file.
pub fn replace_semantics(path: &Path, prepared: &mut Prepared) -> anyhow::Result<()> {
    let text = wavesim_files::read_text(path)?;
    let (overrides, warnings) = Overrides::parse(path.display().to_string(), text)
        .map_err(|OverrideError::Wrong(text)| anyhow::Error::new(Diagnostics(text)))?;
    if let Some(text) = warnings {
        emit(text);
    }
    let program = &mut prepared.program;
    let names: Vec<&str> = overrides.names(program.arch).collect();
    if names.is_empty() {
        bail!("{}: this file defines no instruction of {}", path.display(), program.arch.name());
    }
    if !program.mnemonics().any(|mnemonic| names.contains(&mnemonic)) {
        const SHOWN: usize = 8;
        let others = names.len().saturating_sub(SHOWN);
        let names = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ").to_lowercase();
        let names = if others > 0 { format!("{names} and {others} others") } else { names };
        emit(format!("note: the kernel uses no instruction that {} defines ({names})", path.display()));
    }
    program.replace_semantics(Arc::new(overrides));
    Ok(())
}

impl Execution {
    /// Runs the kernel while its services are served. `files` are those that its input may name, for reports. An error
    /// means bad input, such as an invalid pseudocode file.
    pub fn run(
        &self,
        prepared: &mut Prepared,
        services: &Services,
        files: &Files,
        out: &mut dyn Write,
    ) -> anyhow::Result<RunOutcome> {
        self.observe.owns_stdout(self.json)?;
        if let Some(path) = &self.semantics {
            replace_semantics(path, prepared)?;
        }
        let engine = match (&self.dump_jit, self.engine) {
            (Some(_), Engine::Interpreter) => {
                bail!("--dump-jit: the interpreter compiles nothing; use --engine jit")
            }
            (Some(_), Engine::Auto) => Engine::Jit,
            (_, engine) => engine,
        };
        let model = self.memory.model(prepared, &self.schedule)?;
        if model.is_some() && engine == Engine::Jit {
            bail!(
                "--memory delayed is interpreted: compiled code accesses memory at once; leave out --engine jit"
            );
        }
        if model.is_some() && self.observe.wants_fidelity() {
            bail!("--fidelity follows values through immediate memory; leave out --memory delayed");
        }
        let engine = if model.is_some() { Engine::Interpreter } else { engine };
        let code = engine.code(&prepared.program)?;
        #[cfg(feature = "jit")]
        let dump = self.dump_jit.as_deref().zip(code.as_ref());
        #[cfg(feature = "jit")]
        let dump = dump.map(|(dir, code)| (dir, super::dump_jit::Dump::of(code, &prepared.program)));
        let mut dispatch = prepared.dispatch(self.max_instructions);
        dispatch.compiled = code.as_ref().map(|code| code as _);
        self.schedule.apply(prepared, &mut dispatch)?;
        let sharing = || sharing(&prepared.program, prepared.shape.entry_pc);
        self.threads.apply(&mut dispatch, sharing);
        self.memory.apply(&mut dispatch, model.as_ref());
        // A launch that no device accepts is bad input, not a fault of the kernel.
        dispatch.check()?;
        self.observe.check(&dispatch)?;
        let before = self.observe.perturb.then(|| prepared.memory.snapshot());
        let started = std::time::Instant::now();
        progress::catch_interrupts();
        let bar = progress::Bar::new(self.quiet || self.json, &dispatch);
        dispatch.progress = Some(bar.counters());
        // Only for the engine that was asked for: in the background, nobody knows what will be compiled.
        #[cfg(feature = "jit")]
        let (code, run) = (code.as_ref().filter(|_| engine == Engine::Jit), &dispatch);
        #[cfg(feature = "jit")]
        let count = code.map(|code| move |counts: &[u64]| super::compiled_stats::count(code, run, counts));
        #[cfg(feature = "jit")]
        let count = count.as_ref().map(|count| count as observe::CountCompiled<'_>);
        #[cfg(not(feature = "jit"))]
        let count = None;
        let run = || observe::run(&self.observe, prepared, &dispatch, self.json, count, files, out);
        let (result, printed) = services.serve(&prepared.memory, || bar.during(run));
        match self.json || self.observe.owns_stdout(false)? {
            true => output::show_printed(&printed, &mut output::stderr())?,
            false => output::show_printed(&printed, out)?,
        }
        #[cfg(feature = "jit")]
        if let Some((dir, dump)) = dump
            && dump.write(dir)? == 0
        {
            emit("note: nothing has been compiled: no block has run often enough");
        }
        let observed = result?;
        let seconds = started.elapsed().as_secs_f64();
        let result = observed.result.map(|stats| Completed { stats, seconds });
        drop(dispatch);
        let fidelity = match observed.fidelity {
            Some((report, counts)) => {
                let before = before.filter(|_| result.is_ok());
                self.report_fidelity(report, counts, before.as_deref(), prepared, out)?
            }
            None => None,
        };
        let (statistics, coverage) = (observed.statistics, observed.coverage);
        Ok(RunOutcome { result, statistics, fidelity, coverage })
    }

    /// Runs the kernel with perturbed approximations, if `before` has the memory at its start, and prints the report.
    /// Returns it for JSON output.
    fn report_fidelity(
        &self,
        mut report: Report,
        counts: Vec<u64>,
        before: Option<&[u8]>,
        prepared: &mut Prepared,
        out: &mut dyn Write,
    ) -> anyhow::Result<Option<Value>> {
        if let Some(before) = before {
            let after = prepared.memory.snapshot();
            let outputs = prepared.outputs()?.into_iter().map(|(name, array)| (name.to_string(), array));
            let baseline = Baseline { outputs: outputs.collect(), counts };
            let mut differences = Differences::default();
            // With the kernel's own semantics, before these are replaced.
            let dispatch = prepared.dispatch(self.max_instructions);
            let waves = dispatch.workgroups().saturating_mul(dispatch.waves().into());
            drop(dispatch);
            let orders = if waves > 1 && depends_on_order(&prepared.program) { ORDERS } else { 0 };
            for number in 1..=orders {
                prepared.memory.restore(before);
                let mut dispatch = prepared.dispatch(self.max_instructions);
                self.schedule.apply(prepared, &mut dispatch)?;
                self.memory.apply(&mut dispatch, None);
                dispatch.schedule = Schedule::Fine(number.into());
                dispatch.order = GroupOrder::Random(number.into());
                differences.add(End::Order(number), prepared, &dispatch, &baseline)?;
            }
            // All from the kernel's own semantics, too.
            let perturbed =
                End::ALL.map(|end| (end, perturb(&prepared.program, end, self.observe.assume_ulp)));
            let left = perturbed[0].1.left.clone();
            for (end, perturbed) in perturbed {
                let Some(overrides) = perturbed.overrides else { continue };
                prepared.memory.restore(before);
                prepared.program.replace_semantics(Arc::new(overrides));
                let mut dispatch = prepared.dispatch(self.max_instructions);
                self.schedule.apply(prepared, &mut dispatch)?;
                self.memory.apply(&mut dispatch, None);
                differences.add(end, prepared, &dispatch, &baseline)?;
            }
            prepared.memory.restore(&after);
            report.set_perturbed(differences, &left);
        }
        if self.json {
            return Ok(Some(report.json()));
        }
        match self.observe.owns_stdout(false)? {
            true => emit(report.text()),
            false => write!(out, "{}", report.text())?,
        }
        Ok(None)
    }

    /// Adds what a run has covered of a kernel, which has a name, to that of the command.
    pub fn add_coverage(
        &self,
        name: &str,
        ended: &mut RunOutcome,
        collected: &Collected,
    ) -> anyhow::Result<()> {
        let Some(mut coverage) = ended.coverage.take() else { return Ok(()) };
        coverage.programs.iter_mut().for_each(|program| program.name = name.to_string());
        collected.add(&coverage)
    }

    /// Writes the coverage of all runs of the command, if it is requested.
    pub fn write_coverage(&self, collected: &Collected) -> anyhow::Result<()> {
        self.observe.coverage.as_ref().map_or(Ok(()), |path| collected.write(path))
    }

    /// Reports the end of a run: the outputs or the fault, as text or JSON. Writes the output files. `check`
    /// holds the differences from the expected outputs, if they were compared.
    pub fn report(
        &self,
        prepared: &Prepared,
        ended: &RunOutcome,
        check: Option<&[Mismatch]>,
        out: &mut dyn Write,
    ) -> anyhow::Result<u8> {
        let with_statistics = |mut object: Value| {
            if let Some(statistics) = &ended.statistics {
                object["stats"] = statistics.clone();
            }
            if let Some(fidelity) = &ended.fidelity {
                object["fidelity"] = fidelity.clone();
            }
            object
        };
        let finished = match &ended.result {
            Ok(finished) => finished,
            Err(fault) => {
                if self.json {
                    let object = json!({ "schema": "wavesim-run-1", "fault": fault_json(fault) });
                    writeln!(out, "{}", with_statistics(object))?;
                }
                emit(fault);
                if fault.kind == FaultKind::InstructionLimit {
                    emit("note: a kernel that needs more instructions runs with a larger --max-instructions");
                }
                return Ok(if fault.kind == FaultKind::Interrupted { INTERRUPTED } else { FAILED });
            }
        };
        let outputs = prepared.outputs()?;
        if let Some(dir) = &self.out_dir {
            let outputs = outputs.iter().map(|(name, a)| (*name, |out: &mut dyn Write| npy::write(out, a)));
            wavesim_files::write_all(dir, "npy", outputs)
                .with_context(|| format!("writing to {}", dir.display()))?;
            let pictures = prepared.pictures()?;
            let pictures =
                pictures.iter().map(|(name, a)| (*name, |out: &mut dyn Write| picture::write(out, a)));
            wavesim_files::write_all(dir, "png", pictures)
                .with_context(|| format!("writing to {}", dir.display()))?;
        }
        let passed = check.is_none_or(<[Mismatch]>::is_empty);
        if self.json {
            let mut object = with_statistics(success_json(&outputs, finished));
            if prepared.memory.is_word_addressed() {
                object["outputs"]["memory"] = words::json(&prepared.memory);
            }
            if let Some(mismatches) = check {
                object["check"] =
                    json!({ "passed": passed, "mismatches": mismatches_json(prepared, mismatches) });
            }
            writeln!(out, "{object}")?;
        } else if check.is_none() && !self.quiet {
            // A trace or statistics for programs are alone on standard output.
            let mut messages = output::stderr();
            let out = if self.observe.owns_stdout(false)? { &mut messages } else { out };
            match prepared.memory.is_word_addressed() {
                true => words::show(&prepared.memory, self.full, out)?,
                false => show_outputs(&outputs, self.full, out)?,
            }
        }
        Ok(if passed { OK } else { FAILED })
    }
}

fn show_outputs(outputs: &[(&str, Array)], full: bool, out: &mut dyn Write) -> io::Result<()> {
    for (name, array) in outputs {
        writeln!(out, "{name}: {} =\n{}", array.type_name(), show::show(array, full))?;
    }
    Ok(())
}

fn success_json(outputs: &[(&str, Array)], finished: &Completed) -> Value {
    let outputs: serde_json::Map<String, Value> =
        outputs.iter().map(|(name, array)| (name.to_string(), json::array(array))).collect();
    json!({
        "schema": "wavesim-run-1",
        "outputs": outputs,
        "instructions": finished.stats.instructions,
        "waves": finished.stats.waves,
    })
}

fn mismatches_json(prepared: &Prepared, mismatches: &[Mismatch]) -> Vec<Value> {
    let mut list = Vec::new();
    for mismatch in mismatches {
        let Some(buffer) = prepared.buffer(&mismatch.output) else { continue };
        for (index, expected, actual) in &mismatch.first {
            list.push(json!({
                "output": mismatch.output,
                "index": index,
                "expected": json::number(buffer.dtype, *expected),
                "actual": json::number(buffer.dtype, *actual),
            }));
        }
    }
    list
}
