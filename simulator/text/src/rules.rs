//! The format's restrictions on operand modifiers, and the specification's wording of the errors.
//!
//! RDNA has two modifier bits per source, absolute value (applied first) and negation, so `v0`, `|v0|`, `-v0`
//! and `-|v0|` are all combinations. The format allows them on single VGPRs only; the hardware also supports
//! SGPRs, which assembly files (`.s`) can use. [`check_spelling`] checks the text alone, [`check_operands`]
//! the kinds of operands, and [`check_encodings`] the fields of the instruction's encodings.

use super::constant::TextError;
use isa_spec::tables::EntryId;
use std::ops::Range;
use wavesim_asm::form::{Signs, forms};
use wavesim_asm::matching::lower;
use wavesim_asm::operand::{Line, Operand, Reg, RegBase, Value};
use wavesim_isa::arch::Arch;

/// Returns whether `name` is a flag, which is allowed anywhere and does not count as an operand.
pub fn is_flag(name: &str) -> bool {
    matches!(
        name,
        "glc"
            | "slc"
            | "dlc"
            | "nt"
            | "scc"
            | "offen"
            | "idxen"
            | "clamp"
            | "omod"
            | "tfe"
            | "lwe"
            | "gds"
            | "lds"
            | "unorm"
            | "a16"
    )
}

/// Returns whether an operand starts with two signs, so that [`check_spelling`] has to inspect it.
#[inline]
pub fn has_two_signs(text: &str, operand: &Operand) -> bool {
    let [b'-' | b'|', rest @ ..] = &text.as_bytes()[operand.span.start..] else { return false };
    // Other white space takes the slow path.
    matches!(rest.iter().find(|b| **b != b' '), Some(b'-' | b'|' | 0..=0x1f | 0x80..))
}

/// Reports combinations that have no encoding. `text` is an instruction that starts at byte `base`.
pub fn check_spelling(text: &str, base: usize) -> Result<(), TextError> {
    for (piece, at) in pieces(text) {
        let start = base + at;
        let signs: String =
            piece.chars().filter(|c| !c.is_whitespace()).take_while(|c| matches!(c, '-' | '|')).collect();
        let message = if signs.contains("--") {
            "double negation is not allowed (only one NEG bit exists)"
        } else if signs.starts_with("|-") || signs.starts_with("-|-") {
            match piece
                .trim_start_matches(['-', '|', ' '])
                .starts_with(|c: char| c.is_ascii_digit() || c == '.')
            {
                true => "absolute value is not allowed on immediates",
                false => "absolute value after negation is not allowed (hardware does abs→neg, not neg→abs)",
            }
        } else if signs.contains("||") {
            "double absolute value is not allowed (only one ABS bit exists)"
        } else {
            continue;
        };
        let error = TextError::new(start..start + piece.len(), message);
        return Err(error.help("the modifiers of a VGPR are -v0, |v0| and -|v0|"));
    }
    Ok(())
}

/// The operands of an instruction, trimmed, with their byte offsets in it.
fn pieces(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let first = text.find(char::is_whitespace).unwrap_or(text.len());
    let mut next = first;
    text[first..].split(',').map(move |piece| {
        let at = next + (piece.len() - piece.trim_start().len());
        next += piece.len() + 1;
        (piece.trim(), at)
    })
}

/// Reports modifiers on operands that cannot have any.
pub fn check_operands(line: &Line, base: usize) -> Result<(), TextError> {
    for operand in operands_of(line).filter(|o| o.neg || o.abs) {
        let message = match &operand.value {
            Value::Reg(Reg { base: RegBase::Vgpr(_), count: 1, .. }) => continue,
            Value::Reg(Reg {
                count: 2..,
                base: RegBase::Vgpr(_) | RegBase::Sgpr(_) | RegBase::Ttmp(_),
                ..
            }) => "modifiers are not allowed on ranges",
            Value::Reg(Reg { base: RegBase::Sgpr(_) | RegBase::Ttmp(_), .. }) => {
                "modifiers are not allowed on SGPRs"
            }
            Value::Reg(_) => "modifiers are not allowed on special registers",
            _ if operand.abs => "absolute value is not allowed on immediates",
            _ => continue,
        };
        return Err(TextError::new(span_of(operand, base), message)
            .help("modifiers are for single VGPRs: -v0, |v0|, -|v0|"));
    }
    Ok(())
}

/// Reports modifiers that the instruction does not encode or would ignore.
pub fn check_encodings(line: &Line, base: usize, arch: Arch, entries: &[EntryId]) -> Result<(), TextError> {
    for (index, operand) in line.operands.iter().enumerate().filter(|(_, o)| o.neg || o.abs) {
        let name = &lower(line.mnemonic)[..];
        let modifier = if operand.abs { "abs" } else { "neg" };
        let refuse =
            |why: &str| Err(TextError::new(span_of(operand, base), format!("instruction '{name}': {why}")));
        let any = |has: fn(&Signs) -> bool| entries.iter().any(|e| has(&forms(arch).get(*e).signs));
        if name.ends_with("_e32") {
            return refuse("the 32-bit encodings (_e32) don't support modifiers");
        }
        if !any(|s| s.neg) {
            let table = arch.table();
            let group =
                entries.first().map(|e| table.instructions[table.entries[*e as usize].inst as usize].group());
            return refuse(match group == Some("SALU") {
                true => "scalar instruction doesn't support modifiers",
                false => "its encodings don't support modifiers",
            });
        }
        if operand.abs && !any(|s| s.abs) {
            return refuse(match any(|s| s.packed) {
                true => "packed instructions have bits for neg only",
                false => "VINTERP supports neg only",
            });
        }
        if entries.iter().all(|e| forms(arch).get(*e).signs.integers >> index & 1 != 0) {
            return refuse(&format!("integer operation doesn't support {modifier} modifier"));
        }
    }
    Ok(())
}

/// The entries of a mnemonic with or without suffix.
pub fn entries(name: &str, arch: Arch) -> Option<&'static [EntryId]> {
    forms(arch).resolve(name).map(|(entries, _)| entries)
}

fn span_of(operand: &Operand, base: usize) -> Range<usize> {
    base + operand.span.start..base + operand.span.end
}

/// The operands of both halves of a dual instruction.
fn operands_of<'a, 't>(line: &'a Line<'t>) -> impl Iterator<Item = &'a Operand<'t>> {
    line.operands.iter().chain(line.second.iter().flat_map(|l| &l.operands))
}

/// Describes an operand for an error message: its kind, and its spelling in `text`.
pub fn describe_operand(operand: &Operand, text: &str) -> String {
    let kind = match &operand.value {
        Value::Word(word) if is_flag(word) => "the flag ",
        Value::Reg(Reg { base: RegBase::Sgpr(_), count: 1, .. }) => "the scalar register ",
        Value::Reg(Reg { base: RegBase::Vgpr(_), count: 1, .. }) => "the vector register ",
        Value::Reg(Reg { base: RegBase::Sgpr(_), .. }) => "the scalar registers ",
        Value::Reg(Reg { base: RegBase::Vgpr(_), .. }) => "the vector registers ",
        Value::Int(_) | Value::Float(_) => "the number ",
        _ => "",
    };
    let written = text.get(operand.span.start..operand.span.end).unwrap_or_default().trim();
    format!("{kind}`{written}`")
}
