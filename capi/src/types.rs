//! The types of the C interface.

use std::ffi::{c_char, c_void};

/// The result of a call. `wavesim_last_error` returns the message.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum wavesim_status {
    /// The call succeeded.
    WAVESIM_OK = 0,
    /// The kernel faulted: access outside of every range, invalid instruction, barrier deadlock, instruction limit.
    WAVESIM_FAULT = 1,
    /// An argument is null, an invalid pointer, or a value that the device does not support.
    WAVESIM_BAD_ARGUMENT = 2,
    /// An error in the library itself.
    WAVESIM_INTERNAL = 3,
}

/// Handle of a device: an architecture, and the host memory that its kernels can access. 0 is not a valid handle. Threads
/// can use different devices at the same time; calls on one device wait for each other.
pub type wavesim_device = u64;

/// Handle of a module: a code object that is loaded on a device. Its variables persist from launch to launch. 0 is not a
/// valid handle.
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
    /// Size of the code.
    pub code_bytes: u64,
    /// Address of the code in the kernel's address space; 0: its address in this process.
    pub code_address: u64,
    /// Offset of the first instruction in the code.
    pub entry_offset: u64,
    /// Workgroups in the grid.
    pub grid: [u32; 3],
    /// Work-items in a workgroup.
    pub block: [u32; 3],
    /// LDS of a workgroup in bytes.
    pub lds_bytes: u32,
    /// Scratch memory of a work-item in bytes.
    pub scratch_bytes: u32,
    /// Initial values of s0, s1, …
    pub user_sgprs: *const u32,
    /// Number of these values.
    pub user_sgpr_count: u32,
    /// Workgroup ids that follow the user SGPRs: bit 0 X, bit 1 Y, bit 2 Z. Ignored on RDNA 4, which has them in ttmp9 and
    /// ttmp7.
    pub group_ids: u32,
    /// Work-item ids in v0, ten bits each: 0 only X, 1 X and Y, 2 X, Y and Z.
    pub item_ids: u32,
    /// Initial value of the MODE register, or WAVESIM_MODE_DEFAULT.
    pub mode: u32,
    /// Number of wave-instructions after which the launch faults.
    pub max_instructions: u64,
    /// Host threads that run workgroups.
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
    /// Dynamic LDS of a workgroup in bytes, in addition to that of the kernel.
    pub dynamic_lds_bytes: u32,
    /// The contents of an ELF code object or of a clang offload bundle.
    pub object: *const c_void,
    /// Size of the object.
    pub object_bytes: u64,
    /// Name of the kernel; null: the only kernel.
    pub kernel: *const c_char,
    /// Workgroups in the grid.
    pub grid: [u32; 3],
    /// Work-items in a workgroup.
    pub block: [u32; 3],
    /// The explicit arguments, in the layout of the kernel's metadata. The library fills in hidden arguments.
    pub kernarg: *const c_void,
    /// Size of the arguments.
    pub kernarg_bytes: u64,
    /// Number of wave-instructions after which the launch faults.
    pub max_instructions: u64,
    /// Host threads that run workgroups.
    pub threads: u32,
    /// Reserved.
    pub reserved: u32,
}

/// The outcome of a launch.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct wavesim_outcome {
    /// Wave-instructions executed; 0 after a fault.
    pub instructions: u64,
    /// Waves executed; 0 after a fault.
    pub waves: u64,
    /// Kind of the fault (`out-of-bounds`, `instruction-limit`, …); empty if there was none. The fields below locate it.
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
    /// The lane; -1 if the fault is not that of one lane.
    pub lane: i32,
}

/// What a kernel of a module needs. Set `struct_size` before the call.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct wavesim_kernel {
    /// `sizeof(struct wavesim_kernel)`.
    pub struct_size: u32,
    /// Number of the arguments that its source has; 0 if the code object has no metadata.
    pub argument_count: u32,
    /// Address of its first instruction.
    pub address: u64,
    /// Size of the kernarg segment, with hidden arguments.
    pub kernarg_bytes: u32,
    /// Static LDS of a workgroup in bytes.
    pub lds_bytes: u32,
    /// Scratch memory of a work-item in bytes.
    pub scratch_bytes: u32,
    /// Lanes in a wave: 32 or 64.
    pub wave_size: u32,
    /// VGPRs of a wave.
    pub vgprs: u32,
    /// SGPRs of a wave.
    pub sgprs: u32,
    /// The most work-items of a workgroup.
    pub max_items: u32,
    /// The size that a workgroup must have; 0 0 0: any.
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
    /// Its kind in the metadata (`global_buffer`, `by_value`, …), shortened to 31 bytes.
    pub kind: [c_char; 32],
    /// Its name, shortened to 63 bytes; empty if the compiler has left it out.
    pub name: [c_char; 64],
}
