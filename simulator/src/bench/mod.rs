//! Benchmarks: the speed of the interpreter on built-in workloads, and the rates of the host for comparison.
//!
//! [`workloads`] has the kernels, and `wavesim-native` the same computations in Rust. [`mod@host`] measures
//! the rates of the host, [`instructions`] counts host instructions, [`operations`] measures each instruction
//! of an architecture, and [`launches`] measures small launches.

pub mod host;
pub mod instructions;
pub mod launches;
pub mod operations;
pub mod workloads;

use std::time::Instant;
use wavesim_engine::interp::Compiled;
use wavesim_engine::sched::dispatch::{self, Dispatch, DispatchError, RunStats};
use wavesim_engine::sched::group::Pool;
use wavesim_inspect::check::{Check, Checker, GUARD_BYTES};
use wavesim_isa::codec::words;
use wavesim_loader::abi;
use wavesim_loader::code_object::{self, LoadError};
use wavesim_loader::prepared;
use wavesim_loader::request::{self, LaunchError};
use wavesim_machine::fault::Fault;
use wavesim_machine::memory::{AllocError, MemError, Memory};
pub use workloads::{Form, WORKLOADS, Workload};

/// The reason why a benchmark failed.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The code object cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// There is not enough memory.
    #[error(transparent)]
    Alloc(#[from] AllocError),
    /// The launch cannot be prepared.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A buffer cannot be read or written.
    #[error(transparent)]
    Access(#[from] MemError),
    /// No device accepts the launch.
    #[error(transparent)]
    Dispatch(#[from] DispatchError),
    /// The host does not support the compiled engine.
    #[cfg(feature = "jit")]
    #[error(transparent)]
    Refused(#[from] wavesim_jit::UnsupportedHost),
    /// The kernel faulted.
    #[error("{0}")]
    Fault(Box<Fault>),
    /// The workload has no code object for this form.
    #[error("{workload} has no code for {}", form.name())]
    NoCode {
        /// Name of the workload.
        workload: &'static str,
        /// The requested form.
        form: Form,
    },
    /// The result is wrong, or a check has findings.
    #[error("{workload}: wrong result: {what}")]
    Wrong {
        /// Name of the workload.
        workload: &'static str,
        /// The difference.
        what: String,
    },
}

/// Figures of a workload.
#[derive(Debug, Clone)]
pub struct Figures {
    /// Name of the workload.
    pub name: &'static str,
    /// Statistics of one launch.
    pub stats: RunStats,
    /// Median time of a launch.
    pub seconds: f64,
    /// Median time of the same computation compiled for the host, if there is one.
    pub native_seconds: Option<f64>,
    /// Lanes of a wave.
    pub lanes: u32,
    /// Number of matrix multiplications and additions in a launch, if the workload is a matrix product.
    pub operations: Option<f64>,
    /// Figures of the compiled engine, if it was measured.
    pub compiled: Option<CompiledFigures>,
}

/// Figures of the compiled engine, measured alternately with the interpreter.
#[derive(Debug, Clone, Copy)]
pub struct CompiledFigures {
    /// Median time of a launch with previously compiled code.
    pub seconds: f64,
    /// Compile time.
    pub compile_seconds: f64,
    /// Number of operations compiled.
    pub operations: u32,
    /// Number of units that the code generator rejected.
    pub failed: u32,
    /// Size of the code in bytes.
    pub bytes: u64,
}

impl Figures {
    /// Wave-instructions per second.
    pub fn wave_instr_per_s(&self) -> f64 {
        self.stats.instructions as f64 / self.seconds
    }

    /// Lane-instructions per second, if all lanes were active in every instruction.
    pub fn lane_instr_per_s(&self) -> f64 {
        self.lanes as f64 * self.wave_instr_per_s()
    }

    /// Matrix multiplications and additions per second.
    pub fn operations_per_s(&self) -> Option<f64> {
        Some(self.operations? / self.seconds)
    }
}

/// A workload with its code, buffers and arguments in memory.
pub struct Prepared {
    /// The workload.
    pub workload: &'static Workload,
    run: prepared::Prepared,
    /// The buffers.
    pub buffers: Vec<Buffer>,
    /// Register files, which are retained between launches, as devices of the host APIs do.
    pool: Pool,
}

/// A buffer of a workload.
pub struct Buffer {
    /// The address in global memory.
    pub address: u64,
    /// The initial contents.
    pub initial: Vec<u32>,
}

impl Prepared {
    /// Loads a workload, with `guard` unused bytes between its buffers.
    pub fn new(workload: &'static Workload, form: Form, guard: u64) -> Result<Prepared, BenchError> {
        let Some(code) = workload.code(form) else {
            return Err(BenchError::NoCode { workload: workload.name, form });
        };
        let kernel = code_object::load(code, workload.kernel)?;
        let mut memory = Memory::with_guard(64 << 20, guard)?;
        let (mut kernarg, mut buffers) = (Vec::new(), Vec::new());
        for arg in (workload.args)() {
            match arg {
                workloads::Arg::Buffer(initial) => {
                    let address = memory.alloc(initial.len() as u64 * 4, 256, "buffer")?;
                    kernarg.extend(address.to_le_bytes());
                    buffers.push(Buffer { address, initial });
                }
                workloads::Arg::Word(value) => kernarg.extend(value.to_le_bytes()),
            }
        }
        let shape = abi::Shape::new(workload.grid, workload.block, 0);
        let run = request::with_kernarg(&kernel, &kernarg, &shape, memory)?;
        let prepared = Prepared { workload, run, buffers, pool: Pool::default() };
        prepared.reset()?;
        Ok(prepared)
    }

    /// Restores the initial contents of the buffers.
    pub fn reset(&self) -> Result<(), BenchError> {
        for buffer in &self.buffers {
            let bytes: Vec<u8> = buffer.initial.iter().flat_map(|w| w.to_le_bytes()).collect();
            self.run.memory.write(buffer.address, &bytes)?;
        }
        Ok(())
    }

    /// Runs one launch.
    pub fn launch(&self, threads: usize) -> Result<RunStats, BenchError> {
        let dispatch = Dispatch { threads, pool: Some(&self.pool), ..self.run.dispatch(u64::MAX) };
        dispatch::run(&dispatch, &self.run.memory).map_err(BenchError::Fault)
    }

    /// As [`Prepared::launch`], with compiled code.
    pub fn launch_compiled(
        &self,
        threads: usize,
        code: &(dyn Compiled + Sync),
    ) -> Result<RunStats, BenchError> {
        let pool = Some(&self.pool);
        let dispatch = Dispatch { threads, pool, compiled: Some(code), ..self.run.dispatch(u64::MAX) };
        dispatch::run(&dispatch, &self.run.memory).map_err(BenchError::Fault)
    }

    /// Runs one launch with checks. Findings are errors.
    pub fn checked(&self, checker: &mut Checker<'_>) -> Result<RunStats, BenchError> {
        let dispatch = self.run.dispatch(u64::MAX);
        let (stats, result) = checker.run(&dispatch);
        result.map_err(BenchError::Fault)?;
        match checker.findings().first() {
            Some(finding) => {
                Err(BenchError::Wrong { workload: self.workload.name, what: finding.to_string() })
            }
            None => Ok(stats),
        }
    }

    /// Creates the checker for a launch, including its analysis of the program.
    ///
    /// # Errors
    /// The launch cannot run.
    pub fn checker(&self, checks: &[Check]) -> Result<Checker<'_>, BenchError> {
        Ok(Checker::new(&self.run, checks)?)
    }

    /// Returns the current contents of a buffer in dwords.
    pub fn read(&self, buffer: usize) -> Result<Vec<u32>, BenchError> {
        let Buffer { address, initial } = &self.buffers[buffer];
        let mut bytes = vec![0; initial.len() * 4];
        self.run.memory.read(*address, &mut bytes)?;
        Ok(words(&bytes))
    }
}

/// Launches a workload repeatedly for about `budget_s` seconds. The result of the first launch is verified.
pub fn measure(
    workload: &'static Workload,
    form: Form,
    budget_s: f64,
    threads: usize,
) -> Result<Figures, BenchError> {
    let prepared = Prepared::new(workload, form, 0)?;
    let stats = prepared.launch(threads)?;
    (workload.check)(&prepared)?;
    let seconds = median(budget_s, || prepared.launch(threads).map(|_| ()))?;
    let native_seconds = match workload.native {
        Some(native) => {
            let mut run = native(&prepared);
            Some(median(budget_s / 4.0, || {
                run();
                Ok(())
            })?)
        }
        None => None,
    };
    let (lanes, operations) = (prepared.run.shape.wave_size, workload.operations);
    Ok(Figures { name: workload.name, stats, seconds, native_seconds, lanes, operations, compiled: None })
}

/// As [`measure`], with the compiled engine in addition to the interpreter: one launch of each in turn. Both
/// results are verified, that of compiled code also after the last launch. With `background`, another thread
/// compiles frequently executed code.
#[cfg(feature = "jit")]
pub fn measure_compiled(
    workload: &'static Workload,
    form: Form,
    budget_s: f64,
    threads: usize,
    background: bool,
) -> Result<Figures, BenchError> {
    let figures = measure(workload, form, budget_s / 4.0, threads)?;
    let prepared = Prepared::new(workload, form, 0)?;
    let program = &prepared.run.program;
    let code =
        if background { wavesim_jit::Jit::in_background(program)? } else { wavesim_jit::Jit::new(program)? };
    let stats = prepared.launch_compiled(threads, &code)?;
    (workload.check)(&prepared)?;
    if stats != figures.stats {
        return Err(BenchError::Wrong { workload: workload.name, what: "another count".to_string() });
    }
    let (mut plain, mut compiled) = (Vec::new(), Vec::new());
    let start = Instant::now();
    while plain.len() < 3 || start.elapsed().as_secs_f64() < budget_s {
        let before = Instant::now();
        prepared.launch(threads)?;
        plain.push(before.elapsed().as_secs_f64());
        let before = Instant::now();
        prepared.launch_compiled(threads, &code)?;
        compiled.push(before.elapsed().as_secs_f64());
    }
    // Code may choose another way to store after some launches.
    prepared.reset()?;
    prepared.launch_compiled(threads, &code)?;
    (workload.check)(&prepared)?;
    let made = code.stats();
    let compiled = CompiledFigures {
        seconds: median_of(compiled),
        compile_seconds: made.seconds,
        operations: made.operations,
        failed: made.failed,
        bytes: made.bytes,
    };
    Ok(Figures { seconds: median_of(plain), compiled: Some(compiled), ..figures })
}

/// The slowdown of a launch by checks.
#[derive(Debug, Clone)]
pub struct CheckFigures {
    /// Name of the workload.
    pub name: &'static str,
    /// Median time of a plain launch.
    pub seconds: f64,
    /// Slowdown by each check alone, in the order of [`Check::DEFAULT`].
    pub each: Vec<f64>,
    /// Slowdown by all checks.
    pub all: f64,
}

/// Measures a workload with and without checks, alternately, for about `budget_s` seconds.
pub fn measure_checks(
    workload: &'static Workload,
    form: Form,
    budget_s: f64,
) -> Result<CheckFigures, BenchError> {
    let prepared = Prepared::new(workload, form, GUARD_BYTES)?;
    let sets: Vec<&[Check]> = Check::DEFAULT.chunks(1).chain([&Check::DEFAULT[..]]).collect();
    let mut plain = Vec::new();
    let mut checked = vec![Vec::new(); sets.len()];
    let start = Instant::now();
    while plain.len() < 3 || start.elapsed().as_secs_f64() < budget_s {
        for (set, times) in sets.iter().zip(&mut checked) {
            let before = Instant::now();
            prepared.launch(1)?;
            plain.push(before.elapsed().as_secs_f64());
            let mut checker = prepared.checker(set)?;
            let before = Instant::now();
            prepared.checked(&mut checker)?;
            times.push(before.elapsed().as_secs_f64());
        }
    }
    let seconds = median_of(plain);
    let mut each: Vec<f64> = checked.into_iter().map(|times| median_of(times) / seconds).collect();
    let all = each.pop().unwrap_or(1.0);
    Ok(CheckFigures { name: workload.name, seconds, each, all })
}

/// Returns the median time of `run`, called for about `budget_s` seconds, but at least three times.
pub fn median(budget_s: f64, mut run: impl FnMut() -> Result<(), BenchError>) -> Result<f64, BenchError> {
    let start = Instant::now();
    let mut times = Vec::new();
    while times.len() < 3 || start.elapsed().as_secs_f64() < budget_s {
        let before = Instant::now();
        run()?;
        times.push(before.elapsed().as_secs_f64());
    }
    Ok(median_of(times))
}

/// Returns the median.
fn median_of(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
