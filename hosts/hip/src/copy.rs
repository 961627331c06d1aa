//! Copies and fills.

use crate::ffi::{In, Memory};
use crate::gpu::{Gpu, gpu};
use crate::memory::{Extent, PitchedPointer};
use crate::op::{Copy, Fill, Op, Pitched};
use crate::status::{Outcome, Status, call};
use crate::stream::Handle;
use std::ffi::{c_int, c_uint};

/// `hipMemcpyKind`.
const HOST_TO_HOST: c_int = 0;
const HOST_TO_DEVICE: c_int = 1;
const DEVICE_TO_HOST: c_int = 2;
const DEVICE_TO_DEVICE: c_int = 3;
const DEFAULT: c_int = 4;

/// What a side of a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Memory that the device does not know.
    Pageable,
    /// An allocation of the device or of the host, or registered memory.
    Known,
}

/// Looks a side up; an allocation must have all of it.
fn side(gpu: &Gpu, what: &str, memory: Memory, extent: usize) -> Outcome<Side> {
    if memory.is_null() {
        return Err(Status::INVALID_VALUE.because(format!("the {what} is null")));
    }
    let address = memory.address();
    let Some(known) = gpu.known(address) else { return Ok(Side::Pageable) };
    let left = known.len - (address - known.address);
    if extent as u64 > left {
        let message = format!(
            "{extent} bytes at the {what} 0x{address:x}: the allocation of {} bytes at 0x{:x} has {left} there",
            known.len, known.address
        );
        return Err(Status::INVALID_VALUE.because(message));
    }
    Ok(Side::Known)
}

/// Checks a copy; whether memory that the device does not know takes part in it.
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
        Side::Known => Ok(()),
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

/// Copies, in the order of a stream, and waits.
pub fn now(copy: Copy, kind: c_int, stream: Handle) -> Outcome {
    let gpu = gpu()?;
    check(gpu, &copy, kind)?;
    gpu.run(&*gpu.streams.find(stream)?, Op::Copy(copy))
}

/// Copies, in the order of a stream. What the device does not know may be gone when the call has returned: then it waits.
fn later(copy: Copy, kind: c_int, stream: Handle) -> Outcome {
    let gpu = gpu()?;
    let pageable = check(gpu, &copy, kind)?;
    let stream = gpu.streams.find(stream)?;
    match pageable {
        true => gpu.run(&stream, Op::Copy(copy)),
        false => gpu.enqueue(&stream, Op::Copy(copy)),
    }
}

/// `hipMemcpy`.
pub extern "C" fn hipMemcpy(to: Memory, from: Memory, len: usize, kind: c_int) -> c_int {
    call("hipMemcpy", || now(Copy::linear(to, from, len), kind, 0))
}

/// `hipMemcpyWithStream`.
pub extern "C" fn hipMemcpyWithStream(
    to: Memory,
    from: Memory,
    len: usize,
    kind: c_int,
    stream: Handle,
) -> c_int {
    call("hipMemcpyWithStream", || now(Copy::linear(to, from, len), kind, stream))
}

/// `hipMemcpyAsync`.
pub extern "C" fn hipMemcpyAsync(to: Memory, from: Memory, len: usize, kind: c_int, stream: Handle) -> c_int {
    call("hipMemcpyAsync", || later(Copy::linear(to, from, len), kind, stream))
}

macro_rules! linear_copies {
    ($($now:ident, $later:ident, $kind:expr;)*) => {
        $(
            #[doc = concat!("`", stringify!($now), "`.")]
            pub extern "C" fn $now(to: Memory, from: Memory, len: usize) -> c_int {
                call(stringify!($now), || now(Copy::linear(to, from, len), $kind, 0))
            }

            #[doc = concat!("`", stringify!($later), "`.")]
            pub extern "C" fn $later(to: Memory, from: Memory, len: usize, stream: Handle) -> c_int {
                call(stringify!($later), || later(Copy::linear(to, from, len), $kind, stream))
            }
        )*
    };
}

linear_copies! {
    hipMemcpyHtoD, hipMemcpyHtoDAsync, HOST_TO_DEVICE;
    hipMemcpyDtoH, hipMemcpyDtoHAsync, DEVICE_TO_HOST;
    hipMemcpyDtoD, hipMemcpyDtoDAsync, DEVICE_TO_DEVICE;
}

/// A copy of rows.
fn rows(to: Memory, to_pitch: usize, from: Memory, from_pitch: usize, width: usize, height: usize) -> Copy {
    Copy { to: Pitched::rows(to, to_pitch), from: Pitched::rows(from, from_pitch), width, height, depth: 1 }
}

/// `hipMemcpy2D`.
pub extern "C" fn hipMemcpy2D(
    to: Memory,
    to_pitch: usize,
    from: Memory,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
) -> c_int {
    call("hipMemcpy2D", || now(rows(to, to_pitch, from, from_pitch, width, height), kind, 0))
}

/// `hipMemcpy2DAsync`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub extern "C" fn hipMemcpy2DAsync(
    to: Memory,
    to_pitch: usize,
    from: Memory,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
    stream: Handle,
) -> c_int {
    call("hipMemcpy2DAsync", || later(rows(to, to_pitch, from, from_pitch, width, height), kind, stream))
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
    fn copy(&self) -> Outcome<Copy> {
        if self.from_array != 0 || self.to_array != 0 {
            return Err(Status::NOT_SUPPORTED.because("arrays are not supported"));
        }
        let side = |pointer: &PitchedPointer<Memory>, position: &Extent| -> Outcome<Pitched> {
            let slice = pointer.pitch.checked_mul(pointer.height).ok_or(Status::INVALID_VALUE)?;
            let offset = (position.depth.checked_mul(slice))
                .and_then(|z| z.checked_add(position.height.checked_mul(pointer.pitch)?))
                .and_then(|yz| yz.checked_add(position.width))
                .ok_or(Status::INVALID_VALUE)?;
            Ok(Pitched { at: pointer.pointer.offset(offset), pitch: pointer.pitch, slice })
        };
        let Extent { width, height, depth } = self.extent;
        Ok(Copy {
            to: side(&self.to, &self.to_position)?,
            from: side(&self.from, &self.from_position)?,
            width,
            height,
            depth,
        })
    }
}

/// `hipMemcpy3D`.
pub extern "C" fn hipMemcpy3D(parameters: In<Parameters3d>) -> c_int {
    call("hipMemcpy3D", || {
        let given = parameters.get()?;
        now(given.copy()?, given.kind, 0)
    })
}

/// `hipMemcpy3DAsync`.
pub extern "C" fn hipMemcpy3DAsync(parameters: In<Parameters3d>, stream: Handle) -> c_int {
    call("hipMemcpy3DAsync", || {
        let given = parameters.get()?;
        later(given.copy()?, given.kind, stream)
    })
}

/// `hipMemcpyPeer`: there is one device.
pub extern "C" fn hipMemcpyPeer(
    to: Memory,
    to_device: c_int,
    from: Memory,
    from_device: c_int,
    len: usize,
) -> c_int {
    call("hipMemcpyPeer", || {
        one_device(to_device, from_device)?;
        now(Copy::linear(to, from, len), DEVICE_TO_DEVICE, 0)
    })
}

fn one_device(to: c_int, from: c_int) -> Outcome {
    if to == 0 && from == 0 { Ok(()) } else { Err(Status::INVALID_DEVICE.into()) }
}

/// `hipMemcpyPeerAsync`.
pub extern "C" fn hipMemcpyPeerAsync(
    to: Memory,
    to_device: c_int,
    from: Memory,
    from_device: c_int,
    len: usize,
    stream: Handle,
) -> c_int {
    call("hipMemcpyPeerAsync", || {
        one_device(to_device, from_device)?;
        later(Copy::linear(to, from, len), DEVICE_TO_DEVICE, stream)
    })
}

/// Checks a fill.
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
        Side::Known => Ok(()),
        Side::Pageable => {
            let message = format!("the destination 0x{:x} is not device memory", fill.to.at.address());
            Err(Status::INVALID_VALUE.because(message))
        }
    }
}

/// Fills, in the order of the legacy default stream, and waits.
fn fill_now(fill: Fill) -> Outcome {
    let gpu = gpu()?;
    check_fill(gpu, &fill)?;
    gpu.run(&*gpu.streams.find(0)?, Op::Fill(fill))
}

/// Fills, in the order of a stream.
fn fill_later(fill: Fill, stream: Handle) -> Outcome {
    let gpu = gpu()?;
    check_fill(gpu, &fill)?;
    gpu.enqueue(&*gpu.streams.find(stream)?, Op::Fill(fill))
}

/// A fill of `count` elements.
fn linear_fill(to: Memory, value: c_uint, size: usize, count: usize) -> Fill {
    Fill { to: Pitched::linear(to), value, size, width: count, height: 1, depth: 1 }
}

/// A fill of bytes.
fn byte_fill(to: Memory, value: c_int, len: usize) -> Fill {
    linear_fill(to, value as u8 as u32, 1, len)
}

/// A fill of rows of bytes.
fn row_fill(to: Memory, pitch: usize, value: c_int, width: usize, height: usize) -> Fill {
    Fill { to: Pitched::rows(to, pitch), value: value as u8 as u32, size: 1, width, height, depth: 1 }
}

/// A fill of slices of rows of bytes.
fn box_fill(to: &PitchedPointer<Memory>, value: c_int, extent: Extent) -> Outcome<Fill> {
    let slice = to.pitch.checked_mul(to.height).ok_or(Status::INVALID_VALUE)?;
    let rows = row_fill(to.pointer, to.pitch, value, extent.width, extent.height);
    Ok(Fill { to: Pitched { slice, ..rows.to }, depth: extent.depth, ..rows })
}

/// `hipMemset`.
pub extern "C" fn hipMemset(to: Memory, value: c_int, len: usize) -> c_int {
    call("hipMemset", || fill_now(byte_fill(to, value, len)))
}

/// `hipMemsetAsync`.
pub extern "C" fn hipMemsetAsync(to: Memory, value: c_int, len: usize, stream: Handle) -> c_int {
    call("hipMemsetAsync", || fill_later(byte_fill(to, value, len), stream))
}

macro_rules! fills {
    ($($now:ident, $later:ident, $value:ty, $size:literal;)*) => {
        $(
            #[doc = concat!("`", stringify!($now), "`.")]
            pub extern "C" fn $now(to: Memory, value: $value, count: usize) -> c_int {
                call(stringify!($now), || fill_now(linear_fill(to, value as u32, $size, count)))
            }

            #[doc = concat!("`", stringify!($later), "`.")]
            pub extern "C" fn $later(to: Memory, value: $value, count: usize, stream: Handle) -> c_int {
                call(stringify!($later), || fill_later(linear_fill(to, value as u32, $size, count), stream))
            }
        )*
    };
}

fills! {
    hipMemsetD8, hipMemsetD8Async, u8, 1;
    hipMemsetD16, hipMemsetD16Async, u16, 2;
    hipMemsetD32, hipMemsetD32Async, c_int, 4;
}

/// `hipMemset2D`.
pub extern "C" fn hipMemset2D(to: Memory, pitch: usize, value: c_int, width: usize, height: usize) -> c_int {
    call("hipMemset2D", || fill_now(row_fill(to, pitch, value, width, height)))
}

/// `hipMemset2DAsync`.
pub extern "C" fn hipMemset2DAsync(
    to: Memory,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
    stream: Handle,
) -> c_int {
    call("hipMemset2DAsync", || fill_later(row_fill(to, pitch, value, width, height), stream))
}

/// `hipMemset3D`.
pub extern "C" fn hipMemset3D(to: PitchedPointer<Memory>, value: c_int, extent: Extent) -> c_int {
    call("hipMemset3D", || fill_now(box_fill(&to, value, extent)?))
}

/// `hipMemset3DAsync`.
pub extern "C" fn hipMemset3DAsync(
    to: PitchedPointer<Memory>,
    value: c_int,
    extent: Extent,
    stream: Handle,
) -> c_int {
    call("hipMemset3DAsync", || fill_later(box_fill(&to, value, extent)?, stream))
}
