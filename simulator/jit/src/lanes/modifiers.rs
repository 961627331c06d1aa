//! Source modifiers: signs and selected halves of words, with the semantics of `exec::rt::modify`.

use crate::arith::builder::R;
use crate::arith::val::Val;
use crate::state::emitter::Emitter;
use crate::state::run::{Modifiers, StagedSource};
use isa_lower::ir::{HostWidth, Op2};

impl Emitter<'_> {
    /// Applies the modifiers of a source to its word `k`.
    pub fn modified(&mut self, staged: &StagedSource, k: usize, mut v: Val) -> R<Val> {
        let Some(Modifiers { part, half, halves, last, keep, flip }) = staged.modified else { return Ok(v) };
        let host_width = HostWidth::W32;
        if let Some((part, signed)) = part {
            v = self.extract_part(v, part, signed)?;
        }
        if let Some(shift) = half {
            v = self.half_at(v, shift)?;
        }
        if let Some(([low, high], signs)) = halves {
            let (low, high) = (self.half_at(v, low)?, self.half_at(v, high)?);
            let high = self.shift(crate::lowering::Shift::Left, host_width, high, Val::Const(16))?;
            v = self.op2(Op2::Or, host_width, high, low)?;
            v = self.op2(Op2::Xor, host_width, v, Val::Const(signs as u128))?;
        }
        if last != k {
            return Ok(v);
        }
        if let Val::Lanes(raw) = v
            && keep | 1 << 31 == u32::MAX
            && flip << 1 == 0
            && self.b.facts.unflushed.contains(&raw)
        {
            return Ok(Val::Lanes(self.change_sign(raw, keep, flip)));
        }
        v = self.op2(Op2::And, host_width, v, Val::Const(keep as u128))?;
        self.op2(Op2::Xor, host_width, v, Val::Const(flip as u128))
    }

    /// Extracts the half of a word that begins at a bit.
    pub fn half_at(&mut self, v: Val, shift: u32) -> R<Val> {
        let v = self.shift(crate::lowering::Shift::Right, HostWidth::W32, v, Val::Const(shift as u128))?;
        self.op2(Op2::And, HostWidth::W32, v, Val::Const(0xffff))
    }
}
