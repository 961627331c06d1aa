//! Products of matrices in arrays of a body: sums stay in vectors of the host while they grow.

use super::float::{Mode, fma_f32, fma_nearest_f32};
use crate::state::host::Avx2;

/// Where a matrix is in an array: its first element, and how far it is to the next one along K and to the next row.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// The first element.
    pub start: u32,
    /// To the next one along K.
    pub depth: u32,
    /// To the next row.
    pub row: u32,
}

impl Part {
    #[inline(always)]
    fn at(self, k: usize, row: usize) -> usize {
        let along = (k as u32).wrapping_mul(self.depth).wrapping_add((row as u32).wrapping_mul(self.row));
        self.start.wrapping_add(along) as usize
    }

    /// Whether all elements are in an array, `columns` from each place.
    #[inline(always)]
    fn is_in(self, list: &[u32], depth: usize, rows: usize, columns: usize) -> bool {
        let reach = |step: u32, count: usize| step as u64 * count.saturating_sub(1) as u64;
        self.start as u64 + reach(self.depth, depth) + reach(self.row, rows) + columns as u64
            <= list.len() as u64
    }
}

/// `d[row, column] = a[k, row] * b[k, column] + d[row, column]`, for `shape[0]` steps of k in order, `shape[1]` rows and `N` columns.
/// `NEAREST`: to nearest even and with denormals in every mode.
///
/// In modes of fast handlers, vectors are used only with the proof that the host has them.
#[inline(always)]
pub fn product<M: Mode, const NEAREST: bool, const N: usize>(
    m: &M,
    vectors: Option<Avx2>,
    [depth, rows]: [usize; 2],
    (a, a_part): (&[u32], Part),
    (b, b_part): (&[u32], Part),
    (d, d_part): (&mut [u32], Part),
) {
    let inside =
        a_part.is_in(a, depth, rows, 1) && b_part.is_in(b, depth, 1, N) && d_part.is_in(d, 1, rows, N);
    #[cfg(target_arch = "x86_64")]
    if (NEAREST || !M::GENERAL) && vectors.is_some() && inside && N.is_multiple_of(8) {
        // SAFETY: the host has AVX2 and FMA, and all elements are in the arrays.
        unsafe {
            if M::FLUSH && !NEAREST && !without_denormals(a, b, d) {
                in_vectors::<true, N>([depth, rows], (a, a_part), (b, b_part), (d, d_part));
            } else {
                in_vectors::<false, N>([depth, rows], (a, a_part), (b, b_part), (d, d_part));
            }
        }
        return;
    }
    let _ = (vectors, inside);
    for k in 0..depth {
        for row in 0..rows {
            let a = a.get(a_part.at(k, row)).copied().unwrap_or(0);
            for column in 0..N {
                let b = b.get(b_part.at(k, 0).wrapping_add(column)).copied().unwrap_or(0);
                if let Some(d) = d.get_mut(d_part.at(0, row).wrapping_add(column)) {
                    *d = if NEAREST { fma_nearest_f32(m, a, b, *d) } else { fma_f32(m, a, b, *d) };
                }
            }
        }
    }
}

/// Whether no sum can be a denormal, nor any operand: if factors are zero or at least 2^-40, and the first sums zero or at least 2^-102,
/// all of them and all sums are multiples of 2^-126.
///
/// # Safety
/// The host has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn without_denormals(a: &[u32], b: &[u32], d: &[u32]) -> bool {
    #[inline(always)]
    fn all(list: &[u32], least: u32) -> bool {
        // Less one, a zero is the greatest of all numbers.
        let (least, mut below) = ((least << 1) - 1, false);
        for x in list {
            below |= (x << 1).wrapping_sub(1) < least;
        }
        !below
    }
    all(a, (127 - 40) << 23) && all(b, (127 - 40) << 23) && all(d, (127 - 102) << 23)
}

/// Four rows of two vectors at a time.
///
/// # Safety
/// The host has AVX2 and FMA; all elements are in the arrays.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn in_vectors<const FLUSH: bool, const N: usize>(
    shape: [usize; 2],
    a: (&[u32], Part),
    b: (&[u32], Part),
    d: (&mut [u32], Part),
) {
    let [_, rows] = shape;
    let (mut row, d) = (0, (d.0.as_mut_ptr(), d.1));
    while row < rows {
        let mut column = 0;
        while column < N {
            // SAFETY: by the contract; `rows` and `N` are not exceeded.
            unsafe {
                match (rows - row >= 4, N - column >= 16) {
                    (true, true) => tile::<FLUSH, 4, 2>(shape[0], [row, column], a, b, d),
                    (true, false) => tile::<FLUSH, 4, 1>(shape[0], [row, column], a, b, d),
                    (false, true) => tile::<FLUSH, 1, 2>(shape[0], [row, column], a, b, d),
                    (false, false) => tile::<FLUSH, 1, 1>(shape[0], [row, column], a, b, d),
                }
            }
            column += if N - column >= 16 { 16 } else { 8 };
        }
        row += if rows - row >= 4 { 4 } else { 1 };
    }
}

/// # Safety
/// As for [`in_vectors`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
#[inline]
unsafe fn tile<const FLUSH: bool, const ROWS: usize, const VECTORS: usize>(
    depth: usize,
    [row, column]: [usize; 2],
    (a, a_part): (&[u32], Part),
    (b, b_part): (&[u32], Part),
    (d, d_part): (*mut u32, Part),
) {
    use std::arch::x86_64::*;
    // SAFETY: by the contract.
    unsafe {
        let mut sums = [[_mm256_setzero_ps(); VECTORS]; ROWS];
        for (i, sums) in sums.iter_mut().enumerate() {
            for (v, sum) in sums.iter_mut().enumerate() {
                let from = d.add(d_part.at(0, row + i) + column + 8 * v);
                *sum = flushed::<FLUSH>(_mm256_loadu_ps(from.cast()));
            }
        }
        // Beyond the last step, the addresses are not read.
        let (mut a, a_row) = (a.as_ptr().add(a_part.at(0, row)), a_part.row as usize);
        let mut b = b.as_ptr().add(b_part.at(0, 0) + column);
        for _ in 0..depth {
            let mut columns = [_mm256_setzero_ps(); VECTORS];
            for (v, values) in columns.iter_mut().enumerate() {
                *values = flushed::<FLUSH>(_mm256_loadu_ps(b.add(8 * v).cast()));
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let a = flushed::<FLUSH>(_mm256_broadcast_ss(&*a.add(i * a_row).cast()));
                for (sum, values) in sums.iter_mut().zip(columns) {
                    *sum = flushed::<FLUSH>(_mm256_fmadd_ps(a, values, *sum));
                }
            }
            a = a.wrapping_add(a_part.depth as usize);
            b = b.wrapping_add(b_part.depth as usize);
        }
        for (i, sums) in sums.iter().enumerate() {
            for (v, sum) in sums.iter().enumerate() {
                _mm256_storeu_ps(d.add(d_part.at(0, row + i) + column + 8 * v).cast(), *sum);
            }
        }
    }
}

/// With `FLUSH`, denormals as zeros of their sign.
///
/// # Safety
/// The host has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn flushed<const FLUSH: bool>(x: std::arch::x86_64::__m256) -> std::arch::x86_64::__m256 {
    use std::arch::x86_64::*;
    if !FLUSH {
        return x;
    }
    let sign = _mm256_and_ps(x, _mm256_set1_ps(-0.0));
    let least_normal = _mm256_set1_ps(f32::MIN_POSITIVE);
    let small = _mm256_cmp_ps::<_CMP_LT_OQ>(_mm256_andnot_ps(_mm256_set1_ps(-0.0), x), least_normal);
    _mm256_blendv_ps(x, sign, small)
}

#[cfg(test)]
mod tests {
    use super::super::float::{Flush, Keep};
    use super::*;

    /// Every way of computing a product gives the same bits: denormals, and sizes that tiles do not divide.
    #[test]
    fn vectors_and_loops_agree() {
        let mut state = 1u32;
        let mut random = |spread: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let exponent = 127 - 70 + (state >> 24) % spread;
            (state & 0x8000_0000) | exponent << 23 | state >> 9 & 0x7f_ffff
        };
        for spread in [1, 2, 30, 90] {
            for rows in [1, 4, 7] {
                let a: Vec<u32> = (0..9 * 8).map(|_| random(spread)).collect();
                let b: Vec<u32> = (0..9 * 24).map(|_| random(spread)).collect();
                let d: Vec<u32> = (0..8 * 24).map(|n| if n % 3 == 0 { n } else { 0 }).collect();
                let part = |start, depth, row| Part { start, depth, row };
                let run = |vectors: Option<Avx2>| {
                    let (mut kept, mut flushed, mut nearest) = (d.clone(), d.clone(), d.clone());
                    let (a, b) = ((&a[..], part(1, 8, 1)), (&b[..], part(0, 24, 0)));
                    product::<_, false, 24>(&Keep, vectors, [9, rows], a, b, (&mut kept, part(0, 0, 24)));
                    product::<_, false, 24>(&Flush, vectors, [9, rows], a, b, (&mut flushed, part(0, 0, 24)));
                    product::<_, true, 24>(&Flush, vectors, [9, rows], a, b, (&mut nearest, part(0, 0, 24)));
                    [kept, flushed, nearest]
                };
                let expected = run(None);
                assert_eq!(run(Avx2::detect()), expected, "{rows} rows, {spread}");
                assert_eq!(expected[0], expected[2]);
            }
        }
    }

    /// Elements beyond an array are zero, and none is written there.
    #[test]
    fn arrays_have_an_end() {
        let one = 1f32.to_bits();
        let (a, b, mut d) = ([one; 2], [one; 8], [0; 8]);
        let part = |start| Part { start, depth: 1, row: 8 };
        product::<_, true, 8>(&Keep, Avx2::detect(), [2, 2], (&a, part(0)), (&b, part(0)), (&mut d, part(0)));
        assert_eq!(d.map(f32::from_bits), [2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0]);
    }
}
