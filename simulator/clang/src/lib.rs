//! The installed clang, for everything that compiles kernels at run time: the command, OpenCL and `hiprtc`.
//!
//! Kernels link against the built-in functions of their language, from ROCm's device libraries or, for
//! OpenCL, libclc.

pub mod cache;
pub mod compile;
pub mod options;
mod platform;
mod precompiled;
mod process;

use cache::{Cache, Entry, Key};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Compilers in order of preference, unless `WAVESIM_CLANG` names one. After them comes the one that
/// `scripts/install-llvm22.sh` unpacks.
const NAMES: [&str; 6] = ["clang-19", "clang-20", "clang-21", "clang-22", "clang-18", "clang"];
/// Directories to search for ROCm's device libraries, unless `WAVESIM_DEVICE_LIBS` names one.
const ROCM: [&str; 7] = [
    "/opt/rocm/amdgcn/bitcode",
    "/usr/lib/llvm-17/lib/clang/17/amdgcn/bitcode",
    "/usr/lib/llvm-18/lib/clang/18/amdgcn/bitcode",
    "/usr/lib/llvm-19/lib/clang/19/amdgcn/bitcode",
    "/usr/lib/llvm-21/lib/clang/21/amdgcn/bitcode",
    "/usr/lib/llvm-22/lib/clang/22/amdgcn/bitcode",
    "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode",
];
/// Clang's option for the directory of ROCm's device libraries.
const ROCM_LIBRARIES: &str = "--rocm-device-lib-path=";
/// Directories of libclc.
const LIBCLC: [&str; 3] = ["/usr/lib/clc", "/usr/share/clc", "/usr/lib64/clc"];
/// libclc for AMD GPUs, in LLVM 22 and before.
const LIBCLC_FILES: [&str; 2] = ["amdgcn-amd-amdhsa.bc", "amdgcn--amdhsa.bc"];
/// Options that remove all functions but kernels and what these call. Clang passes them for HIP, not for OpenCL. Without
/// them, each function that is not `static` is code of its own, besides its copies in the kernels that call it.
const KERNELS_ONLY: [&str; 2] = ["-mllvm", "-amdgpu-internalize-symbols"];
/// The target triple of kernels.
pub const TARGET: &str = "amdgcn-amd-amdhsa";

/// The installed clang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clang {
    program: String,
}

/// Location of the built-in functions of kernel languages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Libraries {
    /// Directory of ROCm's device libraries.
    Rocm(PathBuf),
    /// File of libclc, which supports only OpenCL.
    Libclc(PathBuf),
}

/// Result of running clang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Whether clang exited successfully.
    pub success: bool,
    /// Clang's messages. File names are relative to the temporary directory.
    pub log: String,
}

impl Run {
    /// Whether clang has failed, and not found an error of the program.
    fn has_crashed(&self) -> bool {
        !self.success && self.log.contains("PLEASE submit a bug report")
    }
}

/// Returns this project's folder in the user's folder for caches.
fn cache_folder() -> Option<PathBuf> {
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")? + "/.cache"))?;
    Some(PathBuf::from(cache).join("wavesim"))
}

/// Returns the compiler that `scripts/install-llvm22.sh` unpacks.
fn unpacked() -> Option<String> {
    Some(cache_folder()?.join("llvm-22/bin/clang-22").display().to_string())
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the names of compilers to try, in order of preference.
fn candidates() -> Vec<String> {
    match variable("WAVESIM_CLANG") {
        Some(name) => vec![name],
        None => NAMES.iter().map(|name| name.to_string()).chain(unpacked()).collect(),
    }
}

/// Returns whether a compiler supports a processor; `None` if it is not installed.
fn supports(program: &str, processor: &str) -> Option<bool> {
    let mut command = Command::new(program);
    command.args(["-target", TARGET, &format!("-mcpu={processor}"), "-nogpulib"]);
    command.args(["-x", "c", "-fsyntax-only", "-"]);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.ok().map(|status| status.success())
}

/// Output of [`Clang::link`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linked {
    /// A code object.
    CodeObject,
    /// A code object that nothing but its kernels is used of, as OpenCL's.
    Kernels,
    /// A code object that may have undefined symbols, for inspection only.
    Incomplete,
    /// LLVM bitcode, for further linking.
    Bitcode,
}

impl Clang {
    /// Finds an installed clang that supports a processor. The result is cached.
    ///
    /// # Errors
    /// A sentence that names the compilers that were tried.
    pub fn for_processor(processor: &str) -> Result<Clang, String> {
        static FOUND: Mutex<BTreeMap<String, Result<Clang, String>>> = Mutex::new(BTreeMap::new());
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        found.entry(processor.to_string()).or_insert_with(|| Clang::search(processor)).clone()
    }

    /// Returns the compiler's name or path.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Returns all installed compilers that support a processor, in order of preference.
    pub fn all_for_processor(processor: &str) -> Vec<Clang> {
        let supports = |program: &String| supports(program, processor).is_some_and(|supports| supports);
        candidates().into_iter().filter(supports).map(|program| Clang { program }).collect()
    }

    /// Returns the first line of the compiler's `--version`.
    pub fn version(&self) -> Option<String> {
        let output = Command::new(&self.program).arg("--version").output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).lines().next()?.trim().to_string())
    }

    /// Returns the compiler's path, looked up as the system does. `None` if it cannot be found.
    fn path(&self) -> Option<PathBuf> {
        let program = Path::new(&self.program);
        let path = match program.components().count() {
            1 => {
                let folders = std::env::var_os("PATH")?;
                std::env::split_paths(&folders)
                    .map(|folder| folder.join(program))
                    .find(|path| path.is_file())?
            }
            _ => program.to_path_buf(),
        };
        // Commands are links to programs with a version.
        std::fs::canonicalize(path).ok()
    }

    fn search(processor: &str) -> Result<Clang, String> {
        let names = candidates();
        let mut installed = Vec::new();
        for program in &names {
            match supports(program, processor) {
                Some(true) => return Ok(Clang { program: program.clone() }),
                Some(false) => installed.push(program.as_str()),
                None => {}
            }
        }
        Err(match installed.is_empty() {
            true => {
                format!("no compiler is installed: tried {} (WAVESIM_CLANG can name one)", names.join(", "))
            }
            false => format!(
                "{} does not support {processor} (scripts/install-llvm22.sh unpacks LLVM 22; WAVESIM_CLANG can \
                 name a compiler)",
                installed.join(", ")
            ),
        })
    }

    /// Runs clang in the current directory of the process. The arguments of programs must have been accepted by
    /// [`options`].
    pub fn run<S: AsRef<OsStr>>(
        &self,
        folder: &TempDir,
        arguments: impl IntoIterator<Item = S>,
    ) -> io::Result<Run> {
        let run = self.run_until(folder, arguments, Stdio::null(), &AtomicBool::new(false))?;
        run.ok_or_else(|| io::ErrorKind::Interrupted.into())
    }

    /// The same with an input, until `stop` is set: then clang is killed, and the result is `None`.
    fn run_until<S: AsRef<OsStr>>(
        &self,
        folder: &TempDir,
        arguments: impl IntoIterator<Item = S>,
        input: Stdio,
        stop: &AtomicBool,
    ) -> io::Result<Option<Run>> {
        let mut command = Command::new(&self.program);
        command.stdin(input);
        // Source code can make clang crash; the files of the crash would remain.
        command.arg("-fno-crash-diagnostics").args(arguments);
        let Some(output) = process::output_until(&mut command, stop)? else { return Ok(None) };
        let log =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        let own = format!("{}/", folder.0.display());
        Ok(Some(Run { success: output.status.success(), log: log.replace(&own, "") }))
    }

    /// Returns a key that this version and the compiler's file are part of. `None` if the compiler is not found.
    fn key(&self) -> Option<Key> {
        let mut key = Key::default();
        key.add(env!("CARGO_PKG_VERSION").as_bytes());
        key.add_file(&self.path()?);
        Some(key)
    }

    /// Links bitcode for a processor, or returns what has been linked of the same before ([`Cache::of_user`]). Returns
    /// the result, if linking succeeded, and clang's messages.
    ///
    /// # Errors
    /// Files cannot be written, or the compiler cannot be run.
    pub fn link(
        &self,
        processor: &str,
        inputs: &[Vec<u8>],
        to: Linked,
    ) -> io::Result<(Option<Vec<u8>>, String)> {
        self.link_with(processor, inputs, to, Cache::of_user().as_ref())
    }

    /// The same, with a cache of earlier results, if any.
    fn link_with(
        &self,
        processor: &str,
        inputs: &[Vec<u8>],
        to: Linked,
        cache: Option<&Cache>,
    ) -> io::Result<(Option<Vec<u8>>, String)> {
        let options: &[&str] = match to {
            Linked::CodeObject => &["-flto", "-O2"],
            Linked::Kernels => &["-O2", KERNELS_ONLY[0], KERNELS_ONLY[1]],
            // Downgrades undefined symbols to warnings.
            Linked::Incomplete => &["-flto", "-O2", "-Wl,--noinhibit-exec"],
            Linked::Bitcode => &["-c", "-emit-llvm", "-Xclang", "-disable-llvm-passes"],
        };
        let key = cache.and_then(|_| self.key()).map(|mut key| {
            key.add(format!("link {processor} {}", options.join(" ")).as_bytes());
            inputs.iter().for_each(|input| key.add(input));
            key
        });
        let cache = cache.zip(key);
        if let Some(Entry { binary, log }) = cache.as_ref().and_then(|(cache, key)| cache.find(key)) {
            return Ok((Some(binary), log));
        }
        let folder = TempDir::new()?;
        let out = folder.path("linked.out").display().to_string();
        let mut arguments: Vec<String> = ["-target", TARGET, "-nogpulib"].map(String::from).to_vec();
        arguments.extend([format!("-mcpu={processor}"), "-o".to_string(), out]);
        arguments.extend(options.iter().map(|option| option.to_string()));
        for (number, input) in inputs.iter().enumerate() {
            let file = folder.write(&format!("{number}.bc"), input)?.display().to_string();
            // A compilation has one input; the others are linked into it.
            if matches!(to, Linked::Bitcode | Linked::Kernels) && number > 0 {
                arguments.extend(["-Xclang", "-mlink-bitcode-file", "-Xclang"].map(String::from));
            }
            arguments.push(file);
        }
        let Run { success, log } = self.run(&folder, &arguments)?;
        if !success {
            return Ok((None, log));
        }
        let binary = folder.read("linked.out")?;
        if let Some((cache, key)) = cache {
            cache.store(&key, &[], &Entry { binary: binary.clone(), log: log.clone() });
        }
        Ok((Some(binary), log))
    }
}

impl Libraries {
    /// Finds the libraries for a compiler, preferring ROCm's. An unpacked compiler has its own libclc.
    pub fn find(clang: &Clang) -> Option<Libraries> {
        let known = |folder: &PathBuf| folder.join("ockl.bc").is_file();
        let given = variable("WAVESIM_DEVICE_LIBS").map(PathBuf::from);
        // If the variable is wrong, clang reports the error.
        let rocm = given.or_else(|| ROCM.iter().map(PathBuf::from).find(known));
        let own = Path::new(&clang.program).ancestors().nth(2).map(|root| root.join("usr/lib/clc"));
        let folders = own.into_iter().chain(LIBCLC.iter().map(PathBuf::from));
        let mut files = folders.flat_map(|folder| LIBCLC_FILES.map(|name| folder.join(name)));
        let mut libclc = || files.find(|file| file.is_file());
        rocm.map(Libraries::Rocm).or_else(|| libclc().map(Libraries::Libclc))
    }

    /// Returns the files of the libraries, sorted.
    fn files(&self) -> io::Result<Vec<PathBuf>> {
        match self {
            Libraries::Libclc(file) => Ok(vec![file.clone()]),
            Libraries::Rocm(folder) => {
                let entries = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
                let mut files = entries.collect::<io::Result<Vec<_>>>()?;
                files.sort();
                Ok(files)
            }
        }
    }

    /// Returns the clang options that link the libraries into code for a processor. ROCm's libraries have a
    /// file for each processor; for a processor that they do not know yet, the file is generated in `folder`.
    pub fn options(&self, clang: &Clang, processor: &str, folder: &TempDir) -> io::Result<Vec<String>> {
        let rocm = match self {
            Libraries::Rocm(rocm) => rocm,
            Libraries::Libclc(file) => {
                let file = file.display().to_string();
                let link =
                    ["-nogpulib", "-Wno-linker-warnings", "-Xclang", "-mlink-builtin-bitcode", "-Xclang"];
                return Ok(link.iter().map(|s| s.to_string()).chain([file]).collect());
            }
        };
        let digits = processor.trim_start_matches("gfx");
        let of_processor = format!("oclc_isa_version_{digits}.bc");
        if rocm.join(&of_processor).is_file() || !rocm.is_dir() {
            return Ok(vec![format!("{ROCM_LIBRARIES}{}", rocm.display())]);
        }
        let libraries = folder.path("libraries");
        std::fs::create_dir(&libraries)?;
        for entry in std::fs::read_dir(rocm)? {
            let entry = entry?;
            platform::link(&entry.path(), &libraries.join(entry.file_name()))?;
        }
        let text = format!("const __constant unsigned __oclc_ISA_version = {};\n", isa_version(digits));
        let source = folder.write("isa_version.cl", text.as_bytes())?;
        let target = libraries.join(of_processor);
        // Like the other files, it is for every version of code objects.
        let plain = ["-x", "cl", "-target", TARGET, "-nogpulib", "-Xclang", "-mcode-object-version=none"];
        let make = plain.iter().map(OsStr::new);
        let output = [OsStr::new("-emit-llvm"), OsStr::new("-c"), source.as_os_str(), OsStr::new("-o")];
        let run = clang.run(folder, make.chain(output).chain([target.as_os_str()]))?;
        match run.success {
            true => Ok(vec![format!("{ROCM_LIBRARIES}{}", libraries.display())]),
            false => Err(io::Error::other(run.log)),
        }
    }
}

/// Returns the device libraries' ISA version of a processor: 11501 for `1151`, 9010 for `90a`.
fn isa_version(digits: &str) -> u32 {
    let (major, rest) = digits.split_at(digits.len().saturating_sub(2));
    let digit = |at: usize| rest.get(at..at + 1).and_then(|d| u32::from_str_radix(d, 16).ok()).unwrap_or(0);
    major.parse::<u32>().unwrap_or(0) * 1000 + digit(0) * 100 + digit(1)
}

/// A temporary directory for the files of one compilation, removed when dropped.
#[derive(Debug)]
pub struct TempDir(PathBuf);

impl TempDir {
    /// Creates a directory that only the current user can access.
    pub fn new() -> io::Result<TempDir> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let base = std::env::temp_dir();
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = base.join(format!("wavesim-{}-{number}", std::process::id()));
            match platform::create_private(&path) {
                Ok(()) => return Ok(TempDir(path)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Returns the path of the directory.
    pub fn root(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file, creating its parent directories.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = self.path(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&path, bytes)?;
        Ok(path)
    }

    /// Reads a file.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        std::fs::read(self.path(name))
    }

    /// Returns the option that strips this directory from paths in line tables.
    pub fn prefix_map(&self) -> String {
        format!("-fdebug-prefix-map={}/=", self.0.display())
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // Failure is ignored: files that remain are left to the system's cleanup of temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns true if a relative path stays inside the directory that it is joined to. The program chooses the
/// names of headers, so they are untrusted.
pub fn is_contained(name: &str) -> bool {
    use std::path::Component;
    !name.is_empty()
        && Path::new(name).components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isa_versions() {
        assert_eq!(isa_version("1100"), 11000);
        assert_eq!(isa_version("1151"), 11501);
        assert_eq!(isa_version("1201"), 12001);
        assert_eq!(isa_version("942"), 9402);
        assert_eq!(isa_version("90a"), 9010);
        assert_eq!(isa_version(""), 0);
    }

    #[test]
    fn temporary_directories_are_removed() {
        let folder = TempDir::new().unwrap();
        let file = folder.write("a/b.h", b"text").unwrap();
        assert_eq!(folder.read("a/b.h").unwrap(), b"text");
        drop(folder);
        assert!(!file.exists());
        assert!(
            is_contained("a/./b.h")
                && !is_contained("../b.h")
                && !is_contained("/etc/b.h")
                && !is_contained("")
        );
    }
}
