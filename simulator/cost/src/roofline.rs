//! Arithmetic of a launch, and its position below the roofs of the device.

use crate::data::UnitKind;
use crate::model::Prediction;
use crate::profile::Costs;
use isa_spec::tables::EntryId;
use wavesim_machine::exec::program::Program;

/// The position of a launch in the roofline.
#[derive(Debug, Clone, PartialEq)]
pub struct Position {
    /// Floating-point operations of the launch, estimated from the sample.
    pub operations: f64,
    /// Bytes to and from memory.
    pub bytes: f64,
    /// Operations per second.
    pub rate: f64,
    /// Bytes per second that the device's memory reaches.
    pub memory_roof: f64,
    /// Operations per second of the device in f32 vector arithmetic, with multiply-add.
    pub vector_roof: f64,
}

impl Position {
    /// Returns the operations per byte.
    pub fn intensity(&self) -> f64 {
        self.operations / self.bytes.max(1.0)
    }

    /// Returns the operations per second that are possible with this intensity.
    pub fn attainable(&self) -> f64 {
        self.vector_roof.min(self.intensity() * self.memory_roof)
    }
}

/// Returns the floating-point operations of an instruction in a lane, or of a matrix instruction in a wave, by its name:
/// two for a multiply-add, one for other arithmetic.
pub fn operations(name: &str) -> (f64, bool) {
    if let Some(shape) = shape(name) {
        return (shape, true);
    }
    let floats = ["_F16", "_F32", "_F64", "_BF16"].iter().any(|f| name.contains(f));
    let one = [
        "_ADD_", "_SUB_", "_SUBREV_", "_MUL_", "_MAX_", "_MIN_", "_RCP_", "_RSQ_", "_SQRT_", "_EXP_", "_LOG_",
    ];
    let two = ["FMA", "_MAC_", "_MAD_", "_DOT2"];
    let packed = if name.starts_with("V_PK_") { 2.0 } else { 1.0 };
    match () {
        () if !name.starts_with("V_")
            || !floats
            || name.starts_with("V_CVT")
            || name.starts_with("V_CMP") =>
        {
            (0.0, false)
        }
        () if two.iter().any(|part| name.contains(part)) => (2.0 * packed, false),
        () if one.iter().any(|part| name.contains(part)) => (packed, false),
        () => (0.0, false),
    }
}

/// Returns the operations of a matrix instruction: twice the product of its dimensions and blocks.
fn shape(name: &str) -> Option<f64> {
    if !name.contains("MFMA")
        && !name.contains("WMMA")
        && !name.contains("SMFMAC")
        && !name.contains("SWMMAC")
    {
        return None;
    }
    let part = name
        .split('_')
        .find(|part| part.matches('X').count() == 2 && part.starts_with(|c: char| c.is_ascii_digit()))?;
    let product: f64 = part.split('X').map(|n| n.parse::<f64>().unwrap_or(1.0)).product();
    let blocks = name.split('_').find_map(|part| part.strip_suffix('B')?.parse::<f64>().ok()).unwrap_or(1.0);
    Some(2.0 * product * blocks)
}

/// Returns the position of a launch.
pub fn position(program: &Program, p: &Prediction, costs: &Costs) -> Position {
    let table = program.arch.table();
    let mut total = 0.0;
    for (index, counts) in p.counts.iter().enumerate().filter(|(_, c)| c.executed > 0) {
        let inst = &program.insts[index];
        let mut names = vec![inst.instruction(table).name];
        if inst.entry_y != EntryId::MAX {
            names.push(table.instructions[inst.instruction_y(table)].name);
        }
        for name in names {
            let (each, of_wave) = operations(name);
            total += each * if of_wave { counts.executed as f64 } else { counts.lanes as f64 };
        }
    }
    let lines = p.levels.iter().find(|l| l.name == costs.device.memory.name);
    // The simulated processors are as large a part of the traffic as of the instructions.
    let bytes = lines.map_or(0.0, |l| l.bytes as f64) * p.scale;
    let seconds = p.microseconds * 1e-6;
    let clock = costs.device.chip.clock.value() * 1e6;
    let valu = costs.arch.classes.iter().find(|c| c.unit == UnitKind::Valu && c.name == "valu");
    let lanes_per_clock = costs.arch.issue.lanes.value() / valu.map_or(1.0, |c| c.busy.value()).max(1e-6);
    let simds = costs.arch.processor.simds.value() * costs.device.processors() as f64;
    Position {
        operations: total * p.scale,
        bytes,
        rate: total * p.scale / seconds.max(1e-12),
        memory_roof: costs.device.memory.bandwidth.value() * 1e9 * costs.device.memory.efficiency.value(),
        vector_roof: lanes_per_clock * simds * 2.0 * clock,
    }
}
