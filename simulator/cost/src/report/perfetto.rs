//! The timeline of a profile in the Trace Event format, which ui.perfetto.dev opens: a group of tracks for each SIMD, in
//! order of processors, and a track for each of its waves. A slice is a time in which a wave did not issue.

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
    let simds = profile.costs.arch.processor.simds.count().max(1) as usize;
    let mut events = Vec::new();
    let mut waves: BTreeSet<usize> = BTreeSet::new();
    let mut groups: BTreeSet<usize> = BTreeSet::new();
    for slice in &profile.prediction.timeline {
        // Number 0 would be the trace itself.
        let group = slice.processor * simds + slice.simd + 1;
        let mut describe = |what: &str, args: Value| {
            events.push(json!({"ph": "M", "name": what, "pid": group, "tid": slice.wave, "args": args}));
        };
        if groups.insert(group) {
            describe(
                "process_name",
                json!({"name": format!("{name} {} SIMD {}", slice.processor, slice.simd)}),
            );
            describe("process_sort_index", json!({"sort_index": group}));
        }
        if waves.insert(slice.wave) {
            describe("thread_name", json!({"name": format!("wave {}", slice.wave)}));
            describe("thread_sort_index", json!({"sort_index": slice.wave}));
        }
        let reason = slice.stall.index().map_or("issue", |at| Stall::NAMES[at]);
        let inst = slice.inst as usize;
        events.push(json!({"ph": "X", "cat": reason, "name": reason, "pid": group, "tid": slice.wave,
            "ts": us(slice.from), "dur": us(slice.to - slice.from),
            "args": {"instruction": program.text(inst), "address": format!("{:x}", program.address(program.pcs[inst])),
                "line": program.lines[inst]}}));
    }
    json!({"traceEvents": events, "otherData": {"label": label(profile)}})
}
