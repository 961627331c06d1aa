//! Compilation of OpenCL C with the installed clang.

use crate::platform::gpu;
use crate::sampler::literals;
use crate::status::{Outcome, Status};
use wavesim_clang::compile::{CompileError, Format, IMAGE_OPTIONS, Job, Source};
use wavesim_clang::options::{Language, accept};
use wavesim_clang::{Clang, Linked, is_contained};

/// File name of a program's source in messages and line tables.
const SOURCE: &str = "program.cl";

/// Result of a build.
pub struct BuildOutput {
    /// The code object or LLVM bitcode; `None` if the build failed.
    pub binary: Option<Vec<u8>>,
    /// The compiler's messages.
    pub log: String,
}

impl BuildOutput {
    fn failed(log: impl Into<String>) -> BuildOutput {
        BuildOutput { binary: None, log: log.into() }
    }
}

/// Returns the processor that programs are compiled for.
fn processor() -> &'static str {
    gpu().map_or("gfx1100", |gpu| gpu.device.target().processor_name())
}

/// Returns true if a compiler for the device is installed.
pub fn available() -> bool {
    Clang::for_processor(processor()).is_ok()
}

/// Splits options into words. Quotes and backslashes have the same meaning as in a shell.
pub fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quote) = (None::<String>, None);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, ' ' | '\t' | '\n' | '\r') => words.extend(word.take()),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(chars.next()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Converts build options to clang options ([`wavesim_clang::options`]).
pub fn options(text: &str) -> Result<Vec<String>, String> {
    match accept(split_words(text), Language::OpenCl) {
        Ok(options) => Ok(options.arguments),
        Err(e) => Err(e.to_string()),
    }
}

/// Compiles a source to a code object or, if `object` is set, to bitcode for linking.
pub fn compile(source: &str, text: &str, headers: &[(String, String)], object: bool) -> Outcome<BuildOutput> {
    let error_status = if object { Status::INVALID_COMPILER_OPTIONS } else { Status::INVALID_BUILD_OPTIONS };
    let mut given = options(text).map_err(|e| error_status.because(e))?;
    let device = &gpu()?.device;
    if wavesim_runtime::image::supported(device) {
        given.extend(IMAGE_OPTIONS.map(String::from));
        let words: Vec<String> = literals(device.target().arch)?.iter().map(u32::to_string).collect();
        given.push(format!("-D__WAVESIM_SAMPLERS={}", words.join(",")));
    }
    if headers.iter().any(|(name, _)| !is_contained(name)) {
        return Err(Status::INVALID_VALUE.because("a header's name refers outside its directory"));
    }
    let job = Job {
        language: Language::OpenCl,
        source: Source::Text { name: SOURCE, text: source },
        headers,
        processor: processor(),
        arguments: &given,
        to: if object { Format::Bitcode } else { Format::CodeObject },
    };
    match job.compile() {
        Ok(output) => Ok(BuildOutput { binary: output.binary, log: output.log }),
        Err(CompileError::NoCompiler(message)) => Err(Status::COMPILER_NOT_AVAILABLE.because(message)),
        Err(e) => Ok(BuildOutput::failed(e.to_string())),
    }
}

/// Parses link options. Returns true if the link creates a library.
pub fn creates_library(text: &str) -> Result<bool, String> {
    // These options only permit optimisations and are ignored.
    const OPTIONS: [&str; 7] = [
        "-cl-denorms-are-zero",
        "-cl-no-signed-zeros",
        "-cl-no-signed-zeroes",
        "-cl-unsafe-math-optimizations",
        "-cl-finite-math-only",
        "-cl-fast-relaxed-math",
        "-cl-no-subgroup-ifp",
    ];
    let words = split_words(text);
    let has = |option: &str| words.iter().any(|word| word == option);
    let library = has("-create-library");
    if has("-enable-link-options") && !library {
        return Err("-enable-link-options requires -create-library".to_string());
    }
    let known =
        |word: &str| OPTIONS.contains(&word) || ["-create-library", "-enable-link-options"].contains(&word);
    match words.iter().find(|word| !known(word)) {
        Some(word) => Err(format!("unknown option {word}")),
        None => Ok(library),
    }
}

/// Links bitcode into a code object or, if `library` is set, into the bitcode of a library.
pub fn link(objects: &[Vec<u8>], library: bool) -> Outcome<BuildOutput> {
    let processor = processor();
    let clang = Clang::for_processor(processor).map_err(|e| Status::COMPILER_NOT_AVAILABLE.because(e))?;
    let to = if library { Linked::Bitcode } else { Linked::Kernels };
    let linked = clang.link(processor, objects, to);
    Ok(linked
        .map_or_else(|e| BuildOutput::failed(e.to_string()), |(binary, log)| BuildOutput { binary, log }))
}
