//! The format of lcov's tracefiles, which `genhtml` and editors read.

use crate::file::Coverage;
use crate::lines;
use std::fmt::Write as _;

/// Returns the coverage of all source lines in the format of lcov's tracefiles (`man geninfo`, *FILES*). Instructions
/// without a source line are not part of it.
pub fn text(coverage: &Coverage) -> String {
    // Writing to a string does not fail.
    let mut out = String::new();
    for (name, file) in lines::by_file(coverage) {
        let _ = writeln!(out, "TN:\nSF:{}", one_line(&name));
        for (kernel, (line, _)) in &file.kernels {
            let _ = writeln!(out, "FN:{line},{}", function(kernel));
        }
        for (kernel, (_, waves)) in &file.kernels {
            let _ = writeln!(out, "FNDA:{waves},{}", function(kernel));
        }
        let hit = file.kernels.values().filter(|(_, waves)| *waves > 0).count();
        let _ = writeln!(out, "FNF:{}\nFNH:{hit}", file.kernels.len());
        for (number, line) in &file.lines {
            for (block, directions) in line.branches.iter().enumerate() {
                // A branch that was never reached has no counts.
                let reached = directions.iter().any(|count| *count > 0);
                for (branch, count) in directions.iter().enumerate() {
                    let count = if reached { count.to_string() } else { "-".to_string() };
                    let _ = writeln!(out, "BRDA:{number},{block},{branch},{count}");
                }
            }
        }
        let branches = file.branch_share();
        let _ = writeln!(out, "BRF:{}\nBRH:{}", branches.total, branches.covered);
        for (number, line) in &file.lines {
            let _ = writeln!(out, "DA:{number},{}", line.executed);
        }
        let share = file.line_share();
        let _ = writeln!(out, "LF:{}\nLH:{}\nend_of_record", share.total, share.covered);
    }
    out
}

/// Names must not end the record.
fn one_line(name: &str) -> String {
    name.replace(['\n', '\r'], " ")
}

/// A comma separates the fields of a record.
fn function(name: &str) -> String {
    one_line(name).replace(',', ";")
}
