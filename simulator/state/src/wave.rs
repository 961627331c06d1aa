//! One wave: registers, lane masks, program counter.

use super::barrier::WAITS;
use super::file::{Files, Half, UNWRITTEN};
pub use super::file::{LANE_VECS, NO_DENORMALS};
#[cfg(target_arch = "x86_64")]
use super::host::Avx2;
pub use super::layout::{
    ALL_VGPRS, CONSTS, DISCARD, LaneVec, MAX_CONSTS, OPERAND_VECS, SCALAR_CONSTS, SCALARS, SGPRS, STAGE,
    STAGE_VECS, TEMP, VGPRS,
};
use crate::memory::HostRange;

/// The number of ranges that a wave caches, one for each operation modulo this number.
const RANGES: usize = 64;

pub use wavesim_isa::operand::{ACC, EXEC_HI, EXEC_LO, M0, NULL, TTMP, VCC_HI, VCC_LO};

/// Flags of a VGPR after [`Wave::reset`].
const INITIAL: u8 = NO_DENORMALS | UNWRITTEN;

/// Returns whether a word is a denormal as f32.
pub fn is_denormal(bits: u32) -> bool {
    (bits & 0x7f80_0000 == 0) & (bits & 0x007f_ffff != 0)
}

/// A wave. VGPRs are stored as structure of arrays; a wave64 has two halves with a file each.
#[derive(Clone)]
pub struct Wave {
    /// Number of register files: 1 or 2. Never changes, because handlers rely on the existence of the second
    /// half.
    halves: usize,
    /// Cached here because EXEC is written often, and building its masks uses vector instructions.
    #[cfg(target_arch = "x86_64")]
    avx2: Option<Avx2>,
    /// Number of VGPRs that the wave has.
    vgprs: u32,
    accumulation: bool,
    vectors: Files,
    /// Ranges of the last accesses, by operation, which memory instructions try first. All belong to the
    /// memory `ranges_of`.
    last_ranges: [HostRange; RANGES],
    /// [`Memory::id`](crate::memory::Memory::id) of the memory that `last_ranges` refer to.
    ranges_of: u64,
    /// The id of the program whose constants are installed ([`Wave::install`]).
    installed: u64,
    /// SGPRs by operand code (s0..s105, VCC, ttmp, null, M0, EXEC), then constants.
    pub sgprs: [u32; SGPRS + SCALAR_CONSTS],
    /// The scalar condition code: 0 or 1.
    pub scc: u32,
    /// Byte offset of the next instruction in the program's code.
    pub pc: u64,
    /// The MODE register.
    pub mode: u32,
    /// The register EXCP_FLAG_USER. No instruction raises a flag.
    pub exception_flags: u32,
    /// The register SCHED_MODE.
    pub scheduling_mode: u32,
    /// Index in the workgroup.
    pub id: u32,
    /// Coordinates of its workgroup in the grid: x, y, z.
    pub workgroup: [u32; 3],
    /// Base address of the code, as S_GETPC returns it.
    pub code_base: u64,
    /// The named barrier that the wave has joined; 0 for none.
    pub joined: u32,
    /// For each barrier, the number of completions that this wave has passed (see `state::barrier`); then what it has got at
    /// a resource of global wave sync (see `state::gws`).
    pub passed: [u32; WAITS],
}

/// The registers with which a wave starts; all others are zero.
pub struct StartState<'s> {
    pub exec: u64,
    /// SGPRs by operand code; EXEC is ignored.
    pub sgprs: &'s [u32; SGPRS],
    /// The VGPRs that are set.
    pub vgprs: &'s [usize],
    /// The lanes of each of them in the first half, then in the second one.
    pub lanes: &'s [[u32; 32]],
}

impl Wave {
    /// Creates a wave of 64 lanes, or of 32.
    pub fn new(size: u32) -> Wave {
        let halves = if size == 64 { 2 } else { 1 };
        let mut wave = Wave {
            halves,
            #[cfg(target_arch = "x86_64")]
            avx2: Avx2::detect(),
            vgprs: VGPRS as u32,
            accumulation: false,
            vectors: Files::new(halves),
            last_ranges: [HostRange::EMPTY; RANGES],
            ranges_of: 0,
            installed: 0,
            sgprs: [0; SGPRS + SCALAR_CONSTS],
            scc: 0,
            pc: 0,
            mode: 0xf0,
            exception_flags: 0,
            scheduling_mode: 0,
            id: 0,
            workgroup: [0; 3],
            code_base: 0,
            joined: 0,
            passed: [0; WAITS],
        };
        (0..halves).for_each(|half| wave.vectors.vecs_and_flags(half).1[..ALL_VGPRS].fill(INITIAL));
        wave.set_exec(u64::MAX);
        wave
    }

    /// Resets to the state of [`Wave::new`], with this EXEC.
    pub fn reset(&mut self, exec: u64) {
        self.reset_to(&StartState { exec, sgprs: &[0; SGPRS], vgprs: &[], lanes: &[] });
    }

    /// Resets to the state of [`Wave::new`], with these registers. Only VGPRs that were written are cleared: most waves
    /// use a dozen of 256.
    pub fn reset_to(&mut self, start: &StartState<'_>) {
        #[cfg(target_arch = "x86_64")]
        if self.avx2.is_some() {
            // SAFETY: `avx2` proves that the host has AVX2.
            return unsafe { self.reset_avx2(start) };
        }
        let written = |flags: &[u8; 32]| {
            let bits = flags.iter().enumerate().map(|(bit, flag)| u32::from(*flag != INITIAL) << bit);
            bits.fold(0, |bits, bit| bits | bit)
        };
        self.reset_by(start, |flags| flags.as_flattened().iter().all(|flag| *flag == INITIAL), written);
    }

    /// Without vector instructions of the host, this would take three times as long.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn reset_avx2(&mut self, start: &StartState<'_>) {
        use std::arch::x86_64::{
            __m256i, _mm256_and_si256, _mm256_cmpeq_epi8, _mm256_movemask_epi8, _mm256_set1_epi8,
        };
        let initial = _mm256_set1_epi8(INITIAL as i8);
        // SAFETY: both types have 32 bytes, and every bit pattern is valid for SIMD vectors.
        let vector = |flags: &[u8; 32]| unsafe { std::mem::transmute::<[u8; 32], __m256i>(*flags) };
        let written = |flags: __m256i| !_mm256_movemask_epi8(_mm256_cmpeq_epi8(flags, initial)) as u32;
        self.reset_by(
            start,
            // No other bits than those of `INITIAL` are ever set.
            |blocks| {
                let mut all = initial;
                for flags in blocks {
                    all = _mm256_and_si256(all, vector(flags));
                }
                written(all) == 0
            },
            |flags| written(vector(flags)),
        );
    }

    /// [`Wave::reset_to`], given functions that find written VGPRs by their flags: `none_written` returns whether none
    /// of several is, and `written` a bit for each of 32.
    #[inline(always)]
    fn reset_by(
        &mut self,
        start: &StartState<'_>,
        none_written: impl Fn(&[[u8; 32]]) -> bool,
        written: impl Fn(&[u8; 32]) -> u32,
    ) {
        for half in 0..self.halves {
            self.clear(half, &none_written, &written);
        }
        for (half, lanes) in (0..self.halves).zip(start.lanes.chunks(start.vgprs.len().max(1))) {
            let (vecs, flags) = self.vectors.vecs_and_flags(half);
            for (register, lanes) in start.vgprs.iter().zip(lanes) {
                vecs[..ALL_VGPRS][*register].0 = *lanes;
                flags[..ALL_VGPRS][*register] = 0;
            }
        }
        // One assignment of all would be a call.
        let (to, from) = (self.sgprs[..SGPRS].as_chunks_mut::<32>().0, start.sgprs.as_chunks::<32>().0);
        const { assert!(SGPRS == 4 * 32) };
        (to[0], to[1]) = (from[0], from[1]);
        (to[2], to[3]) = (from[2], from[3]);
        self.scc = 0;
        self.pc = 0;
        self.mode = 0xf0;
        (self.exception_flags, self.scheduling_mode) = (0, 0);
        self.joined = 0;
        self.passed = [0; WAITS];
        self.vgprs = VGPRS as u32;
        self.set_exec(start.exec);
    }

    /// Clears the VGPRs of a half that have been written. Most waves write none beyond v127.
    #[inline(always)]
    fn clear(
        &mut self,
        half: usize,
        none_written: impl Fn(&[[u8; 32]]) -> bool,
        written: impl Fn(&[u8; 32]) -> u32,
    ) {
        const { assert!(ALL_VGPRS.is_multiple_of(128)) };
        let (vecs, flags) = self.vectors.vecs_and_flags(half);
        let (first, others) = flags[..ALL_VGPRS].as_chunks_mut::<32>().0.split_at_mut(4);
        let (first_vecs, other_vecs) = vecs[..ALL_VGPRS].as_chunks_mut::<32>().0.split_at_mut(4);
        clear_written(first_vecs, first, &written);
        if !none_written(others) {
            clear_written(other_vecs, others, &written);
        }
        flags[ALL_VGPRS..CONSTS].fill(0);
        debug_assert!(vecs[..ALL_VGPRS].iter().all(|vec| *vec == LaneVec::ZERO));
    }

    /// Number of VGPRs allocated to the wave; all of them unless [`Wave::set_vgpr_count`] was called. Only
    /// register numbers that semantics compute are checked against it.
    pub fn vgpr_count(&self) -> u32 {
        self.vgprs
    }

    /// Sets whether computed register numbers may name accumulation VGPRs, all of which are then available.
    pub fn set_accumulation(&mut self, has: bool) {
        self.accumulation = has;
    }

    pub fn set_vgpr_count(&mut self, count: u32) {
        self.vgprs = count.clamp(1, ALL_VGPRS as u32);
    }

    /// Discards cached ranges if they belong to a memory other than this one.
    #[inline(always)]
    pub fn use_memory(&mut self, memory: u64) {
        if self.ranges_of != memory {
            self.forget_ranges(memory);
        }
    }

    #[cold]
    #[inline(never)]
    fn forget_ranges(&mut self, memory: u64) {
        self.ranges_of = memory;
        self.last_ranges = [HostRange::EMPTY; RANGES];
    }

    /// Returns the range that an operation last accessed, in the memory that [`Wave::use_memory`] was given.
    #[inline(always)]
    pub fn last_range(&self, operation: usize) -> &HostRange {
        &self.last_ranges[operation % RANGES]
    }

    /// Caches a range, unless it belongs to another memory, as the one that a watch substitutes does.
    ///
    /// # Safety
    /// The range is one of the memory with this id, which [`Wave::use_memory`] was given last before a handler
    /// reads the range.
    pub unsafe fn set_last_range(&mut self, operation: usize, memory: u64, range: HostRange) {
        if self.ranges_of == memory {
            self.last_ranges[operation % RANGES] = range;
        }
    }

    /// Copies a program's constants to the hidden registers, unless they are already there. `program` is its
    /// id, not 0.
    #[inline]
    pub fn install(&mut self, program: u64, consts: &[u32]) {
        if self.installed != program {
            self.installed = program;
            self.copy_constants(consts);
        }
    }

    fn copy_constants(&mut self, consts: &[u32]) {
        for half in self.vectors.chunks_exact_mut(LANE_VECS) {
            for (vec, value) in half[CONSTS..SCALARS].iter_mut().zip(consts) {
                *vec = LaneVec::splat(*value);
            }
        }
        for half in 0..self.halves {
            for (known, value) in self.vectors.vecs_and_flags(half).1[CONSTS..SCALARS].iter_mut().zip(consts)
            {
                *known = if is_denormal(*value) { 0 } else { NO_DENORMALS };
            }
        }
        for (scalar, value) in self.sgprs[SGPRS..].iter_mut().zip(consts) {
            *scalar = *value;
        }
    }

    /// Returns the file of a half; in a wave of 32 lanes, always the first one.
    #[inline(always)]
    pub fn half(&self, half: usize) -> Half {
        self.vectors.half(half)
    }

    /// Updates the flags after a write to a lane vector of a half.
    #[inline(always)]
    pub fn written(&mut self, half: usize, vec: usize) {
        if half < self.halves && vec < OPERAND_VECS {
            // SAFETY: the half and the vector are in bounds (W1).
            unsafe { self.half(half).set_no_denormals(vec, false) };
        }
    }

    /// Returns EXEC of a half as a lane mask: all ones or zero per lane.
    pub fn mask(&self, half: usize) -> LaneVec {
        // SAFETY: the file belongs to `self` (W1).
        unsafe { self.half(half).mask() }
    }

    /// Returns pointers to the lane masks of both halves; in a wave of 32, both point to the first one.
    #[inline(always)]
    pub fn mask_ptrs(&self) -> [*const LaneVec; 2] {
        [0, 1].map(|half| self.half(half).mask_ptr())
    }

    /// Returns whether any lane of a VGPR has been written since the wave started.
    pub fn is_written(&self, register: u32) -> bool {
        // SAFETY: the file belongs to `self` (W1).
        let unwritten = |half| unsafe { self.half(half).flags(register as usize) } & UNWRITTEN != 0;
        (register as usize) < ALL_VGPRS && !(0..self.halves).all(unwritten)
    }

    /// Size of the register files in bytes.
    pub fn file_bytes(&self) -> usize {
        size_of_val(&*self.vectors)
    }

    /// Number of lanes: 32 or 64.
    #[inline(always)]
    pub fn size(&self) -> u32 {
        32 * self.halves as u32
    }

    /// Number of register files: 1, or 2 in a wave of 64 lanes.
    pub fn halves(&self) -> usize {
        self.halves
    }

    /// Returns a mask of all lanes of the wave.
    pub fn full_mask(&self) -> u64 {
        if self.halves == 2 { u64::MAX } else { 0xffff_ffff }
    }

    /// Returns EXEC; the upper half is zero in wave32.
    pub fn exec(&self) -> u64 {
        let low = self.sgprs[EXEC_LO] as u64;
        if self.halves == 2 { low | (self.sgprs[EXEC_LO + 1] as u64) << 32 } else { low }
    }

    /// Writes EXEC (the low 32 bits in a wave of 32 lanes) and its lane masks.
    pub fn set_exec(&mut self, exec: u64) {
        self.sgprs[EXEC_LO] = exec as u32;
        if self.halves == 2 {
            self.sgprs[EXEC_LO + 1] = (exec >> 32) as u32;
        }
        self.rebuild_masks();
    }

    /// Rebuilds the lane masks after a write to the EXEC registers.
    #[inline]
    pub fn rebuild_masks(&mut self) {
        self.rebuild_mask(0);
        if self.halves == 2 {
            self.rebuild_mask(1);
        }
    }

    /// Rebuilds the lane mask of one half.
    #[inline]
    pub fn rebuild_mask(&mut self, half: usize) {
        #[cfg(target_arch = "x86_64")]
        if self.avx2.is_some() {
            // SAFETY: `avx2` proves that the host has AVX2.
            return unsafe { self.rebuild_mask_avx2(half) };
        }
        self.rebuild_mask_portable(half);
    }

    /// Without vector instructions, this would take a fifth of the time of a divergent loop.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn rebuild_mask_avx2(&mut self, half: usize) {
        // SAFETY: the file belongs to `self` (W1).
        unsafe { self.half(half).set_exec(self.sgprs[EXEC_LO + half % 2]) };
    }

    #[inline(never)]
    fn rebuild_mask_portable(&mut self, half: usize) {
        // SAFETY: the file belongs to `self` (W1).
        unsafe { self.half(half).set_exec(self.sgprs[EXEC_LO + half % 2]) };
    }

    /// Returns VCC; the upper half is zero in wave32.
    pub fn vcc(&self) -> u64 {
        let low = self.sgprs[VCC_LO] as u64;
        if self.halves == 2 { low | (self.sgprs[VCC_LO + 1] as u64) << 32 } else { low }
    }

    /// Returns one lane of a VGPR; 0 for a lane or register that does not exist.
    pub fn vgpr(&self, lane: u32, reg: u32) -> u32 {
        let half = (lane / 32) as usize;
        match self.vectors.get(half * LANE_VECS + reg as usize) {
            Some(vec) if (reg as usize) < ALL_VGPRS => vec.0[(lane % 32) as usize],
            _ => 0,
        }
    }

    /// Returns a VGPR by a computed number: v0 if the wave does not have that VGPR (RDNA manuals, *VGPR Out
    /// of Range Behavior*).
    pub fn indexed_vgpr(&self, lane: u32, reg: u32) -> u32 {
        self.vgpr(lane, if self.has_vgpr(reg) { reg } else { 0 })
    }

    /// Sets a VGPR by a computed number, if the wave has it.
    pub fn set_indexed_vgpr(&mut self, lane: u32, reg: u32, value: u32) {
        if self.has_vgpr(reg) {
            self.set_vgpr(lane, reg, value);
        }
    }

    /// Returns whether a computed number names one of the wave's VGPRs.
    #[inline(always)]
    pub fn has_vgpr(&self, reg: u32) -> bool {
        reg < self.vgprs || self.accumulation && (ACC..ACC + VGPRS).contains(&(reg as usize))
    }

    /// Returns the lanes of a VGPR in a half, if both exist.
    #[inline(always)]
    pub fn find_vgpr(&self, half: usize, reg: u32) -> Option<&LaneVec> {
        let vec = self.vectors.get(half * LANE_VECS + reg as usize)?;
        if reg as usize >= ALL_VGPRS { None } else { Some(vec) }
    }

    /// Returns the lanes of a VGPR with a computed number in a half, if the wave has both. After a write, call
    /// [`Wave::written`].
    #[inline(always)]
    pub fn find_own_vgpr(&mut self, half: usize, reg: u32) -> Option<&mut LaneVec> {
        if self.has_vgpr(reg) { self.vectors.get_mut(half * LANE_VECS + reg as usize) } else { None }
    }

    /// Returns the lanes of a VGPR in a half.
    pub fn lane_vec(&self, half: usize, reg: usize) -> &LaneVec {
        &self.vectors[half * LANE_VECS..][..ALL_VGPRS][reg]
    }

    /// Sets the lanes of a VGPR in a half.
    #[inline]
    pub fn set_lane_vec(&mut self, half: usize, reg: usize, vec: LaneVec) {
        self.vectors[half * LANE_VECS..][..ALL_VGPRS][reg] = vec;
        self.written(half, reg);
    }

    /// Sets one lane of a VGPR; ignored for a lane or register that does not exist.
    pub fn set_vgpr(&mut self, lane: u32, reg: u32, value: u32) {
        let half = (lane / 32) as usize;
        if (reg as usize) < ALL_VGPRS
            && let Some(vec) = self.vectors.get_mut(half * LANE_VECS + reg as usize)
        {
            vec.0[(lane % 32) as usize] = value;
            self.written(half, reg as usize);
        }
    }

    /// Reads a register by operand code. Codes beyond the file, and null, read zero.
    #[inline(always)]
    pub fn sgpr(&self, code: u32) -> u32 {
        if (code as usize) < SGPRS { self.sgprs[code as usize] } else { 0 }
    }

    /// Writes a register by operand code. Writes to null and to codes beyond the file are dropped.
    #[inline(always)]
    pub fn set_sgpr(&mut self, code: u32, value: u32) {
        let code = code as usize;
        if code < NULL {
            self.sgprs[code] = value;
        } else {
            self.set_special(code, value);
        }
    }

    /// Writes consecutive registers from an operand code on. A wide write to null does not write M0, which
    /// follows it.
    #[inline(always)]
    pub fn set_sgprs(&mut self, code: u32, count: u32, value: u128) {
        if code as usize == NULL {
            return;
        }
        for k in 0..count {
            self.set_sgpr(code + k, (value >> (32 * k)) as u32);
        }
    }

    #[inline]
    fn set_special(&mut self, code: usize, value: u32) {
        if code == NULL || code >= SGPRS {
            return;
        }
        self.sgprs[code] = value;
        if code >= EXEC_LO && code - EXEC_LO < self.halves {
            self.rebuild_mask(code - EXEC_LO);
        }
    }
}

/// Clears the VGPRs that have been written, of several blocks of 32.
#[inline(always)]
fn clear_written(vecs: &mut [[LaneVec; 32]], flags: &mut [[u8; 32]], written: impl Fn(&[u8; 32]) -> u32) {
    for (flags, vecs) in flags.iter_mut().zip(vecs) {
        let mut written = written(flags);
        if written == 0 {
            continue;
        }
        while written != 0 {
            vecs[written.trailing_zeros() as usize % 32] = LaneVec::ZERO;
            written &= written - 1;
        }
        *flags = [INITIAL; 32];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The copy has every vector and flag, although vectors that nothing has written are not read.
    #[test]
    fn a_copy_is_equal() {
        for size in [32, 64] {
            let mut wave = Wave::new(size);
            for (lane, register) in [(0, 0), (31, 7), (5, 255), (size - 1, ALL_VGPRS as u32 - 1)] {
                wave.set_vgpr(lane, register, 0xdead_0000 | register);
            }
            wave.set_exec(0x5555_0000_ffff_1234);
            let copy = wave.clone();
            assert!(*wave.vectors == *copy.vectors, "wave{size}");
            assert_eq!(copy.vgpr(size - 1, ALL_VGPRS as u32 - 1), 0xdead_03ff);
        }
    }

    /// A wave that starts again has nothing of the one before, whatever finds the registers that it has written.
    #[test]
    fn a_reset_wave_is_a_new_one() {
        for (size, vectors) in [(32, true), (32, false), (64, true), (64, false)] {
            let mut wave = Wave::new(size);
            #[cfg(target_arch = "x86_64")]
            if !vectors {
                wave.avx2 = None;
            }
            for register in [0, 1, 31, 32, 127, 128, 255, 256, 700, ALL_VGPRS as u32 - 1] {
                for lane in [0, size - 1] {
                    wave.set_vgpr(lane, register, register + 1);
                }
                assert!(wave.is_written(register));
            }
            wave.set_exec(5);
            wave.reset(u64::MAX);
            let new = Wave::new(size);
            assert!(*wave.vectors == *new.vectors, "wave{size}, vectors: {vectors}");
            assert!((0..ALL_VGPRS as u32).all(|register| !wave.is_written(register)));
            // Nor has it other registers than those that it starts with.
            let (sgprs, exec) = (std::array::from_fn(|code| code as u32), 0x5555_0000_0000_1234);
            let lanes: Vec<[u32; 32]> = (0..2 * new.halves() as u32)
                .map(|k| std::array::from_fn(|lane| 100 * k + lane as u32))
                .collect();
            wave.set_vgpr(3, 9, 1);
            wave.reset_to(&StartState { exec, sgprs: &sgprs, vgprs: &[2, 700], lanes: &lanes });
            let mut expected = Wave::new(size);
            for (k, lanes) in lanes.iter().enumerate() {
                expected.set_lane_vec(k / 2, [2, 700][k % 2], LaneVec(*lanes));
            }
            expected.set_exec(exec);
            assert!(*wave.vectors == *expected.vectors, "wave{size}, vectors: {vectors}");
            assert_eq!(wave.sgprs[..EXEC_LO], sgprs[..EXEC_LO]);
            assert_eq!((wave.exec(), wave.pc), (expected.exec(), 0));
        }
    }

    /// A copy in the memory of a wave that this thread has dropped holds nothing of it.
    #[test]
    fn a_copy_in_used_memory_is_equal() {
        for size in [32, 64] {
            let fresh = Wave::new(size);
            let mut used = fresh.clone();
            for register in [0, 9, 300] {
                used.set_vgpr(size - 1, register, u32::MAX);
            }
            used.set_exec(0);
            let mut wave = Wave::new(size);
            wave.set_vgpr(3, 9, 7);
            for _ in 0..3 {
                drop(used);
                used = wave.clone();
                assert!(*wave.vectors == *used.vectors, "wave{size}");
                used.set_vgpr(0, 20, 1);
                used.set_vgpr(1, 9, 2);
                drop(used);
                used = fresh.clone();
                assert!(*fresh.vectors == *used.vectors, "wave{size}");
                used.set_vgpr(size - 1, 0, 1);
            }
        }
    }
}
