//! The registers and memory that an instruction accessed in the reference executor: the referee for
//! `exec::effects`.

use super::RefMachine;
use isa_spec::pcode::ir::{Role, Shape, Space, State};
use std::collections::BTreeSet;
use wavesim_isa::operand::{self, Code, Fmt, Operand};
use wavesim_machine::exec::effects::File;
use wavesim_machine::state::wave::{EXEC_HI, EXEC_LO, M0, NULL, VCC_HI, VCC_LO};

/// A register: its file, its number, and its lane if it is a VGPR (otherwise 0).
pub type Register = (File, u16, u8);

/// Registers and memory that an instruction read and wrote.
#[derive(Debug, Default)]
pub struct AccessSet {
    /// Registers whose value was used.
    pub reads: BTreeSet<Register>,
    /// Registers that were set, even to the same value.
    pub writes: BTreeSet<Register>,
    /// Address space, size in bytes, and whether it was a store.
    pub memory: BTreeSet<(Space, u32, bool)>,
}

impl RefMachine<'_, '_, '_> {
    fn note(&mut self, write: bool, register: Register) {
        let Some(access_set) = self.access_set.as_deref_mut() else { return };
        if write {
            access_set.writes.insert(register);
        } else {
            access_set.reads.insert(register);
        }
    }

    fn note_words(&mut self, write: bool, first: usize, count: u32) {
        for k in 0..count {
            let code = first + k as usize;
            if first != NULL && code <= EXEC_HI {
                self.note(write, (File::Sgpr, code as u16, 0));
            }
        }
    }

    pub(super) fn note_mask(&mut self, write: bool, role: Role) {
        let register = self.mask_register(role, write) as usize;
        self.note_words(write, register, self.wave.size() / 32);
    }

    /// Records a read of an operand; `bits` are the bits of its value that were used.
    pub(super) fn note_operand(&mut self, role: Role, lane: Option<u32>, bits: u128) {
        let operand = self.operand_of(role);
        let mask = role == Role::Vcc || operand.is_some_and(|o| o.fmt == Fmt::Mask);
        if mask {
            let assigned =
                role == Role::Vcc && self.vcc_written || role == Role::D0 && !self.masks.is_empty();
            if !assigned {
                self.note_mask(false, role);
            }
            return;
        }
        let Some(operand) = operand else { return };
        // A value that the semantics have assigned is not a read of the register.
        if role == Role::D0 && self.result_written {
            return;
        }
        let from = match role {
            Role::D0 => Some(lane.unwrap_or(0)),
            _ => self.source_lane(&operand, lane.unwrap_or(0)),
        };
        let Some(from) = from else { return };
        for k in (0..4).filter(|k| bits >> (32 * k) & 0xffff_ffff != 0) {
            self.note_dword(false, &operand, from, k);
        }
    }

    /// Records a read of dword `index` of an operand in a lane.
    pub(super) fn note_lane(&mut self, role: Role, lane: u32, index: u32) {
        let Some(operand) = self.operand_of(role) else { return };
        let whole = index == 0 && operand.size_bits <= 32 && self.sem.shape == Shape::Lane;
        let from = if whole { self.source_lane(&operand, lane) } else { Some(lane) };
        if let Some(from) = from.filter(|from| *from < self.wave.size()) {
            self.note_dword(false, &operand, from, index);
        }
    }

    pub(super) fn note_dword(&mut self, write: bool, operand: &Operand, lane: u32, k: u32) {
        let Some(value) = self.field_value(operand) else { return };
        let register = match operand::code(self.arch, operand, value) {
            Code::Vgpr(reg) => {
                (File::Vgpr, self.binding.register(operand, reg).wrapping_add(k as u16), lane as u8)
            }
            Code::Fixed(reg) if !write => (File::Vgpr, reg.wrapping_add(k as u16), lane as u8),
            Code::Sgpr(code) if code as usize != NULL && code as usize <= EXEC_HI => {
                (File::Sgpr, code.wrapping_add(k as u16), 0)
            }
            Code::Scc if k == 0 && !write => (File::Scc, 0, 0),
            Code::Vccz | Code::Execz if k == 0 && !write => {
                let first = if matches!(operand::code(self.arch, operand, value), Code::Vccz) {
                    VCC_LO
                } else {
                    EXEC_LO
                };
                return self.note_words(false, first, self.wave.size() / 32);
            }
            _ => return,
        };
        self.note(write, register);
    }

    pub(super) fn note_state(&mut self, write: bool, state: State) {
        if write {
            self.states_written.insert(state);
            self.states_written.extend(match state {
                State::Exec => [State::ExecLo, State::ExecHi, State::Execz].as_slice(),
                State::Vcc => &[State::VccLo, State::VccHi, State::Vccz],
                _ => &[],
            });
        } else if self.states_written.contains(&state) {
            return;
        }
        // Every vector instruction depends on EXEC implicitly.
        let implied = matches!(state, State::Exec | State::Execz) && self.sem.shape != Shape::Scalar;
        let words = self.wave.size() / 32;
        match state {
            _ if implied && !write => {}
            State::Scc => self.note(write, (File::Scc, 0, 0)),
            State::Vcc | State::Vccz => self.note_words(write, VCC_LO, words),
            State::VccLo => self.note_words(write, VCC_LO, 1),
            State::VccHi => self.note_words(write, VCC_HI, 1),
            State::Exec | State::Execz => self.note_words(write, EXEC_LO, words),
            State::ExecLo => self.note_words(write, EXEC_LO, 1),
            State::ExecHi => self.note_words(write, EXEC_HI, 1),
            State::M0 => self.note_words(write, M0, 1),
            _ => {}
        }
    }

    pub(super) fn note_vgpr(&mut self, write: bool, lane: u32, reg: u32) {
        let exists = self.wave.has_vgpr(reg);
        if exists || !write {
            self.note(write, (File::Vgpr, if exists { reg as u16 } else { 0 }, lane as u8));
        }
    }

    pub(super) fn note_sgpr(&mut self, write: bool, reg: u32) {
        if reg as usize != NULL {
            self.note_words(write, reg as usize, 1);
        }
    }

    pub(super) fn note_memory(&mut self, space: Space, bytes: u32, write: bool) {
        if let Some(access_set) = self.access_set.as_deref_mut() {
            access_set.memory.insert((space, bytes, write));
        }
    }
}
