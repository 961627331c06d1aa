//! `--arch`, `--mcpu`, `--wave`: the target, with the same options in every command.

use wavesim_isa::arch::{Arch, Processor};
use wavesim_loader::code_object::TargetRequest;

/// The architecture, given by its name or by a processor.
#[derive(Debug, Default, Clone, clap::Args)]
pub struct Target {
    /// Architecture
    #[arg(long, value_parser = parse_arch, help = format!("Architecture: {}", list(&arch_names(), "or")))]
    pub arch: Option<Arch>,
    /// Processor
    #[arg(
        long,
        value_parser = parse_mcpu,
        conflicts_with = "arch",
        help = format!("Processor: {}", list(&processor_names(), "or")),
    )]
    pub mcpu: Option<Processor>,
}

impl Target {
    /// Returns the architecture, if one is given.
    pub fn arch(&self) -> Option<Arch> {
        self.arch.or(self.mcpu.map(|p| p.arch))
    }

    /// Returns the name of the processor, if one is given.
    pub fn mcpu_name(&self) -> Option<String> {
        self.mcpu.map(|p| p.name.to_string())
    }

    /// Returns the criteria for selecting a code object in a bundle.
    pub fn target_request(&self) -> TargetRequest {
        TargetRequest { processor: self.mcpu_name(), arch: self.arch() }
    }

    /// Returns the architecture, or the default if none is given.
    pub fn arch_or_default(&self) -> Arch {
        self.arch().unwrap_or(Arch::DEFAULT)
    }

    /// Returns the architecture, or all if none is given.
    pub fn archs(&self) -> Vec<Arch> {
        self.arch().map_or(Arch::ALL.to_vec(), |a| vec![a])
    }
}

/// The wave size.
#[derive(Debug, Default, Clone, clap::Args)]
pub struct WaveSize {
    /// Lanes in a wave: 32 or 64
    #[arg(long, value_name = "LANES", value_parser = parse_wave)]
    pub wave: Option<u32>,
}

/// The names of all architectures.
pub fn arch_names() -> Vec<&'static str> {
    Arch::ALL.iter().map(|a| a.name()).collect()
}

/// The names of all processors in order.
fn processor_names() -> Vec<&'static str> {
    let mut names: Vec<&str> = Processor::all().map(|p| p.name).collect();
    names.sort_unstable();
    names
}

/// Joins words with commas, and the last one with a conjunction.
pub fn list(words: &[&str], conjunction: &str) -> String {
    match words {
        [] => String::new(),
        [word] => word.to_string(),
        [first @ .., last] => format!("{} {conjunction} {last}", first.join(", ")),
    }
}

/// Parses `--arch`.
pub fn parse_arch(name: &str) -> Result<Arch, String> {
    Arch::from_name(name).ok_or_else(|| format!("architectures are {}", arch_names().join(", ")))
}

/// Parses `--mcpu`.
pub fn parse_mcpu(name: &str) -> Result<Processor, String> {
    Processor::from_name(name).ok_or_else(|| format!("processors are {}", processor_names().join(", ")))
}

fn parse_wave(text: &str) -> Result<u32, String> {
    match text {
        "32" => Ok(32),
        "64" => Ok(64),
        _ => Err("a wave has 32 or 64 lanes".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_processor_is_refused_with_a_list() {
        assert!(parse_mcpu("gfx906").is_err_and(|e| e.contains("gfx1100") && e.contains("gfx1201")));
    }
}
