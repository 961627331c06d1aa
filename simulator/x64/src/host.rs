//! The requirements on the host.

/// A token for a supported host: only [`Host::detect`] creates it.
#[derive(Debug, Clone)]
pub struct Host(());

/// The reason why a host is not supported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedHost {
    /// The host is not an x86-64.
    #[error("the host is not an x86-64")]
    Architecture,
    /// The processor lacks this extension.
    #[error("the host's processor lacks {0}")]
    Feature(&'static str),
}

impl Host {
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
            None => Ok(Host(())),
        }
    }

    /// Reports that this host is not supported.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn detect() -> Result<Host, UnsupportedHost> {
        Err(UnsupportedHost::Architecture)
    }
}
