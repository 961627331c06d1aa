//! Runs and checks of an open kernel, whose results the editor shows in the text.

use crate::analysis;
use crate::document::{Document, DocumentKind};
use crate::scan::Form;
use crate::settings::Settings;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use wavesim_engine::observe::{Done, Observer, Step};
use wavesim_engine::sched::dispatch;
use wavesim_inspect::check::{Check, Checker, Finding, GUARD_BYTES};
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{self, Fmt};
use wavesim_loader::prepared::Prepared;
use wavesim_loader::text_kernel;
use wavesim_machine::exec::effects::{self, Effects, File, Use, register_name};
use wavesim_machine::fault::Fault;
use wavesim_playground::program::Program;
use wavesim_playground::run as playground;

/// The argument of the commands that run a kernel.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Launch {
    /// The address of the document.
    pub uri: String,
    /// The kernel of an assembly file.
    pub kernel: Option<String>,
    /// Workgroups, for assembly files.
    pub grid: Option<[u32; 3]>,
    /// Work-items in a workgroup, likewise.
    pub block: Option<[u32; 3]>,
    /// Arguments, likewise, as `--arg` takes them.
    pub args: Vec<String>,
}

/// What a run or check has found.
#[derive(Default)]
pub struct RunResult {
    /// The values that each line (from 1) has written last in the first wave.
    pub values: BTreeMap<u32, String>,
    /// The findings of checks.
    pub findings: Vec<Finding>,
    /// The fault that ended the run.
    pub fault: Option<Box<Fault>>,
    /// A sentence about the run.
    pub summary: String,
    /// The outputs, as the playground shows them.
    pub outputs: Vec<Value>,
}

/// Loads the kernel of a document.
fn prepare(
    document: &Document,
    launch: &Launch,
    settings: &Settings,
    guard: u64,
) -> Result<Prepared, String> {
    let (name, text) = (document.path.display().to_string(), &document.text);
    let prepared = match document.kind {
        DocumentKind::Kernel(Form::Text) => {
            let options = analysis::text_options(&document.path, text, settings);
            text_kernel::prepare(&name, text, &options, guard).map_err(|e| e.to_string())?
        }
        DocumentKind::Kernel(Form::Assembly) => {
            let program = Program {
                name,
                text: text.clone(),
                kernel: launch.kernel.clone(),
                grid: launch.grid,
                block: launch.block,
                args: launch.args.clone(),
                ..Program::default()
            };
            program.prepare(guard)?
        }
        _ => return Err("only text kernels and assembly files run in an editor".to_string()),
    };
    prepared.dispatch(0).check().map_err(|e| e.to_string())?;
    Ok(prepared)
}

/// Runs a kernel to its end.
///
/// # Errors
/// The kernel cannot be loaded or launched. A fault is a result.
pub fn run(document: &Document, launch: &Launch, settings: &Settings) -> Result<RunResult, String> {
    let prepared = prepare(document, launch, settings, 0)?;
    let dispatch = prepared.dispatch(settings.max_instructions);
    let effects = effects::table(&prepared.program, prepared.shape.wave_size);
    let mut last =
        LastValues { effects: &effects, arch: prepared.program.arch, values: vec![None; effects.len()] };
    let (stats, result) = dispatch::run_observed(&dispatch, &prepared.memory, &mut last);
    let mut values: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (index, text) in last.values.iter().enumerate().filter_map(|(at, v)| Some((at, v.as_ref()?))) {
        let text = text.iter().map(|value| value.text(prepared.program.arch));
        values.entry(prepared.program.lines[index]).or_default().extend(text);
    }
    // Line 0 stands for code of other files.
    values.retain(|line, list| *line != 0 && !list.is_empty());
    let fault = result.err();
    let outputs = prepared.outputs().map_err(|e| e.to_string())?;
    Ok(RunResult {
        values: values.into_iter().map(|(line, list)| (line, list.join(", "))).collect(),
        findings: Vec::new(),
        summary: match &fault {
            None => format!("{} wave-instructions, {} waves", stats.instructions, stats.waves),
            Some(fault) => fault.to_string(),
        },
        outputs: outputs.iter().map(|(name, array)| playground::output(name, array)).collect(),
        fault,
    })
}

/// Runs a kernel with all checks.
///
/// # Errors
/// The kernel cannot be loaded or launched. Findings and faults are results.
pub fn check(document: &Document, launch: &Launch, settings: &Settings) -> Result<RunResult, String> {
    let prepared = prepare(document, launch, settings, GUARD_BYTES)?;
    let dispatch = prepared.dispatch(settings.max_instructions);
    let mut checker = Checker::new(&prepared, Check::of(prepared.program.arch)).map_err(|e| e.to_string())?;
    let (stats, result) = checker.run(&dispatch);
    let fault = result.err();
    let findings = checker.finish(fault.as_deref());
    let summary = match (findings.len(), &fault) {
        (0, None) => format!("clean: {} wave-instructions, {} waves", stats.instructions, stats.waves),
        (0, Some(fault)) => fault.to_string(),
        (1, _) => "1 finding".to_string(),
        (n, _) => format!("{n} findings"),
    };
    Ok(RunResult { findings, fault, summary, ..RunResult::default() })
}

/// The value of an operand in the first wave.
#[derive(Debug, Clone)]
struct Written {
    file: File,
    first: u16,
    count: u16,
    fmt: Fmt,
    /// The words of an SGPR operand, or those of lanes 0 to 3 of a VGPR operand.
    words: Vec<u32>,
}

/// Lanes whose values are shown.
const LANES: u32 = 4;

/// Notes the last values that each instruction has written in the first wave.
struct LastValues<'a> {
    effects: &'a [Effects],
    arch: Arch,
    values: Vec<Option<Vec<Written>>>,
}

/// Returns the format of a destination (XML: `DataFormat`).
fn format_of(arch: Arch, inst: &Inst, used: &Use) -> Fmt {
    let binding = operand::binding(arch, if used.second { inst.entry_y } else { inst.entry });
    let found = binding.operands.iter().find(|o| o.role == used.role && o.output);
    found.map_or(Fmt::Bits, |o| o.fmt)
}

impl Observer for LastValues<'_> {
    fn after(&mut self, step: &Step<'_>, _done: &Done<'_>) {
        let wave = step.wave;
        if wave.id != 0 || wave.workgroup != [0; 3] {
            return;
        }
        let one = |used: &Use| {
            let registers = used.registers(wave, true);
            let count = registers.len().min(2) as u32;
            let (first, width) = (registers.start as u32, count);
            let words = match used.file {
                File::Sgpr => (0..count).map(|n| wave.sgpr(first + n)).collect(),
                File::Vgpr => {
                    (0..LANES).flat_map(|lane| (0..width).map(move |n| wave.vgpr(lane, first + n))).collect()
                }
                File::Scc => return None,
            };
            let fmt = format_of(self.arch, &step.program.insts[step.index], used);
            (count > 0).then_some(Written {
                file: used.file,
                first: first as u16,
                count: count as u16,
                fmt,
                words,
            })
        };
        self.values[step.index] = Some(self.effects[step.index].writes.iter().filter_map(one).collect());
    }
}

impl Written {
    /// Formats the value as `v2 = [0.5, 1.5, 2.5, 3.5, …]` or `s5 = 0x40`.
    fn text(&self, arch: Arch) -> String {
        let name = register_name(arch, self.file, self.first, self.count);
        let number = |words: &[u32]| match (words, self.fmt) {
            ([word], Fmt::F32) => format!("{:?}", f32::from_bits(*word)),
            ([low, high], Fmt::F64) => format!("{:?}", f64::from_bits(*low as u64 | (*high as u64) << 32)),
            ([word], Fmt::Signed) => format!("{}", *word as i32),
            ([word], _) => format!("{word:#x}"),
            (words, _) => {
                format!("{:#x}", words.iter().rev().fold(0u64, |all, word| all << 32 | *word as u64))
            }
        };
        match self.file {
            File::Vgpr => {
                let lanes: Vec<String> = self.words.chunks(self.count as usize).map(number).collect();
                format!("{name} = [{}, …]", lanes.join(", "))
            }
            _ => format!("{name} = {}", number(&self.words)),
        }
    }
}

/// Returns the answer to a command.
pub fn answer(result: &RunResult) -> Value {
    json!({
        "summary": result.summary,
        "outputs": result.outputs,
        "findings": result.findings.iter().map(Finding::json).collect::<Vec<Value>>(),
        "fault": result.fault.as_deref().map(playground::fault_json),
    })
}
