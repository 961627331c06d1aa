//! Solvers: any that speaks SMT-LIB 2.6.

use easy_smt::{Context, ContextBuilder, Response};
use isa_export::smt::{Script, Term, Terms};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

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

    /// Asks whether all conditions can hold at once, and for the values of `wanted` if so.
    pub fn ask(&self, terms: &Terms, conditions: &[Term], wanted: &[Term]) -> Result<Answer, SolverError> {
        let (mut script, mut text) = (Script::default(), String::new());
        let asserted: Vec<String> = conditions
            .iter()
            .map(|condition| format!("(assert (= {} #b1))", script.define(terms, *condition, &mut text)))
            .collect();
        let names: Vec<String> = wanted.iter().map(|term| script.define(terms, *term, &mut text)).collect();
        let mut context = ContextBuilder::new()
            .solver(&self.path)
            .solver_args(self.arguments())
            .build()
            .map_err(|e| self.failed(e))?;
        let send = |context: &mut Context, line: &str| {
            let command = context.atom(line);
            context.raw_send(command)?;
            let answer = context.raw_recv()?;
            match context.get_atom(answer) {
                Some("success") => Ok(()),
                _ => Err(std::io::Error::other(format!("{} to {line}", context.display(answer)))),
            }
        };
        send(&mut context, "(set-logic ALL)").map_err(|e| self.failed(e))?;
        for line in text.lines().chain(asserted.iter().map(String::as_str)) {
            send(&mut context, line).map_err(|e| self.failed(e))?;
        }
        match context.check() {
            Ok(Response::Unsat) => Ok(Answer::Never),
            Ok(Response::Unknown) => Ok(Answer::Unknown(format!(
                "{} gave up, or took more than {} s",
                self.name(),
                self.limit.as_secs()
            ))),
            Ok(Response::Sat) => {
                let asked = names.iter().map(|name| context.atom(name.as_str())).collect();
                let values = if wanted.is_empty() {
                    Vec::new()
                } else {
                    context.get_value(asked).map_err(|e| self.failed(e))?
                };
                let mut found = BTreeMap::new();
                for (term, (_, value)) in wanted.iter().zip(values) {
                    let text = context.display(value).to_string();
                    found.insert(
                        *term,
                        number(&text).ok_or_else(|| self.failed(format!("the value {text}")))?,
                    );
                }
                Ok(Answer::Holds(found))
            }
            Err(e) => Ok(Answer::Unknown(format!("{}: {e}", self.name()))),
        }
    }
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
