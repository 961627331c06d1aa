//! Modifiers of matrix products and of dot products of 8-bit floats. Their sources are not halves of
//! registers; the data formats of the operands determine the remaining uses of OP_SEL, OP_SEL_HI, NEG, NEG_HI
//! and CLAMP (ISA manuals, *Wave Matrix Multiply Accumulate*).

use super::dialect::SIGNS_OF_INTEGERS;
use isa_spec::tables::EntryId;
use wavesim_isa::arch::Arch;

/// The modifiers that such an instruction supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modifiers {
    /// OP_SEL and OP_SEL_HI select halves of registers.
    pub halves: bool,
    /// Bit mask of the sources whose (low) value can be negated.
    pub neg: u8,
    /// Bit mask of the sources that support negation of the high value, or the absolute value.
    pub neg_hi: u8,
    /// CLAMP is allowed.
    pub clamp: bool,
    /// The number of index bits that a wave needs for a sparse matrix; OP_SEL selects one of the index sets
    /// in the register.
    pub index_bits: Option<u32>,
}

impl Modifiers {
    /// Returns `None` for other instructions.
    pub fn of(arch: Arch, entry: EntryId) -> Option<Modifiers> {
        let table = arch.table();
        let e = &table.entries[entry as usize];
        let fields = table.encodings[e.enc as usize].fields;
        let operand = |name: &str| {
            let is = |field: Option<u8>| field.is_some_and(|f| fields[f as usize].name == name);
            let o = table.signatures[e.sig as usize].iter().find(|o| is(o.field))?;
            Some((table.formats[o.format as usize].name, o.size_bits))
        };
        let sources = ["SRC0", "SRC1", "SRC2"].map(|name| operand(name).map_or("", |o| o.0));
        let result = operand("VDST")?;
        let matrix = result.0.contains("WMMA");
        // Products of any small floats list their sources as bytes, or by the size of the smallest.
        let byte_float =
            |format: &str| ["FP8", "BF8", "_B8", "_FP4", "_F4"].iter().any(|end| format.ends_with(end));
        let byte_product = fields.iter().any(|f| f.name == "NEG_HI") && sources.iter().any(|s| byte_float(s));
        if !matrix && !byte_product {
            return None;
        }
        let lenient = SIGNS_OF_INTEGERS.has(arch);
        let bits = |holds: &dyn Fn(&str) -> bool| {
            sources.iter().enumerate().map(|(at, s)| u8::from(holds(s)) << at).sum::<u8>()
        };
        let signed = |s: &str| !byte_float(s) && !s.ends_with("INDEX_SET");
        let index = sources.iter().any(|s| s.ends_with("INDEX_SET"));
        Some(Modifiers {
            // 16-bit results that take as many registers as 32-bit results occupy one half of each register.
            halves: matrix && result.0.ends_with("F16") && result.1 == 256,
            // For 4-bit and 8-bit integers the bit selects signed operands.
            neg: bits(&|s| signed(s) && (lenient || !s.ends_with("I32"))),
            neg_hi: bits(&|s| {
                signed(s) && (lenient || !["I32", "IU4", "IU8"].iter().any(|i| s.ends_with(i)))
            }),
            clamp: result.0.ends_with("I32"),
            // Two bits for each of the K/2 elements of 16 rows.
            index_bits: index.then(|| 16 * depth(sources[1]).unwrap_or(32)),
        })
    }
}

/// K of a format such as `FMT_WMMA_AB_16X32_F16`.
fn depth(format: &str) -> Option<u32> {
    let (_, rest) = format.split_once('X')?;
    rest.split('_').next()?.parse().ok()
}
