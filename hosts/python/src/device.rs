//! Devices, modules and kernels.

use crate::error::{convert, error};
use crate::interrupt::interruptible;
use crate::outcome::{Exploration, Outcome};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt};
use std::sync::Arc;
use wavesim::array::{DType, Num};
use wavesim::loader::kernel_name;
use wavesim::loader::prepared::Modes;
use wavesim::loader::request::ArgumentValue;
use wavesim::sharing::MAX_THREADS;
use wavesim_runtime::hostcall::Stream;
use wavesim_runtime::raw::RawLaunch;
use wavesim_runtime::{self as runtime, Bounds, HostMemory, Launch, Settings, Target};
use wavesim_runtime::{ExploreOptions, parse_checks};

/// A range of host memory in Python: address, size in bytes, whether it is writable, name.
type Range = (u64, u64, bool, String);

/// The addresses that a process can have memory at: no system maps the first page, where null pointers and
/// offsets from them are, and 64-bit hosts reserve the upper ones.
const ADDRESSES: std::ops::Range<u64> = 4096..1 << 56;

/// Converts a range of host memory. A null pointer, and a range that exceeds the address space, are errors.
fn memory((address, len, writable, name): Range) -> PyResult<HostMemory> {
    let inside = |at: u64| ADDRESSES.contains(&at);
    if len > 0 && !(inside(address) && address.checked_add(len - 1).is_some_and(inside)) {
        return Err(error(format!("{name}: {len} bytes at 0x{address:x} are not in memory")));
    }
    let host = std::ptr::with_exposed_provenance_mut(address as usize);
    // SAFETY: the package creates ranges from arrays, and keeps the arrays alive until the launch has
    // ended; mapped ranges own their arrays. Python code that passes other addresses must guarantee their
    // validity itself, as with ctypes.
    Ok(unsafe { HostMemory::new(address, host, len, writable, &name) })
}

/// Parses a selection of checks.
fn checks(names: Option<&str>) -> PyResult<Option<Vec<wavesim::check::Check>>> {
    names.map(parse_checks).transpose().map_err(error)
}

/// Writes the output of a kernel to Python's `sys.stdout` or `sys.stderr`, so that notebooks and tests
/// capture it. Errors, such as a closed file, are ignored.
fn print(to: Stream, bytes: &[u8]) {
    Python::try_attach(|py| {
        let file = match to {
            Stream::Output => "stdout",
            Stream::Error => "stderr",
        };
        let text = String::from_utf8_lossy(bytes);
        let _ = py
            .import("sys")
            .and_then(|sys| sys.getattr(file))
            .and_then(|file| file.call_method1("write", (text,)));
    });
}

/// A simulated GPU.
#[pyclass(frozen, module = "wavesim")]
pub struct Device(runtime::Device);

#[pymethods]
impl Device {
    #[new]
    #[pyo3(signature = (target=None))]
    fn new(py: Python<'_>, target: Option<&str>) -> PyResult<Device> {
        let opened = Settings::from_env().map_err(runtime::Error::from).and_then(|settings| {
            let target = target.or(settings.target.as_deref()).unwrap_or(Target::DEFAULT).to_string();
            runtime::Device::open(&target, &settings)
        });
        let device = opened.map_err(|e| convert(py, e))?;
        device.print_to(Arc::new(print));
        Ok(Device(device))
    }

    /// Name of the processor.
    #[getter]
    fn target(&self) -> &'static str {
        self.0.target().processor_name()
    }

    /// Name of the architecture.
    #[getter]
    fn arch(&self) -> &'static str {
        self.0.target().arch.name()
    }

    /// Default wave size, for kernels that do not specify one.
    #[getter]
    fn wave_size(&self) -> u32 {
        self.0.target().wave_size()
    }

    /// Maximum LDS size of a workgroup in bytes.
    #[getter]
    fn lds_bytes(&self) -> u32 {
        self.0.target().lds_bytes()
    }

    /// Number of launches so far.
    #[getter]
    fn launches(&self) -> u64 {
        self.0.launches()
    }

    /// Nanoseconds of the work so far that are predicted for a GPU; `None` without WAVESIM_TIMING.
    #[getter]
    fn predicted_nanoseconds(&self) -> Option<u64> {
        self.0.predicted_nanoseconds()
    }

    /// Checks of every launch.
    #[getter]
    fn checks(&self) -> Vec<&'static str> {
        self.0.settings().checks.iter().map(|c| c.name()).collect()
    }

    /// Cancels running launches, each with a fault. Called from other threads.
    fn cancel(&self) {
        self.0.cancel();
    }

    /// Loads a code object.
    fn load(&self, py: Python<'_>, object: Vec<u8>) -> PyResult<Module> {
        py.detach(|| self.0.load(&object)).map(Module).map_err(|e| convert(py, e))
    }

    /// Allocates zeroed memory and returns its address.
    #[pyo3(signature = (size, name="allocation"))]
    fn alloc(&self, py: Python<'_>, size: u64, name: &str) -> PyResult<u64> {
        self.0.alloc(size, name).map_err(|e| convert(py, e))
    }

    /// Frees an allocation.
    fn free(&self, py: Python<'_>, address: u64) -> PyResult<()> {
        self.0.free(address).map_err(|e| convert(py, e))
    }

    /// Copies from device memory.
    fn read<'py>(&self, py: Python<'py>, address: u64, size: u64) -> PyResult<Bound<'py, PyBytes>> {
        let outside = || error(format!("{size} bytes at 0x{address:x} are not in device memory"));
        if size > 0 {
            // Before the bytes are allocated: there may be far fewer.
            let last = address.checked_add(size - 1).ok_or_else(outside)?;
            self.0.read(last, &mut [0]).map_err(|e| convert(py, e))?;
        }
        let size = isize::try_from(size).map_err(|_| outside())?;
        PyBytes::new_with(py, size as usize, |out| self.0.read(address, out).map_err(|e| convert(py, e)))
            .map_err(|e| if e.is_instance_of::<PyMemoryError>(py) { error(e) } else { e })
    }

    /// Copies to device memory.
    fn write(&self, py: Python<'_>, address: u64, data: &[u8]) -> PyResult<()> {
        self.0.write(address, data).map_err(|e| convert(py, e))
    }

    /// Maps memory of the program at the same addresses, until it is unmapped.
    /// The owner, if given, is kept alive while kernels can access the memory.
    #[pyo3(signature = (address, size, writable=true, name="mapped memory", owner=None))]
    fn map(
        &self,
        py: Python<'_>,
        address: u64,
        size: u64,
        writable: bool,
        name: &str,
        owner: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let range = memory((address, size, writable, name.to_string()))?;
        let range = match owner {
            Some(owner) => range.owned_by(Arc::new(owner)),
            None => range,
        };
        // SAFETY: as in `memory`.
        unsafe { self.0.map(range) }.map_err(|e| convert(py, e))
    }

    /// Replaces all mapped ranges. The new ranges are pairs of an address and a size, and may overlap.
    fn map_all(&self, ranges: Vec<(u64, u64)>) -> PyResult<()> {
        let list = ranges.into_iter().map(|(at, size)| memory((at, size, true, "mapped memory".to_string())));
        // SAFETY: as in `memory`.
        unsafe { self.0.map_all(list.collect::<PyResult<_>>()?) };
        Ok(())
    }

    /// Unmaps memory.
    fn unmap(&self, py: Python<'_>, address: u64) -> PyResult<()> {
        self.0.unmap(address).map_err(|e| convert(py, e))
    }

    /// Sets the granularity of bounds checks: `exact`, `words`, `pages` or `trust`.
    fn set_bounds(&self, bounds: &str) -> PyResult<()> {
        let bounds = match bounds {
            "exact" => Bounds::Exact,
            "words" => Bounds::Words,
            "pages" => Bounds::Pages,
            "trust" => Bounds::Trust,
            other => {
                return Err(error(format!(
                    "`{other}` is not a bound; bounds are exact, words, pages, trust"
                )));
            }
        };
        // SAFETY: as in `memory`; the documentation states the requirements for callers.
        unsafe { self.0.set_bounds(bounds) };
        Ok(())
    }

    /// Runs machine code. `rsrc1` and `rsrc2` are the registers COMPUTE_PGM_RSRC1 and COMPUTE_PGM_RSRC2.
    #[pyo3(signature = (code, code_address, grid, block, user_sgprs, rsrc1, rsrc2, scratch=0, wave_size=32))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn launch_raw(
        &self,
        py: Python<'_>,
        code: Vec<u8>,
        code_address: u64,
        grid: [u32; 3],
        block: [u32; 3],
        user_sgprs: Vec<u32>,
        rsrc1: u32,
        rsrc2: u32,
        scratch: u32,
        wave_size: u32,
    ) -> PyResult<Outcome> {
        let settings = self.0.settings();
        let mut launch = RawLaunch {
            code,
            code_address,
            entry: 0,
            wave_size,
            grid,
            block,
            lds_bytes: 0,
            scratch_bytes: scratch,
            memory_only_if_used: false,
            user_sgprs,
            first_group_id: 0,
            group_ids: [true; 3],
            item_ids: 2,
            mode: None,
            modes: Modes::default(),
            threads: settings.threads,
            max_instructions: settings.max_instructions,
        };
        launch.set_resources(self.0.target().arch, rsrc1, rsrc2);
        let result = interruptible(py, |_| self.0.launch_raw(&launch, &[]))?;
        convert_result(py, result)
    }

    fn __repr__(&self) -> String {
        format!("<Device {}>", self.target())
    }
}

fn convert_result(py: Python<'_>, result: Result<runtime::Outcome, runtime::Error>) -> PyResult<Outcome> {
    let outcome = result.map_err(|e| convert(py, e))?;
    let report = outcome.report.to_string();
    Outcome::new(py, outcome.stats, outcome.report.findings, report, outcome.profile)
}

/// A loaded code object.
#[pyclass(frozen, module = "wavesim")]
pub struct Module(runtime::Module);

#[pymethods]
impl Module {
    /// Names of the kernels.
    fn kernels(&self) -> Vec<String> {
        self.0.kernels()
    }

    /// Returns the kernel with a name, its symbol's or the source's; without a name, the only kernel.
    #[pyo3(signature = (name=None))]
    fn kernel(&self, py: Python<'_>, name: Option<&str>) -> PyResult<Kernel> {
        let kernel = match name {
            Some(name) => {
                let names = self.0.kernels();
                self.0.kernel(kernel_name::select(&names, name).map_or(name, String::as_str))
            }
            None => self.0.only_kernel(),
        };
        kernel.map(Kernel).map_err(|e| convert(py, e))
    }

    /// Names of the variables.
    fn variables(&self) -> Vec<String> {
        self.0.variables().map(str::to_string).collect()
    }

    /// Address and size of a variable.
    fn variable(&self, py: Python<'_>, name: &str) -> PyResult<(u64, u64)> {
        self.0.variable(name).map_err(|e| convert(py, e))
    }
}

/// A kernel of a module.
#[pyclass(frozen, module = "wavesim")]
pub struct Kernel(runtime::Kernel);

#[pymethods]
impl Kernel {
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// Name, kind, offset and size of each argument.
    #[getter]
    fn arguments(&self) -> Vec<(Option<String>, String, u32, u32)> {
        let all = self.0.arguments().zip(self.0.parameters());
        all.map(|(a, p)| (p.name.clone(), a.kind.clone(), a.offset, a.size)).collect()
    }

    /// Type and name of each parameter, as far as they are known.
    #[getter]
    fn signature(&self) -> Vec<String> {
        self.0.parameters().iter().map(ToString::to_string).collect()
    }

    /// Returns a warning about an array whose elements are not those of a parameter. `dtype` is NumPy's name.
    fn mismatch(&self, index: usize, dtype: &str) -> Option<String> {
        self.0.parameters().get(index)?.mismatch(DType::meant(dtype)?)
    }

    /// The name in the source: of C++, with the types of the parameters.
    #[getter]
    fn source_name(&self) -> String {
        kernel_name::demangled(self.0.name())
    }

    /// Static LDS size of a workgroup in bytes.
    #[getter]
    fn lds_bytes(&self) -> u32 {
        self.0.lds_bytes()
    }

    /// Scratch size of a work-item in bytes.
    #[getter]
    fn scratch_bytes(&self) -> u32 {
        self.0.scratch_bytes()
    }

    /// Number of lanes in a wave.
    #[getter]
    fn wave_size(&self) -> u32 {
        self.0.wave_size()
    }

    /// Number of VGPRs per wave.
    #[getter]
    fn vgprs(&self) -> u32 {
        self.0.vgprs()
    }

    /// Size of the kernarg segment in bytes, including hidden arguments.
    #[getter]
    fn kernarg_bytes(&self) -> u32 {
        self.0.kernarg_bytes()
    }

    /// Lays out arguments of the types int, float and bytes. Returns the kernarg segment, and the dynamic LDS
    /// size that the arguments require.
    fn lay_out<'py>(
        &self,
        py: Python<'py>,
        arguments: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyBytes>, u32)> {
        let parameters = self.0.parameters();
        let named = arguments.iter().enumerate().map(|(at, value)| {
            let name = parameters.get(at).and_then(|p| p.name.clone());
            let name = name.unwrap_or_else(|| format!("number {}", at + 1));
            Ok((name, given(value)?))
        });
        let named = named.collect::<PyResult<Vec<_>>>()?;
        let (kernarg, lds) = self.0.lay_out(&named).map_err(|e| convert(py, e))?;
        Ok((PyBytes::new(py, &kernarg), lds))
    }

    /// Runs the kernel to completion.
    #[pyo3(signature = (grid, block, kernarg, memory=Vec::new(), lds=0, check=None, max_instructions=None, threads=None, cooperative=false, cluster=None, profile=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn launch(
        &self,
        py: Python<'_>,
        grid: [u32; 3],
        block: [u32; 3],
        kernarg: Vec<u8>,
        memory: Vec<Range>,
        lds: u32,
        check: Option<&str>,
        max_instructions: Option<u64>,
        threads: Option<usize>,
        cooperative: bool,
        cluster: Option<[u32; 3]>,
        profile: Option<String>,
    ) -> PyResult<Outcome> {
        let launch = Launch {
            profile,
            dynamic_lds: lds,
            cooperative,
            cluster,
            memory: memory.into_iter().map(self::memory).collect::<PyResult<_>>()?,
            checks: checks(check)?,
            max_instructions,
            threads: threads.map(|n| n.clamp(1, MAX_THREADS)),
            ..Launch::new(grid, block)
        };
        let result = interruptible(py, |_| self.0.launch(&launch, &kernarg))?;
        convert_result(py, result)
    }

    /// Runs the kernel in random orders of its waves, on copies of its memory.
    #[pyo3(signature = (grid, block, kernarg, memory, lds, cluster, max_instructions, schedules, depth, first_seed, tolerance, delays, all))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn explore(
        &self,
        py: Python<'_>,
        grid: [u32; 3],
        block: [u32; 3],
        kernarg: Vec<u8>,
        memory: Vec<Range>,
        lds: u32,
        cluster: Option<[u32; 3]>,
        max_instructions: Option<u64>,
        schedules: u64,
        depth: u32,
        first_seed: u64,
        tolerance: f64,
        delays: bool,
        all: bool,
    ) -> PyResult<Exploration> {
        let launch = Launch {
            dynamic_lds: lds,
            cluster,
            memory: memory.into_iter().map(self::memory).collect::<PyResult<_>>()?,
            max_instructions,
            ..Launch::new(grid, block)
        };
        let options = ExploreOptions { schedules, depth, first_seed, tolerance, delays, all };
        let explored = interruptible(py, |_| self.0.explore(&launch, &kernarg, &options))?;
        Ok(Exploration::new(explored.map_err(|e| convert(py, e))?, &options))
    }

    fn __repr__(&self) -> String {
        format!("<Kernel {}>", self.0.name())
    }
}

/// Converts an argument.
fn given(value: &Bound<'_, PyAny>) -> PyResult<ArgumentValue> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(ArgumentValue::Bytes(bytes.as_bytes().to_vec()));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(ArgumentValue::Number(Num::Int(value.extract()?)));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(ArgumentValue::Number(Num::Float(value.extract()?)));
    }
    if let Ok((kind, size)) = value.extract::<(String, u32)>()
        && kind == "local"
    {
        return Ok(ArgumentValue::Local(size));
    }
    Err(error(format!("{} is neither int, float nor bytes", value.get_type().name()?)))
}
