//! Runs a kernel to its end, and checks it.

use crate::budget::{self, Budget, Need, RESIDENT_BYTES};
use crate::diagnose::launch;
use crate::program::{Program, encode};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use wavesim_array::Array;
use wavesim_engine::observe::{Observer, Observers};
use wavesim_engine::sched::dispatch;
use wavesim_inspect::check::{Check, Checker, GUARD_BYTES};
use wavesim_isa::image::components;
use wavesim_loader::prepared::Prepared;
use wavesim_loader::surface::Surface;
use wavesim_machine::fault::Fault;
use wavesim_trace::prints::Prints;
use wavesim_trace::profile::Profile;
use wavesim_trace::stats::Stats;

/// Maximum number of bytes of an output in an answer.
const MAX_OUTPUT: usize = 8 << 20;
/// Maximum number of instructions with counts in an answer.
const MAX_ROWS: usize = 100_000;
/// Maximum number of bytes that `print` directives can write.
const MAX_PRINTED: usize = 256 << 10;

/// Runs a kernel. Returns its outputs, printed text, the fault that ended it, and statistics.
pub fn run(
    program: &Program,
    max_instructions: u64,
    statistics: bool,
    interrupt: &AtomicBool,
    budget: &Arc<Budget>,
) -> Result<Value, String> {
    let mut reserved = budget.wait_for(budget::preparing(program.len_bytes()), interrupt)?;
    let prepared = program.prepare(0)?;
    let mut dispatch = prepared.dispatch(max_instructions);
    dispatch.cancel = Some(interrupt);
    dispatch.resident_bytes = RESIDENT_BYTES;
    reserved.resize(Need::of(&prepared, &dispatch).run())?;
    let mut printed = Bounded(Vec::new());
    let mut stats = None;
    let (counts, fault) = if statistics || !prepared.prints.is_empty() {
        let mut counter = Stats::new(&prepared.program, prepared.shape.wave_size);
        let mut profile = Profile::new(&prepared.program);
        let mut prints = Prints::new(&prepared.prints, &mut printed);
        let mut observers: Vec<&mut dyn Observer> = Vec::new();
        if statistics {
            observers.push(&mut counter);
            observers.push(&mut profile);
        }
        if !prepared.prints.is_empty() {
            observers.push(&mut prints);
        }
        let (counts, result) = dispatch::run_observed(&dispatch, &prepared.memory, &mut Observers(observers));
        // A write beyond [`MAX_PRINTED`] fails, and is ignored.
        let _ = prints.finish();
        if statistics {
            stats = Some(json!({
                "table": counter.table(),
                "json": counter.json(),
                "instructions": instructions(&prepared, &counter.counts, profile.lanes()),
                "lines": lines(&prepared, &counter.counts, profile.lanes()),
            }));
        }
        (Some(counts), result.err())
    } else {
        match dispatch::run(&dispatch, &prepared.memory) {
            Ok(counts) => (Some(counts), None),
            Err(fault) => (None, Some(fault)),
        }
    };
    let outputs = prepared.outputs().map_err(|e| e.to_string())?;
    Ok(json!({
        "launch": launch(&prepared),
        "outputs": outputs.iter().map(|(name, array)| shown(&prepared, name, array)).collect::<Vec<_>>(),
        "fault": fault.as_deref().map(fault_json),
        "instructions": counts.map(|c| c.instructions),
        "waves": counts.map(|c| c.waves),
        "printed": String::from_utf8_lossy(&printed.0),
        "statistics": stats,
    }))
}

/// Runs a kernel with all checks. Returns the findings, and the fault that ended it.
pub fn check(
    program: &Program,
    max_instructions: u64,
    interrupt: &AtomicBool,
    budget: &Arc<Budget>,
) -> Result<Value, String> {
    let mut reserved = budget.wait_for(budget::preparing(program.len_bytes()), interrupt)?;
    let prepared = program.prepare(GUARD_BYTES)?;
    let mut dispatch = prepared.dispatch(max_instructions);
    dispatch.cancel = Some(interrupt);
    dispatch.resident_bytes = RESIDENT_BYTES;
    reserved.resize(Need::of(&prepared, &dispatch).check())?;
    let mut checker = Checker::new(&prepared, &Check::DEFAULT).map_err(|e| e.to_string())?;
    let (counts, result) = checker.run(&dispatch);
    let fault = result.err();
    let findings: Vec<Value> = checker
        .finish(fault.as_deref())
        .iter()
        .map(|f| {
            let mut value = f.json();
            value["rendered"] = json!(f.to_string());
            value
        })
        .collect();
    Ok(json!({
        "launch": launch(&prepared),
        "findings": findings,
        "fault": fault.as_deref().map(fault_json),
        "instructions": counts.instructions,
        "waves": counts.waves,
    }))
}

/// Returns an output, which is a picture if it is an image.
fn shown(prepared: &Prepared, name: &str, array: &Array) -> Value {
    let mut value = output(name, array);
    let surface = prepared.buffers.iter().find(|buffer| buffer.name == name).and_then(|b| b.surface.as_ref());
    if let Some(Surface { image, .. }) = surface
        && image.levels == 1
        && image.samples == 1
    {
        let parts = components(image.format);
        let separate = parts > 1 && array.shape.last() == Some(&(parts as u64));
        value["channels"] = json!(if separate { parts } else { 1 });
    }
    value
}

/// Returns an array with its type, shape and elements.
pub fn output(name: &str, array: &Array) -> Value {
    let sent = array.bytes.len().min(MAX_OUTPUT);
    json!({
        "name": name,
        "dtype": array.dtype.name(),
        "shape": array.shape,
        "type": array.type_name(),
        "bytes": array.bytes.len(),
        "data": encode(&array.bytes[..sent]),
    })
}

/// Returns a fault and its program point.
pub fn fault_json(fault: &Fault) -> Value {
    json!({
        "kind": fault.kind.name(),
        "message": fault.message,
        "line": fault.line,
        "pc": fault.pc,
        "instruction": fault.instruction,
        "workgroup": fault.workgroup,
        "wave": fault.wave,
        "lane": fault.lane,
        "rendered": fault.to_string(),
    })
}

/// Returns the executions of each line, and the sum of their active lanes: `[line, count, lanes]`.
fn lines(prepared: &Prepared, counts: &[u64], lanes: &[u64]) -> Vec<(u32, u64, u64)> {
    // Compilers interleave the instructions of different lines.
    let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for ((line, count), lanes) in prepared.program.lines.iter().zip(counts).zip(lanes) {
        let sum = sums.entry(*line).or_default();
        *sum = (sum.0 + count, sum.1 + lanes);
    }
    sums.remove(&0);
    sums.into_iter().map(|(line, (count, lanes))| (line, count, lanes)).collect()
}

/// Returns the same for each executed instruction, by its address in listings.
fn instructions(prepared: &Prepared, counts: &[u64], lanes: &[u64]) -> Vec<(u64, u64, u64)> {
    let program = &prepared.program;
    let all = program.pcs.iter().zip(counts).zip(lanes).filter(|((_, count), _)| **count != 0);
    all.map(|((pc, count), lanes)| (program.address(*pc), *count, *lanes)).take(MAX_ROWS).collect()
}

/// Keeps the first [`MAX_PRINTED`] bytes, and rejects the rest.
struct Bounded(Vec<u8>);

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_PRINTED {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
