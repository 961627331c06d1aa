//! The costs of an architecture: `data/ARCH.toml`.

use super::{Constants, CostError, Quantity, check, table};
use regex_lite::Regex;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;
use wavesim_isa::arch::Arch;

/// The file of an architecture.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ArchCost {
    schema: Spanned<String>,
    arch: Spanned<String>,
    /// The class of instructions that no rule selects.
    default_class: Spanned<String>,
    /// The texts of the sources by the names in [`Quantity::source`].
    pub sources: BTreeMap<String, String>,
    /// The registers and LDS that waves share.
    pub processor: Processor,
    /// The rules of issue.
    pub issue: Issue,
    /// LDS.
    pub lds: Lds,
    /// The path of vector memory instructions before the caches.
    pub vector_memory: VectorMemory,
    /// The classes of instructions; the first that selects an instruction is its class.
    #[serde(rename = "class")]
    pub classes: Vec<ClassRow>,
    #[serde(skip)]
    default_index: usize,
}

/// What runs a workgroup: a workgroup processor (RDNA) or a compute unit (CDNA).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Processor {
    /// AMD's name.
    pub name: String,
    /// SIMDs.
    pub simds: Quantity,
    /// Waves that a SIMD holds.
    pub wave_slots: Quantity,
    /// VGPRs of a SIMD, each with a value for `vgpr_lanes` lanes.
    pub vgprs: Quantity,
    /// Lanes of a VGPR of the file.
    pub vgpr_lanes: Quantity,
    /// VGPRs of the file that are allocated together.
    pub vgpr_granule: Quantity,
    /// SGPRs of a SIMD; 0 if every wave has all.
    pub sgprs: Quantity,
    /// SGPRs that are allocated together.
    pub sgpr_granule: Quantity,
    /// Bytes of LDS.
    pub lds_bytes: Quantity,
    /// Bytes of LDS that are allocated together.
    pub lds_granule: Quantity,
    /// Workgroups of more than one wave that it holds.
    pub workgroups: Quantity,
}
table!(
    Processor,
    simds = "simds",
    wave_slots = "wave-slots",
    vgprs = "vgprs",
    vgpr_lanes = "vgpr-lanes",
    vgpr_granule = "vgpr-granule",
    sgprs = "sgprs",
    sgpr_granule = "sgpr-granule",
    lds_bytes = "lds-bytes",
    lds_granule = "lds-granule",
    workgroups = "workgroups",
);

/// The rules of issue, in clocks.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Issue {
    /// Lanes for which [`ClassRow::busy`] of vector classes is stated.
    pub lanes: Quantity,
    /// Between two instructions of a wave.
    pub wave_interval: Quantity,
    /// Between two instructions of a SIMD to one kind of unit.
    pub unit_interval: Quantity,
    /// SIMDs that share a port to LDS and to vector memory.
    pub simds_per_port: Quantity,
    /// After a taken branch.
    pub branch_taken: Quantity,
    /// Bytes of the instruction cache.
    pub instruction_cache_bytes: Quantity,
    /// Bytes of a line of it.
    pub instruction_line_bytes: Quantity,
    /// Lines of a set of it.
    pub instruction_ways: Quantity,
    /// A miss of it.
    pub instruction_miss: Quantity,
    /// Banks of the VGPRs.
    pub vgpr_banks: Quantity,
    /// From the start of a wave to its first instruction.
    pub wave_start: Quantity,
    /// That S_NOP waits for each unit of its immediate.
    pub nop: Quantity,
    /// The same of S_SLEEP.
    pub sleep: Quantity,
}
table!(
    Issue,
    lanes = "lanes",
    wave_interval = "wave-interval",
    unit_interval = "unit-interval",
    simds_per_port = "simds-per-port",
    branch_taken = "branch-taken",
    instruction_cache_bytes = "instruction-cache-bytes",
    instruction_line_bytes = "instruction-line-bytes",
    instruction_ways = "instruction-ways",
    instruction_miss = "instruction-miss",
    vgpr_banks = "vgpr-banks",
    wave_start = "wave-start",
    nop = "nop",
    sleep = "sleep",
);

/// LDS.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Lds {
    /// Banks of a processor.
    pub banks: Quantity,
    /// Bytes of a bank's word.
    pub bank_bytes: Quantity,
    /// Halves of the banks; a workgroup's access goes to one.
    pub groups: Quantity,
    /// Bytes that an access without conflicts transfers in a clock.
    pub bytes_per_clock: Quantity,
    /// Additional clocks of an atomic for each pass.
    pub atomic_clocks: Quantity,
}
table!(
    Lds,
    banks = "banks",
    bank_bytes = "bank-bytes",
    groups = "groups",
    bytes_per_clock = "bytes-per-clock",
    atomic_clocks = "atomic-clocks",
);

/// The path of vector memory instructions before the caches.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct VectorMemory {
    /// Bytes of a line, to which the accesses of lanes are coalesced.
    pub line_bytes: Quantity,
    /// Lines that the address unit processes in a clock.
    pub lines_per_clock: Quantity,
    /// Lanes of which it processes addresses in a clock.
    pub lanes_per_clock: Quantity,
    /// Bytes of the parts of a line that are transferred.
    pub segment_bytes: Quantity,
    /// Bytes of all lanes that loads return to registers in a clock.
    pub return_bytes_per_clock: Quantity,
    /// Lines that a processor can have outstanding.
    pub outstanding_lines: Quantity,
    /// Until a store is complete after it has reached the cache.
    pub store_latency: Quantity,
    /// Clocks of an atomic at its cache, for each line.
    pub atomic_clocks: Quantity,
}
table!(
    VectorMemory,
    line_bytes = "line-bytes",
    lines_per_clock = "lines-per-clock",
    lanes_per_clock = "lanes-per-clock",
    segment_bytes = "segment-bytes",
    return_bytes_per_clock = "return-bytes-per-clock",
    outstanding_lines = "outstanding-lines",
    store_latency = "store-latency",
    atomic_clocks = "atomic-clocks",
);

/// What executes an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnitKind {
    /// Vector arithmetic of a SIMD.
    Valu,
    /// Transcendental functions of a SIMD, beside its vector arithmetic.
    Transcendental,
    /// Matrix products of a SIMD.
    Matrix,
    /// Scalar arithmetic.
    Salu,
    /// Branches.
    Branch,
    /// Scalar memory.
    Smem,
    /// Vector memory.
    Vmem,
    /// LDS.
    Lds,
    /// Exports.
    Export,
    /// Nothing but the instruction buffer: waits, barriers.
    None,
}

impl UnitKind {
    /// All units.
    pub const ALL: [UnitKind; 10] = [
        UnitKind::Valu,
        UnitKind::Transcendental,
        UnitKind::Matrix,
        UnitKind::Salu,
        UnitKind::Branch,
        UnitKind::Smem,
        UnitKind::Vmem,
        UnitKind::Lds,
        UnitKind::Export,
        UnitKind::None,
    ];

    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            UnitKind::Valu => "VALU",
            UnitKind::Transcendental => "transcendental",
            UnitKind::Matrix => "matrix",
            UnitKind::Salu => "SALU",
            UnitKind::Branch => "branch",
            UnitKind::Smem => "SMEM",
            UnitKind::Vmem => "VMEM",
            UnitKind::Lds => "LDS",
            UnitKind::Export => "export",
            UnitKind::None => "none",
        }
    }
}

/// The instructions of a class.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Select {
    /// The class of the instruction's effects (`wavesim_machine::exec::effects::Class::name`).
    group: Option<String>,
    /// A regular expression of the XML's name.
    name: Option<Spanned<String>>,
}

/// A class of instructions with common costs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClassRow {
    /// The name in reports.
    pub name: String,
    /// Which instructions belong to it.
    pub select: Select,
    /// What executes them.
    pub unit: UnitKind,
    /// Clocks for which the unit accepts no other instruction.
    pub busy: Quantity,
    /// Clocks until an instruction that uses the result.
    pub latency: Quantity,
    #[serde(skip)]
    regex: Option<Regex>,
}
table!(ClassRow, busy = "busy", latency = "latency");

impl Constants for ArchCost {
    fn each<'a>(&'a self, f: &mut dyn FnMut(String, &'a Quantity)) {
        let tables: [(&str, &dyn Constants); 4] = [
            ("processor", &self.processor),
            ("issue", &self.issue),
            ("lds", &self.lds),
            ("vector-memory", &self.vector_memory),
        ];
        for (name, table) in tables {
            // The lifetime of the visit is that of the file, which the tables are part of.
            visit(name, table, f);
        }
        for class in &self.classes {
            visit(&format!("class.{}", class.name), class, f);
        }
    }
}

/// Visits a table with its name before the keys.
pub(super) fn visit<'a>(name: &str, table: &'a dyn Constants, f: &mut dyn FnMut(String, &'a Quantity)) {
    table.each(&mut |key, quantity| f(format!("{name}.{key}"), quantity));
}

impl ArchCost {
    /// Parses a file.
    ///
    /// # Errors
    /// [`CostError::Malformed`], with line and key.
    pub fn parse(file: &str, text: &str) -> Result<ArchCost, CostError> {
        let mut cost: ArchCost = toml::from_str(text).map_err(|e| CostError::parse(file, text, &e))?;
        let wrong = |spanned: &Spanned<String>, key: &str, message: String| {
            Err(CostError::at(file, text, spanned.span(), key, message))
        };
        if cost.schema.get_ref() != "wavesim-cost-1" {
            return wrong(&cost.schema, "schema", "the schema is `wavesim-cost-1`".to_string());
        }
        if Arch::from_name(cost.arch.get_ref()).is_none() {
            let names: Vec<&str> = Arch::ALL.iter().map(|a| a.name()).collect();
            return wrong(&cost.arch, "arch", format!("architectures are {}", names.join(", ")));
        }
        check(file, text, &cost, &cost.sources)?;
        for class in &mut cost.classes {
            let Some(name) = &class.select.name else { continue };
            match Regex::new(name.get_ref()) {
                Ok(regex) => class.regex = Some(regex),
                Err(e) => return wrong(name, &format!("class.{}.select", class.name), e.to_string()),
            }
        }
        let default = cost.classes.iter().position(|c| c.name == *cost.default_class.get_ref());
        let Some(default) = default else {
            let message = format!("there is no class `{}`", cost.default_class.get_ref());
            return wrong(&cost.default_class, "default-class", message);
        };
        cost.default_index = default;
        Ok(cost)
    }

    /// Returns the architecture.
    pub fn arch(&self) -> Arch {
        // The parser has checked the name.
        Arch::from_name(self.arch.get_ref()).unwrap_or(Arch::DEFAULT)
    }

    /// Returns the index of the class of an instruction, given its group and its name.
    pub fn class_of(&self, group: &str, name: &str) -> usize {
        let selects = |class: &ClassRow| {
            (class.select.group.is_some() || class.regex.is_some())
                && class.select.group.as_deref().is_none_or(|g| g == group)
                && class.regex.as_ref().is_none_or(|regex| regex.is_match(name))
        };
        self.classes.iter().position(selects).unwrap_or(self.default_index)
    }

    /// Returns whether a class is the default of instructions that no rule selects.
    pub fn is_default(&self, class: usize) -> bool {
        class == self.default_index
    }
}
