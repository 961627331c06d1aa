//! The class of each instruction of a program, and what follows from it before any run.

use crate::data::{ArchCost, UnitKind};
use isa_spec::tables::EntryId;
use std::collections::HashMap;
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::effects::{self, Class, Effects, File};
use wavesim_machine::exec::program::Program;

/// The costs of an instruction of a program.
#[derive(Debug, Clone)]
pub struct InstCost {
    /// Index of the class in [`ArchCost::classes`].
    pub class: usize,
    /// What executes it.
    pub unit: UnitKind,
    /// Clocks for which the unit is busy, for waves of the program's size.
    pub busy: f64,
    /// Clocks until an instruction that uses the result.
    pub latency: f64,
    /// The class of its effects.
    pub group: Class,
}

/// Returns the effects and the costs of each instruction of a program.
pub fn table(program: &Program, wave_size: u32, cost: &ArchCost) -> (Vec<Effects>, Vec<InstCost>) {
    let effects = effects::table(program, wave_size);
    // Expressions are slow, and programs repeat instructions.
    let mut known: HashMap<(&str, Class), InstCost> = HashMap::new();
    let mut of_name = |name: &'static str, class: Class| {
        known.entry((name, class)).or_insert_with(|| of_name(cost, name, class, wave_size)).clone()
    };
    let of = |(index, e): (usize, &Effects)| {
        let inst = &program.insts[index];
        let table = program.arch.table();
        let first = of_name(inst.instruction(table).name, e.class);
        if inst.entry_y == EntryId::MAX {
            return first;
        }
        // Both halves of a dual instruction issue together.
        let second = of_name(table.instructions[inst.instruction_y(table)].name, e.class);
        InstCost { busy: first.busy.max(second.busy), latency: first.latency.max(second.latency), ..first }
    };
    let costs = effects.iter().enumerate().map(of).collect();
    (effects, costs)
}

/// Returns the costs of an instruction by its name and the class of its effects.
pub fn of_name(cost: &ArchCost, name: &str, group: Class, wave_size: u32) -> InstCost {
    let class = cost.class_of(group.name(), name);
    let row = &cost.classes[class];
    let vector = matches!(row.unit, UnitKind::Valu | UnitKind::Transcendental);
    let passes = if vector { (f64::from(wave_size) / cost.issue.lanes.value()).max(1.0) } else { 1.0 };
    // The later passes of a larger wave also delay its result.
    let more = row.busy.value() * (passes - 1.0);
    let latency = row.latency.value() + more;
    InstCost { class, unit: row.unit, busy: row.busy.value() * passes, latency, group }
}

/// Returns the class of the effects of an instruction that is known by its name only: that of its functional group,
/// with all of vector memory together.
pub fn group_of_name(arch: Arch, name: &str) -> Option<Class> {
    let instruction = arch.table().instruction(name)?;
    Some(match instruction.group() {
        "VALU"
            if name.contains("MFMA")
                || name.starts_with("V_WMMA")
                || name.starts_with("V_SWMMA")
                || name.contains("SMFMAC") =>
        {
            Class::Matrix
        }
        "VALU" => Class::Valu,
        "SMEM" => Class::Smem,
        "LDS" => Class::Lds,
        "VMEM" => Class::Vmem,
        "BRANCH" => Class::Branch,
        "EXPORT" => Class::Export,
        "WAVE_CONTROL" | "MESSAGE" | "TRAP" => Class::Control,
        _ => Class::Salu,
    })
}

/// A set of registers as dense indices: SGPRs by operand code, then SCC, then VGPRs.
pub const SCC_INDEX: u16 = 256;
/// The index of the first VGPR.
pub const VGPR_INDEX: u16 = 257;
/// Number of indices: VGPRs with the accumulation registers, and those that MODE extends.
pub const REGISTERS: usize = VGPR_INDEX as usize + 1024;

/// Returns the dense indices of the registers that an instruction reads, or writes.
pub fn registers(effects: &Effects, write: bool) -> Vec<u16> {
    let uses = if write { &effects.writes } else { &effects.reads };
    let mut out: Vec<u16> = Vec::new();
    for used in uses {
        let base = match used.file {
            File::Sgpr => 0,
            File::Scc => SCC_INDEX,
            File::Vgpr => VGPR_INDEX,
        };
        let indices = (0..used.count)
            .map(|k| base + (used.first + k) % if used.file == File::Sgpr { 256 } else { 1024 });
        out.extend(indices.filter(|index| (*index as usize) < REGISTERS));
    }
    out.sort_unstable();
    out.dedup();
    out
}
