//! The HTML report, opened in Chromium.

use crate::model::{prepare, profiled};
use std::process::Command;
use wavesim_cost::report;
use wavesim_isa::arch::Arch;

const READER: &str = r##"addEventListener("load", () => {
  const button = [...document.querySelectorAll("#table th button")].find(b => b.textContent === "clocks");
  const clocks = () => [...document.querySelectorAll("#table tbody tr")].map(tr => +tr.children[4].textContent);
  const sorted = (list, sign) => list.every((v, at) => at === 0 || sign * (v - list[at - 1]) >= 0);
  button.click();
  const down = sorted(clocks(), -1) && button.parentElement.getAttribute("aria-sort");
  button.click();
  const up = sorted(clocks(), 1) && button.parentElement.getAttribute("aria-sort");
  const line = document.querySelector("#assembly [data-line]");
  line.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
  const chosen = document.querySelectorAll("#source .on").length;
  document.body.append(`reader ${down} ${up} ${line.tabIndex} ${chosen}`);
});"##;

#[test]
fn the_report_draws_its_tables_in_a_browser() {
    let code = "  v_exp_f32 v1, v0\n  v_add_f32 v2, v1, v1\n  s_barrier";
    let prepared = prepare(Arch::Rdna3, "local = 64, 1, 1\nglobal = 4, 1, 1\n", code);
    let profile = profiled(&prepared, "");
    let source = prepared.source.as_ref().map(|s| (s.name.clone(), s.text.clone()));
    let html = report::html(&profile, &prepared.program, "k.rdna", &Vec::from_iter(source));
    assert!(!html.contains("http://") || html.contains("www.w3.org"), "no references");
    // A reader who sorts by clocks, twice, and selects the first instruction with the keyboard.
    let html = html.replacen("</body>", &format!("<script>{READER}</script></body>"), 1);
    let path = std::env::temp_dir().join(format!("wavesim-profile-{}.html", std::process::id()));
    std::fs::write(&path, html).expect("a file");
    let browser = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!("file://{}", path.display()))
        .output();
    let _ = std::fs::remove_file(&path);
    let Ok(output) = browser else {
        println!("skipped: chromium is not installed");
        return;
    };
    let dom = String::from_utf8_lossy(&output.stdout);
    // Drawn by the script, not part of the page: rows of the table, the roofline, the timeline, the sorted header.
    let body = dom.split("<tbody>").nth(1).and_then(|rest| rest.split("</tbody>").next()).unwrap_or_default();
    assert_eq!(body.matches("<tr").count(), profile.rows.len(), "{dom}");
    for part in [
        "<circle",
        "<rect",
        "<button>executed</button>",
        "s_barrier",
        "uncalibrated",
        "missing-delay",
        "WGP 0 SIMD 0",
        "clocks</text>",
        "FLOP/s</text>",
        "reader descending ascending 0 1",
    ] {
        assert!(dom.contains(part), "{part}: {dom}");
    }
}
