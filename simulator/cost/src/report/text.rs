//! A profile as text.

use super::{label, numbers, place, range};
use crate::model::{Stall, TICKS};
use crate::profile::{Profile, stalls};
use std::fmt::Write as _;
use wavesim_machine::exec::program::Program;

/// Formats microseconds.
fn time(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{:.3} s", us / 1e6),
        us if us >= 1e3 => format!("{:.3} ms", us / 1e3),
        us => format!("{us:.2} us"),
    }
}

/// Formats a large number with a prefix.
fn si(value: f64) -> String {
    let (value, prefix) = match value {
        v if v >= 1e12 => (v / 1e12, "T"),
        v if v >= 1e9 => (v / 1e9, "G"),
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    format!("{value:.2} {prefix}")
}

/// Returns the profile: a summary, and a table of the instructions, of which `rows` cost most, or all.
pub fn text(profile: &Profile, program: &Program, rows: Option<usize>) -> String {
    let mut out = String::new();
    summary(profile, &mut out);
    let all: f64 = profile.rows.iter().map(|row| numbers(profile, row).clocks).sum();
    let mut shown: Vec<_> = profile.rows.iter().collect();
    if let Some(rows) = rows.filter(|rows| *rows < shown.len()) {
        shown.sort_by(|a, b| numbers(profile, b).clocks.total_cmp(&numbers(profile, a).clocks));
        shown.truncate(rows);
        shown.sort_by_key(|row| row.index);
    }
    let _ = writeln!(
        out,
        "\n{:>7} {:>9} {:>8} {:>8} {:>6} {:>9} {:>6}  line  instruction",
        "share", "executed", "clocks", "stalled", "lines", "conflicts", "lost"
    );
    for row in shown {
        let n = numbers(profile, row);
        let p = place(program, row.index);
        let each = |clocks: f64| clocks / n.executed.max(1) as f64;
        let stalls = row.counts.stalls;
        let most = (0..stalls.len()).max_by_key(|at| stalls[*at]).filter(|at| stalls[*at] > 0);
        let reason = most.map_or(String::new(), |at| format!("  ; {}", Stall::NAMES[at]));
        let rules: String = row.remarks.iter().map(|r| format!(" [{}]", r.rule)).collect();
        let optional = |value: f64| if value == 0.0 { String::new() } else { format!("{value:.1}") };
        let _ = writeln!(
            out,
            "{:>6.1}% {:>9} {:>8.1} {:>8.1} {:>6} {:>9} {:>6} {:>5}  {}{reason}{rules}",
            100.0 * n.clocks / all.max(1e-9),
            n.executed,
            each(n.clocks),
            each(n.stalled),
            optional(n.lines),
            optional(n.conflicts),
            optional(n.lost_lanes),
            if p.line == 0 { format!("{:x}", p.address) } else { p.line.to_string() },
            p.text
        );
    }
    out
}

fn summary(profile: &Profile, out: &mut String) {
    let (p, plan) = (&profile.prediction, &profile.plan);
    let (low, high) = range(profile);
    let _ = writeln!(out, "{}", label(profile));
    let _ = writeln!(
        out,
        "time          {:>12}   {} to {}; {:.0} clocks, and {:.1} us of launch",
        time(p.microseconds),
        time(low),
        time(high),
        p.clocks,
        p.launch
    );
    let _ = writeln!(out, "bound by      {}: {}", profile.bound.name, profile.bound.why);
    let o = &plan.occupancy;
    let _ = writeln!(
        out,
        "occupancy     {} of {} waves a SIMD, limited by {}; {:.1} waves a {} on average",
        o.waves_of_simd.min(o.waves.div_ceil(profile.costs.arch.processor.simds.count().max(1) as u32)),
        o.most,
        o.limit.name(),
        p.waves,
        profile.costs.arch.processor.name
    );
    let error = match p.sampling_error {
        0.0 => "all that one die runs".to_string(),
        error => format!("sampling error {:.1} %", 100.0 * error),
    };
    let _ = writeln!(
        out,
        "sample        {} of {} workgroups, {} of {} instructions{}; {error}",
        p.sample.0,
        plan.workgroups,
        p.sample.1,
        p.instructions,
        if p.windows > 1 {
            format!(" in up to {} parts of each workgroup", p.windows)
        } else {
            String::new()
        }
    );
    let r = &profile.roofline;
    let _ = writeln!(
        out,
        "roofline      {}FLOP/s of {}FLOP/s attainable at {:.2} FLOP/byte; memory {}B/s",
        si(r.rate),
        si(r.attainable()),
        r.intensity(),
        si(r.bytes / (p.microseconds * 1e-6).max(1e-12)),
    );
    let units = p.units.iter().filter(|(_, busy)| *busy >= 0.005);
    let units: Vec<String> = units.map(|(u, busy)| format!("{} {:.0} %", u.name(), 100.0 * busy)).collect();
    let _ = writeln!(out, "units busy    {}", units.join(", "));
    let level = |l: &crate::model::LevelCount| {
        let all = l.hits + l.misses;
        let hits = if l.misses == 0 {
            String::new()
        } else {
            format!(" ({:.0} % hits)", 100.0 * l.hits as f64 / all as f64)
        };
        format!("{} {:.0} %{hits}", l.name, 100.0 * l.busy)
    };
    let levels: Vec<String> = p.levels.iter().map(level).collect();
    let _ = writeln!(out, "memory busy   {}", levels.join(", "));
    let sums = stalls(p);
    let issue: f64 = p.counts.iter().map(|c| c.issue as f64 / TICKS as f64).sum();
    let all = issue + sums.iter().sum::<f64>();
    let named = Stall::NAMES.iter().zip(sums).filter(|(_, s)| *s > 0.005 * all);
    let named: Vec<String> = named.map(|(name, s)| format!("{name} {:.0} %", 100.0 * s / all)).collect();
    let _ = writeln!(out, "waves         issue {:.0} %, {}", 100.0 * issue / all.max(1.0), named.join(", "));
    if !p.unclassified.is_empty() {
        let _ = writeln!(out, "no class      {}: the default is assumed", p.unclassified.join(", "));
    }
}

/// Returns the figures of a profile beside those with changes.
pub fn comparison(before: &Profile, after: &Profile) -> String {
    let mut out = format!("{:<26} {:>14} {:>14} {:>8}\n", "", "as is", "what if", "change");
    type Figure = (&'static str, fn(&Profile) -> f64);
    let rows: [Figure; 7] = [
        ("time, us", |p| p.prediction.microseconds),
        ("clocks", |p| p.prediction.clocks),
        ("waves a SIMD", |p| f64::from(p.plan.occupancy.waves_of_simd)),
        ("workgroups a processor", |p| f64::from(p.plan.occupancy.workgroups)),
        ("resident waves", |p| p.prediction.waves),
        ("bytes of memory", |p| p.roofline.bytes),
        ("LDS passes", |p| {
            p.prediction.counts.iter().map(|c| c.passes as f64).sum::<f64>() * p.prediction.scale
        }),
    ];
    for (name, of) in rows {
        let (a, b) = (of(before), of(after));
        let change = if a == 0.0 { String::new() } else { format!("{:+.1} %", 100.0 * (b - a) / a) };
        let _ = writeln!(out, "{name:<26} {a:>14.2} {b:>14.2} {change:>8}");
    }
    let _ = writeln!(out, "{:<26} {:>14} {:>14}", "bound by", before.bound.name, after.bound.name);
    let _ = writeln!(out, "{}", label(after));
    out
}
