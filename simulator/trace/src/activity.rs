//! What a run does to memory and over time, for pictures: who accessed each part of each allocation, how many lanes
//! of vector instructions were active, how many waves had not ended.

use serde_json::{Value, json};
use std::ops::ControlFlow;
use wavesim_engine::observe::{Done, Observer, Step};
use wavesim_machine::exec::effects::{self, Effects};
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::watch::{Access, Place};

/// Maximum number of parts of an allocation.
const PARTS: u64 = 1024;
/// Maximum number of intervals of time.
const INTERVALS: usize = 512;
/// Maximum number of workgroups that are listed for a part.
const GROUPS: usize = 4;

/// Accesses of a part of an allocation.
#[derive(Debug, Clone, Default)]
struct Part {
    loads: u64,
    stores: u64,
    /// The first workgroups that accessed it.
    groups: Vec<[u32; 3]>,
    /// More workgroups did.
    more: bool,
}

/// An allocation with the accesses of its parts.
#[derive(Debug)]
struct Region {
    name: String,
    /// `None` for LDS.
    address: Option<u64>,
    bytes: u64,
    /// Bytes of a part.
    part: u64,
    parts: Vec<Part>,
}

impl Region {
    fn new(name: &str, address: Option<u64>, bytes: u64) -> Region {
        let part = bytes.div_ceil(PARTS).next_multiple_of(4).max(4);
        let parts = vec![Part::default(); bytes.div_ceil(part) as usize];
        Region { name: name.to_string(), address, bytes, part, parts }
    }

    fn record(&mut self, offset: u64, bytes: u64, write: bool, group: [u32; 3]) {
        let last = (offset + bytes.max(1) - 1).min(self.bytes.saturating_sub(1));
        for index in offset / self.part..=last / self.part {
            let Some(part) = self.parts.get_mut(index as usize) else { return };
            *(if write { &mut part.stores } else { &mut part.loads }) += 1;
            if part.groups.last() != Some(&group) && !part.groups.contains(&group) {
                match part.groups.len() < GROUPS {
                    true => part.groups.push(group),
                    false => part.more = true,
                }
            }
        }
    }

    fn json(&self) -> Value {
        let touched = self.parts.iter().enumerate().filter(|(_, p)| p.loads + p.stores > 0);
        let bins: Vec<Value> =
            touched.map(|(at, p)| json!([at, p.loads, p.stores, p.groups, p.more])).collect();
        json!({
            "name": self.name, "address": self.address.map(|a| format!("{a:x}")), "bytes": self.bytes, "bin": self.part,
            "bins": bins,
        })
    }
}

/// An interval of time.
#[derive(Debug, Clone, Copy, Default)]
struct Interval {
    instructions: u64,
    /// Active lanes, and all lanes, of vector instructions.
    active: u64,
    lanes: u64,
    /// The most waves that had not ended.
    waves: u64,
}

/// Records the activity of a run.
pub struct Activity<'p> {
    program: &'p Program,
    effects: Vec<Effects>,
    /// By address.
    regions: Vec<Region>,
    lds: Region,
    /// Accesses outside the regions.
    elsewhere: u64,
    time: Vec<Interval>,
    /// Instructions of an interval.
    interval: u64,
    executed: u64,
    waves: u64,
    /// Waves of each running workgroup that have not ended.
    running: Vec<([u32; 3], u64)>,
    exec: u64,
    counts: Vec<u64>,
    keeps_going: bool,
}

impl<'p> Activity<'p> {
    /// Records a run. `regions` are the allocations as name, address and size in bytes; `lds_bytes` is the size of
    /// a workgroup's LDS. With `keeps_going`, accesses outside all memory do not end the run.
    pub fn new<'a>(
        program: &'p Program,
        wave_size: u32,
        regions: impl IntoIterator<Item = (&'a str, u64, u64)>,
        lds_bytes: u64,
        keeps_going: bool,
    ) -> Activity<'p> {
        let mut regions: Vec<Region> = regions
            .into_iter()
            .map(|(name, address, bytes)| Region::new(name, Some(address), bytes))
            .collect();
        regions.sort_by_key(|region| region.address);
        Activity {
            effects: effects::table(program, wave_size),
            counts: vec![0; program.insts.len()],
            program,
            regions,
            lds: Region::new("LDS of a workgroup", None, lds_bytes),
            elsewhere: 0,
            time: Vec::new(),
            interval: 1,
            executed: 0,
            waves: 0,
            running: Vec::new(),
            exec: 0,
            keeps_going,
        }
    }

    /// Returns what was recorded: `allocations` with `bins` (index, loads, stores, first workgroups, whether there are
    /// more), `time` with `interval` instructions each (instructions, active lanes, all lanes, waves), and
    /// `instructions` with their numbers of executions.
    pub fn json(&self) -> Value {
        let lds = (self.lds.bytes > 0).then_some(&self.lds);
        let time: Vec<Value> =
            self.time.iter().map(|t| json!([t.instructions, t.active, t.lanes, t.waves])).collect();
        let executed = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let instructions: Vec<Value> = executed
            .map(|(index, count)| {
                let pc = self.program.pcs[index];
                let at = self.program.location(pc).unwrap_or_default();
                json!({
                    "address": format!("{:x}", self.program.address(pc)), "file": at.file.as_deref(), "line": at.line,
                    "text": self.program.text(index), "count": count,
                })
            })
            .collect();
        json!({
            "allocations": self.regions.iter().chain(lds).map(Region::json).collect::<Vec<_>>(),
            "elsewhere": self.elsewhere, "interval": self.interval, "time": time, "instructions": instructions,
        })
    }

    fn access(&mut self, access: &Access, group: [u32; 3]) {
        let bytes = access.size_bytes.into();
        match access.place {
            Place::Lds => self.lds.record(access.address, bytes, access.write, group),
            Place::Global => {
                let after = self.regions.partition_point(|r| r.address.unwrap_or(0) <= access.address);
                let region = after.checked_sub(1).map(|at| &mut self.regions[at]);
                let offset = |r: &Region| access.address - r.address.unwrap_or(0);
                match region.filter(|r| offset(r) < r.bytes) {
                    Some(region) => region.record(offset(region), bytes, access.write, group),
                    None => self.elsewhere += 1,
                }
            }
            // Of the lane alone.
            _ => {}
        }
    }

    /// Returns the present interval. If there are too many, pairs of them become one.
    fn now(&mut self) -> &mut Interval {
        let index = (self.executed / self.interval) as usize;
        if index >= INTERVALS {
            let halves = self.time.chunks(2).map(|pair| {
                pair.iter().fold(Interval::default(), |sum, t| Interval {
                    instructions: sum.instructions + t.instructions,
                    active: sum.active + t.active,
                    lanes: sum.lanes + t.lanes,
                    waves: sum.waves.max(t.waves),
                })
            });
            self.time = halves.collect();
            self.interval *= 2;
            return self.now();
        }
        if index >= self.time.len() {
            self.time.resize(index + 1, Interval::default());
        }
        &mut self.time[index]
    }
}

impl Observer for Activity<'_> {
    fn group_started(&mut self, workgroup: [u32; 3], waves: usize) {
        self.waves += waves as u64;
        self.running.push((workgroup, waves as u64));
    }

    fn group_ended(&mut self, workgroup: [u32; 3]) {
        if let Some(at) = self.running.iter().position(|(group, _)| *group == workgroup) {
            let (_, left) = self.running.swap_remove(at);
            self.waves = self.waves.saturating_sub(left);
        }
    }

    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        self.exec = step.wave.exec();
        ControlFlow::Continue(())
    }

    fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        let (exec, waves) = (self.exec, self.waves);
        let vector = self.effects[step.index].class.is_vector();
        let now = self.now();
        now.instructions += 1;
        now.waves = now.waves.max(waves);
        if vector {
            now.active += u64::from(exec.count_ones());
            now.lanes += u64::from(step.wave.size());
        }
        self.executed += 1;
        self.counts[step.index] += 1;
        for access in done.accesses.iter().flat_map(|a| a.each()) {
            self.access(&access, step.wave.workgroup);
        }
        if matches!(done.event, Some(Event::EndPgm))
            && let Some((_, left)) = self.running.iter_mut().find(|(group, _)| *group == step.wave.workgroup)
            && *left > 0
        {
            *left -= 1;
            self.waves -= 1;
        }
    }

    fn performed(&mut self, step: &Step<'_>, done: &Done<'_>) {
        for access in done.accesses.iter().flat_map(|a| a.each()) {
            self.access(&access, step.wave.workgroup);
        }
    }

    fn keeps_going(&self) -> bool {
        self.keeps_going
    }
}
