//! Architectures, the processors that implement them, and their names.

pub mod machine;
mod riscv_gpu;

use isa_spec::tables::ArchTable;
use machine::Machine;

/// An architecture, described by one XML file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arch {
    /// RDNA 3: gfx1100 to gfx1103.
    Rdna3,
    /// RDNA 3.5: gfx1150 to gfx1153.
    Rdna35,
    /// RDNA 4: gfx1200 and gfx1201.
    Rdna4,
    /// CDNA 3: gfx940 to gfx942.
    Cdna3,
    /// CDNA 4: gfx950.
    Cdna4,
    /// A GPU with RISC-V instructions; an example of an architecture other than AMD's.
    RiscvGpu,
}

/// A processor with LLVM's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processor {
    /// `gfx1100` …
    pub name: &'static str,
    /// The architecture it implements.
    pub arch: Arch,
    /// EF_AMDGPU_MACH in the ELF flags of its code objects (LLVM AMDGPUUsage, *Header*).
    pub mach: u32,
}

/// The processors (LLVM AMDGPUUsage, *Processors*), grouped by architecture. The first of each group is the
/// default.
pub const PROCESSORS: [Processor; 14] = [
    Processor { name: "gfx1100", arch: Arch::Rdna3, mach: 0x41 },
    Processor { name: "gfx1101", arch: Arch::Rdna3, mach: 0x46 },
    Processor { name: "gfx1102", arch: Arch::Rdna3, mach: 0x47 },
    Processor { name: "gfx1103", arch: Arch::Rdna3, mach: 0x44 },
    Processor { name: "gfx1150", arch: Arch::Rdna35, mach: 0x43 },
    Processor { name: "gfx1151", arch: Arch::Rdna35, mach: 0x4a },
    Processor { name: "gfx1152", arch: Arch::Rdna35, mach: 0x55 },
    Processor { name: "gfx1153", arch: Arch::Rdna35, mach: 0x58 },
    Processor { name: "gfx1201", arch: Arch::Rdna4, mach: 0x4e },
    Processor { name: "gfx1200", arch: Arch::Rdna4, mach: 0x48 },
    Processor { name: "gfx942", arch: Arch::Cdna3, mach: 0x4c },
    Processor { name: "gfx940", arch: Arch::Cdna3, mach: 0x40 },
    Processor { name: "gfx941", arch: Arch::Cdna3, mach: 0x4b },
    Processor { name: "gfx950", arch: Arch::Cdna4, mach: 0x4f },
];

/// Targets whose code runs on all processors of a generation: name, EF_AMDGPU_MACH, and architectures, oldest
/// first.
pub const GENERIC_TARGETS: [(&str, u32, &[Arch]); 3] = [
    ("gfx11-generic", 0x54, &[Arch::Rdna3, Arch::Rdna35]),
    ("gfx12-generic", 0x59, &[Arch::Rdna4]),
    ("gfx9-4-generic", 0x5f, &[Arch::Cdna3, Arch::Cdna4]),
];

impl Processor {
    /// Looks up a processor by LLVM's name.
    pub fn from_name(name: &str) -> Option<Processor> {
        PROCESSORS.into_iter().find(|p| p.name == name)
    }

    /// The default processor of an architecture; `None` for machines other than AMD's.
    pub fn of_arch(arch: Arch) -> Option<Processor> {
        PROCESSORS.into_iter().find(|p| p.arch == arch)
    }
}

impl Arch {
    /// All architectures.
    pub const ALL: [Arch; 6] =
        [Arch::Rdna3, Arch::Rdna35, Arch::Rdna4, Arch::Cdna3, Arch::Cdna4, Arch::RiscvGpu];
    /// AMD's architectures.
    pub const AMD: [Arch; 5] = [Arch::Rdna3, Arch::Rdna35, Arch::Rdna4, Arch::Cdna3, Arch::Cdna4];
    /// The RDNA architectures: wave32 or wave64.
    pub const RDNA: [Arch; 3] = [Arch::Rdna3, Arch::Rdna35, Arch::Rdna4];
    /// The CDNA architectures: wave64.
    pub const CDNA: [Arch; 2] = [Arch::Cdna3, Arch::Cdna4];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Arch::Rdna3 => "rdna3",
            Arch::Rdna35 => "rdna3.5",
            Arch::Rdna4 => "rdna4",
            Arch::Cdna3 => "cdna3",
            Arch::Cdna4 => "cdna4",
            Arch::RiscvGpu => "riscv_gpu",
        }
    }

    /// The machine description; `None` for AMD's architectures, for which the simulator defines registers and
    /// syntax.
    pub fn machine(self) -> Option<&'static Machine> {
        match self {
            Arch::Rdna3 | Arch::Rdna35 | Arch::Rdna4 | Arch::Cdna3 | Arch::Cdna4 => None,
            Arch::RiscvGpu => Some(&riscv_gpu::MACHINE),
        }
    }

    /// Returns whether the architecture is one of [`Arch::CDNA`].
    pub fn is_cdna(self) -> bool {
        matches!(self, Arch::Cdna3 | Arch::Cdna4)
    }

    /// The supported wave sizes, default first.
    pub fn wave_sizes(self) -> &'static [u32] {
        match self {
            Arch::Cdna3 | Arch::Cdna4 => &[64],
            Arch::Rdna3 | Arch::Rdna35 | Arch::Rdna4 | Arch::RiscvGpu => &[32, 64],
        }
    }

    /// Maximum LDS per workgroup in bytes.
    pub fn lds_bytes(self) -> u32 {
        if self == Arch::Cdna4 { 160 << 10 } else { 64 << 10 }
    }

    /// Converts a byte offset to the units of the machine's program counter.
    pub fn machine_pc(self, pc: u64) -> u64 {
        pc / self.machine().map_or(1, |m| m.pc_bytes)
    }

    /// Converts a program counter to a byte offset; the inverse of [`machine_pc`](Self::machine_pc).
    pub fn byte_pc(self, pc: u64) -> u64 {
        pc.wrapping_mul(self.machine().map_or(1, |m| m.pc_bytes))
    }

    /// The architecture whose programs have this file extension.
    pub fn from_extension(extension: &str) -> Option<Arch> {
        Arch::ALL.into_iter().find(|a| a.machine().is_some_and(|m| m.assembly.extension == extension))
    }

    /// Looks up an architecture by its command-line name.
    pub fn from_name(name: &str) -> Option<Arch> {
        Arch::ALL.into_iter().find(|a| a.name() == name)
    }

    /// The architecture of a processor, given by LLVM's name (`gfx1100`).
    pub fn from_mcpu(mcpu: &str) -> Option<Arch> {
        Processor::from_name(mcpu).map(|p| p.arch)
    }

    /// The architecture for an EF_AMDGPU_MACH; for a generic target, the oldest one.
    pub fn from_mach(mach: u32) -> Option<Arch> {
        let generic =
            || GENERIC_TARGETS.into_iter().find(|target| target.1 == mach).map(|target| target.2[0]);
        PROCESSORS.into_iter().find(|p| p.mach == mach).map(|p| p.arch).or_else(generic)
    }

    /// The encoding tables, generated from the XML.
    pub fn table(self) -> &'static ArchTable {
        crate::tables::table(self)
    }
}
