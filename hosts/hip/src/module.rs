//! Code: what compiled programs register when they start, and what the module API loads.

use crate::ffi::{In, Memory, Out, Text};
use crate::gpu::{gpu, lock};
use crate::op::Copy;
use crate::status::{Failure, Outcome, Status, call, complain};
use crate::stream::{Handle, new_handle};
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_uint};
use std::sync::{Arc, Mutex, OnceLock};
use wavesim::loader::bundle;
use wavesim_runtime::{Kernel, Module};

/// Code that a program registered. It is loaded when it is first used, as GPUs' runtimes do.
struct Fat {
    data: Memory,
    module: OnceLock<Result<Module, Failure>>,
}

/// A kernel or a variable that a program registered.
#[derive(Clone)]
struct Registered {
    fat: Arc<Fat>,
    name: String,
}

#[derive(Default)]
struct Code {
    fats: HashMap<Handle, Arc<Fat>>,
    /// By the address of the host's stub.
    functions: HashMap<usize, Registered>,
    /// By the address of the host's shadow.
    variables: HashMap<usize, Registered>,
    modules: HashMap<Handle, Module>,
    kernels: HashMap<Handle, (Handle, Kernel)>,
    /// Kernels that `functions` led to.
    found: HashMap<usize, Kernel>,
}

static CODE: Mutex<Option<Code>> = Mutex::new(None);

fn with<T>(body: impl FnOnce(&mut Code) -> T) -> T {
    body(lock(&CODE).get_or_insert_default())
}

/// The wrapper of a fat binary in programs (`__CudaFatBinaryWrapper`).
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

/// The bytes of a code object or a bundle, whose size nobody says: its headers do.
fn image(at: Memory) -> Outcome<Vec<u8>> {
    if at.is_null() {
        return Err(Status::INVALID_VALUE.into());
    }
    let size = bundle::size(&mut |offset, len| at.offset(offset).read(len));
    match size {
        Some(size) if size <= MAX_IMAGE => Ok(at.read(size)),
        _ => Err(Status::INVALID_IMAGE.because("neither a code object nor a bundle")),
    }
}

/// Bytes of a code object or bundle at most.
const MAX_IMAGE: usize = 4 << 30;

impl Fat {
    fn module(&self) -> Outcome<Module> {
        let load = || Ok(gpu()?.device.load(&image(self.data)?)?);
        self.module.get_or_init(load).clone()
    }
}

/// The kernel of a host's function.
pub fn kernel_of_host(function: usize) -> Outcome<Kernel> {
    if let Some(kernel) = with(|code| code.found.get(&function).cloned()) {
        return Ok(kernel);
    }
    if let Some((_, kernel)) = with(|code| code.kernels.get(&function).cloned()) {
        return Ok(kernel);
    }
    let registered = with(|code| code.functions.get(&function).cloned());
    let Registered { fat, name } = registered.ok_or(Status::INVALID_DEVICE_FUNCTION)?;
    let kernel = fat.module()?.kernel(&name)?;
    with(|code| code.found.insert(function, kernel.clone()));
    Ok(kernel)
}

/// The kernel of a `hipFunction_t`.
pub fn kernel_of_handle(function: Handle) -> Outcome<Kernel> {
    let found = with(|code| code.kernels.get(&function).map(|(_, kernel)| kernel.clone()));
    found.ok_or(Status::INVALID_HANDLE.into())
}

/// Address and size of a variable of the host.
fn variable(symbol: usize) -> Outcome<(u64, u64)> {
    let registered = with(|code| code.variables.get(&symbol).cloned());
    let Registered { fat, name } = registered.ok_or(Status::INVALID_SYMBOL)?;
    Ok(fat.module()?.variable(&name)?)
}

/// `__hipRegisterFatBinary`.
pub extern "C" fn __hipRegisterFatBinary(wrapper: In<Wrapper>) -> Handle {
    let handle = new_handle();
    let _ = call("__hipRegisterFatBinary", || {
        let wrapper = wrapper.get()?;
        if wrapper.magic != MAGIC {
            return Err(Status::INVALID_IMAGE.because("the program's fat binary has another magic number"));
        }
        let fat = Fat { data: wrapper.binary, module: OnceLock::new() };
        with(|code| code.fats.insert(handle, Arc::new(fat)));
        Ok(())
    });
    handle
}

/// `__hipUnregisterFatBinary`.
pub extern "C" fn __hipUnregisterFatBinary(fat: Handle) {
    let removed = with(|code| {
        let fat = code.fats.remove(&fat)?;
        let of_other = |registered: &Registered| !Arc::ptr_eq(&registered.fat, &fat);
        let functions: Vec<usize> = code.functions.iter().filter(|f| !of_other(f.1)).map(|f| *f.0).collect();
        functions.iter().for_each(|function| {
            code.found.remove(function);
        });
        code.functions.retain(|_, registered| of_other(registered));
        code.variables.retain(|_, registered| of_other(registered));
        Some(fat)
    });
    // Outside of the lock: it may free a module.
    drop(removed);
}

/// Registers a kernel or a variable.
fn register(fat: Handle, name: Text, put: impl FnOnce(&mut Code, Registered)) {
    let Ok(name) = name.get() else { return };
    with(|code| {
        let Some(fat) = code.fats.get(&fat).cloned() else { return };
        put(code, Registered { fat, name });
    });
}

/// `__hipRegisterFunction`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub extern "C" fn __hipRegisterFunction(
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
pub extern "C" fn __hipRegisterVar(
    fat: Handle,
    host: usize,
    _host_name: Text,
    name: Text,
    _external: c_int,
    _size: usize,
    _constant: c_int,
    _global: c_int,
) {
    register(fat, name, |code, registered| {
        code.variables.insert(host, registered);
    });
}

/// `__hipRegisterManagedVar`: memory that the module's pointer and the host's pointer both point to.
pub extern "C" fn __hipRegisterManagedVar(
    fat: Handle,
    pointer: Out<u64>,
    initial: Memory,
    name: Text,
    size: usize,
    _alignment: c_uint,
) {
    let _ = call("__hipRegisterManagedVar", || {
        let gpu = gpu()?;
        let address = gpu.device.alloc(size.max(1) as u64, "managed variable")?;
        // SAFETY: just allocated, with this size.
        let memory = unsafe { Memory::at(address) };
        if !initial.is_null() {
            memory.copy_from(initial, size);
        }
        pointer.put(address)?;
        let name = name.get()?;
        let fat = with(|code| code.fats.get(&fat).cloned()).ok_or(Status::INVALID_HANDLE)?;
        // The device's pointer has the variable's name; the host's memory has another.
        let (place, _) = fat.module()?.variable(&name)?;
        Ok(gpu.device.write(place, &address.to_le_bytes())?)
    });
}

/// `__hipRegisterSurface`: programs with surfaces run as long as they do not use them.
pub extern "C" fn __hipRegisterSurface(_: Handle, _: usize, _: Text, _: Text, _: c_int, _: c_int) {}

/// `__hipRegisterTexture`: likewise.
pub extern "C" fn __hipRegisterTexture(_: Handle, _: usize, _: Text, _: Text, _: c_int, _: c_int, _: c_int) {}

/// Loads a module.
fn load(module: &Out<Handle>, object: &[u8]) -> Outcome {
    let loaded = gpu()?.device.load(object)?;
    let handle = new_handle();
    with(|code| code.modules.insert(handle, loaded));
    module.put(handle)
}

/// `hipModuleLoad`.
pub extern "C" fn hipModuleLoad(module: Out<Handle>, path: Text) -> c_int {
    call("hipModuleLoad", || {
        let path = path.get()?;
        let object =
            std::fs::read(&path).map_err(|e| Status::FILE_NOT_FOUND.because(format!("{path}: {e}")))?;
        load(&module, &object)
    })
}

/// `hipModuleLoadData`.
pub extern "C" fn hipModuleLoadData(module: Out<Handle>, data: Memory) -> c_int {
    call("hipModuleLoadData", || load(&module, &image(data)?))
}

/// `hipModuleLoadDataEx`: options are for compilers of another kind.
pub extern "C" fn hipModuleLoadDataEx(
    module: Out<Handle>,
    data: Memory,
    _count: c_uint,
    _options: Memory,
    _values: Memory,
) -> c_int {
    hipModuleLoadData(module, data)
}

/// `hipModuleLoadFatBinary`.
pub extern "C" fn hipModuleLoadFatBinary(module: Out<Handle>, data: Memory) -> c_int {
    hipModuleLoadData(module, data)
}

/// `hipModuleUnload`.
pub extern "C" fn hipModuleUnload(module: Handle) -> c_int {
    call("hipModuleUnload", || {
        gpu()?.streams.wait();
        let removed = with(|code| {
            code.kernels.retain(|_, (of, _)| *of != module);
            code.modules.remove(&module)
        });
        removed.map(drop).ok_or(Status::INVALID_HANDLE.into())
    })
}

fn module_of(handle: Handle) -> Outcome<Module> {
    with(|code| code.modules.get(&handle).cloned()).ok_or(Status::INVALID_HANDLE.into())
}

/// `hipModuleGetFunction`.
pub extern "C" fn hipModuleGetFunction(function: Out<Handle>, module: Handle, name: Text) -> c_int {
    call("hipModuleGetFunction", || {
        let kernel = module_of(module)?.kernel(&name.get()?)?;
        let handle = new_handle();
        with(|code| code.kernels.insert(handle, (module, kernel)));
        function.put(handle)
    })
}

/// `hipModuleGetFunctionCount`.
pub extern "C" fn hipModuleGetFunctionCount(count: Out<c_uint>, module: Handle) -> c_int {
    call("hipModuleGetFunctionCount", || count.put(module_of(module)?.kernels()?.len() as c_uint))
}

/// `hipModuleGetGlobal`.
pub extern "C" fn hipModuleGetGlobal(
    address: Out<u64>,
    len: Out<usize>,
    module: Handle,
    name: Text,
) -> c_int {
    call("hipModuleGetGlobal", || {
        let (at, size) = module_of(module)?.variable(&name.get()?)?;
        address.put_if_wanted(at);
        len.put_if_wanted(size as usize);
        Ok(())
    })
}

/// `hipGetFuncBySymbol`.
pub extern "C" fn hipGetFuncBySymbol(function: Out<Handle>, symbol: usize) -> c_int {
    call("hipGetFuncBySymbol", || {
        let kernel = kernel_of_host(symbol)?;
        let handle = new_handle();
        with(|code| code.kernels.insert(handle, (0, kernel)));
        function.put(handle)
    })
}

/// `hipGetSymbolAddress`.
pub extern "C" fn hipGetSymbolAddress(address: Out<u64>, symbol: usize) -> c_int {
    call("hipGetSymbolAddress", || address.put(variable(symbol)?.0))
}

/// `hipGetSymbolSize`.
pub extern "C" fn hipGetSymbolSize(len: Out<usize>, symbol: usize) -> c_int {
    call("hipGetSymbolSize", || len.put(variable(symbol)?.1 as usize))
}

/// Part of a variable.
fn part(symbol: usize, offset: usize, len: usize) -> Outcome<Memory> {
    let (address, size) = variable(symbol)?;
    if offset.checked_add(len).is_none_or(|end| end as u64 > size) {
        let message = format!("{len} bytes at {offset} of a variable with {size} bytes");
        return Err(Status::INVALID_VALUE.because(message));
    }
    // SAFETY: in the variable, as just checked; its module lives until the program unregisters it.
    Ok(unsafe { Memory::at(address + offset as u64) })
}

/// `hipMemcpyToSymbol`.
pub extern "C" fn hipMemcpyToSymbol(
    symbol: usize,
    from: Memory,
    len: usize,
    offset: usize,
    kind: c_int,
) -> c_int {
    hipMemcpyToSymbolAsync(symbol, from, len, offset, kind, 0)
}

/// `hipMemcpyToSymbolAsync`: the caller's memory may be gone afterwards, so that it waits.
pub extern "C" fn hipMemcpyToSymbolAsync(
    symbol: usize,
    from: Memory,
    len: usize,
    offset: usize,
    kind: c_int,
    stream: Handle,
) -> c_int {
    call("hipMemcpyToSymbol", || {
        crate::copy::now(Copy::linear(part(symbol, offset, len)?, from, len), kind, stream)
    })
}

/// `hipMemcpyFromSymbol`.
pub extern "C" fn hipMemcpyFromSymbol(
    to: Memory,
    symbol: usize,
    len: usize,
    offset: usize,
    kind: c_int,
) -> c_int {
    hipMemcpyFromSymbolAsync(to, symbol, len, offset, kind, 0)
}

/// `hipMemcpyFromSymbolAsync`.
pub extern "C" fn hipMemcpyFromSymbolAsync(
    to: Memory,
    symbol: usize,
    len: usize,
    offset: usize,
    kind: c_int,
    stream: Handle,
) -> c_int {
    call("hipMemcpyFromSymbol", || {
        crate::copy::now(Copy::linear(to, part(symbol, offset, len)?, len), kind, stream)
    })
}

/// `hipKernelNameRefByPtr`: null if it is not a kernel.
pub extern "C" fn hipKernelNameRefByPtr(function: usize, _stream: Handle) -> *const c_char {
    static NAMES: Mutex<Option<HashMap<usize, &'static std::ffi::CStr>>> = Mutex::new(None);
    let Some(registered) = with(|code| code.functions.get(&function).cloned()) else {
        return std::ptr::null();
    };
    let mut names = lock(&NAMES);
    let names = names.get_or_insert_default();
    // Callers keep the text: there is one for each kernel of the program.
    let name = names.entry(function).or_insert_with(|| {
        let text = std::ffi::CString::new(registered.name).unwrap_or_default();
        Box::leak(text.into_boxed_c_str())
    });
    name.as_ptr()
}

/// Whether a program has texture references is only known when it uses them.
pub extern "C" fn hipModuleGetTexRef(_texture: Out<Handle>, _module: Handle, _name: Text) -> c_int {
    complain("textures are not supported");
    Status::NOT_SUPPORTED.0
}
