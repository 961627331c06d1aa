//! Memory that graphs allocate, attributes of kernels in graphs, nodes of any type, memory pools.

use super::{Dim3, HostNode, INVALID_VALUE, NOT_SUPPORTED, SUCCESS, created, kernel};
use super::{
    Handle, hipFree, hipGraphCreate, hipGraphDestroy, hipGraphInstantiate, hipGraphLaunch, hipMemcpyAsync,
    hipStreamBeginCapture, hipStreamCreate, hipStreamEndCapture, hipStreamSynchronize,
};
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

unsafe extern "C" {
    safe fn hipDeviceGetDefaultMemPool(pool: &mut Handle, device: c_int) -> c_int;
    safe fn hipDeviceGetGraphMemAttribute(device: c_int, attribute: c_int, value: &mut u64) -> c_int;
    safe fn hipDeviceGetMemPool(pool: &mut Handle, device: c_int) -> c_int;
    safe fn hipDeviceSetGraphMemAttribute(device: c_int, attribute: c_int, value: &mut u64) -> c_int;
    safe fn hipDeviceSetMemPool(device: c_int, pool: Handle) -> c_int;
    fn hipFreeAsync(memory: Handle, stream: Handle) -> c_int;
    fn hipGraphAddKernelNode(
        node: &mut Handle,
        graph: Handle,
        after: *const Handle,
        count: usize,
        parameters: &KernelNode,
    ) -> c_int;
    fn hipGraphAddMemAllocNode(
        node: &mut Handle,
        graph: Handle,
        after: *const Handle,
        count: usize,
        parameters: &mut AllocationNode,
    ) -> c_int;
    fn hipGraphAddMemFreeNode(
        node: &mut Handle,
        graph: Handle,
        after: *const Handle,
        count: usize,
        memory: Handle,
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
    fn hipGraphAddNode(
        node: &mut Handle,
        graph: Handle,
        after: *const Handle,
        count: usize,
        parameters: &mut NodeParameters,
    ) -> c_int;
    safe fn hipGraphExecDestroy(executable: Handle) -> c_int;
    fn hipGraphExecNodeSetParams(executable: Handle, node: Handle, parameters: &mut NodeParameters) -> c_int;
    fn hipGraphGetNodes(graph: Handle, nodes: *mut Handle, count: &mut usize) -> c_int;
    safe fn hipGraphInstantiateWithFlags(executable: &mut Handle, graph: Handle, flags: u64) -> c_int;
    safe fn hipGraphKernelNodeCopyAttributes(from: Handle, to: Handle) -> c_int;
    fn hipGraphKernelNodeGetAttribute(node: Handle, attribute: c_int, value: *mut c_void) -> c_int;
    fn hipGraphKernelNodeSetAttribute(node: Handle, attribute: c_int, value: *const c_void) -> c_int;
    safe fn hipGraphMemAllocNodeGetParams(node: Handle, parameters: &mut AllocationNode) -> c_int;
    safe fn hipGraphMemFreeNodeGetParams(node: Handle, memory: &mut Handle) -> c_int;
    safe fn hipGraphNodeGetType(node: Handle, kind: &mut c_int) -> c_int;
    fn hipGraphNodeSetParams(node: Handle, parameters: &mut NodeParameters) -> c_int;
    fn hipMallocAsync(memory: &mut Handle, len: usize, stream: Handle) -> c_int;
    fn hipMallocFromPoolAsync(memory: &mut Handle, len: usize, pool: Handle, stream: Handle) -> c_int;
    fn hipMemPoolCreate(pool: &mut Handle, properties: &Pool) -> c_int;
    safe fn hipMemPoolDestroy(pool: Handle) -> c_int;
    safe fn hipMemPoolGetAccess(flags: &mut c_int, pool: Handle, location: &[c_int; 2]) -> c_int;
    fn hipMemPoolGetAttribute(pool: Handle, attribute: c_int, value: *mut c_void) -> c_int;
    fn hipMemPoolSetAccess(pool: Handle, descriptions: *const [c_int; 3], count: usize) -> c_int;
    fn hipMemPoolSetAttribute(pool: Handle, attribute: c_int, value: *mut c_void) -> c_int;
    fn hipMemcpy(to: *mut c_void, from: Handle, len: usize, kind: c_int) -> c_int;
    fn hipMemsetAsync(to: Handle, value: c_int, len: usize, stream: Handle) -> c_int;
}

/// `hipMemPoolProps`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Pool {
    pub kind: c_int,
    pub handle_types: c_int,
    pub location: [c_int; 2],
    pub windows_attributes: usize,
    pub max: usize,
    pub reserved: [u8; 56],
}

/// Pinned memory of the first device.
pub const POOL: Pool =
    Pool { kind: 1, handle_types: 0, location: [1, 0], windows_attributes: 0, max: 0, reserved: [0; 56] };

/// `hipMemAllocNodeParams`.
#[repr(C)]
#[derive(Clone, Copy)]
struct AllocationNode {
    pool: Pool,
    access: usize,
    access_count: usize,
    len: usize,
    memory: Handle,
}

const fn allocation(len: usize) -> AllocationNode {
    AllocationNode { pool: POOL, access: 0, access_count: 0, len, memory: null_mut() }
}

/// `hipKernelNodeParams`.
#[repr(C)]
struct KernelNode {
    block: Dim3,
    extra: usize,
    function: Handle,
    grid: Dim3,
    arguments: *mut *mut c_void,
    dynamic_lds: c_uint,
}

/// `hipMemsetParams`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Fill {
    to: Handle,
    size: c_uint,
    height: usize,
    pitch: usize,
    value: c_uint,
    width: usize,
}

/// `hipGraphNodeParams`, with the members that the tests use.
#[repr(C)]
struct NodeParameters {
    kind: c_int,
    reserved: [c_int; 3],
    of: Of,
    reserved_end: i64,
}

#[repr(C)]
union Of {
    size: [i64; 29],
    fill: Fill,
    allocation: AllocationNode,
    host: std::mem::ManuallyDrop<HostNode>,
}

fn parameters(kind: c_int, of: Of) -> NodeParameters {
    NodeParameters { kind, reserved: [0; 3], of, reserved_end: 0 }
}

fn used(attribute: c_int) -> u64 {
    let mut value = u64::MAX;
    assert_eq!(hipDeviceGetGraphMemAttribute(0, attribute, &mut value), SUCCESS);
    value
}

/// Held by tests that look at how much memory graphs have allocated.
static MEMORY: Mutex<()> = Mutex::new(());

#[test]
fn graphs_allocate_memory() {
    let _alone = MEMORY.lock();
    let stream = created(|out| hipStreamCreate(out));
    let run = |executable| (hipGraphLaunch(executable, stream), hipStreamSynchronize(stream));
    let mut found = 0u32;
    // SAFETY: the memory of the host outlives the launches, and lists of dependencies have the lengths that are passed.
    unsafe {
        assert_eq!((used(0), hipDeviceSetGraphMemAttribute(0, 1, &mut 0)), (0, SUCCESS));
        assert_eq!(hipDeviceSetGraphMemAttribute(0, 0, &mut 0), INVALID_VALUE);
        let graph = created(|out| hipGraphCreate(out, 0));
        let mut given = allocation(5000);
        let first = created(|out| hipGraphAddMemAllocNode(out, graph, null(), 0, &mut given));
        let memory = given.memory;
        let mut returned = allocation(0);
        assert_eq!(hipGraphMemAllocNodeGetParams(first, &mut returned), SUCCESS);
        assert_eq!((returned.memory, returned.len), (memory, 5000));
        // 32 work-items count themselves: the memory is zero at first, on every launch.
        let mut arguments = [(&raw const memory).cast_mut().cast::<c_void>()];
        let node = KernelNode {
            block: Dim3([32, 1, 1]),
            extra: 0,
            function: kernel(c"count"),
            grid: Dim3([1; 3]),
            arguments: arguments.as_mut_ptr(),
            dynamic_lds: 0,
        };
        let second = created(|out| hipGraphAddKernelNode(out, graph, &first, 1, &node));
        let host = (&raw mut found).cast::<c_void>();
        let copy = created(|out| hipGraphAddMemcpyNode1D(out, graph, &second, 1, host, memory, 4, 2));
        let beyond = memory.wrapping_byte_add(4998);
        assert_eq!(
            hipGraphAddMemcpyNode1D(&mut null_mut(), graph, &second, 1, host, beyond, 4, 2),
            INVALID_VALUE
        );

        // Without a node that frees it, the memory outlives the launch.
        let executable = created(|out| hipGraphInstantiate(out, graph, 0, 0, 0));
        assert_eq!(hipGraphInstantiate(&mut null_mut(), graph, 0, 0, 0), NOT_SUPPORTED);
        assert_eq!((run(executable), found), ((SUCCESS, SUCCESS), 32));
        assert_eq!((used(0), used(1), used(2)), (5000, 5000, 5000));
        assert_eq!(hipGraphLaunch(executable, stream), INVALID_VALUE);
        found = 0;
        assert_eq!((hipMemcpy(host, memory, 4, 2), found), (SUCCESS, 32));
        assert_eq!((hipFree(memory), hipFree(memory), used(0)), (SUCCESS, INVALID_VALUE, 0));
        assert_eq!((run(executable), found), ((SUCCESS, SUCCESS), 32));
        assert_eq!((hipFreeAsync(memory, stream), hipStreamSynchronize(stream)), (SUCCESS, SUCCESS));
        assert_eq!(hipGraphExecDestroy(executable), SUCCESS);

        // A launch frees what the last one has left, if the program asks for it.
        let executable = created(|out| hipGraphInstantiateWithFlags(out, graph, 1));
        for _ in 0..2 {
            assert_eq!((run(executable), found), ((SUCCESS, SUCCESS), 32));
        }
        assert_eq!((hipGraphExecDestroy(executable), used(0)), (SUCCESS, 5000));
        // Another graph frees it.
        let other = created(|out| hipGraphCreate(out, 0));
        created(|out| hipGraphAddMemFreeNode(out, other, null(), 0, memory));
        let executable = created(|out| hipGraphInstantiate(out, other, 0, 0, 0));
        assert_eq!((run(executable), used(0)), ((SUCCESS, SUCCESS), 0));
        assert_eq!(hipGraphLaunch(executable, stream), INVALID_VALUE);

        let free = created(|out| hipGraphAddMemFreeNode(out, graph, &copy, 1, memory));
        assert_eq!(created(|out| hipGraphMemFreeNodeGetParams(free, out)), memory);
        assert_eq!(hipGraphMemFreeNodeGetParams(first, &mut null_mut()), INVALID_VALUE);
        assert_eq!(hipGraphAddMemFreeNode(&mut null_mut(), graph, &copy, 1, memory), INVALID_VALUE);
        assert_eq!(hipGraphAddMemFreeNode(&mut null_mut(), graph, &copy, 1, host), INVALID_VALUE);
        let executable = created(|out| hipGraphInstantiate(out, graph, 0, 0, 0));
        assert_eq!(hipGraphDestroy(graph), SUCCESS);
        for _ in 0..2 {
            assert_eq!((run(executable), found, used(0)), ((SUCCESS, SUCCESS), 32, 0));
        }
        assert_eq!(hipGraphExecDestroy(executable), SUCCESS);
    }
}

#[test]
fn captures_allocate_memory() {
    let _alone = MEMORY.lock();
    let stream = created(|out| hipStreamCreate(out));
    let mut found = 0u32;
    // SAFETY: the memory of the host outlives the launches.
    unsafe {
        assert_eq!(hipStreamBeginCapture(stream, 0), SUCCESS);
        let memory = created(|out| hipMallocAsync(out, 64, stream));
        assert_eq!(hipMemsetAsync(memory, 7, 64, stream), SUCCESS);
        assert_eq!(hipMemcpyAsync((&raw mut found).cast(), memory, 4, 2, stream), SUCCESS);
        assert_eq!(hipFreeAsync(memory, stream), SUCCESS);
        let graph = created(|out| hipStreamEndCapture(stream, out));
        let (mut nodes, mut count) = ([null_mut(); 4], 4);
        assert_eq!(hipGraphGetNodes(graph, nodes.as_mut_ptr(), &mut count), SUCCESS);
        let kinds = nodes.map(|node| {
            let mut kind = -1;
            assert_eq!(hipGraphNodeGetType(node, &mut kind), SUCCESS);
            kind
        });
        assert_eq!((count, kinds), (4, [10, 2, 1, 11]));
        assert_eq!(found, 0);
        let executable = created(|out| hipGraphInstantiate(out, graph, 0, 0, 0));
        for _ in 0..2 {
            found = 0;
            assert_eq!(
                (hipGraphLaunch(executable, stream), hipStreamSynchronize(stream)),
                (SUCCESS, SUCCESS)
            );
            assert_eq!((found, used(0)), (0x0707_0707, 0));
        }
        assert_eq!(hipFree(memory), INVALID_VALUE);
    }
}

#[test]
fn kernels_of_graphs_have_attributes() {
    const COOPERATIVE: c_int = 2;
    const PRIORITY: c_int = 8;
    // SAFETY: the kernel takes no arguments, and values have the size of their attribute.
    unsafe {
        let graph = created(|out| hipGraphCreate(out, 0));
        let empty = kernel(c"empty");
        let (block, grid, arguments) = (Dim3([1; 3]), Dim3([1; 3]), null_mut());
        let node = KernelNode { block, extra: 0, function: empty, grid, arguments, dynamic_lds: 0 };
        let [first, second] =
            [0, 1].map(|_| created(|out| hipGraphAddKernelNode(out, graph, null(), 0, &node)));
        let set = |node, attribute, value: i32| {
            hipGraphKernelNodeSetAttribute(node, attribute, (&raw const value).cast())
        };
        let get = |node, attribute| {
            let mut value = -1;
            assert_eq!(
                hipGraphKernelNodeGetAttribute(node, attribute, (&raw mut value).cast::<c_void>()),
                SUCCESS
            );
            value
        };
        assert_eq!((get(first, COOPERATIVE), get(first, PRIORITY)), (0, 0));
        assert_eq!((set(first, COOPERATIVE, 1), set(first, PRIORITY, -1)), (SUCCESS, SUCCESS));
        assert_eq!(hipGraphKernelNodeCopyAttributes(first, second), SUCCESS);
        assert_eq!((get(second, COOPERATIVE), get(second, PRIORITY)), (1, -1));
        // A window with a ratio of hits of 2, and one without.
        let mut window = [0u32; 8];
        window[3] = 2f32.to_bits();
        assert_eq!(hipGraphKernelNodeSetAttribute(first, 1, window.as_ptr().cast()), INVALID_VALUE);
        window[3] = 0.5f32.to_bits();
        assert_eq!(hipGraphKernelNodeSetAttribute(first, 1, window.as_ptr().cast()), SUCCESS);
        let mut returned = [9u32; 8];
        assert_eq!(hipGraphKernelNodeGetAttribute(first, 1, returned.as_mut_ptr().cast()), SUCCESS);
        assert_eq!(returned, window);
        assert_eq!((set(first, 3, 1), set(graph, COOPERATIVE, 1)), (INVALID_VALUE, INVALID_VALUE));
        assert_eq!(hipGraphKernelNodeSetAttribute(first, COOPERATIVE, null()), INVALID_VALUE);
        let executable = created(|out| hipGraphInstantiate(out, graph, 0, 0, 0));
        assert_eq!(hipGraphLaunch(executable, null_mut()), SUCCESS);
        assert_eq!(hipStreamSynchronize(null_mut()), SUCCESS);
    }
}

#[test]
fn nodes_of_any_type() {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    extern "C" fn count_up(_: *mut c_void) {
        COUNT.fetch_add(1, Ordering::SeqCst);
    }
    const MEMSET: c_int = 2;
    const HOST: c_int = 3;
    const MEM_ALLOC: c_int = 10;
    let _alone = MEMORY.lock();
    let stream = created(|out| hipStreamCreate(out));
    // SAFETY: parameters are of the type that they name.
    unsafe {
        let graph = created(|out| hipGraphCreate(out, 0));
        let mut given = parameters(MEM_ALLOC, Of { allocation: allocation(16) });
        let first = created(|out| hipGraphAddNode(out, graph, null(), 0, &mut given));
        let to = given.of.allocation.memory;
        let fill = |value| {
            let fill = Fill { to, size: 4, height: 1, pitch: 16, value, width: 4 };
            parameters(MEMSET, Of { fill })
        };
        let second = created(|out| hipGraphAddNode(out, graph, &first, 1, &mut fill(5)));
        let host = || {
            let host = HostNode { function: count_up, argument: null_mut() };
            parameters(HOST, Of { host: std::mem::ManuallyDrop::new(host) })
        };
        created(|out| hipGraphAddNode(out, graph, &second, 1, &mut host()));
        assert_eq!(hipGraphNodeSetParams(second, &mut fill(6)), SUCCESS);
        assert_eq!(hipGraphNodeSetParams(second, &mut host()), INVALID_VALUE);
        assert_eq!(hipGraphNodeSetParams(first, &mut given), NOT_SUPPORTED);
        let mut unknown = parameters(99, Of { size: [0; 29] });
        assert_eq!(hipGraphAddNode(&mut null_mut(), graph, null(), 0, &mut unknown), INVALID_VALUE);
        let executable = created(|out| hipGraphInstantiate(out, graph, 0, 0, 0));
        let launch = || {
            assert_eq!(
                (hipGraphLaunch(executable, stream), hipStreamSynchronize(stream)),
                (SUCCESS, SUCCESS)
            );
            let mut found = [0u32; 4];
            assert_eq!(hipMemcpy(found.as_mut_ptr().cast(), to, 16, 2), SUCCESS);
            assert_eq!(hipFree(to), SUCCESS);
            found
        };
        assert_eq!(launch(), [6; 4]);
        assert_eq!(hipGraphExecNodeSetParams(executable, second, &mut fill(8)), SUCCESS);
        assert_eq!((launch(), COUNT.load(Ordering::SeqCst)), ([8; 4], 2));
    }
}

#[test]
fn pools_count_and_limit_allocations() {
    const OUT_OF_MEMORY: c_int = 2;
    const INVALID_DEVICE: c_int = 101;
    let stream = created(|out| hipStreamCreate(out));
    // SAFETY: values have the size of their attribute.
    unsafe {
        let pool = created(|out| hipMemPoolCreate(out, &Pool { max: 1000, ..POOL }));
        let get = |attribute| {
            let mut value = 0u64;
            assert_eq!(hipMemPoolGetAttribute(pool, attribute, (&raw mut value).cast()), SUCCESS);
            value
        };
        let set = |attribute, mut value: u64| {
            hipMemPoolSetAttribute(pool, attribute, (&raw mut value).cast::<c_void>())
        };
        assert_eq!([1, 2, 3, 4, 5, 6, 7, 8].map(get), [1, 1, 1, 0, 0, 0, 0, 0]);
        assert_eq!((set(2, 0), set(4, 77), get(2), get(4)), (SUCCESS, SUCCESS, 0, 77));
        let memory = created(|out| hipMallocFromPoolAsync(out, 600, pool, stream));
        assert_eq!(hipMallocFromPoolAsync(&mut null_mut(), 401, pool, stream), OUT_OF_MEMORY);
        assert_eq!((get(7), get(8)), (600, 600));
        assert_eq!((hipFreeAsync(memory, stream), get(7), get(8)), (SUCCESS, 0, 600));
        assert_eq!((set(8, 1), set(8, 0), get(8)), (INVALID_VALUE, SUCCESS, 0));

        // The pool becomes the one from which the device allocates.
        let default = created(|out| hipDeviceGetDefaultMemPool(out, 0));
        assert_eq!(hipDeviceSetMemPool(0, pool), SUCCESS);
        assert_eq!(created(|out| hipDeviceGetMemPool(out, 0)), pool);
        let memory = created(|out| hipMallocAsync(out, 10, stream));
        assert_eq!((get(7), hipFree(memory), get(7)), (10, SUCCESS, 0));

        let mut flags = -1;
        assert_eq!((hipMemPoolGetAccess(&mut flags, pool, &[1, 0]), flags), (SUCCESS, 3));
        assert_eq!(hipMemPoolSetAccess(pool, &[1, 0, 3], 1), SUCCESS);
        assert_eq!(hipMemPoolSetAccess(pool, &[1, 0, 0], 1), INVALID_DEVICE);
        assert_eq!(hipMemPoolSetAccess(pool, &[1, 9, 3], 1), INVALID_DEVICE);
        assert_eq!(hipMemPoolSetAccess(pool, &[0, 0, 3], 1), INVALID_VALUE);
        assert_eq!((hipMemPoolDestroy(default), hipMemPoolDestroy(pool)), (INVALID_VALUE, SUCCESS));
        assert_eq!((hipMemPoolDestroy(pool), set(4, 0)), (INVALID_VALUE, INVALID_VALUE));
        assert_eq!(created(|out| hipDeviceGetMemPool(out, 0)), default);
        assert_eq!(hipMemPoolCreate(&mut null_mut(), &Pool { location: [1, 9], ..POOL }), INVALID_VALUE);
    }
}
