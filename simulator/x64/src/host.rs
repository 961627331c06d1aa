//! The requirements on the host.

use crate::target::Target;
use crate::{a64, reg};

/// A token for a supported host, from [`Host::detect`]; or for one whose code is only looked at, from [`Host::of`].
#[derive(Debug, Clone)]
pub struct Host {
    pub(crate) target: &'static Target,
}

/// The reason why a host is not supported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedHost {
    /// There is no code generator for the host.
    #[error("the host is neither an x86-64 nor an aarch64")]
    Architecture,
    /// The processor lacks this extension.
    #[error("the host's processor lacks {0}")]
    Feature(&'static str),
}

impl Host {
    /// Returns a host by its architecture, `x86-64` or `aarch64`, to look at code for it: only that of
    /// [`Host::detect`] may be run.
    pub fn of(architecture: &str) -> Option<Host> {
        let target = match architecture {
            "x86-64" => &reg::TARGET,
            "aarch64" => &a64::reg::TARGET,
            _ => return None,
        };
        Some(Host { target })
    }

    /// Detects whether the current host has all required extensions.
    #[cfg(target_arch = "x86_64")]
    pub fn detect() -> Result<Host, UnsupportedHost> {
        let features = [
            ("AVX2", std::is_x86_feature_detected!("avx2")),
            ("FMA", std::is_x86_feature_detected!("fma")),
            ("BMI1", std::is_x86_feature_detected!("bmi1")),
            ("BMI2", std::is_x86_feature_detected!("bmi2")),
            ("LZCNT", std::is_x86_feature_detected!("lzcnt")),
            ("POPCNT", std::is_x86_feature_detected!("popcnt")),
            ("F16C", std::is_x86_feature_detected!("f16c")),
        ];
        match features.into_iter().find(|(_, has)| !has) {
            Some((name, _)) => Err(UnsupportedHost::Feature(name)),
            None => Ok(Host { target: &reg::TARGET }),
        }
    }

    /// Returns the host: every aarch64 has what the code needs.
    #[cfg(target_arch = "aarch64")]
    pub fn detect() -> Result<Host, UnsupportedHost> {
        Ok(Host { target: &a64::reg::TARGET })
    }

    /// Reports that this host is not supported.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub fn detect() -> Result<Host, UnsupportedHost> {
        Err(UnsupportedHost::Architecture)
    }
}
