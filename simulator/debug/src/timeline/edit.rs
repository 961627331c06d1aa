//! Changes of the state by the user. They are recorded in the journal, and replays repeat them.

use super::Timeline;
use wavesim_machine::memory::MemError;

/// A change of state by the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Edit {
    /// An SGPR, by its operand code.
    Sgpr { wave: usize, code: u16, value: u32 },
    /// A VGPR in one lane.
    Vgpr { wave: usize, lane: u32, register: u16, value: u32 },
    /// The condition code.
    Scc { wave: usize, value: u32 },
    /// The program counter.
    Pc { wave: usize, value: u64 },
    /// One byte of global memory.
    Memory { address: u64, value: u8 },
    /// One byte of LDS.
    Lds { offset: usize, value: u8 },
    /// One byte of the workgroup's scratch.
    Scratch { offset: usize, value: u8 },
}

impl Timeline<'_> {
    /// Changes state now, and in every replay that passes this time.
    pub fn edit(&mut self, edit: Edit) -> Result<(), MemError> {
        self.truncate();
        self.apply(edit)?;
        self.edits.push((self.time, edit));
        Ok(())
    }

    pub(super) fn apply(&mut self, edit: Edit) -> Result<(), MemError> {
        match edit {
            Edit::Sgpr { wave, code, value } => {
                self.tracked[wave].sgprs |= 1 << (code & 127);
                self.group.slots[wave].wave.set_sgpr(code as u32, value);
            }
            Edit::Vgpr { wave, lane, register, value } => {
                self.group.slots[wave].wave.set_vgpr(lane, register as u32, value);
            }
            Edit::Scc { wave, value } => self.group.slots[wave].wave.scc = value & 1,
            Edit::Pc { wave, value } => self.group.slots[wave].wave.pc = value,
            Edit::Memory { address, value } => {
                self.prepared.memory.write(address, &[value])?;
                self.pages.mark_bytes(address, 1);
            }
            Edit::Lds { offset, value } => {
                let error = MemError { address: offset as u64, size_bytes: 1, write: true };
                *self.group.lds.get_mut(offset).ok_or(error)? = value;
            }
            Edit::Scratch { offset, value } => {
                let error = MemError { address: offset as u64, size_bytes: 1, write: true };
                let per_lane = self.prepared.shape.scratch_bytes.max(1) as usize;
                let (lane, address) = (offset / per_lane, (offset % per_lane) as u64);
                self.group.write_scratch(lane, address, &[value]).ok_or(error)?;
            }
        }
        Ok(())
    }
}
