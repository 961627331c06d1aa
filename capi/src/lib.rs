//! wavesim behind a C ABI: `include/wavesim.h` is made of this file (`tests/header.rs` compares), `docs/embedding.md` explains it.
//!
//! Nothing that a caller passes may bring the process down: pointers are looked up in the process's memory map before they are
//! followed (on Linux; elsewhere only null is refused), handles are numbers looked up in a table, panics end here as an error.
//! Absent on purpose: callbacks and the debugger.

// C's names are the interface.
#![allow(non_camel_case_types)]

mod device;
mod error;
mod host;
mod object;
mod run_asm;

use device::{Device, Launch};
use error::guard;
use host::Space;
use std::ffi::{c_char, c_int, c_void};

/// Version of this interface. It grows when something that compiled programs rely on changes; additions leave it as it is.
pub const WAVESIM_ABI_VERSION: u32 = 1;

/// `wavesim_launch::mode` and its like: round to nearest even, denormals kept, as compilers set it for kernels.
pub const WAVESIM_MODE_DEFAULT: u32 = 0xffff_ffff;

/// What calls return. `wavesim_last_error` has the text.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum wavesim_status {
    WAVESIM_OK = 0,
    /// The kernel faulted: access outside every range, unknown instruction, barrier deadlock, instruction limit.
    WAVESIM_FAULT = 1,
    /// An argument is null, points nowhere, or asks for what no device has.
    WAVESIM_BAD_ARGUMENT = 2,
    /// An error in the library itself.
    WAVESIM_INTERNAL = 3,
}

/// A device: an architecture and the host memory its kernels reach. 0 is no device. Different devices may be used by different
/// threads at once; calls on one device wait for each other.
pub type wavesim_device = u64;

/// A launch of raw machine code. Set up by `wavesim_launch_init`, then changed.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct wavesim_launch {
    /// `sizeof(struct wavesim_launch)` of the caller's header.
    pub struct_size: u32,
    /// Lanes of a wave: 32 or 64.
    pub wave_size: u32,
    /// Machine code; kernels may read it as data too.
    pub code: *const c_void,
    pub code_bytes: u64,
    /// Address of the code as the kernel sees it; 0: where it is.
    pub code_address: u64,
    /// Offset of the first instruction in the code.
    pub entry_offset: u64,
    /// Workgroups of the grid.
    pub grid: [u32; 3],
    /// Work-items of a workgroup.
    pub block: [u32; 3],
    /// LDS of a workgroup.
    pub lds_bytes: u32,
    /// Scratch of a work-item.
    pub scratch_bytes: u32,
    /// Values of s0, s1, …
    pub user_sgprs: *const u32,
    pub user_sgpr_count: u32,
    /// Workgroup ids in the SGPRs behind the user SGPRs: bit 0 X, bit 1 Y, bit 2 Z. RDNA 4 has them in ttmp9 and ttmp7 whatever this says.
    pub group_ids: u32,
    /// Work-item ids packed in v0, ten bits each: 0 X, 1 X and Y, 2 all.
    pub item_ids: u32,
    /// The MODE register, or WAVESIM_MODE_DEFAULT.
    pub mode: u32,
    /// Wave-instructions after which the launch is a fault.
    pub max_instructions: u64,
    /// Host threads that run workgroups.
    pub threads: u32,
    pub reserved: u32,
}

/// A launch of a kernel in a code object, or in a bundle of such. Set up by `wavesim_object_launch_init`, then changed.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct wavesim_object_launch {
    /// `sizeof(struct wavesim_object_launch)` of the caller's header.
    pub struct_size: u32,
    pub dynamic_lds_bytes: u32,
    /// An ELF code object or a bundle of clang's, as files hold them.
    pub object: *const c_void,
    pub object_bytes: u64,
    /// The kernel; null: the only one.
    pub kernel: *const c_char,
    /// Workgroups of the grid.
    pub grid: [u32; 3],
    /// Work-items of a workgroup.
    pub block: [u32; 3],
    /// The explicit arguments, laid out as the kernel's metadata says. Hidden arguments are filled in.
    pub kernarg: *const c_void,
    pub kernarg_bytes: u64,
    /// Wave-instructions after which the launch is a fault.
    pub max_instructions: u64,
    /// Host threads that run workgroups.
    pub threads: u32,
    pub reserved: u32,
}

/// What came of a launch.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct wavesim_outcome {
    /// Wave-instructions executed; 0 after a fault.
    pub instructions: u64,
    pub waves: u64,
    /// Kind of the fault (`out-of-bounds`, `instruction-limit`, …), empty if there was none; the rest of this says where it happened.
    pub fault: [c_char; 32],
    /// Byte offset of the instruction in the code.
    pub pc: u64,
    /// The address accessed, if there was one.
    pub address: u64,
    pub has_address: bool,
    pub workgroup: [u32; 3],
    /// Index of the wave in its workgroup.
    pub wave: u32,
    /// -1: not one lane's fault.
    pub lane: i32,
}

/// The library's WAVESIM_ABI_VERSION: a program may compare it with its header's.
#[unsafe(no_mangle)]
pub extern "C" fn wavesim_abi_version() -> u32 {
    WAVESIM_ABI_VERSION
}

/// The library's release, as text.
#[unsafe(no_mangle)]
pub extern "C" fn wavesim_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Why the calling thread's last call failed; empty if it did not. Valid until the thread's next call.
#[unsafe(no_mangle)]
pub extern "C" fn wavesim_last_error() -> *const c_char {
    error::last()
}

/// Makes a device of an architecture (`rdna3`, `rdna3.5`, `rdna4`) or a processor (`gfx1100`, …).
///
/// # Safety
/// Where the host has no memory map to look pointers up in, both must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_device_create(
    target: *const c_char,
    device: *mut wavesim_device,
) -> wavesim_status {
    guard(|| {
        let space = Space::now()?;
        // SAFETY: as ours.
        let target = unsafe { space.string("target", target)? };
        space.check("device", device as u64, size_of::<wavesim_device>() as u64, true)?;
        let handle = device::insert(Device::new(&target)?);
        // SAFETY: mapped and writable, as just checked; the caller lends it.
        unsafe { device.write_unaligned(handle) };
        Ok(())
    })
}

/// Ends a device. The memory ranges it was given stay the caller's.
#[unsafe(no_mangle)]
pub extern "C" fn wavesim_device_destroy(device: wavesim_device) -> wavesim_status {
    guard(|| device::remove(device))
}

/// Lets kernels reach `length` bytes of host memory at `host` as guest address `address` (the same, where pointers are shared).
/// They must stay valid until unmapped or the device is destroyed.
///
/// # Safety
/// The memory stays valid that long. Nothing but launches on devices may access it while a launch runs, other than atomically.
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
        // SAFETY: as ours.
        device::with(device, |device| unsafe { device.map(address, host.cast(), length, writable) })
    })
}

/// Takes back the range that begins at guest address `address`.
#[unsafe(no_mangle)]
pub extern "C" fn wavesim_device_unmap(device: wavesim_device, address: u64) -> wavesim_status {
    guard(|| device::with(device, |device| device.unmap(address)))
}

/// Defaults: one work-item, waves of 32, X ids, no LDS, 10^10 instructions.
///
/// # Safety
/// Where the host has no memory map to look pointers up in, it must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_launch_init(launch: *mut wavesim_launch) -> wavesim_status {
    // SAFETY: as ours.
    guard(|| unsafe { host::write("launch", launch, wavesim_launch::default()) })
}

/// Defaults: one work-item, no arguments, 10^10 instructions.
///
/// # Safety
/// Where the host has no memory map to look pointers up in, it must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_object_launch_init(launch: *mut wavesim_object_launch) -> wavesim_status {
    // SAFETY: as ours.
    guard(|| unsafe { host::write("launch", launch, wavesim_object_launch::default()) })
}

/// Runs machine code to its end. `outcome` may be null.
///
/// # Safety
/// The device's ranges are still valid. Where the host has no memory map to look pointers up in, all pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_device_launch(
    device: wavesim_device,
    launch: *const wavesim_launch,
    outcome: *mut wavesim_outcome,
) -> wavesim_status {
    guard(|| {
        let space = Space::now()?;
        // SAFETY: as ours.
        let given: wavesim_launch = unsafe { space.sized("launch", launch)? };
        // SAFETY: as ours.
        let launch = unsafe { Launch::copied(&space, &given)? };
        let result = device::with(device, |device| device.launch(&launch));
        // SAFETY: as ours.
        unsafe { device::report(&space, result, outcome) }
    })
}

/// Runs a kernel of a code object to its end. `outcome` may be null.
///
/// # Safety
/// As of `wavesim_device_launch`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wavesim_device_launch_object(
    device: wavesim_device,
    launch: *const wavesim_object_launch,
    outcome: *mut wavesim_outcome,
) -> wavesim_status {
    guard(|| {
        let space = Space::now()?;
        // SAFETY: as ours.
        let given: wavesim_object_launch = unsafe { space.sized("launch", launch)? };
        // SAFETY: as ours.
        let launch = unsafe { object::ObjectLaunch::copied(&space, &given)? };
        let result = device::with(device, |device| device.launch_object(&launch));
        // SAFETY: as ours.
        unsafe { device::report(&space, result, outcome) }
    })
}

/// Runs raw RDNA 3 machine code in waves of 32, as emulators of this kind offer it to their hosts: `args_ptr` in s[0:1]; workgroup
/// ids in s15 (one-dimensional grids), s14 and s15 (two), s13 to s15 (three); packed work-item ids in v0; 64 KiB of LDS. Addresses
/// are the host's own. Returns 0, or a wavesim_status: an access outside the process's memory is an error, not a crash.
///
/// # Safety
/// The kernel writes where its pointers say, as native code would. Other threads must not unmap memory that it uses.
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
        // SAFETY: as ours.
        let code = unsafe { space.bytes("lib", lib.cast(), lib_sz as u64)? };
        // SAFETY: as ours.
        unsafe { run_asm::run(&space, lib as u64, &code, [gx, gy, gz], [lx, ly, lz], args_ptr as u64) }
    }) as c_int
}
