//! Waves that are too long are recorded in parts, each of which stands for the instructions until the next one.

use super::stall::WindowTicks;
use crate::data::Range;
use crate::record::Group;

/// A part of a workgroup's run.
struct Part {
    /// Ticks of its waves.
    ticks: f64,
    /// Instructions that were recorded.
    recorded: f64,
    /// Instructions that it stands for.
    segment: f64,
}

/// By how much simulated times are shorter than those of whole waves.
pub struct Lengths {
    /// Of all workgroups together.
    pub all: f64,
    /// By workgroup: some are recorded in more parts than others.
    pub each: Vec<f64>,
    /// The relative standard error, from how the clocks of an instruction differ between the parts.
    pub error: f64,
}

/// Compares the parts of workgroups with their whole runs.
pub fn lengths(groups: &[Group], ticks: &[WindowTicks], range: &Range) -> Lengths {
    let mut each = Vec::with_capacity(groups.len());
    let (mut whole, mut simulated, mut errors, mut uncertain) = (0.0, 0.0, 0.0, false);
    for (group, ticks) in groups.iter().zip(ticks) {
        let parts = parts(group, ticks);
        let own: f64 = parts.iter().map(|part| part.ticks).sum();
        let extended: f64 = parts.iter().map(|part| part.ticks * part.segment / part.recorded).sum();
        (whole, simulated) = (whole + extended, simulated + own);
        each.push(if own > 0.0 { extended / own } else { 1.0 });
        let (recorded, segments) =
            parts.iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.recorded, sum.1 + part.segment));
        if segments <= recorded {
            continue;
        }
        if parts.len() < 2 {
            uncertain = true;
            continue;
        }
        let mean = extended / segments;
        let weight = |part: &Part| part.segment / segments;
        let variance: f64 =
            parts.iter().map(|part| weight(part) * (part.ticks / part.recorded - mean).powi(2)).sum();
        let independent = 1.0 / parts.iter().map(|part| weight(part).powi(2)).sum::<f64>();
        let left_out = 1.0 - recorded / segments;
        errors += (variance / (independent - 1.0).max(1.0) * left_out) / mean.max(1e-9).powi(2);
    }
    // Workgroups have the same phases, so that more of them do not make the estimate better.
    let error = (errors / groups.len().max(1) as f64).sqrt();
    let error = if uncertain { error.max(range.cut_waves.value()) } else { error };
    Lengths { all: if simulated > 0.0 { whole / simulated } else { 1.0 }, each, error }
}

impl Lengths {
    /// Returns when the last of workgroups that run at the same time would end, in ticks.
    pub fn end(&self, spans: &[(u64, u64)]) -> f64 {
        let end = |((start, end), length): (&(u64, u64), &f64)| *start as f64 + (end - start) as f64 * length;
        spans.iter().zip(&self.each).map(end).fold(0.0, f64::max)
    }
}

/// Returns the parts of a workgroup with records.
fn parts(group: &Group, ticks: &WindowTicks) -> Vec<Part> {
    let windows = &group.windows;
    let of = |(index, ticks): (usize, &u64)| {
        let window = windows.get(index)?;
        let next = windows.get(index + 1);
        let recorded = group.waves.iter().enumerate().map(|(number, wave)| {
            let from = window.starts.get(number).copied().unwrap_or(0);
            let to = next.and_then(|w| w.starts.get(number).copied()).unwrap_or(wave.records.len() as u32);
            u64::from(to - from)
        });
        let recorded = recorded.sum::<u64>();
        let segment = next.map_or(group.executed, |w| w.executed) - window.executed;
        // The last gap may have ended with the workgroup.
        (recorded > 0).then_some(Part {
            ticks: *ticks as f64,
            recorded: recorded as f64,
            segment: segment as f64,
        })
    };
    ticks.0.iter().enumerate().filter_map(of).collect()
}
