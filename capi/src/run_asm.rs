//! `run_asm`: raw machine code on the address space of the host.
//!
//! There is no kernel descriptor. The initial state is that of kernels that clang compiles for gfx11 with the kernarg
//! pointer as the only user SGPRs. In these the last workgroup id is always in s15, as LLVM's AMDGPU backend pads the user
//! SGPRs so that 16 SGPRs are initialised.

use crate::device::{self, Launch, MAX_INSTRUCTIONS};
use crate::error::Error;
use crate::host::Space;
use crate::wavesim_launch;
use wavesim::arch::Arch;
use wavesim::exec::program::Program;
use wavesim::memory::Memory;

/// The last SGPR with an initial value.
const LAST_SGPR: u16 = 15;
/// LDS of a workgroup: the most that there can be.
const LDS_BYTES: u32 = 64 << 10;
/// Scratch memory of a work-item, if the code uses any. Nothing declares how much it needs.
const SCRATCH_BYTES: u32 = 16 << 10;

/// Runs machine code at `address` with the argument pointer `args`.
///
/// # Safety
/// The kernel can access all memory of the process, as native code can. Memory that it uses must stay mapped.
pub unsafe fn run(
    space: &Space,
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
    for range in space.ranges()? {
        // SAFETY: mapped in this process; required of the caller for as long as the kernel runs.
        unsafe { memory.map_host(range.base, range.base as *mut u8, range.len, range.writable)? };
    }
    let ids = match grid {
        [_, 0..=1, 0..=1] => 1,
        [_, _, 0..=1] => 2,
        _ => 3,
    };
    let launch = Launch {
        code: code.to_vec(),
        code_address: address,
        user_sgprs: vec![args as u32, (args >> 32) as u32],
        first_group_id: LAST_SGPR + 1 - ids,
        given: wavesim_launch {
            grid,
            block,
            group_ids: (1 << ids) - 1,
            item_ids: 2,
            lds_bytes: LDS_BYTES,
            ..wavesim_launch::default()
        },
    };
    let mut prepared = launch.prepare(Arch::Rdna3, memory)?;
    if uses_scratch(&prepared.program) {
        prepared.shape.scratch_bytes = SCRATCH_BYTES;
    }
    device::run(&prepared, 1, MAX_INSTRUCTIONS)?;
    Ok(())
}

fn uses_scratch(program: &Program) -> bool {
    let table = program.arch.table();
    program.insts.iter().any(|inst| inst.instruction(table).name.starts_with("SCRATCH_"))
}
