//! The stack frame of a function: arguments of calls, slots of integers and of vectors, registers saved around cold
//! calls, and the saved registers of the caller, from SP upwards.

use crate::a64::reg::{ARGUMENTS, CALLER_SAVED, PRESERVED_PAIRS, VECS};
use crate::allocate::Location;
use crate::allocated::Allocated;
use crate::error::CompileError;
use crate::inst::{Class, Inst};

/// The maximum size of a stack frame in bytes.
const FRAME_LIMIT: u64 = 1 << 20;

/// The layout of a stack frame: offsets from SP in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    pub int_slots: i32,
    /// A multiple of 16.
    pub vec_slots: i32,
    /// Where registers are saved around cold calls.
    pub cold_save_area: i32,
    /// Where the caller's registers are saved.
    pub saved: i32,
    /// Whether v8 to v15 are saved, behind the general registers.
    pub saves_vectors: bool,
    /// A multiple of 16.
    pub size: i32,
}

impl Frame {
    pub fn new(code: &Allocated<'_>) -> Result<Frame, CompileError> {
        let allocation = &code.allocation;
        let more_args = code.function.insts.iter().map(|inst| match inst {
            Inst::Call { args, .. } => args.len().saturating_sub(ARGUMENTS.len()),
            _ => 0,
        });
        let int_slots = 8 * more_args.max().unwrap_or(0) as u64;
        let vec_slots = (int_slots + 8 * u64::from(allocation.int_slots)).next_multiple_of(16);
        let cold_save_area = vec_slots + 32 * u64::from(allocation.vec_slots);
        let mut saved = cold_save_area;
        if !code.cold_calls.is_empty() {
            saved += 32 * VECS.len() as u64 + (8 * CALLER_SAVED.len() as u64).next_multiple_of(16);
        }
        let preserved = |(location, class): (&Location, &Class)| match location {
            Location::Register(pair) => *class == Class::Vec && PRESERVED_PAIRS.contains(pair),
            _ => false,
        };
        let saves_vectors = allocation.locations.iter().zip(&code.function.classes).any(preserved);
        // The link register, the others in pairs, and the vectors.
        let registers = 1 + u64::from(allocation.callee_saved.count_ones());
        let end = saved + (8 * registers).next_multiple_of(16) + if saves_vectors { 64 } else { 0 };
        if end > FRAME_LIMIT {
            return Err(CompileError::Frame(end));
        }
        Ok(Frame {
            int_slots: int_slots as i32,
            vec_slots: vec_slots as i32,
            cold_save_area: cold_save_area as i32,
            saved: saved as i32,
            saves_vectors,
            size: end as i32,
        })
    }
}
