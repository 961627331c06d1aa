//! Modifiers: the flags and named values after the operands. Each table entry has a list of modifiers, which
//! both the parser and the printer use.

mod list;
mod print;
mod read;

pub use read::hint_is_valid;

use super::dialect::symbols::DPP;

/// A modifier of a form, with the fields that it sets.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Mod {
    /// Present or absent: 1 or 0.
    Flag { name: &'static str, field: u8 },
    /// `name:n`.
    Number { name: &'static str, field: u8, style: Style },
    /// The 16-bit offset of DS instructions, split over two fields.
    Offset16 { low: u8, high: u8, swizzle: bool },
    /// A bit for each source in the mask `sources`, and perhaps one for the destination. If not `printed`,
    /// the modifier is only parsed: the printer expresses it by register names.
    Bits { name: &'static str, field: u8, sources: u8, dest: ResultBit, printed: bool },
    /// Selects a set of the indices of a sparse matrix; `bits` is the number of index bits that a wave needs.
    IndexKey { field: u8, bits: u32 },
    /// A byte selector in two bits of OP_SEL, given from low to high.
    Byte { field: u8, bits: [u8; 2] },
    /// `op_sel_hi`; its third bit has a field of its own.
    OpSelHi { field: u8, third: u8, ones: bool },
    /// `mul:2`, `mul:4`, `div:2`.
    Omod { field: u8 },
    /// DPP16's control: `quad_perm:[…]`, `row_shl:1` …
    DppCtrl { field: u8 },
    /// `dpp8:[…]`: eight lane selectors in consecutive fields from `first`.
    Dpp8 { first: u8 },
    /// `fi:` of a `dpp8:` instruction, which is expressed by another code of the source.
    Dpp8Fetch { source: u8 },
    /// Buffer format of MTBUF: `format:[…]`.
    Format { field: u8 },
    /// `dim:SQ_RSRC_IMG_…`.
    Dim { field: u8 },
    /// Temporal hint; one of the names depends on the scope.
    Th { field: u8, scope: u8, kind: ThKind },
    /// Scope of a memory access: `scope:SCOPE_DEV`.
    Scope { field: u8 },
    /// One of a list of names; always printed.
    Select { name: &'static str, field: u8, names: &'static [&'static str] },
    /// Data format and number format of gfx9's typed buffers: `format:[…,…]`.
    TwoFormats { data: u8, number: u8 },
    /// Upper selector bits of the scale bytes of a matrix product: `op_sel_hi:[…]`, always printed.
    ScaleBytes { field: u8 },
    /// Operand signs of a matrix product of doubles: `neg:[…]`.
    Signs { field: u8 },
    /// A value in parts of fields, from low to high.
    Parts { name: &'static str, parts: Vec<Part>, style: PartsStyle },
}

/// The bit of the result in a list of bits for operands: the last, which is bit 3 of the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultBit {
    /// The list has none.
    Absent,
    /// It is in the list.
    Listed,
    /// It is in the list, but 0: bit 3 of the field has another meaning.
    Zero,
}

/// Consecutive bits of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Index into the encoding's fields.
    pub field: u8,
    /// The lowest bit.
    pub shift: u8,
    /// The number of bits.
    pub bits: u8,
}

/// How a value in parts of fields is written. 0 is omitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartsStyle {
    /// Present or absent.
    Flag,
    /// In decimal.
    Decimal,
    /// A truth table: in decimal up to 10, then in hex.
    Table,
    /// One of the names, after a prefix.
    Names(&'static str, &'static [&'static str]),
}

/// The value of parts of fields.
pub fn parts_value(parts: &[Part], fields: &[u32]) -> u32 {
    let mut at = 0;
    parts.iter().fold(0, |value, part| {
        let own = fields[part.field as usize] >> part.shift & ((1 << part.bits) - 1);
        let value = value | own << at;
        at += part.bits;
        value
    })
}

/// How a number is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Unsigned, in decimal.
    Decimal,
    /// Unsigned, in hex.
    Hex,
    /// Two's complement, in decimal.
    Signed,
    /// As [`Style::Signed`], for forms in which negative values are invalid.
    Positive,
    /// Printed even if 0.
    Always,
    /// Printed even if it has its default value, in hex.
    Mask,
    /// A truth table: as [`PartsStyle::Table`].
    Table,
}

/// Instruction group of a temporal hint: names and values differ between groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThKind {
    /// `TH_LOAD_…`.
    Load,
    /// `TH_STORE_…`.
    Store,
    /// `TH_ATOMIC_…`.
    Atomic,
}

/// `DWORD`: selects the whole register.
pub const SDWA_DWORD: u32 = 6;

/// `UNUSED_PRESERVE`: the other bits keep their values.
pub const SDWA_PRESERVE: u32 = 2;

impl Mod {
    /// Returns whether `name` is a spelling of this modifier.
    pub fn accepts(&self, name: &str) -> bool {
        match self {
            Mod::Flag { name: own, .. }
            | Mod::Number { name: own, .. }
            | Mod::Bits { name: own, .. }
            | Mod::Parts { name: own, .. }
            | Mod::Select { name: own, .. } => *own == name,
            Mod::Offset16 { .. } => name == "offset",
            Mod::IndexKey { .. } => name == "index_key",
            Mod::Byte { .. } => name == "byte_sel",
            Mod::OpSelHi { .. } => name == "op_sel_hi",
            Mod::Omod { .. } => matches!(name, "mul" | "div"),
            Mod::DppCtrl { .. } => {
                name == "quad_perm" || DPP.iter().any(|d| d.name == name) || name == "dpp_ctrl"
            }
            Mod::TwoFormats { .. } => name == "format",
            Mod::ScaleBytes { .. } => name == "op_sel_hi",
            Mod::Signs { .. } => name == "neg",
            Mod::Dpp8 { .. } => name == "dpp8",
            Mod::Dpp8Fetch { .. } => name == "fi",
            Mod::Format { .. } => name == "format",
            Mod::Dim { .. } => name == "dim",
            Mod::Th { .. } => name == "th",
            Mod::Scope { .. } => name == "scope",
        }
    }

    /// The modifier's spellings; a modifier that takes a value ends with a colon.
    pub fn spellings(&self) -> impl Iterator<Item = String> {
        let others: &[&str] = match self {
            Mod::Omod { .. } => &["div"],
            _ => &[],
        };
        let lanes = if matches!(self, Mod::DppCtrl { .. }) { &DPP[..] } else { &[] };
        let names =
            std::iter::once(self.name()).chain(others.iter().copied()).chain(lanes.iter().map(|d| d.name));
        let flag = matches!(self, Mod::Flag { .. } | Mod::Parts { style: PartsStyle::Flag, .. });
        names
            .map(move |name| if flag { name.to_string() } else { format!("{name}:") })
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// The modifier's main spelling, for suggestions.
    pub fn name(&self) -> &'static str {
        match self {
            Mod::Flag { name, .. }
            | Mod::Number { name, .. }
            | Mod::Bits { name, .. }
            | Mod::Parts { name, .. }
            | Mod::Select { name, .. } => name,
            Mod::Offset16 { .. } => "offset",
            Mod::IndexKey { .. } => "index_key",
            Mod::Byte { .. } => "byte_sel",
            Mod::OpSelHi { .. } => "op_sel_hi",
            Mod::Omod { .. } => "mul",
            Mod::DppCtrl { .. } => "quad_perm",
            Mod::Dpp8 { .. } => "dpp8",
            Mod::Dpp8Fetch { .. } => "fi",
            Mod::Format { .. } => "format",
            Mod::Dim { .. } => "dim",
            Mod::Th { .. } => "th",
            Mod::Scope { .. } => "scope",
            Mod::TwoFormats { .. } => "format",
            Mod::ScaleBytes { .. } => "op_sel_hi",
            Mod::Signs { .. } => "neg",
        }
    }
}

/// Returns whether a modifier selects a DPP encoding.
pub fn is_dpp(name: &str) -> bool {
    matches!(name, "quad_perm" | "dpp8" | "row_mask" | "bank_mask" | "bound_ctrl" | "fi" | "dpp_ctrl")
        || DPP.iter().any(|d| d.name == name)
}

/// Returns whether a modifier selects an SDWA encoding.
pub fn is_sdwa(name: &str) -> bool {
    matches!(name, "dst_sel" | "dst_unused" | "src0_sel" | "src1_sel")
}

/// The default buffer format, `8_UNORM`.
pub const DEFAULT_FORMAT: u32 = 1;
