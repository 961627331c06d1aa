//! `cargo xtask build-web` and `test-web`: the playground.

use crate::{shell, wasm};
use anyhow::{Context as _, bail};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, Stdio};

/// Build the playground: the engine as a WebAssembly module, and the page around it, as static files in web/page/dist
///
/// It needs node with npm, and the target wasm32-unknown-unknown (cargo xtask build-wasm --help). $WASM_BINDGEN is the
/// command wasm-bindgen, of the version in web/Cargo.lock; by default, it is installed below web/target. $WASM_OPT is
/// wasm-opt of binaryen, if it is not on the search path.
#[derive(Debug, clap::Args)]
pub struct BuildArgs {}

/// Test the playground in Chromium
///
/// It needs node with npm, and Chromium (Debian: the package chromium; $CHROMIUM names another); otherwise it is skipped.
/// Screenshots are stored in web/page/shots.
#[derive(Debug, clap::Args)]
pub struct TestArgs {
    /// Without WebAssembly: the page with `wavesim serve`, and only the first tests
    #[arg(long)]
    native: bool,
    /// The binary
    #[arg(long, value_name = "FILE", default_value = "target/release/wavesim")]
    wavesim: PathBuf,
}

/// WebAssembly's features that wasm-opt may use.
const FEATURES: [&str; 7] = [
    "simd",
    "bulk-memory",
    "nontrapping-float-to-int",
    "sign-ext",
    "mutable-globals",
    "reference-types",
    "multivalue",
];

pub fn build() -> anyhow::Result<ExitCode> {
    let root = shell::root();
    let library = wasm::Library::find()?.context(wasm::MISSING)?;
    let target = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(_) => shell::target(),
        None => root.join("web/target"),
    };
    let mut cargo = shell::cargo_in_root();
    cargo.args(["build", "--manifest-path", "web/Cargo.toml", "--release", "--target", wasm::TARGET]);
    // All browsers support SIMD since 2023. It makes lane loops some three times as fast.
    cargo.env("CARGO_TARGET_DIR", &target).env("RUSTFLAGS", "-C target-feature=+simd128");
    library.add_to(&mut cargo);
    shell::run(&mut cargo)?;
    let module = target.join(wasm::TARGET).join("release/wavesim_web.wasm");

    let bindgen = bindgen(&target)?;
    let mut bind = shell::command(bindgen);
    bind.arg(module).args(["--target", "web", "--omit-default-module-path", "--out-dir", "web/page/pkg"]);
    shell::run(bind.args(["--remove-name-section", "--remove-producers-section"]))?;

    // wasm-opt makes the module a tenth smaller, if binaryen is installed (Debian and npm: the package binaryen).
    let given = std::env::var_os("WASM_OPT").filter(|command| !command.is_empty());
    match given.or_else(|| shell::is_installed("wasm-opt").then(|| "wasm-opt".into())) {
        Some(command) => {
            let (module, new) = ("web/page/pkg/wavesim_web_bg.wasm", "web/page/pkg/optimised.wasm");
            let features = FEATURES.map(|feature| format!("--enable-{feature}"));
            shell::run(shell::command(command).arg("-Os").args(features).args([module, "-o", new]))?;
            std::fs::rename(root.join(new), root.join(module)).context(module)?;
        }
        None => println!("without wasm-opt (WASM_OPT), the module is a tenth larger than it could be"),
    }

    let page = root.join("web/page");
    let in_page = |program: &str| {
        let mut command = shell::command(program);
        command.current_dir(&page);
        command
    };
    if !page.join("node_modules").is_dir() {
        shell::run(in_page("npm").args(["ci", "--no-audit", "--no-fund"]))?;
    }
    shell::run(in_page("node").args([
        "compress.mjs",
        "pkg/wavesim_web_bg.wasm",
        "pkg/wavesim_web.wasm.zst",
    ]))?;
    shell::run(in_page("npm").args(["run", "--silent", "build"]))?;
    print_sizes(&page)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the command wasm-bindgen of the version that the module is built with.
fn bindgen(target: &Path) -> anyhow::Result<PathBuf> {
    let lock = shell::read(&shell::root().join("web/Cargo.lock"))?;
    let lines = lock.lines().skip_while(|line| *line != "name = \"wasm-bindgen\"");
    let version = lines.skip(1).find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    let version = version.context("web/Cargo.lock has no wasm-bindgen")?;
    let given = std::env::var_os("WASM_BINDGEN").filter(|command| !command.is_empty());
    let folder = target.join("wasm-bindgen");
    let bindgen = given.clone().map_or_else(|| folder.join("bin/wasm-bindgen"), PathBuf::from);
    let installed = shell::command(&bindgen).arg("--version").output();
    if installed.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(version)) {
        return Ok(bindgen);
    }
    if given.is_some() {
        bail!("{} is not version {version}", bindgen.display());
    }
    let mut cargo = shell::cargo_in_root();
    cargo.args([
        "install",
        "wasm-bindgen-cli",
        "--bin",
        "wasm-bindgen",
        "--quiet",
        "--version",
        version,
        "--root",
    ]);
    shell::run(cargo.arg(&folder))?;
    Ok(bindgen)
}

/// Prints the sizes of the page's files, which servers compress.
fn print_sizes(page: &Path) -> anyhow::Result<()> {
    let mut folders = vec![page.join("dist")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in shell::files(&folder, |_| true)? {
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    let mut total = 0;
    for file in files {
        let size = shell::output(shell::command("gzip").args(["-9", "-c"]).arg(&file))?.len();
        total += size;
        let name = file.strip_prefix(page).unwrap_or(&file);
        println!("{:9} bytes, {size:8} compressed: {}", std::fs::metadata(&file)?.len(), name.display());
    }
    println!("web/page/dist: {total} bytes compressed (gzip)");
    Ok(())
}

pub fn test(args: &TestArgs) -> anyhow::Result<ExitCode> {
    if !shell::is_installed("npm") {
        return shell::skipped("npm is not installed");
    }
    let chromium = std::env::var_os("CHROMIUM").is_some_and(|command| !command.is_empty());
    if !chromium
        && !["chromium", "chromium-browser", "google-chrome"].iter().any(|name| shell::is_installed(name))
    {
        return shell::skipped("Chromium is not installed");
    }
    let root = shell::root();
    let wavesim = root.join(&args.wavesim);
    if !wavesim.is_file() {
        bail!("{} is missing: cargo build --release -p wavesim, or --wavesim FILE", wavesim.display());
    }
    let npm = |arguments: &[&str]| {
        let mut npm = shell::command("npm");
        npm.args(["--prefix", "web/page"]).args(arguments);
        npm
    };
    if !root.join("web/page/node_modules").is_dir()
        && !npm(&["ci", "--no-audit", "--no-fund", "--silent"]).status().is_ok_and(|status| status.success())
    {
        return shell::skipped("npm cannot install the dependencies of the page");
    }
    let scratch = shell::Scratch::new("web")?;
    let (object, two, source) = (scratch.file("scale.co"), scratch.file("two.co"), scratch.file("two.s"));
    shell::run(shell::command(&wavesim).args(["asm", "examples/scale.s", "-o"]).arg(&object))?;
    shell::write(&source, &two_kernels(&shell::read(&root.join("examples/scale.s"))?))?;
    shell::run(shell::command(&wavesim).arg("asm").arg(&source).arg("-o").arg(&two))?;
    let tests = |arguments: &[&str]| {
        let mut node = shell::command("node");
        node.arg("web/page/test/run.mjs").args(arguments).env("OBJECT", &object).env("OBJECTS", &two);
        node
    };
    if !args.native {
        build()?;
        shell::run(&mut tests(&[]))?;
    }
    let built = npm(&["run", "--silent", "build:native"]).output().context("npm")?;
    if !built.status.success() {
        bail!("npm run build:native: {}", String::from_utf8_lossy(&built.stderr));
    }
    let mut serve = shell::command(&wavesim);
    serve
        .args(["serve", "--port", "0", "--page", "web/page/dist-native", "--links"])
        .arg(scratch.file("links"));
    let mut server = Server(serve.stderr(Stdio::piped()).spawn().context("wavesim serve")?);
    let url = server.url()?;
    let smoke: &[&str] = if args.native { &["--smoke"] } else { &[] };
    shell::run(tests(smoke).args(["--url", &url]))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the text of a file with two kernels of the same code.
fn two_kernels(text: &str) -> String {
    let other: String = text
        .lines()
        .skip_while(|line| !line.starts_with("kernel "))
        .map(|line| word_replaced(&word_replaced(line, "scale", "other"), "done", "finished") + "\n")
        .collect();
    format!("{text}{other}")
}

/// Replaces the first occurrence of a whole word.
fn word_replaced(line: &str, word: &str, by: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let found = line
        .match_indices(word)
        .find(|(at, _)| !line[..*at].ends_with(is_part) && !line[at + word.len()..].starts_with(is_part));
    found.map_or_else(
        || line.to_string(),
        |(at, _)| format!("{}{by}{}", &line[..at], &line[at + word.len()..]),
    )
}

/// A server, which ends with the value.
struct Server(Child);

impl Server {
    /// Returns the address that the server prints.
    fn url(&mut self) -> anyhow::Result<String> {
        let output = self.0.stderr.take().context("no output")?;
        let (mut lines, mut seen) = (BufReader::new(output).lines(), String::new());
        for line in lines.by_ref() {
            let line = line?;
            let url = line.split_once("serving http").and_then(|(_, rest)| rest.split(' ').next());
            if let Some(rest) = url {
                let url = format!("http{rest}");
                // What the server prints later must not block it.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(url);
            }
            seen += &line;
        }
        bail!("wavesim serve has no address: {seen}")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
