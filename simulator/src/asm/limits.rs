//! What one vector instruction can read at once (RDNA ISA manuals, *VALU: Operands* and *Dual Issue VALU*): scalar values come over the
//! constant bus, which has room for two, and the halves of a dual instruction take their vector registers from different banks.

use super::Options;
use super::error::{AsmError, Span};
use super::form::{Kind, Slot, forms};
use super::matching::half_slots;
use super::names::{LITERAL, names};
use crate::arch::Arch;
use crate::inst::Inst;
use isa_spec::tables::EntryId;

/// Scalar values that a vector instruction reads at most, the literal among them. Inline constants and `null` are free.
fn scalars(name: &str) -> usize {
    // The 64-bit shifts have one place.
    match name {
        "V_LSHLREV_B64" | "V_LSHRREV_B64" | "V_ASHRREV_I64" => 1,
        _ => 2,
    }
}

/// An operand of a field by its code.
#[derive(Debug, PartialEq, Eq)]
enum Read {
    Vector(u32),
    Scalar(String),
    Free,
}

fn read(inst: &Inst, arch: Arch, slot: &Slot) -> Read {
    let Some(field) = slot.field else { return Read::Free };
    let code = inst.fields[field as usize];
    let Some(name) = names(arch, slot.ty).name(code) else { return Read::Free };
    let digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    match name {
        LITERAL => Read::Scalar("the literal".to_string()),
        "null" => Read::Free,
        _ if name.strip_prefix('v').is_some_and(digit) => Read::Vector(code & 0xff),
        _ if digit(name.trim_start_matches('-')) => Read::Free,
        _ => Read::Scalar(name.to_string()),
    }
}

/// Whether the instruction can read all that it names. `halves`: the slots of an instruction, or of both halves of a dual one.
pub fn check(inst: &Inst, arch: Arch, halves: &[&[Slot]], span: Span) -> Result<(), AsmError> {
    let table = arch.table();
    let encoding = inst.encoding(table).name.trim_start_matches("ENC_");
    if !encoding.starts_with("VOP") {
        return Ok(());
    }
    let mut list: Vec<String> = Vec::new();
    let mut add = |name: String| {
        if !list.contains(&name) {
            list.push(name);
        }
    };
    // Scalars that the instruction reads without a field: VCC, M0.
    for entry in [inst.entry, inst.entry_y].into_iter().filter(|e| *e != EntryId::MAX) {
        for o in table.signatures[table.entries[entry as usize].sig as usize] {
            match table.operand_types[o.ty as usize].name {
                "OPR_VCC" if o.input && o.field.is_none() => add("vcc_lo".to_string()),
                ty if o.input && o.field.is_none() && ty.ends_with("_M0") => add("m0".to_string()),
                _ => {}
            }
        }
    }
    for slot in halves.iter().copied().flatten() {
        match slot.kind {
            Kind::Literal => add("the literal".to_string()),
            Kind::Value if slot.source.is_some_and(|s| s < 3) => match read(inst, arch, slot) {
                Read::Scalar(name) => add(name),
                Read::Vector(_) | Read::Free => {}
            },
            _ => {}
        }
    }
    let name = inst.instruction(table).name;
    let most = scalars(name);
    if list.len() > most {
        let (count, most) = (list.len(), if most == 1 { "one".to_string() } else { most.to_string() });
        let message = format!(
            "this reads {count} scalar values: {}; `{}` can read {most} (constant bus)",
            list.join(", "),
            name.to_lowercase()
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
    let (x, y) = (sources(inst, arch, x), sources(inst, arch, y));
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
fn sources(inst: &Inst, arch: Arch, slots: &[Slot]) -> [Option<u32>; 3] {
    let vector = |slot: &Slot| match read(inst, arch, slot) {
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
