//! The timing model: runs recorded workgroups on a part of a device, and extends the result to the whole launch.
//!
//! A launch is divided among the dies evenly, workgroup after workgroup, so one die stands for all. Of that die, some
//! processors are simulated, with their share of what they have in common with the others. [`plan`] chooses the
//! workgroups to record, [`predict`] runs them.

mod cache;
mod channels;
mod code;
mod footprint;
mod machine;
mod memory;
mod stall;
mod steps;
mod windows;

pub use cache::TICKS;
pub use footprint::{Footprint, History, Region, Scale};
pub use memory::LevelCount;
pub use stall::{Counts, Slice, Stall};

use crate::data::{ArchCost, DeviceCost, ModelCost, Range, Scope, UnitKind};
use crate::lint::used_registers;
use crate::occupancy::{Occupancy, Resources, occupancy};
use crate::profile::Costs;
use crate::record::{Group, Plan};
use code::Code;
use isa_spec::pcode::builtins::Control;
use machine::{Machine, Setup};
use memory::{MemorySystem, Share};
use wavesim_engine::sched::dispatch::Shape;
use wavesim_machine::exec::program::Program;
use windows::Lengths;

/// The size of the sample.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Instructions to record.
    pub instructions: u64,
    /// Waves to record.
    pub waves: u64,
    /// Slices of the timeline to keep.
    pub timeline: usize,
    /// Only the recorded workgroups run: the results of the launch are wrong.
    pub only: bool,
}

impl Effort {
    /// Returns the effort for a report.
    pub fn report(model: &ModelCost) -> Effort {
        let s = &model.sample;
        Effort {
            instructions: s.report_instructions.count(),
            waves: s.report_waves.count(),
            timeline: s.report_slices.count() as usize,
            only: false,
        }
    }

    /// Returns the effort for a time alone.
    pub fn time(model: &ModelCost) -> Effort {
        let s = &model.sample;
        Effort {
            instructions: s.time_instructions.count(),
            waves: s.time_waves.count(),
            timeline: 0,
            only: false,
        }
    }

    /// Returns the effort for a report in the memory that a page may use: a slice of the timeline asks for remarks.
    pub fn page(model: &ModelCost) -> Effort {
        let s = &model.sample;
        Effort {
            instructions: s.page_instructions.count(),
            waves: s.page_waves.count(),
            timeline: 1,
            only: false,
        }
    }

    /// Returns the effort for a kernel of which `launches` have been predicted before: later ones resemble them.
    pub fn after(self, launches: u64, model: &ModelCost) -> Effort {
        let s = &model.sample;
        let halvings = (launches / s.halve_after.count().max(1)).min(s.halvings.count()).min(16);
        Effort { instructions: self.instructions >> halvings, waves: (self.waves >> halvings).max(1), ..self }
    }
}

/// What a launch consists of, and what of it is simulated.
#[derive(Debug, Clone)]
pub struct LaunchPlan {
    /// The workgroups to record.
    pub record: Plan,
    /// Workgroups of the launch.
    pub workgroups: u64,
    /// Waves of a workgroup.
    pub waves: u64,
    /// Workgroups of the simulated die.
    pub of_die: u64,
    /// Processors of the die that have workgroups.
    pub active: u64,
    /// Processors that are simulated.
    pub processors: usize,
    /// Workgroups that a processor holds.
    pub resident: usize,
    /// Occupancy of the kernel.
    pub occupancy: Occupancy,
    /// The resources that determine it.
    pub resources: Resources,
}

/// Chooses the workgroups to record.
pub fn plan(program: &Program, shape: &Shape, costs: &Costs, effort: &Effort) -> LaunchPlan {
    let Costs { arch, device, model: ModelCost { sample: choices, .. }, .. } = costs;
    let effects = wavesim_machine::exec::effects::table(program, shape.wave_size);
    let entry = program.inst_at(shape.entry_pc).unwrap_or(0);
    let resources = Resources::of(shape, used_registers(program, &effects, entry));
    let occupancy = occupancy(arch, &resources);
    let workgroups = shape.grid.iter().map(|n| u64::from(*n)).product::<u64>();
    let waves = u64::from(resources.waves());
    let dies = device.chip.dies.count().max(1);
    let of_die = workgroups.div_ceil(dies).max(1);
    let active = device.chip.processors.count().clamp(1, of_die);
    let resident = u64::from(occupancy.workgroups.max(1));
    // At least two rounds of one processor, if there are as many.
    let most = (effort.waves / waves).max(2).min(of_die);
    let each = of_die.div_ceil(active);
    let rounds = choices.rounds.count().max(1);
    let (processors, groups) = if of_die <= most {
        (active, of_die)
    } else {
        let of_processor = each.min(resident * rounds);
        let processors = (most / of_processor).clamp(1, active);
        (processors, (processors * of_processor).min(most.max(of_processor.min(most))))
    };
    let each = (effort.instructions / groups.max(1)).max(waves * choices.least_instructions.count().max(1));
    // A part that begins or ends between the arrivals of two waves would leave them at different barriers.
    let meets = effects
        .iter()
        .any(|e| e.calls.contains(&Control::Barrier) || e.calls.contains(&Control::BarrierWait));
    let parts = each / (waves * choices.least_part.count().max(1));
    let record = Plan {
        groups: sample(groups, of_die, processors * resident, dies, workgroups),
        each,
        windows: if meets { 1 } else { choices.windows.count().min(parts).max(1) },
        growth: choices.growth.value().max(1.0),
        only: effort.only,
    };
    LaunchPlan {
        record,
        workgroups,
        waves,
        of_die,
        active,
        processors: processors as usize,
        resident: resident as usize,
        occupancy,
        resources,
    }
}

/// Returns the numbers of `count` of the workgroups of the first die: some that follow each other, as many as are
/// resident at a time, then as many from another part of the launch, and so on.
fn sample(count: u64, of_die: u64, at_a_time: u64, dies: u64, workgroups: u64) -> Vec<u64> {
    let at_a_time = at_a_time.clamp(1, count.max(1));
    let parts = count.div_ceil(at_a_time);
    let mut out: Vec<u64> = Vec::with_capacity(count as usize);
    for part in 0..parts {
        // The first part is at the beginning, the last at the end.
        let space = of_die.saturating_sub(at_a_time);
        let start =
            if parts == 1 { space / 2 * u64::from(count < of_die) } else { space * part / (parts - 1) };
        for index in start..start + at_a_time {
            let number = index * dies;
            if number < workgroups && (out.len() as u64) < count && !out.contains(&number) {
                out.push(number);
            }
        }
    }
    out
}

/// A predicted launch.
#[derive(Debug, Clone)]
pub struct Prediction {
    /// Microseconds with the launch.
    pub microseconds: f64,
    /// Clocks of the execution, without the launch.
    pub clocks: f64,
    /// Microseconds of the launch.
    pub launch: f64,
    /// Clocks that were simulated.
    pub simulated: f64,
    /// The relative standard error of the sample; 0 if nothing was left out.
    pub sampling_error: f64,
    /// Workgroups simulated, and wave-instructions simulated.
    pub sample: (u64, u64),
    /// Parts of the run of a workgroup that were recorded; 1 if all of it was.
    pub windows: usize,
    /// Wave-instructions of the launch.
    pub instructions: u64,
    /// What the simulated part is multiplied with for totals of the launch.
    pub scale: f64,
    /// By instruction of the program, of the simulated part.
    pub counts: Vec<Counts>,
    /// What each cache has done, and the memory; then the levels of translation.
    pub levels: Vec<LevelCount>,
    /// The share of the time for which each kind of unit was busy.
    pub units: Vec<(UnitKind, f64)>,
    /// Waves resident on a processor on average.
    pub waves: f64,
    /// Parts of the waves' time.
    pub timeline: Vec<Slice>,
    /// Bytes that the launch uses.
    pub footprint: f64,
    /// Names of the instructions without a class.
    pub unclassified: Vec<&'static str>,
}

/// Runs the recorded workgroups, and extends the result to the launch. `instructions` is the number that the whole
/// launch has executed, `first` whether the host has waited before it.
pub fn predict(
    program: &Program,
    shape: &Shape,
    plan: &LaunchPlan,
    costs: &Costs,
    (groups, instructions): (&[Group], u64),
    (regions, history): (&[Region], &mut History),
    (effort, first): (&Effort, bool),
) -> Prediction {
    let Costs { arch, device, model, .. } = costs;
    let code = Code::of(program, shape.wave_size, arch);
    let recorded: u64 = groups.iter().map(Group::recorded).sum();
    let executed: u64 = groups.iter().map(|g| g.executed).sum();
    // Long waves are recorded in parts.
    let length = if recorded == 0 { 1.0 } else { executed as f64 / recorded as f64 };
    let sampled = groups.len().max(1) as f64;
    let of_die = plan.of_die as f64 / sampled;
    let all_dies = device.chip.dies.count().max(1);
    let dies = (plan.workgroups as f64 / plan.of_die as f64).max(1.0);
    let share = Share {
        processors: plan.processors,
        of_die: plan.processors as f64 / plan.active as f64,
        of_device: plan.processors as f64 / (plan.active as f64 * dies),
        at_a_time: (plan.processors * plan.resident) as u64,
        dies: dies.round() as u64,
        stride: all_dies,
    };
    let at_a_time = (plan.processors * plan.resident) as f64;
    let die_at_a_time = (plan.active as f64 * plan.resident as f64).min(plan.of_die as f64);
    let scale = Scale {
        resident: die_at_a_time / at_a_time.min(sampled),
        of_die,
        dies,
        instructions: length,
        stride: all_dies,
    };
    let line = arch.vector_memory.line_bytes.count().max(1);
    let pages: Vec<u64> = device.tlbs.iter().map(|tlb| tlb.page_bytes.count().max(line)).collect();
    let footprint = Footprint::of(groups, (line, &pages), regions, history, &scale);
    let bytes = footprint.bytes;
    let memory = MemorySystem::new(costs, &share, footprint);
    let setup = Setup {
        code: &code,
        cost: arch,
        processors: plan.processors,
        resident: plan.resident,
        start_interval: cache::ticks(device.launch.workgroup_interval.value() / share.of_die),
        timeline: effort.timeline,
        sets: model.sets.shifts(),
        stride: all_dies,
    };
    let mut machine = Machine::new(&setup, groups, memory);
    let mut time = machine.run();
    // Writes that nothing waits for end with the launch.
    time = time.max(machine.memory().drained());
    history.add(groups, line, regions, bytes);
    let simulated = time as f64 / TICKS as f64;
    let lengths = windows::lengths(groups, machine.window_ticks(), &device.range);
    let whole = match groups.len() <= plan.processors * plan.resident && lengths.all > 1.0 {
        // All run at the same time, so that none waits for the end of another one.
        true => lengths.end(&machine.spans) / TICKS as f64,
        false => simulated * lengths.all,
    };
    let (clocks, error) = extend(plan, &device.range, &machine.ends, (simulated, whole), sampled, &lengths);
    let launch = launch_microseconds(device, first);
    let microseconds = launch + clocks / device.chip.clock.value();
    let units = UnitKind::ALL.iter().filter(|u| **u != UnitKind::None);
    let resident_time = machine.resident_ticks() as f64 / plan.processors as f64 / time.max(1) as f64;
    Prediction {
        microseconds,
        clocks,
        launch,
        simulated,
        sampling_error: error,
        sample: (groups.len() as u64, recorded),
        windows: groups.iter().map(|g| g.windows.len()).max().unwrap_or(1).max(1),
        instructions,
        scale: if recorded == 0 { 1.0 } else { instructions as f64 / recorded as f64 },
        levels: machine.memory().counts(&device.memory.name, time),
        units: units.map(|unit| (*unit, machine.unit_busy(*unit, time))).collect(),
        waves: resident_time,
        unclassified: unclassified(program, arch, &code, &machine.counts),
        timeline: std::mem::take(&mut machine.timeline),
        counts: std::mem::take(&mut machine.counts),
        footprint: bytes,
    }
}

/// Extends the time of the sample to all workgroups of a processor: its clocks as they were simulated, and as they are with
/// whole waves. Returns clocks and the relative standard error.
fn extend(
    plan: &LaunchPlan,
    range: &Range,
    ends: &[u64],
    (simulated, whole): (f64, f64),
    sampled: f64,
    lengths: &Lengths,
) -> (f64, f64) {
    let (length, cut) = (lengths.all, lengths.error);
    let each = plan.of_die as f64 / plan.active as f64;
    let own = sampled / plan.processors as f64;
    if each <= own * 1.001 {
        return (whole, cut);
    }
    // After the first round, workgroups end at a steady rate.
    let mut ends: Vec<f64> = ends.iter().map(|t| *t as f64 / TICKS as f64).collect();
    ends.sort_by(f64::total_cmp);
    let round = plan.resident * plan.processors;
    let rate = |from: usize, to: usize| (ends[to] - ends[from]) / (to - from).max(1) as f64;
    let (slope, error) = if ends.len() > round + round / 2 && ends.len() >= 4 {
        // A round begins and ends together, so whole rounds are compared.
        let first = round.min(ends.len() / 2) - 1;
        let last = ends.len() - 1;
        let middle = first + (last - first) / 2;
        let slope = rate(first, last);
        let halves = [rate(first, middle.max(first + 1)), rate(middle.min(last - 1), last)];
        let error = (halves[0] - halves[1]).abs() / 2.0 / slope.max(1e-9) / 2f64.sqrt();
        (slope * plan.processors as f64, error)
    } else {
        (simulated / own, range.one_round.value())
    };
    let all = whole + (each - own) * slope * length;
    let error = error * (all - whole) / all.max(1.0);
    (all, error.hypot(cut).min(1.0))
}

/// Returns the microseconds of a copy of `bytes` bytes: within the device, through its caches and its memory, or between
/// host and device. `first` as for [`predict`].
pub fn copy_microseconds(device: &DeviceCost, bytes: u64, within: bool, first: bool) -> f64 {
    let (bytes, launch) = (bytes as f64, &device.launch);
    if !within {
        return launch.host_copy_first.value() + bytes / (launch.host_copy.value().max(1e-9) * 1e3);
    }
    // Read and written.
    let traffic = 2.0 * bytes;
    let last = device.caches.iter().rfind(|c| c.scope == Scope::Device);
    let clock = device.chip.clock.value();
    let memory = traffic / (device.memory.bandwidth.value() * device.memory.efficiency.value() * 1e3);
    let time = match last {
        Some(cache) => {
            let share = cache::resident_share(traffic, cache.bytes.value());
            let through = traffic / (cache.bytes_per_clock.value().max(1e-9) * clock);
            through.max(memory * (1.0 - share))
        }
        None => memory,
    };
    time + launch_microseconds(device, first)
}

/// Returns the microseconds that a launch takes beside its execution; `first` as for [`predict`].
pub fn launch_microseconds(device: &DeviceCost, first: bool) -> f64 {
    if first { device.launch.first.value() } else { device.launch.following.value() }
}

/// Returns the names of executed instructions without a class.
fn unclassified(program: &Program, arch: &ArchCost, code: &Code, counts: &[Counts]) -> Vec<&'static str> {
    let default = |index: &usize| counts[*index].executed > 0 && arch.is_default(code.costs[*index].class);
    let indices = (0..counts.len()).filter(default);
    let mut names: Vec<&str> =
        indices.map(|index| program.insts[index].instruction(program.arch.table()).name).collect();
    names.sort_unstable();
    names.dedup();
    names
}
