//! `wavesim diff`: runs two kernels on the same launch, and finds where their results part.

mod origin;
mod passes;
mod stores;

use super::input::KernelArgs;
use super::target::{Target, parse_arch};
use super::{FAILED, INTERRUPTED, OK, input_name, progress};
use anyhow::bail;
use origin::Question;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use stores::{Element, Pair, Store, Stores, StoresOf};
use wavesim_array::{Array, DType, json as array_json};
use wavesim_debug::history::{Assignment, Parted};
use wavesim_engine::sched::dispatch::{self, INTERRUPT};
use wavesim_isa::arch::Arch;
use wavesim_loader::compare::{Mismatch, Tolerance, compare};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::fault::Fault;

/// Run two kernels on the same launch, compare their outputs, and show where the first difference comes from
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct DiffArgs {
    /// The first kernel, whose results are expected
    pub a: PathBuf,
    /// The second kernel; the first one again, if it is compiled with other options. With --bisect, several: builds in the
    /// order in which they were made
    #[arg(required = true)]
    pub b: Vec<PathBuf>,
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// Architecture of the second kernel [default: that of the first]
    #[arg(long, value_name = "ARCH", value_parser = parse_arch)]
    pub arch_b: Option<Arch>,
    /// Target of the second kernel [default: that of the first]
    #[arg(long, value_name = "TARGET", conflicts_with = "arch_b")]
    pub target_b: Option<String>,
    /// Name of the second kernel [default: that of the first]
    #[arg(long, value_name = "NAME")]
    pub kernel_b: Option<String>,
    /// Option for clang, in place of those of --clang, for the second kernel (repeatable)
    #[arg(long = "clang-b", value_name = "OPTION", allow_hyphen_values = true)]
    pub options_b: Vec<String>,
    /// Relative difference of floats that counts as equal [default: 8 units in the last place of the type]
    #[arg(long, value_name = "T")]
    pub rtol: Option<f64>,
    /// Absolute difference of floats that counts as equal
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    pub atol: f64,
    /// Find the first of several second kernels whose results differ, by bisection
    #[arg(long)]
    pub bisect: bool,
    /// Find the first of the compiler's passes after which the results of the second kernel differ, a source file that clang
    /// compiles again and again (-opt-bisect-limit)
    #[arg(long, conflicts_with = "bisect")]
    pub bisect_passes: bool,
    /// Levels of the trees that show where the values come from
    #[arg(long, value_name = "N", default_value_t = 6)]
    pub depth: u32,
    /// Stop with a fault after this many wave-instructions
    #[arg(long, value_name = "N", default_value_t = 10_000_000_000)]
    pub max_instructions: u64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  wavesim diff good.rdna bad.rdna
  wavesim diff kernel.rdna kernel.rdna --arch rdna3 --arch-b rdna4
  wavesim diff examples/explore/triple.rdna examples/explore/triple_shift.rdna
  wavesim diff o0.co o3.co --kernel axpy --grid 4 --block 64 \\
      --arg 'f32[256]=arange(256)' --arg 'out_y:f32[256]' --arg 2 --arg 256
  wavesim diff examples/axpy.cl examples/axpy.cl --clang=-O0 --clang-b=-O3 \\
      --grid 4 --block 64 --arg 'f32[256]=arange(256)' --arg 'out_y:f32[256]' \\
      --arg 2 --arg 256
  wavesim diff good.co build1.co build2.co build3.co --bisect --kernel axpy …
  wavesim diff axpy.cl axpy.cl --clang=-O0 --clang-b=-O3 --bisect-passes …

Exit codes: 0 the outputs are equal; 1 they differ, or one kernel faulted; 2 bad
usage or bad input; 130 interrupted.";

/// A kernel that has run.
struct Ran {
    name: String,
    prepared: Prepared,
    /// The contents of memory before the run.
    initial: Vec<u8>,
    outputs: Vec<(String, Array)>,
    stores: StoresOf,
    fault: Option<Box<Fault>>,
}

/// The options of the second kernel.
fn options_of_b(args: &DiffArgs) -> KernelArgs {
    let mut kernel = args.kernel.clone();
    if let Some(arch) = args.arch_b {
        kernel.machine = Target { arch: Some(arch), mcpu: None };
        kernel.target = None;
    }
    if let Some(target) = &args.target_b {
        kernel.machine = Target { arch: None, mcpu: None };
        kernel.target = Some(target.clone());
    }
    if let Some(name) = &args.kernel_b {
        kernel.call.kernel = Some(name.clone());
    }
    if !args.options_b.is_empty() {
        kernel.source.options.clone_from(&args.options_b);
    }
    kernel
}

/// Prepares and runs a kernel; `names` are the arguments whose stores are recorded.
fn run_one(
    args: &DiffArgs,
    kernel: &KernelArgs,
    path: &Path,
    names: Option<&[String]>,
) -> anyhow::Result<(Ran, Vec<String>)> {
    let prepared = kernel.prepare(path, None, 0)?;
    let initial = prepared.memory.snapshot();
    let dispatch = prepared.dispatch(args.max_instructions);
    dispatch.check()?;
    let own: Vec<String> = prepared.buffers.iter().map(|buffer| buffer.name.clone()).collect();
    let mut observer = Stores::new(&prepared, names.unwrap_or(&own));
    let (_, result) = dispatch::run_observed(&dispatch, &prepared.memory, &mut observer);
    let stores = observer.stores;
    drop(dispatch);
    let outputs = prepared.outputs()?.into_iter().map(|(name, array)| (name.to_string(), array)).collect();
    Ok((Ran { name: input_name(path), outputs, stores, fault: result.err(), prepared, initial }, own))
}

/// The tolerance for a type.
fn tolerance(args: &DiffArgs, dtype: DType) -> Tolerance {
    if !dtype.is_float() {
        return Tolerance { rtol: 0.0, atol: 0.0 };
    }
    let units = 8.0 * (-(f64::from(dtype.precision()) - 1.0)).exp2();
    Tolerance { rtol: args.rtol.unwrap_or(units), atol: args.atol }
}

/// Compares the outputs that both have.
fn differences(args: &DiffArgs, a: &Ran, b: &Ran) -> anyhow::Result<Vec<Mismatch>> {
    let mut out = Vec::new();
    let mut common = 0;
    for (name, expected) in &a.outputs {
        let Some((_, actual)) = b.outputs.iter().find(|(other, _)| other == name) else { continue };
        common += 1;
        if actual.dtype != expected.dtype || actual.len() != expected.len() {
            bail!("`{name}` has type {} in A and {} in B", expected.type_name(), actual.type_name());
        }
        out.extend(compare(name, actual, expected, tolerance(args, expected.dtype)));
    }
    if common == 0 && !a.outputs.is_empty() {
        let names = |ran: &Ran| ran.outputs.iter().map(|(name, _)| &**name).collect::<Vec<_>>().join(", ");
        bail!("no output has the same name in both: {} and {}", names(a), names(b));
    }
    Ok(out)
}

/// Returns the first store of A, in the order of its run, to which B has one with another value.
fn first_store(args: &DiffArgs, a: &Ran, b: &Ran) -> Option<Pair> {
    stores::first_difference((&a.stores, &b.stores), &a.prepared.buffers, |dtype| tolerance(args, dtype))
}

fn describe_store(ran: &Ran, name: &str, element: &Element, store: &Store) -> String {
    let program = &ran.prepared.program;
    let [x, y, z] = store.workgroup;
    let text = program.inst_at(store.pc).map_or_else(String::new, |at| program.text(at));
    let value = match ran.prepared.buffer(name) {
        Some(buffer) if usize::from(element.2) >= buffer.dtype.size() => {
            buffer.dtype.decode(&store.bytes).to_string()
        }
        _ => format!("0x{:x}", u64::from_le_bytes(store.bytes)),
    };
    format!(
        "{value}, stored at {}: {text} (workgroup ({x},{y},{z}), wave {})",
        program.place(store.pc),
        store.wave
    )
}

/// Returns the options of both kernels: a file that defines its own launch needs none if the other one does not.
fn both_options(args: &DiffArgs) -> [KernelArgs; 2] {
    let (a, b) = (args.kernel.clone(), options_of_b(args));
    let own = [a.for_file(&args.a), b.for_file(&args.b[0])];
    match own[0].call == own[1].call {
        true => [a, b],
        false => own,
    }
}

pub fn run(args: &DiffArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    if args.b.len() > 1 && !args.bisect {
        bail!("several second kernels are for --bisect");
    }
    progress::catch_interrupts();
    let [kernel_a, mut kernel_b] = both_options(args);
    let (a, names) = run_one(args, &kernel_a, &args.a, None)?;
    let mut path = &args.b[0];
    if args.bisect {
        match bisect(args, &kernel_b, &a, &names, out)? {
            Some(index) => path = &args.b[index],
            None => return Ok(OK),
        }
    }
    if args.bisect_passes {
        match bisect_passes(args, &kernel_b, &a, &names, out)? {
            Some(limit) => kernel_b = passes::limited(&kernel_b, Some(limit)),
            None => return Ok(OK),
        }
    }
    let (b, _) = run_one(args, &kernel_b, path, Some(&names))?;
    if INTERRUPT.load(Ordering::Relaxed) {
        return Ok(INTERRUPTED);
    }
    let faults: Vec<(&Ran, &Fault)> =
        [&a, &b].into_iter().filter_map(|ran| Some((ran, ran.fault.as_deref()?))).collect();
    if !faults.is_empty() {
        for (ran, fault) in &faults {
            writeln!(out, "{}: {fault}", ran.name)?;
        }
        return Ok(FAILED);
    }
    let list = differences(args, &a, &b)?;
    let store = if list.is_empty() { None } else { first_store(args, &a, &b) };
    let parted = match &store {
        Some(pair) => {
            let of = |store: &Store| (origin::item(store), store.time);
            origin::variables(args, [&a, &b], [of(&pair.stores[0]), of(&pair.stores[1])])?
        }
        None => None,
    };
    if args.json {
        writeln!(out, "{}", as_json(&a, &b, &list, store.as_ref(), parted.as_ref()))?;
        return Ok(if list.is_empty() { OK } else { FAILED });
    }
    let Some(first) = list.first() else {
        let count = a.outputs.len();
        writeln!(out, "equal: {count} {}", if count == 1 { "output" } else { "outputs" })?;
        return Ok(OK);
    };
    writeln!(out, "A: {}\nB: {}", a.name, b.name)?;
    for mismatch in &list {
        writeln!(out, "{}: {} of {} elements differ", mismatch.output, mismatch.differing, mismatch.total)?;
        for (index, expected, actual) in mismatch.first.iter().take(4) {
            writeln!(out, "  [{index}]: {expected} in A, {actual} in B")?;
        }
    }
    let mut element = first.first.first().map(|(index, ..)| format!("{}[{index}]", first.output));
    let mut items = [None; 2];
    if let Some(pair) = &store {
        let buffer = &a.prepared.buffers[pair.element.0];
        let stored = format!("{}[{}]", buffer.name, pair.element.1 / buffer.dtype.size() as u64);
        let number = if pair.number == 0 { String::new() } else { format!(", store {}", pair.number + 1) };
        writeln!(out, "\nthe first store with another value: {stored}{number}")?;
        for (side, (ran, store)) in ["A", "B"].into_iter().zip([&a, &b].into_iter().zip(&pair.stores)) {
            writeln!(out, "  {side}: {}", describe_store(ran, &buffer.name, &pair.element, store))?;
        }
        // What is stored there first is nearer to the cause; what is stored there last is what the debugger follows.
        if pair.is_last {
            element = Some(stored);
        }
        items = pair.stores.each_ref().map(|store| Some(origin::item(store)));
    }
    if let Some(Parted { values, equal }) = &parted {
        let Assignment { function, variable, .. } = &values[0];
        writeln!(out, "\nthe first variable with another value: {variable} of {function}")?;
        for (side, (ran, value)) in ["A", "B"].into_iter().zip([&a, &b].into_iter().zip(values)) {
            writeln!(out, "  {side}: {}", origin::describe(ran, value))?;
        }
        if !equal.is_empty() {
            let known: Vec<String> =
                equal.iter().map(|value| format!("{} = {}", value.variable, value.text)).collect();
            writeln!(out, "  the same in both before: {}", known.join(", "))?;
        }
        let questions = [0, 1].map(|side: usize| {
            let value: &Assignment = &values[side];
            Question { time: Some(value.time), item: items[side], what: value.variable.clone() }
        });
        origins(args, [&a, &b], &questions, out)?;
    }
    if let Some(element) = element {
        let questions = [0, 1].map(|_| Question { time: None, item: None, what: element.clone() });
        origins(args, [&a, &b], &questions, out)?;
    }
    Ok(FAILED)
}

/// Writes where a value comes from on both sides.
fn origins(
    args: &DiffArgs,
    [a, b]: [&Ran; 2],
    questions: &[Question; 2],
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let what = &questions[0].what;
    let titles = ["A", "B"].map(|side| format!("where {what} comes from in {side}:"));
    let trees = [origin::why(args, a, &questions[0])?, origin::why(args, b, &questions[1])?];
    writeln!(out)?;
    write!(out, "{}", origin::side_by_side([&titles[0], &titles[1]], [&trees[0], &trees[1]]))?;
    Ok(())
}

/// Returns the first number from `good` to `bad` for which `differs` is true, if it is for the last one: it is taken to be
/// false up to one of them, and true from there on.
fn first_that(
    (mut good, mut bad): (usize, usize),
    mut differs: impl FnMut(usize) -> anyhow::Result<bool>,
) -> anyhow::Result<Option<usize>> {
    if !differs(bad)? {
        return Ok(None);
    }
    while good < bad && !INTERRUPT.load(Ordering::Relaxed) {
        let middle = good.midpoint(bad);
        if differs(middle)? { bad = middle } else { good = middle + 1 }
    }
    Ok(Some(bad))
}

/// Returns whether a kernel has other results than A.
fn is_different(
    args: &DiffArgs,
    (kernel, path): (&KernelArgs, &Path),
    a: &Ran,
    names: &[String],
) -> anyhow::Result<bool> {
    let (b, _) = run_one(args, kernel, path, Some(names))?;
    Ok(b.fault.is_some() != a.fault.is_some() || !differences(args, a, &b)?.is_empty())
}

fn verdict(differs: bool) -> &'static str {
    if differs { "differs" } else { "equal" }
}

/// Finds the first of the second kernels that differs.
fn bisect(
    args: &DiffArgs,
    kernel: &KernelArgs,
    a: &Ran,
    names: &[String],
    out: &mut dyn Write,
) -> anyhow::Result<Option<usize>> {
    let found = first_that((0, args.b.len() - 1), |index| {
        let path = &args.b[index];
        let differs = is_different(args, (kernel, path), a, names)?;
        writeln!(out, "{}: {}", input_name(path), verdict(differs))?;
        Ok(differs)
    })?;
    if let Some(index) = found {
        writeln!(out, "first that differs: {}\n", input_name(&args.b[index]))?;
    }
    Ok(found)
}

/// Finds the first of the passes of the second kernel's compilation after which the results differ; returns the number of
/// passes up to it.
fn bisect_passes(
    args: &DiffArgs,
    kernel: &KernelArgs,
    a: &Ran,
    names: &[String],
    out: &mut dyn Write,
) -> anyhow::Result<Option<usize>> {
    let path = &args.b[0];
    let passes = passes::of_file(path, kernel)?;
    let found = first_that((0, passes.len()), |limit| {
        let differs = is_different(args, (&passes::limited(kernel, Some(limit)), path), a, names)?;
        writeln!(out, "{limit} of {} passes: {}", passes.len(), verdict(differs))?;
        Ok(differs)
    })?;
    match found {
        None => {}
        Some(0) => writeln!(out, "the results differ without these passes, too\n")?,
        Some(limit) => writeln!(out, "first pass after which they differ: {limit}, {}\n", passes[limit - 1])?,
    }
    Ok(found)
}

fn as_json(a: &Ran, b: &Ran, list: &[Mismatch], store: Option<&Pair>, parted: Option<&Parted>) -> Value {
    let outputs: Vec<Value> = list
        .iter()
        .map(|mismatch| {
            let dtype = a.prepared.buffer(&mismatch.output).map(|buffer| buffer.dtype);
            let first = mismatch.first.iter().filter_map(|(index, expected, actual)| {
                let dtype = dtype?;
                let number = |n| array_json::number(dtype, n);
                Some(json!({ "index": index, "a": number(*expected), "b": number(*actual) }))
            });
            let first: Vec<Value> = first.collect();
            json!({ "output": mismatch.output, "differing": mismatch.differing, "total": mismatch.total, "first": first })
        })
        .collect();
    let store = store.map(|Pair { element, stores: [own, other], .. }| {
        let line = |ran: &Ran, store: &Store| ran.prepared.program.place(store.pc);
        json!({
            "output": a.prepared.buffers[element.0].name,
            "offset_bytes": element.1,
            "a": line(a, own),
            "b": line(b, other),
        })
    });
    let variable = parted.map(|Parted { values: [own, other], .. }| {
        let side = |ran: &Ran, value: &Assignment| json!({ "value": value.text, "place": ran.prepared.program.place(value.pc) });
        json!({ "function": own.function, "variable": own.variable, "a": side(a, own), "b": side(b, other) })
    });
    json!({ "schema": "wavesim-diff-1", "a": a.name, "b": b.name, "equal": list.is_empty(), "outputs": outputs,
        "first_store": store, "first_variable": variable })
}
