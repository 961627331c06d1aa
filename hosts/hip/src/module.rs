//! Device code: the code that compiled programs register at startup, and the module API.

use crate::ffi::{In, Memory, Out, Text};
use crate::gpu::{Gpu, gpu, gpus, lock};
use crate::managed::Managed;
use crate::memory::allocate_managed;
use crate::op::Copy;
use crate::status::{Failure, Outcome, Status, call};
use crate::stream::{Handle, new_handle};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{c_char, c_int, c_uint};
use std::sync::{Arc, Mutex};
use wavesim::loader::bundle;
use wavesim_runtime::{Kernel, Module};

/// A fat binary that a program registered, or a library. It is loaded on first use on each device, as in ROCm's runtime.
pub struct LazyModule {
    data: Memory,
    /// The image, unless it is the program's.
    owned: Vec<u8>,
    /// By the ordinal of the device.
    modules: Mutex<BTreeMap<usize, Result<Module, Failure>>>,
    /// Names of managed variables that the program has registered, with the addresses of their memory, which all devices
    /// share.
    managed: Mutex<Vec<(String, u64)>>,
    /// The managed variables of a library.
    own: Mutex<Option<Managed>>,
}

/// A module that the program has loaded itself.
struct Loaded {
    module: Module,
    managed: Managed,
    /// The handles of kernels that the program has asked for, by name: a kernel has one.
    functions: Mutex<HashMap<String, Handle>>,
}

/// A kernel or a variable that a program registered.
#[derive(Clone)]
struct Registered {
    binary: Arc<LazyModule>,
    name: String,
}

#[derive(Default)]
struct Code {
    binaries: HashMap<Handle, Arc<LazyModule>>,
    /// Registered kernels, by the address of the host stub.
    functions: HashMap<usize, Registered>,
    /// Registered variables, by the address of the host shadow variable.
    variables: HashMap<usize, Registered>,
    modules: HashMap<Handle, Arc<Loaded>>,
    kernels: HashMap<Handle, (Handle, Kernel)>,
    /// Modules for which a kernel that does not exist has been reported.
    reported: HashSet<Handle>,
    /// Handles of registered kernels that the program has asked for, by device and address of the host stub.
    handles: HashMap<(usize, usize), Handle>,
    /// Cache of resolved `functions`, by device and address of the host stub.
    resolved: HashMap<(usize, usize), Kernel>,
}

static CODE: Mutex<Option<Code>> = Mutex::new(None);

fn with<T>(body: impl FnOnce(&mut Code) -> T) -> T {
    body(lock(&CODE).get_or_insert_default())
}

/// Wrapper of a fat binary in a program (`__CudaFatBinaryWrapper`).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Wrapper {
    magic: u32,
    version: u32,
    binary: Memory,
    unused: usize,
}

/// `HIPF`.
const MAGIC: u32 = 0x4849_5046;

/// Returns the bytes of a code object or a bundle, without a copy: libraries have bundles of gigabytes. The API does not
/// pass the size, so it is computed from the headers.
///
/// # Safety
/// Unless it is null, the memory holds a complete image, whose headers state its size, and which is constant while the
/// result exists.
pub unsafe fn image<'a>(at: Memory) -> Outcome<&'a [u8]> {
    if at.is_null() {
        return Err(Status::INVALID_VALUE.into());
    }
    // SAFETY: the caller guarantees a complete image.
    let size = bundle::size(&mut |offset, len| unsafe { at.offset(offset).read(len) });
    match size {
        // SAFETY: as above.
        Some(size) if size <= MAX_IMAGE => Ok(unsafe { at.bytes(size) }),
        _ => Err(Status::INVALID_IMAGE.because("neither a code object nor a bundle")),
    }
}

/// Maximum size of a code object or bundle in bytes.
const MAX_IMAGE: usize = 4 << 30;

impl LazyModule {
    /// Accepts an image.
    pub fn owned(image: Vec<u8>) -> LazyModule {
        LazyModule {
            data: Memory::null(),
            owned: image,
            modules: Mutex::default(),
            managed: Mutex::default(),
            own: Mutex::default(),
        }
    }

    /// Returns the module of a device, and loads it on the first call.
    pub fn module(&self, gpu: &Gpu) -> Outcome<Module> {
        let load = || {
            let module = match &self.owned[..] {
                // SAFETY: the program has registered a complete image, which it keeps while it is registered.
                [] => gpu.device.load(unsafe { image(self.data) }?)?,
                owned => gpu.device.load(owned)?,
            };
            for (name, address) in &*lock(&self.managed) {
                // In the module, the variable's name denotes a pointer to the managed memory.
                let (pointer, _) = module.variable(name)?;
                gpu.device.write(pointer, &address.to_le_bytes())?;
            }
            if !self.owned.is_empty() {
                match &mut *lock(&self.own) {
                    Some(managed) => managed.point(&module)?,
                    none => *none = Some(Managed::allocate(&module)?),
                }
            }
            Ok(module)
        };
        lock(&self.modules).entry(gpu.device.ordinal()).or_insert_with(load).clone()
    }
}

/// Returns the kernel of a host stub on a device.
pub fn kernel_of_host(gpu: &Gpu, function: usize) -> Outcome<Kernel> {
    let place = (gpu.device.ordinal(), function);
    if let Some(kernel) = with(|code| code.resolved.get(&place).cloned()) {
        return Ok(kernel);
    }
    if let Some((_, kernel)) = with(|code| code.kernels.get(&function).cloned()) {
        return Ok(kernel);
    }
    let registered = with(|code| code.functions.get(&function).cloned());
    let Registered { binary, name } = registered.ok_or(Status::INVALID_DEVICE_FUNCTION)?;
    let kernel = binary.module(gpu)?.kernel(&name)?;
    with(|code| code.resolved.insert(place, kernel.clone()));
    Ok(kernel)
}

/// Returns the kernel of a `hipFunction_t`, or of a `hipKernel_t` on the current device.
pub fn kernel_of_handle(function: Handle) -> Outcome<Kernel> {
    if let Some((_, kernel)) = with(|code| code.kernels.get(&function).cloned()) {
        return Ok(kernel);
    }
    kernel_of_host(gpu()?, function).map_err(|failure| match failure.status {
        Status::INVALID_DEVICE_FUNCTION => Status::INVALID_HANDLE.into(),
        _ => failure,
    })
}

/// Returns the address and the size of the variable of the current device for a host shadow variable.
pub(crate) fn variable(symbol: usize) -> Outcome<(u64, u64)> {
    let registered = with(|code| code.variables.get(&symbol).cloned());
    let Registered { binary, name } = registered.ok_or(Status::INVALID_SYMBOL)?;
    Ok(binary.module(gpu()?)?.variable(&name)?)
}

/// `__hipRegisterFatBinary`.
pub unsafe extern "C" fn __hipRegisterFatBinary(wrapper: In<Wrapper>) -> Handle {
    let handle = new_handle();
    let _ = call("__hipRegisterFatBinary", || {
        let wrapper = wrapper.get()?;
        if wrapper.magic != MAGIC {
            return Err(Status::INVALID_IMAGE.because("the program's fat binary has an unknown magic number"));
        }
        let binary = LazyModule { data: wrapper.binary, ..LazyModule::owned(Vec::new()) };
        with(|code| code.binaries.insert(handle, Arc::new(binary)));
        Ok(())
    });
    handle
}

/// Registers a kernel of code that is loaded on first use, with a handle that stands for it on every device.
pub fn register_kernel(handle: Handle, binary: &Arc<LazyModule>, name: &str) {
    let registered = Registered { binary: binary.clone(), name: name.to_string() };
    with(|code| code.functions.insert(handle, registered));
}

/// Forgets the kernels and variables of code.
pub fn unregister_kernels(binary: &Arc<LazyModule>) {
    with(|code| {
        let of_other = |registered: &Registered| !Arc::ptr_eq(&registered.binary, binary);
        let functions: Vec<usize> = code.functions.iter().filter(|f| !of_other(f.1)).map(|f| *f.0).collect();
        code.resolved.retain(|(_, function), _| !functions.contains(function));
        code.handles.retain(|(_, function), _| !functions.contains(function));
        code.functions.retain(|_, registered| of_other(registered));
        code.variables.retain(|_, registered| of_other(registered));
    });
}

/// `__hipUnregisterFatBinary`.
pub unsafe extern "C" fn __hipUnregisterFatBinary(fat: Handle) {
    let removed = with(|code| code.binaries.remove(&fat));
    if let Some(binary) = &removed {
        unregister_kernels(binary);
    }
    // Dropped outside the lock, because this may free a module.
    drop(removed);
}

/// Registers a kernel or a variable.
fn register(fat: Handle, name: Text, put: impl FnOnce(&mut Code, Registered)) {
    let Ok(name) = name.get() else { return };
    with(|code| {
        let Some(binary) = code.binaries.get(&fat).cloned() else { return };
        put(code, Registered { binary, name });
    });
}

/// Registers a variable for a host shadow variable.
fn register_variable(fat: Handle, host: usize, name: Text) {
    register(fat, name, |code, registered| {
        code.variables.insert(host, registered);
    });
}

/// `__hipRegisterFunction`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn __hipRegisterFunction(
    fat: Handle,
    host: usize,
    _host_name: Text,
    name: Text,
    _threads: c_int,
    _thread_id: usize,
    _block_id: usize,
    _block: usize,
    _grid: usize,
    _wave: usize,
) {
    register(fat, name, |code, registered| {
        code.functions.insert(host, registered);
    });
}

/// `__hipRegisterVar`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn __hipRegisterVar(
    fat: Handle,
    host: usize,
    _host_name: Text,
    name: Text,
    _external: c_int,
    _size: usize,
    _constant: c_int,
    _global: c_int,
) {
    register_variable(fat, host, name);
}

/// `__hipRegisterManagedVar`. Allocates memory that the module's pointer and the host's pointer both refer
/// to.
pub unsafe extern "C" fn __hipRegisterManagedVar(
    fat: Handle,
    pointer: Out<u64>,
    initial: Memory,
    name: Text,
    size: usize,
    _alignment: c_uint,
) {
    let _ = call("__hipRegisterManagedVar", || {
        let address = allocate_managed(gpu()?, size.max(1) as u64)?;
        // SAFETY: the memory was just allocated with at least `size` bytes.
        let memory = unsafe { Memory::at(address) };
        if !initial.is_null() {
            // SAFETY: the program's initial value has the size that it registers.
            unsafe { memory.copy_from(initial, size) };
        }
        pointer.put(address)?;
        let name = name.get()?;
        let binary = with(|code| code.binaries.get(&fat).cloned()).ok_or(Status::INVALID_HANDLE)?;
        for module in lock(&binary.modules).values().flatten() {
            module.device().write(module.variable(&name)?.0, &address.to_le_bytes())?;
        }
        lock(&binary.managed).push((name, address));
        Ok(())
    });
}

/// `__hipRegisterSurface`. Ignored, so that programs that have surfaces but do not use them can run.
pub unsafe extern "C" fn __hipRegisterSurface(_: Handle, _: usize, _: Text, _: Text, _: c_int, _: c_int) {}

/// `__hipRegisterTexture`: registers a texture reference, which is a variable.
pub unsafe extern "C" fn __hipRegisterTexture(
    fat: Handle,
    host: usize,
    _host_name: Text,
    name: Text,
    _kind: c_int,
    _normalized: c_int,
    _external: c_int,
) {
    register_variable(fat, host, name);
}

/// Loads a module.
fn load(out: &Out<Handle>, object: &[u8]) -> Outcome {
    let module = gpu()?.device.load(object)?;
    let managed = Managed::allocate(&module)?;
    let handle = new_handle();
    with(|code| {
        code.modules.insert(handle, Arc::new(Loaded { module, managed, functions: Mutex::default() }))
    });
    out.put(handle)
}

/// `hipModuleLoad`.
pub unsafe extern "C" fn hipModuleLoad(module: Out<Handle>, path: Text) -> c_int {
    call("hipModuleLoad", || {
        let path = path.get()?;
        if path.is_empty() {
            return Err(Status::INVALID_VALUE.into());
        }
        let object =
            std::fs::read(&path).map_err(|e| Status::FILE_NOT_FOUND.because(format!("{path}: {e}")))?;
        load(&module, &object)
    })
}

/// `hipModuleLoadData`.
pub unsafe extern "C" fn hipModuleLoadData(module: Out<Handle>, data: Memory) -> c_int {
    call("hipModuleLoadData", || {
        // SAFETY: the caller of the API passes a complete image, and does not change it during the call.
        load(&module, unsafe { image(data) }?)
    })
}

/// `hipModuleLoadDataEx`. The options configure JIT compilation and are ignored, since code objects are
/// already compiled.
pub unsafe extern "C" fn hipModuleLoadDataEx(
    module: Out<Handle>,
    data: Memory,
    _count: c_uint,
    _options: Memory,
    _values: Memory,
) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipModuleLoadData(module, data) }
}

/// `hipModuleLoadFatBinary`.
pub unsafe extern "C" fn hipModuleLoadFatBinary(module: Out<Handle>, data: Memory) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipModuleLoadData(module, data) }
}

/// `hipModuleUnload`.
pub unsafe extern "C" fn hipModuleUnload(module: Handle) -> c_int {
    call("hipModuleUnload", || {
        gpus()?.iter().try_for_each(|gpu| gpu.streams.wait())?;
        let removed = with(|code| {
            code.kernels.retain(|_, (of, _)| *of != module);
            code.reported.remove(&module);
            code.modules.remove(&module)
        });
        let unknown = if module == 0 { Status::INVALID_HANDLE } else { Status::NOT_FOUND };
        removed.map(drop).ok_or(unknown.into())
    })
}

fn loaded(handle: Handle) -> Outcome<Arc<Loaded>> {
    with(|code| code.modules.get(&handle).cloned()).ok_or(Status::INVALID_HANDLE.into())
}

fn module_of(handle: Handle) -> Outcome<Module> {
    Ok(loaded(handle)?.module.clone())
}

/// Returns the address and the size of a variable of a module.
pub(crate) fn variable_of(module: Handle, name: &str) -> Outcome<(u64, u64)> {
    let loaded = loaded(module)?;
    match loaded.managed.find(name) {
        Some(found) => Ok(found),
        None => Ok(loaded.module.variable(name)?),
    }
}

/// `hipModuleGetFunction`. That a kernel does not exist is reported once per module, because programs look for
/// kernels in many modules.
pub unsafe extern "C" fn hipModuleGetFunction(function: Out<Handle>, module: Handle, name: Text) -> c_int {
    call("hipModuleGetFunction", || {
        let (loaded, name) = (loaded(module)?, name.get()?);
        if let Some(handle) = lock(&loaded.functions).get(&name).copied() {
            return function.put(handle);
        }
        if !loaded.module.has_kernel(&name) && !with(|code| code.reported.insert(module)) {
            return Err(Status::NOT_FOUND.into());
        }
        let kernel = loaded.module.kernel(&name)?;
        let handle = *lock(&loaded.functions).entry(name).or_insert_with(new_handle);
        with(|code| code.kernels.insert(handle, (module, kernel)));
        function.put(handle)
    })
}

/// `hipModuleGetFunctionCount`.
pub unsafe extern "C" fn hipModuleGetFunctionCount(count: Out<c_uint>, module: Handle) -> c_int {
    call("hipModuleGetFunctionCount", || count.put(module_of(module)?.kernels().len() as c_uint))
}

/// `hipModuleGetGlobal`.
pub unsafe extern "C" fn hipModuleGetGlobal(
    address: Out<u64>,
    len: Out<usize>,
    module: Handle,
    name: Text,
) -> c_int {
    call("hipModuleGetGlobal", || {
        let name = name.get()?;
        if name.is_empty() || (address.is_null() && len.is_null()) {
            return Err(Status::INVALID_VALUE.into());
        }
        let (at, size) = variable_of(module, &name)?;
        address.put_optional(at);
        len.put_optional(size as usize);
        Ok(())
    })
}

/// `hipGetFuncBySymbol`.
pub unsafe extern "C" fn hipGetFuncBySymbol(function: Out<Handle>, symbol: usize) -> c_int {
    call("hipGetFuncBySymbol", || {
        let gpu = gpu()?;
        let kernel = kernel_of_host(gpu, symbol)?;
        let handle = with(|code| {
            let place = (gpu.device.ordinal(), symbol);
            let handle = *code.handles.entry(place).or_insert_with(new_handle);
            code.kernels.insert(handle, (0, kernel));
            handle
        });
        function.put(handle)
    })
}

/// `hipGetSymbolAddress`.
pub unsafe extern "C" fn hipGetSymbolAddress(address: Out<u64>, symbol: usize) -> c_int {
    call("hipGetSymbolAddress", || {
        if address.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        address.put(variable(symbol)?.0)
    })
}

/// `hipGetSymbolSize`.
pub unsafe extern "C" fn hipGetSymbolSize(len: Out<usize>, symbol: usize) -> c_int {
    call("hipGetSymbolSize", || {
        if len.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        len.put(variable(symbol)?.1 as usize)
    })
}

/// Returns the memory of a part of a variable.
pub fn variable_part(symbol: usize, offset: usize, len: usize) -> Outcome<Memory> {
    let (address, size) = variable(symbol)?;
    if offset.checked_add(len).is_none_or(|end| end as u64 > size) {
        let message = format!("{len} bytes at {offset} of a variable with {size} bytes");
        return Err(Status::INVALID_VALUE.because(message));
    }
    // SAFETY: the check above ensures that the range is inside the variable. Its module lives until the
    // program unregisters the fat binary.
    Ok(unsafe { Memory::at(address + offset as u64) })
}

/// `hipMemcpyToSymbol`.
pub unsafe extern "C" fn hipMemcpyToSymbol(
    symbol: usize,
    from: Memory,
    len: usize,
    offset: usize,
    kind: c_int,
) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipMemcpyToSymbolAsync(symbol, from, len, offset, kind, 0) }
}

/// `hipMemcpyToSymbolAsync`. Synchronous, because the program may free its memory as soon as the call
/// returns.
pub unsafe extern "C" fn hipMemcpyToSymbolAsync(
    symbol: usize,
    from: Memory,
    len: usize,
    offset: usize,
    kind: c_int,
    stream: Handle,
) -> c_int {
    call("hipMemcpyToSymbol", || {
        let copy = Copy::linear(variable_part(symbol, offset, len)?, from, len);
        // SAFETY: the caller of the API passes valid memory.
        unsafe { crate::copy::copy_sync(copy, kind, stream) }
    })
}

/// `hipMemcpyFromSymbol`.
pub unsafe extern "C" fn hipMemcpyFromSymbol(
    to: Memory,
    symbol: usize,
    len: usize,
    offset: usize,
    kind: c_int,
) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipMemcpyFromSymbolAsync(to, symbol, len, offset, kind, 0) }
}

/// `hipMemcpyFromSymbolAsync`.
pub unsafe extern "C" fn hipMemcpyFromSymbolAsync(
    to: Memory,
    symbol: usize,
    len: usize,
    offset: usize,
    kind: c_int,
    stream: Handle,
) -> c_int {
    call("hipMemcpyFromSymbol", || {
        let copy = Copy::linear(to, variable_part(symbol, offset, len)?, len);
        // SAFETY: the caller of the API passes valid memory.
        unsafe { crate::copy::copy_sync(copy, kind, stream) }
    })
}

/// `hipKernelNameRefByPtr`. Returns null if the function is not a kernel.
pub unsafe extern "C" fn hipKernelNameRefByPtr(function: usize, _stream: Handle) -> *const c_char {
    static NAMES: Mutex<Option<HashMap<usize, &'static std::ffi::CStr>>> = Mutex::new(None);
    let Some(registered) = with(|code| code.functions.get(&function).cloned()) else {
        return std::ptr::null();
    };
    let mut names = lock(&NAMES);
    let names = names.get_or_insert_default();
    // Callers keep the string, so it is leaked, at most once per kernel.
    let name = names.entry(function).or_insert_with(|| {
        let text = std::ffi::CString::new(registered.name).unwrap_or_default();
        Box::leak(text.into_boxed_c_str())
    });
    name.as_ptr()
}
