//! The GPU that a device stands for.

use crate::Error;
use wavesim::arch::{Arch, PROCESSORS, Processor};
use wavesim::loader::code_object::TargetRequest;

/// A processor, or an architecture if no processor is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The architecture, which decides what instructions do.
    pub arch: Arch,
    /// The processor, by which code objects are chosen.
    pub processor: Option<Processor>,
}

impl Target {
    /// The default of every host.
    pub const DEFAULT: &str = "gfx1100";

    /// A target by the name of a processor (`gfx1100`) or an architecture (`rdna3`).
    pub fn from_name(name: &str) -> Result<Target, Error> {
        // A launch has the registers of AMD GPUs, which other architectures do not have.
        if let Some(arch) = Arch::AMD.into_iter().find(|a| a.name() == name) {
            return Ok(Target { arch, processor: None });
        }
        // Runtimes append features: `gfx90a:xnack+`.
        let plain = name.split(':').next().unwrap_or(name);
        let processor = Processor::from_name(plain).ok_or_else(|| {
            let archs = Arch::AMD.iter().map(|a| a.name());
            let names: Vec<&str> = archs.chain(PROCESSORS.iter().map(|p| p.name)).collect();
            Error::Target { given: name.to_string(), names: names.join(", ") }
        })?;
        Ok(Target { arch: processor.arch, processor: Some(processor) })
    }

    /// The processor's name; if none was chosen, that of the architecture's first.
    pub fn processor_name(&self) -> &'static str {
        self.processor.or(Processor::of_arch(self.arch)).map_or("", |p| p.name)
    }

    /// Lanes of its waves, where kernels do not choose.
    pub fn wave_size(&self) -> u32 {
        self.arch.wave_sizes()[0]
    }

    /// LDS that a workgroup can have.
    pub fn lds_bytes(&self) -> u32 {
        self.arch.lds_bytes()
    }

    /// LDS of a multiprocessor: RDNA's workgroup processors have it twice.
    pub fn processor_lds_bytes(&self) -> u32 {
        if self.arch.is_cdna() { self.lds_bytes() } else { 2 * self.lds_bytes() }
    }

    /// Which code object of a bundle is wanted.
    pub fn target_request(&self) -> TargetRequest {
        TargetRequest { processor: self.processor.map(|p| p.name.to_string()), arch: Some(self.arch) }
    }
}
