//! How many bytes a launch uses, estimated from the recorded workgroups, and how many bytes have been used since a line
//! was last used by an earlier launch.

use crate::record::Group;
use foldhash::{HashSet, HashSetExt};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An address range that a launch can use: an argument, an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The first byte.
    pub base: u64,
    /// Size in bytes.
    pub len: u64,
}

/// What earlier launches have used, by the base of a region.
#[derive(Debug, Clone, Default)]
pub struct History {
    used: u64,
    last: BTreeMap<u64, Use>,
}

/// The last use of a region.
#[derive(Debug, Clone, Default)]
struct Use {
    /// Bytes used on the device until then.
    at: u64,
    /// The lines that the sample of the last launch that wrote to the region has stored to; none if no launch has.
    writer: Option<Arc<HashSet<u64>>>,
    /// The lines that the sample of the last launch has used, in all regions; none after a copy.
    lines: Option<Arc<HashSet<u64>>>,
}

/// A launch that uses less of a region is taken for one of several that use different parts of it.
const SMALL_PART: f64 = 0.5;

/// The estimates about a launch.
#[derive(Debug, Clone, Default)]
pub struct Footprint {
    /// Bytes that the launch uses.
    pub bytes: f64,
    /// The share of lines that a simulated processor uses first and that another processor of its die has loaded.
    pub loaded_by_others: f64,
    /// As `loaded_by_others`, for the pages of each level of translation.
    pub pages: Vec<Pages>,
    /// The part of [`Footprint::bytes`] that a die uses.
    pub part_of_die: f64,
    /// The share of lines that a die uses first and no other die has loaded.
    pub first_of_device: f64,
    regions: Vec<Region>,
    /// By region: bytes used since its last use, infinite if it never was.
    since: Vec<f64>,
    /// By region of which the launch uses a small part: the lines that the last one has used. The others are older.
    recent: Vec<Option<Arc<HashSet<u64>>>>,
    /// Bytes of all regions that the launch uses.
    reachable: f64,
    /// By region: the lines that the launch that has written it stored to on this die, as far as they are known.
    writers: Vec<Option<Arc<HashSet<u64>>>>,
    dies: f64,
}

/// The pages of a level of translation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pages {
    /// The share of pages that the sample uses first and that another processor of its die has used just before.
    pub used_by_others: f64,
    /// How the pages that are in use at a time grow with the processors: 0 if all use the same, 1 if none share any.
    pub growth: f64,
    /// Bytes of the pages that a die uses.
    pub of_die: f64,
}

/// The scale of the sample.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Workgroups that the die has resident for each one that the sample has at a time.
    pub resident: f64,
    /// Workgroups of the die for each recorded one.
    pub of_die: f64,
    /// Dies.
    pub dies: f64,
    /// Instructions for each recorded one.
    pub instructions: f64,
    /// The distance of the numbers of workgroups that follow each other on a die.
    pub stride: u64,
}

/// Returns how the blocks of `lines` lines that workgroups use grow with the number of workgroups that run at a time,
/// which follow each other: 0 if all use the same, 1 if none share any. It is the growth from half of them to all: what
/// all of them share, such as a vector that each multiplies with a row, is in the half already.
fn local_growth(groups: &[Group], lines: u64, stride: u64) -> f64 {
    let (mut sum, mut weight) = (0.0, 0.0);
    for run in groups.chunk_by(|a, b| b.number == a.number + stride).filter(|run| run.len() > 1) {
        let half = run.len() / 2;
        let mut union: HashSet<u64> = HashSet::new();
        let mut of_half = 0;
        for (index, group) in run.iter().enumerate() {
            if index == half {
                of_half = union.len();
            }
            union.extend(group.waves.iter().flat_map(|w| &w.lines).map(|line| line.number() / lines));
        }
        let count = run.len() as f64;
        let grown = (union.len().max(1) as f64 / of_half.max(1) as f64).ln();
        sum += grown / (count / half as f64).ln() * count;
        weight += count;
    }
    if weight == 0.0 { 1.0 } else { (sum / weight).clamp(0.0, 1.0) }
}

impl Footprint {
    /// Estimates the footprint of a launch.
    pub fn of(
        groups: &[Group],
        (line_bytes, page_bytes): (u64, &[u64]),
        regions: &[Region],
        history: &History,
        scale: &Scale,
    ) -> Footprint {
        let mut lines: HashSet<u64> = HashSet::new();
        let mut half = 0;
        for (index, group) in groups.iter().enumerate() {
            if index == groups.len().div_ceil(2) {
                half = lines.len();
            }
            lines.extend(group.waves.iter().flat_map(|w| &w.lines).map(|line| line.number()));
        }
        let total = lines.len().max(1);
        // The lines grow with a power of the number of workgroups: 0 if all use the same, 1 if none share any.
        let growth_of_all = match groups.len() {
            0 | 1 => 1.0,
            n => {
                let part = n.div_ceil(2) as f64 / n as f64;
                ((half.max(1) as f64 / total as f64).ln() / part.ln()).clamp(0.0, 1.0)
            }
        };
        let mut regions: Vec<Region> = regions.to_vec();
        regions.sort_by_key(|r| r.base);
        let mut used = vec![0u64; regions.len()];
        for line in &lines {
            if let Some(at) = region_of(&regions, line * line_bytes) {
                used[at] += 1;
            }
        }
        let reachable: f64 =
            regions.iter().zip(&used).filter(|(_, used)| **used > 0).map(|(r, _)| r.len as f64).sum();
        let die = total as f64 * scale.instructions * scale.of_die.powf(growth_of_all);
        let per_line = scale.instructions * (scale.of_die * scale.dies).powf(growth_of_all);
        let device = total as f64 * per_line;
        let recent = |(region, used): (&Region, &u64)| {
            let part = *used as f64 * per_line * line_bytes as f64 / region.len.max(1) as f64;
            let last = history.last.get(&region.base)?;
            (part < SMALL_PART).then(|| last.lines.clone()).flatten()
        };
        let limit = if reachable > 0.0 { reachable / line_bytes as f64 } else { f64::INFINITY };
        let (die, device) = (die.min(limit), device.min(limit));
        let since = |region: &Region| {
            history.last.get(&region.base).map_or(f64::INFINITY, |last| (history.used - last.at) as f64)
        };
        let bytes = device * line_bytes as f64;
        let others = |growth: f64| 1.0 - scale.resident.max(1.0).powf(growth - 1.0);
        let page = |page: &u64| {
            let growth = local_growth(groups, (page / line_bytes).max(1), scale.stride);
            let count = lines.iter().map(|line| line * line_bytes / page).collect::<HashSet<u64>>().len();
            let of_die = count as f64 * *page as f64 * scale.instructions * scale.of_die.powf(growth_of_all);
            let of_die = if reachable > 0.0 { of_die.min(reachable) } else { of_die };
            Pages { used_by_others: others(growth), growth, of_die }
        };
        Footprint {
            bytes,
            pages: page_bytes.iter().map(page).collect(),
            part_of_die: (die / device.max(1.0)).clamp(0.0, 1.0),
            loaded_by_others: others(local_growth(groups, 1, scale.stride)),
            first_of_device: (device / (die * scale.dies).max(1.0)).clamp(0.0, 1.0),
            // The launch itself replaces lines before it reaches those of the last one.
            since: regions.iter().map(|r| since(r).max(bytes)).collect(),
            recent: regions.iter().zip(&used).map(recent).collect(),
            reachable,
            writers: regions.iter().map(|r| history.last.get(&r.base)?.writer.clone()).collect(),
            dies: scale.dies,
            regions,
        }
    }

    /// Returns the probability that this die has a line that an earlier launch has used. What is only read is in the caches
    /// of all dies that read it; what a launch has written is in that of the writing die, which is this one if its sample
    /// has stored to the line, and otherwise by chance.
    pub fn own(&self, line: u64, line_bytes: u64) -> f64 {
        let writer = region_of(&self.regions, line * line_bytes).and_then(|at| self.writers[at].as_ref());
        writer.map_or(1.0, |lines| if lines.contains(&line) { 1.0 } else { 1.0 / self.dies.max(1.0) })
    }

    /// Returns whether an address is in a region. Others belong to the runtime: arguments of kernels.
    pub fn is_known(&self, address: u64) -> bool {
        region_of(&self.regions, address).is_some()
    }

    /// Returns the bytes that have been used since a line was last used, by an earlier launch.
    pub fn since_last_use(&self, line: u64, line_bytes: u64) -> f64 {
        let Some(at) = region_of(&self.regions, line * line_bytes) else { return f64::INFINITY };
        match &self.recent[at] {
            Some(lines) if !lines.contains(&line) => self.since[at].max(self.reachable),
            _ => self.since[at],
        }
    }
}

fn region_of(regions: &[Region], address: u64) -> Option<usize> {
    let at = regions.partition_point(|r| r.base <= address).checked_sub(1)?;
    (address - regions[at].base < regions[at].len).then_some(at)
}

impl History {
    /// Records a launch.
    pub fn add(&mut self, groups: &[Group], line_bytes: u64, regions: &[Region], bytes: f64) {
        self.used += bytes as u64;
        let mut sorted: Vec<Region> = regions.to_vec();
        sorted.sort_by_key(|r| r.base);
        let of = |line: u64| region_of(&sorted, line * line_bytes);
        let mut stored: HashSet<u64> = HashSet::new();
        for wave in groups.iter().flat_map(|g| &g.waves) {
            for record in wave.records.iter().filter(|r| r.stores) {
                let lines = wave.lines.iter().skip(record.first as usize).take(usize::from(record.lines));
                stored.extend(lines.map(|line| line.number()));
            }
        }
        let written: HashSet<usize> = stored.iter().filter_map(|line| of(*line)).collect();
        let stored = Arc::new(stored);
        let all = groups.iter().flat_map(|g| &g.waves).flat_map(|w| &w.lines).map(|line| line.number());
        let all: Arc<HashSet<u64>> = Arc::new(all.collect());
        let used: HashSet<usize> = all.iter().filter_map(|line| of(*line)).collect();
        for at in used {
            let last = self.last.entry(sorted[at].base).or_default();
            if written.contains(&at) {
                last.writer = Some(stored.clone());
            }
            (last.at, last.lines) = (self.used, Some(all.clone()));
        }
    }

    /// Records a use of a region by something other than a launch, such as a copy.
    pub fn touch(&mut self, region: Region) {
        self.used += region.len;
        self.last.insert(region.base, Use { at: self.used, writer: None, lines: None });
    }
}
