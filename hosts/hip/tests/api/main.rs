//! Tests of the library's functions as called by C programs: synchronisation and errors.
#![cfg(target_os = "linux")]

mod callbacks;
mod device;
mod graph_memory;
mod graphs;
mod launches;
mod op;
mod pools;
mod process;
mod profiling;
mod rtc;
mod status;
mod values;
mod virtual_memory;

use amdhip64 as _;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;
use wavesim::loader::assembly::AssemblyOptions;

type Handle = *mut c_void;
type HostFunction = extern "C" fn(*mut c_void);

unsafe extern "C" {
    safe fn hipApiName(id: u32) -> *const c_char;
    fn hipCreateSurfaceObject(surface: &mut Handle, resource: *const c_void) -> c_int;
    safe fn hipDestroySurfaceObject(surface: Handle) -> c_int;
    fn hipSetupArgument(argument: *const c_void, size: usize, offset: usize) -> c_int;
    safe fn hipDeviceSynchronize() -> c_int;
    safe fn hipEventCreate(event: &mut Handle) -> c_int;
    safe fn hipEventElapsedTime(milliseconds: &mut f32, start: Handle, stop: Handle) -> c_int;
    safe fn hipEventRecord(event: Handle, stream: Handle) -> c_int;
    fn hipExtLaunchKernel(
        function: Handle,
        grid: Dim3,
        block: Dim3,
        arguments: *mut *mut c_void,
        dynamic_lds: usize,
        stream: Handle,
        start: Handle,
        stop: Handle,
        flags: c_int,
    ) -> c_int;
    fn hipExtModuleLaunchKernel(
        function: Handle,
        items_x: c_uint,
        items_y: c_uint,
        items_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        dynamic_lds: usize,
        stream: Handle,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void,
        start: Handle,
        stop: Handle,
        flags: c_uint,
    ) -> c_int;
    fn hipFree(memory: Handle) -> c_int;
    safe fn hipGraphAddDependencies(graph: Handle, from: &Handle, to: &Handle, count: usize) -> c_int;
    fn hipGraphAddEmptyNode(node: &mut Handle, graph: Handle, after: *const Handle, count: usize) -> c_int;
    safe fn hipGraphClone(clone: &mut Handle, graph: Handle) -> c_int;
    safe fn hipGraphCreate(graph: &mut Handle, flags: c_uint) -> c_int;
    safe fn hipGraphDestroy(graph: Handle) -> c_int;
    fn hipGraphAddHostNode(
        node: &mut Handle,
        graph: Handle,
        after: *const Handle,
        count: usize,
        parameters: &HostNode,
    ) -> c_int;
    fn hipGraphGetNodes(graph: Handle, nodes: *mut Handle, count: &mut usize) -> c_int;
    fn hipGraphGetRootNodes(graph: Handle, nodes: *mut Handle, count: &mut usize) -> c_int;
    safe fn hipGraphInstantiate(out: &mut Handle, graph: Handle, _: usize, _: usize, _: usize) -> c_int;
    safe fn hipGraphLaunch(graph: Handle, stream: Handle) -> c_int;
    fn hipHostMalloc(memory: &mut *mut i32, len: usize, flags: c_uint) -> c_int;
    fn hipLaunchHostFunc(stream: Handle, function: HostFunction, argument: *mut c_void) -> c_int;
    fn hipDrvLaunchKernelEx(
        config: &ModuleLaunchConfig,
        function: Handle,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> c_int;
    fn hipLaunchKernelExC(config: &LaunchConfig, function: Handle, arguments: *mut *mut c_void) -> c_int;
    fn hipMalloc(memory: &mut Handle, len: usize) -> c_int;
    fn hipMemcpyAsync(to: Handle, from: Handle, len: usize, kind: c_int, stream: Handle) -> c_int;
    fn hipMemcpyPeer(to: Handle, _: c_int, from: Handle, _: c_int, len: usize) -> c_int;
    fn hipMemcpyToSymbol(symbol: usize, from: *const c_void, len: usize, at: usize, kind: c_int) -> c_int;
    fn hipMemset(to: Handle, value: c_int, len: usize) -> c_int;
    fn hipMemset2D(to: Handle, pitch: usize, value: c_int, width: usize, height: usize) -> c_int;
    fn hipMemset3D(to: Pitched, value: c_int, extent: Extent) -> c_int;
    fn hipMemsetD16(to: Handle, value: u16, count: usize) -> c_int;
    fn hipModuleGetFunction(function: &mut Handle, module: Handle, name: *const c_char) -> c_int;
    fn hipModuleLoadData(module: &mut Handle, data: *const u8) -> c_int;
    safe fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
        groups: &mut c_int,
        function: Handle,
        block: c_int,
        dynamic_lds: usize,
    ) -> c_int;
    safe fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        groups: &mut c_int,
        function: Handle,
        block: c_int,
        dynamic_lds: usize,
        flags: c_uint,
    ) -> c_int;
    safe fn hipModuleOccupancyMaxPotentialBlockSizeWithFlags(
        groups: &mut c_int,
        block: &mut c_int,
        function: Handle,
        dynamic_lds: usize,
        limit: c_int,
        flags: c_uint,
    ) -> c_int;
    safe fn hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        groups: &mut c_int,
        function: Handle,
        block: c_int,
        dynamic_lds: usize,
        flags: c_uint,
    ) -> c_int;
    safe fn hipStreamBeginCapture(stream: Handle, mode: c_int) -> c_int;
    safe fn hipStreamCreate(stream: &mut Handle) -> c_int;
    safe fn hipStreamDestroy(stream: Handle) -> c_int;
    safe fn hipStreamEndCapture(stream: Handle, graph: &mut Handle) -> c_int;
    safe fn hipStreamIsCapturing(stream: Handle, status: &mut c_int) -> c_int;
    safe fn hipStreamSynchronize(stream: Handle) -> c_int;
    safe fn hipStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) -> c_int;
    fn __hipRegisterFatBinary(wrapper: &Wrapper) -> Handle;
    fn __hipRegisterVar(
        fat: Handle,
        host: usize,
        _: *const c_char,
        name: *const c_char,
        _: c_int,
        _: usize,
        _: c_int,
        _: c_int,
    );
}

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Dim3([c_uint; 3]);

/// `hipHostNodeParams`.
#[repr(C)]
struct HostNode {
    function: HostFunction,
    argument: *mut c_void,
}

/// `hipPitchedPtr`.
#[repr(C)]
struct Pitched {
    memory: Handle,
    pitch: usize,
    width: usize,
    height: usize,
}

/// `hipExtent`.
#[repr(C)]
struct Extent {
    width: usize,
    height: usize,
    depth: usize,
}

/// `hipLaunchConfig_t`.
#[repr(C)]
struct LaunchConfig {
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_lds: usize,
    stream: Handle,
    attributes: *const Attribute,
    count: c_uint,
}

/// `HIP_LAUNCH_CONFIG`.
#[repr(C)]
struct ModuleLaunchConfig {
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_lds: c_uint,
    stream: Handle,
    attributes: *const Attribute,
    count: c_uint,
}

/// `hipLaunchAttribute`.
#[repr(C)]
struct Attribute {
    id: u32,
    padding: u32,
    value: [u32; 16],
}

/// Wrapper of a fat binary in programs.
#[repr(C)]
struct Wrapper {
    magic: u32,
    version: u32,
    binary: *const u8,
    unused: usize,
}

/// `hipError_t`.
const SUCCESS: c_int = 0;
const INVALID_VALUE: c_int = 1;
const INVALID_CONFIGURATION: c_int = 9;
const INVALID_MEMCPY_DIRECTION: c_int = 21;
const INVALID_HANDLE: c_int = 400;
const NOT_FOUND: c_int = 500;
const CONTEXT_IS_DESTROYED: c_int = 709;
const COOPERATIVE_LAUNCH_TOO_LARGE: c_int = 720;
const NOT_SUPPORTED: c_int = 801;
const STREAM_CAPTURE_MERGE: c_int = 902;
const STREAM_CAPTURE_IMPLICIT: c_int = 906;
const CAPTURED_EVENT: c_int = 907;

/// Calls a function that creates an object, and returns its handle.
fn created(create: impl FnOnce(&mut Handle) -> c_int) -> Handle {
    let mut handle = null_mut();
    assert_eq!(create(&mut handle), SUCCESS);
    handle
}

/// Adds 1 after a delay.
extern "C" fn add_late(count: *mut c_void) {
    std::thread::sleep(Duration::from_millis(30));
    // SAFETY: the pointer refers to an `AtomicI32` of the test, which waits for this function.
    unsafe { &*count.cast::<AtomicI32>() }.fetch_add(1, Ordering::SeqCst);
}

/// Submits slow work to a stream.
fn submit_slow(stream: Handle, count: &'static AtomicI32) {
    let argument: *const AtomicI32 = count;
    // SAFETY: the counter is static.
    assert_eq!(unsafe { hipLaunchHostFunc(stream, add_late, argument.cast_mut().cast()) }, SUCCESS);
}

/// Returns a code object with a variable and kernels: `empty`, and `count`, which counts its work-items, with and
/// without a kernarg size in its descriptor.
fn object() -> Vec<u8> {
    let source = "\
  .globl empty
  .p2align 8
  .type empty,@function
empty:
  s_endpgm
  .size empty, .-empty
  .globl count
  .p2align 8
  .type count,@function
count:
  s_load_b64 s[0:1], s[0:1], 0x0
  v_dual_mov_b32 v0, 0 :: v_dual_mov_b32 v1, 1
  s_waitcnt lgkmcnt(0)
  global_atomic_add_u32 v0, v1, s[0:1]
  s_endpgm
  .size count, .-count
  .globl count_without_size
  .p2align 8
  .type count_without_size,@function
count_without_size:
  s_load_b64 s[0:1], s[0:1], 0x0
  v_dual_mov_b32 v0, 0 :: v_dual_mov_b32 v1, 1
  s_waitcnt lgkmcnt(0)
  global_atomic_add_u32 v0, v1, s[0:1]
  s_endpgm
  .size count_without_size, .-count_without_size
  .rodata
  .p2align 6
  .amdhsa_kernel empty
    .amdhsa_next_free_vgpr 1
    .amdhsa_next_free_sgpr 1
  .end_amdhsa_kernel
  .p2align 6
  .amdhsa_kernel count
    .amdhsa_group_segment_fixed_size 1024
    .amdhsa_kernarg_size 8
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_next_free_vgpr 2
    .amdhsa_next_free_sgpr 4
  .end_amdhsa_kernel
  .p2align 6
  .amdhsa_kernel count_without_size
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_next_free_vgpr 2
    .amdhsa_next_free_sgpr 4
  .end_amdhsa_kernel
  .data
  .globl number
  .type number,@object
  .size number, 4
number:
  .long 7
  .amdgpu_metadata
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: empty
    .symbol: empty.kd
    .kernarg_segment_size: 0
    .max_flat_workgroup_size: 1024
    .sgpr_count: 1
    .vgpr_count: 1
    .args: []
  - .name: count
    .symbol: count.kd
    .kernarg_segment_size: 8
    .max_flat_workgroup_size: 256
    .sgpr_count: 4
    .vgpr_count: 2
    .args:
      - { .size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global }
  - .name: count_without_size
    .symbol: count_without_size.kd
    .kernarg_segment_size: 8
    .max_flat_workgroup_size: 256
    .sgpr_count: 4
    .vgpr_count: 2
    .args:
      - { .size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global }
  .end_amdgpu_metadata
";
    AssemblyOptions::default().assemble("test.s", source).unwrap_or_else(|e| panic!("{}", e[0])).object
}

/// Returns a kernel of [`object`].
fn kernel(name: &CStr) -> Handle {
    let object = object();
    // SAFETY: the object is complete.
    unsafe {
        let module = created(|out| hipModuleLoadData(out, object.as_ptr()));
        created(|out| hipModuleGetFunction(out, module, name.as_ptr()))
    }
}

#[test]
fn synchronisation_includes_destroyed_streams() {
    static COUNT: AtomicI32 = AtomicI32::new(0);
    let stream = created(|out| hipStreamCreate(out));
    submit_slow(stream, &COUNT);
    assert_eq!(hipStreamDestroy(stream), SUCCESS);
    assert_eq!(hipStreamDestroy(stream), CONTEXT_IS_DESTROYED);
    assert_eq!(hipStreamSynchronize(stream), CONTEXT_IS_DESTROYED);
    assert_eq!(hipStreamDestroy(null_mut()), INVALID_HANDLE);
    assert_eq!(hipDeviceSynchronize(), SUCCESS);
    assert_eq!(COUNT.load(Ordering::SeqCst), 1);

    // `hipFree` and the legacy default stream wait too.
    let stream = created(|out| hipStreamCreate(out));
    // SAFETY: the memory is freed once, after its last use.
    unsafe {
        let memory = created(|out| hipMalloc(out, 4096));
        let mut source = null_mut();
        assert_eq!(hipHostMalloc(&mut source, 4096, 0), SUCCESS);
        submit_slow(stream, &COUNT);
        assert_eq!(hipMemcpyAsync(memory, source.cast(), 4096, 1, stream), SUCCESS);
        assert_eq!(hipStreamDestroy(stream), SUCCESS);
        assert_eq!(hipFree(memory), SUCCESS);
    }
    assert_eq!(COUNT.load(Ordering::SeqCst), 2);
    let stream = created(|out| hipStreamCreate(out));
    submit_slow(stream, &COUNT);
    assert_eq!(hipStreamDestroy(stream), SUCCESS);
    submit_slow(null_mut(), &COUNT);
    assert_eq!(hipStreamSynchronize(null_mut()), SUCCESS);
    assert_eq!(COUNT.load(Ordering::SeqCst), 4);
}

#[test]
fn synchronous_fills_and_copies_wait() {
    static COUNT: AtomicI32 = AtomicI32::new(0);
    // SAFETY: all accesses are inside the allocations.
    let calls: [&dyn Fn(Handle) -> c_int; 5] = unsafe {
        [
            &|m| hipMemset(m, 1, 64),
            &|m| hipMemsetD16(m, 2, 32),
            &|m| hipMemset2D(m, 16, 3, 8, 4),
            &|memory| {
                let extent = Extent { width: 8, height: 2, depth: 4 };
                hipMemset3D(Pitched { memory, pitch: 8, width: 8, height: 2 }, 4, extent)
            },
            &|m| hipMemcpyPeer(m, 0, m.wrapping_byte_add(64), 0, 64),
        ]
    };
    // SAFETY: `out` is valid for writes.
    let memory = created(|out| unsafe { hipMalloc(out, 128) });
    for (at, call) in (1..).zip(calls) {
        submit_slow(null_mut(), &COUNT);
        assert_eq!(call(memory), SUCCESS);
        assert_eq!(COUNT.load(Ordering::SeqCst), at);
    }
}

#[test]
fn invalid_streams_cannot_join_captures() {
    let streams: [Handle; 3] = std::array::from_fn(|_| created(|out| hipStreamCreate(out)));
    let [first, second, third] = streams;
    let event = created(|out| hipEventCreate(out));
    let captured = |stream| {
        let mut status = 0;
        assert_eq!(hipStreamIsCapturing(stream, &mut status), SUCCESS);
        status != 0
    };
    assert_eq!(hipStreamBeginCapture(first, 0), SUCCESS);
    assert_eq!(hipStreamBeginCapture(second, 0), SUCCESS);
    assert_eq!(hipEventRecord(event, first), SUCCESS);
    assert_eq!(hipStreamWaitEvent(null_mut(), event, 0), STREAM_CAPTURE_IMPLICIT);
    assert_eq!(hipStreamWaitEvent(second, event, 0), STREAM_CAPTURE_MERGE);
    assert_eq!(hipStreamWaitEvent(third, event, 0), SUCCESS);
    assert_eq!(hipStreamWaitEvent(third, event, 0), SUCCESS);
    assert!(captured(third));
    assert_eq!(hipStreamIsCapturing(null_mut(), &mut 0), STREAM_CAPTURE_IMPLICIT);
    let mut graph = null_mut();
    assert_eq!(hipStreamEndCapture(first, &mut graph), SUCCESS);
    assert!(!captured(first) && !captured(third) && captured(second));
    // The event still exists, but the capture has ended.
    assert_eq!(hipStreamWaitEvent(third, event, 0), CAPTURED_EVENT);
    assert!(!captured(third));
    assert_eq!(hipStreamEndCapture(second, &mut graph), SUCCESS);
    streams.iter().for_each(|stream| assert_eq!(hipStreamDestroy(*stream), SUCCESS));
}

#[test]
fn clones_of_graphs_have_separate_nodes() {
    let graph = created(|out| hipGraphCreate(out, 0));
    // SAFETY: the dependency list is empty.
    let first = created(|out| unsafe { hipGraphAddEmptyNode(out, graph, null(), 0) });
    // SAFETY: as above.
    let second = created(|out| unsafe { hipGraphAddEmptyNode(out, graph, &first, 1) });
    let clone = created(|out| hipGraphClone(out, graph));
    let (mut nodes, mut roots, mut count) = ([null_mut(); 2], [null_mut(); 2], 2);
    // SAFETY: the arrays have room for all nodes.
    unsafe {
        assert_eq!(hipGraphGetNodes(clone, nodes.as_mut_ptr(), &mut count), SUCCESS);
        assert_eq!(count, 2);
        assert_eq!(hipGraphGetRootNodes(clone, roots.as_mut_ptr(), &mut count), SUCCESS);
    }
    assert_eq!((count, roots[0]), (1, nodes[0]));
    assert!(!nodes.contains(&first) && !nodes.contains(&second));
    // Edges between different graphs are rejected.
    assert_eq!(hipGraphAddDependencies(graph, &first, &nodes[1], 1), INVALID_VALUE);
    assert_eq!(hipGraphAddDependencies(clone, &first, &nodes[1], 1), INVALID_VALUE);
    let mut other = null_mut();
    // SAFETY: the dependency list has one element.
    assert_eq!(unsafe { hipGraphAddEmptyNode(&mut other, graph, &nodes[0], 1) }, INVALID_VALUE);
    // A cycle in the clone does not affect the original, and destroying the original does not affect the
    // clone.
    assert_eq!(hipGraphAddDependencies(clone, &nodes[1], &nodes[0], 1), SUCCESS);
    created(|out| hipGraphInstantiate(out, graph, 0, 0, 0));
    assert_eq!(hipGraphInstantiate(&mut other, clone, 0, 0, 0), INVALID_VALUE);
    assert_eq!(hipGraphDestroy(graph), SUCCESS);
    // SAFETY: without an array, only the number is stored.
    assert_eq!(unsafe { hipGraphGetNodes(clone, null_mut(), &mut count) }, SUCCESS);
    assert_eq!(count, 2);
    assert_eq!(hipGraphAddDependencies(clone, &nodes[0], &nodes[1], 1), INVALID_VALUE);
}

#[test]
fn nodes_run_in_topological_order() {
    static ORDER: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    extern "C" fn note(number: *mut c_void) {
        ORDER.lock().unwrap().push(number as usize);
    }
    let graph = created(|out| hipGraphCreate(out, 0));
    let node = |number: usize, after: &[Handle]| {
        let parameters = HostNode { function: note, argument: std::ptr::without_provenance_mut(number) };
        // SAFETY: the list of dependencies has this length, and the function does not access its argument.
        created(|out| unsafe { hipGraphAddHostNode(out, graph, after.as_ptr(), after.len(), &parameters) })
    };
    let (first, second) = (node(1, &[]), node(2, &[]));
    let third = node(3, &[second]);
    node(4, &[first, second]);
    assert_eq!(hipGraphAddDependencies(graph, &third, &first, 1), SUCCESS);
    let executable = created(|out| hipGraphInstantiate(out, graph, 0, 0, 0));
    let stream = created(|out| hipStreamCreate(out));
    assert_eq!(hipGraphLaunch(executable, stream), SUCCESS);
    assert_eq!(hipStreamSynchronize(stream), SUCCESS);
    assert_eq!(*ORDER.lock().unwrap(), [2, 3, 1, 4]);
    assert_eq!(hipStreamDestroy(stream), SUCCESS);
    assert_eq!(hipGraphDestroy(graph), SUCCESS);
}

/// Programs look for kernels in many modules. Standard error is that of a child process, in which the test runs
/// itself.
#[test]
fn missing_kernels_are_reported_once() {
    const CHILD: &str = "WAVESIM_TEST_MISSING";
    if std::env::var_os(CHILD).is_some() {
        let object = object();
        // SAFETY: the object is complete.
        let module = created(|out| unsafe { hipModuleLoadData(out, object.as_ptr()) });
        for name in [c"first", c"first", c"second"] {
            let mut function = null_mut();
            // SAFETY: the name is a string.
            let status = unsafe { hipModuleGetFunction(&mut function, module, name.as_ptr()) };
            assert_eq!(status, NOT_FOUND);
        }
        return;
    }
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let test = ["--exact", "missing_kernels_are_reported_once", "--nocapture"];
    let output = child.args(test).env(CHILD, "1").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let expected = "wavesim: hipModuleGetFunction: no kernel `first`; the code object has `count`, `count_without_size`, \
                    `empty`\n";
    assert_eq!(errors, expected);
}

#[test]
fn host_memory_is_freed_by_both_functions() {
    // SAFETY: the memory is freed once, and not used after that.
    unsafe {
        let mut memory = null_mut();
        assert_eq!(hipHostMalloc(&mut memory, 4096, 0), SUCCESS);
        assert_eq!(hipFree(memory.cast()), SUCCESS);
        assert_eq!(hipFree(memory.cast()), INVALID_VALUE);
    }
}

#[test]
fn arguments_in_a_buffer_need_no_size_in_the_descriptor() {
    let function = kernel(c"count_without_size");
    // SAFETY: `out` is valid for writes.
    let memory = created(|out| unsafe { hipMalloc(out, 4) });
    let (arguments, size) = ([memory], 8usize);
    // HIP_LAUNCH_PARAM_BUFFER_POINTER, …_SIZE, …_END
    let extra: [*const c_void; 5] = [
        std::ptr::without_provenance(1),
        arguments.as_ptr().cast(),
        std::ptr::without_provenance(2),
        (&raw const size).cast(),
        std::ptr::without_provenance(3),
    ];
    let (none, extra) = (null_mut(), extra.as_ptr().cast_mut().cast());
    let mut count = 0u32;
    // SAFETY: the buffer holds the only argument; the copy is inside the allocation.
    unsafe {
        let launched =
            hipExtModuleLaunchKernel(function, 64, 1, 1, 64, 1, 1, 0, none, null_mut(), extra, none, none, 0);
        assert_eq!(launched, SUCCESS);
        assert_eq!(hipStreamSynchronize(none), SUCCESS);
        assert_eq!(hipMemcpyAsync((&raw mut count).cast(), memory, 4, 2, none), SUCCESS);
    }
    assert_eq!(count, 64);
}

#[test]
fn copies_to_symbols_are_checked() {
    let object = object();
    let object: &'static [u8] = Box::leak(object.into_boxed_slice());
    let wrapper = Wrapper { magic: 0x4849_5046, version: 1, binary: object.as_ptr(), unused: 0 };
    let (symbol, name, value) = (&raw const wrapper as usize, c"number".as_ptr(), 5i32);
    let from: *const c_void = (&raw const value).cast();
    // SAFETY: the object is leaked, and the value outlives the copies.
    unsafe {
        let fat = __hipRegisterFatBinary(&wrapper);
        __hipRegisterVar(fat, symbol, name, name, 0, 4, 0, 0);
        assert_eq!(hipMemcpyToSymbol(symbol, from, 4, 0, 1), SUCCESS);
        assert_eq!(hipMemcpyToSymbol(symbol, null(), 4, 0, 1), INVALID_VALUE);
        assert_eq!(hipMemcpyToSymbol(symbol, from, 4, 0, 3), INVALID_VALUE);
        assert_eq!(hipMemcpyToSymbol(symbol, from, 4, 0, 99), INVALID_MEMCPY_DIRECTION);
        assert_eq!(hipMemcpyToSymbol(symbol, from, 4, 1, 1), INVALID_VALUE);
    }
}

#[test]
fn surfaces_need_a_resource() {
    // SAFETY: a missing argument is an error.
    assert_eq!(unsafe { hipCreateSurfaceObject(&mut null_mut(), null()) }, INVALID_VALUE);
    assert_eq!(hipDestroySurfaceObject(null_mut()), SUCCESS);
}

#[test]
fn unsupported_functions_say_so() {
    // SAFETY: the function does not use its argument.
    assert_eq!(unsafe { hipSetupArgument(null(), 0, 0) }, NOT_SUPPORTED);
}

#[test]
fn unsupported_functions_that_return_text_return_text() {
    let text = hipApiName(1);
    assert!(text as usize > 4096);
    // SAFETY: the library returns a static string.
    assert_eq!(unsafe { CStr::from_ptr(text) }, c"operation not supported");
}
