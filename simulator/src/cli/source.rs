//! Source files as input: the installed clang compiles OpenCL C (`.cl`) and HIP (`.hip`).

use super::input::KernelArgs;
use anyhow::{Context as _, bail};
use std::path::Path;
use wavesim_clang::compile::{Format, Job, Source};
use wavesim_clang::options::Language;
use wavesim_isa::arch::Processor;

/// Options for source files
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Source files")]
pub struct SourceArgs {
    /// Option for clang, which compiles source files (repeatable: `--clang=-O0 --clang=-g`)
    #[arg(long = "clang", value_name = "OPTION", allow_hyphen_values = true)]
    pub options: Vec<String>,
}

/// What clang prints for each pass with `-opt-bisect-limit`.
pub const BISECT: &str = "BISECT: ";

/// Compiles a source file for the processor and the wave size that the command line selects. Returns a code
/// object. Clang's warnings go to standard error.
pub fn compile(path: &Path, language: Language, kernel: &KernelArgs) -> anyhow::Result<Vec<u8>> {
    let (object, log) = compile_with_log(path, language, kernel)?;
    let warnings: Vec<&str> = log.trim_end().lines().filter(|line| !line.starts_with(BISECT)).collect();
    if !warnings.is_empty() {
        super::output::emit(warnings.join("\n"));
    }
    Ok(object)
}

/// As [`compile`]; also returns clang's messages.
pub fn compile_with_log(
    path: &Path,
    language: Language,
    kernel: &KernelArgs,
) -> anyhow::Result<(Vec<u8>, String)> {
    let arch = kernel.machine.arch_or_default();
    let processor = kernel.machine.mcpu.or_else(|| Processor::of_arch(arch));
    let processor = processor.with_context(|| format!("clang does not compile for {}", arch.name()))?;
    let mut arguments = Vec::new();
    match kernel.wave.wave {
        Some(lanes) if !arch.facts().wave_sizes.contains(&lanes) => {
            bail!("{} has no waves of {lanes} lanes", arch.name())
        }
        // The default of a processor with both sizes is 32.
        Some(64) if arch.facts().wave_sizes.len() > 1 => arguments.push("-mwavefrontsize64".to_string()),
        _ => {}
    }
    arguments.extend(kernel.define.iter().map(|definition| format!("-D{definition}")));
    arguments.extend(kernel.call.include.iter().map(|folder| format!("-I{}", folder.display())));
    arguments.extend(kernel.source.options.iter().cloned());
    let job = Job {
        language,
        source: Source::File(path),
        headers: &[],
        processor: processor.name,
        arguments: &arguments,
        to: Format::CodeObject,
    };
    let output = job.compile().with_context(|| format!("{} was not compiled", path.display()))?;
    let Some(object) = output.binary else {
        bail!("{} does not compile:\n{}", path.display(), output.log.trim_end());
    };
    Ok((object, output.log))
}
