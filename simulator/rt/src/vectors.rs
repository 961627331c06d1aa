//! Vectors of consecutive elements and lanes, for semantics that run once per wave.

use super::context::Cx;
use super::float::{Mode, fma_f32};
use super::half::{cvt_f16_f32, cvt_f32_f16};
use super::operands::{operand_lane, vgpr};
use super::results::set_vgpr;
#[cfg(target_arch = "x86_64")]
use super::{ordered::fma_vector, product::flushed};
use crate::op::Source;
use isa_spec::arith;

/// A local array of semantics. Rows of 16 dwords are aligned to the host's cache lines, because vectors that
/// cross them are slow.
#[repr(C, align(64))]
pub struct Array<T, const N: usize>(pub [T; N]);

impl<T, const N: usize> std::ops::Deref for Array<T, N> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T, const N: usize> std::ops::DerefMut for Array<T, N> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

/// Returns the elements from `start` on; 0 beyond the array.
#[inline(always)]
pub fn elements<T: Copy + Default, const N: usize>(list: &[T], start: u32) -> [T; N] {
    if let Some(inside) = list.get(start as usize..).and_then(|rest| rest.first_chunk::<N>()) {
        return *inside;
    }
    let mut out = [T::default(); N];
    for (k, out) in out.iter_mut().enumerate() {
        *out = list.get(start.wrapping_add(k as u32) as usize).copied().unwrap_or_default();
    }
    out
}

/// Sets the elements from `start` on; writes beyond the array are dropped.
#[inline(always)]
pub fn set_elements<T: Copy, const N: usize>(list: &mut [T], start: u32, new: &[T; N]) {
    if let Some(inside) = list.get_mut(start as usize..).and_then(|rest| rest.first_chunk_mut::<N>()) {
        *inside = *new;
        return;
    }
    for (k, new) in new.iter().enumerate() {
        if let Some(old) = list.get_mut(start.wrapping_add(k as u32) as usize) {
            *old = *new;
        }
    }
}

/// [`set_elements`] where `when` is not 0.
#[inline(always)]
pub fn set_elements_where<T: Copy + Default, const N: usize>(
    list: &mut [T],
    start: u32,
    new: &[T; N],
    when: &[u32; N],
) {
    let mut merged = elements::<T, N>(list, start);
    for k in 0..N {
        merged[k] = if when[k] != 0 { new[k] } else { merged[k] };
    }
    set_elements(list, start, &merged);
}

/// Returns consecutive lanes of a VGPR, if all are in one half.
#[inline(always)]
fn row<'a, const N: usize>(cx: &'a Cx<'_>, lane: u32, reg: u32) -> Option<&'a [u32; N]> {
    let (half, lane) = ((lane / 32) as usize, (lane % 32) as usize);
    cx.wave.find_vgpr(half, reg)?.0.get(lane..)?.first_chunk::<N>()
}

/// Returns a register of an operand in lanes from `lane` on.
#[inline(always)]
pub fn operand_lanes<const N: usize>(cx: &Cx<'_>, source: Source, lane: u32, index: u32) -> [u32; N] {
    if source.is_vector()
        && let Some(inside) = row::<N>(cx, lane, (source.number() as u32).wrapping_add(index))
    {
        return *inside;
    }
    each_operand_lane(cx, source, lane, index)
}

#[cold]
#[inline(never)]
fn each_operand_lane<const N: usize>(cx: &Cx<'_>, source: Source, lane: u32, index: u32) -> [u32; N] {
    std::array::from_fn(|k| operand_lane(cx, source, lane.wrapping_add(k as u32), index))
}

/// Returns a register of an operand in all lanes; 0 in lanes that the wave does not have.
#[inline(always)]
pub fn operand_wave(cx: &Cx<'_>, source: Source, index: u32) -> [u32; 64] {
    let low = operand_lanes::<32>(cx, source, 0, index);
    let both = cx.wave.halves() == 2 || !source.is_vector();
    whole(low, if both { operand_lanes::<32>(cx, source, 32, index) } else { [0; 32] })
}

/// Returns a VGPR by a computed number in all lanes; 0 in lanes that the wave does not have.
#[inline(always)]
pub fn vgpr_wave(cx: &Cx<'_>, reg: u32) -> [u32; 64] {
    let low = vgpr_lanes::<32>(cx, 0, reg);
    whole(low, if cx.wave.halves() == 2 { vgpr_lanes::<32>(cx, 32, reg) } else { [0; 32] })
}

/// Joins both halves to 64 lanes. Not with `copy_from_slice`, which would stay a call.
#[inline(always)]
fn whole(low: [u32; 32], high: [u32; 32]) -> [u32; 64] {
    let mut out = [0; 64];
    for k in 0..32 {
        (out[k], out[32 + k]) = (low[k], high[k]);
    }
    out
}

/// Returns a lane of the result of [`operand_wave`] or [`vgpr_wave`].
#[inline(always)]
pub fn lane_of(row: &[u32; 64], lane: u32) -> u32 {
    let value = row[(lane & 63) as usize];
    if lane < 64 { value } else { 0 }
}

/// Copies a register of an operand, in lanes from `lane` on, to the elements from `start` on.
#[inline(always)]
pub fn lanes_to_elements<const N: usize>(
    cx: &Cx<'_>,
    source: Source,
    lane: u32,
    index: u32,
    list: &mut [u32],
    start: u32,
) {
    if source.is_vector()
        && let Some(from) = row::<N>(cx, lane, (source.number() as u32).wrapping_add(index))
        && let Some(to) = list.get_mut(start as usize..).and_then(|rest| rest.first_chunk_mut::<N>())
    {
        *to = *from;
        return;
    }
    set_elements(list, start, &each_operand_lane::<N>(cx, source, lane, index));
}

/// Copies elements from `start` on to lanes of a VGPR with a computed number, if the wave has it.
#[inline(always)]
pub fn elements_to_lanes<const N: usize>(cx: &mut Cx<'_>, lane: u32, reg: u32, list: &[u32], start: u32) {
    let (half, at) = ((lane / 32) as usize, (lane % 32) as usize);
    if let Some(row) = cx.wave.find_own_vgpr(half, reg)
        && let Some(to) = row.0.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<N>())
        && let Some(from) = list.get(start as usize..).and_then(|rest| rest.first_chunk::<N>())
    {
        *to = *from;
        cx.wave.written(half, reg as usize);
        return;
    }
    set_vgpr_lanes(cx, lane, reg, &elements::<u32, N>(list, start));
}

/// Returns the lane mask of the half that starts at `lane`: all ones in active lanes, zero in inactive ones.
#[inline(always)]
pub fn active_lanes<const N: usize>(cx: &Cx<'_>, lane: u32) -> [u32; N] {
    // SAFETY: every half of a wave has a mask (W1).
    let mask = unsafe { cx.wave.half(lane as usize / 32).mask() };
    let mut out = [0; N];
    for (out, active) in out.iter_mut().zip(mask.0) {
        *out = active;
    }
    out
}

/// Returns a VGPR by a computed number, in lanes from `lane` on.
#[inline(always)]
pub fn vgpr_lanes<const N: usize>(cx: &Cx<'_>, lane: u32, reg: u32) -> [u32; N] {
    let own = if cx.wave.has_vgpr(reg) { reg } else { 0 };
    match row::<N>(cx, lane, own) {
        Some(inside) => *inside,
        None => std::array::from_fn(|k| vgpr(cx, lane.wrapping_add(k as u32), reg)),
    }
}

/// Sets lanes of a VGPR with a computed number, from `lane` on, if the wave has it.
#[inline(always)]
pub fn set_vgpr_lanes<const N: usize>(cx: &mut Cx<'_>, lane: u32, reg: u32, new: &[u32; N]) {
    set_vgpr_lanes_where(cx, lane, reg, new, &[1; N]);
}

/// [`set_vgpr_lanes`] where `when` is not 0.
#[inline(always)]
pub fn set_vgpr_lanes_where<const N: usize>(
    cx: &mut Cx<'_>,
    lane: u32,
    reg: u32,
    new: &[u32; N],
    when: &[u32; N],
) {
    let (half, at) = ((lane / 32) as usize, (lane % 32) as usize);
    if let Some(row) = cx.wave.find_own_vgpr(half, reg)
        && let Some(old) = row.0.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<N>())
    {
        let mut merged = *old;
        for k in 0..N {
            // With masks, because the compiler turns a select of values into a select between two addresses,
            // which it does not vectorise.
            let mask = 0u32.wrapping_sub((when[k] != 0) as u32);
            merged[k] = merged[k] & !mask | new[k] & mask;
        }
        *old = merged;
        cx.wave.written(half, reg as usize);
        return;
    }
    set_each_lane(cx, lane, reg, new, when);
}

#[cold]
#[inline(never)]
fn set_each_lane(cx: &mut Cx<'_>, lane: u32, reg: u32, new: &[u32], when: &[u32]) {
    for ((lane, new), when) in (lane..).zip(new).zip(when) {
        if *when != 0 {
            set_vgpr(cx, lane, reg, *new);
        }
    }
}

/// A whole vector as an operand: its elements, or one value for all.
pub trait Elements<const N: usize> {
    /// Returns the element at an index below `N`.
    fn element(&self, at: usize) -> u32;

    /// Returns eight consecutive elements.
    ///
    /// # Safety
    /// The host has AVX2, and `index` is below `N / 8`.
    #[cfg(target_arch = "x86_64")]
    unsafe fn eight(&self, at: usize) -> std::arch::x86_64::__m256;
}

impl<const N: usize> Elements<N> for u32 {
    #[inline(always)]
    fn element(&self, _at: usize) -> u32 {
        *self
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn eight(&self, _at: usize) -> std::arch::x86_64::__m256 {
        // SAFETY: the caller guarantees that the host has AVX2.
        unsafe { std::arch::x86_64::_mm256_set1_ps(f32::from_bits(*self)) }
    }
}

impl<const N: usize> Elements<N> for [u32; N] {
    #[inline(always)]
    fn element(&self, index: usize) -> u32 {
        self[index]
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn eight(&self, index: usize) -> std::arch::x86_64::__m256 {
        debug_assert!(8 * index + 8 <= N);
        // SAFETY: the caller guarantees AVX2 and that eight elements begin at `8 * index`.
        unsafe { std::arch::x86_64::_mm256_loadu_ps(self.as_ptr().add(8 * index).cast()) }
    }
}

/// Computes `a * b + c` of each element.
///
/// # Safety
/// In modes of fast handlers the host has AVX2 and FMA (x86-64; H1).
#[inline(always)]
pub unsafe fn fma_f32_lanes<M: Mode, const N: usize>(
    m: &M,
    a: &impl Elements<N>,
    b: &impl Elements<N>,
    c: &impl Elements<N>,
) -> [u32; N] {
    let mut out = [0; N];
    #[cfg(target_arch = "x86_64")]
    if !M::GENERAL && N.is_multiple_of(8) {
        use std::arch::x86_64::*;
        for k in 0..N / 8 {
            // SAFETY: the caller guarantees AVX2 and FMA; eight elements begin at `8 * k`.
            unsafe {
                let [a, b, c] = [a.eight(k), b.eight(k), c.eight(k)];
                let sum = if M::FLUSH {
                    flushed::<true>(fma_vector(flushed::<true>(a), flushed::<true>(b), flushed::<true>(c)))
                } else {
                    fma_vector(a, b, c)
                };
                _mm256_storeu_ps(out.as_mut_ptr().add(8 * k).cast(), sum);
            }
        }
        return out;
    }
    for (k, out) in out.iter_mut().enumerate() {
        *out = fma_f32(m, a.element(k), b.element(k), c.element(k));
    }
    out
}

/// Applies [`cvt_f16_f32`] to each element.
///
/// # Safety
/// In modes of fast handlers the host has F16C (x86-64; H1).
#[inline(always)]
pub unsafe fn cvt_f16_f32_lanes<M: Mode, const N: usize>(m: &M, x: [u32; N]) -> [u32; N] {
    let mut out = [0; N];
    #[cfg(target_arch = "x86_64")]
    if !M::GENERAL && N.is_multiple_of(8) {
        use std::arch::x86_64::*;
        for k in 0..N / 8 {
            // SAFETY: the caller guarantees F16C; eight elements begin at `8 * k`. No f16 is a denormal as
            // f32.
            unsafe {
                let x = _mm256_loadu_si256(x.as_ptr().add(8 * k).cast());
                let x = _mm256_and_si256(x, _mm256_set1_epi32(0xffff));
                // The instruction packs within each half of the vector.
                let pairs = _mm256_packus_epi32(x, x);
                let halves = _mm256_castsi256_si128(_mm256_permute4x64_epi64::<0b1000>(pairs));
                _mm256_storeu_ps(out.as_mut_ptr().add(8 * k).cast(), _mm256_cvtph_ps(halves));
            }
        }
        return out;
    }
    for (out, x) in out.iter_mut().zip(x) {
        *out = cvt_f16_f32(m, x);
    }
    out
}

/// Applies [`cvt_f32_f16`] to each element.
///
/// # Safety
/// In modes of fast handlers the host has F16C (x86-64; H1).
#[inline(always)]
pub unsafe fn cvt_f32_f16_lanes<M: Mode, const N: usize>(m: &M, x: [u32; N]) -> [u32; N] {
    let mut out = [0; N];
    #[cfg(target_arch = "x86_64")]
    if !M::GENERAL && N.is_multiple_of(8) {
        use std::arch::x86_64::*;
        for k in 0..N / 8 {
            // SAFETY: the caller guarantees F16C; eight elements begin at `8 * k`. A denormal f32 becomes
            // zero as f16, flushed or not.
            unsafe {
                let x = _mm256_loadu_ps(x.as_ptr().add(8 * k).cast());
                let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x);
                let words = _mm256_cvtepu16_epi32(halves);
                _mm256_storeu_si256(out.as_mut_ptr().add(8 * k).cast(), words);
            }
        }
        return out;
    }
    for (out, x) in out.iter_mut().zip(x) {
        *out = cvt_f32_f16(m, x);
    }
    out
}

/// Returns a VGPR by a computed number in the 32 lanes from `lane_base` on; v0 beyond those of the wave.
#[inline(always)]
pub fn indexed_vgpr_lanes(cx: &Cx<'_>, lane_base: u32, reg: u32) -> [u32; 32] {
    vgpr_lanes::<32>(cx, lane_base, if cx.wave.has_vgpr(reg) { reg } else { 0 })
}

/// Returns the lanes in which a value is not 0, as bits.
#[inline(always)]
pub fn lanes_that_hold(mask: &[u32; 32]) -> u32 {
    let mut bits = 0;
    for (l, mask) in mask.iter().enumerate() {
        bits |= ((*mask != 0) as u32) << l;
    }
    bits
}

/// Converts component `index` of an element of a format in each active lane, as the pseudocode's `from_format`.
#[inline(always)]
pub fn from_format_lanes(format: u32, index: u32, exec: u32, from: &[u128; 32], to: &mut [u32; 32]) {
    match arith::component(format, index) {
        arith::Component::Unorm { offset, width } => {
            let most = ((1u64 << width) - 1) as u32;
            field_lanes(offset, most, from, to);
            for to in to.iter_mut() {
                *to = (*to as i32 as f32 / most as f32).to_bits();
            }
        }
        arith::Component::Bits { offset, width } => {
            field_lanes(offset, ((1u64 << width) - 1) as u32, from, to);
        }
        arith::Component::Missing(value) => *to = [value; 32],
        arith::Component::Other => {
            for l in (0..32).filter(|l| exec >> l & 1 != 0) {
                to[l] = arith::from_format(format, from[l], index);
            }
        }
    }
}

/// Extracts the bits of a mask that begin at `offset`, within 32 bits that begin at a multiple of 32.
#[inline(always)]
fn field_lanes(offset: u32, mask: u32, from: &[u128; 32], to: &mut [u32; 32]) {
    #[inline(always)]
    fn words<const WORD: u32>(shift: u32, mask: u32, from: &[u128; 32], to: &mut [u32; 32]) {
        for l in 0..32 {
            to[l] = (from[l] >> (32 * WORD)) as u32 >> shift & mask;
        }
    }
    let shift = offset % 32;
    match offset / 32 {
        0 => words::<0>(shift, mask, from, to),
        1 => words::<1>(shift, mask, from, to),
        2 => words::<2>(shift, mask, from, to),
        _ => words::<3>(shift, mask, from, to),
    }
}

#[cfg(test)]
mod tests {
    use super::super::float::{Flush, Keep};
    use super::*;
    use wavesim_state::host::Avx2;

    /// Vector conversions give the same bits as single ones: for every f16, and for the f32 around each of
    /// them and its ties.
    #[test]
    fn conversions_of_vectors_are_those_of_elements() {
        if Avx2::detect().is_none() {
            eprintln!("skipped: the host has no AVX2");
            return;
        }
        for first in (0..0x1_0000).step_by(8) {
            // Bits above the element must be ignored.
            let halves: [u32; 8] = std::array::from_fn(|k| (first + k as u32) | 0xabcd_0000);
            // SAFETY: the host has F16C, as detected above.
            let [keep, flush] =
                unsafe { [cvt_f16_f32_lanes(&Keep, halves), cvt_f16_f32_lanes(&Flush, halves)] };
            assert_eq!(keep, halves.map(|h| cvt_f16_f32(&Keep, h)));
            assert_eq!(flush, halves.map(|h| cvt_f16_f32(&Flush, h)));
            for step in [0u32, 1, 0x0fff, 0x1000, 0x1001, u32::MAX] {
                let x = keep.map(|x| x.wrapping_add(step));
                // SAFETY: as above.
                let [keep, flush] = unsafe { [cvt_f32_f16_lanes(&Keep, x), cvt_f32_f16_lanes(&Flush, x)] };
                assert_eq!(keep, x.map(|x| cvt_f32_f16(&Keep, x)), "{x:08x?}");
                assert_eq!(flush, x.map(|x| cvt_f32_f16(&Flush, x)), "{x:08x?}");
            }
        }
        for exponent in 0..512u32 {
            let x: [u32; 8] =
                std::array::from_fn(|k| exponent << 23 | (k as u32).wrapping_mul(0x0012_4925) & 0x7f_ffff);
            // SAFETY: as above.
            let found = unsafe { cvt_f32_f16_lanes(&Keep, x) };
            assert_eq!(found, x.map(|x| cvt_f32_f16(&Keep, x)), "{x:08x?}");
        }
    }
}
