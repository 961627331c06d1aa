//! The installed clang, as the compiler of the playground.

use std::sync::atomic::AtomicBool;
use wavesim_clang::Clang;
use wavesim_clang::cache::Cache;
use wavesim_clang::compile::{Format, Job, Source};
use wavesim_clang::options::{self, Language};
use wavesim_isa::arch::{Arch, Processor};
use wavesim_playground::compile::{self, Compiled, Compiler, SourceCode};

/// The installed clang.
#[derive(Debug)]
pub struct Installed;

/// Returns LLVM's processor for an architecture.
fn processor(arch: Arch) -> Result<&'static str, String> {
    let processor = Processor::of_arch(arch);
    processor.map(|p| p.name).ok_or_else(|| format!("clang does not compile for {}", arch.name()))
}

impl Compiler for Installed {
    fn compilers(&self, arch: Arch) -> Vec<(String, String)> {
        let all = processor(arch).map_or_else(|_| Vec::new(), Clang::all_for_processor);
        let named = |clang: Clang| (clang.program().to_string(), clang.version().unwrap_or_default());
        all.into_iter().map(named).collect()
    }

    fn compile(&self, source: &SourceCode, arch: Arch, interrupt: &AtomicBool) -> Result<Compiled, String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let processor = processor(arch)?;
        // Only an installed compiler: a request cannot name another program.
        let clang = match &source.compiler {
            None => Clang::for_processor(processor)?,
            Some(name) => {
                let mut all = Clang::all_for_processor(processor).into_iter();
                let missing = || format!("there is no compiler `{name}` for {}", arch.name());
                all.find(|clang| clang.program() == name).ok_or_else(missing)?
            }
        };
        let language = match source.language {
            compile::Language::Opencl => Language::OpenCl,
            compile::Language::Hip => Language::Hip,
        };
        // The text of a page is not trusted: its options cannot start programs or write files.
        let words = source.options.split_whitespace().map(str::to_string);
        let mut arguments = options::accept(words, language).map_err(|e| text(&e))?.arguments;
        match source.wave {
            Some(lanes) if !arch.facts().wave_sizes.contains(&lanes) => {
                return Err(format!("{} has no waves of {lanes} lanes", arch.name()));
            }
            Some(64) if arch.facts().wave_sizes.len() > 1 => arguments.push("-mwavefrontsize64".to_string()),
            _ => {}
        }
        let job = Job {
            language,
            source: Source::Text { name: source.language.file_name(), text: &source.text },
            headers: &[],
            processor,
            arguments: &arguments,
            to: Format::CodeObject,
        };
        let output = job.compile_with(&clang, interrupt, Cache::of_user().as_ref()).map_err(|e| text(&e))?;
        Ok(Compiled { object: output.binary, log: output.log })
    }
}
