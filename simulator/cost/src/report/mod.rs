//! Profiles as text, JSON, CSV, a trace for Perfetto, and HTML.

mod csv;
mod html;
mod json;
mod perfetto;
mod text;

pub use csv::csv;
pub use html::html;
pub use json::json;
pub use perfetto::perfetto;
pub use text::{comparison, text};

use crate::model::TICKS;
use crate::profile::{Profile, Row};
use wavesim_machine::exec::program::Program;

/// The label of every prediction of a device: what has been calibrated.
pub fn label(profile: &Profile) -> String {
    let device = &profile.costs.device;
    let changed = if profile.costs.changes == Default::default() { "" } else { " with changed figures" };
    let code = match profile.code == device.arch() {
        true => String::new(),
        false => format!(" by code of {}", profile.code.name()),
    };
    format!("predicted for {}{code}{changed}, not measured; {}", device.title, device.calibration)
}

/// Returns the lower and the upper end of the predicted time in microseconds.
pub fn range(profile: &Profile) -> (f64, f64) {
    let (p, range) = (&profile.prediction, &profile.costs.device.range);
    let error = p.sampling_error;
    (p.microseconds * range.low.value() * (1.0 - error), p.microseconds * range.high.value() * (1.0 + error))
}

/// The file and line of an instruction, its address and text.
pub struct Place {
    /// The source file; empty without debug information.
    pub file: String,
    /// The line; 0 if it is not known.
    pub line: u32,
    /// The address in listings.
    pub address: u64,
    /// The instruction.
    pub text: String,
}

/// Returns where an instruction is.
pub fn place(program: &Program, index: usize) -> Place {
    let location = program.location(program.pcs[index]).unwrap_or_default();
    Place {
        file: location.file.map_or(String::new(), |f| f.to_string()),
        line: location.line,
        address: program.address(program.pcs[index]),
        text: program.text(index),
    }
}

/// The numbers of a row, averaged over its executions where they are per execution.
pub struct Numbers {
    /// Executions in the sample.
    pub executed: u64,
    /// Clocks of waves: issue and stalls.
    pub clocks: f64,
    /// The part that is stalls.
    pub stalled: f64,
    /// Lines per access to memory.
    pub lines: f64,
    /// Clocks of LDS per access beyond one.
    pub conflicts: f64,
    /// Lanes that are not active.
    pub lost_lanes: f64,
}

/// Returns the numbers of a row.
pub fn numbers(profile: &Profile, row: &Row) -> Numbers {
    let c = &row.counts;
    let clocks = |ticks: u64| ticks as f64 / TICKS as f64;
    let executed = c.executed.max(1) as f64;
    Numbers {
        executed: c.executed,
        clocks: clocks(c.issue + c.stalled()),
        stalled: clocks(c.stalled()),
        lines: if c.memory == 0 { 0.0 } else { c.lines as f64 / c.memory as f64 },
        conflicts: if c.passes == 0 { 0.0 } else { c.passes as f64 / executed - 1.0 },
        lost_lanes: f64::from(profile.lanes_of_wave) - c.lanes as f64 / executed,
    }
}
