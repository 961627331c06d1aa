//! LLVM's hostcall protocol: kernels ask the host for services while they run. Device `printf` and device `malloc` are made of it.
//!
//! A kernel takes a packet from a stack of free ones, fills in 64 bytes for each lane, pushes the packet to a stack of ready ones,
//! and waits until the host clears the packet's ready bit. The buffer holds both stacks; its layout is that of the device libraries
//! (`ockl`). Pointers to packets are indices with a tag in the bits above, so that a packet that returns to a stack is recognised
//! as another one.

use crate::heap::Heap;
use crate::memory::{Allocation, HostMemory};
use crate::{Error, printf};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Packets of a buffer. Waves that find none wait for one.
const PACKETS: u64 = 64;
/// Bits of an index; those above are a tag.
const INDEX_MASK: u64 = 127;
const HEADER_BYTES: u64 = 24;
/// 64 lanes with 8 words of 64 bits.
const PAYLOAD_BYTES: u64 = 64 * 8 * 8;
/// Offsets in the buffer: the words of its head are `headers`, `payloads`, `doorbell`, `free`, `ready`, `index_mask`.
const FREE: u64 = 24;
const READY: u64 = 32;
/// The doorbell: an `amd_signal_t` without a mailbox.
const SIGNAL: u64 = 64;
const HEADERS: u64 = 128;
const PAYLOADS: u64 = HEADERS + (PACKETS * HEADER_BYTES).next_multiple_of(64);
const BYTES: u64 = PAYLOADS + PACKETS * PAYLOAD_BYTES;
/// Words of a message at most: a kernel can send parts without an end.
const MAX_WORDS: usize = 1 << 17;
/// Messages that have begun and not ended, at most.
const MAX_MESSAGES: usize = 1 << 16;
/// How long the server sleeps if it found nothing to do.
const NAP: Duration = Duration::from_micros(50);

/// The service `printf` (the device libraries' `service_id_t`).
const PRINTF: u32 = 2;
/// The service of memory: an address to free, or 0; a size.
const MEMORY: u32 = 3;

/// Where output of kernels goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// `printf`.
    Output,
    /// `fprintf(stderr, …)`, and messages of the host layer.
    Error,
}

/// Takes the output of kernels.
pub type Sink = Arc<dyn Fn(Stream, &[u8]) + Send + Sync>;

/// The buffer of a device, and the thread that serves it while kernels run.
pub struct Hostcall {
    shared: Arc<Shared>,
}

struct Shared {
    buffer: Allocation,
    heap: Heap,
    sink: Sink,
    messages: Mutex<Messages>,
    /// Launches that run; `None`: the thread ends.
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
    /// Allocates the buffer and the heap.
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

    /// Address of the buffer: `hidden_hostcall_buffer`.
    pub(crate) fn buffer(&self) -> u64 {
        self.shared.buffer.address()
    }

    /// The heap's beginning: `hidden_heap_v1`.
    pub(crate) fn heap(&self) -> u64 {
        self.shared.heap.records()
    }

    /// What kernels access: the buffer and the heap.
    pub(crate) fn memory(&self) -> impl Iterator<Item = HostMemory> {
        [self.shared.buffer.range(), self.shared.heap.range()].into_iter()
    }

    /// Serves kernels while `body` runs.
    pub(crate) fn serve<T>(&self, body: impl FnOnce() -> T) -> T {
        let _serving = Serving::new(&self.shared);
        body()
    }
}

impl Drop for Hostcall {
    fn drop(&mut self) {
        *lock(&self.shared.active) = None;
        self.shared.changed.notify_all();
    }
}

/// A launch that may use services.
struct Serving<'a>(&'a Shared);

impl Serving<'_> {
    fn new(shared: &Shared) -> Serving<'_> {
        if let Some(count) = &mut *lock(&shared.active) {
            *count += 1;
        }
        shared.changed.notify_all();
        Serving(shared)
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        if let Some(count) = &mut *lock(&self.0.active) {
            *count -= 1;
            // The server is idle as long as this is locked. A launch that failed may have left packets: what they ask for is done, and
            // later launches get all of them again.
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
                std::thread::sleep(NAP);
            }
        }
    }

    /// All packets are free. No kernel uses them.
    fn reset(&self) {
        self.word(READY).store(0, Ordering::Relaxed);
        // The last packet's link has index 0 and a tag, because a link of 0 ends the stack.
        let mut next = INDEX_MASK + 1;
        for index in 1..PACKETS {
            self.word(HEADERS + index * HEADER_BYTES).store(next, Ordering::Relaxed);
            next = index;
        }
        self.word(FREE).store(next, Ordering::SeqCst);
        lock(&self.messages).open.clear();
    }

    /// A word of the buffer.
    fn word(&self, offset: u64) -> &AtomicU64 {
        debug_assert!(offset.is_multiple_of(8) && offset + 8 <= BYTES);
        let at = std::ptr::with_exposed_provenance_mut::<u64>((self.buffer.address() + offset) as usize);
        // SAFETY: callers pass offsets in the buffer, which is aligned to a page and lives as long as `self`; the host accesses it
        // by these atomics only, and kernels by `memory::access`.
        unsafe { AtomicU64::from_ptr(at) }
    }

    fn control(&self, header: u64) -> &AtomicU32 {
        let at = std::ptr::with_exposed_provenance_mut::<u32>((self.buffer.address() + header + 20) as usize);
        // SAFETY: as in `word`; `header` is the offset of one, which has 24 bytes.
        unsafe { AtomicU32::from_ptr(at) }
    }

    /// Serves the packets that are ready; whether there were any.
    fn serve(&self) -> bool {
        let mut next = self.word(READY).swap(0, Ordering::AcqRel);
        let any = next != 0;
        // A kernel can write anything to the buffer: the links may form a circle.
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
                let answer = self.answer(service, words);
                self.word(payload).store(answer, Ordering::Relaxed);
            }
            self.control(header).fetch_and(!1, Ordering::Release);
        }
        any
    }

    /// Does what a lane asks for; gives the first word of the answer.
    fn answer(&self, service: u32, words: [u64; 8]) -> u64 {
        match service {
            PRINTF => self.message(words),
            MEMORY => self.heap.request(words[0], words[1]),
            other => {
                self.complain(&format!(
                    "a kernel asked for hostcall service {other}, which is not supported"
                ));
                0
            }
        }
    }

    fn complain(&self, message: &str) {
        (self.sink)(Stream::Error, format!("wavesim: {message}\n").as_bytes());
    }

    /// A part of a message. Its first word has flags (1: begin, 2: end), from bit 5 on the number of words, and from bit 8 on the
    /// message's number, which the answer to the first part gives. The answer to the last is the result of `printf`.
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
