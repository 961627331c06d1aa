//! The part of MODE that code is specialised for.

use isa_lower::ir::*;
use isa_lower::visit::each_value;
use isa_spec::pcode::ir::State;
use wavesim_isa::arch::Arch;
use wavesim_isa::relative::{GPR_IDX_EN, VGPR_MSBS, VSKIP};
use wavesim_machine::exec::output::IEEE;
use wavesim_machine::exec::rt::{Cx, FloatMode};

/// Returns whether a value is MODE.IEEE, which code is specialised for.
pub fn is_ieee_bit(value: &Value) -> bool {
    let mode = |v: &Value| matches!(v.kind, ValueKind::State(State::Mode));
    let shifted = |v: &Value| matches!(&v.kind, ValueKind::ShrConst(inner, n) if *n == IEEE.trailing_zeros() && mode(inner));
    matches!(&value.kind, ValueKind::Op2(Op2::And, a, b) if shifted(a) && b.kind == ValueKind::Const(1))
}

/// Returns whether a body reads no other bit of MODE.
pub fn reads_only_ieee_bit(body: &[Stmt]) -> bool {
    let (mut reads, mut bits) = (0, 0);
    each_value(body, &mut |v| {
        reads += matches!(v.kind, ValueKind::State(State::Mode)) as usize;
        bits += is_ieee_bit(v) as usize;
    });
    reads == bits
}

/// The position in MODE of the bits that extend VGPR numbers.
const MSBS: u32 = VGPR_MSBS.trailing_zeros();

/// The mode of a wave that code is specialised for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeMode {
    /// f32 denormals are flushed.
    pub flush: bool,
    /// Wave64.
    pub wave64: bool,
    /// [`IEEE`] is set.
    pub ieee: bool,
    /// [`CodeMode::msbs`]. Code has them as a property of each entry: they are not part of [`CodeMode::index`].
    msbs: u8,
}

impl CodeMode {
    /// The number of modes.
    pub const COUNT: usize = 8;

    /// The mode of waves of `lanes` lanes with IEEE rules that keep denormals.
    pub fn ieee(lanes: u32) -> CodeMode {
        CodeMode { flush: false, wave64: lanes == 64, ieee: true, msbs: 0 }
    }

    /// The bits of MODE that extend VGPR numbers, at the start of a unit.
    pub fn msbs(self) -> u32 {
        (self.msbs as u32) << MSBS
    }

    /// Returns the mode of a wave, or `None` if there is no code for it. `tracks_msbs`: whether units track the bits
    /// that extend VGPR numbers; otherwise they must be zero.
    #[inline]
    pub fn of(cx: &Cx<'_>, tracks_msbs: bool) -> Option<CodeMode> {
        CodeMode::of_wave(cx.arch, cx.wave.mode, cx.wave.size(), tracks_msbs)
    }

    /// Returns the mode of a wave of `lanes` lanes with a value of MODE, as [`CodeMode::of`] does.
    #[inline]
    pub fn of_wave(arch: Arch, mode: u32, lanes: u32, tracks_msbs: bool) -> Option<CodeMode> {
        // Round to nearest even, with all denormals kept or those of f32 flushed: the modes that handlers are
        // specialised for. Modes that change how instructions address registers, or skip them, are excluded.
        let unless = if arch.facts().vgprs.msbs && !tracks_msbs { VGPR_MSBS } else { 0 };
        let flush = FloatMode::fast(mode, GPR_IDX_EN | VSKIP | unless)?.flushes();
        let msbs = if tracks_msbs { (mode >> MSBS) as u8 } else { 0 };
        Some(CodeMode { flush, wave64: lanes == 64, ieee: mode & IEEE != 0, msbs })
    }

    pub fn index(self) -> usize {
        self.flush as usize | (self.wave64 as usize) << 1 | (self.ieee as usize) << 2
    }
}

impl std::fmt::Display for CodeMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let denormals = if self.flush { "flushed" } else { "kept" };
        let ieee = if self.ieee { ", IEEE" } else { "" };
        write!(f, "wave{}, f32 denormals {denormals}{ieee}", if self.wave64 { 64 } else { 32 })?;
        match self.msbs {
            0 => Ok(()),
            bits => write!(f, ", VGPR MSBs {bits:#04x}"),
        }
    }
}
