//! Moves of values between lanes, by lane numbers that a body has computed: each lane takes a value from the
//! lane with its number ([`pull`]), or sends one there ([`push`]).

use super::context::Cx;
use super::operands::operand_lane;
use crate::op::Source;
#[cfg(target_arch = "x86_64")]
use wavesim_state::host::Avx2;
use wavesim_state::wave::{ALL_VGPRS, STAGE};
use wavesim_state::{Half, LaneVec};

#[cfg(target_arch = "x86_64")]
mod avx512;

/// Returns, for each lane, the value of the lane that `from` selects, or zero if that is not a lane of the
/// wave. `vecs` has the vector of each half; `size` is the number of lanes of the wave.
///
/// # Safety
/// The first vector is readable; in a wave of 64, both are. `AVX2` is set only if the host has it.
#[inline(always)]
pub unsafe fn gather_lanes<const AVX2: bool>(
    vecs: [*const LaneVec; 2],
    from: &LaneVec,
    size: u32,
) -> LaneVec {
    let mut out = LaneVec::ZERO;
    #[cfg(target_arch = "x86_64")]
    if AVX2 {
        use std::arch::x86_64::*;
        let to = out.0.as_mut_ptr().cast::<__m256i>();
        // SAFETY: the caller guarantees AVX2 and the vectors; a lane vector is four aligned SIMD vectors.
        unsafe {
            let last = _mm256_set1_epi32(size as i32 - 1);
            for k in 0..4 {
                let lanes = _mm256_load_si256(from.0.as_ptr().cast::<__m256i>().add(k));
                let mut value = select8(vecs[0], lanes);
                if size > 32 {
                    let which = _mm256_castsi256_ps(_mm256_slli_epi32::<26>(lanes));
                    value = _mm256_blendv_ps(value, select8(vecs[1], lanes), which);
                }
                let inside = _mm256_cmpeq_epi32(_mm256_min_epu32(lanes, last), lanes);
                _mm256_store_si256(to.add(k), _mm256_and_si256(_mm256_castps_si256(value), inside));
            }
        }
        return out;
    }
    for (value, lane) in out.0.iter_mut().zip(from.0) {
        if lane < size {
            // SAFETY: the lane is one of the wave, so the caller guarantees that its vector is readable.
            *value = unsafe { (*vecs[lane as usize / 32]).0[lane as usize % 32] };
        }
    }
    out
}

/// Returns eight lanes of a vector, selected by the low five bits of `lanes`.
///
/// # Safety
/// The vector is readable, and the host has AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn select8(vec: *const LaneVec, lanes: std::arch::x86_64::__m256i) -> std::arch::x86_64::__m256 {
    use std::arch::x86_64::*;
    // SAFETY: the caller guarantees AVX2 and the vector; a lane vector is four aligned SIMD vectors.
    unsafe {
        let part = |k: usize| {
            let lanes = _mm256_permutevar8x32_epi32(_mm256_load_si256(vec.cast::<__m256i>().add(k)), lanes);
            _mm256_castsi256_ps(lanes)
        };
        // Bits 3 and 4 of the lane select one of the four, as sign bits.
        let odd = _mm256_castsi256_ps(_mm256_slli_epi32::<28>(lanes));
        let upper = _mm256_castsi256_ps(_mm256_slli_epi32::<27>(lanes));
        let [low, high] = [_mm256_blendv_ps(part(0), part(1), odd), _mm256_blendv_ps(part(2), part(3), odd)];
        _mm256_blendv_ps(low, high, upper)
    }
}

/// The register whose lanes are moved.
#[derive(Clone, Copy)]
pub enum MoveSource {
    /// The first register of an operand.
    Operand(Source),
    /// The VGPR with a number that the body computed.
    Vgpr(u32),
}

/// A move of values between lanes, to an existing VGPR of the wave. [`pull`] and [`push`] create it.
#[derive(Clone, Copy)]
pub struct LaneMove {
    /// The lane vector, in the file of each half, that has the values.
    from: usize,
    /// The VGPR that receives the values.
    to: usize,
    /// Inactive lanes may be sources.
    fetch: bool,
    /// A lane whose source is inactive receives zero; otherwise it keeps its value.
    bound: bool,
    /// All lanes are active.
    full: bool,
}

/// Hidden lane vector with a copy of an operand that is not a register.
const COPY: usize = STAGE;
/// Hidden lane vector with the new values of the destination.
const NEW: usize = STAGE + 1;
/// Hidden lane vector with the mask of the lanes that are written.
const WRITE_MASK: usize = STAGE + 2;
/// Hidden lane vector with the numbers of the lanes that values are sent to.
const TARGETS: usize = STAGE + 3;

/// Returns the lane vector, in the file of each half, that has the values.
#[inline(always)]
fn source_vec(cx: &Cx<'_>, source: MoveSource) -> usize {
    match source {
        MoveSource::Operand(source) if source.is_vector() && (source.number() as usize) < ALL_VGPRS => {
            source.number() as usize
        }
        MoveSource::Operand(source) => copy_operand(cx, source),
        MoveSource::Vgpr(number) if cx.wave.has_vgpr(number) => number as usize,
        MoveSource::Vgpr(_) => 0,
    }
}

/// Copies an operand to hidden lane vectors.
#[cold]
#[inline(never)]
fn copy_operand(cx: &Cx<'_>, source: Source) -> usize {
    for half in 0..cx.wave.halves() {
        // SAFETY: the file of every half has the hidden vector (W1), and nothing else refers to it.
        let copy = unsafe { &mut *cx.wave.half(half).at(COPY) };
        for (lane, value) in copy.0.iter_mut().enumerate() {
            *value = operand_lane(cx, source, (32 * half + lane) as u32, 0);
        }
    }
    COPY
}

/// Prepares a move in which lanes take values. Returns `None` if the wave does not have the destination.
#[inline(always)]
pub fn pull(cx: &Cx<'_>, source: MoveSource, fetch: bool, bound: bool, to: u32) -> Option<LaneMove> {
    let full = cx.wave.exec() == cx.wave.full_mask();
    cx.wave.has_vgpr(to).then(|| LaneMove {
        from: source_vec(cx, source),
        to: to as usize,
        fetch,
        bound,
        full,
    })
}

/// Prepares a move in which lanes send values. Returns `None` if the wave does not have the destination.
#[inline(always)]
pub fn push(cx: &Cx<'_>, source: MoveSource, to: u32) -> Option<LaneMove> {
    pull(cx, source, true, true, to)
}

/// Gives each lane of a half the value of the lane that `from` selects. The caller calls it for each half, in
/// order.
///
/// # Safety
/// The host has AVX2, and `pull` returned the move for the current operation.
#[inline(always)]
pub unsafe fn pull_lanes(cx: &mut Cx<'_>, lane_move: LaneMove, half: usize, from: &LaneVec) {
    let file = cx.wave.half(half);
    // SAFETY: the wave has both vectors of the move, so its files contain them (W1); nothing else refers to
    // them. The caller guarantees AVX2.
    unsafe {
        if lane_move.full
            && cx.wave.halves() == 1
            && let Some(new) = gather_within_half(file.at(lane_move.from), from, 0)
        {
            file.set_no_denormals(lane_move.to, false);
            *file.at(lane_move.to) = new;
            return;
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(host) = cx.fast.and_then(Avx2::avx512) {
            return avx512::pull_lanes(host, cx, lane_move, half, from);
        }
        pull_slow(cx, lane_move, half, from);
    }
}

/// Returns the lanes of a half that `from` selects, or `None` if some of them are outside the half, which
/// starts at lane `first`.
///
/// # Safety
/// The vector is readable, and the host has AVX2.
#[inline(always)]
unsafe fn gather_within_half(vec: *const LaneVec, from: &LaneVec, first: u32) -> Option<LaneVec> {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        let mut out = LaneVec::ZERO;
        // SAFETY: the caller guarantees AVX2 and the vector; a lane vector is four aligned SIMD vectors.
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
                let selected = select8(vec, lanes(k));
                _mm256_store_ps(out.0.as_mut_ptr().cast::<f32>().add(8 * k), selected);
            }
        }
        Some(out)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let inside = from.0.iter().all(|lane| lane ^ first < 32);
        // SAFETY: the caller guarantees that the vector is readable.
        inside.then(|| LaneVec(from.0.map(|lane| unsafe { (&(*vec).0)[(lane ^ first) as usize] })))
    }
}

/// Slow path of [`pull_lanes`]: any wave size, any EXEC.
///
/// # Safety
/// As for [`pull_lanes`].
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[inline(never)]
unsafe fn pull_slow(cx: &mut Cx<'_>, lane_move: LaneMove, half: usize, from: &LaneVec) {
    let files = [0, 1].map(|half| cx.wave.half(half));
    // SAFETY: the wave has both vectors of the move, so its files contain them, and the hidden ones (W1);
    // nothing else refers to them. The caller guarantees AVX2.
    unsafe {
        let within = gather_within_half(files[half & 1].at(lane_move.from), from, 32 * half as u32);
        let mut new = match within {
            Some(new) => new,
            None => {
                let vecs = files.map(|file| file.at(lane_move.from).cast_const());
                gather_lanes::<true>(vecs, from, cx.wave.size())
            }
        };
        let whole = lane_move.full && (lane_move.fetch || lane_move.bound);
        if !whole {
            let mut mask = files[half & 1].mask();
            if !(lane_move.fetch || lane_move.full && within.is_some()) {
                let active = gather_lanes::<true>(cx.wave.mask_ptrs(), from, cx.wave.size());
                let bound = if lane_move.bound { u32::MAX } else { 0 };
                for l in 0..32 {
                    new.0[l] &= active.0[l];
                    mask.0[l] &= active.0[l] | bound;
                }
            }
            *files[half & 1].at(WRITE_MASK) = mask;
        }
        *files[half & 1].at(NEW) = new;
        if half + 1 == cx.wave.halves() {
            write_halves(cx, lane_move.to, whole);
        }
    }
}

/// Sends the value of each active lane of a half to the lane that `targets` selects. If several lanes send to
/// one, the value of the highest lane arrives. After the last half, each active lane receives the value sent
/// to it, or zero. The caller calls it for each half, in order.
///
/// # Safety
/// The host has AVX2, and `push` returned the move for the current operation.
#[inline(always)]
pub unsafe fn push_lanes(cx: &mut Cx<'_>, lane_move: LaneMove, half: usize, targets: &LaneVec) {
    // SAFETY: the caller upholds the same contract.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if let Some(host) = cx.fast.and_then(Avx2::avx512) {
            return avx512::push_lanes(host, cx, lane_move, half, targets);
        }
        push_lanes_avx2(cx, lane_move, half, targets);
    }
}

/// [`push_lanes`] without AVX-512.
///
/// # Safety
/// As for [`push_lanes`].
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[inline(never)]
unsafe fn push_lanes_avx2(cx: &mut Cx<'_>, lane_move: LaneMove, half: usize, targets: &LaneVec) {
    let (halves, size) = (cx.wave.halves(), cx.wave.size());
    let files = [0, 1].map(|half| cx.wave.half(half));
    // SAFETY: the wave has both vectors of the move, so its files contain them, and the hidden ones (W1);
    // nothing else refers to them. The caller guarantees AVX2.
    unsafe {
        if halves == 1 {
            let file = files[0];
            let from = senders(targets, 0, file.exec());
            let new = gather_lanes::<true>([file.at(lane_move.from); 2], &from, 32);
            if lane_move.full {
                file.set_no_denormals(lane_move.to, false);
                *file.at(lane_move.to) = new;
                return;
            }
            *file.at(NEW) = new;
            *file.at(WRITE_MASK) = file.mask();
            return write_half(file, lane_move.to, false);
        }
        *files[half & 1].at(TARGETS) = *targets;
        if half + 1 < halves {
            return;
        }
        for to in 0..halves {
            let mut from = LaneVec([u32::MAX; 32]);
            for sender in 0..halves {
                let senders =
                    senders(&*files[sender & 1].at(TARGETS), 32 * to as u32, files[sender & 1].exec());
                for l in 0..32 {
                    let lane = senders.0[l] | (32 * sender as u32);
                    from.0[l] = if senders.0[l] == u32::MAX { from.0[l] } else { lane };
                }
            }
            let vecs = files.map(|file| file.at(lane_move.from).cast_const());
            *files[to & 1].at(NEW) = gather_lanes::<true>(vecs, &from, size);
            *files[to & 1].at(WRITE_MASK) = files[to & 1].mask();
        }
        write_halves(cx, lane_move.to, lane_move.full);
    }
}

/// Inverts lane numbers: returns, for each lane of the half that starts at `first`, the highest of 32 lanes
/// that is `active` and targets it, or [`u32::MAX`] if there is none. The inverse is computed in registers,
/// because a vector load after scattered stores would wait until all of them have completed.
///
/// # Safety
/// The host has AVX2.
#[inline(always)]
unsafe fn senders(targets: &LaneVec, first: u32, active: u32) -> LaneVec {
    let mut out = LaneVec([u32::MAX; 32]);
    #[cfg(not(target_arch = "x86_64"))]
    for (l, target) in targets.0.iter().enumerate() {
        if let Some(out) = out.0.get_mut((target ^ first) as usize)
            && active >> l & 1 == 1
        {
            *out = l as u32;
        }
    }
    // SAFETY: the caller guarantees AVX2; a lane vector is four aligned SIMD vectors.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::*;
        let part = |k: usize| {
            let targets = _mm256_load_si256(targets.0.as_ptr().cast::<__m256i>().add(k));
            // Clamped, because packing reads signed integers; numbers outside the half stay outside.
            let in_half = _mm256_xor_si256(targets, _mm256_set1_epi32(first as i32));
            _mm256_min_epu32(in_half, _mm256_set1_epi32(0x7f))
        };
        // All 32 numbers as bytes, that of lane 31 first. Packing leaves groups of four out of order.
        let [high, low] = [_mm256_packus_epi32(part(3), part(2)), _mm256_packus_epi32(part(1), part(0))];
        let bytes = _mm256_packus_epi16(high, low);
        let reversed = _mm256_set1_epi64x(0x0405_0607_0001_0203);
        let offsets = _mm256_setr_epi64x(0, 0x0808_0808_0808_0808, 0, 0x0808_0808_0808_0808);
        let bytes = _mm256_shuffle_epi8(bytes, _mm256_add_epi8(reversed, offsets));
        let bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(4, 0, 5, 1, 6, 2, 7, 3));
        // Masks of the lanes, from the highest down, whose number has bit 0, 1, 2, 3 or 4 set.
        let bits = [
            _mm256_movemask_epi8(_mm256_slli_epi16::<7>(bytes)),
            _mm256_movemask_epi8(_mm256_slli_epi16::<6>(bytes)),
            _mm256_movemask_epi8(_mm256_slli_epi16::<5>(bytes)),
            _mm256_movemask_epi8(_mm256_slli_epi16::<4>(bytes)),
            _mm256_movemask_epi8(_mm256_slli_epi16::<3>(bytes)),
        ];
        // For each of eight targets, the mask of the lanes whose number has the same low three bits.
        let number = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let inside = _mm256_cmpgt_epi8(_mm256_set1_epi8(32), bytes);
        let active = active.reverse_bits() as i32;
        let mut low = _mm256_set1_epi32(active & _mm256_movemask_epi8(inside));
        for (at, bits) in bits.into_iter().enumerate().take(3) {
            let bit = _mm256_set1_epi32(1 << at);
            let clear = _mm256_cmpeq_epi32(_mm256_and_si256(number, bit), _mm256_setzero_si256());
            low = _mm256_and_si256(low, _mm256_xor_si256(_mm256_set1_epi32(bits), clear));
        }
        for k in 0..4 {
            let high = [bits[3], bits[4]].into_iter().enumerate();
            let high = high.fold(!0, |high, (at, bits)| high & if k >> at & 1 == 1 { bits } else { !bits });
            let lanes = _mm256_and_si256(low, _mm256_set1_epi32(high));
            // The lowest set bit stands for the highest lane. Its number is the exponent after conversion to
            // float, which is exact. Bit 31 is negative: the difference saturates to lane 0.
            let lowest = _mm256_and_si256(lanes, _mm256_sub_epi32(_mm256_setzero_si256(), lanes));
            let exponent = _mm256_srli_epi32::<23>(_mm256_castps_si256(_mm256_cvtepi32_ps(lowest)));
            let highest = _mm256_subs_epu16(_mm256_set1_epi32(127 + 31), exponent);
            let none = _mm256_cmpeq_epi32(lanes, _mm256_setzero_si256());
            let to = out.0.as_mut_ptr().cast::<__m256i>().add(k);
            _mm256_store_si256(to, _mm256_or_si256(highest, none));
        }
    }
    out
}

/// Writes the new values to a VGPR of each half: in all lanes if `whole` is set, otherwise in those of the
/// write mask.
///
/// # Safety
/// The wave has this VGPR, and the hidden vectors are set.
#[inline(always)]
unsafe fn write_halves(cx: &Cx<'_>, register: usize, whole: bool) {
    for half in 0..cx.wave.halves() {
        // SAFETY: the caller upholds the same contract.
        unsafe { write_half(cx.wave.half(half), register, whole) };
    }
}

/// Performs [`write_halves`] in one half.
///
/// # Safety
/// As for [`write_halves`].
#[inline(always)]
unsafe fn write_half(file: Half, register: usize, whole: bool) {
    // SAFETY: the caller guarantees that the wave has the VGPR, so the file contains it, and the hidden
    // vectors (W1); nothing else refers to them.
    unsafe {
        file.set_no_denormals(register, false);
        let mut new = *file.at(NEW);
        if !whole {
            let (old, mask) = (*file.at(register), *file.at(WRITE_MASK));
            for l in 0..32 {
                new.0[l] = old.0[l] & !mask.0[l] | new.0[l] & mask.0[l];
            }
        }
        *file.at(register) = new;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares [`senders`] with a search from the highest lane down.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_highest_sender_is_selected() {
        #[target_feature(enable = "avx2")]
        unsafe fn fast(targets: &LaneVec, first: u32, active: u32) -> LaneVec {
            // SAFETY: the host has AVX2.
            unsafe { senders(targets, first, active) }
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
                let targets = LaneVec(std::array::from_fn(|l| pattern(l as u32)));
                for first in [0, 32] {
                    let sender = |to: u32| (0..32).rev().find(|l| active >> l & 1 == 1 && pattern(*l) == to);
                    let expected =
                        LaneVec(std::array::from_fn(|to| sender(first + to as u32).unwrap_or(u32::MAX)));
                    if Avx2::detect().is_some() {
                        // SAFETY: the host has AVX2.
                        assert_eq!(unsafe { fast(&targets, first, active) }, expected, "{active:#x}");
                    }
                }
            }
        }
    }

    /// Lane numbers in both halves, in one half, and outside the wave.
    #[test]
    fn lanes_are_gathered_by_number() {
        let vecs: [LaneVec; 2] = [100, 200].map(|first| LaneVec(std::array::from_fn(|l| first + l as u32)));
        let patterns: [fn(u32) -> u32; 5] =
            [|l| l, |l| 63 - l, |l| (l * 7) & 63, |l| l * 5, |l| if l == 3 { u32::MAX } else { l ^ 17 }];
        for (pattern, size) in patterns.into_iter().flat_map(|pattern| [(pattern, 32), (pattern, 64)]) {
            let from = LaneVec(std::array::from_fn(|l| pattern(l as u32)));
            let each = from.0.map(|l| if l < size { vecs[l as usize / 32].0[l as usize % 32] } else { 0 });
            let at = vecs.each_ref().map(std::ptr::from_ref);
            // SAFETY: both vectors are readable; `AVX2` is not set.
            assert_eq!(unsafe { gather_lanes::<false>(at, &from, size) }.0, each);
            if Avx2::detect().is_some() {
                #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
                unsafe fn fast(vecs: [*const LaneVec; 2], from: &LaneVec, size: u32) -> LaneVec {
                    // SAFETY: the caller passes readable vectors, on a host with AVX2.
                    unsafe { gather_lanes::<true>(vecs, from, size) }
                }
                // SAFETY: both vectors are readable, and the host has AVX2.
                assert_eq!(unsafe { fast(at, &from, size) }.0, each);
            }
        }
    }
}
