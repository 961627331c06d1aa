//! Libraries: code objects that are loaded on each device when one of their kernels is first used there.

use crate::ffi::{Memory, Out, Text};
use crate::gpu::{gpu, gpus, lock};
use crate::module::{LazyModule, image};
use crate::status::{Outcome, Status, call};
use crate::stream::{Handle, new_handle};
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, c_char, c_int, c_uint};
use std::sync::{Arc, Mutex};
use wavesim_runtime::Module;

/// A library.
struct Library {
    code: Arc<LazyModule>,
    /// Handles of the kernels that the program has asked for, by name.
    kernels: BTreeMap<String, Handle>,
}

/// A kernel of a library.
struct LibraryKernel {
    library: Handle,
    name: CString,
}

#[derive(Default)]
struct Libraries {
    libraries: HashMap<Handle, Library>,
    kernels: HashMap<Handle, LibraryKernel>,
}

static LIBRARIES: Mutex<Option<Libraries>> = Mutex::new(None);

/// Calls `body` with the table of libraries.
fn with<T>(body: impl FnOnce(&mut Libraries) -> Outcome<T>) -> Outcome<T> {
    body(lock(&LIBRARIES).get_or_insert_default())
}

fn insert(library: &Out<Handle>, object: Vec<u8>) -> Outcome {
    if library.is_null() {
        return Err(Status::INVALID_VALUE.into());
    }
    if object.is_empty() {
        return Err(Status::INVALID_IMAGE.into());
    }
    let handle = new_handle();
    let code = Arc::new(LazyModule::owned(object));
    with(|all| Ok(all.libraries.insert(handle, Library { code, kernels: BTreeMap::new() })))?;
    library.put(handle)
}

/// Returns the module of a library on the current device.
fn module_of(library: Handle) -> Outcome<Module> {
    let code = with(|all| Ok(all.libraries.get(&library).ok_or(Status::INVALID_VALUE)?.code.clone()))?;
    code.module(gpu()?)
}

/// Returns the handle of a kernel that the library has.
fn handle_of(library: Handle, name: &str) -> Outcome<Handle> {
    with(|all| {
        let found = all.libraries.get_mut(&library).ok_or(Status::INVALID_VALUE)?;
        if let Some(handle) = found.kernels.get(name) {
            return Ok(*handle);
        }
        let c_name = CString::new(name).map_err(|_| Status::NOT_FOUND)?;
        let handle = new_handle();
        found.kernels.insert(name.to_string(), handle);
        all.kernels.insert(handle, LibraryKernel { library, name: c_name });
        crate::module::register_kernel(handle, &found.code, name);
        Ok(handle)
    })
}

/// `hipLibraryLoadData`. The options configure compilation and are ignored, since code objects are compiled already.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn hipLibraryLoadData(
    library: Out<Handle>,
    code: Memory,
    _options: Memory,
    _values: Memory,
    _count: c_uint,
    _library_options: Memory,
    _library_values: Memory,
    _library_count: c_uint,
) -> c_int {
    call("hipLibraryLoadData", || {
        // SAFETY: the caller of the API passes a complete image, and does not change it during the call.
        insert(&library, unsafe { image(code) }?.to_vec())
    })
}

/// `hipLibraryLoadFromFile`. The options are ignored, as those of `hipLibraryLoadData`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn hipLibraryLoadFromFile(
    library: Out<Handle>,
    path: Text,
    _options: Memory,
    _values: Memory,
    _count: c_uint,
    _library_options: Memory,
    _library_values: Memory,
    _library_count: c_uint,
) -> c_int {
    call("hipLibraryLoadFromFile", || {
        let path = path.get()?;
        let object =
            std::fs::read(&path).map_err(|e| Status::FILE_NOT_FOUND.because(format!("{path}: {e}")))?;
        insert(&library, object)
    })
}

/// `hipLibraryUnload`. Waits for all work.
pub unsafe extern "C" fn hipLibraryUnload(library: Handle) -> c_int {
    call("hipLibraryUnload", || {
        gpus()?.iter().try_for_each(|gpu| gpu.streams.wait())?;
        let removed = with(|all| {
            all.kernels.retain(|_, kernel| kernel.library != library);
            all.libraries.remove(&library).ok_or(Status::INVALID_VALUE.into())
        })?;
        crate::module::unregister_kernels(&removed.code);
        Ok(())
    })
}

/// `hipLibraryGetKernelCount`.
pub unsafe extern "C" fn hipLibraryGetKernelCount(count: Out<c_uint>, library: Handle) -> c_int {
    call("hipLibraryGetKernelCount", || count.put(module_of(library)?.kernels().len() as c_uint))
}

/// `hipLibraryGetKernel`. A kernel has one handle.
pub unsafe extern "C" fn hipLibraryGetKernel(kernel: Out<Handle>, library: Handle, name: Text) -> c_int {
    call("hipLibraryGetKernel", || {
        let name = name.get()?;
        if !module_of(library)?.kernels().contains(&name) {
            return Err(Status::NOT_FOUND.because(format!("the library has no kernel `{name}`")));
        }
        kernel.put(handle_of(library, &name)?)
    })
}

/// `hipLibraryEnumerateKernels`.
pub unsafe extern "C" fn hipLibraryEnumerateKernels(
    kernels: Out<Handle>,
    room: c_uint,
    library: Handle,
) -> c_int {
    call("hipLibraryEnumerateKernels", || {
        if kernels.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        for (at, name) in module_of(library)?.kernels().iter().take(room as usize).enumerate() {
            let handle = handle_of(library, name)?;
            // SAFETY: the caller of the API passes an array with this room.
            unsafe { kernels.put_at(at, handle) };
        }
        Ok(())
    })
}

/// `hipKernelGetLibrary`.
pub unsafe extern "C" fn hipKernelGetLibrary(library: Out<Handle>, kernel: Handle) -> c_int {
    call("hipKernelGetLibrary", || {
        library.put(with(|all| Ok(all.kernels.get(&kernel).ok_or(Status::INVALID_VALUE)?.library))?)
    })
}

/// `hipKernelGetName`. The name is valid until the library is unloaded.
pub unsafe extern "C" fn hipKernelGetName(name: Out<*const c_char>, kernel: Handle) -> c_int {
    call("hipKernelGetName", || {
        name.put(with(|all| Ok(all.kernels.get(&kernel).ok_or(Status::INVALID_VALUE)?.name.as_ptr()))?)
    })
}
