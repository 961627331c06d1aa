//! The values of `hipError_t`, and the conversion of host-runtime errors to them.

use crate::gpu::check_process;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};
pub use wavesim_runtime::message::report;
use wavesim_runtime::{Error, message};

/// A value of `hipError_t`.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status(pub c_int);

/// Error of a failed call.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Status that the call and then `hipGetLastError` return.
    pub status: Status,
    /// Details that the status does not convey.
    pub message: Option<String>,
}

/// Result of a call.
pub type Outcome<T = ()> = Result<T, Failure>;

macro_rules! statuses {
    ($($constant:ident = $value:literal, $name:literal, $text:literal;)*) => {
        impl Status {
            $(
                /// A value of `hipError_t`.
                pub const $constant: Status = Status($value);
            )*
        }
        /// Value, name and description of each status.
        const STATUSES: &[(c_int, &CStr, &CStr)] = &[$(($value, $name, $text)),*];
    };
}

statuses! {
    SUCCESS = 0, c"hipSuccess", c"no error";
    INVALID_VALUE = 1, c"hipErrorInvalidValue", c"invalid argument";
    OUT_OF_MEMORY = 2, c"hipErrorOutOfMemory", c"out of memory";
    NOT_INITIALIZED = 3, c"hipErrorNotInitialized", c"initialization error";
    DEINITIALIZED = 4, c"hipErrorDeinitialized", c"driver shutting down";
    INVALID_CONFIGURATION = 9, c"hipErrorInvalidConfiguration", c"invalid configuration argument";
    INVALID_PITCH_VALUE = 12, c"hipErrorInvalidPitchValue", c"invalid pitch argument";
    INVALID_SYMBOL = 13, c"hipErrorInvalidSymbol", c"invalid device symbol";
    INVALID_DEVICE_POINTER = 17, c"hipErrorInvalidDevicePointer", c"invalid device pointer";
    INVALID_MEMCPY_DIRECTION = 21, c"hipErrorInvalidMemcpyDirection", c"invalid copy direction for memcpy";
    MISSING_CONFIGURATION = 52, c"hipErrorMissingConfiguration", c"__global__ function call is not configured";
    PRIOR_LAUNCH_FAILURE = 53, c"hipErrorPriorLaunchFailure", c"unspecified launch failure in prior launch";
    INVALID_DEVICE_FUNCTION = 98, c"hipErrorInvalidDeviceFunction", c"invalid device function";
    NO_DEVICE = 100, c"hipErrorNoDevice", c"no ROCm-capable device is detected";
    INVALID_DEVICE = 101, c"hipErrorInvalidDevice", c"invalid device ordinal";
    INVALID_IMAGE = 200, c"hipErrorInvalidImage", c"device kernel image is invalid";
    INVALID_CONTEXT = 201, c"hipErrorInvalidContext", c"invalid device context";
    NO_BINARY_FOR_GPU = 209, c"hipErrorNoBinaryForGpu", c"no kernel image is available for execution on the device";
    UNSUPPORTED_LIMIT = 215, c"hipErrorUnsupportedLimit", c"limit is not supported on this architecture";
    CONTEXT_ALREADY_IN_USE = 216, c"hipErrorContextAlreadyInUse", c"exclusive-thread device already in use by a different thread";
    PEER_ACCESS_UNSUPPORTED = 217, c"hipErrorPeerAccessUnsupported", c"peer access is not supported between these two devices";
    INVALID_KERNEL_FILE = 218, c"hipErrorInvalidKernelFile", c"invalid kernel file";
    FILE_NOT_FOUND = 301, c"hipErrorFileNotFound", c"file not found";
    SHARED_OBJECT_INIT_FAILED = 303, c"hipErrorSharedObjectInitFailed", c"shared object initialization failed";
    OPERATING_SYSTEM = 304, c"hipErrorOperatingSystem", c"OS call failed or operation not supported on this OS";
    INVALID_HANDLE = 400, c"hipErrorInvalidHandle", c"invalid resource handle";
    ILLEGAL_STATE = 401, c"hipErrorIllegalState", c"the operation cannot be performed in the present state";
    NOT_FOUND = 500, c"hipErrorNotFound", c"named symbol not found";
    NOT_READY = 600, c"hipErrorNotReady", c"device not ready";
    ILLEGAL_ADDRESS = 700, c"hipErrorIllegalAddress", c"an illegal memory access was encountered";
    LAUNCH_OUT_OF_RESOURCES = 701, c"hipErrorLaunchOutOfResources", c"too many resources requested for launch";
    LAUNCH_TIME_OUT = 702, c"hipErrorLaunchTimeOut", c"the launch timed out and was terminated";
    PEER_ACCESS_ALREADY_ENABLED = 704, c"hipErrorPeerAccessAlreadyEnabled", c"peer access is already enabled";
    PEER_ACCESS_NOT_ENABLED = 705, c"hipErrorPeerAccessNotEnabled", c"peer access has not been enabled";
    CONTEXT_IS_DESTROYED = 709, c"hipErrorContextIsDestroyed", c"context is destroyed";
    ASSERT = 710, c"hipErrorAssert", c"device-side assert triggered";
    HOST_MEMORY_ALREADY_REGISTERED = 712, c"hipErrorHostMemoryAlreadyRegistered", c"part or all of the requested memory range is already mapped";
    HOST_MEMORY_NOT_REGISTERED = 713, c"hipErrorHostMemoryNotRegistered", c"pointer does not correspond to a registered memory region";
    LAUNCH_FAILURE = 719, c"hipErrorLaunchFailure", c"unspecified launch failure";
    COOPERATIVE_LAUNCH_TOO_LARGE = 720, c"hipErrorCooperativeLaunchTooLarge", c"too many blocks in cooperative launch";
    NOT_PERMITTED = 800, c"hipErrorNotPermitted", c"operation not permitted";
    NOT_SUPPORTED = 801, c"hipErrorNotSupported", c"operation not supported";
    STREAM_CAPTURE_UNSUPPORTED = 900, c"hipErrorStreamCaptureUnsupported", c"operation not permitted when stream is capturing";
    STREAM_CAPTURE_INVALIDATED = 901, c"hipErrorStreamCaptureInvalidated", c"operation failed due to a previous error during capture";
    STREAM_CAPTURE_MERGE = 902, c"hipErrorStreamCaptureMerge", c"operation would result in a merge of separate capture sequences";
    STREAM_CAPTURE_UNMATCHED = 903, c"hipErrorStreamCaptureUnmatched", c"capture was not ended in the same stream as it began";
    STREAM_CAPTURE_UNJOINED = 904, c"hipErrorStreamCaptureUnjoined", c"capturing stream has unjoined work";
    STREAM_CAPTURE_WRONG_THREAD = 908, c"hipErrorStreamCaptureWrongThread", c"attempt to terminate a thread-local capture sequence from another thread";
    STREAM_CAPTURE_IMPLICIT = 906, c"hipErrorStreamCaptureImplicit", c"operation would make the legacy stream depend on a capturing blocking stream";
    CAPTURED_EVENT = 907, c"hipErrorCapturedEvent", c"operation not permitted on an event last recorded in a capturing stream";
    GRAPH_EXEC_UPDATE_FAILURE = 910, c"hipErrorGraphExecUpdateFailure", c"the graph update was not performed because it included changes which violated constraints";
    UNKNOWN = 999, c"hipErrorUnknown", c"unknown error";
}

impl Status {
    fn row(self) -> Option<&'static (c_int, &'static CStr, &'static CStr)> {
        STATUSES.iter().find(|row| row.0 == self.0)
    }

    /// Returns the name, such as `hipErrorInvalidValue`.
    pub fn name(self) -> Option<&'static CStr> {
        self.row().map(|row| row.1)
    }

    /// Returns the description, such as `invalid argument`.
    pub fn text(self) -> Option<&'static CStr> {
        self.row().map(|row| row.2)
    }

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

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        use wavesim::fault::FaultKind;
        use wavesim::loader::code_object::LoadError;
        let status = match &error {
            Error::HostMemory { .. } => Status::OUT_OF_MEMORY,
            Error::NotAllocated(..) | Error::NotMapped(_) => Status::INVALID_VALUE,
            Error::NoVariable { .. } => Status::NOT_FOUND,
            Error::Load(LoadError::NoKernel { .. }) => Status::NOT_FOUND,
            Error::Load(
                LoadError::NotInBundle { .. } | LoadError::Target { .. } | LoadError::Processor(_),
            ) => Status::NO_BINARY_FOR_GPU,
            Error::Arch { .. } => Status::NO_BINARY_FOR_GPU,
            Error::Load(_) | Error::Image(_) | Error::Program(_) => Status::INVALID_IMAGE,
            Error::Launch(_) | Error::Dispatch(_) => Status::INVALID_CONFIGURATION,
            Error::Memory(_) | Error::Map(_) => Status::INVALID_VALUE,
            Error::Fault(report) => match report.fault.as_ref().map(|f| &f.kind) {
                Some(FaultKind::OutOfBounds { .. }) => Status::ILLEGAL_ADDRESS,
                Some(FaultKind::InstructionLimit) => Status::LAUNCH_TIME_OUT,
                _ => Status::LAUNCH_FAILURE,
            },
            Error::Target { .. } | Error::Setting(_) => Status::NO_DEVICE,
            Error::Forked => Status::NOT_INITIALIZED,
            _ => Status::UNKNOWN,
        };
        status.because(error.to_string())
    }
}

thread_local! {
    static LAST: Cell<Status> = const { Cell::new(Status::SUCCESS) };
}

/// Returns the thread's last error.
pub fn last() -> Status {
    LAST.get()
}

/// Sets the thread's last error.
pub fn set_last(status: Status) {
    LAST.set(status);
}

/// Runs the body of an exported function. A failure is returned as its status and becomes the thread's last
/// error; its message is written to standard error. Panics do not unwind into the program. All calls fail in a
/// child of the process that opened the device.
pub fn call(name: &str, body: impl FnOnce() -> Outcome) -> c_int {
    // Unwind safety: shared state is behind locks that ignore poisoning, and each change is a single
    // assignment.
    let body = || check_process().and_then(|()| body());
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    let status = match result {
        Ok(Ok(())) => return Status::SUCCESS.0,
        Ok(Err(failure)) => {
            if let Some(message) = &failure.message {
                report(&format!("{name}: {message}"));
            }
            failure.status
        }
        Err(_) => {
            report(&format!("{name}: internal error"));
            Status::UNKNOWN
        }
    };
    // `hipErrorNotReady` reports progress and is not an error.
    if status != Status::NOT_READY {
        set_last(status);
    }
    status.0
}

/// Implements unsupported functions: reports the function's name, once.
pub fn unsupported(name: &'static str) -> c_int {
    message::unsupported(name, "wavesim hip --coverage");
    set_last(Status::NOT_SUPPORTED);
    Status::NOT_SUPPORTED.0
}

/// Implements unsupported functions that return a string.
pub fn unsupported_text(name: &'static str) -> *const c_char {
    unsupported(name);
    c"operation not supported".as_ptr()
}
