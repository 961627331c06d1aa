//! The syntax of each entry of the tables: its mnemonic, its operands in order, its modifiers in the order in
//! which they are printed.
//!
//! One description serves both directions: the parser matches a line against it, the printer walks it.
//! Operands, sizes and registers come from the ISA description; this module adds LLVM's syntax: which
//! operands of a memory instruction share a slot, and how fields that are not operands are spelt.

mod builder;

use builder::Builder;

use super::dialect::Traits;
use super::modifier::Mod;
use super::names::TypeNames;
use super::{Options, image};
use foldhash::HashMap;
use isa_spec::tables::{EntryId, MAX_FIELDS};
use std::sync::OnceLock;
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;

/// The syntax of one entry.
#[derive(Debug)]
pub struct Form {
    /// The entry that it describes.
    pub entry: EntryId,
    /// Which of the instruction's encodings it is.
    pub class: Class,
    /// As printed, with its suffix.
    pub mnemonic: String,
    /// Operands in the order of assembly.
    pub slots: Vec<Slot>,
    /// Modifiers in the order of printing.
    pub mods: Vec<Mod>,
    /// Size of the instruction in bytes, literal included.
    pub size_bytes: u8,
    /// Field values before operands and modifiers: fixed ones, the opcode, and defaults.
    pub start: [u32; MAX_FIELDS],
    /// The field of the literal, if the encoding has one.
    pub literal: Option<u8>,
    /// The literal is an operand of its own (`v_fmaak_f32`), not a source's.
    pub own_literal: bool,
    /// Number of sources, for modifiers with one bit per source.
    pub sources: u8,
    /// GLC or TH of an atomic: with bit 0 the first slot is written.
    pub returns: Option<u8>,
    /// LDS of a buffer load: with it the first slot is not written.
    pub to_lds: Option<u8>,
    /// 16-bit operands are halves of registers.
    pub true16: bool,
    /// Which sources can be negated.
    pub signs: Signs,
    /// Limits of the constant bus for vector instructions; `None` for others.
    pub bus: Option<Bus>,
    /// What LLVM's syntax adds to the tables.
    pub traits: Traits,
    /// Sources are 32-bit floats or halves of registers, by modifiers (`v_fma_mix_f32`).
    pub mixed: bool,
}

/// Which modifiers of sign the sources can have.
#[derive(Debug, Clone, Copy)]
pub struct Signs {
    /// The encoding has NEG bits, whatever they mean.
    pub neg: bool,
    /// The encoding has ABS bits, whatever they mean.
    pub abs: bool,
    /// Sources are two halves, each with its sign.
    pub packed: bool,
    /// Operands as written that are not floats, one bit each. Moves and selects of untyped bits count as
    /// floats (RDNA manuals, V_MOV_B32, V_CNDMASK_B32: "floating-point modifiers are valid …").
    pub integers: u32,
}

/// Scalar values that an instruction reads over the constant bus (RDNA manuals, *VALU: Operands*).
#[derive(Debug)]
pub struct Bus {
    /// The most that it can read, the literal among them.
    pub most: usize,
    /// Registers that it reads without a field: VCC, M0.
    pub implicit: Vec<(&'static str, Size)>,
}

/// One bit of an encoding field.
#[derive(Debug, Clone, Copy)]
pub struct Bit {
    /// Index in the encoding's fields.
    pub field: u8,
    /// From 0, the least significant.
    pub bit: u8,
}

/// Which of an instruction's encodings a mnemonic's suffix selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// An encoding without a suffix.
    Plain,
    /// `_e32`: VOP1, VOP2, VOPC.
    E32,
    /// `_e64`: VOP3.
    E64,
    /// `_dpp`: DPP on a 32-bit encoding.
    Dpp,
    /// `_sdwa`: a 32-bit encoding with parts of registers.
    Sdwa,
    /// `_e64_dpp`: DPP on VOP3.
    E64Dpp,
    /// `v_dual_…`: VOPD.
    Dual,
}

/// An operand of a form.
#[derive(Debug, Clone)]
pub struct Slot {
    /// How it is written.
    pub kind: Kind,
    /// Index in the encoding's fields; `None` for an operand without a field.
    pub field: Option<u8>,
    /// Index of its operand type in the table.
    pub ty: u8,
    /// Names of that type's values.
    pub names: &'static TypeNames,
    /// Field and bit that make an accumulation VGPR of it.
    pub acc: Option<(u8, u8)>,
    /// Field that makes a scalar source of a VGPR's number (SDWA).
    pub scalar: Option<u8>,
    /// Field with the format of a matrix's elements, which decides how many registers it takes.
    pub format: Option<u8>,
    /// What that source can be.
    pub scalars: Option<&'static TypeNames>,
    /// Field that makes a signed integer of the selected part (SDWA).
    pub sext: Option<u8>,
    /// How many registers it takes.
    pub size: Size,
    /// How constants are encoded.
    pub constant: Constant,
    /// Position among the sources: bit of NEG, ABS, OP_SEL. `Some(3)` is the destination.
    pub source: Option<u8>,
    /// Its NEG bit.
    pub neg: Option<Bit>,
    /// Its ABS bit.
    pub abs: Option<Bit>,
    /// A destination that is read first.
    pub accumulates: bool,
    /// A number that can be negative: NEG and ABS apply.
    pub signed: bool,
    /// An immediate that cannot be negative.
    pub unsigned: bool,
}

/// Bits of a matrix's elements by their format: FP8, BF8, FP6, BF6, FP4. A lane holds 32 elements, in as many registers as these are.
const ELEMENT_BITS: [u8; 5] = [8, 8, 6, 6, 4];

/// The scalar base of CDNA that is none.
pub(super) const NO_BASE: u32 = 127;

impl Slot {
    /// Whether a scalar base is none.
    pub fn is_off(&self, code: u32, options: &Options) -> bool {
        self.names.name(code) == Some("null") || options.arch.is_cdna() && code == NO_BASE
    }

    /// The names of what the field of `inst` can hold.
    pub fn names_in(&self, inst: &Inst) -> &'static TypeNames {
        let scalar = self.scalar.is_some_and(|f| inst.fields[f as usize] != 0);
        self.scalars.filter(|_| scalar).unwrap_or(self.names)
    }

    /// How many registers the operand of `inst` takes; 0 where it is none, or not one range of them.
    pub fn registers(&self, inst: &Inst, options: &Options) -> u16 {
        let table = options.arch.table();
        let wave = options.wave;
        let get = |name: &str| inst.field(table, name).unwrap_or(0) as u16;
        match self.kind {
            Kind::Value if self.format.is_some() => {
                let format = self.format.map_or(0, |f| inst.fields[f as usize]);
                ELEMENT_BITS.get(format as usize).map_or(self.size.registers(wave), |bits| *bits as u16)
            }
            Kind::Value | Kind::MaskOrVcc | Kind::FlatBase | Kind::ScratchBase => self.size.registers(wave),
            Kind::FlatAddr => {
                let forms = forms(options.arch);
                let base = forms.of(inst.entry).slots.iter().find(|s| s.kind == Kind::FlatBase);
                // Beside a scalar base the address is an offset of 32 bits.
                let code = base.and_then(|b| Some((b, inst.fields[b.field? as usize])));
                2 - u16::from(code.is_some_and(|(b, code)| !b.is_off(code, options)))
            }
            Kind::ScratchAddr => get("SVE"),
            Kind::BufferAddr => get("IDXEN") + get("OFFEN"),
            Kind::BufferData => self.size.registers(wave) + get("TFE"),
            Kind::ImageData => {
                let listed = self.size.registers(wave);
                image::data_registers(inst, options.arch, listed, get("DMASK") as u32)
            }
            Kind::Export(_) => 1,
            _ => 0,
        }
    }
}

/// How an operand is written, and what it sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Anything that the operand type names: registers, constants, a literal.
    Value,
    /// VCC, fixed by the instruction but written.
    Vcc,
    /// The lane mask that a compare of SDWA writes: VCC unless SD is set.
    MaskOrVcc,
    /// The literal itself.
    Literal,
    /// An immediate of 16 bits, or of the field's width.
    Imm(Imm),
    /// Offset of scalar memory: a register, a number or both.
    ScalarOffset,
    /// Vector address of flat and global: 64 bits, or 32 beside a scalar base.
    FlatAddr,
    /// Scalar base, `off` if null. Flat instructions do not write it.
    FlatBase,
    /// Vector address of scratch: `off` unless SVE.
    ScratchAddr,
    /// Scalar base of scratch; `off` if null.
    ScratchBase,
    /// Vector address of a buffer: `off` unless IDXEN or OFFEN.
    BufferAddr,
    /// Data of buffers: one register more with TFE.
    BufferData,
    /// Addresses of an image instruction; the field is that of the first.
    ImageAddr,
    /// Data of an image instruction: DMASK, D16 and TFE determine its size.
    ImageData,
    /// Export target.
    Target,
    /// Exported value `n`: `off` unless EN has the bit.
    Export(u8),
    /// `attr3.x`: ATTR and ATTR_CHAN.
    Attribute,
}

/// How an immediate is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Imm {
    /// In hex.
    Hex,
    /// In decimal, and only if it is not 0: `s_endpgm 1`.
    Optional,
    /// In hex, but decimal where it is an inline constant.
    Small,
    /// A label or a distance in words: branch targets.
    Label,
    /// `hwreg(…)`.
    Hwreg,
    /// `sendmsg(…)`.
    Sendmsg,
    /// `vmcnt(0) lgkmcnt(0)`.
    Waitcnt,
    /// `depctr_…(…)`.
    Depctr,
    /// `instid0(…) | instskip(…)`.
    Delay,
    /// `UC_VERSION_…`.
    Version,
    /// `gpr_idx(…)`: which operands are indexed.
    GprIndex,
    /// Offset of a prefetch: signed, hex.
    Offset,
}

/// Registers that an operand takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// This many bits: a register for every 32.
    Bits(u16),
    /// A lane mask: one bit per lane.
    Mask,
    /// Bits per lane in wave32, half of that in wave64: matrices that the wave's lanes share.
    Matrix(u16),
}

impl Form {
    /// Whether bit 7 of a register's number is the half of a 16-bit operand.
    pub fn halves_by_number(&self) -> bool {
        matches!(self.class, Class::E32 | Class::Dpp) && self.true16
    }

    /// The operands that are written of `inst`: atomics that return nothing have none for their result, and loads into LDS none for
    /// their data.
    pub fn written(&self, inst: &Inst) -> &[Slot] {
        let set = |field: Option<u8>| field.is_some_and(|f| inst.fields[f as usize] & 1 != 0);
        let none = self.returns.is_some() && !set(self.returns) || set(self.to_lds);
        if none { &self.slots[1..] } else { &self.slots }
    }
}

impl Size {
    /// Registers of 32 bits in waves of `wave` lanes.
    #[inline]
    pub fn registers(self, wave: u32) -> u16 {
        match self {
            Size::Bits(bits) => bits.div_ceil(32).max(1),
            Size::Mask => (wave / 32) as u16,
            Size::Matrix(bits) => (bits / (wave / 32) as u16).div_ceil(32).max(1),
        }
    }
}

/// How constants and literals of an operand are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constant {
    /// 16-bit integer or untyped bits.
    Int16,
    /// IEEE binary16.
    F16,
    /// A 16-bit float that literals give by its bits
    /// ([`Trait::BitsAreLiteral`](crate::dialect::Trait::BitsAreLiteral)).
    F16OrBits,
    /// bfloat16.
    Bf16,
    /// 32-bit integer or untyped bits.
    Int32,
    /// IEEE binary32.
    F32,
    /// 64-bit integer or untyped bits.
    Int64,
    /// IEEE binary64; a literal is the upper half.
    F64,
    /// Mixed precision: numbers are 16-bit floats to LLVM, literals have 32 bits.
    Mixed,
    /// Two 16-bit integers.
    PackedInt,
    /// Two f16.
    PackedF16,
    /// Two bf16.
    PackedBf16,
}

impl Constant {
    fn of(format: &str, size: u16) -> Constant {
        match format.trim_start_matches("FMT_NUM_").trim_start_matches("FMT_") {
            "F16" => Constant::F16,
            "BF16" => Constant::Bf16,
            "F32" => Constant::F32,
            "F64" => Constant::F64,
            "PK2_F16" | "WMMA_DC_F16" => Constant::PackedF16,
            "PK2_BF16" | "WMMA_DC_BF16" => Constant::PackedBf16,
            "PK2_I16" | "PK2_U16" | "PK2_B16" => Constant::PackedInt,
            f if f.contains("WMMA_DC") && f.ends_with("BF16") => Constant::PackedBf16,
            f if f.contains("WMMA_DC") && f.ends_with("_F16") => Constant::PackedF16,
            f if f.contains("WMMA_DC") && f.ends_with("_F32") => Constant::F32,
            f if f.contains("WMMA") => Constant::Int32,
            _ if size == 64 => Constant::Int64,
            _ if size <= 16 => Constant::Int16,
            _ => Constant::Int32,
        }
    }
}

/// All forms of an architecture.
pub struct Forms {
    arch: Arch,
    /// By entry, made on demand: a kernel uses a few dozen of some thousands.
    forms: Vec<OnceLock<Form>>,
    /// Entries by the lower-case name of their instruction, in the order in which they are tried.
    by_name: HashMap<String, Vec<EntryId>>,
}

impl Forms {
    /// The form of an entry of this architecture, built on first use.
    #[inline]
    pub fn of(&self, entry: EntryId) -> &Form {
        self.forms[entry as usize].get_or_init(|| Builder::new(self.arch, entry).with_traits().form())
    }

    /// Entries of the instruction that is called `name`, lower case.
    pub fn called(&self, name: &str) -> Option<&[EntryId]> {
        self.by_name.get(name).map(Vec::as_slice)
    }

    /// As [`Forms::called`], also by an older name that LLVM still accepts.
    #[inline]
    pub fn called_or_alias(&self, name: &str) -> Option<&[EntryId]> {
        let older = || super::dialect::alias::candidates(name, self.arch).iter().find_map(|n| self.called(n));
        self.called(name).or_else(older)
    }

    /// Entries of a mnemonic as written, in lower case, and the class that its suffix selects.
    pub fn resolve(&self, name: &str) -> Option<(&[EntryId], Option<Class>)> {
        let (bare, class) = without_suffix(name);
        self.called_or_alias(bare).map(|entries| (entries, class))
    }

    /// Every instruction name, lower case, in no order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

/// A mnemonic without the suffix that selects an encoding, and the class that it selects.
#[inline]
pub fn without_suffix(name: &str) -> (&str, Option<Class>) {
    let class = match name.as_bytes() {
        [.., b'_', b'e', b'3', b'2'] => Class::E32,
        [.., b'_', b'e', b'6', b'4'] => Class::E64,
        [.., b'_', b'e', b'6', b'4', b'_', b'd', b'p', b'p'] => Class::E64Dpp,
        [.., b'_', b'd', b'p', b'p'] => Class::Dpp,
        [.., b'_', b's', b'd', b'w', b'a'] => Class::Sdwa,
        _ => return (name, None),
    };
    let len = match class {
        Class::E64Dpp => "_e64_dpp".len(),
        Class::Sdwa => "_sdwa".len(),
        _ => "_e32".len(),
    };
    (&name[..name.len() - len], Some(class))
}

/// The forms of an architecture, indexed on first use.
#[inline]
pub fn forms(arch: Arch) -> &'static Forms {
    static FORMS: [OnceLock<Forms>; Arch::ALL.len()] = [const { OnceLock::new() }; Arch::ALL.len()];
    FORMS[arch as usize].get_or_init(|| build(arch))
}

fn build(arch: Arch) -> Forms {
    let table = arch.table();
    let mut by_name: HashMap<String, Vec<EntryId>> = HashMap::default();
    for inst in table.instructions {
        let mut entries: Vec<EntryId> = (inst.entries.0..inst.entries.0 + inst.entries.1).collect();
        // The shortest first: without literal, then with; e32, then e64.
        entries.sort_by_key(|&e| {
            let encoding = &table.encodings[table.entries[e as usize].enc as usize];
            (Builder::new(arch, e).class(), encoding.bits, encoding.order)
        });
        let name = super::dialect::name(inst.name, arch);
        // LLVM's name, and the description's, if it is another.
        let own = Some(inst.name.to_lowercase()).filter(|own| *own != name);
        let others = own.into_iter().chain(inst.aliases().iter().map(|n| n.to_lowercase()));
        for name in std::iter::once(name).chain(others) {
            by_name.entry(name).or_default().extend(&entries);
        }
    }
    Forms { arch, forms: table.entries.iter().map(|_| OnceLock::new()).collect(), by_name }
}
