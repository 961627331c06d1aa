//! Callbacks of streams, and forked processes.

use super::*;

unsafe extern "C" {
    safe fn hipDeviceReset() -> c_int;
    safe fn hipEventSynchronize(event: Handle) -> c_int;
    fn hipFreeAsync(memory: Handle, stream: Handle) -> c_int;
    fn hipHostFree(memory: Handle) -> c_int;
    fn hipHostUnregister(memory: Handle) -> c_int;
    fn hipMemcpy(to: Handle, from: Handle, len: usize, kind: c_int) -> c_int;
    safe fn hipModuleUnload(module: Handle) -> c_int;
    safe fn hipStreamQuery(stream: Handle) -> c_int;
    fn hipStreamAddCallback(
        stream: Handle,
        function: extern "C" fn(Handle, c_int, *mut c_void),
        argument: *mut c_void,
        flags: c_uint,
    ) -> c_int;
}

const NOT_INITIALIZED: c_int = 3;
const NOT_READY: c_int = 600;
const NOT_PERMITTED: c_int = 800;

/// What a callback uses, and the results of its calls.
struct Calls {
    memory: Handle,
    stream: Handle,
    event: Handle,
    waiting: Vec<c_int>,
    others: Vec<c_int>,
}

/// Makes all calls that wait, and some that do not.
extern "C" fn make_calls(calls: *mut c_void) {
    // SAFETY: the pointer refers to the test's `Calls`; the test waits for this function.
    let calls = unsafe { &mut *calls.cast::<Calls>() };
    let (memory, stream) = (calls.memory, calls.stream);
    // SAFETY: all accesses would be inside the allocation; nothing is freed.
    calls.waiting = unsafe {
        vec![
            hipFree(memory),
            hipFreeAsync(memory, stream),
            hipHostFree(memory),
            hipHostUnregister(memory),
            hipModuleUnload(memory),
            hipDeviceSynchronize(),
            hipDeviceReset(),
            hipStreamSynchronize(stream),
            hipStreamSynchronize(null_mut()),
            hipEventSynchronize(calls.event),
            hipMemset(memory, 0, 4),
            hipMemcpy(memory, memory.wrapping_byte_add(8), 4, 3),
        ]
    };
    // SAFETY: `out` is valid for writes.
    let allocated = |out: &mut Handle| unsafe { hipMalloc(out, 64) };
    calls.others =
        vec![allocated(&mut null_mut()), hipEventRecord(calls.event, null_mut()), hipStreamQuery(stream)];
}

extern "C" fn make_calls_with_status(_: Handle, _: c_int, calls: *mut c_void) {
    make_calls(calls);
}

#[test]
fn callbacks_must_not_wait() {
    let stream = created(|out| hipStreamCreate(out));
    let event = created(|out| hipEventCreate(out));
    assert_eq!(hipEventRecord(event, stream), SUCCESS);
    // SAFETY: `out` is valid for writes.
    let memory = created(|out| unsafe { hipMalloc(out, 64) });
    let mut calls = Calls { memory, stream, event, waiting: Vec::new(), others: Vec::new() };
    for with_status in [false, true] {
        let argument = (&raw mut calls).cast();
        // SAFETY: `calls` outlives the callbacks, since the stream is waited for.
        let submitted = unsafe {
            match with_status {
                true => hipStreamAddCallback(stream, make_calls_with_status, argument, 0),
                false => hipLaunchHostFunc(stream, make_calls, argument),
            }
        };
        assert_eq!((submitted, hipStreamSynchronize(stream)), (SUCCESS, SUCCESS));
        assert_eq!(calls.waiting, [NOT_PERMITTED; 12]);
        assert_eq!(calls.others, [SUCCESS, SUCCESS, NOT_READY]);
    }
    // SAFETY: the memory is not used any more.
    assert_eq!(unsafe { hipFree(memory) }, SUCCESS);
}

/// A child of the process has none of its threads, so that work of streams would never end.
#[test]
fn forked_processes_get_an_error() {
    let stream = created(|out| hipStreamCreate(out));
    // SAFETY: `out` is valid for writes.
    let memory = created(|out| unsafe { hipMalloc(out, 64) });
    // SAFETY: the child only calls functions of the library that fail early, and then ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: the memory is inside the allocation.
        let filled = unsafe { hipMemset(memory, 1, 4) };
        let statuses = [filled, hipStreamSynchronize(stream), hipDeviceSynchronize()];
        // SAFETY: ends the child without running exit handlers.
        unsafe { libc::_exit(if statuses == [NOT_INITIALIZED; 3] { 7 } else { 1 }) };
    }
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    let mut status = 0;
    // SAFETY: `status` is valid for writes.
    while unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == 0 {
        if std::time::Instant::now() > deadline {
            // SAFETY: the process is the child.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("the child hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "{status:#x}");
    assert_eq!(hipDeviceSynchronize(), SUCCESS);
}
