//! Output modifiers: scaling and clamping of float results (`exec::output`), saturation of integers, and the
//! parts of registers that SDWA and CDNA's 16-bit results write (`exec::rt::results`).

use super::float::{Denormals, SINGLE};
use super::ops::Shift;
use super::val::{Val, low};
use super::{Emitter, R, Unsupported};
use crate::frame::of_wave;
use isa_lower::ir::{Hold, Int, Op2, Output, Value};
use isa_spec::arith::Format;
use wavesim_machine::exec::op::{Ext, Op, Part, Rest, Sdwa};
use wavesim_machine::exec::output::{DX10_CLAMP, OMOD, always_clamps_nan, omod_applies};
use wavesim_x64::inst::{Cc, Int2, Size, V, Width};

/// Returns whether the output modifiers of an operation can be compiled for results of this kind.
pub fn fits(ext: &Ext, output: Output, dwords: u32) -> bool {
    let scale = ext.omod == 0 || matches!(output, Output::Bits | Output::F32 | Output::PackedF16);
    // Of two NaN inputs, either may be the result, so that the result's bits may differ; a part of it would
    // not be a NaN.
    let width = match output {
        Output::Bits => 0,
        Output::F16 | Output::BF16 => 16,
        _ => 32,
    };
    let part =
        ext.sdwa.is_none_or(|sdwa| sdwa.result == Part::WHOLE || dwords == 1 && sdwa.result.bits >= width);
    scale && part
}

impl Emitter<'_> {
    /// Applies the output modifiers of an operation to a result.
    pub fn output(&mut self, op: &Op, output: Output, v: Val) -> R<Val> {
        if op.flags & Op::OUTPUT == 0 {
            return Ok(v);
        }
        let omod = self.exts[op.ext as usize].omod;
        let clamp = op.flags & Op::CLAMP != 0;
        let v = if output == Output::F32 && self.is_scaled(omod) { self.scaled(omod, v)? } else { v };
        match output {
            _ if !clamp => Ok(v),
            Output::Bits => Ok(v),
            Output::F16 => self.in_unit(Format::F16, v),
            Output::BF16 => self.in_unit(Format::BF16, v),
            Output::F32 => self.in_unit(Format::F32, v),
            Output::F64 => self.in_unit(Format::F64, v),
            Output::PackedF16 => {
                let upper = self.half_at(v, 16)?;
                let (low, high) = (self.in_unit(Format::F16, v)?, self.in_unit(Format::F16, upper)?);
                let high = self.shifted(Shift::Left, Hold::W32, high, Val::Known(16))?;
                self.op2(Op2::Or, Hold::W32, high, low)
            }
        }
    }

    fn is_scaled(&self, omod: u8) -> bool {
        omod != 0 && omod_applies(self.machine.source.arch, self.flush, self.machine.ieee)
    }

    /// Multiplies an f32 result by a power of two. Denormals and zeros become +0.
    fn scaled(&mut self, omod: u8, v: Val) -> R<Val> {
        let factor = (OMOD[omod as usize & 3] as f32).to_bits();
        let denormals = if self.flush { Denormals::Flush } else { Denormals::Keep };
        let v = Val::Lanes(self.lanes(v)?);
        let product = self.float_of(denormals, &SINGLE, [v, Val::Known(factor as u128)], |e, [a, b]| {
            e.f.rvm(SINGLE.mul, a, b, None)
        })?;
        let product = self.lanes(product)?;
        let exponent = self.lanes_constant(Hold::W32, SINGLE.infinity);
        let exponent = self.band(Hold::W32, product, exponent);
        let none = self.is_zero(Hold::W32, exponent);
        Ok(Val::Lanes(self.without(Hold::W32, none, product)))
    }

    /// Clamps to [0, 1] by integer comparison: the bits of positive floats are ordered as signed integers
    /// are. A NaN becomes 0 under the conditions of `exec::output::clamp`.
    fn in_unit(&mut self, format: Format, v: Val) -> R<Val> {
        let hold = Hold::of(format.width());
        let (infinity, one) = (Val::Known(format.infinity() as u128), Val::Known(format.one() as u128));
        let (v, signed) = match format.width() {
            16 => {
                let v = Val::Lanes(self.lanes(v)?);
                let up = self.shifted(Shift::Left, hold, v, Val::Known(16))?;
                (self.half_at(v, 0)?, self.shifted(Shift::Arithmetic, hold, up, Val::Known(16))?)
            }
            32 => {
                let v = Val::Lanes(self.lanes(v)?);
                (v, v)
            }
            _ => {
                let v = Val::Wide(self.wide(v)?);
                (v, v)
            }
        };
        let greater = |e: &mut Self, a: Val, b: Val| {
            e.compared(hold, a, b, |e, hold, a, b| e.icmp(Cc::GtS, hold, a, b))
        };
        let magnitude = self.op2(Op2::And, hold, v, Val::Known(low(format.width() - 1)))?;
        let nan = greater(self, magnitude, infinity)?;
        let positive = greater(self, signed, Val::Known(0))?;
        let above = greater(self, signed, one)?;
        let number = self.chosen(positive, hold, v, Val::Known(0))?;
        let number = self.chosen(above, hold, one, number)?;
        let zeros = match always_clamps_nan(self.machine.source.arch) {
            true => Val::Known(1),
            false => Val::Mask(self.nan_becomes_zero()),
        };
        let of_nan = self.chosen(zeros, hold, Val::Known(0), v)?;
        self.chosen(nan, hold, of_nan, number)
    }

    /// Returns all ones if MODE.DX10_CLAMP makes the clamp of a NaN 0. Code is not specialised for it: waves
    /// with and without it share code.
    fn nan_becomes_zero(&mut self) -> V {
        let sgprs = self.sgprs;
        self.f.hoisted(|f| {
            let mode = f.load(Size::B4, sgprs, of_wave::MODE);
            let above = DX10_CLAMP.leading_zeros() as i32;
            let sign = f.int2(Int2::Shl, Width::W32, mode, above);
            let all = f.int2(Int2::Sar, Width::W32, sign, 31);
            f.splat(false, all)
        })
    }

    /// Saturates an integer to the range of `to`.
    pub fn saturated(&mut self, value: &Value, from: Int, to: Int, hold: Hold) -> R<Val> {
        let own = value.hold;
        if own == Hold::W128 {
            return Err(Unsupported("128 bits"));
        }
        let mut v = self.value(value)?;
        if from.signed {
            v = self.signed(v, own, from.width)?;
        }
        let (least, most) = match to.signed {
            true => (!low(to.width - 1), low(to.width - 1)),
            false => (0, low(to.width)),
        };
        // Bounds that no value of the holder exceeds are omitted.
        let bits = own.bits();
        let above = to.width - to.signed as u32 + from.signed as u32 <= bits && most != low(bits);
        let below = from.signed && !(to.signed && to.width >= bits);
        let (greater, less) = if from.signed { (Cc::GtS, Cc::LtS) } else { (Cc::GtU, Cc::LtU) };
        for (bound, cc, is_needed) in [(most, greater, above), (least, less, below)] {
            if is_needed {
                let bound = Val::Known(bound & low(bits));
                let beyond = self.compared(own, v, bound, |e, hold, a, b| e.icmp(cc, hold, a, b))?;
                v = self.chosen(beyond, own, bound, v)?;
            }
        }
        let v = self.op2(Op2::And, own, v, Val::Known(low(to.width)))?;
        self.resized(v, own, hold)
    }

    /// Inserts a result into the part of the register that SDWA selects, and fills the rest of the register.
    /// Returns `None` if the result is the whole register.
    pub fn placed(&mut self, op: &Op, v: Val, old: impl FnOnce(&mut Self) -> V) -> R<Option<Val>> {
        let Some(Sdwa { result: part @ Part { shift, bits }, rest, .. }) = self.exts[op.ext as usize].sdwa
        else {
            return Ok(None);
        };
        if op.flags & Op::OUTPUT == 0 || part == Part::WHOLE {
            return Ok(None);
        }
        let (hold, shift) = (Hold::W32, Val::Known(shift as u128));
        let mask = low(bits as u32);
        let new = self.op2(Op2::And, hold, v, Val::Known(mask))?;
        let placed = match rest {
            Rest::Sign => {
                let new = self.signed(v, hold, bits as u32)?;
                self.shifted(Shift::Left, hold, new, shift)?
            }
            _ => self.shifted(Shift::Left, hold, new, shift)?,
        };
        if rest != Rest::Keep {
            return Ok(Some(placed));
        }
        let Val::Known(by) = shift else { return Err(Unsupported("a part")) };
        let old = old(self);
        let old = Val::Lanes(self.exact(old));
        let kept = self.op2(Op2::And, hold, old, Val::Known(!(mask << by) & low(32)))?;
        Ok(Some(self.op2(Op2::Or, hold, kept, placed)?))
    }

    /// Extracts the part of a source that SDWA selects.
    pub fn part_of(&mut self, v: Val, part: Part, signed: bool) -> R<Val> {
        let hold = Hold::W32;
        let v = match v {
            Val::Lanes(v) => Val::Lanes(self.exact(v)),
            v => v,
        };
        let v = self.shifted(Shift::Right, hold, v, Val::Known(part.shift as u128))?;
        match signed {
            true => self.signed(v, hold, part.bits as u32),
            false => self.op2(Op2::And, hold, v, Val::Known(low(part.bits as u32))),
        }
    }
}
