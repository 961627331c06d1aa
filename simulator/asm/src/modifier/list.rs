//! The modifiers of an entry, which follow from the fields of its encoding.

use super::{Mod, Part, PartsStyle, ResultBit, Style, ThKind};
use crate::dialect::{HALVES_HAVE_BOTH, POSITIVE_BUFFER_OFFSETS, Trait, Traits};
use crate::matrix::Modifiers;
use isa_spec::tables::{ArchTable, Encoding, EntryId, Instruction, OperandSig};
use wavesim_isa::arch::Arch;

/// Parts of a register that SDWA can select.
const SDWA_PARTS: &[&str] = &["BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"];

/// How SDWA treats the bits it does not write.
const SDWA_UNUSED: &[&str] = &["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"];

/// Formats of matrix elements.
const MATRIX_FORMATS: PartsStyle = PartsStyle::Names("MATRIX_FMT_", &["FP8", "BF8", "FP6", "BF6", "FP4"]);

/// The half of the lanes that holds the scales of a matrix.
const SCALE_ROWS: PartsStyle = PartsStyle::Names("MATRIX_SCALE_", &["ROW0", "ROW1"]);

/// Formats of the scales of a matrix.
const SCALE_FORMATS: PartsStyle = PartsStyle::Names("MATRIX_SCALE_FMT_", &["E8", "E5M3", "E4M3"]);

/// A bit for every source.
const ALL_SOURCES: u8 = 7;

/// A flag or a number: its name and its field. Entries whose encoding has no such field do not have it.
type Row = (&'static str, &'static str, Option<Style>);

/// Controls of DPP behind the movement, and of inactive lanes; waits of interpolations.
const LANES_AND_WAITS: &[Row] = &[
    ("bound_ctrl", "BOUND_CTRL", Some(Style::Decimal)),
    ("fi", "FI", Some(Style::Decimal)),
    ("wait_exp", "WAIT_EXP", Some(Style::Always)),
    ("wait_vdst", "WAIT_VDST", Some(Style::Always)),
    ("wait_va_vdst", "WAIT_VA_VDST", Some(Style::Always)),
    ("wait_vm_vsrc", "WAIT_VM_VSRC", Some(Style::Always)),
    ("done", "DONE", None),
    ("row_en", "ROW_EN", None),
];

/// The coherence bits of CDNA.
const COHERENCE: &[Row] = &[("sc0", "SC0", None), ("nt", "NT", None), ("sc1", "SC1", None)];

impl Mod {
    /// Returns the modifiers of an entry in the order in which LLVM prints them.
    pub fn for_entry(arch: Arch, entry: EntryId, traits: Traits, mixed: bool) -> Vec<Mod> {
        let table = arch.table();
        let e = &table.entries[entry as usize];
        let mut list = List {
            arch,
            table,
            encoding: &table.encodings[e.enc as usize],
            inst: &table.instructions[e.inst as usize],
            operands: table.signatures[e.sig as usize],
            traits,
            mods: Vec::new(),
        };
        if traits.has(Trait::TensorGroups) {
            list.hints();
            list.flag("nv", "NV");
            return list.mods;
        }
        let matrix = Modifiers::of(arch, entry);
        list.parts_of_fields();
        list.truth_table();
        list.halves(matrix, mixed);
        list.signs(matrix, mixed);
        list.result(matrix);
        list.lanes();
        if list.is_cache_operation() {
            list.mods.clear();
            list.rows(COHERENCE);
            return list.mods;
        }
        list.buffer();
        list.offsets();
        list.image();
        list.matrix();
        list.cache();
        list.access();
        list.mods
    }
}

/// The modifiers of an entry. Each method appends some of them.
struct List {
    arch: Arch,
    table: &'static ArchTable,
    encoding: &'static Encoding,
    inst: &'static Instruction,
    operands: &'static [OperandSig],
    traits: Traits,
    mods: Vec<Mod>,
}

impl List {
    fn field(&self, name: &str) -> Option<u8> {
        self.encoding.fields.iter().position(|f| f.name == name).map(|at| at as u8)
    }

    fn rows(&mut self, rows: &[Row]) {
        for &(name, field, style) in rows {
            self.mods.extend(self.field(field).map(|field| match style {
                Some(style) => Mod::Number { name, field, style },
                None => Mod::Flag { name, field },
            }));
        }
    }

    fn flag(&mut self, name: &'static str, field: &'static str) {
        self.rows(&[(name, field, None)]);
    }

    fn number(&mut self, name: &'static str, field: &'static str, style: Style) {
        self.rows(&[(name, field, Some(style))]);
    }

    fn field_name(&self, o: &OperandSig) -> Option<&'static str> {
        o.field.map(|f| self.encoding.fields[f as usize].name)
    }

    fn type_name(&self, o: &OperandSig) -> &'static str {
        self.table.operand_types[o.ty as usize].name
    }

    fn format_name(&self, o: &OperandSig) -> &'static str {
        self.table.formats[o.format as usize].name
    }

    fn part(&self, name: &str, shift: u8, bits: u8) -> Option<Part> {
        Some(Part { field: self.field(name)?, shift, bits })
    }

    fn parts(&mut self, name: &'static str, list: &[Option<Part>], style: PartsStyle) {
        if let Some(parts) = list.iter().copied().collect::<Option<Vec<Part>>>() {
            self.mods.push(Mod::Parts { name, parts, style });
        }
    }

    /// Values in fields that have another purpose elsewhere: truth tables, and the formats and scales of
    /// conversions and matrices.
    fn parts_of_fields(&mut self) {
        if self.traits.has(Trait::TruthTable) {
            let bits = [self.part("NEG", 0, 3), self.part("ABS", 0, 3), self.part("OMOD", 0, 2)];
            self.parts("bitop3", &bits, PartsStyle::Table);
        }
        if self.traits.has(Trait::SwapControls) {
            self.parts("bound_ctrl", &[self.part("OP_SEL", 1, 1)], PartsStyle::Decimal);
            self.parts("fi", &[self.part("OP_SEL", 0, 1)], PartsStyle::Decimal);
        }
        if self.traits.has(Trait::ScaleSelect) {
            self.parts("scale_sel", &[self.part("OP_SEL", 0, 4)], PartsStyle::Decimal);
        }
        if self.traits.has(Trait::MatrixFormats) {
            self.parts("matrix_a_fmt", &[self.part("OP_SEL", 0, 3)], MATRIX_FORMATS);
            let b = [self.part("OP_SEL_HI", 0, 2), self.part("OP_SEL_HI_2", 0, 1)];
            self.parts("matrix_b_fmt", &b, MATRIX_FORMATS);
        }
        self.parts("matrix_a_scale", &[self.part("SCALE_OP_SEL", 0, 1)], SCALE_ROWS);
        self.parts("matrix_b_scale", &[self.part("SCALE_OP_SEL_HI", 0, 1)], SCALE_ROWS);
        if self.field("SCALE_OP_SEL_HI_2").is_some() {
            self.parts("matrix_a_scale_fmt", &[self.part("SCALE_NEG", 0, 2)], SCALE_FORMATS);
            self.parts("matrix_b_scale_fmt", &[self.part("SCALE_NEG_HI", 0, 2)], SCALE_FORMATS);
            self.parts("matrix_a_reuse", &[self.part("SCALE_OP_SEL", 2, 1)], PartsStyle::Flag);
            self.parts("matrix_b_reuse", &[self.part("SCALE_OP_SEL_HI_2", 0, 1)], PartsStyle::Flag);
        }
    }

    /// The truth table of the second half of a dual instruction (`v_dual_bitop2_b32`), in the field of a source.
    fn truth_table(&mut self) {
        let immediate =
            |o: &&OperandSig| self.type_name(o) == "OPR_SIMM8" && self.field_name(o) == Some("VSRCY2");
        let field = self.operands.iter().filter(immediate).find_map(|o| o.field);
        self.mods.extend(field.map(|field| Mod::Number { name: "bitop3", field, style: Style::Table }));
    }

    fn is_packed(&self) -> bool {
        self.encoding.name.contains("VOP3P")
    }

    fn is_scalar(&self) -> bool {
        self.encoding.name == "ENC_SMEM"
    }

    fn is_ray(&self) -> bool {
        self.inst.subgroup() == "BVH"
    }

    /// Returns whether the instruction has operands, all of which it reads.
    fn only_reads(&self) -> bool {
        !self.operands.is_empty() && self.operands.iter().all(|o| !o.output)
    }

    fn is_scalar_prefetch(&self) -> bool {
        self.is_scalar() && self.only_reads()
    }

    /// Returns whether the instruction has an address and no data, although its encoding has a field for data.
    fn is_prefetch(&self) -> bool {
        self.only_reads()
            && self.field("VSRC").is_some()
            && !self.operands.iter().any(|o| self.field_name(o) == Some("VSRC"))
    }

    /// Halves and bytes of registers, and sets of indices.
    fn halves(&mut self, matrix: Option<Modifiers>, mixed: bool) {
        let traits = self.traits;
        let halves = matrix.is_none_or(|m| m.halves)
            && ![Trait::NoHalves, Trait::ScaleSelect, Trait::MatrixFormats, Trait::SwapControls]
                .iter()
                .any(|t| traits.has(*t));
        if traits.has(Trait::MatrixReuse) {
            if matrix.is_some_and(|m| m.index_bits.is_some()) {
                self.parts("index_key", &[self.part("OP_SEL", 0, 1)], PartsStyle::Decimal);
            }
            self.parts("matrix_a_reuse", &[self.part("OP_SEL", 2, 1)], PartsStyle::Flag);
            self.parts("matrix_b_reuse", &[self.part("OP_SEL_HI_2", 0, 1)], PartsStyle::Flag);
        } else if let Some(bits) = matrix.and_then(|m| m.index_bits) {
            self.mods.extend(self.field("OP_SEL").map(|field| Mod::IndexKey { field, bits }));
        } else if let Some(field) = self.field("OP_SEL").filter(|_| halves) {
            let op_sel = |sources, dest, printed| Mod::Bits { name: "op_sel", field, sources, dest, printed };
            if traits.has(Trait::SourceByteSelect) {
                if self.operands.iter().any(|o| o.output && o.size_bits == 16) {
                    self.mods.push(op_sel(0, ResultBit::Listed, HALVES_HAVE_BOTH.has(self.arch)));
                }
                self.mods.push(Mod::Byte { field, bits: [1, 0] });
            } else if traits.has(Trait::ResultByteSelect) {
                if traits.has(Trait::HalfOfFirstSource) {
                    self.mods.push(op_sel(1, ResultBit::Zero, true));
                }
                self.mods.push(Mod::Byte { field, bits: [2, 3] });
            } else {
                // LLVM 19 uses register halves (`v1.h`) where later versions use the modifier.
                let packed = self.is_packed();
                let lanes = traits.has(Trait::OpSelSelectsLanes);
                let both = HALVES_HAVE_BOTH.has(self.arch);
                let written = traits.has(Trait::OpSel) || traits.has(Trait::OpSelWithAccumulator);
                let printed = packed || lanes || both || written;
                let named = self.arch.facts().true16;
                let halved = named && self.operands.iter().any(|o| o.size_bits == 16);
                if packed || lanes || written || halved {
                    let dest = if packed || lanes { ResultBit::Absent } else { ResultBit::Listed };
                    self.mods.push(op_sel(ALL_SOURCES, dest, printed));
                }
            }
        }
        if let (Some(field), Some(third), true) = (self.field("OP_SEL_HI"), self.field("OP_SEL_HI_2"), halves)
        {
            self.mods.push(Mod::OpSelHi { field, third, ones: !mixed });
        }
    }

    /// Signs of packed sources, and bytes of scales.
    fn signs(&mut self, matrix: Option<Modifiers>, mixed: bool) {
        // CDNA 4's scaled products select bytes of the scales.
        let scaled = self.field("SCALE_SRC0").is_some() && self.field("ABID").is_some();
        if scaled {
            self.mods.extend(self.field("OP_SEL_HI").map(|field| Mod::ScaleBytes { field }));
        }
        let moves = self.operands.iter().any(|o| self.type_name(o).contains("ACCVGPR"));
        if self.is_packed() && !mixed && !scaled && !moves && !self.traits.has(Trait::NoSigns) {
            let signs = matrix.map_or([ALL_SOURCES; 2], |m| [m.neg, m.neg_hi]);
            for (name, field, sources) in [("neg_lo", "NEG", signs[0]), ("neg_hi", "NEG_HI", signs[1])] {
                let bits = |field| Mod::Bits { name, field, sources, dest: ResultBit::Absent, printed: true };
                self.mods.extend(self.field(field).filter(|_| sources != 0).map(bits));
            }
        }
    }

    /// Clamping and the output modifier.
    fn result(&mut self, matrix: Option<Modifiers>) {
        if self.encoding.name == "ENC_VINTERP" {
            let field = self.field("CLAMP").unwrap_or(0);
            self.mods.insert(0, Mod::Flag { name: "clamp", field });
        } else if matrix.is_none_or(|m| m.clamp) && !self.traits.has(Trait::NoClamp) {
            self.flag("clamp", "CLAMP");
        }
        // Output modifiers apply to floating-point results only.
        let float = !self.traits.has(Trait::NoOutputModifier)
            && self.operands.iter().any(|o| {
                let format = self.format_name(o);
                o.output && o.field.is_some() && ["F16", "F32", "F64"].iter().any(|f| format.ends_with(f))
            });
        self.mods.extend(self.field("OMOD").filter(|_| float).map(|field| Mod::Omod { field }));
    }

    /// DPP, and SDWA, which selects the parts of registers that are read and written.
    fn lanes(&mut self) {
        self.mods.extend(self.field("DPP_CTRL").map(|field| Mod::DppCtrl { field }));
        let result = !self.traits.has(Trait::SdwaSourceOnly);
        let second = self.operands.iter().any(|o| self.field_name(o) == Some("VSRC1"));
        for (name, field, names, present) in [
            ("dst_sel", "DST_SEL", SDWA_PARTS, result),
            ("dst_unused", "DST_UNUSED", SDWA_UNUSED, result),
            ("src0_sel", "SRC0_SEL", SDWA_PARTS, true),
            ("src1_sel", "SRC1_SEL", SDWA_PARTS, second),
        ] {
            let field = self.field(field).filter(|_| present);
            self.mods.extend(field.map(|field| Mod::Select { name, field, names }));
        }
        self.number("row_mask", "ROW_MASK", Style::Mask);
        self.number("bank_mask", "BANK_MASK", Style::Mask);
        if let (Some(first), Some(source)) = (self.field("LANE_SEL_0"), self.field("SRC0")) {
            self.mods.push(Mod::Dpp8 { first });
            self.mods.push(Mod::Dpp8Fetch { source });
        }
        self.rows(LANES_AND_WAITS);
    }

    /// Cache operations take no modifiers except CDNA's coherence bits; RDNA 4's vector cache operations keep
    /// their scope.
    fn is_cache_operation(&self) -> bool {
        self.operands.is_empty() && (self.is_scalar() || self.encoding.name == "ENC_MUBUF")
    }

    fn buffer(&mut self) {
        if self.traits.has(Trait::TypedBuffer) {
            self.mods.extend(self.field("FORMAT").map(|field| Mod::Format { field }));
            if let (Some(data), Some(number)) = (self.field("DFMT"), self.field("NFMT")) {
                self.mods.push(Mod::TwoFormats { data, number });
            }
        }
        if !self.traits.has(Trait::StoresFromLds) {
            self.flag("idxen", "IDXEN");
            self.flag("offen", "OFFEN");
        }
    }

    fn offsets(&mut self) {
        // RDNA 4's write-back and invalidate instructions use an encoding with an address but have no
        // address.
        let addressed = !(self.operands.is_empty() && self.encoding.name == "ENC_VGLOBAL");
        if !self.is_scalar() && addressed {
            for name in ["OFFSET", "IOFFSET"] {
                let Some(field) = self.field(name) else { continue };
                // Flat addresses of RDNA 3 take non-negative offsets only.
                let positive = POSITIVE_BUFFER_OFFSETS.has(self.arch);
                let style = match (self.encoding.fields[field as usize].width() > 12, self.encoding.name) {
                    (true, "ENC_FLAT") => Style::Positive,
                    (true, "ENC_VBUFFER") if positive => Style::Positive,
                    (true, _) => Style::Signed,
                    (false, _) => Style::Decimal,
                };
                self.number("offset", name, style);
            }
        }
        if let (Some(low), Some(high)) = (self.field("OFFSET0"), self.field("OFFSET1")) {
            if self.traits.has(Trait::TwoOffsets) {
                self.number("offset0", "OFFSET0", Style::Decimal);
                self.number("offset1", "OFFSET1", Style::Decimal);
            } else {
                self.mods.push(Mod::Offset16 { low, high, swizzle: self.traits.has(Trait::Swizzle) });
            }
        }
        if self.arch.facts().instructions.global_data_share || self.traits.has(Trait::GlobalDataShare) {
            self.flag("gds", "GDS");
        }
    }

    fn image(&mut self) {
        if !self.is_ray() {
            self.number("dmask", "DMASK", Style::Hex);
            self.mods.extend(self.field("DIM").map(|field| Mod::Dim { field }));
            self.flag("unorm", "UNORM");
        }
    }

    /// Matrix operands of CDNA.
    fn matrix(&mut self) {
        let doubles = self.operands.iter().any(|o| o.output && self.format_name(o).ends_with("F64"));
        let sparse = self.field("ACC_CD").is_some()
            && self.operands.iter().any(|o| self.type_name(o) == "OPR_SRC_VGPR");
        for (name, field) in [("cbsz", "CBSZ"), ("abid", "ABID"), ("blgp", "BLGP")] {
            match self.field(field) {
                Some(field) if doubles && name == "blgp" => self.mods.push(Mod::Signs { field }),
                // Sparse matrix products take the indices as third source.
                _ if sparse && name == "blgp" => {}
                // ABID's bit indicates the presence of scales.
                _ if self.traits.has(Trait::SizeFromFormat) && name == "abid" => {}
                _ => self.number(name, field, Style::Decimal),
            }
        }
    }

    /// Coherence bits, temporal hint and scope.
    fn cache(&mut self) {
        if self.traits.has(Trait::StoresFromLds) {
            self.flag("lds", "LDS");
        }
        self.rows(COHERENCE);
        if self.traits.has(Trait::LoadsToLds) {
            self.flag("lds", "LDS");
        }
        let data = |o: &OperandSig| self.field_name(o) == Some("SDATA") && self.type_name(o).contains("SREG");
        // Scalar instructions that move no data have no coherence bit.
        if !self.is_scalar() || self.operands.len() > 1 && self.operands.iter().any(data) {
            self.flag("glc", "GLC");
        }
        self.flag("slc", "SLC");
        self.flag("dlc", "DLC");
        if !self.is_scalar_prefetch() {
            self.flag("scale_offset", "SCALE_OFFSET");
        }
        self.hints();
    }

    /// Temporal hint and scope.
    fn hints(&mut self) {
        let subgroup = self.inst.subgroup();
        if let (Some(field), Some(scope)) = (self.field("TH"), self.field("SCOPE"))
            && (!self.is_scalar() || subgroup == "LOAD")
        {
            let kind = match subgroup {
                "ATOMIC" => ThKind::Atomic,
                // Loads into LDS have no result, either.
                "LOAD" => ThKind::Load,
                _ if self.is_prefetch() => ThKind::Load,
                _ if self.only_reads() => ThKind::Store,
                _ => ThKind::Load,
            };
            self.mods.push(Mod::Th { field, scope, kind });
            self.mods.push(Mod::Scope { field: scope });
        }
    }

    fn access(&mut self) {
        if !self.is_ray() {
            self.flag("r128", "R128");
        }
        self.flag("a16", "A16");
        // Missing pages are reported only for loads.
        let writes = self.only_reads() || self.inst.subgroup() == "ATOMIC";
        let buffer = ["ENC_MUBUF", "ENC_MTBUF", "ENC_VBUFFER"].contains(&self.encoding.name);
        if !(buffer && writes) {
            self.flag("tfe", "TFE");
        }
        self.rows(&[("lwe", "LWE", None), ("d16", "D16", None)]);
        if !self.is_scalar_prefetch() {
            self.flag("nv", "NV");
        }
    }
}
