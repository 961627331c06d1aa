//! The simulated processors: waves issue their recorded instructions, oldest ready first, to units that are busy for a
//! while, and wait for results, counters and barriers.

use super::cache::{Queue, Tags, ticks};
use super::code::{BarrierPart, Code};
use super::memory::MemorySystem;
use super::stall::{Counts, Slice, Stall, WindowTicks};
use super::steps::Steps;
use crate::class::REGISTERS;
use crate::data::{ArchCost, UnitKind};
use crate::record::{Group, Record};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use wavesim_machine::exec::effects::Class;

/// A resident wave.
struct Wave<'r> {
    records: &'r [Record],
    group: usize,
    /// Index in its workgroup.
    number: usize,
    /// Index of the next record.
    next: usize,
    processor: usize,
    simd: usize,
    /// When it can issue next.
    ready: u64,
    /// Why not earlier.
    reason: Stall,
    /// When each register is available.
    registers: Box<[u64; REGISTERS]>,
    /// By counter: when each outstanding operation completes, in order of issue.
    outstanding: Vec<VecDeque<u64>>,
    /// The line of code of its last instruction.
    fetched: u64,
    waiting: bool,
    /// The clause that it is in.
    clause: Option<Running>,
    /// When another wave's clause has ended that it waited for.
    claimed: u64,
    /// The part of its workgroup's run that it is in, and when that began.
    window: (usize, u64),
}

/// A clause that a wave is in (RDNA3 manual, *Instruction Clauses*).
#[derive(Clone, Copy)]
struct Running {
    /// The unit of its first instruction; none before that, and after a break.
    unit: Option<UnitKind>,
    /// Instructions until its end, and until the next break.
    left: usize,
    until_break: usize,
    part: usize,
}

/// What keeps a unit for the clause of a wave.
#[derive(Clone, Default)]
struct Claim {
    holder: Option<usize>,
    /// Waves that wait for its end.
    parked: Vec<usize>,
}

/// A resident workgroup.
struct Resident {
    alive: usize,
    arrived: usize,
    /// Waves that wait at the barrier.
    waiting: Vec<usize>,
    /// Barriers that are complete, for waits that come after.
    complete: u64,
    /// By wave: barriers that it has signalled.
    signalled: Vec<u64>,
    processor: usize,
    remaining: usize,
}

/// A SIMD.
#[derive(Clone, Default)]
struct Simd {
    units: [Queue; UnitKind::ALL.len()],
    claims: [Claim; UnitKind::ALL.len()],
    waves: usize,
}

/// A workgroup processor or compute unit.
struct Processor {
    simds: Vec<Simd>,
    /// Units that SIMDs share, by port.
    ports: Vec<[Queue; UnitKind::ALL.len()]>,
    claims: Vec<[Claim; UnitKind::ALL.len()]>,
    code: Tags,
    groups: usize,
}

/// How the machine is set up.
pub struct Setup<'a> {
    /// The instructions.
    pub code: &'a Code,
    /// The costs.
    pub cost: &'a ArchCost,
    /// Simulated processors.
    pub processors: usize,
    /// Workgroups that a processor holds.
    pub resident: usize,
    /// Ticks between the starts of two workgroups.
    pub start_interval: u64,
    /// Slices of the timeline to keep.
    pub timeline: usize,
    /// Shifts of the terms that select the set of a line.
    pub sets: [u32; 3],
    /// The distance of the numbers of workgroups that follow each other on a die.
    pub stride: u64,
}

/// The machine.
pub struct Machine<'a, 'r> {
    setup: &'a Setup<'a>,
    groups: &'r [Group],
    memory: MemorySystem,
    processors: Vec<Processor>,
    waves: Vec<Wave<'r>>,
    residents: Vec<Option<Resident>>,
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    next_group: usize,
    last_start: u64,
    now: u64,
    /// Counts by instruction.
    pub counts: Vec<Counts>,
    /// When each workgroup ended, in order of ends.
    pub ends: Vec<u64>,
    /// By workgroup: when it started, and when it ended.
    pub spans: Vec<(u64, u64)>,
    /// Parts of the waves' time, for a timeline.
    pub timeline: Vec<Slice>,
    resident_ticks: u64,
    window_ticks: Vec<WindowTicks>,
    steps: Steps,
    per_port: usize,
    wave_interval: u64,
    unit_interval: u64,
}

impl<'a, 'r> Machine<'a, 'r> {
    /// Creates a machine that will run the groups.
    pub fn new(setup: &'a Setup<'a>, groups: &'r [Group], memory: MemorySystem) -> Machine<'a, 'r> {
        let cost = setup.cost;
        let simds = cost.processor.simds.count().max(1) as usize;
        let per_port = (cost.issue.simds_per_port.count().max(1) as usize).min(simds);
        let lines =
            cost.issue.instruction_cache_bytes.count() / cost.issue.instruction_line_bytes.count().max(1);
        let processor = || Processor {
            simds: vec![Simd::default(); simds],
            ports: vec![Default::default(); simds.div_ceil(per_port)],
            claims: vec![Default::default(); simds.div_ceil(per_port)],
            code: Tags::new(lines.max(1), cost.issue.instruction_ways.count(), setup.sets),
            groups: 0,
        };
        Machine {
            steps: Steps::of(groups, setup.stride),
            setup,
            groups,
            memory,
            processors: (0..setup.processors).map(|_| processor()).collect(),
            waves: Vec::new(),
            residents: Vec::new(),
            queue: BinaryHeap::new(),
            next_group: 0,
            last_start: 0,
            now: 0,
            counts: vec![Counts::default(); setup.code.insts.len()],
            ends: Vec::new(),
            spans: Vec::new(),
            timeline: Vec::new(),
            resident_ticks: 0,
            window_ticks: groups.iter().map(|g| WindowTicks(vec![0; g.windows.len().max(1)])).collect(),
            per_port,
            wave_interval: ticks(cost.issue.wave_interval.value()),
            unit_interval: ticks(cost.issue.unit_interval.value()),
        }
    }

    /// Runs all workgroups; returns when the last instruction has completed.
    pub fn run(&mut self) -> u64 {
        self.start_groups(0);
        while let Some(Reverse((time, wave))) = self.queue.pop() {
            self.now = time;
            self.issue(wave);
        }
        let last = self.waves.iter().map(|w| w.ready).max().unwrap_or(0);
        last.max(self.ends.iter().copied().max().unwrap_or(0))
    }

    /// Returns the memory system.
    pub fn memory(&self) -> &MemorySystem {
        &self.memory
    }

    /// Returns the ticks of waves that were resident.
    pub fn resident_ticks(&self) -> u64 {
        self.resident_ticks
    }

    /// Returns by workgroup the ticks of the recorded parts of its run.
    pub fn window_ticks(&self) -> &[WindowTicks] {
        &self.window_ticks
    }

    /// Returns the share of `time` for which a unit was busy, of the busiest processor.
    pub fn unit_busy(&self, unit: UnitKind, time: u64) -> f64 {
        let at = index_of(unit);
        let processor = |p: &Processor| match is_shared(unit) {
            true => p.ports.iter().map(|port| port[at].busy).sum::<u64>() as f64 / p.ports.len() as f64,
            false => p.simds.iter().map(|s| s.units[at].busy).sum::<u64>() as f64 / p.simds.len() as f64,
        };
        let all: f64 = self.processors.iter().map(processor).sum();
        if time == 0 { 0.0 } else { all / self.processors.len() as f64 / time as f64 }
    }

    /// Starts workgroups on the processors that have room, the least loaded first.
    fn start_groups(&mut self, now: u64) {
        while self.next_group < self.groups.len() {
            let room = self.processors.iter().enumerate().filter(|(_, p)| p.groups < self.setup.resident);
            let Some((processor, _)) = room.min_by_key(|(_, p)| p.groups) else { return };
            let group = self.next_group;
            self.next_group += 1;
            let start = match self.last_start {
                0 if group == 0 => now,
                last => now.max(last + self.setup.start_interval),
            };
            self.last_start = start;
            self.start_group(group, processor, start + ticks(self.setup.cost.issue.wave_start.value()));
        }
    }

    fn start_group(&mut self, group: usize, processor: usize, start: u64) {
        let groups = self.groups;
        let waves = &groups[group].waves;
        self.processors[processor].groups += 1;
        self.spans.push((start, start));
        self.residents.push(Some(Resident {
            alive: waves.len(),
            arrived: 0,
            waiting: Vec::new(),
            complete: 0,
            signalled: vec![0; waves.len()],
            processor,
            remaining: waves.len(),
        }));
        for (number, wave) in waves.iter().enumerate() {
            let simds = &mut self.processors[processor].simds;
            let simd = (0..simds.len()).min_by_key(|at| simds[*at].waves).unwrap_or(0);
            simds[simd].waves += 1;
            let index = self.waves.len();
            self.waves.push(Wave {
                records: &wave.records,
                group,
                number,
                next: 0,
                processor,
                simd,
                ready: start,
                reason: Stall::None,
                registers: Box::new([0; REGISTERS]),
                outstanding: vec![VecDeque::new(); self.setup.code.counters.len()],
                fetched: u64::MAX,
                waiting: false,
                clause: None,
                claimed: 0,
                window: (0, start),
            });
            self.resident_ticks = self.resident_ticks.wrapping_sub(start);
            self.queue.push(Reverse((start, index)));
        }
    }

    /// Issues the next instruction of a wave.
    fn issue(&mut self, index: usize) {
        let code = self.setup.code;
        let Some(record) = self.waves[index].records.get(self.waves[index].next).copied() else {
            return self.end_wave(index);
        };
        let inst = &code.insts[record.index as usize];
        let base = self.waves[index].ready;
        self.enter_window(index, base);
        let claim = self.claim(index, inst.unit);
        if claim.holder.is_some_and(|holder| holder != index) {
            claim.parked.push(index);
            return;
        }
        let mut time = base;
        let mut stall = Stall::None;
        // Each reason counts for the time by which it is later than those before.
        let mut parts = [0; Stall::NAMES.len()];
        let mut later = |at: u64, why: Stall| {
            if at > time {
                if let Some(part) = why.index() {
                    parts[part] += at - time;
                }
                (time, stall) = (at, why);
            }
        };
        // Instruction fetch.
        let wave = &mut self.waves[index];
        if wave.fetched != inst.fetch {
            wave.fetched = inst.fetch;
            let cache = &mut self.processors[wave.processor].code;
            let ready = match cache.find(inst.fetch) {
                Some(entry) => entry.ready,
                None => {
                    let ready = base + ticks(self.setup.cost.issue.instruction_miss.value());
                    cache.insert(inst.fetch, ready);
                    ready
                }
            };
            later(ready, Stall::Fetch);
        }
        // Results of arithmetic.
        let needed = inst.uses.iter().map(|r| wave.registers[usize::from(*r)]).max().unwrap_or(0);
        // A result must not arrive before an older one of the same register.
        let before = inst.writes.iter().map(|r| wave.registers[usize::from(*r)]).max().unwrap_or(0);
        later(needed.max(before.saturating_sub(inst.latency)), Stall::Dependency);
        // Counters.
        for (counter, left) in &inst.waits {
            let queue = &mut wave.outstanding[usize::from(*counter)];
            while queue.len() > *left as usize {
                let Some(done) = queue.pop_front() else { break };
                later(
                    done,
                    Stall::of_counter(code.counters[usize::from(*counter)], self.setup.code, record.index),
                );
            }
        }
        // Units.
        let shared = is_shared(inst.unit);
        let port = wave.simd / self.per_port;
        let (processor, simd) = (wave.processor, wave.simd);
        let at = index_of(inst.unit);
        let unit = match shared {
            true => &mut self.processors[processor].ports[port][at],
            false => &mut self.processors[processor].simds[simd].units[at],
        };
        later(unit.free().max(wave.claimed), Stall::Unit(inst.unit));
        let busy = inst.busy.max(if inst.unit == UnitKind::None { 0 } else { self.unit_interval });
        let mut occupied = busy;
        let mut done = time + inst.latency;
        match inst.group {
            Class::Lds if record.lds_passes > 0 => {
                occupied = occupied.max(ticks(f64::from(record.lds_passes)));
                let atomic = if inst.atomic {
                    ticks(self.setup.cost.lds.atomic_clocks.value()) * u64::from(record.lds_passes)
                } else {
                    0
                };
                occupied += atomic;
                done = time + inst.latency + occupied;
            }
            Class::Vmem | Class::Flat | Class::Scratch | Class::Smem => {
                if record.lines > 0 {
                    let (start, completed, own) = self.access(index, &record, time);
                    if start > time {
                        parts[Stall::Outstanding.index().unwrap_or(0)] += start - time;
                        (time, stall) = (start, Stall::Outstanding);
                    }
                    occupied = occupied.max(own);
                    done = completed;
                }
                if record.lds_passes > 0 {
                    occupied = occupied.max(ticks(f64::from(record.lds_passes)));
                    done = done.max(time + inst.latency);
                }
            }
            _ => {}
        }
        if inst.unit != UnitKind::None {
            let unit = match shared {
                true => &mut self.processors[processor].ports[port][at],
                false => &mut self.processors[processor].simds[simd].units[at],
            };
            unit.take(time, occupied);
        }
        let wave = &mut self.waves[index];
        for counter in &inst.counted {
            let queue = &mut wave.outstanding[usize::from(*counter)];
            // Operations of one kind return in order; scalar loads complete when all have.
            let completed = queue.back().map_or(done, |before| done.max(*before));
            queue.push_back(completed);
        }
        for register in &inst.writes {
            wave.registers[usize::from(*register)] = time + inst.latency;
        }
        let counts = &mut self.counts[record.index as usize];
        counts.executed += 1;
        counts.lanes += u64::from(record.lanes);
        counts.lines += u64::from(record.lines);
        counts.passes += u64::from(record.lds_passes);
        counts.memory += u64::from(record.lines > 0);
        counts.stalls.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
        counts.issue += self.wave_interval;
        if time > base && self.timeline.len() < self.setup.timeline {
            self.timeline.push(Slice {
                processor,
                simd,
                wave: index,
                from: base,
                to: time,
                inst: record.index,
                stall,
            });
        }
        let mut next = time + self.wave_interval + inst.idle;
        if record.jumped {
            let taken = ticks(self.setup.cost.issue.branch_taken.value());
            next += taken;
            counts.add_stall(Stall::Branch, taken);
        }
        wave.next += 1;
        wave.ready = next;
        wave.reason = stall;
        match inst.clause {
            Some(clause) => {
                let until_break = if clause.part == 0 { clause.length } else { clause.part };
                wave.clause =
                    Some(Running { unit: None, left: clause.length, until_break, part: clause.part });
            }
            None => self.pass_clause(index, inst.unit, time + self.wave_interval),
        }
        match inst.barrier {
            BarrierPart::None => self.queue.push(Reverse((next, index))),
            part => self.barrier(index, part, next + inst.latency),
        }
    }

    /// Counts the time of a wave for the part of its workgroup's run that it is in.
    fn enter_window(&mut self, index: usize, now: u64) {
        let wave = &mut self.waves[index];
        let (windows, ticks) = (&self.groups[wave.group].windows, &mut self.window_ticks[wave.group].0);
        let ended = wave.next >= wave.records.len();
        let starts = |at: usize| windows.get(at).and_then(|w| w.starts.get(wave.number).copied());
        while starts(wave.window.0 + 1).is_some_and(|start| wave.next >= start as usize && !ended) {
            ticks[wave.window.0] += now - wave.window.1;
            wave.window = (wave.window.0 + 1, now);
        }
        if ended {
            ticks[wave.window.0] += now - wave.window.1;
        }
    }

    /// Returns what may keep a unit of a wave's SIMD, or of its port, for another wave.
    fn claim(&mut self, index: usize, unit: UnitKind) -> &mut Claim {
        let wave = &self.waves[index];
        let processor = &mut self.processors[wave.processor];
        match is_shared(unit) {
            true => &mut processor.claims[wave.simd / self.per_port][index_of(unit)],
            false => &mut processor.simds[wave.simd].claims[index_of(unit)],
        }
    }

    /// A wave has issued an instruction of its clause, if it is in one: `next` is when another wave could issue.
    fn pass_clause(&mut self, index: usize, unit: UnitKind, next: u64) {
        let Some(mut running) = self.waves[index].clause else { return };
        if running.unit.is_none() && unit != UnitKind::None {
            running.unit = Some(unit);
            self.claim(index, unit).holder = Some(index);
        }
        running.left -= 1;
        running.until_break -= 1;
        if running.left == 0 || running.until_break == 0 {
            self.end_clause(running, index, next);
            (running.unit, running.until_break) = (None, running.part.max(1));
        }
        self.waves[index].clause = (running.left > 0).then_some(running);
    }

    /// Lets other waves issue after a clause, or a part of one.
    fn end_clause(&mut self, running: Running, index: usize, now: u64) {
        let Some(unit) = running.unit else { return };
        let claim = self.claim(index, unit);
        claim.holder = None;
        for parked in std::mem::take(&mut claim.parked) {
            let wave = &mut self.waves[parked];
            wave.claimed = wave.claimed.max(now);
            self.queue.push(Reverse((wave.ready.max(now), parked)));
        }
    }

    /// Accesses memory; returns when the access starts, when it completes, and for how long the unit is busy.
    fn access(&mut self, index: usize, record: &Record, time: u64) -> (u64, u64, u64) {
        let wave = &self.waves[index];
        let inst = &self.setup.code.insts[record.index as usize];
        let groups = self.groups;
        let lines = &groups[wave.group].waves[wave.number].lines;
        let first = record.first as usize;
        let lines = &lines[first..(first + usize::from(record.lines)).min(lines.len())];
        let processor = wave.processor;
        let vm = &self.setup.cost.vector_memory;
        let scalar = inst.group == Class::Smem;
        let per_line = ticks(1.0 / vm.lines_per_clock.value().max(1e-3));
        let addresses = ticks(f64::from(record.lanes) / vm.lanes_per_clock.value().max(1e-3));
        self.memory.set_step(self.steps.step(wave.number, wave.next));
        let start = self.memory.admit(processor, time);
        let mut done = start;
        for (number, line) in lines.iter().enumerate() {
            let at = start + per_line * number as u64;
            let completed = if inst.atomic {
                let lanes = u64::from(record.lanes).div_ceil(lines.len() as u64);
                self.memory.atomic(processor, *line, lanes, at)
            } else if record.stores {
                self.memory.store(processor, *line, at)
            } else {
                self.memory.load(processor, *line, at, scalar)
            };
            done = done.max(completed);
        }
        let own = match scalar {
            true => 0,
            false => {
                let returned = if record.stores && !record.loads { 0 } else { u64::from(record.bytes) };
                let returned = ticks(returned as f64 / vm.return_bytes_per_clock.value().max(1e-3));
                addresses.max(per_line * lines.len() as u64).max(self.memory.transfer(lines)).max(returned)
            }
        };
        (start, done, own)
    }

    /// A wave arrives at the barrier of its workgroup, or waits there.
    fn barrier(&mut self, index: usize, part: BarrierPart, time: u64) {
        let (group, number) = (self.waves[index].group, self.waves[index].number);
        let Some(resident) = &mut self.residents[group] else { return };
        self.waves[index].ready = time;
        if part != BarrierPart::Wait {
            resident.arrived += 1;
            resident.signalled[number] += 1;
        }
        let waits = part != BarrierPart::Signal && resident.signalled[number] > resident.complete;
        if waits {
            resident.waiting.push(index);
            self.waves[index].waiting = true;
        } else {
            self.queue.push(Reverse((time, index)));
        }
        self.release(group, time);
    }

    /// Releases the waves at a barrier at which all have arrived.
    fn release(&mut self, group: usize, time: u64) {
        let Some(resident) = &mut self.residents[group] else { return };
        if resident.alive == 0 || resident.arrived < resident.alive {
            return;
        }
        resident.arrived = 0;
        resident.complete += 1;
        for index in std::mem::take(&mut resident.waiting) {
            let wave = &mut self.waves[index];
            wave.waiting = false;
            let waited = time.saturating_sub(wave.ready);
            let last = wave.records[wave.next - 1].index;
            self.counts[last as usize].add_stall(Stall::Barrier, waited);
            if waited > 0 && self.timeline.len() < self.setup.timeline {
                let (processor, simd) = (wave.processor, wave.simd);
                let slice = Slice {
                    processor,
                    simd,
                    wave: index,
                    from: wave.ready,
                    to: time,
                    inst: last,
                    stall: Stall::Barrier,
                };
                self.timeline.push(slice);
            }
            wave.ready = wave.ready.max(time);
            self.queue.push(Reverse((wave.ready, index)));
        }
    }

    /// A wave has executed its last recorded instruction.
    fn end_wave(&mut self, index: usize) {
        let ready = self.waves[index].ready;
        self.enter_window(index, ready);
        // Its record ends in a clause.
        if let Some(running) = self.waves[index].clause.take() {
            self.end_clause(running, index, ready);
        }
        let wave = &mut self.waves[index];
        let time = wave.ready;
        // Frees the memory of a wave that is not needed any more.
        wave.outstanding = Vec::new();
        let (group, processor, simd) = (wave.group, wave.processor, wave.simd);
        self.resident_ticks = self.resident_ticks.wrapping_add(time);
        self.processors[processor].simds[simd].waves -= 1;
        let Some(resident) = &mut self.residents[group] else { return };
        resident.alive -= 1;
        resident.remaining -= 1;
        if resident.remaining > 0 {
            return self.release(group, time);
        }
        self.processors[resident.processor].groups -= 1;
        self.residents[group] = None;
        self.ends.push(time);
        self.spans[group].1 = time;
        self.start_groups(time);
    }
}

/// Units that the SIMDs of a port share.
fn is_shared(unit: UnitKind) -> bool {
    matches!(unit, UnitKind::Lds | UnitKind::Vmem | UnitKind::Smem | UnitKind::Export)
}

fn index_of(unit: UnitKind) -> usize {
    UnitKind::ALL.iter().position(|u| *u == unit).unwrap_or(0)
}
