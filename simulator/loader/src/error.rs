//! Why a code object cannot be loaded.

use wavesim_isa::arch::Arch;

/// The reason why a file is not a code object with the requested kernel.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum LoadError {
    /// The file does not parse as ELF.
    #[error("not a code object: {0}")]
    Elf(#[from] object::Error),
    /// A recognised file of another type; its description completes "this is …".
    #[error("this is {0}")]
    Foreign(String),
    /// The ELF header names a processor that is not simulated.
    #[error("processor 0x{0:02x} of e_flags is not one of {names}", names = Arch::AMD.map(Arch::name).join(", "))]
    Processor(u32),
    /// There is no descriptor `name.kd`; `available` lists the existing kernels ([`some_of`]).
    #[error("no kernel `{name}`; the code object has {available}")]
    NoKernel { name: String, available: String },
    /// The bundle contains nothing for the requested target; `available` lists its targets.
    #[error("no code object for {requested} in the bundle; it has {available}")]
    NotInBundle { requested: String, available: String },
    /// A launch file specifies a target, but the code object is for another architecture.
    #[error("the code object is for {object}, not {requested}")]
    Target { object: &'static str, requested: String },
    /// The ABI version of the ELF header is not one of code object versions 3 to 6.
    #[error("code object version {0}: versions 3 to 6 are supported")]
    Version(String),
    /// A relocatable file, which compilers produce before linking.
    #[error("an object file that is not linked (`ld.lld -shared` links it)")]
    NotLinked,
    /// A relocation refers to a symbol that is neither defined nor weak.
    #[error("`{0}` is not defined in the code object")]
    Undefined(String),
    /// The dynamic relocation at address `at` has an unsupported type.
    #[error("relocation type {r_type} at 0x{at:x} is unknown")]
    Relocation { r_type: u32, at: u64 },
    /// Parts of the file contradict each other, as described by the text.
    #[error("bad code object: {0}")]
    Bad(String),
}
