//! Changes of nodes, of graphs and of instantiated graphs; edges; graphs as text.

use super::node::{FillNode, copy_work, host_work};
use super::parameters::Given;
use super::{Graph, Node, Step, difference, release_all, with};
use crate::ffi::{HostFunction, In, Memory, Out, Text};
use crate::gpu::{gpu, lock};
use crate::op::{MemoryOp, Op, Work};
use crate::status::{Outcome, Status, call};
use crate::stream::Handle;
use std::ffi::{c_int, c_uint};
use std::fmt::Write as _;
use std::path::Path;

/// `hipGraphMemsetNodeSetParams`.
pub unsafe extern "C" fn hipGraphMemsetNodeSetParams(node: Handle, parameters: In<FillNode>) -> c_int {
    call("hipGraphMemsetNodeSetParams", || {
        // SAFETY: the caller of the API keeps the memory valid while the graph runs.
        let work = unsafe { parameters.get()?.work()? };
        with(|graphs| graphs.edit(node, |node| node.set(work, None)))
    })
}

/// `hipGraphExecMemsetNodeSetParams`.
pub unsafe extern "C" fn hipGraphExecMemsetNodeSetParams(
    executable: Handle,
    node: Handle,
    parameters: In<FillNode>,
) -> c_int {
    call("hipGraphExecMemsetNodeSetParams", || {
        // SAFETY: the caller of the API keeps the memory valid while the graph runs.
        let work = unsafe { parameters.get()?.work()? };
        with(|graphs| graphs.edit_executable(executable, node, |node| node.set(work, None)))
    })
}

/// Returns the copy that a node performs from now on, which is neither empty nor to its source.
///
/// # Safety
/// As for [`copy_work`].
unsafe fn changed_copy(to: Memory, from: Memory, len: usize, kind: c_int) -> Outcome<Work> {
    if len == 0 || to == from {
        return Err(Status::INVALID_VALUE.into());
    }
    // SAFETY: the caller guarantees it.
    unsafe { copy_work(to, from, len, kind) }
}

/// `hipGraphMemcpyNodeSetParams1D`.
pub unsafe extern "C" fn hipGraphMemcpyNodeSetParams1D(
    node: Handle,
    to: Memory,
    from: Memory,
    len: usize,
    kind: c_int,
) -> c_int {
    call("hipGraphMemcpyNodeSetParams1D", || {
        // SAFETY: the caller of the API keeps the memory valid while the graph runs.
        let work = unsafe { changed_copy(to, from, len, kind)? };
        with(|graphs| graphs.edit(node, |node| node.set(work, Some(Given::Kind(kind)))))
    })
}

/// `hipGraphExecMemcpyNodeSetParams1D`.
pub unsafe extern "C" fn hipGraphExecMemcpyNodeSetParams1D(
    executable: Handle,
    node: Handle,
    to: Memory,
    from: Memory,
    len: usize,
    kind: c_int,
) -> c_int {
    call("hipGraphExecMemcpyNodeSetParams1D", || {
        // SAFETY: the caller of the API keeps the memory valid while the graph runs.
        let work = unsafe { changed_copy(to, from, len, kind)? };
        let given = Given::Kind(kind);
        with(|graphs| graphs.edit_executable(executable, node, |node| node.set_copy(work, given))?)
    })
}

/// `hipGraphHostNodeSetParams`.
pub unsafe extern "C" fn hipGraphHostNodeSetParams(node: Handle, parameters: In<HostFunction>) -> c_int {
    call("hipGraphHostNodeSetParams", || {
        // SAFETY: the caller of the API passes a function that can be called while the graph runs.
        let work = unsafe { host_work(parameters.get()?)? };
        with(|graphs| graphs.edit(node, |node| node.set(work, None)))
    })
}

/// `hipGraphExecHostNodeSetParams`.
pub unsafe extern "C" fn hipGraphExecHostNodeSetParams(
    executable: Handle,
    node: Handle,
    parameters: In<HostFunction>,
) -> c_int {
    call("hipGraphExecHostNodeSetParams", || {
        // SAFETY: the caller of the API passes a function that can be called while the graph runs.
        let work = unsafe { host_work(parameters.get()?)? };
        with(|graphs| graphs.edit_executable(executable, node, |node| node.set(work, None)))
    })
}

/// `hipGraphExecChildGraphNodeSetParams`.
pub unsafe extern "C" fn hipGraphExecChildGraphNodeSetParams(
    executable: Handle,
    node: Handle,
    child: Handle,
) -> c_int {
    call("hipGraphExecChildGraphNodeSetParams", || {
        let gpu = gpu()?;
        with(|graphs| {
            let nodes = graphs.sorted(child)?;
            graphs.edit_executable(executable, node, |node| {
                let Step::Graph(_, old) = &node.step else { return Err(Status::INVALID_VALUE.into()) };
                if difference(gpu, old, &nodes).is_some() {
                    return Err(Status::INVALID_VALUE.because("a graph with other nodes or dependencies"));
                }
                node.step = Step::Graph(child, nodes);
                Ok(())
            })?
        })
    })
}

/// `hipGraphDestroyNode`.
pub unsafe extern "C" fn hipGraphDestroyNode(node: Handle) -> c_int {
    call("hipGraphDestroyNode", || {
        release_all(&with(|graphs| {
            let graph = graphs.graph_of(node)?;
            let child = graphs
                .edit(node, |node| if let Step::Graph(child, _) = node.step { Some(child) } else { None })?;
            let mut graph = lock(&graph);
            graph.nodes.retain(|other| other.handle != node);
            graph.nodes.iter_mut().for_each(|other| other.after.retain(|after| *after != node));
            drop(graph);
            graphs.nodes.remove(&node);
            child.map_or(Ok(Vec::new()), |child| graphs.remove(child))
        })?)
    })
}

/// `hipGraphRemoveDependencies`.
pub unsafe extern "C" fn hipGraphRemoveDependencies(
    graph: Handle,
    from: In<Handle>,
    to: In<Handle>,
    count: usize,
) -> c_int {
    call("hipGraphRemoveDependencies", || {
        // SAFETY: the caller of the API passes arrays of this length.
        let (from, to) = unsafe { (from.list(count)?, to.list(count)?) };
        for (from, to) in from.into_iter().zip(to) {
            with(|graphs| {
                graphs.graph(graph)?;
                graphs.check_nodes(graph, &[from, to])?;
                graphs.edit(to, |node| {
                    if !node.after.contains(&from) {
                        return Err(Status::INVALID_VALUE.because("there is no such dependency"));
                    }
                    node.after.retain(|after| *after != from);
                    Ok(())
                })?
            })?;
        }
        Ok(())
    })
}

/// Stores handles in arrays with room for as many as `count` says, and how many it has stored. Without the first array, only
/// stores how many there are. The rest of the arrays becomes 0.
///
/// # Safety
/// The arrays that are not null have this room.
pub(super) unsafe fn put<const N: usize>(
    found: &[[Handle; N]],
    arrays: [&Out<Handle>; N],
    count: &Out<usize>,
) -> Outcome {
    let mut stored = found.len();
    if !arrays[0].is_null() {
        let room = count.get()?;
        stored = stored.min(room);
        for at in 0..room {
            let values = found.get(at).copied().unwrap_or([0; N]);
            for (array, value) in arrays.iter().zip(values) {
                // SAFETY: the caller guarantees the room.
                unsafe { array.put_at(at, value) };
            }
        }
    }
    count.put(stored)
}

/// `hipGraphGetEdges`.
pub unsafe extern "C" fn hipGraphGetEdges(
    graph: Handle,
    from: Out<Handle>,
    to: Out<Handle>,
    count: Out<usize>,
) -> c_int {
    call("hipGraphGetEdges", || {
        let graph = with(|graphs| graphs.graph(graph))?;
        let edges: Vec<[Handle; 2]> = lock(&graph).edges().collect();
        if from.is_null() != to.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller of the API passes null, or arrays with the room that it says.
        unsafe { put(&edges, [&from, &to], &count) }
    })
}

/// Stores the nodes at the other ends of a node's edges: of those where it is the node `end`.
///
/// # Safety
/// `nodes` is null, or has the room that `count` says.
unsafe fn put_neighbours(node: Handle, end: usize, nodes: &Out<Handle>, count: &Out<usize>) -> Outcome {
    let graph = with(|graphs| graphs.graph_of(node))?;
    let found: Vec<[Handle; 1]> =
        lock(&graph).edges().filter(|edge| edge[end] == node).map(|edge| [edge[1 - end]]).collect();
    // SAFETY: the caller guarantees the room.
    unsafe { put(&found, [nodes], count) }
}

/// `hipGraphNodeGetDependencies`.
pub unsafe extern "C" fn hipGraphNodeGetDependencies(
    node: Handle,
    nodes: Out<Handle>,
    count: Out<usize>,
) -> c_int {
    // SAFETY: the caller of the API passes null, or an array with the room that it says.
    call("hipGraphNodeGetDependencies", || unsafe { put_neighbours(node, 1, &nodes, &count) })
}

/// `hipGraphNodeGetDependentNodes`.
pub unsafe extern "C" fn hipGraphNodeGetDependentNodes(
    node: Handle,
    nodes: Out<Handle>,
    count: Out<usize>,
) -> c_int {
    // SAFETY: the caller of the API passes null, or an array with the room that it says.
    call("hipGraphNodeGetDependentNodes", || unsafe { put_neighbours(node, 0, &nodes, &count) })
}

/// `hipGraphDebugDotPrint`. Flags that ask for details are ignored.
pub unsafe extern "C" fn hipGraphDebugDotPrint(graph: Handle, path: Text, _flags: c_uint) -> c_int {
    call("hipGraphDebugDotPrint", || {
        let path = path.get()?;
        let graph = with(|graphs| graphs.graph(graph))?;
        let text = lock(&graph).dot();
        wavesim::files::write(Path::new(&path), |out| out.write_all(text.as_bytes()))
            .map_err(|e| Status::OPERATING_SYSTEM.because(format!("{path}: {e}")))
    })
}

impl Graph {
    /// Returns the pairs of a node and one that depends on it.
    fn edges(&self) -> impl Iterator<Item = [Handle; 2]> + '_ {
        self.nodes.iter().flat_map(|node| node.after.iter().map(move |after| [*after, node.handle]))
    }

    /// Returns the graph in the language of Graphviz.
    fn dot(&self) -> String {
        let number = |handle: Handle| self.nodes.iter().position(|node| node.handle == handle).unwrap_or(0);
        let mut text = "digraph {\n".to_string();
        for (at, node) in self.nodes.iter().enumerate() {
            let _ = writeln!(text, "  n{at} [label=\"{}\"];", node.label());
        }
        for [from, to] in self.edges() {
            let _ = writeln!(text, "  n{} -> n{};", number(from), number(to));
        }
        text + "}\n"
    }
}

impl Node {
    fn label(&self) -> String {
        let work = match &self.step {
            Step::Work(work) => work,
            Step::Record(_) => return "record of an event".to_string(),
            Step::Wait(_) => return "wait for an event".to_string(),
            Step::Graph(..) => return "graph".to_string(),
        };
        match work.op() {
            Op::Kernel(invocation) => {
                format!("kernel {} {:?} {:?}", invocation.kernel.name(), invocation.grid, invocation.block)
            }
            Op::Copy(_) => "copy".to_string(),
            Op::Fill(fill) => format!("fill {} x {} of {} bytes", fill.width, fill.height, fill.size),
            Op::Host(_) | Op::Callback(_) => "host function".to_string(),
            Op::Batch(parts) => format!("graph of {} nodes", parts.len()),
            Op::Value(_) => "memory operation".to_string(),
            Op::Memory(MemoryOp::Allocate(_)) => "allocation".to_string(),
            Op::Memory(MemoryOp::Free(_)) => "end of an allocation".to_string(),
            Op::Nothing => "empty".to_string(),
        }
    }
}
