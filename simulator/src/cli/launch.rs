//! `wavesim launch`: compiled kernels, run as a launch description or the command line says.

use super::OK;
use super::execute::Execution;
use super::target::{Target, WaveSize, parse_mcpu};
use crate::loader::code_object::{self, LoadError, Wish};
use crate::loader::launch::{self, Wanted};
use crate::loader::prepared::Prepared;
use crate::loader::request::{self, Request};
use crate::memory::Memory;
use anyhow::{Context as _, bail};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Run compiled kernels: launch.json descriptions, or a code object with its arguments
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  wavesim launch vadd/launch.json --target gfx1201 --check
  wavesim launch vadd.co --grid 4 --block 64 --arg 'a:f32[256]=arange(256)' --arg 'b:f32[256]=repeat(1)' \\
      --arg 'c:f32[256]' --arg 256

An argument is [NAME:]SPEC with SPEC one of
  f32[16,4]=arange(64)   a buffer, initialised as in a text kernel's header (zeros without =)
  file:x.npy             a buffer from a file
  i32=-1, 2.5, 1000      a scalar, by value; without a type, in the parameter's size
  local:4096             so many bytes of LDS")]
pub struct LaunchArgs {
    /// launch.json files, or one code object
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Key of the launch's `code` (gfx1201, gfx1100.w64), by default the first that fits --arch and --wave; of a bundle, the processor
    #[arg(long, conflicts_with_all = ["arch", "mcpu", "wave"])]
    pub target: Option<String>,
    #[command(flatten)]
    pub machine: Target,
    #[command(flatten)]
    pub wave: WaveSize,
    /// Compare with the expected outputs; exit with 1 where they differ
    #[arg(long)]
    pub check: bool,
    /// The code object's kernel, where it has several
    #[arg(long)]
    pub kernel: Option<String>,
    /// Workgroups, X[,Y[,Z]]
    #[arg(long, value_parser = parse_dimensions)]
    pub grid: Option<Dimensions>,
    /// Work-items of a workgroup, X[,Y[,Z]]
    #[arg(long, value_parser = parse_dimensions)]
    pub block: Option<Dimensions>,
    /// An argument of the kernel, in order
    #[arg(long = "arg", value_name = "SPEC")]
    pub args: Vec<String>,
    /// Megabytes of global memory
    #[arg(long, value_name = "MB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub global_memsize: u64,
    #[command(flatten)]
    pub execution: Execution,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimensions(pub [u32; 3]);

fn parse_dimensions(text: &str) -> Result<Dimensions, String> {
    let mut out = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err("there are three dimensions: X,Y,Z".to_string());
    }
    for (slot, part) in out.iter_mut().zip(parts) {
        let value = part.trim().parse().ok().filter(|v| *v > 0);
        *slot = value.ok_or_else(|| format!("`{part}` is no positive number"))?;
    }
    Ok(Dimensions(out))
}

pub fn run(args: &LaunchArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let described = |path: &PathBuf| path.extension().is_some_and(|e| e == "json");
    let mut code = OK;
    for file in &args.files {
        let result = if described(file) { description(args, file, out) } else { object(args, file, out) };
        code = code.max(result.with_context(|| file.display().to_string())?);
    }
    Ok(code)
}

fn description(args: &LaunchArgs, file: &Path, out: &mut dyn Write) -> anyhow::Result<u8> {
    if args.kernel.is_some() || args.grid.is_some() || args.block.is_some() || !args.args.is_empty() {
        bail!("--kernel, --grid, --block and --arg go with a code object, not with a launch description");
    }
    let processor = args.machine.mcpu_name();
    let wanted =
        Wanted { target: args.target.clone().or(processor), arch: args.machine.arch(), wave: args.wave.wave };
    let mut loaded = launch::load(file, &wanted, args.global_memsize << 20, 0)?;
    let result = args.execution.run(&mut loaded.prepared, out)?;
    let mismatches = if args.check && result.is_ok() { Some(loaded.mismatches()?) } else { None };
    let code = args.execution.report(&loaded.prepared, &result, mismatches.as_deref(), out)?;
    match (&result, &mismatches) {
        _ if args.execution.json => {}
        (Ok(finished), Some(list)) if list.is_empty() => writeln!(
            out,
            "{}: ok, {1} of {1} outputs as expected; {2} wave-instructions, {3} waves, {4:.3} s",
            file.display(),
            loaded.launch.expected.len(),
            finished.stats.instructions,
            finished.stats.waves,
            finished.seconds
        )?,
        (Ok(_), Some(list)) => {
            writeln!(out, "{}: MISMATCH", file.display())?;
            for mismatch in list {
                writeln!(out, "{mismatch}")?;
            }
        }
        (Err(_), _) => eprintln!("in {}", file.display()),
        _ => {}
    }
    Ok(code)
}

fn object(args: &LaunchArgs, file: &Path, out: &mut dyn Write) -> anyhow::Result<u8> {
    if args.check {
        bail!("--check needs a launch description: a code object says nothing of its outputs");
    }
    let mut prepared = prepare(args, &super::read_input(file)?)?;
    let result = args.execution.run(&mut prepared, out)?;
    args.execution.report(&prepared, &result, None, out)
}

/// A code object's kernel with the command line's arguments.
fn prepare(args: &LaunchArgs, file: &[u8]) -> anyhow::Result<Prepared> {
    let processor = match &args.target {
        Some(name) => Some(parse_mcpu(name).map_err(anyhow::Error::msg)?),
        None => args.machine.mcpu,
    };
    let arch = args.machine.arch().or(processor.map(|p| p.arch));
    let wish = Wish { processor: processor.map(|p| p.name.to_string()), arch };
    let bytes = &code_object::open(file, &wish)?;
    let names = code_object::kernels(bytes)?;
    let kernel = match (&args.kernel, &names[..]) {
        (Some(name), _) => name,
        (None, [only]) => only,
        (None, []) => bail!("no kernel in this code object"),
        (None, many) => bail!("--kernel is needed: there are {}", many.join(", ")),
    };
    let kernel = code_object::load(bytes, kernel)?;
    if arch.is_some_and(|a| a != kernel.arch) {
        bail!(LoadError::Target { object: kernel.arch.name(), wish: wish.to_string() });
    }
    let global_bytes = args.global_memsize << 20;
    let mut list = Vec::new();
    for (index, text) in args.args.iter().enumerate() {
        list.push(request::argument(text, index, global_bytes)?);
    }
    for (index, (entry, parameter)) in list.iter_mut().zip(kernel.explicit()).enumerate() {
        // A name that nobody gave is the parameter's own.
        if let Some(name) = parameter.name.as_ref().filter(|_| entry.0 == format!("arg{index}")) {
            entry.0 = name.clone();
        }
    }
    let named = list.iter().map(|(name, _)| name.clone()).filter(|n| n.starts_with("out_")).collect();
    let request = Request {
        grid: args.grid.map_or([1; 3], |d| d.0),
        block: args.block.map_or([1; 3], |d| d.0),
        dynamic_lds: 0,
        args: list,
        outputs: named,
    };
    Ok(request.prepare(&kernel, Memory::new(global_bytes)?)?)
}
