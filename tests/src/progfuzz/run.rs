//! Execution of compiled programs by the engines, and comparison with the host.

use super::build::Oracle;
use super::source;
use super::tree::{Function, Program, Scalar};
use crate::random::Rng;
use std::fmt;
use wavesim::array::{Array, DType};
use wavesim::check::{Check, Checker, GUARD_BYTES, Severity};
use wavesim::exec::interp::Compiled;
use wavesim::fault::{Fault, FaultKind};
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
    /// The interpreter under all checks, which must report nothing.
    Checked,
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
            Engine::Interpreter | Engine::Checked => None,
            Engine::Jit => Jit::new(program).ok(),
            Engine::Threshold(count) => Jit::with_threshold(program, count).ok(),
            Engine::Auto => Jit::in_background(program).ok(),
        }
    }
}

/// Limit on wave-instructions of a kernel; longer programs are abandoned.
const LIMIT: u64 = 20_000_000;

/// A result that differs from the expected one.
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

/// Runs all kernels of a code object with each of the engines. `host` are the host's buffers at the end, from
/// which later kernels get their input. Returns the differences from these or from the interpreter's buffers.
pub fn run(
    program: &Program,
    object: &[u8],
    host: &[Vec<u8>],
    oracle: Oracle,
    engines: &[Engine],
) -> Result<Vec<Difference>, Abandoned> {
    let before = buffers(program);
    let mut differences = Vec::new();
    for kernel in 0..program.kernels.len() {
        let mut args: Vec<(String, ArgumentValue)> = Vec::new();
        for (name, index) in kernel_buffers(kernel) {
            let contents = if name == "prev" { &host[index] } else { &before[index] };
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
                let memory = Memory::with_guard(8 << 20, GUARD_BYTES).map_err(|e| e.to_string())?;
                request.prepare(&k, memory).map_err(|e| e.to_string())
            })
            .map_err(Abandoned::NotPrepared)?;
        let initial = prepared.memory.snapshot();
        let mut expected = match oracle {
            Oracle::Host => Some(Outputs::of(kernel, |index| host[index].clone())),
            Oracle::Interpreter => None,
        };
        for engine in engines {
            prepared.memory.restore(&initial);
            let what = match (run_kernel(&prepared, kernel, *engine)?, &expected) {
                (Ok(found), Some(expected)) => expected.compare(&found),
                (Ok(found), None) => {
                    expected = Some(found);
                    None
                }
                // Programs that are compiled incorrectly may fault: there is nothing to compare.
                (Err(_), _) if oracle == Oracle::Interpreter && *engine == Engine::Interpreter => break,
                (Err(fault), _) => Some(What::Fault(fault)),
            };
            let overflows = |w: &What| matches!(w, What::Fault(text) if text.contains("bytes of scratch"));
            if program.functions.iter().any(Function::is_recursive) && what.as_ref().is_some_and(overflows) {
                return Err(Abandoned::Stack);
            }
            differences.extend(what.map(|what| Difference { kernel, engine: *engine, what }));
        }
    }
    Ok(differences)
}

/// The contents of the buffers that a kernel writes, with their names.
struct Outputs([(&'static str, Vec<u8>); 2]);

impl Outputs {
    fn of(kernel: usize, contents: impl Fn(usize) -> Vec<u8>) -> Outputs {
        let [_, _, out, atomics] = kernel_buffers(kernel);
        Outputs([out, atomics].map(|(name, index)| (name, contents(index))))
    }

    /// Returns the first difference.
    fn compare(&self, found: &Outputs) -> Option<What> {
        for ((name, expected), (_, found)) in self.0.iter().zip(&found.0) {
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
            let (expected, found) = (dword(expected), dword(found));
            return Some(What::Bytes { buffer: name, offset, count, expected, found });
        }
        None
    }
}

/// Runs a kernel. Returns its outputs, or the text of a fault.
fn run_kernel(
    prepared: &Prepared,
    kernel: usize,
    engine: Engine,
) -> Result<Result<Outputs, String>, Abandoned> {
    let code = engine.code(prepared);
    let mut dispatch = prepared.dispatch(LIMIT);
    dispatch.compiled = code.as_ref().map(|c| c as &(dyn Compiled + Sync));
    dispatch.schedule = [Schedule::RoundRobin, Schedule::Reverse, Schedule::Random(1)][kernel % 3];
    let (result, findings) = match engine {
        Engine::Checked => checked(prepared, &dispatch)?,
        _ => (dispatch::run(&dispatch, &prepared.memory).map(|_| ()), String::new()),
    };
    if let Err(fault) = result {
        return match fault.kind {
            FaultKind::InstructionLimit => Err(Abandoned::TooLong),
            _ => Ok(Err(fault.to_string())),
        };
    }
    if !findings.is_empty() {
        return Ok(Err(findings));
    }
    let [_, _, out, atomics] = kernel_buffers(kernel);
    let outputs = [out, atomics].map(|(name, _)| {
        let found = prepared.buffer(name).and_then(|b| b.read(&prepared.memory).ok());
        (name, found.map_or(Vec::new(), |array| array.bytes))
    });
    Ok(Ok(Outputs(outputs)))
}

/// Runs a kernel under all checks. Returns its fault and the texts of all findings that are
/// errors.
fn checked(
    prepared: &Prepared,
    dispatch: &dispatch::Dispatch<'_>,
) -> Result<(Result<(), Box<Fault>>, String), Abandoned> {
    let not_prepared = |e: dispatch::DispatchError| Abandoned::NotPrepared(e.to_string());
    let mut checker =
        Checker::new(prepared, Check::default_of(prepared.program.arch)).map_err(not_prepared)?;
    let (_, result) = checker.run(dispatch);
    let findings = checker.finish(result.as_ref().err().map(|f| &**f));
    let errors = findings.iter().filter(|f| f.severity == Severity::Error);
    let texts: Vec<String> = errors.map(|f| f.to_string()).collect();
    Ok((result, texts.join("\n")))
}
