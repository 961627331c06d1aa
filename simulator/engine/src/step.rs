//! Execution of single instructions.

use crate::faults::fault_without_handler;
use crate::handlers::{HANDLERS, dispatch};
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_machine::exec::context::Context;
use wavesim_machine::exec::lower::Lowered;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::rt::{Cx, Flow};
use wavesim_machine::state::Wave;
use wavesim_machine::state::host::Avx2;

/// Executes one instruction with compiled handlers and advances the PC. Returns `None` if the instruction is not
/// supported.
pub fn step(
    arch: Arch,
    inst: &Inst,
    wave: &mut Wave,
    context: &mut Context<'_>,
) -> Option<Result<(), Event>> {
    step_with(Avx2::detect(), arch, inst, wave, context)
}

/// [`step`] with the fast handlers if `fast` is given, else with the portable ones, whatever the host supports.
pub fn step_with(
    fast: Option<Avx2>,
    arch: Arch,
    inst: &Inst,
    wave: &mut Wave,
    context: &mut Context<'_>,
) -> Option<Result<(), Event>> {
    let mut lowered = Lowered::default();
    // A single instruction exceeds no limit.
    lowered.push(arch, inst, 0, 0).ok()?;
    if let Some(op) = lowered.ops().iter().find(|op| op.only_stops()) {
        let name = inst.instruction(arch.table()).name;
        let supported = !matches!(op.code, Op::UNKNOWN | Op::DPP_UNSUPPORTED);
        return supported.then(|| Err(fault_without_handler(op, Some(name))));
    }
    let pc = wave.pc;
    let mut cx = Cx::new(&HANDLERS, fast, arch, wave, context, lowered.pools(), pc);
    let mut next = pc + inst.size as u64;
    let mut result = Ok(());
    for op in lowered.ops() {
        // SAFETY: `op` belongs to `lowered`, which `cx` was created for.
        match unsafe { dispatch(&mut cx, op) } {
            Flow::NEXT | Flow::MODE => {}
            Flow::JUMP => next = cx.jump,
            _ => {
                result = Err(cx.event.take().unwrap_or_else(|| fault_without_handler(op, None)));
                break;
            }
        }
    }
    cx.wave.pc = next;
    Some(result)
}
