//! Code memory of this host, by Cranelift.

use crate::emit::{self, Machine, Unsupported};
use crate::frame::Code;
use crate::plan::Operations;
use crate::unit::Unit;
use cranelift_codegen::Context;
use cranelift_codegen::ir::UserFuncName;
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, default_libcall_names};

/// Bytes of code of one program at most, in all float modes: code that is not compiled then is interpreted.
const MOST_CODE: usize = 64 << 20;

/// Why there is no compiled engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no code generator for the host.
    #[error("the compiled engine is for x86-64 and aarch64 hosts, not for {0}")]
    Host(&'static str),
    /// The host lacks vector instructions.
    #[error("the compiled engine needs a host with AVX2 and FMA")]
    Features,
    /// The code generator refuses the host.
    #[error("the compiled engine does not run on this host: {0}")]
    Generator(String),
}

/// Why a unit is left to the interpreter.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// Something in it is not compiled.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// There is as much code as there may be.
    #[error("the program has {MOST_CODE} bytes of code")]
    Full,
    /// The code generator failed.
    #[error("{0}")]
    Generator(String),
}

/// Makes code, and owns it.
pub struct Host {
    /// Memory that is written, or executed, but never both.
    module: Option<JITModule>,
    context: Context,
    bytes: usize,
    functions: u32,
}

impl Host {
    /// For this host, if code can be made for it.
    pub fn new() -> Result<Host, Refused> {
        if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            return Err(Refused::Host(std::env::consts::ARCH));
        }
        if !wavesim_engine::interp::host_is_fast() {
            return Err(Refused::Features);
        }
        let mut flags = settings::builder();
        let verify = if cfg!(debug_assertions) { "true" } else { "false" };
        let wanted = [
            ("opt_level", OPT_LEVEL),
            ("regalloc_algorithm", REGISTERS),
            ("enable_verifier", verify),
            ("use_colocated_libcalls", "false"),
            ("is_pic", "false"),
        ];
        for (name, value) in wanted {
            flags.set(name, value).map_err(|e| Refused::Generator(e.to_string()))?;
        }
        let refused = |e: String| Refused::Generator(e);
        let isa = cranelift_native::builder().map_err(|e| refused(e.to_string()))?;
        let isa = isa.finish(Flags::new(flags)).map_err(|e| refused(e.to_string()))?;
        let module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
        let context = module.make_context();
        Ok(Host { module: Some(module), context, bytes: 0, functions: 0 })
    }

    /// Compiles a unit. The code stays until the host is dropped.
    pub fn compile(
        &mut self,
        unit: &Unit,
        machine: Machine<'_>,
        operations: &mut Operations,
    ) -> Result<Code, CompileError> {
        let Some(module) = self.module.as_mut().filter(|_| self.bytes < MOST_CODE) else {
            return Err(CompileError::Full);
        };
        module.clear_context(&mut self.context);
        let func = &mut self.context.func;
        func.signature = module.make_signature();
        emit::signature(&mut func.signature);
        func.name = UserFuncName::user(0, self.functions);
        emit::unit(func, unit, machine, operations)?;
        let failed = |e: String| CompileError::Generator(e);
        let name = format!("unit{}", self.functions);
        self.functions += 1;
        let id = module
            .declare_function(&name, Linkage::Local, &self.context.func.signature)
            .map_err(|e| failed(e.to_string()))?;
        module.define_function(id, &mut self.context).map_err(|e| failed(format!("{e:?}")))?;
        self.bytes += self.context.compiled_code().map_or(0, |code| code.code_buffer().len());
        module.finalize_definitions().map_err(|e| failed(e.to_string()))?;
        let code = module.get_finalized_function(id);
        // SAFETY: `emit` makes functions of this signature, in the host's calling convention.
        Ok(unsafe { std::mem::transmute::<*const u8, Code>(code) })
    }

    /// Bytes of code.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Values that are the same are computed once, and in front of loops.
const OPT_LEVEL: &str = "speed";
/// The other one, `single_pass`, compiles in half the time, and its code takes twice as long.
const REGISTERS: &str = "backtracking";

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: code is entered only by what owns this.
            unsafe { module.free_memory() };
        }
    }
}
