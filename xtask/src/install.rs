//! `cargo xtask install-c-library`, `install-hip-library`, `install-opencl-library`.

use crate::shell;
use anyhow::{Context as _, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Build the C library and install it with its header; $DESTDIR is prepended to PREFIX, for packagers
#[derive(Debug, clap::Args)]
pub struct CArgs {
    /// The prefix, of which lib, lib/pkgconfig and include are used
    #[arg(default_value = "/usr/local")]
    prefix: PathBuf,
    #[command(flatten)]
    library: Library,
}

/// Build the library of a host API and install it, for programs that use the API
#[derive(Debug, clap::Args)]
pub struct HostArgs {
    /// The folder of the library: for LD_LIBRARY_PATH (HIP), or OCL_ICD_VENDORS (OpenCL)
    folder: PathBuf,
    #[command(flatten)]
    library: Library,
}

/// The library to install.
#[derive(Debug, Default, clap::Args)]
pub struct Library {
    /// The profile of the build; dev is the unoptimised one
    #[arg(long, default_value = "release")]
    profile: String,
    /// An existing build of the library
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
}

impl Library {
    /// Returns the library, one of the names, building it if necessary.
    fn find(&self, package: &str, names: &[&str]) -> anyhow::Result<PathBuf> {
        if let Some(library) = &self.library {
            if !library.is_file() {
                bail!("there is no library {}", library.display());
            }
            return Ok(library.clone());
        }
        shell::run(shell::cargo_in_root().args([
            "build",
            "--quiet",
            "--profile",
            &self.profile,
            "-p",
            package,
        ]))?;
        let folder = shell::built(&self.profile);
        let found = names.iter().map(|name| folder.join(name)).find(|file| file.is_file());
        found.with_context(|| format!("there is no library in {}", folder.display()))
    }
}

pub fn c_library(args: &CArgs) -> anyhow::Result<ExitCode> {
    let prefix = std::path::absolute(&args.prefix)?;
    let library = args.library.find("wavesim-capi", &["libwavesim_capi.so", "libwavesim_capi.dylib"])?;
    let root = match std::env::var_os("DESTDIR") {
        Some(destination) => Path::new(&destination).join(prefix.strip_prefix("/").unwrap_or(&prefix)),
        None => prefix.clone(),
    };
    let name = library.file_name().context("the library has no name")?;
    let (include, lib) = (root.join("include"), root.join("lib"));
    let description = lib.join("pkgconfig/wavesim.pc");
    shell::create(&include)?;
    shell::create(&lib.join("pkgconfig"))?;
    shell::copy(&shell::root().join("capi/include/wavesim.h"), &include.join("wavesim.h"))?;
    replace(&library, &lib.join(name))?;
    let text = format!(
        "prefix={}\nName: wavesim\nDescription: Functional simulator for AMD GPUs\nVersion: {}\n\
         Cflags: -I${{prefix}}/include\nLibs: -L${{prefix}}/lib -lwavesim_capi\n",
        prefix.display(),
        env!("CARGO_PKG_VERSION"),
    );
    shell::write(&description, &text)?;
    println!(
        "installed {}, {}, {}",
        include.join("wavesim.h").display(),
        lib.join(name).display(),
        description.display()
    );
    Ok(ExitCode::SUCCESS)
}

pub fn hip_library(args: &HostArgs) -> anyhow::Result<ExitCode> {
    let name = "libamdhip64.so";
    let folder = args.install("wavesim-hip", name)?;
    // The library also is libhiprtc. Each ROCm release has its own names.
    let mut links = vec!["libhiprtc.so".to_string()];
    for version in [5, 6, 7] {
        links.extend(["libamdhip64", "libhiprtc"].map(|library| format!("{library}.so.{version}")));
    }
    // Libraries for profilers, whose functions it has: programs and libraries are linked to them.
    links.extend(["libroctx64", "libroctracer64"].map(|library| format!("{library}.so.4")));
    for link in links {
        let link = folder.join(link);
        let _ = std::fs::remove_file(&link);
        #[cfg(unix)]
        std::os::unix::fs::symlink(name, &link).with_context(|| link.display().to_string())?;
    }
    println!(
        "installed {}, and links for ROCm 5, 6 and 7, libhiprtc, libroctx64 and libroctracer64",
        folder.join(name).display()
    );
    Ok(ExitCode::SUCCESS)
}

pub fn opencl_library(args: &HostArgs) -> anyhow::Result<ExitCode> {
    let name = "libwavesim_opencl.so";
    let folder = args.install("wavesim-opencl", name)?;
    let (library, icd) = (folder.join(name), folder.join("wavesim.icd"));
    shell::write(&icd, &format!("{}\n", library.display()))?;
    println!("installed {} and {}", library.display(), icd.display());
    Ok(ExitCode::SUCCESS)
}

impl HostArgs {
    /// Returns arguments that build and install into a folder.
    pub fn into_folder(folder: PathBuf, library: Option<PathBuf>) -> HostArgs {
        HostArgs { folder, library: Library { profile: "release".to_string(), library } }
    }

    /// Installs the library, and returns its folder.
    fn install(&self, package: &str, name: &str) -> anyhow::Result<PathBuf> {
        let library = self.library.find(package, &[name])?;
        shell::create(&self.folder)?;
        let folder = self.folder.canonicalize()?;
        replace(&library, &folder.join(name))?;
        Ok(folder)
    }
}

/// Copies a file by rename, since programs may have mapped the old one.
fn replace(from: &Path, to: &Path) -> anyhow::Result<()> {
    let new = to.with_extension(format!("new{}", std::process::id()));
    shell::copy(from, &new)?;
    std::fs::rename(&new, to).with_context(|| to.display().to_string())
}
