//! LLVM's hostcall protocol, by which running kernels request services from the host. Device `printf` and
//! device `malloc` use it.
//!
//! A kernel pops a packet from the free stack, writes 64 bytes for each lane, pushes the packet onto the
//! ready stack, and waits until the host clears the packet's ready bit. The buffer holds both stacks; its
//! layout is that of the device libraries (`ockl`). Packet pointers are indices with a tag in the upper bits,
//! which prevents the ABA problem when a packet returns to a stack.

use crate::heap::Heap;
use crate::{lock, printf};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
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
/// Size of the buffer in bytes.
pub const BYTES: u64 = PAYLOADS + PACKETS * PAYLOAD_BYTES;
/// Maximum number of words in a message. A kernel can send parts without ever ending the message.
const MAX_WORDS: usize = 1 << 17;
/// Maximum number of incomplete messages, and of the words in all of them.
const MAX_MESSAGES: usize = 1 << 16;
const MAX_ALL_WORDS: usize = 1 << 21;
/// Polling interval of the server while no packet is ready.
pub const POLL_INTERVAL: Duration = Duration::from_micros(50);

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

/// What answers the requests in a hostcall buffer.
pub struct Server {
    /// The first byte of the buffer for the host.
    buffer: *mut u8,
    /// Its address for kernels.
    address: u64,
    heap: Option<Arc<Heap>>,
    sink: Sink,
    messages: Mutex<Messages>,
}

// SAFETY: all threads may access the buffer, through atomics: the contract of `Server::new`. The other fields are both.
unsafe impl Send for Server {}
// SAFETY: as above.
unsafe impl Sync for Server {}

/// Messages whose last part has not been received.
#[derive(Default)]
struct Messages {
    last: u64,
    open: HashMap<u64, Vec<u64>>,
    /// Number of words in all messages.
    words: usize,
    /// A part was dropped since the buffer was reset.
    full: bool,
    /// A service was requested that does not exist, since the buffer was reset.
    unknown: bool,
}

impl Messages {
    /// Begins a message and returns its id.
    fn begin(&mut self) -> u64 {
        self.last += 1;
        if self.open.len() < MAX_MESSAGES {
            self.open.insert(self.last, Vec::new());
        }
        self.last
    }

    /// Appends a part to a message. Returns true if it is the first part that is dropped because of the limits.
    fn append(&mut self, id: u64, part: &[u64]) -> bool {
        let room = self.words + part.len() <= MAX_ALL_WORDS;
        match self.open.get_mut(&id).filter(|m| room && m.len() < MAX_WORDS) {
            Some(message) => {
                message.extend_from_slice(part);
                self.words += part.len();
                false
            }
            None => !std::mem::replace(&mut self.full, true),
        }
    }

    /// Ends a message and returns its words.
    fn end(&mut self, id: u64) -> Option<Vec<u64>> {
        let message = self.open.remove(&id)?;
        self.words -= message.len();
        Some(message)
    }

    /// Drops all messages.
    fn clear(&mut self) {
        *self = Messages { last: self.last, ..Messages::default() };
    }
}

impl Server {
    /// Creates a server with an empty buffer. `buffer` is the first of [`BYTES`] bytes, which kernels access at `address`.
    /// Without a heap, `malloc` on the device returns null.
    ///
    /// # Safety
    /// `buffer` is aligned to 8 bytes. While the server exists, the bytes stay valid, and all threads may access them;
    /// others access them only through atomics or as `memory::access` does.
    pub unsafe fn new(buffer: *mut u8, address: u64, heap: Option<Arc<Heap>>, sink: Sink) -> Server {
        let server = Server { buffer, address, heap, sink, messages: Mutex::default() };
        server.reset();
        server
    }

    /// Returns all packets to the free stack, and restores the header, which a faulty kernel may have overwritten.
    /// Must be called only while no kernel uses the buffer.
    pub fn reset(&self) {
        let buffer = self.address;
        // The signal is zero: kernels store to its mailbox, if it has one.
        (0..HEADERS).step_by(8).for_each(|at| self.word(at).store(0, Ordering::Relaxed));
        for (at, value) in
            [(0, buffer + HEADERS), (8, buffer + PAYLOADS), (16, buffer + SIGNAL), (40, INDEX_MASK)]
        {
            self.word(at).store(value, Ordering::Relaxed);
        }
        // A link of 0 ends the stack, so the pointer to packet 0 needs a nonzero tag.
        let mut next = INDEX_MASK + 1;
        for index in 1..PACKETS {
            self.word(HEADERS + index * HEADER_BYTES).store(next, Ordering::Relaxed);
            next = index;
        }
        self.word(FREE).store(next, Ordering::SeqCst);
        lock(&self.messages).clear();
    }

    /// Returns a word of the buffer.
    fn word(&self, offset: u64) -> &AtomicU64 {
        debug_assert!(offset.is_multiple_of(8) && offset + 8 <= BYTES);
        // SAFETY: callers pass offsets inside the buffer.
        let at = unsafe { self.buffer.add(offset as usize) };
        // SAFETY: the offset is a multiple of 8, and the buffer is aligned to 8 bytes and lives as long as `self`; it is
        // accessed only through these atomics and as `memory::access` does (`Server::new`).
        unsafe { AtomicU64::from_ptr(at.cast()) }
    }

    fn control(&self, header: u64) -> &AtomicU32 {
        // SAFETY: `header` is the offset of a packet header, whose 24 bytes include the control word.
        let at = unsafe { self.buffer.add(header as usize + 20) };
        // SAFETY: as in `word`, for a word of 4 bytes.
        unsafe { AtomicU32::from_ptr(at.cast()) }
    }

    /// Serves all ready packets. Returns true if there were any.
    pub fn serve(&self) -> bool {
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
            MEMORY => self.heap.as_ref().map_or(0, |heap| heap.request(words[0], words[1])),
            other => {
                // A faulty kernel may ask without end.
                if !std::mem::replace(&mut lock(&self.messages).unknown, true) {
                    self.report(&format!(
                        "a kernel asked for hostcall service {other}, which is not supported"
                    ));
                }
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
        let id = if descriptor & 1 == 1 { messages.begin() } else { descriptor >> 8 };
        let len = (descriptor >> 5 & 7) as usize;
        let dropped = messages.append(id, &words[1..1 + len]);
        let ended = if descriptor & 2 == 0 { None } else { Some(messages.end(id)) };
        drop(messages);
        if dropped {
            self.report("printf: the kernel's incomplete messages are too long; parts of them are dropped");
        }
        let Some(ended) = ended else { return descriptor & 0xfe | id << 8 };
        let Some((&flags, rest)) = ended.as_deref().and_then(<[u64]>::split_first) else { return u64::MAX };
        let stream = if flags & 1 == 1 { Stream::Error } else { Stream::Output };
        printf::format(rest, &mut |text| (self.sink)(stream, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The descriptor of a part: flags, number of words, id.
    fn part(flags: u64, id: u64) -> [u64; 8] {
        [flags | 7 << 5 | id << 8, 0, 0, 0, 0, 0, 0, 0]
    }

    fn buffer() -> Vec<u64> {
        vec![0; BYTES as usize / 8]
    }

    fn server(buffer: &mut [u64], sink: Sink) -> Server {
        let start = buffer.as_mut_ptr().cast::<u8>();
        // SAFETY: the buffer has the size and the alignment, and its owner outlives the server and does not use it.
        unsafe { Server::new(start, start.addr() as u64, None, sink) }
    }

    #[test]
    fn damage_ends_with_the_launch() {
        let reports = Arc::new(Mutex::new(0));
        let count = reports.clone();
        let mut buffer = buffer();
        let shared = &server(&mut buffer, Arc::new(move |_, _| *lock(&count) += 1));
        let header = || (0..HEADERS).step_by(8).map(|at| shared.word(at).load(Ordering::Relaxed)).collect();
        let links = || {
            (0..PACKETS).map(|n| shared.word(HEADERS + n * HEADER_BYTES).load(Ordering::Relaxed)).collect()
        };
        let before: [Vec<u64>; 2] = [header(), links()];
        for garbage in [0, 1, 2, PACKETS, u64::MAX] {
            (0..BYTES).step_by(8).for_each(|at| shared.word(at).store(garbage, Ordering::Relaxed));
            shared.serve();
            shared.reset();
            let after: [Vec<u64>; 2] = [header(), links()];
            assert_eq!(after[0], before[0], "{garbage}");
            assert_eq!(after[1][1..], before[1][1..], "{garbage}");
        }
        // Requests of an unknown service are reported once a launch.
        let before = *lock(&reports);
        (0..100).for_each(|_| assert_eq!(shared.handle_request(77, [0; 8]), 0));
        assert_eq!(*lock(&reports), before + 1);
    }

    #[test]
    fn messages_without_an_end_are_limited() {
        let reports = Arc::new(Mutex::new(Vec::new()));
        let sink = reports.clone();
        let sink: Sink = Arc::new(move |stream, text| lock(&sink).push((stream, text.to_vec())));
        let mut buffer = buffer();
        let shared = &server(&mut buffer, sink);
        for _ in 0..40 {
            let id = shared.message(part(1, 0)) >> 8;
            for _ in 0..MAX_WORDS / 7 + 10 {
                shared.message(part(0, id));
            }
        }
        let words = || lock(&shared.messages).open.values().map(Vec::len).sum::<usize>();
        assert!(
            words() <= MAX_ALL_WORDS
                && words() > MAX_ALL_WORDS - 7
                && words() == lock(&shared.messages).words
        );
        for _ in 0..MAX_MESSAGES + 10 {
            shared.message(part(1, 0));
        }
        assert_eq!(lock(&shared.messages).open.len(), MAX_MESSAGES);
        // The limits are reported once.
        let first =
            (Stream::Error, b"wavesim: printf: the kernel's incomplete messages are too long".to_vec());
        assert_eq!(lock(&reports).len(), 1);
        assert!(lock(&reports)[0].1.starts_with(&first.1) && lock(&reports)[0].0 == first.0);
        // Later launches start without messages.
        shared.reset();
        assert_eq!((words(), lock(&shared.messages).words), (0, 0));
        let id = shared.message([1 | 2 << 5, 0, u64::from_le_bytes(*b"text\0\0\0\0"), 0, 0, 0, 0, 0]) >> 8;
        assert_eq!(shared.message([2 | id << 8, 0, 0, 0, 0, 0, 0, 0]), 4);
        assert_eq!(lock(&reports)[1], (Stream::Output, b"text".to_vec()));
        assert_eq!(lock(&shared.messages).words, 0);
    }
}
