//! Reports in HTML of `check`, `run` and `launch`.

use super::input::InputArgs;
use anyhow::Context as _;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use wavesim_engine::sched::dispatch;
use wavesim_files::Files;
use wavesim_loader::prepared::Prepared;
use wavesim_trace::activity::Activity;

/// Largest source in a report, in bytes.
pub const SOURCE_LIMIT: u64 = 16 << 20;

/// Writes the report of some runs.
pub fn write(path: &Path, label: &str, inputs: Vec<Value>) -> anyhow::Result<()> {
    let names: Vec<&str> = inputs.iter().filter_map(|input| input["name"].as_str()).collect();
    let title = match &names[..] {
        [only] => only.to_string(),
        names => format!("{} kernels", names.len()),
    };
    let data = json!({ "schema": "wavesim-report-1", "label": label, "inputs": inputs });
    let text = wavesim_html::run_page(&title, &data);
    wavesim_files::write(path, |out| out.write_all(text.as_bytes()))
        .with_context(|| path.display().to_string())
}

/// Returns an observer of the activity of a run.
pub fn activity(prepared: &Prepared, keeps_going: bool) -> Activity<'_> {
    let buffers = prepared.buffers.iter().map(|b| (b.name.as_str(), b.address, b.len_bytes));
    let (wave_size, lds) = (prepared.shape.wave_size, prepared.shape.lds_bytes);
    Activity::new(&prepared.program, wave_size, buffers, lds.into(), keeps_going)
}

/// Returns the part of a checked file, after one more run.
pub fn of_check(input: &InputArgs, name: &str, summary: &str, findings: Vec<Value>) -> anyhow::Result<Value> {
    let (prepared, services) = input.prepare_with_services(wavesim_inspect::check::GUARD_BYTES)?;
    let dispatch = input.dispatch(&prepared)?;
    let mut activity = activity(&prepared, true);
    // A fault is among the findings.
    let run = || dispatch::run_observed(&dispatch, &prepared.memory, &mut activity);
    let _ = services.serve(&prepared.memory, run);
    Ok(json!({
        "name": name, "summary": summary, "findings": findings, "sources": sources_json(&prepared, &input.kernel.files.access()?),
        "activity": activity.json(),
    }))
}

/// Returns the sources for a report.
pub fn sources_json(prepared: &Prepared, files: &Files) -> Value {
    sources(prepared, files).into_iter().map(|(name, text)| json!({ "name": name, "text": text })).collect()
}

/// Returns the texts of the source: the kernel's own, or those files of its debug information that can be read. A report
/// may be passed on, and a kernel may name any file: only those that its input may name are read.
pub fn sources(prepared: &Prepared, files: &Files) -> Vec<(String, String)> {
    if let Some(source) = &prepared.source {
        return vec![(source.name.clone(), source.text.clone())];
    }
    let names: BTreeSet<String> =
        prepared.program.source_files().iter().map(|f| f.name.to_string()).collect();
    let read = |name: String| {
        let text = files.read_text(Path::new(&name), SOURCE_LIMIT).ok()?;
        Some((name, text))
    };
    names.into_iter().filter_map(read).collect()
}
