//! `wavesim prove`: asks whether two pieces of machine code are equal for all inputs.

use super::input::FileArgs;
use super::target::{Target, WaveSize};
use anyhow::{Context as _, bail};
use object::{Object, ObjectSection, ObjectSymbol};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wavesim_asm::error::suggest;
use wavesim_files as files;
use wavesim_isa::arch::Arch;
use wavesim_loader::abi;
use wavesim_loader::assembly::AssemblyOptions;
use wavesim_loader::code_object::{self, TEXT};
use wavesim_loader::text_kernel;
use wavesim_machine::exec::program::Program;
use wavesim_prove::{
    Code, Counterexample, Live, ProofError, Question, Search, Setup, Solver, Verdict, Window, register,
};
use wavesim_verify::{Answer, VerifyError};

/// The programs cannot be compared, or the solver does not know.
pub(super) const UNKNOWN: u8 = 3;

/// Registers and bytes of a counterexample that are shown.
const SHOWN: usize = 12;

/// Prove that two pieces of machine code are equal for all inputs, or find inputs for which they differ
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  wavesim prove -e 'v_lshl_add_u32 v0, v1, 2, v2' \\
      -e 'v_lshlrev_b32 v0, 2, v1; v_add_nc_u32 v0, v0, v2'
  wavesim prove -e 'v_and_b32 v0, 0xff, v1' -e 'v_mov_b32 v0, v1' --assume 'v1 < 256'
  wavesim prove O0.co O3.co --symbol square --live v0
  wavesim prove --identities rules.txt
  wavesim prove --compiled -e 'v_perm_b32 v0, v1, v2, v3'
  wavesim prove --architectures v_cvt_f16_f32
  wavesim prove --superoptimise --live v0 \\
      -e 'v_lshlrev_b32 v3, 2, v1; v_add_nc_u32 v0, v3, v2'

An SMT solver has to be installed: bitwuzla, z3 or cvc5.

Exit codes: 0 equal (for all inputs, or up to the given number of loop
iterations); 1 they differ; 2 bad usage or bad input; 3 unknown.")]
pub struct ProveArgs {
    /// Two code objects, assembly files (`.s`) or text kernels
    #[arg(num_args = 0..=2)]
    pub inputs: Vec<PathBuf>,
    /// Instructions, separated by semicolons (two of them)
    #[arg(short = 'e', value_name = "INSTRUCTIONS", conflicts_with = "inputs")]
    pub sequences: Vec<String>,
    /// A file with a pair of sequences in each line: `A == B`, or `A == B when PRECONDITION`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["inputs", "sequences"])]
    pub identities: Option<PathBuf>,
    /// Compare the code that the compiled engine makes of one program without branches and memory with the pseudocode
    #[arg(long, conflicts_with_all = ["identities", "live", "assume", "uninterpreted_float", "full_exec"])]
    pub compiled: bool,
    /// Compare the pseudocode that a mnemonic (or, without a name, each) has on all architectures; `*` is any text
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    #[arg(conflicts_with_all = ["inputs", "sequences", "identities", "compiled", "live", "assume"])]
    pub architectures: Option<String>,
    /// Search for a shorter sequence that computes what two or three instructions leave in the live registers
    #[arg(long, conflicts_with_all = ["identities", "compiled", "architectures", "assume", "uninterpreted_float"])]
    pub superoptimise: bool,
    /// Function or kernel, in both files or (twice) in each [default: the only one, or the beginning]
    #[arg(long, value_name = "NAME")]
    pub symbol: Vec<String>,
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub wave: WaveSize,
    /// Compare these registers and memory, such as `v0,s4,scc`; `memory` compares memory alone [default: all registers
    /// that are written, and memory; after a function v0, EXEC and memory; of a kernel memory]
    #[arg(long, value_name = "REGISTERS", value_delimiter = ',')]
    pub live: Vec<String>,
    /// A precondition on registers, of each lane (repeatable). Comparisons are unsigned; `i<` is signed
    #[arg(long, value_name = "CONDITION")]
    pub assume: Vec<String>,
    /// All lanes are active at the start [default: any may be]
    #[arg(long)]
    pub full_exec: bool,
    /// Float arithmetic is unknown functions: fast, for code that only moves floats
    #[arg(long)]
    pub uninterpreted_float: bool,
    /// Memory through different pointers may overlap. Without this option, programs that are equal only if it does not are
    /// said to be so
    #[arg(long)]
    pub may_alias: bool,
    /// How often a loop may run
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub unroll: u32,
    /// Seconds for each question to the solver
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub timeout: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub files: FileArgs,
}

pub fn run(args: &ProveArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    if let Some(path) = &args.identities {
        return identities(args, path, out);
    }
    if let Some(name) = &args.architectures {
        let solver = Solver::find(Duration::from_secs(args.timeout))?;
        return super::bodies::run(name, &solver, args.json, out);
    }
    if args.compiled {
        return compiled(args, out);
    }
    if args.superoptimise {
        return superoptimise(args, out);
    }
    let programs = match (&args.inputs[..], &args.sequences[..]) {
        ([a, b], []) => {
            let symbol = |at: usize| args.symbol.get(at).or(args.symbol.first()).map(String::as_str);
            [open(args, a, symbol(0))?, open(args, b, symbol(1))?]
        }
        ([], [a, b]) => [sequence(args, a)?, sequence(args, b)?],
        _ => bail!("two programs are compared: two files, or two sequences (-e)"),
    };
    let verdict = ask(args, &programs, &args.assume)?;
    let verdict = match verdict {
        Ok(verdict) => verdict,
        Err(error @ (ProofError::Assume(_) | ProofError::Solver(_))) => return Err(error.into()),
        Err(error) => Verdict::Unknown(error.to_string()),
    };
    answer(args, &verdict, out)
}

fn answer(args: &ProveArgs, verdict: &Verdict, out: &mut dyn Write) -> anyhow::Result<u8> {
    if args.json {
        writeln!(out, "{}", to_json(verdict))?;
    } else {
        report(verdict, out)?;
    }
    Ok(code_of(verdict))
}

/// Compares the compiled code of a program with the pseudocode.
fn compiled(args: &ProveArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let opened = match (&args.inputs[..], &args.sequences[..]) {
        ([path], []) => open(args, path, args.symbol.first().map(String::as_str))?,
        ([], [text]) => sequence(args, text)?,
        _ => bail!("--compiled takes one program: a file, or a sequence (-e)"),
    };
    if opened.entry != 0 {
        bail!("--compiled takes a program that begins at its first instruction");
    }
    let arch = opened.program.arch;
    let setup = Setup { mode: abi::default_mode(arch), ..Setup::new(arch, opened.wave) };
    let solver = Solver::find(Duration::from_secs(args.timeout))?;
    let program = opened.program.with_syntax(wavesim_asm::print::syntax);
    let verdict = match wavesim_verify::verify(&setup, &program, &solver) {
        Ok(Answer::Equal) => Verdict::Equal,
        Ok(Answer::Unknown(why)) => Verdict::Unknown(why),
        Ok(Answer::Differ(example)) => {
            let inputs: Vec<String> =
                example.inputs.iter().map(|(name, value)| format!("{name}={value:#x}")).collect();
            let (registers, inputs) = (example.registers.join(", "), inputs.join(" "));
            if args.json {
                writeln!(
                    out,
                    "{}",
                    json!({"verdict": "differ", "registers": example.registers, "inputs": inputs})
                )?;
            } else {
                writeln!(out, "differ: {registers} for {inputs} (all others are 0)")?;
            }
            return Ok(super::FAILED);
        }
        Err(VerifyError::Unsupported(why)) => Verdict::Unknown(why),
        Err(error @ VerifyError::Solver(_)) => return Err(error.into()),
    };
    answer(args, &verdict, out)
}

/// Searches for shorter sequences.
fn superoptimise(args: &ProveArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let opened = match (&args.inputs[..], &args.sequences[..]) {
        ([path], []) => open(args, path, args.symbol.first().map(String::as_str))?,
        ([], [text]) => sequence(args, text)?,
        _ => bail!("--superoptimise takes one program: a file, or a sequence (-e)"),
    };
    let arch = opened.program.arch;
    let time = Duration::from_secs(args.timeout);
    let search = Search {
        setup: Setup { mode: abi::default_mode(arch), ..Setup::new(arch, opened.wave) },
        solver: Solver::find(time)?,
        pairs: true,
        time,
        limit: SHOWN,
    };
    let live = match live(&args.live)? {
        Some(Live::Registers(registers)) => Some(registers),
        Some(_) => bail!("--live: registers are searched for, not memory"),
        None => None,
    };
    super::isa::equivalent::answer(
        &search.shorter(&Window { program: &opened.program, live })?,
        args.timeout,
        args.json,
        out,
    )
}

fn code_of(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Equal | Verdict::EqualUpTo(_) | Verdict::EqualApart => super::OK,
        Verdict::Differ(_) => super::FAILED,
        Verdict::Unknown(_) => UNKNOWN,
    }
}

/// Answers all pairs of a file. The exit code is that of the worst answer.
fn identities(args: &ProveArgs, path: &Path, out: &mut dyn Write) -> anyhow::Result<u8> {
    let name = super::input_name(path);
    let bytes = files::read(path)?;
    let text = String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("{name}: not text (UTF-8)"))?;
    let mut code = super::OK;
    let mut counts = [0_usize; 3];
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = || format!("{name}:{number}");
        let (pair, condition) = match line.split_once(" when ") {
            Some((pair, condition)) => (pair, Some(condition.trim().to_string())),
            None => (line, None),
        };
        let Some((a, b)) = pair.split_once("==") else {
            bail!("{}: expected `A == B`, or `A == B when PRECONDITION`", place())
        };
        let programs = [sequence(args, a).with_context(place)?, sequence(args, b).with_context(place)?];
        let assumptions: Vec<String> = args.assume.iter().cloned().chain(condition).collect();
        let verdict = match ask(args, &programs, &assumptions)? {
            Ok(verdict) => verdict,
            Err(error @ ProofError::Solver(_)) => return Err(error.into()),
            Err(error @ ProofError::Assume(_)) => return Err(anyhow::Error::from(error).context(place())),
            Err(error) => Verdict::Unknown(error.to_string()),
        };
        let worst = code_of(&verdict);
        counts[worst.min(2) as usize] += 1;
        // An answer that is wrong is worse than none.
        code = if code == super::FAILED || worst == super::FAILED { super::FAILED } else { code.max(worst) };
        if args.json {
            let mut value = to_json(&verdict);
            value["line"] = json!(number);
            writeln!(out, "{value}")?;
        } else {
            write!(out, "{}: {line}: ", place())?;
            report(&verdict, out)?;
        }
    }
    if !args.json {
        writeln!(out, "{} equal, {} differ, {} unknown", counts[0], counts[1], counts[2])?;
    }
    Ok(code)
}

/// A program and where it begins.
struct Opened {
    program: Program,
    entry: u64,
    wave: u32,
}

fn ask(
    args: &ProveArgs,
    [a, b]: &[Opened; 2],
    assumptions: &[String],
) -> anyhow::Result<Result<Verdict, ProofError>> {
    if a.program.arch != b.program.arch || a.wave != b.wave {
        let name = |opened: &Opened| format!("{}, wave{}", opened.program.arch.name(), opened.wave);
        bail!("the programs are for different machines: {} and {}", name(a), name(b));
    }
    let arch = a.program.arch;
    let setup = Setup {
        mode: abi::default_mode(arch),
        full_exec: args.full_exec,
        uninterpreted_float: args.uninterpreted_float,
        unroll: args.unroll,
        apart: !args.may_alias,
        ..Setup::new(arch, a.wave)
    };
    let solver = match Solver::find(Duration::from_secs(args.timeout)) {
        Ok(solver) => solver,
        Err(error) => return Ok(Err(error.into())),
    };
    let codes = [a, b].map(|opened| Code { program: &opened.program, entry: opened.entry });
    let question =
        Question { setup, codes, live: live(&args.live)?, assumptions: assumptions.to_vec(), solver };
    Ok(question.answer())
}

/// Reads `--live`.
fn live(names: &[String]) -> anyhow::Result<Option<Live>> {
    if names.is_empty() {
        return Ok(None);
    }
    if names == ["memory"] {
        return Ok(Some(Live::Memory));
    }
    let mut registers = BTreeSet::new();
    for name in names.iter().map(|name| name.trim()).filter(|name| *name != "memory") {
        let Some(register) = register(name) else {
            bail!("--live: `{name}` is no register; such as v0, s4, vcc_lo, exec_lo, m0, scc, or memory")
        };
        registers.insert(register);
    }
    Ok(Some(Live::Registers(registers)))
}

fn architecture(args: &ProveArgs) -> Arch {
    args.target.arch_or_default()
}

/// Assembles a sequence.
fn sequence(args: &ProveArgs, text: &str) -> anyhow::Result<Opened> {
    assembly(args, "-e", &text.replace(';', "\n"), None)
}

fn assembly(args: &ProveArgs, name: &str, text: &str, symbol: Option<&str>) -> anyhow::Result<Opened> {
    let reading = AssemblyOptions {
        arch: args.target.arch().or_else(|| (name == "-e").then(|| architecture(args))),
        wave: args.wave.wave,
        defines: Vec::new(),
        folders: Vec::new(),
        files: args.files.access()?,
    };
    let (mut program, options, mut errors) = reading.read(name, text);
    errors.extend(program.link(&options));
    errors.sort_by_key(|e| e.line);
    if !errors.is_empty() {
        let text: Vec<String> = errors.iter().map(ToString::to_string).collect();
        return Err(super::Diagnostics(text.join("\n")).into());
    }
    let code = program.sections.iter().position(|section| section.name == TEXT);
    let bytes = code.map(|at| program.sections[at].bytes.clone()).unwrap_or_default();
    let labels: Vec<(&str, u64)> = program
        .labels()
        .filter(|(_, section, _)| Some(*section) == code)
        .map(|(name, _, offset)| (name, offset))
        .collect();
    let entry = match symbol {
        Some(symbol) => find(name, symbol, &labels)?,
        None => 0,
    };
    let wave = options.wave;
    Ok(Opened { program: Program::from_bytes(options.arch, &bytes)?.for_wave_size(wave), entry, wave })
}

/// Finds a symbol.
fn find(file: &str, symbol: &str, labels: &[(&str, u64)]) -> anyhow::Result<u64> {
    if let Some((_, offset)) = labels.iter().find(|(name, _)| *name == symbol) {
        return Ok(*offset);
    }
    let near = suggest(symbol, labels.iter().map(|(name, _)| *name));
    let help = near.map(|near| format!("; {near}")).unwrap_or_default();
    bail!("{file} has no symbol `{symbol}`{help}")
}

/// Reads a text kernel.
fn text_kernel(args: &ProveArgs, path: &Path, name: &str, text: &str) -> anyhow::Result<Opened> {
    let options = text_kernel::Options {
        arch: args.target.arch(),
        wave: args.wave.wave,
        folder: path.parent().map(Path::to_path_buf).unwrap_or_default(),
        files: args.files.access()?,
        ..text_kernel::Options::default()
    };
    match text_kernel::prepare(name, text, &options, 0) {
        Ok(prepared) => Ok(Opened {
            wave: prepared.shape.wave_size,
            entry: prepared.shape.entry_pc,
            program: prepared.program,
        }),
        Err(text_kernel::LoadError::Text(diagnostics)) => bail!(super::Diagnostics(diagnostics)),
        Err(error) => Err(anyhow::Error::new(error).context(name.to_string())),
    }
}

fn open(args: &ProveArgs, path: &Path, symbol: Option<&str>) -> anyhow::Result<Opened> {
    let name = super::input_name(path);
    let bytes = files::read(path)?;
    if !code_object::is_object(&bytes) {
        let text = String::from_utf8(bytes)
            .map_err(|_| anyhow::anyhow!("{name}: neither a code object nor text"))?;
        let is_kernel = symbol.is_none() && path.extension().is_some_and(|extension| extension != "s");
        return if is_kernel {
            text_kernel(args, path, &name, &text)
        } else {
            assembly(args, &name, &text, symbol)
        };
    }
    let bytes = code_object::open(&bytes, &args.target.target_request()).with_context(|| name.clone())?;
    let file = object::File::parse(&*bytes).with_context(|| name.clone())?;
    let arch = code_object::arch_of(&file).with_context(|| name.clone())?;
    let text = file.section_by_name(TEXT).with_context(|| format!("{name} has no {TEXT}"))?;
    let inside = |address: u64| address.checked_sub(text.address()).filter(|offset| *offset < text.size());
    let functions: Vec<(&str, u64)> = file
        .symbols()
        .filter(|symbol| symbol.kind() == object::SymbolKind::Text)
        .filter_map(|symbol| Some((symbol.name().ok()?, inside(symbol.address())?)))
        .collect();
    let entry = match (symbol, &functions[..]) {
        (Some(symbol), _) => find(&name, symbol, &functions)?,
        (None, [(_, only)]) => *only,
        (None, []) => 0,
        (None, several) => {
            let names: Vec<&str> = several.iter().map(|(name, _)| *name).take(10).collect();
            bail!("{name} has several functions, --symbol chooses one: {}", names.join(", "))
        }
    };
    let kernels = code_object::kernels(&bytes).unwrap_or_default();
    let of_kernel =
        kernels.first().and_then(|kernel| Some(code_object::load(&bytes, kernel).ok()?.wave_size()));
    let wave = args.wave.wave.or(of_kernel).unwrap_or(arch.wave_sizes()[0]);
    let program = Program::from_bytes(arch, text.data()?)?.for_wave_size(wave);
    Ok(Opened { program, entry, wave })
}

fn report(verdict: &Verdict, out: &mut dyn Write) -> anyhow::Result<()> {
    match verdict {
        Verdict::Equal => writeln!(out, "equal for all inputs")?,
        Verdict::EqualUpTo(count) => {
            writeln!(out, "equal if no loop runs more than {count} times (--unroll)")?;
        }
        Verdict::EqualApart => {
            writeln!(out, "equal if memory through different pointers does not overlap (--may-alias)")?;
        }
        Verdict::Unknown(why) => writeln!(out, "unknown: {why}")?,
        Verdict::Differ(example) => counterexample(example, out)?,
    }
    Ok(())
}

/// Joins the entries of a register that are the same in all lanes. The separator is between register and lane.
fn by_register<V: PartialEq + Clone>(
    entries: impl IntoIterator<Item = (String, V)>,
    separator: &str,
) -> Vec<(String, V)> {
    let mut groups: Vec<(String, Vec<(String, V)>)> = Vec::new();
    for (name, value) in entries {
        let register = name.split_once(separator).map_or(name.as_str(), |(register, _)| register).to_string();
        match groups.iter_mut().find(|(other, _)| *other == register) {
            Some((_, list)) => list.push((name, value)),
            None => groups.push((register, vec![(name, value)])),
        }
    }
    let mut lines = Vec::new();
    for (register, list) in groups {
        let same = list.iter().all(|(_, value)| *value == list[0].1);
        if same && list.len() >= 32 {
            lines.push((format!("{register}, all lanes"), list[0].1.clone()));
        } else {
            lines.extend(list.into_iter().map(|(name, value)| (name.replace('.', ", lane "), value)));
        }
    }
    lines
}

fn counterexample(example: &Counterexample, out: &mut dyn Write) -> anyhow::Result<()> {
    let Counterexample { inputs, memory, outputs } = example;
    writeln!(out, "differ, as the interpreter shows")?;
    writeln!(out, "  for these inputs (all others are 0):")?;
    let mut lines = by_register(inputs.iter().map(|(name, value)| (name.clone(), *value)), ".");
    let bytes = memory.iter().filter(|(_, byte)| **byte != 0);
    lines.extend(bytes.map(|(address, byte)| (format!("the byte at {address:#x}"), *byte as u128)));
    for (name, value) in lines.iter().take(SHOWN) {
        writeln!(out, "    {name:<16} {value:#x}")?;
    }
    if lines.len() > SHOWN {
        writeln!(out, "    and {} more (--json has all)", lines.len() - SHOWN)?;
    }
    writeln!(out, "  the programs compute:")?;
    let lines = by_register(outputs.iter().map(|one| (one.name.clone(), one.values)), ", lane ");
    for (name, [a, b]) in lines.iter().take(SHOWN) {
        writeln!(out, "    {name:<16} {a:#x} and {b:#x}")?;
    }
    if lines.len() > SHOWN {
        writeln!(out, "    and {} more (--json has all)", lines.len() - SHOWN)?;
    }
    Ok(())
}

fn to_json(verdict: &Verdict) -> Value {
    match verdict {
        Verdict::Equal => json!({"verdict": "equal"}),
        Verdict::EqualUpTo(count) => json!({"verdict": "equal_up_to", "iterations": count}),
        Verdict::EqualApart => json!({"verdict": "equal_apart"}),
        Verdict::Unknown(why) => json!({"verdict": "unknown", "reason": why}),
        Verdict::Differ(example) => {
            let outputs: Vec<Value> =
                example.outputs.iter().map(|one| json!({"name": one.name, "values": one.values})).collect();
            let inputs: serde_json::Map<String, Value> =
                example.inputs.iter().map(|(name, value)| (name.clone(), json!(*value as u64))).collect();
            let memory: Vec<Value> = example.memory.iter().map(|(at, byte)| json!([at, byte])).collect();
            json!({"verdict": "differ", "inputs": inputs, "memory": memory, "outputs": outputs})
        }
    }
}
