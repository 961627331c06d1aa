//! Coverage by source line: of all programs that have code of a file.

use crate::file::{Coverage, Program};
use std::collections::BTreeMap;

/// A line with code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// Number of executions: of the instruction of the line that each program has executed most, summed.
    pub executed: u64,
    /// Instructions of the line, and those that have run.
    pub instructions: [usize; 2],
    /// Active lanes of all executions of vector and scalar instructions, and the lanes that the waves have.
    pub lanes: [u64; 2],
    /// The conditional branches: executions that have jumped, and those that have not.
    pub branches: Vec<[u64; 2]>,
}

/// A file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceFile {
    /// Its lines with code, by number.
    pub lines: BTreeMap<u32, Line>,
    /// The kernels that begin in the file: the first line, and the number of waves, by name.
    pub kernels: BTreeMap<String, (u32, u64)>,
}

/// Covered parts, and all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// Number of covered parts.
    pub covered: usize,
    /// Number of all parts.
    pub total: usize,
}

impl Share {
    /// Adds a part.
    pub fn add(&mut self, covered: bool) {
        self.covered += usize::from(covered);
        self.total += 1;
    }

    /// Returns the covered share in percent; everything, if there is nothing.
    pub fn percent(self) -> f64 {
        if self.total == 0 { 100.0 } else { 100.0 * self.covered as f64 / self.total as f64 }
    }
}

impl SourceFile {
    /// Returns the share of the lines that have run.
    pub fn line_share(&self) -> Share {
        let mut share = Share::default();
        self.lines.values().for_each(|line| share.add(line.executed > 0));
        share
    }

    /// Returns the share of the directions of branches that have been taken.
    pub fn branch_share(&self) -> Share {
        let mut share = Share::default();
        let directions = self.lines.values().flat_map(|line| line.branches.iter().flatten());
        directions.for_each(|count| share.add(*count > 0));
        share
    }

    /// Returns the lines that have not run, as ranges.
    pub fn missing(&self) -> Vec<(u32, u32)> {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        let mut last_was_missing = false;
        for (number, line) in &self.lines {
            let missing = line.executed == 0;
            match ranges.last_mut() {
                Some(last) if missing && last_was_missing => last.1 = *number,
                _ if missing => ranges.push((*number, *number)),
                _ => {}
            }
            last_was_missing = missing;
        }
        ranges
    }
}

/// Returns the lines of each file, by name.
pub fn by_file(coverage: &Coverage) -> BTreeMap<String, SourceFile> {
    let mut files: BTreeMap<String, SourceFile> = BTreeMap::new();
    for program in &coverage.programs {
        for (file, own) in of_program(program) {
            let all = files.entry(file).or_default();
            for (number, line) in own.lines {
                let sum = all.lines.entry(number).or_default();
                sum.executed = sum.executed.saturating_add(line.executed);
                for k in 0..2 {
                    sum.instructions[k] += line.instructions[k];
                    sum.lanes[k] = sum.lanes[k].saturating_add(line.lanes[k]);
                }
                sum.branches.extend(line.branches);
            }
            for (name, (first, waves)) in own.kernels {
                let known = all.kernels.entry(name).or_insert((first, 0));
                *known = (known.0.min(first), known.1.saturating_add(waves));
            }
        }
    }
    files
}

fn of_program(program: &Program) -> BTreeMap<String, SourceFile> {
    let mut files: BTreeMap<String, SourceFile> = BTreeMap::new();
    let mut is_first = true;
    for inst in program.instructions.iter().filter(|inst| inst.line != 0) {
        let Some(name) = &inst.file else { continue };
        let file = files.entry(name.clone()).or_default();
        if std::mem::take(&mut is_first) {
            file.kernels.insert(program.name.clone(), (inst.line, program.waves));
        }
        let line = file.lines.entry(inst.line).or_default();
        line.executed = line.executed.max(inst.executed);
        line.instructions[0] += 1;
        line.instructions[1] += usize::from(inst.executed > 0);
        line.lanes[0] = line.lanes[0].saturating_add(inst.lanes);
        line.lanes[1] =
            line.lanes[1].saturating_add(inst.executed.saturating_mul(u64::from(program.wave_size)));
        line.branches.extend(inst.branch);
    }
    files
}
