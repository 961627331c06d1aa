//! Kernel launches.

use crate::device::{MAX_GRID, MAX_ITEMS};
use crate::ffi::{In, Memory, Out};
use crate::gpu::{Gpu, gpu};
use crate::module::{kernel_of_handle, kernel_of_host};
use crate::op::{Invocation, Work};
use crate::status::{Outcome, Status, call};
use crate::stream::Handle;
use std::cell::RefCell;
use std::ffi::{c_int, c_uint};
use wavesim::loader::kernel_name::demangled;
use wavesim_runtime::Kernel;

/// `dim3`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dim3 {
    /// The first dimension, which varies fastest in the numbering of work-items.
    pub x: u32,
    /// The second dimension.
    pub y: u32,
    /// The third dimension.
    pub z: u32,
}

impl From<Dim3> for [u32; 3] {
    fn from(d: Dim3) -> [u32; 3] {
        [d.x, d.y, d.z]
    }
}

/// The shape of a launch.
#[derive(Debug, Clone, Copy)]
pub struct LaunchParameters {
    /// Number of workgroups.
    pub grid: Dim3,
    /// Work-items in a workgroup.
    pub block: Dim3,
    /// Dynamic LDS size of a workgroup in bytes, in addition to the kernel's static LDS.
    pub dynamic_lds: u32,
}

/// Maximum number of workgroups in a cooperative launch. The scheduler makes all of them resident.
pub const RESIDENT_GROUPS: u64 = 1 << 16;

impl LaunchParameters {
    /// Returns an invocation of the kernel of a host stub on a device.
    pub fn of_host_function(self, gpu: &Gpu, function: usize, arguments: Arguments) -> Outcome<Invocation> {
        let kernel = kernel_of_host(gpu, function)?;
        let explicit = arguments.collect(&kernel)?;
        // As in ROCm, kernels of host stubs have the limits since RDNA 4 and CDNA 5 only.
        let [major, _] = crate::device::version(kernel.device().target().processor_name());
        if major >= 12 {
            check_grid(self.grid, Status::INVALID_CONFIGURATION)?;
        }
        self.invocation(kernel, explicit, Status::INVALID_CONFIGURATION)
    }

    /// Returns an invocation of a kernel of a module.
    pub fn of_module_function(self, function: Handle, arguments: Arguments) -> Outcome<Invocation> {
        let kernel = kernel_of_handle(function)?;
        let explicit = arguments.read(&kernel)?;
        self.invocation(kernel, explicit, Status::INVALID_VALUE)
    }

    /// Validates the shape, which is refused with `status`, and returns an invocation.
    fn invocation(self, kernel: Kernel, explicit: Vec<u8>, status: Status) -> Outcome<Invocation> {
        let (grid, block): ([u32; 3], [u32; 3]) = (self.grid.into(), self.block.into());
        let invalid = |message: String| {
            Err(status.because(format!("kernel `{}`: {message}", demangled(kernel.name()))))
        };
        if grid.contains(&0) || block.contains(&0) {
            return invalid(format!("a grid of {grid:?} workgroups of {block:?} work-items is empty"));
        }
        let items: u64 = block.iter().map(|&d| d as u64).product();
        let most = kernel.max_block_items() as u64;
        if items > most {
            return invalid(format!("a workgroup of {block:?} work-items: the kernel allows {most}"));
        }
        for (groups, items) in grid.into_iter().zip(block) {
            if groups as u64 * items as u64 > u32::MAX as u64 {
                return Err(Status::INVALID_CONFIGURATION.because(format!(
                    "kernel `{}`: a grid of {grid:?} workgroups of {block:?} work-items has 2^32 or more in a dimension",
                    demangled(kernel.name())
                )));
            }
        }
        let lds = kernel.lds_bytes() as u64 + self.dynamic_lds as u64;
        let most = kernel.device().target().lds_bytes();
        if lds > most as u64 {
            return invalid(format!("{lds} bytes of LDS: a workgroup has at most {most}"));
        }
        Ok(Invocation {
            kernel,
            grid,
            block,
            dynamic_lds: self.dynamic_lds,
            cooperative: false,
            cluster: None,
            grids: None,
            explicit,
        })
    }
}

/// Checks the number of workgroups in each dimension. Grids that are specified in work-items have no such limit.
fn check_grid(grid: Dim3, status: Status) -> Outcome {
    let groups: [u32; 3] = grid.into();
    if groups.into_iter().zip(MAX_GRID).any(|(groups, most)| groups > most as u32) {
        let message = format!("a grid of {groups:?} workgroups: the device allows {MAX_GRID:?}");
        return Err(status.because(message));
    }
    Ok(())
}

/// The arguments of a launch: an array of pointers to values, or a buffer that is already laid out.
#[derive(Clone, Copy)]
pub struct Arguments {
    pointers: In<Memory>,
    extra: In<Memory>,
}

/// Markers in the `extra` array.
const BUFFER_POINTER: usize = 1;
const BUFFER_SIZE: usize = 2;
const END: usize = 3;

impl Arguments {
    /// The arguments as the program passes them; both pointers may be null.
    ///
    /// # Safety
    /// During the call of the API, `pointers` has a pointer to a value for each argument of the kernel that is
    /// launched, and `extra` has pairs of a marker and a value up to the end marker, with a buffer of the size that it
    /// states.
    pub unsafe fn new(pointers: In<Memory>, extra: In<Memory>) -> Arguments {
        Arguments { pointers, extra }
    }

    /// Returns the arguments in the kernarg layout.
    fn read(&self, kernel: &Kernel) -> Outcome<Vec<u8>> {
        match (self.pointers.is_null(), self.extra.is_null()) {
            (false, false) => {
                Err(Status::INVALID_VALUE.because("the arguments are given as pointers and in a buffer"))
            }
            (false, true) => self.collect(kernel),
            (true, false) => self.read_buffer(kernel),
            (true, true) if kernel.arguments().next().is_none() => Ok(Vec::new()),
            (true, true) => {
                let count = kernel.arguments().count();
                let message = format!(
                    "kernel `{}` takes {count} arguments, but none were given",
                    demangled(kernel.name())
                );
                Err(Status::INVALID_VALUE.because(message))
            }
        }
    }

    /// Copies the arguments from the program's variables into the kernarg layout.
    fn collect(&self, kernel: &Kernel) -> Outcome<Vec<u8>> {
        let mut out = Vec::new();
        for (at, argument) in kernel.arguments().enumerate() {
            // SAFETY: there is a pointer for each argument of the kernel ([`Arguments::new`]).
            let from = unsafe { self.pointers.at(at)? };
            if from.is_null() {
                let (name, count) = (demangled(kernel.name()), kernel.arguments().count());
                let message = format!(
                    "kernel `{name}` takes {count} arguments, the pointer to number {} is null",
                    at + 1
                );
                return Err(Status::INVALID_VALUE.because(message));
            }
            // SAFETY: the pointer refers to an argument of this size.
            let bytes = unsafe { from.read(argument.size as usize) };
            let (from, end) = (argument.offset as usize, argument.offset as usize + bytes.len());
            if out.len() < end {
                out.resize(end, 0);
            }
            out[from..end].copy_from_slice(&bytes);
        }
        Ok(out)
    }

    /// Returns arguments that the program has laid out itself. A larger buffer is truncated to the kernel's
    /// arguments.
    fn read_buffer(&self, kernel: &Kernel) -> Outcome<Vec<u8>> {
        let (mut buffer, mut len) = (None, None);
        for at in (0..8).step_by(2) {
            // SAFETY: there are pairs of a marker and a value up to the end marker ([`Arguments::new`]).
            let value = || unsafe { self.extra.at(at + 1) };
            // SAFETY: as above.
            match unsafe { self.extra.at(at)? }.address() as usize {
                BUFFER_POINTER => buffer = Some(value()?),
                // SAFETY: the value is a pointer to the size.
                BUFFER_SIZE => len = Some(unsafe { value()?.read(size_of::<usize>()) }),
                END => break,
                _ => return Err(Status::INVALID_VALUE.into()),
            }
        }
        let (buffer, len) = buffer.zip(len).ok_or(Status::INVALID_VALUE)?;
        let len = len.iter().rev().fold(0, |n, &b| n << 8 | b as usize);
        // SAFETY: the buffer has at least this size ([`Arguments::new`]).
        let bytes = unsafe { buffer.read(len.min(kernel.kernarg_bytes() as usize)) };
        let invalid =
            |e| Status::INVALID_VALUE.because(format!("kernel `{}`: {e}", demangled(kernel.name())));
        kernel.check_arguments(&bytes).map_err(invalid)?;
        Ok(bytes)
    }
}

/// Events to record before and after a launch; 0 for none.
#[derive(Clone, Copy)]
pub struct LaunchEvents {
    start: Handle,
    stop: Handle,
}

impl LaunchEvents {
    /// No events.
    pub const NONE: LaunchEvents = LaunchEvents { start: 0, stop: 0 };
}

/// Submits a launch to a stream. If the launch is rejected, its events are not recorded.
pub fn submit(invocation: Invocation, stream: Handle, events: LaunchEvents) -> Outcome {
    let gpu = gpu()?;
    // Launches have a status of their own for a stream that does not exist.
    let stream = gpu.streams.find(stream).map_err(|_| Status::INVALID_VALUE)?;
    let event = |event: Handle| (event != 0).then(|| gpu.streams.event(event)).transpose();
    let (start, stop) = (event(events.start)?, event(events.stop)?);
    let of = stream.gpu()?;
    let (kernel, device) = (invocation.kernel.device().ordinal(), of.device.ordinal());
    if kernel != device {
        let name = demangled(invocation.kernel.name());
        let message = format!(
            "kernel `{name}` of a module of device {kernel}, launched on a stream of device {device}"
        );
        return Err(Status::INVALID_HANDLE.because(message));
    }
    of.check()?;
    if let Some(start) = start {
        gpu.streams.record(&start, &stream)?;
    }
    gpu.enqueue(&stream, Work::kernel(invocation))?;
    if let Some(stop) = stop {
        gpu.streams.record(&stop, &stream)?;
    }
    Ok(())
}

/// Launch configuration that `<<<…>>>` passes to the host stub.
#[derive(Clone, Copy)]
struct Configuration {
    grid: Dim3,
    block: Dim3,
    dynamic_lds: usize,
    stream: Handle,
}

thread_local! {
    static CONFIGURATIONS: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

/// `__hipPushCallConfiguration`.
pub unsafe extern "C" fn __hipPushCallConfiguration(
    grid: Dim3,
    block: Dim3,
    dynamic_lds: usize,
    stream: Handle,
) -> c_int {
    call("__hipPushCallConfiguration", || {
        CONFIGURATIONS.with_borrow_mut(|list| list.push(Configuration { grid, block, dynamic_lds, stream }));
        Ok(())
    })
}

/// `__hipPopCallConfiguration`.
pub unsafe extern "C" fn __hipPopCallConfiguration(
    grid: Out<Dim3>,
    block: Out<Dim3>,
    dynamic_lds: Out<usize>,
    stream: Out<Handle>,
) -> c_int {
    call("__hipPopCallConfiguration", || {
        let last = CONFIGURATIONS.with_borrow_mut(Vec::pop).ok_or(Status::MISSING_CONFIGURATION)?;
        grid.put(last.grid)?;
        block.put(last.block)?;
        dynamic_lds.put(last.dynamic_lds)?;
        stream.put(last.stream)
    })
}

/// `hipLaunchKernel`.
pub unsafe extern "C" fn hipLaunchKernel(
    function: usize,
    grid: Dim3,
    block: Dim3,
    arguments: In<Memory>,
    dynamic_lds: usize,
    stream: Handle,
) -> c_int {
    let shape = Shape { grid, block, dynamic_lds };
    // SAFETY: the caller of the API passes the arguments of the kernel.
    let arguments = unsafe { Arguments::new(arguments, In::none()) };
    call("hipLaunchKernel", || {
        launch(function, shape, arguments, stream, LaunchEvents::NONE, Attributes::default())
    })
}

/// The shape of a launch in the API's types.
struct Shape {
    grid: Dim3,
    block: Dim3,
    dynamic_lds: usize,
}

/// Launches the kernel of a host stub. All workgroups of a cooperative launch must be resident.
fn launch(
    function: usize,
    shape: Shape,
    arguments: Arguments,
    stream: Handle,
    events: LaunchEvents,
    attributes: Attributes,
) -> Outcome {
    let Shape { grid, block, dynamic_lds } = shape;
    if attributes.cooperative {
        check_resident(grid)?;
    }
    let dynamic_lds = u32::try_from(dynamic_lds).map_err(|_| Status::INVALID_CONFIGURATION)?;
    let gpu = gpu()?.streams.find(stream)?.gpu()?;
    let parameters = LaunchParameters { grid, block, dynamic_lds };
    let invocation = parameters.of_host_function(gpu, function, arguments)?;
    submit(attributes.apply(invocation), stream, events)
}

/// `hipExtLaunchKernel`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn hipExtLaunchKernel(
    function: usize,
    grid: Dim3,
    block: Dim3,
    arguments: In<Memory>,
    dynamic_lds: usize,
    stream: Handle,
    start: Handle,
    stop: Handle,
    _flags: c_int,
) -> c_int {
    let shape = Shape { grid, block, dynamic_lds };
    // SAFETY: the caller of the API passes the arguments of the kernel.
    let arguments = unsafe { Arguments::new(arguments, In::none()) };
    call("hipExtLaunchKernel", || {
        launch(function, shape, arguments, stream, LaunchEvents { start, stop }, Attributes::default())
    })
}

/// `hipLaunchConfig_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LaunchConfig {
    grid: Dim3,
    block: Dim3,
    dynamic_lds: usize,
    stream: Handle,
    attributes: In<LaunchAttribute>,
    count: c_uint,
}

/// `hipLaunchAttribute`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LaunchAttribute {
    id: c_uint,
    _padding: u32,
    /// The first words of the union.
    value: [u32; 3],
    _rest: [u32; 13],
}

const _: () = assert!(size_of::<LaunchAttribute>() == 72, "as the headers have it");

/// `hipLaunchAttributeCooperative`.
const COOPERATIVE: c_uint = 2;
/// `hipLaunchAttributeClusterDimension`, of ROCm 7.
const CLUSTER_DIMENSION: c_uint = 4;

/// The attributes that affect a launch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Attributes {
    /// All workgroups are resident.
    cooperative: bool,
    /// Workgroups of a cluster in each dimension.
    cluster: Option<[u32; 3]>,
}

impl Attributes {
    const COOPERATIVE: Attributes = Attributes { cooperative: true, cluster: None };

    /// Reads `count` attributes.
    ///
    /// # Safety
    /// There are as many attributes.
    unsafe fn read(list: In<LaunchAttribute>, count: c_uint) -> Outcome<Attributes> {
        let mut attributes = Attributes::default();
        // SAFETY: the caller guarantees the length.
        for attribute in unsafe { list.list(count as usize)? } {
            match attribute.id {
                COOPERATIVE => attributes.cooperative |= attribute.value[0] != 0,
                CLUSTER_DIMENSION => attributes.cluster = Some(attribute.value),
                _ => {}
            }
        }
        Ok(attributes)
    }

    fn apply(self, invocation: Invocation) -> Invocation {
        Invocation { cooperative: self.cooperative, cluster: self.cluster, ..invocation }
    }
}

/// `hipLaunchKernelExC`.
pub unsafe extern "C" fn hipLaunchKernelExC(
    config: In<LaunchConfig>,
    function: usize,
    arguments: In<Memory>,
) -> c_int {
    // SAFETY: the caller of the API passes the arguments of the kernel.
    let arguments = unsafe { Arguments::new(arguments, In::none()) };
    call("hipLaunchKernelExC", || {
        let c = config.get()?;
        let shape = Shape { grid: c.grid, block: c.block, dynamic_lds: c.dynamic_lds };
        // SAFETY: the caller of the API passes an array of attributes of this length.
        let attributes = unsafe { Attributes::read(c.attributes, c.count)? };
        launch(function, shape, arguments, c.stream, LaunchEvents::NONE, attributes)
    })
}

/// `HIP_LAUNCH_CONFIG`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ModuleLaunchConfig {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    dynamic_lds: c_uint,
    stream: Handle,
    attributes: In<LaunchAttribute>,
    count: c_uint,
}

const _: () = assert!(size_of::<ModuleLaunchConfig>() == 56, "as the headers have it");

/// `hipDrvLaunchKernelEx`.
pub unsafe extern "C" fn hipDrvLaunchKernelEx(
    config: In<ModuleLaunchConfig>,
    function: Handle,
    arguments: In<Memory>,
    extra: In<Memory>,
) -> c_int {
    // SAFETY: the caller of the API passes the arguments of the kernel.
    let arguments = unsafe { Arguments::new(arguments, extra) };
    call("hipDrvLaunchKernelEx", || {
        let c = config.get()?;
        let dim = |[x, y, z]: [c_uint; 3]| Dim3 { x, y, z };
        let parameters =
            LaunchParameters { grid: dim(c.grid), block: dim(c.block), dynamic_lds: c.dynamic_lds };
        // SAFETY: the caller of the API passes an array of attributes of this length.
        let attributes = unsafe { Attributes::read(c.attributes, c.count)? };
        if attributes.cooperative {
            check_resident(parameters.grid)?;
        }
        check_grid(parameters.grid, Status::INVALID_VALUE)?;
        launch_module(function, parameters, c.stream, arguments, LaunchEvents::NONE, attributes)
    })
}

/// `hipLaunchCooperativeKernel`. All workgroups are resident.
pub unsafe extern "C" fn hipLaunchCooperativeKernel(
    function: usize,
    grid: Dim3,
    block: Dim3,
    arguments: In<Memory>,
    dynamic_lds: c_uint,
    stream: Handle,
) -> c_int {
    // SAFETY: the caller of the API passes the arguments of the kernel.
    let arguments = unsafe { Arguments::new(arguments, In::none()) };
    call("hipLaunchCooperativeKernel", || {
        let shape = Shape { grid, block, dynamic_lds: dynamic_lds as usize };
        launch(function, shape, arguments, stream, LaunchEvents::NONE, Attributes::COOPERATIVE)
    })
}

/// Checks that all workgroups of a grid can be resident.
pub fn check_resident(grid: Dim3) -> Outcome {
    let groups = grid.x as u128 * grid.y as u128 * grid.z as u128;
    if groups > RESIDENT_GROUPS as u128 {
        return Err(Status::COOPERATIVE_LAUNCH_TOO_LARGE.into());
    }
    Ok(())
}

/// Launches a kernel of a module.
fn launch_module(
    function: Handle,
    parameters: LaunchParameters,
    stream: Handle,
    arguments: Arguments,
    events: LaunchEvents,
    attributes: Attributes,
) -> Outcome {
    let invocation = parameters.of_module_function(function, arguments)?;
    submit(attributes.apply(invocation), stream, events)
}

/// `hipModuleLaunchKernel`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn hipModuleLaunchKernel(
    function: Handle,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    dynamic_lds: c_uint,
    stream: Handle,
    arguments: In<Memory>,
    extra: In<Memory>,
) -> c_int {
    call("hipModuleLaunchKernel", || {
        let grid = Dim3 { x: grid_x, y: grid_y, z: grid_z };
        let block = Dim3 { x: block_x, y: block_y, z: block_z };
        let parameters = LaunchParameters { grid, block, dynamic_lds };
        // SAFETY: the caller of the API passes the arguments of the kernel.
        let arguments = unsafe { Arguments::new(arguments, extra) };
        check_grid(grid, Status::INVALID_VALUE)?;
        launch_module(function, parameters, stream, arguments, LaunchEvents::NONE, Attributes::default())
    })
}

/// `hipModuleLaunchCooperativeKernel`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn hipModuleLaunchCooperativeKernel(
    function: Handle,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    dynamic_lds: c_uint,
    stream: Handle,
    arguments: In<Memory>,
) -> c_int {
    call("hipModuleLaunchCooperativeKernel", || {
        let grid = Dim3 { x: grid_x, y: grid_y, z: grid_z };
        let block = Dim3 { x: block_x, y: block_y, z: block_z };
        check_resident(grid)?;
        let parameters = LaunchParameters { grid, block, dynamic_lds };
        // SAFETY: the caller of the API passes the arguments of the kernel.
        let arguments = unsafe { Arguments::new(arguments, In::none()) };
        launch_module(function, parameters, stream, arguments, LaunchEvents::NONE, Attributes::COOPERATIVE)
    })
}

/// `hipExtModuleLaunchKernel`. The grid is specified in work-items.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn hipExtModuleLaunchKernel(
    function: Handle,
    items_x: c_uint,
    items_y: c_uint,
    items_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    dynamic_lds: usize,
    stream: Handle,
    arguments: In<Memory>,
    extra: In<Memory>,
    start: Handle,
    stop: Handle,
    _flags: c_uint,
) -> c_int {
    call("hipExtModuleLaunchKernel", || {
        let (grid, block) = divided([items_x, items_y, items_z], [block_x, block_y, block_z])?;
        let dynamic_lds = u32::try_from(dynamic_lds).map_err(|_| Status::INVALID_VALUE)?;
        let parameters = LaunchParameters { grid, block, dynamic_lds };
        // SAFETY: the caller of the API passes the arguments of the kernel.
        let arguments = unsafe { Arguments::new(arguments, extra) };
        launch_module(
            function,
            parameters,
            stream,
            arguments,
            LaunchEvents { start, stop },
            Attributes::default(),
        )
    })
}

/// `hipHccModuleLaunchKernel`, the former name of `hipExtModuleLaunchKernel`, without flags.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn hipHccModuleLaunchKernel(
    function: Handle,
    items_x: c_uint,
    items_y: c_uint,
    items_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    dynamic_lds: usize,
    stream: Handle,
    arguments: In<Memory>,
    extra: In<Memory>,
    start: Handle,
    stop: Handle,
) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe {
        hipExtModuleLaunchKernel(
            function,
            items_x,
            items_y,
            items_z,
            block_x,
            block_y,
            block_z,
            dynamic_lds,
            stream,
            arguments,
            extra,
            start,
            stop,
            0,
        )
    }
}

/// Returns the grid and the workgroups of a launch whose grid is specified in work-items. As in ROCm, a workgroup is not
/// larger than the grid.
fn divided(items: [c_uint; 3], block: [c_uint; 3]) -> Outcome<(Dim3, Dim3)> {
    let size: u64 = block.iter().map(|&d| u64::from(d)).fold(1, u64::saturating_mul);
    if size == 0 || size > MAX_ITEMS as u64 || items.contains(&0) {
        let message = format!("a grid of {items:?} work-items in workgroups of {block:?}");
        return Err(Status::INVALID_VALUE.because(message));
    }
    let dim = |[x, y, z]: [u32; 3]| Dim3 { x, y, z };
    let block: [u32; 3] = std::array::from_fn(|k| block[k].min(items[k]));
    if let Some(k) = (0..3).find(|&k| !items[k].is_multiple_of(block[k])) {
        let message = format!("workgroups of {} work-items do not divide {}", block[k], items[k]);
        return Err(Status::INVALID_VALUE.because(message));
    }
    Ok((dim(std::array::from_fn(|k| items[k] / block[k])), dim(block)))
}
