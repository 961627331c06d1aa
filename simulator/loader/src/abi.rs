//! The environment of a compiled kernel at its start (LLVM AMDGPUUsage, *Kernel Dispatch* and *Initial Kernel
//! Execution State*): hidden arguments, the dispatch packet, and initial registers.

use super::code_object::Kernel;
use super::prepared::Modes;
use wavesim_engine::sched::dispatch::{InitialState, Layout};
use wavesim_isa::arch::Arch;
use wavesim_isa::descriptor::{self, Descriptor};

/// The dimensions of a launch, as in hidden arguments and the packet.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Number of workgroups per dimension.
    pub grid: [u32; 3],
    /// Work-items per workgroup in each dimension.
    pub block: [u32; 3],
    /// Workgroups of a cluster per dimension; without them, those that the kernel was compiled for.
    pub cluster: Option<[u32; 3]>,
    /// Dynamic LDS per workgroup in bytes, in addition to the descriptor's.
    pub dynamic_lds: u32,
    /// The global offset of OpenCL.
    pub offset: [u64; 3],
}

impl Shape {
    /// A launch with global offset 0.
    pub fn new(grid: [u32; 3], block: [u32; 3], dynamic_lds: u32) -> Shape {
        Shape { grid, block, cluster: None, dynamic_lds, offset: [0; 3] }
    }

    /// Number of work-items in a dimension of the grid; the packet has 32 bits for it.
    fn items(&self, dim: usize) -> u32 {
        self.grid[dim].saturating_mul(self.block[dim])
    }
}

/// Writes an argument into the kernarg segment, truncated to the available space.
pub fn write_argument(kernarg: &mut [u8], offset: u32, size: u32, value: &[u8]) {
    let at = offset as usize;
    let len = value.len().min(size as usize).min(kernarg.len().saturating_sub(at));
    if len != 0 {
        kernarg[at..at + len].copy_from_slice(&value[..len]);
    }
}

/// Addresses of the services that a runtime provides to kernels; 0 if absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Services {
    /// The buffer of LLVM's hostcall protocol.
    pub hostcall: u64,
    /// The buffer of OpenCL's `printf`.
    pub printf: u64,
    /// The first block of the device's `malloc`.
    pub heap: u64,
    /// The structure for synchronisation of multi-device grids.
    pub multigrid: u64,
    /// The AQL queue of the dispatch.
    pub queue: u64,
    /// The queue for kernels enqueued by kernels (OpenCL's default queue).
    pub default_queue: u64,
    /// The completion action of kernels enqueued by kernels.
    pub completion_action: u64,
}

/// Fills in the hidden arguments (LLVM AMDGPUUsage, *Code Object V3 Metadata* to *V5*).
pub fn write_hidden_arguments(kernel: &Kernel, shape: &Shape, services: &Services, kernarg: &mut [u8]) {
    for arg in kernel.args.iter().flatten() {
        let dim = match arg.kind.as_bytes().last() {
            Some(b'y') => 1,
            Some(b'z') => 2,
            _ => 0,
        };
        let value: u64 = match arg.kind.as_str() {
            k if k.starts_with("hidden_block_count_") => shape.grid[dim] as u64,
            k if k.starts_with("hidden_group_size_") => shape.block[dim] as u64,
            k if k.starts_with("hidden_global_offset_") => shape.offset[dim],
            "hidden_grid_dims" => (0..3).rev().find(|d| shape.items(*d) > 1).map_or(1, |d| d as u64 + 1),
            "hidden_dynamic_lds_size" => shape.dynamic_lds as u64,
            "hidden_private_base" => wavesim_machine::memory::PRIVATE_BASE >> 32,
            "hidden_shared_base" => wavesim_machine::memory::SHARED_BASE >> 32,
            "hidden_hostcall_buffer" => services.hostcall,
            "hidden_printf_buffer" => services.printf,
            "hidden_heap_v1" => services.heap,
            "hidden_multigrid_sync_arg" => services.multigrid,
            "hidden_queue_ptr" => services.queue,
            "hidden_default_queue" => services.default_queue,
            "hidden_completion_action" => services.completion_action,
            // Work-items in the partial workgroup; there are no partial workgroups.
            k if k.starts_with("hidden_remainder_") => 0,
            _ => continue,
        };
        write_argument(kernarg, arg.offset, arg.size, &value.to_le_bytes());
    }
}

/// Builds an AQL dispatch packet (HSA Platform System Architecture, *Kernel Dispatch Packet*).
pub fn dispatch_packet(shape: &Shape, kernel: &Kernel, kernarg: u64) -> [u8; 64] {
    let mut p = [0u8; 64];
    for d in 0..3 {
        p[4 + 2 * d..6 + 2 * d].copy_from_slice(&(shape.block[d] as u16).to_le_bytes());
        p[12 + 4 * d..16 + 4 * d].copy_from_slice(&shape.items(d).to_le_bytes());
    }
    p[24..28].copy_from_slice(&kernel.private_segment().to_le_bytes());
    p[28..32].copy_from_slice(&kernel.group_segment().saturating_add(shape.dynamic_lds).to_le_bytes());
    p[40..48].copy_from_slice(&kernarg.to_le_bytes());
    p
}

/// The compilers' default MODE: rounding to nearest even, denormals enabled; DX10_CLAMP and IEEE where these
/// bits exist.
pub fn default_mode(arch: Arch) -> u32 {
    arch.facts().float.default_mode
}

/// The MODE specified by the descriptor, with DX10_CLAMP and IEEE where these bits exist.
pub fn mode(arch: Arch, d: &Descriptor) -> u32 {
    const FP16_OVFL: u32 = 23;
    let mode = d.get(descriptor::FLOAT_MODE) | d.get(descriptor::FP16_OVFL) << FP16_OVFL;
    match arch.facts().float.mode_has_ieee {
        false => mode,
        true => mode | d.get(descriptor::DX10_CLAMP) << 8 | d.get(descriptor::IEEE_MODE) << 9,
    }
}

/// Modes that affect checks: the descriptor's, and those that compute drivers set.
pub fn modes(d: &Descriptor) -> Modes {
    Modes { cu_mode: !d.has(descriptor::WGP_MODE), unaligned_lds: true }
}

/// Whether waves receive the workgroup IDs x, y and z.
pub fn group_ids(d: &Descriptor) -> [bool; 3] {
    descriptor::WORKGROUP_IDS.map(|id| d.has(id))
}

/// Returns whether workgroup IDs are in trap registers instead of requested SGPRs (gfx12).
pub fn has_architected_ids(arch: Arch) -> bool {
    arch.facts().start.ids_in_ttmps
}

/// The initial state of waves: user SGPRs in the order of the descriptor, MODE, and IDs. `preloaded` are
/// kernel arguments that the hardware has loaded to registers.
pub fn initial_state(
    kernel: &Kernel,
    kernarg: u64,
    packet: u64,
    queue: u64,
    preloaded: &[u32],
) -> InitialState {
    let mut values = Vec::new();
    let d = &kernel.descriptor;
    for (field, value) in [
        (descriptor::DISPATCH_PTR, packet),
        (descriptor::QUEUE_PTR, queue),
        (descriptor::KERNARG_SEGMENT_PTR, kernarg),
        (descriptor::DISPATCH_ID, 0),
    ] {
        if d.has(field) {
            values.extend([value as u32, (value >> 32) as u32]);
        }
    }
    if d.has(descriptor::PRIVATE_SEGMENT_SIZE) {
        values.push(kernel.private_segment());
    }
    values.extend_from_slice(preloaded);
    InitialState {
        layout: Layout::Hsa {
            first_system_sgpr: d.get(kernel.arch.facts().descriptor.user_sgpr_count) as u16,
            group_ids: group_ids(d),
            architected: has_architected_ids(kernel.arch),
            item_id_dims: d.get(descriptor::WORKITEM_ID) as u8,
        },
        mode: mode(kernel.arch, d),
        sgprs: vec![(0, values)],
    }
}
