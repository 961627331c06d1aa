//! Copies of boxes in one call.

use crate::array::Array;
use crate::copy::{DEFAULT, Parameters3d, check, copy_async};
use crate::ffi::{In, Memory, Out};
use crate::gpu::gpu;
use crate::memory::{Extent, PitchedPointer};
use crate::op::Copy;
use crate::status::{Outcome, Status, call};
use crate::stream::Handle;
use std::ffi::{c_int, c_uint};

/// `hipMemcpyOperandTypePointer` and `hipMemcpyOperandTypeArray`.
const POINTER: c_int = 1;
const ARRAY: c_int = 2;

/// `hipMemcpy3DOperand`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Operand {
    kind: c_int,
    of: OfKind,
}

#[repr(C)]
#[derive(Clone, Copy)]
union OfKind {
    pointer: Rows,
    array: Part,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Rows {
    pointer: Memory,
    /// Elements from a row to the next one, and rows of a layer; 0 for those of the box.
    row_length: usize,
    layer_height: usize,
    location: [c_int; 2],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Part {
    array: usize,
    position: [usize; 3],
}

/// `hipMemcpy3DBatchOp`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BatchedCopy {
    from: Operand,
    to: Operand,
    extent: Extent,
    order: c_int,
    flags: c_uint,
}

const _: () = assert!(size_of::<BatchedCopy>() == 112, "as the headers have it");

impl Operand {
    /// Returns the array, if there is one.
    fn array(&self) -> Option<Part> {
        // SAFETY: the kind says which member was stored.
        if self.kind == ARRAY { Some(unsafe { self.of.array }) } else { None }
    }
}

impl BatchedCopy {
    /// Returns the copy. Sizes count bytes between addresses, and texels if an array takes part.
    fn copy(&self) -> Outcome<Copy> {
        let arrays = [self.to.array(), self.from.array()];
        if [self.to.kind, self.from.kind].iter().any(|kind| ![POINTER, ARRAY].contains(kind)) {
            return Err(Status::INVALID_VALUE.into());
        }
        let element = match arrays.into_iter().flatten().next() {
            Some(part) => {
                Array::get(part.array)?.in_bytes(&Extent { width: 1, height: 0, depth: 0 }, false)?[0]
            }
            None => 1,
        };
        let none = Extent { width: 0, height: 0, depth: 0 };
        let side = |operand: &Operand| -> Outcome<(usize, Extent, PitchedPointer<Memory>)> {
            if let Some(Part { array, position: [width, height, depth] }) = operand.array() {
                let pointer = PitchedPointer { pointer: Memory::null(), pitch: 0, width: 0, height: 0 };
                return Ok((array, Extent { width, height, depth }, pointer));
            }
            // SAFETY: as above.
            let Rows { pointer, row_length, layer_height, .. } = unsafe { operand.of.pointer };
            let Extent { width, height, .. } = self.extent;
            let (row, rows) = (row_length.max(width), layer_height.max(height));
            if (row_length != 0 && row_length < width) || (layer_height != 0 && layer_height < height) {
                return Err(Status::INVALID_VALUE.because("the box is larger than a row or a layer"));
            }
            let pitch = row.checked_mul(element).ok_or(Status::INVALID_VALUE)?;
            Ok((0, none, PitchedPointer { pointer, pitch, width: pitch, height: rows }))
        };
        Parameters3d::between(side(&self.to)?, side(&self.from)?, self.extent).checked()
    }
}

/// `hipMemcpy3DBatchAsync`. Hints of locations and of the order of accesses are ignored. `failed` is the copy that is
/// refused; then none is made.
pub unsafe extern "C" fn hipMemcpy3DBatchAsync(
    count: usize,
    list: In<BatchedCopy>,
    failed: Out<usize>,
    flags: u64,
    stream: Handle,
) -> c_int {
    call("hipMemcpy3DBatchAsync", || {
        failed.put_optional(usize::MAX);
        if count == 0 || flags != 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        let gpu = gpu()?;
        gpu.streams.find(stream)?;
        let mut copies = Vec::with_capacity(count);
        // SAFETY: the caller of the API passes an array of this length.
        for (index, batched) in unsafe { list.list(count)? }.iter().enumerate() {
            let copy = batched.copy().inspect_err(|_| failed.put_optional(index))?;
            check(gpu, &copy, DEFAULT).inspect_err(|_| failed.put_optional(index))?;
            copies.push(copy);
        }
        for copy in copies {
            // SAFETY: the caller of the API keeps the memory valid until the copies have ended.
            unsafe { copy_async(copy, DEFAULT, stream)? };
        }
        Ok(())
    })
}
