//! Recorded schedules: which wave of which workgroup executed how many instructions, turn by turn. A run that follows
//! one is the recorded run again, in every command that takes `--schedule`.

use std::fmt::Write as _;

/// The instructions that a wave executes before another one runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The workgroup, by its place in the order of starts ([`Recorded::groups`]).
    pub group: u64,
    /// The wave's index in its workgroup.
    pub wave: u32,
    /// Number of wave-instructions, at least 1.
    pub instructions: u64,
}

/// A recorded schedule. After its last turn, the waves that have not ended take turns by index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The workgroups in the order of their starts, by number (x fastest); those that are not listed follow in
    /// ascending order.
    pub groups: Vec<u64>,
    turns: Vec<Turn>,
    /// By turn: the number of instructions that the dispatch has executed at its end.
    ends: Vec<u64>,
    /// Identifies the kernel and its arguments.
    pub kernel: u64,
}

/// Why a text is not a schedule that can be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The first line is another one.
    #[error("not a schedule file: the first line is not `{HEADER}`")]
    Header,
    /// Another version has written it.
    #[error(
        "the schedule was recorded by version {found}, and this is {own}: record it again with `wavesim explore`"
    )]
    Version {
        /// The version that the file names.
        found: String,
        /// The version of this program.
        own: &'static str,
    },
    /// It is one of other code, another launch, or other arguments.
    #[error(
        "the schedule is one of another kernel, or of other arguments (it was recorded for {found:016x}, and this is {own:016x})"
    )]
    Kernel {
        /// The launch that the file names.
        found: u64,
        /// The launch that is to run.
        own: u64,
    },
    /// A line has an unknown form.
    #[error("line {line}: `{text}` is not valid: {expected}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// The line.
        text: String,
        /// What is expected there.
        expected: &'static str,
    },
    /// The last lines are missing.
    #[error("the schedule is truncated: it has {turns} turns, and no line `end {turns}`")]
    Truncated {
        /// Number of turns in the file.
        turns: usize,
    },
}

/// The first line of a schedule file.
const HEADER: &str = "wavesim schedule 1";
/// The version of the project, which is common to all of its crates.
const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Recorded {
    /// Creates a schedule for the launch with this number. Turns without instructions are left out.
    pub fn new(kernel: u64, groups: Vec<u64>, turns: impl IntoIterator<Item = Turn>) -> Recorded {
        let mut recorded = Recorded { groups, kernel, ..Recorded::default() };
        for turn in turns.into_iter().filter(|turn| turn.instructions > 0) {
            recorded.push(turn);
        }
        recorded
    }

    fn push(&mut self, turn: Turn) {
        let end = self.total().saturating_add(turn.instructions);
        match (self.turns.last_mut(), self.ends.last_mut()) {
            (Some(last), Some(total)) if (last.group, last.wave) == (turn.group, turn.wave) => {
                last.instructions = last.instructions.saturating_add(turn.instructions);
                *total = end;
            }
            _ => {
                self.turns.push(turn);
                self.ends.push(end);
            }
        }
    }

    /// The turns in their order. Consecutive ones are of different waves.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// Number of instructions of all turns.
    pub fn total(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the turn after `time` instructions of the dispatch, and the time of its end.
    pub fn turn_at(&self, time: u64) -> Option<(Turn, u64)> {
        let at = self.ends.partition_point(|end| *end <= time);
        Some((*self.turns.get(at)?, self.ends[at]))
    }

    /// Returns the schedule as the text of a file. `note` returns a comment for a turn.
    pub fn text(&self, note: impl Fn(usize, &Turn) -> Option<String>) -> String {
        let mut out = format!("{HEADER}\nversion {VERSION}\nkernel {:016x}\n", self.kernel);
        let groups: Vec<String> = self.groups.iter().map(u64::to_string).collect();
        let _ = writeln!(out, "groups {}", groups.join(" "));
        for (at, turn) in self.turns.iter().enumerate() {
            let _ = write!(out, "turn {} {} {}", turn.group, turn.wave, turn.instructions);
            if let Some(note) = note(at, turn) {
                let _ = write!(out, "  # {}", note.replace('\n', " "));
            }
            out.push('\n');
        }
        let _ = writeln!(out, "end {}", self.turns.len());
        out
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// The text is not a complete schedule that this version has recorded.
    pub fn parse(text: &str) -> Result<Recorded, ScheduleError> {
        let mut lines = text.lines().enumerate().map(|(at, line)| {
            let line = line.split_once('#').map_or(line, |(line, _)| line);
            (at + 1, line.trim())
        });
        if lines.next().map(|line| line.1) != Some(HEADER) {
            return Err(ScheduleError::Header);
        }
        let mut recorded = Recorded::default();
        let (mut version, mut kernel, mut ended) = (false, false, false);
        for (line, text) in lines.filter(|line| !line.1.is_empty()) {
            let wrong =
                |expected| ScheduleError::Line { line, text: text.chars().take(80).collect(), expected };
            let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
            if ended {
                return Err(wrong("nothing follows the line `end`"));
            }
            match word {
                "version" if rest == VERSION => version = true,
                "version" => {
                    return Err(ScheduleError::Version { found: rest.to_string(), own: VERSION });
                }
                "kernel" => {
                    let number = u64::from_str_radix(rest, 16);
                    recorded.kernel = number.map_err(|_| wrong("a hexadecimal number follows `kernel`"))?;
                    kernel = true;
                }
                "groups" => {
                    let numbers: Result<Vec<u64>, _> = rest.split_whitespace().map(str::parse).collect();
                    recorded.groups =
                        numbers.map_err(|_| wrong("the numbers of workgroups follow `groups`"))?;
                    let mut sorted = recorded.groups.clone();
                    sorted.sort_unstable();
                    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
                        return Err(wrong("a workgroup starts only once"));
                    }
                }
                "turn" => {
                    let expected = "a turn is `turn WORKGROUP WAVE INSTRUCTIONS`";
                    let numbers: Vec<u64> = rest.split_whitespace().map_while(|n| n.parse().ok()).collect();
                    let [group, wave, instructions] = numbers[..] else { return Err(wrong(expected)) };
                    if instructions == 0 {
                        return Err(wrong(expected));
                    }
                    let wave = u32::try_from(wave).map_err(|_| wrong(expected))?;
                    recorded.push(Turn { group, wave, instructions });
                }
                "end" => {
                    if rest.parse() != Ok(recorded.turns.len()) {
                        return Err(ScheduleError::Truncated { turns: recorded.turns.len() });
                    }
                    ended = true;
                }
                _ => return Err(wrong("lines are version, kernel, groups, turn and end")),
            }
        }
        match (version && kernel, ended) {
            (true, true) => Ok(recorded),
            (false, true) => Err(ScheduleError::Header),
            (_, false) => Err(ScheduleError::Truncated { turns: recorded.turns.len() }),
        }
    }

    /// Checks that the schedule was recorded for this launch.
    ///
    /// # Errors
    /// It was recorded for another one.
    pub fn check(&self, kernel: u64) -> Result<(), ScheduleError> {
        match self.kernel == kernel {
            true => Ok(()),
            false => Err(ScheduleError::Kernel { found: self.kernel, own: kernel }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns() -> [Turn; 4] {
        [(0, 0, 3), (1, 0, 2), (1, 0, 5), (0, 1, 1)].map(|(group, wave, instructions)| Turn {
            group,
            wave,
            instructions,
        })
    }

    #[test]
    fn a_schedule_is_written_and_read() {
        let schedule = Recorded::new(0x1234, vec![2, 0], turns());
        assert_eq!(schedule.turns().len(), 3, "turns of the same wave are one");
        assert_eq!(schedule.turn_at(2).unwrap(), (turns()[0], 3));
        assert_eq!(schedule.turn_at(3).unwrap(), (Turn { group: 1, wave: 0, instructions: 7 }, 10));
        assert_eq!(schedule.turn_at(11), None);
        let text = schedule.text(|at, _| (at == 1).then(|| "line 12: the flag".to_string()));
        assert_eq!(Recorded::parse(&text), Ok(schedule));
        assert!(text.contains("turn 1 0 7  # line 12: the flag\n"), "{text}");
    }

    #[test]
    fn wrong_files_are_errors() {
        let text = Recorded::new(7, vec![0], turns()).text(|_, _| None);
        assert_eq!(Recorded::parse("hello"), Err(ScheduleError::Header));
        assert_eq!(Recorded::parse(""), Err(ScheduleError::Header));
        let other = text.replace(&format!("version {VERSION}"), "version 0.0.1");
        assert!(matches!(Recorded::parse(&other), Err(ScheduleError::Version { .. })));
        let lines: Vec<&str> = text.lines().collect();
        for kept in 1..lines.len() {
            let part = lines[..kept].join("\n");
            assert!(matches!(Recorded::parse(&part), Err(ScheduleError::Truncated { .. })), "{part}");
        }
        let missing = text.replace("turn 0 0 3\n", "");
        assert_eq!(Recorded::parse(&missing), Err(ScheduleError::Truncated { turns: 2 }));
        for (from, to) in
            [("turn 0 0 3", "turn 0 0"), ("turn 0 0 3", "turn 0 x 3"), ("groups 0", "groups 0 0")]
        {
            let wrong = text.replace(from, to);
            assert!(matches!(Recorded::parse(&wrong), Err(ScheduleError::Line { .. })), "{wrong}");
        }
        let schedule = Recorded::parse(&text).unwrap();
        assert_eq!(schedule.check(7), Ok(()));
        assert_eq!(schedule.check(8), Err(ScheduleError::Kernel { found: 7, own: 8 }));
    }
}
