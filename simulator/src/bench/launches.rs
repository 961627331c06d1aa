//! Small launches: the overhead of a launch beyond the execution of its waves.

use super::{BenchError, median};
use wavesim_engine::sched::dispatch::{self, Dispatch, RunStats};
use wavesim_engine::sched::group::Pool;
use wavesim_loader::abi;
use wavesim_loader::assembly::AssemblyOptions;
use wavesim_loader::code_object;
use wavesim_loader::prepared::Prepared;
use wavesim_loader::request;
use wavesim_machine::fault::Fault;
use wavesim_machine::memory::Memory;

/// Figures of a launch.
#[derive(Debug, Clone)]
pub struct LaunchFigures {
    /// Name of the launch.
    pub name: &'static str,
    /// Statistics of one launch.
    pub stats: RunStats,
    /// Median time of a launch.
    pub seconds: f64,
    /// Time for the waves alone: their share in a launch with a thousand times as many workgroups.
    pub waves_seconds: f64,
}

const EMPTY: &str = include_str!("../../bench/empty.s");
const SCALE: &str = include_str!("../../bench/scale.s");
/// Factor of workgroups in the launch that determines the time of waves.
const FACTOR: u32 = 1000;

/// Measures an empty launch and a launch of eight waves, for about `budget_s` seconds each.
pub fn measure(budget_s: f64) -> Result<Vec<LaunchFigures>, BenchError> {
    Ok(vec![
        figures("empty", EMPTY, "empty", [1, 1, 1], [32, 1, 1], budget_s)?,
        figures("8 waves", SCALE, "scale", [8, 1, 1], [32, 1, 1], budget_s)?,
    ])
}

fn figures(
    name: &'static str,
    source: &str,
    kernel: &str,
    grid: [u32; 3],
    block: [u32; 3],
    budget_s: f64,
) -> Result<LaunchFigures, BenchError> {
    let small = prepare(source, kernel, grid, block)?;
    let large = prepare(source, kernel, [grid[0] * FACTOR, 1, 1], block)?;
    let pool = Pool::default();
    let launch = |prepared: &Prepared| -> Result<RunStats, Box<Fault>> {
        let dispatch = Dispatch { pool: Some(&pool), ..prepared.dispatch(u64::MAX) };
        dispatch::run(&dispatch, &prepared.memory)
    };
    let stats = launch(&small).map_err(BenchError::Fault)?;
    let time =
        |prepared: &Prepared| median(budget_s, || launch(prepared).map(drop).map_err(BenchError::Fault));
    let (seconds, all) = (time(&small)?, time(&large)?);
    let waves_seconds = (all - seconds).max(0.0) / (FACTOR - 1) as f64;
    Ok(LaunchFigures { name, stats, seconds, waves_seconds })
}

/// Prepares a launch of a kernel that takes two buffers with a float per work-item, a factor, and a count; or
/// no arguments.
fn prepare(source: &str, kernel: &str, grid: [u32; 3], block: [u32; 3]) -> Result<Prepared, BenchError> {
    let object = AssemblyOptions::default().assemble(kernel, source).map_err(|e| BenchError::Wrong {
        workload: "launches",
        what: e.first().map_or_else(String::new, ToString::to_string),
    })?;
    let kernel = code_object::load(&object.object, kernel)?;
    let items = grid[0] * block[0];
    let mut memory = Memory::new(64 << 20)?;
    let mut kernarg = Vec::new();
    for name in ["x", "y"] {
        kernarg.extend(memory.alloc(items as u64 * 4, 256, name)?.to_le_bytes());
    }
    kernarg.extend(2.5f32.to_le_bytes());
    kernarg.extend(items.to_le_bytes());
    let shape = abi::Shape::new(grid, block, 0);
    Ok(request::with_kernarg(&kernel, &kernarg, &shape, memory)?)
}
