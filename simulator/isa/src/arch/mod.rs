//! Architectures, the processors that implement them, and their names.

pub mod facts;
pub mod machine;

mod cdna3;
mod cdna4;
mod cdna5;
mod rdna3;
mod rdna35;
mod rdna4;
mod riscv_gpu;

use facts::Facts;
use isa_spec::tables::ArchTable;
use machine::Machine;

/// Defines [`Arch`] and the table of its facts from the list of architectures.
macro_rules! architectures {
    ($($(#[doc = $doc:literal])* $arch:ident = $file:ident,)*) => {
        /// An architecture, described by one XML file. Its facts are in the file of its name below `arch/`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Arch {
            $($(#[doc = $doc])* $arch,)*
        }

        impl Arch {
            /// All architectures.
            pub const ALL: [Arch; [$(Arch::$arch),*].len()] = [$(Arch::$arch),*];
        }

        static FACTS: [Facts; Arch::ALL.len()] = [$($file::FACTS),*];
    };
}

architectures! {
    /// RDNA 3: gfx1100 to gfx1103.
    Rdna3 = rdna3,
    /// RDNA 3.5: gfx1150 to gfx1153.
    Rdna35 = rdna35,
    /// RDNA 4: gfx1200 and gfx1201.
    Rdna4 = rdna4,
    /// CDNA 3: gfx940 to gfx942.
    Cdna3 = cdna3,
    /// CDNA 4: gfx950.
    Cdna4 = cdna4,
    /// CDNA 5: gfx1250 and gfx1251.
    Cdna5 = cdna5,
    /// A GPU with RISC-V instructions; an example of an architecture other than AMD's.
    RiscvGpu = riscv_gpu,
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

/// Targets whose code runs on all processors of a generation: name, EF_AMDGPU_MACH, and architectures, oldest
/// first.
pub const GENERIC_TARGETS: [(&str, u32, &[Arch]); 3] = [
    ("gfx11-generic", 0x54, &[Arch::Rdna3, Arch::Rdna35]),
    ("gfx12-generic", 0x59, &[Arch::Rdna4]),
    ("gfx9-4-generic", 0x5f, &[Arch::Cdna3, Arch::Cdna4]),
];

impl Processor {
    /// All processors, grouped by architecture. The first of each group is the default.
    pub fn all() -> impl Iterator<Item = Processor> + Clone {
        Arch::ALL.into_iter().flat_map(|arch| {
            let row = move |row: &facts::ProcessorRow| Processor { name: row.0, arch, mach: row.1 };
            arch.facts().processors.iter().map(row)
        })
    }

    /// Looks up a processor by LLVM's name.
    pub fn from_name(name: &str) -> Option<Processor> {
        Processor::all().find(|p| p.name == name)
    }

    /// The default processor of an architecture; `None` for machines other than AMD's.
    pub fn of_arch(arch: Arch) -> Option<Processor> {
        Processor::all().find(|p| p.arch == arch)
    }
}

impl Arch {
    /// AMD's architectures.
    pub const AMD: [Arch; 6] =
        [Arch::Rdna3, Arch::Rdna35, Arch::Rdna4, Arch::Cdna3, Arch::Cdna4, Arch::Cdna5];
    /// The RDNA architectures: wave32 or wave64.
    pub const RDNA: [Arch; 3] = [Arch::Rdna3, Arch::Rdna35, Arch::Rdna4];
    /// The CDNA architectures with gfx9's encodings: wave64.
    pub const CDNA: [Arch; 2] = [Arch::Cdna3, Arch::Cdna4];
    /// The architecture where none is named.
    pub const DEFAULT: Arch = Arch::Rdna3;

    /// What the ISA description does not state.
    #[inline]
    pub const fn facts(self) -> &'static Facts {
        &FACTS[self as usize]
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// The machine description; `None` for AMD's architectures, for which the simulator defines registers and
    /// syntax.
    pub fn machine(self) -> Option<&'static Machine> {
        self.facts().machine
    }

    /// Returns whether the architecture is one of [`Arch::CDNA`]; for the assembler's dialect. Other code asks
    /// for a [fact](Arch::facts).
    pub fn is_cdna(self) -> bool {
        Arch::CDNA.contains(&self)
    }

    /// The supported wave sizes, default first.
    pub fn wave_sizes(self) -> &'static [u32] {
        self.facts().wave_sizes
    }

    /// Maximum LDS per workgroup in bytes.
    pub const fn lds_bytes(self) -> u32 {
        self.facts().lds_bytes
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
        Processor::all().find(|p| p.mach == mach).map(|p| p.arch).or_else(generic)
    }

    /// The encoding tables, generated from the XML.
    pub fn table(self) -> &'static ArchTable {
        crate::tables::TABLES[self as usize]
    }
}
