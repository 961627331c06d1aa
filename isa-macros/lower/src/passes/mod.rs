//! Passes over the lane-loop representation. Each recognises handlers for which something is faster than one
//! loop over lanes. They do not read pseudocode, except that `fast` reads an operation's signature.

pub mod active;
pub mod block;
pub mod convert;
pub mod fast;
pub mod fields;
pub mod lane_moves;
pub mod memory;
pub mod product;
pub mod simd;
mod uniform;
pub mod vector;

use crate::ir::*;

impl Lanes {
    /// The loop that runs the body.
    fn main_loop(&self) -> Option<&LaneLoop> {
        self.steps.iter().find_map(|step| match step {
            Step::Loop(lanes) => Some(lanes),
            _ => None,
        })
    }
}

/// What a value is with `bits` bits, whichever holder it is in.
fn peel(value: &Value, bits: u32) -> &Value {
    match &value.kind {
        ValueKind::Resize(inner) if value.hold.bits() >= bits => peel(inner, bits),
        ValueKind::Op2(Op2::And, inner, mask) => match mask.kind {
            ValueKind::Const(mask) if mask.trailing_ones() >= bits => peel(inner, bits),
            _ => value,
        },
        _ => value,
    }
}
