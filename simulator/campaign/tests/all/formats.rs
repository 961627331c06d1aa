//! Reports.

use crate::{campaign, folder, run, script};
use serde_json::json;
use wavesim_campaign::annotation::Annotation;
use wavesim_campaign::junit::{self, Outcome, Test};
use wavesim_campaign::report;
use wavesim_campaign::store::Store;

/// Writes a log like that of `check --sarif=FILE`, with a finding in line 3.
const PROGRAM: &str = r#"
for word; do case "$word" in --sarif=*) log=${word#--sarif=} ;; esac; done
echo '{"message": "a <race>"}'
cat > "$log" <<'END'
{"runs": [{"tool": {"driver": {"rules": [{"id": "race/x"}]}}, "results": [{"ruleId": "race/x", "occurrenceCount": 2,
 "message": {"text": "a race"}, "locations": [{"physicalLocation": {"region": {"startLine": 3}}}]}]}]}
END
exit 1
"#;

#[test]
fn reports_contain_every_case() {
    let folder = folder("reports");
    std::fs::write(folder.join("a&b.rdna"), "x").unwrap();
    let program = script(&folder, PROGRAM);
    let plan = "name = 'n<1>'\n[[cases]]\nkernels = ['*.rdna']\nseeds = [1, 2]\ntargets = ['rdna3']\n";
    run(&folder, &campaign(&folder, plan), &program);
    let store = Store::existing(&folder.join("results.db")).unwrap();

    let value = report::json(&store).unwrap();
    assert_eq!(value["schema"], "wavesim-campaign-1");
    assert_eq!((&value["counts"]["failed"], &value["counts"]["passed"]), (&json!(2), &json!(0)));
    assert_eq!(value["cases"][1]["name"], "check a&b.rdna --arch=rdna3 --seed=2");

    // The finding of both seeds is one result.
    let log = report::sarif(&store, |rules, results| json!({"rules": rules, "results": results})).unwrap();
    assert_eq!(log["rules"], json!([{"id": "race/x"}]));
    let results = log["results"].as_array().unwrap();
    assert_eq!(results.len(), 1);
    assert_eq!((&results[0]["occurrenceCount"], &results[0]["properties"]["cases"]), (&json!(4), &json!(2)));

    let log = json!({"runs": [{"results": results}]});
    let expected = "::notice file=,line=3,title=race/x::a race%0Ain 2 cases; the first is check a&b.rdna --arch=rdna3 --seed=1";
    assert_eq!(report::annotations(&log), [expected]);
    let html = report::html(&store).unwrap();
    assert!(html.contains("<h1>n&lt;1&gt;</h1>") && html.contains("2 cases: 0 passed, 2 failed"), "{html}");
    assert!(html.contains("0 / 2</td>") && html.contains("a &lt;race&gt;"), "{html}");
    let xml = report::junit(&store).unwrap();
    assert!(xml.contains("tests=\"2\" failures=\"2\" errors=\"0\""), "{xml}");
    assert!(xml.contains("<failure message=\"a &lt;race&gt;\">"), "{xml}");
}

#[test]
fn junit_escapes_what_xml_does_not_permit() {
    let test = |name: &str, outcome| Test { class: "c".into(), name: name.into(), seconds: 0.25, outcome };
    let report = junit::report(
        "s",
        &[
            test("a", Outcome::Passed),
            test("b\u{1b}\"", Outcome::Error("x\0".into(), "<&>".into())),
            test("c", Outcome::Skipped("why".into())),
        ],
    );
    assert!(
        report.contains("tests=\"3\" failures=\"0\" errors=\"1\" skipped=\"1\" time=\"0.750\""),
        "{report}"
    );
    assert!(report.contains("name=\"b\u{fffd}&quot;\""), "{report}");
    assert!(report.contains("<error message=\"x\u{fffd}\">&lt;&amp;&gt;</error>"), "{report}");
}

#[test]
fn annotations_are_one_line() {
    let annotation =
        Annotation { error: true, file: "a,b.s", line: 3, title: "race: x", message: "one\n100%" };
    assert_eq!(annotation.to_string(), "::error file=a%2Cb.s,line=3,title=race%3A x::one%0A100%25");
    let unplaced = Annotation { error: false, line: 0, ..annotation };
    assert!(unplaced.to_string().starts_with("::notice file=a%2Cb.s,title="));
}
