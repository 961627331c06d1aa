//! Classification of the lanes' addresses: unit stride, uniform, or neither.

use wavesim_state::LaneVec;

/// Returns the stride of each group of eight addresses: the element size for unit stride, 0 for uniform, else
/// `None`. Groups of eight, because kernels use tiles of 8 and 16 lanes as well as of 32.
pub(super) fn patterns(addresses: &[u64; 32], size_bytes: u64) -> [Option<u8>; 4] {
    #[cfg(target_arch = "x86_64")]
    if wavesim_state::host::Avx2::detect().is_some() {
        // SAFETY: the host has AVX2, as just detected.
        return unsafe { patterns_avx2(addresses, size_bytes) };
    }
    patterns_anywhere(addresses, size_bytes)
}

/// [`patterns`] for offsets.
// (Iterators and `map` may stay calls.)
#[allow(clippy::needless_range_loop)]
pub(super) fn patterns_of(offsets: &LaneVec, size_bytes: u32) -> [Option<u8>; 4] {
    let mut wide = [0; 32];
    for l in 0..32 {
        wide[l] = offsets.0[l] as u64;
    }
    patterns(&wide, size_bytes as u64)
}

/// Returns the largest offset, and the bitwise OR of all offsets.
#[inline(always)]
pub(super) fn extent(offsets: &LaneVec) -> (u32, u32) {
    let (mut farthest, mut together) = (0, 0);
    for offset in offsets.0 {
        farthest = farthest.max(offset);
        together |= offset;
    }
    (farthest, together)
}

/// Returns the stride of 32 offsets: the element size for unit stride, 0 for uniform, else `None`.
#[inline(always)]
pub(super) fn one_stride(offsets: &LaneVec, size_bytes: u32) -> Option<u8> {
    let (mut same, mut apart) = (0, 0);
    for l in 0..32 {
        let difference = offsets.0[l].wrapping_sub(offsets.0[0]);
        same |= difference;
        apart |= difference ^ (l as u32 * size_bytes);
    }
    match (same, apart) {
        (0, _) => Some(0),
        (_, 0) => Some(size_bytes as u8),
        _ => None,
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn patterns_avx2(addresses: &[u64; 32], size_bytes: u64) -> [Option<u8>; 4] {
    use std::arch::x86_64::*;
    let size = size_bytes as i64;
    let steps = [
        _mm256_setr_epi64x(0, size, 2 * size, 3 * size),
        _mm256_setr_epi64x(4 * size, 5 * size, 6 * size, 7 * size),
    ];
    let mut out = [None; 4];
    for (at, pattern) in out.iter_mut().enumerate() {
        let first = _mm256_set1_epi64x(addresses[8 * at] as i64);
        // SAFETY: the slice has four of the 32 addresses.
        let four = |n: usize| unsafe {
            _mm256_sub_epi64(_mm256_loadu_si256(addresses[n..n + 4].as_ptr().cast()), first)
        };
        let (low, high) = (four(8 * at), four(8 * at + 4));
        let differences = _mm256_or_si256(low, high);
        let gaps = _mm256_or_si256(_mm256_xor_si256(low, steps[0]), _mm256_xor_si256(high, steps[1]));
        *pattern = if _mm256_testz_si256(differences, differences) == 1 {
            Some(0)
        } else if _mm256_testz_si256(gaps, gaps) == 1 {
            Some(size_bytes as u8)
        } else {
            None
        };
    }
    out
}

fn patterns_anywhere(addresses: &[u64; 32], size_bytes: u64) -> [Option<u8>; 4] {
    std::array::from_fn(|at| {
        let lanes = &addresses[8 * at..8 * at + 8];
        let all = |step: u64| {
            (0..).zip(lanes).all(|(k, address)| address.wrapping_sub(lanes[0]) == step.wrapping_mul(k))
        };
        if all(0) { Some(0) } else { all(size_bytes).then_some(size_bytes as u8) }
    })
}

/// Adjacent lanes whose offsets have a common stride, or none.
#[derive(Clone, Copy, Default)]
pub(super) struct Run {
    pub first: u8,
    pub lanes: u8,
    pub stride: Option<u8>,
}

/// Groups 32 lanes into at most four runs; `patterns` has the strides of each eight lanes.
#[inline(always)]
pub(super) fn runs(offsets: &LaneVec, patterns: [Option<u8>; 4]) -> ([Run; 4], usize) {
    let (mut runs, mut count) = ([Run::default(); 4], 0);
    for (at, stride) in patterns.into_iter().enumerate() {
        let extends_last = at > 0
            && stride.is_some()
            && stride == patterns[at - 1]
            && offsets.0[8 * at].wrapping_sub(offsets.0[8 * at - 8]) == 8 * stride.unwrap_or(0) as u32;
        if extends_last {
            runs[(count - 1) % 4].lanes += 8;
        } else {
            runs[count % 4] = Run { first: 8 * at as u8, lanes: 8, stride };
            count += 1;
        }
    }
    (runs, count.min(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_and_extents() {
        let row = |f: fn(u32) -> u32| LaneVec(std::array::from_fn(|l| f(l as u32)));
        assert_eq!(one_stride(&row(|_| 12), 4), Some(0));
        assert_eq!(one_stride(&row(|l| 100 + 8 * l), 8), Some(8));
        assert_eq!(one_stride(&row(|l| 100 + 8 * l), 4), None);
        assert_eq!(one_stride(&row(|l| 4 * (l & 15)), 4), None);
        assert_eq!(extent(&row(|l| if l == 9 { 258 } else { 4 * l })), (258, 0b1_0111_1110));
    }

    #[test]
    fn patterns_of_eights() {
        let mut addresses = [0; 32];
        for l in 0..8 {
            addresses[l] = 1000;
            addresses[8 + l] = (u64::MAX - 15).wrapping_add(4 * l as u64);
            addresses[16 + l] = 4 * l as u64 + (l == 7) as u64;
            addresses[24 + l] = 64 - 4 * l as u64;
        }
        let expected = [Some(0), None, None, None];
        let wrapping = [Some(0), Some(4), None, None];
        assert_eq!(patterns_anywhere(&addresses, 8), expected);
        // The classification ignores the end of the address space; whether the addresses are valid is checked
        // elsewhere.
        assert_eq!(patterns_anywhere(&addresses, 4), wrapping);
        assert_eq!(patterns(&addresses, 8), expected);
        assert_eq!(patterns(&addresses, 4), wrapping);
    }
}
