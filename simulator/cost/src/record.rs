//! Records what the waves of some workgroups execute, for the model: the instructions in order, the lines of their
//! memory accesses, and the passes of their LDS accesses.

use crate::data::ArchCost;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use wavesim_engine::observe::{Done, Observer, Step};
use wavesim_machine::exec::watch::{Access, Place};

/// The most parts of a line whose accesses are distinguished.
pub const SECTORS: u64 = 4;

/// Returns the bytes of a line, and of the parts of it that are transferred.
pub fn line_and_sector(cost: &ArchCost) -> (u64, u64) {
    let line = cost.vector_memory.line_bytes.count().max(SECTORS);
    (line, cost.vector_memory.segment_bytes.count().clamp(line / SECTORS, line))
}

/// An executed instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Index of the instruction in the program.
    pub index: u32,
    /// The first of its lines in [`Wave::lines`].
    pub first: u32,
    /// Number of its lines of global memory or scratch.
    pub lines: u16,
    /// Clocks of its LDS access, by its bank conflicts; 0 if it has none.
    pub lds_passes: u16,
    /// Bytes of all lanes of its accesses to global memory and scratch.
    pub bytes: u16,
    /// Active lanes before it.
    pub lanes: u8,
    /// The instruction jumped.
    pub jumped: bool,
    /// It stores to global memory or scratch.
    pub stores: bool,
    /// It loads from there.
    pub loads: bool,
}

/// A line of memory, and the sectors of it that an instruction accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line(u64);

impl Line {
    /// Returns the number of the line.
    pub fn number(self) -> u64 {
        self.0 >> SECTORS
    }

    /// Returns the number of accessed sectors.
    pub fn sectors(self) -> u64 {
        u64::from(self.mask().count_ones())
    }

    /// Returns the accessed sectors, the first one in the lowest bit.
    pub fn mask(self) -> u64 {
        self.0 & ((1 << SECTORS) - 1)
    }
}

/// What a wave has executed.
#[derive(Debug, Clone, Default)]
pub struct Wave {
    /// In order of execution.
    pub records: Vec<Record>,
    /// Lines of all records.
    pub lines: Vec<Line>,
}

/// What a workgroup has executed.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// The number of the workgroup, x fastest.
    pub number: u64,
    /// Its waves.
    pub waves: Vec<Wave>,
    /// Wave-instructions that it has executed, recorded or not.
    pub executed: u64,
    /// The parts of its run that were recorded.
    pub windows: Vec<Window>,
}

/// A part of the run of a workgroup that was recorded. It stands for what follows it until the next one, too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Window {
    /// Wave-instructions that the workgroup had executed before.
    pub executed: u64,
    /// By wave: the index of its first record of the part.
    pub starts: Vec<u32>,
}

impl Group {
    /// Returns the number of recorded instructions.
    pub fn recorded(&self) -> u64 {
        self.waves.iter().map(|w| w.records.len() as u64).sum()
    }
}

/// The workgroups to record, and how many instructions of each.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Numbers of the workgroups, x fastest.
    pub groups: Vec<u64>,
    /// Instructions of a workgroup that are recorded, without a gap or in parts.
    pub each: u64,
    /// The parts, once the length of a workgroup is known.
    pub windows: u64,
    /// By what the gap between two parts grows before that.
    pub growth: f64,
    /// Only these workgroups run.
    pub only: bool,
}

/// The observer.
pub struct Recorder {
    grid: [u64; 3],
    each: u64,
    windows: u64,
    growth: f64,
    /// The most instructions that a workgroup has executed so far.
    longest: u64,
    /// By position: how the recording goes on.
    progress: Vec<Progress>,
    sector_bytes: u64,
    /// Sectors of a line.
    sectors: u64,
    banks: Banks,
    wave_size: u64,
    scratch_bytes: u64,
    /// The position of a workgroup in `groups`.
    positions: BTreeMap<u64, usize>,
    groups: Vec<Group>,
    current: usize,
    only: bool,
    /// Instructions of workgroups that are not recorded.
    others: u64,
    exec: u64,
    scratchpad: Vec<u64>,
}

/// How the recording of a workgroup goes on.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// Instructions of the present part that are still to be recorded.
    left: u64,
    /// Instructions of the gap after it, and what is left of them.
    length: u64,
    gap: u64,
    /// Instructions of the parts after the first.
    part: u64,
    /// Gaps do not grow, since the length is known.
    even: bool,
}

/// The banks of LDS.
#[derive(Debug, Clone, Copy)]
pub struct Banks {
    /// Banks that a workgroup's access is spread over.
    count: u64,
    bank_bytes: u64,
    bytes_per_clock: u64,
}

impl Banks {
    /// Returns the banks of an architecture.
    pub fn of(cost: &ArchCost) -> Banks {
        let lds = &cost.lds;
        Banks {
            count: (lds.banks.count() / lds.groups.count().max(1)).max(1),
            bank_bytes: lds.bank_bytes.count().max(1),
            bytes_per_clock: lds.bytes_per_clock.count().max(1),
        }
    }

    /// Returns the clocks of an access, and those that conflicts add. Lanes that access the same word share it. Words in
    /// one bank follow each other; `words` is used for sorting.
    pub fn passes(&self, accesses: &[Access], words: &mut Vec<u64>) -> (u64, u64) {
        words.clear();
        let mut bytes = 0;
        for a in accesses.iter().filter(|a| a.place == Place::Lds && !a.outside) {
            for one in a.each() {
                let end = one.address + u64::from(one.size_bytes.max(1)) - 1;
                words.extend(one.address / self.bank_bytes..=end / self.bank_bytes);
                bytes += u64::from(one.size_bytes);
            }
        }
        if words.is_empty() {
            return (0, 0);
        }
        // An atomic's load and store are one access.
        let both = accesses.iter().any(|a| a.write) && accesses.iter().any(|a| !a.write);
        bytes /= if both { 2 } else { 1 };
        words.sort_unstable();
        words.dedup();
        let mut load = [0u64; 128];
        for word in words.iter() {
            load[(word % self.count.min(128)) as usize] += 1;
        }
        let most = load.iter().max().copied().unwrap_or(0);
        let distinct = (words.len() as u64).div_ceil(self.count);
        let transfer = bytes.div_ceil(self.bytes_per_clock).max(1);
        (transfer.max(most), most.saturating_sub(distinct))
    }
}

impl Recorder {
    /// Creates a recorder of a launch of `grid` workgroups of waves of `wave_size` lanes.
    pub fn new(plan: &Plan, grid: [u32; 3], wave_size: u32, scratch_bytes: u32, cost: &ArchCost) -> Recorder {
        let positions = plan.groups.iter().enumerate().map(|(at, number)| (*number, at)).collect();
        let group = |number: &u64| Group { number: *number, ..Group::default() };
        let (line_bytes, sector_bytes) = line_and_sector(cost);
        Recorder {
            grid: grid.map(u64::from),
            each: plan.each.max(1),
            windows: plan.windows.max(1),
            growth: plan.growth,
            longest: 0,
            progress: vec![Progress::default(); plan.groups.len()],
            sector_bytes,
            sectors: (line_bytes / sector_bytes).max(1),
            banks: Banks::of(cost),
            wave_size: u64::from(wave_size),
            scratch_bytes: u64::from(scratch_bytes),
            positions,
            groups: plan.groups.iter().map(group).collect(),
            current: usize::MAX,
            only: plan.only,
            others: 0,
            exec: 0,
            scratchpad: Vec::new(),
        }
    }

    /// Returns what has been recorded, and the number of instructions of all workgroups: an estimate if only the recorded
    /// ones have run.
    pub fn finish(self) -> (Vec<Group>, u64) {
        let recorded: u64 = self.groups.iter().map(|g| g.executed).sum();
        if self.only {
            let all = self.grid.iter().product::<u64>() as f64 / self.groups.len().max(1) as f64;
            return (self.groups, (recorded as f64 * all).round() as u64);
        }
        (self.groups, recorded + self.others)
    }

    /// Decides how a workgroup is recorded: as a whole, if earlier ones were short enough; in parts from its beginning to
    /// its end, if they were too long; otherwise from its beginning, and then in parts with growing gaps.
    fn begin(&self) -> Progress {
        let part = (self.each / self.windows).max(1);
        if self.longest <= self.each {
            return Progress { left: self.each, length: part, gap: part, part, even: false };
        }
        let gap = (self.longest - part * self.windows).div_ceil((self.windows - 1).max(1)).max(1);
        Progress { left: part, length: gap, gap, part, even: true }
    }

    /// A workgroup has run without records for a while.
    fn pass(&mut self, at: usize, executed: u64) {
        let (group, progress) = (&mut self.groups[at], &mut self.progress[at]);
        progress.gap = progress.gap.saturating_sub(executed);
        if self.windows == 1 {
            progress.gap = u64::MAX;
        } else if progress.gap == 0 {
            if !progress.even || group.windows.len() as u64 >= self.windows {
                progress.length = (progress.length as f64 * self.growth).ceil() as u64;
            }
            progress.gap = progress.length;
            progress.left = progress.part;
            let starts = group.waves.iter().map(|wave| wave.records.len() as u32).collect();
            group.windows.push(Window { executed: group.executed, starts });
        }
    }

    fn position(&self, workgroup: [u32; 3]) -> Option<usize> {
        let [x, y, z] = workgroup.map(u64::from);
        self.positions.get(&(x + self.grid[0] * (y + self.grid[1] * z))).copied()
    }

    /// Appends the lines of an instruction's accesses.
    fn lines(&mut self, step: &Step<'_>, accesses: &[Access]) -> (u32, u16, bool, bool) {
        self.scratchpad.clear();
        let (mut loads, mut stores) = (false, false);
        for a in accesses.iter().filter(|a| !a.outside && matches!(a.place, Place::Global | Place::Scratch)) {
            loads |= !a.write;
            stores |= a.write;
            if a.place == Place::Global && (a.stride == a.size_bytes || a.lanes == 1) {
                push(&mut self.scratchpad, a.address, a.len_bytes(), self.sector_bytes);
                continue;
            }
            for one in a.each() {
                let address = match a.place {
                    // Scratch is swizzled: a dword of all lanes is consecutive, above all global memory.
                    Place::Scratch => {
                        let lane = u64::from(one.lane.unwrap_or(0));
                        let wave = self.positions.len() as u64 * u64::from(step.wave.id);
                        let dword = one.address / 4 * self.wave_size + lane;
                        (1 << 58) + wave * self.scratch_bytes * self.wave_size + dword * 4
                    }
                    _ => one.address,
                };
                push(&mut self.scratchpad, address, u64::from(one.size_bytes), self.sector_bytes);
            }
        }
        self.scratchpad.sort_unstable();
        self.scratchpad.dedup();
        let lines = &mut self.groups[self.current].waves[step.wave.id as usize].lines;
        let first = lines.len();
        for sector in &self.scratchpad {
            let (number, bit) = (sector / self.sectors, 1u64 << (sector % self.sectors));
            match lines[first..].last_mut().filter(|line| line.number() == number) {
                Some(line) => line.0 |= bit,
                None => lines.push(Line(number << SECTORS | bit)),
            }
        }
        (first as u32, (lines.len() - first).min(usize::from(u16::MAX)) as u16, loads, stores)
    }
}

/// Appends the sectors of a byte range.
fn push(sectors: &mut Vec<u64>, address: u64, bytes: u64, sector_bytes: u64) {
    let end = address + bytes.max(1) - 1;
    sectors.extend(address / sector_bytes..=end / sector_bytes);
}

impl Observer for Recorder {
    fn observed_instructions(&mut self, workgroup: [u32; 3]) -> u64 {
        let Some(at) = self.position(workgroup) else { return 0 };
        if self.groups[at].windows.is_empty() {
            self.progress[at] = self.begin();
            self.groups[at].windows.push(Window::default());
        }
        self.progress[at].left
    }

    fn unobserved_instructions(&mut self, workgroup: [u32; 3]) -> u64 {
        self.position(workgroup).map_or(u64::MAX, |at| self.progress[at].gap)
    }

    fn next_workgroup(&mut self, number: u64) -> u64 {
        if self.only {
            self.positions.range(number..).next().map_or(u64::MAX, |(next, _)| *next)
        } else {
            number
        }
    }

    fn ran_unobserved(&mut self, workgroup: [u32; 3], executed: u64, _ended: bool) {
        match self.position(workgroup) {
            Some(at) => {
                self.groups[at].executed += executed;
                self.longest = self.longest.max(self.groups[at].executed);
                self.pass(at, executed);
            }
            None => self.others += executed,
        }
    }

    fn group_ended(&mut self, workgroup: [u32; 3]) {
        if let Some(at) = self.position(workgroup) {
            self.longest = self.longest.max(self.groups[at].executed);
        }
    }

    fn group_started(&mut self, workgroup: [u32; 3], waves: usize) {
        self.group_resumed(workgroup);
        if let Some(group) = self.groups.get_mut(self.current) {
            group.waves = vec![Wave::default(); waves];
            group.windows = vec![Window { executed: 0, starts: vec![0; waves] }];
        }
    }

    fn group_resumed(&mut self, workgroup: [u32; 3]) {
        self.current = self.position(workgroup).unwrap_or(usize::MAX);
    }

    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        self.exec = step.wave.exec();
        ControlFlow::Continue(())
    }

    fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        let Some(group) = self.groups.get_mut(self.current) else {
            self.others += 1;
            return;
        };
        group.executed += 1;
        let progress = &mut self.progress[self.current];
        progress.left = progress.left.saturating_sub(1);
        let mut record = Record {
            index: step.index as u32,
            first: 0,
            lines: 0,
            lds_passes: 0,
            bytes: 0,
            lanes: self.exec.count_ones() as u8,
            jumped: done.jumped,
            stores: false,
            loads: false,
        };
        if !done.accesses.is_empty() {
            let (passes, _) = self.banks.passes(done.accesses, &mut self.scratchpad);
            record.lds_passes = passes.min(u64::from(u16::MAX)) as u16;
            if done.accesses.iter().any(|a| a.place != Place::Lds) {
                (record.first, record.lines, record.loads, record.stores) = self.lines(step, done.accesses);
                let memory = done.accesses.iter().filter(|a| a.place != Place::Lds && !a.outside);
                let bytes: u64 = memory.map(|a| u64::from(a.size_bytes) * u64::from(a.lanes)).sum();
                record.bytes = bytes.min(u64::from(u16::MAX)) as u16;
            }
        }
        self.groups[self.current].waves[step.wave.id as usize].records.push(record);
    }
}
