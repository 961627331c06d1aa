//! Typed pseudocode to lane loops. [`lower()`] makes the [`ir::Handlers`] of an operation, in the lane-loop representation
//! that is described in [`ir`]. `isa-emit` prints it as Rust when wavesim is compiled; whoever compiles at run time starts from
//! it too, so nothing here depends on `proc_macro`, on tokens, or on what the process runs on.
//!
//! In reading order: [`ir`], its printer and [`visit`]or; [`mod@lower`], which makes one plain handler of a body; [`passes`],
//! which make memory accesses of 32 lanes, copies of blocks, SIMD calls and fast variants of it.
#![forbid(unsafe_code)]

mod display;
pub mod ir;
pub mod lower;
pub mod passes;
pub mod visit;

use ir::{Body, Fast, Handlers};
use isa_spec::canonical::Operation;

/// Everything that runs for an operation.
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
    passes::fast::run(&mut handlers, op);
    if let Fast::Lanes(lanes) = &mut handlers.fast {
        passes::simd::run(lanes);
    }
    handlers
}
