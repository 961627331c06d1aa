//! `cargo xtask test-hip`: compiles examples and tests of hipCUB and rocPRIM with clang 19, and runs them.
//!
//! Headers and device libraries come from Debian's packages (trixie, sid), which are unpacked and not installed.

use crate::{install, shell};
use anyhow::Context as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// Compile and run examples and tests of hipCUB and rocPRIM, and print a table
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder of packages and compiled programs, which are kept
    #[arg(default_value = "target/hip")]
    folder: PathBuf,
    /// An existing build of libamdhip64.so
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// Run only these programs, given by name or path
    #[arg(long, value_name = "NAME", num_args = 1..)]
    programs: Vec<String>,
    /// Instead, compile the objects in hosts/hip/tests/prebuilt, which tests link if clang is not installed
    #[arg(long)]
    prebuild: bool,
}

/// Tests whose names end with .in are templates; only their first part is compiled.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("hipCUB/examples/device", &["*"]),
    ("rocPRIM/example", &["*"]),
    (
        "rocPRIM/test/rocprim",
        &[
            "test_basic.cpp",
            "test_constant_iterator.cpp",
            "test_counting_iterator.cpp",
            "test_transform_iterator.cpp",
            "test_zip_iterator.cpp",
            "test_thread.cpp",
            "test_intrinsics.cpp",
        ],
    ),
    (
        "hipCUB/test/hipcub",
        &[
            "test_hipcub_basic.cpp",
            "test_hipcub_grid.cpp",
            "test_hipcub_vector.cpp",
            "test_hipcub_thread.cpp",
            "test_hipcub_thread_operators.cpp",
            "test_hipcub_warp_reduce.cpp",
            "test_hipcub_warp_scan.cpp",
            "test_hipcub_block_reduce.cpp",
            "test_hipcub_block_scan.cpp",
            "test_hipcub_block_shuffle.cpp",
            "test_hipcub_device_for.cpp",
            "test_hipcub_device_scan.cpp",
            "test_hipcub_device_reduce.cpp",
            "test_hipcub_device_select.cpp",
            "test_hipcub_device_partition.cpp",
            "test_hipcub_device_radix_sort.cpp.in",
        ],
    ),
];

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    for tool in ["clang-19", "ld.lld-19", "clang-offload-bundler-19", "apt-get", "dpkg"] {
        if !shell::is_installed(tool) {
            return shell::skipped(&format!("{tool} is not installed"));
        }
    }
    let folder = shell::root().join(&args.folder);
    shell::create(&folder)?;
    let folder = folder.canonicalize()?;
    if !folder.join("fetched").exists()
        && let Err(error) = fetch(&folder)
    {
        return shell::skipped(&format!("apt cannot fetch the packages: {error:#}"));
    }
    let rocm = folder.join("rocm/usr");
    let bitcode = rocm.join("lib/llvm-17/lib/clang/17/amdgcn/bitcode");
    if args.prebuild {
        return prebuild(&rocm, &bitcode);
    }
    let source_of = |name: &str| -> anyhow::Result<PathBuf> {
        let found =
            shell::files(&folder, |file| file.starts_with(&format!("{name}-")) && !file.ends_with(".gz"))?;
        found.into_iter().next().with_context(|| format!("there is no {name} in {}", folder.display()))
    };
    let suite = Suite { hipcub: source_of("hipCUB")?, rocprim: source_of("rocPRIM")?, folder, rocm, bitcode };
    suite.correct()?;
    let lib = install::HostArgs::into_folder(suite.folder.join("lib"), args.library.clone());
    install::hip_library(&lib)?;
    shell::create(&suite.folder.join("bin"))?;
    let programs = suite.programs(&args.programs)?;
    let start = Instant::now();
    shell::in_parallel(&programs, |_, source| {
        // Why it fails is in its log.
        let _ = suite.compile(source);
    });
    println!("compiled in {} s", start.elapsed().as_secs());
    let mut failed = 0;
    for source in &programs {
        let start = Instant::now();
        let result = suite.test(source)?;
        failed += usize::from(!result.starts_with("passed"));
        println!("{:<42} {:7} ms  {result}", name_of(source), start.elapsed().as_millis());
    }
    println!("{} of {} passed", programs.len() - failed, programs.len());
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns apt-get for another suite, which does not change the system.
fn apt_of(folder: &Path, suite: &str) -> anyhow::Result<Command> {
    let own = folder.join("apt").join(suite);
    let command = || {
        let mut apt = Command::new("apt-get");
        apt.arg("-qq");
        let option = |name: &str, path: PathBuf| ["-o".into(), format!("{name}={}", path.display())];
        apt.args(option("Dir::State::lists", own.join("lists")))
            .args(option("Dir::Cache", own.join("cache")));
        apt.args(option("Dir::Etc::sourcelist", own.join("sources.list")));
        apt.args(["-o", "Dir::Etc::sourceparts=/dev/null", "-o", "APT::Sandbox::User=root"]);
        apt
    };
    if !own.is_dir() {
        shell::create(&own.join("lists/partial"))?;
        shell::create(&own.join("cache/archives/partial"))?;
        let key = "signed-by=/usr/share/keyrings/debian-archive-keyring.gpg";
        let lines = ["deb", "deb-src"]
            .map(|kind| format!("{kind} [{key}] http://deb.debian.org/debian {suite} main\n"));
        shell::write(&own.join("sources.list"), &lines.concat())?;
        shell::output(command().arg("update"))?;
    }
    Ok(command())
}

/// Fetches and unpacks packages and sources.
fn fetch(folder: &Path) -> anyhow::Result<()> {
    let packages = folder.join("packages");
    shell::create(&packages)?;
    let run = |mut command: Command, words: &[&str]| shell::run(command.args(words).current_dir(&packages));
    run(apt_of(folder, "trixie")?, &["download", "rocm-device-libs-17"])?;
    let sid = ["libamdhip64-dev", "libhsa-runtime-dev", "libhipcub-dev", "librocprim-dev"];
    run(apt_of(folder, "sid")?, &[&["download"][..], &sid].concat())?;
    run(Command::new("apt-get"), &["-qq", "-o", "APT::Sandbox::User=root", "download", "libgtest-dev"])?;
    run(apt_of(folder, "sid")?, &["source", "--download-only", "--tar-only", "hipcub", "rocprim"])?;
    for package in shell::files(&packages, |name| name.ends_with(".deb"))? {
        shell::run(Command::new("dpkg").arg("-x").arg(package).arg(folder.join("rocm")))?;
    }
    for archive in shell::files(&packages, |name| name.ends_with(".orig.tar.gz"))? {
        shell::run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder))?;
    }
    shell::write(&folder.join("fetched"), "")
}

/// Compiles the objects that tests link if clang is not installed.
fn prebuild(rocm: &Path, bitcode: &Path) -> anyhow::Result<ExitCode> {
    for name in ["vector_add", "wrong", "symbols", "features"] {
        let mut clang = shell::command("clang-19");
        clang.current_dir(shell::root().join("hosts/hip/tests"));
        clang.args([
            "-x",
            "hip",
            "--offload-arch=gfx1100",
            "-O2",
            "-g1",
            "-std=c++17",
            "-w",
            "-fdeclspec",
            "-fno-ident",
        ]);
        clang.arg("-ffile-compilation-dir=.");
        if name == "features" {
            let rocm = rocm.display();
            clang
                .arg(format!("--rocm-path={rocm}"))
                .arg(format!("--rocm-device-lib-path={}", bitcode.display()));
            clang.arg(format!("-ffile-prefix-map={rocm}="));
        } else {
            clang.args(["-nogpuinc", "-nogpulib", "-include", "programs/small_hip.h"]);
        }
        clang.arg("-c").arg(format!("programs/{name}.hip")).arg("-o").arg(format!("prebuilt/{name}.o"));
        shell::run(&mut clang)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the name of a program: that of its file, up to the first dot.
fn name_of(source: &Path) -> String {
    let name = source.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_string()
}

/// The unpacked programs.
struct Suite {
    folder: PathBuf,
    hipcub: PathBuf,
    rocprim: PathBuf,
    rocm: PathBuf,
    bitcode: PathBuf,
}

impl Suite {
    /// Corrects an error of the examples: their generation of random integers does not terminate (rocm-6.4.3), since its
    /// `break` is only reached for floating-point numbers.
    fn correct(&self) -> anyhow::Result<()> {
        let file = self.hipcub.join("examples/example_utils.hpp");
        let wrong = "if HIPCUB_IF_CONSTEXPR(std::is_floating_point<K>::value)";
        let text = shell::read(&file)?;
        if text.contains(wrong) {
            let right = "if(!std::is_floating_point<K>::value) break; else";
            shell::write(&file, &text.replace(wrong, right))?;
        }
        Ok(())
    }

    /// Returns the sources of the chosen programs; of all, if there are no wishes.
    fn programs(&self, wishes: &[String]) -> anyhow::Result<Vec<PathBuf>> {
        let mut programs = Vec::new();
        for (folder, names) in PROGRAMS {
            let (project, rest) = folder.split_once('/').unwrap_or((folder, ""));
            let folder = if project == "hipCUB" { &self.hipcub } else { &self.rocprim }.join(rest);
            match names {
                ["*"] => programs.extend(shell::files(&folder, |name| name.ends_with(".cpp"))?),
                names => programs.extend(names.iter().map(|name| folder.join(name))),
            }
        }
        if wishes.is_empty() {
            return Ok(programs);
        }
        let chosen = wishes.iter().flat_map(|wish| {
            let named = programs.iter().filter(|source| name_of(source) == *wish).cloned();
            named.chain(std::path::absolute(wish).ok().filter(|path| path.is_file()))
        });
        Ok(chosen.collect())
    }

    /// Returns the compiled program, or with an extension, a file beside it.
    fn file(&self, name: &str, extension: &str) -> PathBuf {
        self.folder.join("bin").join(format!("{name}{extension}"))
    }

    /// Compiles a program, unless it is newer than its source. What a failed command writes is in the program's log.
    fn compile(&self, source: &Path) -> anyhow::Result<()> {
        let name = name_of(source);
        let (program, log) = (self.file(&name, ""), self.file(&name, ".log"));
        let time = |file: &Path| file.metadata().and_then(|data| data.modified()).ok();
        if time(&program).is_some_and(|built| Some(built) > time(source)) {
            return Ok(());
        }
        let base = source.parent().unwrap_or(Path::new("."));
        let mut sources = vec![source.to_path_buf()];
        if source.extension().is_some_and(|extension| extension == "in") {
            let first = base.join(format!("{name}.first.cpp"));
            shell::write(&first, &configured(&shell::read(source)?))?;
            sources = vec![first];
        }
        // Two tests have several sources.
        if name.ends_with("_basic") {
            sources.extend(shell::files(&base.join("detail"), |name| name.ends_with(".cpp"))?);
        }
        let mut objects = Vec::new();
        for file in &sources {
            let object =
                self.file(&name, &format!(".{}.o", file.file_name().unwrap_or_default().to_string_lossy()));
            let mut clang = shell::command("clang-19");
            clang.args(["-x", "hip", "--offload-arch=gfx1100", "-O2", "-std=c++17", "-w"]);
            clang.args(["-include", "hip/hip_runtime.h"]);
            clang.arg(format!("--rocm-path={}", self.rocm.display()));
            clang.arg(format!("--rocm-device-lib-path={}", self.bitcode.display()));
            let above = base.parent().unwrap_or(base);
            for include in [&self.rocm.join("include"), base, above, &self.hipcub.join("test/hipcub")] {
                clang.arg("-I").arg(include);
            }
            logged(clang.arg("-c").arg(file).arg("-o").arg(&object), &log)?;
            objects.push(object);
        }
        let mut link = shell::command("c++");
        link.args(&objects).arg("-L").arg(self.folder.join("lib")).arg("-lamdhip64");
        link.arg("-L").arg(self.rocm.join("lib/x86_64-linux-gnu"));
        link.args(["-lgtest", "-lgtest_main", "-lpthread", "-o"]).arg(&program);
        logged(&mut link, &log)?;
        for object in objects {
            std::fs::remove_file(&object).with_context(|| object.display().to_string())?;
        }
        Ok(())
    }

    /// Runs a program, and returns its result.
    fn test(&self, source: &Path) -> anyhow::Result<String> {
        let name = name_of(source);
        let (program, log) = (self.file(&name, ""), self.file(&name, ".log"));
        if !program.is_file() {
            return Ok(format!("not compiled: {}", log.display()));
        }
        let mut run = shell::command("timeout");
        run.arg("1800").arg(&program).env("LD_LIBRARY_PATH", self.folder.join("lib"));
        // Tests of large sizes and indices have arrays of a billion elements and more; sorts of 128-bit keys take minutes.
        run.env("GTEST_FILTER", "-*Large*:*Over4G*:Id57/*:Id58/*");
        let ran = logged(&mut run, &log);
        let bytes = std::fs::read(&log).with_context(|| log.display().to_string())?;
        let text = String::from_utf8_lossy(&bytes);
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        // An error of rocPRIM (rocm-6.4.3): its second kernel has four times as many workgroups as its buffers have room
        // for.
        if name == "example_temporary_storage" && text.contains("just beyond the end of hipMalloc") {
            return Ok("passed (its accesses beyond its buffers are reported)".to_string());
        }
        if let Err(error) = ran {
            return Ok(format!("failed ({error}): {}", log.display()));
        }
        if words.any(|word| word.starts_with("FAIL")) {
            return Ok(format!("failed: {}", log.display()));
        }
        let tests = text.lines().find_map(|line| line.strip_prefix("[  PASSED  ] ")?.strip_suffix('.'));
        Ok(tests.map_or_else(|| "passed".to_string(), |tests| format!("passed ({tests})")))
    }
}

/// Returns a template of CMake with all its options off.
fn configured(text: &str) -> String {
    let line = |line: &str| match line.split_once("#cmakedefine") {
        Some((before, rest)) => {
            let is_name = |c: &char| c.is_ascii_uppercase() || *c == '_';
            let name: String = rest.trim_start().chars().take_while(is_name).collect();
            format!("{before}#define {name} 0\n")
        }
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Runs a command with its output in a file.
fn logged(command: &mut Command, log: &Path) -> anyhow::Result<()> {
    let file = std::fs::File::create(log).with_context(|| log.display().to_string())?;
    let status = command.stdout(file.try_clone()?).stderr(Stdio::from(file)).status()?;
    anyhow::ensure!(status.success(), "{status}");
    Ok(())
}
