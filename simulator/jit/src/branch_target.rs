//! Statically known jump targets: values written to the PC that are the PC plus a constant of the
//! instruction.

use isa_lower::ir::*;
use isa_spec::pcode::ir::State;

/// Returns the target of a value written to the PC, as a byte offset in the program, if it is statically
/// known.
pub fn static_target(to: &Value, pc: u64, imm: u32) -> Option<u64> {
    // The PC must occur exactly once in the sum.
    let (times, offset) = linear_terms(to, pc, imm)?;
    (times == 1).then_some(offset)
}

/// Splits a sum into the multiplicity of the PC and the constant rest.
fn linear_terms(value: &Value, pc: u64, imm: u32) -> Option<(i64, u64)> {
    let low = |bits: u64| if value.host_width == HostWidth::W32 { bits & 0xffff_ffff } else { bits };
    let known = |v: &Value| linear_terms(v, pc, imm).filter(|(times, _)| *times == 0).map(|(_, bits)| bits);
    let of = |bits: u64| Some((0, low(bits)));
    match &value.kind {
        _ if value.host_width == HostWidth::W128 => None,
        ValueKind::Const(bits) => of(*bits as u64),
        ValueKind::Field(name) if ["SIMM16", "OFFSET"].contains(name) => of(imm as u64),
        ValueKind::State(State::Pc) => Some((1, pc)),
        ValueKind::State(State::InstSize) => of(imm as u64),
        ValueKind::Op2(Op2::Add, a, b) if value.host_width == HostWidth::W64 => {
            let (a, b) = (linear_terms(a, pc, imm)?, linear_terms(b, pc, imm)?);
            Some((a.0 + b.0, a.1.wrapping_add(b.1)))
        }
        ValueKind::Op2(Op2::Sub, a, b) if value.host_width == HostWidth::W64 => {
            let (a, b) = (linear_terms(a, pc, imm)?, linear_terms(b, pc, imm)?);
            Some((a.0 - b.0, a.1.wrapping_sub(b.1)))
        }
        ValueKind::Op2(op, a, b) => {
            let (a, b) = (known(a)?, known(b)?);
            of(match op {
                Op2::Add => a.wrapping_add(b),
                Op2::Sub => a.wrapping_sub(b),
                Op2::Mul => a.wrapping_mul(b),
                Op2::And => a & b,
                Op2::Or => a | b,
                Op2::Xor => a ^ b,
            })
        }
        ValueKind::ShlConst(a, n) => of(known(a)? << n),
        ValueKind::ShrConst(a, n) => of(known(a)? >> n),
        ValueKind::Resize(a) => of(known(a)?),
        ValueKind::SignExtend { value: a, width } if *width <= 64 => {
            let above = 64 - width;
            of(((known(a)? << above) as i64 >> above) as u64)
        }
        _ => None,
    }
}
