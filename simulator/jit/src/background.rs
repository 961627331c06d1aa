//! The thread that compiles while kernels run. There is one for all programs of the process.

use crate::{Form, Inner};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

/// A place of a program. The program may be gone when its turn comes.
struct Request {
    program: Weak<Inner>,
    form: Form,
    first: u32,
}

/// To the thread; `None` if the system refused one, and nothing is compiled.
static THREAD: LazyLock<Option<Mutex<Sender<Request>>>> = LazyLock::new(|| {
    let (sender, requests) = channel::<Request>();
    let work = move || {
        for Request { program, form, first } in requests {
            if let Some(program) = program.upgrade() {
                program.compile(form, first);
            }
        }
    };
    std::thread::Builder::new().name("wavesim compiler".to_string()).spawn(work).ok()?;
    Some(Mutex::new(sender))
});

/// Has a unit compiled.
pub fn compile(program: &Arc<Inner>, form: Form, first: u32) {
    if let Some(thread) = &*THREAD {
        let request = Request { program: Arc::downgrade(program), form, first };
        // The thread ends with the process.
        let _ = thread.lock().unwrap_or_else(PoisonError::into_inner).send(request);
    }
}
