//! Runs the commands of `docs/proofs.md`, and compares their output with the page.

use clap::Parser as _;
use std::path::Path;
use wavesim::cli::{Cli, dispatch};

/// Splits a command line into words and removes quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        match at % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_string)),
            _ => words.push(part.to_string()),
        }
    }
    words
}

#[test]
fn documented_proofs() {
    if let Err(error) = wavesim::prove::Solver::find(std::time::Duration::from_secs(1)) {
        println!("skipped: docs/proofs.md: {error}");
        return;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/proofs.md");
    let page = std::fs::read_to_string(page).unwrap();
    let lines: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    let mut sessions: Vec<(&str, String)> = Vec::new();
    for line in lines {
        match line.strip_prefix("$ ") {
            Some(command) => sessions.push((command, String::new())),
            None => {
                if let Some((_, output)) = sessions.last_mut() {
                    output.push_str(line);
                    output.push('\n');
                }
            }
        }
    }
    for (command, expected) in &sessions {
        let mut out = Vec::new();
        let code = dispatch(&Cli::parse_from(words(command)).command, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), *expected, "{command}");
        assert_eq!(code, expected.starts_with("differ") as u8, "{command}");
    }
    assert!(sessions.len() >= 4, "{} commands", sessions.len());
}
