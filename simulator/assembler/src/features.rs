//! Target features of processors, as the ELF flags record them.

use wavesim_isa::arch::Arch;

/// Features that the ELF flags record, each with the lowest bit of its setting (LLVM AMDGPUUsage, *Header*).
pub const FEATURES: [(&str, u32); 2] = [("xnack", 8), ("sramecc", 10)];

/// The settings of a feature: any, off, on.
pub const FEATURE_ANY: u32 = 1;
pub const FEATURE_OFF: u32 = 2;
pub const FEATURE_ON: u32 = 3;

/// The flags of a file that specifies no features.
pub fn any_features(arch: Arch) -> u32 {
    let any = FEATURES.iter().fold(0, |bits, (_, first)| bits | FEATURE_ANY << first);
    if arch.facts().target_features { any } else { 0 }
}
