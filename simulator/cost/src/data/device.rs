//! The costs of a device: `data/devices/NAME.toml`.

use super::arch::visit;
use super::{Constants, CostError, Quantity, check, table};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;
use wavesim_isa::arch::{Arch, Processor};

/// The file of a device.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DeviceCost {
    schema: Spanned<String>,
    /// The name on the command line.
    pub device: String,
    /// The name of the product.
    pub title: String,
    processor: Spanned<String>,
    arch: Spanned<String>,
    /// What has been calibrated, for every report.
    pub calibration: String,
    /// Whether predictions of this device have been compared with measurements of it.
    pub calibrated: bool,
    /// The texts of the sources by the names in [`Quantity::source`].
    pub sources: BTreeMap<String, String>,
    /// Clock and numbers of processors.
    pub chip: Chip,
    /// Caches, from the processor on.
    #[serde(rename = "cache")]
    pub caches: Vec<Cache>,
    /// The memory behind the caches.
    pub memory: DeviceMemory,
    /// Translation of addresses, from the processor on.
    #[serde(rename = "tlb", default)]
    pub tlbs: Vec<Tlb>,
    /// The cost of launches.
    pub launch: LaunchCost,
    /// How far predictions are off.
    pub range: Range,
}

/// Clock and numbers of processors.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Chip {
    /// MHz.
    pub clock: Quantity,
    /// Dies with processors (XCDs).
    pub dies: Quantity,
    /// Workgroup processors or compute units of a die.
    pub processors: Quantity,
}
table!(Chip, clock = "clock", dies = "dies", processors = "processors");

/// What shares a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// One workgroup processor or compute unit.
    Processor,
    /// The processors of a die.
    Die,
    /// All.
    Device,
}

/// The instructions that use a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Path {
    /// Vector memory, and the misses of scalar memory.
    Vector,
    /// Scalar memory.
    Scalar,
}

/// A cache.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Cache {
    /// AMD's name.
    pub name: String,
    /// The instructions that use it: vector memory also passes the caches of a die and of the device.
    pub path: Path,
    /// What shares it.
    pub scope: Scope,
    /// Bytes of each instance.
    pub bytes: Quantity,
    /// Bytes of a line.
    pub line_bytes: Quantity,
    /// Ways of a set.
    pub ways: Quantity,
    /// Clocks from issue to data for a hit, without queueing.
    pub latency: Quantity,
    /// Bytes that each instance transfers in a clock.
    pub bytes_per_clock: Quantity,
    /// The same of loads alone, of the cache of the device; without it, [`Cache::bytes_per_clock`] is the only limit.
    pub load_bytes_per_clock: Option<Quantity>,
}

impl Cache {
    /// Returns a constant by its key.
    pub fn by_key_mut(&mut self, key: &str) -> Option<&mut Quantity> {
        if key == LOADS { self.load_bytes_per_clock.as_mut() } else { self.required_mut(key) }
    }
}

/// The key of [`Cache::load_bytes_per_clock`].
const LOADS: &str = "load-bytes-per-clock";
table!(
    Cache as required_mut,
    bytes = "bytes",
    line_bytes = "line-bytes",
    ways = "ways",
    latency = "latency",
    bytes_per_clock = "bytes-per-clock",
);

/// The memory behind the caches.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DeviceMemory {
    /// The technology.
    pub name: String,
    /// GB/s of the data sheet.
    pub bandwidth: Quantity,
    /// The share of it that long streams reach.
    pub efficiency: Quantity,
    /// Clocks from issue to data.
    pub latency: Quantity,
    /// Channels.
    pub channels: Quantity,
    /// Consecutive bytes in one channel.
    pub interleave: Quantity,
    /// The channel of a block of so many bytes: its number, and the same shifted right by so many bits, in an exclusive or,
    /// modulo the channels. 0 is no shift: no such term.
    pub fold_1: Quantity,
    /// As `fold_1`: another term.
    pub fold_2: Quantity,
}
table!(
    DeviceMemory,
    bandwidth = "bandwidth",
    efficiency = "efficiency",
    latency = "latency",
    channels = "channels",
    interleave = "interleave",
    fold_1 = "fold-1",
    fold_2 = "fold-2",
);

/// A level of address translation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tlb {
    /// AMD's name.
    pub name: String,
    /// What shares it.
    pub scope: Scope,
    /// Pages that it holds.
    pub entries: Quantity,
    /// Entries of a set.
    pub ways: Quantity,
    /// Bytes of a page.
    pub page_bytes: Quantity,
    /// Clocks of a miss.
    pub miss: Quantity,
    /// Clocks between two misses that are served.
    pub miss_interval: Quantity,
}
table!(
    Tlb,
    entries = "entries",
    ways = "ways",
    page_bytes = "page-bytes",
    miss = "miss",
    miss_interval = "miss-interval",
);

/// The cost of launches.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LaunchCost {
    /// Microseconds of the first launch after a wait of the host.
    pub first: Quantity,
    /// Microseconds of a launch that follows another one.
    pub following: Quantity,
    /// Clocks between the starts of two workgroups of a die.
    pub workgroup_interval: Quantity,
    /// GB/s of copies between host and device.
    pub host_copy: Quantity,
    /// Microseconds of such a copy, however small.
    pub host_copy_first: Quantity,
}
table!(
    LaunchCost,
    first = "first",
    following = "following",
    workgroup_interval = "workgroup-interval",
    host_copy = "host-copy",
    host_copy_first = "host-copy-first",
);

/// How far predictions are off: multiples of the computed time.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Range {
    /// The lower end.
    pub low: Quantity,
    /// The upper end.
    pub high: Quantity,
    /// The relative error of a sample whose waves are recorded from their beginning only.
    pub cut_waves: Quantity,
    /// The relative error of a sample without a round of workgroups that follows another one.
    pub one_round: Quantity,
}
table!(Range, low = "low", high = "high", cut_waves = "cut-waves", one_round = "one-round");

impl Constants for DeviceCost {
    fn each<'a>(&'a self, f: &mut dyn FnMut(String, &'a Quantity)) {
        visit("chip", &self.chip, f);
        for cache in &self.caches {
            let name = format!("cache.{}", cache.name);
            visit(&name, cache, f);
            if let Some(loads) = &cache.load_bytes_per_clock {
                f(format!("{name}.{LOADS}"), loads);
            }
        }
        visit("memory", &self.memory, f);
        for tlb in &self.tlbs {
            visit(&format!("tlb.{}", tlb.name), tlb, f);
        }
        visit("launch", &self.launch, f);
        visit("range", &self.range, f);
    }
}

impl DeviceCost {
    /// Parses a file.
    ///
    /// # Errors
    /// [`CostError::Malformed`], with line and key.
    pub fn parse(file: &str, text: &str) -> Result<DeviceCost, CostError> {
        let cost: DeviceCost = toml::from_str(text).map_err(|e| CostError::parse(file, text, &e))?;
        let wrong = |spanned: &Spanned<String>, key: &str, message: String| {
            Err(CostError::at(file, text, spanned.span(), key, message))
        };
        if cost.schema.get_ref() != "wavesim-device-1" {
            return wrong(&cost.schema, "schema", "the schema is `wavesim-device-1`".to_string());
        }
        let Some(arch) = Arch::from_name(cost.arch.get_ref()) else {
            let names: Vec<&str> = Arch::ALL.iter().map(|a| a.name()).collect();
            return wrong(&cost.arch, "arch", format!("architectures are {}", names.join(", ")));
        };
        if Processor::from_name(cost.processor.get_ref()).is_none_or(|p| p.arch != arch) {
            let names = Processor::all().filter(|p| p.arch == arch).map(|p| p.name);
            let message =
                format!("processors of {} are {}", arch.name(), names.collect::<Vec<_>>().join(", "));
            return wrong(&cost.processor, "processor", message);
        }
        check(file, text, &cost, &cost.sources)?;
        Ok(cost)
    }

    /// Returns the architecture.
    pub fn arch(&self) -> Arch {
        // The parser has checked the name.
        Arch::from_name(self.arch.get_ref()).unwrap_or(Arch::DEFAULT)
    }

    /// Returns LLVM's name of the processor.
    pub fn processor(&self) -> &str {
        self.processor.get_ref()
    }

    /// Returns the number of processors of all dies.
    pub fn processors(&self) -> u64 {
        self.chip.dies.count().max(1) * self.chip.processors.count().max(1)
    }
}
