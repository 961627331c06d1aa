//! `run_asm`: raw machine code on the address space of the host.
//!
//! There is no kernel descriptor. The initial state is that of kernels that clang compiles for gfx11 with the kernarg
//! pointer as the only user SGPRs. In these the last workgroup id is always in s15, as LLVM's AMDGPU backend pads the user
//! SGPRs so that 16 SGPRs are initialised.

use crate::error::Error;
use crate::host::Space;
use std::sync::{Mutex, PoisonError};
use wavesim::loader::prepared::Modes;
use wavesim::memory::Memory;
use wavesim_runtime::raw::RawLaunch;
use wavesim_runtime::{self as runtime, Device, MAX_INSTRUCTIONS};

/// The last SGPR with an initial value.
const LAST_SGPR: u16 = 15;
/// LDS of a workgroup, if the code uses any: the most that there can be.
const LDS_BYTES: u32 = 64 << 10;
/// Scratch memory of a work-item, if the code uses any. Nothing declares how much it needs.
const SCRATCH_BYTES: u32 = 16 << 10;

/// Runs machine code at `address` with the argument pointer `args`.
///
/// # Safety
/// The kernel can access all memory of the process, as native code can. Memory that it uses must stay mapped.
pub unsafe fn run(
    space: Space,
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
    // SAFETY: the ranges are mapped in this process; required of the caller for as long as the kernel runs.
    unsafe { memory.map_on_demand(Box::new(space.finder()?)) };
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
        only_if_used: true,
        user_sgprs: vec![args as u32, (args >> 32) as u32],
        first_group_id: LAST_SGPR + 1 - ids,
        group_ids: [0, 1, 2].map(|dim| dim < ids),
        item_ids: 2,
        mode: None,
        modes: Modes::default(),
        threads: 1,
        max_instructions: MAX_INSTRUCTIONS,
    };
    process()?.launch_raw_on(&launch, memory).0?;
    Ok(())
}

/// The device of all these launches, which keeps decoded code.
fn process() -> Result<Device, runtime::Error> {
    static DEVICE: Mutex<Option<Device>> = Mutex::new(None);
    let mut device = DEVICE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = &*device {
        return Ok(device.clone());
    }
    let made = Device::open("rdna3", &runtime::Settings::default())?;
    Ok(device.insert(made).clone())
}
