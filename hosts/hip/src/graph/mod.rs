//! Graphs of operations. A graph is recorded by capturing streams, or built node by node. Instantiation sorts
//! the nodes topologically.

mod change;
mod node;

pub use change::*;
pub use node::*;

use crate::ffi::{Memory, Out};
use crate::gpu::{gpu, gpus, lock};
use crate::op::Work;
use crate::status::{Outcome, Status, call};
use crate::stream::{Handle, Stream, new_handle};
use std::collections::HashMap;
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// `hipStreamCaptureStatusActive`.
const ACTIVE: c_int = 1;

/// A node of a graph.
#[derive(Clone)]
struct Node {
    handle: Handle,
    work: Work,
    /// Handles of the nodes that this node depends on.
    after: Vec<Handle>,
}

/// A graph.
#[derive(Clone, Default)]
struct Graph {
    nodes: Vec<Node>,
}

/// A capture: records the work of streams into a graph.
pub struct Capture {
    graph: Arc<Mutex<Graph>>,
    handle: Handle,
    /// The stream that the capture began on and must end on.
    origin: Handle,
    ended: AtomicBool,
}

/// An instantiated graph, with its nodes in execution order.
struct Executable {
    order: Vec<Node>,
}

#[derive(Default)]
struct Graphs {
    graphs: HashMap<Handle, Arc<Mutex<Graph>>>,
    executables: HashMap<Handle, Executable>,
    /// The graph that contains each node.
    nodes: HashMap<Handle, Handle>,
}

static GRAPHS: Mutex<Option<Graphs>> = Mutex::new(None);

/// Calls `body` with the table of all graphs.
fn with<T>(body: impl FnOnce(&mut Graphs) -> Outcome<T>) -> Outcome<T> {
    body(lock(&GRAPHS).get_or_insert_default())
}

impl Capture {
    /// Records an operation that depends on the previously recorded one. The operations of all streams in a
    /// capture are thus serialised in the order in which the program submitted them.
    pub fn add(&self, work: Work) {
        let mut graph = lock(&self.graph);
        let after = graph.nodes.last().map(|node| node.handle).into_iter().collect();
        graph.nodes.push(Node { handle: new_handle(), work, after });
    }

    /// Adds a stream to the capture, because the stream waits for an event of the capture.
    pub fn join(self: &Arc<Capture>, stream: &Stream) -> Outcome {
        // Ending the capture sets `ended` before it locks `stream.capture`. So either this check sees
        // `ended`, or the end of the capture sees the stream and removes it.
        let mut current = lock(&stream.capture);
        if self.ended.load(Ordering::SeqCst) {
            return Err(Status::CAPTURED_EVENT.into());
        }
        if stream.handle == 0 {
            return Err(Status::STREAM_CAPTURE_IMPLICIT.into());
        }
        match &*current {
            Some(other) if !Arc::ptr_eq(other, self) => Err(Status::STREAM_CAPTURE_MERGE.into()),
            _ => {
                *current = Some(self.clone());
                Ok(())
            }
        }
    }
}

impl Graph {
    /// Returns a copy of the graph whose nodes have new handles.
    fn with_new_handles(&self) -> Graph {
        let new: HashMap<Handle, Handle> = self.nodes.iter().map(|n| (n.handle, new_handle())).collect();
        let of = |old: &Handle| new.get(old).copied().unwrap_or(*old);
        let copy = |n: &Node| Node {
            handle: of(&n.handle),
            work: n.work.clone(),
            after: n.after.iter().map(of).collect(),
        };
        Graph { nodes: self.nodes.iter().map(copy).collect() }
    }

    /// Returns the nodes in topological order.
    fn sorted(&self) -> Outcome<Vec<Node>> {
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
                    Status::INVALID_VALUE.because("the dependencies of the graph's nodes form a cycle")
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

    /// Checks that all of these nodes belong to the graph.
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
        let graph = self.graph_of(node)?;
        let mut graph = lock(&graph);
        let found = graph.nodes.iter_mut().find(|n| n.handle == node).ok_or(Status::INVALID_VALUE)?;
        Ok(body(found))
    }

    /// Replaces the work of a node of an instantiated graph.
    fn edit_executable(&mut self, executable: Handle, node: Handle, work: Work) -> Outcome {
        let found = self.executables.get_mut(&executable).ok_or(Status::INVALID_VALUE)?;
        let node = found.order.iter_mut().find(|n| n.handle == node).ok_or(Status::INVALID_VALUE)?;
        node.work = work;
        Ok(())
    }

    /// Returns the graph that contains a node.
    fn graph_of(&self, node: Handle) -> Outcome<Arc<Mutex<Graph>>> {
        self.graph(*self.nodes.get(&node).ok_or(Status::INVALID_VALUE)?)
    }
}

/// `hipStreamBeginCapture`.
pub unsafe extern "C" fn hipStreamBeginCapture(stream: Handle, _mode: c_int) -> c_int {
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
pub unsafe extern "C" fn hipStreamEndCapture(stream: Handle, graph: Out<Handle>) -> c_int {
    call("hipStreamEndCapture", || {
        let stream = gpu()?.streams.find(stream)?;
        let capture = lock(&stream.capture).clone().ok_or(Status::ILLEGAL_STATE)?;
        if capture.origin != stream.handle {
            return Err(Status::STREAM_CAPTURE_UNMATCHED.into());
        }
        capture.ended.store(true, Ordering::SeqCst);
        // Streams that joined the capture leave it too.
        for gpu in gpus()? {
            gpu.streams.for_each(|other| {
                lock(&other.capture).take_if(|c| Arc::ptr_eq(c, &capture));
            });
        }
        let recorded = lock(&capture.graph).clone();
        graph.put(with(|graphs| Ok(graphs.insert(recorded)))?)
    })
}

/// `hipStreamIsCapturing`.
pub unsafe extern "C" fn hipStreamIsCapturing(stream: Handle, status: Out<c_int>) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipStreamGetCaptureInfo(stream, status, Out::none()) }
}

/// `hipStreamGetCaptureInfo`.
pub unsafe extern "C" fn hipStreamGetCaptureInfo(stream: Handle, status: Out<c_int>, id: Out<u64>) -> c_int {
    call("hipStreamGetCaptureInfo", || {
        let stream = gpu()?.streams.find(stream)?;
        let capture = lock(&stream.capture);
        id.put_optional(capture.as_ref().map_or(0, |c| c.handle as u64));
        status.put(if capture.is_some() { ACTIVE } else { 0 })
    })
}

/// `hipThreadExchangeStreamCaptureMode`. Captures are independent of threads, so the mode is ignored.
pub unsafe extern "C" fn hipThreadExchangeStreamCaptureMode(_mode: Out<c_int>) -> c_int {
    0
}

/// `hipGraphCreate`.
pub unsafe extern "C" fn hipGraphCreate(graph: Out<Handle>, _flags: c_uint) -> c_int {
    call("hipGraphCreate", || graph.put(with(|graphs| Ok(graphs.insert(Graph::default())))?))
}

/// `hipGraphDestroy`.
pub unsafe extern "C" fn hipGraphDestroy(graph: Handle) -> c_int {
    call("hipGraphDestroy", || {
        with(|graphs| {
            graphs.graphs.remove(&graph).ok_or(Status::INVALID_VALUE)?;
            graphs.nodes.retain(|_, of| *of != graph);
            Ok(())
        })
    })
}

/// `hipGraphClone`.
pub unsafe extern "C" fn hipGraphClone(clone: Out<Handle>, graph: Handle) -> c_int {
    call("hipGraphClone", || {
        clone.put(with(|graphs| {
            let copy = lock(&*graphs.graph(graph)?).with_new_handles();
            Ok(graphs.insert(copy))
        })?)
    })
}

/// Instantiates a graph.
fn instantiate(executable: &Out<Handle>, graph: Handle) -> Outcome {
    executable.put(with(|graphs| {
        let order = lock(&*graphs.graph(graph)?).sorted()?;
        let handle = new_handle();
        graphs.executables.insert(handle, Executable { order });
        Ok(handle)
    })?)
}

/// `hipGraphInstantiate`.
pub unsafe extern "C" fn hipGraphInstantiate(
    executable: Out<Handle>,
    graph: Handle,
    wrong_node: Out<Handle>,
    _log: Memory,
    _log_bytes: usize,
) -> c_int {
    wrong_node.put_optional(0);
    call("hipGraphInstantiate", || instantiate(&executable, graph))
}

/// `hipGraphInstantiateWithFlags`.
pub unsafe extern "C" fn hipGraphInstantiateWithFlags(
    executable: Out<Handle>,
    graph: Handle,
    _flags: u64,
) -> c_int {
    call("hipGraphInstantiateWithFlags", || instantiate(&executable, graph))
}

/// `hipGraphLaunch`.
pub unsafe extern "C" fn hipGraphLaunch(executable: Handle, stream: Handle) -> c_int {
    call("hipGraphLaunch", || {
        let gpu = gpu()?;
        let parts = with(|graphs| {
            let found = graphs.executables.get(&executable).ok_or(Status::INVALID_VALUE)?;
            Ok(found.order.iter().map(|node| node.work.clone()).collect())
        })?;
        gpu.enqueue(&*gpu.streams.find(stream)?, Work::batch(parts))
    })
}

/// `hipGraphUpload`. Only checks the handle, since there is nothing to upload.
pub unsafe extern "C" fn hipGraphUpload(executable: Handle, _stream: Handle) -> c_int {
    call("hipGraphUpload", || {
        with(|graphs| {
            let known = graphs.executables.contains_key(&executable);
            if known { Ok(()) } else { Err(Status::INVALID_VALUE.into()) }
        })
    })
}

/// `hipGraphExecDestroy`.
pub unsafe extern "C" fn hipGraphExecDestroy(executable: Handle) -> c_int {
    call("hipGraphExecDestroy", || {
        with(|graphs| graphs.executables.remove(&executable).map(drop).ok_or(Status::INVALID_VALUE.into()))
    })
}

/// `hipGraphExecUpdate`. Accepts any graph with the same number of nodes.
pub unsafe extern "C" fn hipGraphExecUpdate(
    executable: Handle,
    graph: Handle,
    wrong_node: Out<Handle>,
    result: Out<c_int>,
) -> c_int {
    wrong_node.put_optional(0);
    call("hipGraphExecUpdate", || {
        with(|graphs| {
            let order = lock(&*graphs.graph(graph)?).sorted()?;
            let found = graphs.executables.get_mut(&executable).ok_or(Status::INVALID_VALUE)?;
            let same = found.order.len() == order.len();
            // hipGraphExecUpdateErrorTopologyChanged
            result.put_optional(if same { 0 } else { 2 });
            if !same {
                return Err(Status::GRAPH_EXEC_UPDATE_FAILURE.into());
            }
            found.order = order;
            Ok(())
        })
    })
}
