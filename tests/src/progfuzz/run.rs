//! Execution of compiled programs by the engines, and comparison with the host.

use super::source;
use super::tree::{Function, Program, Scalar};
use crate::random::Rng;
use std::fmt;
use wavesim::array::{Array, DType};
use wavesim::exec::interp::Compiled;
use wavesim::jit::Jit;
use wavesim::loader::code_object;
use wavesim::loader::prepared::Prepared;
use wavesim::loader::request::{ArgumentValue, Request};
use wavesim::memory::Memory;
use wavesim::sched::dispatch::{self, Schedule};

/// An execution engine, as `--engine` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Interpreter,
    /// Operations are compiled after a few executions.
    Jit,
    /// Operations are compiled after this number of executions. It determines which operations are compiled
    /// together.
    Threshold(u16),
    Auto,
}

impl Engine {
    /// All engines, with a random threshold.
    pub fn all(rng: &mut Rng) -> [Engine; 4] {
        let threshold = Engine::Threshold(rng.pick(&[0, 0, 1, 2, 4, 8, 30]));
        [Engine::Interpreter, Engine::Jit, threshold, Engine::Auto]
    }

    /// Compiled code of a program, if this engine has it on this host.
    fn code(self, prepared: &Prepared) -> Option<Jit> {
        let program = &prepared.program;
        match self {
            Engine::Interpreter => None,
            Engine::Jit => Jit::new(program).ok(),
            Engine::Threshold(count) => Jit::with_threshold(program, count).ok(),
            Engine::Auto => Jit::in_background(program).ok(),
        }
    }
}

/// Limit on wave-instructions of a kernel; longer programs are abandoned.
const LIMIT: u64 = 20_000_000;

/// A result that differs from the host's.
#[derive(Debug, Clone)]
pub struct Difference {
    pub kernel: usize,
    pub engine: Engine,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The first byte that differs, the number of differing bytes, and the dwords there: expected and found.
    Bytes {
        buffer: &'static str,
        offset: usize,
        count: usize,
        expected: u32,
        found: u32,
    },
    Fault(String),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel{}, {:?}: ", self.kernel, self.engine)?;
        match &self.what {
            What::Bytes { buffer, offset, count, expected, found } => write!(
                f,
                "{count} bytes of {buffer} differ, the first at {offset}: expected {expected:08x}, found {found:08x}"
            ),
            What::Fault(text) => f.write_str(text),
        }
    }
}

/// Why a run proves nothing.
#[derive(Debug)]
pub enum Abandoned {
    /// The program runs for too long.
    TooLong,
    /// Its recursion needs more scratch than a launch provides for an unknown stack.
    Stack,
    /// It cannot be prepared: an error of the fuzzer or of the loader.
    NotPrepared(String),
}

/// The buffers of a program before it runs: the input, and for each kernel its output and its atomics.
pub fn buffers(program: &Program) -> Vec<Vec<u8>> {
    let input = source::input(program);
    let atomics = input[..source::ATOMIC_BYTES].to_vec();
    let mut all = vec![input];
    for kernel in 0..program.kernels.len() {
        all.push(vec![0; source::output_bytes(program, kernel)]);
        all.push(atomics.clone());
    }
    all
}

fn array(bytes: &[u8]) -> Array {
    Array { dtype: DType::U32, shape: vec![bytes.len() as u64 / 4], bytes: bytes.to_vec() }
}

/// The names of a kernel's buffers, and the indices of their contents.
pub fn kernel_buffers(kernel: usize) -> [(&'static str, usize); 4] {
    let prev = if kernel == 0 { 0 } else { 2 * kernel - 1 };
    [("in", 0), ("prev", prev), ("out", 2 * kernel + 1), ("ga", 2 * kernel + 2)]
}

/// The scalar arguments: names, types and bytes.
pub fn scalars(program: &Program) -> Vec<(String, Scalar, Vec<u8>)> {
    let bytes = |s: Scalar, bits: u64| bits.to_le_bytes()[..s.bits() as usize / 8].to_vec();
    source::arguments(program)
        .into_iter()
        .map(|(s, bits)| (format!("a_{}", s.name()), s, bytes(s, bits)))
        .collect()
}

/// Runs all kernels of a code object with each of the engines. `expected` are the host's buffers at the end,
/// from which later kernels get their input. Returns the differences.
pub fn run(
    program: &Program,
    object: &[u8],
    expected: &[Vec<u8>],
    engines: &[Engine],
) -> Result<Vec<Difference>, Abandoned> {
    let before = buffers(program);
    let mut differences = Vec::new();
    for kernel in 0..program.kernels.len() {
        let mut args: Vec<(String, ArgumentValue)> = Vec::new();
        for (name, index) in kernel_buffers(kernel) {
            let contents = if name == "prev" { &expected[index] } else { &before[index] };
            args.push((name.to_string(), ArgumentValue::Buffer(array(contents))));
        }
        args.extend(scalars(program).into_iter().map(|(name, _, bytes)| (name, ArgumentValue::Bytes(bytes))));
        let request = Request {
            grid: [program.groups[0], program.groups[1], 1],
            block: [program.block[0], program.block[1], 1],
            dynamic_lds: 0,
            args,
            outputs: Vec::new(),
        };
        let prepared = code_object::load(object, &format!("kernel{kernel}"))
            .map_err(|e| e.to_string())
            .and_then(|k| {
                let memory = Memory::new(8 << 20).map_err(|e| e.to_string())?;
                request.prepare(&k, memory).map_err(|e| e.to_string())
            })
            .map_err(Abandoned::NotPrepared)?;
        let initial = prepared.memory.snapshot();
        for engine in engines {
            prepared.memory.restore(&initial);
            let difference = run_kernel(&prepared, kernel, *engine, expected)?;
            let overflows =
                |d: &Difference| matches!(&d.what, What::Fault(text) if text.contains("bytes of scratch"));
            if program.functions.iter().any(Function::is_recursive)
                && difference.as_ref().is_some_and(overflows)
            {
                return Err(Abandoned::Stack);
            }
            differences.extend(difference);
        }
    }
    Ok(differences)
}

fn run_kernel(
    prepared: &Prepared,
    kernel: usize,
    engine: Engine,
    expected: &[Vec<u8>],
) -> Result<Option<Difference>, Abandoned> {
    let code = engine.code(prepared);
    let mut dispatch = prepared.dispatch(LIMIT);
    dispatch.compiled = code.as_ref().map(|c| c as &(dyn Compiled + Sync));
    dispatch.schedule = [Schedule::RoundRobin, Schedule::Reverse, Schedule::Random(1)][kernel % 3];
    let difference = |what| Difference { kernel, engine, what };
    if let Err(fault) = dispatch::run(&dispatch, &prepared.memory) {
        return match fault.kind {
            wavesim::fault::FaultKind::InstructionLimit => Err(Abandoned::TooLong),
            _ => Ok(Some(difference(What::Fault(fault.to_string())))),
        };
    }
    for (name, index) in kernel_buffers(kernel).into_iter().filter(|(name, _)| matches!(*name, "out" | "ga"))
    {
        let found =
            prepared.buffer(name).and_then(|b| b.read(&prepared.memory).ok()).unwrap_or_else(|| array(&[]));
        let (expected, found) = (&expected[index], &found.bytes);
        if expected == found {
            continue;
        }
        let differs = |i: &usize| expected.get(*i) != found.get(*i);
        let offset = (0..expected.len()).find(differs).unwrap_or_default();
        let dword = |bytes: &[u8]| {
            let at = bytes.get(offset & !3..(offset & !3) + 4).unwrap_or(&[0; 4]);
            u32::from_le_bytes([at[0], at[1], at[2], at[3]])
        };
        let count = (0..expected.len()).filter(differs).count();
        let what =
            What::Bytes { buffer: name, offset, count, expected: dword(expected), found: dword(found) };
        return Ok(Some(difference(what)));
    }
    Ok(None)
}
