//! Copies from and to arrays.

use crate::array::{Array, Handle};
use crate::copy::{DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE, copy_async, copy_sync};
use crate::ffi::Memory;
use crate::op::{Copy, Pitched};
use crate::status::{Outcome, Status, call};
use crate::stream;
use std::ffi::c_int;

/// Returns the copy of rows to or from an array: bytes at a byte and a row.
fn rows(
    array: Handle,
    at: [usize; 2],
    other: Memory,
    pitch: usize,
    size: [usize; 2],
    to: bool,
) -> Outcome<Copy> {
    let part = Array::get(array)?.part([at[0], at[1], 0], [size[0], size[1], 1])?;
    let other = Pitched::rows(other, pitch);
    let (to, from) = if to { (part, other) } else { (other, part) };
    Ok(Copy { to, from, width: size[0], height: size[1], depth: 1 })
}

/// `hipMemcpy2DToArray`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn hipMemcpy2DToArray(
    to: Handle,
    x: usize,
    y: usize,
    from: Memory,
    pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
) -> c_int {
    call("hipMemcpy2DToArray", || {
        let copy = rows(to, [x, y], from, pitch, [width, height], true)?;
        // SAFETY: the part of the array was checked; the caller of the API keeps the memory valid.
        unsafe { copy_sync(copy, kind, 0) }
    })
}

/// `hipMemcpy2DToArrayAsync`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn hipMemcpy2DToArrayAsync(
    to: Handle,
    x: usize,
    y: usize,
    from: Memory,
    pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
    stream: stream::Handle,
) -> c_int {
    call("hipMemcpy2DToArrayAsync", || {
        let copy = rows(to, [x, y], from, pitch, [width, height], true)?;
        // SAFETY: as in `hipMemcpy2DToArray`.
        unsafe { copy_async(copy, kind, stream) }
    })
}

/// `hipMemcpy2DFromArray`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn hipMemcpy2DFromArray(
    to: Memory,
    pitch: usize,
    from: Handle,
    x: usize,
    y: usize,
    width: usize,
    height: usize,
    kind: c_int,
) -> c_int {
    call("hipMemcpy2DFromArray", || {
        let copy = rows(from, [x, y], to, pitch, [width, height], false)?;
        // SAFETY: as in `hipMemcpy2DToArray`.
        unsafe { copy_sync(copy, kind, 0) }
    })
}

/// `hipMemcpy2DFromArrayAsync`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn hipMemcpy2DFromArrayAsync(
    to: Memory,
    pitch: usize,
    from: Handle,
    x: usize,
    y: usize,
    width: usize,
    height: usize,
    kind: c_int,
    stream: stream::Handle,
) -> c_int {
    call("hipMemcpy2DFromArrayAsync", || {
        let copy = rows(from, [x, y], to, pitch, [width, height], false)?;
        // SAFETY: as in `hipMemcpy2DToArray`.
        unsafe { copy_async(copy, kind, stream) }
    })
}

/// `hipMemcpy2DArrayToArray`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn hipMemcpy2DArrayToArray(
    to: Handle,
    to_x: usize,
    to_y: usize,
    from: Handle,
    from_x: usize,
    from_y: usize,
    width: usize,
    height: usize,
    kind: c_int,
) -> c_int {
    call("hipMemcpy2DArrayToArray", || {
        let size = [width, height, 1];
        let (to, from) = (
            Array::get(to)?.part([to_x, to_y, 0], size)?,
            Array::get(from)?.part([from_x, from_y, 0], size)?,
        );
        // SAFETY: both parts were checked.
        unsafe { copy_sync(Copy { to, from, width, height, depth: 1 }, kind, 0) }
    })
}

/// Copies bytes that follow each other in rows, from a byte and a row of an array on, to or from other memory.
///
/// # Safety
/// The other memory has as many bytes until the copy has ended.
unsafe fn consecutive(
    array: Handle,
    [x, y]: [usize; 2],
    other: Memory,
    count: usize,
    to: bool,
    kind: c_int,
) -> Outcome {
    let row = Array::get(array)?.row_bytes();
    let (mut done, mut x, mut y) = (0, x, y);
    while done < count {
        let whole = if x == 0 { (count - done) / row } else { 0 };
        let size = match whole {
            0 => [(count - done).min(row.saturating_sub(x)), 1],
            rows => [row, rows],
        };
        if size[0] == 0 {
            return Err(Status::INVALID_VALUE.because("the first byte is beyond the row"));
        }
        let copy = rows(array, [x, y], other.offset(done), row, size, to)?;
        // SAFETY: the part of the array was checked; the caller guarantees the other memory.
        unsafe { copy_sync(copy, kind, 0)? };
        (done, x, y) = (done + size[0] * size[1], 0, y + size[1]);
    }
    Ok(())
}

/// `hipMemcpyToArray`.
pub unsafe extern "C" fn hipMemcpyToArray(
    to: Handle,
    x: usize,
    y: usize,
    from: Memory,
    count: usize,
    kind: c_int,
) -> c_int {
    // SAFETY: the caller of the API passes memory of this size.
    call("hipMemcpyToArray", || unsafe { consecutive(to, [x, y], from, count, true, kind) })
}

/// `hipMemcpyFromArray`.
pub unsafe extern "C" fn hipMemcpyFromArray(
    to: Memory,
    from: Handle,
    x: usize,
    y: usize,
    count: usize,
    kind: c_int,
) -> c_int {
    // SAFETY: the caller of the API passes memory of this size.
    call("hipMemcpyFromArray", || unsafe { consecutive(from, [x, y], to, count, false, kind) })
}

/// `hipMemcpyHtoA`.
pub unsafe extern "C" fn hipMemcpyHtoA(to: Handle, offset: usize, from: Memory, count: usize) -> c_int {
    // SAFETY: the caller of the API passes memory of this size.
    call("hipMemcpyHtoA", || unsafe { consecutive(to, [offset, 0], from, count, true, HOST_TO_DEVICE) })
}

/// `hipMemcpyAtoH`.
pub unsafe extern "C" fn hipMemcpyAtoH(to: Memory, from: Handle, offset: usize, count: usize) -> c_int {
    // SAFETY: the caller of the API passes memory of this size.
    call("hipMemcpyAtoH", || unsafe { consecutive(from, [offset, 0], to, count, false, DEVICE_TO_HOST) })
}

/// `hipMemcpyDtoA`.
pub unsafe extern "C" fn hipMemcpyDtoA(to: Handle, offset: usize, from: Memory, count: usize) -> c_int {
    // SAFETY: the caller of the API passes memory of this size.
    call("hipMemcpyDtoA", || unsafe { consecutive(to, [offset, 0], from, count, true, DEVICE_TO_DEVICE) })
}

/// `hipMemcpyAtoD`.
pub unsafe extern "C" fn hipMemcpyAtoD(to: Memory, from: Handle, offset: usize, count: usize) -> c_int {
    // SAFETY: the caller of the API passes memory of this size.
    call("hipMemcpyAtoD", || unsafe { consecutive(from, [offset, 0], to, count, false, DEVICE_TO_DEVICE) })
}

/// `hipMemcpyAtoA`.
pub unsafe extern "C" fn hipMemcpyAtoA(
    to: Handle,
    to_offset: usize,
    from: Handle,
    from_offset: usize,
    count: usize,
) -> c_int {
    // SAFETY: both parts are checked.
    unsafe { hipMemcpy2DArrayToArray(to, to_offset, 0, from, from_offset, 0, count, 1, DEVICE_TO_DEVICE) }
}

/// `hipMemcpyHtoAAsync`.
pub unsafe extern "C" fn hipMemcpyHtoAAsync(
    to: Handle,
    offset: usize,
    from: Memory,
    count: usize,
    stream: stream::Handle,
) -> c_int {
    // SAFETY: the caller of the API keeps the memory valid until the copy has ended.
    unsafe { hipMemcpy2DToArrayAsync(to, offset, 0, from, count, count, 1, HOST_TO_DEVICE, stream) }
}

/// `hipMemcpyAtoHAsync`.
pub unsafe extern "C" fn hipMemcpyAtoHAsync(
    to: Memory,
    from: Handle,
    offset: usize,
    count: usize,
    stream: stream::Handle,
) -> c_int {
    // SAFETY: the caller of the API keeps the memory valid until the copy has ended.
    unsafe { hipMemcpy2DFromArrayAsync(to, count, from, offset, 0, count, 1, DEVICE_TO_HOST, stream) }
}
