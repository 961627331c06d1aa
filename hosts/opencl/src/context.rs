//! Contexts.

use crate::devices;
use crate::ffi::{In, Memory, Out, UserData};
use crate::handle::{self, Destructor, Handle, Identity, object};
use crate::info::{Query, unknown_parameter};
use crate::platform::{includes_device, platform};
use crate::status::{Outcome, Status, call, create};
use std::ffi::{c_int, c_uint};

/// A context.
pub struct Context {
    identity: Identity,
    properties: Vec<usize>,
    /// The devices.
    pub devices: Vec<Handle>,
}

object!(Context, INVALID_CONTEXT, clRetainContext, clReleaseContext);

/// Error callback of the program. Never called: errors are written to standard error instead.
type Notify = Option<unsafe extern "C" fn()>;

/// Reads `cl_context_properties`: a zero-terminated list of pairs.
///
/// # Safety
/// Unless it is null, the list has pairs of a property and a value, and a terminating zero.
unsafe fn properties(list: In<usize>) -> Outcome<Vec<usize>> {
    const PLATFORM: usize = 0x1084;
    const INTEROP_USER_SYNC: usize = 0x1085;
    let mut out = Vec::new();
    if list.is_null() {
        return Ok(out);
    }
    loop {
        // SAFETY: the caller guarantees pairs, and a terminating zero.
        let (key, value) = match unsafe { list.at(out.len())? } {
            0 => break,
            // SAFETY: as above.
            key => (key, unsafe { list.at(out.len() + 1)? }),
        };
        match key {
            PLATFORM if value != platform().address() => return Err(Status::INVALID_PLATFORM.into()),
            PLATFORM | INTEROP_USER_SYNC => out.extend([key, value]),
            _ => return Err(Status::INVALID_PROPERTY.because(format!("unknown property 0x{key:x}"))),
        }
    }
    out.push(0);
    Ok(out)
}

/// Creates a context.
///
/// # Safety
/// As for [`properties`].
unsafe fn new(list: In<usize>, devices: Vec<Handle>) -> Outcome<Handle> {
    // SAFETY: the caller guarantees the list.
    let properties = unsafe { properties(list)? };
    let make = |identity| Context { identity, properties, devices };
    Ok(handle::register(make).0)
}

/// `clCreateContext`.
pub unsafe extern "C" fn clCreateContext(
    list: In<usize>,
    count: c_uint,
    devices: In<Handle>,
    _notify: Notify,
    _data: UserData,
    status: Out<c_int>,
) -> Handle {
    create("clCreateContext", &status, || {
        if count == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller of the API passes an array of this length.
        let devices = devices::read(unsafe { devices.array(count as usize) })?;
        // SAFETY: the caller of the API passes a list that ends with zero.
        unsafe { new(list, devices) }
    })
}

/// `clCreateContextFromType`.
pub unsafe extern "C" fn clCreateContextFromType(
    list: In<usize>,
    kind: u64,
    _notify: Notify,
    _data: UserData,
    status: Out<c_int>,
) -> Handle {
    create("clCreateContextFromType", &status, || match includes_device(kind)? {
        // SAFETY: the caller of the API passes a list that ends with zero.
        true => unsafe { new(list, devices::handles()?.to_vec()) },
        false => Err(Status::DEVICE_NOT_FOUND.into()),
    })
}

/// `clGetContextInfo`.
pub unsafe extern "C" fn clGetContextInfo(
    handle: Handle,
    name: c_uint,
    size: usize,
    value: Memory,
    needed: Out<usize>,
) -> c_int {
    call("clGetContextInfo", || {
        let context = handle::get::<Context>(handle)?;
        // SAFETY: the caller of the API passes null, or a buffer of this size.
        let query = unsafe { Query::new(size, value, needed) };
        match name {
            0x1080 => query.u32(handle::references(handle)),
            0x1081 => query.handles(&context.devices),
            0x1082 => query.words(&context.properties),
            0x1083 => query.u32(context.devices.len() as u32),
            _ => unknown_parameter(),
        }
    })
}

/// `clSetContextDestructorCallback`.
pub unsafe extern "C" fn clSetContextDestructorCallback(
    handle: Handle,
    function: Option<Destructor>,
    data: UserData,
) -> c_int {
    call("clSetContextDestructorCallback", || {
        handle::get::<Context>(handle)?.identity.on_destroy(function, data)
    })
}
