//! Architectures and targets.

use isa_spec::tables::ArchTable;

/// One ISA description (one XML file).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arch {
    Rdna3,
    Rdna35,
    Rdna4,
}

impl Arch {
    pub const ALL: [Arch; 3] = [Arch::Rdna3, Arch::Rdna35, Arch::Rdna4];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Arch::Rdna3 => "rdna3",
            Arch::Rdna35 => "rdna3.5",
            Arch::Rdna4 => "rdna4",
        }
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
        crate::isa::table(self)
    }
}
