//! Text kernels, the assembler and the disassembler.

use crate::error::{error, raise};
use crate::interrupt::interruptible;
use crate::outcome::{Exploration, Outcome};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use wavesim::arch::Arch;
use wavesim::asm::Options;
use wavesim::asm::listing::{Line, Listing};
use wavesim::check::{GUARD_BYTES, fault_as_finding};
use wavesim::codec::words;
use wavesim::exec::observe::Observers;
use wavesim::loader::assembly::AssemblyOptions;
use wavesim::loader::code_object;
use wavesim::loader::prepared::Prepared;
use wavesim::loader::text_kernel;
use wavesim::sched::dispatch;
use wavesim::sharing::{MAX_THREADS, Threads};
use wavesim::trace::activity::Activity;
use wavesim::trace::stats::Stats;
use wavesim_runtime::{
    CodeCache, Engine, ExploreOptions, RunOptions, Settings, Target, Timing, memory_of, parse_checks,
};

/// An output: name, type, shape, contents.
type Output = (String, &'static str, Vec<u64>, Py<PyBytes>);

/// New contents of arguments: name and bytes.
type Inputs = Vec<(String, Vec<u8>)>;

/// Returns the architecture of a target.
fn arch(target: Option<&str>) -> PyResult<Option<Arch>> {
    target.map(|name| Target::from_name(name).map(|t| t.arch).map_err(error)).transpose()
}

/// Prepares a text kernel.
pub fn prepare(
    text: &str,
    name: &str,
    target: Option<&str>,
    wave: Option<u32>,
    seed: u64,
    inputs: &Inputs,
    guard: u64,
) -> PyResult<Prepared> {
    let mut options = text_kernel::Options { arch: arch(target)?, wave, seed, ..Default::default() };
    options.folder = PathBuf::from(name).parent().map(PathBuf::from).unwrap_or_default();
    let prepared = text_kernel::prepare(name, text, &options, guard).map_err(error)?;
    for (name, bytes) in inputs {
        let names: Vec<&str> = prepared.buffers.iter().map(|b| b.name.as_str()).collect();
        let Some(buffer) = prepared.buffer(name) else {
            return Err(error(format!("the kernel has no argument `{name}`; it has {}", names.join(", "))));
        };
        if bytes.len() as u64 != buffer.len_bytes {
            return Err(error(format!(
                "{} bytes for the argument `{name}`, which has {}",
                bytes.len(),
                buffer.len_bytes
            )));
        }
        prepared.memory.write(buffer.address, bytes).map_err(error)?;
    }
    Ok(prepared)
}

/// Runs a text kernel. Returns the outcome, the outputs, and the trace as JSON Lines.
#[pyfunction]
#[pyo3(signature = (text, name, target, wave, seed, inputs, check, trace, max_instructions, threads, profile))]
#[expect(clippy::too_many_arguments, reason = "the package passes them by keyword")]
pub fn run_text(
    py: Python<'_>,
    text: &str,
    name: &str,
    target: Option<&str>,
    wave: Option<u32>,
    seed: u64,
    inputs: Inputs,
    check: Option<&str>,
    trace: bool,
    max_instructions: u64,
    threads: Option<usize>,
    profile: Option<&str>,
) -> PyResult<(Outcome, Vec<Output>, Option<Py<PyBytes>>)> {
    let checks = parse_checks(check.unwrap_or("none")).map_err(error)?;
    let prepared = prepare(text, name, target, wave, seed, &inputs, GUARD_BYTES)?;
    let threads = threads.map_or(Threads::Auto, |n| Threads::Fixed(n.clamp(1, MAX_THREADS)));
    let code_cache = CodeCache::default();
    let settings = Settings::from_env().map_err(error)?;
    let sources = || vec![(name.to_string(), text.to_string())];
    let profiler = profile.map(|device| Timing::profiler(device, prepared.program.arch, sources()));
    let profiler = profiler.transpose().map_err(error)?;
    let regions = memory_of(&prepared);
    let options = RunOptions {
        timing: profiler.as_ref().map(|profiler| (profiler, &regions[..])),
        checks: &checks,
        threads,
        engine: Engine::default(),
        max_instructions,
        ..RunOptions::new(&settings, &code_cache)
    };
    let mut lines = Vec::new();
    let run = |cancel: &AtomicBool| {
        let options = RunOptions { cancel: Some(cancel), ..options };
        let sink = if trace { Some(&mut lines as &mut dyn std::io::Write) } else { None };
        wavesim_runtime::run(&prepared, &options, sink)
    };
    let (stats, report) = interruptible(py, run)?.map_err(error)?;
    let text = report.to_string();
    if let Some(fault) = &report.fault {
        return Err(raise(py, &text, fault, (name, 1)));
    }
    let outputs = prepared.outputs().map_err(error)?.into_iter().map(|(name, array)| {
        let bytes = PyBytes::new(py, &array.bytes).unbind();
        (name.to_string(), array.dtype.name(), array.shape, bytes)
    });
    let outputs = outputs.collect();
    let profile = profiler.and_then(|profiler| profiler.take());
    let outcome = Outcome::new(py, stats, report.findings, text, profile)?;
    Ok((outcome, outputs, trace.then(|| PyBytes::new(py, &lines).unbind())))
}

/// Runs a text kernel under checks, and once more for its statistics and activity. Returns the part of the run in a
/// report (`wavesim-report-1`) as JSON, and the whole report in HTML.
#[pyfunction]
#[pyo3(signature = (text, name, target, wave, seed, inputs, check, max_instructions))]
#[expect(clippy::too_many_arguments, reason = "the package passes them by keyword")]
pub fn observe_text(
    py: Python<'_>,
    text: &str,
    name: &str,
    target: Option<&str>,
    wave: Option<u32>,
    seed: u64,
    inputs: Inputs,
    check: &str,
    max_instructions: u64,
) -> PyResult<(String, String)> {
    let checks = parse_checks(check).map_err(error)?;
    let prepared = prepare(text, name, target, wave, seed, &inputs, GUARD_BYTES)?;
    let again = prepare(text, name, target, wave, seed, &inputs, GUARD_BYTES)?;
    let observe = |cancel: &AtomicBool| -> Result<Value, wavesim_runtime::Error> {
        let code_cache = CodeCache::default();
        let settings = Settings::from_env()?;
        let options = RunOptions {
            checks: &checks,
            threads: Threads::Fixed(1),
            engine: Engine::default(),
            max_instructions,
            cancel: Some(cancel),
            ..RunOptions::new(&settings, &code_cache)
        };
        let (run, report) = wavesim_runtime::run(&prepared, &options, None)?;
        let mut dispatch = again.dispatch(max_instructions);
        dispatch.cancel = Some(cancel);
        let (wave_size, lds) = (again.shape.wave_size, u64::from(again.shape.lds_bytes));
        let buffers = again.buffers.iter().map(|b| (b.name.as_str(), b.address, b.len_bytes));
        let mut activity = Activity::new(&again.program, wave_size, buffers, lds, true);
        let mut stats = Stats::new(&again.program, wave_size);
        let mut both = Observers(vec![&mut activity, &mut stats]);
        // A fault is in the report of the first run.
        let _ = dispatch::run_observed(&dispatch, &again.memory, &mut both);
        let findings = report.findings.iter().map(|finding| finding.json());
        let findings: Vec<Value> = findings.chain(report.fault.as_deref().map(fault_as_finding)).collect();
        let summary = match findings.len() {
            0 => format!("{} wave-instructions, {} waves", run.instructions, run.waves),
            n => format!("{n} finding{}", if n == 1 { "" } else { "s" }),
        };
        Ok(json!({
            "name": name, "summary": summary, "findings": findings, "sources": [{"name": name, "text": text}],
            "activity": activity.json(), "stats": stats.json(),
        }))
    };
    let part = interruptible(py, observe)?.map_err(error)?;
    let page = json!({"schema": "wavesim-report-1", "label": "wavesim.observe", "inputs": [part]});
    let html = wavesim_html::run_page(name, &page);
    Ok((page["inputs"][0].to_string(), html))
}

/// Runs a text kernel in random orders of its waves.
#[pyfunction]
#[pyo3(signature = (text, name, target, wave, seed, inputs, max_instructions, schedules, depth, first_seed, tolerance, delays, all))]
#[expect(clippy::too_many_arguments, reason = "the package passes them by keyword")]
pub fn explore_text(
    py: Python<'_>,
    text: &str,
    name: &str,
    target: Option<&str>,
    wave: Option<u32>,
    seed: u64,
    inputs: Inputs,
    max_instructions: u64,
    schedules: u64,
    depth: u32,
    first_seed: u64,
    tolerance: f64,
    delays: bool,
    all: bool,
) -> PyResult<Exploration> {
    let prepared = prepare(text, name, target, wave, seed, &inputs, 0)?;
    let options = ExploreOptions { schedules, depth, first_seed, tolerance, delays, all };
    let explore = |cancel: &AtomicBool| {
        wavesim_runtime::explore::explore(&prepared, &options, max_instructions, Some(cancel), &[])
    };
    Ok(Exploration::new(interruptible(py, explore)?.map_err(error)?, &options))
}

/// Assembles text to a code object if it has kernels, otherwise to machine code.
#[pyfunction]
#[pyo3(signature = (text, target=None, wave=None, name="<text>"))]
pub fn assemble<'py>(
    py: Python<'py>,
    text: &str,
    target: Option<&str>,
    wave: Option<u32>,
    name: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let reading = AssemblyOptions { arch: arch(target)?, wave, ..AssemblyOptions::default() };
    let (mut program, options, mut errors) = reading.read(name, text);
    let mut bytes = Vec::new();
    if program.kernels().next().is_some() && errors.is_empty() {
        match wavesim::assembler::object::write(&mut program, &options) {
            Ok(object) => bytes = object,
            Err(more) => errors.extend(more),
        }
    } else {
        errors.extend(program.link(&options));
        if let Some(relocation) = program.relocations.first().filter(|_| errors.is_empty()) {
            let section = &program.sections[relocation.section].name;
            return Err(error(format!(
                "{section}+0x{:x} needs a relocation, which machine code without a kernel cannot have",
                relocation.offset
            )));
        }
        let code = program.sections.iter().find(|s| s.name == code_object::TEXT);
        bytes.extend(code.iter().flat_map(|s| &s.bytes));
    }
    if errors.is_empty() {
        return Ok(PyBytes::new(py, &bytes));
    }
    errors.sort_by_key(|e| e.line);
    let list: Vec<String> = errors.iter().map(|e| e.to_string()).collect();
    Err(error(list.join("\n")))
}

/// An instruction: address, text, size in bytes, whether it is valid, label.
type Instruction = (u64, String, usize, bool, Option<String>);

/// Disassembles machine code, or the code of a code object.
#[pyfunction]
#[pyo3(signature = (code, target=None, wave=None))]
pub fn disassemble(code: &[u8], target: Option<&str>, wave: Option<u32>) -> PyResult<Vec<Instruction>> {
    let requested = arch(target)?;
    if !code_object::is_object(code) {
        if !code.len().is_multiple_of(4) {
            return Err(error(format!(
                "{} bytes are neither a code object nor machine code, whose size is a multiple of 4",
                code.len()
            )));
        }
        return Ok(listing(requested.unwrap_or(Arch::DEFAULT), wave, 0, code, []));
    }
    let target_request = match target {
        Some(name) => Target::from_name(name).map_err(error)?.target_request(),
        None => Default::default(),
    };
    let object = code_object::open(code, &target_request).map_err(error)?;
    let module = code_object::module(&object).map_err(error)?;
    let kernels = code_object::kernels(&object).map_err(error)?;
    let kernel = kernels.first().map(|name| code_object::load(&object, name)).transpose().map_err(error)?;
    let wave = wave.or_else(|| Some(kernel.as_ref()?.wave_size()));
    let (address, len) = module.text;
    let text = module.image.bytes(address, len as usize).unwrap_or_default();
    let labels =
        kernel.iter().flat_map(|k| k.labels.iter()).map(|(name, offset)| (address + offset, name.clone()));
    Ok(listing(module.arch, wave, address, text, labels))
}

fn listing(
    arch: Arch,
    wave: Option<u32>,
    base: u64,
    bytes: &[u8],
    labels: impl IntoIterator<Item = (u64, String)>,
) -> Vec<Instruction> {
    let words = words(bytes);
    let listing = Listing::new(Options::new(arch).wave(wave.unwrap_or(32)), base, &words, labels);
    let row = |line: Line| {
        (line.address, line.text, 4 * line.words.len(), line.error.is_none(), line.label.map(str::to_string))
    };
    listing.lines().map(row).collect()
}
