//! Plans: the cases that they stand for, and errors in them.

use crate::{campaign, folder};
use wavesim_campaign::plan::{Campaign, Shard};

const PLAN: &str = r#"
name = "two"
[limits]
seconds = 5
[[cases]]
kernels = ["*.rdna"]
targets = ["rdna3", "gfx1201"]
inputs = [{ define = { N = 64, S = 0.5 } }, { grid = [2, 1], args = ["x: f32[4]"] }]
orders = ["random:1"]
seeds = "7..9"
[[cases]]
mode = "launch"
kernels = ["sub/l.json"]
targets = ["gfx1100"]
options = ["--wave=64"]
"#;

#[test]
fn every_combination_is_a_case() {
    let folder = folder("combinations");
    std::fs::create_dir(folder.join("sub")).unwrap();
    for file in ["a.rdna", "b.rdna", "c.s", "sub/l.json"] {
        std::fs::write(folder.join(file), "x").unwrap();
    }
    let campaign = campaign(&folder, PLAN);
    assert_eq!(campaign.count(), 2 * 2 * 2 * 2 + 1);
    let names: Vec<String> = campaign.cases(Shard::WHOLE).map(|case| case.name).collect();
    assert_eq!(names[0], "check a.rdna --arch=rdna3 -DN=64 -DS=0.5 --order=random:1 --seed=7");
    assert_eq!(names[1], "check a.rdna --arch=rdna3 -DN=64 -DS=0.5 --order=random:1 --seed=8");
    assert_eq!(names[15], "check b.rdna --mcpu=gfx1201 --grid=2,1 --arg=x: f32[4] --order=random:1 --seed=8");
    assert_eq!(names[16], "launch sub/l.json --target=gfx1100 --wave=64");
    let launch = campaign.case(16).unwrap();
    let file = folder.join("sub/l.json").display().to_string();
    assert_eq!(
        launch.arguments,
        ["launch", "--json", "--check", "--threads=1", "--target=gfx1100", "--wave=64", "--", &file]
    );
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), names.len());
    // Shards contain each case once.
    let mut parts: Vec<String> = Vec::new();
    for index in 1..=3 {
        parts.extend(campaign.cases(Shard { index, count: 3 }).map(|case| case.name));
    }
    parts.sort_unstable();
    assert_eq!(parts, unique);
}

#[test]
fn coverage_has_a_file_for_each_case() {
    let folder = folder("coverage");
    std::fs::write(folder.join("a.rdna"), "x").unwrap();
    let of = |mode: &str| {
        let text = format!(
            "coverage = \"covered\"\n[[cases]]\nmode = \"{mode}\"\nkernels = [\"a.rdna\"]\nseeds = \"0..2\"\n"
        );
        let arguments = |case: wavesim_campaign::plan::Case| case.arguments[1].clone();
        campaign(&folder, &text).cases(Shard::WHOLE).map(arguments).collect::<Vec<_>>()
    };
    let files = of("run");
    let start = format!("--coverage={}/", folder.join("covered").display());
    assert!(files.len() == 2 && files.iter().all(|file| file.starts_with(&start)), "{files:?}");
    assert_ne!(files[0], files[1]);
    // A conformance vector runs no kernel.
    assert!(of("conform").iter().all(|argument| argument == "--json"));
}

#[test]
fn errors_have_places() {
    let folder = folder("errors");
    std::fs::write(folder.join("a.rdna"), "x").unwrap();
    let error = |text: &str| Campaign::parse("p.toml", text.to_string(), &folder).unwrap_err().to_string();
    assert!(error("name = \"x\"\nseconds = 4\n").starts_with("p.toml:2: unknown field `seconds`"));
    assert!(error("[[cases]]\nkernels = [\n").starts_with("p.toml:"));
    assert_eq!(error(""), "p.toml: there are no `[[cases]]`");
    assert_eq!(error("[[cases]]\nkernels = [\"b*\"]"), "p.toml: no file is called `b*`");
    let seeds = "[[cases]]\nkernels = [\"a.rdna\"]\nseeds = \"5..5\"";
    assert_eq!(error(seeds), "p.toml: `seeds`: `5..5` is not a range such as 0..100");
    let limits = "[limits]\nseconds = 0\n[[cases]]\nkernels = [\"a.rdna\"]";
    assert_eq!(error(limits), "p.toml: `limits.seconds` must be positive");
    let many = "[[cases]]\nkernels = [\"a.rdna\"]\nseeds = \"0..200000000\"\nschedules = [\"a\",\"b\",\"c\",\"d\",\
        \"e\",\"f\",\"g\",\"h\",\"i\",\"j\",\"k\",\"l\",\"m\",\"n\",\"o\",\"p\",\"q\",\"r\",\"s\",\"t\",\"u\",\"v\"]";
    assert!(error(many).contains("more than"));
}

#[test]
fn shards_are_read() {
    assert_eq!("2/3".parse(), Ok(Shard { index: 2, count: 3 }));
    for wrong in ["0/3", "4/3", "1", "a/b", "1/0"] {
        assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
    }
}
