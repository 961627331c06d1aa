//! Shared virtual memory. Host and device share one address space, so ordinary device allocations suffice.

use crate::command::CommandType;
use crate::context::Context;
use crate::ffi::{In, Memory, Out, UserData};
use crate::handle::{self, Handle};
use crate::platform::gpu;
use crate::queue::{Submission, lock};
use crate::status::{Outcome, Status, address, call, report};
use std::collections::BTreeSet;
use std::ffi::{c_int, c_uint};
use std::sync::Mutex;
use wavesim_runtime::MemoryRange;
use wavesim_runtime::callback;

/// Addresses of SVM allocations.
static ALLOCATED: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// Returns the SVM allocation that contains an address.
pub fn allocation(address: u64) -> Option<MemoryRange> {
    let range = gpu().ok()?.device.find(address)?;
    lock(&ALLOCATED).contains(&range.address).then_some(range)
}

/// `clSVMAlloc`. Returns null on failure.
pub unsafe extern "C" fn clSVMAlloc(context: Handle, flags: u64, size: usize, alignment: c_uint) -> usize {
    address("clSVMAlloc", &Out::none(), || {
        handle::get::<Context>(context)?;
        // CL_MEM_READ_WRITE, WRITE_ONLY, READ_ONLY, CL_MEM_SVM_FINE_GRAIN_BUFFER
        const KNOWN: u64 = 1 | 2 | 4 | 1 << 10;
        let aligned = alignment == 0 || alignment.is_power_of_two() && alignment <= 128;
        let gpu = gpu()?;
        if flags & !KNOWN != 0 || size == 0 || size as u64 > gpu.max_allocation() || !aligned {
            return Err(Status::INVALID_VALUE.because("invalid flags, size or alignment"));
        }
        let address = gpu.device.alloc(size as u64, "clSVMAlloc")?;
        lock(&ALLOCATED).insert(address);
        Ok(address as usize)
    })
}

fn free(memory: Memory) {
    if memory.is_null() {
        return;
    }
    if !lock(&ALLOCATED).remove(&memory.address()) {
        report(&format!("clSVMFree: 0x{:x} is not the address of an allocation", memory.address()));
    } else if let Ok(gpu) = gpu() {
        // Freeing fails only for memory that is not allocated.
        let _ = gpu.device.free(memory.address());
    }
}

/// `clSVMFree`.
pub unsafe extern "C" fn clSVMFree(context: Handle, memory: Memory) {
    call("clSVMFree", || {
        handle::get::<Context>(context)?;
        free(memory);
        Ok(())
    });
}

/// A callback of the program that frees memory.
type Free = Option<unsafe extern "C" fn(Handle, c_uint, In<Memory>, UserData)>;

/// `clEnqueueSVMFree`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueSVMFree(
    queue: Handle,
    pointers: c_uint,
    memory: In<Memory>,
    function: Free,
    data: UserData,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueSVMFree", || {
        let submission = Submission::new(queue, CommandType::SvmFree, after, event)?;
        // SAFETY: the caller of the API passes an array of this length.
        let pointers = unsafe { memory.list(pointers as usize)? };
        if pointers.is_empty() {
            return Err(Status::INVALID_VALUE.into());
        }
        submission.submit(move || {
            match function {
                None => pointers.into_iter().for_each(free),
                Some(function) => {
                    let count = pointers.len() as c_uint;
                    // SAFETY: the callback of the program has this type, and uses the list only during the call.
                    callback::run(|| unsafe { function(queue, count, In::of(&pointers), data) });
                }
            }
            Ok(())
        })
    })
}

/// `clEnqueueSVMMemcpy`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueSVMMemcpy(
    queue: Handle,
    blocking: c_uint,
    to: Memory,
    from: Memory,
    size: usize,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueSVMMemcpy", || {
        let submission = Submission::new(queue, CommandType::SvmMemcpy, after, event)?;
        if to.is_null() || from.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        check_bounds(to, size)?;
        check_bounds(from, size)?;
        if to.address().abs_diff(from.address()) < size as u64 {
            return Err(Status::MEM_COPY_OVERLAP.into());
        }
        submission.blocking(blocking).submit(move || {
            // SAFETY: the caller of the API passes ranges of this size, which are valid until the command ends.
            unsafe { to.copy_from(from, size) };
            Ok(())
        })
    })
}

/// Checks that a range does not extend past the end of its SVM allocation. Other memory of the program is not
/// checked.
fn check_bounds(memory: Memory, size: usize) -> Outcome {
    match allocation(memory.address()) {
        Some(range) if memory.address() - range.address + size as u64 > range.len => {
            Err(Status::INVALID_VALUE.because(format!("{size} bytes are beyond the end of the allocation")))
        }
        _ => Ok(()),
    }
}

/// `clEnqueueSVMMemFill`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueSVMMemFill(
    queue: Handle,
    memory: Memory,
    pattern: Memory,
    pattern_size: usize,
    size: usize,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueSVMMemFill", || {
        let submission = Submission::new(queue, CommandType::SvmMemFill, after, event)?;
        // SAFETY: the caller of the API passes a pattern of this size.
        let fill = unsafe { crate::transfer::Pattern::new(pattern, pattern_size, size)? };
        if memory.is_null() || !memory.address().is_multiple_of(pattern_size as u64) {
            return Err(Status::INVALID_VALUE.into());
        }
        check_bounds(memory, size)?;
        submission.submit(move || {
            // SAFETY: the caller of the API passes a range of this size, which is valid until the command ends.
            unsafe { fill.fill(memory, size) };
            Ok(())
        })
    })
}

/// `clEnqueueSVMMap`. Only orders commands, since the host can always access the memory.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueSVMMap(
    queue: Handle,
    blocking: c_uint,
    _flags: u64,
    memory: Memory,
    size: usize,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueSVMMap", || {
        let submission = Submission::new(queue, CommandType::SvmMap, after, event)?;
        if memory.is_null() || size == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        submission.blocking(blocking).submit(|| Ok(()))
    })
}

/// `clEnqueueSVMUnmap`.
pub unsafe extern "C" fn clEnqueueSVMUnmap(
    queue: Handle,
    memory: Memory,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueSVMUnmap", || {
        let submission = Submission::new(queue, CommandType::SvmUnmap, after, event)?;
        if memory.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        submission.submit(|| Ok(()))
    })
}

/// `clEnqueueSVMMigrateMem`. Only orders commands, since there is a single device.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueSVMMigrateMem(
    queue: Handle,
    pointers: c_uint,
    memory: In<Memory>,
    _sizes: In<usize>,
    _flags: u64,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueSVMMigrateMem", || {
        if pointers == 0 || memory.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        Submission::new(queue, CommandType::SvmMigrateMem, after, event)?.submit(|| Ok(()))
    })
}
