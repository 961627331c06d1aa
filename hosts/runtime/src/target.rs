//! The GPU that a device simulates.

use crate::Error;
use wavesim::arch::{Arch, Processor};
use wavesim::loader::code_object::TargetRequest;

/// A target processor, or only an architecture if no processor was named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The architecture, which determines the semantics of instructions.
    pub arch: Arch,
    /// The processor, which selects code objects from bundles.
    pub processor: Option<Processor>,
}

impl Target {
    /// Default target of all hosts.
    pub const DEFAULT: &str = "gfx1100";

    /// Returns the target with the name of a processor (`gfx1100`) or an architecture (`rdna3`).
    pub fn from_name(name: &str) -> Result<Target, Error> {
        // Launches initialise registers that only AMD architectures have.
        if let Some(arch) = Arch::AMD.into_iter().find(|a| a.name() == name) {
            return Ok(Target { arch, processor: None });
        }
        // Runtimes append target features: `gfx90a:xnack+`.
        let name_without_features = name.split(':').next().unwrap_or(name);
        let processor = Processor::from_name(name_without_features).ok_or_else(|| {
            let archs = Arch::AMD.iter().map(|a| a.name());
            let names: Vec<&str> = archs.chain(Processor::all().map(|p| p.name)).collect();
            Error::Target { given: name.to_string(), names: names.join(", ") }
        })?;
        Ok(Target { arch: processor.arch, processor: Some(processor) })
    }

    /// Returns the processor's name, or that of the architecture's first processor if none was chosen.
    pub fn processor_name(&self) -> &'static str {
        self.processor.or(Processor::of_arch(self.arch)).map_or("", |p| p.name)
    }

    /// Returns the default wave size, for kernels that do not specify one.
    pub fn wave_size(&self) -> u32 {
        self.arch.wave_sizes()[0]
    }

    /// Returns the maximum LDS size of a workgroup in bytes.
    pub fn lds_bytes(&self) -> u32 {
        self.arch.lds_bytes()
    }

    /// Returns the LDS size of a multiprocessor in bytes.
    pub fn processor_lds_bytes(&self) -> u32 {
        self.arch.facts().lds_per_processor * self.lds_bytes()
    }

    /// Returns the criteria that select a code object from a bundle.
    pub fn target_request(&self) -> TargetRequest {
        TargetRequest { processor: self.processor.map(|p| p.name.to_string()), arch: Some(self.arch) }
    }
}
