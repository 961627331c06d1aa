//! Launches of kernels.

use crate::kernargs::Slot;
use crate::{Codes, Engine, Error, HostMemory, Kernel, Report, Services, exit};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use wavesim::check::{Check, Checker, Finding, Severity};
use wavesim::exec::observe::{Observer, Observers};
use wavesim::fault::{Fault, FaultKind};
use wavesim::loader::abi;
use wavesim::loader::prepared::Prepared;
use wavesim::loader::request::{self, LaunchAddresses};
use wavesim::sched::dispatch::{self, RunStats};
use wavesim::sched::group::Pool;
use wavesim::trace::Filter;
use wavesim::trace::jsonl::Jsonl;

/// What a kernel is launched with, beside its arguments.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// Workgroups in the grid.
    pub grid: [u32; 3],
    /// Work-items in a workgroup.
    pub block: [u32; 3],
    /// LDS of a workgroup in addition to the kernel's own, in bytes.
    pub dynamic_lds: u32,
    /// Where OpenCL's global ids begin.
    pub offset: [u64; 3],
    /// Its workgroups are known to wait for each other.
    pub cooperative: bool,
    /// Memory that only this launch can access, in addition to the device's.
    pub memory: Vec<HostMemory>,
    /// What the host provides to the kernel, beside hostcall and heap, which are the device's.
    pub services: Services,
    /// Checks in place of the device's.
    pub checks: Option<Vec<Check>>,
    /// A limit of wave-instructions in place of the device's.
    pub max_instructions: Option<u64>,
    /// Host threads in place of the device's.
    pub threads: Option<usize>,
}

/// A launch that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What was executed.
    pub stats: RunStats,
    /// What checks found.
    pub report: Report,
}

impl Launch {
    /// A launch of a grid of workgroups.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Launch {
        Launch { grid, block, ..Launch::default() }
    }
}

/// How a launch is run and reported.
#[derive(Clone)]
pub struct Manner<'a> {
    /// Name of the kernel; empty for raw code.
    pub kernel: &'a str,
    /// Number of the launch, from 1.
    pub number: u64,
    /// Checks; none: it runs at full speed.
    pub checks: &'a [Check],
    /// Host threads.
    pub threads: usize,
    /// What executes instructions, if there are neither checks nor a trace.
    pub engine: Engine,
    /// The code that it keeps.
    pub codes: &'a Codes,
    /// Wave-instructions after which it faults.
    pub max_instructions: u64,
    /// Its workgroups are known to wait for each other.
    pub cooperative: bool,
    /// Where register files come from.
    pub pool: Option<&'a Pool>,
    /// Set to end it.
    pub cancel: Option<&'a AtomicBool>,
}

impl Kernel {
    /// Runs the kernel to its end. `explicit` holds the arguments of its source, laid out as its metadata says.
    ///
    /// # Errors
    /// [`Error::Fault`] if the kernel faulted; findings of checks are not errors.
    pub fn launch(&self, launch: &Launch, explicit: &[u8]) -> Result<Outcome, Error> {
        let device = self.device();
        let settings = device.settings();
        let manner = Manner {
            kernel: &self.name,
            number: device.count_launch(),
            checks: launch.checks.as_deref().unwrap_or(&settings.checks),
            threads: launch.threads.unwrap_or(settings.threads),
            engine: settings.engine,
            codes: &device.inner.codes,
            max_instructions: launch.max_instructions.unwrap_or(settings.max_instructions),
            cooperative: launch.cooperative,
            pool: Some(&device.inner.pool),
            cancel: None,
        };
        let given = abi::Shape {
            offset: launch.offset,
            ..abi::Shape::new(launch.grid, launch.block, launch.dynamic_lds)
        };
        let mut kernarg = self.segment(explicit)?;
        let asks = self.wants("hidden_hostcall_buffer") || self.wants("hidden_heap_v1");
        let hostcall = if asks { Some(device.hostcall()?) } else { None };
        let mut services = launch.services;
        if let Some(hostcall) = &hostcall {
            (services.hostcall, services.heap) = (hostcall.buffer(), hostcall.heap());
        }
        abi::write_hidden_arguments(&self.code, &given, &services, &mut kernarg);

        let slot = device.inner.kernargs.take(kernarg.len() as u64)?;
        let run = || self.launch_in(&slot, launch, &given, &kernarg, &manner);
        let result = match &hostcall {
            Some(hostcall) => hostcall.serve(run),
            None => run(),
        };
        device.inner.kernargs.give_back(slot);
        let (stats, mut report) = result?;
        let addresses = report.findings.iter().map(|f| f.address);
        let addresses = addresses.chain([report.fault.as_ref().and_then(|f| f.address)]).flatten();
        report.freed = addresses.filter_map(|address| device.find_freed(address)).collect();
        match report.fault {
            Some(_) => Err(Error::Fault(Box::new(report))),
            None => Ok(Outcome { stats, report }),
        }
    }

    /// Runs a launch whose kernarg segment has a place.
    fn launch_in(
        &self,
        slot: &Slot,
        launch: &Launch,
        given: &abi::Shape,
        kernarg: &[u8],
        manner: &Manner<'_>,
    ) -> Result<(RunStats, Report), Error> {
        let device = self.device();
        let mut extra = launch.memory.clone();
        let exact = !manner.checks.is_empty();
        extra.extend(slot.extra().filter(|_| !exact).map(|own| own.range()));
        let space = device.space(&extra, exact.then_some(slot))?;
        let (memory, join) = space.split();
        memory.write(slot.kernarg, kernarg)?;
        memory.write(slot.packet, &abi::dispatch_packet(given, &self.code, slot.kernarg))?;

        let module = &self.module.inner;
        let places = LaunchAddresses {
            code: module.image(),
            kernarg: slot.kernarg,
            packet: slot.packet,
            queue: launch.services.queue,
        };
        let shape = request::shape(&self.code, given, kernarg, &places)?;
        let program = module.program(&self.code, &memory)?;
        let modes = abi::modes(&self.code.descriptor);
        let mut prepared = Prepared { modes, ..Prepared::without_names(program, memory, shape) };
        if exact {
            prepared.labels = self.code.labels.clone();
        }
        let trace = device.settings().trace.as_deref();
        let manner = manner.clone();
        let result = device
            .cancellable(|cancel| run_traced(&prepared, &Manner { cancel: Some(cancel), ..manner }, trace));
        module.give_back(prepared.program);
        device.end(join(prepared.memory));
        result
    }
}

/// Runs a prepared launch, whose trace is a file in a folder.
pub(crate) fn run_traced(
    prepared: &Prepared,
    manner: &Manner<'_>,
    folder: Option<&Path>,
) -> Result<(RunStats, Report), Error> {
    let Some(folder) = folder else { return run(prepared, manner, None) };
    let failed = |path: &Path, cause| Error::TraceFile { path: path.to_path_buf(), cause };
    std::fs::create_dir_all(folder).map_err(|e| failed(folder, e))?;
    let name = format!("{:06}-{}.jsonl", manner.number, file_name(manner.kernel));
    let path = folder.join(name);
    let file = std::fs::File::create(&path).map_err(|e| failed(&path, e))?;
    run(prepared, manner, Some(&mut BufWriter::new(file)))
}

/// Runs a prepared launch, with its checks; its trace goes to `trace`. Faults are in the report.
///
/// # Errors
/// [`Error::Dispatch`] if the launch is impossible, [`Error::Trace`] if the trace cannot be written.
pub fn run(
    prepared: &Prepared,
    manner: &Manner<'_>,
    trace: Option<&mut dyn Write>,
) -> Result<(RunStats, Report), Error> {
    let mut dispatch = prepared.dispatch(manner.max_instructions);
    dispatch.threads = manner.threads;
    dispatch.cooperative = manner.cooperative;
    dispatch.pool = manner.pool;
    dispatch.cancel = manner.cancel;
    dispatch.check()?;
    let report = |fault: Option<Box<Fault>>, findings: Vec<Finding>| {
        if fault.is_some() || findings.iter().any(|f| f.severity == Severity::Error) {
            exit::found();
        }
        let (kernel, launch) = (manner.kernel.to_string(), manner.number);
        Report { kernel, launch, fault, findings, freed: Vec::new() }
    };
    if manner.checks.is_empty() && trace.is_none() {
        let code = manner.codes.of(manner.engine, &prepared.program)?;
        dispatch.compiled = code.as_ref().map(|code| code as _);
        return Ok(match dispatch::run(&dispatch, &prepared.memory) {
            Ok(stats) => (stats, report(None, Vec::new())),
            Err(fault) => (RunStats::default(), report(Some(fault), Vec::new())),
        });
    }
    let mut checker = match manner.checks {
        [] => None,
        checks => Some(Checker::new(prepared, checks)?),
    };
    let wave_size = prepared.shape.wave_size;
    let mut trace = trace.map(|sink| Jsonl::new(sink, &prepared.program, wave_size, Filter::default()));
    let mut observers: Vec<&mut dyn Observer> = Vec::new();
    observers.extend(checker.as_mut().map(|c| c as &mut dyn Observer));
    observers.extend(trace.as_mut().map(|t| t as &mut dyn Observer));
    let (stats, result) = dispatch::run_observed(&dispatch, &prepared.memory, &mut Observers(observers));
    if let Some(trace) = trace {
        trace.finish().map_err(Error::Trace)?;
    }
    let fault = result.err();
    let findings = checker.map_or_else(Vec::new, |c| c.finish(fault.as_deref()));
    // The barrier check has reported a deadlock already; the launch has failed all the same.
    let findings = match &fault {
        Some(f) if f.kind == FaultKind::BarrierDeadlock => {
            findings.into_iter().filter(|found| found.kind != "deadlock").collect()
        }
        _ => findings,
    };
    Ok((stats, report(fault, findings)))
}

/// A kernel's name as a part of a file name: mangled names are long.
fn file_name(kernel: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
    kernel.chars().take(80).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, Settings};
    use wavesim::loader::assembly::AssemblyOptions;

    #[test]
    fn launches_that_fail_return_their_memory() {
        let source = include_str!("../../../examples/scale.s");
        let object = AssemblyOptions::default().assemble("scale.s", source).unwrap().object;
        let device = Device::open("gfx1100", &Settings::default()).unwrap();
        let kernel = device.load(&object).unwrap().kernel("scale").unwrap();
        let slot = || device.inner.kernargs.take(8).unwrap();
        let first = slot();
        let at = first.kernarg;
        device.inner.kernargs.give_back(first);
        // More work-items than a workgroup can have.
        assert!(kernel.launch(&Launch::new([1, 1, 1], [4096, 1, 1]), &[0; 24]).is_err());
        assert_eq!(slot().kernarg, at);
    }
}
