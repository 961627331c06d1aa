//! Test support for several packages: golden files, which are compared with the actual output or, with
//! `BLESS=1`, rewritten; output that pages show; and repeated runs of a test binary in another environment.

pub mod page;

use std::path::Path;

/// Returns whether golden files are to be rewritten: `BLESS=1`.
pub fn blessing() -> bool {
    std::env::var_os("BLESS").is_some()
}

/// Writes the actual output to a golden file.
pub fn write(expected: &Path, found: &str) -> Result<(), String> {
    std::fs::write(expected, found).map_err(|e| format!("{}: {e}", expected.display()))
}

/// Compares the actual output with a golden file, or rewrites the file.
pub fn compare(expected: &Path, found: &str) -> Result<(), String> {
    if blessing() {
        return write(expected, found);
    }
    let expected_text = std::fs::read_to_string(expected)
        .map_err(|e| format!("{}: {e}; BLESS=1 writes it:\n{found}", expected.display()))?;
    same(&format!("differs from {} (BLESS=1 rewrites it)", expected.display()), &expected_text, found)
}

/// Like [`compare`], but panics.
///
/// # Panics
/// If the file is missing or differs.
#[track_caller]
pub fn check(expected: &Path, found: &str) {
    compare(expected, found).unwrap_or_else(|e| panic!("{e}"));
}

/// Returns an error that starts with `what` if two texts differ. CRLF in the expected text is ignored.
pub fn same(what: &str, expected: &str, found: &str) -> Result<(), String> {
    let expected = expected.replace("\r\n", "\n");
    if expected == found {
        return Ok(());
    }
    let line = expected.lines().zip(found.lines()).take_while(|(a, b)| a == b).count() + 1;
    Err(format!("{what}, first in line {line}\n--- expected\n{expected}\n--- found\n{found}"))
}

/// Runs all tests of this binary again, in a process with an environment variable set. Does nothing if the
/// variable is already set.
///
/// # Panics
/// If a test fails, or none runs.
#[track_caller]
pub fn run_again(variable: &str, value: &str) {
    if std::env::var_os(variable).is_some() {
        return;
    }
    let tests = std::env::current_exe().expect("this program");
    let output = std::process::Command::new(tests).env(variable, value).output().expect("a process");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && !text.contains(" 0 passed;"), "{variable}={value}:\n{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_run_again() {
        run_again("WAVESIM_GOLDEN", "again");
    }

    #[test]
    fn differences_name_the_first_line() {
        assert_eq!(same("x", "a\r\nb\n", "a\nb\n"), Ok(()));
        assert!(same("x", "a\nb\n", "a\nc\n").unwrap_err().starts_with("x, first in line 2\n"));
        assert!(same("x", "a\n", "a\nc\n").unwrap_err().starts_with("x, first in line 2\n"));
        let missing = compare(Path::new("/no/such/file"), "found");
        assert!(blessing() || missing.unwrap_err().contains("BLESS=1 writes it:\nfound"));
    }
}
