//! Parsing of arguments that several commands share.

use std::ops::RangeInclusive;

/// Splits off the first word, which ends at a space or, for `x/8f32`, at a slash.
pub(super) fn split_command(line: &str) -> (&str, &str) {
    let end = line.find(|c: char| c.is_whitespace() || c == '/').unwrap_or(line.len());
    line.split_at(end)
}

/// Parses a number of steps; the default is 1.
pub(super) fn count(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(1);
    }
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}

/// Parses `A..B` (both included) or a single lane.
pub(super) fn lane_range(text: &str) -> Result<RangeInclusive<u32>, String> {
    let number = |t: &str| t.trim().parse::<u32>().map_err(|_| format!("`{t}` is not a lane number"));
    let (first, last) = match text.split_once("..") {
        Some((a, b)) => (number(a)?, number(b.trim_start_matches('='))?),
        None => (number(text)?, number(text)?),
    };
    if first > last {
        return Err(format!("{first}..{last} is an empty range of lanes"));
    }
    Ok(first..=last)
}
