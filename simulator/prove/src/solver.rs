//! Solvers: any that speaks SMT-LIB 2.6. The library for this, `easy-smt`, waits for an answer without a limit and reads
//! whatever comes; here, a solver that hangs, floods its output or takes too much memory is ended, and several are asked at
//! once.

use isa_export::smt::{Script, Term, Terms};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// A solver cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
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

/// Solvers that are installed.
#[derive(Debug, Clone)]
pub struct Solver {
    /// The program that is asked first.
    pub path: PathBuf,
    /// Programs that are asked, too, if it takes long: what is hard for one is often easy for another.
    pub others: Vec<PathBuf>,
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

/// The time after which the next solver is asked, too. Most questions take less.
const PATIENCE: Duration = Duration::from_millis(800);

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn arguments(path: &Path, limit: Duration) -> Vec<String> {
    let ms = limit.as_millis();
    let name = name_of(path);
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

impl Solver {
    /// Finds solvers: the one that `WAVESIM_SMT_SOLVER` names, or those on PATH.
    pub fn find(limit: Duration) -> Result<Solver, SolverError> {
        let named = std::env::var_os("WAVESIM_SMT_SOLVER").map(PathBuf::from);
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let on_path = |name: &Path| {
            std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
        };
        if let Some(named) = named {
            let path = if named.is_file() { Some(named.clone()) } else { on_path(&named) };
            return path.map(|path| Solver { path, others: Vec::new(), limit }).ok_or_else(|| {
                SolverError::Failed {
                    solver: named.display().to_string(),
                    error: "there is no such program (WAVESIM_SMT_SOLVER)".into(),
                }
            });
        }
        let mut found = NAMES.iter().filter_map(|name| on_path(Path::new(name)));
        let path = found.next().ok_or(SolverError::Missing)?;
        Ok(Solver { path, others: found.collect(), limit })
    }

    /// The name of the first one without folders.
    pub fn name(&self) -> String {
        name_of(&self.path)
    }

    fn gave_up(&self) -> String {
        let names: Vec<String> =
            [&self.path].into_iter().chain(&self.others).map(|path| name_of(path)).collect();
        format!("{} gave up, or took more than {} s", names.join(" and "), self.limit.as_secs())
    }

    /// Asks whether all conditions can hold at once, and for the values of `wanted` if so.
    ///
    /// # Errors
    /// The first solver does not start. It reports an error, and no other has an answer.
    pub fn ask(&self, terms: &Terms, conditions: &[Term], wanted: &[Term]) -> Result<Answer, SolverError> {
        let (mut script, mut text) = (Script::default(), String::from("(set-logic ALL)\n"));
        for condition in conditions {
            let condition = script.define(terms, *condition, &mut text);
            text += &format!("(assert (= {condition} #b1))\n");
        }
        let names: Vec<String> = wanted.iter().map(|term| script.define(terms, *term, &mut text)).collect();
        text += "(check-sat)\n";
        let start = Instant::now();
        let mut asked = vec![Process::start(&self.path, self.limit, &text)?];
        let mut others = self.others.iter();
        let answered = loop {
            let idle = asked.iter().all(|process| process.says.is_some());
            if (idle || start.elapsed() >= PATIENCE * asked.len() as u32)
                && let Some(path) = others.next()
            {
                let left = self.limit.saturating_sub(start.elapsed()).max(PATIENCE);
                // Another one that does not start is no loss.
                asked.extend(Process::start(path, left, &text));
            } else if idle {
                break None;
            }
            let step = match (asked.len(), others.len()) {
                (1, 0) => self.limit,
                (1, _) => PATIENCE.saturating_sub(start.elapsed()).max(STEP),
                _ => STEP,
            };
            for process in asked.iter_mut().filter(|process| process.says.is_none()) {
                process.says = process.poll(step);
            }
            let answers = |process: &Process| matches!(process.says, Some(Says::Sat | Says::Unsat));
            if let Some(at) = asked.iter().position(answers) {
                break Some(asked.swap_remove(at));
            }
        };
        let Some(mut process) = answered else {
            return match &asked[0].says {
                Some(Says::Nonsense(error)) => {
                    Err(SolverError::Failed { solver: self.name(), error: error.clone() })
                }
                _ => Ok(Answer::Unknown(self.gave_up())),
            };
        };
        if process.says == Some(Says::Unsat) {
            return Ok(Answer::Never);
        }
        if wanted.is_empty() {
            return Ok(Answer::Holds(BTreeMap::new()));
        }
        process.send(format!("(get-value ({}))\n", names.join(" ")));
        let Some(answer) = process.list() else { return Ok(Answer::Unknown(self.gave_up())) };
        let values = values(&answer).filter(|values| values.len() == wanted.len());
        let values = values.ok_or_else(|| SolverError::Failed {
            solver: process.name.clone(),
            error: format!("the values {answer:.200}"),
        })?;
        Ok(Answer::Holds(wanted.iter().copied().zip(values).collect()))
    }
}

/// The memory that a solver may use, in KiB.
const MEMORY: u32 = 4 << 20;

/// The bytes of a solver's output that are read.
const MAX_OUTPUT: u64 = 64 << 20;

/// Time beyond the limit after which a solver that does not end by itself is killed.
const GRACE: Duration = Duration::from_secs(3);

/// The time for which each of several solvers is listened to in turn.
const STEP: Duration = Duration::from_millis(5);

/// What a solver says about the conditions.
#[derive(Debug, PartialEq, Eq)]
enum Says {
    Sat,
    Unsat,
    /// It has ended, has no time left, or does not know.
    GaveUp,
    Nonsense(String),
}

/// A solver that runs. It is killed when this is dropped.
struct Process {
    name: String,
    child: Child,
    says: Option<Says>,
    /// To the thread that writes its input, so that a solver that does not read blocks nothing.
    input: Sender<String>,
    output: Receiver<String>,
    end: Instant,
}

impl Process {
    /// Starts a solver with a script.
    fn start(path: &Path, limit: Duration, script: &str) -> Result<Process, SolverError> {
        let name = name_of(path);
        let mut command = if cfg!(unix) {
            // Not all solvers have an option for memory.
            let mut command = Command::new("/bin/sh");
            let limited = format!("ulimit -v {MEMORY} 2>/dev/null; exec \"$0\" \"$@\"");
            command.arg("-c").arg(limited).arg(path);
            command
        } else {
            Command::new(path)
        };
        let command = command
            .args(arguments(path, limit))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command
            .spawn()
            .map_err(|error| SolverError::Failed { solver: name.clone(), error: error.to_string() })?;
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
            // What is longer is no answer, and need not have lines.
            for line in BufReader::new(stdout.take(MAX_OUTPUT)).lines() {
                let Ok(line) = line else { return };
                if lines.send(line).is_err() {
                    return;
                }
            }
        });
        let process = Process { name, child, says: None, input, output, end: Instant::now() + limit + GRACE };
        process.send(script.to_string());
        Ok(process)
    }

    /// Waits for what it says about the conditions.
    fn poll(&mut self, wait: Duration) -> Option<Says> {
        let left = self.end.saturating_duration_since(Instant::now());
        let line = match self.output.recv_timeout(wait.min(left)) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) if !left.is_zero() => return None,
            Err(_) => return Some(Says::GaveUp),
        };
        Some(match line.trim() {
            "" => return None,
            "sat" => Says::Sat,
            "unsat" => Says::Unsat,
            "unknown" | "timeout" => Says::GaveUp,
            line if line.contains("interrupted") => Says::GaveUp,
            line if line.starts_with("(error") => Says::Nonsense(line.to_string()),
            line => Says::Nonsense(format!("the answer `{line:.200}`")),
        })
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
        let script = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a script");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
            path
        };
        let ask_all = |path: PathBuf, others: Vec<PathBuf>| {
            Solver { path, others, limit: Duration::from_millis(50) }.ask(&terms, &[x], &[x])
        };
        let ask = |name: &str, text: &str| ask_all(script(name, text), Vec::new());
        let start = Instant::now();
        assert!(matches!(ask("z3", "exec sleep 100"), Ok(Answer::Unknown(_))));
        assert!(start.elapsed() < Duration::from_secs(30));
        assert!(matches!(ask("z3-ends", "exit 1"), Ok(Answer::Unknown(_))));
        assert!(matches!(ask("z3-error", "echo '(error \"no\")'"), Err(SolverError::Failed { .. })));
        assert!(matches!(ask("z3-odd", "echo maybe"), Err(SolverError::Failed { .. })));
        assert!(matches!(ask("z3-sat", "echo sat; echo '((x #b1))'"), Ok(Answer::Holds(_))));
        assert!(matches!(ask("z3-nonsense", "echo sat; echo '((x y))'"), Err(SolverError::Failed { .. })));
        assert!(matches!(
            ask("z3-rubbish", "while :; do echo rubbish; done"),
            Err(SolverError::Failed { .. })
        ));
        // Output without lines is read up to a limit.
        assert!(!matches!(ask("z3-endless", "exec cat /dev/zero"), Ok(Answer::Never | Answer::Holds(_))));
        // One that answers is enough.
        let (sat, silent) = (folder.join("z3-sat"), folder.join("z3"));
        for first in ["z3", "z3-ends", "z3-error", "z3-odd"] {
            let answer = ask_all(folder.join(first), vec![folder.join("none"), sat.clone()]);
            assert!(matches!(answer, Ok(Answer::Holds(_))), "{first}: {answer:?}");
        }
        let unknown = ask_all(silent.clone(), vec![silent]);
        assert_eq!(unknown, Ok(Answer::Unknown("z3 and z3 gave up, or took more than 0 s".into())));
        std::fs::remove_dir_all(&folder).expect("the folder");
    }
}
