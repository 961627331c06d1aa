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

/// Returns by how much the simulated time is shorter than that of whole waves, and the relative standard error of this
/// ratio, from how the clocks of an instruction differ between the parts.
pub fn length(groups: &[Group], ticks: &[WindowTicks], range: &Range) -> (f64, f64) {
    let (mut whole, mut simulated, mut errors, mut uncertain) = (0.0, 0.0, 0.0, false);
    for (group, ticks) in groups.iter().zip(ticks) {
        let parts = parts(group, ticks);
        let own: f64 = parts.iter().map(|part| part.ticks).sum();
        let extended: f64 = parts.iter().map(|part| part.ticks * part.segment / part.recorded).sum();
        (whole, simulated) = (whole + extended, simulated + own);
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
    (if simulated > 0.0 { whole / simulated } else { 1.0 }, error)
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
