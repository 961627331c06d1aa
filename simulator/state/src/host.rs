//! Features of the host.

/// Proof that the host has AVX2, FMA, BMI, F16C, LZCNT and POPCNT, for which the fast handlers are compiled.
/// Only [`Avx2::detect`] and [`Avx2::assume`] create it.
///
/// On hosts other than x86-64, the fast handlers use baseline features, and the proof is always available.
#[derive(Debug, Clone, Copy)]
pub struct Avx2 {
    avx512: Option<Avx512>,
}

/// Proof that the host has AVX-512 F, BW, CD and VBMI. Moves between lanes use it. VBMI rules out processors
/// that lower their frequency for AVX-512.
#[derive(Debug, Clone, Copy)]
pub struct Avx512(());

impl Avx2 {
    /// Creates the proof within a handler that runs on hosts with AVX2 only.
    ///
    /// # Safety
    /// Invariant H1 of lowered code (`wavesim_program::validate`) holds.
    #[inline(always)]
    pub unsafe fn assume() -> Avx2 {
        Avx2 { avx512: None }
    }

    /// Returns the proof for AVX-512, if the host has it.
    #[inline(always)]
    pub fn avx512(self) -> Option<Avx512> {
        self.avx512
    }

    /// Returns the proof for a host that has no AVX-512.
    pub fn without_avx512(self) -> Avx2 {
        Avx2 { avx512: None }
    }

    /// Detects the features of the host's processor, once.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub fn detect() -> Option<Avx2> {
        use std::arch::is_x86_feature_detected as has;
        use std::sync::LazyLock;
        // Cached, because it is needed in every turn of a wave.
        static FOUND: LazyLock<Option<Avx2>> = LazyLock::new(|| {
            let all = has!("avx2")
                && has!("fma")
                && has!("bmi1")
                && has!("bmi2")
                && has!("f16c")
                && has!("lzcnt")
                && has!("popcnt");
            let wide = has!("avx512f") && has!("avx512bw") && has!("avx512cd") && has!("avx512vbmi");
            all.then_some(Avx2 { avx512: wide.then_some(Avx512(())) })
        });
        *FOUND
    }

    /// Always succeeds: see [`Avx2`].
    #[cfg(not(target_arch = "x86_64"))]
    pub fn detect() -> Option<Avx2> {
        Some(Avx2 { avx512: None })
    }
}
