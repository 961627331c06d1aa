//! The reasons for a stop.

use std::fmt;
use wavesim_inspect::check::Finding;
use wavesim_machine::fault::Fault;

/// A reason for a stop. A step can have several.
#[derive(Debug, Clone, PartialEq)]
pub enum Stop {
    /// Nothing has been run yet, or the run has gone back to its start.
    Start,
    /// The command has completed.
    Done,
    /// The command ended early, for the given reason.
    Early(String),
    /// A wave is at a breakpoint.
    #[expect(missing_docs, reason = "the fields are those of the breakpoint")]
    Breakpoint { number: u32, location: String, temporary: bool },
    /// A watched value was accessed.
    #[expect(missing_docs, reason = "the fields are those of the watchpoint")]
    Watchpoint {
        number: u32,
        text: String,
        /// `changed`, `was read` …
        what: &'static str,
        /// Old and new value, where they are short.
        change: Option<(String, String)>,
    },
    /// A check reports an error.
    Finding(Box<Finding>),
    /// The run has ended with a fault.
    Fault(Box<Fault>),
    /// Every wave has ended.
    Ended {
        /// Steps taken.
        steps: u64,
    },
    /// Waves remain, but none can run.
    Deadlock,
    /// The limit of `--max-instructions` is reached.
    Limit(u64),
    /// The user interrupted the command.
    Interrupted,
}

impl Stop {
    /// Returns one line for a title; empty if there is nothing to report.
    pub fn title(&self) -> String {
        match self {
            Stop::Start => "at the start".to_string(),
            Stop::Fault(fault) => format!("fault: {}: {}", fault.kind.name(), fault.message),
            Stop::Finding(finding) => {
                let place = finding.site.place();
                format!("{} at {place}: {}", finding.check.name(), finding.message)
            }
            other => other.to_string().lines().next().unwrap_or("").to_string(),
        }
    }
}

/// Formats the lines that commands print. Empty where the position suffices: for a completed step, and for a
/// fault.
impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Done | Stop::Fault(_) => Ok(()),
            Stop::Start => writeln!(f, "back at the start"),
            Stop::Early(why) => writeln!(f, "{why}"),
            Stop::Breakpoint { number, location, temporary } => {
                writeln!(f, "{}breakpoint {number} ({location})", if *temporary { "temporary " } else { "" })
            }
            Stop::Watchpoint { number, text, what, change } => {
                writeln!(f, "watchpoint {number}: {text} {what}")?;
                match change {
                    Some((old, new)) => writeln!(f, "  {old} -> {new}"),
                    None => Ok(()),
                }
            }
            Stop::Finding(finding) => writeln!(f, "{finding}"),
            Stop::Ended { steps } => writeln!(f, "the run has ended after {steps} steps"),
            Stop::Deadlock => writeln!(f, "deadlock: no wave can run"),
            Stop::Limit(limit) => {
                writeln!(f, "{limit} instructions executed without an end (--max-instructions)")
            }
            Stop::Interrupted => writeln!(f, "interrupted"),
        }
    }
}
