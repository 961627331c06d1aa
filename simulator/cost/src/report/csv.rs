//! The instructions of a profile as CSV.

use super::{label, numbers, place};
use crate::model::{Stall, TICKS};
use crate::profile::Profile;
use std::fmt::Write as _;
use wavesim_machine::exec::program::Program;

/// Quotes a field.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Returns a row per executed instruction, below a comment with the label and a row of names.
pub fn csv(profile: &Profile, program: &Program) -> String {
    let mut out = format!("# {}\n", label(profile));
    out += "address,file,line,instruction,class,executed,clocks,stalled,lines_per_access,lds_conflict_clocks,lost_lanes";
    for name in Stall::NAMES {
        let _ = write!(out, ",{}", name.replace(' ', "_"));
    }
    out += ",remarks\n";
    for row in &profile.rows {
        let (n, at) = (numbers(profile, row), place(program, row.index));
        let _ = write!(
            out,
            "{:x},{},{},{},{},{},{:.2},{:.2},{:.3},{:.3},{:.2}",
            at.address,
            quoted(&at.file),
            at.line,
            quoted(&at.text),
            row.class,
            n.executed,
            n.clocks,
            n.stalled,
            n.lines,
            n.conflicts,
            n.lost_lanes
        );
        for ticks in row.counts.stalls {
            let _ = write!(out, ",{:.2}", ticks as f64 / TICKS as f64);
        }
        let rules: Vec<&str> = row.remarks.iter().map(|r| r.rule).collect();
        let _ = writeln!(out, ",{}", rules.join(" "));
    }
    out
}
