//! The syntax of each table entry: its mnemonic, its operands in order, and its modifiers in printing order.
//!
//! Both directions use the same description: the parser matches a line against it, and the printer traverses
//! it. Operands, sizes and registers come from the ISA description; this module adds LLVM's syntax: which
//! operands of a memory instruction share a slot, and how fields that are not operands are spelt.

mod builder;
mod halves;

pub use halves::half_slots;

use builder::Builder;

use super::dialect::{Traits, alias};
use super::modifier::{Mod, Part, parts_value};
use super::names::TypeNames;
use super::{Options, image};
use foldhash::HashMap;
use isa_spec::tables::{EntryId, MAX_FIELDS};
use smallvec::SmallVec;
use std::sync::OnceLock;
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{self, Constants};

/// The syntax of one table entry.
#[derive(Debug)]
pub struct Form {
    /// The table entry.
    pub entry: EntryId,
    /// The encoding class.
    pub class: Class,
    /// The mnemonic as printed, with its suffix.
    pub mnemonic: String,
    /// Operands in source order.
    pub slots: Vec<Slot>,
    /// Modifiers in printing order.
    pub mods: Vec<Mod>,
    /// Size of the instruction in bytes, literal included.
    pub size_bytes: u8,
    /// Initial field values, before operands and modifiers are applied: fixed values, the opcode, and
    /// defaults.
    pub initial_fields: [u32; MAX_FIELDS],
    /// Index of the literal field, if the encoding has one; of its lower half, if it has 64 bits.
    pub literal: Option<u8>,
    /// Index of the upper half of a literal of 64 bits.
    pub literal_hi: Option<u8>,
    /// The literals that the form and the instruction's other forms can hold.
    pub literals: Literals,
    /// The literal is a separate operand (`v_fmaak_f32`), not the value of a source.
    pub has_literal_operand: bool,
    /// Number of sources, for modifiers with one bit per source.
    pub sources: u8,
    /// GLC or TH field of an atomic: if bit 0 is set, the first slot is written.
    pub returns: Option<u8>,
    /// LDS field of a buffer load: if set, the first slot is not written.
    pub to_lds: Option<u8>,
    /// 16-bit operands are halves of registers.
    pub true16: bool,
    /// Sign modifiers of the sources.
    pub signs: Signs,
    /// Constant bus limits of vector instructions; `None` for others.
    pub bus: Option<ConstantBus>,
    /// Traits that LLVM's syntax adds to the tables.
    pub traits: Traits,
    /// Modifiers select whether a source is a 32-bit float or half of a register (`v_fma_mix_f32`).
    pub mixed: bool,
}

/// The sign modifiers that an instruction's sources can take.
#[derive(Debug, Clone, Copy)]
pub struct Signs {
    /// The encoding has NEG bits, whatever their meaning.
    pub neg: bool,
    /// The encoding has ABS bits, whatever their meaning.
    pub abs: bool,
    /// Sources consist of two halves, each with its own sign.
    pub packed: bool,
    /// Bit mask of the explicit operands that are not floats. Moves and selects of untyped bits count as
    /// floats (RDNA manuals, V_MOV_B32, V_CNDMASK_B32: "floating-point modifiers are valid …").
    pub integers: u32,
}

/// Scalar values that an instruction reads over the constant bus (RDNA manuals, *VALU: Operands*).
#[derive(Debug)]
pub struct ConstantBus {
    /// Maximum number of scalar values, including the literal.
    pub limit: usize,
    /// Registers read implicitly: VCC, M0.
    pub implicit: Vec<(&'static str, Size)>,
}

/// One bit of an encoding field.
#[derive(Debug, Clone, Copy)]
pub struct Bit {
    /// Index into the encoding's fields.
    pub field: u8,
    /// Bit number; 0 is the least significant bit.
    pub bit: u8,
}

/// The widths of literals in the forms of an instruction. They decide which literals a 64-bit operand takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Literals {
    /// 32 bits in all forms.
    Narrow,
    /// 32 bits in this form, 64 in another: that form takes the values that 32 bits do not represent.
    NarrowBesideWide,
    /// 64 bits in this form.
    Wide,
}

/// The encoding class that a mnemonic's suffix selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// An encoding without suffix.
    Plain,
    /// `_e32`: VOP1, VOP2, VOPC.
    E32,
    /// `_e64`: VOP3.
    E64,
    /// `_dpp`: DPP on a 32-bit encoding.
    Dpp,
    /// `_sdwa`: SDWA on a 32-bit encoding.
    Sdwa,
    /// `_e64_dpp`: DPP on VOP3.
    E64Dpp,
    /// `v_dual_…`: VOPD.
    Dual,
}

/// An operand of a form.
#[derive(Debug, Clone)]
pub struct Slot {
    /// The syntax of the operand.
    pub kind: SlotKind,
    /// Index into the encoding's fields; `None` for an operand without a field.
    pub field: Option<u8>,
    /// Index of the operand type in the table.
    pub ty: u8,
    /// Names of the operand type.
    pub names: &'static TypeNames,
    /// Field and bit that turn the register into an accumulation VGPR.
    pub acc: Option<(u8, u8)>,
    /// Position in MODE of the bits that extend the number of a VGPR.
    pub msb: Option<u8>,
    /// Field that turns a VGPR number into a scalar source (SDWA).
    pub scalar: Option<u8>,
    /// The bits with the format of the matrix elements, which determines the number of registers.
    pub format: [Option<Part>; 2],
    /// Names of the scalar source (SDWA).
    pub scalars: Option<&'static TypeNames>,
    /// Field that sign-extends the selected part (SDWA).
    pub sext: Option<u8>,
    /// The operand's size.
    pub size: Size,
    /// The encoding of constants.
    pub constant: Constant,
    /// Position among the sources, which selects the bit of NEG, ABS and OP_SEL; 3 is the destination.
    pub source: Option<u8>,
    /// The NEG bit.
    pub neg: Option<Bit>,
    /// The ABS bit.
    pub abs: Option<Bit>,
    /// The destination is also a source.
    pub accumulates: bool,
    /// The operand accepts NEG and ABS.
    pub signed: bool,
    /// The immediate is unsigned.
    pub unsigned: bool,
}

/// Bits per matrix element by format: FP8, BF8, FP6, BF6, FP4. The listed size is that of elements of 8 bits.
const ELEMENT_BITS: [u8; 5] = [8, 8, 6, 6, 4];

/// The code for an absent scalar base where there is no null register.
pub(super) const NO_BASE: u32 = 127;

impl Slot {
    /// Returns whether the code of a scalar base means that there is none.
    pub fn is_off(&self, code: u32, options: &Options) -> bool {
        match options.arch.facts().scalar_codes.has_null() {
            true => self.names.name(code) == Some("null"),
            false => code == NO_BASE,
        }
    }

    /// The names that apply to the field of `inst`.
    pub fn names_in(&self, inst: &Inst) -> &'static TypeNames {
        let scalar = self.scalar.is_some_and(|f| inst.fields[f as usize] != 0);
        self.scalars.filter(|_| scalar).unwrap_or(self.names)
    }

    /// Number of registers of the operand in `inst`; 0 if it has no register or is not a single range.
    pub fn registers(&self, inst: &Inst, options: &Options) -> u16 {
        let table = options.arch.table();
        let wave = options.wave;
        let get = |name: &str| inst.field(table, name).unwrap_or(0) as u16;
        match self.kind {
            SlotKind::Value if self.format[0].is_some() => {
                let parts: SmallVec<[Part; 2]> = self.format.into_iter().flatten().collect();
                let listed = self.size.registers(wave);
                let bits = ELEMENT_BITS.get(parts_value(&parts, &inst.fields) as usize);
                bits.map_or(listed, |bits| listed * *bits as u16 / 8)
            }
            SlotKind::Value
            | SlotKind::MaskOrVcc
            | SlotKind::FlatBase
            | SlotKind::OptionalBase
            | SlotKind::OptionalGroup
            | SlotKind::ScratchBase => self.size.registers(wave),
            SlotKind::FlatAddr | SlotKind::ScratchAddr | SlotKind::BufferAddr => {
                operand::address_registers(options.arch, inst).unwrap_or(self.size.registers(wave))
            }
            SlotKind::BufferData => self.size.registers(wave) + get("TFE"),
            SlotKind::ImageData => {
                let listed = self.size.registers(wave);
                image::data_registers(inst, options.arch, listed)
            }
            SlotKind::Export(_) => 1,
            _ => 0,
        }
    }
}

/// The syntax of an operand, and the fields it sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotKind {
    /// Any value of the operand type: a register, a constant or a literal.
    Value,
    /// VCC, which the instruction implies but assembly spells out.
    Vcc,
    /// The lane mask written by an SDWA compare: VCC unless SD is set.
    MaskOrVcc,
    /// The literal as a separate operand.
    Literal,
    /// An immediate of 16 bits or of the field's width.
    Imm(Imm),
    /// The offset of a scalar memory access: a register, a number or both.
    ScalarOffset,
    /// Vector address of flat and global instructions: 64 bits, or 32 with a scalar base.
    FlatAddr,
    /// Scalar base; `off` if null.
    FlatBase,
    /// Scalar base of flat instructions, which is not spelt if null.
    OptionalBase,
    /// Scalar registers that are not spelt if the other operands of this kind are null, too.
    OptionalGroup,
    /// Vector address of scratch instructions; `off` unless SVE is set.
    ScratchAddr,
    /// Scalar base of scratch instructions; `off` if null.
    ScratchBase,
    /// Vector address of buffer instructions; `off` unless IDXEN or OFFEN is set.
    BufferAddr,
    /// Data of buffer instructions; TFE adds a register.
    BufferData,
    /// Addresses of an image instruction; the field is that of the first address.
    ImageAddr,
    /// Data of an image instruction; DMASK, D16 and TFE determine the size.
    ImageData,
    /// The target of an export.
    Target,
    /// Exported value `n`; `off` unless its bit of EN is set.
    Export(u8),
    /// An attribute (`attr3.x`) in ATTR and ATTR_CHAN.
    Attribute,
}

/// The syntax of an immediate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Imm {
    /// Hexadecimal.
    Hex,
    /// Decimal; omitted if 0: `s_endpgm 1`.
    Optional,
    /// Decimal if it is an inline constant, otherwise hexadecimal.
    Small,
    /// A branch target: a label or a distance in words.
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
    /// `gpr_idx(…)`: the set of indexed operands.
    GprIndex,
    /// The offset of a prefetch: signed, hexadecimal.
    Offset,
}

/// The size of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// A number of bits: one register per 32 bits.
    Bits(u16),
    /// A lane mask: one bit per lane.
    Mask,
    /// A matrix distributed over the wave's lanes: bits per lane in wave32; wave64 has half as many.
    Matrix(u16),
}

impl Form {
    /// Returns whether bit 7 of a register's number selects the half of a 16-bit operand.
    pub fn has_half_in_register_number(&self) -> bool {
        matches!(self.class, Class::E32 | Class::Dpp) && self.true16
    }

    /// The operands that assembly spells for `inst`. Atomics without result and loads to LDS omit the first
    /// slot.
    pub fn explicit_slots(&self, inst: &Inst) -> &[Slot] {
        let set = |field: Option<u8>| field.is_some_and(|f| inst.fields[f as usize] & 1 != 0);
        let none = self.returns.is_some() && !set(self.returns) || set(self.to_lds);
        if none { &self.slots[1..] } else { &self.slots }
    }
}

impl Size {
    /// Number of 32-bit registers for a wave size.
    #[inline]
    pub fn registers(self, wave: u32) -> u16 {
        match self {
            Size::Bits(bits) => bits.div_ceil(32).max(1),
            Size::Mask => (wave / 32) as u16,
            Size::Matrix(bits) => (bits / (wave / 32) as u16).div_ceil(32).max(1),
        }
    }
}

/// The encoding of an operand's constants and literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constant {
    /// 16-bit integer or untyped bits.
    Int16,
    /// IEEE binary16.
    F16,
    /// IEEE binary16; literals are given as bits
    /// ([`Trait::BitPatternsAreLiterals`](crate::dialect::Trait::BitPatternsAreLiterals)).
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
    /// Mixed precision: LLVM treats numbers as 16-bit floats; literals have 32 bits.
    Mixed,
    /// Two 16-bit integers.
    PackedInt,
    /// Two f16.
    PackedF16,
    /// Two bf16.
    PackedBf16,
}

impl From<Constants> for Constant {
    /// LLVM's encoding of constants that expand in this way.
    fn from(constants: Constants) -> Constant {
        match constants {
            Constants::Int16 => Constant::Int16,
            Constants::F16 => Constant::F16,
            Constants::BF16 => Constant::Bf16,
            Constants::F32 => Constant::F32,
            Constants::Bits64 => Constant::Int64,
            Constants::F64 => Constant::F64,
            Constants::TwoInts => Constant::PackedInt,
            Constants::TwoF16 => Constant::PackedF16,
            Constants::TwoBF16 => Constant::PackedBf16,
            Constants::Never | Constants::Bits32 | Constants::TwoDwords => Constant::Int32,
        }
    }
}

/// All forms of an architecture.
pub struct Forms {
    arch: Arch,
    /// Indexed by entry; built on demand, since a kernel uses a few dozen of several thousand.
    forms: Vec<OnceLock<Form>>,
    /// Entries by the instruction's lower-case name, in the order in which they are tried.
    by_name: HashMap<String, Vec<EntryId>>,
}

impl Forms {
    /// The form of an entry, built on first use.
    #[inline]
    pub fn get(&self, entry: EntryId) -> &Form {
        self.forms[entry as usize].get_or_init(|| Builder::new(self.arch, entry).with_traits().form())
    }

    /// Entries of the instruction with this lower-case name.
    pub fn lookup(&self, name: &str) -> Option<&[EntryId]> {
        self.by_name.get(name).map(Vec::as_slice)
    }

    /// As [`Forms::lookup`], also accepting old names that LLVM still supports.
    #[inline]
    pub fn lookup_or_alias(&self, name: &str) -> Option<&[EntryId]> {
        self.lookup(name).or_else(|| {
            let newer = alias::candidates(name, self.arch, self.names());
            newer.iter().find_map(|n| self.lookup(n))
        })
    }

    /// Looks up a lower-case mnemonic with optional suffix. Returns the entries and the class that the suffix
    /// selects.
    pub fn resolve(&self, name: &str) -> Option<(&[EntryId], Option<Class>)> {
        let (bare, class) = without_suffix(name);
        self.lookup_or_alias(bare).map(|entries| (entries, class))
    }

    /// The lower-case names of all instructions, in unspecified order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

/// Splits off the suffix that selects an encoding class.
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
        // Shortest encoding first: without literal before with literal, e32 before e64.
        entries.sort_by_key(|&e| {
            let encoding = &table.encodings[table.entries[e as usize].enc as usize];
            (Builder::new(arch, e).class(), encoding.bits, encoding.order)
        });
        let name = super::dialect::name(inst.name, arch);
        let others = inst.aliases().iter().map(|n| n.to_lowercase()).filter(|other| *other != name);
        for name in std::iter::once(name.clone()).chain(others) {
            by_name.entry(name).or_default().extend(&entries);
        }
    }
    Forms { arch, forms: table.entries.iter().map(|_| OnceLock::new()).collect(), by_name }
}
