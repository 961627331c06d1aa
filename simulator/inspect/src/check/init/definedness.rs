//! Shadow state of a wave's registers: their undefined bits, and the origin of each undefined value.
//!
//! In each lane, nearly every register is either fully defined or fully undefined, which takes one bit. A
//! table holds the rare partially defined ones.

use std::collections::HashMap;
use wavesim_machine::exec::effects::{File, Use};
use wavesim_machine::state::{ALL_VGPRS, Wave};

/// A register in one lane; lane 0 for scalar registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RegisterLane {
    /// The register file.
    pub file: File,
    /// VGPR number, or SGPR operand code.
    pub register: u16,
    /// The lane, for a VGPR.
    pub lane: u32,
}

/// A register with undefined bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undefined {
    /// The register.
    pub reg: RegisterLane,
    /// Index of the register in its operand: 1 is the upper dword of 64 bits.
    pub dword: u16,
    /// Mask of the undefined bits of the register.
    pub bits: u32,
}

/// The origin of an undefined value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The register that was never written, or that was loaded from unwritten bytes.
    pub reg: RegisterLane,
    /// PC of that load, if there was one.
    pub loaded_by: Option<u64>,
    /// PC of the return that has left the frame from which it was loaded.
    pub returned_by: Option<u64>,
    /// PC of the first instruction that computed with the value.
    pub read_by: Option<u64>,
}

/// The undefined bits of a wave's registers.
pub struct Definedness {
    /// By VGPR: lanes in which all bits are defined. Accumulation VGPRs follow the others.
    vgprs: Vec<u64>,
    /// All VGPRs from this one on are undefined in all lanes.
    end: usize,
    /// Bit set of VGPRs that are defined in all lanes of the wave.
    full: [u64; ALL_VGPRS / 64],
    /// Mask of the wave's lanes.
    lanes: u64,
    sgprs: u128,
    scc: bool,
    /// Undefined bits of partially defined registers.
    partial: HashMap<RegisterLane, u32>,
    /// Origins of undefined and partially defined registers.
    origins: HashMap<RegisterLane, Origin>,
}

impl Definedness {
    /// Creates the state at launch. `sgprs` is the set of defined scalar registers, by operand code; `vgprs`
    /// is the number of defined VGPRs from v0 on.
    pub fn new(sgprs: u128, vgprs: usize, wave_size: u32) -> Definedness {
        let mut out = Definedness {
            vgprs: vec![0; ALL_VGPRS],
            end: 0,
            full: [0; ALL_VGPRS / 64],
            lanes: u64::MAX >> (64 - wave_size.clamp(1, 64)),
            sgprs,
            scc: false,
            partial: HashMap::new(),
            origins: HashMap::new(),
        };
        out.reset(sgprs, vgprs);
        out
    }

    /// Restores the state that [`Definedness::new`] creates.
    pub fn reset(&mut self, sgprs: u128, vgprs: usize) {
        let vgprs = vgprs.min(ALL_VGPRS);
        self.vgprs[..self.end].fill(0);
        self.vgprs[..vgprs].fill(u64::MAX);
        self.end = vgprs;
        self.full.fill(0);
        (0..vgprs).for_each(|r| self.full[r / 64] |= 1 << (r % 64));
        self.sgprs = sgprs;
        self.scc = false;
        self.partial.clear();
        self.origins.clear();
    }

    /// Returns whether scalar registers, given by operand code, are defined, and SCC if `scc`.
    #[inline]
    pub fn has_scalars(&self, sgprs: u128, scc: bool) -> bool {
        sgprs & !self.sgprs == 0 && (self.scc || !scc)
    }

    /// Returns whether VGPRs, given as a bit set, are defined in all lanes.
    #[inline]
    pub fn has_vgprs(&self, vgprs: &[u64; ALL_VGPRS / 64]) -> bool {
        vgprs.iter().zip(&self.full).fold(0, |absent, (needed, full)| absent | needed & !full) == 0
    }

    /// Returns the lanes in which all of these VGPRs, given as a bit set, are defined.
    #[inline]
    pub fn common_lanes(&self, vgprs: &[u64; ALL_VGPRS / 64]) -> u64 {
        let mut lanes = u64::MAX;
        for (at, (needed, full)) in vgprs.iter().zip(&self.full).enumerate() {
            let mut partial = needed & !full;
            while partial != 0 {
                lanes &= self.lanes((64 * at) as u16 + partial.trailing_zeros() as u16);
                partial &= partial - 1;
            }
        }
        lanes
    }

    /// Defines all bits of scalar registers, given by operand code, and of SCC if `scc`.
    #[inline]
    pub fn define_scalars(&mut self, sgprs: u128, scc: bool) {
        let new = !self.has_scalars(sgprs, scc);
        self.sgprs |= sgprs;
        self.scc |= scc;
        // Registers that were defined are in neither table.
        if new && !(self.partial.is_empty() && self.origins.is_empty()) {
            let kept = |reg: &RegisterLane| match reg.file {
                File::Sgpr => sgprs >> (reg.register & 127) & 1 == 0,
                File::Scc => !scc,
                File::Vgpr => true,
            };
            self.partial.retain(|reg, _| kept(reg));
            self.origins.retain(|reg, _| kept(reg));
        }
    }

    /// Returns the lanes in which a VGPR is defined.
    #[inline]
    pub fn lanes(&self, register: u16) -> u64 {
        self.vgprs.get(register as usize).copied().unwrap_or(u64::MAX)
    }

    /// Returns the mask of a register's undefined bits.
    pub fn undefined_bits(&self, reg: RegisterLane) -> u32 {
        let defined = match reg.file {
            File::Scc => self.scc,
            File::Sgpr => self.sgprs >> (reg.register & 127) & 1 == 1,
            File::Vgpr => self.lanes(reg.register) >> reg.lane & 1 == 1,
        };
        if defined { 0 } else { self.partial.get(&reg).copied().unwrap_or(u32::MAX) }
    }

    /// Sets a register's undefined bits. Returns whether any bit became undefined.
    pub fn set(&mut self, reg: RegisterLane, bits: u32, origin: Option<Origin>) -> bool {
        let before = self.undefined_bits(reg);
        if before == bits {
            return false;
        }
        let defined = bits == 0;
        match reg.file {
            File::Scc => self.scc = defined,
            File::Sgpr => {
                let mask = 1 << (reg.register & 127);
                self.sgprs = if defined { self.sgprs | mask } else { self.sgprs & !mask };
            }
            File::Vgpr => {
                let Some(lanes) = self.vgprs.get_mut(reg.register as usize) else { return false };
                self.end = self.end.max(reg.register as usize + 1);
                let mask = 1 << reg.lane;
                *lanes = if defined { *lanes | mask } else { *lanes & !mask };
                let full = *lanes & self.lanes == self.lanes;
                self.set_full(reg.register, full);
            }
        }
        match bits {
            0 | u32::MAX => self.partial.remove(&reg),
            _ => self.partial.insert(reg, bits),
        };
        match origin {
            Some(origin) if !defined => self.origins.insert(reg, origin),
            _ => self.origins.remove(&reg),
        };
        bits & !before != 0
    }

    /// Defines all bits of a register in some lanes.
    #[inline]
    pub fn define(&mut self, file: File, register: u16, lanes: u64) {
        // Registers that were defined are in neither table.
        let new = match file {
            File::Scc => !self.scc,
            File::Sgpr => self.sgprs >> (register & 127) & 1 == 0,
            File::Vgpr => lanes & !self.lanes(register) != 0,
        };
        match file {
            File::Scc => self.scc = true,
            File::Sgpr if register < 128 => self.sgprs |= 1 << register,
            File::Sgpr => {}
            File::Vgpr => {
                if let Some(defined) = self.vgprs.get_mut(register as usize) {
                    self.end = self.end.max(register as usize + 1);
                    *defined |= lanes;
                    if *defined & self.lanes == self.lanes {
                        self.set_full(register, true);
                    }
                }
            }
        }
        if !new {
            return;
        }
        let kept = |reg: &RegisterLane| {
            reg.file != file || reg.register != register || file == File::Vgpr && lanes >> reg.lane & 1 == 0
        };
        if !self.partial.is_empty() {
            self.partial.retain(|reg, _| kept(reg));
        }
        if !self.origins.is_empty() {
            self.origins.retain(|reg, _| kept(reg));
        }
    }

    /// Updates whether a VGPR is defined in all lanes.
    #[inline]
    fn set_full(&mut self, register: u16, full: bool) {
        if let Some(word) = self.full.get_mut(register as usize / 64) {
            let bit = 1 << (register % 64);
            *word = if full { *word | bit } else { *word & !bit };
        }
    }

    /// Returns the origin of an undefined value; by default the register itself, which was never written.
    pub fn origin(&self, reg: RegisterLane) -> Origin {
        self.origins.get(&reg).copied().unwrap_or(Origin {
            reg,
            loaded_by: None,
            returned_by: None,
            read_by: None,
        })
    }

    /// Returns whether everything that a use touches is defined in these lanes. Scalars ignore the lanes.
    pub fn is_defined(&self, used: &Use, wave: &Wave, lanes: u64) -> bool {
        let mut registers = used.registers(wave, false);
        match used.file {
            File::Scc => self.scc,
            File::Sgpr => registers.all(|r| self.sgprs >> (r & 127) & 1 == 1),
            File::Vgpr => registers.all(|r| lanes & !self.lanes(r) == 0),
        }
    }

    /// Appends the registers with undefined bits among those that a use touches.
    pub fn collect(&self, used: &Use, wave: &Wave, lanes: u64, write: bool, out: &mut Vec<Undefined>) {
        for (dword, register) in (0..).zip(used.registers(wave, write)) {
            let mut rest = match used.file {
                File::Vgpr => lanes & !self.lanes(register),
                File::Sgpr | File::Scc => 1,
            };
            while rest != 0 {
                let reg = RegisterLane { file: used.file, register, lane: rest.trailing_zeros() };
                rest &= rest - 1;
                let bits = self.undefined_bits(reg) & if write { u32::MAX } else { used.bits };
                if bits != 0 {
                    out.push(Undefined { reg, dword, bits });
                }
            }
        }
    }
}
