//! The classes of results: `wavesim isa exactness`.

use super::operation;
use isa_exactness::{Aspect, Class, Exactness};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use wavesim_isa::arch::Arch;

/// Parses the name of a class.
pub(super) fn parse_class(name: &str) -> Result<Class, String> {
    Class::ALL.into_iter().find(|class| class.name() == name).ok_or_else(|| {
        let names: Vec<&str> = Class::ALL.iter().map(|class| class.name()).collect();
        format!("classes are {}", names.join(", "))
    })
}

/// Returns the instructions of a class with their exactness, by default those of all classes but `exact`.
pub(super) fn list(archs: &[Arch], class: Option<Class>, json: bool) -> String {
    let mut out = String::new();
    for &arch in archs {
        let mut counts: BTreeMap<Class, usize> = BTreeMap::new();
        let mut lines = String::new();
        let table = arch.table();
        let width = table.instructions.iter().map(|i| i.name.len()).max().unwrap_or(0);
        for (at, inst) in table.instructions.iter().enumerate() {
            let Some(op) = operation(arch, at) else { continue };
            let exactness = Exactness::of(&op.sem);
            *counts.entry(exactness.class()).or_default() += 1;
            let listed = match class {
                Some(class) => exactness.class() == class,
                None => exactness.class() != Class::Exact || exactness.has(Aspect::Conversion),
            };
            if !listed {
                continue;
            }
            let name = inst.name.to_lowercase();
            if json {
                let mut line = exactness.json();
                line["arch"] = arch.name().into();
                line["name"] = name.into();
                let _ = writeln!(out, "{line}");
            } else {
                let _ = writeln!(lines, "  {name:width$}  {exactness}");
            }
        }
        if !json {
            let counts: Vec<String> =
                counts.iter().map(|(class, count)| format!("{count} {}", class.name())).collect();
            let _ = writeln!(out, "{}: {}\n{lines}", arch.name(), counts.join(", "));
        }
    }
    out
}
