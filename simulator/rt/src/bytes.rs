//! Builtins on the bytes of words, eight lanes at a time.

use super::float::Mode;
pub use isa_spec::arith::select_bytes;
use wavesim_state::LaneVec;

/// Words of eight lanes: a SIMD vector of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct U32x8(pub [u32; 8]);

impl U32x8 {
    /// Eight zero words.
    pub const ZERO: U32x8 = U32x8([0; 8]);

    /// Writes the words to lanes `8 * at` and following.
    #[inline(always)]
    pub fn put(self, vec: &mut LaneVec, index: usize) {
        // Not `copy_from_slice`, which may stay a call.
        for k in 0..8 {
            vec.0[8 * index + k] = self.0[k];
        }
    }
}

/// Applies [`select_bytes`] to each lane.
///
/// # Safety
/// In modes of fast handlers the host has AVX2 (x86-64; H1).
#[inline(always)]
pub unsafe fn select_bytes_x8<M: Mode>(_m: &M, [high, low, at]: [U32x8; 3]) -> U32x8 {
    #[cfg(target_arch = "x86_64")]
    if !M::GENERAL {
        use std::arch::x86_64::*;
        use std::mem::transmute;
        // SAFETY: the caller guarantees AVX2 in these modes. Every bit pattern is valid for SIMD vectors and
        // for words.
        unsafe {
            let [high, low, at] = transmute::<[U32x8; 3], [__m256i; 3]>([high, low, at]);
            // The host instruction selects from sixteen bytes; add the offset of each lane's own word.
            let own = _mm256_set_epi64x(
                0x0c0c_0c0c_0808_0808,
                0x0404_0404_0000_0000,
                0x0c0c_0c0c_0808_0808,
                0x0404_0404_0000_0000,
            );
            let within = _mm256_or_si256(_mm256_and_si256(at, _mm256_set1_epi8(3)), own);
            let (low, high) = (_mm256_shuffle_epi8(low, within), _mm256_shuffle_epi8(high, within));
            // Bit 2 chooses the word; the shift moves it to the highest bit of each byte.
            let either = _mm256_blendv_epi8(low, high, _mm256_slli_epi32::<5>(at));
            let inside = _mm256_cmpeq_epi8(_mm256_min_epu8(at, _mm256_set1_epi8(7)), at);
            return transmute::<__m256i, U32x8>(_mm256_and_si256(either, inside));
        }
    }
    U32x8(std::array::from_fn(|l| select_bytes(high.0[l], low.0[l], at.0[l])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keep;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn eight_lanes_are_each(high: [u32; 8], low: [u32; 8], at: [u32; 8], few: bool) {
            if wavesim_state::host::Avx2::detect().is_some() {
                // Mostly valid selectors.
                let at = if few { at.map(|at| at & 0x0f0f_0f0f) } else { at };
                // SAFETY: the host has AVX2.
                let all = unsafe { select_bytes_x8(&Keep, [U32x8(high), U32x8(low), U32x8(at)]) };
                let each = std::array::from_fn(|l| select_bytes(high[l], low[l], at[l]));
                prop_assert_eq!(all, U32x8(each));
            }
        }
    }
}
