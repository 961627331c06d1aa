//! Why a call of a host failed.

use crate::{Report, SettingError};
use wavesim::exec::program::TooLarge;
use wavesim::loader::code_object::LoadError;
use wavesim::loader::image::LoadImageError;
use wavesim::loader::request::LaunchError;
use wavesim::memory::{MapError, MemError};
use wavesim::sched::dispatch::DispatchError;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such target.
    #[error("`{given}` is not a target; targets are {names}")]
    Target {
        /// What was asked for.
        given: String,
        /// What there is.
        names: String,
    },
    /// A wrong environment variable.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The code object is for another architecture.
    #[error("the code object is for {object}, the device is {device}")]
    Arch {
        /// Of the code object.
        object: &'static str,
        /// Of the device.
        device: &'static str,
    },
    /// The host has no such memory.
    #[error("the host has no {bytes} bytes for `{name}`")]
    HostMemory {
        /// The size.
        bytes: u64,
        /// The allocation's name.
        name: String,
    },
    /// `free` of something that is not an allocation.
    #[error("0x{0:x} is not the address of an allocation{1}")]
    NotAllocated(u64, &'static str),
    /// `unmap` of something that is not mapped.
    #[error("no mapped range begins at 0x{0:x}")]
    NotMapped(u64),
    /// None of several kernels is named.
    #[error("the code object has {}; name one of them", if .0.is_empty() { "no kernel".to_string() } else { format!("the kernels {}", .0.join(", ")) })]
    Kernels(Vec<String>),
    /// No such variable.
    #[error("the module has no variable `{name}`; it has {has}")]
    NoVariable {
        /// The name.
        name: String,
        /// What there is.
        has: String,
    },
    /// A range that cannot be mapped.
    #[error(transparent)]
    Map(#[from] MapError),
    /// An access of the host outside of the device's memory.
    #[error(transparent)]
    Memory(#[from] MemError),
    /// A code object that cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// An image that cannot be placed.
    #[error(transparent)]
    Image(#[from] LoadImageError),
    /// More bytes of arguments than the kernel takes.
    #[error("{given} bytes of arguments are given, the kernarg segment has {takes}")]
    Arguments {
        /// Bytes given.
        given: u64,
        /// Bytes of the kernarg segment.
        takes: u32,
    },
    /// Wrong arguments of a launch.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A launch that no device accepts.
    #[error(transparent)]
    Dispatch(#[from] DispatchError),
    /// Code that is too large.
    #[error(transparent)]
    Program(#[from] TooLarge),
    /// Raw code of a wrong size.
    #[error("{0} bytes of code: the size must be a positive multiple of 4")]
    CodeSize(u64),
    /// An entry outside of raw code.
    #[error("entry_offset {entry} is not a word in {len} bytes of code")]
    Entry {
        /// The offset.
        entry: u64,
        /// The size of the code.
        len: u64,
    },
    /// More user SGPRs than there can be.
    #[error("{0} user SGPRs: there can be at most {max}", max = crate::raw::MAX_USER_SGPRS)]
    UserSgprs(u32),
    /// This host has no compiled engine.
    #[error("the engine jit (WAVESIM_ENGINE): {0}")]
    Engine(#[from] wavesim_jit::UnsupportedHost),
    /// A trace that cannot be written.
    #[error("the trace: {0}")]
    Trace(std::io::Error),
    /// A trace whose file or folder cannot be made.
    #[error("the trace {path}: {cause}", path = path.display())]
    TraceFile {
        /// The file or folder.
        path: std::path::PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// The host has no more threads.
    #[error("no thread: {0}")]
    Thread(std::io::Error),
    /// The kernel faulted.
    #[error("{0}")]
    Fault(Box<Report>),
}
