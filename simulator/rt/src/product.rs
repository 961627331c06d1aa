//! Matrix products in local arrays of semantics: sums stay in host vector registers while they accumulate.

use super::float::{Flush, Mode, fma_f32, fma_nearest_f32};
use super::float_mode::FloatMode;
#[cfg(target_arch = "x86_64")]
use super::ordered::fma_vector;
use wavesim_state::host::Avx2;

/// The location of a matrix in an array: its first element, and the strides along K and between rows.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Index of the first element.
    pub start: u32,
    /// Stride along K.
    pub depth: u32,
    /// Stride between rows.
    pub row: u32,
}

impl Part {
    #[inline(always)]
    fn at(self, k: usize, row: usize) -> usize {
        let along = (k as u32).wrapping_mul(self.depth).wrapping_add((row as u32).wrapping_mul(self.row));
        self.start.wrapping_add(along) as usize
    }

    /// Returns whether all elements are inside an array, with `columns` elements at each position.
    #[inline(always)]
    #[cfg(target_arch = "x86_64")]
    fn is_in<T>(self, list: &[T], depth: usize, rows: usize, columns: usize) -> bool {
        let reach = |step: u32, count: usize| step as u64 * count.saturating_sub(1) as u64;
        self.start as u64 + reach(self.depth, depth) + reach(self.row, rows) + columns as u64
            <= list.len() as u64
    }
}

/// Row numbers of the second matrix, for sparse products: the row for `k` and an output row begins at `step`
/// times an element of `list`, to which [`Part::at`] is added.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// The row numbers.
    pub list: &'a [u32],
    /// The location of the row numbers in `list`.
    pub at: Part,
    /// Stride between rows of the second matrix.
    pub step: u32,
}

impl Places<'_> {
    fn row(&self, k: usize, row: usize) -> usize {
        self.list.get(self.at.at(k, row)).copied().unwrap_or(0).wrapping_mul(self.step) as usize
    }

    /// Returns whether all rows are inside an array, with `columns` elements at each position.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn are_in(&self, list: &[u32], part: Part, [depth, rows]: [usize; 2], columns: usize) -> bool {
        let last = self.list.iter().fold(0, |last, place| last.max(*place));
        let farthest = depth.saturating_sub(1) as u64 * part.depth as u64;
        let end = [farthest, part.start as u64, columns as u64]
            .into_iter()
            .fold(last as u64 * self.step as u64, u64::saturating_add);
        self.at.is_in(self.list, depth, rows, 1) && end <= list.len() as u64
    }
}

/// A matrix in an array.
type Matrix<'a> = (&'a [u32], Part);

/// Computes `d[row, column] = a[k, row] * b[k, column] + d[row, column]`, for `shape[0]` steps of k in order,
/// `shape[1]` rows and `N` columns. With `NEAREST`, rounds to nearest even and keeps denormals in every mode.
///
/// In the modes of fast handlers, host vectors are used only with the proof that the host has them. MODE, not
/// `M`, decides whether denormals are flushed, because the code around a product is shared by both modes.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub fn product<M: Mode, const NEAREST: bool, const N: usize>(
    m: &M,
    mode: u32,
    vectors: Option<Avx2>,
    shape: [usize; 2],
    a: Matrix<'_>,
    b: Matrix<'_>,
    places: Option<Places<'_>>,
    d: (&mut [u32], Part),
) {
    let flush = !NEAREST && !M::GENERAL && FloatMode::of(mode).flushes();
    #[cfg(target_arch = "x86_64")]
    if (NEAREST || !M::GENERAL)
        && vectors.is_some()
        && N.is_multiple_of(8)
        && d.1.is_in(d.0, 1, shape[1], N)
        && are_in::<N>(shape, a, b, places)
    {
        // SAFETY: `vectors` proves that the host has AVX2 and FMA, and all elements are inside the arrays.
        unsafe {
            if flush && !without_denormals(a.0, b.0, d.0) {
                in_vectors::<true, N>(shape, a, b, places, d);
            } else {
                in_vectors::<false, N>(shape, a, b, places, d);
            }
        }
        return;
    }
    let _ = vectors;
    if flush {
        return each::<u32, N>(shape, a, b, places, d, |a, b, d| fma_f32(&Flush, a, b, d));
    }
    each::<u32, N>(shape, a, b, places, d, |a, b, d| {
        if NEAREST { fma_nearest_f32(m, a, b, d) } else { fma_f32(m, a, b, d) }
    });
}

/// As [`product`], for signed integers, whose 64-bit sums wrap.
#[inline(always)]
pub fn product_of_integers<const N: usize>(
    vectors: Option<Avx2>,
    shape: [usize; 2],
    a: Matrix<'_>,
    b: Matrix<'_>,
    places: Option<Places<'_>>,
    d: (&mut [u64], Part),
) {
    #[cfg(target_arch = "x86_64")]
    if vectors.is_some() && N.is_multiple_of(8) && d.1.is_in(d.0, 1, shape[1], N) {
        // SAFETY: `vectors` proves that the host has AVX2.
        if are_in::<N>(shape, a, b, places) && unsafe { is_small(shape[0], a.0, b.0) } {
            // SAFETY: as above, and all elements are inside the arrays.
            unsafe { integers_in_vectors::<N>(shape, a, b, places, d) };
            return;
        }
    }
    let _ = vectors;
    each::<u64, N>(shape, a, b, places, d, |a, b, d| {
        d.wrapping_add((a as i32 as i64).wrapping_mul(b as i32 as i64) as u64)
    });
}

/// Returns whether all factors are inside their arrays.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn are_in<const N: usize>(
    shape: [usize; 2],
    (a, a_part): Matrix<'_>,
    (b, b_part): Matrix<'_>,
    places: Option<Places<'_>>,
) -> bool {
    a_part.is_in(a, shape[0], shape[1], 1)
        && match places {
            Some(places) => places.are_in(b, b_part, shape, N),
            None => b_part.is_in(b, shape[0], 1, N),
        }
}

/// Computes a product element by element. Elements beyond an array read as zero and are not written.
#[inline(never)]
fn each<T: Copy, const N: usize>(
    [depth, rows]: [usize; 2],
    (a, a_part): Matrix<'_>,
    (b, b_part): Matrix<'_>,
    places: Option<Places<'_>>,
    (d, d_part): (&mut [T], Part),
    sum: impl Fn(u32, u32, T) -> T,
) {
    for k in 0..depth {
        for row in 0..rows {
            let a = a.get(a_part.at(k, row)).copied().unwrap_or(0);
            let first = b_part.at(k, 0).wrapping_add(places.map_or(0, |places| places.row(k, row)));
            for column in 0..N {
                let b = b.get(first.wrapping_add(column)).copied().unwrap_or(0);
                if let Some(d) = d.get_mut(d_part.at(0, row).wrapping_add(column)) {
                    *d = sum(a, b, *d);
                }
            }
        }
    }
}

/// Returns whether sums of `depth` products of two factors fit into 32 bits.
///
/// # Safety
/// The host has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn is_small(depth: usize, a: &[u32], b: &[u32]) -> bool {
    #[inline(always)]
    fn bound(list: &[u32]) -> u64 {
        let mut bits = 0;
        for x in list {
            bits |= x ^ ((*x as i32) >> 31) as u32;
        }
        bits as u64 + 1
    }
    bound(a)
        .checked_mul(bound(b))
        .and_then(|most| most.checked_mul(depth as u64))
        .is_some_and(|most| most < 1 << 31)
}

/// Computes a product one row at a time, with 32-bit sums.
///
/// # Safety
/// The host has AVX2; all elements are inside the arrays, and [`is_small`] holds.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn integers_in_vectors<const N: usize>(
    [depth, rows]: [usize; 2],
    (a, a_part): Matrix<'_>,
    (b, b_part): Matrix<'_>,
    places: Option<Places<'_>>,
    (d, d_part): (&mut [u64], Part),
) {
    use std::arch::x86_64::*;
    // SAFETY: the caller guarantees AVX2 and that all elements are inside the arrays.
    unsafe {
        for row in 0..rows {
            // At most 32 columns; vectors beyond `N` are neither read nor written.
            for first in (0..N).step_by(32) {
                let vectors = ((N - first) / 8).min(4);
                let mut sums = [_mm256_setzero_si256(); 4];
                for k in 0..depth {
                    let a = _mm256_set1_epi32(*a.as_ptr().add(a_part.at(k, row)) as i32);
                    let place = places.map_or(0, |places| {
                        (*places.list.as_ptr().add(places.at.at(k, row))).wrapping_mul(places.step) as usize
                    });
                    let b = b.as_ptr().add(b_part.at(k, 0) + place + first);
                    for (v, sum) in sums[..vectors].iter_mut().enumerate() {
                        let values = _mm256_loadu_si256(b.add(8 * v).cast());
                        *sum = _mm256_add_epi32(*sum, _mm256_mullo_epi32(a, values));
                    }
                }
                let d = d.as_mut_ptr().add(d_part.at(0, row) + first);
                for (v, sum) in sums[..vectors].iter().enumerate() {
                    let halves = [_mm256_castsi256_si128(*sum), _mm256_extracti128_si256::<1>(*sum)];
                    for (half, sum) in halves.into_iter().enumerate() {
                        let at = d.add(8 * v + 4 * half).cast();
                        let wide = _mm256_add_epi64(_mm256_loadu_si256(at), _mm256_cvtepi32_epi64(sum));
                        _mm256_storeu_si256(at, wide);
                    }
                }
            }
        }
    }
}

/// Returns whether neither an operand nor a sum can be a denormal: if factors are zero or at least 2^-40 and
/// initial sums zero or at least 2^-102, all operands and sums are multiples of 2^-126.
///
/// # Safety
/// The host has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn without_denormals(a: &[u32], b: &[u32], d: &[u32]) -> bool {
    #[inline(always)]
    fn all(list: &[u32], least: u32) -> bool {
        // After subtracting one, zero is the largest of all values.
        let (least, mut below) = ((least << 1) - 1, false);
        for x in list {
            below |= (x << 1).wrapping_sub(1) < least;
        }
        !below
    }
    all(a, (127 - 40) << 23) && all(b, (127 - 40) << 23) && all(d, (127 - 102) << 23)
}

/// Computes four rows of two vectors at a time; for sparse products, one row.
///
/// # Safety
/// The host has AVX2 and FMA; all elements are inside the arrays.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn in_vectors<const FLUSH: bool, const N: usize>(
    [depth, rows]: [usize; 2],
    a: Matrix<'_>,
    b: Matrix<'_>,
    places: Option<Places<'_>>,
    d: (&mut [u32], Part),
) {
    let (mut row, d) = (0, (d.0.as_mut_ptr(), d.1));
    let four = places.is_none();
    while row < rows {
        let (mut column, of_four) = (0, four && rows - row >= 4);
        while column < N {
            let at = [row, column];
            // SAFETY: the caller guarantees AVX2, FMA and the bounds; `rows` and `N` are not exceeded.
            unsafe {
                match (of_four, N - column >= 16) {
                    (true, true) => tile::<FLUSH, 4, 2>(depth, at, a, b, None, d),
                    (true, false) => tile::<FLUSH, 4, 1>(depth, at, a, b, None, d),
                    (false, true) => tile::<FLUSH, 1, 2>(depth, at, a, b, places, d),
                    (false, false) => tile::<FLUSH, 1, 1>(depth, at, a, b, places, d),
                }
            }
            column += if N - column >= 16 { 16 } else { 8 };
        }
        row += if of_four { 4 } else { 1 };
    }
}

/// # Safety
/// As for [`in_vectors`]; `places` are those of one row.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
#[inline]
unsafe fn tile<const FLUSH: bool, const ROWS: usize, const VECTORS: usize>(
    depth: usize,
    [row, column]: [usize; 2],
    (a, a_part): Matrix<'_>,
    (b, b_part): Matrix<'_>,
    places: Option<Places<'_>>,
    (d, d_part): (*mut u32, Part),
) {
    use std::arch::x86_64::*;
    // SAFETY: the caller guarantees AVX2, FMA and the bounds.
    unsafe {
        let mut sums = [[_mm256_setzero_ps(); VECTORS]; ROWS];
        for (i, sums) in sums.iter_mut().enumerate() {
            for (v, sum) in sums.iter_mut().enumerate() {
                let from = d.add(d_part.at(0, row + i) + column + 8 * v);
                *sum = flushed::<FLUSH>(_mm256_loadu_ps(from.cast()));
            }
        }
        // After the last step, the pointers may be out of bounds, but are not read.
        let (mut a, a_row) = (a.as_ptr().add(a_part.at(0, row)), a_part.row as usize);
        let mut b = b.as_ptr().add(b_part.at(0, 0) + column);
        for k in 0..depth {
            let place = places.map_or(0, |places| {
                (*places.list.as_ptr().add(places.at.at(k, row))).wrapping_mul(places.step) as usize
            });
            let mut columns = [_mm256_setzero_ps(); VECTORS];
            for (v, values) in columns.iter_mut().enumerate() {
                *values = flushed::<FLUSH>(_mm256_loadu_ps(b.add(place + 8 * v).cast()));
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let a = flushed::<FLUSH>(_mm256_broadcast_ss(&*a.add(i * a_row).cast()));
                for (sum, values) in sums.iter_mut().zip(columns) {
                    *sum = flushed::<FLUSH>(fma_vector(a, values, *sum));
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

/// Replaces denormals with zeros of the same sign if `FLUSH` is set.
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

    // MODE with and without f32 denormals.
    const KEEP: u32 = 0xf0;
    const FLUSH: u32 = 0xc0;

    fn part(start: u32, depth: u32, row: u32) -> Part {
        Part { start, depth, row }
    }

    /// Pseudo-random words.
    fn words() -> impl FnMut() -> u32 {
        let mut state = 1u32;
        move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state
        }
    }

    /// All implementations of a product compute the same bits, with denormals, NaNs and sizes that tiles do
    /// not divide.
    #[test]
    fn vectors_and_loops_agree() {
        let mut random = words();
        for (spread, rows) in
            [1, 2, 30, 90].into_iter().flat_map(|spread| [1, 4, 7].map(|rows| (spread, rows)))
        {
            let mut number = || {
                let bits = random();
                // NaNs, rarely enough that most sums are numbers.
                if bits >> 8 & 0x3f == 0 {
                    return bits | 0x7f80_0001;
                }
                (bits & 0x8000_0000) | (127 - 70 + (bits >> 24) % spread) << 23 | bits >> 9 & 0x7f_ffff
            };
            let a: Vec<u32> = (0..9 * 8).map(|_| number()).collect();
            let b: Vec<u32> = (0..9 * 24).map(|_| number()).collect();
            let d: Vec<u32> = (0..8 * 24).map(|n| if n % 3 == 0 { n } else { 0 }).collect();
            let list: Vec<u32> = (0..9 * 8).map(|_| random() >> 8 & 7).collect();
            for sparse in [false, true] {
                let places = sparse.then_some(Places { list: &list, at: part(1, 8, 1), step: 24 });
                let (a, b) = ((&a[..], part(1, 8, 1)), (&b[..], part(0, 24 * !sparse as u32, 0)));
                let run = |vectors: Option<Avx2>| {
                    let (shape, at) = ([9, rows], part(0, 0, 24));
                    let (mut kept, mut flushed, mut nearest) = (d.clone(), d.clone(), d.clone());
                    product::<_, false, 24>(&Keep, KEEP, vectors, shape, a, b, places, (&mut kept, at));
                    product::<_, false, 24>(&Flush, FLUSH, vectors, shape, a, b, places, (&mut flushed, at));
                    product::<_, true, 24>(&Flush, FLUSH, vectors, shape, a, b, places, (&mut nearest, at));
                    [kept, flushed, nearest]
                };
                let expected = run(None);
                assert_eq!(run(Avx2::detect()), expected, "{rows} rows, {spread}, sparse {sparse}");
                assert_eq!(expected[0], expected[2]);
            }
        }
    }

    /// Sums of small factors, and of factors whose sums exceed 32 bits.
    #[test]
    fn integers_are_exact() {
        let mut random = words();
        for bits in [4, 8, 14, 15, 24, 32] {
            let mut number = || (random() as i32 >> (32 - bits)) as u32;
            let (a, b): (Vec<u32>, Vec<u32>) =
                ((0..9 * 8).map(|_| number()).collect(), (0..9 * 40).map(|_| number()).collect());
            let d: Vec<u64> = (0..8 * 40).map(|n| (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let list: Vec<u32> = (0..9 * 8).map(|_| random() >> 8 & 7).collect();
            for sparse in [false, true] {
                let places = sparse.then_some(Places { list: &list, at: part(1, 8, 1), step: 40 });
                let run = |vectors: Option<Avx2>| {
                    let (mut sums, b_part) = (d.clone(), part(0, 40 * !sparse as u32, 0));
                    let (a, b) = ((&a[..], part(1, 8, 1)), (&b[..], b_part));
                    let to = (&mut sums[..], part(0, 0, 40));
                    product_of_integers::<40>(vectors, [9, 7], a, b, places, to);
                    sums
                };
                let row = |k: usize, row: usize| if sparse { list[1 + 8 * k + row] as usize } else { k };
                let signed = |x: u32| x as i32 as i64;
                let expected: Vec<u64> = (0..8 * 40)
                    .map(|at| {
                        let (m, n) = (at / 40, at % 40);
                        let terms = (0..9)
                            .map(|k| signed(a[1 + 8 * k + m.min(6)]) * signed(b[40 * row(k, m.min(6)) + n]));
                        let sum = terms.fold(0i64, |sum, term| sum.wrapping_add(term));
                        if m < 7 { d[at].wrapping_add(sum as u64) } else { d[at] }
                    })
                    .collect();
                assert_eq!(run(None), expected, "{bits} bits, sparse {sparse}");
                assert_eq!(run(Avx2::detect()), expected, "{bits} bits, sparse {sparse}");
            }
        }
    }

    /// Elements beyond an array read as zero and are not written.
    #[test]
    fn arrays_have_an_end() {
        let one = 1f32.to_bits();
        let (a, b, mut d) = ([one; 2], [one; 8], [0; 8]);
        let part = part(0, 1, 8);
        product::<_, true, 8>(
            &Keep,
            KEEP,
            Avx2::detect(),
            [2, 2],
            (&a, part),
            (&b, part),
            None,
            (&mut d, part),
        );
        assert_eq!(d.map(f32::from_bits), [2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0]);
        // A row number beyond the matrix.
        let places = Places { list: &[0, 9], at: Part { row: 1, ..part }, step: 8 };
        let (from, to) = (Part { depth: 0, ..part }, Part { row: 0, ..part });
        let mut d = [0; 8];
        product::<_, true, 8>(
            &Keep,
            KEEP,
            Avx2::detect(),
            [2, 1],
            (&a, part),
            (&b, from),
            Some(places),
            (&mut d, to),
        );
        assert_eq!(d.map(f32::from_bits), [1.0; 8]);
        // A row inside the array, but not for that many steps.
        let (places, mut d) = (Places { list: &[0, 0], ..places }, [0; 8]);
        let from = Part { depth: 1 << 28, ..from };
        product::<_, true, 8>(
            &Keep,
            KEEP,
            Avx2::detect(),
            [2, 1],
            (&a, part),
            (&b, from),
            Some(places),
            (&mut d, to),
        );
        assert_eq!(d.map(f32::from_bits), [1.0; 8]);
    }
}
