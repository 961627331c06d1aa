//! What the host can do.

/// Proof that the host has AVX2, FMA, BMI, F16C, LZCNT and POPCNT, for which the fast handlers are compiled. Only [`Avx2::detect`] and
/// [`Avx2::assume`] make it.
/// Other hosts than x86-64 have handlers for what all of their kind can do, and always get one.
#[derive(Debug, Clone, Copy)]
pub struct Avx2(());

impl Avx2 {
    /// The proof within a handler that only hosts with AVX2 run.
    ///
    /// # Safety
    /// H1 of the invariants of lowered code (`exec::validate`).
    #[inline(always)]
    pub unsafe fn assume() -> Avx2 {
        Avx2(())
    }

    /// Looks at the host's processor, once.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub fn detect() -> Option<Avx2> {
        use std::arch::is_x86_feature_detected as has;
        use std::sync::LazyLock;
        // Needed at each turn of a wave.
        static FOUND: LazyLock<Option<Avx2>> = LazyLock::new(|| {
            let all = has!("avx2")
                && has!("fma")
                && has!("bmi1")
                && has!("bmi2")
                && has!("f16c")
                && has!("lzcnt")
                && has!("popcnt");
            all.then_some(Avx2(()))
        });
        *FOUND
    }

    /// Always: see [`Avx2`].
    #[cfg(not(target_arch = "x86_64"))]
    pub fn detect() -> Option<Avx2> {
        Some(Avx2(()))
    }
}
