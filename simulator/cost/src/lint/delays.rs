//! `s_delay_alu`: the hint with which compilers avoid that a dependent instruction blocks the issue of other waves
//! (RDNA manuals, *S_DELAY_ALU*).

use super::{Code, Level, Remark};
use crate::data::UnitKind;
use wavesim_asm::dialect::advice::{has_delay_hints, is_delay_hint};
use wavesim_machine::exec::effects::Class;

/// The kinds of instructions that an identifier counts back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    Valu,
    Transcendental,
    /// Cycles of scalar arithmetic, and values that name nothing.
    Other,
}

/// Returns what an identifier names, and which one, counted back from 1.
fn named(id: u32) -> Option<(Counted, usize)> {
    match id {
        0 => None,
        1..=4 => Some((Counted::Valu, id as usize)),
        5..=7 => Some((Counted::Transcendental, id as usize - 4)),
        _ => Some((Counted::Other, 1)),
    }
}

pub(super) fn check(code: &Code<'_>, (first, last): (usize, usize), out: &mut Vec<Remark>) {
    let arch = code.program.arch;
    if !has_delay_hints(arch) {
        return;
    }
    let name = |index: usize| code.program.insts[index].instruction(arch.table()).name;
    let is_trans = |index: usize| code.costs[index].unit == UnitKind::Transcendental;
    let is_valu = |index: usize| code.effects[index].class == Class::Valu && !is_trans(index);
    // Instructions that a hint covers.
    let mut hinted = vec![false; last + 1 - first];
    for index in (first..=last).filter(|index| is_delay_hint(name(*index))) {
        let immediate = code.program.insts[index].field(arch.table(), "SIMM16").unwrap_or(0);
        let skip = (immediate >> 4 & 7) as usize;
        for (id, to) in [(immediate & 15, index + 1), (immediate >> 7 & 15, index + 1 + skip)] {
            let Some((counted, back)) = named(id).filter(|_| to <= last) else { continue };
            hinted[to - first] = true;
            let matches = |at: &usize| match counted {
                Counted::Valu => is_valu(*at),
                Counted::Transcendental => is_trans(*at),
                Counted::Other => false,
            };
            let target = (first..to).rev().filter(matches).nth(back - 1);
            if counted != Counted::Other
                && let Some(target) = target
                && !code.depends(to, target)
            {
                let message = format!(
                    "`s_delay_alu` delays `{}` for `{}`, of which it uses no result",
                    code.program.text(to),
                    code.program.text(target)
                );
                out.push(Remark {
                    rule: "needless-delay",
                    level: Level::Note,
                    index: Some(index),
                    message,
                    help: None,
                });
            }
        }
    }
    for index in first..=last {
        if !matches!(code.effects[index].class, Class::Valu) || hinted[index - first] {
            continue;
        }
        let Some(before) = (first..index).rev().find(|at| !is_delay_hint(name(*at))) else { continue };
        let long = code.costs[before].latency > code.costs[before].busy;
        if (is_valu(before) || is_trans(before)) && long && code.depends(index, before) {
            let message = format!(
                "`{}` uses the result of the instruction before, {} clocks later, without `s_delay_alu`",
                code.program.text(index),
                code.costs[before].latency
            );
            let id = if is_trans(before) { "TRANS32_DEP_1" } else { "VALU_DEP_1" };
            let help = Some(format!("`s_delay_alu instid0({id})` before it lets other waves issue"));
            out.push(Remark { rule: "missing-delay", level: Level::Note, index: Some(index), message, help });
        }
    }
}
