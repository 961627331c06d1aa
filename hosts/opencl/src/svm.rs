//! Shared virtual memory: device memory is memory of the process, so that pointers are the same anyway.

use crate::context::Context;
use crate::ffi::{In, Memory, Out, UserData};
use crate::handle::{self, Handle};
use crate::platform::{MAX_ALLOCATION, gpu};
use crate::queue::{Order, lock};
use crate::status::{Outcome, Status, address, call, complain};
use std::collections::BTreeSet;
use std::ffi::{c_int, c_uint};
use std::sync::Mutex;
use wavesim_runtime::Range;

/// Addresses of allocations.
static ALLOCATED: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// The allocation that an address is in.
pub fn allocation(address: u64) -> Option<Range> {
    let range = gpu().ok()?.device.find(address)?;
    lock(&ALLOCATED).contains(&range.address).then_some(range)
}

/// `clSVMAlloc`. The result is null if there is no such memory.
pub extern "C" fn clSVMAlloc(context: Handle, flags: u64, size: usize, alignment: c_uint) -> usize {
    address("clSVMAlloc", &Out::none(), || {
        handle::get::<Context>(context)?;
        // CL_MEM_READ_WRITE, WRITE_ONLY, READ_ONLY, CL_MEM_SVM_FINE_GRAIN_BUFFER
        const KNOWN: u64 = 1 | 2 | 4 | 1 << 10;
        let aligned = alignment == 0 || alignment.is_power_of_two() && alignment <= 128;
        if flags & !KNOWN != 0 || size == 0 || size as u64 > MAX_ALLOCATION || !aligned {
            return Err(Status::INVALID_VALUE.because("no such shared virtual memory"));
        }
        let made = gpu()?.device.alloc(size as u64, "clSVMAlloc")?;
        lock(&ALLOCATED).insert(made);
        Ok(made as usize)
    })
}

fn free(memory: Memory) {
    if memory.is_null() {
        return;
    }
    if !lock(&ALLOCATED).remove(&memory.address()) {
        complain(&format!("clSVMFree: 0x{:x} is not the address of an allocation", memory.address()));
    } else if let Ok(gpu) = gpu() {
        // It was allocated.
        let _ = gpu.device.free(memory.address());
    }
}

/// `clSVMFree`.
pub extern "C" fn clSVMFree(context: Handle, memory: Memory) {
    call("clSVMFree", || {
        handle::get::<Context>(context)?;
        free(memory);
        Ok(())
    });
}

/// The program's function that frees memory.
type Free = Option<extern "C" fn(Handle, c_uint, In<Memory>, UserData)>;

/// `clEnqueueSVMFree`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub extern "C" fn clEnqueueSVMFree(
    queue: Handle,
    pointers: c_uint,
    memory: In<Memory>,
    function: Free,
    data: UserData,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    call("clEnqueueSVMFree", || {
        let order = Order::new(queue, 0x1209, count, list, event)?;
        let pointers = memory.list(pointers as usize)?;
        if pointers.is_empty() {
            return Err(Status::INVALID_VALUE.into());
        }
        order.submit(move || {
            match function {
                None => pointers.into_iter().for_each(free),
                Some(function) => {
                    let count = pointers.len() as c_uint;
                    function(queue, count, In::of(&pointers), data);
                }
            }
            Ok(())
        })
    })
}

/// `clEnqueueSVMMemcpy`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub extern "C" fn clEnqueueSVMMemcpy(
    queue: Handle,
    blocking: c_uint,
    to: Memory,
    from: Memory,
    size: usize,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    call("clEnqueueSVMMemcpy", || {
        let order = Order::new(queue, 0x120a, count, list, event)?;
        if to.is_null() || from.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        inside(to, size)?;
        inside(from, size)?;
        if to.address().abs_diff(from.address()) < size as u64 {
            return Err(Status::MEM_COPY_OVERLAP.into());
        }
        order.blocking(blocking).submit(move || {
            to.copy_from(from, size);
            Ok(())
        })
    })
}

/// Memory of the device must have so many bytes; of the program's own, nothing is known.
fn inside(memory: Memory, size: usize) -> Outcome {
    match allocation(memory.address()) {
        Some(range) if memory.address() - range.address + size as u64 > range.len => {
            Err(Status::INVALID_VALUE.because(format!("{size} bytes are beyond the end of the allocation")))
        }
        _ => Ok(()),
    }
}

/// `clEnqueueSVMMemFill`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub extern "C" fn clEnqueueSVMMemFill(
    queue: Handle,
    memory: Memory,
    pattern: Memory,
    pattern_size: usize,
    size: usize,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    call("clEnqueueSVMMemFill", || {
        let order = Order::new(queue, 0x120b, count, list, event)?;
        let fill = crate::transfer::Pattern::new(pattern, pattern_size, size)?;
        if memory.is_null() || !memory.address().is_multiple_of(pattern_size as u64) {
            return Err(Status::INVALID_VALUE.into());
        }
        inside(memory, size)?;
        order.submit(move || {
            fill.fill(memory, size);
            Ok(())
        })
    })
}

/// `clEnqueueSVMMap`: the host can always access it.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub extern "C" fn clEnqueueSVMMap(
    queue: Handle,
    blocking: c_uint,
    _flags: u64,
    memory: Memory,
    size: usize,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    call("clEnqueueSVMMap", || {
        let order = Order::new(queue, 0x120c, count, list, event)?;
        if memory.is_null() || size == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        order.blocking(blocking).submit(|| Ok(()))
    })
}

/// `clEnqueueSVMUnmap`.
pub extern "C" fn clEnqueueSVMUnmap(
    queue: Handle,
    memory: Memory,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    call("clEnqueueSVMUnmap", || {
        let order = Order::new(queue, 0x120d, count, list, event)?;
        if memory.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        order.submit(|| Ok(()))
    })
}

/// `clEnqueueSVMMigrateMem`: there is one place.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub extern "C" fn clEnqueueSVMMigrateMem(
    queue: Handle,
    pointers: c_uint,
    memory: In<Memory>,
    _sizes: In<usize>,
    _flags: u64,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    call("clEnqueueSVMMigrateMem", || {
        if pointers == 0 || memory.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        Order::new(queue, 0x120e, count, list, event)?.submit(|| Ok(()))
    })
}
