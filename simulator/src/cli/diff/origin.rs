//! Where two runs part before the first store that differs: the values of the work-item's variables, and where those that
//! differ come from.

use super::{DiffArgs, Ran, tolerance};
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use wavesim_array::{Array, DType};
use wavesim_debug::command::Debugger;
use wavesim_debug::expr::{Focus, Value};
use wavesim_debug::history::{Assignment, Parted, WorkItem, assignments, first_difference};
use wavesim_debug::timeline::Timeline;
use wavesim_engine::sched::dispatch::INTERRUPT;
use wavesim_loader::compare::{Tolerance, compare};

/// Characters of a line of each side.
const WIDTH: usize = 72;

/// What the debugger shows at a time of a run.
pub struct Question {
    /// The time; `None` for the end.
    pub time: Option<u64>,
    /// The work-item, for registers and variables.
    pub item: Option<WorkItem>,
    /// The value.
    pub what: String,
}

/// Calls `body` with a debugger at the end of a run from the beginning.
fn at_end<R>(args: &DiffArgs, ran: &Ran, body: impl FnOnce(&mut Debugger<'_>) -> R) -> anyhow::Result<R> {
    ran.prepared.memory.restore(&ran.initial);
    let dispatch = ran.prepared.dispatch(args.max_instructions);
    let timeline = Timeline::new(&ran.prepared, &dispatch)?;
    let mut debugger = Debugger::new(timeline, || INTERRUPT.load(Ordering::Relaxed));
    debugger.execute("continue").0.map_err(anyhow::Error::msg)?;
    Ok(body(&mut debugger))
}

/// Returns the tree that shows where a value comes from.
pub fn why(args: &DiffArgs, ran: &Ran, question: &Question) -> anyhow::Result<String> {
    at_end(args, ran, |debugger| {
        if let Some(time) = question.time {
            debugger.timeline.go_to(time);
        }
        if let Some(item) = question.item {
            debugger.focus = item.focus;
        }
        let (result, _) = debugger.execute(&format!("why {} {}", question.what, args.depth));
        result.unwrap_or_else(|message| format!("{message}\n"))
    })
}

/// Returns where the values of the variables of a work-item, of which each run has its own, part before these times.
pub fn variables(
    args: &DiffArgs,
    [a, b]: [&Ran; 2],
    items: [(WorkItem, u64); 2],
) -> anyhow::Result<Option<Parted>> {
    let of = |ran: &Ran, (item, time): (WorkItem, u64)| {
        at_end(args, ran, |debugger| assignments(&mut debugger.timeline, item, time))
    };
    if a.prepared.debug.is_empty() || b.prepared.debug.is_empty() {
        return Ok(None);
    }
    let (own, other) = (of(a, items[0])?, of(b, items[1])?);
    let agree = |a: &Value, b: &Value| match (a, b) {
        (Value::Float(x), Value::Float(y)) => {
            let Tolerance { rtol, atol } = tolerance(args, DType::F32);
            let (x, y) = (x.to_f64(), y.to_f64());
            let one =
                |v: f64| Array { dtype: DType::F64, shape: Vec::new(), bytes: v.to_le_bytes().to_vec() };
            compare("", &one(y), &one(x), Tolerance { rtol, atol }).is_none()
        }
        _ => a == b,
    };
    Ok(first_difference(&own, &other, agree))
}

/// Returns the work-item of a store.
pub fn item(store: &super::stores::Store) -> WorkItem {
    let focus = Focus { wave: store.wave as usize, lane: store.lane };
    WorkItem { workgroup: store.workgroup, focus }
}

/// Describes where a variable has got a value.
pub fn describe(ran: &Ran, assignment: &Assignment) -> String {
    let program = &ran.prepared.program;
    let text = program.inst_at(assignment.pc).map_or_else(String::new, |at| program.text(at));
    format!("{}, set at {}: {text}", assignment.text, program.place(assignment.pc))
}

/// Writes two texts side by side; longer lines are continued below.
pub fn side_by_side(titles: [&str; 2], texts: [&str; 2]) -> String {
    let [a, b] = [0, 1].map(|side: usize| {
        let lines = std::iter::once(titles[side]).chain(texts[side].lines());
        lines.map(wrapped).collect::<Vec<Vec<String>>>()
    });
    let left = a.iter().flatten().map(|line| line.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for row in 0..a.len().max(b.len()) {
        let (own, other) =
            (a.get(row).map_or(&[][..], Vec::as_slice), b.get(row).map_or(&[][..], Vec::as_slice));
        for part in 0..own.len().max(other.len()) {
            let cell = |cells: &[String]| cells.get(part).cloned().unwrap_or_default();
            let line = format!("{:left$} | {}", cell(own), cell(other));
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }
    out
}

/// Breaks a line at spaces into parts of [`WIDTH`] characters, if it is longer.
fn wrapped(line: &str) -> Vec<String> {
    let indent = line.chars().take_while(|c| *c == ' ').count();
    let mut out = Vec::new();
    let mut part = " ".repeat(indent);
    for word in line.split_whitespace() {
        let is_empty = part.trim().is_empty();
        if !is_empty && part.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push(std::mem::replace(&mut part, " ".repeat(indent + 4)));
        } else if !is_empty {
            part.push(' ');
        }
        part.push_str(word);
    }
    out.push(part);
    out
}
