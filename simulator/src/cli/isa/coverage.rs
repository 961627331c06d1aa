//! Coverage: the number of instructions that have semantics, and compiled code: `wavesim isa coverage`.

use super::operation;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use wavesim_isa::arch::Arch;
use wavesim_machine::isa;

/// Instructions of one functional group.
#[derive(Debug, Default, Clone)]
struct Count {
    total: usize,
    semantics: usize,
    missing: Vec<String>,
}

/// Returns, by architecture and functional group, the number of instructions with semantics, and of those for
/// which the compiled engine has code for operands without modifiers.
#[cfg(feature = "jit")]
pub(super) fn compiled(archs: &[Arch], json: bool) -> Result<String, String> {
    use wavesim_machine::isa::BY_ARCH;
    let (mut out, mut object) = (String::new(), serde_json::Map::new());
    for &arch in archs {
        let mut groups: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (inst, number) in arch.table().instructions.iter().zip(BY_ARCH[arch as usize]) {
            if *number != u16::MAX {
                let (all, with_code) = groups.entry(inst.group()).or_default();
                *all += 1;
                *with_code += wavesim_jit::is_compiled(*number).is_ok() as usize;
            }
        }
        let _ = writeln!(out, "{:14} {:>9} {:>8} {:>6}", arch.name(), "semantics", "compiled", "share");
        let sum = groups.values().fold((0, 0), |sum, group| (sum.0 + group.0, sum.1 + group.1));
        for (name, (all, with_code)) in groups.iter().chain([(&"all", &sum)]) {
            let share = 100.0 * *with_code as f64 / (*all).max(1) as f64;
            let _ = writeln!(out, "  {name:12} {all:9} {with_code:8} {share:5.0}%");
        }
        out.push('\n');
        let of = |(name, (all, with_code)): (&&str, &(usize, usize))| {
            (name.to_string(), json!({ "semantics": all, "compiled": with_code }))
        };
        let groups: serde_json::Map<String, Value> = groups.iter().map(of).collect();
        object.insert(arch.name().to_string(), groups.into());
    }
    Ok(match json {
        true => format!("{}\n", json!({ "schema": "wavesim-coverage-jit-1", "archs": object })),
        false => out,
    })
}

#[cfg(not(feature = "jit"))]
pub(super) fn compiled(_: &[Arch], _: bool) -> Result<String, String> {
    Err("--engine jit: this wavesim was built without the feature `jit`".to_string())
}

/// Returns a table for each architecture: by functional group, the number of instructions, the number with
/// semantics, and the names of those without.
pub(super) fn coverage(archs: &[Arch], json: bool) -> String {
    let counts: Vec<(Arch, BTreeMap<&str, Count>)> = archs.iter().map(|&a| (a, count(a))).collect();
    if json {
        let archs: serde_json::Map<String, Value> = counts
            .iter()
            .map(|(arch, groups)| {
                let groups: serde_json::Map<String, Value> = groups
                    .iter()
                    .map(|(name, c)| {
                        let reasons: BTreeMap<&str, &str> =
                            c.missing.iter().map(|name| (name.as_str(), reason(name))).collect();
                        let value = json!({
                            "total": c.total, "semantics": c.semantics, "missing": c.missing, "reasons": reasons
                        });
                        (name.to_string(), value)
                    })
                    .collect();
                (arch.name().to_string(), groups.into())
            })
            .collect();
        return format!("{}\n", json!({"schema": "wavesim-coverage-1", "archs": archs}));
    }
    let mut out = String::new();
    for (arch, groups) in &counts {
        let _ = writeln!(out, "{:14} {:>6} {:>9} {:>8}", arch.name(), "total", "semantics", "missing");
        let mut sum = Count::default();
        for (name, c) in groups {
            let _ = writeln!(out, "  {name:12} {:6} {:9} {:8}", c.total, c.semantics, c.missing.len());
            sum.total += c.total;
            sum.semantics += c.semantics;
        }
        let _ = writeln!(
            out,
            "  {:12} {:6} {:9} {:8}\n",
            "all",
            sum.total,
            sum.semantics,
            sum.total - sum.semantics
        );
    }
    for (arch, groups) in &counts {
        for (name, c) in groups.iter().filter(|(_, c)| !c.missing.is_empty()) {
            let _ = writeln!(out, "{} {name} without semantics:", arch.name());
            let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for name in &c.missing {
                by_reason.entry(reason(name)).or_default().push(name);
            }
            for (reason, names) in by_reason {
                let _ = writeln!(out, "  {reason}:\n    {}", names.join(" "));
            }
        }
    }
    out
}

/// Returns the reason why an instruction has no semantics.
pub(super) fn reason(name: &str) -> &'static str {
    isa::unsupported_reason(&name.to_uppercase()).unwrap_or("no reason is on record")
}

fn count(arch: Arch) -> BTreeMap<&'static str, Count> {
    let mut groups: BTreeMap<&str, Count> = BTreeMap::new();
    for (at, inst) in arch.table().instructions.iter().enumerate() {
        let group = groups.entry(inst.group()).or_default();
        group.total += 1;
        match operation(arch, at) {
            Some(_) => group.semantics += 1,
            None => group.missing.push(inst.name.to_lowercase()),
        }
    }
    groups
}
