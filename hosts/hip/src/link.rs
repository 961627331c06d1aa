//! Run-time linking of LLVM bitcode into a code object. `hiprtcLink…` and `hipLink…` differ only in their
//! status types.

use crate::ffi::{In, Memory, Out, Text};
use crate::gpu::{gpu, lock};
use crate::rtc::{self, Rtc};
use crate::status::{Failure, Outcome, Status, call, report};
use crate::stream::{Handle, new_handle};
use std::collections::HashMap;
use std::ffi::{c_int, c_uint};
use std::sync::Mutex;
use wavesim_clang::{Clang, Linked};
use wavesim_runtime::ffi as host;

/// A link: its inputs and its result.
#[derive(Default)]
struct Link {
    inputs: Vec<Vec<u8>>,
    /// The linked code object. The program may use its address until it destroys the link.
    code: Option<Vec<u8>>,
}

/// Links by handle.
static LINKS: Mutex<Option<HashMap<Handle, Link>>> = Mutex::new(None);

/// `hipJitInputLLVMBitcode`.
const BITCODE: c_int = 100;

/// Reason why a call failed.
enum LinkError {
    Handle,
    Input(String),
    File(String),
    Link(String),
}

impl From<LinkError> for Failure {
    fn from(error: LinkError) -> Failure {
        match error {
            LinkError::Handle => Status::INVALID_HANDLE.into(),
            LinkError::Input(message) => Status::INVALID_VALUE.because(message),
            LinkError::File(message) => Status::FILE_NOT_FOUND.because(message),
            LinkError::Link(message) => Status::INVALID_IMAGE.because(message),
        }
    }
}

impl From<LinkError> for Rtc {
    fn from(error: LinkError) -> Rtc {
        let (rtc, message) = match error {
            LinkError::Handle => return Rtc::INVALID_INPUT,
            LinkError::Input(message) => (Rtc::INVALID_INPUT, message),
            LinkError::File(message) => (Rtc::PROGRAM_CREATION, message),
            LinkError::Link(message) => (Rtc::LINKING, message),
        };
        report(&format!("hiprtcLink: {message}"));
        rtc
    }
}

fn with<T>(link: Handle, body: impl FnOnce(&mut Link) -> Result<T, LinkError>) -> Result<T, LinkError> {
    body(lock(&LINKS).get_or_insert_default().get_mut(&link).ok_or(LinkError::Handle)?)
}

fn create() -> Handle {
    let handle = new_handle();
    lock(&LINKS).get_or_insert_default().insert(handle, Link::default());
    handle
}

/// Checks the link and the kind of an input.
fn accept(link: Handle, kind: c_int) -> Result<(), LinkError> {
    with(link, |_| Ok(()))?;
    if kind != BITCODE {
        let message =
            format!("input of kind {kind}: only LLVM bitcode (hipJitInputLLVMBitcode) is supported");
        return Err(LinkError::Input(message));
    }
    Ok(())
}

fn add(link: Handle, kind: c_int, bytes: Vec<u8>) -> Result<(), LinkError> {
    accept(link, kind)?;
    // Magic numbers of raw bitcode and of wrapped bitcode.
    if ![&b"BC\xc0\xde"[..], b"\xde\xc0\x17\x0b"].iter().any(|magic| bytes.starts_with(magic)) {
        return Err(LinkError::Input("the input is not LLVM bitcode".to_string()));
    }
    with(link, |link| {
        link.inputs.push(bytes);
        Ok(())
    })
}

fn add_file(link: Handle, kind: c_int, path: &str) -> Result<(), LinkError> {
    accept(link, kind)?;
    let bytes = std::fs::read(path).map_err(|e| LinkError::File(format!("{path}: {e}")))?;
    add(link, kind, bytes)
}

/// Links the inputs. Returns the address and the size of the code object.
fn complete(link: Handle) -> Result<(usize, usize), LinkError> {
    let inputs = with(link, |link| Ok(link.inputs.clone()))?;
    if inputs.is_empty() {
        return Err(LinkError::Input("there is nothing to link".to_string()));
    }
    let processor = gpu().map_or("gfx1100", |gpu| gpu.device.target().processor_name());
    let clang = Clang::for_processor(processor).map_err(LinkError::Link)?;
    let (code, log) =
        clang.link(processor, &inputs, Linked::CodeObject).map_err(|e| LinkError::Link(e.to_string()))?;
    let code = code.ok_or(LinkError::Link(log))?;
    with(link, |link| {
        let code = link.code.insert(code);
        Ok((code.as_ptr().expose_provenance(), code.len()))
    })
}

fn destroy(link: Handle) -> Result<(), LinkError> {
    lock(&LINKS).get_or_insert_default().remove(&link).map(drop).ok_or(LinkError::Handle)
}

/// `hipLinkCreate`.
pub unsafe extern "C" fn hipLinkCreate(
    _count: c_uint,
    _options: In<c_int>,
    _values: In<Memory>,
    link: Out<Handle>,
) -> c_int {
    call("hipLinkCreate", || link.put(create()))
}

/// `hipLinkAddData`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn hipLinkAddData(
    link: Handle,
    kind: c_int,
    data: Memory,
    size: usize,
    _name: Text,
    _count: c_uint,
    _options: In<c_int>,
    _values: In<Memory>,
) -> c_int {
    // SAFETY: the caller of the API passes data of this size.
    let data = || unsafe { data.read(if data.is_null() { 0 } else { size }) };
    call("hipLinkAddData", || Ok(add(link, kind, data())?))
}

/// `hipLinkAddFile`.
pub unsafe extern "C" fn hipLinkAddFile(
    link: Handle,
    kind: c_int,
    path: Text,
    _count: c_uint,
    _options: In<c_int>,
    _values: In<Memory>,
) -> c_int {
    call("hipLinkAddFile", || Ok(add_file(link, kind, &path.get()?)?))
}

/// `hipLinkComplete`. The code object lives as long as the link.
pub unsafe extern "C" fn hipLinkComplete(link: Handle, code: Out<usize>, size: Out<usize>) -> c_int {
    call("hipLinkComplete", || -> Outcome {
        let (address, len) = complete(link)?;
        size.put_optional(len);
        code.put(address)
    })
}

/// `hipLinkDestroy`.
pub unsafe extern "C" fn hipLinkDestroy(link: Handle) -> c_int {
    call("hipLinkDestroy", || Ok(destroy(link)?))
}

/// `hiprtcLinkCreate`.
pub unsafe extern "C" fn hiprtcLinkCreate(
    _count: c_uint,
    _options: In<c_int>,
    _values: In<Memory>,
    link: host::Out<Handle, Rtc>,
) -> c_int {
    rtc::call(|| link.put(create()))
}

/// `hiprtcLinkAddData`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn hiprtcLinkAddData(
    link: Handle,
    kind: c_int,
    data: Memory,
    size: usize,
    _name: Text,
    _count: c_uint,
    _options: In<c_int>,
    _values: In<Memory>,
) -> c_int {
    // SAFETY: the caller of the API passes data of this size.
    let data = || unsafe { data.read(if data.is_null() { 0 } else { size }) };
    rtc::call(|| Ok(add(link, kind, data())?))
}

/// `hiprtcLinkAddFile`.
pub unsafe extern "C" fn hiprtcLinkAddFile(
    link: Handle,
    kind: c_int,
    path: host::Text<Rtc>,
    _count: c_uint,
    _options: In<c_int>,
    _values: In<Memory>,
) -> c_int {
    rtc::call(|| Ok(add_file(link, kind, &path.get()?)?))
}

/// `hiprtcLinkComplete`. The code object lives as long as the link.
pub unsafe extern "C" fn hiprtcLinkComplete(
    link: Handle,
    code: host::Out<usize, Rtc>,
    size: host::Out<usize, Rtc>,
) -> c_int {
    rtc::call(|| {
        let (address, len) = complete(link)?;
        size.put_optional(len);
        code.put(address)
    })
}

/// `hiprtcLinkDestroy`.
pub unsafe extern "C" fn hiprtcLinkDestroy(link: Handle) -> c_int {
    rtc::call(|| Ok(destroy(link)?))
}
