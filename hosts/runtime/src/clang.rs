//! The installed clang, for hosts whose programs are compiled while they run: OpenCL, `hiprtc`.
//!
//! Kernels need the functions of their language. They are in the device libraries of ROCm, or for OpenCL in libclc.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Compilers, the first of which that is there is used, unless `WAVESIM_CLANG` names one.
const NAMES: [&str; 5] = ["clang-19", "clang-20", "clang-21", "clang-18", "clang"];
/// Folders with the device libraries of ROCm, unless `WAVESIM_DEVICE_LIBS` names one.
const ROCM: [&str; 5] = [
    "/opt/rocm/amdgcn/bitcode",
    "/usr/lib/llvm-17/lib/clang/17/amdgcn/bitcode",
    "/usr/lib/llvm-18/lib/clang/18/amdgcn/bitcode",
    "/usr/lib/llvm-19/lib/clang/19/amdgcn/bitcode",
    "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode",
];
/// libclc for AMD GPUs.
const LIBCLC: [&str; 3] = [
    "/usr/lib/clc/amdgcn--amdhsa.bc",
    "/usr/share/clc/amdgcn--amdhsa.bc",
    "/usr/lib64/clc/amdgcn--amdhsa.bc",
];
/// What kernels are compiled for.
pub const TARGET: &str = "amdgcn-amd-amdhsa";

/// The installed clang.
#[derive(Debug, Clone)]
pub struct Clang {
    program: String,
}

/// Where the functions of kernel languages are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Libraries {
    /// A folder with the device libraries of ROCm.
    Rocm(PathBuf),
    /// libclc: OpenCL only.
    Libclc(PathBuf),
}

/// A run of clang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// It has done what it should.
    pub success: bool,
    /// Its messages. File names are those of the folder.
    pub log: String,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// What [`Clang::link`] makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linked {
    /// A code object.
    CodeObject,
    /// A code object in which something may be missing: to look at.
    Incomplete,
    /// LLVM bitcode, to be linked with more.
    Bitcode,
}

impl Clang {
    /// Looks for it, once.
    pub fn find() -> Result<&'static Clang, &'static str> {
        static FOUND: OnceLock<Result<Clang, String>> = OnceLock::new();
        let look = || {
            let given = variable("WAVESIM_CLANG");
            let names: Vec<&str> = given.as_deref().map_or(NAMES.to_vec(), |name| vec![name]);
            let works = |name: &&&str| {
                let mut command = Command::new(name);
                command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                command.status().is_ok_and(|status| status.success())
            };
            let message = || format!("there is no compiler: {} (WAVESIM_CLANG names one)", names.join(", "));
            let found = names.iter().find(works).ok_or_else(message)?;
            Ok(Clang { program: found.to_string() })
        };
        FOUND.get_or_init(look).as_ref().map_err(String::as_str)
    }

    /// Runs it in the folder of the process.
    pub fn run<S: AsRef<OsStr>>(
        &self,
        folder: &Folder,
        arguments: impl IntoIterator<Item = S>,
    ) -> io::Result<Run> {
        let mut command = Command::new(&self.program);
        let output = command.args(arguments).stdin(Stdio::null()).output()?;
        let log =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        let own = format!("{}/", folder.0.display());
        Ok(Run { success: output.status.success(), log: log.replace(&own, "") })
    }

    /// Links bitcode for a processor: the result, if there is one, and clang's messages.
    pub fn link(
        &self,
        processor: &str,
        inputs: &[Vec<u8>],
        to: Linked,
    ) -> io::Result<(Option<Vec<u8>>, String)> {
        let folder = Folder::new()?;
        let out = folder.path("linked.out").display().to_string();
        let mut arguments: Vec<String> = ["-target", TARGET, "-nogpulib"].map(String::from).to_vec();
        arguments.extend([format!("-mcpu={processor}"), "-o".to_string(), out]);
        arguments.extend(match to {
            Linked::CodeObject => ["-flto", "-O2"].map(String::from).to_vec(),
            // Undefined symbols become warnings.
            Linked::Incomplete => ["-flto", "-O2", "-Wl,--noinhibit-exec"].map(String::from).to_vec(),
            Linked::Bitcode => {
                ["-c", "-emit-llvm", "-Xclang", "-disable-llvm-passes"].map(String::from).to_vec()
            }
        });
        for (number, input) in inputs.iter().enumerate() {
            let file = folder.write(&format!("{number}.bc"), input)?.display().to_string();
            // One input of a compilation; the others are linked into it.
            if to == Linked::Bitcode && number > 0 {
                arguments.extend(["-Xclang", "-mlink-bitcode-file", "-Xclang"].map(String::from));
            }
            arguments.push(file);
        }
        let run = self.run(&folder, &arguments)?;
        let linked = if run.success { Some(folder.read("linked.out")?) } else { None };
        Ok((linked, run.log))
    }
}

impl Libraries {
    /// Those that are installed; ROCm's first.
    pub fn find() -> Option<Libraries> {
        let known = |folder: &PathBuf| folder.join("ockl.bc").is_file();
        let given = variable("WAVESIM_DEVICE_LIBS").map(PathBuf::from);
        // A wrong name is clang's to complain about.
        let rocm = given.or_else(|| ROCM.iter().map(PathBuf::from).find(known));
        let libclc = || LIBCLC.iter().map(PathBuf::from).find(|file| file.is_file());
        rocm.map(Libraries::Rocm).or_else(|| libclc().map(Libraries::Libclc))
    }

    /// Options that let a processor's code use them. ROCm's have a file for every processor: of a processor that is newer than
    /// they are, it is made in `folder`.
    pub fn options(&self, clang: &Clang, processor: &str, folder: &Folder) -> io::Result<Vec<String>> {
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
            return Ok(vec![format!("--rocm-device-lib-path={}", rocm.display())]);
        }
        let libraries = folder.path("libraries");
        std::fs::create_dir(&libraries)?;
        for entry in std::fs::read_dir(rocm)? {
            let entry = entry?;
            link(&entry.path(), &libraries.join(entry.file_name()))?;
        }
        let text = format!("const __constant unsigned __oclc_ISA_version = {};\n", isa_version(digits));
        let source = folder.write("isa_version.cl", text.as_bytes())?;
        let target = libraries.join(of_processor);
        let plain = ["-x", "cl", "-target", TARGET, "-nogpulib"];
        let make = plain.iter().map(OsStr::new);
        let output = [OsStr::new("-emit-llvm"), OsStr::new("-c"), source.as_os_str(), OsStr::new("-o")];
        let run = clang.run(folder, make.chain(output).chain([target.as_os_str()]))?;
        match run.success {
            true => Ok(vec![format!("--rocm-device-lib-path={}", libraries.display())]),
            false => Err(io::Error::other(run.log)),
        }
    }
}

#[cfg(unix)]
fn link(from: &Path, to: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(from, to)
}

#[cfg(not(unix))]
fn link(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::copy(from, to).map(drop)
}

/// The number by which the device libraries know a processor: `1151` is 11501, `90a` is 9010.
fn isa_version(digits: &str) -> u32 {
    let (major, rest) = digits.split_at(digits.len().saturating_sub(2));
    let digit = |at: usize| rest.get(at..at + 1).and_then(|d| u32::from_str_radix(d, 16).ok()).unwrap_or(0);
    major.parse::<u32>().unwrap_or(0) * 1000 + digit(0) * 100 + digit(1)
}

/// A folder for files of one compilation, which ends with this.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new one, which only this user can read.
    pub fn new() -> io::Result<Folder> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let base = std::env::temp_dir();
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = base.join(format!("wavesim-{}-{number}", std::process::id()));
            let mut builder = std::fs::DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            match builder.create(&path) {
                Ok(()) => return Ok(Folder(path)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// A file's path.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file. Its folders are made.
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

    /// An option by which line tables have paths in this folder without it.
    pub fn prefix_map(&self) -> String {
        format!("-fdebug-prefix-map={}/=", self.0.display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is the temporary folder's owner's to remove.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether a name stays in the folder that it is joined to: headers have names that the program chose.
pub fn is_inside(name: &str) -> bool {
    use std::path::Component;
    !name.is_empty()
        && Path::new(name).components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_processors() {
        assert_eq!(isa_version("1100"), 11000);
        assert_eq!(isa_version("1151"), 11501);
        assert_eq!(isa_version("1201"), 12001);
        assert_eq!(isa_version("942"), 9402);
        assert_eq!(isa_version("90a"), 9010);
        assert_eq!(isa_version(""), 0);
    }

    #[test]
    fn folders_end() {
        let folder = Folder::new().unwrap();
        let file = folder.write("a/b.h", b"text").unwrap();
        assert_eq!(folder.read("a/b.h").unwrap(), b"text");
        drop(folder);
        assert!(!file.exists());
        assert!(is_inside("a/./b.h") && !is_inside("../b.h") && !is_inside("/etc/b.h") && !is_inside(""));
    }
}
