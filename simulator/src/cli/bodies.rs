//! `wavesim prove --architectures`: do the bodies of one mnemonic compute the same on all architectures?

use isa_spec::pattern::matches;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use wavesim_isa::arch::Arch;
use wavesim_machine::isa;
use wavesim_prove::{Bodies, Body, Solver, compare_bodies};

/// Inputs that are shown.
const SHOWN: usize = 8;

/// The bodies of a mnemonic, with the architectures that have each.
type Groups = Vec<(Body, Vec<Arch>)>;

/// Returns the bodies of each mnemonic.
fn mnemonics(only: &str) -> BTreeMap<String, Groups> {
    let mut all: BTreeMap<String, Groups> = BTreeMap::new();
    for arch in Arch::AMD {
        for (at, instruction) in arch.table().instructions.iter().enumerate() {
            let name = instruction.name.to_lowercase();
            if !matches(only, &name) {
                continue;
            }
            let Some(operation) = isa::number(arch, at).and_then(isa::operation) else { continue };
            let body = Body::new(arch, at, &operation.sem);
            let groups = all.entry(name).or_default();
            match groups.iter_mut().find(|(other, _)| other.is(&body)) {
                Some((_, archs)) => archs.push(arch),
                None => groups.push((body, vec![arch])),
            }
        }
    }
    all
}

fn names(archs: &[Arch]) -> String {
    archs.iter().map(|arch| arch.name()).collect::<Vec<_>>().join(", ")
}

/// Compares all bodies of each mnemonic with the first one; of one mnemonic, if its name is not empty. The exit code is 1 if
/// some differ, else 3 if some are undecided. A `*` in the name is any text.
pub fn run(only: &str, solver: &Solver, as_json: bool, out: &mut dyn Write) -> anyhow::Result<u8> {
    let pattern = if only.is_empty() { "*".to_string() } else { only.to_lowercase() };
    let mut all = mnemonics(&pattern);
    anyhow::ensure!(!all.is_empty(), "no instruction with semantics is called `{only}`");
    let several = |groups: &Groups| groups.iter().map(|(_, archs)| archs.len()).sum::<usize>() > 1;
    all.retain(|_, groups| several(groups));
    let (mut same, mut counts) = (0, [0_usize; 3]);
    for (name, groups) in &all {
        let Some(((first, archs), rest)) = groups.split_first() else { continue };
        if rest.is_empty() {
            same += 1;
        }
        for (other, others) in rest {
            let answer = compare_bodies(first, other, solver)?;
            counts[match answer {
                Bodies::Equal => 0,
                Bodies::Differ { .. } => 1,
                Bodies::Unknown(_) => 2,
            }] += 1;
            if as_json {
                writeln!(out, "{}", to_json(name, [archs, others], &answer))?;
            } else {
                writeln!(out, "{name}: {} and {}: {}", names(archs), names(others), text(&answer))?;
            }
        }
    }
    if !as_json {
        let [equal, differ, unknown] = counts;
        writeln!(
            out,
            "{} mnemonics of several architectures: {same} with one body; of other bodies {equal} are equal, {differ} \
             differ, {unknown} unknown",
            all.len()
        )?;
    }
    Ok(match counts {
        [_, 0, 0] => super::OK,
        [_, 0, _] => super::prove::UNKNOWN,
        _ => super::FAILED,
    })
}

fn text(answer: &Bodies) -> String {
    match answer {
        Bodies::Equal => "equal for all inputs".into(),
        Bodies::Unknown(why) => format!("unknown: {why}"),
        Bodies::Differ { inputs, result, values } => {
            let mut list: Vec<String> =
                inputs.iter().map(|(name, value)| format!("{name}={value:#x}")).collect();
            let more = list.len().saturating_sub(SHOWN);
            list.truncate(SHOWN);
            if more > 0 {
                list.push(format!("and {more} more (--json has all)"));
            }
            let inputs = if list.is_empty() { "operands of 0".to_string() } else { list.join(" ") };
            format!("differ in {result} for {inputs}: {} and {}", values[0], values[1])
        }
    }
}

fn to_json(name: &str, archs: [&Vec<Arch>; 2], answer: &Bodies) -> serde_json::Value {
    let archs = archs.map(|list| list.iter().map(|arch| arch.name()).collect::<BTreeSet<_>>());
    let mut value = json!({"name": name, "architectures": archs});
    match answer {
        Bodies::Equal => value["verdict"] = "equal".into(),
        Bodies::Unknown(why) => {
            value["verdict"] = "unknown".into();
            value["reason"] = why.clone().into();
        }
        Bodies::Differ { inputs, result, values } => {
            let hex = |value: &u128| format!("{value:#x}");
            let inputs: BTreeMap<&String, String> =
                inputs.iter().map(|(name, value)| (name, hex(value))).collect();
            value["verdict"] = "differ".into();
            value["inputs"] = json!(inputs);
            value["result"] = result.clone().into();
            value["values"] = json!(values);
        }
    }
    value
}
