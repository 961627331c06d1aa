//! `cargo xtask dist`: what a release consists of, for one target.

use anyhow::{Context as _, bail};
use clap::CommandFactory as _;
use clap_complete::Shell;
use sha2::{Digest as _, Sha256};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const DESCRIPTION: &str = "Functional simulator for AMD GPUs";
/// The oldest C library that Rust's own builds for Linux need; the linker may use newer symbols where the host has them.
const GLIBC: &str = "2.36";

/// Build the archive, the Debian package and the checksums of a release
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
The archive has the layout of a prefix such as /usr/local: bin, lib, include, share.
On Linux it has the libraries for HIP, OpenCL and C, too.

Examples:
  cargo xtask dist
  cargo xtask dist --page web/page/dist --deb
  cargo xtask dist --target aarch64-apple-darwin")]
pub struct Args {
    /// The folder of the results
    #[arg(long, default_value = "target/dist")]
    out: PathBuf,
    /// The target, in Rust's words; by default, this host
    #[arg(long)]
    target: Option<String>,
    /// Embed the page of the playground: the folder that cargo xtask build-web has built
    #[arg(long, value_name = "DIR")]
    page: Option<PathBuf>,
    /// Build a Debian package, too, with dpkg-deb
    #[arg(long)]
    deb: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let target = match &args.target {
        Some(target) => target.clone(),
        None => host()?,
    };
    let linux = target.contains("-linux-");
    let built = build(&root, args, linux)?;
    let name = format!("wavesim-{VERSION}-{target}");
    let out = std::path::absolute(&args.out)?;
    let stage = out.join("stage").join(&name);
    if stage.exists() {
        std::fs::remove_dir_all(&stage).with_context(|| stage.display().to_string())?;
    }
    lay_out(&root, &built, &stage, &target)?;
    if linux {
        libraries(&root, &built, &stage)?;
    }
    let mut results = vec![archive(&out, &stage, &name)?];
    if args.deb {
        results.push(debian(&out, &stage, &target)?);
    }
    for result in &results {
        println!("{}", checksum(result)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// The target of this compiler.
fn host() -> anyhow::Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(String::from).context("rustc -vV names no host")
}

fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(())
}

/// Builds the command and the libraries, and returns their folder.
fn build(root: &Path, args: &Args, linux: bool) -> anyhow::Result<PathBuf> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root).args(["build", "--release", "--locked", "-p", "wavesim", "--bin", "wavesim"]);
    if linux {
        cargo.args(["-p", "wavesim-capi", "-p", "wavesim-hip", "-p", "wavesim-opencl", "--lib"]);
    }
    let mut folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    if let Some(target) = &args.target {
        cargo.args(["--target", target]);
        folder.push(target);
    }
    if let Some(page) = &args.page {
        cargo.env("WAVESIM_PAGE", page.canonicalize().with_context(|| page.display().to_string())?);
    }
    succeed(&mut cargo)?;
    Ok(folder.join("release"))
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::copy(from, to).with_context(|| format!("{} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Places the command, its manual pages and completions, the documents and the examples below `stage`.
fn lay_out(root: &Path, built: &Path, stage: &Path, target: &str) -> anyhow::Result<()> {
    let program = if target.contains("windows") { "wavesim.exe" } else { "wavesim" };
    copy(&built.join(program), &stage.join("bin").join(program))?;
    let share = stage.join("share");
    let manual = share.join("man/man1");
    std::fs::create_dir_all(&manual)?;
    clap_mangen::generate_to(wavesim::cli::Cli::command(), &manual)?;
    for (shell, file) in [
        (Shell::Bash, "bash-completion/completions/wavesim"),
        (Shell::Zsh, "zsh/site-functions/_wavesim"),
        (Shell::Fish, "fish/vendor_completions.d/wavesim.fish"),
        (Shell::Elvish, "elvish/lib/wavesim.elv"),
        // PowerShell searches no folder: a profile names the file.
        (Shell::PowerShell, "powershell/wavesim.ps1"),
    ] {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut wavesim::cli::Cli::command(), "wavesim", &mut script);
        write(&share.join(file), &script)?;
    }
    let documents = share.join("doc/wavesim");
    for file in ["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&root.join(file), &documents.join(file))?;
    }
    for folder in ["docs", "examples"] {
        for file in tracked(root, folder)? {
            copy(&root.join(&file), &documents.join(&file))?;
        }
    }
    Ok(())
}

/// The files of the repository in a folder.
fn tracked(root: &Path, folder: &str) -> anyhow::Result<Vec<PathBuf>> {
    let output =
        Command::new("git").current_dir(root).args(["ls-files", "-z", folder]).output().context("git")?;
    let list = String::from_utf8(output.stdout)?;
    let files: Vec<PathBuf> = list.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect();
    if files.is_empty() {
        bail!("git lists no files in {folder}");
    }
    Ok(files)
}

/// Places the libraries with the scripts that users install them with.
fn libraries(root: &Path, built: &Path, stage: &Path) -> anyhow::Result<()> {
    for (script, library, folder) in [
        ("install-c-library.sh", "libwavesim_capi.so", ""),
        ("install-hip-library.sh", "libamdhip64.so", "lib/wavesim/hip"),
        ("install-opencl-library.sh", "libwavesim_opencl.so", "lib/wavesim/opencl"),
    ] {
        let mut command = Command::new(root.join("scripts").join(script));
        command.arg(stage.join(folder)).arg("--library").arg(built.join(library));
        command.stdout(std::process::Stdio::null());
        succeed(&mut command)?;
    }
    // These two name the folder of the installation, which only a user knows.
    let configuration = stage.join("lib/pkgconfig/wavesim.pc");
    let text = std::fs::read_to_string(&configuration)?;
    let prefix = format!("prefix={}/", stage.display());
    write(&configuration, text.replace(&prefix, "prefix=${pcfiledir}/../..").as_bytes())?;
    std::fs::remove_file(stage.join("lib/wavesim/opencl/wavesim.icd"))?;
    Ok(())
}

/// Writes a file by renaming a complete one.
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    wavesim_files::write(path, |out| out.write_all(bytes)).with_context(|| path.display().to_string())
}

/// Packs a staged tree: equal trees give equal bytes.
fn archive(out: &Path, stage: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let path = out.join(format!("{name}.tar.gz"));
    wavesim_files::write(&path, |file| {
        let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(file, flate2::Compression::best()));
        archive.mode(tar::HeaderMode::Deterministic);
        archive.follow_symlinks(false);
        for file in sorted(stage)? {
            let inside = file.strip_prefix(stage).map_err(std::io::Error::other)?;
            archive.append_path_with_name(&file, Path::new(name).join(inside))?;
        }
        archive.into_inner()?.finish()?.flush()
    })
    .with_context(|| path.display().to_string())?;
    Ok(path)
}

/// All files and links below a folder.
fn sorted(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Builds the Debian package of a staged tree.
fn debian(out: &Path, stage: &Path, target: &str) -> anyhow::Result<PathBuf> {
    let architecture = match target.split('-').next() {
        Some("x86_64") => "amd64",
        Some("aarch64") => "arm64",
        _ => bail!("--deb: no name of Debian is known for {target}"),
    };
    let tree = out.join("stage").join(format!("debian-{target}"));
    if tree.exists() {
        std::fs::remove_dir_all(&tree)?;
    }
    let mut size = 0;
    for file in sorted(stage)? {
        let to = tree.join("usr").join(debian_path(file.strip_prefix(stage)?));
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder)?;
        }
        if file.is_symlink() {
            #[cfg(unix)]
            std::os::unix::fs::symlink(std::fs::read_link(&file)?, &to)?;
        } else {
            size += std::fs::metadata(&file)?.len();
            match to.starts_with(tree.join("usr/share/man")) {
                true => compress(&file, &to)?,
                false => copy(&file, &to)?,
            }
        }
    }
    let control = format!(
        "Package: wavesim\nVersion: {VERSION}\nArchitecture: {architecture}\nMaintainer: the developers of wavesim\n\
         Installed-Size: {}\nDepends: libc6 (>= {GLIBC}), libgcc-s1\nSection: devel\nPriority: optional\n\
         Description: {DESCRIPTION}\n Runs, checks and debugs GPU kernels without a GPU.\n",
        size / 1024
    );
    write(&tree.join("DEBIAN/control"), control.as_bytes())?;
    let licence = std::fs::read_to_string(stage.join("share/doc/wavesim/LICENSE-MIT"))?;
    let copyright = format!(
        "{licence}\nAlternatively, the Apache License, Version 2.0: /usr/share/common-licenses/Apache-2.0\n"
    );
    write(&tree.join("usr/share/doc/wavesim/copyright"), copyright.as_bytes())?;
    let path = out.join(format!("wavesim_{VERSION}_{architecture}.deb"));
    let mut command = Command::new("dpkg-deb");
    command.args(["--root-owner-group", "--build"]).arg(&tree).arg(&path).stdout(std::process::Stdio::null());
    succeed(&mut command).context("--deb needs dpkg-deb")?;
    Ok(path)
}

/// Where Debian's programs look for a file of the archive.
fn debian_path(file: &Path) -> PathBuf {
    match file.strip_prefix("share/zsh/site-functions") {
        Ok(name) => Path::new("share/zsh/vendor-completions").join(name),
        Err(_) => file.to_path_buf(),
    }
}

/// Compresses a file to `TO.gz`: equal files give equal bytes.
fn compress(from: &Path, to: &Path) -> anyhow::Result<()> {
    let text = std::fs::read(from)?;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, &text)?;
    let mut path = to.as_os_str().to_owned();
    path.push(".gz");
    write(Path::new(&path), &encoder.finish()?)
}

/// Writes the checksum of a file beside it, in the form that `sha256sum --check` reads.
fn checksum(path: &Path) -> anyhow::Result<String> {
    let digest = Sha256::digest(std::fs::read(path)?);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let line = format!("{hex}  {name}");
    let mut beside = path.as_os_str().to_owned();
    beside.push(".sha256");
    write(Path::new(&beside), format!("{line}\n").as_bytes())?;
    Ok(line)
}
