//! What one vector instruction can read at once (RDNA ISA manuals, *VALU: Operands* and *Dual Issue VALU*): scalar values come over the
//! constant bus, which has room for two, and the halves of a dual instruction take their vector registers from different banks.

use super::Options;
use super::error::{AsmError, Span};
use super::form::{Form, Kind, Slot, forms};
use super::matching::half_slots;
use super::names::LITERAL;
use crate::arch::Arch;
use crate::inst::Inst;
use isa_spec::tables::EntryId;
use smallvec::SmallVec;

/// An operand of a field by its code.
#[derive(Debug, PartialEq, Eq)]
enum Read {
    Vector(u32),
    Scalar(&'static str),
    Free,
}

fn read(inst: &Inst, slot: &Slot) -> Read {
    let Some(field) = slot.field else { return Read::Free };
    let code = inst.fields[field as usize];
    if let Some(n) = slot.names.vgpr(code) {
        return Read::Vector(n);
    }
    let Some(name) = slot.names.name(code) else { return Read::Free };
    match name.as_bytes() {
        _ if name == LITERAL => Read::Scalar(THE_LITERAL),
        [b'v', b'0'..=b'9', ..] => Read::Vector(code & 0xff),
        // Inline constants.
        [b'0'..=b'9', ..] | [b'-', b'0'..=b'9', ..] | b"null" => Read::Free,
        _ => Read::Scalar(name),
    }
}

const THE_LITERAL: &str = "the literal";

/// Whether the instruction can read all that it names. `halves`: the slots of an instruction, or of both halves of a dual one.
pub fn check(inst: &Inst, arch: Arch, halves: &[&[Slot]], span: Span) -> Result<(), AsmError> {
    let form = forms(arch).of(inst.entry);
    let Some(bus) = &form.bus else { return Ok(()) };
    let mut list: SmallVec<[&'static str; 8]> = SmallVec::new();
    let mut add = |name: &'static str| {
        if !list.contains(&name) {
            list.push(name);
        }
    };
    bus.implicit.iter().for_each(|name| add(name));
    if inst.entry_y != EntryId::MAX {
        let second: &Form = forms(arch).of(inst.entry_y);
        second.bus.iter().flat_map(|b| &b.implicit).for_each(|name| add(name));
    }
    for slot in halves.iter().copied().flatten() {
        match slot.kind {
            Kind::Literal => add(THE_LITERAL),
            Kind::Value if slot.source.is_some_and(|s| s < 3) => {
                if let Read::Scalar(name) = read(inst, slot) {
                    add(name);
                }
            }
            _ => {}
        }
    }
    if list.len() > bus.most {
        let most = if bus.most == 1 { "one".to_string() } else { bus.most.to_string() };
        let message = format!(
            "this reads {} scalar values: {}; `{}` can read {most} (constant bus)",
            list.len(),
            list.join(", "),
            inst.instruction(arch.table()).name.to_lowercase()
        );
        return Err(AsmError::new(span, message));
    }
    match halves {
        [x, y] => banks(inst, arch, x, y, span),
        _ => Ok(()),
    }
}

/// The halves' first sources, and their second ones, lie in different banks of four; their third ones in different banks of two. Two moves
/// of RDNA 4 are free of this.
fn banks(inst: &Inst, arch: Arch, x: &[Slot], y: &[Slot], span: Span) -> Result<(), AsmError> {
    let table = arch.table();
    let name = |entry: EntryId| table.instructions[table.entries[entry as usize].inst as usize].name;
    let is_move = |entry: EntryId| name(entry) == "V_DUAL_MOV_B32";
    if arch == Arch::Rdna4 && is_move(inst.entry) && is_move(inst.entry_y) {
        return Ok(());
    }
    let (x, y) = (sources(inst, x), sources(inst, y));
    for (at, (which, banks)) in [("first", 4), ("second", 4), ("third", 2)].into_iter().enumerate() {
        if let (Some(a), Some(b)) = (x[at], y[at])
            && a % banks == b % banks
        {
            let message = format!(
                "the {which} sources of both halves, v{a} and v{b}, lie in one bank: their numbers must differ modulo {banks}"
            );
            return Err(AsmError::new(span, message));
        }
    }
    Ok(())
}

/// The vector registers that a half reads as its first, second and third source. An accumulator is a third source, and so is what stands
/// behind a literal that is the second (`v_dual_fmamk_f32`).
fn sources(inst: &Inst, slots: &[Slot]) -> [Option<u32>; 3] {
    let vector = |slot: &Slot| match read(inst, slot) {
        Read::Vector(n) => Some(n),
        _ => None,
    };
    let mut out = [None; 3];
    for (place, slot) in out.iter_mut().zip(slots.iter().filter(|s| s.source != Some(3))) {
        *place = if slot.kind == Kind::Value { vector(slot) } else { None };
    }
    if let Some(result) = slots.iter().find(|s| s.accumulates) {
        out[2] = vector(result);
    }
    out
}

/// As [`check`] for an instruction that is not dual.
pub fn check_one(inst: &Inst, arch: Arch, span: Span) -> Result<(), AsmError> {
    check(inst, arch, &[&forms(arch).of(inst.entry).slots], span)
}

/// As [`check`] for an instruction that was decoded.
pub fn check_decoded(inst: &Inst, options: &Options) -> Result<(), AsmError> {
    if inst.entry_y == EntryId::MAX {
        return check_one(inst, options.arch, Span::default());
    }
    let half = |entry, second| half_slots(options, entry, second).unwrap_or_default();
    let (x, y) = (half(inst.entry, false), half(inst.entry_y, true));
    check(inst, options.arch, &[&x, &y], Span::default())
}
