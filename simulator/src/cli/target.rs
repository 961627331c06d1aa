//! `--arch`, `--mcpu`, `--wave`: which machine, said the same way in every command.

use wavesim_isa::arch::{Arch, PROCESSORS};
use wavesim_loader::code_object::Wish;

/// Which architecture, named either way.
#[derive(Debug, Default, Clone, clap::Args)]
pub struct Target {
    /// rdna3, rdna3.5, rdna4 or riscv_gpu
    #[arg(long, value_parser = parse_arch)]
    pub arch: Option<Arch>,
    /// gfx1100 … gfx1103, gfx1150 … gfx1153, gfx1200, gfx1201
    #[arg(long, value_parser = parse_mcpu, conflicts_with = "arch")]
    pub mcpu: Option<Processor>,
}

/// A processor by LLVM's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processor {
    pub name: &'static str,
    pub arch: Arch,
}

impl Target {
    /// What was asked for, if anything.
    pub fn arch(&self) -> Option<Arch> {
        self.arch.or(self.mcpu.map(|p| p.arch))
    }

    /// The processor, if that is what was asked for.
    pub fn mcpu_name(&self) -> Option<String> {
        self.mcpu.map(|p| p.name.to_string())
    }

    /// Which code object of several.
    pub fn wish(&self) -> Wish {
        Wish { processor: self.mcpu_name(), arch: self.arch() }
    }

    /// What was asked for, or RDNA 3.
    pub fn arch_or_default(&self) -> Arch {
        self.arch().unwrap_or(Arch::Rdna3)
    }

    /// What was asked for, or all.
    pub fn archs(&self) -> Vec<Arch> {
        self.arch().map_or(Arch::ALL.to_vec(), |a| vec![a])
    }
}

/// Waves of 32 or 64 lanes.
#[derive(Debug, Default, Clone, clap::Args)]
pub struct WaveSize {
    /// Lanes of a wave, 32 or 64
    #[arg(long, value_name = "LANES", value_parser = parse_wave)]
    pub wave: Option<u32>,
}

pub fn parse_arch(name: &str) -> Result<Arch, String> {
    Arch::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = Arch::ALL.iter().map(|a| a.name()).collect();
        format!("the architectures are {}", known.join(", "))
    })
}

pub fn parse_mcpu(name: &str) -> Result<Processor, String> {
    let known = PROCESSORS.into_iter().find(|p| *p == name);
    let found = known.and_then(|name| Arch::from_mcpu(name).map(|arch| Processor { name, arch }));
    found.ok_or_else(|| format!("the processors are {}", PROCESSORS.join(", ")))
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
    fn every_listed_processor_is_known() {
        for name in PROCESSORS {
            assert!(Arch::from_mcpu(name).is_some(), "{name}");
        }
        assert!(parse_mcpu("gfx942").is_err_and(|e| e.contains("gfx1100") && e.contains("gfx1201")));
    }
}
