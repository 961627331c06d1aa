//! The C interface of wavesim. `include/wavesim.h` is generated from this file and `types.rs` (`tests/all/header.rs` compares
//! them), and `docs/embedding.md` explains it.
//!
//! Bad arguments must not crash the process: pointers are looked up in the memory map of the process before they are
//! dereferenced (on Linux; elsewhere only null is rejected), handles are numbers that are looked up in a table, and panics
//! become errors. The interface deliberately has no callbacks and no debugger.

#![warn(missing_docs)]
// The names are those of the C interface.
#![allow(non_camel_case_types)]

mod device;
mod error;
mod host;
mod object;
mod run_asm;
mod types;

use error::{Error, guard};
use host::Space;
use std::ffi::{c_char, c_int, c_void};
pub use types::*;
use wavesim_runtime::{Device, Settings};

/// Version of this interface. It increases when compiled programs would break, not with additions.
pub const WAVESIM_ABI_VERSION: u32 = 1;

/// The default of `mode`: round to nearest even, denormals enabled, as compilers set it for kernels.
pub const WAVESIM_MODE_DEFAULT: u32 = 0xffff_ffff;

/// The WAVESIM_ABI_VERSION of the library, to compare with that of the header.
#[unsafe(no_mangle)]
pub extern "C" fn wavesim_abi_version() -> u32 {
    WAVESIM_ABI_VERSION
}

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn wavesim_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Why the last call of this thread failed; empty if it succeeded. Valid until the next call of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn wavesim_last_error() -> *const c_char {
    error::last()
}

/// Creates a device of an architecture (`rdna3`, `rdna3.5`, `rdna4`) or a processor (`gfx1100`, …).
///
/// # Safety
/// On hosts other than Linux, both pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_device_create(
    target: *const c_char,
    device: *mut wavesim_device,
) -> wavesim_status {
    guard(|| {
        let space = Space::now()?;
        // SAFETY: required of the caller.
        let target = unsafe { space.string("target", target)? };
        space.check("device", device as u64, size_of::<wavesim_device>() as u64, true)?;
        let handle = device::insert(Device::open(&target, &Settings::default()).map_err(Error::from)?);
        // SAFETY: mapped and writable, as just checked.
        unsafe { device.write_unaligned(handle) };
        Ok(())
    })
}

/// Destroys a device, after any launch that runs on it. Mapped memory remains the property of the caller; kernels of modules
/// that are still loaded cannot access it any more.
#[unsafe(no_mangle)]
pub extern "C" fn wavesim_device_destroy(device: wavesim_device) -> wavesim_status {
    guard(|| device::remove(device))
}

/// Ends the launches that run on a device now, each with the fault `interrupted`. Any thread can call it. Later launches are
/// not affected.
#[unsafe(no_mangle)]
pub extern "C" fn wavesim_device_cancel(device: wavesim_device) -> wavesim_status {
    guard(|| device::cancel(device))
}

/// Maps `length` bytes of host memory at `host` to guest address `address`, until they are unmapped or the device is
/// destroyed. `address` can equal `host`, so that host and kernel share pointers.
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
        Space::now()?.check("host", host as u64, length, writable)?;
        // SAFETY: required of the caller.
        device::with(device, |device| unsafe { device::map(device, address, host.cast(), length, writable) })
    })
}

/// Unmaps the range that begins at guest address `address`, after any launch that runs on the device.
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
    // SAFETY: required of the caller.
    guard(|| unsafe { host::write("launch", launch, wavesim_launch::default()) })
}

/// Sets defaults: one work-item, no arguments, a limit of 10^10 instructions.
///
/// # Safety
/// On hosts other than Linux, the pointer must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_object_launch_init(launch: *mut wavesim_object_launch) -> wavesim_status {
    // SAFETY: required of the caller.
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
        let space = Space::now()?;
        // SAFETY: required of the caller.
        let given: wavesim_launch = unsafe { space.sized("launch", launch)? };
        // SAFETY: required of the caller.
        let launch = unsafe { device::raw(&space, &given)? };
        let result = device::with(device, |device| Ok(device.launch_raw(&launch, &[])))?;
        // SAFETY: required of the caller.
        unsafe { device::report(&space, result, outcome) }
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
        let space = Space::now()?;
        // SAFETY: required of the caller.
        let given: wavesim_object_launch = unsafe { space.sized("launch", launch)? };
        // SAFETY: required of the caller.
        let launch = unsafe { object::ObjectLaunch::copied(&space, &given)? };
        let result = device::with(device, |device| Ok(object::launch(device, &launch)))?;
        // SAFETY: required of the caller.
        unsafe { device::report(&space, result, outcome) }
    })
}

/// Loads a code object or a clang offload bundle. The module keeps the device until it is unloaded.
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
        let space = Space::now()?;
        // SAFETY: required of the caller.
        let object = unsafe { space.bytes("object", object, object_bytes)? };
        space.check("module", module as u64, size_of::<wavesim_module>() as u64, true)?;
        let loaded = device::load(device, &object)?;
        // SAFETY: mapped and writable, as just checked.
        unsafe { module.write_unaligned(loaded) };
        Ok(())
    })
}

/// Unloads a module. Its variables are gone.
#[unsafe(no_mangle)]
pub extern "C" fn wavesim_module_unload(module: wavesim_module) -> wavesim_status {
    guard(|| device::remove_module(module))
}

/// Writes the address and the size of a variable of a module. The host can access it there between launches.
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
        let space = Space::now()?;
        // SAFETY: required of the caller.
        let name = unsafe { space.string("name", name)? };
        let (at, size) = device::with_module(module, |module| Ok(module.variable(&name)?))?;
        // SAFETY: required of the caller.
        unsafe {
            host::write("address", address, at)?;
            host::write("bytes", bytes, size)
        }
    })
}

/// Writes the numbers of kernels and of variables of a module. Either pointer may be null.
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
            Ok((module.kernels()?.len() as u32, module.variables().count() as u32))
        })?;
        // SAFETY: required of the caller.
        unsafe {
            host::write_unless_null("kernels", kernels, kernel_count)?;
            host::write_unless_null("variables", variables, variable_count)
        }
    })
}

/// Writes the name of the `index`-th kernel of a module as a string, shortened to `name_bytes` with the terminating zero.
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
        let names = device::with_module(module, |module| Ok(module.kernels()?))?;
        let found = names.get(index as usize).ok_or(Error::Index("kernel", index, names.len()))?;
        // SAFETY: required of the caller.
        unsafe { host::write_text("name", name, name_bytes, found) }
    })
}

/// Writes the name of the `index`-th variable of a module, as `wavesim_module_kernel_name` does.
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
        // SAFETY: required of the caller.
        unsafe { host::write_text("name", name, name_bytes, &found) }
    })
}

/// Writes what a kernel needs. `name` may be null if the module has one kernel.
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
        let space = Space::now()?;
        // SAFETY: required of the caller.
        unsafe { space.sized("kernel", kernel.cast_const()) }?;
        // SAFETY: as above.
        let found = unsafe { object::kernel(&space, module, name)? };
        // SAFETY: as above.
        unsafe { host::write("kernel", kernel, wavesim_kernel::of(&found)) }
    })
}

/// Writes the `index`-th argument of a kernel. `name` may be null if the module has one kernel.
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
        let space = Space::now()?;
        // SAFETY: required of the caller.
        unsafe { space.sized("argument", argument.cast_const()) }?;
        // SAFETY: as above.
        let kernel = unsafe { object::kernel(&space, module, name)? };
        let count = kernel.arguments().count();
        let found = kernel.arguments().nth(index as usize);
        let found = found.ok_or(Error::Index("argument", index, count))?;
        // SAFETY: as above.
        unsafe { host::write("argument", argument, wavesim_argument::of(found)) }
    })
}

/// Runs a kernel of a module until all waves have ended. The fields `object` and `object_bytes` are not used. `outcome`
/// may be null.
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
        let space = Space::now()?;
        // SAFETY: required of the caller.
        let given: wavesim_object_launch = unsafe { space.sized("launch", launch)? };
        // SAFETY: required of the caller.
        let launch = unsafe { object::ObjectLaunch::without_object(&space, &given)? };
        let result = device::with_module(module, |module| Ok(object::launch_of(module, &launch)))?;
        // SAFETY: required of the caller.
        unsafe { device::report(&space, result, outcome) }
    })
}

/// Runs raw RDNA 3 machine code in wave32, on the address space of this process. s[0:1] is `args_ptr`. Workgroup ids are in
/// s15 (one-dimensional grids), s14 and s15 (two dimensions) or s13 to s15 (three). v0 has packed work-item ids. A workgroup
/// has 64 KiB of LDS. Returns 0 or a wavesim_status; an access outside the memory of the process is an error, not a crash.
///
/// # Safety
/// The kernel can write to all memory of the process, as native code can. No thread may unmap memory that it uses.
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
        let space = Space::now()?;
        // SAFETY: required of the caller.
        let code = unsafe { space.bytes("lib", lib.cast(), lib_sz as u64)? };
        // SAFETY: required of the caller.
        unsafe { run_asm::run(space, lib as u64, &code, [gx, gy, gz], [lx, ly, lz], args_ptr as u64) }
    }) as c_int
}
