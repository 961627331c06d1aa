//! `--engine`: what executes instructions.

use wavesim_machine::exec::program::Program;

/// What executes instructions. Results are the same.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    /// The interpreter
    #[default]
    Interpreter,
    /// Code of the host, compiled while the kernel runs; worth it for runs of more than about 0.2 seconds
    Jit,
}

/// Compiled code of a program, or that there is none.
#[cfg(feature = "jit")]
pub type Code<'p> = wavesim_jit::Jit<'p>;

/// This build has none.
#[cfg(not(feature = "jit"))]
pub struct Code<'p>(std::convert::Infallible, std::marker::PhantomData<&'p Program>);

#[cfg(not(feature = "jit"))]
// SAFETY: there is none.
unsafe impl wavesim_engine::interp::Compiled for Code<'_> {
    fn enter<'a>(
        &self,
        _: &mut wavesim_machine::exec::rt::Cx<'a>,
        _: &'a Program,
        _: u32,
        _: u64,
    ) -> wavesim_engine::interp::Entered<'a> {
        match self.0 {}
    }
}

impl Engine {
    /// What the engine keeps for a program. An error if this build, or this host, does not have the engine.
    pub fn code(self, program: &Program) -> anyhow::Result<Option<Code<'_>>> {
        match self {
            Engine::Interpreter => Ok(None),
            Engine::Jit => code(program).map(Some),
        }
    }
}

#[cfg(feature = "jit")]
fn code(program: &Program) -> anyhow::Result<Code<'_>> {
    wavesim_jit::Jit::new(program).map_err(|e| anyhow::anyhow!("--engine jit: {e}; use --engine interpreter"))
}

#[cfg(not(feature = "jit"))]
fn code(_: &Program) -> anyhow::Result<Code<'_>> {
    anyhow::bail!("--engine jit: this wavesim was built without the feature `jit`; use --engine interpreter")
}
