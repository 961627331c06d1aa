//! Compilation of OpenCL C with the installed clang.

use crate::platform::gpu;
use crate::status::{Outcome, Status};
use wavesim_runtime::clang::options::{Language, accept};
use wavesim_runtime::clang::{Clang, Libraries, Linked, TARGET, TempDir, is_contained};

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

/// Returns true if a compiler is installed.
pub fn available() -> bool {
    Clang::find().is_ok()
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

/// Converts build options to clang options ([`clang::options`](wavesim_runtime::clang::options)).
pub fn options(text: &str) -> Result<Vec<String>, String> {
    match accept(split_words(text), Language::OpenCl) {
        Ok(options) => Ok(options.arguments),
        Err(e) => Err(e.to_string()),
    }
}

/// `__printf_alloc`, which clang's `printf` calls. Allocates space in the launch's buffer, whose header holds
/// the number of bytes used and the capacity. The offsets here and below are those of hidden arguments in
/// code object version 5 (LLVM AMDGPUUsage).
const PRINTF: &str = "\
__global char *__printf_alloc(unsigned bytes) {
  __constant char *hidden = (__constant char *)__builtin_amdgcn_implicitarg_ptr();
  __global unsigned *buffer = *(__global unsigned *__constant *)(hidden + 72);
  unsigned at = __atomic_fetch_add(buffer, bytes, __ATOMIC_RELAXED);
  return at + bytes <= buffer[1] && at + bytes >= at ? (__global char *)(buffer + 2) + at : 0;
}
";
/// Replacements for functions of libclc that expect another runtime's hidden arguments. Inline, so that
/// linked objects do not define them twice.
const OFFSETS: &str = "\
inline size_t __attribute__((overloadable, always_inline)) get_global_offset(uint dim) {
  __constant char *hidden = (__constant char *)__builtin_amdgcn_implicitarg_ptr();
  return dim < 3 ? ((__constant size_t *)(hidden + 40))[dim] : 0;
}
inline size_t __attribute__((overloadable, always_inline)) get_global_id(uint dim) {
  return get_group_id(dim) * get_local_size(dim) + get_local_id(dim) + get_global_offset(dim);
}
";

/// Compiles a source to a code object or, if `object` is set, to bitcode for linking.
pub fn compile(source: &str, text: &str, headers: &[(String, String)], object: bool) -> Outcome<BuildOutput> {
    let error_status = if object { Status::INVALID_COMPILER_OPTIONS } else { Status::INVALID_BUILD_OPTIONS };
    let given = options(text).map_err(|e| error_status.because(e))?;
    let clang = Clang::find().map_err(|e| Status::COMPILER_NOT_AVAILABLE.because(e))?;
    let Some(libraries) = Libraries::find() else {
        return Ok(BuildOutput::failed(
            "neither libclc (package libclc-19) nor ROCm's device libraries are installed \
             (WAVESIM_DEVICE_LIBS can name their directory)",
        ));
    };
    let run = || -> std::io::Result<BuildOutput> {
        let folder = TempDir::new()?;
        let processor = gpu().map_or("gfx1100", |gpu| gpu.device.target().processor_name());
        let path = folder.write(SOURCE, source.as_bytes())?.display().to_string();
        let out = folder.path("program.out").display().to_string();
        let mut arguments: Vec<String> = ["-x", "cl", "-target", TARGET].map(String::from).to_vec();
        arguments.extend([format!("-mcpu={processor}"), "-mcode-object-version=5".to_string()]);
        arguments.extend(["-O2", "-g1", "-cl-kernel-arg-info", "-D__OPENCL_VERSION__=300"].map(String::from));
        arguments.push(folder.prefix_map());
        arguments.extend(libraries.options(clang, processor, &folder)?);
        if !given.iter().any(|option| option.starts_with("-cl-std=")) {
            arguments.push("-cl-std=CL1.2".to_string());
        }
        let own = [
            ("printf.h", PRINTF, source.contains("printf")),
            ("offsets.h", OFFSETS, matches!(libraries, Libraries::Libclc(_))),
        ];
        for (name, text, _) in own.into_iter().filter(|own| own.2) {
            let header = folder.write(name, text.as_bytes())?;
            arguments.extend(["-include".to_string(), header.display().to_string()]);
        }
        for (name, text) in headers {
            folder.write(&format!("headers/{name}"), text.as_bytes())?;
        }
        if !headers.is_empty() {
            arguments.push(format!("-I{}", folder.path("headers").display()));
        }
        arguments.extend(given.iter().cloned());
        if object {
            arguments.extend(["-c", "-emit-llvm"].map(String::from));
        }
        arguments.extend([path, "-o".to_string(), out]);
        let run = clang.run(&folder, &arguments)?;
        let binary = if run.success { Some(folder.read("program.out")?) } else { None };
        Ok(BuildOutput { binary, log: run.log })
    };
    if headers.iter().any(|(name, _)| !is_contained(name)) {
        return Err(Status::INVALID_VALUE.because("a header's name refers outside its directory"));
    }
    run().or_else(|e| Ok(BuildOutput::failed(e.to_string())))
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
    let clang = Clang::find().map_err(|e| Status::COMPILER_NOT_AVAILABLE.because(e))?;
    let processor = gpu().map_or("gfx1100", |gpu| gpu.device.target().processor_name());
    let to = if library { Linked::Bitcode } else { Linked::CodeObject };
    let linked = clang.link(processor, objects, to);
    Ok(linked
        .map_or_else(|e| BuildOutput::failed(e.to_string()), |(binary, log)| BuildOutput { binary, log }))
}
