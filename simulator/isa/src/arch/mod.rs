//! Architectures and targets.

pub mod machine;
mod riscv_gpu;

use isa_spec::tables::ArchTable;
use machine::Machine;

/// One ISA description (one XML file).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arch {
    Rdna3,
    Rdna35,
    Rdna4,
    RiscvGpu,
}

/// Every processor name that [`Arch::from_mcpu`] knows.
pub const PROCESSORS: [&str; 10] = [
    "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx1200",
    "gfx1201",
];

impl Arch {
    pub const ALL: [Arch; 4] = [Arch::Rdna3, Arch::Rdna35, Arch::Rdna4, Arch::RiscvGpu];
    /// Those of AMD.
    pub const RDNA: [Arch; 3] = [Arch::Rdna3, Arch::Rdna35, Arch::Rdna4];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Arch::Rdna3 => "rdna3",
            Arch::Rdna35 => "rdna3.5",
            Arch::Rdna4 => "rdna4",
            Arch::RiscvGpu => "riscv_gpu",
        }
    }

    /// The machine's description; `None` for AMD's, whose registers and syntax are those of the simulator itself.
    pub fn machine(self) -> Option<&'static Machine> {
        match self {
            Arch::Rdna3 | Arch::Rdna35 | Arch::Rdna4 => None,
            Arch::RiscvGpu => Some(&riscv_gpu::MACHINE),
        }
    }

    /// A place in a program as the machine counts it, from bytes.
    pub fn own_pc(self, pc: u64) -> u64 {
        pc / self.machine().map_or(1, |m| m.pc_bytes)
    }

    /// The other way.
    pub fn byte_pc(self, pc: u64) -> u64 {
        pc.wrapping_mul(self.machine().map_or(1, |m| m.pc_bytes))
    }

    /// The architecture whose programs are files with this extension.
    pub fn from_extension(extension: &str) -> Option<Arch> {
        Arch::ALL.into_iter().find(|a| a.machine().is_some_and(|m| m.assembly.extension == extension))
    }

    pub fn from_name(name: &str) -> Option<Arch> {
        Arch::ALL.into_iter().find(|a| a.name() == name)
    }

    /// The architecture of an LLVM processor name (`gfx1100`), as LLVM's AMDGPUUsage lists them.
    pub fn from_mcpu(mcpu: &str) -> Option<Arch> {
        match mcpu {
            "gfx1100" | "gfx1101" | "gfx1102" | "gfx1103" => Some(Arch::Rdna3),
            "gfx1150" | "gfx1151" | "gfx1152" | "gfx1153" => Some(Arch::Rdna35),
            "gfx1200" | "gfx1201" => Some(Arch::Rdna4),
            _ => None,
        }
    }

    /// The encoding tables, from the XML.
    pub fn table(self) -> &'static ArchTable {
        crate::tables::table(self)
    }
}
