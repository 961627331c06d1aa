//! The part of `--stats` about the compiled engine.

use super::engine::Code;
use super::observe::CompiledStatistics;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use wavesim_engine::sched::dispatch::Dispatch;
use wavesim_jit::{CompileStats, CompiledPaths, selections};

/// Compiles what a run with these numbers of executions of each instruction compiles. Returns the number of units and
/// of their special paths, and the number of operations executed, by the way in which code executes them.
pub fn count(code: &Code, dispatch: &Dispatch<'_>, executions: &[u64]) -> CompiledStatistics {
    let of = |instruction: usize| executions.get(instruction).copied().unwrap_or(0);
    let shape = dispatch.shape;
    code.compile_executed(shape.init.mode, shape.wave_size, |op| of(op.number as usize));
    let CompileStats { units, failed, operations, paths, .. } = code.stats();
    let mut executed: BTreeMap<String, u64> = BTreeMap::new();
    for operation in selections(dispatch.program) {
        *executed.entry(operation.to_string()).or_default() += of(operation.instruction);
    }
    executed.retain(|_, count| *count != 0);
    let total: u64 = executed.values().sum();
    let mut table = String::new();
    // Writing to a string does not fail.
    let _ =
        writeln!(table, "compiled engine         {units:>14}   units of {operations} operations; {paths}");
    let mut list: Vec<_> = executed.iter().collect();
    list.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
    for (how, count) in list {
        let percent = 100.0 * *count as f64 / total as f64;
        let _ = writeln!(table, "  {how:<28} {count:>14}   {percent:5.1} %");
    }
    let CompiledPaths {
        fast_runs,
        versioned_loops,
        cached_offsets,
        sequence_blocks,
        sequence_instructions,
        sequence_accesses,
        atomics,
    } = paths;
    let json = json!({
        "units": units,
        "failed": failed,
        "operations": operations,
        "paths": {
            "fast_runs": fast_runs,
            "versioned_loops": versioned_loops,
            "cached_offsets": cached_offsets,
            "sequence_blocks": sequence_blocks,
            "sequence_instructions": sequence_instructions,
            "sequence_accesses": sequence_accesses,
            "atomics": atomics,
        },
        "executed": executed,
    });
    CompiledStatistics { table, json }
}
