//! A profile: a functional run of a launch, of which some workgroups are recorded, and the prediction from them.

use crate::data::{self, ArchCost, CostError, DeviceCost, ModelCost, UnitKind};
use crate::lint::{self, Remark};
use crate::model::{self, Counts, Effort, History, LaunchPlan, Prediction, Region, Stall, TICKS};
use crate::record::Recorder;
use crate::roofline;
use crate::what_if::Changes;
use wavesim_engine::sched::dispatch::{self, Dispatch, RunStats};
use wavesim_isa::arch::Arch;
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::program::Program;
use wavesim_machine::fault::Fault;
use wavesim_machine::memory::Memory;

/// The costs that a profile uses.
#[derive(Debug, Clone)]
pub struct Costs {
    /// Of the architecture.
    pub arch: ArchCost,
    /// Of the device.
    pub device: DeviceCost,
    /// The choices of the model.
    pub model: ModelCost,
    /// What differs from the tables.
    pub changes: Changes,
}

impl Costs {
    /// Returns the costs of a device.
    ///
    /// # Errors
    /// Its architecture has none.
    pub fn of(device: &DeviceCost) -> Result<Costs, CostError> {
        let (arch, model) = (data::arch(device.arch())?.clone(), data::model()?.clone());
        Ok(Costs { arch, device: device.clone(), model, changes: Changes::default() })
    }

    /// Returns the costs with changes.
    ///
    /// # Errors
    /// A change names no constant.
    pub fn changed(&self, changes: &Changes) -> Result<Costs, CostError> {
        let mut costs = Costs { changes: changes.clone(), ..self.clone() };
        changes.apply(&mut costs)?;
        Ok(costs)
    }

    /// Checks that a program with waves of `wave_size` lanes has costs here: the device runs it, or is another one that
    /// `--what-if` names and has such waves.
    ///
    /// # Errors
    /// [`CostError::OtherArch`].
    pub fn check(&self, program: &Program, wave_size: u32) -> Result<(), CostError> {
        let arch = self.device.arch();
        let waves = arch.facts().wave_sizes.contains(&wave_size);
        if arch == program.arch || self.changes.device.is_some() && waves {
            return Ok(());
        }
        Err(CostError::OtherArch {
            device: self.device.device.clone(),
            has: arch.name().to_string(),
            needs: program.arch.name(),
        })
    }
}

/// What limits a launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// The resource.
    pub name: String,
    /// Why, in a sentence.
    pub why: String,
}

/// What an instruction has cost.
#[derive(Debug, Clone)]
pub struct Row {
    /// Index in the program.
    pub index: usize,
    /// Counts of the simulated part.
    pub counts: Counts,
    /// The name of its class.
    pub class: String,
    /// Remarks about it, as of `wavesim lint`; none if only times are wanted.
    pub remarks: Vec<Remark>,
}

/// A launch with its prediction.
pub struct Profile {
    /// The costs that were used.
    pub costs: Costs,
    /// What was simulated.
    pub plan: LaunchPlan,
    /// The prediction.
    pub prediction: Prediction,
    /// What limits the launch.
    pub bound: Bound,
    /// The position in the roofline.
    pub roofline: roofline::Position,
    /// The executed instructions in code order.
    pub rows: Vec<Row>,
    /// Lanes of a wave.
    pub lanes_of_wave: u32,
    /// The architecture of the code.
    pub code: Arch,
}

/// Runs a launch, recording what the model needs. Returns the profile, or what ended the run.
///
/// # Errors
/// The device does not run the program.
pub fn run(
    dispatch: &Dispatch<'_>,
    memory: &Memory,
    regions: &[Region],
    costs: &Costs,
    effort: &Effort,
    (history, first): (&mut History, bool),
) -> Result<(RunStats, Result<Profile, Box<Fault>>), CostError> {
    let mut shape = dispatch.shape.clone();
    if let Some(vgprs) = costs.changes.vgprs {
        (shape.registers.vgprs, shape.registers.accumulation) = (vgprs.min(u32::from(u16::MAX)) as u16, 0);
    }
    if let Some(lds) = costs.changes.lds {
        shape.lds_bytes = lds;
    }
    let program = dispatch.program;
    costs.check(program, shape.wave_size)?;
    let plan = model::plan(program, &shape, costs, effort);
    let mut recorder =
        Recorder::new(&plan.record, shape.grid, shape.wave_size, shape.scratch_bytes, &costs.arch);
    let (stats, result) = dispatch::run_observed(dispatch, memory, &mut recorder);
    if let Err(fault) = result {
        return Ok((stats, Err(fault)));
    }
    let (groups, instructions) = recorder.finish();
    let prediction = model::predict(
        program,
        &shape,
        &plan,
        costs,
        (&groups, instructions),
        (regions, history),
        (effort, first),
    );
    let remarks = match effort.timeline {
        0 => Vec::new(),
        _ => {
            let entry = program.inst_at(shape.entry_pc).unwrap_or(0);
            lint::of_instructions(program, shape.wave_size, &costs.arch, entry)
        }
    };
    let rows = rows(program, &shape, &prediction, &costs.arch, &remarks);
    let roofline = roofline::position(program, &prediction, costs);
    let bound = bound(&prediction, &plan, &costs.model.bound);
    let profile = Profile {
        costs: costs.clone(),
        plan,
        prediction,
        bound,
        roofline,
        rows,
        lanes_of_wave: shape.wave_size,
        code: program.arch,
    };
    Ok((stats, Ok(profile)))
}

/// Returns the regions of a prepared kernel's memory.
pub fn regions(prepared: &Prepared) -> Vec<Region> {
    prepared.memory.regions().iter().map(|r| Region { base: r.base, len: r.len }).collect()
}

fn rows(
    program: &Program,
    shape: &dispatch::Shape,
    prediction: &Prediction,
    arch: &ArchCost,
    remarks: &[Remark],
) -> Vec<Row> {
    let (_, costs) = crate::class::table(program, shape.wave_size, arch);
    let executed = prediction.counts.iter().enumerate().filter(|(_, c)| c.executed > 0);
    let row = |(index, counts): (usize, &Counts)| Row {
        index,
        counts: *counts,
        class: arch.classes[costs[index].class].name.clone(),
        remarks: {
            // They are in code order.
            let first = remarks.partition_point(|remark| remark.index < Some(index));
            remarks[first..].iter().take_while(|remark| remark.index == Some(index)).cloned().collect()
        },
    };
    executed.map(row).collect()
}

/// Returns the sums of stalls by reason, in clocks of waves.
pub fn stalls(prediction: &Prediction) -> [f64; Stall::NAMES.len()] {
    let mut sums = [0.0; Stall::NAMES.len()];
    for counts in &prediction.counts {
        for (sum, ticks) in sums.iter_mut().zip(counts.stalls) {
            *sum += ticks as f64 / TICKS as f64;
        }
    }
    sums
}

/// Determines what limits a launch.
fn bound(p: &Prediction, plan: &LaunchPlan, limits: &data::Bound) -> Bound {
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    if p.launch > p.microseconds * limits.launch.value() {
        let why = format!("{} of the time is the launch itself", percent(p.launch / p.microseconds));
        return Bound { name: "launch".to_string(), why };
    }
    let caches = p.levels.iter().map(|l| (l.name.clone(), l.busy));
    let units =
        p.units.iter().filter(|(u, _)| *u != UnitKind::Branch).map(|(u, busy)| (u.name().to_string(), *busy));
    let busiest = caches.chain(units).max_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((name, busy)) = busiest.filter(|(_, busy)| *busy >= limits.saturated.value()) {
        let why = format!("{name} is busy for {} of the time", percent(busy));
        return Bound { name, why };
    }
    let sums = stalls(p);
    let all: f64 = sums.iter().sum();
    let (most, clocks) = sums.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap_or((0, &0.0));
    let name = Stall::NAMES[most];
    let issue: f64 = p.counts.iter().map(|c| c.issue as f64 / TICKS as f64).sum();
    if issue > all {
        let why = format!("waves issue for {} of their time", percent(issue / (issue + all)));
        return Bound { name: "issue".to_string(), why };
    }
    let part = percent(clocks / (issue + all).max(1.0));
    let o = &plan.occupancy;
    let slots = o.most * (o.waves / o.waves_of_simd.max(1)).max(1);
    let few = f64::from(o.waves) < f64::from(slots) * limits.few_waves.value();
    let occupancy =
        if few { format!("; {} limit the resident waves", o.limit.name()) } else { String::new() };
    let what = match most {
        0 | 1 => "memory latency",
        2 => "LDS latency",
        3 => "scalar memory latency",
        4 => "barriers",
        5 => "dependent instructions",
        _ => name,
    };
    Bound {
        name: what.to_string(),
        why: format!("waves wait for {name} for {part} of their time{occupancy}"),
    }
}
