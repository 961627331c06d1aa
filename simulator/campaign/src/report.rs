//! Results as HTML, JSON, JUnit and SARIF.

use crate::annotation::Annotation;
use crate::junit::{Outcome, Test};
use crate::store::{Record, Status, Store, StoreError};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use wavesim_html::{Page, escape};

/// Maximum number of cases that an HTML report shows with their outputs.
const MAX_SHOWN: usize = 500;
/// Maximum number of bytes of an output in an HTML report.
const MAX_TEXT: usize = 8000;

/// Numbers of results by status.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counts {
    /// By status, in the order of [`Status::ALL`].
    counts: [u64; Status::ALL.len()],
    /// Seconds of all processes.
    pub seconds: f64,
}

impl Counts {
    fn add(&mut self, record: &Record) {
        self.counts[record.status as usize] += 1;
        self.seconds += record.seconds;
    }

    /// Returns the number of results with a status.
    pub fn of(&self, status: Status) -> u64 {
        self.counts[status as usize]
    }

    /// Returns the number of results.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = Status::ALL.into_iter().filter(|s| *s == Status::Passed || self.of(*s) > 0);
        let list: Vec<String> = shown.map(|s| format!("{} {}", self.of(s), s.name())).collect();
        f.write_str(&list.join(", "))
    }
}

/// Counts the results of a database.
///
/// # Errors
/// The database reports one.
pub fn counts(store: &Store) -> Result<Counts, StoreError> {
    let mut counts = Counts::default();
    store.each(|record| counts.add(&record))?;
    Ok(counts)
}

fn name(store: &Store) -> Result<String, StoreError> {
    Ok(store.get("name")?.unwrap_or_else(|| "campaign".to_string()))
}

/// Returns the results as one JSON object.
///
/// # Errors
/// The database reports one.
pub fn json(store: &Store) -> Result<Value, StoreError> {
    let (mut counts, mut cases) = (Counts::default(), Vec::new());
    store.each(|r| {
        counts.add(&r);
        let mut case = json!({
            "name": r.name, "kernel": r.kernel, "status": r.status.name(), "code": r.code, "seconds": r.seconds,
            "memory_kb": r.memory_kb,
        });
        for (key, text) in [("target", &r.target), ("output", &r.output), ("messages", &r.messages)] {
            if !text.is_empty() {
                case[key] = json!(text);
            }
        }
        cases.push(case);
    })?;
    let by_status: Map<String, Value> =
        Status::ALL.into_iter().map(|s| (s.name().to_string(), json!(counts.of(s)))).collect();
    Ok(json!({
        "schema": "wavesim-campaign-1", "name": name(store)?, "counts": by_status, "seconds": counts.seconds,
        "cases": cases,
    }))
}

/// Returns the results as tests.
///
/// # Errors
/// The database reports one.
pub fn junit(store: &Store) -> Result<String, StoreError> {
    let mut tests = Vec::new();
    store.each(|r| {
        let text = || format!("{}{}", r.messages, r.output);
        let outcome = match r.status {
            Status::Passed => Outcome::Passed,
            Status::Failed => Outcome::Failed(headline(&r), text()),
            _ => Outcome::Error(headline(&r), text()),
        };
        tests.push(Test { class: r.kernel.clone(), name: r.name.clone(), seconds: r.seconds, outcome });
    })?;
    Ok(crate::junit::report(&name(store)?, &tests))
}

/// The first message of a result.
fn headline(record: &Record) -> String {
    let from_output = |line: &str| {
        let value: Value = serde_json::from_str(line).ok()?;
        let found = value.get("message").or_else(|| value.pointer("/fault/message"))?;
        found.as_str().map(str::to_string)
    };
    let found = record.output.lines().find_map(from_output);
    let message = || record.messages.lines().find(|line| !line.is_empty()).map(str::to_string);
    found.or_else(message).unwrap_or_else(|| match (record.status, record.code) {
        (Status::Crashed, code) if code < 0 => format!("ended by signal {}", -code),
        (Status::Crashed, code) => format!("ended with code {code}"),
        (status, _) => status.name().to_string(),
    })
}

/// Returns the findings of all cases as one log. A finding of several cases, such as schedules, is one result, with
/// the number of cases and the first of them. `log` makes a log of rules and results.
///
/// # Errors
/// The database reports one.
pub fn sarif(store: &Store, log: impl FnOnce(Vec<Value>, Vec<Value>) -> Value) -> Result<Value, StoreError> {
    let mut rules: BTreeMap<String, Value> = BTreeMap::new();
    // By rule, place and text.
    let mut results: BTreeMap<String, Value> = BTreeMap::new();
    store.each(|record| {
        let Ok(run) = serde_json::from_str::<Value>(&record.sarif) else { return };
        for rule in run.pointer("/tool/driver/rules").and_then(Value::as_array).into_iter().flatten() {
            let id = rule["id"].as_str().unwrap_or_default().to_string();
            rules.entry(id).or_insert_with(|| rule.clone());
        }
        for result in run["results"].as_array().into_iter().flatten() {
            let place = &result["locations"][0]["physicalLocation"];
            let key = json!([result["ruleId"], place, result["message"]]).to_string();
            let entry = results.entry(key).or_insert_with(|| {
                let mut first = result.clone();
                first["properties"] = json!({"case": record.name, "cases": 0});
                first["occurrenceCount"] = json!(0);
                first
            });
            let sum = |a: &Value, b: u64| json!(a.as_u64().unwrap_or(0) + b);
            entry["properties"]["cases"] = sum(&entry["properties"]["cases"], 1);
            entry["occurrenceCount"] =
                sum(&entry["occurrenceCount"], result["occurrenceCount"].as_u64().unwrap_or(1));
        }
    })?;
    Ok(log(rules.into_values().collect(), results.into_values().collect()))
}

/// Returns the results of a log in SARIF as annotations of GitHub Actions, a line each.
pub fn annotations(log: &Value) -> Vec<String> {
    let text =
        |value: &Value, at: &str| value.pointer(at).and_then(Value::as_str).unwrap_or_default().to_string();
    let results = log.pointer("/runs/0/results").and_then(Value::as_array);
    let line = |result: &Value| {
        let place = "/locations/0/physicalLocation";
        let line = result.pointer(&format!("{place}/region/startLine")).and_then(Value::as_u64);
        let cases = result.pointer("/properties/cases").and_then(Value::as_u64).unwrap_or(1);
        let more = if cases > 1 {
            format!("\nin {cases} cases; the first is {}", text(result, "/properties/case"))
        } else {
            String::new()
        };
        let annotation = Annotation {
            error: text(result, "/level") == "error",
            file: &text(result, &format!("{place}/artifactLocation/uri")),
            line: line.map_or(0, |line| line as u32),
            title: &text(result, "/ruleId"),
            message: &(text(result, "/message/text") + &more),
        };
        annotation.to_string()
    };
    results.into_iter().flatten().map(line).collect()
}

const STYLE: &str = "td, th { border: 1px solid var(--line); } table { margin: 1em 0; }\n";

/// Returns the results as one HTML file without scripts: counts by kernel and target, and the cases that have not
/// passed.
///
/// # Errors
/// The database reports one.
pub fn html(store: &Store) -> Result<String, StoreError> {
    let mut all = Counts::default();
    let mut table: BTreeMap<(String, String), Counts> = BTreeMap::new();
    let (mut shown, mut hidden) = (Vec::new(), 0);
    store.each(|record| {
        all.add(&record);
        table.entry((record.kernel.clone(), record.target.clone())).or_default().add(&record);
        match record.status {
            Status::Passed => {}
            _ if shown.len() < MAX_SHOWN => shown.push(record),
            _ => hidden += 1,
        }
    })?;
    let name = name(store)?;
    let mut out = format!("<h1>{}</h1>\n", escape(&name));
    let _ = writeln!(out, "<p>{} cases: {}; {:.1} s of processes.</p>", all.total(), all, all.seconds);
    let targets: Vec<String> = {
        let mut list: Vec<String> = table.keys().map(|key| key.1.clone()).collect();
        list.sort_unstable();
        list.dedup();
        list
    };
    out.push_str("<table>\n<tr><th class=\"text\">kernel</th>");
    for target in &targets {
        let _ = write!(
            out,
            "<th>{}</th>",
            if target.is_empty() { "default".to_string() } else { escape(target) }
        );
    }
    out.push_str("</tr>\n");
    let mut kernels: Vec<&String> = table.keys().map(|key| &key.0).collect();
    kernels.dedup();
    for kernel in kernels {
        let _ = write!(out, "<tr><td class=\"text\">{}</td>", escape(kernel));
        for target in &targets {
            match table.get(&(kernel.clone(), target.clone())) {
                Some(counts) => {
                    let (passed, total) = (counts.of(Status::Passed), counts.total());
                    let class = if passed == total { "good" } else { "bad" };
                    let _ = write!(out, "<td class=\"{class}\">{passed} / {total}</td>");
                }
                None => out.push_str("<td></td>"),
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
    if !shown.is_empty() {
        out.push_str("<h2>Cases that have not passed</h2>\n");
    }
    for record in &shown {
        let _ = writeln!(
            out,
            "<details><summary><b>{}</b> {}: {}</summary>",
            record.status.name(),
            escape(&record.name),
            escape(&headline(record))
        );
        for text in [&record.messages, &record.output] {
            if !text.trim().is_empty() {
                let end =
                    (0..=text.len().min(MAX_TEXT)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                let _ = writeln!(out, "<pre>{}</pre>", escape(&text[..end]));
            }
        }
        out.push_str("</details>\n");
    }
    if hidden > 0 {
        let _ = writeln!(out, "<p>{hidden} more are in the database.</p>");
    }
    Ok(Page { title: &name, style: STYLE, body: &out, script: None }.html())
}
