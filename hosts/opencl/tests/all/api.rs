//! Tests of the API functions, called as loaders do: through the dispatch table of each handle. The kernels
//! need no compiler.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use wavesim_opencl as _;

type Handle = *mut c_void;

unsafe extern "C" {
    fn clIcdGetPlatformIDsKHR(count: c_uint, list: *mut Handle, found: *mut c_uint) -> c_int;
    fn clGetExtensionFunctionAddress(name: *const c_char) -> *const c_void;
}

/// Slots of functions in the dispatch table.
mod slot {
    pub const DEVICE_IDS: usize = 2;
    pub const CREATE_CONTEXT: usize = 4;
    pub const RETAIN_CONTEXT: usize = 6;
    pub const RELEASE_CONTEXT: usize = 7;
    pub const CREATE_QUEUE: usize = 9;
    pub const RELEASE_QUEUE: usize = 11;
    pub const CREATE_BUFFER: usize = 14;
    pub const RELEASE_BUFFER: usize = 18;
    pub const WITH_SOURCE: usize = 26;
    pub const WITH_BINARY: usize = 27;
    pub const RELEASE_PROGRAM: usize = 29;
    pub const BUILD: usize = 30;
    pub const BUILD_INFO: usize = 33;
    pub const CREATE_KERNEL: usize = 34;
    pub const RELEASE_KERNEL: usize = 37;
    pub const SET_ARG: usize = 38;
    pub const WAIT: usize = 41;
    pub const EVENT_INFO: usize = 42;
    pub const RELEASE_EVENT: usize = 44;
    pub const FINISH: usize = 47;
    pub const READ: usize = 48;
    pub const NDRANGE: usize = 59;
    pub const SET_EVENT_CALLBACK: usize = 81;
    pub const GL_BUFFER: usize = 66;
    pub const CREATE_PIPE: usize = 124;
    pub const CREATE_USER_EVENT: usize = 84;
    pub const SET_USER_EVENT: usize = 85;
    pub const SVM_ALLOC: usize = 126;
    pub const SVM_FREE: usize = 127;
}

/// Calls a function of a handle's table.
macro_rules! call {
    ($handle:expr, $slot:expr, ($($type:ty),*) -> $result:ty, $($argument:expr),*) => {{
        // SAFETY: a handle points to the address of the dispatch table, whose slots hold functions of these
        // types.
        unsafe {
            let table = *($handle as *const *const *const c_void);
            let function: unsafe extern "C" fn($($type),*) -> $result = std::mem::transmute(*table.add($slot));
            function($($argument),*)
        }
    }};
}

struct Session {
    device: Handle,
    context: Handle,
    queue: Handle,
}

fn platform() -> Handle {
    let mut platform = null_mut();
    // SAFETY: `platform` has room for one handle.
    assert_eq!(unsafe { clIcdGetPlatformIDsKHR(1, &mut platform, null_mut()) }, 0);
    platform
}

impl Session {
    fn new() -> Session {
        let platform = platform();
        let mut device: Handle = null_mut();
        let status = call!(
            platform,
            slot::DEVICE_IDS,
            (Handle, u64, c_uint, *mut Handle, *mut c_uint) -> c_int,
            platform, 4, 1, &mut device, null_mut()
        );
        assert_eq!(status, 0);
        let mut status = 1;
        let context = call!(
            device,
            slot::CREATE_CONTEXT,
            (*const isize, c_uint, *const Handle, usize, usize, *mut c_int) -> Handle,
            null(), 1, &device, 0, 0, &mut status
        );
        assert_eq!(status, 0);
        let mut session = Session { device, context, queue: null_mut() };
        session.queue = session.queue(0).0;
        session
    }

    fn queue(&self, properties: u64) -> (Handle, c_int) {
        let mut status = 1;
        let queue = call!(
            self.context,
            slot::CREATE_QUEUE,
            (Handle, Handle, u64, *mut c_int) -> Handle,
            self.context, self.device, properties, &mut status
        );
        (queue, status)
    }

    fn buffer(&self, flags: u64, bytes: &mut [u8]) -> Handle {
        self.try_buffer(flags, bytes.len(), bytes.as_mut_ptr().cast()).0
    }

    fn try_buffer(&self, flags: u64, size: usize, host: *mut c_void) -> (Handle, c_int) {
        let mut status = 1;
        let buffer = call!(
            self.context,
            slot::CREATE_BUFFER,
            (Handle, u64, usize, *mut c_void, *mut c_int) -> Handle,
            self.context, flags, size, host, &mut status
        );
        (buffer, status)
    }

    fn read(&self, buffer: Handle, len: usize) -> (Vec<u8>, c_int) {
        let mut bytes = vec![0u8; len];
        let status = call!(
            self.queue,
            slot::READ,
            (Handle, Handle, c_uint, usize, usize, *mut u8, c_uint, *const Handle, *mut Handle) -> c_int,
            self.queue, buffer, 1, 0, len, bytes.as_mut_ptr(), 0, null(), null_mut()
        );
        (bytes, status)
    }

    /// Builds a source with options. Returns the status and the build log.
    fn build(&self, source: &std::ffi::CStr, options: &std::ffi::CStr) -> (c_int, String) {
        let mut status = 1;
        let program = call!(
            self.context,
            slot::WITH_SOURCE,
            (Handle, c_uint, *const *const c_char, *const usize, *mut c_int) -> Handle,
            self.context, 1, &source.as_ptr(), null(), &mut status
        );
        assert_eq!(status, 0);
        let built = call!(
            program,
            slot::BUILD,
            (Handle, c_uint, *const Handle, *const c_char, usize, usize) -> c_int,
            program, 0, null(), options.as_ptr(), 0, 0
        );
        let (mut log, mut len) = (vec![0u8; 4096], 0);
        // CL_PROGRAM_BUILD_LOG
        let status = call!(
            program,
            slot::BUILD_INFO,
            (Handle, Handle, c_uint, usize, *mut u8, *mut usize) -> c_int,
            program, self.device, 0x1183, log.len(), log.as_mut_ptr(), &mut len
        );
        assert_eq!(status, 0);
        log.truncate(len - 1);
        (built, String::from_utf8(log).unwrap())
    }

    /// The kernel `vadd`, compiled by clang: a, b, c, n.
    fn program(&self) -> Handle {
        let object = include_bytes!("../../../../tests/filetests/code_objects/vadd/vadd.gfx1100.co");
        let (mut status, mut of_binary) = (1, 1);
        let program = call!(
            self.context,
            slot::WITH_BINARY,
            (Handle, c_uint, *const Handle, *const usize, *const *const u8, *mut c_int, *mut c_int) -> Handle,
            self.context, 1, &self.device, &object.len(), &object.as_ptr(), &mut of_binary, &mut status
        );
        assert_eq!((status, of_binary), (0, 0));
        let build = call!(
            program,
            slot::BUILD,
            (Handle, c_uint, *const Handle, *const c_char, usize, usize) -> c_int,
            program, 0, null(), null(), 0, 0
        );
        assert_eq!(build, 0);
        program
    }

    fn kernel(&self, program: Handle, name: &std::ffi::CStr) -> (Handle, c_int) {
        let mut status = 1;
        let kernel = call!(
            program,
            slot::CREATE_KERNEL,
            (Handle, *const c_char, *mut c_int) -> Handle,
            program, name.as_ptr(), &mut status
        );
        (kernel, status)
    }

    fn set(&self, kernel: Handle, index: c_uint, bytes: &[u8]) -> c_int {
        call!(
            kernel,
            slot::SET_ARG,
            (Handle, c_uint, usize, *const u8) -> c_int,
            kernel, index, bytes.len(), bytes.as_ptr()
        )
    }

    fn launch(&self, kernel: Handle, items: usize, after: &[Handle], event: *mut Handle) -> c_int {
        let list = if after.is_empty() { null() } else { after.as_ptr() };
        call!(
            self.queue,
            slot::NDRANGE,
            (Handle, Handle, c_uint, *const usize, *const usize, *const usize, c_uint, *const Handle, *mut Handle) -> c_int,
            self.queue, kernel, 1, null(), &items, null(), after.len() as c_uint, list, event
        )
    }

    fn simple(&self, slot: usize, handle: Handle) -> c_int {
        call!(self.context, slot, (Handle) -> c_int, handle)
    }
}

fn floats(values: impl Iterator<Item = f32>) -> Vec<u8> {
    values.flat_map(f32::to_le_bytes).collect()
}

const COPY: u64 = 32;

/// Sets the arguments: y = x + x, `count` elements.
fn set_all(session: &Session, kernel: Handle, x: Handle, y: Handle, count: u32) {
    assert_eq!(session.set(kernel, 0, &(x as usize).to_le_bytes()), 0);
    assert_eq!(session.set(kernel, 1, &(x as usize).to_le_bytes()), 0);
    assert_eq!(session.set(kernel, 2, &(y as usize).to_le_bytes()), 0);
    assert_eq!(session.set(kernel, 3, &count.to_le_bytes()), 0);
}

#[test]
fn a_kernel_runs() {
    let s = Session::new();
    let mut bytes = floats((0..50).map(|n| n as f32));
    let (x, y) = (s.buffer(COPY, &mut bytes), s.try_buffer(1, 200, null_mut()).0);
    let (kernel, status) = s.kernel(s.program(), c"vadd");
    assert_eq!(status, 0);
    set_all(&s, kernel, x, y, 50);
    let mut event = null_mut();
    assert_eq!(s.launch(kernel, 64, &[], &mut event), 0);
    assert_eq!(call!(event, slot::WAIT, (c_uint, *const Handle) -> c_int, 1, &event), 0);
    let (result, status) = s.read(y, 200);
    assert_eq!((result, status), (floats((0..50).map(|n| n as f32 * 2.0)), 0));
    assert_eq!(s.simple(slot::RELEASE_EVENT, event), 0);
    assert_eq!(s.simple(slot::RELEASE_EVENT, event), -58);
}

#[test]
fn buffers_on_shared_memory_leave_it_allocated() {
    let s = Session::new();
    let (size, input) = (200, floats((0..50).map(|n| n as f32)));
    let memory = call!(
        s.context,
        slot::SVM_ALLOC,
        (Handle, u64, usize, c_uint) -> *mut u8,
        s.context, 1, size, 0
    );
    // SAFETY: the allocation has this size, and no kernel accesses it yet.
    unsafe { std::ptr::copy_nonoverlapping(input.as_ptr(), memory, size) };
    let (kernel, y) = (s.kernel(s.program(), c"vadd").0, s.try_buffer(1, size, null_mut()).0);
    for _ in 0..2 {
        // CL_MEM_READ_WRITE, CL_MEM_USE_HOST_PTR
        let (x, status) = s.try_buffer(1 | 8, size, memory.cast());
        assert_eq!(status, 0);
        set_all(&s, kernel, x, y, 50);
        assert_eq!(s.launch(kernel, 64, &[], null_mut()), 0);
        assert_eq!(s.read(y, size), (floats((0..50).map(|n| n as f32 * 2.0)), 0));
        assert_eq!(s.simple(slot::RELEASE_BUFFER, x), 0);
    }
    call!(s.context, slot::SVM_FREE, (Handle, *mut u8) -> (), s.context, memory);
}

#[test]
fn a_fault_affects_only_its_queue() {
    let s = Session::new();
    let mut bytes = vec![0; 80];
    let (x, y) = (s.buffer(COPY, &mut bytes), s.try_buffer(1, 80, null_mut()).0);
    let (kernel, _) = s.kernel(s.program(), c"vadd");
    // The buffers have 20 elements.
    set_all(&s, kernel, x, y, 50);
    assert_eq!(s.launch(kernel, 64, &[], null_mut()), 0);
    assert_eq!(s.simple(slot::FINISH, s.queue), -5);
    assert_eq!(s.read(y, 80).1, -5);
    let other = Session { queue: s.queue(0).0, ..Session::new() };
    assert_eq!(s.simple(slot::FINISH, other.queue), 0);
}

#[test]
fn released_and_null_handles_are_errors() {
    let s = Session::new();
    let mut bytes = vec![0; 80];
    let buffer = s.buffer(COPY, &mut bytes);
    let program = s.program();
    let (kernel, _) = s.kernel(program, c"vadd");
    assert_eq!(s.set(kernel, 0, &(buffer as usize).to_le_bytes()), 0);
    assert_eq!(s.simple(slot::RELEASE_BUFFER, buffer), 0);
    assert_eq!(s.simple(slot::RELEASE_BUFFER, buffer), -38);
    assert_eq!(s.read(buffer, 80).1, -38);
    assert_eq!(s.set(kernel, 1, &(buffer as usize).to_le_bytes()), -38);
    // A handle of another type, and a value that is not a handle.
    assert_eq!(s.set(kernel, 1, &(kernel as usize).to_le_bytes()), -38);
    assert_eq!(s.set(kernel, 1, &4711usize.to_le_bytes()), -38);
    assert_eq!(s.launch(kernel, 64, &[], null_mut()), -52);
    let releases = [
        (slot::RELEASE_CONTEXT, -34),
        (slot::RELEASE_QUEUE, -36),
        (slot::RELEASE_BUFFER, -38),
        (slot::RELEASE_PROGRAM, -44),
        (slot::RELEASE_KERNEL, -48),
        (slot::RELEASE_EVENT, -58),
    ];
    for (slot, status) in releases {
        assert_eq!(s.simple(slot, null_mut()), status);
        assert_eq!(s.simple(slot, buffer), status);
    }
    assert_eq!(s.kernel(program, c"other").1, -46);
    assert_eq!(s.simple(slot::RELEASE_PROGRAM, program), 0);
    // The kernel keeps the program alive.
    assert_eq!(s.simple(slot::RELEASE_KERNEL, kernel), 0);
    assert_eq!(s.set(kernel, 2, &[0; 4]), -48);
    // A context lives while its queue does.
    assert_eq!(s.simple(slot::RELEASE_CONTEXT, s.context), 0);
    assert_eq!(s.simple(slot::RETAIN_CONTEXT, s.context), 0);
    assert_eq!(s.simple(slot::RELEASE_CONTEXT, s.context), 0);
    assert_eq!(s.simple(slot::RELEASE_QUEUE, s.queue), 0);
    assert_eq!(s.simple(slot::FINISH, s.queue), -36);
}

#[test]
fn arguments_are_checked() {
    let s = Session::new();
    let (kernel, _) = s.kernel(s.program(), c"vadd");
    assert_eq!(s.set(kernel, 4, &[0; 4]), -49);
    assert_eq!(s.set(kernel, 3, &[0; 8]), -51);
    assert_eq!(s.set(kernel, 0, &[0; 4]), -51);
    assert_eq!(s.launch(kernel, 64, &[], null_mut()), -52);
    assert_eq!(s.try_buffer(1, 0, null_mut()).1, -61);
    assert_eq!(s.try_buffer(COPY, 8, null_mut()).1, -37);
    assert_eq!(s.try_buffer(1 | 2, 8, null_mut()).1, -30);
    // Properties: out of order, device-side, unknown.
    assert_eq!((s.queue(1).1, s.queue(4).1, s.queue(64).1), (-35, -35, -30));
    // A missing wait list, a list with a count of 0, and a handle that is not an event.
    let list = |count, list: *const Handle| {
        call!(
            s.queue,
            slot::NDRANGE,
            (Handle, Handle, c_uint, *const usize, *const usize, *const usize, c_uint, *const Handle, *mut Handle) -> c_int,
            s.queue, kernel, 1, null(), &64, null(), count, list, null_mut()
        )
    };
    assert_eq!((list(1, null()), list(0, &s.queue), list(1, &s.queue)), (-57, -57, -57));
}

#[test]
fn build_options_are_refused_by_name() {
    let s = Session::new();
    let file = std::env::temp_dir().join(format!("wavesim-options-{}", std::process::id()));
    let written = format!("-ftime-trace={}", file.display());
    let written = std::ffi::CString::new(written).unwrap();
    for options in [c"-w -fpass-plugin=/tmp/x.so", c"@/tmp/options", c"-Wl,-o,x", c"-Xclang -load", &written]
    {
        // CL_INVALID_BUILD_OPTIONS
        let (status, log) = s.build(c"kernel void f() {}", options);
        let name = options.to_str().unwrap().trim_start_matches("-w ").split(' ').next().unwrap();
        assert_eq!((status, log), (-43, format!("option {name} is not supported")));
    }
    assert!(!file.exists());
}

#[test]
fn user_events_block_commands() {
    let s = Session::new();
    let mut bytes = floats((0..50).map(|n| n as f32));
    let (x, y) = (s.buffer(COPY, &mut bytes), s.try_buffer(1, 200, null_mut()).0);
    let (kernel, _) = s.kernel(s.program(), c"vadd");
    set_all(&s, kernel, x, y, 50);
    let gate = || {
        let mut status = 1;
        call!(s.context, slot::CREATE_USER_EVENT, (Handle, *mut c_int) -> Handle, s.context, &mut status)
    };
    let state = |event: Handle| {
        let mut state: c_int = 1;
        let status = call!(
            event,
            slot::EVENT_INFO,
            (Handle, c_uint, usize, *mut c_int, *mut usize) -> c_int,
            event, 0x11d3, 4, &mut state, null_mut()
        );
        assert_eq!(status, 0);
        state
    };
    let set = |event: Handle, status: c_int| call!(event, slot::SET_USER_EVENT, (Handle, c_int) -> c_int, event, status);
    let (first, mut launched) = (gate(), null_mut());
    assert_eq!(s.launch(kernel, 64, &[first], &mut launched), 0);
    assert!(state(launched) > 0);
    assert_eq!((set(first, 1), set(first, 0), set(first, 0), set(launched, 0)), (-30, 0, -59, -58));
    assert_eq!(s.simple(slot::FINISH, s.queue), 0);
    assert_eq!((state(launched), s.read(y, 8).0), (0, floats([0.0, 2.0].into_iter())));
    // An error status of a user event fails the commands that wait for it, and no others.
    let (second, mut failed) = (gate(), null_mut());
    assert_eq!(s.launch(kernel, 64, &[second], &mut failed), 0);
    assert_eq!(set(second, -7), 0);
    assert_eq!(call!(failed, slot::WAIT, (c_uint, *const Handle) -> c_int, 1, &failed), -14);
    assert_eq!((state(failed), s.simple(slot::FINISH, s.queue)), (-14, 0));
}

#[test]
fn unsupported_functions_return_errors() {
    let s = Session::new();
    let mut status = 1;
    let pipe = call!(
        s.context,
        slot::CREATE_PIPE,
        (Handle, u64, c_uint, c_uint, *const usize, *mut c_int) -> Handle,
        s.context, 1, 4, 4, null(), &mut status
    );
    assert_eq!((pipe.is_null(), status), (true, -59));
    let shared = call!(
        s.context,
        slot::GL_BUFFER,
        (Handle, u64, c_uint, *mut c_int) -> Handle,
        s.context, 1, 1, &mut status
    );
    assert_eq!((shared.is_null(), status), (true, -59));
    // SAFETY: the arguments are NUL-terminated strings or null.
    unsafe {
        assert!(!clGetExtensionFunctionAddress(c"clIcdGetPlatformIDsKHR".as_ptr()).is_null());
        assert!(clGetExtensionFunctionAddress(c"clNone".as_ptr()).is_null());
        assert!(clGetExtensionFunctionAddress(null()).is_null());
    }
}

/// Calls that wait, made by a callback of an event, are errors: they could wait for their own queue.
#[test]
fn callbacks_must_not_wait() {
    static STATUSES: std::sync::Mutex<Vec<c_int>> = std::sync::Mutex::new(Vec::new());
    extern "C" fn wait(event: Handle, _: c_int, of_test: *mut c_void) {
        // SAFETY: the test passes its queue and its buffer, and waits for the callback.
        let [queue, buffer] = unsafe { *of_test.cast::<[Handle; 2]>() };
        let mut bytes = [0u8; 4];
        let mut list = STATUSES.lock().unwrap();
        list.push(call!(queue, slot::FINISH, (Handle) -> c_int, queue));
        list.push(call!(event, slot::WAIT, (c_uint, *const Handle) -> c_int, 1, &event));
        // A blocking read.
        list.push(call!(
            queue,
            slot::READ,
            (Handle, Handle, c_uint, usize, usize, *mut u8, c_uint, *const Handle, *mut Handle) -> c_int,
            queue, buffer, 1, 0, 4, bytes.as_mut_ptr(), 0, null(), null_mut()
        ));
    }
    let s = Session::new();
    let (kernel, y) = (s.kernel(s.program(), c"vadd").0, s.try_buffer(1, 200, null_mut()).0);
    set_all(&s, kernel, y, y, 50);
    let mut status = 1;
    let user = call!(
        s.context,
        slot::CREATE_USER_EVENT,
        (Handle, *mut c_int) -> Handle,
        s.context, &mut status
    );
    let (mut event, mut of_callback) = (null_mut(), [s.queue, y]);
    assert_eq!(s.launch(kernel, 64, &[user], &mut event), 0);
    let set = call!(
        event,
        slot::SET_EVENT_CALLBACK,
        (Handle, c_int, extern "C" fn(Handle, c_int, *mut c_void), *mut c_void) -> c_int,
        event, 0, wait, of_callback.as_mut_ptr().cast()
    );
    assert_eq!((status, set), (0, 0));
    assert_eq!(call!(user, slot::SET_USER_EVENT, (Handle, c_int) -> c_int, user, 0), 0);
    assert_eq!(s.simple(slot::FINISH, s.queue), 0);
    assert_eq!(*STATUSES.lock().unwrap(), [-59; 3]);
}

/// A child of the process that opened the device has none of its threads, so that commands would never end.
#[test]
#[cfg(unix)]
fn forked_processes_get_an_error() {
    let s = Session::new();
    let (kernel, y) = (s.kernel(s.program(), c"vadd").0, s.try_buffer(1, 200, null_mut()).0);
    set_all(&s, kernel, y, y, 50);
    // SAFETY: the child only calls functions of the library that fail early, and then ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // CL_DEVICE_NOT_AVAILABLE
        let failed = s.launch(kernel, 64, &[], null_mut()) == -2
            && s.simple(slot::FINISH, s.queue) == -2
            && s.read(y, 4).1 == -2;
        // SAFETY: ends the child without running exit handlers.
        unsafe { libc::_exit(if failed { 7 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: `status` is valid for writes.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "{status:#x}");
    assert_eq!(s.launch(kernel, 64, &[], null_mut()), 0);
    assert_eq!(s.simple(slot::FINISH, s.queue), 0);
}
