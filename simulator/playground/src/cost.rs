//! Predicts how long a kernel takes on a device.

use crate::budget::{self, Budget, Need, RESIDENT_BYTES};
use crate::diagnose::launch;
use crate::program::Program;
use crate::run::fault_json;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use wavesim_cost::data;
use wavesim_cost::model::{Effort, History};
use wavesim_cost::profile::{self, Costs};
use wavesim_cost::report;

/// Runs a kernel, and predicts its time on a device. Returns the profile (`wavesim-profile-1`), the devices of its
/// architecture, and the fault that ended the run.
pub fn profile(
    program: &Program,
    max_instructions: u64,
    device: Option<&str>,
    interrupt: &AtomicBool,
    budget: &Arc<Budget>,
) -> Result<Value, String> {
    let mut reserved = budget.wait_for(budget::preparing(program.len_bytes()), interrupt)?;
    let prepared = program.prepare(0)?;
    let mut dispatch = prepared.dispatch(max_instructions);
    dispatch.cancel = Some(interrupt);
    dispatch.resident_bytes = RESIDENT_BYTES;
    let arch = prepared.program.arch;
    let device = match device {
        // Names of files are not names of devices.
        Some(name) => data::device(name),
        None => data::device_of(arch),
    };
    let costs = device.and_then(Costs::of).map_err(|e| e.to_string())?;
    let effort = Effort::page(&costs.model);
    reserved.resize(Need::of(&prepared, &dispatch).profile(effort.instructions))?;
    let regions = profile::regions(&prepared);
    let history = &mut History::default();
    let run = profile::run(&dispatch, &prepared.memory, &regions, &costs, &effort, (history, true));
    let (profile, fault) = match run.map_err(|e| e.to_string())?.1 {
        Ok(profile) => (Some(profile), None),
        Err(fault) => (None, Some(fault)),
    };
    let own = data::devices().filter(|device| device.arch() == arch);
    Ok(json!({
        "launch": launch(&prepared),
        "fault": fault.as_deref().map(fault_json),
        "profile": profile.map(|profile| report::json(&profile, &prepared.program)),
        "devices": own.map(|d| json!({"name": d.device, "title": d.title})).collect::<Vec<_>>(),
    }))
}
