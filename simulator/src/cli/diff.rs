//! `wavesim diff`: runs two kernels on the same launch, and finds where their results part.

use super::input::KernelArgs;
use super::target::{Target, parse_arch};
use super::{FAILED, INTERRUPTED, OK, input_name, progress};
use anyhow::bail;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use wavesim_array::{Array, DType, json as array_json};
use wavesim_debug::command::Debugger;
use wavesim_debug::timeline::Timeline;
use wavesim_engine::observe::{Done, Observer, Step};
use wavesim_engine::sched::dispatch::{self, INTERRUPT};
use wavesim_isa::arch::Arch;
use wavesim_loader::compare::{Mismatch, Tolerance, compare};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::watch::Place;
use wavesim_machine::fault::Fault;
use wavesim_machine::memory::Memory;

/// Run two kernels on the same launch, compare their outputs, and show where the first difference comes from
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct DiffArgs {
    /// The first kernel, whose results are expected
    pub a: PathBuf,
    /// The second kernel. With --bisect, several: builds in the order in which they were made
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
    /// Relative difference of floats that counts as equal [default: 8 units in the last place of the type]
    #[arg(long, value_name = "T")]
    pub rtol: Option<f64>,
    /// Absolute difference of floats that counts as equal
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    pub atol: f64,
    /// Find the first of several second kernels whose results differ, by bisection
    #[arg(long)]
    pub bisect: bool,
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
  wavesim diff o0.co o3.co --kernel axpy --grid 4 --block 64 \\
      --arg 'f32[256]=arange(256)' --arg 'out_y:f32[256]'
  wavesim diff good.co build1.co build2.co build3.co --bisect --kernel axpy

Exit codes: 0 the outputs are equal; 1 they differ, or one kernel faulted; 2 bad
usage or bad input; 130 interrupted.";

/// Stores that are compared, at most.
const MOST_STORES: usize = 1 << 22;

/// A store to a named argument.
#[derive(Debug, Clone, Copy)]
struct Store {
    time: u64,
    pc: u64,
    workgroup: [u32; 3],
    wave: u32,
    /// The first eight bytes.
    bytes: [u8; 8],
}

/// The place of a store that both kernels have: argument, offset, size, and the number of the store there.
type Key = (usize, u64, u8, u32);

/// Records the stores to the arguments.
struct Stores<'p> {
    memory: &'p Memory,
    /// First address, address after the last byte, and index of each argument.
    arguments: Vec<(u64, u64, usize)>,
    counts: HashMap<(usize, u64, u8), u32>,
    stores: HashMap<Key, Store>,
}

impl<'p> Stores<'p> {
    fn new(prepared: &'p Prepared, names: &[String]) -> Stores<'p> {
        let buffers = prepared.buffers.iter();
        let known = buffers.filter_map(|buffer| {
            let index = names.iter().position(|name| *name == buffer.name)?;
            Some((buffer.address, buffer.address + buffer.len_bytes, index))
        });
        let arguments = known.collect();
        Stores { memory: &prepared.memory, arguments, counts: HashMap::new(), stores: HashMap::new() }
    }
}

impl Observer for Stores<'_> {
    fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        for access in done.accesses.iter().filter(|a| a.write && !a.outside && a.place == Place::Global) {
            for access in access.each() {
                let inside = |argument: &&(u64, u64, usize)| {
                    argument.0 <= access.address && access.address < argument.1
                };
                let Some(&(first, _, index)) = self.arguments.iter().find(inside) else { continue };
                if self.stores.len() >= MOST_STORES {
                    return;
                }
                let place = (index, access.address - first, access.size_bytes);
                let count = self.counts.entry(place).or_default();
                let mut bytes = [0; 8];
                let size = usize::from(access.size_bytes).min(8);
                if self.memory.read(access.address, &mut bytes[..size]).is_err() {
                    continue;
                }
                let (time, pc, wave) = (step.time, step.pc, step.wave.id);
                let store = Store { time, pc, workgroup: step.wave.workgroup, wave, bytes };
                self.stores.insert((place.0, place.1, place.2, *count), store);
                *count += 1;
            }
        }
    }
}

/// A kernel that has run.
struct Ran {
    name: String,
    prepared: Prepared,
    outputs: Vec<(String, Array)>,
    stores: HashMap<Key, Store>,
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
    let dispatch = prepared.dispatch(args.max_instructions);
    dispatch.check()?;
    let own: Vec<String> = prepared.buffers.iter().map(|buffer| buffer.name.clone()).collect();
    let mut observer = Stores::new(&prepared, names.unwrap_or(&own));
    let (_, result) = dispatch::run_observed(&dispatch, &prepared.memory, &mut observer);
    let stores = observer.stores;
    drop(dispatch);
    let outputs = prepared.outputs()?.into_iter().map(|(name, array)| (name.to_string(), array)).collect();
    Ok((Ran { name: input_name(path), outputs, stores, fault: result.err(), prepared }, own))
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
fn first_store<'r>(args: &DiffArgs, a: &'r Ran, b: &'r Ran) -> Option<(Key, &'r Store, &'r Store)> {
    let mut pairs: Vec<_> =
        a.stores.iter().filter_map(|(key, own)| Some((*key, own, b.stores.get(key)?))).collect();
    pairs.sort_unstable_by_key(|(key, own, _)| (own.time, *key));
    pairs.into_iter().find(|(key, own, other)| {
        let dtype = a.prepared.buffers[key.0].dtype;
        let size = dtype.size();
        if own.bytes == other.bytes {
            return false;
        }
        if !dtype.is_float() || usize::from(key.2) < size || !key.1.is_multiple_of(size as u64) {
            return true;
        }
        let one = |store: &Store| Array { dtype, shape: Vec::new(), bytes: store.bytes[..size].to_vec() };
        compare("", &one(other), &one(own), tolerance(args, dtype)).is_some()
    })
}

fn describe_store(ran: &Ran, name: &str, key: &Key, store: &Store) -> String {
    let program = &ran.prepared.program;
    let [x, y, z] = store.workgroup;
    let text = program.inst_at(store.pc).map_or_else(String::new, |at| program.text(at));
    let value = match ran.prepared.buffer(name) {
        Some(buffer) if usize::from(key.2) >= buffer.dtype.size() => {
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

fn key_name(ran: &Ran, key: &Key) -> String {
    ran.prepared.buffers.get(key.0).map_or_else(String::new, |buffer| buffer.name.clone())
}

/// Returns the tree that shows where an element of an output comes from.
fn why(args: &DiffArgs, kernel: &KernelArgs, path: &Path, element: &str) -> anyhow::Result<String> {
    let prepared = kernel.prepare(path, None, 0)?;
    let dispatch = prepared.dispatch(args.max_instructions);
    let timeline = Timeline::new(&prepared, &dispatch)?;
    let mut debugger = Debugger::new(timeline, || INTERRUPT.load(Ordering::Relaxed));
    let run = debugger.execute("continue").0;
    run.map_err(anyhow::Error::msg)?;
    Ok(debugger
        .execute(&format!("why {element} {}", args.depth))
        .0
        .unwrap_or_else(|message| format!("{message}\n")))
}

pub fn run(args: &DiffArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    if args.b.len() > 1 && !args.bisect {
        bail!("several second kernels are for --bisect");
    }
    progress::catch_interrupts();
    let kernel_b = options_of_b(args);
    let (a, names) = run_one(args, &args.kernel, &args.a, None)?;
    let path = match args.bisect {
        false => &args.b[0],
        true => match bisect(args, &kernel_b, &a, &names, out)? {
            Some(path) => path,
            None => return Ok(OK),
        },
    };
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
    if args.json {
        writeln!(out, "{}", as_json(args, &a, &b, &list))?;
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
    if let Some((key, own, other)) = first_store(args, &a, &b) {
        let size = a.prepared.buffers[key.0].dtype.size() as u64;
        let name = key_name(&a, &key);
        let stored = format!("{name}[{}]", key.1 / size);
        let number = if key.3 == 0 { String::new() } else { format!(", store {}", key.3 + 1) };
        writeln!(out, "\nthe first store with another value: {stored}{number}")?;
        writeln!(out, "  A: {}", describe_store(&a, &name, &key, own))?;
        writeln!(out, "  B: {}", describe_store(&b, &name, &key, other))?;
        // What is stored there first is nearer to the cause; what is stored there last is what the debugger follows.
        if !a.stores.contains_key(&(key.0, key.1, key.2, key.3 + 1)) {
            element = Some(stored);
        }
    }
    if let Some(element) = element {
        writeln!(out, "\nwhere {element} comes from in A:")?;
        write!(out, "{}", why(args, &args.kernel, &args.a, &element)?)?;
        writeln!(out, "\nwhere {element} comes from in B:")?;
        write!(out, "{}", why(args, &kernel_b, path, &element)?)?;
    }
    Ok(FAILED)
}

/// Finds the first of the second kernels that differs, if the last one does: the ones before it are taken to be equal up
/// to one of them, and different from there on.
fn bisect<'p>(
    args: &'p DiffArgs,
    kernel: &KernelArgs,
    a: &Ran,
    names: &[String],
    out: &mut dyn Write,
) -> anyhow::Result<Option<&'p PathBuf>> {
    let mut differs = |path: &Path| -> anyhow::Result<bool> {
        let (b, _) = run_one(args, kernel, path, Some(names))?;
        let differs = b.fault.is_some() != a.fault.is_some() || !differences(args, a, &b)?.is_empty();
        writeln!(out, "{}: {}", input_name(path), if differs { "differs" } else { "equal" })?;
        Ok(differs)
    };
    let (mut good, mut bad) = (0, args.b.len());
    match args.b.last() {
        Some(last) if differs(last)? => bad -= 1,
        _ => return Ok(None),
    }
    while good < bad {
        let middle = (good + bad) / 2;
        if differs(&args.b[middle])? { bad = middle } else { good = middle + 1 }
    }
    writeln!(out, "first that differs: {}\n", input_name(&args.b[bad]))?;
    Ok(args.b.get(bad))
}

fn as_json(args: &DiffArgs, a: &Ran, b: &Ran, list: &[Mismatch]) -> Value {
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
    let store = first_store(args, a, b).map(|(key, own, other)| {
        let line = |ran: &Ran, store: &Store| ran.prepared.program.place(store.pc);
        json!({
            "output": key_name(a, &key),
            "offset_bytes": key.1,
            "a": line(a, own),
            "b": line(b, other),
        })
    });
    json!({ "schema": "wavesim-diff-1", "a": a.name, "b": b.name, "equal": list.is_empty(), "outputs": outputs,
        "first_store": store })
}
