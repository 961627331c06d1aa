//! A fuzzer of whole programs: random OpenCL C, compiled by clang for the host and for all targets, executed
//! by all engines, and compared bit by bit.
//!
//! - [`tree`]: programs as trees, which are reduced by replacing parts of them
//! - [`expr`], `loads`, `vectors`, `builtins`: random expressions
//! - [`generate`], `atomics`: random statements and programs
//! - [`source`]: the text of a program; it is the same for host and targets except for the loops over
//!   work-items
//! - [`build`], [`run`]: compilation and execution
//! - [`reduce`]: reduction of failing programs
//! - [`keep`]: launch descriptions of failing programs, which `tests/filetests/programs` replays
//!
//! `docs/testing.md` describes what the programs contain, and the known compiler defects that they avoid.

mod atomics;
pub mod build;
mod builtins;
pub mod expr;
pub mod generate;
pub mod keep;
mod loads;
pub mod reduce;
pub mod run;
pub mod source;
pub mod tree;
mod vectors;

use crate::random::Rng;
use build::{Configuration, Scratch};
use run::{Abandoned, Difference, Engine};
use std::fmt;
use tree::Program;

/// Why a program or a build was abandoned.
#[derive(Debug, Clone)]
pub enum Reason {
    /// It runs for too long, or needs too much stack, which is no error.
    TooLong,
    /// The compiler fails, with an error that is not about a line of the program, such as a lack of registers.
    Compiler(String),
    /// An error of the fuzzer or of the loader.
    Error(String),
}

impl Reason {
    fn error(text: impl ToString) -> Reason {
        Reason::Error(text.to_string())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::TooLong => f.write_str("the program exceeds a limit"),
            Reason::Compiler(text) => write!(f, "the compiler fails: {text}"),
            Reason::Error(text) => f.write_str(text),
        }
    }
}

/// A program that computes different results.
pub struct Failure {
    pub program: Program,
    pub configuration: Configuration,
    pub differences: Vec<Difference>,
}

impl Failure {
    /// The first kernel that fails.
    fn first(&self) -> usize {
        self.differences.iter().map(|d| d.kernel).min().unwrap_or_default()
    }

    /// The program without the kernels after the first one that fails.
    pub fn until_first_failure(&self) -> Program {
        let mut program = self.program.clone();
        program.kernels.truncate(self.first() + 1);
        program
    }
}

/// The outcome of one program.
#[derive(Default)]
pub struct Outcome {
    pub failures: Vec<Failure>,
    /// Launches of all engines.
    pub runs: u64,
    /// Builds for targets.
    pub builds: u64,
    /// Why builds or runs were abandoned.
    pub abandoned: Vec<Reason>,
}

/// A program with its results on the host.
pub struct Reference {
    pub program: Program,
    /// The buffers at the end, for waves of 32 and of 64 lanes.
    pub expected: [Vec<Vec<u8>>; 2],
}

impl Reference {
    /// Compiles and runs a program on the host.
    pub fn new(program: Program, scratch: &Scratch, sanitize: bool) -> Result<Reference, Reason> {
        let path = scratch.path("program.cl");
        let host = |e: String| Reason::Error(format!("host: {e}"));
        std::fs::write(&path, source::source(&program)).map_err(Reason::error)?;
        let binary = build::for_host(&path, scratch, sanitize).map_err(host)?;
        let expected = build::run_host(&binary, &run::buffers(&program)).map_err(host)?;
        Ok(Reference { program, expected })
    }

    pub fn for_wave(&self, wave: u32) -> &[Vec<u8>] {
        &self.expected[(wave == 64) as usize]
    }

    /// Compiles and runs the program of the scratch directory on a target.
    pub fn compare(
        &self,
        scratch: &Scratch,
        configuration: &Configuration,
        engines: &[Engine],
    ) -> Result<Vec<Difference>, Reason> {
        let object = scratch.path("program.co");
        build::for_target(&scratch.path("program.cl"), configuration, &object).map_err(|e| {
            let text = format!("{configuration}: {e}");
            if e.contains("program.cl:") { Reason::Error(text) } else { Reason::Compiler(text) }
        })?;
        let bytes = std::fs::read(&object).map_err(Reason::error)?;
        let host = self.for_wave(configuration.wave);
        run::run(&self.program, &bytes, host, configuration.oracle, engines).map_err(|e| match e {
            Abandoned::TooLong | Abandoned::Stack => Reason::TooLong,
            Abandoned::NotPrepared(text) => Reason::Error(format!("{configuration}: {text}")),
        })
    }
}

/// How programs are built and run.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Builds of each program.
    pub builds: usize,
    /// Only these targets; none means all.
    pub targets: Vec<&'static str>,
    /// More options of the compiler for targets.
    pub options: Vec<String>,
    /// Whether undefined behaviour on the host ends a program.
    pub sanitize: bool,
    /// Whether every build also runs under all checks.
    pub check: bool,
}

/// Generates the program of a seed, and runs its builds.
pub fn fuzz(seed: u64, settings: &Settings) -> Outcome {
    let mut outcome = Outcome::default();
    let mut rng = Rng(seed ^ 0x636f_6e66);
    let program = generate::program(seed);
    let targets = if settings.targets.is_empty() { &build::TARGETS[..] } else { &settings.targets };
    let result = Scratch::new().map_err(Reason::error).and_then(|scratch| {
        let reference = Reference::new(program, &scratch, settings.sanitize)?;
        for _ in 0..settings.builds {
            let target = rng.pick(targets);
            let mut configuration = Configuration::random(&mut rng, target);
            configuration.options.extend_from_slice(&settings.options);
            let mut engines = Engine::all(&mut rng).to_vec();
            if settings.check && configuration.is_checkable() {
                engines.push(Engine::Checked);
            }
            match reference.compare(&scratch, &configuration, &engines) {
                Ok(differences) => {
                    outcome.builds += 1;
                    outcome.runs += (engines.len() * reference.program.kernels.len()) as u64;
                    if !differences.is_empty() {
                        let program = reference.program.clone();
                        outcome.failures.push(Failure { program, configuration, differences });
                    }
                }
                Err(reason) => outcome.abandoned.push(reason),
            }
        }
        Ok(())
    });
    outcome.abandoned.extend(result.err());
    outcome
}
