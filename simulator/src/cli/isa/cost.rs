//! The costs of instructions and of devices: `wavesim isa cost`.

use crate::cli::device;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use wavesim_asm::describe;
use wavesim_cost::class;
use wavesim_cost::data::{self, Quantity};
use wavesim_isa::arch::Arch;

/// Returns the costs of an instruction, or all constants of architectures or of a device.
pub(super) fn cost(
    archs: &[Arch],
    name: Option<&str>,
    of: Option<&str>,
    json: bool,
) -> Result<String, String> {
    if let Some(of) = of {
        let cost = device::open(of).map_err(|e| format!("{e:#}"))?;
        let mut out = String::new();
        if !json {
            let _ = writeln!(out, "{} ({}): {}", cost.title, cost.processor(), cost.calibration);
        }
        list(&cost.device, &data::constants(&*cost), &cost.sources, json, &mut out);
        return Ok(out);
    }
    let mut out = String::new();
    match name {
        Some(name) => {
            for (arch, index) in describe::find(archs, name)? {
                let name = arch.table().instructions[index].name;
                let Ok(cost) = data::arch(arch) else { continue };
                let Some(group) = class::group_of_name(arch, name) else { continue };
                let row = &cost.classes[cost.class_of(group.name(), name)];
                let constants = [("busy".to_string(), &row.busy), ("latency".to_string(), &row.latency)];
                if !json {
                    let unit = row.unit.name();
                    let _ = writeln!(out, "{name} on {}: class {}, unit {unit}", arch.name(), row.name);
                }
                list(
                    &format!("{}:{name}:{}", arch.name(), row.name),
                    &constants,
                    &cost.sources,
                    json,
                    &mut out,
                );
            }
        }
        None => {
            for arch in archs {
                let Ok(cost) = data::arch(*arch) else { continue };
                if !json {
                    let _ = writeln!(out, "{}:", arch.name());
                }
                list(arch.name(), &data::constants(cost), &cost.sources, json, &mut out);
            }
            let model = data::model().map_err(|e| e.to_string())?;
            if !out.is_empty() {
                if !json {
                    let _ = writeln!(out, "the model, for all architectures:");
                }
                list("model", &data::constants(model), &model.sources, json, &mut out);
            }
        }
    }
    match out.is_empty() {
        true => Err("there are no costs for this architecture".to_string()),
        false => Ok(out),
    }
}

/// Prints constants, one per line.
fn list(
    of: &str,
    constants: &[(String, &Quantity)],
    sources: &BTreeMap<String, String>,
    json: bool,
    out: &mut String,
) {
    for (key, q) in constants {
        let source = sources.get(q.source.get_ref()).map_or("", String::as_str);
        let _ = if json {
            let line = json!({"of": of, "key": key, "value": q.value(), "unit": q.unit, "kind": q.kind.name(), "source": source});
            writeln!(out, "{line}")
        } else {
            writeln!(out, "  {key:<36} {:>10} {:<24} {:<10} {source}", q.value(), q.unit, q.kind.name())
        };
    }
}
