//! Copies and fills.

use crate::array::Array;
use crate::ffi::{In, Memory, Out};
use crate::gpu::{Gpu, gpu, gpu_at};
use crate::graph::GraphMemory;
use crate::memory::{Extent, PitchedPointer};
use crate::op::{Copy, Fill, Op, Pitched, Work};
use crate::status::{Outcome, Status, call};
use crate::stream::Handle;
use std::ffi::{c_int, c_uint};

/// `hipMemcpyKind`.
const HOST_TO_HOST: c_int = 0;
pub const HOST_TO_DEVICE: c_int = 1;
pub const DEVICE_TO_HOST: c_int = 2;
pub const DEVICE_TO_DEVICE: c_int = 3;
pub const DEFAULT: c_int = 4;

/// Classification of one side of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Pageable host memory, unknown to the device.
    Pageable,
    /// An allocation of the device or of the host, or registered memory.
    Accessible,
}

/// Classifies a side of a copy. The range must not extend past the end of an allocation.
fn side(gpu: &Gpu, what: &str, memory: Memory, extent: usize) -> Outcome<Side> {
    if memory.is_null() {
        return Err(Status::INVALID_VALUE.because(format!("the {what} is null")));
    }
    let address = memory.address();
    // Nodes of graphs refer to memory that is not allocated yet.
    let of_graph = || GraphMemory::find(address).map(|memory| memory.info());
    let Some(allocation) = gpu.find_allocation(address).or_else(of_graph) else { return Ok(Side::Pageable) };
    let remaining = allocation.len - (address - allocation.address);
    if extent as u64 > remaining {
        let message = format!(
            "{extent} bytes at the {what} 0x{address:x}: only {remaining} are left in the allocation of {} bytes at 0x{:x}",
            allocation.len, allocation.address
        );
        return Err(Status::INVALID_VALUE.because(message));
    }
    Ok(Side::Accessible)
}

/// Validates a copy. Returns true if it involves pageable memory.
pub fn check(gpu: &Gpu, copy: &Copy, kind: c_int) -> Outcome<bool> {
    if !(HOST_TO_HOST..=DEFAULT).contains(&kind) && kind != 1024 {
        return Err(Status::INVALID_MEMCPY_DIRECTION.into());
    }
    if copy.width == 0 || copy.height == 0 || copy.depth == 0 {
        return Ok(false);
    }
    let wrong_pitch = |p: &Pitched| copy.height > 1 && p.pitch < copy.width;
    if wrong_pitch(&copy.to) || wrong_pitch(&copy.from) {
        return Err(Status::INVALID_PITCH_VALUE.into());
    }
    let extent = |p: &Pitched| p.extent(copy.width, copy.height, copy.depth);
    let to = side(gpu, "destination", copy.to.at, extent(&copy.to))?;
    let from = side(gpu, "source", copy.from.at, extent(&copy.from))?;
    let device = |what: &str, side: Side, memory: Memory| match side {
        Side::Accessible => Ok(()),
        Side::Pageable => Err(Status::INVALID_VALUE.because(format!(
            "the {what} 0x{:x} is not device memory{}",
            memory.address(),
            if gpu.device.find_freed(memory.address()).is_some() { ": it has been freed" } else { "" }
        ))),
    };
    if matches!(kind, HOST_TO_DEVICE | DEVICE_TO_DEVICE) {
        device("destination", to, copy.to.at)?;
    }
    if matches!(kind, DEVICE_TO_HOST | DEVICE_TO_DEVICE) {
        device("source", from, copy.from.at)?;
    }
    Ok(to == Side::Pageable || from == Side::Pageable)
}

/// Copies synchronously, in stream order.
///
/// # Safety
/// All rows of both sides are memory of the program or of the device.
pub unsafe fn copy_sync(copy: Copy, kind: c_int, stream: Handle) -> Outcome {
    let gpu = gpu()?;
    check(gpu, &copy, kind)?;
    // SAFETY: the caller guarantees that the rows are valid.
    let work = unsafe { Work::new(Op::Copy(copy)) };
    gpu.run(&*gpu.streams.find(stream)?, work)
}

/// Copies in stream order, asynchronously unless pageable memory is involved: the program may free pageable
/// memory as soon as the call returns.
///
/// # Safety
/// Until the copy has ended, all rows of both sides are memory of the program or of the device.
pub unsafe fn copy_async(copy: Copy, kind: c_int, stream: Handle) -> Outcome {
    let gpu = gpu()?;
    let pageable = check(gpu, &copy, kind)?;
    let stream = gpu.streams.find(stream)?;
    // SAFETY: the caller guarantees that the rows are valid.
    let work = unsafe { Work::new(Op::Copy(copy)) };
    match pageable {
        true => gpu.run(&stream, work),
        false => gpu.enqueue(&stream, work),
    }
}

/// `hipMemcpy`.
pub unsafe extern "C" fn hipMemcpy(to: Memory, from: Memory, len: usize, kind: c_int) -> c_int {
    call("hipMemcpy", || {
        // SAFETY: the caller of the API keeps the memory valid until the copy has ended.
        unsafe { copy_sync(Copy::linear(to, from, len), kind, 0) }
    })
}

/// `hipMemcpyWithStream`.
pub unsafe extern "C" fn hipMemcpyWithStream(
    to: Memory,
    from: Memory,
    len: usize,
    kind: c_int,
    stream: Handle,
) -> c_int {
    call("hipMemcpyWithStream", || {
        // SAFETY: the caller of the API keeps the memory valid until the copy has ended.
        unsafe { copy_sync(Copy::linear(to, from, len), kind, stream) }
    })
}

/// `hipMemcpyAsync`.
pub unsafe extern "C" fn hipMemcpyAsync(
    to: Memory,
    from: Memory,
    len: usize,
    kind: c_int,
    stream: Handle,
) -> c_int {
    call("hipMemcpyAsync", || {
        // SAFETY: the caller of the API keeps the memory valid until the copy has ended.
        unsafe { copy_async(Copy::linear(to, from, len), kind, stream) }
    })
}

/// `hipMemcpyBatchAsync`. The attributes are hints, which are ignored. `failed` is the copy that is refused; then none is made.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn hipMemcpyBatchAsync(
    to: In<Memory>,
    from: In<Memory>,
    sizes: In<usize>,
    count: usize,
    _attributes: Memory,
    _attribute_indices: Memory,
    _attribute_count: usize,
    failed: Out<usize>,
    stream: Handle,
) -> c_int {
    // SAFETY: the caller of the API passes arrays of this length.
    let (to, from, sizes) = unsafe { (to.array(count), from.array(count), sizes.array(count)) };
    call("hipMemcpyBatchAsync", || {
        failed.put_optional(usize::MAX);
        if count == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        let rows = to.read()?.into_iter().zip(from.read()?).zip(sizes.read()?);
        let copies: Vec<Copy> = rows.map(|((to, from), len)| Copy::linear(to, from, len)).collect();
        let gpu = gpu()?;
        gpu.streams.find(stream)?;
        for (index, copy) in copies.iter().enumerate() {
            check(gpu, copy, DEFAULT).inspect_err(|_| failed.put_optional(index))?;
        }
        for copy in copies {
            // SAFETY: the caller of the API keeps the memory valid until the copies have ended.
            unsafe { copy_async(copy, DEFAULT, stream)? };
        }
        Ok(())
    })
}

macro_rules! linear_copies {
    ($($sync:ident, $asynchronous:ident, $kind:expr;)*) => {
        $(
            #[doc = concat!("`", stringify!($sync), "`.")]
            pub unsafe extern "C" fn $sync(to: Memory, from: Memory, len: usize) -> c_int {
                call(stringify!($sync), || {
                    // SAFETY: the caller of the API keeps the memory valid until the copy has ended.
                    unsafe { copy_sync(Copy::linear(to, from, len), $kind, 0) }
                })
            }

            #[doc = concat!("`", stringify!($asynchronous), "`.")]
            pub unsafe extern "C" fn $asynchronous(to: Memory, from: Memory, len: usize, stream: Handle) -> c_int {
                call(stringify!($asynchronous), || {
                    // SAFETY: the caller of the API keeps the memory valid until the copy has ended.
                    unsafe { copy_async(Copy::linear(to, from, len), $kind, stream) }
                })
            }
        )*
    };
}

linear_copies! {
    hipMemcpyHtoD, hipMemcpyHtoDAsync, HOST_TO_DEVICE;
    hipMemcpyDtoH, hipMemcpyDtoHAsync, DEVICE_TO_HOST;
    hipMemcpyDtoD, hipMemcpyDtoDAsync, DEVICE_TO_DEVICE;
}

/// Returns a copy of rows.
fn rows(to: Memory, to_pitch: usize, from: Memory, from_pitch: usize, width: usize, height: usize) -> Copy {
    Copy { to: Pitched::rows(to, to_pitch), from: Pitched::rows(from, from_pitch), width, height, depth: 1 }
}

/// `hipMemcpy2D`.
pub unsafe extern "C" fn hipMemcpy2D(
    to: Memory,
    to_pitch: usize,
    from: Memory,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
) -> c_int {
    call("hipMemcpy2D", || {
        // SAFETY: the caller of the API keeps the memory valid until the copy has ended.
        unsafe { copy_sync(rows(to, to_pitch, from, from_pitch, width, height), kind, 0) }
    })
}

/// `hipMemcpy2DAsync`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn hipMemcpy2DAsync(
    to: Memory,
    to_pitch: usize,
    from: Memory,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
    stream: Handle,
) -> c_int {
    call("hipMemcpy2DAsync", || {
        // SAFETY: the caller of the API keeps the memory valid until the copy has ended.
        unsafe { copy_async(rows(to, to_pitch, from, from_pitch, width, height), kind, stream) }
    })
}

/// `hipMemcpy3DParms`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Parameters3d {
    from_array: usize,
    from_position: Extent,
    from: PitchedPointer<Memory>,
    to_array: usize,
    to_position: Extent,
    to: PitchedPointer<Memory>,
    extent: Extent,
    kind: c_int,
}

impl Parameters3d {
    /// Returns the parameters of a copy between addresses.
    pub fn of(copy: &Copy) -> Parameters3d {
        let side = |side: &Pitched| {
            let pitch = if side.pitch == 0 { copy.width } else { side.pitch };
            let height = if side.slice == 0 { copy.height } else { side.slice / pitch.max(1) };
            PitchedPointer { pointer: side.at, pitch, width: copy.width, height }
        };
        let none = Extent { width: 0, height: 0, depth: 0 };
        let Copy { width, height, depth, .. } = *copy;
        Parameters3d {
            from_array: 0,
            from_position: none,
            from: side(&copy.from),
            to_array: 0,
            to_position: none,
            to: side(&copy.to),
            extent: Extent { width, height, depth },
            kind: DEFAULT,
        }
    }

    /// Returns the parameters of a copy between two sides: an array, or 0; the position in it; an address.
    pub fn between(
        (to_array, to_position, to): (usize, Extent, PitchedPointer<Memory>),
        (from_array, from_position, from): (usize, Extent, PitchedPointer<Memory>),
        extent: Extent,
    ) -> Parameters3d {
        Parameters3d { from_array, from_position, from, to_array, to_position, to, extent, kind: DEFAULT }
    }

    /// Returns `hipMemcpyKind`.
    pub fn kind(&self) -> c_int {
        self.kind
    }

    /// Returns the copy, after checks.
    pub fn checked(&self) -> Outcome<Copy> {
        let copy = self.copy()?;
        check(gpu()?, &copy, self.kind)?;
        Ok(copy)
    }

    fn copy(&self) -> Outcome<Copy> {
        let arrays = [self.to_array, self.from_array];
        let arrays = arrays.map(|handle| if handle == 0 { Ok(None) } else { Array::get(handle).map(Some) });
        let [to_array, from_array] = arrays;
        let (to_array, from_array) = (to_array?, from_array?);
        // The extent counts texels if an array takes part.
        let size = match to_array.as_ref().or(from_array.as_ref()) {
            Some(array) => array.in_bytes(&self.extent, true)?,
            None => [self.extent.width, self.extent.height, self.extent.depth],
        };
        let side = |array: &Option<Array>, pointer: &PitchedPointer<Memory>, position: &Extent| {
            if let Some(array) = array {
                return array.part(array.in_bytes(position, false)?, size);
            }
            let slice = pointer.pitch.checked_mul(pointer.height).ok_or(Status::INVALID_VALUE)?;
            let offset = (position.depth.checked_mul(slice))
                .and_then(|z| z.checked_add(position.height.checked_mul(pointer.pitch)?))
                .and_then(|yz| yz.checked_add(position.width))
                .ok_or(Status::INVALID_VALUE)?;
            Ok(Pitched { at: pointer.pointer.offset(offset), pitch: pointer.pitch, slice })
        };
        let [width, height, depth] = size;
        Ok(Copy {
            to: side(&to_array, &self.to, &self.to_position)?,
            from: side(&from_array, &self.from, &self.from_position)?,
            width,
            height,
            depth,
        })
    }
}

/// `hipMemcpy3D`.
pub unsafe extern "C" fn hipMemcpy3D(parameters: In<Parameters3d>) -> c_int {
    call("hipMemcpy3D", || {
        let given = parameters.get()?;
        // SAFETY: the caller of the API keeps the memory valid until the copy has ended.
        unsafe { copy_sync(given.copy()?, given.kind, 0) }
    })
}

/// `hipMemcpy3DAsync`.
pub unsafe extern "C" fn hipMemcpy3DAsync(parameters: In<Parameters3d>, stream: Handle) -> c_int {
    call("hipMemcpy3DAsync", || {
        let given = parameters.get()?;
        // SAFETY: the caller of the API keeps the memory valid until the copy has ended.
        unsafe { copy_async(given.copy()?, given.kind, stream) }
    })
}

/// `hipMemcpy3DPeerParms`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PeerParameters3d {
    from_array: usize,
    from_position: Extent,
    from: PitchedPointer<Memory>,
    from_device: c_int,
    to_array: usize,
    to_position: Extent,
    to: PitchedPointer<Memory>,
    to_device: c_int,
    extent: Extent,
}

impl PeerParameters3d {
    fn copy(&self) -> Outcome<Copy> {
        gpu_at(self.to_device)?;
        gpu_at(self.from_device)?;
        let PeerParameters3d { from_array, from_position, from, to_array, to_position, to, extent, .. } =
            *self;
        let kind = DEVICE_TO_DEVICE;
        Parameters3d { from_array, from_position, from, to_array, to_position, to, extent, kind }.copy()
    }
}

/// `hipMemcpy3DPeer`. The host copies, so the devices need no access to each other.
pub unsafe extern "C" fn hipMemcpy3DPeer(parameters: In<PeerParameters3d>) -> c_int {
    call("hipMemcpy3DPeer", || {
        // SAFETY: the caller of the API keeps the memory valid until the copy has ended.
        unsafe { copy_sync(parameters.get()?.copy()?, DEVICE_TO_DEVICE, 0) }
    })
}

/// `hipMemcpy3DPeerAsync`.
pub unsafe extern "C" fn hipMemcpy3DPeerAsync(parameters: In<PeerParameters3d>, stream: Handle) -> c_int {
    call("hipMemcpy3DPeerAsync", || {
        // SAFETY: the caller of the API keeps the memory valid until the copy has ended.
        unsafe { copy_async(parameters.get()?.copy()?, DEVICE_TO_DEVICE, stream) }
    })
}

/// `hipMemcpyPeer`. The host copies, so the devices need no access to each other.
pub unsafe extern "C" fn hipMemcpyPeer(
    to: Memory,
    to_device: c_int,
    from: Memory,
    from_device: c_int,
    len: usize,
) -> c_int {
    call("hipMemcpyPeer", || {
        gpu_at(to_device)?;
        gpu_at(from_device)?;
        // SAFETY: the caller of the API keeps the memory valid until the copy has ended.
        unsafe { copy_sync(Copy::linear(to, from, len), DEVICE_TO_DEVICE, 0) }
    })
}

/// `hipMemcpyPeerAsync`.
pub unsafe extern "C" fn hipMemcpyPeerAsync(
    to: Memory,
    to_device: c_int,
    from: Memory,
    from_device: c_int,
    len: usize,
    stream: Handle,
) -> c_int {
    call("hipMemcpyPeerAsync", || {
        gpu_at(to_device)?;
        gpu_at(from_device)?;
        // SAFETY: the caller of the API keeps the memory valid until the copy has ended.
        unsafe { copy_async(Copy::linear(to, from, len), DEVICE_TO_DEVICE, stream) }
    })
}

/// Validates a fill.
pub fn check_fill(gpu: &Gpu, fill: &Fill) -> Outcome {
    if !matches!(fill.size, 1 | 2 | 4) {
        return Err(Status::INVALID_VALUE.into());
    }
    let width = fill.width.checked_mul(fill.size).ok_or(Status::INVALID_VALUE)?;
    let extent = fill.to.extent(width, fill.height, fill.depth);
    if extent == 0 {
        return Ok(());
    }
    match side(gpu, "destination", fill.to.at, extent)? {
        Side::Accessible => Ok(()),
        Side::Pageable => {
            let message = format!("the destination 0x{:x} is not device memory", fill.to.at.address());
            Err(Status::INVALID_VALUE.because(message))
        }
    }
}

/// Fills synchronously, in the order of the legacy default stream.
///
/// # Safety
/// All rows are memory of the device, or of the program and known to it.
unsafe fn fill_sync(fill: Fill) -> Outcome {
    let gpu = gpu()?;
    check_fill(gpu, &fill)?;
    // SAFETY: the caller guarantees that the rows are valid.
    let work = unsafe { Work::new(Op::Fill(fill)) };
    gpu.run(&*gpu.streams.find(0)?, work)
}

/// Fills asynchronously, in stream order.
///
/// # Safety
/// As for [`fill_sync`], until the fill has ended.
unsafe fn fill_async(fill: Fill, stream: Handle) -> Outcome {
    let gpu = gpu()?;
    check_fill(gpu, &fill)?;
    // SAFETY: the caller guarantees that the rows are valid.
    let work = unsafe { Work::new(Op::Fill(fill)) };
    gpu.enqueue(&*gpu.streams.find(stream)?, work)
}

/// Returns a fill of `count` elements.
fn linear_fill(to: Memory, value: c_uint, size: usize, count: usize) -> Fill {
    Fill { to: Pitched::linear(to), value, size, width: count, height: 1, depth: 1 }
}

/// Returns a fill of bytes.
fn byte_fill(to: Memory, value: c_int, len: usize) -> Fill {
    linear_fill(to, value as u8 as u32, 1, len)
}

/// Returns a fill of rows of bytes.
fn row_fill(to: Memory, pitch: usize, value: c_int, width: usize, height: usize) -> Fill {
    Fill { to: Pitched::rows(to, pitch), value: value as u8 as u32, size: 1, width, height, depth: 1 }
}

/// Returns a fill of a 3D region of bytes.
fn box_fill(to: &PitchedPointer<Memory>, value: c_int, extent: Extent) -> Outcome<Fill> {
    let slice = to.pitch.checked_mul(to.height).ok_or(Status::INVALID_VALUE)?;
    let rows = row_fill(to.pointer, to.pitch, value, extent.width, extent.height);
    Ok(Fill { to: Pitched { slice, ..rows.to }, depth: extent.depth, ..rows })
}

/// `hipMemset`.
pub unsafe extern "C" fn hipMemset(to: Memory, value: c_int, len: usize) -> c_int {
    call("hipMemset", || {
        // SAFETY: the caller of the API keeps the memory valid until the fill has ended.
        unsafe { fill_sync(byte_fill(to, value, len)) }
    })
}

/// `hipMemsetAsync`.
pub unsafe extern "C" fn hipMemsetAsync(to: Memory, value: c_int, len: usize, stream: Handle) -> c_int {
    call("hipMemsetAsync", || {
        // SAFETY: the caller of the API keeps the memory valid until the fill has ended.
        unsafe { fill_async(byte_fill(to, value, len), stream) }
    })
}

macro_rules! fills {
    ($($sync:ident, $asynchronous:ident, $value:ty, $size:literal;)*) => {
        $(
            #[doc = concat!("`", stringify!($sync), "`.")]
            pub unsafe extern "C" fn $sync(to: Memory, value: $value, count: usize) -> c_int {
                call(stringify!($sync), || {
                    // SAFETY: the caller of the API keeps the memory valid until the fill has ended.
                    unsafe { fill_sync(linear_fill(to, value as u32, $size, count)) }
                })
            }

            #[doc = concat!("`", stringify!($asynchronous), "`.")]
            pub unsafe extern "C" fn $asynchronous(to: Memory, value: $value, count: usize, stream: Handle) -> c_int {
                call(stringify!($asynchronous), || {
                    // SAFETY: the caller of the API keeps the memory valid until the fill has ended.
                    unsafe { fill_async(linear_fill(to, value as u32, $size, count), stream) }
                })
            }
        )*
    };
}

fills! {
    hipMemsetD8, hipMemsetD8Async, u8, 1;
    hipMemsetD16, hipMemsetD16Async, u16, 2;
    hipMemsetD32, hipMemsetD32Async, c_int, 4;
}

macro_rules! row_fills {
    ($($sync:ident, $asynchronous:ident, $value:ty, $size:literal;)*) => {
        $(
            #[doc = concat!("`", stringify!($sync), "`.")]
            pub unsafe extern "C" fn $sync(
                to: Memory,
                pitch: usize,
                value: $value,
                width: usize,
                height: usize,
            ) -> c_int {
                call(stringify!($sync), || {
                    let fill = Fill { size: $size, value: value.into(), ..row_fill(to, pitch, 0, width, height) };
                    // SAFETY: the caller of the API keeps the memory valid until the fill has ended.
                    unsafe { fill_sync(fill) }
                })
            }

            #[doc = concat!("`", stringify!($asynchronous), "`.")]
            pub unsafe extern "C" fn $asynchronous(
                to: Memory,
                pitch: usize,
                value: $value,
                width: usize,
                height: usize,
                stream: Handle,
            ) -> c_int {
                call(stringify!($asynchronous), || {
                    let fill = Fill { size: $size, value: value.into(), ..row_fill(to, pitch, 0, width, height) };
                    // SAFETY: the caller of the API keeps the memory valid until the fill has ended.
                    unsafe { fill_async(fill, stream) }
                })
            }
        )*
    };
}

row_fills! {
    hipMemsetD2D8, hipMemsetD2D8Async, u8, 1;
    hipMemsetD2D16, hipMemsetD2D16Async, u16, 2;
    hipMemsetD2D32, hipMemsetD2D32Async, c_uint, 4;
}

/// `hipMemset2D`.
pub unsafe extern "C" fn hipMemset2D(
    to: Memory,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
) -> c_int {
    call("hipMemset2D", || {
        // SAFETY: the caller of the API keeps the memory valid until the fill has ended.
        unsafe { fill_sync(row_fill(to, pitch, value, width, height)) }
    })
}

/// `hipMemset2DAsync`.
pub unsafe extern "C" fn hipMemset2DAsync(
    to: Memory,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
    stream: Handle,
) -> c_int {
    call("hipMemset2DAsync", || {
        // SAFETY: the caller of the API keeps the memory valid until the fill has ended.
        unsafe { fill_async(row_fill(to, pitch, value, width, height), stream) }
    })
}

/// `hipMemset3D`.
pub unsafe extern "C" fn hipMemset3D(to: PitchedPointer<Memory>, value: c_int, extent: Extent) -> c_int {
    call("hipMemset3D", || {
        // SAFETY: the caller of the API keeps the memory valid until the fill has ended.
        unsafe { fill_sync(box_fill(&to, value, extent)?) }
    })
}

/// `hipMemset3DAsync`.
pub unsafe extern "C" fn hipMemset3DAsync(
    to: PitchedPointer<Memory>,
    value: c_int,
    extent: Extent,
    stream: Handle,
) -> c_int {
    call("hipMemset3DAsync", || {
        // SAFETY: the caller of the API keeps the memory valid until the fill has ended.
        unsafe { fill_async(box_fill(&to, value, extent)?, stream) }
    })
}
