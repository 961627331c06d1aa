//! The services of one launch, in its own memory.

use crate::heap::{Heap, RECORDS_BYTES};
use crate::hostcall::{self, POLL_INTERVAL, Server, Sink, Stream};
use crate::{lock, messages};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use wavesim_machine::memory::{AllocError, Memory};

/// Maximum number of bytes of output that are kept.
const MAX_OUTPUT: usize = 16 << 20;
/// Size of the heap in bytes, without its records.
const HEAP_BYTES: u64 = 64 << 20;

/// The services that a kernel uses, which its hidden arguments name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// `hidden_hostcall_buffer`.
    pub hostcall: bool,
    /// `hidden_heap_v1`.
    pub heap: bool,
    /// `hidden_printf_buffer`.
    pub printf: bool,
}

/// The addresses of the services' memory in a launch; 0 for those that its kernel does not use.
#[derive(Debug, Clone, Default)]
pub struct Services {
    /// The hostcall buffer.
    pub hostcall: u64,
    /// The records of the heap.
    pub heap: u64,
    /// The buffer of OpenCL's `printf`.
    pub printf: u64,
    /// The memory of the heap: address and size.
    heap_memory: (u64, u64),
    /// The format strings of the code object.
    formats: Vec<String>,
}

/// What a kernel has printed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// The text, in parts for standard output and standard error.
    pub parts: Vec<(Stream, Vec<u8>)>,
    /// Number of bytes that are missing at the end.
    pub dropped: usize,
}

impl Printed {
    fn add(&mut self, stream: Stream, text: &[u8]) {
        let len: usize = self.parts.iter().map(|(_, text)| text.len()).sum();
        let kept = text.len().min(MAX_OUTPUT - len);
        self.dropped += text.len() - kept;
        match self.parts.last_mut().filter(|(last, _)| *last == stream) {
            Some((_, all)) => all.extend_from_slice(&text[..kept]),
            None if kept > 0 => self.parts.push((stream, text[..kept].to_vec())),
            None => {}
        }
    }
}

impl Services {
    /// Allocates the memory of the services that a kernel uses. `formats` are those of its code object.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn place(wanted: Wanted, formats: &[String], memory: &mut Memory) -> Result<Services, AllocError> {
        let mut services = Services { formats: formats.to_vec(), ..Services::default() };
        // Requests for memory are hostcalls.
        if wanted.hostcall || wanted.heap {
            services.hostcall = memory.alloc(hostcall::BYTES, 4096, "hostcall buffer")?;
        }
        if wanted.heap {
            let len = RECORDS_BYTES + HEAP_BYTES;
            let address = memory.alloc(len, 4096, "device heap")?;
            (services.heap, services.heap_memory) = (Heap::new(address, len).records(), (address, len));
        }
        if wanted.printf {
            services.printf = memory.alloc(messages::BYTES, 4096, "printf buffer")?;
            // The buffer was just allocated, so the write cannot fail.
            let written = memory.write(services.printf, &messages::header());
            debug_assert!(written.is_ok());
        }
        Ok(services)
    }

    /// Runs a launch while its requests are served, and returns what it has printed.
    pub fn serve<T>(&self, memory: &Memory, launch: impl FnOnce() -> T) -> (T, Printed) {
        let printed = Arc::new(Mutex::new(Printed::default()));
        let result = match memory.host(self.hostcall, hostcall::BYTES, true) {
            Some(buffer) if self.hostcall != 0 => {
                let sink = printed.clone();
                let sink: Sink = Arc::new(move |stream, text| lock(&sink).add(stream, text));
                let heap =
                    (self.heap != 0).then(|| Arc::new(Heap::new(self.heap_memory.0, self.heap_memory.1)));
                // SAFETY: the buffer is aligned to 4096 bytes, belongs to `memory`, which is borrowed, and is accessed as
                // `memory::access` does.
                let server = unsafe { Server::new(buffer, self.hostcall, heap, sink) };
                // The accesses of the kernel must be those of memory that others access, whatever it registers itself.
                let _guard = memory.register_threads(2);
                let ended = AtomicBool::new(false);
                std::thread::scope(|scope| {
                    scope.spawn(|| serve(&server, &ended));
                    let _end = End(&ended);
                    launch()
                })
            }
            _ => launch(),
        };
        let mut printed = std::mem::take(&mut *lock(&printed));
        if self.printf != 0 {
            let mut sink = |text: &[u8]| printed.add(Stream::Output, text);
            // The launch's own memory has the buffer.
            let read = |address, out: &mut [u8]| memory.read(address, out);
            let report = messages::print(&self.formats, self.printf, read, &mut sink).unwrap_or_default();
            // A buffer is used again by the next launch in this memory.
            let _ = memory.write(self.printf, &messages::header());
            if let Some(report) = report {
                printed.add(Stream::Error, format!("wavesim: {report}\n").as_bytes());
            }
        }
        (result, printed)
    }
}

/// Tells the server that the launch has ended, also if it panics.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn serve(server: &Server, ended: &AtomicBool) {
    loop {
        // Requests from before the end are served.
        let last = ended.load(Ordering::Acquire);
        let any = server.serve();
        if last {
            return;
        }
        if !any {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}
