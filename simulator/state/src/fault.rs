//! Runtime faults: what stopped a kernel, and the instruction, wave and lane at fault.

use std::fmt;
use std::sync::Arc;

/// The kind of a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// Access outside every buffer (or to a read-only one when `write`).
    OutOfBounds {
        /// Size of the access.
        size_bytes: u32,
        /// The access is a store or an atomic.
        write: bool,
    },
    /// An atomic whose address is not a multiple of its `size_bytes`.
    Misaligned {
        /// Size of the access, of which its address should be a multiple.
        size_bytes: u32,
    },
    /// There are no semantics for this instruction, or for this use of it.
    Unimplemented,
    /// The words at the PC do not decode to an instruction.
    IllegalInstruction,
    /// The PC left the program.
    PcOutOfRange,
    /// The dispatch has used up its instruction budget.
    InstructionLimit,
    /// Waves wait at a barrier that can no longer complete.
    BarrierDeadlock,
    /// S_TRAP or S_SETHALT: nothing handles the trap or resumes the wave.
    Trap,
    /// The user stopped the run.
    Interrupted,
    /// A check found an error (missing wait, uninitialised read …).
    Check,
    /// Any other fault, as described by the message.
    Other,
}

impl FaultKind {
    /// Returns the name used in machine output.
    pub fn name(&self) -> &'static str {
        match self {
            FaultKind::OutOfBounds { .. } => "out-of-bounds",
            FaultKind::Misaligned { .. } => "misaligned",
            FaultKind::Unimplemented => "unimplemented",
            FaultKind::IllegalInstruction => "illegal-instruction",
            FaultKind::PcOutOfRange => "pc-out-of-range",
            FaultKind::InstructionLimit => "instruction-limit",
            FaultKind::BarrierDeadlock => "barrier-deadlock",
            FaultKind::Trap => "trap",
            FaultKind::Interrupted => "interrupted",
            FaultKind::Check => "check",
            FaultKind::Other => "other",
        }
    }
}

/// A fault and where it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The kind, for programs; the message is for readers.
    pub kind: FaultKind,
    /// A sentence that describes the fault, without its location and without a full stop.
    pub message: String,
    /// Source line (1-based) of the instruction; 0 if it has none.
    pub line: u32,
    /// The source file, if debug information names one.
    pub file: Option<Arc<str>>,
    /// The instruction's byte offset in the program, or its address in the code object.
    pub pc: u64,
    /// The instruction as text.
    pub instruction: String,
    /// Coordinates of the workgroup in the grid: x, y, z.
    pub workgroup: [u32; 3],
    /// Index of the wave in its workgroup.
    pub wave: u32,
    /// The lane at fault; `None` if the whole wave is, as for scalar accesses.
    pub lane: Option<u32>,
    /// The address of a faulting memory access: in global memory, or the offset in LDS or in the lane's
    /// scratch. For machines with word-addressed memory, the number of the word.
    pub address: Option<u64>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.workgroup;
        write!(f, "{}: {}", self.kind.name(), self.message)?;
        match (&self.file, self.line) {
            (_, 0) => write!(f, "\n  at pc 0x{:x}", self.pc)?,
            (None, line) => write!(f, "\n  at line {line}")?,
            (Some(file), line) => write!(f, "\n  at {file}:{line}")?,
        }
        write!(f, ": {}", self.instruction)?;
        write!(f, "\n  workgroup ({x},{y},{z}), wave {}", self.wave)?;
        if let Some(lane) = self.lane {
            write!(f, ", lane {lane}")?;
        }
        if let Some(address) = self.address {
            write!(f, "\n  address 0x{address:x}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}
