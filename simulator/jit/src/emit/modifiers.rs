//! Source modifiers: signs and selected halves of words, with the semantics of `exec::rt::modify`.

use super::run::StagedSource;
use super::val::Val;
use super::{Emitter, R};
use isa_lower::ir::{Hold, Op2};
use isa_spec::tables::Role;
use wavesim_machine::exec::op::{Ext, Op, Part};

/// The modifiers of a source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Modifiers {
    /// The part of each word that is read, and whether it is sign-extended.
    part: Option<(Part, bool)>,
    /// The bit position of the half that a 16-bit source reads.
    half: Option<u32>,
    /// The bit positions of the two halves that make up a packed source, and the bits that are flipped in the
    /// result.
    halves: Option<([u32; 2], u32)>,
    /// The word with the sign bits.
    last: usize,
    /// The bits of that word that are kept, and those that are flipped.
    keep: u32,
    flip: u32,
}

impl Modifiers {
    /// Returns the modifiers of an operation's source, if it has any.
    pub fn of(op: &Op, ext: &Ext, role: Role, slot: usize) -> Option<Modifiers> {
        let bit = |bits: u8| (bits >> slot & 1) as u32;
        let numbered = [Role::S0, Role::S1, Role::S2, Role::S3].contains(&role);
        let all = ext.abs_bits | ext.neg_bits | ext.narrow_bits | ext.packed_bits;
        let sdwa = ext.sdwa.filter(|_| op.flags & Op::MODIFY != 0 && slot < 2);
        let part =
            sdwa.map(|sdwa| (sdwa.sources[slot], sdwa.signed[slot])).filter(|(part, _)| *part != Part::WHOLE);
        if op.flags & Op::MODIFY == 0 || !numbered || bit(all) == 0 && part.is_none() {
            return None;
        }
        let sign = 1u32 << (ext.sign_at[slot] & 31);
        let signs = bit(ext.packed_neg) << 15 | bit(ext.packed_neg_hi) << 31;
        Some(Modifiers {
            part,
            half: (bit(ext.narrow_bits) == 1).then(|| 16 * bit(ext.high_bits)),
            halves: (bit(ext.packed_bits) == 1)
                .then(|| ([ext.packed_sel, ext.packed_sel_hi].map(|sel| 16 * bit(sel)), signs)),
            last: if ext.sign_at[slot] == 63 { 1 } else { 0 },
            keep: !(sign * bit(ext.abs_bits)),
            flip: sign * bit(ext.neg_bits),
        })
    }
}

impl Emitter<'_> {
    /// Applies the modifiers of a source to its word `k`.
    pub fn modified(&mut self, staged: &StagedSource, k: usize, mut v: Val) -> R<Val> {
        let Some(Modifiers { part, half, halves, last, keep, flip }) = staged.modified else { return Ok(v) };
        let hold = Hold::W32;
        if let Some((part, signed)) = part {
            v = self.extract_part(v, part, signed)?;
        }
        if let Some(shift) = half {
            v = self.half_at(v, shift)?;
        }
        if let Some(([low, high], signs)) = halves {
            let (low, high) = (self.half_at(v, low)?, self.half_at(v, high)?);
            let high = self.shift(crate::lowering::Shift::Left, hold, high, Val::Const(16))?;
            v = self.op2(Op2::Or, hold, high, low)?;
            v = self.op2(Op2::Xor, hold, v, Val::Const(signs as u128))?;
        }
        if last != k {
            return Ok(v);
        }
        if let Val::Lanes(raw) = v
            && keep | 1 << 31 == u32::MAX
            && flip << 1 == 0
            && self.facts.unflushed.contains(&raw)
        {
            return Ok(Val::Lanes(self.change_sign(raw, keep, flip)));
        }
        v = self.op2(Op2::And, hold, v, Val::Const(keep as u128))?;
        self.op2(Op2::Xor, hold, v, Val::Const(flip as u128))
    }

    /// Extracts the half of a word that begins at a bit.
    pub fn half_at(&mut self, v: Val, shift: u32) -> R<Val> {
        let v = self.shift(crate::lowering::Shift::Right, Hold::W32, v, Val::Const(shift as u128))?;
        self.op2(Op2::And, Hold::W32, v, Val::Const(0xffff))
    }
}
