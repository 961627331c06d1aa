//! Programs: sources, binaries and their builds.

use crate::compile::{self, BuildOutput};
use crate::context::Context;
use crate::devices;
use crate::ffi::{Array, In, Memory, Out, UserData};
use crate::handle::{self, Destructor, Handle, Identity, Object, object};
use crate::info::{Query, unknown_parameter};
use crate::platform::{Gpu, check_device, check_devices};
use crate::queue::lock;
use crate::status::{Failure, Outcome, Status, call, create};
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use wavesim::loader::code_object;
use wavesim_runtime::Module;

/// A program.
pub struct Program {
    identity: Identity,
    context: Arc<Context>,
    source: Option<String>,
    state: Mutex<State>,
    /// Number of live kernels.
    pub kernels: AtomicUsize,
}

/// Result of the last build.
#[derive(Clone)]
struct State {
    status: c_int,
    options: String,
    log: String,
    binary: Vec<u8>,
    kind: BinaryKind,
    /// The modules of all devices; none before a build.
    modules: Vec<Module>,
}

/// Type of a binary (`cl_program_binary_type`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum BinaryKind {
    None = 0,
    Object = 1,
    Library = 2,
    Executable = 4,
}

/// Maximum size of a source or a binary in bytes.
const MAX_BYTES: usize = 1 << 30;
/// `CL_BUILD_SUCCESS`, `CL_BUILD_NONE`, `CL_BUILD_ERROR`.
const SUCCESS: c_int = 0;
const NONE: c_int = -1;
const ERROR: c_int = -2;

impl Default for State {
    fn default() -> State {
        State {
            status: NONE,
            options: String::new(),
            log: String::new(),
            binary: Vec::new(),
            kind: BinaryKind::None,
            modules: Vec::new(),
        }
    }
}

object!(Program, INVALID_PROGRAM, clRetainProgram, clReleaseProgram);

impl Program {
    /// Returns the context.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Returns the modules of a built program, one for each device.
    pub fn modules(&self) -> Outcome<Vec<Module>> {
        let modules = lock(&self.state).modules.clone();
        if modules.is_empty() { Err(Status::INVALID_PROGRAM_EXECUTABLE.into()) } else { Ok(modules) }
    }

    /// Returns the module of a built program on the first device.
    pub fn module(&self) -> Outcome<Module> {
        Ok(self.modules()?.swap_remove(0))
    }

    fn state(&self) -> State {
        lock(&self.state).clone()
    }

    /// Loads the code object in `state` as the program's executable.
    fn load(&self, state: &mut State) -> Outcome {
        let load = |gpu: &Gpu| Ok(gpu.device.load(&state.binary)?);
        state.modules = devices::gpus()?.iter().map(load).collect::<Outcome<Vec<Module>>>()?;
        (state.kind, state.status) = (BinaryKind::Executable, SUCCESS);
        Ok(())
    }

    /// Stores the result of a build. `failed` is the status to return if the build failed.
    fn finish(
        &self,
        options: String,
        built: Outcome<BuildOutput>,
        kind: BinaryKind,
        failed: Status,
    ) -> Outcome {
        let mut state = State { options, ..State::default() };
        let mut result = Ok(());
        match built {
            Ok(BuildOutput { binary: Some(binary), log }) => {
                (state.binary, state.log) = (binary, log);
                match kind {
                    BinaryKind::Object | BinaryKind::Library => (state.kind, state.status) = (kind, SUCCESS),
                    BinaryKind::None | BinaryKind::Executable => {
                        if let Err(failure) = self.load(&mut state) {
                            state.log += &failure.message.unwrap_or_default();
                            result = Err(failed.into());
                        }
                    }
                }
            }
            Ok(BuildOutput { binary: None, log }) => {
                state.log = log;
                result = Err(failed.into());
            }
            Err(failure) => {
                state.log = failure.message.clone().unwrap_or_default();
                result = Err(failure);
            }
        }
        if result.is_err() {
            state.status = ERROR;
        }
        *lock(&self.state) = state;
        result
    }

    /// Checks that the program has no kernels, because a build would invalidate them.
    fn check_no_kernels(&self) -> Outcome {
        match self.kernels.load(Ordering::SeqCst) {
            0 => Ok(()),
            _ => Err(Status::INVALID_OPERATION.because("the program still has kernels")),
        }
    }
}

fn new(context: Arc<Context>, source: Option<String>, state: State) -> Handle {
    handle::register(|identity| Program {
        identity,
        context,
        source,
        state: Mutex::new(state),
        kernels: AtomicUsize::new(0),
    })
    .0
}

/// `clCreateProgramWithSource`.
pub unsafe extern "C" fn clCreateProgramWithSource(
    context: Handle,
    count: c_uint,
    strings: In<Memory>,
    lengths: In<usize>,
    status: Out<c_int>,
) -> Handle {
    create("clCreateProgramWithSource", &status, || {
        let context = handle::get::<Context>(context)?;
        if count == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        let mut source = Vec::new();
        // SAFETY: the caller of the API passes an array of this length.
        let strings = unsafe { strings.list(count as usize)? };
        for (number, text) in strings.into_iter().enumerate() {
            // SAFETY: as above.
            let given = if lengths.is_null() { 0 } else { unsafe { lengths.at(number)? } };
            if text.is_null() || given > MAX_BYTES {
                return Err(Status::INVALID_VALUE.into());
            }
            // SAFETY: the string has this length, or is NUL-terminated.
            source.extend(unsafe { if given == 0 { text.text() } else { text.read(given) } });
        }
        Ok(new(context, Some(String::from_utf8_lossy(&source).into_owned()), State::default()))
    })
}

/// `clCreateProgramWithBinary`.
pub unsafe extern "C" fn clCreateProgramWithBinary(
    context: Handle,
    count: c_uint,
    devices: In<Handle>,
    lengths: In<usize>,
    binaries: In<Memory>,
    binary_status: Out<c_int>,
    status: Out<c_int>,
) -> Handle {
    create("clCreateProgramWithBinary", &status, || {
        let context = handle::get::<Context>(context)?;
        if count == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller of the API passes an array of this length.
        check_devices(unsafe { devices.array(count as usize) })?;
        // All devices have the same processor, so that the first binary serves all of them.
        let (len, at) = (lengths.get()?, binaries.get()?);
        if len == 0 || len > MAX_BYTES || at.is_null() {
            binary_status.put_optional(Status::INVALID_VALUE.0);
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller of the API passes a binary of this size.
        let binary = unsafe { at.read(len) };
        let kind = match &binary[..] {
            b if b.starts_with(b"BC\xc0\xde") => BinaryKind::Object,
            b if code_object::is_object(b) => BinaryKind::Executable,
            _ => {
                binary_status.put_optional(Status::INVALID_BINARY.0);
                return Err(Status::INVALID_BINARY.because("neither a code object, a bundle nor bitcode"));
            }
        };
        for at in 0..count as usize {
            // SAFETY: the array is null or has an element for each device.
            unsafe { binary_status.put_at(at, 0) };
        }
        Ok(new(context, None, State { binary, kind, ..State::default() }))
    })
}

/// A callback of the program that is called when a build has finished.
type Notify = Option<unsafe extern "C" fn(Handle, UserData)>;

/// Checks the device list of a build, which may be empty.
fn check_build_devices(list: Array<Handle>) -> Outcome {
    if (list.count() == 0) != list.is_null() {
        return Err(Status::INVALID_VALUE.into());
    }
    check_devices(list)
}

fn options(text: crate::ffi::Text) -> Outcome<String> {
    if text.is_null() { Ok(String::new()) } else { text.get() }
}

/// `clBuildProgram`. Builds synchronously.
pub unsafe extern "C" fn clBuildProgram(
    program: Handle,
    count: c_uint,
    list: In<Handle>,
    text: crate::ffi::Text,
    notify: Notify,
    data: UserData,
) -> c_int {
    call("clBuildProgram", || {
        let object = handle::get::<Program>(program)?;
        // SAFETY: the caller of the API passes an array of this length.
        check_build_devices(unsafe { list.array(count as usize) })?;
        object.check_no_kernels()?;
        let text = options(text)?;
        let failed = Status::BUILD_PROGRAM_FAILURE;
        let result = match &object.source {
            Some(source) => {
                let built = compile::compile(source, &text, &[], false);
                object.finish(text, built, BinaryKind::Executable, failed)
            }
            None => {
                // The options are only checked, since the binary has been compiled.
                compile::options(&text).map_err(|e| Status::INVALID_BUILD_OPTIONS.because(e))?;
                let state = object.state();
                let built = match state.kind {
                    BinaryKind::Object | BinaryKind::Library => compile::link(&[state.binary], false)?,
                    _ => BuildOutput { binary: Some(state.binary), log: String::new() },
                };
                object.finish(text, Ok(built), BinaryKind::Executable, failed)
            }
        };
        if let Some(notify) = notify {
            // SAFETY: the program passes a function of this type.
            unsafe { notify(program, data) };
            // The callback can query the build status; the call itself has succeeded.
            let failed = |failure: &Failure| failure.status == Status::BUILD_PROGRAM_FAILURE;
            return result.or_else(|failure| if failed(&failure) { Ok(()) } else { Err(failure) });
        }
        result
    })
}

/// `clCompileProgram`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clCompileProgram(
    program: Handle,
    count: c_uint,
    list: In<Handle>,
    text: crate::ffi::Text,
    headers: c_uint,
    header_programs: In<Handle>,
    header_names: In<crate::ffi::Text>,
    notify: Notify,
    data: UserData,
) -> c_int {
    call("clCompileProgram", || {
        let object = handle::get::<Program>(program)?;
        // SAFETY: the caller of the API passes an array of this length.
        check_build_devices(unsafe { list.array(count as usize) })?;
        object.check_no_kernels()?;
        let text = options(text)?;
        let source = object.source.as_ref().ok_or(Status::INVALID_OPERATION)?;
        let mut with = Vec::new();
        let count = headers as usize;
        // SAFETY: the caller of the API passes arrays of this length.
        let (programs, names) = unsafe { (header_programs.list(count)?, header_names.list(count)?) };
        for (program, name) in programs.into_iter().zip(names) {
            let header = handle::get::<Program>(program)?;
            let text = header.source.clone().ok_or(Status::INVALID_PROGRAM)?;
            with.push((name.get()?, text));
        }
        let built = compile::compile(source, &text, &with, true);
        let result = object.finish(text, built, BinaryKind::Object, Status::COMPILE_PROGRAM_FAILURE);
        if let Some(notify) = notify {
            // SAFETY: the program passes a function of this type.
            unsafe { notify(program, data) };
        }
        result
    })
}

/// `clLinkProgram`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clLinkProgram(
    context: Handle,
    count: c_uint,
    list: In<Handle>,
    text: crate::ffi::Text,
    inputs: c_uint,
    programs: In<Handle>,
    notify: Notify,
    data: UserData,
    status: Out<c_int>,
) -> Handle {
    let mut linked = Handle::NULL;
    let result = create("clLinkProgram", &status, || {
        let context = handle::get::<Context>(context)?;
        // SAFETY: the caller of the API passes an array of this length.
        check_build_devices(unsafe { list.array(count as usize) })?;
        if inputs == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        let text = options(text)?;
        let mut objects = Vec::new();
        // SAFETY: the caller of the API passes an array of this length.
        for input in unsafe { programs.list(inputs as usize)? } {
            let state = handle::get::<Program>(input)?.state();
            match state.kind {
                BinaryKind::Object | BinaryKind::Library => objects.push(state.binary),
                _ => return Err(Status::INVALID_OPERATION.because("a program was not compiled for linking")),
            }
        }
        let library =
            compile::creates_library(&text).map_err(|e| Status::INVALID_LINKER_OPTIONS.because(e))?;
        let built = compile::link(&objects, library)?;
        let kind = if library { BinaryKind::Library } else { BinaryKind::Executable };
        // The program exists even if linking fails, so that the caller can read its log.
        linked = new(context, None, State::default());
        let object = handle::get::<Program>(linked)?;
        object.finish(text, Ok(built), kind, Status::LINK_PROGRAM_FAILURE)?;
        Ok(linked)
    });
    if let (Some(notify), false) = (notify, linked.is_null()) {
        // SAFETY: the program passes a function of this type.
        unsafe { notify(linked, data) };
    }
    if result.is_null() { linked } else { result }
}

/// `clGetProgramInfo`.
pub unsafe extern "C" fn clGetProgramInfo(
    handle: Handle,
    name: c_uint,
    size: usize,
    value: Memory,
    needed: Out<usize>,
) -> c_int {
    call("clGetProgramInfo", || {
        let program = handle::get::<Program>(handle)?;
        // SAFETY: the caller of the API passes null, or a buffer of this size.
        let query = unsafe { Query::new(size, value, needed) };
        let names = || -> Outcome<Vec<String>> { Ok(program.module()?.kernels()) };
        match name {
            0x1160 => query.u32(handle::references(handle)),
            0x1161 => query.handle(program.context.handle()),
            0x1162 => query.u32(program.context.devices.len() as u32),
            0x1163 => query.handles(&program.context.devices),
            0x1164 => query.text(program.source.as_deref().unwrap_or("")),
            0x1165 => query.words(&vec![lock(&program.state).binary.len(); program.context.devices.len()]),
            0x1166 => query.binary(&lock(&program.state).binary, program.context.devices.len()),
            0x1167 => query.word(names()?.len()),
            0x1168 => query.text(&names()?.join(";")),
            0x1169 => query.bytes(&[]),
            // CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT, …_DTORS_PRESENT
            0x116a | 0x116b => query.u32(0),
            _ => unknown_parameter(),
        }
    })
}

/// `clGetProgramBuildInfo`.
pub unsafe extern "C" fn clGetProgramBuildInfo(
    handle: Handle,
    of: Handle,
    name: c_uint,
    size: usize,
    value: Memory,
    needed: Out<usize>,
) -> c_int {
    call("clGetProgramBuildInfo", || {
        let program = handle::get::<Program>(handle)?;
        check_device(of)?;
        let state = program.state();
        // SAFETY: the caller of the API passes null, or a buffer of this size.
        let query = unsafe { Query::new(size, value, needed) };
        match name {
            0x1181 => query.u32(state.status as u32),
            0x1182 => query.text(&state.options),
            0x1183 => query.text(&state.log),
            0x1184 => query.u32(state.kind as u32),
            // CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE
            0x1185 => query.word(0),
            _ => unknown_parameter(),
        }
    })
}

/// `clSetProgramReleaseCallback`.
pub unsafe extern "C" fn clSetProgramReleaseCallback(
    handle: Handle,
    function: Option<Destructor>,
    data: UserData,
) -> c_int {
    call("clSetProgramReleaseCallback", || {
        handle::get::<Program>(handle)?.identity.on_destroy(function, data)
    })
}
