//! Buffer commands: reads, writes, copies, fills, maps.

use crate::command::CommandType;
use crate::ffi::{In, Memory, Out};
use crate::handle::{self, Handle};
use crate::memory::{self, MemObject};
use crate::queue::Submission;
use crate::status::{Outcome, Status, address, call};
use std::ffi::{c_int, c_uint};
use std::sync::Arc;
use wavesim_runtime::pitched::{Copy, Pitched};

/// Checks that a memory object of a command belongs to the queue's context.
pub fn in_context(submission: &Submission, object: Arc<MemObject>) -> Outcome<Arc<MemObject>> {
    match Arc::ptr_eq(object.context(), submission.queue.context()) {
        true => Ok(object),
        false => Err(Status::INVALID_CONTEXT.because("a memory object of another context")),
    }
}

/// Returns the buffer of a command, after checking its context.
pub fn buffer(submission: &Submission, handle: Handle) -> Outcome<Arc<MemObject>> {
    in_context(submission, memory::buffer(handle)?)
}

/// Returns the buffer or image of a command, after checking its context.
pub fn object(submission: &Submission, handle: Handle) -> Outcome<Arc<MemObject>> {
    in_context(submission, handle::get::<MemObject>(handle)?)
}

/// `clEnqueueReadBuffer`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueReadBuffer(
    queue: Handle,
    from: Handle,
    blocking: c_uint,
    offset: usize,
    size: usize,
    to: Memory,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueReadBuffer", || {
        let submission = Submission::new(queue, CommandType::ReadBuffer, after, event)?;
        let from = buffer(&submission, from)?;
        from.permits(true, false)?;
        let memory = from.range(offset, size)?;
        if to.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        submission.blocking(blocking).submit(move || {
            // SAFETY: the range of the buffer was checked; the program's is valid until the command ends.
            unsafe { to.copy_from(memory, size) };
            drop(from);
            Ok(())
        })
    })
}

/// `clEnqueueWriteBuffer`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueWriteBuffer(
    queue: Handle,
    to: Handle,
    blocking: c_uint,
    offset: usize,
    size: usize,
    from: Memory,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueWriteBuffer", || {
        let submission = Submission::new(queue, CommandType::WriteBuffer, after, event)?;
        let to = buffer(&submission, to)?;
        to.permits(false, true)?;
        let memory = to.range(offset, size)?;
        if from.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        submission.blocking(blocking).submit(move || {
            // SAFETY: the range of the buffer was checked; the program's is valid until the command ends.
            unsafe { memory.copy_from(from, size) };
            drop(to);
            Ok(())
        })
    })
}

/// `clEnqueueCopyBuffer`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueCopyBuffer(
    queue: Handle,
    from: Handle,
    to: Handle,
    from_offset: usize,
    to_offset: usize,
    size: usize,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueCopyBuffer", || {
        let submission = Submission::new(queue, CommandType::CopyBuffer, after, event)?;
        let (from, to) = (buffer(&submission, from)?, buffer(&submission, to)?);
        let (source, target) = (from.range(from_offset, size)?, to.range(to_offset, size)?);
        if size == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        if source.address().abs_diff(target.address()) < size as u64 {
            return Err(Status::MEM_COPY_OVERLAP.into());
        }
        submission.submit(move || {
            // SAFETY: both ranges were checked, and the buffers are alive.
            unsafe { target.copy_from(source, size) };
            drop((from, to));
            Ok(())
        })
    })
}

/// The pattern of a fill.
pub struct Pattern(Vec<u8>);

impl Pattern {
    /// Reads a pattern. Its length must be a power of two up to 128 bytes and divide `size`.
    ///
    /// # Safety
    /// Unless it is null, the pattern has this length.
    pub unsafe fn new(pattern: Memory, len: usize, size: usize) -> Outcome<Pattern> {
        let valid_len = len.is_power_of_two() && len <= 128;
        if pattern.is_null() || !valid_len || size == 0 || !size.is_multiple_of(len) {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller guarantees the length.
        Ok(Pattern(unsafe { pattern.read(len) }))
    }

    /// Fills `size` bytes with the pattern.
    ///
    /// # Safety
    /// The range is memory of the program or of the device.
    pub unsafe fn fill(&self, memory: Memory, size: usize) {
        if self.0.iter().all(|byte| *byte == self.0[0]) {
            // SAFETY: the caller guarantees that the range is valid.
            return unsafe { memory.fill(self.0[0], size) };
        }
        let block = self.0.repeat((4096 / self.0.len()).min(size / self.0.len()));
        for at in (0..size).step_by(block.len()) {
            // SAFETY: as above.
            unsafe { memory.offset(at).write(&block[..block.len().min(size - at)]) };
        }
    }
}

/// `clEnqueueFillBuffer`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueFillBuffer(
    queue: Handle,
    to: Handle,
    pattern: Memory,
    pattern_size: usize,
    offset: usize,
    size: usize,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueFillBuffer", || {
        let submission = Submission::new(queue, CommandType::FillBuffer, after, event)?;
        let to = buffer(&submission, to)?;
        let memory = to.range(offset, size)?;
        // SAFETY: the caller of the API passes a pattern of this size.
        let pattern = unsafe { Pattern::new(pattern, pattern_size, size)? };
        if !offset.is_multiple_of(pattern_size) {
            return Err(Status::INVALID_VALUE.into());
        }
        submission.submit(move || {
            // SAFETY: the range of the buffer was checked.
            unsafe { pattern.fill(memory, size) };
            drop(to);
            Ok(())
        })
    })
}

/// What a program does with mapped memory (`cl_map_flags`).
#[derive(Debug, Clone, Copy)]
pub struct MapAccess {
    pub reads: bool,
    pub writes: bool,
    /// Whether the previous contents are not needed.
    pub discards: bool,
}

impl MapAccess {
    /// Reads the flags.
    pub fn new(flags: u64) -> Outcome<MapAccess> {
        const READ: u64 = 1;
        const WRITE: u64 = 2;
        const INVALIDATE: u64 = 4;
        let discards = flags & INVALIDATE != 0;
        if discards && flags & (READ | WRITE) != 0 || flags & !(READ | WRITE | INVALIDATE) != 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        Ok(MapAccess { reads: flags & READ != 0, writes: discards || flags & WRITE != 0, discards })
    }
}

/// `clEnqueueMapBuffer`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueMapBuffer(
    queue: Handle,
    of: Handle,
    blocking: c_uint,
    flags: u64,
    offset: usize,
    size: usize,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
    status: Out<c_int>,
) -> usize {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    address("clEnqueueMapBuffer", &status, || {
        let submission = Submission::new(queue, CommandType::MapBuffer, after, event)?;
        let of = buffer(&submission, of)?;
        let access = MapAccess::new(flags)?;
        if size == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        of.permits(access.reads, access.writes)?;
        let mapping = of.map(offset, size, access.writes)?;
        let pointer = mapping.pointer;
        let mapped = of.clone();
        let submitted = submission.blocking(blocking).submit(move || {
            if !access.discards {
                of.synchronise(&mapping, false)?;
            }
            Ok(())
        });
        if let Err(failure) = submitted {
            // The program never receives the pointer, so the mapping is removed.
            let _ = mapped.unmap(pointer);
            return Err(failure);
        }
        Ok(pointer.address() as usize)
    })
}

/// `clEnqueueUnmapMemObject`.
pub unsafe extern "C" fn clEnqueueUnmapMemObject(
    queue: Handle,
    of: Handle,
    pointer: Memory,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueUnmapMemObject", || {
        let submission = Submission::new(queue, CommandType::UnmapMemObject, after, event)?;
        let of = object(&submission, of)?;
        let mapping = of.unmap(pointer)?;
        submission.submit(move || match mapping.written {
            true => of.synchronise(&mapping, true),
            false => Ok(()),
        })
    })
}

/// `clEnqueueMigrateMemObjects`. Only orders commands, since there is a single device.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueMigrateMemObjects(
    queue: Handle,
    objects: c_uint,
    memory: In<Handle>,
    _flags: u64,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueMigrateMemObjects", || {
        let submission = Submission::new(queue, CommandType::MigrateMemObjects, after, event)?;
        if objects == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller of the API passes an array of this length.
        unsafe { memory.list(objects as usize)? }
            .into_iter()
            .try_for_each(|handle| object(&submission, handle).map(drop))?;
        submission.submit(|| Ok(()))
    })
}

/// Coordinates or sizes in three dimensions.
pub type Three = [usize; 3];

/// Validates a 3D region in memory of `len` bytes and returns its position. `len` is `None` for the program's
/// memory, whose size is unknown.
fn pitched_region(
    memory: Memory,
    len: Option<usize>,
    origin: Three,
    region: Three,
    row: usize,
    slice: usize,
) -> Outcome<Pitched> {
    let pitch = if row == 0 { region[0] } else { row };
    let rows = pitch.checked_mul(region[1]).ok_or(Status::INVALID_VALUE)?;
    let slice = if slice == 0 { rows } else { slice };
    if region.contains(&0) || pitch < region[0] || slice < rows || !slice.is_multiple_of(pitch) {
        return Err(Status::INVALID_VALUE.into());
    }
    let part = |n: usize, bytes: usize| n.checked_mul(bytes).ok_or(Status::INVALID_VALUE);
    let (slices, rows) = (part(origin[2], slice)?, part(origin[1], pitch)?);
    let first =
        slices.checked_add(rows).and_then(|n| n.checked_add(origin[0])).ok_or(Status::INVALID_VALUE)?;
    let pitched = Pitched { at: memory.offset(first), pitch, slice };
    let end = pitched.extent(region[0], region[1], region[2]).checked_add(first);
    match (end, len) {
        (Some(end), Some(len)) if end <= len => Ok(pitched),
        (Some(_), None) => Ok(pitched),
        _ => Err(Status::INVALID_VALUE.because("the region extends beyond the buffer")),
    }
}

/// Copies a 3D region from a buffer to the program's memory if `read`, otherwise in the other direction.
///
/// # Safety
/// Unless it is null, `host` is memory of the program that contains the region, until the command ends.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
unsafe fn transfer_region(
    submission: Submission,
    of: Handle,
    read: bool,
    buffer_origin: In<Three>,
    host_origin: In<Three>,
    region: In<Three>,
    pitches: [usize; 4],
    host: Memory,
) -> Outcome {
    let of = buffer(&submission, of)?;
    of.permits(read, !read)?;
    if host.is_null() {
        return Err(Status::INVALID_VALUE.into());
    }
    let region = region.get()?;
    let [row, slice, host_row, host_slice] = pitches;
    let whole = of.range(0, of.size())?;
    let in_buffer = pitched_region(whole, Some(of.size()), buffer_origin.get()?, region, row, slice)?;
    let in_host = pitched_region(host, None, host_origin.get()?, region, host_row, host_slice)?;
    let (to, from) = if read { (in_host, in_buffer) } else { (in_buffer, in_host) };
    submission.submit(move || {
        let copy = Copy { to, from, width: region[0], height: region[1], depth: region[2] };
        // SAFETY: the region of the buffer was checked; the caller guarantees the program's.
        unsafe { copy.run() };
        drop(of);
        Ok(())
    })
}

/// `clEnqueueReadBufferRect`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueReadBufferRect(
    queue: Handle,
    of: Handle,
    blocking: c_uint,
    buffer_origin: In<Three>,
    host_origin: In<Three>,
    region: In<Three>,
    row: usize,
    slice: usize,
    host_row: usize,
    host_slice: usize,
    host: Memory,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueReadBufferRect", || {
        let submission =
            Submission::new(queue, CommandType::ReadBufferRect, after, event)?.blocking(blocking);
        let pitches = [row, slice, host_row, host_slice];
        // SAFETY: the caller of the API passes memory with this region.
        unsafe { transfer_region(submission, of, true, buffer_origin, host_origin, region, pitches, host) }
    })
}

/// `clEnqueueWriteBufferRect`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueWriteBufferRect(
    queue: Handle,
    of: Handle,
    blocking: c_uint,
    buffer_origin: In<Three>,
    host_origin: In<Three>,
    region: In<Three>,
    row: usize,
    slice: usize,
    host_row: usize,
    host_slice: usize,
    host: Memory,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueWriteBufferRect", || {
        let submission =
            Submission::new(queue, CommandType::WriteBufferRect, after, event)?.blocking(blocking);
        let pitches = [row, slice, host_row, host_slice];
        // SAFETY: the caller of the API passes memory with this region.
        unsafe { transfer_region(submission, of, false, buffer_origin, host_origin, region, pitches, host) }
    })
}

/// `clEnqueueCopyBufferRect`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueCopyBufferRect(
    queue: Handle,
    from: Handle,
    to: Handle,
    from_origin: In<Three>,
    to_origin: In<Three>,
    region: In<Three>,
    from_row: usize,
    from_slice: usize,
    to_row: usize,
    to_slice: usize,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueCopyBufferRect", || {
        let submission = Submission::new(queue, CommandType::CopyBufferRect, after, event)?;
        let (from, to) = (buffer(&submission, from)?, buffer(&submission, to)?);
        let region = region.get()?;
        let (source, target) = (from.range(0, from.size())?, to.range(0, to.size())?);
        let source =
            pitched_region(source, Some(from.size()), from_origin.get()?, region, from_row, from_slice)?;
        let target = pitched_region(target, Some(to.size()), to_origin.get()?, region, to_row, to_slice)?;
        let copy = Copy { to: target, from: source, width: region[0], height: region[1], depth: region[2] };
        submission.submit(move || {
            // SAFETY: both regions were checked, and the buffers are alive.
            unsafe { copy.run() };
            drop((from, to));
            Ok(())
        })
    })
}
