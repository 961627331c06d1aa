//! Faults of operations that no handler runs.

use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::rt::Cx;
use wavesim_machine::fault::FaultKind;
use wavesim_machine::isa;
use wavesim_machine::state::VGPRS;

/// Returns the event that stopped the wave at `op`, whose handler returned an event or [`Flow::UNKNOWN`].
#[cold]
pub(crate) fn take_event(cx: &mut Cx<'_>, op: &Op, program: &Program) -> Event {
    match cx.event.take() {
        Some(event) => event,
        None => fault_without_handler(op, program.name_at(cx.pc())),
    }
}

/// Returns the fault of an operation that has no handler.
pub(crate) fn fault_without_handler(op: &Op, name: Option<&str>) -> Event {
    match op.code {
        Op::END => Event::fault(FaultKind::PcOutOfRange, "the program counter left the program"),
        Op::HOLE => Event::fault(FaultKind::IllegalInstruction, "the bytes at the PC are not an instruction"),
        Op::OUT_OF_RANGE => {
            let name = name.unwrap_or("this instruction").to_lowercase();
            let message = format!("an operand of {name} extends beyond v{}, the last VGPR", VGPRS - 1);
            Event::fault(FaultKind::IllegalInstruction, message)
        }
        Op::DPP_UNSUPPORTED => dpp_unsupported(name),
        Op::UNLISTED_CODE => unlisted_code(name, op.imm),
        _ => {
            let name = name.unwrap_or("this instruction");
            let reason = isa::unsupported_reason(name).map_or(String::new(), |reason| format!(" ({reason})"));
            Event::fault(
                FaultKind::Unimplemented,
                format!("{} is not supported{reason}", name.to_lowercase()),
            )
        }
    }
}

/// Returns the fault of an instruction with DPP whose pseudocode selects lanes itself: DPP is undefined for
/// it.
pub(crate) fn dpp_unsupported(name: Option<&str>) -> Event {
    let name = name.unwrap_or("this instruction").to_lowercase();
    let message = format!("{name} with DPP is not supported (its pseudocode selects the lanes itself)");
    Event::fault(FaultKind::Unimplemented, message)
}

/// Returns the fault of an instruction with an operand code that the operand does not accept.
pub(crate) fn unlisted_code(name: Option<&str>, code: u32) -> Event {
    let name = name.unwrap_or("this instruction").to_lowercase();
    let message = format!("an operand of {name} has the code {code}, which is none that it accepts");
    Event::fault(FaultKind::IllegalInstruction, message)
}
