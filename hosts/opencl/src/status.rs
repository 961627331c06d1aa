//! OpenCL status codes, and the conversion of host-runtime errors to them.

use crate::ffi::Out;
use crate::handle::Handle;
use crate::platform::check_process;
use std::ffi::c_int;
use wavesim_runtime::message;
pub use wavesim_runtime::message::report;

/// An OpenCL status code.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status(pub c_int);

/// Error of a failed call.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Status that the call returns.
    pub status: Status,
    /// Details that the status does not convey.
    pub message: Option<String>,
}

/// Result of a call.
pub type Outcome<T = ()> = Result<T, Failure>;

macro_rules! statuses {
    ($($constant:ident = $value:literal;)*) => {
        impl Status {
            $(
                #[doc = concat!("`CL_", stringify!($constant), "`.")]
                pub const $constant: Status = Status($value);
            )*
        }
    };
}

statuses! {
    SUCCESS = 0;
    DEVICE_NOT_FOUND = -1;
    DEVICE_NOT_AVAILABLE = -2;
    COMPILER_NOT_AVAILABLE = -3;
    MEM_OBJECT_ALLOCATION_FAILURE = -4;
    OUT_OF_RESOURCES = -5;
    PROFILING_INFO_NOT_AVAILABLE = -7;
    MEM_COPY_OVERLAP = -8;
    IMAGE_FORMAT_MISMATCH = -9;
    IMAGE_FORMAT_NOT_SUPPORTED = -10;
    BUILD_PROGRAM_FAILURE = -11;
    MISALIGNED_SUB_BUFFER_OFFSET = -13;
    EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST = -14;
    COMPILE_PROGRAM_FAILURE = -15;
    LINK_PROGRAM_FAILURE = -17;
    KERNEL_ARG_INFO_NOT_AVAILABLE = -19;
    INVALID_VALUE = -30;
    INVALID_DEVICE_TYPE = -31;
    INVALID_PLATFORM = -32;
    INVALID_DEVICE = -33;
    INVALID_CONTEXT = -34;
    INVALID_QUEUE_PROPERTIES = -35;
    INVALID_COMMAND_QUEUE = -36;
    INVALID_HOST_PTR = -37;
    INVALID_MEM_OBJECT = -38;
    INVALID_IMAGE_FORMAT_DESCRIPTOR = -39;
    INVALID_IMAGE_SIZE = -40;
    INVALID_SAMPLER = -41;
    INVALID_BINARY = -42;
    INVALID_BUILD_OPTIONS = -43;
    INVALID_PROGRAM = -44;
    INVALID_PROGRAM_EXECUTABLE = -45;
    INVALID_KERNEL_NAME = -46;
    INVALID_KERNEL = -48;
    INVALID_ARG_INDEX = -49;
    INVALID_ARG_VALUE = -50;
    INVALID_ARG_SIZE = -51;
    INVALID_KERNEL_ARGS = -52;
    INVALID_WORK_DIMENSION = -53;
    INVALID_WORK_GROUP_SIZE = -54;
    INVALID_WORK_ITEM_SIZE = -55;
    INVALID_GLOBAL_OFFSET = -56;
    INVALID_EVENT_WAIT_LIST = -57;
    INVALID_EVENT = -58;
    INVALID_OPERATION = -59;
    INVALID_BUFFER_SIZE = -61;
    INVALID_GLOBAL_WORK_SIZE = -63;
    INVALID_PROPERTY = -64;
    INVALID_IMAGE_DESCRIPTOR = -65;
    INVALID_COMPILER_OPTIONS = -66;
    INVALID_LINKER_OPTIONS = -67;
}

impl Status {
    /// Returns a failure with a message that gives the reason.
    pub fn because(self, message: impl Into<String>) -> Failure {
        Failure { status: self, message: Some(message.into()) }
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Failure {
        Failure { status, message: None }
    }
}

impl From<wavesim_runtime::Error> for Failure {
    fn from(error: wavesim_runtime::Error) -> Failure {
        use wavesim::loader::code_object::LoadError;
        use wavesim::loader::request::LaunchError;
        use wavesim_runtime::Error;
        let status = match &error {
            Error::HostMemory { .. } => Status::MEM_OBJECT_ALLOCATION_FAILURE,
            Error::NotAllocated(..) | Error::NotMapped(_) | Error::Memory(_) | Error::Map(_) => {
                Status::INVALID_VALUE
            }
            Error::Load(LoadError::NoKernel { .. }) => Status::INVALID_KERNEL_NAME,
            Error::Load(_) | Error::Image(_) | Error::Program(_) | Error::Arch { .. } => {
                Status::INVALID_BINARY
            }
            Error::Launch(LaunchError::Lds(_)) => Status::OUT_OF_RESOURCES,
            Error::Launch(LaunchError::Items { .. }) => Status::INVALID_WORK_GROUP_SIZE,
            Error::Launch(_) => Status::INVALID_KERNEL_ARGS,
            Error::Target { .. } | Error::Setting(_) => Status::DEVICE_NOT_FOUND,
            Error::Forked => Status::DEVICE_NOT_AVAILABLE,
            _ => Status::OUT_OF_RESOURCES,
        };
        status.because(error.to_string())
    }
}

/// Runs the body of an API function. A failure becomes its status; its message is written to standard error.
/// Panics do not unwind into the program. All calls fail in a child of the process that opened the device.
fn guard<T>(name: &str, body: impl FnOnce() -> Outcome<T>) -> Result<T, Status> {
    // Unwind safety: shared state is behind locks that ignore poisoning, and each change is a single
    // assignment.
    let body = || check_process().and_then(|()| body());
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(Failure { status, message })) => {
            if let Some(message) = message {
                report(&format!("{name}: {message}"));
            }
            Err(status)
        }
        Err(_) => {
            report(&format!("{name}: internal error"));
            Err(Status::OUT_OF_RESOURCES)
        }
    }
}

/// Runs the body of a function that returns a status.
pub fn call(name: &str, body: impl FnOnce() -> Outcome) -> c_int {
    guard(name, body).err().unwrap_or(Status::SUCCESS).0
}

/// Runs the body of a function that returns a handle, and a status through a pointer that may be null.
pub fn create(name: &str, status: &Out<c_int>, body: impl FnOnce() -> Outcome<Handle>) -> Handle {
    let result = guard(name, body);
    status.put_optional(result.err().unwrap_or(Status::SUCCESS).0);
    result.unwrap_or(Handle::NULL)
}

/// Runs the body of a function like [`create`] that returns an address.
pub fn address(name: &str, status: &Out<c_int>, body: impl FnOnce() -> Outcome<usize>) -> usize {
    let result = guard(name, body);
    status.put_optional(result.err().unwrap_or(Status::SUCCESS).0);
    result.unwrap_or(0)
}

/// Implements unsupported functions: reports the function's name, once.
pub fn unsupported(name: &'static str) -> c_int {
    message::unsupported(name, "wavesim opencl --coverage");
    Status::INVALID_OPERATION.0
}

/// Implements unsupported functions that return an object.
pub fn unsupported_object(name: &'static str, status: &Out<c_int>) -> usize {
    status.put_optional(unsupported(name));
    0
}
