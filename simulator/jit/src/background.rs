//! The thread that compiles while kernels run. All programs of the process share it.

use crate::Inner;
use crate::mode::CodeMode;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

/// A request to compile a unit. The program may be dropped before the request is served.
struct Request {
    program: Weak<Inner>,
    mode: CodeMode,
    first: u32,
}

/// The sender to the thread; `None` if the system has refused to create it, in which case nothing is
/// compiled.
static THREAD: LazyLock<Option<Mutex<Sender<Request>>>> = LazyLock::new(|| {
    let (sender, requests) = channel::<Request>();
    let work = move || {
        for Request { program, mode, first } in requests {
            if let Some(program) = program.upgrade() {
                program.compile(mode, first);
            }
        }
    };
    std::thread::Builder::new().name("wavesim compiler".to_string()).spawn(work).ok()?;
    Some(Mutex::new(sender))
});

/// Queues a unit for compilation.
pub fn compile(program: &Arc<Inner>, mode: CodeMode, first: u32) {
    if let Some(thread) = &*THREAD {
        let request = Request { program: Arc::downgrade(program), mode, first };
        // The thread runs until the process exits.
        let _ = thread.lock().unwrap_or_else(PoisonError::into_inner).send(request);
    }
}
