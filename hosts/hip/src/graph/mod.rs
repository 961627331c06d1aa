//! Graphs of operations. A graph is recorded by capturing streams, or built node by node. Instantiation sorts
//! the nodes topologically.

mod attributes;
mod capture;
mod change;
mod driver;
mod general;
mod memory;
mod node;
mod object;
mod parameters;
mod values;

pub use attributes::*;
pub use capture::*;
pub use change::*;
pub use driver::*;
pub use general::*;
pub use memory::*;
pub use node::*;
pub use object::*;
use object::{release_all, retain_all};
pub use parameters::*;
pub use values::*;

use crate::ffi::{Memory, Out};
use crate::gpu::{Gpu, gpu, lock};
use crate::op::{Op, Work};
use crate::status::{Outcome, Status, call};
use crate::stream::{Handle, Stream, new_handle};
use std::collections::HashMap;
use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex};

/// What a node does.
#[derive(Clone)]
enum Step {
    Work(Work),
    /// Records an event in the stream of the launch.
    Record(Handle),
    /// Lets the stream of the launch wait for an event.
    Wait(Handle),
    /// Another graph, which the node owns, with its nodes in execution order once the graph of the node is instantiated.
    Graph(Handle, Vec<Node>),
}

/// `hipGraphInstantiateFlagAutoFreeOnLaunch`: a launch first frees what earlier ones have left allocated.
const AUTO_FREE: u64 = 1;
/// None, or one of `hipGraphInstantiateFlags`. Uploads, launches by the device and priorities need nothing here.
const INSTANTIATION_FLAGS: [u64; 5] = [0, AUTO_FREE, 2, 4, 8];

/// A node of a graph.
#[derive(Clone)]
struct Node {
    handle: Handle,
    step: Step,
    /// Handles of the nodes that this node depends on.
    after: Vec<Handle>,
    /// The node of which this one is a copy.
    origin: Handle,
    /// Whether launches execute the node.
    enabled: bool,
    /// What the program has passed of a kernel or of a copy.
    given: Option<Arc<Given>>,
    /// Attributes of a kernel.
    attributes: KernelAttributes,
}

impl Node {
    fn new(step: Step, after: Vec<Handle>) -> Node {
        let handle = new_handle();
        let attributes = KernelAttributes::default();
        Node { handle, step, after, origin: handle, enabled: true, given: None, attributes }
    }
}

/// A graph.
#[derive(Clone, Default)]
struct Graph {
    nodes: Vec<Node>,
    /// The objects that the graph keeps, and how often.
    objects: Vec<(Handle, u32)>,
}

/// An instantiated graph, with its nodes in execution order.
struct Executable {
    /// The graph that was instantiated.
    graph: Handle,
    order: Vec<Node>,
    flags: u64,
    objects: Vec<(Handle, u32)>,
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

impl Graph {
    /// Returns a copy of the graph whose nodes have new handles.
    fn with_new_handles(&self) -> Graph {
        let new: HashMap<Handle, Handle> = self.nodes.iter().map(|n| (n.handle, new_handle())).collect();
        let of = |old: &Handle| new.get(old).copied().unwrap_or(*old);
        let copy = |n: &Node| Node {
            handle: of(&n.handle),
            after: n.after.iter().map(of).collect(),
            origin: n.handle,
            ..n.clone()
        };
        Graph { nodes: self.nodes.iter().map(copy).collect(), objects: self.objects.clone() }
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

    /// Adds a copy of a graph, and copies of the graphs that its nodes own.
    fn insert_copy(&mut self, handle: Handle) -> Outcome<Handle> {
        let mut copy = lock(&*self.graph(handle)?).with_new_handles();
        retain_all(&copy.objects)?;
        for node in &mut copy.nodes {
            if let Step::Graph(child, _) = &mut node.step {
                *child = self.insert_copy(*child)?;
            }
        }
        Ok(self.insert(copy))
    }

    /// Removes a graph with those that its nodes own. Returns the objects that they have kept.
    fn remove(&mut self, handle: Handle) -> Outcome<Vec<(Handle, u32)>> {
        let removed = self.graphs.remove(&handle).ok_or(Status::INVALID_VALUE)?;
        self.nodes.retain(|_, of| *of != handle);
        let removed = lock(&removed);
        let mut objects = removed.objects.clone();
        for node in &removed.nodes {
            if let Step::Graph(child, _) = node.step {
                objects.extend(self.remove(child)?);
            }
        }
        Ok(objects)
    }

    /// Returns the nodes of a graph in topological order, with those of the graphs that they own.
    fn sorted(&self, handle: Handle) -> Outcome<Vec<Node>> {
        let mut order = lock(&*self.graph(handle)?).sorted()?;
        for node in &mut order {
            if let Step::Graph(child, nodes) = &mut node.step {
                *nodes = self.sorted(*child)?;
            }
        }
        Ok(order)
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

    /// Changes a node of an instantiated graph.
    fn edit_executable<T>(
        &mut self,
        executable: Handle,
        node: Handle,
        body: impl FnOnce(&mut Node) -> T,
    ) -> Outcome<T> {
        // A node that has been destroyed, also with its graph, names no copy of it any more.
        if !self.nodes.contains_key(&node) {
            return Err(Status::INVALID_VALUE.into());
        }
        let found = self.executables.get_mut(&executable).ok_or(Status::INVALID_VALUE)?;
        let node = found.order.iter_mut().find(|n| n.handle == node).ok_or(Status::INVALID_VALUE)?;
        Ok(body(node))
    }

    /// Returns the graph that contains a node.
    fn graph_of(&self, node: Handle) -> Outcome<Arc<Mutex<Graph>>> {
        self.graph(*self.nodes.get(&node).ok_or(Status::INVALID_VALUE)?)
    }
}

/// `hipGraphCreate`.
pub unsafe extern "C" fn hipGraphCreate(graph: Out<Handle>, flags: c_uint) -> c_int {
    call("hipGraphCreate", || {
        if flags != 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        graph.put(with(|graphs| Ok(graphs.insert(Graph::default())))?)
    })
}

/// `hipGraphDestroy`.
pub unsafe extern "C" fn hipGraphDestroy(graph: Handle) -> c_int {
    call("hipGraphDestroy", || release_all(&with(|graphs| graphs.remove(graph))?))
}

/// `hipGraphClone`.
pub unsafe extern "C" fn hipGraphClone(clone: Out<Handle>, graph: Handle) -> c_int {
    call("hipGraphClone", || clone.put(with(|graphs| graphs.insert_copy(graph))?))
}

/// Instantiates a graph.
fn instantiate(executable: &Out<Handle>, graph: Handle, flags: u64) -> Outcome {
    if !INSTANTIATION_FLAGS.contains(&flags) {
        return Err(Status::INVALID_VALUE.because(format!("flags 0x{flags:x} of an instantiation")));
    }
    let objects = lock(&*with(|graphs| graphs.graph(graph))?).objects.clone();
    retain_all(&objects)?;
    executable.put(with(|graphs| {
        let order = graphs.sorted(graph)?;
        let instantiated = graphs.executables.values().any(|executable| executable.graph == graph);
        if instantiated && !memory_operations(&order).is_empty() {
            return Err(Status::NOT_SUPPORTED
                .because("a graph that allocates or frees memory is instantiated already"));
        }
        let handle = new_handle();
        graphs.executables.insert(handle, Executable { graph, order, flags, objects });
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
    call("hipGraphInstantiate", || instantiate(&executable, graph, 0))
}

/// `hipGraphInstantiateWithFlags`.
pub unsafe extern "C" fn hipGraphInstantiateWithFlags(
    executable: Out<Handle>,
    graph: Handle,
    flags: u64,
) -> c_int {
    call("hipGraphInstantiateWithFlags", || instantiate(&executable, graph, flags))
}

/// `hipGraphInstantiateParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct InstantiateParameters {
    wrong_node: Handle,
    flags: u64,
    result: c_int,
    stream: Handle,
}

/// `hipGraphInstantiateWithParams`.
pub unsafe extern "C" fn hipGraphInstantiateWithParams(
    executable: Out<Handle>,
    graph: Handle,
    parameters: Out<InstantiateParameters>,
) -> c_int {
    call("hipGraphInstantiateWithParams", || {
        let given = parameters.get()?;
        let done = instantiate(&executable, graph, given.flags);
        // hipGraphInstantiateSuccess, hipGraphInstantiateError
        parameters.put(InstantiateParameters { wrong_node: 0, result: done.is_err().into(), ..given })?;
        done
    })
}

/// `hipGraphExecGetFlags`.
pub unsafe extern "C" fn hipGraphExecGetFlags(executable: Handle, flags: Out<u64>) -> c_int {
    call("hipGraphExecGetFlags", || {
        flags.put(with(|graphs| Ok(graphs.executables.get(&executable).ok_or(Status::INVALID_VALUE)?.flags))?)
    })
}

/// `hipGraphLaunch`.
pub unsafe extern "C" fn hipGraphLaunch(executable: Handle, stream: Handle) -> c_int {
    call("hipGraphLaunch", || {
        let gpu = gpu()?;
        let (nodes, flags) = with(|graphs| {
            let found = graphs.executables.get(&executable).ok_or(Status::INVALID_VALUE)?;
            Ok((found.order.clone(), found.flags))
        })?;
        let stream = gpu.streams.find(stream)?;
        let mut pending = begin_launch(&memory_operations(&nodes), flags & AUTO_FREE != 0)?;
        submit(gpu, &stream, &nodes, &mut pending)?;
        gpu.enqueue(&stream, Work::batch(pending))
    })
}

/// Returns the allocations of nodes and the ends of allocations, in their order.
fn memory_operations(nodes: &[Node]) -> Vec<MemoryOp> {
    let of = |node: &Node| match &node.step {
        Step::Work(work) => match work.op() {
            Op::Memory(op) => vec![op.clone()],
            _ => Vec::new(),
        },
        Step::Graph(_, nodes) => memory_operations(nodes),
        _ => Vec::new(),
    };
    nodes.iter().flat_map(of).collect()
}

/// Submits nodes in their order: work in batches, which events divide.
fn submit(gpu: &'static Gpu, stream: &Stream, nodes: &[Node], pending: &mut Vec<Work>) -> Outcome {
    for node in nodes.iter().filter(|node| node.enabled) {
        match &node.step {
            Step::Work(work) => pending.push(work.clone()),
            Step::Graph(_, nodes) => submit(gpu, stream, nodes, pending)?,
            Step::Record(event) => {
                gpu.enqueue(stream, Work::batch(std::mem::take(pending)))?;
                gpu.streams.record(&*gpu.streams.event(*event)?, stream)?;
            }
            Step::Wait(event) => {
                gpu.enqueue(stream, Work::batch(std::mem::take(pending)))?;
                gpu.streams.wait_for_event(stream, *event)?;
            }
        }
    }
    Ok(())
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
        let removed =
            with(|graphs| graphs.executables.remove(&executable).ok_or(Status::INVALID_VALUE.into()))?;
        release_all(&removed.objects)
    })
}

/// `hipGraphExecUpdateResult`.
const TOPOLOGY_CHANGED: c_int = 2;
const NODE_TYPE_CHANGED: c_int = 3;
const PARAMETERS_CHANGED: c_int = 5;

/// Returns what forbids to update nodes by others, and the node of the others; both are in the order of execution.
fn difference(gpu: &Gpu, old: &[Node], new: &[Node]) -> Option<(c_int, Handle)> {
    if old.len() != new.len() {
        return Some((TOPOLOGY_CHANGED, 0));
    }
    let places = |nodes: &[Node]| -> Vec<Vec<usize>> {
        let place = |handle: &Handle| nodes.iter().position(|node| node.handle == *handle);
        let of = |node: &Node| {
            let mut after: Vec<usize> = node.after.iter().filter_map(place).collect();
            after.sort_unstable();
            after
        };
        nodes.iter().map(of).collect()
    };
    let sides = |node: &Node| match node.op() {
        Ok(Op::Copy(copy)) => Some([copy.to, copy.from].map(|side| gpu.is_device_memory(side.at))),
        _ => None,
    };
    for (old, new) in old.iter().zip(new) {
        if old.kind() != new.kind() {
            return Some((NODE_TYPE_CHANGED, new.handle));
        }
        if sides(old) != sides(new) {
            return Some((PARAMETERS_CHANGED, new.handle));
        }
        if let (Step::Graph(_, old), Step::Graph(_, new)) = (&old.step, &new.step)
            && let Some(found) = difference(gpu, old, new)
        {
            return Some(found);
        }
    }
    let differ = places(old).into_iter().zip(places(new)).position(|(old, new)| old != new);
    differ.map(|at| (TOPOLOGY_CHANGED, new[at].handle))
}

/// `hipGraphExecUpdate`. The graph has the same nodes with the same dependencies, and copies in the same directions.
pub unsafe extern "C" fn hipGraphExecUpdate(
    executable: Handle,
    graph: Handle,
    wrong_node: Out<Handle>,
    result: Out<c_int>,
) -> c_int {
    wrong_node.put_optional(0);
    call("hipGraphExecUpdate", || {
        let gpu = gpu()?;
        with(|graphs| {
            let order = graphs.sorted(graph)?;
            let found = graphs.executables.get_mut(&executable).ok_or(Status::INVALID_VALUE)?;
            if let Some((reason, node)) = difference(gpu, &found.order, &order) {
                result.put_optional(reason);
                wrong_node.put_optional(node);
                return Err(Status::GRAPH_EXEC_UPDATE_FAILURE.into());
            }
            result.put_optional(0);
            found.order = order;
            Ok(())
        })
    })
}
