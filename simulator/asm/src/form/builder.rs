//! Builds the form of a table entry.

use super::{Bit, Class, Constant, ConstantBus, Form, Imm, Literals, NO_BASE, Signs, Size, Slot, SlotKind};
use crate::dialect::{self, Trait, Traits};
use crate::modifier::{self, Mod, Part};
use crate::names::{TypeNames, names};
use isa_spec::tables::{ArchTable, Encoding, EntryId, Instruction, MAX_FIELDS, OperandSig, Role};
use wavesim_isa::arch::Arch;
use wavesim_isa::dpp;
use wavesim_isa::operand::{self, Fmt};

/// The operand type of a prefetch's scalar offset, which is an operand of its own.
const PREFETCH_OFFSET: &str = "OPR_SMEM_OFFSET_NOK";

/// The source code that announces an SDWA word (CDNA manuals, *SDWA*).
const SDWA: u32 = 249;

pub(super) struct Builder {
    arch: Arch,
    table: &'static ArchTable,
    entry: EntryId,
    name: &'static str,
    encoding: &'static str,
    sig: &'static [OperandSig],
    traits: Traits,
}

impl Builder {
    pub(super) fn new(arch: Arch, entry: EntryId) -> Builder {
        let table = arch.table();
        let e = &table.entries[entry as usize];
        Builder {
            arch,
            table,
            entry,
            name: table.instructions[e.inst as usize].name,
            traits: Traits::default(),
            encoding: table.encodings[e.enc as usize].name,
            sig: table.signatures[e.sig as usize],
        }
    }

    pub(super) fn with_traits(self) -> Builder {
        Builder { traits: Traits::of(self.name, self.arch), ..self }
    }

    fn instruction(&self) -> &'static Instruction {
        &self.table.instructions[self.table.entries[self.entry as usize].inst as usize]
    }

    /// Returns whether the sources have mixed precision. The ISA description leaves only their format
    /// untyped; other packed operations have typed sources.
    fn mixed(&self) -> bool {
        let plan = operand::binding(self.arch, self.entry);
        plan.packed && plan.operands.iter().any(|o| o.input && !o.output && o.fmt == Fmt::Bits)
    }

    pub(super) fn form(&self) -> Form {
        let class = self.class();
        let mut slots = self.slots();
        let literal = self.field("LITERAL").or(self.field("SIMM32")).or(self.field("LITERAL64"));
        let has_wide_form = self
            .table
            .entries_of(self.instruction())
            .iter()
            .any(|e| self.table.encodings[e.enc as usize].fields.iter().any(|f| f.name == "LITERAL64"));
        // Flat atomics write a result only if they return the old value; in buffer and image atomics, one
        // register holds both data and result.
        let atomic = self.instruction().group() == "VMEM" && self.instruction().subgroup() == "ATOMIC";
        let returning = atomic && self.field_name(slots.first()) == Some("VDST");
        let returns =
            if returning { self.field("GLC").or(self.field("TH")).or(self.field("SC0")) } else { None };
        let buffer_data = slots.first().is_some_and(|s| s.kind == SlotKind::BufferData);
        if self.traits.has(Trait::Reversed) {
            slots.reverse();
        }
        let sources = slots.iter().filter_map(|s| s.source.filter(|n| *n < 3)).map(|n| n + 1).max();
        Form {
            sources: match sources {
                _ if self.traits.has(Trait::OpSelWithAccumulator) => 3,
                // The two bits do not belong to sources: they control fetching of inactive lanes, and bounds.
                _ if self.traits.has(Trait::OpSelSelectsLanes) => 2,
                sources => sources.unwrap_or(0),
            },
            entry: self.entry,
            class,
            mnemonic: self.mnemonic(class, slots.is_empty()),
            has_literal_operand: slots.iter().any(|s| s.kind == SlotKind::Literal),
            slots,
            mods: Mod::for_entry(self.arch, self.entry, self.traits, self.mixed()),
            size_bytes: (self.encoding().bits / 8) as u8,
            initial_fields: self.initial_fields(),
            literal,
            literal_hi: self.field("LITERAL64_HI"),
            literals: match class {
                _ if self.field("LITERAL64").is_some() => Literals::Wide,
                // The 64-bit encodings of vector instructions hold no literal of 64 bits.
                Class::Plain | Class::E32 if has_wide_form => Literals::NarrowBesideWide,
                _ => Literals::Narrow,
            },
            returns,
            to_lds: self.field("LDS").filter(|_| buffer_data && self.traits.has(Trait::LoadsToLds)),
            true16: self.arch.facts().true16,
            signs: self.signs(),
            bus: self.bus(),
            traits: self.traits,
            mixed: self.mixed(),
        }
    }

    fn signs(&self) -> Signs {
        let has = |names: &[&str]| names.iter().any(|name| self.field(name).is_some());
        let untyped = self.traits.has(Trait::Untyped);
        let float = |o: &OperandSig| {
            let format = self.table.formats[o.format as usize].name;
            format.trim_start_matches("FMT").contains('F')
        };
        let written = self.sig.iter().filter(|o| !o.implicit && o.role != Role::State);
        let integers = written.enumerate().filter(|(_, o)| !untyped && !float(o));
        Signs {
            neg: has(&["NEG", "SRC0_NEG", "NEGX"]),
            abs: has(&["ABS", "SRC0_ABS"]) || self.mixed(),
            packed: has(&["NEG_HI"]),
            integers: integers.fold(0, |bits, (at, _)| bits | 1 << at),
        }
    }

    fn bus(&self) -> Option<ConstantBus> {
        if !self.encoding.trim_start_matches("ENC_").starts_with("VOP") {
            return None;
        }
        let read = self.sig.iter().filter(|o| o.input && o.field.is_none());
        let implicit = read.filter_map(|o| match self.table.operand_types[o.ty as usize].name {
            // LLVM treats it as a pair even in wave32.
            "OPR_VCC" => Some(("vcc_lo", Size::Bits(64))),
            ty if ty.ends_with("_M0") => Some(("m0", Size::Bits(32))),
            _ => None,
        });
        let limit = self.arch.facts().instructions.scalar_values;
        Some(ConstantBus {
            limit: if self.traits.has(Trait::SingleScalar) { 1 } else { limit },
            implicit: implicit.collect(),
        })
    }

    /// The NEG and the ABS bit of a source in `field`.
    fn sign_bits(&self, source: Option<u8>, field: Option<&str>) -> [Option<Bit>; 2] {
        let Some(source) = source.filter(|s| *s < 3) else { return [None; 2] };
        if self.traits.has(Trait::TruthTable) {
            return [None; 2];
        }
        if self.class() == Class::Dual {
            let half = if field.is_some_and(|name| name.contains('Y')) { "NEGY" } else { "NEGX" };
            return [self.field(half).map(|field| Bit { field, bit: source }), None];
        }
        // Mixed precision stores ABS where other packed operations store the signs of the high halves.
        let packed = self.field("NEG_HI").is_some();
        let mixed = self.mixed();
        let bit = |all: &str, one: &str| {
            let shared = self.field(all).filter(|_| !packed || mixed).map(|field| Bit { field, bit: source });
            let own = || self.field(&format!("SRC{source}_{one}")).map(|field| Bit { field, bit: 0 });
            shared.or_else(|| if packed { None } else { own() })
        };
        [bit("NEG", "NEG"), bit(if packed { "NEG_HI" } else { "ABS" }, "ABS")]
    }

    fn field(&self, name: &str) -> Option<u8> {
        self.encoding().fields.iter().position(|f| f.name == name).map(|at| at as u8)
    }

    fn field_name(&self, slot: Option<&Slot>) -> Option<&'static str> {
        Some(self.encoding().fields[slot?.field? as usize].name)
    }

    pub(super) fn class(&self) -> Class {
        let dpp = self.encoding.contains("_DPP");
        match self.encoding.strip_prefix("ENC_").unwrap_or(self.encoding) {
            e if e.starts_with("VOPD") => Class::Dual,
            e if e.starts_with("VOP3") => {
                if dpp {
                    Class::E64Dpp
                } else {
                    Class::E64
                }
            }
            e if e.starts_with("VOP") => {
                if e.contains("_SDWA") {
                    Class::Sdwa
                } else if dpp {
                    Class::Dpp
                } else {
                    Class::E32
                }
            }
            _ => Class::Plain,
        }
    }

    /// The mnemonic with LLVM's suffix, which distinguishes an instruction's encodings.
    fn mnemonic(&self, class: Class, bare: bool) -> String {
        let name = dialect::name(self.name, self.arch);
        let inst = self.instruction();
        let has = |prefix: &str| {
            self.table.entries_of(inst).iter().any(|e| {
                let encoding = self.table.encodings[e.enc as usize].name;
                encoding.strip_prefix("ENC_").unwrap_or(encoding).starts_with(prefix)
            })
        };
        let short = has("VOP1") || has("VOP2") || has("VOPC");
        let long = has("VOP3") && !self.traits.has(Trait::ShortOnly);
        let suffix = match class {
            _ if bare => "",
            Class::E32 | Class::E64 if self.traits.has(Trait::Unsuffixed) => "",
            Class::E32 if long || self.traits.has(Trait::AlwaysSuffixed) => "_e32",
            Class::E64 if short => "_e64",
            Class::Sdwa => "_sdwa",
            Class::Dpp if !self.encoding.starts_with("VOPC") => "_dpp",
            Class::E64Dpp => "_e64_dpp",
            _ => "",
        };
        name + suffix
    }

    fn slots(&self) -> Vec<Slot> {
        let mut slots: Vec<Slot> = self.sig.iter().filter_map(|o| self.slot(o)).collect();
        if self.traits.has(Trait::OptionalImmediate) {
            // Some descriptions list it.
            slots.retain(|slot| self.field_name(Some(slot)) != Some("SIMM16"));
            let constant = Constant::Int16;
            let (kind, field, size) = (SlotKind::Imm(Imm::Optional), self.field("SIMM16"), Size::Bits(16));
            slots.push(Slot { kind, field, size, constant, unsigned: true, ..self.unsigned_slot(0) });
        }
        let family = self.family();
        if family == "EXP" {
            for (n, slot) in slots.iter_mut().skip(1).enumerate() {
                slot.kind = SlotKind::Export(n as u8);
            }
        }
        // If the addresses are not listed, the dimension determines their number.
        if self.traits.has(Trait::TensorGroups) {
            slots.iter_mut().skip(2).for_each(|slot| slot.kind = SlotKind::OptionalGroup);
        } else if matches!(family, "VIMAGE" | "VSAMPLE") {
            let (kind, field) = (SlotKind::ImageAddr, self.field("VADDR0"));
            let slot = Slot { kind, field, ..self.unsigned_slot(slots.first().map_or(0, |s| s.ty)) };
            slots.insert(1.min(slots.len()), slot);
        }
        if family == "SMEM" && self.sig.iter().any(|o| self.type_name(o) == PREFETCH_OFFSET) {
            // Order: base, offset, scalar offset, length.
            slots.sort_by_key(|s| match self.field_name(Some(s)) {
                Some("SBASE") => 0,
                Some("IOFFSET") => 1,
                Some("SOFFSET") => 2,
                _ => 3,
            });
        }
        slots
    }

    /// The encoding without prefix; old and new names of a family are unified.
    fn family(&self) -> &'static str {
        match self.encoding.strip_prefix("ENC_").unwrap_or(self.encoding) {
            "EXP" | "VEXPORT" => "EXP",
            "FLAT" | "VFLAT" => "FLAT",
            "FLAT_GLOBAL" | "FLAT_GLBL" | "VGLOBAL" => "GLOBAL",
            "FLAT_SCRATCH" | "VSCRATCH" => "SCRATCH",
            "MUBUF" | "MTBUF" | "VBUFFER" => "BUFFER",
            e if e.starts_with("MIMG") => "MIMG",
            other => other,
        }
    }

    /// A 32-bit slot that is not a source.
    fn unsigned_slot(&self, ty: u8) -> Slot {
        Slot {
            kind: SlotKind::Value,
            field: None,
            ty,
            names: names(self.arch, ty),
            acc: None,
            msb: None,
            scalar: None,
            format: [None; 2],
            scalars: None,
            sext: None,
            size: Size::Bits(32),
            constant: Constant::Int32,
            source: None,
            neg: None,
            abs: None,
            accumulates: false,
            signed: false,
            unsigned: false,
        }
    }

    fn slot(&self, o: &OperandSig) -> Option<Slot> {
        let ty = self.table.operand_types[o.ty as usize].name;
        let format = self.table.formats[o.format as usize].name;
        let field = o.field.map(|f| self.encoding().fields[f as usize].name);
        let kind = match (self.family(), ty, field) {
            // Implicit state is not written in assembly, except carries and comparison results.
            (_, "OPR_VCC", None) if !o.implicit && !self.encoding.starts_with("VOPD") => SlotKind::Vcc,
            (_, _, None) | (_, "OPR_EXEC", _) => return None,
            (_, _, Some("LITERAL" | "SIMM32" | "LITERAL64")) => SlotKind::Literal,
            (_, _, Some("SDST")) if self.field("SD").is_some() => SlotKind::MaskOrVcc,
            ("SMEM", _, Some("IOFFSET")) => SlotKind::Imm(Imm::Offset),
            ("SMEM", ty, Some("SOFFSET")) if ty != PREFETCH_OFFSET => SlotKind::ScalarOffset,
            ("SMEM", "OPR_SIMM5" | "OPR_SIMM8", _) => SlotKind::Imm(Imm::Small),
            ("FLAT" | "GLOBAL", _, Some("ADDR" | "VADDR")) => SlotKind::FlatAddr,
            ("GLOBAL", _, Some("SADDR")) => SlotKind::FlatBase,
            ("FLAT", _, Some("SADDR")) => SlotKind::OptionalBase,
            ("SCRATCH", _, Some("ADDR" | "VADDR")) => SlotKind::ScratchAddr,
            ("SCRATCH", _, Some("SADDR")) => SlotKind::ScratchBase,
            ("BUFFER", _, Some("VADDR")) => SlotKind::BufferAddr,
            ("BUFFER", _, Some("VDATA")) => SlotKind::BufferData,
            ("MIMG", _, Some("VADDR")) => SlotKind::ImageAddr,
            ("MIMG" | "VIMAGE" | "VSAMPLE", _, Some("VDATA")) => SlotKind::ImageData,
            (_, "OPR_TGT", _) => SlotKind::Target,
            (_, "OPR_ATTR", _) => SlotKind::Attribute,
            // The truth table of a dual instruction is a modifier.
            (_, "OPR_SIMM8", Some("VSRCY2")) => return None,
            (_, "OPR_LABEL", _) => SlotKind::Imm(Imm::Label),
            (_, "OPR_HWREG", _) => SlotKind::Imm(Imm::Hwreg),
            (_, "OPR_SENDMSG" | "OPR_SENDMSG_RTN", _) => SlotKind::Imm(Imm::Sendmsg),
            (_, "OPR_WAITCNT", _) => SlotKind::Imm(Imm::Waitcnt),
            (_, "OPR_WAITCNT_DEPCTR" | "OPR_WAIT_ALU", _) => SlotKind::Imm(Imm::Depctr),
            (_, "OPR_SIMM4", Some("SSRC1")) => SlotKind::Imm(Imm::GprIndex),
            (_, "OPR_DELAY", _) => SlotKind::Imm(Imm::Delay),
            (_, "OPR_VERSION", _) => SlotKind::Imm(Imm::Version),
            (_, _, Some("SIMM16")) if self.traits.has(Trait::RegisterIndex) => SlotKind::Imm(Imm::GprIndex),
            (_, _, Some("SIMM16")) if self.traits.has(Trait::DecimalImmediate) => SlotKind::Imm(Imm::Small),
            (_, _, Some("SIMM16")) => SlotKind::Imm(Imm::Hex),
            _ => SlotKind::Value,
        };
        let mask = format.ends_with("_M64");
        let matrix = format.contains("WMMA_DC")
            || self.traits.has(Trait::MatrixLoad) && field == Some("VDST")
            || format.contains("WMMA_AB")
                && self.arch.facts().instructions.divides_matrix_sources
                && self.encoding.contains("VOP3P");
        let size = match o.size_bits {
            _ if mask => Size::Mask,
            bits if matrix => Size::Matrix(bits),
            bits => Size::Bits(bits),
        };
        let source = match field {
            Some("SRC0" | "VSRC0" | "SRCX0" | "SRCY0") => Some(0),
            Some("SRC1" | "VSRC1" | "VSRCX1" | "VSRCY1") => Some(1),
            Some("SRC2" | "VSRCX2" | "VSRCY2") => Some(2),
            Some("VDST" | "VDSTX" | "VDSTY")
                if self.encoding.contains("VOP") || self.encoding.contains("VINTERP") =>
            {
                Some(3)
            }
            _ => None,
        };
        let constant = self.constant(format, o.size_bits, source);
        let whole = |name: &str, bits| Some(Part { field: self.field(name)?, shift: 0, bits });
        let format_of = match source {
            Some(0) if self.traits.has(Trait::SizeFromFormat) => [whole("CBSZ", 3), None],
            Some(1) if self.traits.has(Trait::SizeFromFormat) => [whole("BLGP", 3), None],
            Some(0) if self.traits.has(Trait::MatrixFormats) => [whole("OP_SEL", 3), None],
            Some(1) if self.traits.has(Trait::MatrixFormats) => {
                [whole("OP_SEL_HI", 2), whole("OP_SEL_HI_2", 1)]
            }
            _ => [None; 2],
        };
        let [neg, abs] = self.sign_bits(source, field);
        let accumulates = o.input && o.output;
        let bare = self.unsigned_slot(o.ty);
        let parts = source.filter(|s| *s < 3 && self.encoding.contains("_SDWA"));
        let scalar = parts.and_then(|s| self.field(&format!("S{s}")));
        // SDWA selects bytes of 8-bit floats, but does not extend them.
        let bytes = format.ends_with("FP8") || format.ends_with("BF8");
        let sext = parts.filter(|_| !bytes).and_then(|s| self.field(&format!("SRC{s}_SEXT")));
        // Lane masks take no sign modifiers, even where the description gives them a float format.
        let integer = self.traits.has(Trait::WideSecondSource) || self.traits.has(Trait::IntegerSecondSource);
        let bytes_only = self.traits.has(Trait::HalfFirstSource) && source == Some(0);
        let class = integer && source == Some(1) || bytes_only || self.traits.has(Trait::NoSigns);
        let float = matches!(
            constant,
            Constant::F16
                | Constant::Bf16
                | Constant::F32
                | Constant::F64
                | Constant::Mixed
                | Constant::PackedF16
                | Constant::PackedBf16
        );
        let signed = !mask && !class && (float || self.traits.has(Trait::Untyped));
        let unsigned = format == "FMT_NUM_U16";
        let binding = operand::binding(self.arch, self.entry);
        let bound = binding.operands.iter().chain(&binding.y).find(|p| p.field == o.field);
        Some(Slot {
            kind,
            field: o.field,
            acc: bound.and_then(|p| p.acc),
            msb: bound.and_then(|p| p.msb),
            size,
            constant,
            source,
            neg,
            abs,
            accumulates,
            signed,
            unsigned,
            scalar,
            format: format_of,
            scalars: scalar.and_then(|_| self.names_of("OPR_SRC_SIMPLE")),
            sext,
            ..bare
        })
    }

    /// How LLVM encodes the operand's constants. If an instruction reads 16 bits of a 32-bit operand,
    /// constants have 32 bits.
    fn constant(&self, format: &str, size: u16, source: Option<u8>) -> Constant {
        let second = self.traits.has(Trait::WideSecondSource) && self.encoding.contains("VOP3");
        let wide = match source {
            Some(1) => second,
            Some(2) => self.traits.has(Trait::WideThirdSource),
            _ => false,
        };
        match Constant::from(operand::format(format, size).constants) {
            _ if self.mixed() => Constant::Mixed,
            _ if wide => Constant::Int32,
            _ if source == Some(0) && self.traits.has(Trait::IntegerFirstSource) => Constant::Int16,
            _ if source == Some(0) && self.traits.has(Trait::HalfFirstSource) => Constant::F16,
            Constant::Int16 if self.encoding.contains("SOP") => Constant::Int32,
            Constant::F16 if self.encoding.contains("SOP1") => Constant::F32,
            Constant::F16 if self.traits.has(Trait::BitPatternsAreLiterals) => Constant::F16OrBits,
            constant => constant,
        }
    }

    fn names_of(&self, ty: &str) -> Option<&'static TypeNames> {
        let at = self.table.operand_types.iter().position(|t| t.name == ty)?;
        Some(names(self.arch, at as u8))
    }

    fn type_name(&self, o: &OperandSig) -> &'static str {
        self.table.operand_types[o.ty as usize].name
    }

    fn encoding(&self) -> &'static Encoding {
        &self.table.encodings[self.table.entries[self.entry as usize].enc as usize]
    }

    fn initial_fields(&self) -> [u32; MAX_FIELDS] {
        let mut start = [0; MAX_FIELDS];
        for (field, value) in self.defaults() {
            start[field as usize] = value;
        }
        let encoding = self.encoding();
        for (value, field) in start.iter_mut().zip(encoding.fields) {
            *value = field.fixed.unwrap_or(*value);
        }
        if let Some(at) = encoding.op_field {
            start[at as usize] = self.table.entries[self.entry as usize].opcode as u32;
        }
        start
    }

    /// Default values of fields that are set by neither an operand nor a modifier.
    fn defaults(&self) -> Vec<(u8, u32)> {
        let mut out = Vec::new();
        let mut set = |name: &str, value: u32| out.extend(self.field(name).map(|f| (f, value)));
        // Absent register operands are encoded as null, if there is a null register.
        let null = self.arch.facts().scalar_codes.has_null().then_some(operand::NULL as u32);
        match (self.family(), null) {
            ("FLAT" | "GLOBAL" | "SCRATCH", Some(null)) => set("SADDR", null),
            ("GLOBAL" | "SCRATCH", None) => set("SADDR", NO_BASE),
            ("SMEM", Some(null)) if !self.sig.is_empty() => set("SOFFSET", null),
            ("VIMAGE", Some(null)) if self.traits.has(Trait::TensorGroups) => {
                ["VADDR2", "VADDR3", "VADDR4"].iter().for_each(|field| set(field, null));
                ["DMASK", "DIM"].iter().for_each(|field| set(field, 1));
            }
            ("SMEM", None) if !self.sig.is_empty() => {
                let offset = self.sig.iter().any(|o| self.type_name(o) == "OPR_SMEM_OFFSET");
                set("IMM", u32::from(offset));
            }
            _ => {}
        }
        if self.encoding.contains("_DPP") && !self.encoding.contains("DPP8") {
            set("SRC0", dpp::DPP16);
            set("ROW_MASK", 15);
            set("BANK_MASK", 15);
        }
        if self.encoding.contains("_SDWA") && !self.sig.is_empty() {
            set("SRC0", SDWA);
            set("DST_SEL", modifier::SDWA_DWORD);
            let preserved = !self.traits.has(Trait::SdwaSourceOnly);
            set("DST_UNUSED", if preserved { modifier::SDWA_PRESERVE } else { 0 });
            set("SRC0_SEL", modifier::SDWA_DWORD);
            if self.sig.iter().any(|o| o.field.is_some() && o.field == self.field("VSRC1")) {
                set("SRC1_SEL", modifier::SDWA_DWORD);
            }
        }
        if self.encoding.contains("DPP8") {
            set("SRC0", dpp::DPP8);
        }
        if self.field("SCALE_SRC0").is_some() && self.field("ABID").is_some() {
            set("ABID", 1);
        } else if self.encoding.contains("VOP3P") && !self.mixed() && !self.traits.has(Trait::MatrixFormats) {
            set("OP_SEL_HI", 3);
            set("OP_SEL_HI_2", u32::from(!self.traits.has(Trait::MatrixReuse)));
        }
        for o in self.sig {
            // LLVM sets the destination of V_CMPX_*, which is EXEC, to EXEC's code.
            if self.table.operand_types[o.ty as usize].name == "OPR_EXEC"
                && let (Some(field), Some(&(_, value))) =
                    (o.field, self.table.operand_types[o.ty as usize].values.first())
            {
                out.push((field, value));
            }
        }
        if self.family() == "BUFFER" && !self.sig.is_empty() {
            // LLVM sets a format even if it is unused.
            out.extend(self.field("FORMAT").map(|f| (f, modifier::DEFAULT_FORMAT)));
        }
        if self.encoding == "ENC_MIMG_NSA" {
            out.extend(self.field("NSA").map(|f| (f, 1)));
        }
        if self.instruction().subgroup() == "BVH" {
            let mut set = |name: &str, value: u32| out.extend(self.field(name).map(|f| (f, value)));
            set("DMASK", 15);
            set("UNORM", 1);
            set("R128", 1);
        }
        out
    }
}
