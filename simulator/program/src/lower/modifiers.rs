//! Lowering of modifiers: signs, halves of registers, SDWA.

use crate::isa::OpInfo;
use isa_spec::tables::Role;
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{Binding, Fmt, Half, Operand, OperandKind};
use wavesim_rt::op::{Ext, Part, Rest, Sdwa};

#[allow(clippy::too_many_arguments)]
pub(super) fn modifiers(
    arch: Arch,
    inst: &Inst,
    binding: &'static Binding,
    operand: &Operand,
    info: &OpInfo,
    slot: usize,
    reg: u16,
    ext: &mut Ext,
) {
    let m = &binding.mods;
    let i = operand.source as u32;
    let names = |field: &str| info.fields.contains(&field);
    let on = 1u8 << slot;
    ext.sign_at[slot] = 0;
    let sign = (operand.size_bits.min(64) - 1) as u8;
    if binding.packed {
        let field = |name| binding.named_field(inst, arch.table(), name) >> i & 1 == 1;
        let Fmt::Packed(half) = operand.fmt else {
            if operand.fmt == Fmt::F32 && field("NEG") && !names("NEG") {
                ext.neg_bits |= on;
                ext.sign_at[slot] = 31;
            }
            return;
        };
        if operand.size_bits > 32 {
            return;
        }
        let (lo, hi) = if names("OPSEL") { (false, true) } else { (field("OPSEL"), field("OPSEL_HI")) };
        let signs = half != Half::Int && !names("NEG");
        let (neg_lo, neg_hi) = (signs && field("NEG"), signs && field("NEG_HI"));
        if (lo, hi, neg_lo, neg_hi) != (false, true, false, false) {
            ext.packed_bits |= on;
            ext.packed_sel |= on * lo as u8;
            ext.packed_sel_hi |= on * hi as u8;
            ext.packed_neg |= on * neg_lo as u8;
            ext.packed_neg_hi |= on * neg_hi as u8;
        }
        return;
    }
    // For DPP, `sign_at` also tells how many registers the source has.
    if operand.size_bits == 64 && binding.has_dpp() {
        ext.sign_at[slot] = sign;
    }
    if operand.size_bits == 16 && !names("OPSEL") && binding.half_shift(inst, operand, reg, false) != 0 {
        ext.high_bits |= on;
        ext.narrow_bits |= on;
    }
    let dot = operand.replicated;
    let float = matches!(operand.fmt, Fmt::F16 | Fmt::BF16 | Fmt::F32 | Fmt::F64 | Fmt::Bits);
    if !(float || dot) || operand.size_bits > 64 {
        return;
    }
    let bit = |field| binding.get(inst, field) >> i & 1 == 1;
    let (dpp_abs, dpp_neg) = match i {
        0 => (m.src0_abs, m.src0_neg),
        1 => (m.src1_abs, m.src1_neg),
        _ => (None, None),
    };
    // VOP3 with DPP encodes the modifiers twice; those in the DPP word are unused there.
    let in_dpp = m.neg.is_none() && m.abs.is_none();
    let abs = (bit(m.abs) || in_dpp && binding.get(inst, dpp_abs) == 1) && !names("ABS");
    let neg = (bit(operand.neg) || in_dpp && binding.get(inst, dpp_neg) == 1) && !names("NEG");
    if dot {
        // Both halves are negated together; there is no absolute value.
        if neg {
            ext.packed_bits |= on;
            ext.packed_sel_hi |= on;
            ext.packed_neg |= on;
            ext.packed_neg_hi |= on;
        }
        return;
    }
    if abs {
        ext.abs_bits |= on;
    }
    if neg {
        ext.neg_bits |= on;
    }
    if abs || neg {
        ext.sign_at[slot] = sign;
    }
}

/// Returns the SDWA selections of an instruction. A 16-bit result of CDNA that clears the upper half of its
/// register is expressed in the same way: it does if SDWA selects the whole register, or is absent.
pub fn sdwa(binding: &Binding, inst: &Inst, operands: &[Operand]) -> Option<Sdwa> {
    let low = |o: &Operand| {
        let half =
            o.role == Role::D0 && o.size_bits == 16 && matches!(o.kind, OperandKind::Vgpr) && !o.preserves;
        half && binding.half_shift(inst, o, 0, true) == 0
    };
    let cleared = (binding.clears_upper_half && operands.iter().any(low)).then_some((Part::LOW, Rest::Zero));
    let Some(fields) = &binding.mods.sdwa else {
        return cleared.map(|(result, rest)| Sdwa { result, rest, ..Sdwa::NONE });
    };
    let part = |field: Option<u8>| field.map_or(Part::WHOLE, |f| Part::new(inst.fields[f as usize]));
    let rest = match binding.get(inst, fields.dst_unused) {
        0 => Rest::Zero,
        1 => Rest::Sign,
        _ => Rest::Keep,
    };
    let (result, rest) = match (part(fields.dst_sel), cleared) {
        (Part::WHOLE, Some(cleared)) => cleared,
        (result, _) => (result, rest),
    };
    let signed = fields.sext.map(|f| binding.get(inst, f) != 0);
    Some(Sdwa { sources: fields.sel.map(part), signed, result, rest })
}
