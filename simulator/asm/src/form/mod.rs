//! How each entry of the tables is written: its mnemonic, its operands in order, its modifiers in the order
//! in which they are printed.
//!
//! One description for both directions: the parser matches a line against it, the printer walks it. Operands,
//! sizes and registers come from the ISA description; what is written here is LLVM's syntax: which operands
//! of a memory instruction share a place, and how fields that are no operands are spelt.

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

/// How one entry is written.
#[derive(Debug)]
pub struct Form {
    pub entry: EntryId,
    pub class: Class,
    /// As printed, with its suffix.
    pub mnemonic: String,
    pub slots: Vec<Slot>,
    pub mods: Vec<Mod>,
    /// Of the instruction, literal included.
    pub size_bytes: u8,
    /// Field values before operands and modifiers: fixed ones, the opcode, and defaults.
    pub start: [u32; MAX_FIELDS],
    /// The field of the literal, if the encoding has one.
    pub literal: Option<u8>,
    /// The literal is an operand of its own (`v_fmaak_f32`), not a source's.
    pub own_literal: bool,
    /// Sources that modifiers with a bit for each count.
    pub sources: u8,
    /// GLC or TH of an atomic: with bit 0 the first slot is written.
    pub returns: Option<u8>,
    pub signs: Signs,
    /// Of a vector instruction; others may read what they name.
    pub bus: Option<Bus>,
    pub traits: Traits,
    /// Sources are 32-bit floats or halves of registers, by modifiers (`v_fma_mix_f32`).
    pub mixed: bool,
}

/// Signs and absolute values of sources.
#[derive(Debug, Clone, Copy)]
pub struct Signs {
    /// Bits for them, whatever they mean.
    pub neg: bool,
    pub abs: bool,
    /// Two halves, each with its sign.
    pub packed: bool,
    /// Operands as written that are no floats, a bit each. Moves and selects of untyped bits are for floats
    /// too (RDNA manuals, V_MOV_B32, V_CNDMASK_B32: "floating-point modifiers are valid …").
    pub integers: u32,
}

/// What the constant bus has to bring (RDNA manuals, *VALU: Operands*).
#[derive(Debug)]
pub struct Bus {
    /// Scalar values that the instruction reads at most, the literal among them.
    pub most: usize,
    /// Those that it reads without a field: VCC, M0.
    pub implicit: Vec<(&'static str, Size)>,
}

/// A bit of a field.
#[derive(Debug, Clone, Copy)]
pub struct Bit {
    pub field: u8,
    pub bit: u8,
}

/// Which of an instruction's encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    Plain,
    E32,
    E64,
    Dpp,
    E64Dpp,
    Dual,
}

/// A place for an operand.
#[derive(Debug, Clone)]
pub struct Slot {
    pub kind: Kind,
    pub field: Option<u8>,
    /// Operand type of the field, and what it calls its values.
    pub ty: u8,
    pub names: &'static TypeNames,
    /// Field and bit that make an accumulation VGPR of it.
    pub acc: Option<(u8, u8)>,
    pub size: Size,
    pub constant: Constant,
    /// Position among the sources: bit of NEG, ABS, OP_SEL. `Some(3)` is the destination.
    pub source: Option<u8>,
    pub neg: Option<Bit>,
    pub abs: Option<Bit>,
    /// A result that is read first.
    pub accumulates: bool,
    /// A number that can be negative: NEG and ABS mean something.
    pub signed: bool,
    /// An immediate that cannot be negative.
    pub unsigned: bool,
}

/// The scalar base of CDNA that is none.
const NO_BASE: u32 = 127;

impl Slot {
    /// Whether a scalar base is none.
    pub fn is_off(&self, code: u32, options: &Options) -> bool {
        self.names.name(code) == Some("null") || options.arch.is_cdna() && code == NO_BASE
    }

    /// How many registers the operand of `inst` takes; 0 where it is none, or not one range of them.
    pub fn registers(&self, inst: &Inst, options: &Options) -> u16 {
        let table = options.arch.table();
        let wave = options.wave;
        let get = |name: &str| inst.field(table, name).unwrap_or(0) as u16;
        match self.kind {
            Kind::Value | Kind::FlatBase | Kind::ScratchBase => self.size.registers(wave),
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Anything that the operand type names: registers, constants, a literal.
    Value,
    /// VCC, fixed by the instruction but written.
    Vcc,
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
    Label,
    Hwreg,
    Sendmsg,
    Waitcnt,
    Depctr,
    Delay,
    Version,
    /// Offset of a prefetch: signed, hex.
    Offset,
}

/// Registers that an operand takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    Bits(u16),
    /// One bit a lane.
    Mask,
    /// Halved in wave64: matrices that the wave's lanes share.
    Matrix(u16),
}

impl Size {
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
    Int16,
    F16,
    /// A 16-bit float ([`Trait::BitsAreLiteral`](crate::dialect::Trait::BitsAreLiteral)).
    F16OrBits,
    Bf16,
    Int32,
    F32,
    Int64,
    F64,
    /// Mixed precision: numbers are 16-bit floats to LLVM, literals have 32 bits.
    Mixed,
    /// Two 16-bit halves.
    PackedInt,
    PackedF16,
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
        _ => return (name, None),
    };
    let len = if class == Class::E64Dpp { "_e64_dpp".len() } else { "_e32".len() };
    (&name[..name.len() - len], Some(class))
}

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
        for name in std::iter::once(inst.name).chain(inst.aliases.iter().copied()) {
            by_name.entry(name.to_lowercase()).or_default().extend(&entries);
        }
    }
    Forms { arch, forms: table.entries.iter().map(|_| OnceLock::new()).collect(), by_name }
}
