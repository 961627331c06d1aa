//! Source files as input: the installed clang compiles OpenCL C (`.cl`) and HIP (`.hip`).

use super::input::KernelArgs;
use anyhow::{Context as _, bail};
use std::path::Path;
use wavesim_clang::compile::{Format, Job, Source};
use wavesim_clang::options::Language;
use wavesim_isa::arch::Processor;
use wavesim_loader::code_object::{self, LoadError};

/// Options for source files
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Source files")]
pub struct SourceArgs {
    /// Option for clang, which compiles source files (repeatable: `--clang=-O0 --clang=-g`)
    #[arg(long = "clang", value_name = "OPTION", allow_hyphen_values = true)]
    pub options: Vec<String>,
}

/// Compiles a source file for the processor and the wave size that the command line selects. Returns a code
/// object. Clang's warnings go to standard error.
pub fn compile(path: &Path, language: Language, kernel: &KernelArgs) -> anyhow::Result<Vec<u8>> {
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
    if !output.log.is_empty() {
        super::output::emit(output.log.trim_end());
    }
    warn_of_output(&object, kernel.call.kernel.as_deref())?;
    Ok(object)
}

/// Warns of a kernel that prints: only the libraries for HIP and OpenCL show its output.
fn warn_of_output(object: &[u8], name: Option<&str>) -> Result<(), LoadError> {
    for kernel in code_object::kernels(object)?.iter().filter(|k| name.is_none_or(|name| *k == name)) {
        let loaded = code_object::load(object, kernel)?;
        let prints = loaded.args.iter().flatten().any(|arg| arg.kind == "hidden_printf_buffer");
        if prints {
            super::output::emit(format!(
                "warning: the output of printf in `{}` is not shown: only wavesim's OpenCL library shows it",
                demangled(kernel)
            ));
        }
    }
    Ok(())
}

/// Returns the name of a kernel in its source language: `add(float*, int)` for `_Z3addPfi`. Names that are not
/// mangled stay as they are.
pub fn demangled(name: &str) -> String {
    let symbol = cpp_demangle::Symbol::new(name).ok();
    symbol.and_then(|symbol| symbol.demangle().ok()).unwrap_or_else(|| name.to_string())
}

/// Selects a kernel by its symbol, or by its name in the source language, with or without parameters.
pub fn select<'a>(names: &'a [String], wanted: &str) -> Option<&'a String> {
    let named = |name: &&String| {
        let full = demangled(name);
        full == wanted || full.split('(').next().unwrap_or_default() == wanted
    };
    let mut similar = names.iter().filter(named);
    let exact = names.iter().find(|name| *name == wanted);
    // Overloads need their parameters.
    exact.or_else(|| similar.next().filter(|_| similar.next().is_none()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_selected_by_names_of_the_source() {
        let names = ["_Z3addPfi", "_Z3mulPfi", "_Z3mulPdi", "plain"].map(String::from);
        assert_eq!(demangled("_Z3addPfi"), "add(float*, int)");
        assert_eq!(select(&names, "add"), Some(&names[0]));
        assert_eq!(select(&names, "_Z3mulPdi"), Some(&names[2]));
        assert_eq!(select(&names, "mul"), None, "there are two");
        assert_eq!(select(&names, "mul(float*, int)"), Some(&names[1]));
        assert_eq!(select(&names, "plain"), Some(&names[3]));
        assert_eq!(select(&names, "missing"), None);
    }
}
