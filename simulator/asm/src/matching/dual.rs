//! Matches dual instructions (`v_dual_… :: v_dual_…`): finds the VOPD entries of the two halves and matches
//! each half's operands.

use super::{Matcher, unknown_mnemonic};
use crate::error::AsmError;
use crate::form::{SlotKind, forms, half_slots};
use crate::operand::Line;
use crate::{Options, Parsed};

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
        let own = x_slots.iter().chain(&y_slots).any(|s| s.kind == SlotKind::Literal);
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
