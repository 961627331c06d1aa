//! `cargo xtask installers`: the script and the Homebrew formula that install the archives of `cargo xtask dist`.

use anyhow::{Context as _, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Write install.sh and wavesim.rb for the archives of a release
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder with the archives' checksums, and of the results
    #[arg(long, default_value = "target/dist")]
    dist: PathBuf,
    /// The URL of the folder from which users load the archives
    #[arg(long)]
    url: String,
    /// The URL of the project
    #[arg(long)]
    homepage: String,
}

/// A system with an archive: the name of the target, what `uname -s` and `uname -m` print, and Homebrew's words.
struct System {
    target: &'static str,
    uname: &'static str,
    homebrew: [&'static str; 2],
}

const SYSTEMS: [System; 4] = [
    System { target: "x86_64-unknown-linux-gnu", uname: "Linux-x86_64", homebrew: ["on_linux", "on_intel"] },
    System {
        target: "aarch64-unknown-linux-gnu",
        uname: "Linux-aarch64 | Linux-arm64",
        homebrew: ["on_linux", "on_arm"],
    },
    System { target: "x86_64-apple-darwin", uname: "Darwin-x86_64", homebrew: ["on_macos", "on_intel"] },
    System { target: "aarch64-apple-darwin", uname: "Darwin-arm64", homebrew: ["on_macos", "on_arm"] },
];

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (mut shell, mut ruby) = (String::new(), String::new());
    for system in &SYSTEMS {
        let archive = format!("wavesim-{VERSION}-{}.tar.gz", system.target);
        let file = args.dist.join(format!("{archive}.sha256"));
        let Ok(line) = std::fs::read_to_string(&file) else {
            eprintln!("no archive for {}", system.target);
            continue;
        };
        let sum = line.split(' ').next().unwrap_or_default();
        if sum.len() != 64 || !sum.bytes().all(|b| b.is_ascii_hexdigit()) {
            bail!("{}: not a checksum: {line}", file.display());
        }
        shell += &format!("    {}) target={} sum={sum} ;;\n", system.uname, system.target);
        let [os, cpu] = system.homebrew;
        let url = format!("{}/{archive}", args.url);
        ruby += &format!(
            "  {os} do\n    {cpu} do\n      url \"{url}\"\n      sha256 \"{sum}\"\n    end\n  end\n\n"
        );
    }
    if shell.is_empty() {
        bail!("{}: no checksums of archives of version {VERSION}", args.dist.display());
    }
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    for (name, cases) in [("install.sh", shell.trim_end()), ("wavesim.rb", ruby.trim_end())] {
        let template = packaging.join(format!("{name}.in"));
        let text = std::fs::read_to_string(&template).with_context(|| template.display().to_string())?;
        let text = text
            .replace("@CASES@", &if name == "wavesim.rb" { format!("{cases}\n") } else { cases.to_string() })
            .replace("@VERSION@", VERSION)
            .replace("@URL@", &args.url)
            .replace("@HOMEPAGE@", &args.homepage);
        let path = args.dist.join(name);
        wavesim_files::write(&path, |out| out.write_all(text.as_bytes()))
            .with_context(|| path.display().to_string())?;
        println!("{}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}
