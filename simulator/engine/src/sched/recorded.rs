//! Recorded schedules: which wave of which workgroup executed how many instructions, turn by turn. A run that follows
//! one is the recorded run again, in every command that takes `--schedule`.

use crate::caches::Arrangement;
use crate::delayed::{DelayedMemory, Delays, NoCounters, OperationId};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use wavesim_machine::exec::program::Program;

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

/// What a delayed memory operation does between two instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Act {
    /// It accesses memory.
    Access,
    /// It writes its registers.
    Return,
}

impl Act {
    const ALL: [Act; 2] = [Act::Access, Act::Return];

    /// The word in schedule files.
    pub fn word(self) -> &'static str {
        match self {
            Act::Access => "access",
            Act::Return => "return",
        }
    }
}

/// Something that a delayed memory operation does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action {
    /// The number of instructions that the dispatch has executed before.
    pub time: u64,
    /// The operation.
    pub operation: OperationId,
    /// What it does.
    pub act: Act,
}

/// The delayed memory operations of a recorded schedule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Late {
    /// The operations that are delayed. The others take effect at once.
    pub operations: BTreeSet<OperationId>,
    /// What they do, in the order of time. What is not listed happens when a wait demands it.
    pub actions: Vec<Action>,
    /// The seed of what registers, LDS and scratch hold at the start of a workgroup; zeros without.
    pub poison: Option<u64>,
    /// How workgroups are spread over caches; without, caches are always coherent.
    pub caches: Option<Arrangement>,
}

impl Late {
    /// Returns whether memory operations take effect at once, everywhere.
    pub fn is_immediate(&self) -> bool {
        self.operations.is_empty() && self.caches.is_none()
    }
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
    late: Late,
}

/// A line of a schedule file, to which a comment can be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noted<'l> {
    /// The turn with this index in [`Recorded::turns`].
    Turn(usize, &'l Turn),
    /// A delayed operation.
    Late(OperationId),
    /// What it does.
    Action(&'l Action),
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
    #[error("the schedule is truncated: it has {turns} turns and actions, and no line `end {turns}`")]
    Truncated {
        /// Number of turns and actions in the file.
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

    /// Adds the delayed operations.
    #[must_use]
    pub fn with_late(mut self, mut late: Late) -> Recorded {
        late.actions.sort_by_key(|action| action.time);
        self.late = late;
        self
    }

    /// Returns the delayed memory that the schedule needs; `None` if no operation is delayed and caches are coherent.
    ///
    /// # Errors
    /// The architecture has no delayed memory.
    pub fn model(&self, program: &Program, wave_size: u32) -> Result<Option<DelayedMemory>, NoCounters> {
        match self.late.is_immediate() {
            true => Ok(None),
            false => DelayedMemory::new(program, wave_size, Delays::Demanded).map(Some),
        }
    }

    /// The delayed operations.
    pub fn late(&self) -> &Late {
        &self.late
    }

    /// Returns the actions after `time` instructions of the dispatch, before the next one.
    pub fn actions_at(&self, time: u64) -> &[Action] {
        let actions = &self.late.actions;
        let from = actions.partition_point(|action| action.time < time);
        let to = actions.partition_point(|action| action.time <= time);
        &actions[from..to]
    }

    /// Returns the time of the first action after `time`; the maximum without one.
    pub fn next_action(&self, time: u64) -> u64 {
        let actions = &self.late.actions;
        let next = actions.partition_point(|action| action.time <= time);
        actions.get(next).map_or(u64::MAX, |action| action.time)
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

    /// Returns the schedule as the text of a file. `note` returns a comment for a turn, an operation or an action.
    pub fn text(&self, note: impl Fn(Noted<'_>) -> Option<String>) -> String {
        let mut out = format!("{HEADER}\nversion {VERSION}\nkernel {:016x}\n", self.kernel);
        let groups: Vec<String> = self.groups.iter().map(u64::to_string).collect();
        let _ = writeln!(out, "groups {}", groups.join(" "));
        if let Some(seed) = self.late.poison {
            let _ = writeln!(out, "poison {seed}");
        }
        if let Some(arrangement) = self.late.caches {
            let _ = writeln!(out, "caches {arrangement}");
        }
        let mut lines = 0;
        let mut line = |text: String, noted: Noted<'_>| {
            lines += usize::from(!matches!(noted, Noted::Late(_)));
            match note(noted) {
                Some(note) => writeln!(out, "{text}  # {}", note.replace('\n', " ")),
                None => writeln!(out, "{text}"),
            }
        };
        let place = |id: &OperationId| format!("{} {} {}", id.group, id.wave, id.number);
        for id in &self.late.operations {
            let _ = line(format!("late {}", place(id)), Noted::Late(*id));
        }
        let mut actions = self.late.actions.iter().peekable();
        let mut time = 0;
        for (at, (turn, end)) in self.turns.iter().zip(&self.ends).enumerate() {
            while time < *end {
                while let Some(action) = actions.next_if(|action| action.time <= time) {
                    let text = format!("{} {}", action.act.word(), place(&action.operation));
                    let _ = line(text, Noted::Action(action));
                }
                let until = actions.peek().map_or(*end, |action| action.time.min(*end));
                let text = format!("turn {} {} {}", turn.group, turn.wave, until - time);
                let _ = line(text, Noted::Turn(at, turn));
                time = until;
            }
        }
        for action in actions {
            let text = format!("{} {}", action.act.word(), place(&action.operation));
            let _ = line(text, Noted::Action(action));
        }
        let _ = writeln!(out, "end {lines}");
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
        let (mut late, mut count) = (Late::default(), 0);
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
                    count += 1;
                }
                "poison" => {
                    late.poison =
                        Some(rest.parse().map_err(|_| wrong("the seed of garbage follows `poison`"))?);
                }
                "caches" => late.caches = Some(rest.parse().map_err(wrong)?),
                "late" => {
                    let id = operation(rest).ok_or_else(|| wrong("it is `late WORKGROUP WAVE OPERATION`"))?;
                    late.operations.insert(id);
                }
                word if Act::ALL.iter().any(|act| act.word() == word) => {
                    let expected = "`WORKGROUP WAVE OPERATION` of a line `late` follows";
                    let operation = operation(rest).filter(|id| late.operations.contains(id));
                    let operation = operation.ok_or_else(|| wrong(expected))?;
                    let time = recorded.total();
                    let act = Act::ALL.into_iter().find(|act| act.word() == word).unwrap_or(Act::Access);
                    late.actions.push(Action { time, operation, act });
                    count += 1;
                }
                "end" => {
                    if rest.parse() != Ok(count) {
                        return Err(ScheduleError::Truncated { turns: count });
                    }
                    ended = true;
                }
                _ => {
                    return Err(wrong(
                        "lines are version, kernel, groups, poison, caches, late, turn, access, return and end",
                    ));
                }
            }
        }
        match (version && kernel, ended) {
            (true, true) => Ok(recorded.with_late(late)),
            (false, true) => Err(ScheduleError::Header),
            (_, false) => Err(ScheduleError::Truncated { turns: count }),
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

/// Parses an operation: its workgroup, its wave and its number.
fn operation(text: &str) -> Option<OperationId> {
    let numbers: Vec<u64> = text.split_whitespace().map_while(|n| n.parse().ok()).collect();
    let [group, wave, number] = numbers[..] else { return None };
    Some(OperationId { group, wave: u32::try_from(wave).ok()?, number })
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
        let text = schedule
            .text(|noted| matches!(noted, Noted::Turn(1, _)).then(|| "line 12: the flag".to_string()));
        assert_eq!(Recorded::parse(&text), Ok(schedule));
        assert!(text.contains("turn 1 0 7  # line 12: the flag\n"), "{text}");
    }

    #[test]
    fn delayed_operations_are_written_and_read() {
        let id = |number| OperationId { group: 1, wave: 0, number };
        let actions = [(5, 2, Act::Access), (5, 2, Act::Return), (11, 7, Act::Access)];
        let actions = actions.map(|(time, number, act)| Action { time, operation: id(number), act });
        let late = Late {
            operations: [id(2), id(7)].into(),
            actions: actions.to_vec(),
            poison: Some(3),
            caches: Some(Arrangement::TOGETHER),
        };
        let schedule = Recorded::new(7, vec![0, 1], turns()).with_late(late);
        let text = schedule.text(|_| None);
        assert!(text.contains("turn 1 0 2\naccess 1 0 2\nreturn 1 0 2\nturn 1 0 5\n"), "{text}");
        assert_eq!(Recorded::parse(&text), Ok(schedule.clone()));
        assert_eq!(schedule.actions_at(5), &actions[..2]);
        assert_eq!((schedule.next_action(0), schedule.next_action(5)), (5, 11));
        assert_eq!(schedule.next_action(11), u64::MAX);
        for (from, to) in [("late 1 0 7\n", ""), ("late 1 0 7", "late 1 0"), ("poison 3", "poison x")] {
            let wrong = text.replace(from, to);
            assert!(matches!(Recorded::parse(&wrong), Err(ScheduleError::Line { .. })), "{wrong}");
        }
    }

    #[test]
    fn wrong_files_are_errors() {
        let text = Recorded::new(7, vec![0], turns()).text(|_| None);
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
