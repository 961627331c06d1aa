//! Execution engines, and the cache of code compiled by earlier launches.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use wavesim::exec::program::Program;
use wavesim::sharing::SharingCache;
use wavesim_jit::{Jit, UnsupportedHost};

/// The execution engine. All engines compute identical results; checked and traced launches always use the
/// interpreter.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// The interpreter.
    Interpreter,
    /// Machine code, compiled on first use while the kernel waits.
    Jit,
    /// The interpreter, switching to machine code that is compiled in the background for long-running
    /// kernels. On hosts that the compiler does not support, only the interpreter.
    #[default]
    Auto,
}

impl Engine {
    /// All engines with their names.
    pub const NAMES: [(&str, Engine); 3] =
        [("interpreter", Engine::Interpreter), ("jit", Engine::Jit), ("auto", Engine::Auto)];

    fn compile(self, program: &Program) -> Result<Option<Jit>, UnsupportedHost> {
        match self {
            Engine::Interpreter => Ok(None),
            Engine::Jit => Jit::new(program).map(Some),
            Engine::Auto => Ok(Jit::in_background(program).ok()),
        }
    }
}

/// Maximum number of programs in the cache.
const MAX_CACHED_PROGRAMS: usize = 256;

/// What is known of the programs of earlier launches.
#[derive(Default)]
pub struct CodeCache {
    /// Compiled code, by a program's identity and whether the code is compiled in the background.
    codes: Mutex<HashMap<(u64, bool), Jit>>,
    /// Whether workgroups can observe one another.
    pub(crate) sharing: SharingCache,
}

impl CodeCache {
    /// Returns the compiled code of a program, compiling it if necessary; `None` if the program is
    /// interpreted.
    ///
    /// # Errors
    /// [`Engine::Jit`] on a host that the compiler does not support.
    pub fn get_or_compile(&self, engine: Engine, program: &Program) -> Result<Option<Jit>, UnsupportedHost> {
        if engine == Engine::Interpreter {
            return Ok(None);
        }
        let key = (program.lowered().id(), engine == Engine::Auto);
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(code) = codes.get(&key) {
            return Ok(Some(code.clone()));
        }
        let code = engine.compile(program)?;
        if codes.len() >= MAX_CACHED_PROGRAMS {
            codes.clear();
        }
        codes.extend(code.iter().map(|code| (key, code.clone())));
        Ok(code)
    }

    /// Returns the number of units compiled for the programs in the cache.
    pub fn units(&self) -> u32 {
        let codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        codes.values().map(|code| code.stats().units).sum()
    }
}
