//! Output modifiers: scaling and clamping of float results (`exec::output`), saturation of integers, and the
//! parts of registers that SDWA and CDNA's 16-bit results write (`exec::rt::results`).

use crate::arith::builder::{Bug, R};
use crate::arith::float::{Denormals, SINGLE};
use crate::arith::val::{Val, low_mask};
use crate::frame::wave_offset;
use crate::lowering::Shift;
use crate::state::emitter::Emitter;
use isa_lower::ir::{HostWidth, Int, Op2, Output, Value};
use isa_spec::arith::Format;
use wavesim_machine::exec::op::{Ext, Op, Part, Rest, Sdwa};
use wavesim_machine::exec::output::{DX10_CLAMP, OMOD, always_clamps_nan, omod_applies};
use wavesim_x64::inst::{Cc, Int2, Size, V, Width};

/// Returns whether the output modifiers of an operation can be compiled for results of this kind.
pub fn is_supported(ext: &Ext, output: Output, dwords: u32) -> bool {
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
        let ext = &self.exts[op.ext as usize];
        let (omod, clamp) = (ext.omod, op.flags & Op::CLAMP != 0 && !ext.own_clamp);
        let v = if output == Output::F32 && self.applies_omod(omod) { self.apply_omod(omod, v)? } else { v };
        match output {
            _ if !clamp => Ok(v),
            Output::Bits => Ok(v),
            Output::F16 => self.clamp_to_unit(Format::F16, v),
            Output::BF16 => self.clamp_to_unit(Format::BF16, v),
            Output::F32 => self.clamp_to_unit(Format::F32, v),
            Output::F64 => self.clamp_to_unit(Format::F64, v),
            Output::PackedF16 => {
                let upper = self.half_at(v, 16)?;
                let (low, high) =
                    (self.clamp_to_unit(Format::F16, v)?, self.clamp_to_unit(Format::F16, upper)?);
                let high = self.shift(Shift::Left, HostWidth::W32, high, Val::Const(16))?;
                self.op2(Op2::Or, HostWidth::W32, high, low)
            }
        }
    }

    fn applies_omod(&self, omod: u8) -> bool {
        omod != 0 && omod_applies(self.context.program.arch, self.flush, self.context.ieee)
    }

    /// Multiplies an f32 result by a power of two. Denormals and zeros become +0.
    fn apply_omod(&mut self, omod: u8, v: Val) -> R<Val> {
        let factor = (OMOD[omod as usize & 3] as f32).to_bits();
        let denormals = if self.flush { Denormals::Flush } else { Denormals::Keep };
        let v = Val::Lanes(self.lanes(v)?);
        let product = self.float_op(denormals, &SINGLE, [v, Val::Const(factor as u128)], |e, [a, b]| {
            e.f.rvm(SINGLE.mul, a, b, None)
        })?;
        let product = self.lanes(product)?;
        let exponent = self.splat_constant(HostWidth::W32, SINGLE.infinity);
        let exponent = self.band(HostWidth::W32, product, exponent);
        let none = self.is_zero(HostWidth::W32, exponent);
        Ok(Val::Lanes(self.and_not(HostWidth::W32, none, product)))
    }

    /// Clamps to [0, 1] by integer comparison: the bits of positive floats are ordered as signed integers
    /// are. A NaN becomes 0 under the conditions of `exec::output::clamp`.
    fn clamp_to_unit(&mut self, format: Format, v: Val) -> R<Val> {
        let host_width = HostWidth::of(format.width());
        let (infinity, one) = (Val::Const(format.infinity() as u128), Val::Const(format.one() as u128));
        let (v, signed) = match format.width() {
            16 => {
                let v = Val::Lanes(self.lanes(v)?);
                let up = self.shift(Shift::Left, host_width, v, Val::Const(16))?;
                (self.half_at(v, 0)?, self.shift(Shift::Arithmetic, host_width, up, Val::Const(16))?)
            }
            32 => {
                let v = Val::Lanes(self.lanes(v)?);
                (v, v)
            }
            _ => {
                let v = Val::Lanes64(self.lanes64(v)?);
                (v, v)
            }
        };
        let greater = |e: &mut Self, a: Val, b: Val| {
            e.compare_op(host_width, a, b, |e, host_width, a, b| e.icmp(Cc::GtS, host_width, a, b))
        };
        let magnitude = self.op2(Op2::And, host_width, v, Val::Const(low_mask(format.width() - 1)))?;
        let nan = greater(self, magnitude, infinity)?;
        let positive = greater(self, signed, Val::Const(0))?;
        let above = greater(self, signed, one)?;
        let number = self.select(positive, host_width, v, Val::Const(0))?;
        let number = self.select(above, host_width, one, number)?;
        let zeros = match always_clamps_nan(self.context.program.arch) {
            true => Val::Const(1),
            false => Val::Mask(self.nan_becomes_zero()),
        };
        let of_nan = self.select(zeros, host_width, Val::Const(0), v)?;
        self.select(nan, host_width, of_nan, number)
    }

    /// Returns all ones if MODE.DX10_CLAMP makes the clamp of a NaN 0. Code is not specialised for it: waves
    /// with and without it share code.
    fn nan_becomes_zero(&mut self) -> V {
        let sgprs = self.b.sgprs;
        self.b.f.hoist(|f| {
            let mode = f.load(Size::B4, sgprs, wave_offset::MODE);
            let above = DX10_CLAMP.leading_zeros() as i32;
            let sign = f.int2(Int2::Shl, Width::W32, mode, above);
            let all = f.int2(Int2::Sar, Width::W32, sign, 31);
            f.splat(false, all)
        })
    }

    /// Saturates an integer to the range of `to`.
    pub fn saturate(&mut self, value: &Value, from: Int, to: Int, host_width: HostWidth) -> R<Val> {
        let own = value.host_width;
        if own == HostWidth::W128 {
            return Err(Bug("128 bits"));
        }
        let mut v = self.value(value)?;
        if from.signed {
            v = self.signed(v, own, from.width)?;
        }
        let (least, most) = match to.signed {
            true => (!low_mask(to.width - 1), low_mask(to.width - 1)),
            false => (0, low_mask(to.width)),
        };
        // Bounds that no value of the host width exceeds are omitted.
        let bits = own.bits();
        let above = to.width - to.signed as u32 + from.signed as u32 <= bits && most != low_mask(bits);
        let below = from.signed && !(to.signed && to.width >= bits);
        let (greater, less) = if from.signed { (Cc::GtS, Cc::LtS) } else { (Cc::GtU, Cc::LtU) };
        for (bound, cc, is_needed) in [(most, greater, above), (least, less, below)] {
            if is_needed {
                let bound = Val::Const(bound & low_mask(bits));
                let beyond =
                    self.compare_op(own, v, bound, |e, host_width, a, b| e.icmp(cc, host_width, a, b))?;
                v = self.select(beyond, own, bound, v)?;
            }
        }
        let v = self.op2(Op2::And, own, v, Val::Const(low_mask(to.width)))?;
        self.resize(v, own, host_width)
    }

    /// Inserts a result into the part of the register that SDWA selects, and fills the rest of the register.
    /// Returns `None` if the result is the whole register.
    pub fn insert_part(&mut self, op: &Op, v: Val, old: impl FnOnce(&mut Self) -> V) -> R<Option<Val>> {
        let Some(Sdwa { result: part @ Part { shift, bits }, rest, .. }) = self.exts[op.ext as usize].sdwa
        else {
            return Ok(None);
        };
        if op.flags & Op::OUTPUT == 0 || part == Part::WHOLE {
            return Ok(None);
        }
        let (host_width, shift) = (HostWidth::W32, Val::Const(shift as u128));
        let mask = low_mask(bits as u32);
        let new = self.op2(Op2::And, host_width, v, Val::Const(mask))?;
        let placed = match rest {
            Rest::Sign => {
                let new = self.signed(v, host_width, bits as u32)?;
                self.shift(Shift::Left, host_width, new, shift)?
            }
            _ => self.shift(Shift::Left, host_width, new, shift)?,
        };
        if rest != Rest::Keep {
            return Ok(Some(placed));
        }
        let Val::Const(by) = shift else { return Err(Bug("a part of a register")) };
        let old = old(self);
        let old = Val::Lanes(self.flush_pending(old));
        let kept = self.op2(Op2::And, host_width, old, Val::Const(!(mask << by) & low_mask(32)))?;
        Ok(Some(self.op2(Op2::Or, host_width, kept, placed)?))
    }

    /// Extracts the part of a source that SDWA selects.
    pub fn extract_part(&mut self, v: Val, part: Part, signed: bool) -> R<Val> {
        let host_width = HostWidth::W32;
        let v = match v {
            Val::Lanes(v) => Val::Lanes(self.flush_pending(v)),
            v => v,
        };
        let v = self.shift(Shift::Right, host_width, v, Val::Const(part.shift as u128))?;
        match signed {
            true => self.signed(v, host_width, part.bits as u32),
            false => self.op2(Op2::And, host_width, v, Val::Const(low_mask(part.bits as u32))),
        }
    }
}
