//! Graphs: lists of work. A captured stream records its work into one; a graph that is built node by node is put into an order in
//! which every node comes after those that it depends on.

use crate::ffi::{HostFunction, In, Memory, Out};
use crate::gpu::{gpu, lock};
use crate::launch::{Dim3, LaunchParameters};
use crate::op::{Copy, Fill, Op, Pitched};
use crate::status::{Outcome, Status, call};
use crate::stream::{Handle, Stream, new_handle};
use std::collections::HashMap;
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// `hipGraphNodeType`.
const KERNEL: c_int = 0;
const MEMCPY: c_int = 1;
const MEMSET: c_int = 2;
const HOST: c_int = 3;
const GRAPH: c_int = 4;
const EMPTY: c_int = 5;

/// `hipStreamCaptureStatusActive`.
const ACTIVE: c_int = 1;

/// A node.
#[derive(Clone)]
struct Node {
    handle: Handle,
    op: Op,
    /// Handles of nodes that come before.
    after: Vec<Handle>,
}

/// A graph.
#[derive(Clone, Default)]
struct Graph {
    nodes: Vec<Node>,
}

/// The recording of streams into a graph.
pub struct Capture {
    graph: Arc<Mutex<Graph>>,
    handle: Handle,
    /// The stream where it began, and must end.
    origin: Handle,
    ended: AtomicBool,
}

/// A graph that is ready to run.
struct Executable {
    order: Vec<Node>,
}

#[derive(Default)]
struct Graphs {
    graphs: HashMap<Handle, Arc<Mutex<Graph>>>,
    executables: HashMap<Handle, Executable>,
    /// The graph that a node is in.
    nodes: HashMap<Handle, Handle>,
}

static GRAPHS: Mutex<Option<Graphs>> = Mutex::new(None);

/// Calls `body` with all graphs.
fn with<T>(body: impl FnOnce(&mut Graphs) -> Outcome<T>) -> Outcome<T> {
    body(lock(&GRAPHS).get_or_insert_default())
}

impl Capture {
    /// Records work after everything that was recorded before: streams of one capture are recorded in the order in which the
    /// program gave them work.
    pub fn add(&self, op: Op) {
        let mut graph = lock(&self.graph);
        let after = graph.nodes.last().map(|node| node.handle).into_iter().collect();
        graph.nodes.push(Node { handle: new_handle(), op, after });
    }

    /// Records a stream too, because it waits for an event of the capture.
    pub fn join(self: &Arc<Capture>, stream: &Stream) -> Outcome {
        // What ends the capture sets `ended` before it locks this: either the stream is not recorded now, or it is freed then.
        let mut present = lock(&stream.capture);
        if self.ended.load(Ordering::SeqCst) {
            return Err(Status::CAPTURED_EVENT.into());
        }
        if stream.handle == 0 {
            return Err(Status::STREAM_CAPTURE_IMPLICIT.into());
        }
        match &*present {
            Some(other) if !Arc::ptr_eq(other, self) => Err(Status::STREAM_CAPTURE_MERGE.into()),
            _ => {
                *present = Some(self.clone());
                Ok(())
            }
        }
    }
}

impl Graph {
    /// The same graph of other nodes.
    fn with_new_handles(&self) -> Graph {
        let new: HashMap<Handle, Handle> = self.nodes.iter().map(|n| (n.handle, new_handle())).collect();
        let of = |old: &Handle| new.get(old).copied().unwrap_or(*old);
        let copy = |n: &Node| Node {
            handle: of(&n.handle),
            op: n.op.clone(),
            after: n.after.iter().map(of).collect(),
        };
        Graph { nodes: self.nodes.iter().map(copy).collect() }
    }

    /// The nodes in an order that dependencies allow.
    fn order(&self) -> Outcome<Vec<Node>> {
        let mut out: Vec<Node> = Vec::with_capacity(self.nodes.len());
        let mut done: std::collections::HashSet<Handle> = Default::default();
        let mut rest: Vec<&Node> = self.nodes.iter().collect();
        while !rest.is_empty() {
            let before = rest.len();
            rest.retain(|node| {
                let ready = node.after.iter().all(|handle| done.contains(handle));
                if ready {
                    done.insert(node.handle);
                    out.push((*node).clone());
                }
                !ready
            });
            if rest.len() == before {
                return Err(
                    Status::INVALID_VALUE.because("the dependencies of the graph's nodes form a circle")
                );
            }
        }
        Ok(out)
    }
}

impl Graphs {
    fn insert(&mut self, graph: Graph) -> Handle {
        let handle = new_handle();
        self.nodes.extend(graph.nodes.iter().map(|node| (node.handle, handle)));
        self.graphs.insert(handle, Arc::new(Mutex::new(graph)));
        handle
    }

    /// Whether all of these nodes are the graph's.
    fn check_nodes(&self, graph: Handle, nodes: &[Handle]) -> Outcome {
        match nodes.iter().all(|node| self.nodes.get(node) == Some(&graph)) {
            true => Ok(()),
            false => Err(Status::INVALID_VALUE.because("a dependency on a node of another graph")),
        }
    }

    fn graph(&self, handle: Handle) -> Outcome<Arc<Mutex<Graph>>> {
        self.graphs.get(&handle).cloned().ok_or(Status::INVALID_VALUE.into())
    }

    fn edit<T>(&self, node: Handle, body: impl FnOnce(&mut Node) -> T) -> Outcome<T> {
        let graph = self.graph(*self.nodes.get(&node).ok_or(Status::INVALID_VALUE)?)?;
        let mut graph = lock(&graph);
        let found = graph.nodes.iter_mut().find(|n| n.handle == node).ok_or(Status::INVALID_VALUE)?;
        Ok(body(found))
    }
}

/// Adds a node to a graph.
fn add(node: &Out<Handle>, graph: Handle, after: In<Handle>, count: usize, op: Op) -> Outcome {
    let after: Vec<Handle> = (0..count).map(|at| after.at(at)).collect::<Outcome<_>>()?;
    let handle = with(|graphs| {
        let found = graphs.graph(graph)?;
        graphs.check_nodes(graph, &after)?;
        let handle = new_handle();
        lock(&found).nodes.push(Node { handle, op, after });
        graphs.nodes.insert(handle, graph);
        Ok(handle)
    })?;
    node.put(handle)
}

/// `hipStreamBeginCapture`.
pub extern "C" fn hipStreamBeginCapture(stream: Handle, _mode: c_int) -> c_int {
    call("hipStreamBeginCapture", || {
        let stream = gpu()?.streams.find(stream)?;
        if stream.handle == 0 {
            return Err(Status::STREAM_CAPTURE_UNSUPPORTED.into());
        }
        let mut capture = lock(&stream.capture);
        if capture.is_some() {
            return Err(Status::ILLEGAL_STATE.into());
        }
        let (graph, handle, ended) = (Arc::default(), new_handle(), AtomicBool::new(false));
        *capture = Some(Arc::new(Capture { graph, handle, origin: stream.handle, ended }));
        Ok(())
    })
}

/// `hipStreamEndCapture`.
pub extern "C" fn hipStreamEndCapture(stream: Handle, graph: Out<Handle>) -> c_int {
    call("hipStreamEndCapture", || {
        let streams = &gpu()?.streams;
        let stream = streams.find(stream)?;
        let capture = lock(&stream.capture).clone().ok_or(Status::ILLEGAL_STATE)?;
        if capture.origin != stream.handle {
            return Err(Status::STREAM_CAPTURE_UNMATCHED.into());
        }
        capture.ended.store(true, Ordering::SeqCst);
        // Streams that joined it leave it too.
        streams.for_each(|other| {
            lock(&other.capture).take_if(|c| Arc::ptr_eq(c, &capture));
        });
        let recorded = lock(&capture.graph).clone();
        graph.put(with(|graphs| Ok(graphs.insert(recorded)))?)
    })
}

/// `hipStreamIsCapturing`.
pub extern "C" fn hipStreamIsCapturing(stream: Handle, status: Out<c_int>) -> c_int {
    hipStreamGetCaptureInfo(stream, status, Out::none())
}

/// `hipStreamGetCaptureInfo`.
pub extern "C" fn hipStreamGetCaptureInfo(stream: Handle, status: Out<c_int>, id: Out<u64>) -> c_int {
    call("hipStreamGetCaptureInfo", || {
        let stream = gpu()?.streams.find(stream)?;
        let capture = lock(&stream.capture);
        id.put_if_wanted(capture.as_ref().map_or(0, |c| c.handle as u64));
        status.put(if capture.is_some() { ACTIVE } else { 0 })
    })
}

/// `hipThreadExchangeStreamCaptureMode`: captures are of streams, whatever threads do.
pub extern "C" fn hipThreadExchangeStreamCaptureMode(_mode: Out<c_int>) -> c_int {
    0
}

/// `hipGraphCreate`.
pub extern "C" fn hipGraphCreate(graph: Out<Handle>, _flags: c_uint) -> c_int {
    call("hipGraphCreate", || graph.put(with(|graphs| Ok(graphs.insert(Graph::default())))?))
}

/// `hipGraphDestroy`.
pub extern "C" fn hipGraphDestroy(graph: Handle) -> c_int {
    call("hipGraphDestroy", || {
        with(|graphs| {
            graphs.graphs.remove(&graph).ok_or(Status::INVALID_VALUE)?;
            graphs.nodes.retain(|_, of| *of != graph);
            Ok(())
        })
    })
}

/// `hipGraphClone`.
pub extern "C" fn hipGraphClone(clone: Out<Handle>, graph: Handle) -> c_int {
    call("hipGraphClone", || {
        clone.put(with(|graphs| {
            let copy = lock(&*graphs.graph(graph)?).with_new_handles();
            Ok(graphs.insert(copy))
        })?)
    })
}

/// Makes a graph ready to run.
fn instantiate(executable: &Out<Handle>, graph: Handle) -> Outcome {
    executable.put(with(|graphs| {
        let order = lock(&*graphs.graph(graph)?).order()?;
        let handle = new_handle();
        graphs.executables.insert(handle, Executable { order });
        Ok(handle)
    })?)
}

/// `hipGraphInstantiate`.
pub extern "C" fn hipGraphInstantiate(
    executable: Out<Handle>,
    graph: Handle,
    wrong_node: Out<Handle>,
    _log: Memory,
    _log_bytes: usize,
) -> c_int {
    wrong_node.put_if_wanted(0);
    call("hipGraphInstantiate", || instantiate(&executable, graph))
}

/// `hipGraphInstantiateWithFlags`.
pub extern "C" fn hipGraphInstantiateWithFlags(executable: Out<Handle>, graph: Handle, _flags: u64) -> c_int {
    call("hipGraphInstantiateWithFlags", || instantiate(&executable, graph))
}

/// `hipGraphLaunch`.
pub extern "C" fn hipGraphLaunch(executable: Handle, stream: Handle) -> c_int {
    call("hipGraphLaunch", || {
        let gpu = gpu()?;
        let ops = with(|graphs| {
            let found = graphs.executables.get(&executable).ok_or(Status::INVALID_VALUE)?;
            Ok(found.order.iter().map(|node| node.op.clone()).collect())
        })?;
        gpu.enqueue(&*gpu.streams.find(stream)?, Op::Batch(Arc::new(ops)))
    })
}

/// `hipGraphUpload`: there is nothing to prepare.
pub extern "C" fn hipGraphUpload(executable: Handle, _stream: Handle) -> c_int {
    call("hipGraphUpload", || {
        with(|graphs| {
            let known = graphs.executables.contains_key(&executable);
            if known { Ok(()) } else { Err(Status::INVALID_VALUE.into()) }
        })
    })
}

/// `hipGraphExecDestroy`.
pub extern "C" fn hipGraphExecDestroy(executable: Handle) -> c_int {
    call("hipGraphExecDestroy", || {
        with(|graphs| graphs.executables.remove(&executable).map(drop).ok_or(Status::INVALID_VALUE.into()))
    })
}

/// `hipGraphExecUpdate`: takes over a graph with as many nodes.
pub extern "C" fn hipGraphExecUpdate(
    executable: Handle,
    graph: Handle,
    wrong_node: Out<Handle>,
    result: Out<c_int>,
) -> c_int {
    wrong_node.put_if_wanted(0);
    call("hipGraphExecUpdate", || {
        with(|graphs| {
            let order = lock(&*graphs.graph(graph)?).order()?;
            let found = graphs.executables.get_mut(&executable).ok_or(Status::INVALID_VALUE)?;
            let same = found.order.len() == order.len();
            // hipGraphExecUpdateErrorTopologyChanged
            result.put_if_wanted(if same { 0 } else { 2 });
            if !same {
                return Err(Status::GRAPH_EXEC_UPDATE_FAILURE.into());
            }
            found.order = order;
            Ok(())
        })
    })
}

/// `hipGraphAddKernelNode`.
pub extern "C" fn hipGraphAddKernelNode(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    parameters: In<KernelNode>,
) -> c_int {
    call("hipGraphAddKernelNode", || add(&node, graph, after, count, parameters.get()?.op()?))
}

/// `hipGraphKernelNodeSetParams`.
pub extern "C" fn hipGraphKernelNodeSetParams(node: Handle, parameters: In<KernelNode>) -> c_int {
    call("hipGraphKernelNodeSetParams", || {
        let op = parameters.get()?.op()?;
        with(|graphs| graphs.edit(node, |node| node.op = op))
    })
}

/// `hipGraphExecKernelNodeSetParams`.
pub extern "C" fn hipGraphExecKernelNodeSetParams(
    executable: Handle,
    node: Handle,
    parameters: In<KernelNode>,
) -> c_int {
    call("hipGraphExecKernelNodeSetParams", || {
        let op = parameters.get()?.op()?;
        with(|graphs| {
            let found = graphs.executables.get_mut(&executable).ok_or(Status::INVALID_VALUE)?;
            let node = found.order.iter_mut().find(|n| n.handle == node).ok_or(Status::INVALID_VALUE)?;
            node.op = op;
            Ok(())
        })
    })
}

/// `hipKernelNodeParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelNode {
    block: Dim3,
    extra: In<usize>,
    function: usize,
    grid: Dim3,
    arguments: In<Memory>,
    dynamic_lds: c_uint,
}

impl KernelNode {
    fn op(self) -> Outcome<Op> {
        let launch = LaunchParameters { grid: self.grid, block: self.block, dynamic_lds: self.dynamic_lds };
        Ok(Op::Kernel(Arc::new(launch.of_host_function(self.function, self.arguments)?)))
    }
}

/// `hipGraphAddMemcpyNode1D`.
pub extern "C" fn hipGraphAddMemcpyNode1D(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    to: Memory,
    from: Memory,
    len: usize,
    kind: c_int,
) -> c_int {
    call("hipGraphAddMemcpyNode1D", || {
        let copy = Copy::linear(to, from, len);
        crate::copy::check(gpu()?, &copy, kind)?;
        add(&node, graph, after, count, Op::Copy(copy))
    })
}

/// `hipMemsetParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FillNode {
    to: Memory,
    size: c_uint,
    height: usize,
    pitch: usize,
    value: c_uint,
    width: usize,
}

/// `hipGraphAddMemsetNode`.
pub extern "C" fn hipGraphAddMemsetNode(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    parameters: In<FillNode>,
) -> c_int {
    call("hipGraphAddMemsetNode", || {
        let given = parameters.get()?;
        let fill = Fill {
            to: Pitched::rows(given.to, given.pitch),
            value: given.value,
            size: given.size as usize,
            width: given.width,
            height: given.height,
            depth: 1,
        };
        crate::copy::check_fill(gpu()?, &fill)?;
        add(&node, graph, after, count, Op::Fill(fill))
    })
}

/// `hipGraphAddHostNode`.
pub extern "C" fn hipGraphAddHostNode(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    parameters: In<HostFunction>,
) -> c_int {
    call("hipGraphAddHostNode", || add(&node, graph, after, count, Op::Host(parameters.get()?)))
}

/// `hipGraphAddEmptyNode`.
pub extern "C" fn hipGraphAddEmptyNode(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
) -> c_int {
    call("hipGraphAddEmptyNode", || add(&node, graph, after, count, Op::Nothing))
}

/// `hipGraphAddChildGraphNode`.
pub extern "C" fn hipGraphAddChildGraphNode(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    child: Handle,
) -> c_int {
    call("hipGraphAddChildGraphNode", || {
        let order = with(|graphs| lock(&*graphs.graph(child)?).order())?;
        let ops = order.into_iter().map(|node| node.op).collect();
        add(&node, graph, after, count, Op::Batch(Arc::new(ops)))
    })
}

/// `hipGraphAddDependencies`.
pub extern "C" fn hipGraphAddDependencies(
    graph: Handle,
    from: In<Handle>,
    to: In<Handle>,
    count: usize,
) -> c_int {
    call("hipGraphAddDependencies", || {
        for at in 0..count {
            let (from, to) = (from.at(at)?, to.at(at)?);
            with(|graphs| {
                graphs.graph(graph)?;
                graphs.check_nodes(graph, &[from, to])?;
                graphs.edit(to, |node| node.after.push(from))
            })?;
        }
        Ok(())
    })
}

/// `hipGraphGetNodes`.
pub extern "C" fn hipGraphGetNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) -> c_int {
    call("hipGraphGetNodes", || list(graph, &nodes, &count, |_| true))
}

/// `hipGraphGetRootNodes`.
pub extern "C" fn hipGraphGetRootNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) -> c_int {
    call("hipGraphGetRootNodes", || list(graph, &nodes, &count, |node| node.after.is_empty()))
}

fn list(graph: Handle, nodes: &Out<Handle>, count: &Out<usize>, wanted: impl Fn(&Node) -> bool) -> Outcome {
    let found = with(|graphs| graphs.graph(graph))?;
    let handles: Vec<Handle> =
        lock(&found).nodes.iter().filter(|node| wanted(node)).map(|node| node.handle).collect();
    handles.iter().enumerate().for_each(|(at, handle)| nodes.put_at(at, *handle));
    count.put(handles.len())
}

/// `hipGraphNodeGetType`.
pub extern "C" fn hipGraphNodeGetType(node: Handle, kind: Out<c_int>) -> c_int {
    call("hipGraphNodeGetType", || {
        kind.put(with(|graphs| {
            graphs.edit(node, |node| match node.op {
                Op::Kernel(_) => KERNEL,
                Op::Copy(_) => MEMCPY,
                Op::Fill(_) => MEMSET,
                Op::Host(_) | Op::Callback(_) => HOST,
                Op::Batch(_) => GRAPH,
                Op::Nothing => EMPTY,
            })
        })?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_come_after_those_that_they_depend_on() {
        let node = |handle, after: &[Handle]| Node { handle, op: Op::Nothing, after: after.to_vec() };
        let graph = Graph { nodes: vec![node(1, &[3]), node(2, &[]), node(3, &[2]), node(4, &[1, 2])] };
        let order: Vec<Handle> = graph.order().unwrap().iter().map(|n| n.handle).collect();
        assert_eq!(order, [2, 3, 1, 4]);
        let circle = Graph { nodes: vec![node(1, &[2]), node(2, &[1])] };
        assert_eq!(circle.order().err().map(|f| f.status), Some(Status::INVALID_VALUE));
    }
}
