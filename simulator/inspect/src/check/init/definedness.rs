//! Which bits of a wave's registers are undefined, and where each undefined value comes from.
//!
//! Almost all registers are either written in a lane or not, which is a bit for each lane. Places of which only some bits are undefined
//! are rare: a table has them.

use std::collections::HashMap;
use wavesim_machine::exec::effects::{File, Use};
use wavesim_machine::state::{ALL_VGPRS, Wave};

/// A register in one lane; lane 0 for scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// Its file.
    pub file: File,
    /// VGPR number, or SGPR operand code.
    pub register: u16,
    /// The lane, of a VGPR.
    pub lane: u32,
}

/// A place with its undefined bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undefined {
    /// The register.
    pub place: Place,
    /// Of the register in its operand: 1 is the upper dword of 64 bits.
    pub dword: u16,
    /// Mask of the undefined bits of the register.
    pub bits: u32,
}

/// Where an undefined value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Root {
    /// The register that nothing wrote, or that was loaded from bytes that nothing wrote.
    pub place: Place,
    /// PC of that load.
    pub loaded_by: Option<u64>,
    /// PC of the first instruction that computed with it.
    pub read_by: Option<u64>,
}

/// The undefined bits of a wave's registers.
pub struct Definedness {
    /// Lanes in which all bits are defined, by VGPR; accumulation VGPRs follow the others.
    vgprs: Vec<u64>,
    /// No VGPR from this one on is defined anywhere.
    end: usize,
    /// VGPRs that are defined in all lanes of the wave, a bit each.
    full: [u64; ALL_VGPRS / 64],
    /// All lanes of the wave.
    lanes: u64,
    sgprs: u128,
    scc: bool,
    /// Of places that are neither defined nor undefined as a whole.
    partial: HashMap<Place, u32>,
    /// Of places that are not defined.
    roots: HashMap<Place, Root>,
}

impl Definedness {
    /// `sgprs`: defined ones, by operand code. `vgprs`: how many are defined, from v0 on.
    pub fn new(sgprs: u128, vgprs: usize, wave_size: u32) -> Definedness {
        let mut out = Definedness {
            vgprs: vec![0; ALL_VGPRS],
            end: 0,
            full: [0; ALL_VGPRS / 64],
            lanes: u64::MAX >> (64 - wave_size.clamp(1, 64)),
            sgprs,
            scc: false,
            partial: HashMap::new(),
            roots: HashMap::new(),
        };
        out.reset(sgprs, vgprs);
        out
    }

    /// As it is made by [`Definedness::new`].
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
        self.roots.clear();
    }

    /// Whether scalar registers, by operand code, and SCC if it is asked for, are defined.
    #[inline]
    pub fn has_scalars(&self, sgprs: u128, scc: bool) -> bool {
        sgprs & !self.sgprs == 0 && (self.scc || !scc)
    }

    /// Whether VGPRs, a bit each, are defined in all lanes.
    #[inline]
    pub fn has_vgprs(&self, vgprs: &[u64; ALL_VGPRS / 64]) -> bool {
        vgprs.iter().zip(&self.full).fold(0, |absent, (needed, full)| absent | needed & !full) == 0
    }

    /// All bits of scalar registers, by operand code, are defined, and SCC if `scc`.
    #[inline]
    pub fn define_scalars(&mut self, sgprs: u128, scc: bool) {
        let new = !self.has_scalars(sgprs, scc);
        self.sgprs |= sgprs;
        self.scc |= scc;
        // Places that were defined are in neither table.
        if new && !(self.partial.is_empty() && self.roots.is_empty()) {
            let kept = |place: &Place| match place.file {
                File::Sgpr => sgprs >> (place.register & 127) & 1 == 0,
                File::Scc => !scc,
                File::Vgpr => true,
            };
            self.partial.retain(|place, _| kept(place));
            self.roots.retain(|place, _| kept(place));
        }
    }

    /// Lanes in which a VGPR is defined.
    #[inline]
    pub fn lanes(&self, register: u16) -> u64 {
        self.vgprs.get(register as usize).copied().unwrap_or(u64::MAX)
    }

    /// Mask of the bits of a register that are undefined.
    pub fn undefined_bits(&self, place: Place) -> u32 {
        let defined = match place.file {
            File::Scc => self.scc,
            File::Sgpr => self.sgprs >> (place.register & 127) & 1 == 1,
            File::Vgpr => self.lanes(place.register) >> place.lane & 1 == 1,
        };
        if defined { 0 } else { self.partial.get(&place).copied().unwrap_or(u32::MAX) }
    }

    /// Sets the undefined bits of a place. Whether a bit became undefined that was not.
    pub fn set(&mut self, place: Place, bits: u32, root: Option<Root>) -> bool {
        let before = self.undefined_bits(place);
        if before == bits {
            return false;
        }
        let defined = bits == 0;
        match place.file {
            File::Scc => self.scc = defined,
            File::Sgpr => {
                let mask = 1 << (place.register & 127);
                self.sgprs = if defined { self.sgprs | mask } else { self.sgprs & !mask };
            }
            File::Vgpr => {
                let Some(lanes) = self.vgprs.get_mut(place.register as usize) else { return false };
                self.end = self.end.max(place.register as usize + 1);
                let mask = 1 << place.lane;
                *lanes = if defined { *lanes | mask } else { *lanes & !mask };
                let full = *lanes & self.lanes == self.lanes;
                self.note_full(place.register, full);
            }
        }
        match bits {
            0 | u32::MAX => self.partial.remove(&place),
            _ => self.partial.insert(place, bits),
        };
        match root {
            Some(root) if !defined => self.roots.insert(place, root),
            _ => self.roots.remove(&place),
        };
        bits & !before != 0
    }

    /// All bits of a register are defined in some lanes.
    #[inline]
    pub fn define(&mut self, file: File, register: u16, lanes: u64) {
        // Places that were defined are in neither table.
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
                        self.note_full(register, true);
                    }
                }
            }
        }
        if !new {
            return;
        }
        let kept = |place: &Place| {
            place.file != file
                || place.register != register
                || file == File::Vgpr && lanes >> place.lane & 1 == 0
        };
        if !self.partial.is_empty() {
            self.partial.retain(|place, _| kept(place));
        }
        if !self.roots.is_empty() {
            self.roots.retain(|place, _| kept(place));
        }
    }

    /// Whether a VGPR is defined in all lanes now.
    #[inline]
    fn note_full(&mut self, register: u16, full: bool) {
        if let Some(word) = self.full.get_mut(register as usize / 64) {
            let bit = 1 << (register % 64);
            *word = if full { *word | bit } else { *word & !bit };
        }
    }

    /// What an undefined value at a place comes from: by default from the place itself, which nothing wrote.
    pub fn root(&self, place: Place) -> Root {
        self.roots.get(&place).copied().unwrap_or(Root { place, loaded_by: None, read_by: None })
    }

    /// Whether all that a use touches is defined in these lanes. A scalar has no lanes.
    pub fn is_defined(&self, used: &Use, wave: &Wave, lanes: u64) -> bool {
        let mut registers = used.registers(wave, false);
        match used.file {
            File::Scc => self.scc,
            File::Sgpr => registers.all(|r| self.sgprs >> (r & 127) & 1 == 1),
            File::Vgpr => registers.all(|r| lanes & !self.lanes(r) == 0),
        }
    }

    /// Adds the places of a use that have undefined bits among those that it touches.
    pub fn collect(&self, used: &Use, wave: &Wave, lanes: u64, write: bool, out: &mut Vec<Undefined>) {
        for (dword, register) in (0..).zip(used.registers(wave, write)) {
            let mut rest = match used.file {
                File::Vgpr => lanes & !self.lanes(register),
                File::Sgpr | File::Scc => 1,
            };
            while rest != 0 {
                let place = Place { file: used.file, register, lane: rest.trailing_zeros() };
                rest &= rest - 1;
                let bits = self.undefined_bits(place) & if write { u32::MAX } else { used.bits };
                if bits != 0 {
                    out.push(Undefined { place, dword, bits });
                }
            }
        }
    }
}
