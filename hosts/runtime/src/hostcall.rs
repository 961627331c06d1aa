//! The services of a device for running kernels ([`wavesim_services::hostcall`]): the buffer and the heap, which all
//! launches use, and the thread that serves requests while kernels run.

use crate::Error;
use crate::memory::{Allocation, HostMemory};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use wavesim_services::heap::{Heap, RECORDS_BYTES};
use wavesim_services::hostcall::{BYTES, POLL_INTERVAL, Server};

pub use wavesim_services::hostcall::{Sink, Stream};

/// Size of the heap in bytes. The host commits pages on first access.
pub const HEAP_BYTES: u64 = 1 << 30;

/// The hostcall buffer of a device, and the thread that serves requests while kernels run.
pub struct Hostcall {
    shared: Arc<Shared>,
}

struct Shared {
    server: Server,
    buffer: Allocation,
    /// The memory of the server's heap.
    memory: Allocation,
    heap: Arc<Heap>,
    /// Number of running launches; `None` tells the server thread to exit.
    active: Mutex<Option<u32>>,
    changed: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Allocates a heap. If the host lacks memory, it has no blocks, and `malloc` on the device returns null.
fn heap(bytes: u64) -> Result<(Allocation, Heap), Error> {
    let memory = Allocation::apart(bytes, "device heap");
    let memory = memory.or_else(|_| Allocation::apart(RECORDS_BYTES, "device heap"))?;
    let heap = Heap::new(memory.address(), memory.len());
    Ok((memory, heap))
}

impl Hostcall {
    /// Allocates the buffer and the heap, and starts the server thread.
    pub(crate) fn new(sink: Sink) -> Result<Hostcall, Error> {
        let buffer = Allocation::apart(BYTES, "hostcall buffer")?;
        let (memory, heap) = heap(HEAP_BYTES)?;
        let heap = Arc::new(heap);
        let start = std::ptr::with_exposed_provenance_mut(buffer.address() as usize);
        // SAFETY: the allocation has the size, is page-aligned, and lives as long as the server, in `Shared`. The host
        // accesses it only through the server's atomics, and kernels through `memory::access`.
        let server = unsafe { Server::new(start, buffer.address(), Some(heap.clone()), sink) };
        let (active, changed) = (Mutex::new(Some(0)), Condvar::new());
        let shared = Arc::new(Shared { server, buffer, memory, heap, active, changed });
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

    /// Returns the memory of a kernel that uses services (the buffer and the whole heap), or of one that does not:
    /// the blocks that others have allocated. Later kernels can use them although they do not allocate themselves.
    pub(crate) fn memory(&self, uses_services: bool) -> Vec<HostMemory> {
        let memory = &self.shared.memory;
        match uses_services {
            true => vec![self.shared.buffer.range(), memory.range()],
            false => self.shared.heap.used().iter().map(|(at, len)| memory.part(*at, *len)).collect(),
        }
    }

    /// Returns a number that changes with the blocks on the heap.
    pub(crate) fn heap_version(&self) -> u64 {
        self.shared.heap.version()
    }

    /// Allocates a block, as kernels do.
    #[cfg(test)]
    pub(crate) fn allocate(&self, len: u64) -> u64 {
        self.shared.heap.request(0, len)
    }

    /// Frees a block, as kernels do.
    #[cfg(test)]
    pub(crate) fn free(&self, block: u64) {
        self.shared.heap.request(block, 0);
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
                self.0.server.serve();
                self.0.server.reset();
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
            let served = self.server.serve();
            drop(active);
            if !served {
                std::thread::sleep(POLL_INTERVAL);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_without_blocks_has_records() {
        // More than any process can allocate.
        let (memory, heap) = heap(1 << 60).unwrap();
        assert_eq!(heap.request(0, 1), 0);
        let map = crate::memory::memory(&[memory.range()], crate::memory::Bounds::Exact).unwrap();
        for at in [0, (2 << 20) - 8] {
            assert_eq!(map.load::<8>(heap.records() + at), Ok([0; 8]));
        }
    }
}
