//! Encoding fields, which are constants at compile time.

use super::val::Val;
use super::{Emitter, R, Unsupported};
use wavesim_machine::exec::op::Op;

impl Emitter<'_> {
    /// Returns a raw encoding field.
    pub fn field(&self, name: &str) -> R<u128> {
        let op = self.env.op(self.ops);
        let ext = &self.exts[op.ext as usize];
        Ok(match name {
            "OFFSET" | "SIMM16" | "SIMM4" => op.imm,
            "OFFSET0" => op.imm & 0xff,
            "OFFSET1" => op.imm >> 8 & 0xff,
            "SIMM32" => ext.simm32,
            "NEG" => ext.neg,
            "NEG_HI" => ext.neg_hi,
            "ABS" => ext.abs,
            "OPSEL" => ext.op_sel,
            "OPSEL_HI" => ext.op_sel_hi,
            "CLAMP" => (op.flags & Op::CLAMP != 0) as u32,
            "SVE" => ext.sve,
            "OMOD" => ext.omod as u32,
            "GFX" => ext.gfx,
            _ => return Err(Unsupported("an encoding field")),
        } as u128)
    }

    /// Returns a source's bit of a field.
    pub fn source_bit(&self, field: &str, source: usize) -> R<Val> {
        let op = self.env.op(self.ops);
        let bits = &self.exts[op.ext as usize].by_source;
        let all = match field {
            "NEG" => bits.neg(),
            "NEG_HI" => bits.neg_hi(),
            "OPSEL" => bits.op_sel(),
            "OPSEL_HI" => bits.op_sel_hi(),
            _ => return Err(Unsupported("a bit of a source")),
        };
        all.get(source).map(|bit| Val::Const(*bit as u128)).ok_or(Unsupported("a fifth source"))
    }
}
