//! Values that lanes take from other lanes, or send to them, by numbers of lanes that a body has computed.

use super::context::Cx;
use super::operands::operand_lane;
use crate::exec::op::Source;
use crate::state::wave::{ALL_VGPRS, STAGE};
use crate::state::{Half, LaneVec};

/// The value of the lane that each lane names, of a vector of each half; zero for numbers of no lane.
/// `size`: lanes of the wave.
///
/// # Safety
/// The vectors can be read, the second one in a wave of 64; `AVX2` only if the host has it.
#[inline(always)]
pub unsafe fn any_lane<const AVX2: bool>(vecs: [*const LaneVec; 2], from: &LaneVec, size: u32) -> LaneVec {
    let mut out = LaneVec::ZERO;
    #[cfg(target_arch = "x86_64")]
    if AVX2 {
        use std::arch::x86_64::*;
        let to = out.0.as_mut_ptr().cast::<__m256i>();
        // SAFETY: by the contract; a lane vector is four aligned SIMD vectors.
        unsafe {
            let last = _mm256_set1_epi32(size as i32 - 1);
            for k in 0..4 {
                let lanes = _mm256_load_si256(from.0.as_ptr().cast::<__m256i>().add(k));
                let mut value = of_half(vecs[0], lanes);
                if size > 32 {
                    let which = _mm256_castsi256_ps(_mm256_slli_epi32::<26>(lanes));
                    value = _mm256_blendv_ps(value, of_half(vecs[1], lanes), which);
                }
                let inside = _mm256_cmpeq_epi32(_mm256_min_epu32(lanes, last), lanes);
                _mm256_store_si256(to.add(k), _mm256_and_si256(_mm256_castps_si256(value), inside));
            }
        }
        return out;
    }
    for (value, lane) in out.0.iter_mut().zip(from.0) {
        if lane < size {
            // SAFETY: by the contract.
            *value = unsafe { (*vecs[lane as usize / 32]).0[lane as usize % 32] };
        }
    }
    out
}

/// Eight lanes of a vector, by the low five bits of their numbers.
///
/// # Safety
/// The vector can be read, and the host has AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn of_half(vec: *const LaneVec, lanes: std::arch::x86_64::__m256i) -> std::arch::x86_64::__m256 {
    use std::arch::x86_64::*;
    // SAFETY: by the contract.
    unsafe {
        let eight = |k: usize| {
            let lanes = _mm256_permutevar8x32_epi32(_mm256_load_si256(vec.cast::<__m256i>().add(k)), lanes);
            _mm256_castsi256_ps(lanes)
        };
        // Bits 3 and 4 say which of the four, as signs.
        let odd = _mm256_castsi256_ps(_mm256_slli_epi32::<28>(lanes));
        let upper = _mm256_castsi256_ps(_mm256_slli_epi32::<27>(lanes));
        let [low, high] =
            [_mm256_blendv_ps(eight(0), eight(1), odd), _mm256_blendv_ps(eight(2), eight(3), odd)];
        _mm256_blendv_ps(low, high, upper)
    }
}

/// What lanes take or send.
#[derive(Clone, Copy)]
pub enum Moved {
    /// The first register of an operand.
    Operand(Source),
    /// A VGPR by a number that the body computed.
    Vgpr(u32),
}

/// A move of values from lane to lane, to a VGPR that the wave has. [`pull`] and [`push`] make it.
#[derive(Clone, Copy)]
pub struct Moves {
    /// The lane vector of each half that has the values.
    at: usize,
    to: usize,
    /// Inactive lanes have values too.
    fetch: bool,
    /// Lanes take the zero of an inactive lane, instead of keeping what they have.
    bound: bool,
    /// All lanes are active.
    full: bool,
}

/// Hidden lane vectors: of operands that are no registers, of new values, and of the lanes that take them.
const COPY: usize = STAGE;
const NEW: usize = STAGE + 1;
const WHEN: usize = STAGE + 2;
/// Lanes that values are sent to.
const PLACES: usize = STAGE + 3;

/// Which lane vector of each half has the values.
#[inline(always)]
fn register(cx: &Cx<'_>, what: Moved) -> usize {
    match what {
        Moved::Operand(source) if source.is_vector() && (source.number() as usize) < ALL_VGPRS => {
            source.number() as usize
        }
        Moved::Operand(source) => copied(cx, source),
        Moved::Vgpr(number) if cx.wave.has_vgpr(number) => number as usize,
        Moved::Vgpr(_) => 0,
    }
}

#[cold]
#[inline(never)]
fn copied(cx: &Cx<'_>, source: Source) -> usize {
    for half in 0..cx.wave.halves() {
        // SAFETY: W1; nothing else refers to the vector.
        let copy = unsafe { &mut *cx.wave.half(half).at(COPY) };
        for (lane, value) in copy.0.iter_mut().enumerate() {
            *value = operand_lane(cx, source, (32 * half + lane) as u32, 0);
        }
    }
    COPY
}

/// A move of values that lanes take; none if there is no register for them.
#[inline(always)]
pub fn pull(cx: &Cx<'_>, what: Moved, fetch: bool, bound: bool, to: u32) -> Option<Moves> {
    let full = cx.wave.exec() == cx.wave.full_mask();
    cx.wave.has_vgpr(to).then(|| Moves { at: register(cx, what), to: to as usize, fetch, bound, full })
}

/// A move of values that lanes send.
#[inline(always)]
pub fn push(cx: &Cx<'_>, what: Moved, to: u32) -> Option<Moves> {
    pull(cx, what, true, true, to)
}

/// Each lane of a half takes the value of the lane that `from` names for it. To be called for each half in
/// order.
///
/// # Safety
/// The host has AVX2, and the move is of the operation that runs.
#[inline(always)]
pub unsafe fn pull_lanes(cx: &mut Cx<'_>, moves: Moves, half: usize, from: &LaneVec) {
    let file = cx.wave.half(half);
    // SAFETY: by the contract; W1, and nothing else refers to the vectors.
    unsafe {
        if moves.full
            && cx.wave.halves() == 1
            && let Some(new) = own_half(file.at(moves.at), from, 0)
        {
            file.set_no_denormals(moves.to, false);
            *file.at(moves.to) = new;
            return;
        }
        pull_any(cx, moves, half, from);
    }
}

/// [`any_lane`] if all lanes are of the half that begins with this one.
///
/// # Safety
/// The vector can be read, and the host has AVX2.
#[inline(always)]
unsafe fn own_half(vec: *const LaneVec, from: &LaneVec, first: u32) -> Option<LaneVec> {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        let mut out = LaneVec::ZERO;
        // SAFETY: by the contract; a lane vector is four aligned SIMD vectors.
        unsafe {
            let first = _mm256_set1_epi32(first as i32);
            let lanes = |k: usize| {
                _mm256_xor_si256(_mm256_load_si256(from.0.as_ptr().cast::<__m256i>().add(k)), first)
            };
            let all =
                _mm256_or_si256(_mm256_or_si256(lanes(0), lanes(1)), _mm256_or_si256(lanes(2), lanes(3)));
            if _mm256_testz_si256(all, _mm256_set1_epi32(!31)) == 0 {
                return None;
            }
            for k in 0..4 {
                let eight = of_half(vec, lanes(k));
                _mm256_store_ps(out.0.as_mut_ptr().cast::<f32>().add(8 * k), eight);
            }
        }
        Some(out)
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// [`pull_lanes`] of any half, with any EXEC.
///
/// # Safety
/// As for [`pull_lanes`].
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[inline(never)]
unsafe fn pull_any(cx: &mut Cx<'_>, moves: Moves, half: usize, from: &LaneVec) {
    let files = [0, 1].map(|half| cx.wave.half(half));
    // SAFETY: by the contract; W1, and nothing else refers to the vectors.
    unsafe {
        let own = own_half(files[half & 1].at(moves.at), from, 32 * half as u32);
        let mut new = match own {
            Some(new) => new,
            None => any_lane::<true>(files.map(|file| file.at(moves.at).cast_const()), from, cx.wave.size()),
        };
        let whole = moves.full && (moves.fetch || moves.bound);
        if !whole {
            let mut when = files[half & 1].mask();
            if !(moves.fetch || moves.full && own.is_some()) {
                let active = any_lane::<true>(cx.wave.masks(), from, cx.wave.size());
                let keep = if moves.bound { u32::MAX } else { 0 };
                for l in 0..32 {
                    new.0[l] &= active.0[l];
                    when.0[l] &= active.0[l] | keep;
                }
            }
            *files[half & 1].at(WHEN) = when;
        }
        *files[half & 1].at(NEW) = new;
        if half + 1 == cx.wave.halves() {
            write_halves(cx, moves.to, whole);
        }
    }
}

/// Each active lane of a half sends its value to the lane that `places` names for it; of two to one lane, the
/// higher one's arrives. Then active lanes take what has come, or zero. To be called for each half in order.
///
/// # Safety
/// As for [`pull_lanes`].
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[inline(never)]
pub unsafe fn push_lanes(cx: &mut Cx<'_>, moves: Moves, half: usize, places: &LaneVec) {
    let (halves, size) = (cx.wave.halves(), cx.wave.size());
    let files = [0, 1].map(|half| cx.wave.half(half));
    // SAFETY: by the contract; W1, and nothing else refers to the vectors.
    unsafe {
        if halves == 1 {
            let file = files[0];
            let from = senders(places, 0, file.exec());
            *file.at(NEW) = any_lane::<true>([file.at(moves.at); 2], &from, 32);
            *file.at(WHEN) = file.mask();
            return write_half(file, moves.to, moves.full);
        }
        *files[half & 1].at(PLACES) = *places;
        if half + 1 < halves {
            return;
        }
        for to in 0..halves {
            let mut from = LaneVec([u32::MAX; 32]);
            for sender in 0..halves {
                let senders =
                    senders(&*files[sender & 1].at(PLACES), 32 * to as u32, files[sender & 1].exec());
                for l in 0..32 {
                    let lane = senders.0[l] | (32 * sender as u32);
                    from.0[l] = if senders.0[l] == u32::MAX { from.0[l] } else { lane };
                }
            }
            *files[to & 1].at(NEW) =
                any_lane::<true>(files.map(|file| file.at(moves.at).cast_const()), &from, size);
            *files[to & 1].at(WHEN) = files[to & 1].mask();
        }
        write_halves(cx, moves.to, moves.full);
    }
}

/// The inverse of numbers of lanes: for each lane of the half that begins with `first`, the highest of 32
/// `active` lanes that names it, or [`u32::MAX`] if none does. Loads of a vector that was scattered by stores
/// would have to wait for all of them.
///
/// # Safety
/// The host has AVX2.
#[inline(always)]
unsafe fn senders(places: &LaneVec, first: u32, active: u32) -> LaneVec {
    let mut out = LaneVec([u32::MAX; 32]);
    #[cfg(not(target_arch = "x86_64"))]
    for (l, place) in places.0.iter().enumerate() {
        if let Some(out) = out.0.get_mut((place ^ first) as usize)
            && active >> l & 1 == 1
        {
            *out = l as u32;
        }
    }
    // SAFETY: by the contract; a lane vector is four aligned SIMD vectors.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::*;
        // Saturated, as packing has signed sources: what is of no lane here stays so.
        let eight = |k: usize| {
            let places = _mm256_load_si256(places.0.as_ptr().cast::<__m256i>().add(k));
            let own = _mm256_xor_si256(places, _mm256_set1_epi32(first as i32));
            _mm256_min_epu32(own, _mm256_set1_epi32(0x7f))
        };
        // All 32 as bytes; packing leaves groups of four out of order.
        let [low, high] = [_mm256_packus_epi32(eight(0), eight(1)), _mm256_packus_epi32(eight(2), eight(3))];
        let bytes = _mm256_packus_epi16(low, high);
        let bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        // Each bit of the numbers, for all lanes.
        let bits = [
            _mm256_movemask_epi8(_mm256_slli_epi16::<7>(bytes)),
            _mm256_movemask_epi8(_mm256_slli_epi16::<6>(bytes)),
            _mm256_movemask_epi8(_mm256_slli_epi16::<5>(bytes)),
            _mm256_movemask_epi8(_mm256_slli_epi16::<4>(bytes)),
            _mm256_movemask_epi8(_mm256_slli_epi16::<3>(bytes)),
        ];
        // The lanes whose number has the low three bits of each of eight lanes.
        let number = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let inside = _mm256_cmpgt_epi8(_mm256_set1_epi8(32), bytes);
        let mut low = _mm256_set1_epi32(active as i32 & _mm256_movemask_epi8(inside));
        for (at, bits) in bits.into_iter().enumerate().take(3) {
            let bit = _mm256_set1_epi32(1 << at);
            let clear = _mm256_cmpeq_epi32(_mm256_and_si256(number, bit), _mm256_setzero_si256());
            low = _mm256_and_si256(low, _mm256_xor_si256(_mm256_set1_epi32(bits), clear));
        }
        for k in 0..4 {
            let high = [bits[3], bits[4]].into_iter().enumerate();
            let high = high.fold(!0, |high, (at, bits)| high & if k >> at & 1 == 1 { bits } else { !bits });
            let lanes = _mm256_and_si256(low, _mm256_set1_epi32(high));
            // The highest: the exponent as a float. The bit after the first is cleared, so that it is not
            // rounded up. Lane 31 is the sign.
            let first = _mm256_andnot_si256(_mm256_srli_epi32::<1>(lanes), lanes);
            let exponent = _mm256_srli_epi32::<23>(_mm256_castps_si256(_mm256_cvtepi32_ps(first)));
            let highest = _mm256_sub_epi32(exponent, _mm256_set1_epi32(127));
            let last = _mm256_castsi256_ps(_mm256_set1_epi32(31));
            let highest = _mm256_blendv_ps(_mm256_castsi256_ps(highest), last, _mm256_castsi256_ps(lanes));
            let none = _mm256_cmpeq_epi32(lanes, _mm256_setzero_si256());
            let to = out.0.as_mut_ptr().cast::<__m256i>().add(k);
            _mm256_store_si256(to, _mm256_or_si256(_mm256_castps_si256(highest), none));
        }
    }
    out
}

/// Writes the new values to a VGPR, in all lanes (`whole`) or in some.
///
/// # Safety
/// The wave has this VGPR, and the hidden vectors are set.
#[inline(always)]
unsafe fn write_halves(cx: &Cx<'_>, register: usize, whole: bool) {
    for half in 0..cx.wave.halves() {
        // SAFETY: by the contract.
        unsafe { write_half(cx.wave.half(half), register, whole) };
    }
}

/// # Safety
/// As for [`write_halves`].
#[inline(always)]
unsafe fn write_half(file: Half, register: usize, whole: bool) {
    // SAFETY: W1, by the contract; nothing else refers to the vectors.
    unsafe {
        file.set_no_denormals(register, false);
        let mut new = *file.at(NEW);
        if !whole {
            let (old, when) = (*file.at(register), *file.at(WHEN));
            for l in 0..32 {
                new.0[l] = old.0[l] & !when.0[l] | new.0[l] & when.0[l];
            }
        }
        *file.at(register) = new;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::host::Avx2;

    /// Against a search from the highest lane down.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_highest_sender_is_found() {
        #[target_feature(enable = "avx2")]
        unsafe fn found(places: &LaneVec, first: u32, active: u32) -> LaneVec {
            // SAFETY: the host has AVX2.
            unsafe { senders(places, first, active) }
        }
        let patterns: [fn(u32) -> u32; 7] = [
            |l| l,
            |l| 31 - l,
            |l| (l * 11) & 31,
            |l| l * 4,
            |_| 31,
            |l| (l * l * 7 / 3) & 63,
            |l| if l == 9 { u32::MAX } else { l << l },
        ];
        for pattern in patterns {
            for active in [u32::MAX, 0, 1, 1 << 31, 0x7fff_ffff, 0x5555_5555, 0xc000_0001, 0x0ff0_0ff0] {
                let places = LaneVec(std::array::from_fn(|l| pattern(l as u32)));
                for first in [0, 32] {
                    let sender = |to: u32| (0..32).rev().find(|l| active >> l & 1 == 1 && pattern(*l) == to);
                    let expected =
                        LaneVec(std::array::from_fn(|to| sender(first + to as u32).unwrap_or(u32::MAX)));
                    if Avx2::detect().is_some() {
                        // SAFETY: it has.
                        assert_eq!(unsafe { found(&places, first, active) }, expected, "{active:#x}");
                    }
                }
            }
        }
    }

    /// Lanes of both halves, of one, and numbers of none.
    #[test]
    fn lanes_come_from_where_they_say() {
        let vecs: [LaneVec; 2] = [100, 200].map(|first| LaneVec(std::array::from_fn(|l| first + l as u32)));
        let patterns: [fn(u32) -> u32; 5] =
            [|l| l, |l| 63 - l, |l| (l * 7) & 63, |l| l * 5, |l| if l == 3 { u32::MAX } else { l ^ 17 }];
        for (pattern, size) in patterns.into_iter().flat_map(|pattern| [(pattern, 32), (pattern, 64)]) {
            let from = LaneVec(std::array::from_fn(|l| pattern(l as u32)));
            let each = from.0.map(|l| if l < size { vecs[l as usize / 32].0[l as usize % 32] } else { 0 });
            let at = vecs.each_ref().map(std::ptr::from_ref);
            // SAFETY: the vectors are there.
            assert_eq!(unsafe { any_lane::<false>(at, &from, size) }.0, each);
            if Avx2::detect().is_some() {
                #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
                unsafe fn fast(vecs: [*const LaneVec; 2], from: &LaneVec, size: u32) -> LaneVec {
                    // SAFETY: the host has AVX2, and the vectors are there.
                    unsafe { any_lane::<true>(vecs, from, size) }
                }
                // SAFETY: likewise.
                assert_eq!(unsafe { fast(at, &from, size) }.0, each);
            }
        }
    }
}
