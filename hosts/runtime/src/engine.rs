//! What executes instructions, and the code that it keeps from launch to launch.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use wavesim::exec::program::Program;
use wavesim_jit::{Jit, UnsupportedHost};

/// What executes instructions. Results are the same; what is checked or traced is interpreted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// The interpreter.
    Interpreter,
    /// Machine code, compiled before a kernel goes on.
    Jit,
    /// The interpreter, and machine code that is compiled in the background for kernels that run for long; the interpreter
    /// alone on hosts without it.
    #[default]
    Auto,
}

impl Engine {
    /// By name.
    pub const NAMES: [(&str, Engine); 3] =
        [("interpreter", Engine::Interpreter), ("jit", Engine::Jit), ("auto", Engine::Auto)];

    fn code(self, program: &Program) -> Result<Option<Jit>, UnsupportedHost> {
        match self {
            Engine::Interpreter => Ok(None),
            Engine::Jit => Jit::new(program).map(Some),
            Engine::Auto => Ok(Jit::in_background(program).ok()),
        }
    }
}

/// Programs that code is kept of.
const MAX_CODES: usize = 256;

/// Compiled code of earlier launches, by the identity of their programs.
#[derive(Default)]
pub struct Codes(Mutex<HashMap<(u64, bool), Jit>>);

impl Codes {
    /// Code for a program; `None` if it is interpreted.
    ///
    /// # Errors
    /// [`Engine::Jit`] on a host that code is not made for.
    pub fn of(&self, engine: Engine, program: &Program) -> Result<Option<Jit>, UnsupportedHost> {
        if engine == Engine::Interpreter {
            return Ok(None);
        }
        let key = (program.lowered().id(), engine == Engine::Auto);
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(code) = codes.get(&key) {
            return Ok(Some(code.clone()));
        }
        let code = engine.code(program)?;
        if codes.len() >= MAX_CODES {
            codes.clear();
        }
        codes.extend(code.iter().map(|code| (key, code.clone())));
        Ok(code)
    }

    /// Units of code that have been compiled, of the programs that are kept.
    pub fn units(&self) -> u32 {
        let codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.values().map(|code| code.stats().units).sum()
    }
}
