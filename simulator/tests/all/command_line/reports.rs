//! Several files in one command, reports for build servers, and campaigns.

use super::*;

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn check_takes_several_files() {
    let dir = folder("several").display().to_string();
    let [good, wait] = ["examples/vector_add.rdna", "examples/broken/missing_wait.rdna"].map(workspace);
    let [junit, sarif] = ["junit.xml", "log.sarif"].map(|name| format!("{dir}/{name}"));
    let args = ["check", &good, &wait, "--threads", "2", "--junit", &junit, "--sarif", &sarif, "--annotate"];
    let e = wavesim(&args);
    assert_eq!(e.code, 1, "{}", e.err);
    let [first, second] = [&good, &wait].map(|file| e.out.find(&format!("{file}:\n")).unwrap());
    let annotation =
        format!("::error file={},line=14,title=waits%3A missing wait::", wait.replace(',', "%2C"));
    let note = e.out.find(&annotation).unwrap();
    assert!(first < second && second < note, "{}", e.out);
    let xml = read(&junit);
    assert!(xml.contains("tests=\"2\" failures=\"1\" errors=\"0\""), "{xml}");
    assert!(xml.contains("<failure message=\"line 14: v2 is read before"), "{xml}");
    let log: serde_json::Value = serde_json::from_str(&read(&sarif)).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 1);
    assert_eq!(results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], wait.as_str());

    // A file that cannot be read does not keep the others from being checked.
    let e = wavesim(&["check", "no-such.rdna", &wait, "--json"]);
    assert_eq!(e.code, 2);
    assert!(e.err.contains("no-such.rdna"), "{}", e.err);
    let finding: serde_json::Value = serde_json::from_str(e.out.trim()).unwrap();
    assert_eq!((&finding["input"], &finding["line"]), (&serde_json::json!(wait), &serde_json::json!(14)));
    // The objects of one file are as they were.
    let alone = wavesim(&["check", &wait, "--json"]).out;
    assert!(!alone.contains("\"input\""), "{alone}");
}

#[test]
fn explorations_have_reports_for_build_servers() {
    let dir = folder("explored").display().to_string();
    let kernel = workspace("tests/filetests/explore/mp_reversed.rdna");
    let [junit, sarif, save] = ["junit.xml", "log.sarif", "k.sched"].map(|name| format!("{dir}/{name}"));
    let explored = |condition: &str| {
        let files = ["--junit", &junit, "--sarif", &sarif, "--save", &save];
        let args = ["explore", &kernel, "--systematic", "--expect", condition, "--annotate"];
        let e = wavesim(&[&args[..], &files].concat());
        let log: serde_json::Value = serde_json::from_str(&read(&sarif)).unwrap();
        (e, read(&junit), log["runs"][0]["results"].clone())
    };
    let (e, xml, results) = explored("out_r[0]==0||out_r[1]==1");
    assert_eq!(e.code, 1, "{}", e.err);
    let annotation = format!("::error file={},line=22,title=explore/order::", kernel.replace(',', "%2C"));
    assert!(e.out.contains(&annotation), "{}", e.out);
    assert!(xml.contains("tests=\"1\" failures=\"1\"") && xml.contains("not as expected"), "{xml}");
    let line = |places: &serde_json::Value| places[0]["physicalLocation"]["region"]["startLine"].clone();
    assert_eq!(
        (line(&results[0]["locations"]), line(&results[0]["relatedLocations"])),
        (22.into(), 29.into())
    );

    let (e, xml, results) = explored("out_r[0]<=1");
    assert_eq!((e.code, results), (0, serde_json::json!([])), "{}", e.err);
    assert!(xml.contains("tests=\"1\" failures=\"0\"") && !e.out.contains("::error"), "{xml}");
}

/// The step of the composite action.
#[test]
fn the_action_checks_kernels() {
    let dir = folder("action").display().to_string();
    let step = |files: &str| {
        let mut command = Command::new(workspace("packaging/action/check.sh"));
        command
            .env("FILES", files)
            .env("ARGUMENTS", "--arch rdna3")
            .env("WAVESIM", WAVESIM)
            .env("REPORTS", &dir);
        ended(command.current_dir(workspace("examples")).stdin(Stdio::null()).output().unwrap())
    };
    let e = step("vector_add.rdna broken/missing_*.rdna");
    assert_eq!(e.code, 1, "{}", e.err);
    assert!(e.out.contains("::error file=broken/missing_wait.rdna,line=14,"), "{}", e.out);
    assert!(read(&format!("{dir}/junit.xml")).contains("name=\"broken/missing_wait.rdna\""));
    assert!(read(&format!("{dir}/findings.sarif")).contains("waits/missing-wait"));
    assert_eq!(step("vector_add.rdna").code, 0);
}

#[test]
fn run_takes_several_files() {
    let [a, b] = ["examples/vector_add.rdna", "examples/saxpy.rdna"].map(workspace);
    let e = wavesim(&["run", &a, &b, &a]);
    assert_eq!(e.code, 0, "{}", e.err);
    let alone = |file: &str| format!("{file}:\n{}", wavesim(&["run", file]).out);
    assert_eq!(e.out, format!("{}{}{}", alone(&a), alone(&b), alone(&a)));
    refused(&["run", &a, &b, "--out-dir", "x"], &["--out-dir is for one kernel"]);
    let program = workspace("examples/riscv_gpu/vector_add.as");
    refused(&["run", &program, &a, &b], &["an assembly program takes one data file"]);
}

#[test]
fn conform_writes_reports() {
    let dir = folder("conform-reports").display().to_string();
    let vectors = workspace("tests/filetests/vectors/rdna3/vop1.jsonl.gz");
    let [junit, sarif] = ["junit.xml", "log.sarif"].map(|name| format!("{dir}/{name}"));
    let e =
        wavesim(&["conform", &vectors, "--threads", "2", "--junit", &junit, "--sarif", &sarif, "--annotate"]);
    let failed = e.out.matches("::error file=").count();
    let xml = read(&junit);
    assert!(xml.contains("tests=\"1\""), "{xml}");
    assert_eq!(xml.contains(&format!("<failure message=\"{failed} records failed\">")), e.code == 1, "{xml}");
    let log: serde_json::Value = serde_json::from_str(&read(&sarif)).unwrap();
    assert_eq!(log["runs"][0]["results"].as_array().unwrap().len(), failed);
}

const PLAN: &str = "\
name = 'tree'
keep = 'all'
[limits]
seconds = 60
[[cases]]
kernels = ['KERNELS/vector_add.rdna', 'KERNELS/broken/missing_wait.rdna']
targets = ['rdna3']
orders = ['ascending', 'random:3']
[[cases]]
mode = 'run'
kernels = ['KERNELS/vector_add.rdna']
inputs = [{ define = { N = 64 } }, { define = { NONE = 1 } }]
";

#[test]
fn campaigns_run_continue_merge_and_report() {
    let dir = folder("campaign").display().to_string();
    let file = |name: &str| format!("{dir}/{name}");
    let plan = file("plan.toml");
    std::fs::write(&plan, PLAN.replace("KERNELS", &workspace("examples"))).unwrap();
    let [results, html, json, junit, sarif] = ["all.db", "r.html", "r.json", "r.xml", "r.sarif"].map(&file);
    let list = wavesim(&["campaign", &plan, "--list"]).out;
    assert_eq!(list.lines().count(), 6, "{list}");
    let run = |more: &[&str]| wavesim(&[&["campaign", &plan, "--results", &results], more].concat());
    let e = run(&["--html", &html, "--json", &json, "--junit", &junit, "--sarif", &sarif]);
    assert_eq!(e.code, 1, "{}", e.err);
    assert!(e.out.starts_with("3 passed, 2 failed, 1 invalid; "), "{}", e.out);
    let value: serde_json::Value = serde_json::from_str(&read(&json)).unwrap();
    let cases = value["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 6);
    let invalid = cases.iter().find(|case| case["status"] == "invalid").unwrap();
    assert!(invalid["messages"].as_str().unwrap().contains("`NONE` does not occur"), "{invalid}");
    let ran = cases.iter().find(|case| case["name"].as_str().unwrap().contains("-DN=64")).unwrap();
    assert!(ran["output"].as_str().unwrap().contains("wavesim-run-1"), "{ran}");
    assert!(
        read(&html).contains("<h1>tree</h1>")
            && read(&junit).contains("tests=\"6\" failures=\"2\" errors=\"1\"")
    );
    // Both orders have the same finding.
    let log: serde_json::Value = serde_json::from_str(&read(&sarif)).unwrap();
    let found = log["runs"][0]["results"].as_array().unwrap();
    assert_eq!(found.len(), 1, "{log}");
    assert_eq!(
        (&found[0]["ruleId"], &found[0]["properties"]["cases"]),
        (&"waits/missing-wait".into(), &2.into())
    );

    let again = run(&[]);
    assert!(again.err.contains("6 of 6 cases had a result"), "{}", again.err);
    let parts = ["1/2", "2/2"].map(|shard| {
        let path = file(&format!("part{}.db", &shard[..1]));
        assert_eq!(wavesim(&["campaign", &plan, "--shard", shard, "--results", &path, "-q"]).code, 1);
        path
    });
    let merged = file("merged.db");
    let e = wavesim(&["campaign", "merge", &merged, &parts[0], &parts[1]]);
    assert!(e.code == 0 && e.out.contains("merged.db: 3 passed, 2 failed, 1 invalid"), "{} {}", e.out, e.err);
    let e = wavesim(&["campaign", "report", &merged, "--json", &json]);
    assert_eq!(e.code, 1);
    let merged: serde_json::Value = serde_json::from_str(&read(&json)).unwrap();
    let facts = |value: &serde_json::Value| -> Vec<String> {
        let list = value["cases"].as_array().unwrap();
        list.iter().map(|case| format!("{} {} {}", case["name"], case["status"], case["output"])).collect()
    };
    assert_eq!(facts(&merged), facts(&value));
}

#[test]
fn wrong_campaigns_are_refused() {
    let dir = folder("wrong-campaign").display().to_string();
    let plan = format!("{dir}/plan.toml");
    std::fs::write(&plan, "[[cases]]\nkernel = ['x']\n").unwrap();
    refused(&["campaign", &plan], &["plan.toml:2", "unknown field `kernel`", "kernels"]);
    refused(&["campaign", &plan, "--shard", "3/2"], &["3/2"]);
    refused(&["campaign", "no-such.toml"], &["no-such.toml"]);
    let text = format!("{dir}/text.db");
    std::fs::write(&text, "not a database\n".repeat(100)).unwrap();
    refused(&["campaign", "report", &text], &["not a campaign's database"]);
}
