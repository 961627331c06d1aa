//! Tests of the documentation: links are valid, `pcode` blocks compile, tables match the code, commands run, and the steps
//! in `extending.md` work as written.

mod cargo_commands;
mod links;

use crate::names_in_rust;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use isa_spec::canonical;
use isa_spec::pcode::builtins;
use isa_spec::pcode::ir::Shape;
use isa_spec::source::SourceMap;
use isa_spec::{data, diag, report};
use std::path::{Path, PathBuf};
use wavesim::arch::Arch;
use wavesim::cli::Cli;
use wavesim::exec::overrides::{OverrideError, Overrides};
use wavesim_tests::command_words;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn document(name: &str) -> String {
    std::fs::read_to_string(root().join("docs").join(name)).unwrap()
}

/// Returns the fenced blocks of a text: the info string and the content.
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

/// Crates with `doctest = false` in their manifests have no doc examples. (Without the setting, cargo builds
/// doc tests for every crate, even without examples.)
#[test]
fn every_doc_example_runs() {
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
    assert!(missed.is_empty(), "not run, because the crates disable doc tests: {missed:?}");
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

/// Returns the block of `extending.md` with the given file name in its info string.
fn step(name: &str) -> String {
    let found = blocks(&document("extending.md")).into_iter().find(|(info, _)| info.ends_with(name));
    found.unwrap_or_else(|| panic!("extending.md has no block for {name}")).1
}

#[test]
fn extending_with_a_semantics_file() {
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
fn extending_with_an_overlay() {
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

/// The pages whose commands are tested.
fn pages_with_commands() -> Vec<PathBuf> {
    let root = root();
    let pages = ["README.md", "CONTRIBUTING.md", "editors/README.md", "hosts/python/README.md"];
    let mut pages: Vec<PathBuf> = pages.map(|p| root.join(p)).into();
    pages.extend(data::files_below(&root.join("docs"), "md"));
    pages
}

/// A command in a code block.
struct Documented {
    line: String,
    words: Vec<String>,
    /// It is in a block of the kind `console`, which shows its output.
    shown: bool,
}

/// Returns the commands of wavesim in the code blocks of a page.
fn documented(page: &Path) -> Vec<Documented> {
    let text = std::fs::read_to_string(page).unwrap().replace("\\\n", " ");
    let (mut fence, mut found) = (None, Vec::new());
    for line in text.lines() {
        if let Some(kind) = line.trim_start().strip_prefix("```") {
            fence = fence.is_none().then_some(kind);
        }
        if fence.is_none() && !line.starts_with("    ") {
            continue;
        }
        let line = line.split("  #").next().unwrap_or_default();
        let line = line.trim_start().trim_start_matches("$ ");
        let mut words = command_words(line);
        words.retain(|word| !word.is_empty());
        // A shell's variables are numbers in the documents.
        words.iter_mut().for_each(|word| *word = without_variables(word));
        // Variables of the environment come first.
        let first = words.iter().position(|word| !word.starts_with("WAVESIM_") && !word.contains('='));
        words.drain(..first.unwrap_or(words.len()));
        let end = words.iter().position(|word| ["|", ">", "<", "&&", ";", "2>&1"].contains(&&**word));
        words.truncate(end.unwrap_or(words.len()));
        let subcommand = words.get(1).map(String::as_str).unwrap_or_default();
        let known = Cli::command().get_subcommands().any(|c| c.get_name() == subcommand);
        // `debug -- PROGRAM` debugs a program of a host.
        if words.first().is_some_and(|word| word == "wavesim") && known && words.iter().all(|w| w != "--") {
            found.push(Documented { line: line.to_string(), words, shown: fence == Some("console") });
        }
    }
    found
}

/// The commands in code blocks have subcommands and options that exist, with valid values.
#[test]
fn commands_are_accepted() {
    let mut commands = 0;
    for page in pages_with_commands() {
        for Documented { line, words, .. } in documented(&page) {
            if let Err(e) = Cli::try_parse_from(&words) {
                panic!("{}: {line}\n{e}", page.display());
            }
            commands += 1;
        }
    }
    assert!(commands > 40, "{commands} commands");
}

/// The commands in the text of pages have subcommands and options that exist; arguments may be left out.
#[test]
fn commands_in_prose_are_accepted() {
    let mut commands = 0;
    for page in pages_with_commands() {
        let prose = links::without_blocks(&std::fs::read_to_string(&page).unwrap());
        for span in prose.split('`').skip(1).step_by(2).filter(|span| span.starts_with("wavesim ")) {
            let mut words = command_words(&span.replace('\n', " "));
            words.retain(|word| !word.is_empty() && word != "…");
            let end = words.iter().position(|word| ["|", ">", "<", "--"].contains(&&**word));
            words.truncate(end.unwrap_or(words.len()));
            if let Err(e) = Cli::try_parse_from(&words) {
                let wrong = [ErrorKind::UnknownArgument, ErrorKind::InvalidSubcommand];
                assert!(!wrong.contains(&e.kind()), "{}: `{span}`\n{e}", page.display());
            }
            commands += 1;
        }
    }
    assert!(commands > 60, "{commands} commands");
}

/// Options whose value is a file that the command writes.
const WRITES: [&str; 10] = [
    "--html",
    "--perfetto",
    "--sarif",
    "--dump",
    "--coverage",
    "--lcov",
    "--junit",
    "--save",
    "--dump-jit",
    "-o",
];

/// Replaces the names of files: those of the repository have its path, and those that are written are temporary, also where
/// a later command reads them. Returns false if a file does not exist.
fn resolve_files(words: &mut [String], written: &mut Vec<String>) -> bool {
    const INPUTS: [&str; 11] = ["rdna", "s", "co", "cl", "hip", "json", "toml", "pcode", "as", "sched", "db"];
    for at in 2..words.len() {
        let writes = WRITES.contains(&&*words[at - 1]);
        let named = INPUTS.iter().any(|e| Path::new(&words[at]).extension().is_some_and(|own| own == *e));
        let input = named || root().join(&words[at]).is_file();
        if words[at].contains('=') || !writes && !input {
            continue;
        }
        if writes || written.contains(&words[at]) {
            let path = crate::temporary(module_path!(), &words[at].replace('/', "."));
            written.push(std::mem::replace(&mut words[at], path.display().to_string()));
        } else if !words[at].starts_with("target/") && root().join(&words[at]).is_file() {
            words[at] = root().join(&words[at]).display().to_string();
        } else {
            return false;
        }
    }
    true
}

/// The commands run whose files are in the repository, and those that read none. Other tests compare what `console` blocks
/// show (`filetests/commands.rs`), and run `prove` and `isa equivalent`.
#[test]
fn documented_commands_run() {
    let (mut run, mut skipped) = (0, 0);
    for page in pages_with_commands() {
        let mut written = Vec::new();
        for Documented { line, mut words, shown } in documented(&page) {
            let elsewhere = ["serve", "bench", "campaign", "conform", "dap", "lsp", "prove", "tui"];
            let elsewhere = elsewhere.contains(&words[1].as_str()) || words.iter().any(|w| w == "equivalent");
            let interactive = words[1] == "debug" && words.iter().all(|word| word != "--batch");
            if shown || elsewhere || interactive || !resolve_files(&mut words, &mut written) {
                continue;
            }
            let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
            match wavesim_tests::wavesim(&words) {
                (wavesim::cli::BAD_INPUT, out) if line.contains(".cl ") && out.contains("installed") => {
                    println!("skipped: {line}: {out}");
                    skipped += 1;
                }
                (code, out) => {
                    assert!(code != wavesim::cli::BAD_INPUT, "{}: {line}\n{out}", page.display());
                    run += 1;
                }
            }
        }
    }
    assert!(run + skipped >= 20, "{run} commands");
}

/// Replaces the variables of a shell (`$NAME`) by 1.
fn without_variables(word: &str) -> String {
    let mut parts = word.split('$');
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        out += "1";
        out += part.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    }
    out
}

/// The page on security lists every option that writes files.
#[test]
fn options_that_write_are_documented() {
    let text = std::fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let mut found = 0;
    for command in Cli::command().get_subcommands() {
        for option in command.get_arguments() {
            let help = option.get_help().map(ToString::to_string).unwrap_or_default().to_lowercase();
            let writes = ["write ", "also write ", "keep "].iter().any(|verb| help.starts_with(verb));
            let Some(long) = option.get_long().filter(|_| writes || help.contains(": write the")) else {
                continue;
            };
            assert!(text.contains(&format!("`--{long}`")), "SECURITY.md: --{long} of {}", command.get_name());
            found += 1;
        }
    }
    assert!(found >= 8, "{found} options");
}

/// Returns the examples of a command's help and of its subcommands, a line each.
fn examples_of_help(command: &clap::Command) -> Vec<String> {
    let help =
        command.get_after_long_help().map(ToString::to_string).unwrap_or_default().replace("\\\n", " ");
    let lines =
        help.lines().skip_while(|line| *line != "Examples:").skip(1).take_while(|line| !line.is_empty());
    let own = lines.map(str::trim).filter(|line| line.starts_with("wavesim ")).map(str::to_string);
    own.chain(command.get_subcommands().flat_map(examples_of_help)).collect()
}

/// The examples in the help of commands are accepted, and those of files of the repository run.
#[test]
fn examples_of_the_help_run() {
    let (mut run, mut skipped) = (0, 0);
    // `debug -- PROGRAM` debugs a program of a host.
    let examples = examples_of_help(&Cli::command());
    for line in examples.into_iter().filter(|line| !line.contains(" -- ")) {
        let mut words = command_words(&line);
        words.retain(|word| !word.is_empty() && word != "…");
        words.truncate(words.iter().position(|word| ["|", ">"].contains(&&**word)).unwrap_or(words.len()));
        if let Err(e) = Cli::try_parse_from(&words) {
            panic!("{line}\n{e}");
        }
        let elsewhere = ["serve", "debug", "bench", "campaign"].contains(&words[1].as_str());
        if elsewhere || !words.iter().any(|word| word.starts_with("examples/")) {
            continue;
        }
        for at in 2..words.len() {
            if WRITES.contains(&&*words[at - 1]) {
                words[at] = crate::temporary(module_path!(), &words[at]).display().to_string();
            } else if words[at].starts_with("examples/") {
                words[at] = root().join(&words[at]).display().to_string();
            }
        }
        let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        match wavesim_tests::wavesim(&words) {
            (wavesim::cli::BAD_INPUT, out) if line.contains(".cl ") && out.contains("installed") => {
                println!("skipped: {line}: {out}");
                skipped += 1;
            }
            (code, out) => {
                assert!(code != wavesim::cli::BAD_INPUT, "{line}\n{out}");
                run += 1;
            }
        }
    }
    assert!(run + skipped >= 12, "{run} examples");
}

/// Options after those of a heading have a heading of their own, or none.
#[test]
fn headings_of_the_help_end() {
    let mut commands = 0;
    for command in Cli::command().get_subcommands() {
        let under = command.get_arguments().filter(|arg| arg.get_help_heading() == Some("Source files"));
        let names: Vec<_> = under.filter_map(|arg| arg.get_long()).collect();
        assert!(names.is_empty() || names == ["clang"], "{}: {names:?}", command.get_name());
        commands += usize::from(!names.is_empty());
    }
    assert!(commands >= 8, "{commands} commands");
}
