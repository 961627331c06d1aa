//! Findings in SARIF 2.1.0, a format read by code review tools and build servers.

use super::report::{Finding, Severity, Site};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Returns the log of one run. `input` is the kernel's file, the location of findings that have no source
/// file.
pub fn log(findings: &[Finding], input: &str, version: &str) -> Value {
    log_of_files(&[(input, findings)], version)
}

/// Returns the log of the runs of several files, given with their findings.
pub fn log_of_files(files: &[(&str, &[Finding])], version: &str) -> Value {
    let mut rules: BTreeMap<String, Value> = BTreeMap::new();
    for f in files.iter().flat_map(|file| file.1) {
        let id = rule(f);
        let description = json!({"text": format!("{}: {}", f.check.name(), f.kind)});
        rules.entry(id.clone()).or_insert_with(|| json!({"id": id, "shortDescription": description}));
    }
    let results = files.iter().flat_map(|(input, findings)| findings.iter().map(|f| result(f, input)));
    wrap(rules.into_values().collect(), results.collect(), version)
}

/// Returns a log of one run of the tool with these rules and results.
pub fn wrap(rules: Vec<Value>, results: Vec<Value>, version: &str) -> Value {
    let driver = json!({"name": "wavesim", "version": version, "rules": rules});
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    })
}

/// `race/data-race`.
fn rule(f: &Finding) -> String {
    format!("{}/{}", f.check.name(), f.kind.replace(' ', "-"))
}

fn result(f: &Finding, input: &str) -> Value {
    let level = match f.severity {
        Severity::Error => "error",
        Severity::Note => "note",
    };
    let text = match &f.hint {
        Some(hint) => format!("{} ({hint})", f.message),
        None => f.message.clone(),
    };
    let mut out = json!({
        "ruleId": rule(f),
        "level": level,
        "message": {"text": text},
        "locations": [location(&f.site, input, None)],
        "occurrenceCount": f.count,
    });
    if let Some(other) = &f.other {
        out["relatedLocations"] = json!([location(&other.site, input, Some(other.role))]);
    }
    out
}

fn location(site: &Site, input: &str, role: Option<&str>) -> Value {
    let [x, y, z] = site.workgroup;
    let lane = site.lane.map_or(String::new(), |lane| format!(", lane {lane}"));
    let who = format!("{} (workgroup ({x},{y},{z}), wave {}{lane})", site.text, site.wave);
    let message = match role {
        Some(role) => format!("{role}: {who}"),
        None => who,
    };
    let mut physical = json!({"artifactLocation": {"uri": site.file.as_deref().unwrap_or(input)}});
    match site.line {
        // SARIF lines begin at 1; without a line, only the address is known.
        0 => physical["address"] = json!({"absoluteAddress": site.pc}),
        line => physical["region"] = json!({"startLine": line}),
    }
    json!({"physicalLocation": physical, "message": {"text": message}})
}

#[cfg(test)]
mod tests {
    use super::super::Check;
    use super::*;

    #[test]
    fn findings_have_rules_levels_and_places() {
        let site = |line, file: Option<&str>| Site {
            inlined: Vec::new(),
            pc: 0x1640,
            line,
            file: file.map(Into::into),
            text: "global_load_b32 v1, v2, s[2:3]".to_string(),
            workgroup: [1, 0, 0],
            wave: 2,
            lane: Some(3),
        };
        let race = Finding::new(Check::Race, "data race", "a race".to_string(), site(12, Some("k.cl")))
            .other("earlier store", site(0, None));
        let note = Finding::new(Check::Race, "data race", "the same".to_string(), site(4, None)).note();
        let log = log(&[race, note], "k.co", "1.0");
        let run = &log["runs"][0];
        assert_eq!(run["tool"]["driver"]["rules"].as_array().unwrap().len(), 1);
        let [race, note] = &run["results"].as_array().unwrap()[..] else { panic!("{run}") };
        assert_eq!((&race["ruleId"], &race["level"]), (&json!("race/data-race"), &json!("error")));
        assert_eq!(note["level"], "note");
        let place = &race["locations"][0]["physicalLocation"];
        assert_eq!(*place, json!({"artifactLocation": {"uri": "k.cl"}, "region": {"startLine": 12}}));
        let other = &race["relatedLocations"][0]["physicalLocation"];
        assert_eq!(
            *other,
            json!({"artifactLocation": {"uri": "k.co"}, "address": {"absoluteAddress": 0x1640}})
        );
    }
}
