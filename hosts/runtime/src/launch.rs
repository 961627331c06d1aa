//! Kernel launches.

use crate::coverage::{self, Observation};
use crate::device::OwnMemory;
use crate::explore::{ExploreOptions, Explored};
use crate::kernargs::Slot;
use crate::module::LoadedProgram;
use crate::timing::{Profiled, Timing};
use crate::{
    CodeCache, Engine, Error, HostMemory, Kernel, OnFault, Report, Services, Settings, debug, exit, explore,
    message,
};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wavesim::check::heap::Blocks;
use wavesim::check::{Check, Checker, Finding, Severity, Written};
use wavesim::coverage::Recorder;
use wavesim::delayed;
use wavesim::exec::observe::{Observer, Observers};
use wavesim::fault::{Fault, FaultKind};
use wavesim::fidelity::Fidelity;
use wavesim::loader::abi;
use wavesim::loader::kernel_name::demangled;
use wavesim::loader::objects::ObjectSource;
use wavesim::loader::prepared::Prepared;
use wavesim::loader::request::{self, LaunchAddresses};
use wavesim::sched::dispatch::{self, DispatchError, RunStats};
use wavesim::sched::group::Pool;
use wavesim::sharing::Threads;
use wavesim::state::gws::Gws;
use wavesim::trace::Filter;
use wavesim::trace::jsonl::Jsonl;
use wavesim_cost::model::Region;

/// Parameters of a launch, other than the kernel's arguments.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// Workgroups in the grid.
    pub grid: [u32; 3],
    /// Work-items in a workgroup.
    pub block: [u32; 3],
    /// Workgroups of a cluster (CDNA 5); without them, those that the kernel was compiled for.
    pub cluster: Option<[u32; 3]>,
    /// Dynamic LDS size of a workgroup in bytes, in addition to the kernel's static LDS.
    pub dynamic_lds: u32,
    /// First global id of each dimension (OpenCL's global offset).
    pub offset: [u64; 3],
    /// Whether workgroups are known to wait for each other.
    pub cooperative: bool,
    /// Memory that only this launch can access, in addition to the device's.
    pub memory: Vec<HostMemory>,
    /// Host services for the kernel, except hostcall and heap, which the device provides.
    pub services: Services,
    /// Overrides the device's checks.
    pub checks: Option<Vec<Check>>,
    /// Overrides the device's limit on wave-instructions.
    pub max_instructions: Option<u64>,
    /// Overrides the device's number of host threads.
    pub threads: Option<usize>,
    /// The device for which the launch is profiled, as for [`Timing::profiler`].
    pub profile: Option<String>,
}

/// Result of a launch that ended without a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Execution statistics.
    pub stats: RunStats,
    /// Findings of the checks.
    pub report: Report,
    /// What [`Launch::profile`] has asked for.
    pub profile: Option<Profiled>,
}

impl Launch {
    /// Creates a launch of a grid of workgroups.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Launch {
        Launch { grid, block, ..Launch::default() }
    }
}

/// Options for running and reporting a prepared launch.
#[derive(Clone)]
pub struct RunOptions<'a> {
    /// Name of the kernel; empty for raw code.
    pub kernel: &'a str,
    /// The hash of raw code, by which its launches are told from those of other code.
    pub code: Option<u64>,
    /// Number of the launch, starting at 1.
    pub number: u64,
    /// Checks to run. Without checks, the launch runs at full speed.
    pub checks: &'a [Check],
    /// Number of host threads.
    pub threads: Threads,
    /// The execution engine for launches with neither checks nor a trace.
    pub engine: Engine,
    /// When memory operations of launches without checks take effect.
    pub delays: delayed::Timing,
    /// Cache of compiled code.
    pub code_cache: &'a CodeCache,
    /// Number of wave-instructions after which the launch faults.
    pub max_instructions: u64,
    /// Whether workgroups are known to wait for each other.
    pub cooperative: bool,
    /// Pool of register files.
    pub pool: Option<&'a Pool>,
    /// The device's global wave sync; without, all resources are 0 at the start of a launch.
    pub gws: Option<&'a Mutex<Gws>>,
    /// Cancels the launch when set.
    pub cancel: Option<&'a AtomicBool>,
    /// The bytes of the device's memory that have been written.
    pub written: Option<&'a Arc<Mutex<Written>>>,
    /// The blocks that kernels have allocated.
    pub blocks: Option<&'a Arc<Mutex<Blocks>>>,
    /// Predicts the times of launches with neither checks nor a trace.
    pub timing: Option<TimedLaunch<'a>>,
    /// What else is observed.
    pub observation: Observation<'a>,
}

impl<'a> RunOptions<'a> {
    /// Returns the options of a launch of its own: with the settings' checks and engine, and nothing shared with other
    /// launches but compiled code.
    pub fn new(settings: &'a Settings, code_cache: &'a CodeCache) -> RunOptions<'a> {
        RunOptions {
            kernel: "",
            code: None,
            number: 1,
            checks: &settings.checks,
            threads: settings.threads,
            engine: settings.engine,
            delays: settings.delays,
            code_cache,
            max_instructions: settings.max_instructions,
            cooperative: false,
            pool: None,
            gws: None,
            cancel: None,
            written: None,
            blocks: None,
            timing: None,
            observation: Observation::of(settings),
        }
    }
}

/// What predicts the time of a launch, and the memory of the device.
pub type TimedLaunch<'a> = (&'a Timing, &'a [Region]);

impl Kernel {
    /// Runs the kernel to completion. `explicit` holds the explicit arguments, laid out according to the
    /// metadata.
    ///
    /// # Errors
    /// [`Error::Fault`] if the kernel faulted. Findings of checks are not errors.
    pub fn launch(&self, launch: &Launch, explicit: &[u8]) -> Result<Outcome, Error> {
        let arch = self.device().target().arch;
        let profiler = launch.profile.as_deref().map(|device| Timing::profiler(device, arch, Vec::new()));
        let profiler = profiler.transpose()?;
        let (stats, report) = self.launch_with(launch, explicit, profiler.as_ref(), None)?;
        let outcome = conclude(stats, report, self.device().settings())?;
        Ok(Outcome { profile: profiler.and_then(|profiler| profiler.take()), ..outcome })
    }

    /// Runs the kernel in random orders of its waves, with delays of memory operations, on copies of the memory that it can
    /// write. That memory is afterwards as before.
    ///
    /// # Errors
    /// The launch cannot run; it uses services of the host, which cannot be taken back; or it can access too much memory.
    pub fn explore(
        &self,
        launch: &Launch,
        explicit: &[u8],
        options: &ExploreOptions,
    ) -> Result<Explored, Error> {
        let mut explored = Explored::default();
        self.launch_with(launch, explicit, None, Some((options, &mut explored)))?;
        Ok(explored)
    }

    /// Runs or explores a launch.
    fn launch_with(
        &self,
        launch: &Launch,
        explicit: &[u8],
        profiler: Option<&Timing>,
        explored: Option<(&ExploreOptions, &mut Explored)>,
    ) -> Result<(RunStats, Report), Error> {
        let device = self.device();
        device.check_process()?;
        let settings = device.settings();
        let options = RunOptions {
            kernel: &self.name,
            number: device.count_launch(),
            checks: launch.checks.as_deref().unwrap_or(&settings.checks),
            threads: launch.threads.map_or(settings.threads, Threads::Fixed),
            max_instructions: launch.max_instructions.unwrap_or(settings.max_instructions),
            cooperative: launch.cooperative,
            pool: Some(&device.inner.pool),
            gws: Some(&device.inner.gws),
            written: Some(&device.inner.written),
            blocks: Some(&device.inner.blocks),
            timing: profiler.or(device.inner.timing.as_ref()).map(|timing| (timing, &[][..])),
            ..RunOptions::new(settings, &device.inner.code_cache)
        };
        let given = abi::Shape {
            offset: launch.offset,
            cluster: launch.cluster,
            ..abi::Shape::new(launch.grid, launch.block, launch.dynamic_lds)
        };
        let mut kernarg = self.segment(explicit)?;
        let uses_hostcall =
            self.has_hidden_argument("hidden_hostcall_buffer") || self.has_hidden_argument("hidden_heap_v1");
        if uses_hostcall && explored.is_some() {
            return Err(Error::ExploreServices);
        }
        let hostcall = if uses_hostcall { Some(device.hostcall()?) } else { None };
        let mut services = launch.services;
        if let Some(hostcall) = &hostcall {
            (services.hostcall, services.heap) = (hostcall.buffer(), hostcall.heap());
        }
        abi::write_hidden_arguments(&self.code, &given, &services, &mut kernarg);

        let slot = device.inner.kernargs.acquire(kernarg.len() as u64)?;
        let own = OwnMemory {
            extra: &launch.memory,
            slot: Some(&slot),
            exact: !options.checks.is_empty(),
            services: uses_hostcall,
        };
        let run =
            || self.launch_in(&slot, &own, launch.services.queue, (&given, &kernarg), &options, explored);
        let result = match &hostcall {
            Some(hostcall) => hostcall.serve(run),
            None => run(),
        };
        device.inner.kernargs.release(slot);
        let (stats, mut report) = result?;
        let addresses = report.findings.iter().map(|f| f.address);
        let addresses = addresses.chain([report.fault.as_ref().and_then(|f| f.address)]).flatten();
        let addresses: Vec<u64> = addresses.collect();
        report.freed = addresses.iter().filter_map(|address| device.find_freed(*address)).collect();
        report.foreign = addresses.iter().filter_map(|address| device.find_foreign(*address)).collect();
        report.foreign.dedup();
        Ok((stats, report))
    }

    /// Runs a launch with its kernarg segment in `slot`.
    fn launch_in(
        &self,
        slot: &Slot,
        own: &OwnMemory<'_>,
        queue: u64,
        (given, kernarg): (&abi::Shape, &[u8]),
        options: &RunOptions<'_>,
        wanted: Option<(&ExploreOptions, &mut Explored)>,
    ) -> Result<(RunStats, Report), Error> {
        let device = self.device();
        let map = device.launch_memory(own)?;
        let settings = device.settings();
        let debugged = settings.debug.as_ref().filter(|d| d.selects(&self.name, options.number));
        if let Some(target) = &settings.debug {
            debug::record(target, &self.name, debugged.is_some());
        }
        let places = || {
            let args: Vec<_> = self.arguments().cloned().collect();
            let buffers = debug::buffers(&args, self.code.parameters(), kernarg, map.ranges(), own.extra);
            (buffers, debug::writable(map.ranges()))
        };
        let debugged = debugged.map(|target| {
            let (buffers, writable) = places();
            (target, buffers, writable)
        });
        // Services of the host cannot be taken back.
        let explored = (wanted.is_some() || settings.explore > 0 && !own.services).then(places);
        let (memory, restore) = map.split();
        memory.write(slot.kernarg, kernarg)?;
        memory.write(slot.packet, &abi::dispatch_packet(given, &self.code, slot.kernarg))?;

        let module = &self.module.inner;
        let places =
            LaunchAddresses { code: module.image(), kernarg: slot.kernarg, packet: slot.packet, queue };
        let shape = request::shape(&self.code, given, kernarg, &places)?;
        let LoadedProgram { program, linked, jumps } = module.program(&self.code, &memory)?;
        let modes = abi::modes(&self.code.descriptor);
        let mut prepared = Prepared { modes, ..Prepared::without_names(program, memory, shape) };
        if own.exact {
            prepared.labels = self.code.labels.to_vec();
            prepared.constant = self.code.image.constant(module.image());
            prepared.objects = ObjectSource::of(&self.code, slot.kernarg);
            prepared.padding = request::padding(&self.code, slot.kernarg, kernarg.len() as u64);
        }
        let regions: Vec<Region> = match options.timing {
            Some(_) => device.regions(own.extra),
            None => Vec::new(),
        };
        let options = RunOptions {
            timing: options.timing.map(|(timing, _)| (timing, &regions[..])),
            ..options.clone()
        };
        let result = device.cancellable(|cancel| {
            let options = RunOptions { cancel: Some(cancel), ..options };
            if let Some((buffers, writable)) = explored {
                let own = std::mem::replace(&mut prepared.buffers, buffers);
                prepared.debug = self.code.debug.clone();
                if prepared.buffers.is_empty() {
                    prepared.buffers = explore::mapped(&writable);
                }
                if let Some((how, out)) = wanted {
                    let most = options.max_instructions;
                    *out = explore::explore(&prepared, how, most, options.cancel, &writable)?;
                    return Ok((RunStats::default(), report_of(&options, None, Vec::new())));
                }
                let file = settings.report.as_deref();
                explore::run(&prepared, &options, settings.explore, &writable, file)?;
                prepared.buffers = own;
            }
            let Some((target, buffers, ranges)) = debugged else {
                return run_traced(&prepared, &options, settings.trace.as_deref());
            };
            prepared.buffers = buffers;
            prepared.labels = self.code.labels.to_vec();
            prepared.debug = self.code.debug.clone();
            prepared.objects = ObjectSource::of(&self.code, slot.kernarg);
            debug::run(&prepared, &options, target, ranges)
        });
        module.release_program(LoadedProgram { program: prepared.program, linked, jumps });
        device.recycle(restore(prepared.memory));
        result
    }
}

/// Returns the result of a launch, or does what the settings require after a fault or findings.
pub(crate) fn conclude(stats: RunStats, mut report: Report, settings: &Settings) -> Result<Outcome, Error> {
    if let Some(file) = &settings.report {
        report.append_to(file);
    }
    let cancelled = |fault: &Fault| fault.kind == FaultKind::Interrupted;
    match (&report.fault, settings.on_fault) {
        (Some(fault), OnFault::Continue) if !cancelled(fault) => {
            let findings = std::mem::take(&mut report.findings);
            message::report(&report.to_string());
            Ok(Outcome { stats, report: Report { fault: None, findings, ..report }, profile: None })
        }
        (Some(_), OnFault::Abort) => {
            message::report(&report.to_string());
            std::process::abort();
        }
        (Some(_), _) => Err(Error::Fault(Box::new(report))),
        (None, _) => Ok(Outcome { stats, report, profile: None }),
    }
}

/// Runs a prepared launch. If a directory is given, writes a trace to a file in it.
pub(crate) fn run_traced(
    prepared: &Prepared,
    options: &RunOptions<'_>,
    folder: Option<&Path>,
) -> Result<(RunStats, Report), Error> {
    let Some(folder) = folder else { return run(prepared, options, None) };
    let failed = |path: &Path, cause| Error::TraceFile { path: path.to_path_buf(), cause };
    std::fs::create_dir_all(folder).map_err(|e| failed(folder, e))?;
    let name = format!("{:06}-{}.jsonl", options.number, file_name(options.kernel));
    let path = folder.join(name);
    let mut file = wavesim::files::create(&path).map_err(|e| failed(&path, e))?;
    let result = run(prepared, options, Some(&mut file))?;
    file.commit().map_err(|e| failed(&path, e))?;
    Ok(result)
}

/// Runs a prepared launch with its checks, and writes a trace to `trace`. Faults are returned in the report.
///
/// # Errors
/// [`Error::Dispatch`] if the launch is impossible, [`Error::Trace`] if the trace cannot be written.
pub fn run(
    prepared: &Prepared,
    options: &RunOptions<'_>,
    trace: Option<&mut dyn Write>,
) -> Result<(RunStats, Report), Error> {
    let mut dispatch = prepared.dispatch(options.max_instructions);
    let sharing = || options.code_cache.sharing.get(&prepared.program, prepared.shape.entry_pc);
    options.threads.apply(&mut dispatch, sharing);
    dispatch.cooperative = options.cooperative;
    (dispatch.pool, dispatch.gws) = (options.pool, options.gws);
    dispatch.cancel = options.cancel;
    dispatch.check()?;
    let report = |fault, findings| report_of(options, fault, findings);
    if let Some(written) = options.written.filter(|_| !options.checks.contains(&Check::Mem)) {
        // What the launch writes is not recorded.
        lock(written).forget_all();
    }
    if let Some(blocks) = options.blocks.filter(|_| !options.checks.contains(&Check::Mem)) {
        blocks.lock().unwrap_or_else(PoisonError::into_inner).lose();
    }
    // Checks follow accesses at the time of their issue.
    let observation = options.observation;
    let follows = !options.checks.is_empty() || observation.fidelity;
    let delays = if follows { delayed::Timing::Immediate } else { options.delays };
    let model = delays.model(&prepared.program, prepared.shape.wave_size).map_err(DispatchError::from)?;
    (dispatch.delayed, dispatch.poison) = (model.as_ref(), delays.poison());
    if options.checks.is_empty() && trace.is_none() && !observation.any() {
        let engine = if model.is_some() { Engine::Interpreter } else { options.engine };
        let code = options.code_cache.get_or_compile(engine, &prepared.program)?;
        dispatch.compiled = code.as_ref().map(|code| code as _);
        if let Some((timing, regions)) = options.timing {
            let kernel = match options.code {
                Some(hash) => format!("code-{hash:016x}"),
                None => file_name(options.kernel),
            };
            let (stats, fault) = timing.run(prepared, &dispatch, regions, &kernel, options.number)?;
            return Ok((stats, report(fault, Vec::new())));
        }
        return Ok(match dispatch::run(&dispatch, &prepared.memory) {
            Ok(stats) => (stats, report(None, Vec::new())),
            Err(fault) => (RunStats::default(), report(Some(fault), Vec::new())),
        });
    }
    if options.timing.is_some_and(|(timing, _)| timing.is_profiler()) {
        let why = "a launch is profiled without checks, a trace, coverage or fidelity";
        return Err(Error::Timing(why.to_string()));
    }
    let mut checker = match options.checks {
        [] => None,
        checks => Some(Checker::new(prepared, checks)?),
    };
    if let (Some(checker), Some(written)) = (&mut checker, options.written) {
        checker.set_written(written.clone());
    }
    if let (Some(checker), Some(blocks)) = (&mut checker, options.blocks) {
        checker.set_blocks(blocks.clone());
    }
    let wave_size = prepared.shape.wave_size;
    let mut trace = trace.map(|sink| Jsonl::new(sink, &prepared.program, wave_size, Filter::default()));
    let mut recorder = observation.coverage.map(|_| Recorder::new(prepared, &demangled(options.kernel)));
    let mut fidelity = observation.fidelity.then(|| Fidelity::new(prepared));
    let mut undefined = if observation.fidelity { coverage::undefined_bits(prepared)? } else { None };
    let mut observers: Vec<&mut dyn Observer> = Vec::new();
    observers.extend(checker.as_mut().map(|c| c as &mut dyn Observer));
    observers.extend(recorder.as_mut().map(|r| r as &mut dyn Observer));
    observers.extend(fidelity.as_mut().map(|f| f as &mut dyn Observer));
    observers.extend(undefined.as_mut().map(|c| c as &mut dyn Observer));
    observers.extend(trace.as_mut().map(|t| t as &mut dyn Observer));
    let (stats, result) = dispatch::run_observed(&dispatch, &prepared.memory, &mut Observers(observers));
    if let Some(trace) = trace {
        trace.finish().map_err(Error::Trace)?;
    }
    if let (Some(recorder), Some(file)) = (recorder, observation.coverage) {
        coverage::add(file, &recorder.finish());
    }
    if let Some(fidelity) = fidelity {
        let undefined = undefined.map_or_else(Vec::new, |checker| checker.finish(None));
        let text = fidelity.report(undefined).text();
        let kernel = demangled(options.kernel);
        message::report(&format!("{kernel} (launch {}): {}", options.number, text.trim_end()));
    }
    let fault = result.err();
    let findings = checker.map_or_else(Vec::new, |c| c.finish(fault.as_deref()));
    // The fault already reports the deadlock, so the barrier check's finding would be a duplicate.
    let findings = match &fault {
        Some(f) if f.kind == FaultKind::BarrierDeadlock => {
            findings.into_iter().filter(|found| found.kind != "deadlock").collect()
        }
        _ => findings,
    };
    Ok((stats, report(fault, findings)))
}

/// Returns the report of a launch, and records whether it failed.
pub(crate) fn report_of(
    options: &RunOptions<'_>,
    fault: Option<Box<Fault>>,
    findings: Vec<Finding>,
) -> Report {
    if fault.is_some() || findings.iter().any(|f| f.severity == Severity::Error) {
        exit::record_failure();
    }
    let (kernel, launch) = (options.kernel.to_string(), options.number);
    Report { kernel, launch, fault, findings, freed: Vec::new(), foreign: Vec::new() }
}

/// Locks, ignoring poisoning: a panic of another thread leaves the value valid.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a kernel's name as part of a file name: sanitised, and truncated because mangled names can be
/// long.
fn file_name(kernel: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
    kernel.chars().take(80).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use wavesim::loader::assembly::AssemblyOptions;

    #[test]
    fn failed_launches_release_their_kernarg_slot() {
        let source = include_str!("../../../examples/scale.s");
        let object = AssemblyOptions::default().assemble("scale.s", source).unwrap().object;
        let device = Device::open("gfx1100", &Settings::default()).unwrap();
        let kernel = device.load(&object).unwrap().kernel("scale").unwrap();
        let slot = || device.inner.kernargs.acquire(8).unwrap();
        let first = slot();
        let at = first.kernarg;
        device.inner.kernargs.release(first);
        // The workgroup exceeds the maximum size.
        assert!(kernel.launch(&Launch::new([1, 1, 1], [4096, 1, 1]), &[0; 24]).is_err());
        assert_eq!(slot().kernarg, at);
    }

    /// A store to memory of the runtime is a fault, unless it belongs to the kernel.
    #[test]
    fn memory_of_services_is_not_part_of_every_launch() {
        let source = include_str!("../tests/kernels.s");
        let object = AssemblyOptions::default().assemble("kernels.s", source).unwrap().object;
        let device = Device::open("gfx1100", &Settings::default()).unwrap();
        let kernel = device.load(&object).unwrap().kernel("iota").unwrap();
        device.print_to(std::sync::Arc::new(|_, _| ()));
        let talk = device.load(include_bytes!("../../hip/tests/prebuilt/features.o")).unwrap();
        let talk = talk.kernel("_Z4talkv").unwrap();
        // The maps of this kernel, before and after the services exist, are not those of kernels that use them.
        let talks =
            || talk.launch(&Launch::new([1; 3], [32, 1, 1]), &[]).map(drop).map_err(|e| e.to_string());
        let buffer = device.alloc(128, "buffer").unwrap();
        kernel.launch(&Launch::new([1; 3], [32, 1, 1]), &buffer.to_le_bytes()).unwrap();
        let printed = talks();
        assert!(printed.is_ok(), "{printed:?}");
        let hostcall = device.hostcall().unwrap();

        let store = |address: u64| {
            let result = kernel.launch(&Launch::new([1; 3], [32, 1, 1]), &address.to_le_bytes());
            assert!(matches!(result, Ok(_) | Err(Error::Fault(_))));
            result.is_ok()
        };
        let block = hostcall.allocate(4096);
        let other_slot = device.inner.kernargs.acquire(64).unwrap();
        for address in
            [hostcall.buffer(), hostcall.heap(), block + 4096, other_slot.kernarg, other_slot.packet]
        {
            assert!(!store(address), "0x{address:x}");
        }
        // Kernels can use the blocks that others have allocated, until they are freed.
        assert!(store(block) && store(block));
        hostcall.free(block);
        assert!(!store(block) && talks().is_ok());
        // Guards surround the memory.
        let near =
            [hostcall.buffer() - (1 << 19), hostcall.heap() - (1 << 19), hostcall.buffer() + (1 << 20)];
        for address in near {
            let program = device.alloc(4096, "program").unwrap();
            assert!(program.abs_diff(address) >= 1 << 19 && !store(address));
        }
    }
}
