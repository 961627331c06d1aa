//! What the host must be able to do.

/// A host that runs what is made here: only [`Host::detect`] makes one.
#[derive(Debug, Clone)]
pub struct Host(());

/// Why a host does not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Code is made for x86-64 alone.
    #[error("the host is not an x86-64")]
    Architecture,
    /// It lacks this extension.
    #[error("the host's processor lacks {0}")]
    Feature(&'static str),
}

impl Host {
    /// The host that this runs on, if it has all extensions.
    #[cfg(target_arch = "x86_64")]
    pub fn detect() -> Result<Host, Refused> {
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
            Some((name, _)) => Err(Refused::Feature(name)),
            None => Ok(Host(())),
        }
    }

    /// Not this one.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn detect() -> Result<Host, Refused> {
        Err(Refused::Architecture)
    }
}
