//! Errors of the host runtime.

use crate::{Report, SettingError};
use wavesim::exec::program::TooLarge;
use wavesim::loader::code_object::{LoadError, some_of};
use wavesim::loader::image::LoadImageError;
use wavesim::loader::request::LaunchError;
use wavesim::memory::{MapError, MemError};
use wavesim::sched::dispatch::DispatchError;

/// Reason why a call to the runtime failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Unknown target.
    #[error("`{given}` is not a target; targets are {names}")]
    Target {
        /// The requested name.
        given: String,
        /// All target names.
        names: String,
    },
    /// An editor cannot attach to a launch.
    #[error("WAVESIM_DEBUG_LISTEN={address}: {cause}")]
    Attach {
        /// The address.
        address: String,
        /// The reason.
        cause: String,
    },
    /// Times cannot be predicted, or a profile cannot be written.
    #[error("predicted times: {0}")]
    Timing(String),
    /// A kernel that uses services of the host (`printf`, `malloc`) cannot run again and again.
    #[error("the kernel uses services of the host, such as printf or malloc, and cannot be explored")]
    ExploreServices,
    /// A launch that can access too much memory cannot run on copies of it.
    #[error("the launch can write {} MiB of the host's memory; an exploration copies {} MiB at most", bytes >> 20, most >> 20)]
    ExploreMemory {
        /// Bytes that it can write.
        bytes: u64,
        /// Bytes that are copied, at most.
        most: u64,
    },
    /// An option of an exploration is out of range.
    #[error("{0}, and not {1}")]
    ExploreOption(&'static str, f64),
    /// An invalid environment variable.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The code object is for another architecture.
    #[error("the code object is for {object}, the device is {device}")]
    Arch {
        /// Architecture of the code object.
        object: &'static str,
        /// Architecture of the device.
        device: &'static str,
    },
    /// The host is out of memory.
    #[error("the host has no memory for the {bytes} bytes of `{name}`")]
    HostMemory {
        /// The size.
        bytes: u64,
        /// The allocation's name.
        name: String,
    },
    /// `free` of an address at which no allocation begins.
    #[error("0x{0:x} is not the address of an allocation{1}")]
    NotAllocated(u64, &'static str),
    /// `unmap` of an address at which no mapped range begins.
    #[error("no mapped range begins at 0x{0:x}")]
    NotMapped(u64),
    /// No kernel was named, and the code object does not have exactly one.
    #[error("the code object has {}; name one of them", if .0.is_empty() { "no kernel".to_string() } else { format!("the kernels {}", some_of(.0, "")) })]
    Kernels(Vec<String>),
    /// Unknown variable.
    #[error("the module has no variable `{name}`; it has {has}")]
    NoVariable {
        /// The name.
        name: String,
        /// Names of some of the module's variables.
        has: String,
    },
    /// A range that cannot be mapped.
    #[error(transparent)]
    Map(#[from] MapError),
    /// A host access outside the device's memory.
    #[error(transparent)]
    Memory(#[from] MemError),
    /// A code object that cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// An image that cannot be copied to its address.
    #[error(transparent)]
    Image(#[from] LoadImageError),
    /// More argument bytes than the kernel takes.
    #[error("{given} bytes of arguments were given, but the kernarg segment has {takes}")]
    Arguments {
        /// Bytes given.
        given: u64,
        /// Bytes of the kernarg segment.
        takes: u32,
    },
    /// Invalid launch arguments.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A launch that exceeds the limits of every device.
    #[error(transparent)]
    Dispatch(#[from] DispatchError),
    /// Code that exceeds the size limit.
    #[error(transparent)]
    Program(#[from] TooLarge),
    /// Raw code of an invalid size.
    #[error("{0} bytes of code: the size must be a positive multiple of 4")]
    CodeSize(u64),
    /// An entry offset outside the raw code.
    #[error("entry_offset {entry} is not a word in {len} bytes of code")]
    Entry {
        /// The offset.
        entry: u64,
        /// The size of the code.
        len: u64,
    },
    /// Too many user SGPRs.
    #[error("{0} user SGPRs: there can be at most {max}", max = crate::raw::MAX_USER_SGPRS)]
    UserSgprs(u32),
    /// The compiled engine does not support this host.
    #[error("the engine jit (WAVESIM_ENGINE): {0}")]
    Engine(#[from] wavesim_jit::UnsupportedHost),
    /// Writing a trace failed.
    #[error("the trace: {0}")]
    Trace(std::io::Error),
    /// Memory cannot be shared with another process.
    #[error("memory shared between processes: {0}")]
    Shared(std::io::Error),
    /// A range of addresses that cannot be reserved, mapped or unmapped.
    #[error(transparent)]
    Virtual(#[from] crate::memory::VirtualError),
    /// Creating a trace file or its directory failed.
    #[error("the trace {path}: {cause}", path = path.display())]
    TraceFile {
        /// The file or directory.
        path: std::path::PathBuf,
        /// The underlying error.
        cause: std::io::Error,
    },
    /// The process was forked after it had opened the device, whose threads exist only in the parent.
    #[error(
        "the process was forked after it had opened the device: open the device after the fork, or start a new process"
    )]
    Forked,
    /// Starting a host thread failed.
    #[error("no thread: {0}")]
    Thread(std::io::Error),
    /// The kernel faulted.
    #[error("{0}")]
    Fault(Box<Report>),
}
