//! `wavesim bench`: measures the speed of the interpreter on this host.

use super::engine::Engine;
use crate::bench::host::{self, Host};
use crate::bench::instructions::{self, Baseline, DEFAULT_COUNTED, LaunchMode, TOLERANCE};
use crate::bench::operations::{self, Cost, Costs};
use crate::bench::{self, Figures, Form, WORKLOADS, Workload, launches};
use anyhow::{Context, anyhow, bail};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use wavesim_engine::sched::dispatch::RunStats;
use wavesim_files as files;
use wavesim_inspect::check::Check;
use wavesim_isa::arch::Arch;

/// Measure the interpreter on built-in workloads
///
/// Each workload's result is verified before it is timed. For comparison, the table shows the rate of the
/// host's vector instructions on registers in the L1 cache, and the time of the same computation compiled for
/// the host.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  wavesim bench
  wavesim bench matmul nbody --seconds 2 --json
  wavesim bench --wave 64
  wavesim bench --arch cdna3
  wavesim bench --operations
  wavesim bench --operations=_f64 --arch rdna3
  wavesim bench --engine jit --markdown
  wavesim bench --launches
  wavesim bench --instructions")]
pub struct BenchArgs {
    /// Names of workloads [default: all]
    pub workloads: Vec<String>,
    /// Seconds to spend on each workload
    #[arg(long, default_value_t = 0.5)]
    pub seconds: f64,
    /// Host threads that run workgroups
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Measure this engine as well as the interpreter, and print the speedup
    #[arg(long, value_name = "ENGINE", default_value = "interpreter",
        conflicts_with_all = ["checks", "operations", "launches", "baseline"])]
    pub engine: Engine,
    /// Measure the slowdown of `wavesim check` instead, for each check and for all of them
    #[arg(long, conflicts_with = "threads")]
    pub checks: bool,
    /// Measure every instruction of an architecture instead, or those whose mnemonic contains PART
    #[arg(long, value_name = "PART", num_args = 0..=1, require_equals = true, default_missing_value = "",
        conflicts_with_all = ["workloads", "threads", "checks", "instructions"])]
    pub operations: Option<String>,
    /// Measure an empty and a small launch instead, and the time of their waves alone
    #[arg(long, conflicts_with_all = ["workloads", "threads", "checks", "instructions", "operations"])]
    pub launches: bool,
    /// The architecture: rdna3, rdna4, cdna3 or cdna5 for workloads, any for --operations
    #[arg(long, value_parser = super::target::parse_arch, conflicts_with = "launches")]
    pub arch: Option<Arch>,
    /// Lanes of a wave, 32 or 64, of the workloads for rdna3 or of --operations
    #[arg(long, value_name = "LANES", conflicts_with = "launches")]
    pub wave: Option<u32>,
    /// Count host instructions per wave-instruction with valgrind instead, which has no noise; with --checks or
    /// --engine, also of checked or compiled runs
    #[arg(long, conflicts_with_all = ["threads", "json"])]
    pub instructions: bool,
    /// Compare with recorded counts; a difference of more than 3 % is an error
    #[arg(long, value_name = "FILE", requires = "instructions", conflicts_with = "checks")]
    pub baseline: Option<PathBuf>,
    /// Write the counts to the baseline file
    #[arg(long, requires = "baseline")]
    pub bless: bool,
    /// Run one launch without timing it (runs under valgrind)
    #[arg(long, hide = true, value_name = "WORKLOAD")]
    pub launch: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Print the table in Markdown
    #[arg(long, conflicts_with_all = ["json", "checks", "operations", "launches", "instructions"])]
    pub markdown: bool,
}

/// A column of the table of workloads.
struct Column {
    heading: &'static str,
    /// Characters, in plain text.
    width: usize,
    /// Of the compiled engine, if it is measured.
    compiled: bool,
    /// Returns the figure; `None` if the workload has none.
    cell: fn(&Figures, &Host) -> Option<String>,
}

const fn column(heading: &'static str, width: usize, cell: fn(&Figures, &Host) -> Option<String>) -> Column {
    Column { heading, width, compiled: false, cell }
}

const fn compiled_column(
    heading: &'static str,
    width: usize,
    cell: fn(&Figures, &Host) -> Option<String>,
) -> Column {
    Column { heading, width, compiled: true, cell }
}

const COLUMNS: [Column; 11] = [
    column("wave instr", 11, |f, _| Some(f.stats.instructions.to_string())),
    column("ms", 8, |f, _| Some(format!("{:.3}", f.seconds * 1e3))),
    column("M wave-i/s", 10, |f, _| Some(format!("{:.1}", f.wave_instr_per_s() / 1e6))),
    column("G lane-i/s", 10, |f, _| Some(format!("{:.2}", f.lane_instr_per_s() / 1e9))),
    column("of fma L1", 9, |f, host| Some(format!("{:.2}", f.lane_instr_per_s() / 32.0 / host.fma_l1_per_s))),
    column("x native", 8, |f, _| Some(format!("{:.1}", f.seconds / f.native_seconds?))),
    column("GFLOP/s", 7, |f, _| Some(format!("{:.1}", f.operations_per_s()? / 1e9))),
    compiled_column("jit ms", 10, |f, _| Some(format!("{:.3}", f.compiled?.seconds * 1e3))),
    compiled_column("x interp", 8, |f, _| Some(format!("{:.2}", f.seconds / f.compiled?.seconds))),
    compiled_column("compile ms", 10, |f, _| Some(format!("{:.2}", f.compiled?.compile_seconds * 1e3))),
    compiled_column("ms/1000 op", 9, |f, _| {
        let compiled = f.compiled?;
        Some(format!("{:.1}", compiled.compile_seconds * 1e6 / compiled.operations.max(1) as f64))
    }),
];

/// The table of workloads, as plain text or in Markdown.
struct Table<'a> {
    args: &'a BenchArgs,
    host: Host,
}

impl Table<'_> {
    fn columns(&self) -> impl Iterator<Item = &'static Column> {
        let compiled = self.args.engine != Engine::Interpreter;
        COLUMNS.iter().filter(move |column| compiled || !column.compiled)
    }

    fn head(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        self.line("workload", &|column| column.heading.to_string(), "", out)?;
        if self.args.markdown {
            self.line("---", &|_| "---:".to_string(), "", out)?;
        }
        Ok(())
    }

    fn row(&self, figures: &Figures, out: &mut dyn Write) -> anyhow::Result<()> {
        let refused = figures.compiled.is_some_and(|c| c.failed > 0);
        let note = if refused { " (units refused)" } else { "" };
        let cell = |column: &Column| (column.cell)(figures, &self.host).unwrap_or("-".to_string());
        self.line(figures.name, &cell, note, out)?;
        Ok(out.flush()?)
    }

    fn line(
        &self,
        name: &str,
        cell: &dyn Fn(&Column) -> String,
        note: &str,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        if self.args.markdown {
            let cells: String = self.columns().map(|column| format!(" {} |", cell(column))).collect();
            writeln!(out, "| {name}{note} |{cells}")?;
        } else {
            let cells: String =
                self.columns().map(|column| format!(" {:>1$}", cell(column), column.width)).collect();
            writeln!(out, "{name:<13}{cells}{note}")?;
        }
        Ok(())
    }

    /// Writes the rates of the host.
    fn foot(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        if self.args.markdown {
            writeln!(out)?;
        }
        writeln!(
            out,
            "host: fma {:.0} M and add {:.0} M wave-instructions/s of 32 lanes through an L1 register file, triad {:.1} GB/s",
            self.host.fma_l1_per_s / 1e6,
            self.host.add_l1_per_s / 1e6,
            self.host.triad_bytes_per_s / 1e9
        )?;
        Ok(())
    }
}

pub fn run(args: &BenchArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    for name in args.workloads.iter().chain(&args.launch) {
        if !WORKLOADS.iter().any(|w| w.name == name) {
            let names: Vec<&str> = WORKLOADS.iter().map(|w| w.name).collect();
            bail!("there is no workload `{name}`; workloads are {}", names.join(", "));
        }
    }
    if !(args.seconds > 0.0 && args.seconds < 1e6) {
        bail!("--seconds {}: the time must be positive", args.seconds);
    }
    if args.launches {
        return small_launches(args, out);
    }
    if let Some(part) = &args.operations {
        return operations(args, &part.to_lowercase(), out);
    }
    let form = form(args)?;
    if let Some(workload) = args.launch.as_ref().and_then(|name| WORKLOADS.iter().find(|w| w.name == name)) {
        writeln!(out, "{}", instructions::launch(workload, form, launch_mode(args))?)?;
        return Ok(super::OK);
    }
    if args.instructions {
        return count(args, form, out);
    }
    let named = |w: &Workload| args.workloads.iter().any(|n| n == w.name);
    let chosen = WORKLOADS
        .iter()
        .filter(|w| if args.workloads.is_empty() { w.code(form).is_some() } else { named(w) });
    if args.checks {
        return checks(args, form, chosen, out);
    }
    let table = Table { args, host: host::measure() };
    let mut all = Vec::new();
    for workload in chosen {
        let figures = match args.engine {
            Engine::Interpreter => bench::measure(workload, form, args.seconds, args.threads)?,
            Engine::Jit | Engine::Auto => compiled(workload, form, args)?,
        };
        if !args.json {
            if all.is_empty() {
                table.head(out)?;
            }
            table.row(&figures, out)?;
        }
        all.push(figures);
    }
    if args.json {
        let workloads: serde_json::Map<String, serde_json::Value> = all
            .iter()
            .map(|f| {
                let compiled = f.compiled.map(|c| {
                    json!({
                        "seconds": c.seconds,
                        "compile_seconds": c.compile_seconds,
                        "operations": c.operations,
                        "bytes": c.bytes,
                    })
                });
                let value = json!({
                    "jit": compiled,
                    "wave_instructions": f.stats.instructions,
                    "seconds": f.seconds,
                    "wave_instr_per_s": f.wave_instr_per_s(),
                    "lane_instr_per_s": f.lane_instr_per_s(),
                    "native_seconds": f.native_seconds,
                    "matrix_operations_per_s": f.operations_per_s(),
                });
                (f.name.to_string(), value)
            })
            .collect();
        let host = json!({
            "fma_l1_wave_instr_per_s": table.host.fma_l1_per_s,
            "add_l1_wave_instr_per_s": table.host.add_l1_per_s,
            "triad_bytes_per_s": table.host.triad_bytes_per_s,
        });
        let value = json!({ "schema": "wavesim-bench-1", "workloads": workloads, "host": host });
        writeln!(out, "{value}")?;
    } else {
        table.foot(out)?;
    }
    Ok(super::OK)
}

#[cfg(feature = "jit")]
fn compiled(workload: &'static bench::Workload, form: Form, args: &BenchArgs) -> anyhow::Result<Figures> {
    let background = args.engine == Engine::Auto;
    Ok(bench::measure_compiled(workload, form, args.seconds, args.threads, background)?)
}

#[cfg(not(feature = "jit"))]
fn compiled(_: &'static bench::Workload, _: Form, _: &BenchArgs) -> anyhow::Result<Figures> {
    bail!("--engine jit: this wavesim was built without the feature `jit`")
}

/// Fails if waves of the architecture cannot have this number of lanes.
fn check_wave(arch: Arch, lanes: u32) -> anyhow::Result<()> {
    if !arch.wave_sizes().contains(&lanes) {
        let sizes: Vec<String> = arch.wave_sizes().iter().map(u32::to_string).collect();
        bail!("--wave {lanes}: waves of {} have {} lanes", arch.name(), sizes.join(" or "));
    }
    Ok(())
}

/// Returns the form that the options select.
fn form(args: &BenchArgs) -> anyhow::Result<Form> {
    let arch = args.arch.unwrap_or(Arch::DEFAULT);
    let lanes = args.wave.unwrap_or(arch.wave_sizes()[0]);
    check_wave(arch, lanes)?;
    Form::of(arch, lanes).ok_or_else(|| {
        anyhow!(
            "--arch {}: the workloads are compiled for {}",
            arch.name(),
            Form::ARCHS.map(Arch::name).join(", ")
        )
    })
}

/// Measures small launches.
fn small_launches(args: &BenchArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let all = launches::measure(args.seconds)?;
    if args.json {
        let list: Vec<_> = all
            .iter()
            .map(|f| {
                json!({
                    "name": f.name,
                    "waves": f.stats.waves,
                    "wave_instructions": f.stats.instructions,
                    "seconds": f.seconds,
                    "waves_seconds": f.waves_seconds,
                })
            })
            .collect();
        writeln!(out, "{}", json!({ "schema": "wavesim-bench-launches-1", "launches": list }))?;
        return Ok(super::OK);
    }
    writeln!(out, "{:<12} {:>8} {:>12} {:>10} {:>12}", "launch", "waves", "wave instr", "us", "waves alone")?;
    for f in &all {
        let (us, waves_us) = (f.seconds * 1e6, f.waves_seconds * 1e6);
        let RunStats { waves, instructions } = f.stats;
        writeln!(out, "{:<12} {waves:>8} {instructions:>12} {us:>10.2} {waves_us:>12.2}", f.name)?;
    }
    Ok(super::OK)
}

/// Measures each instruction, and the multiply-add of its format in the same run.
fn operations(args: &BenchArgs, part: &str, out: &mut dyn Write) -> anyhow::Result<u8> {
    let arch = args.arch.unwrap_or(operations::DEFAULT_ARCH);
    let lanes = args.wave.unwrap_or(arch.wave_sizes()[0]);
    check_wave(arch, lanes)?;
    let Costs { costs, not_run, single, double } = operations::measure(arch, lanes, part)?;
    if costs.is_empty() && not_run.is_empty() {
        bail!("no instruction of {} has `{part}` in its name", arch.name());
    }
    let ratio = |cost: &Cost| cost.ns / if cost.is_f64 { double } else { single };
    if args.json {
        let list: Vec<_> = costs
            .iter()
            .map(|c| json!({ "name": c.name, "ns": c.ns, "double": c.is_f64, "ratio": ratio(c) }))
            .collect();
        let not_run: serde_json::Map<_, _> =
            not_run.iter().map(|(name, why)| (name.clone(), json!(why))).collect();
        let value = json!({
            "schema": "wavesim-bench-operations-1",
            "arch": arch.name(),
            "wave": lanes,
            "fma_f32_ns": single,
            "fma_f64_ns": double,
            "operations": list,
            "not_run": not_run,
        });
        writeln!(out, "{value}")?;
        return Ok(super::OK);
    }
    writeln!(out, "{:<40} {:>10} {:>8}", "instruction", "ns", "x fma")?;
    for cost in &costs {
        let unit = if cost.is_f64 { " of f64" } else { "" };
        writeln!(out, "{:<40} {:>10.1} {:>8.1}{unit}", cost.name, cost.ns, ratio(cost))?;
    }
    for (name, why) in &not_run {
        writeln!(out, "{name:<40} not run: {why}")?;
    }
    writeln!(
        out,
        "fma of f32: {single:.1} ns, of f64: {double:.1} ns, per wave-instruction of {lanes} lanes"
    )?;
    Ok(super::OK)
}

/// Counts host instructions and compares them with the baseline, unless the baseline is from another compiler
/// or host.
fn count(args: &BenchArgs, form: Form, out: &mut dyn Write) -> anyhow::Result<u8> {
    let own = std::env::current_exe()?;
    if launch_mode(args) != LaunchMode::Plain {
        return count_both(args, form, &own, out);
    }
    let names: Vec<&str> = match &args.workloads[..] {
        [] => DEFAULT_COUNTED.to_vec(),
        names => names.iter().map(String::as_str).collect(),
    };
    let mut here = Baseline::for_this_host();
    let recorded = match &args.baseline {
        Some(file) if !args.bless => {
            let baseline = Baseline::parse(&files::read_text(file)?);
            if baseline.counts.is_empty() {
                bail!("{}: not a baseline: it has no counts", file.display());
            }
            baseline
        }
        _ => here.clone(),
    };
    let comparable = recorded.made_by == here.made_by;
    let mut wrong = 0;
    writeln!(out, "{:<12} {:>20}", "workload", "host per wave instr")?;
    for workload in WORKLOADS.iter().filter(|w| names.contains(&w.name)) {
        let count = instructions::count(&own, workload, form, LaunchMode::Plain)?;
        let change = recorded.change(workload.name, count);
        let shown = change.map_or(String::new(), |c| format!("  {c:+.1} %"));
        writeln!(out, "{:<12} {count:>20.1}{shown}", workload.name)?;
        wrong += change.is_some_and(|c| c.abs() > TOLERANCE) as u32;
        here.counts.push((workload.name.to_string(), count));
    }
    let Some(file) = &args.baseline else { return Ok(super::OK) };
    if args.bless {
        let text = here.text();
        wavesim_files::write(file, |out| out.write_all(text.as_bytes()))
            .with_context(|| file.display().to_string())?;
    } else if !comparable {
        writeln!(
            out,
            "not compared: the baseline was recorded with {}; this is {}",
            recorded.made_by, here.made_by
        )?;
    } else if wrong > 0 {
        let (all, file) = (names.len(), file.display());
        writeln!(
            out,
            "{wrong} of {all} counts differ from {file} by more than {TOLERANCE} %; --bless records the new ones"
        )?;
        return Ok(super::FAILED);
    }
    Ok(super::OK)
}

/// Returns the way in which launches are executed for counting.
fn launch_mode(args: &BenchArgs) -> LaunchMode {
    match args.engine {
        _ if args.checks => LaunchMode::Checked,
        Engine::Interpreter => LaunchMode::Plain,
        Engine::Jit | Engine::Auto => LaunchMode::Compiled,
    }
}

/// Counts host instructions of both plain launches and others.
fn count_both(args: &BenchArgs, form: Form, own: &Path, out: &mut dyn Write) -> anyhow::Result<u8> {
    let mode = launch_mode(args);
    let name = if mode == LaunchMode::Checked { "checked" } else { "compiled" };
    writeln!(out, "{:<13} {:>10} {name:>10}", "workload", "plain")?;
    for workload in WORKLOADS.iter().filter(|w| w.code(form).is_some()) {
        if args.workloads.is_empty() || args.workloads.iter().any(|n| n == workload.name) {
            let plain = instructions::count(own, workload, form, LaunchMode::Plain)?;
            let other = instructions::count(own, workload, form, mode)?;
            writeln!(out, "{:<13} {plain:>10.1} {other:>10.1} {:>7.2}x", workload.name, other / plain)?;
            out.flush()?;
        }
    }
    Ok(super::OK)
}

fn checks<'w>(
    args: &BenchArgs,
    form: Form,
    chosen: impl Iterator<Item = &'static bench::Workload> + 'w,
    out: &mut dyn Write,
) -> anyhow::Result<u8> {
    let mut workloads = serde_json::Map::new();
    if !args.json {
        let names: String = Check::DEFAULT.iter().map(|c| format!(" {:>8}", c.name())).collect();
        writeln!(out, "{:<12} {:>10}{names} {:>8}", "workload", "plain ms", "all")?;
    }
    for workload in chosen {
        let figures = bench::measure_checks(workload, form, args.seconds)?;
        if !args.json {
            let each: String = figures.each.iter().map(|x| format!(" {x:>7.1}x")).collect();
            let ms = figures.seconds * 1e3;
            writeln!(out, "{:<12} {ms:>10.3}{each} {:>7.1}x", figures.name, figures.all)?;
            out.flush()?;
        }
        let mut value: serde_json::Map<String, serde_json::Value> =
            Check::DEFAULT.iter().zip(&figures.each).map(|(c, x)| (c.name().to_string(), json!(x))).collect();
        value.insert("all".to_string(), json!(figures.all));
        value.insert("plain_seconds".to_string(), json!(figures.seconds));
        workloads.insert(figures.name.to_string(), value.into());
    }
    if args.json {
        writeln!(out, "{}", json!({ "schema": "wavesim-bench-checks-1", "workloads": workloads }))?;
    }
    Ok(super::OK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::CompiledFigures;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: BenchArgs,
    }

    fn table(options: &[&str]) -> String {
        let Command { args } = Command::try_parse_from([&["bench"][..], options].concat()).expect("options");
        let host = Host { fma_l1_per_s: 500e6, add_l1_per_s: 600e6, triad_bytes_per_s: 7e9 };
        let compiled =
            CompiledFigures { seconds: 0.001, compile_seconds: 0.002, operations: 100, failed: 0, bytes: 9 };
        let figures = Figures {
            name: "salu",
            stats: RunStats { waves: 1, instructions: 1_000_000 },
            seconds: 0.004,
            native_seconds: None,
            lanes: 32,
            operations: None,
            compiled: Some(compiled),
        };
        let mut out = Vec::new();
        let table = Table { args: &args, host };
        table.head(&mut out).and_then(|()| table.row(&figures, &mut out)).expect("memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn tables_are_text_or_markdown() {
        assert_eq!(
            table(&[]),
            "\
workload       wave instr       ms M wave-i/s G lane-i/s of fma L1 x native GFLOP/s
salu              1000000    4.000      250.0       8.00      0.50        -       -
"
        );
        assert_eq!(
            table(&["--engine", "jit", "--markdown"]),
            "\
| workload | wave instr | ms | M wave-i/s | G lane-i/s | of fma L1 | x native | GFLOP/s | jit ms | x interp | compile ms | ms/1000 op |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| salu | 1000000 | 4.000 | 250.0 | 8.00 | 0.50 | - | - | 1.000 | 4.00 | 2.00 | 20.0 |
"
        );
    }
}
