//! Attributes and occupancy of kernels.

use crate::device::{ITEMS_PER_PROCESSOR, PROCESSORS};
use crate::ffi::Out;
use crate::gpu::gpu;
use crate::module::{kernel_of_handle, kernel_of_host};
use crate::status::{Outcome, Status, call};
use crate::stream::Handle;
use std::ffi::{c_int, c_uint};
use wavesim_runtime::Kernel;

/// `hipFuncAttributes`.
#[repr(C)]
#[derive(Default)]
pub struct FunctionAttributes {
    binary_version: c_int,
    cache_mode: c_int,
    constant_bytes: usize,
    local_bytes: usize,
    max_dynamic_lds: c_int,
    max_block: c_int,
    registers: c_int,
    carveout: c_int,
    ptx_version: c_int,
    lds_bytes: usize,
}

/// Returns the version of a kernel's code, as ROCm has it: ten times the major version of the processor and the minor one.
fn version(kernel: &Kernel) -> c_int {
    let [major, minor] = crate::device::version(kernel.device().target().processor_name());
    major * 10 + minor
}

/// `hipFuncGetAttributes`.
pub unsafe extern "C" fn hipFuncGetAttributes(attributes: Out<FunctionAttributes>, function: usize) -> c_int {
    call("hipFuncGetAttributes", || {
        let kernel = kernel_of_host(gpu()?, function)?;
        attributes.put(FunctionAttributes {
            local_bytes: kernel.scratch_bytes() as usize,
            max_dynamic_lds: kernel.max_dynamic_lds() as c_int,
            max_block: kernel.max_block_items() as c_int,
            registers: kernel.vgprs() as c_int,
            lds_bytes: kernel.lds_bytes() as usize,
            binary_version: version(&kernel),
            ptx_version: version(&kernel),
            ..FunctionAttributes::default()
        })
    })
}

/// `hipFuncGetAttribute`.
pub unsafe extern "C" fn hipFuncGetAttribute(value: Out<c_int>, attribute: c_int, function: Handle) -> c_int {
    call("hipFuncGetAttribute", || {
        let kernel = kernel_of_handle(function)?;
        // hipFunction_attribute
        value.put(match attribute {
            0 => kernel.max_block_items() as c_int,
            1 => kernel.lds_bytes() as c_int,
            3 => kernel.scratch_bytes() as c_int,
            4 => kernel.vgprs() as c_int,
            8 => kernel.max_dynamic_lds() as c_int,
            // HIP_FUNC_ATTRIBUTE_PTX_VERSION, …_BINARY_VERSION
            5 | 6 => version(&kernel),
            2 | 7 | 9 => 0,
            _ => return Err(Status::INVALID_VALUE.into()),
        })
    })
}

/// `hipFuncSetAttribute`. Only checks the function, since dynamic LDS needs no opt-in.
pub unsafe extern "C" fn hipFuncSetAttribute(function: usize, _attribute: c_int, _value: c_int) -> c_int {
    call("hipFuncSetAttribute", || kernel_of_host(gpu()?, function).map(drop))
}

/// `hipFuncSetCacheConfig`. Does nothing, since caches are not simulated.
pub unsafe extern "C" fn hipFuncSetCacheConfig(_function: usize, _config: c_int) -> c_int {
    0
}

/// `hipFuncSetSharedMemConfig`. Does nothing, since LDS banks are not simulated.
pub unsafe extern "C" fn hipFuncSetSharedMemConfig(_function: usize, _config: c_int) -> c_int {
    0
}

/// Returns the number of workgroups of a kernel that fit on a multiprocessor, limited by work-items and LDS.
fn active_groups(kernel: &Kernel, block: u64, dynamic_lds: u64) -> c_int {
    let by_items = ITEMS_PER_PROCESSOR as u64 / block.next_multiple_of(kernel.wave_size() as u64).max(1);
    let lds = (kernel.lds_bytes() as u64).saturating_add(dynamic_lds);
    let target = kernel.device().target();
    let by_lds = (target.processor_lds_bytes() as u64).checked_div(lds).unwrap_or(by_items);
    if lds > target.lds_bytes() as u64 { 0 } else { by_items.min(by_lds) as c_int }
}

fn occupancy(groups: &Out<c_int>, kernel: Kernel, block: c_int, dynamic_lds: usize) -> Outcome {
    let block = u64::try_from(block).ok().filter(|b| *b > 0).ok_or(Status::INVALID_VALUE)?;
    groups.put(active_groups(&kernel, block, dynamic_lds as u64))
}

/// `hipOccupancyMaxActiveBlocksPerMultiprocessor`.
pub unsafe extern "C" fn hipOccupancyMaxActiveBlocksPerMultiprocessor(
    groups: Out<c_int>,
    function: usize,
    block: c_int,
    dynamic_lds: usize,
) -> c_int {
    call("hipOccupancyMaxActiveBlocksPerMultiprocessor", || {
        occupancy(&groups, kernel_of_host(gpu()?, function)?, block, dynamic_lds)
    })
}

/// `hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`.
pub unsafe extern "C" fn hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    groups: Out<c_int>,
    function: usize,
    block: c_int,
    dynamic_lds: usize,
    _flags: c_uint,
) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipOccupancyMaxActiveBlocksPerMultiprocessor(groups, function, block, dynamic_lds) }
}

/// `hipModuleOccupancyMaxActiveBlocksPerMultiprocessor`.
pub unsafe extern "C" fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
    groups: Out<c_int>,
    function: Handle,
    block: c_int,
    dynamic_lds: usize,
) -> c_int {
    call("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", || {
        occupancy(&groups, kernel_of_handle(function)?, block, dynamic_lds)
    })
}

fn max_potential(
    groups: &Out<c_int>,
    block: &Out<c_int>,
    kernel: &Kernel,
    dynamic_lds: usize,
    limit: c_int,
) -> Outcome {
    let most = kernel.max_block_items();
    let items = u32::try_from(limit).ok().filter(|l| *l > 0).map_or(most, |l| l.min(most));
    block.put(items as c_int)?;
    groups.put(active_groups(kernel, items as u64, dynamic_lds as u64) * PROCESSORS)
}

/// `hipOccupancyMaxPotentialBlockSize`.
pub unsafe extern "C" fn hipOccupancyMaxPotentialBlockSize(
    groups: Out<c_int>,
    block: Out<c_int>,
    function: usize,
    dynamic_lds: usize,
    limit: c_int,
) -> c_int {
    call("hipOccupancyMaxPotentialBlockSize", || {
        max_potential(&groups, &block, &kernel_of_host(gpu()?, function)?, dynamic_lds, limit)
    })
}

/// `hipModuleOccupancyMaxPotentialBlockSize`.
pub unsafe extern "C" fn hipModuleOccupancyMaxPotentialBlockSize(
    groups: Out<c_int>,
    block: Out<c_int>,
    function: Handle,
    dynamic_lds: usize,
    limit: c_int,
) -> c_int {
    call("hipModuleOccupancyMaxPotentialBlockSize", || {
        max_potential(&groups, &block, &kernel_of_handle(function)?, dynamic_lds, limit)
    })
}

/// `hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`.
pub unsafe extern "C" fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    groups: Out<c_int>,
    function: Handle,
    block: c_int,
    dynamic_lds: usize,
    _flags: c_uint,
) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(groups, function, block, dynamic_lds) }
}

/// `hipModuleOccupancyMaxPotentialBlockSizeWithFlags`.
pub unsafe extern "C" fn hipModuleOccupancyMaxPotentialBlockSizeWithFlags(
    groups: Out<c_int>,
    block: Out<c_int>,
    function: Handle,
    dynamic_lds: usize,
    limit: c_int,
    _flags: c_uint,
) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipModuleOccupancyMaxPotentialBlockSize(groups, block, function, dynamic_lds, limit) }
}
