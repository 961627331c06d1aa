//! Allocations and pointer queries.

use crate::ffi::{Memory, Out};
use crate::gpu::{Gpu, gpu, gpus, lock};
use crate::graph::{GRAPH_MEMORY_NAME, GraphMemory, MemoryOp};
use crate::op::Work;
use crate::status::{Outcome, Status, call};
use crate::stream::{Handle, Stream};
use crate::virtual_memory::MAPPED_NAME;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint};
use std::sync::Mutex;
use wavesim_runtime::HostMemory;

/// Row alignment of pitched allocations in bytes.
const PITCH: usize = 256;

/// `hipMemoryType` of HIP 6.
pub const UNREGISTERED: c_int = 0;
pub const HOST: c_int = 1;
pub const DEVICE: c_int = 2;
pub const MANAGED: c_int = 3;

/// Kind of an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllocationKind {
    Device,
    Host(c_uint),
    Managed,
    Registered,
}

/// Kinds of allocations, by address. Device memory without an entry holds variables.
static KINDS: Mutex<BTreeMap<u64, AllocationKind>> = Mutex::new(BTreeMap::new());

/// An allocation, as found by a pointer into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocationInfo {
    /// Address of the first byte, for the host and for kernels.
    pub address: u64,
    /// Size in bytes, as allocated or registered.
    pub len: u64,
    /// Ordinal of the device that it belongs to.
    pub device: usize,
    pub kind: AllocationKind,
}

impl Gpu {
    /// Returns the size of device memory, as reported to programs, in bytes.
    pub fn total_bytes(&self) -> u64 {
        self.device.settings().memory
    }

    /// Returns the size of the memory that can still be allocated, in bytes.
    pub fn free_bytes(&self) -> u64 {
        let mapped = crate::virtual_memory::allocated(self) + crate::graph::allocated(self);
        let used = self.device.allocated() + mapped;
        self.total_bytes().saturating_sub(used)
    }

    /// Returns whether an address is memory of a device, or of a graph that will allocate it, and not of the host.
    pub fn is_device_memory(&self, memory: Memory) -> bool {
        let kind = self.find_allocation(memory.address()).map(|found| found.kind);
        let of_graph = || GraphMemory::find(memory.address()).map(|_| AllocationKind::Device);
        kind.or_else(of_graph) == Some(AllocationKind::Device)
    }

    /// Returns the allocation that contains an address, of any device.
    pub fn find_allocation(&self, address: u64) -> Option<AllocationInfo> {
        let (device, range) = self.device.locate(address)?;
        let kind = lock(&KINDS).get(&range.address).copied();
        let registered = range.mapped && ![MAPPED_NAME, GRAPH_MEMORY_NAME].contains(&&*range.name);
        let kind =
            kind.unwrap_or(if registered { AllocationKind::Registered } else { AllocationKind::Device });
        Some(AllocationInfo { address: range.address, len: range.len, device: device.ordinal(), kind })
    }
}

/// Allocates memory of the current device.
fn allocate(pointer: &Out<u64>, len: usize, kind: AllocationKind) -> Outcome {
    allocate_on(gpu()?, pointer, len, kind)
}

fn allocate_on(gpu: &Gpu, pointer: &Out<u64>, len: usize, kind: AllocationKind) -> Outcome {
    if pointer.is_null() {
        return Err(Status::INVALID_VALUE.into());
    }
    pointer.put(allocation(gpu, len, kind)?)
}

/// Allocates from a pool; `None` for the current one of the device.
fn allocate_from(pool: Option<Handle>, gpu: &'static Gpu, pointer: &Out<u64>, len: usize) -> Outcome {
    if pointer.is_null() {
        return Err(Status::INVALID_VALUE.into());
    }
    let allocate = |gpu| allocation(gpu, len, AllocationKind::Device);
    pointer.put(crate::pool::allocate(gpu, pool, len as u64, allocate)?)
}

/// Allocates memory of a device; memory of the host is accessible to all. Returns null for a length of 0.
fn allocation(gpu: &Gpu, len: usize, kind: AllocationKind) -> Outcome<u64> {
    if len == 0 {
        return Ok(0);
    }
    if len as u64 > gpu.free_bytes() {
        return Err(Status::OUT_OF_MEMORY.into());
    }
    let name = match kind {
        AllocationKind::Host(_) => "hipHostMalloc",
        AllocationKind::Managed => "hipMallocManaged",
        _ => "hipMalloc",
    };
    // The host may write to all others directly.
    let address = match kind {
        AllocationKind::Host(_) | AllocationKind::Managed => gpu.device.alloc_shared(len as u64, name)?,
        _ => gpu.device.alloc_undefined(len as u64, name)?,
    };
    lock(&KINDS).insert(address, kind);
    Ok(address)
}

/// Frees an allocation after all submitted work, if its kind is accepted.
fn release(address: u64, accepts: impl Fn(AllocationKind) -> bool) -> Outcome {
    if address == 0 {
        return Ok(());
    }
    gpus()?.iter().try_for_each(|gpu| gpu.streams.wait())?;
    if let Some(memory) = GraphMemory::starting_at(address) {
        return memory.end()?.run();
    }
    let kind = lock(&KINDS).get(&address).copied();
    if kind.is_some_and(|kind| !accepts(kind)) {
        return Err(Status::INVALID_VALUE.into());
    }
    free(gpu()?, address)
}

/// Frees an allocation, and forgets what is known of it.
fn free(gpu: &Gpu, address: u64) -> Outcome {
    let len = gpu.find_allocation(address).map_or(0, |found| found.len);
    // Also handles interior pointers and double frees, for which the device returns specific errors.
    match gpu.device.locate(address) {
        Some((owner, _)) => owner.free(address)?,
        None => gpu.device.free(address)?,
    }
    lock(&KINDS).remove(&address);
    crate::advice::forget(address, len);
    crate::pointer::forget(address);
    crate::pool::freed(address);
    Ok(())
}

/// Allocates managed memory for a variable.
pub fn allocate_managed(gpu: &Gpu, len: u64) -> Outcome<u64> {
    allocation(gpu, len as usize, AllocationKind::Managed)
}

/// Frees managed memory, which no work uses any more.
pub fn free_managed(address: u64) -> Outcome {
    free(gpu()?, address)
}

/// `hipMalloc`.
pub unsafe extern "C" fn hipMalloc(pointer: Out<u64>, len: usize) -> c_int {
    call("hipMalloc", || allocate(&pointer, len, AllocationKind::Device))
}

/// `hipExtMallocWithFlags`. Caches are not simulated.
pub unsafe extern "C" fn hipExtMallocWithFlags(pointer: Out<u64>, len: usize, flags: c_uint) -> c_int {
    /// `hipMallocSignalMemory`: a signal has 8 bytes.
    const SIGNAL: c_uint = 2;
    call("hipExtMallocWithFlags", || match flags {
        SIGNAL if len != 8 => Err(Status::INVALID_VALUE.into()),
        // hipDeviceMallocDefault, …Finegrained, …Uncached, …Contiguous
        0 | 1 | SIGNAL | 3 | 4 => allocate(&pointer, len, AllocationKind::Device),
        _ => Err(Status::INVALID_VALUE.because(format!("flags 0x{flags:x}"))),
    })
}

/// `hipMallocManaged`.
pub unsafe extern "C" fn hipMallocManaged(pointer: Out<u64>, len: usize, flags: c_uint) -> c_int {
    call("hipMallocManaged", || {
        // hipMemAttachGlobal, hipMemAttachHost
        if len == 0 || !matches!(flags, 1 | 2) {
            return Err(Status::INVALID_VALUE.into());
        }
        allocate(&pointer, len, AllocationKind::Managed)
    })
}

/// `hipFree`. As in ROCm's runtime, it frees host memory too.
pub unsafe extern "C" fn hipFree(address: u64) -> c_int {
    call("hipFree", || release(address, |_| true))
}

/// `hipHostMalloc`.
pub unsafe extern "C" fn hipHostMalloc(pointer: Out<u64>, len: usize, flags: c_uint) -> c_int {
    /// `hipHostMallocCoherent` and `hipHostMallocNonCoherent`.
    const COHERENT: c_uint = 1 << 30;
    const NON_COHERENT: c_uint = 1 << 31;
    /// These, `hipHostMallocPortable`, `…Mapped`, `…WriteCombined`, `…NumaUser` and `…Uncached`.
    const FLAGS: c_uint = COHERENT | NON_COHERENT | 0x3000_0007;
    call("hipHostMalloc", || {
        if flags & !FLAGS != 0 || flags & (COHERENT | NON_COHERENT) == COHERENT | NON_COHERENT {
            return Err(Status::INVALID_VALUE.because(format!("flags 0x{flags:x}")));
        }
        allocate(&pointer, len, AllocationKind::Host(flags))
    })
}

/// `hipHostAlloc`.
pub unsafe extern "C" fn hipHostAlloc(pointer: Out<u64>, len: usize, flags: c_uint) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipHostMalloc(pointer, len, flags) }
}

/// `hipExtHostAlloc`.
pub unsafe extern "C" fn hipExtHostAlloc(pointer: Out<u64>, len: usize, flags: c_uint) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipHostMalloc(pointer, len, flags) }
}

/// `hipMallocHost`.
pub unsafe extern "C" fn hipMallocHost(pointer: Out<u64>, len: usize) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipHostMalloc(pointer, len, 0) }
}

/// `hipMemAllocHost`.
pub unsafe extern "C" fn hipMemAllocHost(pointer: Out<u64>, len: usize) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipHostMalloc(pointer, len, 0) }
}

/// `hipHostFree`.
pub unsafe extern "C" fn hipHostFree(address: u64) -> c_int {
    call("hipHostFree", || release(address, |kind| matches!(kind, AllocationKind::Host(_))))
}

/// `hipFreeHost`.
pub unsafe extern "C" fn hipFreeHost(address: u64) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipHostFree(address) }
}

/// `hipMallocAsync`. The memory is available immediately, which satisfies stream order. In a capture, a node allocates it.
pub unsafe extern "C" fn hipMallocAsync(pointer: Out<u64>, len: usize, stream: Handle) -> c_int {
    call("hipMallocAsync", || {
        let stream = gpu()?.streams.find(stream)?;
        let gpu = stream.gpu()?;
        if lock(&stream.capture).is_none() {
            return allocate_from(None, gpu, &pointer, len);
        }
        allocate_in_capture(gpu, &stream, &pointer, len)
    })
}

/// Lets a node of the graph that is captured allocate memory.
fn allocate_in_capture(gpu: &'static Gpu, stream: &Stream, pointer: &Out<u64>, len: usize) -> Outcome {
    let memory = GraphMemory::reserve(gpu, len, None)?;
    pointer.put(memory.address())?;
    gpu.enqueue(stream, Work::memory(MemoryOp::Allocate(memory)))
}

/// `hipMallocFromPoolAsync`.
pub unsafe extern "C" fn hipMallocFromPoolAsync(
    pointer: Out<u64>,
    len: usize,
    pool: Handle,
    stream: Handle,
) -> c_int {
    call("hipMallocFromPoolAsync", || {
        let stream = gpu()?.streams.find(stream)?;
        let gpu = stream.gpu()?;
        if lock(&stream.capture).is_none() {
            return allocate_from(Some(pool), gpu, &pointer, len);
        }
        allocate_in_capture(gpu, &stream, &pointer, len)
    })
}

/// `hipFreeAsync`. Waits for all work, which satisfies stream order, unless the memory is a graph's.
pub unsafe extern "C" fn hipFreeAsync(address: u64, stream: Handle) -> c_int {
    call("hipFreeAsync", || {
        let stream = gpu()?.streams.find(stream)?;
        if address == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        let captured = lock(&stream.capture).is_some();
        match GraphMemory::starting_at(address) {
            Some(memory) => {
                let op = if captured { MemoryOp::Free(memory) } else { memory.end()? };
                stream.gpu()?.enqueue(&stream, Work::memory(op))
            }
            None if captured => {
                Err(Status::NOT_SUPPORTED
                    .because("in a capture, memory is freed that no graph has allocated"))
            }
            None => release(address, |_| true),
        }
    })
}

/// `hipMallocPitch`.
pub unsafe extern "C" fn hipMallocPitch(
    pointer: Out<u64>,
    pitch: Out<usize>,
    width: usize,
    height: usize,
) -> c_int {
    call("hipMallocPitch", || {
        let row = width.checked_next_multiple_of(PITCH).ok_or(Status::OUT_OF_MEMORY)?;
        let len = row.checked_mul(height).ok_or(Status::OUT_OF_MEMORY)?;
        pitch.put(row)?;
        allocate(&pointer, len, AllocationKind::Device)
    })
}

/// `hipMemAllocPitch`.
pub unsafe extern "C" fn hipMemAllocPitch(
    pointer: Out<u64>,
    pitch: Out<usize>,
    width: usize,
    height: usize,
    _element: c_uint,
) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipMallocPitch(pointer, pitch, width, height) }
}

/// `hipPitchedPtr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PitchedPointer<P> {
    /// Address of the first row (`ptr`).
    pub pointer: P,
    /// Distance between rows in bytes.
    pub pitch: usize,
    /// Bytes used in each row (`xsize`).
    pub width: usize,
    /// Number of rows (`ysize`).
    pub height: usize,
}

/// `hipExtent`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Extent {
    /// Bytes per row; as a position, the byte offset in the row.
    pub width: usize,
    /// Rows per slice; as a position, the index of the row.
    pub height: usize,
    /// Number of slices; as a position, the index of the slice.
    pub depth: usize,
}

/// `hipMalloc3D`.
pub unsafe extern "C" fn hipMalloc3D(pointer: Out<PitchedPointer<u64>>, extent: Extent) -> c_int {
    call("hipMalloc3D", || {
        let pitch = extent.width.checked_next_multiple_of(PITCH).ok_or(Status::OUT_OF_MEMORY)?;
        let rows = extent.height.checked_mul(extent.depth).ok_or(Status::OUT_OF_MEMORY)?;
        let len = pitch.checked_mul(rows).ok_or(Status::OUT_OF_MEMORY)?;
        let Extent { width, height, .. } = extent;
        pointer.put(PitchedPointer {
            pointer: allocation(gpu()?, len, AllocationKind::Device)?,
            pitch,
            width,
            height,
        })
    })
}

/// `hipChannelFormatDesc`.
#[repr(C)]
pub struct ChannelFormat {
    bits: [c_int; 4],
    kind: c_int,
}

/// `hipCreateChannelDesc`. Returns a description for arrays, which are not supported.
pub unsafe extern "C" fn hipCreateChannelDesc(
    x: c_int,
    y: c_int,
    z: c_int,
    w: c_int,
    kind: c_int,
) -> ChannelFormat {
    ChannelFormat { bits: [x, y, z, w], kind }
}

/// `hipHostRegister`. Makes host memory accessible to kernels.
pub unsafe extern "C" fn hipHostRegister(memory: Memory, len: usize, flags: c_uint) -> c_int {
    /// `hipHostRegisterPortable`, `…Mapped`, `…IoMemory`, `…ReadOnly` or `hipExtHostRegisterCoarseGrained`, and
    /// `hipExtHostRegisterUncached`.
    const FLAGS: c_uint = 0xf | 1 << 31;
    call("hipHostRegister", || {
        if memory.is_null() || len == 0 || flags & !FLAGS != 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        let gpu = gpu()?;
        if gpu.find_allocation(memory.address()).is_some() {
            return Err(Status::HOST_MEMORY_ALREADY_REGISTERED.into());
        }
        for gpu in gpus()? {
            // SAFETY: the API requires the program to keep the memory valid until it unregisters the memory.
            unsafe { gpu.register(memory, len) }?;
        }
        Ok(())
    })
}

/// `hipHostUnregister`.
pub unsafe extern "C" fn hipHostUnregister(memory: Memory) -> c_int {
    call("hipHostUnregister", || {
        if memory.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        let gpus = gpus()?;
        gpus.iter().try_for_each(|gpu| gpu.streams.wait())?;
        if gpu()?.device.find(memory.address()).is_some_and(|range| range.name == MAPPED_NAME) {
            return Err(Status::HOST_MEMORY_NOT_REGISTERED.into());
        }
        let unmap = |gpu: &Gpu| gpu.device.unmap(memory.address());
        gpus.iter().try_for_each(unmap).map_err(|_| Status::HOST_MEMORY_NOT_REGISTERED.into())
    })
}

impl Gpu {
    /// Makes memory of the program accessible to kernels.
    ///
    /// # Safety
    /// `len` bytes are valid until the memory is unregistered.
    unsafe fn register(&self, memory: Memory, len: usize) -> Outcome {
        let host = std::ptr::with_exposed_provenance_mut(memory.address() as usize);
        // SAFETY: the caller guarantees that the memory is valid.
        let range = unsafe { HostMemory::new(memory.address(), host, len as u64, true, "hipHostRegister") };
        // SAFETY: as above.
        unsafe { self.device.map(range) }?;
        Ok(())
    }
}

/// `hipHostGetDevicePointer`. Returns the same pointer.
pub unsafe extern "C" fn hipHostGetDevicePointer(device: Out<u64>, host: Memory, flags: c_uint) -> c_int {
    call("hipHostGetDevicePointer", || {
        if flags != 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        let known = gpu()?.find_allocation(host.address()).ok_or(Status::INVALID_VALUE)?;
        match known.kind {
            AllocationKind::Device => Err(Status::INVALID_VALUE.into()),
            _ => device.put(host.address()),
        }
    })
}

/// `hipHostGetFlags`.
pub unsafe extern "C" fn hipHostGetFlags(flags: Out<c_uint>, host: Memory) -> c_int {
    call("hipHostGetFlags", || match gpu()?.find_allocation(host.address()).map(|k| k.kind) {
        Some(AllocationKind::Host(given)) => flags.put(given),
        _ => Err(Status::INVALID_VALUE.into()),
    })
}

/// `hipMemGetInfo`.
pub unsafe extern "C" fn hipMemGetInfo(free: Out<usize>, total: Out<usize>) -> c_int {
    call("hipMemGetInfo", || {
        let gpu = gpu()?;
        free.put_optional(gpu.free_bytes() as usize);
        total.put_optional(gpu.total_bytes() as usize);
        Ok(())
    })
}

/// `hipMemGetAddressRange`.
pub unsafe extern "C" fn hipMemGetAddressRange(base: Out<u64>, len: Out<usize>, address: u64) -> c_int {
    call("hipMemGetAddressRange", || {
        let known = gpu()?.find_allocation(address).ok_or(Status::NOT_FOUND)?;
        base.put_optional(known.address);
        len.put_optional(known.len as usize);
        Ok(())
    })
}

/// `hipMemPtrGetInfo`.
pub unsafe extern "C" fn hipMemPtrGetInfo(address: u64, len: Out<usize>) -> c_int {
    call("hipMemPtrGetInfo", || match gpu()?.find_allocation(address) {
        Some(known) => len.put(known.len as usize),
        None => Err(Status::INVALID_VALUE.into()),
    })
}
