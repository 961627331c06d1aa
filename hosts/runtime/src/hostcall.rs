//! LLVM's hostcall protocol, by which running kernels request services from the host. Device `printf` and
//! device `malloc` use it.
//!
//! A kernel pops a packet from the free stack, writes 64 bytes for each lane, pushes the packet onto the
//! ready stack, and waits until the host clears the packet's ready bit. The buffer holds both stacks; its
//! layout is that of the device libraries (`ockl`). Packet pointers are indices with a tag in the upper bits,
//! which prevents the ABA problem when a packet returns to a stack.

use crate::heap::Heap;
use crate::memory::{Allocation, HostMemory};
use crate::{Error, printf};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Number of packets in the buffer. A wave waits if no packet is free.
const PACKETS: u64 = 64;
/// Index bits of a packet pointer. The bits above hold the tag.
const INDEX_MASK: u64 = 127;
const HEADER_BYTES: u64 = 24;
/// Payload of a packet: 8 words of 64 bits for each of 64 lanes.
const PAYLOAD_BYTES: u64 = 64 * 8 * 8;
/// Byte offsets in the buffer. The words of its header are `headers`, `payloads`, `doorbell`, `free`,
/// `ready`, `index_mask`.
const FREE: u64 = 24;
const READY: u64 = 32;
/// The doorbell: an `amd_signal_t` without a mailbox.
const SIGNAL: u64 = 64;
const HEADERS: u64 = 128;
const PAYLOADS: u64 = HEADERS + (PACKETS * HEADER_BYTES).next_multiple_of(64);
const BYTES: u64 = PAYLOADS + PACKETS * PAYLOAD_BYTES;
/// Maximum number of words in a message. A kernel can send parts without ever ending the message.
const MAX_WORDS: usize = 1 << 17;
/// Maximum number of incomplete messages.
const MAX_MESSAGES: usize = 1 << 16;
/// Polling interval of the server while no packet is ready.
const POLL_INTERVAL: Duration = Duration::from_micros(50);

/// Service id of `printf` (the device libraries' `service_id_t`).
const PRINTF: u32 = 2;
/// Service id of memory requests. Arguments: an address to free, or 0 to allocate; a size.
const MEMORY: u32 = 3;

/// Destination of a kernel's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output: `printf`.
    Output,
    /// Standard error: `fprintf(stderr, …)`, and messages of the host layer.
    Error,
}

/// Callback that receives the output of kernels.
pub type Sink = Arc<dyn Fn(Stream, &[u8]) + Send + Sync>;

/// The hostcall buffer of a device, and the thread that serves requests while kernels run.
pub struct Hostcall {
    shared: Arc<Shared>,
}

struct Shared {
    buffer: Allocation,
    heap: Heap,
    sink: Sink,
    messages: Mutex<Messages>,
    /// Number of running launches; `None` tells the server thread to exit.
    active: Mutex<Option<u32>>,
    changed: Condvar,
}

#[derive(Default)]
struct Messages {
    last: u64,
    open: HashMap<u64, Vec<u64>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hostcall {
    /// Allocates the buffer and the heap, and starts the server thread.
    pub(crate) fn new(sink: Sink) -> Result<Hostcall, Error> {
        let shared = Shared {
            buffer: Allocation::new(BYTES, "hostcall buffer")?,
            heap: Heap::new()?,
            sink,
            messages: Mutex::default(),
            active: Mutex::new(Some(0)),
            changed: Condvar::new(),
        };
        let buffer = shared.buffer.address();
        for (at, value) in
            [(0, buffer + HEADERS), (8, buffer + PAYLOADS), (16, buffer + SIGNAL), (40, INDEX_MASK)]
        {
            shared.word(at).store(value, Ordering::Relaxed);
        }
        shared.reset();
        let shared = Arc::new(shared);
        let server = shared.clone();
        std::thread::Builder::new()
            .name("wavesim hostcall".to_string())
            .spawn(move || server.run())
            .map_err(Error::Thread)?;
        Ok(Hostcall { shared })
    }

    /// Returns the address of the buffer: the hidden argument `hidden_hostcall_buffer`.
    pub(crate) fn buffer(&self) -> u64 {
        self.shared.buffer.address()
    }

    /// Returns the address of the heap: the hidden argument `hidden_heap_v1`.
    pub(crate) fn heap(&self) -> u64 {
        self.shared.heap.records()
    }

    /// Returns the memory that kernels access: the buffer and the heap.
    pub(crate) fn memory(&self) -> impl Iterator<Item = HostMemory> {
        [self.shared.buffer.range(), self.shared.heap.range()].into_iter()
    }

    /// Serves requests of kernels while `body` runs.
    pub(crate) fn serve<T>(&self, body: impl FnOnce() -> T) -> T {
        let _active = ActiveLaunch::new(&self.shared);
        body()
    }
}

impl Drop for Hostcall {
    fn drop(&mut self) {
        *lock(&self.shared.active) = None;
        self.shared.changed.notify_all();
    }
}

/// Marks a launch that may use services as active until dropped.
struct ActiveLaunch<'a>(&'a Shared);

impl ActiveLaunch<'_> {
    fn new(shared: &Shared) -> ActiveLaunch<'_> {
        if let Some(count) = &mut *lock(&shared.active) {
            *count += 1;
        }
        shared.changed.notify_all();
        ActiveLaunch(shared)
    }
}

impl Drop for ActiveLaunch<'_> {
    fn drop(&mut self) {
        if let Some(count) = &mut *lock(&self.0.active) {
            *count -= 1;
            // The server thread is idle while `active` is locked. A failed launch may have left ready
            // packets: serve their requests, then return all packets to the free stack for later launches.
            if *count == 0 {
                self.0.serve();
                self.0.reset();
            }
        }
    }
}

impl Shared {
    fn run(&self) {
        loop {
            let mut active = lock(&self.active);
            while *active == Some(0) {
                active = self.changed.wait(active).unwrap_or_else(PoisonError::into_inner);
            }
            if active.is_none() {
                return;
            }
            let served = self.serve();
            drop(active);
            if !served {
                std::thread::sleep(POLL_INTERVAL);
            }
        }
    }

    /// Returns all packets to the free stack. Must be called only while no kernel uses the buffer.
    fn reset(&self) {
        self.word(READY).store(0, Ordering::Relaxed);
        // A link of 0 ends the stack, so the pointer to packet 0 needs a nonzero tag.
        let mut next = INDEX_MASK + 1;
        for index in 1..PACKETS {
            self.word(HEADERS + index * HEADER_BYTES).store(next, Ordering::Relaxed);
            next = index;
        }
        self.word(FREE).store(next, Ordering::SeqCst);
        lock(&self.messages).open.clear();
    }

    /// Returns a word of the buffer.
    fn word(&self, offset: u64) -> &AtomicU64 {
        debug_assert!(offset.is_multiple_of(8) && offset + 8 <= BYTES);
        let at = std::ptr::with_exposed_provenance_mut::<u64>((self.buffer.address() + offset) as usize);
        // SAFETY: callers pass 8-byte-aligned offsets inside the buffer, which is page-aligned and lives as
        // long as `self`. The host accesses the buffer only through these atomics, and kernels through
        // `memory::access`.
        unsafe { AtomicU64::from_ptr(at) }
    }

    fn control(&self, header: u64) -> &AtomicU32 {
        let at = std::ptr::with_exposed_provenance_mut::<u32>((self.buffer.address() + header + 20) as usize);
        // SAFETY: as in `word`; `header` is the offset of a packet header, whose 24 bytes include the control
        // word.
        unsafe { AtomicU32::from_ptr(at) }
    }

    /// Serves all ready packets. Returns true if there were any.
    fn serve(&self) -> bool {
        let mut next = self.word(READY).swap(0, Ordering::AcqRel);
        let any = next != 0;
        // A faulty kernel can write anything to the buffer, so the links may form a cycle.
        for _ in 0..PACKETS {
            let index = next & INDEX_MASK;
            if next == 0 || index >= PACKETS {
                break;
            }
            let header = HEADERS + index * HEADER_BYTES;
            next = self.word(header).load(Ordering::Relaxed);
            let lanes = self.word(header + 8).load(Ordering::Relaxed);
            let service = self.word(header + 16).load(Ordering::Relaxed) as u32;
            for lane in (0..64).filter(|lane| lanes >> lane & 1 == 1) {
                let payload = PAYLOADS + index * PAYLOAD_BYTES + lane * 64;
                let words: [u64; 8] =
                    std::array::from_fn(|k| self.word(payload + 8 * k as u64).load(Ordering::Relaxed));
                let result = self.handle_request(service, words);
                self.word(payload).store(result, Ordering::Relaxed);
            }
            self.control(header).fetch_and(!1, Ordering::Release);
        }
        any
    }

    /// Handles the request of a lane. Returns the first word of the result.
    fn handle_request(&self, service: u32, words: [u64; 8]) -> u64 {
        match service {
            PRINTF => self.message(words),
            MEMORY => self.heap.request(words[0], words[1]),
            other => {
                self.report(&format!("a kernel asked for hostcall service {other}, which is not supported"));
                0
            }
        }
    }

    fn report(&self, message: &str) {
        (self.sink)(Stream::Error, format!("wavesim: {message}\n").as_bytes());
    }

    /// Handles a part of a message. The first word holds flags (1: begin, 2: end), the number of words in
    /// bits 5 to 7, and the message's id from bit 8 on. The result of the first part assigns the id; the
    /// result of the last part is the result of `printf`.
    fn message(&self, words: [u64; 8]) -> u64 {
        let descriptor = words[0];
        let mut messages = lock(&self.messages);
        let mut id = descriptor >> 8;
        if descriptor & 1 == 1 {
            messages.last += 1;
            id = messages.last;
            if messages.open.len() < MAX_MESSAGES {
                messages.open.insert(id, Vec::new());
            }
        }
        if let Some(message) = messages.open.get_mut(&id).filter(|m| m.len() < MAX_WORDS) {
            let len = (descriptor >> 5 & 7) as usize;
            message.extend_from_slice(&words[1..1 + len]);
        }
        if descriptor & 2 == 0 {
            return descriptor & 0xfe | id << 8;
        }
        let Some(message) = messages.open.remove(&id) else { return u64::MAX };
        drop(messages);
        let Some((&flags, rest)) = message.split_first() else { return u64::MAX };
        let stream = if flags & 1 == 1 { Stream::Error } else { Stream::Output };
        let text = printf::format(rest);
        (self.sink)(stream, &text);
        text.len() as u64
    }
}
