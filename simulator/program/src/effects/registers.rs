//! Resolution of a use to registers and lanes in the state of a wave, and names of registers.

use super::*;

impl Use {
    /// A number that no register has.
    pub const OUT_OF_RANGE: u16 = 0x4000;

    /// Returns the number of the first register, including the M0 offset if there is one;
    /// [`Use::OUT_OF_RANGE`] if it is out of range.
    pub fn start(&self, wave: &Wave) -> u16 {
        if self.relative == Some(Relative::Any) {
            return Use::OUT_OF_RANGE;
        }
        let Some(index) = self.index(wave) else { return self.first };
        let first = self.first as u32;
        // The end of the range that the first register belongs to (RDNA manuals, *SGPR* and *VGPR Out of
        // Range Behavior*).
        let end = match (self.file, first as usize) {
            (File::Vgpr, _) => wave.vgpr_count(),
            (_, ..=VCC_HI) => TTMP.start as u32,
            (_, at) if TTMP.contains(&at) => TTMP.end as u32,
            _ => first + self.count as u32,
        };
        let most = if matches!(self.relative, Some(Relative::Msb { .. })) { 768 } else { 255 };
        match index <= most && first + index + self.count as u32 <= end {
            true => (first + index) as u16,
            false => Use::OUT_OF_RANGE,
        }
    }

    /// Returns the registers that this use accesses, given the wave's state before the instruction, with the
    /// substitutes for those out of range.
    pub fn registers(&self, wave: &Wave, write: bool) -> std::ops::Range<u16> {
        match (self.relative, self.start(wave)) {
            (Some(Relative::Any), _) if self.file == File::Vgpr => 0..wave.vgpr_count() as u16,
            (Some(Relative::Any), _) => 0..EXEC_HI as u16 + 1,
            (Some(Relative::M0 { .. }), Use::OUT_OF_RANGE) if write => 0..0,
            // The instruction will fault.
            (Some(Relative::Mode { .. } | Relative::Msb { .. }), Use::OUT_OF_RANGE) => 0..0,
            (Some(Relative::M0 { otherwise, .. }), Use::OUT_OF_RANGE) => otherwise..otherwise + self.count,
            (_, start) => start..start + self.count,
        }
    }

    /// Returns the offset that is added to the register number, if there is one.
    pub fn index(&self, wave: &Wave) -> Option<u32> {
        match self.relative? {
            Relative::M0 { index, .. } => Some(wave.sgprs[M0] >> index.shift & index.mask),
            Relative::Mode { bit } => relative::index(wave.mode, wave.sgprs[M0], bit),
            Relative::Msb { position } => Some(256 * (wave.mode >> position & 3)),
            Relative::Any => None,
        }
    }

    /// Returns a mask of the lanes of a VGPR that this use accesses, given the wave's state before the
    /// instruction.
    pub fn lane_mask(&self, wave: &Wave) -> u64 {
        let exec = wave.exec();
        match self.lanes {
            Lanes::Active => exec,
            Lanes::All => wave.full_mask(),
            Lanes::FirstActive => match exec {
                0 => 1,
                e => e & e.wrapping_neg(),
            },
            Lanes::Selected(select) => {
                let lane = match select {
                    Select::Sgpr(reg) => wave.sgpr(reg as u32),
                    Select::Lane(lane) => lane,
                };
                1 << (lane & (wave.size() - 1))
            }
            Lanes::Dpp16 { arch, ctrl, fetch } => {
                gather_lanes(wave, exec, fetch, |lane| dpp::source(arch, ctrl as u32, lane))
            }
            Lanes::Dpp8 { lanes, fetch } => {
                gather_lanes(wave, exec, fetch, |lane| Some(lane & !7 | lanes[(lane & 7) as usize] as u32))
            }
            // Lanes that depend on data are unknown.
            Lanes::Data => 0,
        }
    }
}

/// Returns the source lanes of the active lanes. Inactive sources are read only with fetch-inactive.
fn gather_lanes(wave: &Wave, exec: u64, fetch: bool, source: impl Fn(u32) -> Option<u32>) -> u64 {
    let mut mask = 0;
    for lane in (0..wave.size()).filter(|l| exec >> l & 1 == 1) {
        mask |= source(lane).filter(|from| *from < wave.size()).map_or(0, |from| 1 << from);
    }
    if fetch { mask } else { mask & exec }
}

/// Formats a register as `v3`, `s[2:3]` or `vcc_lo`; in a described machine, by the machine's own names.
pub fn register_name(arch: Arch, file: File, first: u16, count: u16) -> String {
    if let Some(machine) = arch.machine() {
        return match file {
            File::Vgpr => machine.vector.name(first),
            _ => machine.scalar.name(first),
        };
    }
    match file {
        File::Scc => "scc".to_string(),
        File::Vgpr => {
            let is_plain = first < ACC as u16 || arch.facts().vgprs.msbs;
            let (kind, first) = if is_plain { ('v', first) } else { ('a', first - ACC as u16) };
            match count {
                1 => format!("{kind}{first}"),
                _ => format!("{kind}[{first}:{}]", first + count - 1),
            }
        }
        File::Sgpr => sgpr_name(first, count),
    }
}

fn sgpr_name(first: u16, count: u16) -> String {
    let pair = |name: &str| match count {
        1 => format!("{name}_lo"),
        _ => name.to_string(),
    };
    match first as usize {
        VCC_LO => pair("vcc"),
        VCC_HI => "vcc_hi".to_string(),
        code if TTMP.contains(&code) => match (code - TTMP.start, count as usize) {
            (at, 1) => format!("ttmp{at}"),
            (at, count) => format!("ttmp[{at}:{}]", at + count - 1),
        },
        NULL => "null".to_string(),
        M0 => "m0".to_string(),
        EXEC_LO => pair("exec"),
        EXEC_HI => "exec_hi".to_string(),
        _ if count == 1 => format!("s{first}"),
        _ => format!("s[{first}:{}]", first + count - 1),
    }
}
