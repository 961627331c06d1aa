//! The state of an exploration as text, so that it can go on after an interruption.

use crate::dpor::{Choice, Counts, LateSet};
use crate::footprint::{Footprint, Range, Space};
use serde_json::{Value, json};
use wavesim_engine::caches::Arrangement;

/// What an exploration has done so far.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// Random schedules.
    Random(RandomState),
    /// All executions, in parts.
    Systematic(Vec<Part>),
}

/// Random schedules that have run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomState {
    /// The number of the first schedule that has not run.
    pub next: u64,
    /// Schedules that have run.
    pub done: u64,
}

/// A part of the executions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part {
    /// The operations that can be delayed; `None` for all.
    pub late: Option<LateSet>,
    /// How workgroups are spread over caches; `None` for caches that are always coherent.
    pub caches: Option<Arrangement>,
    /// The first choices, which all of its executions have.
    pub choices: Vec<Choice>,
    /// The choices of the last execution; `None` if none has run.
    pub position: Option<Vec<Choice>>,
    /// All of its executions have run.
    pub complete: bool,
    /// Numbers of executions.
    pub counts: Counts,
}

/// Why a text is not the state of an exploration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// It is another text, or a part of one.
    #[error("not the state of an exploration, or truncated: {0}")]
    Syntax(String),
    /// Another version has written it.
    #[error("the state was saved by version {0}, and this is {VERSION}: remove the file to begin anew")]
    Version(String),
    /// It is one of another exploration.
    #[error(
        "the state is one of another kernel, of other arguments or of other options: remove the file to begin anew"
    )]
    Other,
}

const SCHEMA: &str = "wavesim-explore-state-1";
const VERSION: &str = env!("CARGO_PKG_VERSION");

impl State {
    /// Returns the state as JSON. `key` identifies the kernel and the options.
    pub fn json(&self, key: &str) -> Value {
        let mut out = json!({ "schema": SCHEMA, "version": VERSION, "of": key });
        match self {
            State::Random(state) => out["random"] = json!({ "next": state.next, "done": state.done }),
            State::Systematic(parts) => out["parts"] = parts.iter().map(part_json).collect(),
        }
        out
    }

    /// Reads a state.
    ///
    /// # Errors
    /// The text is no state, or one of another kernel, of other options, or of another version.
    pub fn parse(text: &str, key: &str) -> Result<State, StateError> {
        let value: Value = serde_json::from_str(text).map_err(|e| StateError::Syntax(e.to_string()))?;
        let wrong = |what: &str| StateError::Syntax(what.to_string());
        if value["schema"] != SCHEMA {
            return Err(wrong("it has no schema"));
        }
        let version = value["version"].as_str().ok_or_else(|| wrong("it has no version"))?;
        if version != VERSION {
            return Err(StateError::Version(version.to_string()));
        }
        if value["of"] != key {
            return Err(StateError::Other);
        }
        if let Some(random) = value.get("random") {
            let number = |name: &str| random[name].as_u64().ok_or_else(|| wrong("`random` lacks a number"));
            return Ok(State::Random(RandomState { next: number("next")?, done: number("done")? }));
        }
        let parts = value["parts"].as_array().ok_or_else(|| wrong("it has no parts"))?;
        let parts: Option<Vec<Part>> = parts.iter().map(part).collect();
        Ok(State::Systematic(parts.ok_or_else(|| wrong("a part is not valid"))?))
    }
}

fn part_json(part: &Part) -> Value {
    let Counts { executions, redundant, cut } = part.counts;
    json!({
        "late": part.late,
        "caches": part.caches.map(|arrangement| arrangement.to_string()),
        "choices": part.choices.iter().map(choice_json).collect::<Vec<_>>(),
        "position": part.position.as_ref().map(|list| list.iter().map(choice_json).collect::<Vec<_>>()),
        "complete": part.complete,
        "counts": [executions, redundant, cut],
    })
}

fn part(value: &Value) -> Option<Part> {
    let choices = |value: &Value| value.as_array()?.iter().map(choice).collect::<Option<Vec<_>>>();
    let position = match &value["position"] {
        Value::Null => None,
        value => Some(choices(value)?),
    };
    let counts: Vec<u64> = value["counts"].as_array()?.iter().map(Value::as_u64).collect::<Option<_>>()?;
    let [executions, redundant, cut] = counts[..] else { return None };
    let complete = value["complete"].as_bool()?;
    let late = match &value["late"] {
        Value::Null => None,
        value => {
            let threads: Option<Vec<u32>> =
                value.as_array()?.iter().map(|thread| u32::try_from(thread.as_u64()?).ok()).collect();
            Some(threads?.try_into().ok()?)
        }
    };
    let caches = match &value["caches"] {
        Value::Null => None,
        value => Some(value.as_str()?.parse().ok()?),
    };
    let counts = Counts { executions, redundant, cut };
    Some(Part { late, caches, choices: choices(&value["choices"])?, position, complete, counts })
}

fn choice_json(choice: &Choice) -> Value {
    let sleep: Vec<Value> = choice
        .sleep
        .iter()
        .map(|(thread, footprint)| {
            json!([thread, ranges_json(&footprint.loads), ranges_json(&footprint.stores)])
        })
        .collect();
    json!([choice.thread, choice.backtrack, sleep])
}

fn choice(value: &Value) -> Option<Choice> {
    let [thread, backtrack, sleep] = &value.as_array()?[..] else { return None };
    let number = |value: &Value| u32::try_from(value.as_u64()?).ok();
    let asleep = |value: &Value| {
        let [thread, loads, stores] = &value.as_array()?[..] else { return None };
        Some((number(thread)?, Footprint { loads: ranges(loads)?, stores: ranges(stores)? }))
    };
    Some(Choice {
        thread: number(thread)?,
        backtrack: backtrack.as_array()?.iter().map(number).collect::<Option<_>>()?,
        sleep: sleep.as_array()?.iter().map(asleep).collect::<Option<_>>()?,
    })
}

fn ranges_json(ranges: &[Range]) -> Vec<Value> {
    let one = |range: &Range| {
        let (kind, group) = match range.space {
            Space::Global => (0, 0),
            Space::Lds(group) => (1, group),
            Space::Barriers(group) => (2, group),
            Space::Messages => (3, 0),
            Space::Registers(thread) => (4, thread.into()),
            Space::Cache(cache) => (5, cache.into()),
        };
        json!([kind, group, range.start, range.end])
    };
    ranges.iter().map(one).collect()
}

fn ranges(value: &Value) -> Option<Vec<Range>> {
    let one = |value: &Value| {
        let numbers: Vec<u64> = value.as_array()?.iter().map(Value::as_u64).collect::<Option<_>>()?;
        let [kind, group, start, end] = numbers[..] else { return None };
        let space = match kind {
            0 => Space::Global,
            1 => Space::Lds(group),
            2 => Space::Barriers(group),
            3 => Space::Messages,
            4 => Space::Registers(u32::try_from(group).ok()?),
            5 => Space::Cache(u32::try_from(group).ok()?),
            _ => return None,
        };
        Some(Range { space, start, end })
    };
    value.as_array()?.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_written_and_read() {
        let footprint = Footprint {
            loads: vec![Range { space: Space::Lds(3), start: 0, end: 8 }],
            stores: vec![Range { space: Space::Global, start: u64::MAX - 8, end: u64::MAX }],
        };
        let choice = Choice { thread: 1, backtrack: vec![1, 0], sleep: vec![(2, footprint)] };
        let counts = Counts { executions: 5, redundant: 1, cut: 0 };
        let part = Part {
            late: Some([7, 9, u32::MAX, u32::MAX]),
            caches: Some(Arrangement::APART),
            choices: vec![choice.clone()],
            position: Some(vec![choice]),
            complete: false,
            counts,
        };
        for state in [
            State::Random(RandomState { next: 7, done: 6 }),
            State::Systematic(vec![part, Part { complete: true, ..Part::default() }]),
        ] {
            let text = state.json("k").to_string();
            assert_eq!(State::parse(&text, "k"), Ok(state));
            assert_eq!(State::parse(&text, "other"), Err(StateError::Other));
            for end in 0..text.len() {
                assert!(matches!(State::parse(&text[..end], "k"), Err(StateError::Syntax(_))), "{end}");
            }
            let old = text.replace(VERSION, "0.0.1");
            assert_eq!(State::parse(&old, "k"), Err(StateError::Version("0.0.1".to_string())));
        }
    }
}
