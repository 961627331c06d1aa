//! The stack frame of a function: arguments of calls, slots of integers, the saved RSP, slots of vectors, and
//! registers saved around cold calls, from RSP upwards.

use crate::allocated::Allocated;
use crate::error::CompileError;
use crate::inst::Inst;
use crate::reg::{ARGUMENTS, CALLER_SAVED, VECS};

/// The maximum size of a stack frame in bytes.
const FRAME_LIMIT: u64 = 1 << 20;

/// The layout of a stack frame: offsets from RSP in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub int_slots: i32,
    /// A multiple of 32.
    pub vec_slots: i32,
    /// Where the original RSP is saved, if the frame is aligned for vectors.
    pub saved_rsp: Option<i32>,
    /// Where registers are saved around cold calls.
    pub cold_save_area: i32,
    /// The size without pushed registers and the return address.
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
        let mut end = int_slots + 8 * u64::from(allocation.int_slots);
        let saved_rsp = (allocation.vec_slots > 0).then_some(end);
        if saved_rsp.is_some() {
            end += 8;
        }
        let vec_slots = end.next_multiple_of(32);
        if allocation.vec_slots > 0 {
            end = vec_slots + 32 * u64::from(allocation.vec_slots);
        }
        let cold_save_area = end;
        if !code.cold_calls.is_empty() {
            end += 32 * VECS.len() as u64 + 8 * CALLER_SAVED.len() as u64;
        }
        // At function entry, RSP is 8 bytes off a 16-byte alignment.
        let pushed = 8 + 8 * u64::from(allocation.callee_saved.count_ones());
        let size = (end + pushed).next_multiple_of(16) - pushed;
        if size > FRAME_LIMIT {
            return Err(CompileError::Frame(size));
        }
        Ok(Frame {
            int_slots: int_slots as i32,
            vec_slots: vec_slots as i32,
            saved_rsp: saved_rsp.map(|at| at as i32),
            cold_save_area: cold_save_area as i32,
            size: size as i32,
        })
    }
}
