//! The timeline of a profile in the Trace Event format, which ui.perfetto.dev opens: a process for each processor that is
//! simulated, a thread for each wave, sorted by SIMD. A slice is a time in which a wave did not issue.

use super::label;
use crate::model::{Stall, TICKS};
use crate::profile::Profile;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use wavesim_machine::exec::program::Program;

/// Returns the trace. Times are in microseconds of the device's clock.
pub fn perfetto(profile: &Profile, program: &Program) -> Value {
    let clock = profile.costs.device.chip.clock.value();
    let us = |ticks: u64| ticks as f64 / TICKS as f64 / clock;
    let name = &profile.costs.arch.processor.name;
    let mut events = Vec::new();
    let mut known: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut processors: BTreeSet<usize> = BTreeSet::new();
    for slice in &profile.prediction.timeline {
        if processors.insert(slice.processor) {
            events.push(json!({"ph": "M", "name": "process_name", "pid": slice.processor,
                "args": {"name": format!("{name} {}", slice.processor)}}));
        }
        if known.insert((slice.processor, slice.wave)) {
            let thread = format!("SIMD {} wave {}", slice.simd, slice.wave);
            events.push(json!({"ph": "M", "name": "thread_name", "pid": slice.processor, "tid": slice.wave,
                "args": {"name": thread}}));
            events.push(
                json!({"ph": "M", "name": "thread_sort_index", "pid": slice.processor, "tid": slice.wave,
                "args": {"sort_index": slice.simd * 100_000 + slice.wave}}),
            );
        }
        let reason = slice.stall.index().map_or("issue", |at| Stall::NAMES[at]);
        let inst = slice.inst as usize;
        events.push(json!({"ph": "X", "cat": reason, "name": reason, "pid": slice.processor, "tid": slice.wave,
            "ts": us(slice.from), "dur": us(slice.to - slice.from),
            "args": {"instruction": program.text(inst), "address": format!("{:x}", program.address(program.pcs[inst])),
                "line": program.lines[inst]}}));
    }
    json!({"traceEvents": events, "otherData": {"label": label(profile)}})
}
