//! The requests of the playground, in JSON: diagnose, run, check, step and disassemble kernels; describe and
//! redefine instructions.
//!
//! [`Playground::request`] takes a request and returns the answer. A page in a browser sends requests to this crate as
//! a WebAssembly module (`web/`), or to `wavesim serve`. `docs/playground.md` lists them.
//!
//! - [`budget`]: the memory that requests take
//! - [`program`]: the kernel of a request, its arguments, and user-defined semantics
//! - [`diagnose`]: diagnostics of a kernel with their source ranges
//! - [`run`]: running and checking
//! - [`cost`]: predicted times
//! - [`session`]: the debugger, with the whole state as JSON
//! - [`describe`]: instructions: operands, encodings, pseudocode
//! - [`semantics`]: user-defined pseudocode
//! - [`disassemble`]: code objects as assembly
//! - [`compile`]: source code, with a compiler of the server
//! - [`lines`]: the lines of the source that instructions belong to
//!
//! Requests are untrusted, since links can share them: they cannot name files, and sizes are bounded. Time is
//! not bounded: the caller of [`Playground::request`] must stop requests that take too long, by
//! [`Playground::with_interrupt`] or with the thread.

#![warn(missing_docs)]
// No files, threads, processes or clocks; clippy.toml lists the disallowed methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod budget;
pub mod compile;
pub mod cost;
pub mod describe;
pub mod diagnose;
pub mod disassemble;
pub mod lines;
pub mod program;
pub mod run;
pub mod semantics;
pub mod session;

use budget::{Budget, Reservation};
use compile::{Compiler, SourceCode};
use program::Program;
use serde::Deserialize;
use serde_json::{Value, json};
use session::Session;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The engine of one page, which owns the page's debugger.
#[derive(Default)]
pub struct Playground {
    session: Option<(Session, Reservation)>,
    interrupt: Arc<AtomicBool>,
    budget: Arc<Budget>,
    compiler: Option<Arc<dyn Compiler>>,
}

/// A request of a page.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
enum Request {
    /// The architectures of kernels: names, titles and wave sizes.
    Architectures,
    /// Names of instructions and registers, for highlighting and completion.
    Names { arch: String },
    /// An instruction.
    Describe { arch: String, name: String },
    /// Returns the diagnostics of a kernel.
    Diagnose { program: Program },
    /// Returns the diagnostics of user-defined semantics.
    DiagnoseSemantics { text: String },
    /// Runs a kernel to its end.
    Run {
        program: Program,
        max_instructions: u64,
        #[serde(default)]
        statistics: bool,
    },
    /// Runs a kernel with all checks.
    Check { program: Program, max_instructions: u64 },
    /// Runs a kernel, and predicts how long a device takes: without a name, the first one of its architecture.
    Profile {
        program: Program,
        max_instructions: u64,
        #[serde(default)]
        device: Option<String>,
    },
    /// Starts the debugger.
    Start { program: Program, max_instructions: u64 },
    /// Executes a command of the debugger, then returns the state. Without a line, returns only the state.
    Command {
        #[serde(default)]
        line: String,
        view: session::View,
    },
    /// Returns the last write of a register. The debugger's time does not change.
    LastWrite { wave: usize, lane: u32, register: String },
    /// Returns a part of an argument, of LDS (`lds`) or of the selected lane's scratch (`scratch`) in the
    /// debugger's current state.
    Memory {
        name: String,
        /// In bytes.
        #[serde(default)]
        from: u64,
        /// In bytes; 0 for the maximum size of an answer.
        #[serde(default)]
        len: u64,
    },
    /// Ends the debugger.
    End,
    /// A code object as assembly.
    Disassemble { object: String, arch: Option<String> },
    /// The installed compilers for an architecture.
    Compilers {
        #[serde(default)]
        arch: Option<String>,
    },
    /// Compiles source code to a code object.
    Compile { source: SourceCode },
}

impl Playground {
    /// Creates an engine whose current request ends soon after `interrupt` is set. The caller that sets it
    /// also clears it.
    pub fn with_interrupt(interrupt: Arc<AtomicBool>) -> Playground {
        Playground { interrupt, ..Playground::default() }
    }

    /// Creates an engine that shares the memory of a budget with others. A request that needs more than is left waits
    /// some seconds and then fails.
    pub fn with_budget(interrupt: Arc<AtomicBool>, budget: Arc<Budget>) -> Playground {
        Playground { interrupt, budget, ..Playground::default() }
    }

    /// Lets the page compile source code.
    pub fn with_compiler(self, compiler: Arc<dyn Compiler>) -> Playground {
        Playground { compiler: Some(compiler), ..self }
    }

    /// Returns whether the engine keeps the memory of a debugger between requests.
    pub fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Answers a request. The answer is `{"ok": …}` or `{"error": "message"}`, even for invalid requests.
    pub fn request(&mut self, text: &str) -> String {
        let answer = match serde_json::from_str(text) {
            Ok(request) => self.answer(request),
            Err(e) => Err(format!("not a request: {e}")),
        };
        match answer {
            Ok(value) => json!({ "ok": value }).to_string(),
            Err(message) => json!({ "error": message }).to_string(),
        }
    }

    fn answer(&mut self, request: Request) -> Result<Value, String> {
        match request {
            Request::Architectures => Ok(describe::architectures()),
            Request::Names { arch } => describe::names(program::arch(&arch)?),
            Request::Describe { arch, name } => {
                let description = describe::instruction(program::arch(&arch)?, &name)?;
                serde_json::to_value(description).map_err(|e| e.to_string())
            }
            Request::Diagnose { program } => diagnose::program(&program),
            Request::DiagnoseSemantics { text } => semantics::diagnose(&text),
            Request::Run { program, max_instructions, statistics } => {
                run::run(&program, max_instructions, statistics, &self.interrupt, &self.budget)
            }
            Request::Check { program, max_instructions } => {
                run::check(&program, max_instructions, &self.interrupt, &self.budget)
            }
            Request::Profile { program, max_instructions, device } => {
                cost::profile(&program, max_instructions, device.as_deref(), &self.interrupt, &self.budget)
            }
            Request::Start { program, max_instructions } => {
                // Drop the old session first, so that both never occupy memory at the same time.
                self.session = None;
                let interrupt = self.interrupt.clone();
                let started = Session::start(&program, max_instructions, interrupt, &self.budget)?;
                Ok(self.session.insert(started).0.state(&session::View::default()))
            }
            Request::Command { line, view } => self.session()?.command(&line, &view),
            Request::LastWrite { wave, lane, register } => self.session()?.last_write(wave, lane, &register),
            Request::Memory { name, from, len } => self.session()?.memory(&name, from, len),
            Request::End => {
                self.session = None;
                Ok(Value::Null)
            }
            Request::Disassemble { object, arch } => disassemble::object(&object, arch.as_deref()),
            Request::Compilers { arch } => compile::compilers(self.compiler.as_deref(), arch.as_deref()),
            Request::Compile { source } => {
                compile::compile(self.compiler.as_deref(), &source, &self.interrupt)
            }
        }
    }

    fn session(&mut self) -> Result<&mut Session, String> {
        self.session
            .as_mut()
            .map(|started| &mut started.0)
            .ok_or_else(|| "the debugger has not been started".to_string())
    }
}
