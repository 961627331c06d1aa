//! `--engine`: the execution engine.

use wavesim_machine::exec::program::Program;

/// The execution engine. All engines compute identical results.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    /// The interpreter
    #[default]
    Interpreter,
    /// Machine code, compiled as soon as the kernel needs it
    Jit,
    /// The interpreter, and machine code that is compiled in the background if the kernel runs for long; the interpreter
    /// alone on hosts without it
    Auto,
}

/// Compiled code of a program.
#[cfg(feature = "jit")]
pub type Code = wavesim_jit::Jit;

/// Uninhabited: this build has no compiled engine.
#[cfg(not(feature = "jit"))]
pub struct Code(std::convert::Infallible);

#[cfg(not(feature = "jit"))]
// SAFETY: the type is uninhabited, so no method can be called.
unsafe impl wavesim_engine::interp::Compiled for Code {
    fn is_ready(&self) -> bool {
        match self.0 {}
    }

    fn hotness(
        &self,
        _: &wavesim_machine::exec::rt::Cx<'_>,
        _: &Program,
    ) -> wavesim_engine::interp::HotnessCounters<'_> {
        match self.0 {}
    }

    fn enter<'a>(
        &self,
        _: &mut wavesim_machine::exec::rt::Cx<'a>,
        _: &'a Program,
        _: u32,
        _: &mut u64,
        _: &mut dyn wavesim_engine::interp::Waves<'a>,
    ) -> wavesim_engine::interp::EnterResult<'a> {
        match self.0 {}
    }
}

impl Engine {
    /// Returns the engine's compiled code for a program, if it uses any. An error means that this build or
    /// this host does not support the engine.
    pub fn code(self, program: &Program) -> anyhow::Result<Option<Code>> {
        match self {
            Engine::Interpreter => Ok(None),
            Engine::Jit => code(program).map(Some),
            Engine::Auto => Ok(in_background(program)),
        }
    }
}

/// For tests of compiled code: the number of times that `--engine jit` interprets an operation before it
/// compiles it. With 0, code also runs for small inputs.
#[cfg(feature = "jit")]
const COMPILE_AFTER: &str = "WAVESIM_COMPILE_AFTER";

#[cfg(feature = "jit")]
fn code(program: &Program) -> anyhow::Result<Code> {
    let code = match std::env::var(COMPILE_AFTER) {
        Err(_) => wavesim_jit::Jit::new(program),
        Ok(text) => match text.parse() {
            Ok(times) => wavesim_jit::Jit::with_threshold(program, times),
            Err(_) => anyhow::bail!("{COMPILE_AFTER}={text}: a number from 0 to {} is expected", u16::MAX),
        },
    };
    code.map_err(|e| anyhow::anyhow!("--engine jit: {e}; use --engine interpreter"))
}

#[cfg(feature = "jit")]
fn in_background(program: &Program) -> Option<Code> {
    wavesim_jit::Jit::in_background(program).ok()
}

#[cfg(not(feature = "jit"))]
fn in_background(_: &Program) -> Option<Code> {
    None
}

#[cfg(not(feature = "jit"))]
fn code(_: &Program) -> anyhow::Result<Code> {
    anyhow::bail!("--engine jit: this wavesim was built without the feature `jit`; use --engine interpreter")
}
