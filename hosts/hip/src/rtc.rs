//! `hiprtc`: run-time compilation with the installed clang and HIP's headers.

use crate::gpu::{gpu, lock};
use crate::status::report;
use crate::stream::{Handle, new_handle};
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::{Arc, Mutex};
use wavesim::loader::code_object;
use wavesim_clang::compile::{Format, Job, Source};
use wavesim_clang::options::{Language, accept_strings};
use wavesim_clang::{Clang, Linked, is_contained};
use wavesim_runtime::ffi::{self, Memory, c_text};

/// `hiprtcResult`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rtc(c_int);

impl Rtc {
    /// `HIPRTC_ERROR_PROGRAM_CREATION_FAILURE`.
    pub const PROGRAM_CREATION: Rtc = Rtc(2);
    /// `HIPRTC_ERROR_INVALID_INPUT`.
    pub const INVALID_INPUT: Rtc = Rtc(3);
    const INVALID_PROGRAM: Rtc = Rtc(4);
    const INVALID_OPTION: Rtc = Rtc(5);
    const COMPILATION: Rtc = Rtc(6);
    const NO_NAMES_AFTER_COMPILATION: Rtc = Rtc(8);
    const NO_NAMES_BEFORE_COMPILATION: Rtc = Rtc(9);
    const NAME_NOT_VALID: Rtc = Rtc(10);
    const INTERNAL: Rtc = Rtc(11);
    /// `HIPRTC_ERROR_LINKING`.
    pub const LINKING: Rtc = Rtc(100);
}

/// Names of the values.
const NAMES: [(c_int, &CStr); 13] = [
    (0, c"HIPRTC_SUCCESS"),
    (1, c"HIPRTC_ERROR_OUT_OF_MEMORY"),
    (2, c"HIPRTC_ERROR_PROGRAM_CREATION_FAILURE"),
    (3, c"HIPRTC_ERROR_INVALID_INPUT"),
    (4, c"HIPRTC_ERROR_INVALID_PROGRAM"),
    (5, c"HIPRTC_ERROR_INVALID_OPTION"),
    (6, c"HIPRTC_ERROR_COMPILATION"),
    (7, c"HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE"),
    (8, c"HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION"),
    (9, c"HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION"),
    (10, c"HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID"),
    (11, c"HIPRTC_ERROR_INTERNAL_ERROR"),
    (100, c"HIPRTC_ERROR_LINKING"),
];

/// Result of a call.
pub type RtcResult<T = ()> = Result<T, Rtc>;
type Out<T> = ffi::Out<T, Rtc>;
type In<T> = ffi::In<T, Rtc>;
type Text = ffi::Text<Rtc>;

impl From<ffi::Null> for Rtc {
    fn from(_: ffi::Null) -> Rtc {
        Rtc::INVALID_INPUT
    }
}

/// A `hiprtc` program.
struct Program {
    handle: Handle,
    source: String,
    /// File name of the source in messages and line tables.
    name: String,
    headers: Vec<(String, String)>,
    expressions: Vec<String>,
    /// Lowered names in the code object, by name expression.
    lowered: BTreeMap<String, CString>,
    log: String,
    /// The result of a successful compilation.
    code: Option<Code>,
}

/// Result of a compilation.
#[derive(Clone)]
enum Code {
    Object(Vec<u8>),
    /// Bitcode for linking, compiled with `-fgpu-rdc`.
    Bitcode(Vec<u8>),
}

/// Programs by handle.
static PROGRAMS: Mutex<Option<HashMap<Handle, Arc<Mutex<Program>>>>> = Mutex::new(None);

fn find(handle: Handle) -> RtcResult<Arc<Mutex<Program>>> {
    lock(&PROGRAMS).get_or_insert_default().get(&handle).cloned().ok_or(Rtc::INVALID_PROGRAM)
}

/// Runs the body of an exported function. Panics do not unwind into the program.
pub fn call(body: impl FnOnce() -> RtcResult) -> c_int {
    // Unwind safety: programs are behind locks that ignore poisoning, and each change is a single assignment.
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    match result {
        Ok(result) => result.err().map_or(0, |rtc| rtc.0),
        Err(_) => {
            report("hiprtc: internal error");
            Rtc::INTERNAL.0
        }
    }
}

/// `hiprtcGetErrorString`.
pub unsafe extern "C" fn hiprtcGetErrorString(result: c_int) -> *const c_char {
    let found = NAMES.iter().find(|row| row.0 == result);
    c_text(found.map_or(c"Invalid HIPRTC error code", |row| row.1))
}

/// `hiprtcVersion`.
pub unsafe extern "C" fn hiprtcVersion(major: Out<c_int>, minor: Out<c_int>) -> c_int {
    call(|| {
        major.put(9)?;
        minor.put(0)
    })
}

/// `hiprtcCreateProgram`.
pub unsafe extern "C" fn hiprtcCreateProgram(
    program: Out<Handle>,
    source: Text,
    name: Text,
    count: c_int,
    headers: In<Text>,
    names: In<Text>,
) -> c_int {
    call(|| {
        let source = source.get()?;
        let name = if name.is_null() { String::new() } else { name.get()? };
        let count = usize::try_from(count).map_err(|_| Rtc::INVALID_INPUT)?;
        // SAFETY: the caller of the API passes arrays of this length.
        let (names, texts) = unsafe { (names.list(count)?, headers.list(count)?) };
        let header = |(name, text): (Text, Text)| Ok((name.get()?, text.get()?));
        let headers = names.into_iter().zip(texts).map(header).collect::<RtcResult<Vec<_>>>()?;
        if headers.iter().any(|(name, _)| !is_contained(name)) {
            report("hiprtcCreateProgram: a header's name refers outside its directory");
            return Err(Rtc::PROGRAM_CREATION);
        }
        let name = if is_contained(&name) { name } else { "program.hip".to_string() };
        let handle = new_handle();
        let created = Program {
            handle,
            source,
            name,
            headers,
            expressions: Vec::new(),
            lowered: BTreeMap::new(),
            log: String::new(),
            code: None,
        };
        program.put(handle)?;
        lock(&PROGRAMS).get_or_insert_default().insert(handle, Arc::new(Mutex::new(created)));
        Ok(())
    })
}

/// `hiprtcDestroyProgram`.
pub unsafe extern "C" fn hiprtcDestroyProgram(program: In<Handle>) -> c_int {
    call(|| {
        let removed = lock(&PROGRAMS).get_or_insert_default().remove(&program.get()?);
        removed.map(drop).ok_or(Rtc::INVALID_PROGRAM)
    })
}

/// `hiprtcAddNameExpression`.
pub unsafe extern "C" fn hiprtcAddNameExpression(program: Handle, expression: Text) -> c_int {
    call(|| {
        let (program, expression) = (find(program)?, expression.get()?);
        let mut program = lock(&program);
        if program.code.is_some() {
            return Err(Rtc::NO_NAMES_AFTER_COMPILATION);
        }
        program.expressions.push(expression);
        Ok(())
    })
}

/// `hiprtcGetLoweredName`. The string is valid while the program exists.
pub unsafe extern "C" fn hiprtcGetLoweredName(
    program: Handle,
    expression: Text,
    name: Out<*const c_char>,
) -> c_int {
    call(|| {
        let (program, expression) = (find(program)?, expression.get()?);
        let program = lock(&program);
        if program.code.is_none() {
            return Err(Rtc::NO_NAMES_BEFORE_COMPILATION);
        }
        // The names of a compiled program are immutable.
        let found = program.lowered.get(expression.trim()).ok_or(Rtc::NAME_NOT_VALID)?;
        name.put(found.as_ptr())
    })
}

/// `hiprtcCompileProgram`.
pub unsafe extern "C" fn hiprtcCompileProgram(program: Handle, count: c_int, options: In<Text>) -> c_int {
    call(|| {
        let program = find(program)?;
        let count = usize::try_from(count).map_err(|_| Rtc::INVALID_INPUT)?;
        // SAFETY: the caller of the API passes an array of this length.
        let options = unsafe { options.list(count)? };
        let options = options.into_iter().map(Text::get).collect::<RtcResult<Vec<_>>>()?;
        let mut program = lock(&program);
        program.code = None;
        program.lowered.clear();
        let result = program.compile(&options);
        if let Err((rtc, log)) = result {
            program.log += &log;
            return Err(rtc);
        }
        Ok(())
    })
}

/// Returns the code object of a compiled program.
fn code(program: Handle) -> RtcResult<Vec<u8>> {
    match lock(&*find(program)?).code.clone() {
        Some(Code::Object(code)) => Ok(code),
        _ => Err(Rtc::INVALID_PROGRAM),
    }
}

/// Returns the bitcode of a program compiled with `-fgpu-rdc`.
fn bitcode(program: Handle) -> RtcResult<Vec<u8>> {
    match lock(&*find(program)?).code.clone() {
        Some(Code::Bitcode(code)) => Ok(code),
        _ => Err(Rtc::INVALID_PROGRAM),
    }
}

/// Copies a result to the caller's memory.
///
/// # Safety
/// Unless it is null, `out` has room for all bytes.
unsafe fn put(bytes: impl FnOnce() -> RtcResult<Vec<u8>>, out: Memory) -> RtcResult {
    if out.is_null() {
        return Err(Rtc::INVALID_INPUT);
    }
    // SAFETY: the caller guarantees the memory.
    unsafe { out.write(&bytes()?) };
    Ok(())
}

/// Returns a size to the caller, who must want it.
fn put_size(bytes: impl FnOnce() -> RtcResult<usize>, out: Out<usize>) -> RtcResult {
    if out.is_null() { Err(Rtc::INVALID_INPUT) } else { out.put(bytes()?) }
}

/// `hiprtcGetCodeSize`.
pub unsafe extern "C" fn hiprtcGetCodeSize(program: Handle, size: Out<usize>) -> c_int {
    call(|| put_size(|| Ok(code(program)?.len()), size))
}

/// `hiprtcGetCode`.
pub unsafe extern "C" fn hiprtcGetCode(program: Handle, out: Memory) -> c_int {
    // SAFETY: the caller of the API passes memory of the size that it has queried.
    call(|| unsafe { put(|| code(program), out) })
}

/// `hiprtcGetBitcodeSize`.
pub unsafe extern "C" fn hiprtcGetBitcodeSize(program: Handle, size: Out<usize>) -> c_int {
    call(|| put_size(|| Ok(bitcode(program)?.len()), size))
}

/// `hiprtcGetBitcode`.
pub unsafe extern "C" fn hiprtcGetBitcode(program: Handle, out: Memory) -> c_int {
    // SAFETY: the caller of the API passes memory of the size that it has queried.
    call(|| unsafe { put(|| bitcode(program), out) })
}

/// `hiprtcGetProgramLogSize`. The size includes the terminating NUL.
pub unsafe extern "C" fn hiprtcGetProgramLogSize(program: Handle, size: Out<usize>) -> c_int {
    call(|| put_size(|| Ok(lock(&*find(program)?).log.len() + 1), size))
}

/// `hiprtcGetProgramLog`.
pub unsafe extern "C" fn hiprtcGetProgramLog(program: Handle, out: Memory) -> c_int {
    call(|| {
        let log = || {
            let mut log = lock(&*find(program)?).log.replace('\0', " ").into_bytes();
            log.push(0);
            Ok(log)
        };
        // SAFETY: the caller of the API passes memory of the size that it has queried.
        unsafe { put(log, out) }
    })
}

/// Prefix of the variables that hold the addresses of the entities that name expressions denote.
const VARIABLE: &str = "__wavesim_name_";

impl Program {
    /// Returns the name of the variable for an expression. It is unique across programs that can be linked; others have
    /// the same text each time, so that compilations are cached.
    fn variable(&self, relocatable: bool, number: usize) -> String {
        format!("{VARIABLE}{}_{number}", if relocatable { self.handle } else { 0 })
    }

    fn compile(&mut self, options: &[String]) -> Result<(), (Rtc, String)> {
        self.log.clear();
        let given = accept_strings(options, Language::Hip)
            .map_err(|e| (Rtc::INVALID_OPTION, format!("hiprtc: {e}\n")))?;
        let processor = given.processor.clone().unwrap_or_else(|| {
            gpu().map_or("gfx1100", |gpu| gpu.device.target().processor_name()).to_string()
        });
        let failed = |text: String| (Rtc::COMPILATION, text);
        let mut source = self.source.clone();
        for (number, expression) in self.expressions.iter().enumerate() {
            let name = self.variable(given.relocatable, number);
            source += &format!(
                "\nextern \"C\" __device__ __attribute__((used)) const void *const {name} = (const void *)&({expression});"
            );
        }
        source.push('\n');
        let job = Job {
            language: Language::Hip,
            source: Source::Text { name: &self.name, text: &source },
            headers: &self.headers,
            processor: &processor,
            arguments: &given.arguments,
            to: if given.relocatable { Format::Bitcode } else { Format::CodeObject },
        };
        let output = job.compile().map_err(|e| failed(e.to_string()))?;
        self.log = output.log;
        let code = output.binary.ok_or((Rtc::COMPILATION, String::new()))?;
        if !given.relocatable {
            self.lowered = self.lowered(&code, false).map_err(failed)?;
            self.code = Some(Code::Object(code));
            return Ok(());
        }
        if !self.expressions.is_empty() {
            let clang = Clang::for_processor(&processor).map_err(failed)?;
            let alone = clang.link(&processor, std::slice::from_ref(&code), Linked::Incomplete);
            let (object, log) = alone.map_err(|e| failed(e.to_string()))?;
            self.lowered =
                object.ok_or(log).and_then(|object| self.lowered(&object, true)).map_err(failed)?;
        }
        self.code = Some(Code::Bitcode(code));
        Ok(())
    }

    /// Resolves name expressions to lowered names: the kernels or variables at the addresses that the
    /// expressions' variables hold.
    fn lowered(&self, code: &[u8], relocatable: bool) -> Result<BTreeMap<String, CString>, String> {
        let mut out = BTreeMap::new();
        if self.expressions.is_empty() {
            return Ok(out);
        }
        let module = code_object::module(code).map_err(|e| e.to_string())?;
        let mut names_by_address: BTreeMap<u64, String> = BTreeMap::new();
        for kernel in code_object::kernels(code).map_err(|e| e.to_string())? {
            let entry = code_object::load(code, &kernel).map_err(|e| e.to_string())?.entry;
            names_by_address.insert(entry, kernel);
        }
        for other in module.variables.iter().filter(|v| !v.name.starts_with(VARIABLE)) {
            names_by_address.entry(other.address).or_insert_with(|| other.name.clone());
        }
        for (number, expression) in self.expressions.iter().enumerate() {
            let name = self.variable(relocatable, number);
            let at = module.variables.iter().find(|v| v.name == name).map(|v| v.address);
            let target =
                at.and_then(|at| module.image.relocations.iter().find(|r| r.at == at)).map(|r| r.value);
            let found = target.and_then(|target| names_by_address.get(&target));
            let found = found.ok_or_else(|| {
                format!("`{expression}` does not name a kernel or a variable of the code object")
            })?;
            let text = CString::new(found.as_str()).map_err(|e| e.to_string())?;
            out.insert(expression.trim().to_string(), text);
        }
        Ok(out)
    }
}
