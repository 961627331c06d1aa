//! Parameters of graph nodes, nodes of events, captures that programs look into, objects that graphs keep.

use super::{Handle, HostNode, INVALID_VALUE, SUCCESS, created};
use super::{
    hipDeviceSynchronize, hipEventCreate, hipEventRecord, hipGraphAddEmptyNode, hipGraphAddHostNode,
    hipGraphClone, hipGraphCreate, hipGraphDestroy, hipGraphInstantiate, hipGraphLaunch, hipLaunchHostFunc,
    hipMalloc, hipStreamBeginCapture, hipStreamCreate, hipStreamEndCapture, hipStreamSynchronize,
    hipStreamWaitEvent,
};
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

unsafe extern "C" {
    fn hipGraphAddChildGraphNode(
        node: &mut Handle,
        graph: Handle,
        after: *const Handle,
        count: usize,
        child: Handle,
    ) -> c_int;
    fn hipGraphAddEventRecordNode(
        node: &mut Handle,
        graph: Handle,
        after: *const Handle,
        count: usize,
        event: Handle,
    ) -> c_int;
    fn hipGraphAddMemcpyNode1D(
        node: &mut Handle,
        graph: Handle,
        after: *const Handle,
        count: usize,
        to: Handle,
        from: *const c_void,
        len: usize,
        kind: c_int,
    ) -> c_int;
    safe fn hipGraphChildGraphNodeGetGraph(node: Handle, graph: &mut Handle) -> c_int;
    safe fn hipGraphEventRecordNodeGetEvent(node: Handle, event: &mut Handle) -> c_int;
    safe fn hipGraphEventWaitNodeGetEvent(node: Handle, event: &mut Handle) -> c_int;
    safe fn hipGraphExecDestroy(graph: Handle) -> c_int;
    safe fn hipGraphExecUpdate(
        executable: Handle,
        graph: Handle,
        wrong: &mut Handle,
        result: &mut c_int,
    ) -> c_int;
    safe fn hipGraphInstantiateWithFlags(executable: &mut Handle, graph: Handle, flags: u64) -> c_int;
    safe fn hipGraphHostNodeGetParams(node: Handle, parameters: &mut HostNode) -> c_int;
    safe fn hipGraphMemcpyNodeGetParams(node: Handle, parameters: &mut Copy3d) -> c_int;
    safe fn hipGraphNodeFindInClone(node: &mut Handle, original: Handle, clone: Handle) -> c_int;
    safe fn hipGraphNodeSetEnabled(executable: Handle, node: Handle, enabled: c_uint) -> c_int;
    safe fn hipGraphReleaseUserObject(graph: Handle, object: Handle, count: c_uint) -> c_int;
    safe fn hipGraphRetainUserObject(graph: Handle, object: Handle, count: c_uint, flags: c_uint) -> c_int;
    fn hipMemcpy(to: Handle, from: Handle, len: usize, kind: c_int) -> c_int;
    fn hipStreamGetCaptureInfo_v2(
        stream: Handle,
        status: &mut c_int,
        id: *mut u64,
        graph: *mut Handle,
        after: *mut *const Handle,
        count: *mut usize,
    ) -> c_int;
    fn hipStreamUpdateCaptureDependencies(
        stream: Handle,
        after: *const Handle,
        count: usize,
        flags: c_uint,
    ) -> c_int;
    safe fn hipEventQuery(event: Handle) -> c_int;
    safe fn hipStreamQuery(stream: Handle) -> c_int;
    fn hipUserObjectCreate(
        object: &mut Handle,
        argument: *mut c_void,
        destroy: extern "C" fn(*mut c_void),
        count: c_uint,
        flags: c_uint,
    ) -> c_int;
    safe fn hipUserObjectRelease(object: Handle, count: c_uint) -> c_int;
}

/// `hipMemcpy3DParms`.
#[repr(C)]
#[derive(Default, Debug)]
struct Copy3d {
    from_array: usize,
    from_position: [usize; 3],
    from: [usize; 4],
    to_array: usize,
    to_position: [usize; 3],
    to: [usize; 4],
    extent: [usize; 3],
    kind: c_int,
}

extern "C" fn count_up(counter: *mut c_void) {
    // SAFETY: the tests pass counters that live as long as the process.
    unsafe { &*counter.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}

fn argument(counter: &'static AtomicU32) -> *mut c_void {
    (&raw const *counter).cast_mut().cast()
}

#[test]
fn nodes_return_their_parameters() {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let from = 5u32;
    let mut found = 0u32;
    // SAFETY: the memory outlives the launches; lists of dependencies are empty.
    unsafe {
        let graph = created(|out| hipGraphCreate(out, 0));
        let memory = created(|out| hipMalloc(out, 64));
        let source = (&raw const from).cast();
        let copy = created(|out| hipGraphAddMemcpyNode1D(out, graph, null(), 0, memory, source, 4, 1));
        let mut parameters = Copy3d::default();
        assert_eq!(hipGraphMemcpyNodeGetParams(copy, &mut parameters), SUCCESS);
        assert_eq!(parameters.extent, [4, 1, 1]);
        assert_eq!((parameters.to[0], parameters.from[0]), (memory as usize, source as usize));

        let given = HostNode { function: count_up, argument: argument(&COUNT) };
        let child = created(|out| hipGraphCreate(out, 0));
        let host = created(|out| hipGraphAddHostNode(out, child, null(), 0, &given));
        let mut returned = HostNode { function: count_up, argument: null_mut() };
        assert_eq!(hipGraphHostNodeGetParams(host, &mut returned), SUCCESS);
        assert_eq!(returned.argument, given.argument);
        assert_eq!(hipGraphMemcpyNodeGetParams(host, &mut parameters), INVALID_VALUE);

        // The node has a copy of the graph, whose nodes the program can find.
        let node = created(|out| hipGraphAddChildGraphNode(out, graph, &copy, 1, child));
        let owned = created(|out| hipGraphChildGraphNodeGetGraph(node, out));
        let twin = created(|out| hipGraphNodeFindInClone(out, host, owned));
        assert!(owned != child && twin != host);
        assert_eq!(hipGraphNodeFindInClone(&mut null_mut(), copy, owned), INVALID_VALUE);
        let clone = created(|out| hipGraphClone(out, graph));
        assert_eq!(hipGraphDestroy(child), SUCCESS);

        let stream = created(|out| hipStreamCreate(out));
        for graph in [graph, clone] {
            let executable = created(|out| hipGraphInstantiate(out, graph, 0, 0, 0));
            assert_eq!(
                (hipGraphLaunch(executable, stream), hipStreamSynchronize(stream)),
                (SUCCESS, SUCCESS)
            );
        }
        assert_eq!(COUNT.load(Ordering::SeqCst), 2);
        assert_eq!(hipMemcpy((&raw mut found).cast(), memory, 4, 2), SUCCESS);
        assert_eq!(found, 5);

        // A node that is disabled does nothing.
        let executable = created(|out| hipGraphInstantiate(out, graph, 0, 0, 0));
        assert_eq!(hipGraphNodeSetEnabled(executable, copy, 0), SUCCESS);
        assert_eq!(hipGraphNodeSetEnabled(executable, node, 0), INVALID_VALUE);
        let mut zero = 0u32;
        assert_eq!(hipMemcpy(memory, (&raw mut zero).cast(), 4, 1), SUCCESS);
        assert_eq!((hipGraphLaunch(executable, stream), hipStreamSynchronize(stream)), (SUCCESS, SUCCESS));
        assert_eq!(hipMemcpy((&raw mut found).cast(), memory, 4, 2), SUCCESS);
        assert_eq!((found, COUNT.load(Ordering::SeqCst)), (0, 3));
    }
}

#[test]
fn nodes_record_events_and_wait_for_them() {
    const NOT_READY: c_int = 600;
    static GATE: Mutex<()> = Mutex::new(());
    extern "C" fn wait(_: *mut c_void) {
        drop(GATE.lock().unwrap());
    }
    let event = created(|out| hipEventCreate(out));
    // SAFETY: lists of dependencies have the lengths that are passed.
    unsafe {
        let graph = created(|out| hipGraphCreate(out, 0));
        let slow = HostNode { function: wait, argument: null_mut() };
        let first = created(|out| hipGraphAddHostNode(out, graph, null(), 0, &slow));
        let node = created(|out| hipGraphAddEventRecordNode(out, graph, &first, 1, event));
        assert_eq!(created(|out| hipGraphEventRecordNodeGetEvent(node, out)), event);
        assert_eq!(hipGraphEventWaitNodeGetEvent(node, &mut null_mut()), INVALID_VALUE);
        assert_eq!(hipGraphAddEventRecordNode(&mut null_mut(), graph, null(), 0, null_mut()), INVALID_VALUE);
        let executable = created(|out| hipGraphInstantiate(out, graph, 0, 0, 0));
        let stream = created(|out| hipStreamCreate(out));
        let closed = GATE.lock().unwrap();
        assert_eq!(hipGraphLaunch(executable, stream), SUCCESS);
        assert_eq!(hipEventQuery(event), NOT_READY);
        drop(closed);
        assert_eq!(hipStreamSynchronize(stream), SUCCESS);
        assert_eq!(hipEventQuery(event), SUCCESS);
        assert_eq!(hipEventRecord(event, stream), SUCCESS);
    }
}

#[test]
fn captures_show_their_graph() {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let stream = created(|out| hipStreamCreate(out));
    let (mut status, mut id, mut graph) = (0, 0, null_mut());
    let (mut after, mut count) = (null(), 0);
    // SAFETY: the list of dependencies is read while the capture does not change.
    unsafe {
        let mut info = |status: &mut c_int| {
            assert_eq!(
                hipStreamGetCaptureInfo_v2(stream, status, &mut id, &mut graph, &mut after, &mut count),
                SUCCESS
            );
            (graph, if count == 0 { Vec::new() } else { std::slice::from_raw_parts(after, count).to_vec() })
        };
        assert_eq!(info(&mut status), (null_mut(), vec![]));
        assert_eq!((status, hipStreamBeginCapture(stream, 0)), (0, SUCCESS));
        assert_eq!(hipLaunchHostFunc(stream, count_up, argument(&COUNT)), SUCCESS);
        let (graph, nodes) = info(&mut status);
        assert_eq!((status, nodes.len()), (1, 1));
        // A node that the program adds itself, and which the next work waits for.
        let own = created(|out| hipGraphAddEmptyNode(out, graph, nodes.as_ptr(), 1));
        assert_eq!(hipStreamUpdateCaptureDependencies(stream, &own, 1, 1), SUCCESS);
        assert_eq!(info(&mut status).1, [own]);
        // Work of another stream that has joined: what comes after it depends on both.
        let (other, event) = (created(|out| hipStreamCreate(out)), created(|out| hipEventCreate(out)));
        assert_eq!((hipEventRecord(event, stream), hipStreamWaitEvent(other, event, 0)), (SUCCESS, SUCCESS));
        assert_eq!(hipLaunchHostFunc(other, count_up, argument(&COUNT)), SUCCESS);
        assert_eq!(info(&mut status).1, [own]);
        assert_eq!((hipEventRecord(event, other), hipStreamWaitEvent(stream, event, 0)), (SUCCESS, SUCCESS));
        let both = info(&mut status).1;
        assert!(both.len() == 2 && both[0] == own && both[1] != own);
        assert_eq!(hipLaunchHostFunc(stream, count_up, argument(&COUNT)), SUCCESS);
        assert_eq!(created(|out| hipStreamEndCapture(stream, out)), graph);
        assert_eq!(hipStreamUpdateCaptureDependencies(stream, &own, 1, 1), 401);
        let executable = created(|out| hipGraphInstantiate(out, graph, 0, 0, 0));
        assert_eq!((hipGraphLaunch(executable, stream), hipStreamSynchronize(stream)), (SUCCESS, SUCCESS));
    }
    assert_eq!(COUNT.load(Ordering::SeqCst), 3);
}

#[test]
fn graphs_keep_objects() {
    static DESTROYED: AtomicU32 = AtomicU32::new(0);
    const MOVE: c_uint = 1;
    let destroyed = || DESTROYED.load(Ordering::SeqCst);
    // SAFETY: the function can be called with the counter.
    let object = created(|out| unsafe { hipUserObjectCreate(out, argument(&DESTROYED), count_up, 1, 1) });
    let graph = created(|out| hipGraphCreate(out, 0));
    assert_eq!(hipGraphRetainUserObject(graph, object, 1, MOVE), SUCCESS);
    assert_eq!(hipGraphRetainUserObject(graph, object, 2, 0), SUCCESS);
    // As in ROCm, more than there are have no effect.
    assert_eq!((hipGraphReleaseUserObject(graph, object, 4), destroyed()), (SUCCESS, 0));
    assert_eq!(hipGraphReleaseUserObject(graph, null_mut(), 1), INVALID_VALUE);
    assert_eq!(hipGraphReleaseUserObject(graph, object, 1), SUCCESS);
    let executable = created(|out| hipGraphInstantiate(out, graph, 0, 0, 0));
    // A node of another graph keeps it, too.
    let outer = created(|out| hipGraphCreate(out, 0));
    // SAFETY: the list of dependencies is empty.
    let node = created(|out| unsafe { hipGraphAddChildGraphNode(out, outer, null(), 0, graph) });
    let owned = created(|out| hipGraphChildGraphNodeGetGraph(node, out));
    assert_eq!((hipGraphDestroy(graph), destroyed()), (SUCCESS, 0));
    assert_eq!((hipGraphDestroy(outer), hipGraphDestroy(owned), destroyed()), (SUCCESS, INVALID_VALUE, 0));
    assert_eq!((hipGraphExecDestroy(executable), destroyed()), (SUCCESS, 1));
    assert_eq!((hipUserObjectRelease(object, 1), destroyed()), (SUCCESS, 1));
    assert_eq!(hipUserObjectRelease(null_mut(), 1), INVALID_VALUE);
}

/// What a thread must not do with a capture of its own, and what no thread may do.
#[test]
fn captures_refuse_waits_and_open_ends() {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    const UNSUPPORTED: c_int = 900;
    const UNJOINED: c_int = 904;
    const CAPTURED_EVENT: c_int = 907;
    const WRONG_THREAD: c_int = 908;
    let [stream, other] = [0, 1].map(|_| created(|out| hipStreamCreate(out)));
    let event = created(|out| hipEventCreate(out));
    let work = |stream| {
        // SAFETY: the function can be called with the counter.
        assert_eq!(unsafe { hipLaunchHostFunc(stream, count_up, argument(&COUNT)) }, SUCCESS);
    };
    assert_eq!(hipStreamBeginCapture(stream, 3), INVALID_VALUE);
    assert_eq!(hipStreamBeginCapture(stream, 0), SUCCESS);
    assert_eq!((hipStreamQuery(stream), hipStreamSynchronize(stream)), (UNSUPPORTED, UNSUPPORTED));
    assert_eq!(hipDeviceSynchronize(), UNSUPPORTED);
    work(stream);
    assert_eq!((hipEventRecord(event, stream), hipEventQuery(event)), (SUCCESS, CAPTURED_EVENT));
    let number = stream as usize;
    let elsewhere = std::thread::spawn(move || hipStreamEndCapture(number as Handle, &mut null_mut()));
    assert_eq!(elsewhere.join().unwrap(), WRONG_THREAD);
    assert_eq!(hipStreamWaitEvent(other, event, 0), SUCCESS);
    work(other);
    assert_eq!(hipStreamEndCapture(stream, &mut null_mut()), UNJOINED);
    // Work that the program no longer wants anything to come after.
    assert_eq!(hipStreamBeginCapture(stream, 0), SUCCESS);
    work(stream);
    assert_eq!((hipEventRecord(event, stream), hipStreamWaitEvent(other, event, 0)), (SUCCESS, SUCCESS));
    work(other);
    for stream in [stream, other] {
        // SAFETY: the list is empty.
        assert_eq!(unsafe { hipStreamUpdateCaptureDependencies(stream, null(), 0, 1) }, SUCCESS);
    }
    created(|out| hipStreamEndCapture(stream, out));
    // The capture has ended, of both streams.
    assert_eq!((hipStreamQuery(stream), hipStreamQuery(other)), (SUCCESS, SUCCESS));
    assert_eq!((hipDeviceSynchronize(), COUNT.load(Ordering::SeqCst)), (SUCCESS, 0));
}

#[test]
fn updates_keep_nodes_and_dependencies() {
    const UPDATE_FAILURE: c_int = 910;
    const TOPOLOGY: c_int = 2;
    const NODE_TYPE: c_int = 3;
    const PARAMETERS: c_int = 5;
    let mut host = [0u32; 2];
    // SAFETY: the memory outlives the launches, and lists of dependencies have the lengths that are passed.
    unsafe {
        let memory = created(|out| hipMalloc(out, 64));
        let [to, from] = host.each_mut().map(|number| (&raw mut *number).cast::<c_void>());
        // Copies of 4 bytes, of which each comes after the one before it if `chain` says so.
        let graph = |copies: &[(Handle, Handle, c_int)], chain: bool| {
            let graph = created(|out| hipGraphCreate(out, 0));
            let mut last: Vec<Handle> = Vec::new();
            for &(to, from, kind) in copies {
                let (after, count) = (last.as_ptr(), last.len());
                let node = created(|out| {
                    hipGraphAddMemcpyNode1D(out, graph, after, count, to, from.cast_const(), 4, kind)
                });
                if chain {
                    last = vec![node];
                }
            }
            graph
        };
        let (upload, download) = ((memory, from, 1), (to, memory, 2));
        let executable = created(|out| hipGraphInstantiate(out, graph(&[upload, download], true), 0, 0, 0));
        let (mut node, mut result) = (null_mut(), -1);
        let mut update = |graph| (hipGraphExecUpdate(executable, graph, &mut node, &mut result), result);
        let moved = (memory.wrapping_byte_add(8), from, 1);
        assert_eq!(update(graph(&[moved, download], true)), (SUCCESS, 0));
        assert_eq!(update(graph(&[moved], true)), (UPDATE_FAILURE, TOPOLOGY));
        assert_eq!(update(graph(&[moved, download], false)), (UPDATE_FAILURE, TOPOLOGY));
        assert_eq!(update(graph(&[download, download], true)), (UPDATE_FAILURE, PARAMETERS));
        let empty = graph(&[upload], true);
        created(|out| hipGraphAddEmptyNode(out, empty, null(), 0));
        assert_eq!(update(empty), (UPDATE_FAILURE, NODE_TYPE));
        assert!(!node.is_null());
        assert_eq!(hipGraphCreate(&mut null_mut(), 1), INVALID_VALUE);
        assert_eq!(hipGraphInstantiateWithFlags(&mut null_mut(), empty, 10), INVALID_VALUE);
    }
}
