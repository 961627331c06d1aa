//! `--profile-lines`: the program, with the execution count and the average number of active lanes of each
//! line.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use wavesim_engine::observe::{Done, Observer, Step};
use wavesim_machine::exec::program::Program;

/// Execution counts by instruction.
pub struct Profile {
    counts: Vec<u64>,
    lanes: Vec<u64>,
    exec: u64,
}

impl Profile {
    /// Creates counts of zero for each instruction.
    pub fn new(program: &Program) -> Profile {
        let n = program.insts.len();
        Profile { counts: vec![0; n], lanes: vec![0; n], exec: 0 }
    }

    /// Returns the number of active lanes of all executions, by instruction.
    pub fn lanes(&self) -> &[u64] {
        &self.lanes
    }

    /// Returns the source with its counts; without source, the executed instructions by PC.
    pub fn listing(&self, program: &Program, source: Option<&str>) -> String {
        let total: u64 = self.counts.iter().sum();
        let share = |n: u64| if total == 0 { 0.0 } else { 100.0 * n as f64 / total as f64 };
        let mut out = format!("{:>12} {:>7} {:>6}\n", "executed", "share", "lanes");
        let mut row = |count: u64, lanes: u64, text: &str| {
            let _ = match count {
                0 => writeln!(out, "{:>12} {:>7} {:>6}  {text}", "-", "", ""),
                n => writeln!(out, "{n:>12} {:>6.1}% {:>6.1}  {text}", share(n), lanes as f64 / n as f64),
            };
        };
        if let Some(source) = source {
            for (number, text) in (1..).zip(source.lines()) {
                let here = (0..program.insts.len()).filter(|&at| program.lines[at] == number);
                let (count, lanes) =
                    here.fold((0, 0), |(c, l), at| (c + self.counts[at], l + self.lanes[at]));
                row(count, lanes, &format!("{number:>5}  {text}"));
            }
            return out;
        }
        // Padding after the program is long and never runs.
        let last = self.counts.iter().rposition(|c| *c != 0).map_or(0, |at| at + 1);
        for at in 0..last {
            let pc = program.pcs[at];
            let mut text = format!("{:>6x}:  {}", program.address(pc), program.text(at));
            // Compilers interleave the instructions of different lines.
            if let Some(location) = program.location(pc) {
                text = format!("{text:<72}  ; {location}");
            }
            row(self.counts[at], self.lanes[at], &text);
        }
        out
    }
}

impl Observer for Profile {
    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        self.exec = step.wave.exec();
        ControlFlow::Continue(())
    }

    fn after(&mut self, step: &Step<'_>, _done: &Done<'_>) {
        self.counts[step.index] += 1;
        self.lanes[step.index] += self.exec.count_ones() as u64;
    }
}
