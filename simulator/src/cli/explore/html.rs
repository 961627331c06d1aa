//! The result of an exploration as a page: what differs, the picture of the two accesses, where they are in the source.

use super::formats::Difference;
use super::{Exploration, OutcomeRuns};
use crate::cli::page;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::Ordering;
use wavesim_explore::cause::as_finding;

/// Outcomes in the table, at most.
const MOST_OUTCOMES: usize = 100;

/// Writes the report. `told` is what the command prints.
pub fn write(
    path: &Path,
    exploration: &Exploration<'_>,
    wrong: Option<&Difference<'_>>,
    groups: &[OutcomeRuns],
    told: &str,
) -> anyhow::Result<()> {
    let args = exploration.args;
    let name = crate::cli::input_name(&args.input.file);
    let done = exploration.done.load(Ordering::Relaxed);
    let summary = match wrong {
        Some(wrong) => format!("Another outcome than expected: {}", wrong.message),
        None => format!("{done} executions, no outcome other than expected"),
    };
    // Those of the outcomes that most executions have.
    let mut sorted: Vec<&OutcomeRuns> = groups.iter().collect();
    sorted.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.line.cmp(&b.line)));
    let outcomes: serde_json::Map<String, Value> =
        sorted.iter().take(MOST_OUTCOMES).map(|group| (group.line.clone(), json!(group.count))).collect();
    let mut stats = json!({ "executions": done });
    // They are counted with --litmus only.
    if !outcomes.is_empty() {
        stats["outcomes"] = outcomes.into();
    }
    let prepared = args.input.prepare(0)?;
    let input = json!({
        "name": name,
        "summary": summary,
        "findings": wrong.map(|wrong| as_finding(&wrong.message, wrong.places)).into_iter().collect::<Vec<Value>>(),
        "report": told.trim_end(),
        "sources": page::sources_json(&prepared, &args.input.kernel.files.access()?),
        "stats": stats,
    });
    page::write(path, "wavesim explore", vec![input])
}
