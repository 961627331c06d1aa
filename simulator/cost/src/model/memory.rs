//! The memory system of the simulated processors: address translation, caches, and the memory behind them, with a share
//! of the bandwidths that they have in common with the processors that are not simulated.

use super::cache::{Queue, Tags, fraction_of, resident_share, ticks};
use super::channels::Channels;
use super::footprint::Footprint;
use crate::data::{Cache, Path, Quantity, Scope};
use crate::profile::Costs;
use crate::record::{Line, line_and_sector};
use foldhash::HashSet;

/// A level of caches.
struct Level {
    latency: u64,
    bytes_per_tick: f64,
    capacity: f64,
    /// One for each processor, or a single one.
    tags: Vec<Tags>,
    queues: Vec<Queue>,
    /// Of loads alone, with their bytes per tick, if these have a limit.
    loads: Option<(Queue, f64)>,
    hits: u64,
    misses: u64,
    of_processor: bool,
}

/// A level of address translation.
struct Translation {
    page_lines: u64,
    miss: u64,
    interval: u64,
    reach: f64,
    tags: Vec<Tags>,
    queues: Vec<Queue>,
    /// Pages that the sample has used.
    seen: HashSet<u64>,
    /// Expected misses.
    misses: f64,
    of_processor: bool,
}

/// What a level has done.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LevelCount {
    /// The name of the cache.
    pub name: String,
    /// Lines found.
    pub hits: u64,
    /// Lines not found.
    pub misses: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// The share of the time for which its busiest instance was transferring.
    pub busy: f64,
}

/// The memory system.
pub struct MemorySystem {
    line_bytes: u64,
    sector_bytes: u64,
    atomic: u64,
    store_latency: u64,
    /// Vector caches of processors, then those of the die; the last is of the device, if `has_last`.
    levels: Vec<Level>,
    scalar: Option<Level>,
    names: Vec<String>,
    has_last: bool,
    translations: Vec<Translation>,
    /// Per processor: when its last translation was complete.
    translated: Vec<u64>,
    channels: Channels,
    memory_latency: u64,
    /// Accesses to memory, and their bytes.
    memory: (u64, u64),
    shares: Shares,
    /// Lines touched before.
    seen: HashSet<u64>,
    footprint: Footprint,
    /// Lines outstanding, per processor: when each of the last ones returns.
    outstanding: Vec<Vec<u64>>,
    next: Vec<usize>,
}

/// The results of [`resident_share`], of which a launch needs few.
#[derive(Default)]
struct Shares(Vec<((f64, f64), f64)>);

impl Shares {
    fn of(&mut self, bytes: f64, capacity: f64) -> f64 {
        if let Some((_, share)) = self.0.iter().find(|(key, _)| *key == (bytes, capacity)) {
            return *share;
        }
        let share = resident_share(bytes, capacity);
        self.0.push(((bytes, capacity), share));
        share
    }
}

/// How much of the device is simulated.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    /// Simulated processors, all of one die.
    pub processors: usize,
    /// The part of the active processors of the die.
    pub of_die: f64,
    /// The part of the active processors of the device.
    pub of_device: f64,
    /// Workgroups that they hold at a time.
    pub at_a_time: u64,
    /// Dies that have workgroups.
    pub dies: u64,
    /// The distance of the numbers of workgroups that follow each other on a die.
    pub stride: u64,
}

impl Translation {
    /// Scalar memory has a buffer of its own, which is not simulated: it uses few pages.
    fn is_passed_by(&self, scalar: bool) -> bool {
        scalar && self.of_processor
    }
}

impl Level {
    fn new(cache: &Cache, share: &Share, tagged: bool, sets: [u32; 3]) -> Level {
        let of_processor = cache.scope == Scope::Processor;
        let count = if of_processor { share.processors } else { 1 };
        let part = match cache.scope {
            Scope::Processor => 1.0,
            Scope::Die => share.of_die,
            Scope::Device => share.of_device,
        };
        let lines = cache.bytes.count() / cache.line_bytes.count().max(1);
        let per_tick = |clock: &Quantity| clock.value().max(1e-6) * part / super::cache::TICKS as f64;
        Level {
            latency: ticks(cache.latency.value()),
            bytes_per_tick: per_tick(&cache.bytes_per_clock),
            loads: cache.load_bytes_per_clock.as_ref().map(|clock| (Queue::default(), per_tick(clock))),
            capacity: cache.bytes.value(),
            tags: if tagged { vec![Tags::new(lines, cache.ways.count(), sets); count] } else { Vec::new() },
            queues: vec![Queue::default(); count],
            hits: 0,
            misses: 0,
            of_processor,
        }
    }

    fn service(&self, bytes: u64) -> u64 {
        (bytes as f64 / self.bytes_per_tick).round() as u64
    }
}

impl MemorySystem {
    /// Creates the memory system of `share.processors` processors.
    pub fn new(costs: &Costs, share: &Share, footprint: Footprint) -> MemorySystem {
        let Costs { arch, device, model, .. } = costs;
        let sets = model.sets.shifts();
        let of = |path| device.caches.iter().filter(move |cache| cache.path == path);

        let vector: Vec<&Cache> = of(Path::Vector).collect();
        let (line_bytes, sector_bytes) = line_and_sector(arch);
        let m = &device.memory;
        let has_last = vector.last().is_some_and(|c| c.scope == Scope::Device && vector.len() > 2);
        let names = vector.iter().map(|c| c.name.clone()).collect();
        // `hits_last` stands for the tags of the last one.
        let tagged = vector.len() - usize::from(has_last);
        let level = |(at, cache): (usize, &Cache)| Level::new(cache, share, at < tagged, sets);
        let levels: Vec<Level> = vector.into_iter().enumerate().map(level).collect();
        let translations = device.tlbs.iter().zip(&footprint.pages).map(|(tlb, pages)| {
            let of_processor = tlb.scope == Scope::Processor;
            let count = if of_processor { share.processors } else { 1 };
            let part = match tlb.scope {
                Scope::Processor => 1.0,
                Scope::Die => share.of_die,
                Scope::Device => share.of_device,
            };
            Translation {
                page_lines: (tlb.page_bytes.count() / line_bytes).max(1),
                miss: ticks(tlb.miss.value()),
                interval: ticks(tlb.miss_interval.value() / part.max(1e-6)),
                reach: tlb.entries.value() * tlb.page_bytes.value(),
                // The processors that are not simulated use their part of the entries.
                tags: vec![
                    Tags::new(
                        (tlb.entries.value() * part.powf(pages.growth)) as u64,
                        tlb.ways.count(),
                        sets
                    );
                    count
                ],
                queues: vec![Queue::default(); count],
                seen: HashSet::default(),
                misses: 0.0,
                of_processor,
            }
        });
        MemorySystem {
            line_bytes,
            sector_bytes,
            atomic: ticks(arch.vector_memory.atomic_clocks.value()),
            store_latency: ticks(arch.vector_memory.store_latency.value()),
            names,
            has_last,
            levels,
            scalar: of(Path::Scalar).next().map(|cache| Level::new(cache, share, true, sets)),
            translations: translations.collect(),
            translated: vec![0; share.processors],
            channels: Channels::new(costs, share),
            memory_latency: ticks(m.latency.value()),
            memory: (0, 0),
            shares: Shares::default(),
            seen: HashSet::default(),
            footprint,
            outstanding: vec![
                vec![0; arch.vector_memory.outstanding_lines.count().max(1) as usize];
                share.processors
            ],
            next: vec![0; share.processors],
        }
    }

    /// Translates the address of a line; returns the ticks of delay. An access to a page whose translation is under way
    /// waits for it, and translations of vector memory leave the buffer of the processor in the order in which they came.
    fn translate(&mut self, processor: usize, line: u64, now: u64, scalar: bool) -> u64 {
        let mut done = now;
        let mut missed = 0;
        let mut chance = 1.0;
        for (level, pages) in self.translations.iter_mut().zip(&self.footprint.pages) {
            if level.is_passed_by(scalar) {
                missed += 1;
                continue;
            }
            let index = if level.of_processor { processor } else { 0 };
            let page = line / level.page_lines;
            if let Some(entry) = level.tags[index].find(page) {
                done = done.max(entry.ready);
                break;
            }
            missed += 1;
            // What another processor has just used, or the die earlier in this launch or in another one. Few pages are
            // seen first, so that each costs what is expected.
            if !level.of_processor && level.seen.insert(page) {
                if !self.footprint.is_known(line * self.line_bytes) {
                    // Every launch uses the pages of the runtime.
                    break;
                }
                let since = self.footprint.since_last_use(line, self.line_bytes);
                let since = if since.is_finite() { pages.of_die } else { since };
                chance *= 1.0 - pages.used_by_others.max(self.shares.of(since, level.reach));
            }
            if chance < 1e-3 {
                break;
            }
            level.misses += chance;
            let part = |ticks: u64| (ticks as f64 * chance).round() as u64;
            done = level.queues[index].take(done, part(level.interval)) + part(level.miss);
        }
        for level in self.translations[..missed].iter_mut().filter(|level| !level.is_passed_by(scalar)) {
            let index = if level.of_processor { processor } else { 0 };
            level.tags[index].insert(line / level.page_lines, done);
        }
        if !scalar {
            let last = &mut self.translated[processor];
            *last = done.max(*last);
            done = *last;
        }
        done - now
    }

    /// Sets by how many lines the present accesses move from a workgroup to the next one; 0 if that is not known.
    pub fn set_step(&mut self, lines: f64) {
        self.channels.step = lines;
    }

    /// Waits until the processor can have another line outstanding; returns when.
    pub fn admit(&self, processor: usize, now: u64) -> u64 {
        now.max(self.outstanding[processor][self.next[processor]])
    }

    /// Returns the ticks for which a processor's cache transfers the sectors of some lines.
    pub fn transfer(&self, lines: &[Line]) -> u64 {
        let sectors: u64 = lines.iter().map(|line| line.sectors()).sum();
        self.levels.first().map_or(0, |level| level.service(sectors * self.sector_bytes))
    }

    /// Loads a line; returns when its data has arrived.
    pub fn load(&mut self, processor: usize, line: Line, now: u64, scalar: bool) -> u64 {
        let number = line.number();
        let delay = self.translate(processor, number, now, scalar);
        let at = now + delay;
        let done = if scalar {
            self.load_scalar(processor, number, at)
        } else {
            self.load_from(0, processor, line, at)
        };
        let slot = self.next[processor];
        self.outstanding[processor][slot] = done;
        self.next[processor] = (slot + 1) % self.outstanding[processor].len();
        done
    }

    fn load_scalar(&mut self, processor: usize, number: u64, now: u64) -> u64 {
        let Some(level) = &mut self.scalar else { return self.shared(number, now) };
        let tags = &mut level.tags[processor];
        if let Some(entry) = tags.find(number) {
            level.hits += 1;
            return (now + level.latency).max(entry.ready);
        }
        level.misses += 1;
        let done = self.shared(number, now);
        if let Some(level) = &mut self.scalar {
            level.tags[processor].insert(number, done);
        }
        done
    }

    /// Loads from the caches from a level on.
    fn load_from(&mut self, from: usize, processor: usize, line: Line, now: u64) -> u64 {
        let number = line.number();
        let Some(level) = self.levels.get_mut(from).filter(|level| level.of_processor) else {
            return self.shared(number, now);
        };
        let present = level.tags[processor].find(number).map(|entry| entry.ready);
        // A missing line arrives whole.
        let bytes = if present.is_some() { line.sectors() * self.sector_bytes } else { self.line_bytes };
        let service = level.service(bytes);
        let start = level.queues[processor].take(now, service);
        if let Some(ready) = present {
            level.hits += 1;
            return (start + level.latency).max(ready);
        }
        level.misses += 1;
        let done = self.load_from(from + 1, processor, line, start);
        self.levels[from].tags[processor].insert(number, done);
        done
    }

    /// Loads a line from the caches that processors share, or from memory; `now` is when the request is issued.
    fn shared(&mut self, number: u64, now: u64) -> u64 {
        let last = self.levels.len() - usize::from(self.has_last);
        let first_touch = self.seen.insert(number);
        let mut at = now;
        let shared = self.levels.iter().position(|level| !level.of_processor).unwrap_or(last);
        for index in shared..last {
            let level = &mut self.levels[index];
            let service = level.service(self.line_bytes);
            at = level.queues[0].take(at, service);
            if let Some(entry) = level.tags[0].find(number) {
                level.hits += 1;
                return (at + level.latency).max(entry.ready);
            }
            // What another processor has loaded, or this die in an earlier launch.
            let since = self.footprint.since_last_use(number, self.line_bytes) * self.footprint.part_of_die;
            let own = self.footprint.own(number, self.line_bytes);
            let before = self.shares.of(since, level.capacity) * own;
            let warm = self.footprint.loaded_by_others.max(before);
            if first_touch && fraction_of(number) < warm {
                level.hits += 1;
                let ready = at + level.latency;
                level.tags[0].insert(number, ready);
                return ready;
            }
            level.misses += 1;
        }
        let done = self.beyond(number, at, first_touch);
        for level in &mut self.levels[shared..last] {
            level.tags[0].insert(number, done);
        }
        done
    }

    /// Loads a line from the cache of the device, or from memory.
    fn beyond(&mut self, number: u64, now: u64, first_touch: bool) -> u64 {
        let mut at = now;
        if self.has_last {
            let hit = self.hits_last(number, first_touch);
            let index = self.levels.len() - 1;
            let level = &mut self.levels[index];
            let service = level.service(self.line_bytes);
            at = level.queues[0].take(at, service);
            if let Some((queue, bytes_per_tick)) = &mut level.loads {
                at = queue.take(at, (self.line_bytes as f64 / *bytes_per_tick).round() as u64);
            }
            if hit {
                level.hits += 1;
                return at + level.latency;
            }
            level.misses += 1;
        }
        self.access_memory(number, self.line_bytes, at) + self.memory_latency
    }

    /// Transfers bytes of a line from or to memory; returns when that begins.
    fn access_memory(&mut self, number: u64, bytes: u64, now: u64) -> u64 {
        self.memory.0 += 1;
        self.memory.1 += bytes;
        self.channels.take(number, bytes, now)
    }

    /// Returns whether the cache of the device has a line. Its tags are not simulated, because other dies and other
    /// launches fill it: a line stays with the probability that follows from what is loaded until it is used again.
    fn hits_last(&mut self, number: u64, first_touch: bool) -> bool {
        let Some(level) = self.levels.last() else { return false };
        let share = match first_touch {
            true => {
                let since = self.footprint.since_last_use(number, self.line_bytes);
                let before = self.shares.of(since, level.capacity);
                1.0 - (1.0 - before) * self.footprint.first_of_device
            }
            false => self.shares.of(self.footprint.bytes, level.capacity),
        };
        fraction_of(number ^ 0x5555) < share
    }

    /// Writes sectors of a line to the cache of the device, or to memory.
    fn write_back(&mut self, number: u64, sectors: u64, now: u64) {
        let mut at = now;
        let bytes = u64::from(sectors.count_ones()) * self.sector_bytes;
        if self.has_last {
            let index = self.levels.len() - 1;
            let level = &mut self.levels[index];
            let service = level.service(bytes);
            at = level.queues[0].take(at, service);
            // What fits stays there.
            if fraction_of(number) < self.shares.of(self.footprint.bytes, level.capacity) {
                return;
            }
        }
        self.access_memory(number, bytes, at);
    }

    /// Stores to a line; returns when the store is complete. Stores pass through the cache of the processor to that of
    /// the die, which writes each sector back once unless it is stored to again after its eviction.
    pub fn store(&mut self, processor: usize, line: Line, now: u64) -> u64 {
        let number = line.number();
        let now = now + self.translate(processor, number, now, false);
        let mut at = now;
        let bytes = line.sectors() * self.sector_bytes;
        let last = self.levels.len() - usize::from(self.has_last);
        let mut new = line.mask();
        self.seen.insert(number);
        for index in 0..last {
            let of_processor = self.levels[index].of_processor;
            let level = &mut self.levels[index];
            let queue = if of_processor { processor } else { 0 };
            let service = level.service(bytes);
            at = level.queues[queue].take(at, service);
            if of_processor {
                // A line that is present stays, with the new data.
                continue;
            }
            let tags = &mut level.tags[0];
            if tags.find(number).is_none() {
                tags.insert(number, at);
            }
            if let Some(entry) = tags.find(number) {
                new &= !entry.stored;
                entry.stored |= line.mask();
            }
        }
        if new != 0 {
            self.write_back(number, new, at);
        }
        at + self.store_latency
    }

    /// An atomic at the cache of the die; returns when its result has arrived. Those of one line follow each other.
    pub fn atomic(&mut self, processor: usize, line: Line, lanes: u64, now: u64) -> u64 {
        let number = line.number();
        let now = now + self.translate(processor, number, now, false);
        for level in self.levels.iter_mut().filter(|level| level.of_processor) {
            level.tags[processor].remove(number);
        }
        let arrived = self.shared(number, now);
        let busy = self.atomic * lanes.max(1);
        match self.levels.iter_mut().find(|level| !level.of_processor && !level.tags.is_empty()) {
            Some(level) => match level.tags[0].find(number) {
                Some(entry) => {
                    let start = arrived.max(entry.ready);
                    entry.ready = start + busy;
                    let new = line.mask() & !entry.stored;
                    entry.stored |= line.mask();
                    if new != 0 {
                        self.write_back(number, new, start);
                    }
                    start + busy
                }
                None => arrived + busy,
            },
            None => arrived + busy,
        }
    }

    /// Returns what each level has done in `time` ticks; the memory comes last.
    pub fn counts(&self, memory: &str, time: u64) -> Vec<LevelCount> {
        let share = |busy: u64| if time == 0 { 0.0 } else { busy as f64 / time as f64 };
        let level = |(level, name): (&Level, &String)| {
            let busy = level.queues.iter().map(|q| q.busy).max().unwrap_or(0);
            let all: u64 = level.queues.iter().map(|q| q.busy).sum();
            LevelCount {
                name: name.clone(),
                hits: level.hits,
                misses: level.misses,
                bytes: (all as f64 * level.bytes_per_tick) as u64,
                busy: share(busy),
            }
        };
        let mut out: Vec<LevelCount> = self.levels.iter().zip(&self.names).map(level).collect();
        out.push(LevelCount {
            name: memory.to_string(),
            hits: self.memory.0,
            misses: 0,
            bytes: self.memory.1,
            busy: share(self.channels.busy()),
        });
        for (index, translation) in self.translations.iter().enumerate() {
            let busy = translation.queues.iter().map(|q| q.busy).max().unwrap_or(0);
            let name = format!("translation {}", index + 1);
            out.push(LevelCount {
                name,
                hits: 0,
                misses: translation.misses.round() as u64,
                bytes: 0,
                busy: share(busy),
            });
        }
        out
    }

    /// Returns when all queues are empty: the end of the writes that nothing waits for.
    pub fn drained(&self) -> u64 {
        let levels = self.levels.iter().flat_map(|level| &level.queues);
        levels.map(|queue| queue.free()).max().unwrap_or(0).max(self.channels.free())
    }
}
