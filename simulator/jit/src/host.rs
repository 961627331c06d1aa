//! The code memory of a program.

use crate::arith::builder::Bug;
use crate::context::CompileContext;
use crate::emit;
use crate::frame::Code;
use crate::names::names;
use crate::selected::Selections;
use crate::stats::CompiledPaths;
use crate::unit::Unit;
use wavesim_x64::{Listing, Memory};

/// The maximum size of a program's code, in all modes. Beyond it, the program is interpreted.
const MAX_CODE_BYTES: usize = 64 << 20;

pub use wavesim_x64::UnsupportedHost;

/// The reason why a unit is left to the interpreter.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// Selection and emission disagree.
    #[error(transparent)]
    Bug(#[from] Bug),
    /// The code memory is full.
    #[error("the program has {MAX_CODE_BYTES} bytes of code")]
    Full,
    /// The code generator failed.
    #[error(transparent)]
    Generator(#[from] wavesim_x64::CompileError),
}

/// Compiles units, and owns their code.
pub struct Host {
    host: wavesim_x64::Host,
    /// Pages that are writable or executable, but never both.
    memory: Memory,
}

impl Host {
    /// Returns a compiler for this host, if the host is supported.
    pub fn new() -> Result<Host, UnsupportedHost> {
        Ok(Host { host: wavesim_x64::Host::detect()?, memory: Memory::new() })
    }

    /// Compiles a unit. Returns the code, which is valid until the `Host` is dropped, and its special paths.
    /// `listing` receives the text of each stage.
    pub fn compile(
        &mut self,
        unit: &Unit,
        context: CompileContext<'_>,
        selections: &Selections,
        listing: Option<&mut Option<Listing>>,
    ) -> Result<(Code, CompiledPaths), CompileError> {
        let program = context.program;
        if self.memory.bytes() >= MAX_CODE_BYTES {
            return Err(CompileError::Full);
        }
        let (function, paths) = emit::unit(unit, context, selections)?;
        let compiled = match listing {
            None => wavesim_x64::compile(&function, &self.host),
            Some(listing) => {
                let names = names(program);
                let listed =
                    wavesim_x64::list(&function, &self.host, &|address| names.get(&address).cloned());
                listed.map(|(code, text)| {
                    *listing = Some(text);
                    code
                })
            }
        };
        if let Err(bug @ (wavesim_x64::CompileError::Invalid(_) | wavesim_x64::CompileError::Allocation(_))) =
            &compiled
        {
            // Only checked builds and runs find these errors. The interpreter must not hide them.
            panic!("{bug}\n{function}");
        }
        let code = self.memory.add(compiled?)?;
        // SAFETY: `emit` creates functions with this signature and calling convention.
        Ok((unsafe { std::mem::transmute::<*const u8, Code>(code) }, paths))
    }

    /// Returns the size of the code in bytes.
    pub fn bytes(&self) -> usize {
        self.memory.bytes()
    }
}
