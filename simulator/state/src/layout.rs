//! The lane vectors of a half of a wave, and the numbers by which operations name them.

use wavesim_isa::operand::ACC;

/// One 32-lane half of a VGPR: the unit that handlers work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct LaneVec(pub [u32; 32]);

impl LaneVec {
    /// Zero in every lane.
    pub const ZERO: LaneVec = LaneVec([0; 32]);

    /// Broadcasts a value to all lanes.
    #[inline(always)]
    pub fn splat(value: u32) -> LaneVec {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::_mm_set1_epi32;
            // Built from SIMD vectors, because the compiler turns the array into 32 stores.
            // SAFETY: SSE2 is part of the architecture; every bit pattern is a valid lane vector.
            unsafe { std::mem::transmute([_mm_set1_epi32(value as i32); 8]) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        LaneVec([value; 32])
    }
}

/// VGPRs that an instruction can name.
pub const VGPRS: usize = 256;

/// All VGPRs of the file: accumulation VGPRs, which CDNA 3 and 4 have, begin at number [`ACC`]; on CDNA 5,
/// MODE extends the numbers in instructions.
pub const ALL_VGPRS: usize = 1024;
const _: () = assert!(ACC == VGPRS);

/// Number of lane vectors of a half that operations can name: the VGPRs of both kinds, then hidden ones:
/// [`DISCARD`], temporaries of split instructions, staged sources, the program's first constants, and copies
/// of SGPRs.
pub const OPERAND_VECS: usize = SCALARS + SGPRS + STAGE_VECS;
/// Hidden lane vectors for sources that have to be staged: [`STAGE_VECS`] for each of four sources.
pub const STAGE: usize = ALL_VGPRS + 16;
pub const STAGE_VECS: usize = 4;
/// Hidden lane vectors for the program's constants.
pub const CONSTS: usize = STAGE + 4 * STAGE_VECS;
/// Further constants are read from the program's own pool.
pub const MAX_CONSTS: usize = 256;
/// Hidden lane vectors with copies of SGPRs, by operand code: the SGPR's value when a lane handler last read
/// it. Most have not changed since. (The file has a few more, for a wide source that begins at the last
/// SGPR.)
pub const SCALARS: usize = CONSTS + MAX_CONSTS;

/// Target of dropped results, such as those of an atomic without return: 4 lane vectors.
pub const DISCARD: usize = ALL_VGPRS;

/// Temporaries for instructions that run as several operations (VOPD): 4 lane vectors.
pub const TEMP: usize = ALL_VGPRS + 4;

/// Number of operand codes in the SGPR file.
pub const SGPRS: usize = 128;
/// Hidden words after the SGPRs for constants of scalar instructions; further ones are read from the
/// program's own pool.
pub const SCALAR_CONSTS: usize = 128;
