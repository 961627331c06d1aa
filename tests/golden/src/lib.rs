//! What tests of several packages share: expectations that are kept in files, compared with what is found, or, with `BLESS=1`, written;
//! and tests that run again in another environment.

use std::path::Path;

/// Whether files of expectations are to be written: `BLESS=1`.
pub fn blessing() -> bool {
    std::env::var_os("BLESS").is_some()
}

/// Writes what is found as the expectation.
pub fn write(expected: &Path, found: &str) -> Result<(), String> {
    std::fs::write(expected, found).map_err(|e| format!("{}: {e}", expected.display()))
}

/// Compares with a file of what is expected, or writes it.
pub fn compare(expected: &Path, found: &str) -> Result<(), String> {
    if blessing() {
        return write(expected, found);
    }
    let wanted = std::fs::read_to_string(expected)
        .map_err(|e| format!("{}: {e}; BLESS=1 writes it:\n{found}", expected.display()))?;
    same(&format!("differs from {} (BLESS=1 rewrites it)", expected.display()), &wanted, found)
}

/// As [`compare`], for tests that panic.
///
/// # Panics
/// If the file is missing, or has something else.
#[track_caller]
pub fn check(expected: &Path, found: &str) {
    compare(expected, found).unwrap_or_else(|e| panic!("{e}"));
}

/// An error that begins with `what` if two texts differ. Line ends of checkouts do not count.
pub fn same(what: &str, expected: &str, found: &str) -> Result<(), String> {
    let expected = expected.replace("\r\n", "\n");
    if expected == found {
        return Ok(());
    }
    let line = expected.lines().zip(found.lines()).take_while(|(a, b)| a == b).count() + 1;
    Err(format!("{what}, first in line {line}\n--- expected\n{expected}\n--- found\n{found}"))
}

/// Runs all tests of this program again, in a process with a variable set. In that process, it does nothing.
///
/// # Panics
/// If one of them fails, or none runs.
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
