//! Nodes of any type, whose parameters the program passes in one structure.

use super::memory::{AllocationNode, allocation, end_of_allocation};
use super::node::{FillNode, KernelNode, add_step, host_work};
use super::parameters::{EventNode, Given};
use super::{Node, Step, with};
use crate::copy::Parameters3d;
use crate::ffi::{HostFunction, In, Out};
use crate::op::{Op, Work};
use crate::status::{Outcome, Status, call};
use crate::stream::Handle;
use std::ffi::c_int;
use std::sync::Arc;

/// `hipGraphNodeParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NodeParameters {
    kind: c_int,
    reserved: [c_int; 3],
    of: OfKind,
    reserved_end: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
union OfKind {
    reserved: [i64; 29],
    kernel: KernelNode,
    copy: CopyNode,
    fill: FillNode,
    host: HostFunction,
    graph: Handle,
    event: Handle,
    allocation: AllocationNode,
    free: u64,
}

/// `hipMemcpyNodeParams`.
#[repr(C)]
#[derive(Clone, Copy)]
struct CopyNode {
    flags: c_int,
    reserved: [c_int; 3],
    copy: Parameters3d,
}

const _: () = assert!(size_of::<NodeParameters>() == 256, "as the headers have it");

impl NodeParameters {
    /// Returns what a node of a graph does, and what it returns as its parameters.
    ///
    /// # Safety
    /// The parameters are those of the type that they name, as the API demands; memory is valid and functions can be called
    /// whenever the node runs.
    unsafe fn step(&self, graph: Handle, kind: c_int) -> Outcome<(Step, Option<Given>)> {
        use super::node::{EMPTY, EVENT_RECORD, GRAPH, HOST, KERNEL, MEM_FREE, MEMCPY, MEMSET, WAIT_EVENT};
        // SAFETY: the caller guarantees that the member which `kind` names is the one that was stored.
        unsafe {
            match kind {
                KERNEL => {
                    let (work, given) = self.of.kernel.work()?;
                    Ok((Step::Work(work), Some(given)))
                }
                MEMCPY => {
                    let given = self.of.copy.copy;
                    Ok((Step::Work(Work::new(Op::Copy(given.checked()?))), Some(Given::Copy(given))))
                }
                MEMSET => Ok((Step::Work(self.of.fill.work()?), None)),
                HOST => Ok((Step::Work(host_work(self.of.host)?), None)),
                GRAPH => {
                    let copy = with(|graphs| graphs.insert_copy(self.of.graph))?;
                    Ok((Step::Graph(copy, Vec::new()), None))
                }
                EMPTY => Ok((Step::Work(Work::nothing()), None)),
                WAIT_EVENT => Ok((EventNode::Wait.step(self.of.event)?, None)),
                EVENT_RECORD => Ok((EventNode::Record.step(self.of.event)?, None)),
                MEM_FREE => Ok((end_of_allocation(graph, self.of.free)?, None)),
                _ => Err(Status::INVALID_VALUE.because(format!("a node of type {kind}"))),
            }
        }
    }
}

/// `hipGraphAddNode`.
pub unsafe extern "C" fn hipGraphAddNode(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    parameters: Out<NodeParameters>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { after.array(count) };
    call("hipGraphAddNode", || {
        let mut given = parameters.get()?;
        if given.kind == super::node::MEM_ALLOC {
            // SAFETY: the caller of the API passes the parameters of the type that it names.
            let (step, allocation) = allocation(unsafe { given.of.allocation })?;
            given.of.allocation = allocation;
            add_step(&node, graph, after, step, None)?;
            return parameters.put(given);
        }
        // SAFETY: as above, and it keeps what the node refers to valid.
        let (step, returned) = unsafe { given.step(graph, given.kind)? };
        add_step(&node, graph, after, step, returned)
    })
}

/// Returns a change of a node that keeps its type.
///
/// # Safety
/// As for [`NodeParameters::step`].
unsafe fn change(parameters: &Out<NodeParameters>) -> Outcome<impl FnOnce(&mut Node) -> Outcome> {
    use super::node::{MEM_ALLOC, MEM_FREE};
    let given = parameters.get()?;
    if matches!(given.kind, MEM_ALLOC | MEM_FREE) {
        return Err(Status::NOT_SUPPORTED.because("a change of a node that allocates or frees memory"));
    }
    // SAFETY: the caller guarantees it.
    let (step, returned) = unsafe { given.step(0, given.kind)? };
    Ok(move |node: &mut Node| {
        if node.kind() != given.kind {
            return Err(Status::INVALID_VALUE.because("the node is of another type"));
        }
        node.step = step;
        node.given = returned.map(Arc::new);
        node.apply_attributes();
        Ok(())
    })
}

/// `hipGraphNodeSetParams`.
pub unsafe extern "C" fn hipGraphNodeSetParams(node: Handle, parameters: Out<NodeParameters>) -> c_int {
    call("hipGraphNodeSetParams", || {
        // SAFETY: the caller of the API passes the parameters of the type that it names.
        let change = unsafe { change(&parameters)? };
        with(|graphs| graphs.edit(node, change)?)
    })
}

/// `hipGraphExecNodeSetParams`.
pub unsafe extern "C" fn hipGraphExecNodeSetParams(
    executable: Handle,
    node: Handle,
    parameters: Out<NodeParameters>,
) -> c_int {
    call("hipGraphExecNodeSetParams", || {
        // SAFETY: the caller of the API passes the parameters of the type that it names.
        let change = unsafe { change(&parameters)? };
        with(|graphs| graphs.edit_executable(executable, node, change)?)
    })
}
