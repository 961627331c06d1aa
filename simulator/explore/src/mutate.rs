//! Weaker variants of a program: without one of its waits, barriers, cache controls or scopes, or with a weaker one.

use isa_spec::pcode::builtins::Control;
use wavesim_asm::{NoSymbols, Options, parse};
use wavesim_machine::exec::effects::{self, Effects};
use wavesim_machine::exec::program::Program;

/// What a variant weakens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weakening {
    /// A wait for the wave's own operations.
    Wait,
    /// A barrier, or a half of one.
    Barrier,
    /// An instruction that discards or writes back the contents of caches.
    Cache,
    /// The scope of an access.
    Scope,
    /// Wait states, delays and other hints.
    Delay,
}

impl Weakening {
    /// All kinds.
    pub const ALL: [Weakening; 5] =
        [Weakening::Wait, Weakening::Barrier, Weakening::Cache, Weakening::Scope, Weakening::Delay];

    /// The name in tables and options.
    pub fn name(self) -> &'static str {
        match self {
            Weakening::Wait => "wait",
            Weakening::Barrier => "barrier",
            Weakening::Cache => "cache",
            Weakening::Scope => "scope",
            Weakening::Delay => "delay",
        }
    }

    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<Weakening> {
        Weakening::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A weaker variant of an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// Index of the instruction.
    pub index: usize,
    /// What is weakened.
    pub kind: Weakening,
    /// The instruction in its place; `None` if it is removed.
    pub text: Option<String>,
}

impl Variant {
    /// Returns the program with the variant. `None` if the variant has another size.
    pub fn apply(&self, program: &Program) -> Option<Program> {
        let options = Options::new(program.arch).wave(program.wave_size);
        let inst = |text: &str| Some(parse(text, &options, &NoSymbols).ok()?.inst);
        match &self.text {
            Some(text) => program.with_replaced(self.index, &[inst(text)?]),
            None => {
                let nop = inst("s_nop 0")?;
                let count = program.insts.get(self.index)?.size / nop.size.max(1);
                program.with_replaced(self.index, &vec![nop; count as usize])
            }
        }
    }
}

/// Returns all variants of a program that can be assembled, in the order of its instructions.
pub fn variants(program: &Program) -> Vec<Variant> {
    let effects = effects::table(program, program.wave_size);
    let mut out = Vec::new();
    for (index, effects) in effects.iter().enumerate() {
        let text = program.text(index);
        let Some(kind) = kind(effects, &text) else { continue };
        let texts = match kind {
            Weakening::Wait => weaker_waits(&text),
            Weakening::Delay => shorter(&text),
            Weakening::Barrier | Weakening::Cache => Vec::new(),
            Weakening::Scope => narrower(&text),
        };
        let texts = texts.into_iter().map(Some);
        let removed = (kind != Weakening::Scope && text != "s_nop 0").then_some(None);
        let all = texts.chain(removed).map(|text| Variant { index, kind, text });
        out.extend(all.filter(|variant| variant.apply(program).is_some()));
    }
    out
}

fn kind(effects: &Effects, text: &str) -> Option<Weakening> {
    let calls = |of: fn(&Control) -> bool| effects.calls.iter().any(of);
    if calls(|call| call.is_wait() && *call != Control::WaitAlu) {
        return Some(Weakening::Wait);
    }
    if calls(|call| call.signals_barrier() || *call == Control::BarrierWait) {
        return Some(Weakening::Barrier);
    }
    if calls(|call| matches!(call, Control::InvalidateCaches | Control::WriteBackCaches)) {
        return Some(Weakening::Cache);
    }
    if effects.class.is_memory() && !narrower(text).is_empty() {
        return Some(Weakening::Scope);
    }
    calls(|call| matches!(call, Control::Nop | Control::WaitAlu)).then_some(Weakening::Delay)
}

/// Returns a wait with each of its counts one higher, and without each of them: `s_waitcnt vmcnt(0) lgkmcnt(0)`,
/// `s_wait_loadcnt_dscnt 0x1`, `s_waitcnt_vscnt null, 0x0`.
fn weaker_waits(text: &str) -> Vec<String> {
    let Some((name, operands)) = text.split_once(' ') else { return Vec::new() };
    let counts: Vec<&str> = operands.split_whitespace().filter(|count| count.contains('(')).collect();
    if counts.is_empty() {
        let (before, number) = operands.rsplit_once(' ').map_or(("", operands), |(b, n)| (b, n));
        let Some(number) = parse_number(number) else { return Vec::new() };
        let with = |number: u32| match before {
            "" => format!("{name} 0x{number:x}"),
            before => format!("{name} {before} 0x{number:x}"),
        };
        // Two counters in one instruction: the second one is in the low bits.
        let two = name.starts_with("s_wait_") && name.matches("cnt").count() == 2;
        return [Some(with(number + 1)), two.then(|| with(number + 0x100))].into_iter().flatten().collect();
    }
    let mut out = Vec::new();
    for at in 0..counts.len() {
        let with = |count: Option<String>| {
            let list = counts.iter().enumerate().filter_map(|(other, text)| {
                if other == at { count.clone() } else { Some((*text).to_string()) }
            });
            format!("{name} {}", list.collect::<Vec<_>>().join(" "))
        };
        let raised = counts[at].split_once('(').and_then(|(counter, rest)| {
            let number = parse_number(rest.strip_suffix(')')?)?;
            Some(format!("{counter}({})", number + 1))
        });
        out.extend(raised.map(|raised| with(Some(raised))));
        if counts.len() > 1 {
            out.push(with(None));
        }
    }
    out
}

/// Returns shorter delays.
fn shorter(text: &str) -> Vec<String> {
    let states = text.strip_prefix("s_nop ").and_then(parse_number);
    states.filter(|states| *states > 0).map(|states| format!("s_nop {}", states - 1)).into_iter().collect()
}

/// Returns an access with a narrower scope, or without the bits that bypass caches.
fn narrower(text: &str) -> Vec<String> {
    const SCOPES: [&str; 4] = ["", " scope:SCOPE_SE", " scope:SCOPE_DEV", " scope:SCOPE_SYS"];
    for (at, scope) in SCOPES.iter().enumerate().skip(1) {
        if text.contains(scope) {
            return vec![text.replace(scope, SCOPES[at - 1])];
        }
    }
    let bits = [" glc", " dlc", " sc1", " sc0"].into_iter().filter(|bit| {
        text.match_indices(bit).any(|(at, _)| text[at + bit.len()..].chars().next().is_none_or(|c| c == ' '))
    });
    bits.map(|bit| text.replacen(bit, "", 1)).collect()
}

fn parse_number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_weakened_by_one_and_by_all() {
        assert_eq!(weaker_waits("s_waitcnt vmcnt(0)"), ["s_waitcnt vmcnt(1)"]);
        assert_eq!(
            weaker_waits("s_waitcnt vmcnt(3) lgkmcnt(0)"),
            [
                "s_waitcnt vmcnt(4) lgkmcnt(0)",
                "s_waitcnt lgkmcnt(0)",
                "s_waitcnt vmcnt(3) lgkmcnt(1)",
                "s_waitcnt vmcnt(3)"
            ]
        );
        assert_eq!(weaker_waits("s_waitcnt_vscnt null, 0x0"), ["s_waitcnt_vscnt null, 0x1"]);
        assert_eq!(weaker_waits("s_wait_kmcnt 0x0"), ["s_wait_kmcnt 0x1"]);
        assert_eq!(
            weaker_waits("s_wait_loadcnt_dscnt 0x1"),
            ["s_wait_loadcnt_dscnt 0x2", "s_wait_loadcnt_dscnt 0x101"]
        );
        assert!(weaker_waits("s_wait_idle").is_empty());
    }

    #[test]
    fn scopes_are_narrowed() {
        assert_eq!(
            narrower("global_load_b32 v5, v4, s[6:7] scope:SCOPE_DEV"),
            ["global_load_b32 v5, v4, s[6:7] scope:SCOPE_SE"]
        );
        assert_eq!(narrower("global_inv scope:SCOPE_SE"), ["global_inv"]);
        assert_eq!(narrower("global_load_b32 v5, v4, s[6:7] glc"), ["global_load_b32 v5, v4, s[6:7]"]);
        assert!(narrower("global_load_b32 v5, v4, s[6:7]").is_empty());
    }
}
