//! One wave: registers, masks, program counter.

use super::barrier::NAMED;
use super::file::{Files, Half, UNWRITTEN};
pub use super::file::{LANE_VECS, NO_DENORMALS};
#[cfg(target_arch = "x86_64")]
use super::host::Avx2;
use crate::memory::HostRange;

/// One 32-lane half of a VGPR: the unit handlers work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct LaneVec(pub [u32; 32]);

impl LaneVec {
    /// Zero in every lane.
    pub const ZERO: LaneVec = LaneVec([0; 32]);

    /// The value in every lane.
    #[inline(always)]
    pub fn splat(value: u32) -> LaneVec {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::_mm_set1_epi32;
            // Vectors from the start: the compiler makes 32 stores of the array.
            // SAFETY: SSE2 is part of the architecture; any bits are a lane vector.
            unsafe { std::mem::transmute([_mm_set1_epi32(value as i32); 8]) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        LaneVec([value; 32])
    }
}

/// Architectural VGPRs.
pub const VGPRS: usize = 256;

/// Accumulation VGPRs, which only CDNA has. Number [`ACC`] of the file is the first.
pub const ACC_VGPRS: usize = 256;
/// VGPRs of both kinds.
pub const ALL_VGPRS: usize = VGPRS + ACC_VGPRS;
const _: () = assert!(ACC == VGPRS);

/// Lane vectors of a half that operations can number: the VGPRs of both kinds, then hidden ones: [`DISCARD`], temporaries of split
/// instructions, staged sources, the program's first constants, and SGPRs.
pub const ROWS: usize = SCALARS + SGPRS + STAGE_VECS;
/// Hidden lane vectors for sources that are in none, [`STAGE_VECS`] for each of four.
pub const STAGE: usize = ALL_VGPRS + 16;
pub const STAGE_VECS: usize = 4;
/// Hidden lane vectors for the program's constants.
pub const CONSTS: usize = STAGE + 4 * STAGE_VECS;
/// Constants beyond these are read from the program's own table.
pub const MAX_CONSTS: usize = 256;
/// Hidden lane vectors with copies of SGPRs, by operand code: the SGPR's value when a lane handler last read it. Most have not changed since.
/// (Some more, for a wide source that begins with the last SGPR.)
pub const SCALARS: usize = CONSTS + MAX_CONSTS;

/// Where dropped results go (an atomic without return): 4 lane vectors.
pub const DISCARD: usize = ALL_VGPRS;

/// Temporaries for instructions that run as several operations (VOPD): 4 lane vectors.
pub const TEMP: usize = ALL_VGPRS + 4;

/// Length of [`Wave::last_addresses`].
pub const LAST_ADDRESSES: usize = 64;

/// Operand codes of the SGPR file.
pub const SGPRS: usize = 128;
/// Hidden words after them, for constants of the program's scalar instructions; further ones are read from its own table.
pub const SCALAR_CONSTS: usize = 128;

pub use wavesim_isa::operand::{ACC, EXEC_HI, EXEC_LO, M0, NULL, TTMP, VCC_HI, VCC_LO};

/// Of a VGPR, after [`Wave::reset`].
const INITIAL: u8 = NO_DENORMALS | UNWRITTEN;

/// Whether a word as f32 is a denormal.
pub fn is_denormal(bits: u32) -> bool {
    (bits & 0x7f80_0000 == 0) & (bits & 0x007f_ffff != 0)
}

/// A wave. VGPRs are structure-of-arrays; a wave64 has two halves, each a file of its own.
#[derive(Clone)]
pub struct Wave {
    /// Files of 32 lanes: 1 or 2. Fixed, because handlers take it that the file of the second half exists.
    halves: usize,
    /// Kept here because EXEC is written often, and its masks are built by vector instructions.
    #[cfg(target_arch = "x86_64")]
    avx2: Option<Avx2>,
    /// VGPRs that it has.
    vgprs: u32,
    accumulation: bool,
    pub(crate) vectors: Files,
    /// Where memory instructions last went, by operation modulo the length: a hint for the host's caches, no state of the machine.
    pub last_addresses: [u64; LAST_ADDRESSES],
    /// Ranges that memory instructions last accessed, likewise by operation: where they look first. Of the memory `ranges_of` alone.
    last_ranges: [HostRange; LAST_ADDRESSES],
    /// [`Memory::id`](crate::memory::Memory::id) of the memory that `last_ranges` are ranges of.
    ranges_of: u64,
    /// The program whose constants are installed ([`Wave::install`]).
    installed: u64,
    /// By operand code: s0..s105, VCC, ttmp, null, M0, EXEC; then constants.
    pub sgprs: [u32; SGPRS + SCALAR_CONSTS],
    /// The scalar condition code: 0 or 1.
    pub scc: u32,
    /// Byte offset of the next instruction in the program's code.
    pub pc: u64,
    /// MODE register.
    pub mode: u32,
    /// Index in the workgroup.
    pub id: u32,
    /// Coordinates of its workgroup in the grid: x, y, z.
    pub workgroup: [u32; 3],
    /// Base address of the code, as S_GETPC sees it.
    pub code_base: u64,
    /// Named barrier joined, 0 for none.
    pub joined: u32,
    /// Completions of each barrier that this wave has waited for (`machine::barrier`).
    pub passed: [u32; NAMED + 1],
}

impl Wave {
    /// A wave of 64 lanes, or of 32.
    pub fn new(size: u32) -> Wave {
        let halves = if size == 64 { 2 } else { 1 };
        let mut wave = Wave {
            halves,
            #[cfg(target_arch = "x86_64")]
            avx2: Avx2::detect(),
            vgprs: VGPRS as u32,
            accumulation: false,
            vectors: Files::new(halves),
            last_addresses: [0; LAST_ADDRESSES],
            last_ranges: [HostRange::EMPTY; LAST_ADDRESSES],
            ranges_of: 0,
            installed: 0,
            sgprs: [0; SGPRS + SCALAR_CONSTS],
            scc: 0,
            pc: 0,
            mode: 0xf0,
            id: 0,
            workgroup: [0; 3],
            code_base: 0,
            joined: 0,
            passed: [0; NAMED + 1],
        };
        (0..halves).for_each(|half| wave.vectors.parts(half).1[..ALL_VGPRS].fill(INITIAL));
        wave.set_exec(u64::MAX);
        wave
    }

    /// Back to the state of [`Wave::new`]. Only registers that were written are cleared: most waves have a dozen of 256.
    pub fn reset(&mut self) {
        (0..self.halves).for_each(|half| self.clear(half));
        self.sgprs[..SGPRS].fill(0);
        self.scc = 0;
        self.pc = 0;
        self.mode = 0xf0;
        self.joined = 0;
        self.passed = [0; NAMED + 1];
        self.vgprs = VGPRS as u32;
        self.set_exec(u64::MAX);
    }

    /// Clears the VGPRs of a half.
    fn clear(&mut self, half: usize) {
        let (vecs, flags) = self.vectors.parts(half);
        let known = flags[..ALL_VGPRS].as_chunks_mut::<16>().0;
        for (first, known) in (0..).step_by(16).zip(known).filter(|(_, known)| **known != [INITIAL; 16]) {
            for (at, known) in (first..).zip(known).filter(|(_, known)| **known != INITIAL) {
                *known = INITIAL;
                vecs[at] = LaneVec::ZERO;
            }
        }
        flags[ALL_VGPRS..CONSTS].fill(0);
        debug_assert!(vecs[..ALL_VGPRS].iter().all(|vec| *vec == LaneVec::ZERO));
    }

    /// VGPRs that the wave has been given, all of them unless [`Wave::set_vgpr_count`] says otherwise. Only registers that a body
    /// numbers are held to it.
    pub fn vgpr_count(&self) -> u32 {
        self.vgprs
    }

    /// Whether numbers that instructions compute can be those of accumulation VGPRs, all of which are there then.
    pub fn set_accumulation(&mut self, has: bool) {
        self.accumulation = has;
    }

    pub fn set_vgpr_count(&mut self, count: u32) {
        self.vgprs = count.clamp(1, VGPRS as u32);
    }

    /// Forgets the ranges of another memory. `memory`: its number.
    #[inline(always)]
    pub(crate) fn use_memory(&mut self, memory: u64) {
        if self.ranges_of != memory {
            self.forget_ranges(memory);
        }
    }

    #[cold]
    #[inline(never)]
    fn forget_ranges(&mut self, memory: u64) {
        self.ranges_of = memory;
        self.last_ranges = [HostRange::EMPTY; LAST_ADDRESSES];
    }

    /// The range that an operation last accessed, of the memory that [`Wave::use_memory`] was given.
    #[inline(always)]
    pub(crate) fn last_range(&self, operation: usize) -> &HostRange {
        &self.last_ranges[operation % LAST_ADDRESSES]
    }

    /// Takes note of a range of `memory`, by its number. What a watch puts in the memory's place is another one's.
    pub(crate) fn set_last_range(&mut self, operation: usize, memory: u64, range: HostRange) {
        if self.ranges_of == memory {
            self.last_ranges[operation % LAST_ADDRESSES] = range;
        }
    }

    /// Copies a program's constants to their hidden places, unless they are there already. `program`: its number, not 0.
    #[inline]
    pub fn install(&mut self, program: u64, consts: &[u32]) {
        if self.installed != program {
            self.installed = program;
            self.install_anew(consts);
        }
    }

    fn install_anew(&mut self, consts: &[u32]) {
        for half in self.vectors.chunks_exact_mut(LANE_VECS) {
            for (vec, value) in half[CONSTS..SCALARS].iter_mut().zip(consts) {
                *vec = LaneVec::splat(*value);
            }
        }
        for half in 0..self.halves {
            for (known, value) in self.vectors.parts(half).1[CONSTS..SCALARS].iter_mut().zip(consts) {
                *known = if is_denormal(*value) { 0 } else { NO_DENORMALS };
            }
        }
        for (scalar, value) in self.sgprs[SGPRS..].iter_mut().zip(consts) {
            *scalar = *value;
        }
    }

    /// The file of a half: of a wave of 32, the first one.
    #[inline(always)]
    pub(crate) fn half(&self, half: usize) -> Half {
        self.vectors.half(half)
    }

    /// A lane vector of a half was written.
    #[inline(always)]
    pub(crate) fn written(&mut self, half: usize, vec: usize) {
        if half < self.halves && vec < ROWS {
            // SAFETY: W1.
            unsafe { self.half(half).set_no_denormals(vec, false) };
        }
    }

    /// EXEC of a half as a lane mask: all ones or zero.
    pub fn mask(&self, half: usize) -> LaneVec {
        // SAFETY: W1.
        unsafe { self.half(half).mask() }
    }

    /// Where the masks of both halves are; of a wave of 32, the first one twice.
    #[inline(always)]
    pub(crate) fn masks(&self) -> [*const LaneVec; 2] {
        [0, 1].map(|half| self.half(half).mask_at())
    }

    /// Whether any lane of a VGPR was written since the wave began.
    pub fn is_written(&self, register: u32) -> bool {
        // SAFETY: W1.
        let unwritten = |half| unsafe { self.half(half).flags(register as usize) } & UNWRITTEN != 0;
        (register as usize) < ALL_VGPRS && !(0..self.halves).all(unwritten)
    }

    /// Size of the register file.
    pub fn file_bytes(&self) -> usize {
        size_of_val(&*self.vectors)
    }

    /// Lanes: 32 or 64.
    #[inline(always)]
    pub fn size(&self) -> u32 {
        32 * self.halves as u32
    }

    /// Files of 32 lanes: 1, or 2 in a wave of 64.
    pub fn halves(&self) -> usize {
        self.halves
    }

    /// All lanes of the wave.
    pub fn full_mask(&self) -> u64 {
        if self.halves == 2 { u64::MAX } else { 0xffff_ffff }
    }

    /// EXEC, upper half zero in wave32.
    pub fn exec(&self) -> u64 {
        let low = self.sgprs[EXEC_LO] as u64;
        if self.halves == 2 { low | (self.sgprs[EXEC_LO + 1] as u64) << 32 } else { low }
    }

    /// Writes EXEC, the low 32 bits in a wave of 32, and its lane masks.
    pub fn set_exec(&mut self, exec: u64) {
        self.sgprs[EXEC_LO] = exec as u32;
        if self.halves == 2 {
            self.sgprs[EXEC_LO + 1] = (exec >> 32) as u32;
        }
        self.rebuild_masks();
    }

    /// After a write to the EXEC registers.
    #[inline]
    pub fn rebuild_masks(&mut self) {
        self.rebuild_mask(0);
        if self.halves == 2 {
            self.rebuild_mask(1);
        }
    }

    /// Of one half.
    #[inline]
    pub(crate) fn rebuild_mask(&mut self, half: usize) {
        #[cfg(target_arch = "x86_64")]
        if self.avx2.is_some() {
            // SAFETY: the host has AVX2.
            return unsafe { self.rebuild_mask_avx2(half) };
        }
        self.rebuild_mask_anywhere(half);
    }

    /// A fifth of a divergent loop's time without the vector instructions.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn rebuild_mask_avx2(&mut self, half: usize) {
        // SAFETY: W1.
        unsafe { self.half(half).set_exec(self.sgprs[EXEC_LO + half % 2]) };
    }

    #[inline(never)]
    fn rebuild_mask_anywhere(&mut self, half: usize) {
        // SAFETY: W1.
        unsafe { self.half(half).set_exec(self.sgprs[EXEC_LO + half % 2]) };
    }

    /// VCC, upper half zero in wave32.
    pub fn vcc(&self) -> u64 {
        let low = self.sgprs[VCC_LO] as u64;
        if self.halves == 2 { low | (self.sgprs[VCC_LO + 1] as u64) << 32 } else { low }
    }

    /// One lane of a VGPR; 0 for a lane or register that there is not.
    pub fn vgpr(&self, lane: u32, reg: u32) -> u32 {
        let half = (lane / 32) as usize;
        match self.vectors.get(half * LANE_VECS + reg as usize) {
            Some(vec) if (reg as usize) < ALL_VGPRS => vec.0[(lane % 32) as usize],
            _ => 0,
        }
    }

    /// A VGPR by a number that an instruction computed: v0 in place of one that the wave does not have (RDNA manuals, *VGPR Out of
    /// Range Behavior*).
    pub fn indexed_vgpr(&self, lane: u32, reg: u32) -> u32 {
        self.vgpr(lane, if self.has_vgpr(reg) { reg } else { 0 })
    }

    /// Sets a VGPR by a number that an instruction computed, if the wave has it.
    pub fn set_indexed_vgpr(&mut self, lane: u32, reg: u32, value: u32) {
        if self.has_vgpr(reg) {
            self.set_vgpr(lane, reg, value);
        }
    }

    /// Whether a number that an instruction computed is one of the wave's VGPRs.
    #[inline(always)]
    pub fn has_vgpr(&self, reg: u32) -> bool {
        reg < self.vgprs || self.accumulation && (ACC as u32..ALL_VGPRS as u32).contains(&reg)
    }

    /// All lanes of a VGPR in a half.
    pub fn lane_vec(&self, half: usize, reg: usize) -> &LaneVec {
        &self.vectors[half * LANE_VECS..][..ALL_VGPRS][reg]
    }

    /// Sets them.
    pub fn set_lane_vec(&mut self, half: usize, reg: usize, vec: LaneVec) {
        self.vectors[half * LANE_VECS..][..ALL_VGPRS][reg] = vec;
        self.written(half, reg);
    }

    /// Sets one lane of a VGPR; nothing for a lane or register that there is not.
    pub fn set_vgpr(&mut self, lane: u32, reg: u32, value: u32) {
        let half = (lane / 32) as usize;
        if (reg as usize) < ALL_VGPRS
            && let Some(vec) = self.vectors.get_mut(half * LANE_VECS + reg as usize)
        {
            vec.0[(lane % 32) as usize] = value;
            self.written(half, reg as usize);
        }
    }

    /// By operand code; codes beyond the file read zero, as does null, which nothing writes.
    #[inline(always)]
    pub fn sgpr(&self, code: u32) -> u32 {
        if (code as usize) < SGPRS { self.sgprs[code as usize] } else { 0 }
    }

    /// By operand code; null and codes beyond the file are dropped.
    #[inline(always)]
    pub fn set_sgpr(&mut self, code: u32, value: u32) {
        let code = code as usize;
        if code < NULL {
            self.sgprs[code] = value;
        } else {
            self.set_special(code, value);
        }
    }

    /// Registers from an operand code on. All of a wide null are null: M0, which follows it, is not written.
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
