//! The handler tables of this build.

use wavesim_machine::exec::machine_ops::MACHINE_OPS;
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::rt::{self, Cx, Flow, Handlers, Numbered, Tables};
use wavesim_machine::state::host::Avx2;

/// Returns whether the host has the vector instructions that the fast handlers are compiled for.
pub fn host_is_fast() -> bool {
    Avx2::detect().is_some()
}

/// The handler tables of this build.
pub(crate) static HANDLERS: Handlers = {
    let tables = Tables {
        keep: wavesim_handlers::KEEP,
        keep_64: wavesim_handlers::KEEP_64,
        flush: wavesim_handlers::FLUSH,
        flush_64: wavesim_handlers::FLUSH_64,
        #[cfg(not(target_family = "wasm"))]
        base: wavesim_handlers_portable::BASE,
        #[cfg(target_family = "wasm")]
        base: EVALUATED,
        by_mode: BY_MODE,
        mixed: cfg!(not(target_family = "wasm")),
        machine: MACHINE_OPS,
    };
    // SAFETY: each crate's macro invocation generates the handlers together with their numbers, for the float
    // modes and hosts that the crate serves. The evaluator and `by_mode` run any operation.
    unsafe { Handlers::new(tables) }
};

/// Handlers for use while MODE skips vector instructions or offsets their VGPRs.
pub(crate) const BY_MODE: Numbered = Numbered::only(&[rt::by_mode]);

/// Runs every instruction through the evaluator. The WebAssembly module uses this for rare float modes,
/// because the portable handlers are a quarter of all code.
#[cfg(any(test, target_family = "wasm"))]
pub(crate) const EVALUATED: Numbered = Numbered::only(&[evaluated]);

/// # Safety
/// As for any handler; this one relies on nothing.
#[cfg(any(test, target_family = "wasm"))]
unsafe fn evaluated(_: &mut Cx<'_>, _: &Op) -> Flow {
    Flow::UNKNOWN
}

/// Runs one operation in the current float mode.
///
/// # Safety
/// `op` belongs to the program that `cx` was created for.
#[inline(always)]
pub(crate) unsafe fn dispatch<'a>(cx: &mut Cx<'a>, op: &'a Op) -> Flow {
    cx.op = op;
    // SAFETY: the caller guarantees that `op` belongs to the program of `cx`, so that invariants O1 to O7 and
    // H1 of lowered code (`exec::validate`) hold.
    unsafe { cx.handlers[op.code as usize](cx, op) }
}
