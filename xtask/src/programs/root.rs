//! The root directory of the programs: unpacked packages of Debian sid, and wavesim's libraries.

use anyhow::{Context as _, bail};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The suite: llama.cpp and the current versions of ROCm's libraries are in no other.
const SUITE: &str = "sid";
/// The key of Debian's archive.
const KEY: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Packages whose place wavesim takes, or whose scripts only configure a system. apt is told that they are installed.
const PROVIDED: [(&str, &str); 3] =
    [("libamdhip64-6", ""), ("pocl-opencl-icd", "opencl-icd"), ("debconf", "debconf-2.0")];
/// Files of libraries for other targets than the default one, which rocBLAS has by the gigabyte.
const OTHER_TARGETS: [&str; 7] =
    ["*gfx8*", "*gfx90*", "*gfx94*", "*gfx10*", "*gfx1101*", "*gfx1102*", "*gfx12*"];
/// The libraries' folder in the root directory.
const LIBRARIES: &str = "wavesim";
/// Names of HIP's library: those of its releases, of hiprtc and of libraries for profilers.
const HIP_NAMES: [&str; 9] = [
    "libamdhip64.so.5",
    "libamdhip64.so.6",
    "libamdhip64.so.7",
    "libhiprtc.so",
    "libhiprtc.so.5",
    "libhiprtc.so.6",
    "libhiprtc.so.7",
    "libroctx64.so.4",
    "libroctracer64.so.4",
];
/// Libraries of ROCm 6 that programs for ROCm 7 can use, with the names of ROCm 7.
const RENAMED: [(&str, &str); 3] = [
    ("libhipblas.so.3", "libhipblas.so.2"),
    ("librocblas.so.5", "librocblas.so.4"),
    ("libhipsparse.so.4", "libhipsparse.so.1"),
];
/// Python of the suite.
const PYTHON: &str = "3.14";
/// Folders of libraries in the root directory. Debian's alternatives of BLAS and LAPACK have their own.
const LIBRARY_PATH: &str =
    "/wavesim:/usr/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu/blas:/usr/lib/x86_64-linux-gnu/lapack";
/// `hipcc`, which CuPy asks for the folders of headers, and which compiles its kernels with CUB's functions for workgroups.
const HIPCC: &str = "#!/usr/bin/python3\n\
    import os, sys\n\
    words = [word for word in sys.argv[1:] if word != '--genco']\n\
    own = ['-x', 'hip', '-O3', '--rocm-path=/usr', '--cuda-device-only', '--no-gpu-bundle-output']\n\
    own += ['--offload-arch=gfx1100', '--rocm-device-lib-path=' + os.environ['WAVESIM_DEVICE_LIBS']]\n\
    os.execv('/usr/bin/clang++-21', ['clang++-21', *own, *words])\n";

/// The folder that Debian's MIOpen was built in, where it looks for the compiler of OpenCL.
const MIOPEN_BUILD: &str = "build/reproducible-path/miopen-6.4.3+dfsg/build";

/// A root directory.
pub struct Root {
    folder: PathBuf,
}

impl Root {
    /// Opens the root directory in a folder. The inner error says what the system lacks.
    pub fn open(folder: &Path) -> anyhow::Result<Result<Root, String>> {
        for tool in ["apt-get", "dpkg-deb", "tar", "unshare", "chroot", "timeout"] {
            let found =
                Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
            if found.is_err() {
                return Ok(Err(format!("{tool} is not installed")));
            }
        }
        if !Path::new(KEY).is_file() {
            return Ok(Err(
                "the key of Debian's archive is not installed (debian-archive-keyring)".to_string()
            ));
        }
        std::fs::create_dir_all(folder)?;
        let root = Root { folder: std::fs::canonicalize(folder)? };
        for part in [
            "root/usr/lib",
            "root/usr/lib64",
            "root/usr/bin",
            "root/etc",
            "root/tmp",
            "root/proc",
            "root/dev",
            "logs",
        ] {
            std::fs::create_dir_all(root.folder.join(part))?;
        }
        for name in ["lib", "lib64", "bin"] {
            root.link(&format!("usr/{name}"), name)?;
        }
        // Programs ask for the user's home.
        std::fs::write(root.at("etc/passwd"), "root:x:0:0:root:/tmp:/bin/sh\n")?;
        Ok(Ok(root))
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.join("root").join(path)
    }

    /// Returns the programs in the root directory that match a path, in which the last name may have one `*`, in the order of
    /// their names.
    pub fn matches(&self, path: &str) -> anyhow::Result<Vec<String>> {
        let (folder, pattern) = path.rsplit_once('/').unwrap_or(("", path));
        let Some((start, end)) = pattern.split_once('*') else { return Ok(vec![path.to_string()]) };
        let directory = self.at(folder.trim_start_matches('/'));
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&directory).with_context(|| directory.display().to_string())? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.strip_prefix(start).is_some_and(|rest| rest.ends_with(end)) {
                found.push(format!("{folder}/{name}"));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Returns the log of a run.
    pub fn log(&self, name: &str) -> PathBuf {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        self.folder.join("logs").join(name.chars().map(plain).collect::<String>() + ".log")
    }

    /// Makes `name` in the root directory a link.
    fn link(&self, to: &str, name: &str) -> anyhow::Result<()> {
        let name = self.at(name);
        if std::fs::read_link(&name).is_ok_and(|old| old == Path::new(to)) {
            return Ok(());
        }
        let _ = std::fs::remove_file(&name);
        std::os::unix::fs::symlink(to, &name).with_context(|| name.display().to_string())
    }

    /// Returns apt with a configuration of its own, so that the system's is neither used nor changed.
    fn apt(&self, program: &str) -> anyhow::Result<Command> {
        let apt = self.folder.join("apt");
        if !apt.join("sources.list").exists() {
            for part in ["lists/partial", "cache/archives/partial"] {
                std::fs::create_dir_all(apt.join(part))?;
            }
            let status: String = PROVIDED.iter().map(|(name, provides)| {
                let provides = if provides.is_empty() { String::new() } else { format!("Provides: {provides}\n") };
                format!("Package: {name}\nStatus: install ok installed\nVersion: 99\nArchitecture: amd64\n{provides}Maintainer: none <none@example.org>\nDescription: provided\n\n")
            }).collect();
            std::fs::write(apt.join("status"), status)?;
            std::fs::write(
                apt.join("sources.list"),
                format!("deb [arch=amd64 signed-by={KEY}] http://deb.debian.org/debian {SUITE} main\n"),
            )?;
            let update = self.apt("apt-get")?.args(["-qq", "update"]).output()?;
            if !update.status.success() {
                std::fs::remove_file(apt.join("sources.list"))?;
                bail!("apt-get update: {}", String::from_utf8_lossy(&update.stderr).trim());
            }
        }
        let mut command = Command::new(program);
        let setting = |name: &str, value: &str| format!("{name}={}/{value}", apt.display());
        for option in [
            setting("Dir::State::lists", "lists"),
            setting("Dir::State::status", "status"),
            setting("Dir::Cache", "cache"),
            setting("Dir::Etc::sourcelist", "sources.list"),
            "Dir::Etc::sourceparts=/dev/null".to_string(),
            "APT::Sandbox::User=".to_string() + "root",
            "APT::Architecture=amd64".to_string(),
            "Debug::NoLocking=1".to_string(),
        ] {
            command.args(["-o", &option]);
        }
        Ok(command)
    }

    /// Downloads and unpacks packages with what they depend on, unless they are there. Returns the packages with their
    /// versions.
    pub fn install(&self, packages: &[&str]) -> anyhow::Result<Vec<String>> {
        let versions = self.versions(packages)?;
        let mut download = self.apt("apt-get")?;
        download
            .args(["-qq", "install", "--download-only", "--no-install-recommends", "--yes"])
            .args(packages);
        let output = download.output()?;
        if !output.status.success() {
            bail!(
                "apt-get install {}: {}",
                packages.join(" "),
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        self.unpack(&self.folder.join("apt/cache/archives"), true)?;
        Ok(versions)
    }

    /// Returns packages with their versions in the suite.
    fn versions(&self, packages: &[&str]) -> anyhow::Result<Vec<String>> {
        let mut versions = Vec::new();
        for package in packages {
            let output = self.apt("apt-cache")?.args(["show", "--no-all-versions", package]).output()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let version = text.lines().find_map(|line| line.strip_prefix("Version: "));
            versions
                .push(format!("{package} {}", version.with_context(|| format!("{SUITE} has no {package}"))?));
        }
        Ok(versions)
    }

    /// Downloads and unpacks packages that depend on packages which wavesim provides in another version. Returns the
    /// packages with their versions.
    pub fn install_alone(&self, packages: &[&str]) -> anyhow::Result<Vec<String>> {
        let Some(first) = packages.first() else { return Ok(Vec::new()) };
        let versions = self.versions(packages)?;
        let folder = self.folder.join(format!("alone-{first}"));
        if folder.exists() {
            return Ok(versions);
        }
        let new = self.folder.join("alone.new");
        std::fs::create_dir_all(&new)?;
        let output =
            self.apt("apt-get")?.args(["-qq", "download"]).args(packages).current_dir(&new).output()?;
        if !output.status.success() {
            bail!(
                "apt-get download {}: {}",
                packages.join(" "),
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        self.unpack(&new, false)?;
        std::fs::rename(new, folder)?;
        Ok(versions)
    }

    /// Unpacks the packages in a folder and removes them. Unless apt would miss what they depend on, tells it that they are
    /// installed.
    fn unpack(&self, folder: &Path, installed: bool) -> anyhow::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "deb") {
                continue;
            }
            let mut contents =
                Command::new("dpkg-deb").arg("--fsys-tarfile").arg(&path).stdout(Stdio::piped()).spawn()?;
            let mut tar = Command::new("tar");
            tar.arg("-x").arg("-C").arg(self.folder.join("root"));
            tar.args(OTHER_TARGETS.iter().map(|files| format!("--exclude={files}")));
            let unpacked = tar.stdin(contents.stdout.take().context("dpkg-deb")?).status()?;
            if !contents.wait()?.success() || !unpacked.success() {
                bail!("{} cannot be unpacked", path.display());
            }
            if installed {
                let control = Command::new("dpkg-deb").arg("--field").arg(&path).output()?;
                let control = String::from_utf8_lossy(&control.stdout).into_owned();
                let entry = format!("{}\nStatus: install ok installed\n\n", control.trim_end());
                let mut status =
                    std::fs::File::options().append(true).open(self.folder.join("apt/status"))?;
                status.write_all(entry.as_bytes())?;
            }
            std::fs::remove_file(path)?;
        }
        Ok(())
    }

    /// Installs packages of PyPI for the suite's Python, with the system's pip.
    pub fn install_python(&self, packages: &[&str]) -> anyhow::Result<()> {
        for package in packages {
            let mark = self.folder.join(format!("python-{package}"));
            if mark.exists() {
                continue;
            }
            let mut pip = Command::new("python3");
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]);
            pip.args(["--only-binary", ":all:", "--python-version", PYTHON, "--target"])
                .arg(self.at("opt/python"));
            let output = pip.arg(package).output().context("python3")?;
            if !output.status.success() {
                bail!("pip install {package}: {}", String::from_utf8_lossy(&output.stderr).trim());
            }
            std::fs::write(mark, "")?;
        }
        Ok(())
    }

    /// Writes a selection of a file of test data: of each function, some tests of the category that takes least time.
    pub fn select(&self, from: &str, to: &str) -> anyhow::Result<()> {
        const TESTS: usize = 6;
        std::fs::create_dir_all(self.at("opt"))?;
        super::records::select_file(&self.at(from), &self.at(to), "quick", TESTS)
    }

    /// Copies a folder into the root directory.
    pub fn copy(&self, from: &Path, to: &str) -> anyhow::Result<()> {
        let to = self.at(to);
        if !from.is_dir() {
            bail!("there is no folder {}", from.display());
        }
        std::fs::create_dir_all(&to)?;
        let status = Command::new("cp").arg("-R").arg(from.join(".")).arg(&to).status().context("cp")?;
        if !status.success() {
            bail!("{} cannot be copied", from.display());
        }
        Ok(())
    }

    /// Puts wavesim's libraries into the root directory. Without a folder that has them, builds them.
    pub fn install_libraries(&self, folder: Option<&Path>) -> anyhow::Result<()> {
        let folder = match folder {
            Some(folder) => folder.to_path_buf(),
            None => {
                let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
                let build = ["build", "--release", "--quiet", "-p", "wavesim-hip", "-p", "wavesim-opencl"];
                if !Command::new(cargo).args(build).status()?.success() {
                    bail!("the libraries cannot be built");
                }
                let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
                PathBuf::from(target).join("release")
            }
        };
        std::fs::create_dir_all(self.at(LIBRARIES))?;
        for name in ["libamdhip64.so", "libwavesim_opencl.so"] {
            let (from, to) = (folder.join(name), self.at(LIBRARIES).join(name));
            // Not in place: a program that still runs has mapped the file.
            let _ = std::fs::remove_file(&to);
            std::fs::copy(&from, to).with_context(|| from.display().to_string())?;
        }
        for name in HIP_NAMES {
            self.link("libamdhip64.so", &format!("{LIBRARIES}/{name}"))?;
        }
        for (name, old) in RENAMED {
            self.link(&format!("/usr/lib/x86_64-linux-gnu/{old}"), &format!("{LIBRARIES}/{name}"))?;
        }
        std::fs::write(self.at(LIBRARIES).join("wavesim.icd"), "/wavesim/libwavesim_opencl.so\n")?;
        Ok(())
    }

    /// Installs what hiprtc and OpenCL need for compilations: clang, and headers and libraries of ROCm.
    pub fn install_compiler(&self) -> anyhow::Result<()> {
        self.install(&[
            "clang-21",
            "lld-21",
            "rocm-device-libs-21",
            "libstdc++-16-dev",
            "libc6-dev",
            "python3",
        ])?;
        self.install_alone(&["libamdhip64-dev", "libhsa-runtime-dev"])?;
        let folder = self.at(MIOPEN_BUILD);
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        self.link("/usr/bin/clang-21", &format!("{MIOPEN_BUILD}/clang-21"))?;
        let hipcc = self.at("usr/bin/hipcc");
        std::fs::write(&hipcc, HIPCC)?;
        Ok(std::fs::set_permissions(hipcc, std::os::unix::fs::PermissionsExt::from_mode(0o755))?)
    }

    /// Returns whether the root directory has a file or folder.
    pub fn has(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    /// Returns a command that runs in the root directory, with more variables of the environment.
    pub fn command(&self, words: &[String], environment: &[(&str, &str)]) -> Command {
        let mut command = Command::new("unshare");
        // Mounts and a root directory of its own are the privileges of a user namespace's administrator.
        let is_root =
            std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
        if !is_root {
            command.arg("--map-root-user");
        }
        command.args(["--mount", "--propagation", "private", "sh", "-c"]);
        command.arg(
            "mount --rbind /proc \"$0/proc\" && mount --rbind /dev \"$0/dev\" && exec chroot \"$0\" \"$@\"",
        );
        command.arg(self.folder.join("root")).args(words);
        command.env("LD_LIBRARY_PATH", LIBRARY_PATH).env("HOME", "/tmp").env("LC_ALL", "C.UTF-8");
        command.env("OCL_ICD_VENDORS", "/wavesim").env("ROCM_HOME", "/usr").env("PYTHONPATH", "/opt/python");
        command.env("WAVESIM_ROCM_PATH", "/usr");
        command.env("WAVESIM_DEVICE_LIBS", "/usr/lib/llvm-21/lib/clang/21/amdgcn/bitcode");
        command.envs(environment.iter().copied());
        command
    }
}
