//! Registers: parsing of names and ranges, and the registers with a name instead of a number.

use crate::error::AsmError;
use crate::expr::{self, Symbols};
use crate::scan::Scanner;

/// A register, or a range of consecutive registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reg {
    /// The first register.
    pub base: RegBase,
    /// Number of 32-bit registers.
    pub count: u16,
    /// `.l` or `.h`: one half of a register, for a 16-bit operand.
    pub half: Option<Half>,
}

/// The first register of a [`Reg`]: file and number, or a named register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RegBase {
    /// `v5`.
    Vgpr(u16),
    /// `s5`.
    Sgpr(u16),
    /// `ttmp5`: the trap handler's registers.
    Ttmp(u16),
    /// `a5`: accumulation registers of CDNA.
    Acc(u16),
    /// A named register; for a pair, its low half.
    Special(Special),
}

/// Half of a 32-bit register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Half {
    /// `.l`: bits 15:0.
    Low,
    /// `.h`: bits 31:16.
    High,
}

/// Registers with a name instead of a number, 32 bits each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    /// `vcc_lo`.
    VccLo,
    /// `vcc_hi`.
    VccHi,
    /// `exec_lo`.
    ExecLo,
    /// `exec_hi`.
    ExecHi,
    /// `m0`.
    M0,
    /// `null`.
    Null,
    /// `src_scc`.
    Scc,
    /// `src_shared_base`: the LDS aperture.
    SharedBase,
    /// `src_shared_limit`.
    SharedLimit,
    /// `src_private_base`: the scratch aperture.
    PrivateBase,
    /// `src_private_limit`.
    PrivateLimit,
    /// `src_pops_exiting_wave_id`.
    PopsExitingWaveId,
    /// `src_vccz`.
    Vccz,
    /// `src_execz`.
    Execz,
    /// `src_lds_direct`.
    LdsDirect,
    /// `flat_scratch_lo`.
    FlatScratchLo,
    /// `flat_scratch_hi`.
    FlatScratchHi,
    /// `xnack_mask_lo`.
    XnackMaskLo,
    /// `xnack_mask_hi`.
    XnackMaskHi,
    /// `src_flat_scratch_base_lo`: the generic address of scratch (CDNA 5).
    FlatScratchBaseLo,
    /// `src_flat_scratch_base_hi`.
    FlatScratchBaseHi,
}

impl Special {
    /// All named registers in the order of the enum, with their names in the ISA description.
    pub const ALL: [(Special, &'static str); 21] = [
        (Special::VccLo, "vcc_lo"),
        (Special::VccHi, "vcc_hi"),
        (Special::ExecLo, "exec_lo"),
        (Special::ExecHi, "exec_hi"),
        (Special::M0, "m0"),
        (Special::Null, "null"),
        (Special::Scc, "src_scc"),
        (Special::SharedBase, "src_shared_base"),
        (Special::SharedLimit, "src_shared_limit"),
        (Special::PrivateBase, "src_private_base"),
        (Special::PrivateLimit, "src_private_limit"),
        (Special::PopsExitingWaveId, "src_pops_exiting_wave_id"),
        (Special::Vccz, "src_vccz"),
        (Special::Execz, "src_execz"),
        (Special::LdsDirect, "src_lds_direct"),
        (Special::FlatScratchLo, "flat_scratch_lo"),
        (Special::FlatScratchHi, "flat_scratch_hi"),
        (Special::XnackMaskLo, "xnack_mask_lo"),
        (Special::XnackMaskHi, "xnack_mask_hi"),
        (Special::FlatScratchBaseLo, "src_flat_scratch_base_lo"),
        (Special::FlatScratchBaseHi, "src_flat_scratch_base_hi"),
    ];

    /// The name in the ISA description.
    pub fn name(self) -> &'static str {
        Special::ALL[self as usize].1
    }

    /// Returns whether the register adapts to the width of the operand.
    pub fn any_width(self) -> bool {
        self == Special::Null || self.name().starts_with("src_")
    }
}

/// Looks up a named register; some names denote a pair.
fn special(name: &str) -> Option<Reg> {
    let (first, count) = match name {
        "vcc" => (Special::VccLo, 2),
        "exec" => (Special::ExecLo, 2),
        "flat_scratch" => (Special::FlatScratchLo, 2),
        "xnack_mask" => (Special::XnackMaskLo, 2),
        // The prefix `src_` is optional.
        _ => {
            let is_called = |own: &str| own == name || own.strip_prefix("src_") == Some(name);
            (Special::ALL.iter().find(|(_, own)| is_called(own))?.0, 1)
        }
    };
    Some(Reg { base: RegBase::Special(first), count, half: None })
}

impl Reg {
    /// `count` VGPRs from `first`.
    pub fn vgpr(first: u16, count: u16) -> Reg {
        Reg { base: RegBase::Vgpr(first), count, half: None }
    }

    /// `count` SGPRs from `first`.
    pub fn sgpr(first: u16, count: u16) -> Reg {
        Reg { base: RegBase::Sgpr(first), count, half: None }
    }

    /// The name of the first register in the ISA description.
    pub fn first_name(&self) -> String {
        match self.base {
            RegBase::Vgpr(n) => format!("v{n}"),
            RegBase::Sgpr(n) => format!("s{n}"),
            RegBase::Ttmp(n) => format!("ttmp{n}"),
            RegBase::Acc(n) => format!("a{n}"),
            RegBase::Special(special) => special.name().to_string(),
        }
    }

    /// Returns whether this register directly follows the last register of `before` in the same file.
    fn follows(&self, before: &Reg) -> bool {
        let ends = |r: &Reg| match r.base {
            RegBase::Vgpr(n) => Some((0, n as u32, n as u32 + r.count as u32)),
            RegBase::Sgpr(n) => Some((1, n as u32, n as u32 + r.count as u32)),
            RegBase::Ttmp(n) => Some((2, n as u32, n as u32 + r.count as u32)),
            RegBase::Acc(n) => Some((4, n as u32, n as u32 + r.count as u32)),
            RegBase::Special(Special::VccLo | Special::ExecLo) => Some((3, 0, r.count as u32)),
            RegBase::Special(Special::VccHi | Special::ExecHi) => Some((3, 1, 2)),
            RegBase::Special(_) => None,
        };
        let same_pair = match (before.base, self.base) {
            (RegBase::Special(a), RegBase::Special(b)) => a.name()[..3] == b.name()[..3],
            _ => true,
        };
        same_pair
            && matches!((ends(before), ends(self)), (Some((f, _, end)), Some((g, start, _))) if f == g && end == start)
    }
}

/// Combines single registers to a range; `None` unless they are consecutive.
pub fn consecutive(regs: &[Reg]) -> Option<Reg> {
    let single = regs.iter().all(|r| r.count == 1);
    let range = regs.windows(2).all(|w| w[1].follows(&w[0]));
    let count = regs.len().min(0xffff) as u16;
    regs.first().filter(|_| single && range).map(|first| Reg { count, ..*first })
}

/// Looks up a numbered register file by name.
pub(super) fn register_file(name: &str) -> Option<fn(u16) -> RegBase> {
    Some(match name {
        "v" => RegBase::Vgpr,
        "s" => RegBase::Sgpr,
        "ttmp" => RegBase::Ttmp,
        "a" | "acc" => RegBase::Acc,
        _ => return None,
    })
}

/// Parses a register without brackets: `v1`, `s7`, `vcc`, `v3.h`.
pub(super) fn register_name(name: &str) -> Option<Reg> {
    let (name, half) = match name.as_bytes() {
        [.., b'.', b'l'] => (&name[..name.len() - 2], Some(Half::Low)),
        [.., b'.', b'h'] => (&name[..name.len() - 2], Some(Half::High)),
        _ => (name, None),
    };
    let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (file, number) = name.split_at(digits);
    let Some(base) = register_file(file) else { return special(name).map(|reg| Reg { half, ..reg }) };
    Some(Reg { base: base(number.parse().ok()?), count: 1, half })
}

/// Reads a register or a range if one follows.
pub fn parse_register(s: &mut Scanner, symbols: &dyn Symbols) -> Result<Option<Reg>, AsmError> {
    let Some((name, span)) = s.peek_ident() else { return Ok(None) };
    if let Some(reg) = register_name(name) {
        s.ident();
        return Ok(Some(reg));
    }
    let mut ahead = s.clone();
    ahead.ident();
    let Some(base) = register_file(name) else { return Ok(None) };
    if !ahead.eat('[') {
        return Ok(None);
    }
    let index = |s: &mut Scanner| -> Result<i64, AsmError> {
        s.skip_space();
        let start = s.position();
        let value = expr::parse(s, true)?.eval(symbols)?;
        if (0..=0xffff).contains(&value) {
            return Ok(value);
        }
        Err(AsmError::new(s.span_since(start), format!("there is no register {value}")))
    };
    let first = index(&mut ahead)?;
    let last = if ahead.eat(':') { index(&mut ahead)? } else { first };
    ahead.expect(']')?;
    *s = ahead;
    if last < first {
        let span = span.to(s.span_since(span.start));
        return Err(AsmError::new(span, format!("the range ends ({last}) before it starts ({first})")));
    }
    Ok(Some(Reg { base: base(first as u16), count: (last - first + 1).min(0xffff) as u16, half: None }))
}
