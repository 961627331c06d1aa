//! What the output of a test program says about its tests.

/// The tests of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of tests that have passed.
    pub passed: usize,
    /// Number of tests that have failed.
    pub failed: usize,
    /// Number of tests that do not apply, as the program says.
    pub skipped: usize,
    /// Whether the program ended with an error that its tests do not explain.
    pub crashed: bool,
    /// The first failure, or another remark.
    pub remark: String,
}

/// Reads the output of a program: text, and whether it exited successfully.
pub type Count = fn(&str, bool) -> Outcome;

/// Without the escapes of colours.
fn plain(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        out += before;
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    out + rest
}

fn number_before(text: &str, word: &str) -> Option<usize> {
    text.split_once(word)?.0.trim_end().rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

impl Outcome {
    fn fail(&mut self, name: &str) {
        self.failed += 1;
        if self.remark.is_empty() {
            self.remark = name.trim().chars().take(100).collect();
        }
    }

    /// Adds the tests of another program.
    pub fn add(&mut self, other: Outcome) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.crashed |= other.crashed;
        if self.remark.is_empty() {
            self.remark = other.remark;
        }
    }

    fn ended(mut self, success: bool) -> Outcome {
        self.crashed |= !success && self.failed == 0;
        if self.crashed && self.remark.is_empty() {
            self.remark = "ended with an error".to_string();
        }
        self
    }
}

/// GoogleTest: `[       OK ] name (12 ms)`, `[  FAILED  ] name (12 ms)`, `[  SKIPPED ] name (12 ms)`, and at the end the names
/// again. A parameter that the program prints behind the name may have several lines.
pub fn gtest(text: &str, success: bool) -> Outcome {
    let mut outcome = Outcome::default();
    let summary = |line: &String| line.starts_with("[==========]") && line.contains(" ran.");
    for line in text.lines().map(plain).take_while(|line| !summary(line)) {
        if line.starts_with("[       OK ]") {
            outcome.passed += 1;
        } else if line.starts_with("[  SKIPPED ]") {
            outcome.skipped += 1;
        } else if let Some(name) = line.strip_prefix("[  FAILED  ]") {
            outcome.fail(name);
        }
    }
    outcome.ended(success)
}

/// `test-backend-ops` of llama.cpp, and the script of language models: `  ADD(…): OK`, `FAIL`, `not supported [ROCm0]`.
pub fn ggml(text: &str, success: bool) -> Outcome {
    let mut outcome = Outcome::default();
    for line in text.lines().map(plain) {
        let Some((name, result)) = line.rsplit_once("): ").filter(|_| line.starts_with("  ")) else {
            continue;
        };
        if result.ends_with("OK") {
            outcome.passed += 1;
        } else if result.contains("not supported") {
            outcome.skipped += 1;
        } else if result.contains("FAIL") {
            outcome.fail(name);
        }
    }
    outcome.ended(success)
}

/// The last line of pytest, and of the script of hashcat's modes: `2 failed, 10 passed, 3 skipped in 4.5s`. If pytest was
/// stopped, what `-v` prints of each test: `test_a.py::test_b PASSED [ 10%]`.
pub fn pytest(text: &str, success: bool) -> Outcome {
    let lines: Vec<String> = text.lines().map(plain).collect();
    let is_summary = |line: &&String| {
        let words = [" passed", " failed", " skipped", " error", " xfailed", "no tests ran"];
        line.contains(" in ") && words.iter().any(|word| line.contains(word)) && !line.contains("::")
    };
    let last = lines.iter().rev().find(is_summary);
    let count = |word: &str, of_test: &str| match last {
        Some(line) => number_before(line, word).unwrap_or(0),
        None => lines.iter().filter(|line| line.contains("::") && line.contains(of_test)).count(),
    };
    let first = lines.iter().find(|line| line.starts_with("FAILED ") || line.starts_with("ERROR "));
    Outcome {
        passed: count(" passed", " PASSED "),
        failed: count(" failed", " FAILED ") + count(" error", " ERROR "),
        skipped: count(" skipped", " SKIPPED ") + count(" xfailed", " XFAIL "),
        crashed: false,
        remark: first.map(|line| line.chars().take(100).collect()).unwrap_or_default(),
    }
    .ended(success)
}

/// rocThrust: `Totals: 0 failures, 0 known failures, 0 errors, and 9 passes.`
pub fn thrust(text: &str, success: bool) -> Outcome {
    let mut outcome = Outcome { crashed: true, ..Outcome::default() };
    for totals in text.lines().filter_map(|line| line.strip_prefix("Totals: ")) {
        let count = |word| number_before(totals, word).unwrap_or(0);
        outcome.passed += count(" passes");
        outcome.failed += count(" failures") + count(" errors");
        outcome.skipped += count(" known failures");
        outcome.crashed = false;
    }
    outcome.ended(success)
}

/// hipBLASLt's benchmarks of small operations: `max error : 4.8e-07`, compared with the CPU's result.
pub fn max_error(text: &str, success: bool) -> Outcome {
    const LARGEST: f64 = 1e-5;
    let mut outcome = Outcome::default();
    for line in text.lines() {
        match line.split_once("max error :").map(|(_, error)| error.trim().parse::<f64>()) {
            None => {}
            Some(Ok(error)) if error <= LARGEST => outcome.passed += 1,
            Some(_) => outcome.fail(line),
        }
    }
    outcome.crashed = outcome.passed == 0;
    outcome.ended(success)
}

/// A program without tests of its own, which exits successfully; the remark is its last line.
pub fn exit(text: &str, success: bool) -> Outcome {
    let last = text.lines().map(plain).rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    let remark = last.trim().chars().take(100).collect();
    Outcome { passed: success.into(), failed: (!success).into(), remark, ..Outcome::default() }
}

/// hashcat's benchmark: `Speed.#01........:   1234 H/s`, after a self-test of each mode.
pub fn hashcat(text: &str, success: bool) -> Outcome {
    let mut outcome = Outcome::default();
    for line in text.lines() {
        if line.starts_with("Speed.#") {
            outcome.passed += 1;
        } else if line.contains("self-test failed")
            || line.contains("Kernel ./OpenCL") && line.contains("fail")
        {
            outcome.fail(line);
        }
    }
    outcome.ended(success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_pytest_are_counted() {
        let counts = |text: &str, success| {
            let outcome = pytest(text, success);
            (outcome.passed, outcome.failed, outcome.skipped, outcome.crashed)
        };
        let lines = "a.py::test_a PASSED [ 25%]\na.py::test_b[passed in] SKIPPED (no) [ 50%]\n\
                     a.py::test_c FAILED [ 75%]\na.py::test_d XFAIL (so) [100%]\n";
        let summary = "FAILED a.py::test_c - it failed in 2 places\n\
                       \x1b[31m=== 1 failed, 1 passed, 1 skipped, 1 xfailed in 4.50s ===\x1b[0m\n";
        assert_eq!(counts(&format!("{lines}{summary}"), false), (1, 1, 2, false));
        assert_eq!(counts("3 passed in 1.20s", true), (3, 0, 0, false));
        assert_eq!(counts("12 skipped in 0.02s", true), (0, 0, 12, false));
        // Stopped in the fifth test.
        assert_eq!(counts(&format!("{lines}a.py::test_e "), false), (1, 1, 2, false));
        assert_eq!(counts("a traceback, and nothing else failed", false), (0, 0, 0, true));
    }

    #[test]
    fn tests_of_google_test_are_counted_once() {
        let text = "\
[ RUN      ] a.good
[       OK ] a.good (3 ms)
[ RUN      ] a.odd
skipped on this device
[  SKIPPED ] a.odd (0 ms)
[ RUN      ] a.bad/1
check.cpp:97: Failure
[  FAILED  ] a.bad/1, where GetParam() = { function: \"roti\"
 } (4 ms)
[----------] 3 tests from a (7 ms total)

[==========] 3 tests from 1 test suite ran. (7 ms total)
[  PASSED  ] 1 test.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] a.odd
[  FAILED  ] 1 test, listed below:
[  FAILED  ] a.bad/1, where GetParam() = { function: \"roti\"
 }
";
        let outcome = gtest(text, false);
        assert_eq!((outcome.passed, outcome.failed, outcome.skipped, outcome.crashed), (1, 1, 1, false));
        assert!(outcome.remark.starts_with("a.bad/1"), "{}", outcome.remark);
    }

    #[test]
    fn totals_of_rocthrust_are_read() {
        let text =
            "Running 9 unit tests.\n...F\nTotals: 1 failures, 2 known failures, 0 errors, and 6 passes.\n";
        let outcome = thrust(text, false);
        assert_eq!((outcome.passed, outcome.failed, outcome.skipped, outcome.crashed), (6, 1, 2, false));
        assert!(thrust("Running 9 unit tests.\n...", false).crashed);
    }

    #[test]
    fn errors_of_results_are_compared() {
        let outcome = max_error("max error : 4.8e-07\nmax error : 0.5\n", true);
        assert_eq!((outcome.passed, outcome.failed, outcome.crashed), (1, 1, false));
        assert!(max_error("", true).crashed);
    }
}
