//! Allocations that processes share. An allocation becomes shared memory when the program asks for its handle; until
//! then, it is private, which is faster.
//!
//! The memory is a file without a name (`memfd_create`), which another process opens through `/proc/PID/fd/NUMBER`.
//! Nothing is left behind when the processes end, however they end.

use crate::launch::lock;
use crate::memory::{Allocation, SharedFile};
use crate::{Device, Error};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::os::unix::io::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Size of a handle in bytes, as HIP's.
pub const HANDLE_BYTES: usize = 64;

/// The first bytes of a handle.
const MAGIC: [u8; 8] = *b"wavesim1";

/// What a handle of shared memory contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpcHandle {
    /// The process that has the file.
    pub process: u32,
    /// Its descriptor of the file.
    descriptor: u32,
    /// The inode of the file, by which a stale handle is recognised.
    inode: u64,
    /// Size of the memory in bytes.
    len: u64,
    /// Where the pointer that was exported is in the memory.
    offset: u64,
}

impl IpcHandle {
    /// Describes a file of this process.
    pub fn of(file: &File, len: u64, offset: u64) -> std::io::Result<IpcHandle> {
        let (process, descriptor) = (std::process::id(), file.as_raw_fd() as u32);
        Ok(IpcHandle { process, descriptor, inode: file.metadata()?.ino(), len, offset })
    }

    /// Returns the bytes that a program passes to the other process.
    pub fn to_bytes(self) -> [u8; HANDLE_BYTES] {
        let mut bytes = [0; HANDLE_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.process.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.descriptor.to_le_bytes());
        let words = [self.inode, self.len, self.offset];
        let to = bytes[16..].chunks_exact_mut(8);
        to.zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
        bytes
    }

    /// Reads the bytes of a handle. Returns `None` for other bytes.
    pub fn from_bytes(bytes: &[u8; HANDLE_BYTES]) -> Option<IpcHandle> {
        let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|k| bytes[at + k]));
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|k| bytes[at + k]));
        let (len, offset) = (word(24), word(32));
        let handle = IpcHandle { process: half(8), descriptor: half(12), inode: word(16), len, offset };
        (bytes[..8] == MAGIC && offset < len.max(1)).then_some(handle)
    }

    /// Opens the file. A handle is data of another process: only files whose size is final are accepted, so that no
    /// other file is mapped, and no page disappears.
    pub fn open(&self) -> std::io::Result<File> {
        let path = format!("/proc/{}/fd/{}", self.process, self.descriptor);
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let metadata = file.metadata()?;
        if metadata.ino() != self.inode || metadata.len() < self.len {
            return Err(std::io::Error::other("the memory no longer exists"));
        }
        if !SharedFile::is_sealed(&file) {
            return Err(std::io::Error::other("the file is not shared memory of wavesim"));
        }
        Ok(file)
    }
}

impl Device {
    /// Makes the allocation that contains an address shared memory. The program must not access the allocation during
    /// the call; running launches are the caller's to wait for.
    ///
    /// # Errors
    /// [`Error::NotAllocated`] without such an allocation, [`Error::Shared`] if the host cannot share it.
    pub fn export(&self, address: u64) -> Result<IpcHandle, Error> {
        let allocation = self.allocation_at(address).ok_or(Error::NotAllocated(address, ""))?;
        // What other processes write is unknown, so all bytes count as written.
        lock(&self.inner.written).forget(allocation.address());
        let shared = || -> std::io::Result<IpcHandle> {
            let SharedFile(file) = allocation.share()?;
            IpcHandle::of(file, allocation.len(), address - allocation.address())
        };
        shared().map_err(Error::Shared)
    }

    /// Maps memory that another process has exported. Returns the address of the exported pointer in this process.
    /// [`Device::free`] of the allocation's address unmaps it.
    ///
    /// # Errors
    /// [`Error::Shared`] if the other process has ended or freed the memory, or may not be accessed.
    pub fn import(&self, handle: &IpcHandle, name: &str) -> Result<u64, Error> {
        let file = handle.open().map_err(Error::Shared)?;
        let allocation = Allocation::of_file(file, handle.len, name)?;
        let address = allocation.address();
        self.register_allocation(Arc::new(allocation));
        Ok(address + handle.offset)
    }
}

/// How often work that processes wait for was submitted, and how much of it has ended, in shared memory.
#[derive(Debug)]
pub struct SharedCounters {
    memory: Allocation,
}

impl SharedCounters {
    /// Size in bytes: the number of submissions, and that of the last one that has ended.
    const BYTES: u64 = 16;

    /// Creates counters that begin at 0, and their handle.
    pub fn new() -> Result<(SharedCounters, IpcHandle), Error> {
        let memory = Allocation::new(SharedCounters::BYTES, "event")?;
        let SharedFile(file) = memory.share().map_err(Error::Shared)?;
        let handle = IpcHandle::of(file, SharedCounters::BYTES, 0).map_err(Error::Shared)?;
        Ok((SharedCounters { memory }, handle))
    }

    /// Opens the counters of another process.
    pub fn open(handle: &IpcHandle) -> Result<SharedCounters, Error> {
        if handle.len != SharedCounters::BYTES {
            return Err(Error::Shared(std::io::Error::other("the handle is not that of an event")));
        }
        let file = handle.open().map_err(Error::Shared)?;
        Ok(SharedCounters { memory: Allocation::of_file(file, handle.len, "event")? })
    }

    fn counter(&self, index: usize) -> &AtomicU64 {
        let at = std::ptr::with_exposed_provenance_mut::<u64>(self.memory.address() as usize);
        // SAFETY: the memory has two aligned counters, lives as long as `self`, and is accessed by atomics only.
        unsafe { AtomicU64::from_ptr(at.add(index)) }
    }

    /// Returns the number of the last submission.
    pub fn submitted(&self) -> u64 {
        self.counter(0).load(Ordering::SeqCst)
    }

    /// Counts a submission. Returns its number.
    pub fn submit(&self) -> u64 {
        self.counter(0).fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Records that a submission has ended.
    pub fn end(&self, number: u64) {
        self.counter(1).fetch_max(number, Ordering::SeqCst);
    }

    /// Returns whether a submission has ended.
    pub fn has_ended(&self, number: u64) -> bool {
        self.counter(1).load(Ordering::SeqCst) >= number
    }

    /// Waits for a submission to end. Never returns if its process ends before.
    pub fn wait(&self, number: u64) {
        while !self.has_ended(number) {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;

    #[test]
    fn handles_refer_to_the_same_memory() {
        let device = Device::open("gfx1100", &Settings::default()).unwrap();
        let own = device.alloc(10_000, "own").unwrap();
        device.write(own + 9_996, &[1, 2, 3, 4]).unwrap();
        let handle = device.export(own + 4_000).unwrap();
        assert_eq!(device.export(own + 4_000).unwrap(), handle);
        let read = IpcHandle::from_bytes(&handle.to_bytes()).unwrap();
        assert_eq!(read, handle);
        // In a test, both sides are one process.
        let theirs = device.import(&read, "theirs").unwrap() - 4_000;
        assert!(theirs != own && device.find(theirs).is_some_and(|range| range.len == 10_000));
        let mut bytes = [0; 4];
        device.read(theirs + 9_996, &mut bytes).unwrap();
        assert_eq!(bytes, [1, 2, 3, 4]);
        device.write(theirs, &[5, 6, 7, 8]).unwrap();
        device.read(own, &mut bytes).unwrap();
        assert_eq!(bytes, [5, 6, 7, 8]);
        // The memory lives as long as one side has it.
        device.free(own).unwrap();
        device.read(theirs + 9_996, &mut bytes).unwrap();
        assert_eq!(bytes, [1, 2, 3, 4]);
        assert!(IpcHandle::from_bytes(&[0; HANDLE_BYTES]).is_none());
        let stale = IpcHandle { inode: handle.inode + 1, ..handle };
        assert!(matches!(device.import(&stale, "stale"), Err(Error::Shared(_))));
        // Any other file that a handle describes is refused.
        let path = std::env::temp_dir().join(format!("wavesim-ipc-{}", std::process::id()));
        let file = File::create_new(&path).unwrap();
        file.set_len(4096).unwrap();
        let other = IpcHandle::of(&file, 4096, 0).unwrap();
        let error = device.import(&other, "other").unwrap_err().to_string();
        assert!(error.contains("is not shared memory of wavesim"), "{error}");
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(device.export(8), Err(Error::NotAllocated(8, ""))));
    }
}
