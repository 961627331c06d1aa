//! The dense operation that the interpreter runs: what an instruction becomes once its operands are resolved.

use crate::isa::OPERATION_COUNT;
use crate::machine::wave::{SCALARS, SGPRS};

/// One operation. Sources are codes: below 256 an index in the file of SGPRs and scalar constants, [`Op::VGPR`] a VGPR row, [`Op::CONST`] a row of the
/// program's constants, [`Op::SPECIAL`] the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Op {
    /// Place in a table of handlers: [`Op::code_of`].
    pub code: u16,
    pub flags: u16,
    /// First result: VGPR row, or SGPR index.
    pub d: u16,
    /// SGPR of the mask result (carry-out).
    pub d1: u16,
    /// S0 or the vector address; S1 or the scalar address; S2 or the data; S3, the mask source, DATA1 or SOFFSET.
    pub src: [u16; 4],
    /// SIMM16, offset, or both DS offsets.
    pub imm: u32,
    /// Index in the program's table of modifiers and raw fields.
    pub ext: u32,
    /// Byte offset of its instruction in the code.
    pub pc: u32,
    /// Instructions complete before it.
    pub number: u32,
}

impl Op {
    /// Handlers of an operation, by the [`Way`] of its operands.
    pub const WAYS: usize = 3;

    /// Code of a canonical operation whose operands go a way.
    pub const fn code_of(operation: u16, way: Way) -> u16 {
        operation * Op::WAYS as u16 + way as u16
    }

    /// Code of an instruction without semantics: the first behind the operations.
    pub const UNKNOWN: u16 = (OPERATION_COUNT * Op::WAYS) as u16;
    /// Code of words that are no instruction.
    pub const HOLE: u16 = Op::UNKNOWN + 1;
    /// Code of the place behind a program.
    pub const END: u16 = Op::UNKNOWN + 2;
    /// Codes there are: every operation has one below this.
    pub const CODES: usize = OPERATION_COUNT * Op::WAYS + 3;

    /// Instructions complete behind it.
    #[inline(always)]
    pub fn complete(&self) -> u32 {
        self.number + (self.flags & Op::MORE == 0) as u32
    }

    /// No SGPR in this byte of `imm`, nor in those above.
    pub const NO_SCALAR: u8 = 0xff;

    /// SGPRs that [`Op::SCALARS`] broadcasts, and the hidden row of each.
    #[inline(always)]
    pub fn scalars(&self) -> impl Iterator<Item = (usize, usize)> {
        let list = self.imm.to_le_bytes().into_iter();
        list.take_while(|sgpr| *sgpr != Op::NO_SCALAR)
            .map(|sgpr| (sgpr as usize % SGPRS, SCALARS + sgpr as usize))
    }

    /// Words that are no instruction.
    pub const fn hole() -> Op {
        Op { code: Op::HOLE, flags: Op::MORE, d: 0, d1: 0, src: [0; 4], imm: 0, ext: 0, pc: 0, number: 0 }
    }

    /// The place behind a program.
    pub const fn end() -> Op {
        Op { code: Op::END, ..Op::hole() }
    }

    /// Sources or results have modifiers: the slow staging path.
    pub const MODIFY: u16 = 1;
    /// The clamp bit.
    pub const CLAMP: u16 = 2;
    /// A 16-bit result goes to the upper half.
    pub const HIGH: u16 = 4;
    /// Float results need the output pass (omod, float clamp).
    pub const OUTPUT: u16 = 8;
    /// `d` is an SGPR.
    pub const SCALAR_DEST: u16 = 16;
    /// The instruction goes on with the next operation (VOPD). Also on what is no instruction: none is complete behind it.
    pub const MORE: u16 = 32;
    /// The result is dropped, though the destination is read: a buffer atomic without return. With [`Op::OUTPUT`], so that only
    /// the slow path looks.
    pub const NO_RESULT: u16 = 256;
    /// `imm` numbers the SGPRs that the sources want broadcast, a byte each: see [`Op::scalars`].
    pub const SCALARS: u16 = 512;
    /// Bits of a code that number a row.
    pub const ROW: u16 = 0x3ff;

    pub const VGPR: u16 = 0x400;
    pub const CONST: u16 = 0x8000;
    pub const SPECIAL: u16 = 0x4000;
    pub const SCC: u16 = Op::SPECIAL;
    pub const SHARED_BASE: u16 = Op::SPECIAL + 1;
    pub const PRIVATE_BASE: u16 = Op::SPECIAL + 2;
    pub const LIMIT: u16 = Op::SPECIAL + 3;
}

/// What an operation's operands ask of its handler. The program is lowered to one of them, so that no handler asks again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Way {
    /// Anything: modifiers, special sources, halves of registers. In a wave of 64, everything.
    Any,
    /// Rows as they stand.
    Plain,
    /// Rows as they stand, once the SGPRs among the sources are broadcast ([`Op::SCALARS`]).
    Scalars,
}

/// Modifiers and fields that only some operations have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Ext {
    /// Applied in staging, a bit a source.
    pub abs_bits: u8,
    pub neg_bits: u8,
    /// Bit that abs and neg work on (15, 31 or 63), by source.
    pub sign_at: [u8; 4],
    /// 16-bit sources in the upper half, a bit a source.
    pub high_bits: u8,
    /// Sources narrowed to 16 bits.
    pub narrow_bits: u8,
    /// VOP3P sources to be rearranged: a bit a source.
    pub packed_bits: u8,
    pub packed_sel: u8,
    pub packed_sel_hi: u8,
    pub packed_neg: u8,
    pub packed_neg_hi: u8,
    pub omod: u8,
    /// A scalar float result is f16, not f32.
    pub half_result: bool,
    pub dpp: Dpp,
    // Raw fields for bodies that name them.
    pub neg: u32,
    pub neg_hi: u32,
    pub abs: u32,
    pub op_sel: u32,
    pub op_sel_hi: u32,
    pub simm32: u32,
    pub idxen: u32,
    pub offen: u32,
    pub format: u32,
    pub sve: u32,
    pub glc: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Dpp {
    #[default]
    None,
    Dpp16 {
        ctrl: u16,
        row_mask: u8,
        bank_mask: u8,
        bound: bool,
        fetch: bool,
    },
    Dpp8 {
        lanes: [u8; 8],
        fetch: bool,
    },
}
