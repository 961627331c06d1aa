//! Types of the C API.

use std::ffi::{c_char, c_void};

/// Status of a call. `wavesim_last_error` returns the error message.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum wavesim_status {
    /// The call succeeded.
    WAVESIM_OK = 0,
    /// The kernel faulted: out-of-bounds access, invalid instruction, barrier deadlock, instruction limit.
    WAVESIM_FAULT = 1,
    /// An argument is null, an invalid pointer, or a value that the device does not support.
    WAVESIM_BAD_ARGUMENT = 2,
    /// An internal error of the library.
    WAVESIM_INTERNAL = 3,
}

/// Handle of a device: an architecture, and the host memory that its kernels can access. 0 is not a valid
/// handle. Threads can use different devices concurrently; calls on the same device are serialised.
pub type wavesim_device = u64;

/// Handle of a module: a code object that is loaded on a device. Its variables persist across launches. 0 is
/// not a valid handle.
pub type wavesim_module = u64;

/// A launch of raw machine code. Initialise it with `wavesim_launch_init`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct wavesim_launch {
    /// `sizeof(struct wavesim_launch)`.
    pub struct_size: u32,
    /// Lanes in a wave: 32 or 64.
    pub wave_size: u32,
    /// The machine code, which kernels can also read as data.
    pub code: *const c_void,
    /// Size of the code in bytes.
    pub code_bytes: u64,
    /// Address of the code in the kernel's address space; 0 selects its address in this process.
    pub code_address: u64,
    /// Byte offset of the first instruction in the code.
    pub entry_offset: u64,
    /// Workgroups in the grid.
    pub grid: [u32; 3],
    /// Work-items in a workgroup.
    pub block: [u32; 3],
    /// LDS size of a workgroup in bytes.
    pub lds_bytes: u32,
    /// Scratch size of a work-item in bytes.
    pub scratch_bytes: u32,
    /// Initial values of s0, s1, …
    pub user_sgprs: *const u32,
    /// Number of these values.
    pub user_sgpr_count: u32,
    /// Workgroup ids that follow the user SGPRs: bit 0 X, bit 1 Y, bit 2 Z. Ignored on RDNA 4, which passes
    /// them in ttmp9 and ttmp7.
    pub group_ids: u32,
    /// Work-item ids in v0, ten bits each: 0 for X only, 1 for X and Y, 2 for X, Y and Z.
    pub item_ids: u32,
    /// Initial value of the MODE register, or WAVESIM_MODE_DEFAULT.
    pub mode: u32,
    /// Number of wave-instructions after which the launch faults.
    pub max_instructions: u64,
    /// Host threads that run workgroups; 0: one for each processor if workgroups cannot observe one another, else one.
    pub threads: u32,
    /// Reserved.
    pub reserved: u32,
}

/// A launch of a kernel in a code object or a bundle. Initialise it with `wavesim_object_launch_init`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct wavesim_object_launch {
    /// `sizeof(struct wavesim_object_launch)`.
    pub struct_size: u32,
    /// Dynamic LDS size of a workgroup in bytes, in addition to the kernel's static LDS.
    pub dynamic_lds_bytes: u32,
    /// The contents of an ELF code object or of a clang offload bundle.
    pub object: *const c_void,
    /// Size of the object in bytes.
    pub object_bytes: u64,
    /// Name of the kernel; null selects the only kernel.
    pub kernel: *const c_char,
    /// Workgroups in the grid.
    pub grid: [u32; 3],
    /// Work-items in a workgroup.
    pub block: [u32; 3],
    /// The explicit arguments, laid out according to the kernel's metadata. The library fills in hidden
    /// arguments.
    pub kernarg: *const c_void,
    /// Size of the arguments in bytes.
    pub kernarg_bytes: u64,
    /// Number of wave-instructions after which the launch faults.
    pub max_instructions: u64,
    /// Host threads that run workgroups; 0: one for each processor if workgroups cannot observe one another, else one.
    pub threads: u32,
    /// Reserved.
    pub reserved: u32,
}

/// How a launch is explored, and what was found. Initialise it with `wavesim_exploration_init`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct wavesim_exploration {
    /// `sizeof(struct wavesim_exploration)`.
    pub struct_size: u32,
    /// Orderings that a bug needs, for which schedules are made: from 1 to 64.
    pub depth: u32,
    /// Number of random schedules.
    pub schedules: u64,
    /// The first seed of schedules.
    pub first_seed: u64,
    /// Relative difference of floats that counts as equal: from 0 to 1.
    pub tolerance: f64,
    /// Not 0: memory operations are delayed, and caches hold stale lines, in every second schedule.
    pub delays: u32,
    /// Not 0: the exploration goes on after the first schedule whose results differ.
    pub all: u32,
    /// Written: number of schedules that have run.
    pub run: u64,
    /// Written: number of different outcomes.
    pub outcomes: u64,
    /// Written: the number of the first schedule whose results differ, from 1; 0 if none do.
    pub found: u64,
    /// Written: the least probability that a bug of this depth would have been found.
    pub probability: f64,
}

/// The outcome of a launch.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct wavesim_outcome {
    /// Wave-instructions executed; 0 after a fault.
    pub instructions: u64,
    /// Waves executed; 0 after a fault.
    pub waves: u64,
    /// Kind of the fault (`out-of-bounds`, `instruction-limit`, …); empty if there was none. The fields below
    /// locate the fault.
    pub fault: [c_char; 32],
    /// Byte offset of the instruction in the code.
    pub pc: u64,
    /// The address accessed.
    pub address: u64,
    /// Whether the fault has an address.
    pub has_address: bool,
    /// Coordinates of the workgroup.
    pub workgroup: [u32; 3],
    /// Index of the wave in its workgroup.
    pub wave: u32,
    /// The lane; -1 if the fault does not belong to a single lane.
    pub lane: i32,
}

/// Properties of a kernel in a module. Set `struct_size` before the call.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct wavesim_kernel {
    /// `sizeof(struct wavesim_kernel)`.
    pub struct_size: u32,
    /// Number of explicit arguments; 0 if the code object has no metadata.
    pub argument_count: u32,
    /// Address of the first instruction.
    pub address: u64,
    /// Size of the kernarg segment in bytes, including hidden arguments.
    pub kernarg_bytes: u32,
    /// Static LDS size of a workgroup in bytes.
    pub lds_bytes: u32,
    /// Scratch size of a work-item in bytes.
    pub scratch_bytes: u32,
    /// Lanes in a wave: 32 or 64.
    pub wave_size: u32,
    /// Number of VGPRs per wave.
    pub vgprs: u32,
    /// Number of SGPRs per wave.
    pub sgprs: u32,
    /// Maximum number of work-items in a workgroup.
    pub max_items: u32,
    /// Required size of a workgroup; 0 0 0 if the kernel does not require one.
    pub required_block: [u32; 3],
}

/// An argument of a kernel. Set `struct_size` before the call.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct wavesim_argument {
    /// `sizeof(struct wavesim_argument)`.
    pub struct_size: u32,
    /// Byte offset in the kernarg segment.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Reserved.
    pub reserved: u32,
    /// Kind in the metadata (`global_buffer`, `by_value`, …), truncated to 31 bytes.
    pub kind: [c_char; 32],
    /// Name, truncated to 63 bytes; empty if the compiler omitted it.
    pub name: [c_char; 64],
}
