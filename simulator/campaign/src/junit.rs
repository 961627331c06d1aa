//! Results of tests in JUnit's XML, which build servers read.

use std::fmt::Write as _;
use wavesim_html::escape;

/// A test with its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// The group to which the test belongs, such as a file or a command.
    pub class: String,
    /// The name of the test in its group.
    pub name: String,
    /// Duration in seconds.
    pub seconds: f64,
    /// What happened.
    pub outcome: Outcome,
}

/// The result of a test.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It has passed.
    Passed,
    /// It has not run, for this reason.
    Skipped(String),
    /// It has failed: a headline, and everything else.
    Failed(String, String),
    /// It could not be run: a headline, and everything else.
    Error(String, String),
}

/// Returns the report of a suite of tests.
pub fn report(suite: &str, tests: &[Test]) -> String {
    let count = |wanted: fn(&Outcome) -> bool| tests.iter().filter(|t| wanted(&t.outcome)).count();
    let failures = count(|o| matches!(o, Outcome::Failed(..)));
    let errors = count(|o| matches!(o, Outcome::Error(..)));
    let skipped = count(|o| matches!(o, Outcome::Skipped(..)));
    let seconds: f64 = tests.iter().map(|t| t.seconds).sum();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    let _ = writeln!(
        out,
        "<testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" time=\"{seconds:.3}\">",
        escape(suite),
        tests.len()
    );
    for Test { class, name, seconds, outcome } in tests {
        let (class, name) = (escape(class), escape(name));
        let _ = write!(out, "<testcase classname=\"{class}\" name=\"{name}\" time=\"{seconds:.3}\"");
        let mut element = |tag: &str, message: &str, text: &str| {
            let (message, text) = (escape(message), escape(text));
            let _ = writeln!(out, ">\n<{tag} message=\"{message}\">{text}</{tag}>\n</testcase>");
        };
        match outcome {
            Outcome::Passed => out.push_str("/>\n"),
            Outcome::Skipped(why) => element("skipped", why, ""),
            Outcome::Failed(message, text) => element("failure", message, text),
            Outcome::Error(message, text) => element("error", message, text),
        }
    }
    out + "</testsuite>\n</testsuites>\n"
}
