//! Reports as text and as JSON.

use crate::file::Coverage;
use crate::lines::{self, Share};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The version of the JSON report.
pub const SCHEMA: &str = "wavesim-coverage-report-1";

/// Names with the number of executions.
pub type Counts = BTreeMap<String, u64>;

/// What has run, by kinds of things.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Instructions of all programs.
    pub instructions: Share,
    /// Directions of conditional branches.
    pub branches: Share,
    /// Active lanes of all executions, and the lanes that the waves have.
    pub lanes: [u64; 2],
    /// Executions by mnemonic; 0 for those that have not run.
    pub mnemonics: Counts,
    /// Executions by encoding.
    pub encodings: Counts,
    /// Executions by kind of operand.
    pub operands: Counts,
    /// Executions by modifier.
    pub modifiers: Counts,
    /// Executions by mode.
    pub modes: Counts,
}

/// Returns the modifiers in the text of an instruction: the words after its operands, without their values.
fn modifiers(text: &str) -> Vec<&str> {
    let mut words = text.split_whitespace();
    let (mut found, mut in_operands) = (Vec::new(), true);
    words.next();
    for word in words {
        if !in_operands && !word.starts_with("::") {
            found.push(word.split(':').next().unwrap_or(word));
        }
        // The last operand has no comma; that of VOPD begins the second half.
        in_operands = word.ends_with(',') || word == "::" || in_operands && word.ends_with("::");
        if word == "::" {
            found.clear();
        }
    }
    found.retain(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
    found
}

/// Describes the low byte of MODE.
fn modes(byte: u8) -> [String; 3] {
    let round = |bits| ["to nearest", "up", "down", "toward zero"][usize::from(bits & 3)];
    let flush = |bits| ["flushed", "flushed in results", "flushed in sources", "kept"][usize::from(bits & 3)];
    [
        format!("f32 rounded {}", round(byte)),
        format!("f16 and f64 rounded {}", round(byte >> 2)),
        format!("denormals of f32 {}, of f16 and f64 {}", flush(byte >> 4), flush(byte >> 6)),
    ]
}

fn add(counts: &mut Counts, name: &str, count: u64) {
    match counts.get_mut(name) {
        Some(sum) => *sum = sum.saturating_add(count),
        None => {
            counts.insert(name.to_string(), count);
        }
    }
}

impl Totals {
    /// Sums up all programs.
    pub fn of(coverage: &Coverage) -> Totals {
        let mut totals = Totals::default();
        for program in &coverage.programs {
            for (mode, count) in &program.modes {
                modes(*mode).iter().for_each(|name| add(&mut totals.modes, name, *count));
            }
            for inst in &program.instructions {
                totals.instructions.add(inst.executed > 0);
                totals.lanes[0] = totals.lanes[0].saturating_add(inst.lanes);
                let slots = inst.executed.saturating_mul(u64::from(program.wave_size));
                totals.lanes[1] = totals.lanes[1].saturating_add(slots);
                inst.branch.iter().flatten().for_each(|count| totals.branches.add(*count > 0));
                let mnemonic = inst.text.split_whitespace().next().unwrap_or_default();
                add(&mut totals.mnemonics, mnemonic, inst.executed);
                add(&mut totals.encodings, &inst.encoding, inst.executed);
                inst.operands.iter().for_each(|name| add(&mut totals.operands, name, inst.executed));
                modifiers(&inst.text).iter().for_each(|name| add(&mut totals.modifiers, name, inst.executed));
            }
        }
        totals
    }

    /// Returns the kinds of things with their titles.
    pub fn kinds(&self) -> [(&'static str, &Counts); 5] {
        [
            ("mnemonics", &self.mnemonics),
            ("encodings", &self.encodings),
            ("operands", &self.operands),
            ("modifiers", &self.modifiers),
            ("modes", &self.modes),
        ]
    }
}

fn share_of(counts: &Counts) -> Share {
    let mut share = Share::default();
    counts.values().for_each(|count| share.add(*count > 0));
    share
}

/// Returns ranges of lines as text: `3, 8-10`.
pub fn ranges(list: &[(u32, u32)]) -> String {
    let range = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    list.iter().map(range).collect::<Vec<_>>().join(", ")
}

/// Returns the report as text: the shares of each file, and what has run of each kind.
pub fn text(coverage: &Coverage) -> String {
    // Writing to a string does not fail.
    let mut out = String::new();
    let totals = Totals::of(coverage);
    let share = |share: Share| format!("{:5.1} % ({} of {})", share.percent(), share.covered, share.total);
    let _ = writeln!(out, "launches      {}, of {} programs", coverage.launches, coverage.programs.len());
    let _ = writeln!(out, "instructions  {}", share(totals.instructions));
    let _ = writeln!(out, "branches      {}", share(totals.branches));
    let percent = 100.0 * totals.lanes[0] as f64 / totals.lanes[1].max(1) as f64;
    let _ = writeln!(out, "lanes         {percent:5.1} % active");
    for (name, file) in lines::by_file(coverage) {
        let _ = writeln!(out, "\n{name}");
        let _ = writeln!(out, "  lines       {}", share(file.line_share()));
        let _ = writeln!(out, "  branches    {}", share(file.branch_share()));
        let missing = file.missing();
        if !missing.is_empty() {
            let _ = writeln!(out, "  not run     {}", ranges(&missing));
        }
        let one_way = file.lines.iter().filter(|(_, line)| {
            line.branches.iter().any(|directions| directions.iter().filter(|count| **count > 0).count() == 1)
        });
        let one_way: Vec<(u32, u32)> = one_way.map(|(number, _)| (*number, *number)).collect();
        if !one_way.is_empty() {
            let _ = writeln!(out, "  one way     {}", ranges(&one_way));
        }
    }
    for program in coverage.programs.iter().filter(|p| p.instructions.iter().all(|i| i.line == 0)) {
        let mut own = Share::default();
        program.instructions.iter().for_each(|inst| own.add(inst.executed > 0));
        let _ = writeln!(
            out,
            "\n{} ({}, no source lines)\n  instructions{}",
            program.name,
            program.arch,
            share(own)
        );
    }
    for (title, counts) in totals.kinds().into_iter().filter(|(_, counts)| !counts.is_empty()) {
        let _ = writeln!(out, "\n{title}: {}", share(share_of(counts)).trim_start());
        let mut list: Vec<(&String, &u64)> = counts.iter().collect();
        list.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
        for (name, count) in list {
            let _ = writeln!(out, "  {name:<48} {count:>12}");
        }
    }
    out
}

/// Returns the report as JSON.
pub fn json(coverage: &Coverage) -> Value {
    let totals = Totals::of(coverage);
    let share = |share: Share| json!({ "covered": share.covered, "total": share.total });
    let files: serde_json::Map<String, Value> = lines::by_file(coverage)
        .into_iter()
        .map(|(name, file)| {
            let lines: serde_json::Map<String, Value> = file
                .lines
                .iter()
                .map(|(number, line)| {
                    let value =
                        json!({ "executed": line.executed, "lanes": line.lanes, "branches": line.branches });
                    (number.to_string(), value)
                })
                .collect();
            let value = json!({
                "lines": share(file.line_share()), "branches": share(file.branch_share()), "counts": lines,
            });
            (name, value)
        })
        .collect();
    let mut value = json!({
        "schema": SCHEMA,
        "launches": coverage.launches,
        "instructions": share(totals.instructions),
        "branches": share(totals.branches),
        "lanes": totals.lanes,
        "files": files,
    });
    for (title, counts) in totals.kinds() {
        value[title] = json!(counts);
    }
    value
}
