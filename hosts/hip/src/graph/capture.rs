//! Captures: streams whose work is recorded into a graph instead of run.

use super::{GRAPHS, Graph, Node, Step, with};
use crate::ffi::{In, Memory, Out};
use crate::gpu::{gpu, gpus, lock};
use crate::op::Work;
use crate::status::{Outcome, Status, call};
use crate::stream::{Handle, Stream, new_handle};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

/// `hipStreamCaptureStatusActive`.
const ACTIVE: c_int = 1;
/// `hipStreamCaptureModeGlobal` and `hipStreamCaptureModeRelaxed`.
const GLOBAL: c_int = 0;
const RELAXED: c_int = 2;

/// A capture: records the work of streams into a graph.
pub struct Capture {
    graph: Arc<Mutex<Graph>>,
    /// The handle of the graph.
    of: Handle,
    handle: Handle,
    /// The stream that the capture began on and must end on.
    origin: Handle,
    /// The thread that must end the capture, unless its mode is relaxed.
    thread: ThreadId,
    mode: c_int,
    ended: AtomicBool,
    /// The nodes that the next one of each stream depends on.
    next: Mutex<HashMap<Handle, Vec<Handle>>>,
    /// Nodes that the program has taken away from the dependencies of a stream. Nothing needs to come after them.
    dropped: Mutex<Vec<Handle>>,
}

impl Capture {
    /// Records an operation of a stream, which depends on the stream's previous one and on those that it waits for. Nodes
    /// are in the order in which the program has submitted them, in which they also run.
    pub fn add(&self, stream: &Stream, work: Work) {
        let mut next = lock(&self.next);
        let dependencies = next.entry(stream.handle).or_default();
        let node = Node::new(Step::Work(work), dependencies.clone());
        let handle = node.handle;
        *dependencies = vec![handle];
        lock(&self.graph).nodes.push(node);
        // The table of all graphs is never locked while one of them is.
        lock(&GRAPHS).get_or_insert_default().nodes.insert(handle, self.of);
    }

    /// Returns whether the calling thread has begun the capture. Calls that would wait for all work are errors to it. To other
    /// threads they are not, even if the mode is global.
    pub fn is_of_thread(&self) -> bool {
        self.thread == std::thread::current().id()
    }

    /// Returns whether the stream that the capture began on comes after the work of all streams.
    fn is_joined(&self) -> bool {
        let next = lock(&self.next);
        let graph = lock(&self.graph);
        let after: HashMap<Handle, &[Handle]> =
            graph.nodes.iter().map(|node| (node.handle, &*node.after)).collect();
        let mut before: HashSet<Handle> = HashSet::new();
        let mut rest = next.get(&self.origin).cloned().unwrap_or_default();
        rest.extend(lock(&self.dropped).iter());
        while let Some(node) = rest.pop() {
            if before.insert(node) {
                rest.extend(after.get(&node).copied().unwrap_or_default());
            }
        }
        next.values().flatten().all(|node| before.contains(node))
    }

    /// Returns the nodes that the next one of a stream depends on.
    pub fn dependencies(&self, stream: &Stream) -> Vec<Handle> {
        lock(&self.next).get(&stream.handle).cloned().unwrap_or_default()
    }

    /// Adds a stream to the capture, because the stream waits for an event that was recorded after these nodes.
    pub fn join(self: &Arc<Capture>, stream: &Stream, after: &[Handle]) -> Outcome {
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
                let mut next = lock(&self.next);
                let dependencies = next.entry(stream.handle).or_default();
                let new: Vec<Handle> =
                    after.iter().filter(|node| !dependencies.contains(node)).copied().collect();
                dependencies.extend(new);
                Ok(())
            }
        }
    }
}

/// Returns a stream. Some functions have a status of their own for one that does not exist.
pub(crate) fn existing(stream: Handle) -> Outcome<Arc<Stream>> {
    gpu()?.streams.find(stream).map_err(|_| Status::CONTEXT_IS_DESTROYED.into())
}

/// Begins to record the work of a stream into a graph; `None` for a new one. What is recorded first depends on `after`.
fn begin(stream: Handle, into: Option<Handle>, after: Vec<Handle>, mode: c_int) -> Outcome {
    if !(GLOBAL..=RELAXED).contains(&mode) {
        return Err(Status::INVALID_VALUE.into());
    }
    let stream = existing(stream)?;
    if stream.handle == 0 {
        return Err(Status::STREAM_CAPTURE_UNSUPPORTED.into());
    }
    let (of, graph) = with(|graphs| {
        let of = into.unwrap_or_else(|| graphs.insert(Graph::default()));
        graphs.check_nodes(of, &after)?;
        Ok((of, graphs.graph(of)?))
    })?;
    let mut capture = lock(&stream.capture);
    if capture.is_some() {
        return Err(Status::ILLEGAL_STATE.into());
    }
    let (handle, origin, ended) = (new_handle(), stream.handle, AtomicBool::new(false));
    let thread = std::thread::current().id();
    let (next, dropped) = (Mutex::new(HashMap::from([(origin, after)])), Mutex::default());
    *capture = Some(Arc::new(Capture { graph, of, handle, origin, thread, mode, ended, next, dropped }));
    Ok(())
}

/// `hipStreamBeginCapture`.
pub unsafe extern "C" fn hipStreamBeginCapture(stream: Handle, mode: c_int) -> c_int {
    call("hipStreamBeginCapture", || begin(stream, None, Vec::new(), mode))
}

/// `hipStreamBeginCaptureToGraph`. Data of edges, which nothing here has, is ignored.
pub unsafe extern "C" fn hipStreamBeginCaptureToGraph(
    stream: Handle,
    graph: Handle,
    after: In<Handle>,
    _edges: Memory,
    count: usize,
    mode: c_int,
) -> c_int {
    call("hipStreamBeginCaptureToGraph", || {
        // SAFETY: the caller of the API passes an array of this length.
        begin(stream, Some(graph), unsafe { after.array(count) }.read()?, mode)
    })
}

/// `hipStreamEndCapture`.
pub unsafe extern "C" fn hipStreamEndCapture(stream: Handle, graph: Out<Handle>) -> c_int {
    call("hipStreamEndCapture", || {
        let stream = existing(stream)?;
        let capture = lock(&stream.capture).clone().ok_or(Status::ILLEGAL_STATE)?;
        if capture.origin != stream.handle {
            return Err(Status::STREAM_CAPTURE_UNMATCHED.into());
        }
        if capture.mode != RELAXED && !capture.is_of_thread() {
            return Err(Status::STREAM_CAPTURE_WRONG_THREAD.into());
        }
        capture.ended.store(true, Ordering::SeqCst);
        // Streams that joined the capture leave it too.
        for gpu in gpus()? {
            gpu.streams.for_each(|other| {
                lock(&other.capture).take_if(|c| Arc::ptr_eq(c, &capture));
            });
        }
        if !capture.is_joined() {
            graph.put_optional(0);
            return Err(Status::STREAM_CAPTURE_UNJOINED.into());
        }
        graph.put(capture.of)
    })
}

/// `hipStreamIsCapturing`.
pub unsafe extern "C" fn hipStreamIsCapturing(stream: Handle, status: Out<c_int>) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipStreamGetCaptureInfo(stream, status, Out::none()) }
}

/// Checks that the thread captures no blocking stream: the legacy stream, which synchronises with them, has no status then.
fn check_implicit(stream: &Stream) -> Outcome {
    let mut captured = false;
    if stream.handle == 0 {
        stream.gpu()?.streams.for_each(|other| captured |= other.is_captured_by_thread() && other.blocks());
    }
    if captured { Err(Status::STREAM_CAPTURE_IMPLICIT.into()) } else { Ok(()) }
}

/// `hipStreamGetCaptureInfo`.
pub unsafe extern "C" fn hipStreamGetCaptureInfo(stream: Handle, status: Out<c_int>, id: Out<u64>) -> c_int {
    call("hipStreamGetCaptureInfo", || {
        let stream = gpu()?.streams.find(stream)?;
        check_implicit(&stream)?;
        let capture = lock(&stream.capture);
        id.put_optional(capture.as_ref().map_or(0, |c| c.handle as u64));
        status.put(if capture.is_some() { ACTIVE } else { 0 })
    })
}

/// `hipStreamGetCaptureInfo_v2`. The list of dependencies is valid until the stream's capture changes.
pub unsafe extern "C" fn hipStreamGetCaptureInfo_v2(
    stream: Handle,
    status: Out<c_int>,
    id: Out<u64>,
    graph: Out<Handle>,
    dependencies: Out<*const Handle>,
    count: Out<usize>,
) -> c_int {
    call("hipStreamGetCaptureInfo_v2", || {
        let stream = gpu()?.streams.find(stream)?;
        check_implicit(&stream)?;
        let capture = lock(&stream.capture).clone();
        status.put(if capture.is_some() { ACTIVE } else { 0 })?;
        id.put_optional(capture.as_ref().map_or(0, |c| c.handle as u64));
        graph.put_optional(capture.as_ref().map_or(0, |c| c.of));
        let mut next = capture.as_ref().map(|c| lock(&c.next));
        let list = next.as_mut().map(|next| &*next.entry(stream.handle).or_default());
        dependencies.put_optional(list.map_or(std::ptr::null(), |list| list.as_ptr()));
        count.put_optional(list.map_or(0, |list| list.len()));
        Ok(())
    })
}

/// `hipStreamUpdateCaptureDependencies`.
pub unsafe extern "C" fn hipStreamUpdateCaptureDependencies(
    stream: Handle,
    dependencies: In<Handle>,
    count: usize,
    flags: c_uint,
) -> c_int {
    call("hipStreamUpdateCaptureDependencies", || {
        // SAFETY: the caller of the API passes an array of this length.
        let new = unsafe { dependencies.array(count) }.read()?;
        let stream = gpu()?.streams.find(stream)?;
        let capture = lock(&stream.capture).clone().ok_or(Status::ILLEGAL_STATE)?;
        with(|graphs| graphs.check_nodes(capture.of, &new))?;
        let mut next = lock(&capture.next);
        let next = next.entry(stream.handle).or_default();
        match flags {
            // hipStreamAddCaptureDependencies, hipStreamSetCaptureDependencies
            0 => next.extend(new),
            1 => lock(&capture.dropped).extend(std::mem::replace(next, new)),
            _ => return Err(Status::INVALID_VALUE.into()),
        }
        Ok(())
    })
}

thread_local! {
    /// The mode of the thread: which calls it may make while others capture. All calls are possible, so that it has no effect.
    static MODE: Cell<c_int> = const { Cell::new(GLOBAL) };
}

/// `hipThreadExchangeStreamCaptureMode`.
pub unsafe extern "C" fn hipThreadExchangeStreamCaptureMode(mode: Out<c_int>) -> c_int {
    call("hipThreadExchangeStreamCaptureMode", || {
        let new = mode.get()?;
        if !(GLOBAL..=RELAXED).contains(&new) {
            return Err(Status::INVALID_VALUE.into());
        }
        mode.put(MODE.replace(new))
    })
}
