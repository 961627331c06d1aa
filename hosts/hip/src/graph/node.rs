//! Graph nodes.

use super::change::put;
use super::{Given, Node, Step, with};
use crate::ffi::{Array, HostFunction, In, Memory, Out};
use crate::gpu::{gpu, lock};
use crate::launch::{Arguments, Dim3, LaunchParameters};
use crate::op::{Copy, Fill, MemoryOp, Op, Pitched, Work};
use crate::status::{Outcome, Status, call};
use crate::stream::Handle;
use std::ffi::{c_int, c_uint};
use std::sync::Arc;

/// `hipGraphNodeType`.
pub(super) const KERNEL: c_int = 0;
pub(super) const MEMCPY: c_int = 1;
pub(super) const MEMSET: c_int = 2;
pub(super) const HOST: c_int = 3;
pub(super) const GRAPH: c_int = 4;
pub(super) const EMPTY: c_int = 5;
pub(super) const WAIT_EVENT: c_int = 6;
pub(super) const EVENT_RECORD: c_int = 7;
pub(super) const MEM_ALLOC: c_int = 10;
pub(super) const MEM_FREE: c_int = 11;
pub(super) const BATCH_MEM_OP: c_int = 14;

/// Adds a node with work to a graph.
fn add(node: &Out<Handle>, graph: Handle, after: Array<Handle>, work: Work) -> Outcome {
    add_step(node, graph, after, Step::Work(work), None)
}

/// Adds a node to a graph.
pub(super) fn add_step(
    node: &Out<Handle>,
    graph: Handle,
    after: Array<Handle>,
    step: Step,
    given: Option<Given>,
) -> Outcome {
    if node.is_null() {
        return Err(Status::INVALID_VALUE.into());
    }
    let after = after.read()?;
    let handle = with(|graphs| {
        let found = graphs.graph(graph)?;
        graphs.check_nodes(graph, &after)?;
        let new = Node { given: given.map(Arc::new), ..Node::new(step, after) };
        let handle = new.handle;
        lock(&found).nodes.push(new);
        graphs.nodes.insert(handle, graph);
        Ok(handle)
    })?;
    node.put(handle)
}

/// `hipGraphAddKernelNode`.
pub unsafe extern "C" fn hipGraphAddKernelNode(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    parameters: In<KernelNode>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { after.array(count) };
    call("hipGraphAddKernelNode", || {
        // SAFETY: the caller of the API passes the arguments of the kernel.
        let (work, given) = unsafe { parameters.get()?.work()? };
        add_step(&node, graph, after, Step::Work(work), Some(given))
    })
}

/// `hipGraphKernelNodeSetParams`.
pub unsafe extern "C" fn hipGraphKernelNodeSetParams(node: Handle, parameters: In<KernelNode>) -> c_int {
    call("hipGraphKernelNodeSetParams", || {
        // SAFETY: the caller of the API passes the arguments of the kernel.
        let (work, given) = unsafe { parameters.get()?.work()? };
        with(|graphs| graphs.edit(node, |node| node.set(work, Some(given))))
    })
}

/// `hipGraphExecKernelNodeSetParams`.
pub unsafe extern "C" fn hipGraphExecKernelNodeSetParams(
    executable: Handle,
    node: Handle,
    parameters: In<KernelNode>,
) -> c_int {
    call("hipGraphExecKernelNodeSetParams", || {
        // SAFETY: the caller of the API passes the arguments of the kernel.
        let (work, given) = unsafe { parameters.get()?.work()? };
        with(|graphs| graphs.edit_executable(executable, node, |node| node.set(work, Some(given))))
    })
}

/// `hipKernelNodeParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelNode {
    block: Dim3,
    extra: In<Memory>,
    function: usize,
    grid: Dim3,
    arguments: In<Memory>,
    dynamic_lds: c_uint,
}

impl KernelNode {
    /// Returns the launch, and what the node returns as its parameters.
    ///
    /// # Safety
    /// There is a pointer to a value for each argument of the kernel.
    pub(super) unsafe fn work(self) -> Outcome<(Work, Given)> {
        // SAFETY: the caller guarantees the arguments.
        let arguments = unsafe { Arguments::new(self.arguments, self.extra) };
        let launch = LaunchParameters { grid: self.grid, block: self.block, dynamic_lds: self.dynamic_lds };
        let invocation = launch.of_host_function(gpu()?, self.function, arguments)?;
        let given = Given::kernel(self, &invocation);
        Ok((Work::kernel(invocation), given))
    }

    /// Returns the parameters with other arguments.
    pub(super) fn with_arguments(self, arguments: In<Memory>) -> KernelNode {
        KernelNode { arguments, extra: In::none(), ..self }
    }
}

/// `hipGraphAddMemcpyNode1D`.
pub unsafe extern "C" fn hipGraphAddMemcpyNode1D(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    to: Memory,
    from: Memory,
    len: usize,
    kind: c_int,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { after.array(count) };
    call("hipGraphAddMemcpyNode1D", || {
        // SAFETY: the caller of the API keeps the memory valid while the graph runs.
        let work = unsafe { copy_work(to, from, len, kind)? };
        add_step(&node, graph, after, Step::Work(work), Some(Given::Kind(kind)))
    })
}

/// Returns a copy of `len` bytes.
///
/// # Safety
/// The memory is valid whenever the copy runs.
pub(super) unsafe fn copy_work(to: Memory, from: Memory, len: usize, kind: c_int) -> Outcome<Work> {
    let copy = Copy::linear(to, from, len);
    crate::copy::check(gpu()?, &copy, kind)?;
    // SAFETY: the caller guarantees it.
    Ok(unsafe { Work::new(Op::Copy(copy)) })
}

/// `hipMemsetParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FillNode {
    pub(super) to: Memory,
    pub(super) size: c_uint,
    pub(super) height: usize,
    pub(super) pitch: usize,
    pub(super) value: c_uint,
    pub(super) width: usize,
}

impl FillNode {
    /// Returns the parameters of a fill.
    pub(super) fn of(fill: &Fill) -> FillNode {
        let Fill { to, value, size, width, height, .. } = *fill;
        FillNode { to: to.at, size: size as c_uint, height, pitch: to.pitch, value, width }
    }

    /// Returns the fill.
    ///
    /// # Safety
    /// The memory is valid whenever the fill runs.
    pub(super) unsafe fn work(self) -> Outcome<Work> {
        if self.height == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        let fill = Fill {
            to: Pitched::rows(self.to, self.pitch),
            value: self.value,
            size: self.size as usize,
            width: self.width,
            height: self.height,
            depth: 1,
        };
        crate::copy::check_fill(gpu()?, &fill)?;
        // SAFETY: the caller guarantees it.
        Ok(unsafe { Work::new(Op::Fill(fill)) })
    }
}

/// `hipGraphAddMemsetNode`.
pub unsafe extern "C" fn hipGraphAddMemsetNode(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    parameters: In<FillNode>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { after.array(count) };
    call("hipGraphAddMemsetNode", || {
        // SAFETY: the caller of the API keeps the memory valid while the graph runs.
        add(&node, graph, after, unsafe { parameters.get()?.work()? })
    })
}

/// Returns the call of a host function.
///
/// # Safety
/// The function can be called whenever the node runs.
pub(super) unsafe fn host_work(function: HostFunction) -> Outcome<Work> {
    if function.function.is_none() {
        return Err(Status::INVALID_VALUE.because("the host function is null"));
    }
    // SAFETY: the caller guarantees it.
    Ok(unsafe { Work::new(Op::Host(function)) })
}

/// `hipGraphAddHostNode`.
pub unsafe extern "C" fn hipGraphAddHostNode(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    parameters: In<HostFunction>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { after.array(count) };
    call("hipGraphAddHostNode", || {
        // SAFETY: the caller of the API passes a function that can be called while the graph runs.
        let work = unsafe { host_work(parameters.get()?)? };
        add(&node, graph, after, work)
    })
}

/// `hipGraphAddEmptyNode`.
pub unsafe extern "C" fn hipGraphAddEmptyNode(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { after.array(count) };
    call("hipGraphAddEmptyNode", || add(&node, graph, after, Work::nothing()))
}

/// `hipGraphAddChildGraphNode`.
pub unsafe extern "C" fn hipGraphAddChildGraphNode(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    child: Handle,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { after.array(count) };
    call("hipGraphAddChildGraphNode", || {
        let copy = with(|graphs| graphs.insert_copy(child))?;
        add_step(&node, graph, after, Step::Graph(copy, Vec::new()), None)
    })
}

/// `hipGraphAddDependencies`.
pub unsafe extern "C" fn hipGraphAddDependencies(
    graph: Handle,
    from: In<Handle>,
    to: In<Handle>,
    count: usize,
) -> c_int {
    call("hipGraphAddDependencies", || {
        // SAFETY: the caller of the API passes arrays of this length.
        let (from, to) = unsafe { (from.list(count)?, to.list(count)?) };
        for (from, to) in from.into_iter().zip(to) {
            with(|graphs| {
                graphs.graph(graph)?;
                graphs.check_nodes(graph, &[from, to])?;
                graphs.edit(to, |node| {
                    if from == to || node.after.contains(&from) {
                        return Err(Status::INVALID_VALUE.because("the dependency exists, or is on itself"));
                    }
                    node.after.push(from);
                    Ok(())
                })?
            })?;
        }
        Ok(())
    })
}

/// `hipGraphGetNodes`.
pub unsafe extern "C" fn hipGraphGetNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) -> c_int {
    // SAFETY: the caller of the API passes null, or an array with the room that it says.
    call("hipGraphGetNodes", || unsafe { list(graph, &nodes, &count, |_| true) })
}

/// `hipGraphGetRootNodes`.
pub unsafe extern "C" fn hipGraphGetRootNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) -> c_int {
    // SAFETY: the caller of the API passes null, or an array with the room that it says.
    call("hipGraphGetRootNodes", || unsafe { list(graph, &nodes, &count, |node| node.after.is_empty()) })
}

/// Stores the handles of nodes, and their number.
///
/// # Safety
/// `nodes` is null, or has the room that `count` says.
unsafe fn list(
    graph: Handle,
    nodes: &Out<Handle>,
    count: &Out<usize>,
    wanted: impl Fn(&Node) -> bool,
) -> Outcome {
    let found = with(|graphs| graphs.graph(graph))?;
    let handles: Vec<[Handle; 1]> =
        lock(&found).nodes.iter().filter(|node| wanted(node)).map(|node| [node.handle]).collect();
    // SAFETY: the caller guarantees the room.
    unsafe { put(&handles, [nodes], count) }
}

impl Node {
    /// Returns the type, as the API numbers it.
    pub(super) fn kind(&self) -> c_int {
        match &self.step {
            Step::Graph(..) => GRAPH,
            Step::Wait(_) => WAIT_EVENT,
            Step::Record(_) => EVENT_RECORD,
            Step::Work(work) => match work.op() {
                Op::Kernel(_) => KERNEL,
                Op::Copy(_) => MEMCPY,
                Op::Fill(_) => MEMSET,
                Op::Host(_) | Op::Callback(_) => HOST,
                Op::Batch(_) if matches!(self.given.as_deref(), Some(Given::Values(_))) => BATCH_MEM_OP,
                Op::Batch(_) => GRAPH,
                Op::Value(_) => BATCH_MEM_OP,
                Op::Memory(MemoryOp::Allocate(_)) => MEM_ALLOC,
                Op::Memory(MemoryOp::Free(_)) => MEM_FREE,
                Op::Nothing => EMPTY,
            },
        }
    }
}

/// `hipGraphNodeGetType`.
pub unsafe extern "C" fn hipGraphNodeGetType(node: Handle, kind: Out<c_int>) -> c_int {
    call("hipGraphNodeGetType", || kind.put(with(|graphs| graphs.edit(node, |node| node.kind()))?))
}
