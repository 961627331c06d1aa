//! Matches dual instructions (`v_dual_… :: v_dual_…`): finds the VOPD entries of the two halves and matches
//! each half's operands.

use super::{Matcher, unknown_mnemonic};
use crate::error::AsmError;
use crate::form::{Bit, Kind, Slot, forms};
use crate::operand::Line;
use crate::{Options, Parsed};
use isa_spec::tables::EntryId;

/// Assembles `v_dual_… :: v_dual_…`.
pub(super) fn dual<'t>(line: &Line<'t>, second: &Line<'t>, options: &Options) -> Result<Parsed, AsmError> {
    let forms = forms(options.arch);
    let table = options.arch.table();
    let entries = |l: &Line| {
        let name = l.mnemonic.to_lowercase();
        forms.lookup(&name).ok_or_else(|| unknown_mnemonic(&name, l.mnemonic_span, options))
    };
    let (xs, ys) = (entries(line)?, entries(second)?);
    let mut furthest: Option<(usize, AsmError)> = None;
    for &x in xs {
        let form = forms.get(x);
        let enc = table.entries[x as usize].enc;
        let Some(&y) = ys.iter().find(|y| table.entries[**y as usize].enc == enc) else { continue };
        let only = |line: &Line, half| {
            AsmError::new(line.mnemonic_span, format!("`{}` can only be the {half} half", line.mnemonic))
        };
        let Some(x_slots) = half_slots(options, x, false) else {
            furthest.get_or_insert((0, only(line, "second")));
            continue;
        };
        let Some(y_slots) = half_slots(options, y, true) else {
            furthest.get_or_insert((0, only(second, "first")));
            continue;
        };
        let mut m = Matcher { messages: true, ..Matcher::new(form, line, options) };
        let literal_needed = m.form.literal.is_some();
        let result = m.operands(&x_slots, &line.operands, line).and_then(|()| {
            m.set_line(second);
            m.operands(&y_slots, &second.operands, second)
        });
        let own = x_slots.iter().chain(&y_slots).any(|s| s.kind == Kind::Literal);
        let result = result.and_then(|()| {
            if let Some(extra) = line.modifiers.first() {
                return Err(AsmError::new(
                    extra.span,
                    "the first half of a dual instruction takes no modifiers",
                ));
            }
            m.modifiers_of(forms.get(y))?;
            if literal_needed && m.literal.is_none() && !own {
                return Err(AsmError::new(line.span, "no operand is a literal"));
            }
            m.inst.entry_y = y;
            m.check_legal(
                &[&x_slots, &y_slots],
                &[&line.operands, &second.operands],
                line.span.to(second.span),
            )?;
            m.set("OPY", table.entries[y as usize].opcode as u32);
            Ok(())
        });
        match result {
            Ok(()) => return Ok(m.parsed()),
            Err(e) if furthest.as_ref().is_none_or(|(progress, _)| m.progress > *progress) => {
                furthest = Some((m.progress, e));
            }
            Err(_) => {}
        }
    }
    Err(furthest
        .map_or_else(|| AsmError::new(line.span, "these two instructions cannot issue together"), |w| w.1))
}

/// The operands of one half of a dual instruction, with the fields of that half. `None` if the entry cannot
/// be that half.
pub fn half_slots(options: &Options, entry: EntryId, second: bool) -> Option<Vec<Slot>> {
    const FIELDS: [(&str, &str); 4] =
        [("VDSTX", "VDSTY"), ("SRCX0", "SRCY0"), ("VSRCX1", "VSRCY1"), ("VSRCX2", "VSRCY2")];
    let table = options.arch.table();
    let form = forms(options.arch).get(entry);
    let encoding = &table.encodings[table.entries[entry as usize].enc as usize];
    let name = |s: &Slot| s.field.map(|f| encoding.fields[f as usize].name);
    let only_second = !form.slots.iter().any(|s| name(s) == Some("VDSTX"));
    if only_second {
        return second.then(|| form.slots.clone());
    }
    let position = |wanted: &str| encoding.fields.iter().position(|f| f.name == wanted).map(|at| at as u8);
    let first: Vec<Slot> =
        form.slots.iter().filter(|s| !FIELDS.iter().any(|f| name(s) == Some(f.1))).cloned().collect();
    if !second {
        return Some(first);
    }
    if !form.slots.iter().any(|s| name(s) == Some("VDSTY")) {
        return None;
    }
    let moved = |s: &Slot| {
        let y = FIELDS.iter().find(|f| name(s) == Some(f.0)).map(|f| f.1);
        let neg = s.neg.and_then(|bit| Some(Bit { field: position("NEGY")?, ..bit }));
        Slot { field: y.map_or(s.field, position), neg, ..s.clone() }
    };
    Some(first.iter().map(moved).collect())
}
