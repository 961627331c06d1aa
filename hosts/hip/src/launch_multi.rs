//! Launches on several devices in one call.

use crate::ffi::{In, Memory};
use crate::gpu::{gpu, gpus};
use crate::launch::{Arguments, Dim3, LaunchEvents, LaunchParameters, check_resident, submit};
use crate::op::{Grids, Invocation, SharedSync};
use crate::status::{Outcome, Status, call};
use crate::stream::{Handle, Stream, synchronize};
use std::ffi::{c_int, c_uint};
use std::sync::Arc;

/// `hipCooperativeLaunchMultiDeviceNoPreSync` and `…NoPostSync`: the call does not wait for the streams before and after
/// the launches.
const NO_SYNC_BEFORE: c_uint = 1;
const NO_SYNC_AFTER: c_uint = 2;

/// `hipLaunchParams`: the launch of a host stub.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HostLaunch {
    function: usize,
    grid: Dim3,
    block: Dim3,
    arguments: In<Memory>,
    dynamic_lds: usize,
    stream: Handle,
}

/// `hipFunctionLaunchParams`: the launch of a kernel of a module.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ModuleLaunch {
    function: Handle,
    grid: Dim3,
    block: Dim3,
    dynamic_lds: c_uint,
    stream: Handle,
    arguments: In<Memory>,
}

const _: () =
    assert!(size_of::<HostLaunch>() == 56 && size_of::<ModuleLaunch>() == 56, "as the headers have it");

/// The launch on one device.
struct Part {
    stream: Arc<Stream>,
    handle: Handle,
    invocation: Invocation,
}

impl HostLaunch {
    fn part(&self) -> Outcome<Part> {
        let HostLaunch { function, grid, block, dynamic_lds, .. } = *self;
        let stream = stream(self.stream)?;
        let dynamic_lds = u32::try_from(dynamic_lds).map_err(|_| Status::INVALID_CONFIGURATION)?;
        // SAFETY: the caller of the API passes the arguments of the kernel.
        let arguments = unsafe { Arguments::new(self.arguments, In::none()) };
        let parameters = LaunchParameters { grid, block, dynamic_lds };
        let invocation = parameters.of_host_function(stream.gpu()?, function, arguments)?;
        Ok(Part { stream, handle: self.stream, invocation })
    }
}

impl ModuleLaunch {
    fn part(&self) -> Outcome<Part> {
        let ModuleLaunch { function, grid, block, dynamic_lds, .. } = *self;
        // SAFETY: the caller of the API passes the arguments of the kernel.
        let arguments = unsafe { Arguments::new(self.arguments, In::none()) };
        let parameters = LaunchParameters { grid, block, dynamic_lds };
        let invocation = parameters.of_module_function(function, arguments)?;
        Ok(Part { stream: stream(self.stream)?, handle: self.stream, invocation })
    }
}

/// Returns a stream that the program has created.
fn stream(handle: Handle) -> Outcome<Arc<Stream>> {
    if handle == 0 { Err(Status::INVALID_HANDLE.into()) } else { gpu()?.streams.find(handle) }
}

/// Checks how many launches there are, and the flags.
fn check(count: usize, flags: c_uint) -> Outcome {
    if count == 0 || count > gpus()?.len() || flags & !(NO_SYNC_BEFORE | NO_SYNC_AFTER) != 0 {
        return Err(Status::INVALID_VALUE.into());
    }
    Ok(())
}

/// Launches kernels, each on a device of its own. Workgroups of cooperative launches may wait for those of all devices.
fn launch(mut parts: Vec<Part>, flags: c_uint, is_cooperative: bool) -> Outcome {
    for (at, part) in parts.iter().enumerate() {
        if parts[..at].iter().any(|other| other.stream.device == part.stream.device) {
            return Err(Status::INVALID_DEVICE.because("two launches on one device"));
        }
    }
    if is_cooperative {
        cooperate(&mut parts)?;
    }
    if flags & NO_SYNC_BEFORE == 0 {
        parts.iter().try_for_each(|part| synchronize(&part.stream))?;
    }
    let streams: Vec<Arc<Stream>> = parts.iter().map(|part| part.stream.clone()).collect();
    parts.into_iter().try_for_each(|part| submit(part.invocation, part.handle, LaunchEvents::NONE))?;
    if flags & NO_SYNC_AFTER == 0 {
        streams.iter().try_for_each(|stream| synchronize(stream))?;
    }
    Ok(())
}

/// Checks that launches are of one kernel and shape, and lets them share the state by which they synchronise.
fn cooperate(parts: &mut [Part]) -> Outcome {
    let shape = |part: &Part| (part.invocation.grid, part.invocation.block, part.invocation.dynamic_lds);
    if parts.iter().any(|part| {
        shape(part) != shape(&parts[0]) || part.invocation.kernel.name() != parts[0].invocation.kernel.name()
    }) {
        return Err(Status::INVALID_VALUE.because("cooperative launches of several kernels or shapes"));
    }
    let shared = Arc::new(SharedSync::new(gpu()?)?);
    let count = parts.len();
    for (at, part) in parts.iter_mut().enumerate() {
        let Invocation { grid: [x, y, z], block, .. } = part.invocation;
        check_resident(Dim3 { x, y, z })?;
        let items = [x, y, z].into_iter().chain(block).map(u64::from).product::<u64>();
        part.invocation.cooperative = true;
        part.invocation.grids = Some(Grids {
            shared: shared.clone(),
            index: at as u32,
            count: count as u32,
            items_before: items * at as u64,
            all_items: items * count as u64,
        });
    }
    Ok(())
}

/// Launches kernels of host stubs.
///
/// # Safety
/// There are `count` launches, with the arguments of their kernels.
unsafe fn launch_host(list: In<HostLaunch>, count: c_int, flags: c_uint, is_cooperative: bool) -> Outcome {
    let count = usize::try_from(count).map_err(|_| Status::INVALID_VALUE)?;
    check(count, flags)?;
    // SAFETY: the caller guarantees the length.
    let parts = unsafe { list.list(count)? };
    launch(parts.iter().map(HostLaunch::part).collect::<Outcome<_>>()?, flags, is_cooperative)
}

/// `hipExtLaunchMultiKernelMultiDevice`.
pub unsafe extern "C" fn hipExtLaunchMultiKernelMultiDevice(
    list: In<HostLaunch>,
    count: c_int,
    flags: c_uint,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    call("hipExtLaunchMultiKernelMultiDevice", || unsafe { launch_host(list, count, flags, false) })
}

/// `hipLaunchCooperativeKernelMultiDevice`.
pub unsafe extern "C" fn hipLaunchCooperativeKernelMultiDevice(
    list: In<HostLaunch>,
    count: c_int,
    flags: c_uint,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    call("hipLaunchCooperativeKernelMultiDevice", || unsafe { launch_host(list, count, flags, true) })
}

/// `hipModuleLaunchCooperativeKernelMultiDevice`.
pub unsafe extern "C" fn hipModuleLaunchCooperativeKernelMultiDevice(
    list: In<ModuleLaunch>,
    count: c_uint,
    flags: c_uint,
) -> c_int {
    call("hipModuleLaunchCooperativeKernelMultiDevice", || {
        check(count as usize, flags)?;
        // SAFETY: the caller of the API passes an array of this length.
        let parts = unsafe { list.list(count as usize)? };
        launch(parts.iter().map(ModuleLaunch::part).collect::<Outcome<_>>()?, flags, true)
    })
}
