//! Reports in HTML, as Chromium shows them: its DOM after the scripts have run.

use crate::terminal::{file, workspace};
use std::path::Path;
use std::process::{Command, Stdio};

fn wavesim(args: &[&str]) -> Option<i32> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wavesim"));
    command.args(args).current_dir(workspace("")).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().unwrap().code()
}

/// Returns the document that Chromium makes of a page, or `None` if it is not installed.
fn shown(page: &str) -> Option<String> {
    let named = std::env::var("CHROMIUM").ok().filter(|name| !name.is_empty());
    let names =
        named.as_deref().map_or(vec!["chromium", "chromium-browser", "google-chrome"], |name| vec![name]);
    let profile = format!("{page}.profile");
    for name in names {
        let mut command = Command::new(name);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]);
        command.arg(format!("--user-data-dir={profile}")).arg(format!("file://{page}"));
        if let Ok(output) = command.stderr(Stdio::null()).output() {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(text.contains("</html>"), "{name} has not shown {page}: {text}");
            return Some(text);
        }
    }
    println!("skipped: no Chromium");
    None
}

/// Runs a command that writes a page, and returns what Chromium shows of it.
fn page(name: &str, code: i32, args: &[&str]) -> Option<String> {
    let path = file(name, "");
    assert_eq!(wavesim(&[args, &["--html", &path]].concat()), Some(code), "{args:?}");
    let text = std::fs::read_to_string(&path).unwrap();
    // One file: nothing is loaded from elsewhere.
    assert!(!text.contains("src=") && !text.contains("<link"), "{name}");
    shown(&path)
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn a_check_shows_findings_where_they_are() {
    let kernel = "tests/filetests/check/race_bytes.rdna";
    assert!(Path::new(&workspace(kernel)).is_file());
    let Some(dom) = page("check.html", 1, &["check", kernel]) else { return };
    // A card with the picture of two lanes and the missing order between them, and a line in the source.
    assert!(count(&dom, "class=\"finding error\"") >= 1, "{dom}");
    assert!(count(&dom, "class=\"missing\"") >= 1 && dom.contains("no order"), "{dom}");
    assert!(dom.contains("class=\"here error\"") && dom.contains("class=\"here note\""), "{dom}");
    assert!(dom.contains("LDS of a workgroup: 256 bytes"), "{dom}");
    assert_eq!(count(&dom, "class=\"chart\""), 2, "{dom}");
    assert_eq!(count(&dom, "<h2>Findings</h2>"), 1, "{dom}");
}

#[test]
fn a_run_shows_who_accessed_what() {
    let Some(dom) = page("run.html", 0, &["run", "examples/vector_add.rdna", "-q"]) else { return };
    for part in [
        "<h2>Memory</h2>",
        "<h2>Statistics</h2>",
        "lane utilisation",
        "opcodes v_add_f32",
        "Waves that have not ended",
    ] {
        assert!(dom.contains(part), "no {part} in {dom}");
    }
    // Inputs are read only, the output is written only.
    let (read, written) = (count(&dom, "<i class=\"r\""), count(&dom, "<i class=\"w\""));
    assert!(read > 0 && written > 0 && read == 2 * written, "{read} {written}");
    assert!(dom.contains("workgroups (0,0,0)"), "{dom}");
}

#[test]
fn several_files_are_one_report() {
    let files = ["check", "examples/vector_add.rdna", "tests/filetests/check/race_bytes.rdna"];
    let Some(dom) = page("several.html", 1, &files) else { return };
    assert!(dom.contains("<h1>2 kernels</h1>"), "{dom}");
    assert!(dom.contains("examples/vector_add.rdna: result"), "{dom}");
}

#[test]
fn profiles_have_the_same_frame() {
    let args = ["profile", "examples/vector_add.rdna"];
    let Some(dom) = page("profile.html", 0, &args) else { return };
    assert!(dom.contains("<h2>Roofline</h2>") && dom.contains("f32 vector"), "{dom}");
    assert!(count(&dom, "<tr") > 3, "{dom}");
}

#[test]
fn an_exploration_shows_the_order_that_makes_the_difference() {
    let kernel = "examples/explore/last_store.rdna";
    let save = file("explored.sched", "");
    let args = ["explore", kernel, "--random", "50", "-q", "--save", &save];
    let Some(dom) = page("explore.html", 1, &args) else { return };
    for part in [
        "first in this schedule",
        "second in this schedule",
        "the other order",
        "out_y: 1 of 2 elements differ",
    ] {
        assert!(dom.contains(part), "no {part} in {dom}");
    }
    assert_eq!(count(&dom, "class=\"missing\""), 1, "{dom}");
    assert_eq!(count(&dom, "class=\"here error\""), 1, "{dom}");
    // What the command prints.
    assert!(dom.contains("<h2>Report</h2>") && dom.contains("replay: wavesim debug"), "{dom}");
    let args = ["explore", kernel, "--systematic", "--litmus", "-q", "--save", &save];
    let dom = page("explore_litmus.html", 1, &args).unwrap();
    assert!(dom.contains("<td class=\"text\">outcomes out_y=[32, 0]</td>"), "{dom}");
    let args = ["explore", "examples/vector_add.rdna", "--random", "5", "-q"];
    let dom = page("explore_same.html", 0, &args).unwrap();
    assert!(
        dom.contains("5 executions, no outcome other than expected") && !dom.contains("<h2>Findings</h2>"),
        "{dom}"
    );
}

#[test]
fn campaigns_count_by_kernel() {
    let kernel = workspace("tests/filetests/check/race_bytes.rdna");
    let plan = file(
        "reports.toml",
        &format!("name = \"a <campaign>\"\n[[cases]]\nkernels = [\"{kernel}\"]\nseeds = \"0..2\"\n"),
    );
    let results = format!("{plan}.db");
    let _ = std::fs::remove_file(&results);
    let Some(dom) = page("campaign.html", 1, &["campaign", &plan, "--results", &results, "-q"]) else {
        return;
    };
    assert!(dom.contains("<h1>a &lt;campaign&gt;</h1>") && dom.contains("0 / 2"), "{dom}");
    assert_eq!(count(&dom, "<details"), 2, "{dom}");
}

/// A report may be passed on, and a code object may name any file as its source.
#[test]
fn sources_are_files_that_the_input_may_name() {
    let folder = workspace("examples/debugger");
    let source = std::fs::read_to_string(format!("{folder}/smooth.cl")).unwrap();
    let line = source.lines().find(|line| line.contains("float mean_of")).unwrap();
    let has_source = |name: &str, below: Option<String>| {
        let page = file(name, "");
        let mut command = Command::new(env!("CARGO_BIN_EXE_wavesim"));
        command.args(["run", "smooth.co", "-q", "--grid", "1", "--block", "64", "--html", &page]);
        for arg in ["x:f32[64]=arange(64)", "out_y:f32[64]", "out_pair:f16[128]", "1"] {
            command.args(["--arg", arg]);
        }
        command.args(below.iter().flat_map(|folder| ["--files-below", folder]));
        assert!(command.current_dir(&folder).status().unwrap().success(), "{name}");
        std::fs::read_to_string(&page).unwrap().contains(line)
    };
    assert!(has_source("source.html", None));
    assert!(has_source("below.html", Some(folder.clone())));
    assert!(!has_source("elsewhere.html", Some(workspace("docs"))));
}
