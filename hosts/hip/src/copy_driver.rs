//! Copies in the form of the driver API: each side is memory or an array, at a position in bytes.

use crate::array::Array;
use crate::copy::{DEFAULT, copy_async, copy_sync};
use crate::ffi::{In, Memory};
use crate::gpu::gpu;
use crate::op::{Copy, Pitched};
use crate::status::{Outcome, Status, call};
use crate::stream::Handle;
use std::ffi::c_int;

/// Values of `hipMemoryType` since HIP 6.
mod kind {
    pub const HOST: i32 = 1;
    pub const DEVICE: i32 = 2;
    pub const MANAGED: i32 = 3;
    pub const ARRAY: i32 = 10;
    pub const UNIFIED: i32 = 11;
}

/// One side of a copy.
struct Side {
    /// Byte, row and slice of the first byte.
    position: [usize; 3],
    kind: c_int,
    host: Memory,
    device: Memory,
    array: usize,
    /// Bytes from a row to the next one.
    pitch: usize,
    /// Rows of a slice.
    height: usize,
}

impl Side {
    /// Returns where the rows of a region are, whose size is in bytes, rows and slices.
    fn rows(&self, size: [usize; 3]) -> Outcome<Pitched> {
        let memory = match self.kind {
            kind::HOST => self.host,
            kind::DEVICE | kind::UNIFIED | kind::MANAGED => self.device,
            kind::ARRAY if self.array == 0 => return Err(Status::INVALID_VALUE.into()),
            kind::ARRAY => return Array::get(self.array)?.part(self.position, size),
            _ => return Err(Status::INVALID_VALUE.into()),
        };
        if memory.is_null() && !size.contains(&0) {
            return Err(Status::INVALID_VALUE.because("a side of the copy has no memory"));
        }
        // Without a pitch, the rows follow each other.
        let pitch = if self.pitch == 0 { size[0] } else { self.pitch };
        let slice = pitch.checked_mul(self.height.max(size[1])).ok_or(Status::INVALID_VALUE)?;
        let [x, y, z] = self.position;
        let offset = (z.checked_mul(slice))
            .and_then(|z| z.checked_add(y.checked_mul(pitch)?))
            .and_then(|yz| yz.checked_add(x))
            .ok_or(Status::INVALID_VALUE)?;
        // An address beyond an allocation could be any memory of the host.
        if matches!(self.kind, kind::DEVICE | kind::MANAGED)
            && let Some(found) = gpu()?.find_allocation(memory.address())
            && offset as u64 >= found.len - (memory.address() - found.address)
            && !size.contains(&0)
        {
            return Err(
                Status::INVALID_VALUE.because(format!("{offset} is beyond the end of the allocation"))
            );
        }
        Ok(Pitched { at: memory.offset(offset), pitch, slice })
    }
}

/// Returns a copy of a region, whose size is in bytes, rows and slices.
fn region(to: &Side, from: &Side, size: [usize; 3]) -> Outcome<Copy> {
    let [width, height, depth] = size;
    Ok(Copy { to: to.rows(size)?, from: from.rows(size)?, width, height, depth })
}

/// `hip_Memcpy2D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Parameters2d {
    from: Side2d,
    to: Side2d,
    width: usize,
    height: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Side2d {
    x: usize,
    y: usize,
    kind: c_int,
    host: Memory,
    device: Memory,
    array: usize,
    pitch: usize,
}

impl Side2d {
    fn side(&self) -> Side {
        let Side2d { x, y, kind, host, device, array, pitch } = *self;
        Side { position: [x, y, 0], kind, host, device, array, pitch, height: 0 }
    }
}

impl Parameters2d {
    fn copy(&self) -> Outcome<Copy> {
        region(&self.to.side(), &self.from.side(), [self.width, self.height, 1])
    }
}

/// `HIP_MEMCPY3D`, as since HIP 6.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DriverParameters3d {
    from: Side3d,
    to: Side3d,
    width: usize,
    height: usize,
    depth: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Side3d {
    x: usize,
    y: usize,
    z: usize,
    _level: usize,
    kind: c_int,
    host: Memory,
    device: Memory,
    array: usize,
    pitch: usize,
    height: usize,
}

impl Side3d {
    fn side(&self) -> Side {
        let Side3d { x, y, z, kind, host, device, array, pitch, height, .. } = *self;
        Side { position: [x, y, z], kind, host, device, array, pitch, height }
    }
}

impl DriverParameters3d {
    /// Returns the parameters of a copy between addresses.
    pub fn of(copy: &Copy) -> DriverParameters3d {
        let side = |side: &Pitched| {
            let pitch = if side.pitch == 0 { copy.width } else { side.pitch };
            let height = if side.slice == 0 { copy.height } else { side.slice / pitch.max(1) };
            let (kind, device, host) = (kind::UNIFIED, side.at, Memory::null());
            Side3d { x: 0, y: 0, z: 0, _level: 0, kind, host, device, array: 0, pitch, height }
        };
        let Copy { width, height, depth, .. } = *copy;
        DriverParameters3d { from: side(&copy.from), to: side(&copy.to), width, height, depth }
    }

    /// Returns the copy.
    pub fn copy(&self) -> Outcome<Copy> {
        region(&self.to.side(), &self.from.side(), [self.width, self.height, self.depth])
    }
}

macro_rules! copies {
    ($($name:ident, $asynchronous:ident: $parameters:ty;)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`.")]
            pub unsafe extern "C" fn $name(parameters: In<$parameters>) -> c_int {
                call(stringify!($name), || {
                    // SAFETY: the caller of the API keeps the memory valid until the copy has ended.
                    unsafe { copy_sync(parameters.get()?.copy()?, DEFAULT, 0) }
                })
            }

            #[doc = concat!("`", stringify!($asynchronous), "`.")]
            pub unsafe extern "C" fn $asynchronous(parameters: In<$parameters>, stream: Handle) -> c_int {
                call(stringify!($asynchronous), || {
                    // SAFETY: the caller of the API keeps the memory valid until the copy has ended.
                    unsafe { copy_async(parameters.get()?.copy()?, DEFAULT, stream) }
                })
            }
        )*
    };
}

copies! {
    hipMemcpyParam2D, hipMemcpyParam2DAsync: Parameters2d;
    hipDrvMemcpy3D, hipDrvMemcpy3DAsync: DriverParameters3d;
}

/// `hipDrvMemcpy2DUnaligned`.
pub unsafe extern "C" fn hipDrvMemcpy2DUnaligned(parameters: In<Parameters2d>) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipMemcpyParam2D(parameters) }
}
