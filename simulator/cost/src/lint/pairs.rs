//! Adjacent vector instructions that could be one dual instruction. The assembler decides what a legal one is.

use super::{Code, Level, Remark};
use wavesim_asm::dialect::advice::is_delay_hint;
use wavesim_asm::{NoSymbols, Options, parse};
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::effects::Class;

/// Returns the text of an instruction as a half of a dual one, if the architecture has such a half.
fn half(arch: Arch, text: &str) -> Option<String> {
    let (name, operands) = text.split_once(' ')?;
    let name = name.strip_suffix("_e32").or(name.strip_suffix("_e64")).unwrap_or(name);
    let own = name.strip_prefix("v_")?;
    // Compilers' names of the same operation.
    let dual = format!("v_dual_{own}");
    arch.table().instruction(&dual.to_uppercase())?;
    Some(format!("{dual} {operands}"))
}

pub(super) fn check(code: &Code<'_>, (first, last): (usize, usize), out: &mut Vec<Remark>) {
    let arch = code.program.arch;
    if code.program.wave_size != 32
        || !arch.table().instructions.iter().any(|inst| inst.name.starts_with("V_DUAL_"))
    {
        return;
    }
    // Hints to the hardware are not between two instructions.
    let name = |index: usize| code.program.insts[index].instruction(arch.table()).name;
    let list: Vec<usize> = (first..=last).filter(|index| !is_delay_hint(name(*index))).collect();
    let mut at = 0;
    while at + 1 < list.len() {
        let (x, y) = (list[at], list[at + 1]);
        at += 1;
        if [x, y].iter().any(|index| code.effects[*index].class != Class::Valu) || code.depends(y, x) {
            continue;
        }
        let written = code.registers(x, true);
        if code.registers(y, true).iter().any(|r| written.contains(r)) {
            continue;
        }
        let text = |index: usize| half(arch, &code.program.text(index));
        let (Some(a), Some(b)) = (text(x), text(y)) else { continue };
        let options = Options::new(arch).wave(32);
        let orders = [format!("{a} :: {b}"), format!("{b} :: {a}")];
        let results =
            orders.each_ref().map(|dual| parse(dual, &options, &NoSymbols).map_err(|e| e.to_string()));
        let message =
            |what: &str| format!("`{}` and `{}` {what}", code.program.text(x), code.program.text(y));
        let remark =
            |rule, level, message, help| Remark { rule, level, index: Some(x), message, help: Some(help) };
        match &results {
            [Ok(_), _] | [_, Ok(_)] => {
                let dual = if results[0].is_ok() { &orders[0] } else { &orders[1] };
                let message = message("can issue as one instruction");
                out.push(remark("dual-issue", Level::Warning, message, format!("`{dual}`")));
                at += 1;
            }
            [Err(why), _] if why.contains("bank") || why.contains("even register") => {
                let message = message("would be one instruction with other registers");
                let why = why.lines().next().unwrap_or_default().to_string();
                out.push(remark("register-banks", Level::Note, message, why));
            }
            _ => {}
        }
    }
}
