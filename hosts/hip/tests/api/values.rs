//! Values in memory that streams write and wait for, attributes of pointers, changes of graphs.

use super::{Handle, INVALID_VALUE, SUCCESS, created};
use super::{hipDeviceSynchronize, hipEventElapsedTime, hipEventRecord};
use super::{
    hipFree, hipGraphAddEmptyNode, hipGraphCreate, hipGraphDestroy, hipGraphInstantiate, hipGraphLaunch,
    hipMalloc, hipStreamDestroy, hipStreamSynchronize, hipStreamWaitEvent,
};
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

unsafe extern "C" {
    safe fn hipDeviceGetAttribute(value: &mut c_int, attribute: c_int, device: c_int) -> c_int;
    safe fn hipEventCreateWithFlags(event: &mut Handle, flags: c_uint) -> c_int;
    safe fn hipStreamCreateWithFlags(stream: &mut Handle, flags: c_uint) -> c_int;
    fn hipDrvPointerGetAttributes(
        count: c_uint,
        attributes: *const c_int,
        data: *const *mut c_void,
        pointer: Handle,
    ) -> c_int;
    fn hipExtMallocWithFlags(memory: &mut Handle, len: usize, flags: c_uint) -> c_int;
    fn hipGraphAddBatchMemOpNode(
        node: &mut Handle,
        graph: Handle,
        after: *const Handle,
        count: usize,
        batch: &BatchNode,
    ) -> c_int;
    fn hipGraphAddMemcpyNode1D(
        node: &mut Handle,
        graph: Handle,
        after: *const Handle,
        count: usize,
        to: *mut c_void,
        from: *const c_void,
        len: usize,
        kind: c_int,
    ) -> c_int;
    fn hipGraphBatchMemOpNodeGetParams(node: Handle, batch: &mut BatchNode) -> c_int;
    fn hipGraphExecBatchMemOpNodeSetParams(executable: Handle, node: Handle, batch: &BatchNode) -> c_int;
    fn hipGraphExecMemcpyNodeSetParams1D(
        executable: Handle,
        node: Handle,
        to: Handle,
        from: Handle,
        len: usize,
        kind: c_int,
    ) -> c_int;
    safe fn hipGraphNodeGetEnabled(executable: Handle, node: Handle, enabled: &mut c_uint) -> c_int;
    safe fn hipGraphNodeGetType(node: Handle, kind: &mut c_int) -> c_int;
    fn hipHostRegister(memory: *mut c_void, len: usize, flags: c_uint) -> c_int;
    fn hipPointerSetAttribute(value: *const c_void, attribute: c_int, pointer: Handle) -> c_int;
    safe fn hipStreamAttachMemAsync(stream: Handle, memory: Handle, len: usize, flags: c_uint) -> c_int;
    safe fn hipStreamCopyAttributes(to: Handle, from: Handle) -> c_int;
    fn hipStreamGetAttribute(stream: Handle, attribute: c_uint, value: *mut c_void) -> c_int;
    safe fn hipStreamGetFlags(stream: Handle, flags: &mut c_uint) -> c_int;
    fn hipStreamSetAttribute(stream: Handle, attribute: c_uint, value: *const c_void) -> c_int;
    fn hipGraphAddMemsetNode(
        node: &mut Handle,
        graph: Handle,
        after: *const Handle,
        count: usize,
        fill: &Fill,
    ) -> c_int;
    fn hipGraphDebugDotPrint(graph: Handle, path: *const c_char, flags: c_uint) -> c_int;
    fn hipGraphDestroyNode(node: Handle) -> c_int;
    fn hipGraphExecMemsetNodeSetParams(executable: Handle, node: Handle, fill: &Fill) -> c_int;
    fn hipGraphGetEdges(graph: Handle, from: *mut Handle, to: *mut Handle, count: &mut usize) -> c_int;
    fn hipGraphNodeGetDependencies(node: Handle, nodes: *mut Handle, count: &mut usize) -> c_int;
    fn hipGraphNodeGetDependentNodes(node: Handle, nodes: *mut Handle, count: &mut usize) -> c_int;
    fn hipGraphRemoveDependencies(graph: Handle, from: &Handle, to: &Handle, count: usize) -> c_int;
    fn hipPointerGetAttribute(data: *mut c_void, attribute: c_int, pointer: Handle) -> c_int;
    fn hipMemcpyBatchAsync(
        to: *const Handle,
        from: *const Handle,
        sizes: *const usize,
        count: usize,
        attributes: *mut c_void,
        attribute_indices: *mut usize,
        attribute_count: usize,
        failed: &mut usize,
        stream: Handle,
    ) -> c_int;
    fn hipMemcpy3DBatchAsync(
        count: usize,
        list: *const BatchedCopy,
        failed: &mut usize,
        flags: u64,
        stream: Handle,
    ) -> c_int;
    fn hipStreamBatchMemOp(stream: Handle, count: c_uint, list: *const [u64; 6], flags: c_uint) -> c_int;
    safe fn hipMallocManaged(memory: &mut Handle, len: usize, flags: c_uint) -> c_int;
    safe fn hipMemAdvise(memory: Handle, len: usize, advice: c_int, device: c_int) -> c_int;
    safe fn hipMemPrefetchAsync(memory: Handle, len: usize, device: c_int, stream: Handle) -> c_int;
    fn hipMemRangeGetAttribute(
        data: *mut c_void,
        size: usize,
        attribute: c_int,
        memory: Handle,
        len: usize,
    ) -> c_int;
    safe fn hipStreamQuery(stream: Handle) -> c_int;
    fn hipStreamWaitValue32(stream: Handle, at: Handle, value: u32, flags: c_uint, mask: u32) -> c_int;
    fn hipStreamWriteValue32(stream: Handle, at: Handle, value: u32, flags: c_uint) -> c_int;
    fn hipStreamWriteValue64(stream: Handle, at: Handle, value: u64, flags: c_uint) -> c_int;
}

/// `hipMemsetParams`.
#[repr(C)]
struct Fill {
    to: Handle,
    size: c_uint,
    height: usize,
    pitch: usize,
    value: c_uint,
    width: usize,
}

/// `hipMemcpy3DBatchOp` between addresses.
#[repr(C)]
struct BatchedCopy {
    from: BoxSide,
    to: BoxSide,
    extent: [usize; 3],
    order: c_int,
    flags: c_uint,
}

/// `hipMemcpy3DOperand` for an address.
#[repr(C)]
struct BoxSide {
    kind: c_int,
    memory: Handle,
    row_length: usize,
    layer_height: usize,
    location: [c_int; 2],
}

/// `hipBatchMemOpNodeParams`.
#[repr(C)]
struct BatchNode {
    context: Handle,
    count: c_uint,
    list: *const [u64; 6],
    flags: c_uint,
}

/// Programs use images and waits for values only if the device says that it has them.
#[test]
fn attributes_name_what_there_is() {
    for (attribute, expected) in [(10013, 1), (10014, 1), (10012, 0)] {
        let mut value = -1;
        assert_eq!(
            (hipDeviceGetAttribute(&mut value, attribute, 0), value),
            (SUCCESS, expected),
            "{attribute}"
        );
    }
}

/// An event without a time, and flags that do not exist.
#[test]
fn events_have_flags() {
    const INVALID_HANDLE: c_int = 400;
    let timed = created(|out| hipEventCreateWithFlags(out, 1));
    let untimed = created(|out| hipEventCreateWithFlags(out, 2));
    // A flag that does not exist, two kinds of fences, an event of several processes with a time.
    for flags in [0x100, 0x6000_0000, 4] {
        assert_eq!(hipEventCreateWithFlags(&mut null_mut(), flags), INVALID_VALUE);
    }
    assert_eq!(hipStreamWaitEvent(null_mut(), timed, 2), INVALID_VALUE);
    let mut milliseconds = 0.0;
    for event in [timed, untimed] {
        assert_eq!(hipEventRecord(event, null_mut()), SUCCESS);
    }
    assert_eq!(hipDeviceSynchronize(), SUCCESS);
    assert_eq!(hipEventElapsedTime(&mut milliseconds, timed, timed), SUCCESS);
    assert_eq!(hipEventElapsedTime(&mut milliseconds, timed, untimed), INVALID_HANDLE);
}

/// A stream waits until another one has written a value.
#[test]
fn streams_wait_for_values() {
    // SAFETY: all addresses are of the allocation, but those that are refused.
    unsafe {
        let memory = created(|out| hipMalloc(out, 64));
        // They do not wait for the default stream, in which other tests work.
        let [first, second] = [(); 2].map(|()| created(|out| hipStreamCreateWithFlags(out, 1)));
        // The low byte of the first value decides; the write after the wait comes after it.
        assert_eq!(hipStreamWaitValue32(first, memory, 7, 0, 0xff), SUCCESS);
        assert_eq!(hipStreamWriteValue64(first, memory.wrapping_byte_add(8), 1 << 40, 0), SUCCESS);
        assert_eq!(hipStreamWriteValue32(second, memory, 0x1006, 0), SUCCESS);
        assert_eq!(hipStreamSynchronize(second), SUCCESS);
        assert_eq!(hipStreamQuery(first), 600);
        assert_eq!(*memory.cast::<u64>().add(1), 0);
        assert_eq!(hipStreamWriteValue32(second, memory, 0x2008, 0), SUCCESS);
        assert_eq!(hipStreamSynchronize(first), SUCCESS);
        assert_eq!((*memory.cast::<u32>(), *memory.cast::<u64>().add(1)), (0x2008, 1 << 40));
        assert_eq!(hipStreamWriteValue32(first, memory.wrapping_byte_add(2), 0, 0), INVALID_VALUE);
        assert_eq!(hipStreamWriteValue64(first, memory.wrapping_byte_add(64), 0, 0), INVALID_VALUE);
        assert_eq!(hipStreamWaitValue32(first, memory, 0, 4, 1), INVALID_VALUE);
        let no_stream = null_mut::<u8>().wrapping_add(0xffff).cast();
        assert_eq!(hipStreamWriteValue32(no_stream, memory, 0, 0), 709);
        for stream in [first, second] {
            assert_eq!(hipStreamDestroy(stream), SUCCESS);
        }
        assert_eq!(hipFree(memory), SUCCESS);
    }
}

#[test]
fn pointers_have_attributes() {
    // SAFETY: all results have the size of their attribute.
    unsafe {
        let memory = created(|out| hipMalloc(out, 100));
        let inside = memory.wrapping_byte_add(40);
        let (mut start, mut size, mut kind, mut ordinal, mut managed) = (0usize, 0usize, 0u32, -1i32, 2u8);
        let get = |attribute, data: *mut c_void| hipPointerGetAttribute(data, attribute, inside);
        assert_eq!(get(11, (&raw mut start).cast()), SUCCESS);
        assert_eq!(get(12, (&raw mut size).cast()), SUCCESS);
        assert_eq!((start, size), (memory as usize, 100));
        // As in ROCm, the size has 32 bits: what follows is not overwritten.
        let mut halves = [7u32, 9];
        assert_eq!((get(12, halves.as_mut_ptr().cast()), halves), (SUCCESS, [100, 9]));
        assert_eq!((get(7, halves.as_mut_ptr().cast()), halves[1]), (SUCCESS, 9));
        assert_eq!(get(4, (&raw mut start).cast()), INVALID_VALUE);
        assert_eq!(get(3, null_mut()), INVALID_VALUE);
        assert_eq!(get(1, (&raw mut start).cast()), 801);
        let data = [(&raw mut kind).cast(), (&raw mut ordinal).cast(), (&raw mut managed).cast()];
        assert_eq!(hipDrvPointerGetAttributes(3, [2, 9, 8].as_ptr(), data.as_ptr(), inside), SUCCESS);
        assert_eq!((kind, ordinal, managed), (2, 0, 0));
        let mut local = 0u32;
        let host = (&raw mut local).cast();
        assert_eq!(hipPointerGetAttribute((&raw mut kind).cast(), 2, host), INVALID_VALUE);
        assert_eq!(hipDrvPointerGetAttributes(3, [2, 9, 8].as_ptr(), data.as_ptr(), host), SUCCESS);
        assert_eq!(hipFree(memory), SUCCESS);
    }
}

#[test]
fn nodes_and_edges_of_graphs_change() {
    // SAFETY: all arrays have the room that the calls say, and the fills are inside the allocation.
    unsafe {
        let memory = created(|out| hipMalloc(out, 16));
        let fill = |value, width| Fill { to: memory, size: 4, height: 1, pitch: 16, value, width };
        let graph = created(|out| hipGraphCreate(out, 0));
        let first = created(|out| hipGraphAddMemsetNode(out, graph, null(), 0, &fill(5, 4)));
        let second = created(|out| hipGraphAddEmptyNode(out, graph, &first, 1));
        let third = created(|out| hipGraphAddEmptyNode(out, graph, &second, 1));
        let executable = created(|out| hipGraphInstantiate(out, graph, 0, 0, 0));
        assert_eq!(hipGraphExecMemsetNodeSetParams(executable, first, &fill(9, 2)), SUCCESS);
        assert_eq!(hipGraphExecMemsetNodeSetParams(executable, graph, &fill(9, 2)), INVALID_VALUE);
        assert_eq!(hipGraphLaunch(executable, null_mut()), SUCCESS);
        assert_eq!(hipStreamSynchronize(null_mut()), SUCCESS);
        assert_eq!(*memory.cast::<[u32; 4]>(), [9, 9, 0, 0]);

        let mut count = 0;
        assert_eq!(hipGraphGetEdges(graph, null_mut(), null_mut(), &mut count), SUCCESS);
        assert_eq!(count, 2);
        let (mut from, mut to) = ([graph; 3], [graph; 3]);
        count = 3;
        assert_eq!(hipGraphGetEdges(graph, from.as_mut_ptr(), to.as_mut_ptr(), &mut count), SUCCESS);
        assert_eq!((count, from, to), (2, [first, second, null_mut()], [second, third, null_mut()]));
        let neighbours = |of: unsafe extern "C" fn(Handle, *mut Handle, &mut usize) -> c_int, node| {
            let (mut found, mut count) = ([null_mut(); 1], 1);
            assert_eq!(of(node, found.as_mut_ptr(), &mut count), SUCCESS);
            (found[0], count)
        };
        assert_eq!(neighbours(hipGraphNodeGetDependencies, second), (first, 1));
        assert_eq!(neighbours(hipGraphNodeGetDependentNodes, second), (third, 1));
        assert_eq!(neighbours(hipGraphNodeGetDependencies, first), (null_mut(), 0));

        let path = std::env::temp_dir().join(format!("wavesim-graph-{}.dot", std::process::id()));
        let name = CString::new(path.to_str().unwrap()).unwrap();
        assert_eq!(hipGraphDebugDotPrint(graph, name.as_ptr(), 0), SUCCESS);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(
            text.contains("n0 [label=\"fill 4 x 1 of 4 bytes\"];") && text.contains("n0 -> n1;"),
            "{text}"
        );

        assert_eq!(hipGraphRemoveDependencies(graph, &first, &second, 1), SUCCESS);
        assert_eq!(neighbours(hipGraphNodeGetDependencies, second), (null_mut(), 0));
        assert_eq!(hipGraphDestroyNode(second), SUCCESS);
        assert_eq!(hipGraphDestroyNode(second), INVALID_VALUE);
        assert_eq!(neighbours(hipGraphNodeGetDependencies, third), (null_mut(), 0));
        assert_eq!(hipFree(memory), SUCCESS);
    }
}

/// Several operations and copies in one call.
#[test]
fn operations_come_in_batches() {
    const WRITE_32: u32 = 2;
    const WAIT_64: u32 = 4;
    const WRITE_64: u32 = 5;
    // SAFETY: all addresses are of the allocation, but those that are refused.
    unsafe {
        let memory = created(|out| hipMalloc(out, 64));
        let at = |offset: usize| memory.wrapping_byte_add(offset) as u64;
        let stream = created(|out| hipStreamCreateWithFlags(out, 1));
        let op = |kind: u32, address, value, flags| [u64::from(kind), address, value, flags, 0, 0];
        // The wait is for the value that the operation before it writes.
        let list = [
            op(WRITE_64, at(0), 1 << 40, 0),
            op(WAIT_64, at(0), 1 << 40, 1),
            op(WRITE_32, at(8), u64::MAX, 0),
        ];
        assert_eq!(hipStreamBatchMemOp(stream, 3, list.as_ptr(), 0), SUCCESS);
        assert_eq!(hipStreamSynchronize(stream), SUCCESS);
        assert_eq!(*memory.cast::<[u32; 4]>(), [0, 1 << 8, u32::MAX, 0]);
        let wrong = [op(WRITE_32, at(0), 5, 0), op(WRITE_32, at(64), 5, 0)];
        assert_eq!(hipStreamBatchMemOp(stream, 2, wrong.as_ptr(), 0), INVALID_VALUE);
        assert_eq!(hipStreamBatchMemOp(stream, 1, [op(99, at(0), 5, 0)].as_ptr(), 0), INVALID_VALUE);
        assert_eq!(hipStreamBatchMemOp(stream, 0, list.as_ptr(), 0), INVALID_VALUE);
        assert_eq!(hipStreamSynchronize(stream), SUCCESS);
        assert_eq!(*memory.cast::<u32>(), 0);

        let source = [1u32, 2, 3];
        let from = [0, 1, 2].map(|index| source.as_ptr().add(index).cast_mut().cast::<c_void>());
        let to = [16, 24, 60].map(|offset| memory.wrapping_byte_add(offset));
        let copy = |sizes: [usize; 3], count, failed: &mut usize| {
            let (to, from, sizes) = (to.as_ptr(), from.as_ptr(), sizes.as_ptr());
            hipMemcpyBatchAsync(to, from, sizes, count, null_mut(), null_mut(), 0, failed, stream)
        };
        let mut failed = 0;
        assert_eq!((copy([4, 4, 8], 3, &mut failed), failed), (INVALID_VALUE, 2));
        assert_eq!((copy([4; 3], 0, &mut failed), failed), (INVALID_VALUE, usize::MAX));
        assert_eq!((copy([8, 4, 4], 3, &mut failed), failed), (SUCCESS, usize::MAX));
        assert_eq!(hipStreamSynchronize(stream), SUCCESS);
        let found = memory.cast::<[u32; 16]>().read();
        assert_eq!((&found[4..7], found[15]), (&[1, 2, 2][..], 3));
        assert_eq!((hipStreamDestroy(stream), hipFree(memory)), (SUCCESS, SUCCESS));
    }
}

/// Advice is an attribute of the pages that contain a range.
#[test]
fn managed_memory_has_advice() {
    const HOST: c_int = -1;
    const NO_DEVICE: c_int = -2;
    // SAFETY: all results have the size that is passed.
    unsafe {
        let memory = created(|out| hipMallocManaged(out, 3 * 4096, 1));
        let at = |offset: usize| memory.wrapping_byte_add(offset);
        let get = |attribute, from, len| {
            let mut value = 99;
            let data = (&raw mut value).cast();
            assert_eq!(hipMemRangeGetAttribute(data, 4, attribute, at(from), len), SUCCESS);
            value
        };
        let all = 3 * 4096;
        assert_eq!([1, 2, 3, 4, 100].map(|of| get(of, 0, all)), [0, NO_DEVICE, NO_DEVICE, NO_DEVICE, 0]);
        assert_eq!(hipMemAdvise(at(100), 4096, 1, 0), SUCCESS);
        assert_eq!((get(1, 0, 8192), get(1, 0, all), get(1, 8192, 1)), (1, 0, 0));
        assert_eq!(hipMemAdvise(at(4096), 8192, 3, HOST), SUCCESS);
        assert_eq!((get(2, 4096, 8192), get(2, 0, all), get(1, 0, 8192)), (HOST, NO_DEVICE, 1));
        assert_eq!((hipMemAdvise(memory, all, 5, 0), hipMemAdvise(memory, 1, 5, HOST)), (SUCCESS, SUCCESS));
        let mut by = [0; 3];
        let read = hipMemRangeGetAttribute(by.as_mut_ptr().cast(), 12, 3, memory, 4096);
        assert_eq!((read, by), (SUCCESS, [HOST, 0, NO_DEVICE]));
        assert_eq!(get(3, 0, all), 0);
        assert_eq!(
            (hipMemAdvise(memory, 4096, 6, 0), get(3, 4096, 1), get(3, 0, all)),
            (SUCCESS, 0, NO_DEVICE)
        );
        assert_eq!((hipMemAdvise(memory, 4096, 100, 0), get(100, 0, 1), get(100, 0, all)), (SUCCESS, 1, 2));
        assert_eq!(hipMemPrefetchAsync(at(4096), 4096, HOST, null_mut()), SUCCESS);
        assert_eq!((get(4, 4096, 4096), get(4, 0, all)), (HOST, NO_DEVICE));
        assert_eq!(hipMemPrefetchAsync(memory, all + 1, 0, null_mut()), INVALID_VALUE);
        assert_eq!(hipMemPrefetchAsync(memory, all, 9, null_mut()), 101);
        for (len, advice) in [(0, 1), (1, 7)] {
            assert_eq!(hipMemAdvise(memory, len, advice, 0), INVALID_VALUE);
        }
        let own = created(|out| hipMalloc(out, 4096));
        assert_eq!(hipMemAdvise(own, 4096, 1, 0), INVALID_VALUE);
        let mut value = 0;
        let read = hipMemRangeGetAttribute((&raw mut value).cast(), 4, 1, own, 4096);
        assert_eq!((read, hipFree(own), hipFree(memory)), (INVALID_VALUE, SUCCESS, SUCCESS));
        assert_eq!(hipMallocManaged(&mut null_mut(), 16, 3), INVALID_VALUE);
    }
}

/// A node of a graph with several operations, and its changes.
#[test]
fn nodes_write_values() {
    const WRITE_32: u64 = 2;
    const BATCH_MEM_OP: c_int = 14;
    // SAFETY: all addresses are of the allocation, but the one that is refused.
    unsafe {
        let memory = created(|out| hipMalloc(out, 64));
        let at = |offset: usize| memory.wrapping_byte_add(offset) as u64;
        let list = |value| [[WRITE_32, at(0), value, 0, 0, 0], [WRITE_32, at(8), value + 1, 0, 0, 0]];
        let node = |list: &[[u64; 6]]| BatchNode {
            context: null_mut(),
            count: list.len() as c_uint,
            list: list.as_ptr(),
            flags: 0,
        };
        let (first, second, wrong) = (list(5), list(9), [[WRITE_32, at(64), 1, 0, 0, 0]]);
        let graph = created(|out| hipGraphCreate(out, 0));
        let mut batch = null_mut();
        assert_eq!(hipGraphAddBatchMemOpNode(&mut batch, graph, null(), 0, &node(&wrong)), INVALID_VALUE);
        assert_eq!(hipGraphAddBatchMemOpNode(&mut batch, graph, null(), 0, &node(&[])), INVALID_VALUE);
        assert_eq!(hipGraphAddBatchMemOpNode(&mut batch, graph, null(), 0, &node(&first)), SUCCESS);
        let empty = created(|out| hipGraphAddEmptyNode(out, graph, &batch, 1));
        let mut kind = 0;
        assert_eq!((hipGraphNodeGetType(batch, &mut kind), kind), (SUCCESS, BATCH_MEM_OP));
        let mut given = node(&[]);
        assert_eq!(hipGraphBatchMemOpNodeGetParams(batch, &mut given), SUCCESS);
        assert_eq!((given.count, *given.list.add(1)), (2, first[1]));
        assert_eq!(hipGraphBatchMemOpNodeGetParams(empty, &mut given), INVALID_VALUE);
        let executable = created(|out| hipGraphInstantiate(out, graph, 0, 0, 0));
        let run = || {
            assert_eq!(hipGraphLaunch(executable, null_mut()), SUCCESS);
            assert_eq!(hipStreamSynchronize(null_mut()), SUCCESS);
            *memory.cast::<[u32; 4]>()
        };
        assert_eq!(run(), [5, 0, 6, 0]);
        assert_eq!(hipGraphExecBatchMemOpNodeSetParams(executable, empty, &node(&second)), INVALID_VALUE);
        assert_eq!(hipGraphExecBatchMemOpNodeSetParams(executable, batch, &node(&second)), SUCCESS);
        assert_eq!(run(), [9, 0, 10, 0]);
        // Once the graph is destroyed, its nodes name nothing, and the instantiated graph still runs.
        let mut enabled = 0;
        assert_eq!(hipGraphDestroy(graph), SUCCESS);
        assert_eq!(hipGraphNodeGetEnabled(executable, batch, &mut enabled), INVALID_VALUE);
        assert_eq!(run(), [9, 0, 10, 0]);
        assert_eq!(hipFree(memory), SUCCESS);
    }
}

/// The direction of a copy, as the program has named it, is final in an instantiated graph.
#[test]
fn directions_of_copies_do_not_change() {
    const DEVICE_TO_DEVICE: c_int = 3;
    const DEFAULT: c_int = 4;
    // SAFETY: all copies are inside the allocation.
    unsafe {
        let memory = created(|out| hipMalloc(out, 64));
        let to = memory.wrapping_byte_add(32);
        let graph = created(|out| hipGraphCreate(out, 0));
        let node =
            created(|out| hipGraphAddMemcpyNode1D(out, graph, null(), 0, to, memory, 8, DEVICE_TO_DEVICE));
        let executable = created(|out| hipGraphInstantiate(out, graph, 0, 0, 0));
        let change = |kind| hipGraphExecMemcpyNodeSetParams1D(executable, node, to, memory, 4, kind);
        assert_eq!((change(DEFAULT), change(DEVICE_TO_DEVICE)), (INVALID_VALUE, SUCCESS));
        assert_eq!(hipFree(memory), SUCCESS);
    }
}

#[test]
fn streams_keep_attributes() {
    const WINDOW: c_uint = 1;
    const PRIORITY: c_uint = 8;
    let [first, second] = [(); 2].map(|()| created(|out| hipStreamCreateWithFlags(out, 1)));
    let (window, mut found, mut priority) = ([3u64; 4], [1u64; 4], -7i32);
    let value = |of: &[u64; 4]| of.as_ptr().cast::<c_void>();
    // SAFETY: all values have the size of their attribute.
    unsafe {
        assert_eq!(hipStreamGetAttribute(first, WINDOW, found.as_mut_ptr().cast()), SUCCESS);
        assert_eq!(found, [0; 4]);
        assert_eq!(hipStreamSetAttribute(first, WINDOW, value(&window)), SUCCESS);
        assert_eq!(hipStreamCopyAttributes(second, first), SUCCESS);
        assert_eq!(hipStreamGetAttribute(second, WINDOW, found.as_mut_ptr().cast()), SUCCESS);
        assert_eq!(found, window);
        assert_eq!(hipStreamGetAttribute(first, PRIORITY, (&raw mut priority).cast()), SUCCESS);
        assert_eq!(priority, 0);
        assert_eq!(hipStreamSetAttribute(first, 99, value(&window)), INVALID_VALUE);
        assert_eq!(hipStreamSetAttribute(first, WINDOW, null()), INVALID_VALUE);
    }
    let mut flags = 0;
    assert_eq!((hipStreamGetFlags(first, &mut flags), flags), (SUCCESS, 1));
    assert_eq!(hipStreamGetFlags(null_mut(), &mut flags), INVALID_VALUE);
}

/// Flags, sizes and addresses that ROCm refuses, too.
#[test]
fn parameters_of_memory_are_checked() {
    const SYNC_MEMOPS: c_int = 6;
    let mut local = [0u64; 8];
    // SAFETY: `out` is valid for writes, and nothing is registered.
    unsafe {
        let mut memory = null_mut();
        for (len, flags) in [(16, 2), (0, 2), (64, 8)] {
            assert_eq!(hipExtMallocWithFlags(&mut memory, len, flags), INVALID_VALUE);
        }
        assert_eq!(hipExtMallocWithFlags(&mut memory, 8, 2), SUCCESS);
        for flags in [0xf0, 0xfff2, u32::MAX] {
            assert_eq!(hipHostRegister(local.as_mut_ptr().cast(), 64, flags), INVALID_VALUE);
        }
        let (mut is_synchronous, on) = (9u8, 1u8);
        let get = |out: *mut u8| hipPointerGetAttribute(out.cast(), SYNC_MEMOPS, memory);
        assert_eq!((get(&raw mut is_synchronous), is_synchronous), (SUCCESS, 0));
        assert_eq!(hipPointerSetAttribute((&raw const on).cast(), SYNC_MEMOPS, memory), SUCCESS);
        assert_eq!((get(&raw mut is_synchronous), is_synchronous), (SUCCESS, 1));
        assert_eq!(hipPointerSetAttribute((&raw const on).cast(), 2, memory), INVALID_VALUE);
        // Memory of the device has no address for the host.
        let mut host = 2usize;
        let data = [(&raw mut host).cast()];
        assert_eq!(hipDrvPointerGetAttributes(1, [4].as_ptr(), data.as_ptr(), memory), SUCCESS);
        assert_eq!(host, 0);
        assert_eq!(hipFree(memory), SUCCESS);
    }
    let managed = created(|out| hipMallocManaged(out, 8192, 1));
    let attach = |memory, len, flags| hipStreamAttachMemAsync(null_mut(), memory, len, flags);
    assert_eq!((attach(managed, 0, 2), attach(managed, 8192, 4)), (SUCCESS, SUCCESS));
    assert_eq!((attach(managed, 8191, 4), attach(managed, 0, 7)), (INVALID_VALUE, INVALID_VALUE));
    assert_eq!(attach(null_mut(), 4, 4), INVALID_VALUE);
    assert_eq!(attach(local.as_mut_ptr().cast(), 4, 4), INVALID_VALUE);
    assert_eq!(hipMemAdvise(managed, 8193, 1, 0), INVALID_VALUE);
    assert_eq!(hipMemAdvise(managed, 8192, 1, 0), SUCCESS);
    // SAFETY: the memory is freed once.
    assert_eq!(unsafe { hipFree(managed) }, SUCCESS);
}

/// Boxes: three rows of two bytes in each of two layers, and a copy that is refused.
#[test]
fn boxes_are_copied_in_batches() {
    // SAFETY: all copies are inside the allocation, but the one that is refused.
    unsafe {
        let memory = created(|out| hipMalloc(out, 128));
        let bytes = std::slice::from_raw_parts_mut(memory.cast::<u8>(), 128);
        bytes.iter_mut().zip(0..).for_each(|(byte, at)| *byte = if at < 64 { at } else { 0 });
        let side = |at: usize, row_length, layer_height| BoxSide {
            kind: 1,
            memory: memory.wrapping_byte_add(at),
            row_length,
            layer_height,
            location: [1, 0],
        };
        let copy = |from, to| BatchedCopy { from, to, extent: [2, 3, 2], order: 1, flags: 0 };
        let mut failed = 0;
        let mut run = |list: &[BatchedCopy]| {
            let status = hipMemcpy3DBatchAsync(list.len(), list.as_ptr(), &mut failed, 0, null_mut());
            (status, failed)
        };
        let wrong = [copy(side(0, 4, 5), side(64, 0, 0)), copy(side(0, 1, 0), side(64, 0, 0))];
        assert_eq!(run(&wrong), (INVALID_VALUE, 1));
        assert_eq!(run(&[]), (INVALID_VALUE, usize::MAX));
        assert_eq!(run(&wrong[..1]), (SUCCESS, usize::MAX));
        assert_eq!(hipStreamSynchronize(null_mut()), SUCCESS);
        assert_eq!(bytes[64..77], [0, 1, 4, 5, 8, 9, 20, 21, 24, 25, 28, 29, 0]);
        assert_eq!(hipFree(memory), SUCCESS);
    }
}
