//! Modifiers: the flags and named values after the operands. Each table entry has a list of modifiers, which
//! both the parser and the printer use.

mod print;
mod read;

pub use read::hint_is_valid;

use super::dialect::symbols::DPP;
use super::dialect::{Trait, Traits};
use super::matrix::Modifiers;
use isa_spec::tables::{EntryId, OperandSig};
use wavesim_isa::arch::Arch;

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
    /// A bit for each source in the mask `sources`, and one for the destination if `dest`. If not `printed`,
    /// the modifier is only parsed: the printer expresses it by register names.
    Bits { name: &'static str, field: u8, sources: u8, dest: bool, printed: bool },
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
}

/// Parts of a register that SDWA can select.
const SDWA_PARTS: &[&str] = &["BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"];

/// How SDWA treats the bits it does not write.
const SDWA_UNUSED: &[&str] = &["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"];

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

/// A bit for every source.
const ALL_SOURCES: u8 = 7;

impl Mod {
    /// Returns the modifiers of an entry in the order in which LLVM prints them.
    pub fn for_entry(arch: Arch, entry: EntryId, traits: Traits, mixed: bool) -> Vec<Mod> {
        let table = arch.table();
        let e = &table.entries[entry as usize];
        let encoding = &table.encodings[e.enc as usize];
        let inst = &table.instructions[e.inst as usize];
        let field = |name: &str| encoding.fields.iter().position(|f| f.name == name).map(|at| at as u8);
        let mut mods = Vec::new();
        let flag = |mods: &mut Vec<Mod>, name, f: &str| {
            if let Some(field) = field(f) {
                mods.push(Mod::Flag { name, field });
            }
        };
        let number = |mods: &mut Vec<Mod>, name, f: &str, style| {
            if let Some(field) = field(f) {
                mods.push(Mod::Number { name, field, style });
            }
        };
        // Cache coherence bits of CDNA.
        let caches = |mods: &mut Vec<Mod>| {
            flag(mods, "sc0", "SC0");
            flag(mods, "nt", "NT");
            flag(mods, "sc1", "SC1");
        };
        let packed = encoding.name.contains("VOP3P");
        let matrix = Modifiers::of(arch, entry);
        let halves = matrix.is_none_or(|m| m.halves) && !traits.has(Trait::NoHalves);
        if let Some(bits) = matrix.and_then(|m| m.index_bits) {
            mods.extend(field("OP_SEL").map(|field| Mod::IndexKey { field, bits }));
        } else if let Some(at) = field("OP_SEL").filter(|_| halves) {
            if traits.has(Trait::SourceByteSelect) {
                mods.push(Mod::Byte { field: at, bits: [1, 0] });
            } else if traits.has(Trait::ResultByteSelect) {
                mods.push(Mod::Byte { field: at, bits: [2, 3] });
            } else {
                // LLVM 19 uses register halves (`v1.h`) where later versions use the modifier.
                let lanes = traits.has(Trait::OpSelSelectsLanes);
                let printed =
                    packed || lanes || traits.has(Trait::OpSel) || traits.has(Trait::OpSelWithAccumulator);
                let named = arch.facts().true16;
                if printed || named && table.signatures[e.sig as usize].iter().any(|o| o.size_bits == 16) {
                    let dest = !packed && !lanes;
                    mods.push(Mod::Bits { name: "op_sel", field: at, sources: ALL_SOURCES, dest, printed });
                }
            }
        }
        if let (Some(at), Some(third), true) = (field("OP_SEL_HI"), field("OP_SEL_HI_2"), halves) {
            mods.push(Mod::OpSelHi { field: at, third, ones: !mixed });
        }
        let moves = |o: &OperandSig| table.operand_types[o.ty as usize].name.contains("ACCVGPR");
        let scaled = field("SCALE_SRC0").is_some();
        if scaled {
            mods.extend(field("OP_SEL_HI").map(|field| Mod::ScaleBytes { field }));
        }
        if packed && !mixed && !scaled && !table.signatures[e.sig as usize].iter().any(moves) {
            let signs = matrix.map_or([ALL_SOURCES; 2], |m| [m.neg, m.neg_hi]);
            for (name, f, sources) in [("neg_lo", "NEG", signs[0]), ("neg_hi", "NEG_HI", signs[1])] {
                let bits = |field| Mod::Bits { name, field, sources, dest: false, printed: true };
                mods.extend(field(f).filter(|_| sources != 0).map(bits));
            }
        }
        if encoding.name == "ENC_VINTERP" {
            mods.insert(0, Mod::Flag { name: "clamp", field: field("CLAMP").unwrap_or(0) });
        } else if matrix.is_none_or(|m| m.clamp) && !traits.has(Trait::NoClamp) {
            flag(&mut mods, "clamp", "CLAMP");
        }
        // Output modifiers apply to floating-point results only.
        let float = !traits.has(Trait::NoOutputModifier)
            && table.signatures[e.sig as usize].iter().any(|o| {
                let format = table.formats[o.format as usize].name;
                o.output && o.field.is_some() && ["F16", "F32", "F64"].iter().any(|f| format.ends_with(f))
            });
        mods.extend(field("OMOD").filter(|_| float).map(|field| Mod::Omod { field }));
        mods.extend(field("DPP_CTRL").map(|field| Mod::DppCtrl { field }));
        // SDWA: selects the parts of registers that are read and written.
        let select = |mods: &mut Vec<Mod>, name, f: &str, names| {
            mods.extend(field(f).map(|field| Mod::Select { name, field, names }));
        };
        if !traits.has(Trait::SdwaSourceOnly) {
            select(&mut mods, "dst_sel", "DST_SEL", SDWA_PARTS);
            select(&mut mods, "dst_unused", "DST_UNUSED", SDWA_UNUSED);
        }
        select(&mut mods, "src0_sel", "SRC0_SEL", SDWA_PARTS);
        let second = table.signatures[e.sig as usize]
            .iter()
            .any(|o| o.field.is_some_and(|f| encoding.fields[f as usize].name == "VSRC1"));
        if second {
            select(&mut mods, "src1_sel", "SRC1_SEL", SDWA_PARTS);
        }
        number(&mut mods, "row_mask", "ROW_MASK", Style::Mask);
        number(&mut mods, "bank_mask", "BANK_MASK", Style::Mask);
        if let (Some(first), Some(source)) = (field("LANE_SEL_0"), field("SRC0")) {
            mods.push(Mod::Dpp8 { first });
            mods.push(Mod::Dpp8Fetch { source });
        }
        number(&mut mods, "bound_ctrl", "BOUND_CTRL", Style::Decimal);
        number(&mut mods, "fi", "FI", Style::Decimal);
        number(&mut mods, "wait_exp", "WAIT_EXP", Style::Always);
        number(&mut mods, "wait_vdst", "WAIT_VDST", Style::Always);
        number(&mut mods, "wait_va_vdst", "WAIT_VA_VDST", Style::Always);
        number(&mut mods, "wait_vm_vsrc", "WAIT_VM_VSRC", Style::Always);
        flag(&mut mods, "done", "DONE");
        flag(&mut mods, "row_en", "ROW_EN");
        if traits.has(Trait::TypedBuffer) {
            mods.extend(field("FORMAT").map(|field| Mod::Format { field }));
            if let (Some(data), Some(number)) = (field("DFMT"), field("NFMT")) {
                mods.push(Mod::TwoFormats { data, number });
            }
        }
        if !traits.has(Trait::StoresFromLds) {
            flag(&mut mods, "idxen", "IDXEN");
            flag(&mut mods, "offen", "OFFEN");
        }
        let scalar = encoding.name == "ENC_SMEM";
        let buffer = ["ENC_MUBUF", "ENC_MTBUF", "ENC_VBUFFER"].contains(&encoding.name);
        // Cache operations take no modifiers except CDNA's coherence bits; RDNA 4's vector cache
        // operations keep their scope.
        let operands = table.signatures[e.sig as usize];
        let bare = operands.is_empty();
        let reads_only = !bare && operands.iter().all(|o| !o.output);
        if bare && (scalar || encoding.name == "ENC_MUBUF") {
            mods.clear();
            caches(&mut mods);
            return mods;
        }
        // RDNA 4's write-back and invalidate instructions use an encoding with an address but have no
        // address.
        let addressed = !(bare && encoding.name == "ENC_VGLOBAL");
        if !scalar && addressed {
            let signed = |f: u8| {
                let width = encoding.fields[f as usize].width();
                // Flat addresses of RDNA 3 take non-negative offsets only.
                match (width > 12, encoding.name) {
                    (true, "ENC_FLAT") => Style::Positive,
                    (true, _) => Style::Signed,
                    (false, _) => Style::Decimal,
                }
            };
            for f in ["OFFSET", "IOFFSET"] {
                if let Some(at) = field(f) {
                    number(&mut mods, "offset", f, signed(at));
                }
            }
        }
        if let (Some(low), Some(high)) = (field("OFFSET0"), field("OFFSET1")) {
            if traits.has(Trait::TwoOffsets) {
                number(&mut mods, "offset0", "OFFSET0", Style::Decimal);
                number(&mut mods, "offset1", "OFFSET1", Style::Decimal);
            } else {
                mods.push(Mod::Offset16 { low, high, swizzle: traits.has(Trait::Swizzle) });
            }
        }
        if arch.facts().instructions.global_data_share || traits.has(Trait::GlobalDataShare) {
            flag(&mut mods, "gds", "GDS");
        }
        let ray = inst.subgroup() == "BVH";
        if !ray {
            number(&mut mods, "dmask", "DMASK", Style::Hex);
            mods.extend(field("DIM").map(|field| Mod::Dim { field }));
            flag(&mut mods, "unorm", "UNORM");
        }
        // Matrix operands of CDNA.
        let doubles = table.signatures[e.sig as usize]
            .iter()
            .any(|o| o.output && table.formats[o.format as usize].name.ends_with("F64"));
        let sparse = encoding.fields.iter().any(|f| f.name == "ACC_CD")
            && table.signatures[e.sig as usize]
                .iter()
                .any(|o| table.operand_types[o.ty as usize].name == "OPR_SRC_VGPR");
        for (name, f) in [("cbsz", "CBSZ"), ("abid", "ABID"), ("blgp", "BLGP")] {
            match field(f) {
                Some(field) if doubles && f == "BLGP" => mods.push(Mod::Signs { field }),
                // Sparse matrix products take the indices as third source.
                _ if sparse && f == "BLGP" => {}
                // ABID's bit indicates the presence of scales.
                _ if traits.has(Trait::SizeFromFormat) && f == "ABID" => {}
                _ => number(&mut mods, name, f, Style::Decimal),
            }
        }
        if traits.has(Trait::StoresFromLds) {
            flag(&mut mods, "lds", "LDS");
        }
        caches(&mut mods);
        if traits.has(Trait::LoadsToLds) {
            flag(&mut mods, "lds", "LDS");
        }
        // Scalar instructions that move no data have no coherence bit.
        let data = |o: &OperandSig| {
            let field = o.field.is_some_and(|f| encoding.fields[f as usize].name == "SDATA");
            field && table.operand_types[o.ty as usize].name.contains("SREG")
        };
        if !scalar || operands.len() > 1 && operands.iter().any(data) {
            flag(&mut mods, "glc", "GLC");
        }
        flag(&mut mods, "slc", "SLC");
        flag(&mut mods, "dlc", "DLC");
        if let (Some(field), Some(scope)) = (field("TH"), field("SCOPE"))
            && (!scalar || inst.subgroup() == "LOAD")
        {
            let kind = match inst.subgroup() {
                "ATOMIC" => ThKind::Atomic,
                _ if reads_only => ThKind::Store,
                _ => ThKind::Load,
            };
            mods.push(Mod::Th { field, scope, kind });
            mods.push(Mod::Scope { field: scope });
        }
        if !ray {
            flag(&mut mods, "r128", "R128");
        }
        flag(&mut mods, "a16", "A16");
        // Missing pages are reported only for loads.
        let writes = reads_only || inst.subgroup() == "ATOMIC";
        if !(buffer && writes) {
            flag(&mut mods, "tfe", "TFE");
        }
        flag(&mut mods, "lwe", "LWE");
        flag(&mut mods, "d16", "D16");
        flag(&mut mods, "nv", "NV");
        flag(&mut mods, "scale_offset", "SCALE_OFFSET");
        mods
    }

    /// Returns whether `name` is a spelling of this modifier.
    pub fn accepts(&self, name: &str) -> bool {
        match self {
            Mod::Flag { name: own, .. }
            | Mod::Number { name: own, .. }
            | Mod::Bits { name: own, .. }
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
        let flag = matches!(self, Mod::Flag { .. });
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
