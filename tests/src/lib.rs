//! Test support: runs the command line in-process, and prepares and runs text kernels.

pub mod c_export;
pub mod cases;
pub mod fuzz;
pub mod legal;
pub mod machine;
pub mod progfuzz;
pub mod programs;
pub mod random;
pub mod schema;
pub mod smt_export;
pub mod whole;

use clap::Parser;
use isa_spec::source::SourceMap;
use isa_spec::tables::{EntryId, MAX_FIELDS};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use wavesim::arch::Arch;
use wavesim::array::Array;
use wavesim::cli::{self, Cli};
use wavesim::exec::Context;
use wavesim::exec::interp::{Compiled, EnterResult, HotnessCounters, Waves};
use wavesim::exec::program::Program;
use wavesim::exec::rt::Cx;
use wavesim::fault::Fault;
use wavesim::inst::Inst;
use wavesim::jit::Jit;
use wavesim::loader::prepared::Prepared;
use wavesim::loader::text_kernel;
use wavesim::memory::Memory;
use wavesim::sched::dispatch::{self, Schedule};
use wavesim::state::Workgroup;
use wavesim::text::{self, Options, TextKernel};

/// Returns the root directory of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns a file or directory of large test data outside the repository: in `WAVESIM_SHARED`, or in
/// `../shared` next to the workspace.
pub fn shared(name: &str) -> Option<PathBuf> {
    let base = std::env::var_os("WAVESIM_SHARED").map_or(root().join("../shared"), PathBuf::from);
    Some(base.join(name)).filter(|path| path.exists())
}

/// Returns the CPU time of this thread, which is independent of other load on the machine. If the system does
/// not provide it, returns the time since the first call.
pub fn processor_time() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let cpu_time = |text: String| text.split(' ').next()?.parse().ok().map(Duration::from_nanos);
    let read = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    read.and_then(cpu_time).unwrap_or_else(|| START.elapsed())
}

/// Runs a command. Returns its exit code and standard output.
pub fn wavesim(args: &[&str]) -> (u8, String) {
    let cli = Cli::try_parse_from(std::iter::once("wavesim").chain(args.iter().copied()))
        .unwrap_or_else(|e| panic!("{args:?}: {e}"));
    let mut out = Vec::new();
    let code = cli::dispatch(&cli.command, &mut out).unwrap_or_else(|e| {
        out.extend(format!("error: {e:#}").bytes());
        cli::BAD_INPUT
    });
    (code, String::from_utf8(out).expect("text"))
}

/// Configuration for running a text kernel.
#[derive(Debug, Clone)]
pub struct Setup {
    pub arch: Arch,
    pub wave: Option<u32>,
    pub schedule: Schedule,
    pub threads: usize,
    pub seed: u64,
    pub defines: Vec<String>,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            arch: Arch::Rdna3,
            wave: None,
            schedule: Schedule::RoundRobin,
            threads: 1,
            seed: 0,
            defines: Vec::new(),
        }
    }
}

fn options(setup: &Setup) -> Result<Options, String> {
    let mut options =
        Options { arch: Some(setup.arch), wave: setup.wave, seed: setup.seed, ..Options::default() };
    for definition in &setup.defines {
        options.constants.define(definition)?;
    }
    Ok(options)
}

/// Parses a text kernel as the file `kernel.rdna`. The error is the rendered diagnostics.
pub fn parse(source: &str, setup: &Setup) -> Result<TextKernel, String> {
    let mut sources = SourceMap::default();
    let file = sources.add("kernel.rdna", source);
    text::parse(&sources, file, &options(setup)?).map_err(|d| text::render(&sources, &d))
}

/// Prepares a text kernel to run.
pub fn prepare(source: &str, setup: &Setup) -> Result<Prepared, String> {
    text_kernel::prepare("kernel.rdna", source, &options(setup)?, 0).map_err(|e| e.to_string())
}

/// Runs a text kernel. Returns its outputs by name.
pub fn run(source: &str, setup: &Setup) -> Result<BTreeMap<String, Array>, Box<Fault>> {
    let prepared = prepare(source, setup).unwrap_or_else(|e| panic!("{e}"));
    let mut dispatch = prepared.dispatch(10_000_000);
    dispatch.schedule = setup.schedule;
    dispatch.threads = setup.threads;
    dispatch::run(&dispatch, &prepared.memory)?;
    let outputs = prepared.outputs().expect("outputs are in memory");
    Ok(outputs.into_iter().map(|(name, array)| (name.to_string(), array)).collect())
}

/// Splits a command line into words, as a shell does.
pub fn command_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quote) = (None::<String>, None);
    for c in line.chars() {
        match (c, quote) {
            _ if quote == Some(c) => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (' ', None) => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Returns the elements of an array of any 32-bit type as bit patterns.
pub fn words(array: &Array) -> Vec<u32> {
    array.bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

pub fn f32s(array: &Array) -> Vec<f32> {
    words(array).into_iter().map(f32::from_bits).collect()
}

/// Calls `f` with a context for executing instructions outside a dispatch: one workgroup of one wave, LDS,
/// scratch with `scratch_stride` bytes per lane, and optionally global memory at the given base address.
pub fn with_context<R>(
    global: Option<(u64, &mut [u8])>,
    lds: &mut [u8],
    (scratch, scratch_stride): (&mut [u8], u32),
    f: impl FnOnce(&mut Context<'_>) -> R,
) -> R {
    let mut memory = Memory::empty();
    if let Some((base, bytes)) = global {
        // SAFETY: `bytes` is mutably borrowed for longer than `memory` lives.
        unsafe { memory.map_host(base, bytes.as_mut_ptr(), bytes.len() as u64, true) }.expect("one range");
    }
    let mut workgroup = Workgroup::new(1);
    f(&mut Context {
        memory: &memory,
        lds,
        scratch,
        scratch_stride,
        workgroup: &mut workgroup,
        instructions: 7,
        cancel: None,
    })
}

/// Builds the instruction `name` in `encoding`. Fields that are not given are zero.
pub fn inst(arch: Arch, name: &str, encoding: &str, values: &[(&str, u32)]) -> Option<Inst> {
    let table = arch.table();
    let found = table.entries.iter().position(|e| {
        table.instructions[e.inst as usize].name == name && table.encodings[e.enc as usize].name == encoding
    })?;
    let entry = &table.entries[found];
    let encoding = &table.encodings[entry.enc as usize];
    let mut fields = [0; MAX_FIELDS];
    for (value, field) in fields.iter_mut().zip(encoding.fields) {
        *value = field.fixed.unwrap_or(0);
    }
    if let Some(op) = encoding.op_field {
        fields[op as usize] = entry.opcode as u32;
    }
    for (field, value) in values {
        fields[encoding.fields.iter().position(|f| f.name == *field)?] = *value;
    }
    Some(Inst { entry: found as EntryId, entry_y: EntryId::MAX, size: (encoding.bits / 8) as u8, fields })
}

/// Compiles all supported operations of a program, before it runs. Returns `None` on hosts that the compiler
/// does not support.
pub fn compiled(program: &Program) -> Option<Box<dyn Compiled>> {
    Some(Box::new(CountedCode(Jit::with_threshold(program, 0).ok()?)))
}

thread_local! {
    static ENTERED: Cell<u64> = const { Cell::new(0) };
}

/// Returns how often this thread has entered [`compiled`] code. Tests check it, because a test that never
/// enters compiled code proves nothing.
pub fn entered() -> u64 {
    ENTERED.get()
}

/// Compiled code that counts how often it is entered.
struct CountedCode(Jit);

// SAFETY: all methods forward to the `Jit`, which upholds the trait's contract.
unsafe impl Compiled for CountedCode {
    fn is_ready(&self) -> bool {
        self.0.is_ready()
    }

    fn hotness(&self, cx: &Cx<'_>, program: &Program) -> HotnessCounters<'_> {
        self.0.hotness(cx, program)
    }

    fn enter<'a>(
        &self,
        cx: &mut Cx<'a>,
        program: &'a Program,
        start: u32,
        end: &mut u64,
        waves: &mut dyn Waves<'a>,
    ) -> EnterResult<'a> {
        let entered = self.0.enter(cx, program, start, end, waves);
        ENTERED.set(ENTERED.get() + !matches!(entered, EnterResult::NoCode) as u64);
        entered
    }
}
