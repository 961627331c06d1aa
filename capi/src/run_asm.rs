//! `run_asm`: runs raw machine code in the address space of the host process.
//!
//! There is no kernel descriptor. The initial state is that of kernels compiled by clang for gfx11 whose only
//! user SGPRs hold the kernarg pointer. The last workgroup id of such kernels is always in s15, because
//! LLVM's AMDGPU backend pads the user SGPRs so that 16 SGPRs are initialised.

use crate::error::Error;
use crate::host::AddressSpace;
use std::sync::{Mutex, PoisonError};
use wavesim::loader::prepared::Modes;
use wavesim::memory::Memory;
use wavesim::sharing::Threads;
use wavesim_runtime::raw::RawLaunch;
use wavesim_runtime::{self as runtime, Device, MAX_INSTRUCTIONS};

/// Last SGPR with an initial value.
const LAST_SGPR: u16 = 15;
/// LDS size of a workgroup if the code uses LDS: the maximum, because the required size is unknown.
const LDS_BYTES: u32 = 64 << 10;
/// Scratch size of a work-item if the code uses scratch. The required size is unknown.
const SCRATCH_BYTES: u32 = 16 << 10;

/// Runs machine code at `address` with the argument pointer `args`.
///
/// # Safety
/// The kernel can access all memory of the process, like native code. Memory that it uses must stay mapped.
pub unsafe fn run(
    address_space: AddressSpace,
    address: u64,
    code: &[u8],
    grid: [u32; 3],
    block: [u32; 3],
    args: u64,
) -> Result<(), Error> {
    if wavesim::loader::code_object::is_amdgpu(code) {
        return Err(Error::Elf);
    }
    let mut memory = Memory::empty();
    // SAFETY: the finder returns ranges that are mapped in this process; the caller guarantees that they stay
    // mapped while the kernel runs.
    unsafe { memory.map_on_demand(Box::new(address_space.finder()?)) };
    let ids = match grid {
        [_, 0..=1, 0..=1] => 1,
        [_, _, 0..=1] => 2,
        _ => 3,
    };
    let launch = RawLaunch {
        code: code.to_vec(),
        code_address: address,
        entry: 0,
        wave_size: 32,
        grid,
        block,
        lds_bytes: LDS_BYTES,
        scratch_bytes: SCRATCH_BYTES,
        memory_only_if_used: true,
        user_sgprs: vec![args as u32, (args >> 32) as u32],
        first_group_id: LAST_SGPR + 1 - ids,
        group_ids: [0, 1, 2].map(|dim| dim < ids),
        item_ids: 2,
        mode: None,
        modes: Modes::default(),
        threads: Threads::Auto,
        max_instructions: MAX_INSTRUCTIONS,
    };
    shared_device()?.launch_raw_on(&launch, memory).0?;
    Ok(())
}

/// Returns the device shared by all calls of `run_asm`, which caches decoded code.
fn shared_device() -> Result<Device, runtime::Error> {
    static DEVICE: Mutex<Option<Device>> = Mutex::new(None);
    let mut device = DEVICE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = &*device {
        return Ok(device.clone());
    }
    let opened = Device::open("rdna3", &runtime::Settings::default())?;
    Ok(device.insert(opened).clone())
}
