//! Copies and fills of graphs in the form of the driver API.

use super::node::{FillNode, add_step};
use super::parameters::Given;
use super::{Step, with};
use crate::context::gpu_of;
use crate::copy::DEFAULT;
use crate::copy_driver::DriverParameters3d;
use crate::ffi::{In, Memory, Out};
use crate::gpu::gpu;
use crate::op::{Op, Work};
use crate::status::{Outcome, Status, call};
use crate::stream::Handle;
use std::ffi::{c_int, c_uint};

/// Returns a copy that a node performs.
///
/// # Safety
/// The memory is valid whenever the copy runs.
unsafe fn copy_of(parameters: In<DriverParameters3d>) -> Outcome<(Work, Given)> {
    let given = parameters.get()?;
    let copy = given.copy()?;
    crate::copy::check(gpu()?, &copy, DEFAULT)?;
    // SAFETY: the caller guarantees it.
    Ok((unsafe { Work::new(Op::Copy(copy)) }, Given::DriverCopy(given)))
}

/// Checks a context that the program passes.
fn check_context(context: Handle) -> Outcome {
    if context == 0 { Err(Status::INVALID_VALUE.into()) } else { gpu_of(context).map(drop) }
}

/// `hipDrvGraphAddMemcpyNode`.
pub unsafe extern "C" fn hipDrvGraphAddMemcpyNode(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    parameters: In<DriverParameters3d>,
    context: Handle,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { after.array(count) };
    call("hipDrvGraphAddMemcpyNode", || {
        check_context(context)?;
        // SAFETY: the caller of the API keeps the memory valid while the graph runs.
        let (work, given) = unsafe { copy_of(parameters) }.map_err(|failure| match failure.status {
            // This function alone has no status of its own for it.
            Status::INVALID_PITCH_VALUE => Status::INVALID_VALUE.into(),
            _ => failure,
        })?;
        add_step(&node, graph, after, Step::Work(work), Some(given))
    })
}

/// `hipDrvGraphMemcpyNodeGetParams`.
pub unsafe extern "C" fn hipDrvGraphMemcpyNodeGetParams(
    node: Handle,
    parameters: Out<DriverParameters3d>,
) -> c_int {
    call("hipDrvGraphMemcpyNodeGetParams", || {
        parameters.put(with(|graphs| {
            graphs.edit(node, |node| match (node.given.as_deref(), node.op()?) {
                (Some(Given::DriverCopy(given)), _) => Ok(*given),
                (_, Op::Copy(copy)) => Ok(DriverParameters3d::of(copy)),
                _ => Err(Status::INVALID_VALUE.into()),
            })?
        })?)
    })
}

/// `hipDrvGraphMemcpyNodeSetParams`.
pub unsafe extern "C" fn hipDrvGraphMemcpyNodeSetParams(
    node: Handle,
    parameters: In<DriverParameters3d>,
) -> c_int {
    call("hipDrvGraphMemcpyNodeSetParams", || {
        // SAFETY: the caller of the API keeps the memory valid while the graph runs.
        let (work, given) = unsafe { copy_of(parameters)? };
        with(|graphs| graphs.edit(node, |node| node.set(work, Some(given))))
    })
}

/// `hipDrvGraphExecMemcpyNodeSetParams`.
pub unsafe extern "C" fn hipDrvGraphExecMemcpyNodeSetParams(
    executable: Handle,
    node: Handle,
    parameters: In<DriverParameters3d>,
    context: Handle,
) -> c_int {
    call("hipDrvGraphExecMemcpyNodeSetParams", || {
        check_context(context)?;
        // SAFETY: the caller of the API keeps the memory valid while the graph runs.
        let (work, given) = unsafe { copy_of(parameters)? };
        with(|graphs| graphs.edit_executable(executable, node, |node| node.set(work, Some(given))))
    })
}

/// `HIP_MEMSET_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DriverFillNode {
    to: Memory,
    pitch: usize,
    value: c_uint,
    size: c_uint,
    width: usize,
    height: usize,
}

impl DriverFillNode {
    /// Returns the fill.
    ///
    /// # Safety
    /// The memory is valid whenever the fill runs.
    unsafe fn work(self) -> Outcome<Work> {
        let DriverFillNode { to, pitch, value, size, width, height } = self;
        // SAFETY: the caller guarantees it.
        unsafe { FillNode { to, size, height, pitch, value, width }.work() }
    }
}

/// `hipDrvGraphAddMemsetNode`.
pub unsafe extern "C" fn hipDrvGraphAddMemsetNode(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    parameters: In<DriverFillNode>,
    context: Handle,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { after.array(count) };
    call("hipDrvGraphAddMemsetNode", || {
        check_context(context)?;
        // SAFETY: the caller of the API keeps the memory valid while the graph runs.
        let work = unsafe { parameters.get()?.work()? };
        add_step(&node, graph, after, Step::Work(work), None)
    })
}

/// `hipDrvGraphExecMemsetNodeSetParams`.
pub unsafe extern "C" fn hipDrvGraphExecMemsetNodeSetParams(
    executable: Handle,
    node: Handle,
    parameters: In<DriverFillNode>,
    context: Handle,
) -> c_int {
    call("hipDrvGraphExecMemsetNodeSetParams", || {
        check_context(context)?;
        // SAFETY: the caller of the API keeps the memory valid while the graph runs.
        let work = unsafe { parameters.get()?.work()? };
        with(|graphs| graphs.edit_executable(executable, node, |node| node.set(work, None)))
    })
}
