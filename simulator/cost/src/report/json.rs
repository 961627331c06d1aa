//! A profile as JSON, schema `wavesim-profile-1`.

use super::{label, numbers, place, range};
use crate::lint::text_of;
use crate::model::{LevelCount, Stall, TICKS};
use crate::profile::{Profile, stalls};
use serde_json::{Map, Value, json};
use wavesim_machine::exec::program::Program;

/// Returns the profile.
pub fn json(profile: &Profile, program: &Program) -> Value {
    let (p, plan) = (&profile.prediction, &profile.plan);
    let (low, high) = range(profile);
    let o = &plan.occupancy;
    let r = &profile.roofline;
    let named = |values: &[f64]| -> Map<String, Value> {
        Stall::NAMES.iter().zip(values).map(|(name, v)| (name.to_string(), json!(v))).collect()
    };
    let row = |row: &crate::profile::Row| {
        let (n, at) = (numbers(profile, row), place(program, row.index));
        let clocks: Vec<f64> = row.counts.stalls.iter().map(|t| *t as f64 / TICKS as f64).collect();
        json!({
            "address": format!("{:x}", at.address), "file": at.file, "line": at.line, "instruction": at.text,
            "class": row.class, "executed": n.executed, "clocks": n.clocks, "stalled": n.stalled,
            "stalls": named(&clocks), "lines_per_access": n.lines, "lds_conflict_clocks": n.conflicts,
            "lost_lanes": n.lost_lanes,
            "remarks": row.remarks.iter().map(|r| json!({"rule": r.rule, "text": text_of(r)})).collect::<Vec<_>>(),
        })
    };
    let level = |l: &LevelCount| {
        json!({
            "name": l.name, "hits": l.hits, "misses": l.misses, "bytes": l.bytes, "busy": l.busy
        })
    };
    json!({
        "schema": "wavesim-profile-1",
        "label": label(profile),
        "device": profile.costs.device.device,
        "calibrated": profile.costs.device.calibrated,
        "microseconds": {"predicted": p.microseconds, "low": low, "high": high, "launch": p.launch},
        "clocks": p.clocks,
        "bound": {"by": profile.bound.name, "why": profile.bound.why},
        "occupancy": {"waves_per_simd": o.waves_of_simd, "most": o.most, "workgroups": o.workgroups,
            "limit": o.limit.name(), "resident_waves": p.waves},
        "sample": {"workgroups": p.sample.0, "of_workgroups": plan.workgroups, "instructions": p.sample.1,
            "of_instructions": p.instructions, "parts": p.windows, "error": p.sampling_error},
        "roofline": {"flop": r.operations, "bytes": r.bytes, "flop_per_second": r.rate, "intensity": r.intensity(),
            "attainable": r.attainable(), "memory_roof": r.memory_roof, "vector_roof": r.vector_roof},
        "units": p.units.iter().map(|(u, busy)| (u.name().to_string(), json!(busy))).collect::<Map<_, _>>(),
        "levels": p.levels.iter().map(level).collect::<Vec<_>>(),
        "stalls": named(&stalls(p)),
        "unclassified": p.unclassified,
        "instructions": profile.rows.iter().map(row).collect::<Vec<_>>(),
    })
}
