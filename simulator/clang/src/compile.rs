//! Compilation of one source to a code object or to bitcode.

use crate::cache::{self, Cache, Entry, Key};
use crate::options::Language;
use crate::precompiled::{self, PRELUDE, Request};
use crate::{Clang, KERNELS_ONLY, Libraries, ROCM_LIBRARIES, Run, TARGET, TempDir};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::AtomicBool;

/// A source and how to compile it.
#[derive(Debug, Clone)]
pub struct Job<'a> {
    pub language: Language,
    pub source: Source<'a>,
    /// Headers that exist only in memory: names, which must be relative and [contained](crate::is_contained),
    /// and texts.
    pub headers: &'a [(String, String)],
    /// LLVM's name of the processor.
    pub processor: &'a str,
    /// Further arguments of clang. Those of untrusted programs must have been [accepted](crate::options).
    pub arguments: &'a [String],
    pub to: Format,
}

/// Where a source is.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// A text, with the file name that messages and line tables show.
    Text { name: &'a str, text: &'a str },
    /// A file.
    File(&'a Path),
}

/// The form of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A code object.
    CodeObject,
    /// LLVM bitcode, to be [linked](Clang::link).
    Bitcode,
}

/// What clang made of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The result; `None` if the source has errors.
    pub binary: Option<Vec<u8>>,
    /// Clang's messages.
    pub log: String,
}

/// The reason why clang did not run.
#[derive(Debug)]
pub enum CompileError {
    /// No installed compiler supports the processor.
    NoCompiler(String),
    /// The built-in functions of the language are not installed.
    NoLibraries(Language),
    /// HIP's headers are not installed.
    NoHeaders,
    /// A temporary file could not be written, or clang not started.
    Io(io::Error),
    /// The compilation was stopped.
    Stopped,
}

impl std::fmt::Display for CompileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CompileError::NoCompiler(message) => f.write_str(message),
            CompileError::NoLibraries(Language::OpenCl) => f.write_str(
                "neither libclc (package libclc-19) nor ROCm's device libraries are installed \
                 (WAVESIM_DEVICE_LIBS can name their directory)",
            ),
            CompileError::NoLibraries(Language::Hip) => f.write_str(
                "ROCm's device libraries are not installed (WAVESIM_DEVICE_LIBS can name their directory)",
            ),
            CompileError::NoHeaders => f.write_str(
                "HIP's headers are not installed (WAVESIM_ROCM_PATH can name a directory with include/hip)",
            ),
            CompileError::Io(error) => error.fmt(f),
            CompileError::Stopped => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for CompileError {}

impl From<io::Error> for CompileError {
    fn from(error: io::Error) -> CompileError {
        CompileError::Io(error)
    }
}

/// `__printf_alloc`, which clang's `printf` calls. Allocates space in the launch's buffer, whose header holds
/// the number of bytes used and the capacity; without a buffer, the output is lost. The offsets here and below
/// are those of hidden arguments in code object version 5 (LLVM AMDGPUUsage).
const PRINTF: &str = "\
__global char *__printf_alloc(unsigned bytes) {
  __constant char *hidden = (__constant char *)__builtin_amdgcn_implicitarg_ptr();
  __global unsigned *buffer = *(__global unsigned *__constant *)(hidden + 72);
  if (!buffer) return 0;
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

/// Debug information: with types and variables, and if the compiler fails with these, of lines.
const DEBUG_INFO: &str = "-g";
const LINES_ONLY: &str = "-g1";

/// The option by which programs choose another type of pointer differences, as of AMD's hiprtc.
const LONG_LONG_DIFFERENCES: &str = "-D__HIPRTC_PTRDIFF_T_IS_LONG_LONG__=1";
/// Number of the arguments that include the text of the prelude of HIP programs.
const TEXT: usize = 2;

/// The image functions of OpenCL C, for libclc.
const IMAGES: &str = include_str!("images.cl");
/// Arguments of OpenCL programs for devices with images. They enable the built-in functions of images, which need the
/// words of samplers in the source, too: a macro `__WAVESIM_SAMPLERS`.
pub const IMAGE_OPTIONS: [&str; 3] = [
    "-D__IMAGE_SUPPORT__=1",
    "-Xclang",
    "-cl-ext=+cl_khr_depth_images,+__opencl_c_read_write_images,+cl_khr_mipmap_image,+cl_khr_mipmap_image_writes",
];

/// Finds the directory of HIP's headers: `WAVESIM_ROCM_PATH`, or an installed ROCm.
fn hip_headers() -> Option<PathBuf> {
    let given = crate::variable("WAVESIM_ROCM_PATH").map(PathBuf::from);
    let has = |path: &Path| path.join("include/hip/hip_runtime.h").is_file();
    given.into_iter().chain(["/opt/rocm", "/usr"].map(PathBuf::from)).find(|path| has(path))
}

impl Job<'_> {
    /// Runs the installed clang, or returns what it has made of the same source before ([`Cache::of_user`]).
    ///
    /// # Errors
    /// Something that the compilation needs is not installed. Errors in the source are in the output.
    pub fn compile(&self) -> Result<Output, CompileError> {
        let clang = Clang::for_processor(self.processor).map_err(CompileError::NoCompiler)?;
        self.compile_with(&clang, &AtomicBool::new(false), Cache::of_user().as_ref())
    }

    /// Runs one of the installed compilers until it ends or `stop` is set, with a cache of earlier results, if any.
    ///
    /// # Errors
    /// The same, and [`CompileError::Stopped`].
    pub fn compile_with(
        &self,
        clang: &Clang,
        stop: &AtomicBool,
        cache: Option<&Cache>,
    ) -> Result<Output, CompileError> {
        let folder = TempDir::new()?;
        let mut arguments = match self.language {
            Language::OpenCl => self.opencl(clang, &folder)?,
            Language::Hip => self.hip(clang, &folder)?,
        };
        for (name, text) in self.headers {
            folder.write(&format!("headers/{name}"), text.as_bytes())?;
        }
        if !self.headers.is_empty() {
            arguments.push(format!("-I{}", folder.path("headers").display()));
        }
        arguments.push(folder.prefix_map());
        arguments.extend(self.arguments.iter().cloned());
        let path = match self.source {
            Source::Text { name, text } => folder.write(name, text.as_bytes())?,
            Source::File(path) => path.to_path_buf(),
        };
        let out = folder.path("program.out");
        // A path that begins with `-` is not an option.
        let path = if path.is_relative() { Path::new(".").join(path) } else { path };
        arguments.extend([path.display().to_string(), "-o".to_string(), out.display().to_string()]);
        let cache = cache.zip(self.key(clang, &arguments, &folder));
        if let Some(Entry { binary, log }) = cache.as_ref().and_then(|(cache, key)| cache.find(key)) {
            return Ok(Output { binary: Some(binary), log });
        }
        let rule = folder.path("program.d");
        arguments.extend(cache::dependency_options(&rule));
        let prelude = match (&cache, self.language) {
            (Some((cache, _)), Language::Hip) => self.precompiled(clang, cache, &folder, &arguments, stop)?,
            _ => None,
        };
        let Run { success, log } = self.run(clang, &folder, arguments, prelude, stop)?;
        let binary = if success { Some(std::fs::read(out)?) } else { None };
        if let Some((cache, key)) = cache
            && let Some(binary) = &binary
            && let Ok(rule) = std::fs::read_to_string(rule)
        {
            let files = cache::prerequisites(&rule, folder.root());
            cache.store(&key, &files, &Entry { binary: binary.clone(), log: log.clone() });
        }
        Ok(Output { binary, log })
    }

    /// Runs clang, with a precompiled prelude in the place of its text if there is one that clang accepts.
    fn run(
        &self,
        clang: &Clang,
        folder: &TempDir,
        mut arguments: Vec<String>,
        prelude: Option<PathBuf>,
        stop: &AtomicBool,
    ) -> Result<Run, CompileError> {
        let run = |arguments: &[String]| {
            clang.run_until(folder, arguments, Stdio::null(), stop)?.ok_or(CompileError::Stopped)
        };
        if let Some(file) = prelude {
            let include =
                ["-Xclang", "-include-pch", "-Xclang", &file.display().to_string()].map(String::from);
            let result = run(&[&include, &arguments[TEXT..]].concat())?;
            if result.success || !(result.has_crashed() || precompiled::is_refused(&result.log)) {
                return Ok(result);
            }
        }
        let result = run(&arguments)?;
        if result.has_crashed()
            && let Some(level) = arguments.iter_mut().find(|argument| *argument == DEBUG_INFO)
        {
            // LLVM 19 crashes where functions that clang declares itself, as `printf`, are called by libraries, too.
            *level = LINES_ONLY.to_string();
            return run(&arguments);
        }
        Ok(result)
    }

    /// Returns the precompiled prelude for this program, if there can be one.
    fn precompiled(
        &self,
        clang: &Clang,
        cache: &Cache,
        folder: &TempDir,
        arguments: &[String],
        stop: &AtomicBool,
    ) -> Result<Option<PathBuf>, CompileError> {
        let base = self.hip_base()?;
        let names_libraries = |argument: &&String| argument.starts_with(ROCM_LIBRARIES);
        let libraries: Vec<_> = arguments.iter().filter(names_libraries).cloned().collect();
        let (program, headers) = (self.arguments, self.headers);
        Ok(Request { clang, cache, folder, base: &base, libraries: &libraries, program, headers, stop }
            .find())
    }

    /// Returns everything that the result depends on, apart from the files that clang reads. `None` if it is
    /// different each time.
    fn key(&self, clang: &Clang, arguments: &[String], folder: &TempDir) -> Option<Key> {
        let mut key = clang.key()?;
        for file in Libraries::find(clang)?.files().ok()? {
            key.add_file(&file);
        }
        key.add(std::env::current_dir().ok()?.as_os_str().as_encoded_bytes());
        let own = folder.root().display().to_string();
        for argument in arguments {
            key.add(argument.replace(&own, "").as_bytes());
        }
        // The texts of the files in the folder.
        [PRINTF, OFFSETS, IMAGES, PRELUDE].iter().for_each(|text| key.add(text.as_bytes()));
        if let Source::Text { text, .. } = self.source {
            key.add(text.as_bytes());
        }
        for (name, text) in self.headers {
            key.add(name.as_bytes());
            key.add(text.as_bytes());
        }
        let mut texts = self.headers.iter().map(|(_, text)| text.as_str());
        let volatile =
            matches!(self.source, Source::Text { text, .. } if cache::is_volatile(text.as_bytes()));
        (!volatile && !texts.any(|text| cache::is_volatile(text.as_bytes()))).then_some(key)
    }

    fn opencl(&self, clang: &Clang, folder: &TempDir) -> Result<Vec<String>, CompileError> {
        let libraries = Libraries::find(clang).ok_or(CompileError::NoLibraries(Language::OpenCl))?;
        let mut arguments: Vec<String> = ["-x", "cl", "-target", TARGET].map(String::from).to_vec();
        arguments.extend([format!("-mcpu={}", self.processor), "-mcode-object-version=5".to_string()]);
        arguments
            .extend(["-O2", DEBUG_INFO, "-cl-kernel-arg-info", "-D__OPENCL_VERSION__=300"].map(String::from));
        arguments.extend(libraries.options(clang, self.processor, folder)?);
        if !self.arguments.iter().any(|option| option.starts_with("-cl-std=")) {
            arguments.push("-cl-std=CL1.2".to_string());
        }
        let source = match self.source {
            Source::Text { text, .. } => text.into(),
            Source::File(path) => {
                std::borrow::Cow::from(String::from_utf8_lossy(&std::fs::read(path)?).into_owned())
            }
        };
        let libclc = matches!(libraries, Libraries::Libclc(_));
        let has_images = self.arguments.iter().any(|option| option == IMAGE_OPTIONS[0]);
        // The text may include headers, which may have the functions.
        let uses_images =
            source.contains("image") || source.contains("sampler") || source.contains("#include");
        let own = [
            ("printf.h", PRINTF, source.contains("printf")),
            ("offsets.h", OFFSETS, libclc),
            ("images.h", IMAGES, libclc && has_images && uses_images),
        ];
        for (name, text, _) in own.into_iter().filter(|own| own.2) {
            let header = folder.write(name, text.as_bytes())?;
            arguments.extend(["-include".to_string(), header.display().to_string()]);
        }
        match self.to {
            // By C99's rules, a function that is just `inline` would be defined nowhere where it is not inlined. PyOpenCL's
            // header of complex numbers has such functions.
            Format::CodeObject => {
                arguments.extend(KERNELS_ONLY.map(String::from));
                arguments.push("-fgnu89-inline".to_string());
            }
            Format::Bitcode => arguments.extend(["-c", "-emit-llvm"].map(String::from)),
        }
        // What is linked later is optimised then. LLVM 19's crash with `printf`, however, has to happen here, where there
        // is a remedy.
        if self.to == Format::Bitcode && !source.contains("printf") {
            arguments.extend(["-Xclang", "-disable-llvm-passes"].map(String::from));
        }
        Ok(arguments)
    }

    /// Returns the arguments of HIP programs that the meaning of headers depends on.
    fn hip_base(&self) -> Result<Vec<String>, CompileError> {
        let headers = hip_headers().ok_or(CompileError::NoHeaders)?;
        let mut arguments = vec!["-x".to_string(), "hip".to_string(), "--cuda-device-only".to_string()];
        arguments.extend(["--no-gpu-bundle-output", "-O3", DEBUG_INFO, "-std=c++17"].map(String::from));
        arguments.push(format!("--offload-arch={}", self.processor));
        arguments.push(format!("--rocm-path={}", headers.display()));
        arguments.push(match self.to {
            Format::Bitcode => "-fgpu-rdc".to_string(),
            // The identifier of a compilation unit depends on the path of the source, which is another each time. Only
            // code that is linked needs it. Programs such as CuPy compare results to recognise the compiler.
            Format::CodeObject => "-fuse-cuid=none".to_string(),
        });
        if self.arguments.iter().any(|argument| argument == LONG_LONG_DIFFERENCES) {
            // Clang's own headers, which are included first, define the type.
            let own = ["-D__PTRDIFF_TYPE__=long long", "-Wno-builtin-macro-redefined"];
            arguments.extend(own.map(String::from));
        }
        Ok(arguments)
    }

    fn hip(&self, clang: &Clang, folder: &TempDir) -> Result<Vec<String>, CompileError> {
        let base = self.hip_base()?;
        let libraries = Libraries::find(clang).filter(|found| matches!(found, Libraries::Rocm(_)));
        let libraries = libraries.ok_or(CompileError::NoLibraries(Language::Hip))?;
        let prelude = folder.write("prelude.h", PRELUDE.as_bytes())?;
        // These `TEXT` arguments come first.
        let mut arguments = vec!["-include".to_string(), prelude.display().to_string()];
        arguments.extend(base);
        arguments.extend(libraries.options(clang, self.processor, folder)?);
        if self.to == Format::Bitcode {
            arguments.extend(["-emit-llvm", "-c"].map(String::from));
        }
        Ok(arguments)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::time::SystemTime;

    #[test]
    fn compilations_are_cached_by_content() {
        let clang = Clang::for_processor("gfx1100").ok().filter(|clang| Libraries::find(clang).is_some());
        let Some(clang) = clang else {
            println!("skipped: clang or its libraries are not installed");
            return;
        };
        let folder = TempDir::new().unwrap();
        let cache = Cache::new(folder.path("cache"), 1 << 20);
        folder.write("value.h", b"#define VALUE 1").unwrap();
        let include = format!("-I{}", folder.root().display());
        let compile = |text: &str, more: &str| {
            let arguments = [include.clone(), more.to_string()];
            let job = Job {
                language: Language::OpenCl,
                source: Source::Text { name: "a.cl", text },
                headers: &[("own.h".to_string(), "#define MORE 2".to_string())],
                processor: "gfx1100",
                arguments: &arguments,
                to: Format::CodeObject,
            };
            job.compile_with(&clang, &AtomicBool::new(false), Some(&cache)).unwrap()
        };
        let entries = || {
            let files = std::fs::read_dir(folder.path("cache")).into_iter().flatten();
            files.map(|file| file.unwrap().path()).collect::<Vec<_>>()
        };
        let source =
            "#include \"value.h\"\n#include \"own.h\"\nkernel void f(global int *p) { *p = VALUE + MORE; }";
        let first = compile(source, "-O1");
        assert!(first.binary.is_some(), "{}", first.log);
        let [entry] = &entries()[..] else { panic!("not one entry: {:?}", entries()) };
        let file = || std::fs::metadata(entry).unwrap();
        let (inode, old) = (file().ino(), SystemTime::UNIX_EPOCH);
        std::fs::File::options().append(true).open(entry).unwrap().set_modified(old).unwrap();
        // The entry was used, and not written again.
        assert_eq!(compile(source, "-O1"), first);
        assert!(file().ino() == inode && file().modified().unwrap() > old);
        // Other options, and a header that has changed.
        compile(source, "-O2");
        assert_eq!(entries().len(), 2);
        folder.write("value.h", b"#define VALUE 5").unwrap();
        assert_ne!(compile(source, "-O1").binary, first.binary);
        // Errors are not kept.
        let wrong = compile("kernel void f(", "-O1");
        assert!(wrong.binary.is_none() && entries().len() == 2);
    }

    #[test]
    fn code_objects_have_no_functions_but_kernels() {
        let clang = Clang::for_processor("gfx1100").ok().filter(|clang| Libraries::find(clang).is_some());
        let Some(clang) = clang else {
            println!("skipped: clang or its libraries are not installed");
            return;
        };
        let compile = |to| {
            let text =
                "int helper(int x) { return x * 3; }\nkernel void f(global int *p) { *p = helper(*p); }";
            let job = Job {
                language: Language::OpenCl,
                source: Source::Text { name: "a.cl", text },
                headers: &[],
                processor: "gfx1100",
                // Debug information has the names of functions.
                arguments: &["-g0".to_string()],
                to,
            };
            job.compile_with(&clang, &AtomicBool::new(false), None).unwrap().binary.unwrap()
        };
        let has = |binary: &[u8], name: &[u8]| binary.windows(name.len()).any(|part| part == name);
        let object = compile(Format::Bitcode);
        let linked = clang.link_with("gfx1100", &[object], crate::Linked::Kernels, None).unwrap();
        for binary in [compile(Format::CodeObject), linked.0.unwrap()] {
            assert!(has(&binary, b"f.kd") && !has(&binary, b"helper"));
        }
    }

    #[test]
    fn inline_functions_are_defined() {
        let clang = Clang::for_processor("gfx1100").ok().filter(|clang| Libraries::find(clang).is_some());
        let Some(clang) = clang else {
            println!("skipped: clang or its libraries are not installed");
            return;
        };
        let job = Job {
            language: Language::OpenCl,
            source: Source::Text {
                name: "a.cl",
                text: "__attribute__((noinline)) inline int twice(int x) { return x * 2; }\n\
                       kernel void f(global int *p) { p[0] = twice(p[1]); }",
            },
            headers: &[],
            processor: "gfx1100",
            arguments: &[],
            to: Format::CodeObject,
        };
        let output = job.compile_with(&clang, &AtomicBool::new(false), None).unwrap();
        assert!(output.binary.is_some(), "{}", output.log);
    }

    #[test]
    fn links_are_cached_by_content() {
        let clang = Clang::for_processor("gfx1100").ok().filter(|clang| Libraries::find(clang).is_some());
        let Some(clang) = clang else {
            println!("skipped: clang or its libraries are not installed");
            return;
        };
        let folder = TempDir::new().unwrap();
        let cache = Cache::new(folder.path("cache"), 16 << 20);
        let compile = |value: u32| {
            let text = format!("kernel void f(global int *p) {{ *p = {value}; }}");
            let job = Job {
                language: Language::OpenCl,
                source: Source::Text { name: "a.cl", text: &text },
                headers: &[],
                processor: "gfx1100",
                arguments: &[],
                to: Format::Bitcode,
            };
            job.compile_with(&clang, &AtomicBool::new(false), None).unwrap().binary.unwrap()
        };
        let link = |inputs: &[Vec<u8>]| {
            clang.link_with("gfx1100", inputs, crate::Linked::Kernels, Some(&cache)).unwrap()
        };
        let entries = || {
            let files = std::fs::read_dir(folder.path("cache")).into_iter().flatten();
            files.map(|file| file.unwrap().path()).collect::<Vec<_>>()
        };
        let objects = [compile(1)];
        let one = link(&objects);
        assert!(one.0.is_some(), "{}", one.1);
        let [entry] = &entries()[..] else { panic!("not one entry: {:?}", entries()) };
        let inode = std::fs::metadata(entry).unwrap().ino();
        assert_eq!(link(&objects), one);
        assert_eq!(std::fs::metadata(entry).unwrap().ino(), inode);
        assert!(link(&[compile(2)]).0.is_some_and(|two| Some(two) != one.0));
        // Errors are not kept: both define `f`.
        assert!(link(&[objects[0].clone(), compile(2)]).0.is_none());
        assert_eq!(entries().len(), 2);
    }

    #[test]
    fn headers_are_precompiled_once() {
        let clang = Clang::for_processor("gfx1100").ok().filter(|clang| Libraries::find(clang).is_some());
        let Some(clang) = clang.filter(|_| hip_headers().is_some()) else {
            println!("skipped: clang, its libraries or the headers of HIP are not installed");
            return;
        };
        let folder = TempDir::new().unwrap();
        let cache = Cache::new(folder.path("cache"), 256 << 20);
        let compile = |cache: Option<&Cache>, text: &str, header: &str, arguments: &[&str], to: Format| {
            let job = Job {
                language: Language::Hip,
                source: Source::Text { name: "a.hip", text },
                headers: &[(header.to_string(), "#define FROM_HEADER 2".to_string())],
                processor: "gfx1100",
                arguments: &arguments.iter().map(|argument| argument.to_string()).collect::<Vec<_>>(),
                to,
            };
            let out = job.compile_with(&clang, &AtomicBool::new(false), cache).unwrap();
            assert!(out.binary.is_some(), "{}", out.log);
            out
        };
        let precompiled = || {
            let files = std::fs::read_dir(folder.path("cache")).unwrap().map(|file| file.unwrap().path());
            let mut files: Vec<_> = files.filter(|path| path.extension().is_some()).collect();
            files.sort();
            files
        };
        let text = |last: &str| {
            format!(
                "#include \"own.h\"\n__global__ void f(hip_bfloat16 *a, __half *b, hipFloatComplex *c) \
                 {{ *a = hip_bfloat16(HIP_INF_F); *b = __half(FROM_HEADER); *c = hipConjf(*c); {last} }}"
            )
        };
        let code = Format::CodeObject;
        compile(Some(&cache), &text(""), "own.h", &["-DOWN=1"], code);
        let [first] = &precompiled()[..] else { panic!("{:?}", precompiled()) };
        let made = std::fs::metadata(first).unwrap().ino();
        // Another program, with macros that the headers do not know.
        compile(Some(&cache), &text("a[OWN] = a[0];"), "own.h", &["-DOWN=5"], code);
        assert_eq!(precompiled().len(), 1);
        assert_eq!(std::fs::metadata(first).unwrap().ino(), made);
        // Macros that the headers test, and options.
        let difference = "static_assert(std::is_same<ptrdiff_t, long long>::value, \"\");";
        compile(Some(&cache), &text(difference), "own.h", &["-D__HIPRTC_PTRDIFF_T_IS_LONG_LONG__=1"], code);
        compile(Some(&cache), &text(""), "own.h", &["-ffast-math"], code);
        compile(Some(&cache), &text(""), "own.h", &[], Format::Bitcode);
        assert_eq!(precompiled().len(), 4);
        // The text is used where a header of the program or a macro replaces something in those of HIP,
        let own = "__attribute__((global)) void f(int *a) { *a = FROM_HEADER; }";
        compile(Some(&cache), own, "hip/hip_runtime.h", &[], code);
        compile(Some(&cache), &text(""), "own.h", &["-DhipConjf=renamed"], code);
        assert_eq!(precompiled().len(), 4);
        // and where the file is damaged, which makes a new one.
        let bytes = std::fs::read(first).unwrap();
        std::fs::write(first, &bytes[..bytes.len() / 2]).unwrap();
        compile(Some(&cache), &text("a[3] = a[0];"), "own.h", &[], code);
        assert_eq!(std::fs::metadata(first).unwrap().len(), bytes.len() as u64);
        // Clang accepts the file: the text does not exist.
        let source = folder.write("b.hip", b"__global__ void f(__half *a) { *a = __half(1); }").unwrap();
        let job = Job {
            language: Language::Hip,
            source: Source::File(&source),
            headers: &[],
            processor: "gfx1100",
            arguments: &[],
            to: code,
        };
        let mut arguments = job.hip(&clang, &folder).unwrap();
        arguments.extend([source.display().to_string(), "-fsyntax-only".to_string()]);
        let run = |arguments: &[String], file: &Path| {
            let file = Some(file.to_path_buf());
            job.run(&clang, &folder, arguments.to_vec(), file, &AtomicBool::new(false)).unwrap().success
        };
        let mut without = arguments.clone();
        without[1] = folder.path("nonexistent.h").display().to_string();
        assert!(run(&without, first));
        // A file that it refuses is not used.
        let garbage = folder.write("garbage.pch", b"no header").unwrap();
        assert!(run(&arguments, &garbage) && !run(&without, &garbage));
        // Both have the same code.
        let instructions = |out: Output| {
            let binary = out.binary.unwrap();
            let file = folder.write("code", &binary).unwrap();
            let copy = std::process::Command::new("llvm-objcopy-19")
                .args(["-O", "binary", "--only-section=.text"])
                .args([&file, &folder.path("text")])
                .status();
            copy.is_ok_and(|status| status.success()).then(|| folder.read("text").unwrap())
        };
        let with = instructions(compile(Some(&cache), &text("a[4] = a[0];"), "own.h", &[], code));
        assert_eq!(with, instructions(compile(None, &text("a[4] = a[0];"), "own.h", &[], code)));
    }

    #[test]
    fn every_installed_clang_makes_the_same_code_object_each_time() {
        let compilers = Clang::all_for_processor("gfx1100");
        let mut compilers =
            compilers.iter().filter(|c| matches!(Libraries::find(c), Some(Libraries::Rocm(_))));
        let (Some(first), Some(_)) = (compilers.next(), hip_headers()) else {
            println!("skipped: clang, its libraries or HIP's headers are not installed");
            return;
        };
        for clang in std::iter::once(first).chain(compilers) {
            let folder = TempDir::new().unwrap();
            let cache = Cache::new(folder.path("cache"), 1 << 20);
            let job = Job {
                language: Language::Hip,
                source: Source::Text {
                    name: "a.hip",
                    text: "extern \"C\" __global__ void f(int *p) { *p = 1; }",
                },
                headers: &[],
                processor: "gfx1100",
                arguments: &[],
                to: Format::CodeObject,
            };
            let compile =
                |cache| job.compile_with(clang, &AtomicBool::new(false), cache).unwrap().binary.unwrap();
            let binary = compile(Some(&cache));
            // The folder of the compilation is another one.
            assert!(binary == compile(None), "{clang:?}");
            let files = std::fs::read_dir(folder.path("cache")).into_iter().flatten();
            let files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
            let [entry] = &files[..] else { panic!("not one entry of {clang:?}: {files:?}") };
            let file = std::fs::File::options().append(true).open(entry).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
            assert!(binary == compile(Some(&cache)));
            // The entry was used.
            assert!(file.metadata().unwrap().modified().unwrap() > SystemTime::UNIX_EPOCH);
        }
    }
}
