//! The result of an exploration for build servers: JUnit, SARIF, annotations.

use super::Exploration;
use anyhow::Context as _;
use serde_json::{Value, json};
use std::io::Write;
use wavesim_campaign::annotation::Annotation;
use wavesim_campaign::junit::{self, Outcome, Test};
use wavesim_explore::cause::Place;
use wavesim_files as files;
use wavesim_inspect::check::sarif;

/// The identifier of a difference in SARIF.
const RULE: &str = "explore/order";

/// An outcome that is not as expected.
pub struct Difference<'a> {
    /// What differs, in a line.
    pub message: String,
    /// What differs, and the accesses that make the difference.
    pub details: String,
    /// The second and the first of these accesses.
    pub places: &'a [Place],
}

/// Writes the files that the command line names, and prints annotations.
pub fn write(
    exploration: &Exploration<'_>,
    wrong: Option<&Difference<'_>>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let args = exploration.args;
    let input = crate::cli::input_name(&args.input.file);
    if let Some(path) = &args.junit {
        let outcome = match wrong {
            Some(wrong) => Outcome::Failed(wrong.message.clone(), wrong.details.clone()),
            None if exploration.is_interrupted() => Outcome::Error("interrupted".into(), String::new()),
            None => Outcome::Passed,
        };
        let test = Test {
            class: "wavesim explore".to_string(),
            name: input.clone(),
            seconds: exploration.started.elapsed().as_secs_f64(),
            outcome,
        };
        let text = junit::report("wavesim explore", &[test]);
        files::write(path, |out| out.write_all(text.as_bytes()))
            .with_context(|| path.display().to_string())?;
    }
    if let Some(path) = &args.sarif {
        let description = json!({ "text": "explore: the outcome depends on the order of waves" });
        let rule = json!({ "id": RULE, "shortDescription": description });
        let results = wrong.map(|wrong| result(wrong, &input)).into_iter().collect();
        let log = sarif::wrap(vec![rule], results, env!("CARGO_PKG_VERSION"));
        files::write(path, |out| writeln!(out, "{log:#}")).with_context(|| path.display().to_string())?;
    }
    if let Some(wrong) = wrong.filter(|_| args.annotate) {
        let place = wrong.places.first();
        let file = place.and_then(|place| place.file.as_deref()).unwrap_or(&input);
        let line = place.map_or(0, |place| place.line);
        let message = wrong.details.trim_end();
        writeln!(out, "{}", Annotation { error: true, file, line, title: RULE, message })?;
    }
    Ok(())
}

/// A result of SARIF: at the second access of the cause, with the first one as its relation.
fn result(wrong: &Difference<'_>, input: &str) -> Value {
    let location = |place: &Place| {
        let mut physical = json!({"artifactLocation": {"uri": place.file.as_deref().unwrap_or(input)}});
        if place.line > 0 {
            physical["region"] = json!({"startLine": place.line});
        }
        json!({"physicalLocation": physical, "message": {"text": place.text}})
    };
    let whole = || json!({"physicalLocation": {"artifactLocation": {"uri": input}}});
    let first = wrong.places.first().map_or_else(whole, location);
    json!({
        "ruleId": RULE,
        "level": "error",
        "message": {"text": wrong.details.trim_end()},
        "locations": [first],
        "relatedLocations": wrong.places.iter().skip(1).map(location).collect::<Vec<_>>(),
    })
}
