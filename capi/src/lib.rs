//! C API of wavesim. `include/wavesim.h` is generated from this file and `types.rs` (`tests/all/header.rs`
//! verifies that it is up to date); `docs/embedding.md` documents the API.
//!
//! Invalid arguments must not crash the process. Pointers are checked against the memory map of the process
//! before they are dereferenced (on Linux; other hosts reject only null), handles are numbers that are looked
//! up in a table, and panics become errors. The API deliberately has no callbacks and no debugger.

#![warn(missing_docs)]
// The names follow the conventions of C.
#![allow(non_camel_case_types)]

mod device;
mod error;
mod host;
mod object;
mod run_asm;
mod types;

use error::{Error, guard};
use host::AddressSpace;
use std::ffi::{c_char, c_int, c_void};
pub use types::*;
use wavesim_runtime::{Device, Settings};

/// Version of this API. It is incremented by changes that break compiled programs, not by additions.
pub const WAVESIM_ABI_VERSION: u32 = 1;

/// Default value of `mode`: round to nearest even, denormals enabled, as compilers set it for kernels.
pub const WAVESIM_MODE_DEFAULT: u32 = 0xffff_ffff;

/// Returns the WAVESIM_ABI_VERSION of the library, to compare with that of the header.
#[unsafe(no_mangle)]
pub extern "C" fn wavesim_abi_version() -> u32 {
    WAVESIM_ABI_VERSION
}

/// Returns the version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn wavesim_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Returns the error message of the last call on this thread; empty if the call succeeded. The string is
/// valid until the next call on this thread.
#[unsafe(no_mangle)]
pub extern "C" fn wavesim_last_error() -> *const c_char {
    error::last()
}

/// Creates a device of an architecture (`rdna3`, `cdna4`, …) or a processor (`gfx1100`, …).
///
/// # Safety
/// On hosts other than Linux, both pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_device_create(
    target: *const c_char,
    device: *mut wavesim_device,
) -> wavesim_status {
    guard(|| {
        let memory = AddressSpace::now()?;
        // SAFETY: the caller guarantees it.
        let target = unsafe { memory.string("target", target)? };
        memory.check("device", device as u64, size_of::<wavesim_device>() as u64, true)?;
        let handle = device::insert(Device::open(&target, &Settings::default()).map_err(Error::from)?);
        // SAFETY: `check` has verified that the memory is mapped and writable.
        unsafe { device.write_unaligned(handle) };
        Ok(())
    })
}

/// Destroys a device, after waiting for a running launch. Mapped memory remains the property of the caller;
/// kernels of modules that are still loaded can no longer access it.
#[unsafe(no_mangle)]
pub extern "C" fn wavesim_device_destroy(device: wavesim_device) -> wavesim_status {
    guard(|| device::remove(device))
}

/// Cancels the running launches of a device, each with the fault `interrupted`. Any thread can call this
/// function. Later launches are not affected.
#[unsafe(no_mangle)]
pub extern "C" fn wavesim_device_cancel(device: wavesim_device) -> wavesim_status {
    guard(|| device::cancel(device))
}

/// Maps `length` bytes of host memory at `host` to guest address `address`, until the range is unmapped or
/// the device is destroyed. `address` can equal `host`, which lets host and kernels share pointers.
///
/// # Safety
/// The memory must stay valid while it is mapped. While a launch runs, other code may access it only atomically.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_device_map(
    device: wavesim_device,
    address: u64,
    host: *mut c_void,
    length: u64,
    writable: bool,
) -> wavesim_status {
    guard(|| {
        AddressSpace::now()?.check("host", host as u64, length, writable)?;
        // SAFETY: the caller guarantees it.
        device::with(device, |device| unsafe { device::map(device, address, host.cast(), length, writable) })
    })
}

/// Unmaps the range that begins at guest address `address`, after waiting for a running launch of the device.
#[unsafe(no_mangle)]
pub extern "C" fn wavesim_device_unmap(device: wavesim_device, address: u64) -> wavesim_status {
    guard(|| device::with(device, |device| Ok(device.unmap(address)?)))
}

/// Sets defaults: one work-item, wave32, X ids, no LDS, a limit of 10^10 instructions.
///
/// # Safety
/// On hosts other than Linux, the pointer must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_launch_init(launch: *mut wavesim_launch) -> wavesim_status {
    // SAFETY: the caller guarantees it.
    guard(|| unsafe { host::write("launch", launch, wavesim_launch::default()) })
}

/// Sets defaults: one work-item, no arguments, a limit of 10^10 instructions.
///
/// # Safety
/// On hosts other than Linux, the pointer must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_object_launch_init(launch: *mut wavesim_object_launch) -> wavesim_status {
    // SAFETY: the caller guarantees it.
    guard(|| unsafe { host::write("launch", launch, wavesim_object_launch::default()) })
}

/// Runs machine code until all waves have ended. `outcome` may be null.
///
/// # Safety
/// The mapped ranges must be valid. On hosts other than Linux, all pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_device_launch(
    device: wavesim_device,
    launch: *const wavesim_launch,
    outcome: *mut wavesim_outcome,
) -> wavesim_status {
    guard(|| {
        let memory = AddressSpace::now()?;
        // SAFETY: the caller guarantees it.
        let given: wavesim_launch = unsafe { memory.sized("launch", launch)? };
        // SAFETY: the caller guarantees it.
        let launch = unsafe { device::raw(&memory, &given)? };
        let result = device::with(device, |device| Ok(device.launch_raw(&launch, &[])))?;
        // SAFETY: the caller guarantees it.
        unsafe { device::report(&memory, result, outcome) }
    })
}

/// Runs a kernel of a code object until all waves have ended. `outcome` may be null.
///
/// # Safety
/// See `wavesim_device_launch`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_device_launch_object(
    device: wavesim_device,
    launch: *const wavesim_object_launch,
    outcome: *mut wavesim_outcome,
) -> wavesim_status {
    guard(|| {
        let memory = AddressSpace::now()?;
        // SAFETY: the caller guarantees it.
        let given: wavesim_object_launch = unsafe { memory.sized("launch", launch)? };
        // SAFETY: the caller guarantees it.
        let launch = unsafe { object::ObjectLaunch::copied(&memory, &given)? };
        let result = device::with(device, |device| Ok(object::launch(device, &launch)))?;
        // SAFETY: the caller guarantees it.
        unsafe { device::report(&memory, result, outcome) }
    })
}

/// Loads a code object or a clang offload bundle. The module keeps the device alive until it is unloaded.
///
/// # Safety
/// On hosts other than Linux, all pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_module_load(
    device: wavesim_device,
    object: *const c_void,
    object_bytes: u64,
    module: *mut wavesim_module,
) -> wavesim_status {
    guard(|| {
        let memory = AddressSpace::now()?;
        // SAFETY: the caller guarantees it.
        let object = unsafe { memory.bytes("object", object, object_bytes)? };
        memory.check("module", module as u64, size_of::<wavesim_module>() as u64, true)?;
        let loaded = device::load(device, &object)?;
        // SAFETY: `check` has verified that the memory is mapped and writable.
        unsafe { module.write_unaligned(loaded) };
        Ok(())
    })
}

/// Unloads a module and frees its variables.
#[unsafe(no_mangle)]
pub extern "C" fn wavesim_module_unload(module: wavesim_module) -> wavesim_status {
    guard(|| device::remove_module(module))
}

/// Writes the address and the size of a variable of a module. The host can access the variable between
/// launches.
///
/// # Safety
/// On hosts other than Linux, all pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_module_variable(
    module: wavesim_module,
    name: *const c_char,
    address: *mut u64,
    bytes: *mut u64,
) -> wavesim_status {
    guard(|| {
        let memory = AddressSpace::now()?;
        // SAFETY: the caller guarantees it.
        let name = unsafe { memory.string("name", name)? };
        let (at, size) = device::with_module(module, |module| Ok(module.variable(&name)?))?;
        // SAFETY: the caller guarantees it.
        unsafe {
            host::write("address", address, at)?;
            host::write("bytes", bytes, size)
        }
    })
}

/// Writes the number of kernels and the number of variables of a module. Either pointer may be null.
///
/// # Safety
/// On hosts other than Linux, both pointers must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_module_counts(
    module: wavesim_module,
    kernels: *mut u32,
    variables: *mut u32,
) -> wavesim_status {
    guard(|| {
        let (kernel_count, variable_count) = device::with_module(module, |module| {
            Ok((module.kernels().len() as u32, module.variables().count() as u32))
        })?;
        // SAFETY: the caller guarantees it.
        unsafe {
            host::write_unless_null("kernels", kernels, kernel_count)?;
            host::write_unless_null("variables", variables, variable_count)
        }
    })
}

/// Writes the name of the `index`-th kernel of a module as a NUL-terminated string, truncated to
/// `name_bytes`.
///
/// # Safety
/// On hosts other than Linux, `name` must be valid for `name_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_module_kernel_name(
    module: wavesim_module,
    index: u32,
    name: *mut c_char,
    name_bytes: u64,
) -> wavesim_status {
    guard(|| {
        let names = device::with_module(module, |module| Ok(module.kernels()))?;
        let found = names.get(index as usize).ok_or(Error::Index("kernel", index, names.len()))?;
        // SAFETY: the caller guarantees it.
        unsafe { host::write_text("name", name, name_bytes, found) }
    })
}

/// Writes the name of the `index`-th variable of a module, like `wavesim_module_kernel_name`.
///
/// # Safety
/// On hosts other than Linux, `name` must be valid for `name_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_module_variable_name(
    module: wavesim_module,
    index: u32,
    name: *mut c_char,
    name_bytes: u64,
) -> wavesim_status {
    guard(|| {
        let found = device::with_module(module, |module| {
            let count = module.variables().count();
            let found = module.variables().nth(index as usize).map(str::to_string);
            found.ok_or(Error::Index("variable", index, count))
        })?;
        // SAFETY: the caller guarantees it.
        unsafe { host::write_text("name", name, name_bytes, &found) }
    })
}

/// Writes the properties of a kernel. `name` may be null if the module has exactly one kernel.
///
/// # Safety
/// On hosts other than Linux, both pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_module_kernel(
    module: wavesim_module,
    name: *const c_char,
    kernel: *mut wavesim_kernel,
) -> wavesim_status {
    guard(|| {
        let memory = AddressSpace::now()?;
        // SAFETY: the caller guarantees it.
        unsafe { memory.sized("kernel", kernel.cast_const()) }?;
        // SAFETY: as above.
        let found = unsafe { object::kernel(&memory, module, name)? };
        // SAFETY: as above.
        unsafe { host::write("kernel", kernel, wavesim_kernel::of(&found)) }
    })
}

/// Writes a description of the `index`-th argument of a kernel. `name` may be null if the module has exactly
/// one kernel.
///
/// # Safety
/// On hosts other than Linux, both pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_module_argument(
    module: wavesim_module,
    name: *const c_char,
    index: u32,
    argument: *mut wavesim_argument,
) -> wavesim_status {
    guard(|| {
        let memory = AddressSpace::now()?;
        // SAFETY: the caller guarantees it.
        unsafe { memory.sized("argument", argument.cast_const()) }?;
        // SAFETY: as above.
        let kernel = unsafe { object::kernel(&memory, module, name)? };
        let count = kernel.arguments().count();
        let found = kernel.arguments().nth(index as usize);
        let found = found.ok_or(Error::Index("argument", index, count))?;
        // SAFETY: as above.
        unsafe { host::write("argument", argument, wavesim_argument::of(found)) }
    })
}

/// Runs a kernel of a module until all waves have ended. The fields `object` and `object_bytes` are ignored.
/// `outcome` may be null.
///
/// # Safety
/// See `wavesim_device_launch`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_module_launch(
    module: wavesim_module,
    launch: *const wavesim_object_launch,
    outcome: *mut wavesim_outcome,
) -> wavesim_status {
    guard(|| {
        let memory = AddressSpace::now()?;
        // SAFETY: the caller guarantees it.
        let given: wavesim_object_launch = unsafe { memory.sized("launch", launch)? };
        // SAFETY: the caller guarantees it.
        let launch = unsafe { object::ObjectLaunch::without_object(&memory, &given)? };
        let result = device::with_module(module, |module| Ok(object::launch_of(module, &launch)))?;
        // SAFETY: the caller guarantees it.
        unsafe { device::report(&memory, result, outcome) }
    })
}

/// Sets defaults: 1000 schedules of depth 3 with delays, a tolerance of 1e-5, up to the first difference.
///
/// # Safety
/// On hosts other than Linux, the pointer must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_exploration_init(exploration: *mut wavesim_exploration) -> wavesim_status {
    // SAFETY: the caller guarantees it.
    guard(|| unsafe { host::write("exploration", exploration, wavesim_exploration::default()) })
}

/// Runs a kernel of a module in random orders of its waves, with delays of its memory operations, on copies of the memory
/// that it can write, which is afterwards as before. The fields `object`, `object_bytes` and `threads` of the launch are
/// ignored. What differs, and why, is written to `difference` as a NUL-terminated string, truncated to
/// `difference_bytes`; `difference` may be null.
///
/// # Safety
/// See `wavesim_device_launch`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_module_explore(
    module: wavesim_module,
    launch: *const wavesim_object_launch,
    exploration: *mut wavesim_exploration,
    difference: *mut c_char,
    difference_bytes: u64,
) -> wavesim_status {
    guard(|| {
        let memory = AddressSpace::now()?;
        // SAFETY: the caller guarantees it.
        let given: wavesim_object_launch = unsafe { memory.sized("launch", launch)? };
        // SAFETY: as above.
        let mut explored: wavesim_exploration =
            unsafe { memory.sized("exploration", exploration.cast_const())? };
        // SAFETY: as above.
        let launch = unsafe { object::ObjectLaunch::without_object(&memory, &given)? };
        let text =
            device::with_module(module, |module| Ok(object::explore_of(module, &launch, &mut explored)))??;
        // SAFETY: as above.
        unsafe {
            host::write("exploration", exploration, explored)?;
            match difference.is_null() {
                true => Ok(()),
                false => host::write_text("difference", difference, difference_bytes, &text),
            }
        }
    })
}

/// Runs raw RDNA 3 machine code in wave32, in the address space of this process. s[0:1] holds `args_ptr`.
/// Workgroup ids are in s15 (one-dimensional grids), s14 and s15 (two dimensions) or s13 to s15 (three). v0
/// holds packed work-item ids. A workgroup has 64 KiB of LDS. Returns 0 or a wavesim_status; an access
/// outside the memory of the process is an error, not a crash.
///
/// # Safety
/// The kernel can write to all memory of the process, like native code. No thread may unmap memory that the
/// kernel uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn run_asm(
    lib: *const c_char,
    lib_sz: u32,
    gx: u32,
    gy: u32,
    gz: u32,
    lx: u32,
    ly: u32,
    lz: u32,
    args_ptr: *mut u64,
) -> c_int {
    guard(|| {
        let memory = AddressSpace::now()?;
        // SAFETY: the caller guarantees it.
        let code = unsafe { memory.bytes("lib", lib.cast(), lib_sz as u64)? };
        // SAFETY: the caller guarantees it.
        unsafe { run_asm::run(memory, lib as u64, &code, [gx, gy, gz], [lx, ly, lz], args_ptr as u64) }
    }) as c_int
}
