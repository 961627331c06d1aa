//! Moves between lanes by AVX-512: one instruction selects sixteen lanes from two vectors of sixteen, masks of
//! lanes have registers of their own, and the highest bit of a mask is counted directly. Moves in waves of 64
//! take a third of their time by AVX2.

use super::{LaneMove, NEW, TARGETS, WRITE_MASK};
use crate::context::Cx;
use std::arch::x86_64::*;
use wavesim_state::host::Avx512;
use wavesim_state::{Half, LaneVec};

/// As [`super::pull_lanes`].
///
/// # Safety
/// As for [`super::pull_lanes`]; the host has AVX-512.
#[target_feature(enable = "avx512f,avx512bw")]
pub unsafe fn pull_lanes(_: Avx512, cx: &mut Cx<'_>, lane_move: LaneMove, half: usize, from: &LaneVec) {
    let files = [0, 1].map(|half| cx.wave.half(half));
    let (file, exec, size) = (files[half & 1], cx.wave.exec(), cx.wave.size());
    let mut new = [_mm512_setzero_si512(); 2];
    let mut written = 0;
    for (k, new) in new.iter_mut().enumerate() {
        // SAFETY: the wave has both vectors of the move, so its files contain them (W1); a lane vector is two
        // aligned vectors of sixteen lanes.
        let from = unsafe { load(from, k) };
        // SAFETY: as above.
        let value = unsafe { select(files, lane_move.from, from, size) };
        let inside = _mm512_cmplt_epu32_mask(from, _mm512_set1_epi32(size as i32));
        let active = match (lane_move.fetch, lane_move.full) {
            (true, _) => u16::MAX,
            (false, true) => inside,
            (false, false) => active(exec, from) & inside,
        };
        *new = _mm512_maskz_mov_epi32(inside & active, value);
        let keep = if lane_move.bound { 0 } else { !active };
        written |= ((exec >> (32 * half + 16 * k)) as u16 & !keep) as u32 * (1 << (16 * k));
    }
    // SAFETY: the file contains the vectors, and the hidden ones (W1); nothing else refers to them.
    unsafe {
        if half + 1 < cx.wave.halves() {
            // All lanes read before any of them is written.
            store(&mut *file.at(NEW), new, u32::MAX);
            (*file.at(WRITE_MASK)).0[0] = written;
            return;
        }
        if half == 1 {
            let first = files[0];
            let new = [0, 1].map(|k| load(&*first.at(NEW), k));
            write(first, lane_move.to, new, (*first.at(WRITE_MASK)).0[0]);
        }
        write(file, lane_move.to, new, written);
    }
}

/// As [`super::push_lanes`].
///
/// # Safety
/// As for [`super::push_lanes`]; the host has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512cd")]
pub unsafe fn push_lanes(_: Avx512, cx: &mut Cx<'_>, lane_move: LaneMove, half: usize, targets: &LaneVec) {
    let files = [0, 1].map(|half| cx.wave.half(half));
    let (exec, halves) = (cx.wave.exec(), cx.wave.halves());
    // SAFETY: the wave has both vectors of the move, so its files contain them, and the hidden ones (W1);
    // nothing else refers to them.
    unsafe {
        if half + 1 < halves {
            store(&mut *files[0].at(TARGETS), [0, 1].map(|k| load(targets, k)), u32::MAX);
            return;
        }
        let mut new = [[_mm512_setzero_si512(); 2]; 2];
        if halves == 1 {
            let from = senders(targets, exec as u32);
            new[0] = from.map(|from| receive(files, lane_move.from, from, 32));
        } else {
            let from = senders_of_64([&*files[0].at(TARGETS), targets], exec);
            new = from.map(|from| from.map(|from| receive(files, lane_move.from, from, 64)));
        }
        for (half, new) in new.into_iter().enumerate().take(halves) {
            write(files[half], lane_move.to, new, (exec >> (32 * half)) as u32);
        }
    }
}

/// Returns sixteen lanes of a lane vector. They are loaded as two vectors of eight: processors forward stores to
/// loads that they contain, and handlers store vectors of eight lanes. The loads are volatile, or the compiler
/// would merge them.
///
/// # Safety
/// The vector is readable.
#[target_feature(enable = "avx512f")]
unsafe fn load(vec: *const LaneVec, k: usize) -> __m512i {
    // SAFETY: the caller guarantees the vector, which is four aligned vectors of eight lanes.
    unsafe {
        let eight = |at: usize| vec.cast::<__m256i>().add(at).read_volatile();
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(eight(2 * k)), eight(2 * k + 1))
    }
}

/// Stores the lanes that `mask` selects.
#[target_feature(enable = "avx512f")]
fn store(to: &mut LaneVec, lanes: [__m512i; 2], mask: u32) {
    for (k, lanes) in lanes.into_iter().enumerate() {
        // SAFETY: `to` is a reference to two aligned vectors of sixteen lanes.
        unsafe {
            let lanes = match mask {
                u32::MAX => lanes,
                _ => _mm512_mask_mov_epi32(load(to, k), (mask >> (16 * k)) as u16, lanes),
            };
            _mm512_store_si512(std::ptr::from_mut(to).cast::<__m512i>().add(k), lanes);
        }
    }
}

/// Writes the lanes that `mask` selects to a VGPR of a half.
///
/// # Safety
/// The file contains the VGPR, and nothing else refers to it.
#[target_feature(enable = "avx512f")]
unsafe fn write(file: Half, register: usize, lanes: [__m512i; 2], mask: u32) {
    // SAFETY: the caller upholds the same contract.
    unsafe {
        file.set_no_denormals(register, false);
        store(&mut *file.at(register), lanes, mask);
    }
}

/// Returns the lanes of a vector, in the files of both halves, that the low bits of `from` select.
///
/// # Safety
/// The files contain the vector.
#[target_feature(enable = "avx512f")]
unsafe fn select(files: [Half; 2], vec: usize, from: __m512i, size: u32) -> __m512i {
    // SAFETY: the caller upholds the same contract.
    unsafe {
        let half = |half: usize| {
            let vec = files[half].at(vec);
            _mm512_permutex2var_epi32(load(vec, 0), from, load(vec, 1))
        };
        if size <= 32 {
            return half(0);
        }
        let second = _mm512_test_epi32_mask(from, _mm512_set1_epi32(32));
        _mm512_mask_mov_epi32(half(0), second, half(1))
    }
}

/// Returns which of the lanes that the low six bits of `from` select are active.
#[target_feature(enable = "avx512f")]
fn active(exec: u64, from: __m512i) -> u16 {
    let low_bits = _mm512_and_si512(from, _mm512_set1_epi32(31));
    let half = |exec: u64| _mm512_srlv_epi32(_mm512_set1_epi32(exec as i32), low_bits);
    let second = _mm512_test_epi32_mask(from, _mm512_set1_epi32(32));
    let bit = _mm512_mask_mov_epi32(half(exec), second, half(exec >> 32));
    _mm512_test_epi32_mask(bit, _mm512_set1_epi32(1))
}

/// Returns the values of the lanes that `from` numbers; zero where it is [`u32::MAX`].
///
/// # Safety
/// The files contain the vector.
#[target_feature(enable = "avx512f")]
unsafe fn receive(files: [Half; 2], vec: usize, from: __m512i, size: u32) -> __m512i {
    // SAFETY: the caller upholds the same contract.
    let value = unsafe { select(files, vec, from, size) };
    _mm512_maskz_mov_epi32(_mm512_cmpge_epi32_mask(from, _mm512_setzero_si512()), value)
}

/// Numbers of lanes as masks: for each bit of the numbers, the mask of the lanes whose number has it set.
struct Planes([u64; 6]);

impl Planes {
    /// Returns the masks for the numbers of 64 lanes in bytes, and the mask of the lanes whose number is below
    /// `size`.
    #[target_feature(enable = "avx512bw")]
    fn new(bytes: __m512i, size: u32) -> (Planes, u64) {
        let plane = |bit: u32| _mm512_test_epi8_mask(bytes, _mm512_set1_epi8(1 << bit));
        let inside = _mm512_cmplt_epu8_mask(bytes, _mm512_set1_epi8(size as i8));
        (Planes([plane(0), plane(1), plane(2), plane(3), plane(4), plane(5)]), inside)
    }

    /// Returns the mask of the lanes whose number equals `number` in the bits from `first` to `last`.
    fn equal(&self, number: usize, first: usize, last: usize) -> u64 {
        let planes = self.0.iter().enumerate().take(last + 1).skip(first);
        planes.fold(!0, |lanes, (bit, plane)| lanes & if number >> bit & 1 == 1 { *plane } else { !plane })
    }
}

/// Inverts lane numbers: returns, for each lane, the highest lane that is `active` and targets it, or
/// [`u32::MAX`] if there is none.
#[target_feature(enable = "avx512f,avx512bw,avx512cd")]
fn senders(targets: &LaneVec, active: u32) -> [__m512i; 2] {
    // SAFETY: `targets` is a reference.
    let bytes = |k: usize| unsafe { _mm512_cvtusepi32_epi8(load(targets, k)) };
    let bytes = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(bytes(0)), bytes(1));
    let (planes, inside) = Planes::new(bytes, 32);
    // For each of sixteen targets, the mask of the lanes whose number has the same low four bits.
    let number = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let mut low = _mm512_set1_epi32((active as u64 & inside) as i32);
    for bit in 0..4 {
        let set = _mm512_test_epi32_mask(number, _mm512_set1_epi32(1 << bit));
        let plane = _mm512_set1_epi32(planes.0[bit] as i32);
        // Sets the bits that differ, then clears them.
        let differs = _mm512_xor_si512(plane, _mm512_maskz_set1_epi32(set, -1));
        low = _mm512_andnot_si512(differs, low);
    }
    [0, 16].map(|first| {
        let lanes = _mm512_and_si512(low, _mm512_set1_epi32(planes.equal(first, 4, 4) as i32));
        _mm512_sub_epi32(_mm512_set1_epi32(31), _mm512_lzcnt_epi32(lanes))
    })
}

/// As [`senders`], for the lanes of both halves of a wave of 64.
#[target_feature(enable = "avx512f,avx512bw,avx512cd")]
fn senders_of_64(targets: [&LaneVec; 2], active: u64) -> [[__m512i; 2]; 2] {
    // SAFETY: `targets` are references.
    let bytes = |half: usize, k: usize| unsafe { _mm512_cvtusepi32_epi8(load(targets[half], k)) };
    let low = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(bytes(0, 0)), bytes(0, 1));
    let bytes = _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(low, bytes(1, 0)), bytes(1, 1));
    let (planes, inside) = Planes::new(bytes, 64);
    // For each of eight targets, the mask of the lanes whose number has the same low three bits.
    let number = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    let mut low = _mm512_set1_epi64((active & inside) as i64);
    for bit in 0..3 {
        let set = _mm512_test_epi64_mask(number, _mm512_set1_epi64(1 << bit));
        let plane = _mm512_set1_epi64(planes.0[bit] as i64);
        let differs = _mm512_xor_si512(plane, _mm512_maskz_set1_epi64(set, -1));
        low = _mm512_andnot_si512(differs, low);
    }
    let eight = |first: usize| {
        let lanes = _mm512_and_si512(low, _mm512_set1_epi64(planes.equal(first, 3, 5) as i64));
        _mm512_cvtepi64_epi32(_mm512_lzcnt_epi64(lanes))
    };
    let sixteen = |first| {
        let zeros = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(eight(first)), eight(first + 8));
        _mm512_sub_epi32(_mm512_set1_epi32(63), zeros)
    };
    [[sixteen(0), sixteen(16)], [sixteen(32), sixteen(48)]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavesim_state::host::Avx2;

    fn lanes(vectors: &[__m512i]) -> Vec<u32> {
        // SAFETY: both types are 64 bytes without padding.
        vectors
            .iter()
            .flat_map(|vector| unsafe { std::mem::transmute::<__m512i, [u32; 16]>(*vector) })
            .collect()
    }

    /// Compares both inversions with a search from the highest lane down.
    #[test]
    fn the_highest_sender_is_selected() {
        if Avx2::detect().and_then(Avx2::avx512).is_none() {
            println!("skipped: this host has no AVX-512");
            return;
        }
        let patterns: [fn(u32) -> u32; 6] = [
            |l| l,
            |l| 63 - l,
            |l| (l * 11) & 63,
            |l| l * 4,
            |_| 31,
            |l| if l == 9 { u32::MAX } else { (l * l * 7 / 3) & 63 },
        ];
        let masks = [u64::MAX, 0, 1, 1 << 63, 1 << 31, 0x5555_5555_5555_5555, 0x0ff0_0ff0_c000_0001];
        for (pattern, active) in patterns.into_iter().flat_map(|pattern| masks.map(|mask| (pattern, mask))) {
            let targets = [0, 32].map(|first| LaneVec(std::array::from_fn(|l| pattern(first + l as u32))));
            let expected = |size: u32| -> Vec<u32> {
                let sends = |l: &u32, to| active >> l & 1 == 1 && pattern(*l) == to;
                (0..size).map(|to| (0..size).rev().find(|l| sends(l, to)).unwrap_or(u32::MAX)).collect()
            };
            // SAFETY: the host has AVX-512.
            let (of_32, of_64) = unsafe {
                (senders(&targets[0], active as u32), senders_of_64([&targets[0], &targets[1]], active))
            };
            assert_eq!(lanes(&of_32), expected(32), "{active:#x}");
            assert_eq!(lanes(of_64.as_flattened()), expected(64), "{active:#x}");
        }
    }
}
