//! Image commands: reads, writes, copies, fills, maps.

use crate::command::CommandType;
use crate::ffi::{In, Memory, Out};
use crate::handle::Handle;
use crate::image::{self, ImageKind, Picture};
use crate::memory::MemObject;
use crate::queue::Submission;
use crate::status::{Outcome, Status, address, call};
use crate::transfer::{Three, buffer, in_context};
use std::ffi::{c_int, c_uint};
use std::sync::Arc;
use wavesim_runtime::image::{Region, texel};
use wavesim_runtime::pitched::{Copy, Pitched};

/// Returns the image of a command, after checking its context.
fn of_command(submission: &Submission, handle: Handle) -> Outcome<Arc<MemObject>> {
    in_context(submission, image::get(handle)?)
}

fn picture(object: &MemObject) -> Outcome<&Picture> {
    object.picture().ok_or(Status::INVALID_MEM_OBJECT.into())
}

/// Checks that texels are inside an image. The coordinate after those of the image is the level of detail.
fn region(picture: &Picture, origin: Three, size: Three) -> Outcome<Region> {
    let coordinates = picture.kind.coordinates();
    let mut origin = origin;
    let mut level = 0;
    if coordinates < 3 && picture.image.levels > 1 {
        level = std::mem::take(&mut origin[coordinates]);
    }
    if level >= picture.arrangement.levels.len() || size.contains(&0) {
        return Err(Status::INVALID_VALUE.because(format!("a region of {size:?} texels, level {level}")));
    }
    let extent = picture.extent(level);
    for d in 0..3 {
        if origin[d].checked_add(size[d]).is_none_or(|end| end > extent[d]) {
            let message = format!("{size:?} texels at {origin:?} of an image of {extent:?}");
            return Err(Status::INVALID_VALUE.because(message));
        }
    }
    Ok(Region { origin, size, level })
}

/// Returns the program's memory with the texels of a region.
fn in_program(picture: &Picture, at: Memory, size: Three, row: usize, slice: usize) -> Outcome<Pitched> {
    let width = size[0] * picture.texel_bytes();
    let pitch = if row == 0 { width } else { row };
    let rows_are_layers = picture.kind == ImageKind::D1Array;
    let rows = if rows_are_layers { 1 } else { size[1] };
    let natural = pitch.checked_mul(rows).ok_or(Status::INVALID_VALUE)?;
    let layered = matches!(picture.kind, ImageKind::D1Array | ImageKind::D2Array | ImageKind::D3);
    if at.is_null() || pitch < width || slice != 0 && (!layered || slice < natural) {
        return Err(Status::INVALID_VALUE.because(format!("pitches of {row} and {slice} bytes")));
    }
    let slice = if slice == 0 { natural } else { slice };
    Ok(Pitched { at, pitch: if rows_are_layers { slice } else { pitch }, slice })
}

/// Copies texels from an image to the program's memory if `read`, otherwise in the other direction.
///
/// # Safety
/// Unless it is null, `host` is memory of the program that contains the region, until the command ends.
unsafe fn transfer(
    submission: Submission,
    of: Handle,
    read: bool,
    [origin, size]: [In<Three>; 2],
    [row, slice]: [usize; 2],
    host: Memory,
) -> Outcome {
    let of = of_command(&submission, of)?;
    of.permits(read, !read)?;
    let own = picture(&of)?;
    let region = region(own, origin.get()?, size.get()?)?;
    let program = in_program(own, host, region.size, row, slice)?;
    let texels = of.texels(&region, false)?;
    let (to, from) = if read { (program, texels) } else { (texels, program) };
    let copy = own.arrangement.copy(to, from, region.size);
    submission.submit(move || {
        // SAFETY: the texels were checked; the caller guarantees the program's memory.
        unsafe { copy.run() };
        drop(of);
        Ok(())
    })
}

/// `clEnqueueReadImage`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueReadImage(
    queue: Handle,
    from: Handle,
    blocking: c_uint,
    origin: In<Three>,
    size: In<Three>,
    row: usize,
    slice: usize,
    to: Memory,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueReadImage", || {
        let submission = Submission::new(queue, CommandType::ReadImage, after, event)?.blocking(blocking);
        // SAFETY: the caller of the API passes memory with this region.
        unsafe { transfer(submission, from, true, [origin, size], [row, slice], to) }
    })
}

/// `clEnqueueWriteImage`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueWriteImage(
    queue: Handle,
    to: Handle,
    blocking: c_uint,
    origin: In<Three>,
    size: In<Three>,
    row: usize,
    slice: usize,
    from: Memory,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueWriteImage", || {
        let submission = Submission::new(queue, CommandType::WriteImage, after, event)?.blocking(blocking);
        // SAFETY: the caller of the API passes memory with this region.
        unsafe { transfer(submission, to, false, [origin, size], [row, slice], from) }
    })
}

/// Returns whether two regions of an image share a texel.
fn overlap(a: &Region, b: &Region) -> bool {
    let apart = |d: usize| a.origin[d] + a.size[d] <= b.origin[d] || b.origin[d] + b.size[d] <= a.origin[d];
    a.level == b.level && !(0..3).any(apart)
}

/// `clEnqueueCopyImage`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueCopyImage(
    queue: Handle,
    from: Handle,
    to: Handle,
    from_origin: In<Three>,
    to_origin: In<Three>,
    size: In<Three>,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueCopyImage", || {
        let submission = Submission::new(queue, CommandType::CopyImage, after, event)?;
        let (from, to) = (of_command(&submission, from)?, of_command(&submission, to)?);
        let (source, target) = (picture(&from)?, picture(&to)?);
        if source.format != target.format {
            return Err(Status::IMAGE_FORMAT_MISMATCH.into());
        }
        let size = size.get()?;
        let (source_region, target_region) =
            (region(source, from_origin.get()?, size)?, region(target, to_origin.get()?, size)?);
        if Arc::ptr_eq(&from, &to) && overlap(&source_region, &target_region) {
            return Err(Status::MEM_COPY_OVERLAP.into());
        }
        let copy = source.arrangement.copy(
            to.texels(&target_region, false)?,
            from.texels(&source_region, false)?,
            size,
        );
        submission.submit(move || {
            // SAFETY: both regions were checked, and the images are alive.
            unsafe { copy.run() };
            drop((from, to));
            Ok(())
        })
    })
}

/// The copy between a region of an image and consecutive texels in a buffer.
struct WithBuffer {
    image: Arc<MemObject>,
    buffer: Arc<MemObject>,
    copy: Copy,
}

impl WithBuffer {
    fn new(
        submission: &Submission,
        [of, with]: [Handle; 2],
        [origin, size]: [In<Three>; 2],
        offset: usize,
        to_image: bool,
    ) -> Outcome<WithBuffer> {
        let (image, buffer) = (of_command(submission, of)?, buffer(submission, with)?);
        let own = picture(&image)?;
        let region = region(own, origin.get()?, size.get()?)?;
        let width = region.size[0] * own.texel_bytes();
        let bytes = width * region.size[1] * region.size[2];
        let packed =
            Pitched { at: buffer.range(offset, bytes)?, pitch: width, slice: width * region.size[1] };
        let texels = image.texels(&region, false)?;
        let (to, from) = if to_image { (texels, packed) } else { (packed, texels) };
        let copy = own.arrangement.copy(to, from, region.size);
        Ok(WithBuffer { image, buffer, copy })
    }

    fn submit(self, submission: Submission) -> Outcome {
        submission.submit(move || {
            // SAFETY: both regions were checked, and the objects are alive.
            unsafe { self.copy.run() };
            drop((self.image, self.buffer));
            Ok(())
        })
    }
}

/// `clEnqueueCopyImageToBuffer`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueCopyImageToBuffer(
    queue: Handle,
    from: Handle,
    to: Handle,
    origin: In<Three>,
    size: In<Three>,
    offset: usize,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueCopyImageToBuffer", || {
        let submission = Submission::new(queue, CommandType::CopyImageToBuffer, after, event)?;
        WithBuffer::new(&submission, [from, to], [origin, size], offset, false)?.submit(submission)
    })
}

/// `clEnqueueCopyBufferToImage`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueCopyBufferToImage(
    queue: Handle,
    from: Handle,
    to: Handle,
    offset: usize,
    origin: In<Three>,
    size: In<Three>,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueCopyBufferToImage", || {
        let submission = Submission::new(queue, CommandType::CopyBufferToImage, after, event)?;
        WithBuffer::new(&submission, [to, from], [origin, size], offset, true)?.submit(submission)
    })
}

/// `clEnqueueFillImage`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueFillImage(
    queue: Handle,
    of: Handle,
    color: Memory,
    origin: In<Three>,
    size: In<Three>,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueFillImage", || {
        let submission = Submission::new(queue, CommandType::FillImage, after, event)?;
        let of = of_command(&submission, of)?;
        let own = picture(&of)?;
        if color.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        let region = region(own, origin.get()?, size.get()?)?;
        let components = if own.format.is_depth() { 1 } else { 4 };
        // SAFETY: the caller of the API passes a color: four components, or the depth.
        let bytes = unsafe { color.read(4 * components) };
        let mut given = [0; 4];
        for (word, bytes) in given.iter_mut().zip(bytes.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        let row = texel(&own.image, given).repeat(region.size[0]);
        let texels = of.texels(&region, false)?;
        submission.submit(move || {
            for z in 0..region.size[2] {
                for y in 0..region.size[1] {
                    // SAFETY: the region was checked, and the image is alive.
                    unsafe { texels.row(z, y).write(&row) };
                }
            }
            drop(of);
            Ok(())
        })
    })
}

/// `clEnqueueMapImage`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueMapImage(
    queue: Handle,
    of: Handle,
    blocking: c_uint,
    flags: u64,
    origin: In<Three>,
    size: In<Three>,
    row: Out<usize>,
    slice: Out<usize>,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
    status: Out<c_int>,
) -> usize {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    address("clEnqueueMapImage", &status, || {
        let submission = Submission::new(queue, CommandType::MapImage, after, event)?;
        let of = of_command(&submission, of)?;
        let access = crate::transfer::MapAccess::new(flags)?;
        of.permits(access.reads, access.writes)?;
        let own = picture(&of)?;
        let region = region(own, origin.get()?, size.get()?)?;
        let layered = matches!(own.kind, ImageKind::D1Array | ImageKind::D2Array | ImageKind::D3);
        if row.is_null() || layered && slice.is_null() {
            return Err(Status::INVALID_VALUE.because("no place for the pitches"));
        }
        let (mapping, mapped) = of.map_texels(region, access.writes)?;
        let natural = if of.host().is_null() {
            own.arrangement.levels[region.level].row_bytes as usize
        } else {
            own.row_pitch()
        };
        row.put(if own.kind == ImageKind::D1Array { natural } else { mapped.pitch })?;
        slice.put_optional(if layered { mapped.slice } else { 0 });
        let kept = of.clone();
        let submitted = submission.blocking(blocking).submit(move || match access.discards {
            true => Ok(()),
            false => of.synchronise(&mapping, false),
        });
        if let Err(failure) = submitted {
            // The program never receives the pointer, so the mapping is removed.
            let _ = kept.unmap(mapping.pointer);
            return Err(failure);
        }
        Ok(mapping.pointer.address() as usize)
    })
}
