//! Passes over the lane-loop representation. Each finds handlers that can be faster than a loop over lanes.
//! They do not read pseudocode; only `fast` reads an operation's signature.

pub mod active;
pub mod block;
pub mod convert;
pub mod distribute;
pub mod fast;
pub mod fields;
pub mod hoist;
pub mod lane_moves;
pub mod memory;
pub mod product;
pub mod simd;
mod uniform;
mod variants;
mod varying;
pub mod vector;

use crate::ir::*;

impl Lanes {
    /// Returns the loop that runs the body.
    fn main_loop(&self) -> Option<&LaneLoop> {
        self.steps.iter().find_map(|step| match step {
            Step::Loop(lanes) => Some(lanes),
            _ => None,
        })
    }
}

/// Strips conversions and masks that do not affect the low `bits` bits of a value.
fn strip_resizes(value: &Value, bits: u32) -> &Value {
    match &value.kind {
        ValueKind::Resize(inner) if value.host_width.bits() >= bits => strip_resizes(inner, bits),
        ValueKind::Op2(Op2::And, inner, mask) => match mask.kind {
            ValueKind::Const(mask) if mask.trailing_ones() >= bits => strip_resizes(inner, bits),
            _ => value,
        },
        _ => value,
    }
}
