//! Lowers typed pseudocode to lane loops. [`lower()`] returns the [`ir::Handlers`] of an operation, in the
//! lane-loop representation of [`ir`]. `isa-emit` prints it as Rust when wavesim is compiled; a run-time
//! compiler can also start from it. For this reason, nothing here uses `proc_macro`, tokens, or properties of
//! the host.
//!
//! In reading order: [`ir`], with a printer and the visitors in [`visit`]; [`mod@lower`], which lowers a body
//! to its general handler; [`passes`], which find accesses of 32 lanes at once, block copies, fast variants
//! and SIMD builtins.
#![forbid(unsafe_code)]

mod display;
pub mod ir;
pub mod lower;
pub mod passes;
pub mod visit;

use ir::{Body, Fast, Handlers, Step};
use isa_spec::canonical::Operation;

/// Lowers an operation to all of its handlers.
pub fn lower(op: &Operation) -> Handlers {
    let mut handlers = lower::handlers(op);
    if let Body::Lanes(lanes) = &handlers.general
        && let Some(accessing) = passes::memory::run(lanes, &handlers.operands)
    {
        if let Some(block) = passes::block::find(&accessing) {
            handlers.fast = Fast::Block(block);
        }
        handlers.general = Body::Lanes(accessing);
    }
    if let Body::Once(once) = &mut handlers.general {
        passes::lane_moves::run(once, &handlers.locals);
        passes::vector::run(once);
        passes::product::run(once);
        passes::convert::run(once);
        passes::active::run(once);
        handlers.floats_f32 &= passes::product::depends_on_f32(once);
    }
    passes::fast::run(&mut handlers, op);
    if let Fast::Lanes(lanes) = &mut handlers.fast {
        passes::simd::run(lanes);
        passes::fields::run(lanes);
    }
    if let Body::Lanes(lanes) = &mut handlers.general {
        passes::simd::run(lanes);
    }
    match &mut handlers.general {
        Body::Lanes(lanes) => {
            passes::hoist::lanes(lanes, &mut handlers.locals);
            passes::distribute::run(lanes, &mut handlers.locals);
        }
        Body::Once(once) => passes::hoist::once(once, &mut handlers.locals),
    }
    handlers.general_uses_fast = passes::fast::replaces_general(&handlers);
    handlers.shared = handlers.is_serial();
    handlers
}

/// Like [`lower()`], for hosts without SIMD vectors: memory accesses stay in the lane loop, whose code is
/// short. Steps for all lanes are ten times as long.
pub fn lower_compactly(op: &Operation) -> Handlers {
    let mut handlers = lower(op);
    match &handlers.general {
        Body::Lanes(lanes)
            if lanes
                .steps
                .iter()
                .any(|step| matches!(step, Step::Memory(_) | Step::If { .. } | Step::Masked { .. })) =>
        {
            lower::handlers(op)
        }
        _ => {
            if let Body::Once(once) = &mut handlers.general {
                once.with_vectors = None;
            }
            handlers
        }
    }
}
