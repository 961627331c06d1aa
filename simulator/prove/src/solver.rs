//! Solvers: any that speaks SMT-LIB 2.6.

use isa_export::smt::{Script, Term, Terms};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// A solver cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SolverError {
    /// None is installed.
    #[error(
        "no SMT solver found: install bitwuzla, z3 or cvc5 (`apt-get install z3`, `pip install z3-solver`), or name one with \
         WAVESIM_SMT_SOLVER"
    )]
    Missing,
    /// It does not start, or says something that is no answer.
    #[error("{solver}: {error}")]
    Failed {
        /// The program.
        solver: String,
        /// What happened.
        error: String,
    },
}

/// A solver that is installed.
#[derive(Debug, Clone)]
pub struct Solver {
    /// The program.
    pub path: PathBuf,
    /// For each question.
    pub limit: Duration,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The condition never holds.
    Never,
    /// It holds with these values of variables (and of other terms that were asked for).
    Holds(BTreeMap<Term, u128>),
    /// The solver does not know, for this reason.
    Unknown(String),
}

/// The names of solvers, the fastest for bit vectors first.
const NAMES: [&str; 3] = ["bitwuzla", "z3", "cvc5"];

impl Solver {
    /// Finds a solver: the one that `WAVESIM_SMT_SOLVER` names, or one on PATH.
    pub fn find(limit: Duration) -> Result<Solver, SolverError> {
        let named = std::env::var_os("WAVESIM_SMT_SOLVER").map(PathBuf::from);
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let on_path = |name: &Path| {
            std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
        };
        if let Some(named) = named {
            let path = if named.is_file() { Some(named.clone()) } else { on_path(&named) };
            return path.map(|path| Solver { path, limit }).ok_or_else(|| SolverError::Failed {
                solver: named.display().to_string(),
                error: "there is no such program (WAVESIM_SMT_SOLVER)".into(),
            });
        }
        let found = NAMES.iter().find_map(|name| on_path(Path::new(name)));
        found.map(|path| Solver { path, limit }).ok_or(SolverError::Missing)
    }

    /// The name without folders.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn arguments(&self) -> Vec<String> {
        let ms = self.limit.as_millis();
        let name = self.name();
        if name.contains("bitwuzla") {
            vec!["--lang".into(), "smt2".into(), "--time-limit-per".into(), ms.to_string()]
        } else if name.contains("cvc5") {
            vec![
                "--lang=smt2".into(),
                "--incremental".into(),
                "--produce-models".into(),
                format!("--tlimit-per={ms}"),
            ]
        } else {
            vec!["-in".into(), "-smt2".into(), format!("-t:{ms}"), "-memory:2048".into()]
        }
    }

    fn failed(&self, error: impl ToString) -> SolverError {
        SolverError::Failed { solver: self.name(), error: error.to_string() }
    }

    fn gave_up(&self) -> Answer {
        Answer::Unknown(format!("{} gave up, or took more than {} s", self.name(), self.limit.as_secs()))
    }

    /// Asks whether all conditions can hold at once, and for the values of `wanted` if so.
    ///
    /// # Errors
    /// The solver does not start, or reports an error.
    pub fn ask(&self, terms: &Terms, conditions: &[Term], wanted: &[Term]) -> Result<Answer, SolverError> {
        let (mut script, mut text) = (Script::default(), String::from("(set-logic ALL)\n"));
        for condition in conditions {
            let condition = script.define(terms, *condition, &mut text);
            text += &format!("(assert (= {condition} #b1))\n");
        }
        let names: Vec<String> = wanted.iter().map(|term| script.define(terms, *term, &mut text)).collect();
        text += "(check-sat)\n";
        let mut process =
            Process::start(&self.path, &self.arguments(), self.limit).map_err(|e| self.failed(e))?;
        process.send(text);
        match process.line().as_deref() {
            Some("unsat") => return Ok(Answer::Never),
            Some("sat") if wanted.is_empty() => return Ok(Answer::Holds(BTreeMap::new())),
            Some("sat") => {}
            Some(line) if line.starts_with("(error") => return Err(self.failed(line)),
            Some(line) if !["unknown", "timeout"].contains(&line) && !line.contains("interrupted") => {
                return Err(self.failed(format!("the answer `{line}`")));
            }
            _ => return Ok(self.gave_up()),
        }
        process.send(format!("(get-value ({}))\n", names.join(" ")));
        let Some(answer) = process.list() else { return Ok(self.gave_up()) };
        let values = values(&answer).filter(|values| values.len() == wanted.len());
        let values = values.ok_or_else(|| self.failed(format!("the values {answer:.200}")))?;
        Ok(Answer::Holds(wanted.iter().copied().zip(values).collect()))
    }
}

/// The memory that a solver may use, in KiB.
const MEMORY: u32 = 4 << 20;

/// Time beyond the limit after which a solver that does not end by itself is killed.
const GRACE: Duration = Duration::from_secs(3);

/// A solver that runs. It is killed when this is dropped.
struct Process {
    child: Child,
    /// To the thread that writes its input, so that a solver that does not read blocks nothing.
    input: Sender<String>,
    output: Receiver<String>,
    end: Instant,
}

impl Process {
    fn start(path: &Path, arguments: &[String], limit: Duration) -> std::io::Result<Process> {
        let mut command = if cfg!(unix) {
            // Not all solvers have an option for memory.
            let mut command = Command::new("/bin/sh");
            let limited = format!("ulimit -v {MEMORY} 2>/dev/null; exec \"$0\" \"$@\"");
            command.arg("-c").arg(limited).arg(path);
            command
        } else {
            Command::new(path)
        };
        let mut child = command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (input, texts) = channel::<String>();
        let (lines, output) = channel();
        std::thread::spawn(move || {
            let Some(mut stdin) = stdin else { return };
            for text in texts {
                if stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush()).is_err() {
                    return;
                }
            }
        });
        std::thread::spawn(move || {
            let Some(stdout) = stdout else { return };
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { return };
                if lines.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Process { child, input, output, end: Instant::now() + limit + GRACE })
    }

    fn send(&self, text: String) {
        // If the solver has ended, reading says so.
        let _ = self.input.send(text);
    }

    /// The next line that is not empty; `None` at the end of the output or of the time.
    fn line(&mut self) -> Option<String> {
        loop {
            let left = self.end.saturating_duration_since(Instant::now());
            let line = self.output.recv_timeout(left).ok()?;
            if !line.trim().is_empty() {
                return Some(line.trim().to_string());
            }
        }
    }

    /// The next list, which may have several lines.
    fn list(&mut self) -> Option<String> {
        let mut text = String::new();
        loop {
            text += &self.line()?;
            text.push(' ');
            let count = |wanted: char| text.chars().filter(|c| *c == wanted).count();
            if count('(') <= count(')') {
                return Some(text);
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The values of `((name value) …)`, in which a value is a token or `(_ bv12 32)`.
fn values(answer: &str) -> Option<Vec<u128>> {
    let inside = answer.trim().strip_prefix('(')?.strip_suffix(')')?;
    let (mut list, mut depth, mut start) = (Vec::new(), 0_u32, 0);
    let mut quoted = false;
    for (at, c) in inside.char_indices() {
        match c {
            '|' => quoted = !quoted,
            '(' if !quoted => {
                if depth == 0 {
                    start = at + 1;
                }
                depth += 1;
            }
            ')' if !quoted => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    list.push(number(value_of(&inside[start..at])?)?);
                }
            }
            _ => {}
        }
    }
    Some(list)
}

/// The value of `name value`.
fn value_of(pair: &str) -> Option<&str> {
    let pair = pair.trim();
    let name = match pair.strip_prefix('|') {
        Some(rest) => 2 + rest.find('|')?,
        // A constant as a name may be a list, too.
        None if pair.starts_with('(') => 1 + pair.find(')')?,
        None => pair.find(' ')?,
    };
    Some(pair[name..].trim())
}

/// A bit vector as solvers write it.
fn number(text: &str) -> Option<u128> {
    if let Some(digits) = text.strip_prefix("#x") {
        return u128::from_str_radix(digits, 16).ok();
    }
    if let Some(digits) = text.strip_prefix("#b") {
        return u128::from_str_radix(digits, 2).ok();
    }
    let decimal = text.strip_prefix("(_ bv")?.split(' ').next()?;
    decimal.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        let read = |text: &str| values(text);
        assert_eq!(read("((t1 #x0f) (|v1.3| #b101) (#x01 #x01))"), Some(vec![15, 5, 1]));
        assert_eq!(read("((|a (b| (_ bv12 32))\n (c (_ bv3 8)))"), Some(vec![12, 3]));
        assert_eq!(read("(((_ bv1 8) (_ bv1 8)))"), Some(vec![1]));
        assert_eq!(read("((t1 (as none)))"), None);
        assert_eq!(read("(t1"), None);
        assert_eq!(read(")("), None);
    }

    /// A solver that never answers, one that ends, and ones that say nonsense.
    #[test]
    #[cfg(unix)]
    fn solvers_are_not_trusted() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("wavesim-solver-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut terms = Terms::default();
        let x = terms.var("x", isa_export::smt::Sort::Bits(1));
        let ask = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a script");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
            Solver { path, limit: Duration::from_millis(50) }.ask(&terms, &[x], &[x])
        };
        let start = Instant::now();
        assert!(matches!(ask("z3", "exec sleep 100"), Ok(Answer::Unknown(_))));
        assert!(start.elapsed() < Duration::from_secs(30));
        assert!(matches!(ask("z3-ends", "exit 1"), Ok(Answer::Unknown(_))));
        assert!(matches!(ask("z3-error", "echo '(error \"no\")'"), Err(SolverError::Failed { .. })));
        assert!(matches!(ask("z3-odd", "echo maybe"), Err(SolverError::Failed { .. })));
        assert!(matches!(ask("z3-sat", "echo sat; echo '((x #b1))'"), Ok(Answer::Holds(_))));
        assert!(matches!(ask("z3-nonsense", "echo sat; echo '((x y))'"), Err(SolverError::Failed { .. })));
        std::fs::remove_dir_all(&folder).expect("the folder");
    }
}
