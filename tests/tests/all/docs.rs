//! The documents' examples: every `pcode` block compiles, the tables are the compiler's, and `extending.md` is followed as written.

use crate::names_in_rust;
use isa_spec::canonical;
use isa_spec::pcode::builtins;
use isa_spec::pcode::ir::Shape;
use isa_spec::source::SourceMap;
use isa_spec::{data, diag, report};
use std::path::{Path, PathBuf};
use wavesim::arch::Arch;
use wavesim::exec::overrides::{OverrideError, Overrides};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn document(name: &str) -> String {
    std::fs::read_to_string(root().join("docs").join(name)).unwrap()
}

/// Links between the pages, and files that they name as code, exist.
#[test]
fn links_work() {
    let root = root();
    let mut pages: Vec<PathBuf> = ["README.md", "SECURITY.md", "fuzz/README.md"].map(|p| root.join(p)).into();
    pages.extend(std::fs::read_dir(root.join("docs")).unwrap().map(|f| f.unwrap().path()));
    let mut links = 0;
    for page in pages.iter().filter(|p| p.extension().is_some_and(|e| e == "md")) {
        let text = std::fs::read_to_string(page).unwrap();
        let prose: String = text.split("```").step_by(2).collect();
        let prose: String = prose.split_inclusive('\n').filter(|line| !line.starts_with("    ")).collect();
        let prose: String = prose.split('`').step_by(2).collect();
        for link in prose.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = link.split('#').next().unwrap_or_default();
            if !path.is_empty() && !path.contains("://") {
                assert!(page.parent().unwrap().join(path).exists(), "{}: {link}", page.display());
                links += 1;
            }
        }
        for code in text.split('`').skip(1).step_by(2) {
            let folder = code.split('/').next().unwrap_or_default();
            let folders = "docs scripts examples data pseudocode capi simulator isa-spec isa-macros hosts web tests fuzz";
            let file = folders.split(' ').any(|f| f == folder) && code.contains('/');
            let plain = code.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
            // Made by builds and tests.
            let plain =
                plain && !["web/page/dist", "web/page/shots"].iter().any(|made| code.starts_with(made));
            // Names of what the reader is to make stand in examples.
            let example = page.ends_with("isa-xml.md")
                || page.ends_with("extending.md")
                || ["NAME", "KIND"].iter().any(|part| code.contains(part));
            if file && plain && !example {
                assert!(root.join(code).exists(), "{}: `{code}`", page.display());
                links += 1;
            }
        }
    }
    assert!(links > 30, "{links} links");
}

/// Fenced blocks: what follows the fence, and the text.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(info) => {
                inside = !inside;
                if inside {
                    out.push((info.trim().to_string(), String::new()));
                }
            }
            None if inside => {
                if let Some(block) = out.last_mut() {
                    block.1 += line;
                    block.1.push('\n');
                }
            }
            None => {}
        }
    }
    out
}

/// A crate whose manifest says `doctest = false` has no examples that cargo would run. (Without it, tests of documentation are built for each
/// crate, examples or not.)
#[test]
fn every_example_of_an_item_runs() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = manifest.split("members = [").nth(1).and_then(|rest| rest.split(']').next()).unwrap();
    let (mut crates, mut missed) = (0, Vec::new());
    for member in members.split('"').skip(1).step_by(2) {
        let folder = root().join(member);
        if !std::fs::read_to_string(folder.join("Cargo.toml")).unwrap().contains("doctest = false") {
            continue;
        }
        crates += 1;
        names_in_rust::walk(&folder.join("src"), &mut |path, text| {
            let lines = text.lines().map(str::trim_start);
            let prose = lines.filter_map(|l| l.strip_prefix("///").or_else(|| l.strip_prefix("//!")));
            let prose: Vec<&str> = prose.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
            let examples = blocks(&prose.join("\n")).into_iter().map(|(info, _)| info);
            let run = examples.filter(|info| !["text", "xml"].contains(&&**info)).count();
            missed.extend((run > 0).then(|| path.display().to_string()));
        });
    }
    assert!(crates > 20, "{crates} crates");
    assert!(missed.is_empty(), "not run, as their crates have no tests of documentation: {missed:?}");
}

#[test]
fn pseudocode_examples_compile() {
    let loaded = wavesim::isa::loaded();
    let mut found = 0;
    for (info, text) in blocks(&document("pseudocode.md")).into_iter().filter(|b| b.0.starts_with("pcode")) {
        let mut sources = SourceMap::default();
        let file = sources.add(info, text);
        let base: Vec<_> =
            wavesim::isa::PSEUDOCODE.iter().map(|(name, text)| sources.add(*name, *text)).collect();
        let report = report::check_files(&sources, &[file], &base, &loaded.tables);
        assert!(report.diagnostics.is_empty(), "{}", diag::render_all(&sources, &report.diagnostics));
        found += report.blocks.len();
    }
    assert!(found >= 12, "{found} instructions");
}

#[test]
fn every_builtin_is_documented() {
    let text = document("pseudocode.md");
    for builtin in builtins::all() {
        let row = text.lines().find(|line| line.starts_with(&format!("| `{}(", builtin.name)));
        let row = row.unwrap_or_else(|| panic!("docs/pseudocode.md has no row for `{}`", builtin.name));
        assert!(row.contains(builtin.doc), "docs/pseudocode.md: `{}`: {}", builtin.name, builtin.doc);
    }
}

/// A block of `extending.md` by the file name after its fence.
fn step(name: &str) -> String {
    let found = blocks(&document("extending.md")).into_iter().find(|(info, _)| info.ends_with(name));
    found.unwrap_or_else(|| panic!("extending.md has no block for {name}")).1
}

#[test]
fn extending_by_a_file_of_ones_own() {
    let (own, warnings) = Overrides::parse("mine.pcode".to_string(), step("mine.pcode")).unwrap();
    assert_eq!(warnings, None);
    for arch in Arch::RDNA {
        assert_eq!(own.get(arch, "V_ADD_F32").map(|s| s.shape), Some(Shape::Lane));
    }
}

#[test]
fn extending_with_a_misspelt_builtin() {
    let Err(OverrideError::Wrong(message)) = Overrides::parse("wrong.pcode".to_string(), step("wrong.pcode"))
    else {
        panic!("accepted")
    };
    assert_eq!(message.trim(), step("wrong.stderr").trim());
}

#[test]
fn extending_by_an_overlay() {
    let root = root();
    let work = crate::temporary(module_path!(), "extending");
    let (overlays, bodies) = (work.join("overlay"), work.join("pseudocode"));
    let _ = std::fs::remove_dir_all(&work);
    std::fs::create_dir_all(&overlays).unwrap();
    std::fs::create_dir_all(&bodies).unwrap();
    for path in data::files_below(&root.join("data/overlay"), "xml") {
        std::fs::copy(&path, overlays.join(path.file_name().unwrap())).unwrap();
    }
    std::fs::write(overlays.join("average.xml"), step("average.xml")).unwrap();
    std::fs::write(bodies.join("average.pcode"), step("average.pcode")).unwrap();
    let loaded = data::load(data::AMD, &root.join("data"), &overlays, &bodies, &root);
    assert!(loaded.diagnostics.is_empty(), "{}", diag::render_all(&loaded.sources, &loaded.diagnostics));
    let (set, diagnostics) = canonical::load_set(&loaded.sources, &loaded.pcode, &loaded.tables);
    assert!(diagnostics.is_empty(), "{}", diag::render_all(&loaded.sources, &diagnostics));
    let named = loaded.tables.iter().zip(&set.by_arch).filter(|(table, _)| table.name.starts_with("rdna"));
    for (table, by_arch) in named {
        let at = table.instructions.iter().position(|i| i.name == "V_AVERAGE_U32").unwrap();
        let operation = &set.operations[by_arch[at].unwrap() as usize];
        assert_eq!(operation.sem.shape, Shape::Lane);
        let entries = table.entries_of(&table.instructions[at]);
        assert!(entries.iter().any(|e| e.opcode == 1000), "{}", table.name);
    }
}
