//! Modifiers: what stands after the operands. One table of them, read in both directions.

use super::dialect::symbols::{ATOMIC_HINTS, DIMS, DPP, FORMATS, HINTS, LOAD_HINTS, SCOPES, STORE_HINTS};
use super::dialect::{Trait, Traits};
use super::error::{AsmError, suggest};
use super::matrix::Modifiers;
use super::operand::{ArgValue, Modifier, ModifierValue};
use super::{Options, swizzle};
use isa_spec::tables::EntryId;
use std::fmt::Write as _;
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;

/// A modifier that a form has, with the fields that it sets.
#[derive(Debug, Clone, PartialEq)]
pub enum Mod {
    /// Present or not.
    Flag {
        name: &'static str,
        field: u8,
    },
    Number {
        name: &'static str,
        field: u8,
        style: Style,
    },
    /// DS: one offset in two fields.
    Offset16 {
        low: u8,
        high: u8,
        swizzle: bool,
    },
    /// A bit for each source of `of`, and for the destination if `dest`. Not `printed`: read only, where registers' names say it.
    Bits {
        name: &'static str,
        field: u8,
        of: u8,
        dest: bool,
        printed: bool,
    },
    /// Which set of a sparse matrix's indices; `bits` are those that a wave needs.
    IndexKey {
        field: u8,
        bits: u32,
    },
    /// Two bits of OP_SEL that choose a byte, in this order.
    Byte {
        field: u8,
        bits: [u8; 2],
    },
    /// `op_sel_hi`: its third bit lies elsewhere.
    OpSelHi {
        field: u8,
        third: u8,
        ones: bool,
    },
    Omod {
        field: u8,
    },
    DppCtrl {
        field: u8,
    },
    Dpp8 {
        first: u8,
    },
    /// Fetch of inactive lanes beside `dpp8:`, which the source's code says.
    Dpp8Fetch {
        source: u8,
    },
    Format {
        field: u8,
    },
    Dim {
        field: u8,
    },
    /// Temporal hint; the scope decides the name of one.
    Th {
        field: u8,
        scope: u8,
        kind: ThKind,
    },
    Scope {
        field: u8,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Decimal,
    Hex,
    /// Two's complement, in decimal.
    Signed,
    /// The same field where it cannot be negative.
    Positive,
    /// Printed even if 0.
    Always,
    /// Printed even if it has its default, in hex.
    Mask,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThKind {
    Load,
    Store,
    Atomic,
}

/// Every source has a bit.
const ALL_SOURCES: u8 = 7;

impl Mod {
    /// The modifiers of an entry, in the order in which LLVM prints them.
    pub fn of(arch: Arch, entry: EntryId, traits: Traits, mixed: bool) -> Vec<Mod> {
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
        let packed = encoding.name.contains("VOP3P");
        let matrix = Modifiers::of(arch, entry);
        let halves = matrix.is_none_or(|m| m.halves);
        if let Some(bits) = matrix.and_then(|m| m.index_bits) {
            mods.extend(field("OP_SEL").map(|field| Mod::IndexKey { field, bits }));
        } else if let Some(at) = field("OP_SEL").filter(|_| halves) {
            if traits.has(Trait::ByteOfSource) {
                mods.push(Mod::Byte { field: at, bits: [1, 0] });
            } else if traits.has(Trait::ByteOfResult) {
                mods.push(Mod::Byte { field: at, bits: [2, 3] });
            } else {
                // LLVM 19 names halves of registers where later versions have the modifier.
                let lanes = traits.has(Trait::OpSelOfLanes);
                let printed =
                    packed || lanes || traits.has(Trait::OpSel) || traits.has(Trait::OpSelOfAccumulator);
                if printed || table.signatures[e.sig as usize].iter().any(|o| o.size_bits == 16) {
                    let dest = !packed && !lanes;
                    mods.push(Mod::Bits { name: "op_sel", field: at, of: ALL_SOURCES, dest, printed });
                }
            }
        }
        if let (Some(at), Some(third), true) = (field("OP_SEL_HI"), field("OP_SEL_HI_2"), halves) {
            mods.push(Mod::OpSelHi { field: at, third, ones: !mixed });
        }
        if packed && !mixed {
            let signs = matrix.map_or([ALL_SOURCES; 2], |m| [m.neg, m.neg_hi]);
            for (name, f, of) in [("neg_lo", "NEG", signs[0]), ("neg_hi", "NEG_HI", signs[1])] {
                let bits = |field| Mod::Bits { name, field, of, dest: false, printed: true };
                mods.extend(field(f).filter(|_| of != 0).map(bits));
            }
        }
        if encoding.name == "ENC_VINTERP" {
            mods.insert(0, Mod::Flag { name: "clamp", field: field("CLAMP").unwrap_or(0) });
        } else if matrix.is_none_or(|m| m.clamp) {
            flag(&mut mods, "clamp", "CLAMP");
        }
        // Output modifiers scale floats.
        let float = table.signatures[e.sig as usize].iter().any(|o| {
            let format = table.formats[o.format as usize].name;
            o.output && o.field.is_some() && ["F16", "F32", "F64"].iter().any(|f| format.ends_with(f))
        });
        mods.extend(field("OMOD").filter(|_| float).map(|field| Mod::Omod { field }));
        mods.extend(field("DPP_CTRL").map(|field| Mod::DppCtrl { field }));
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
        }
        flag(&mut mods, "idxen", "IDXEN");
        flag(&mut mods, "offen", "OFFEN");
        let scalar = encoding.name == "ENC_SMEM";
        let buffer = ["ENC_MUBUF", "ENC_MTBUF", "ENC_VBUFFER"].contains(&encoding.name);
        // Cache operations have nothing to modify; the scope of RDNA 4's is what they are about.
        let operands = table.signatures[e.sig as usize];
        let bare = operands.is_empty();
        let reads_only = !bare && operands.iter().all(|o| !o.output);
        if bare && (scalar || encoding.name == "ENC_MUBUF") {
            return Vec::new();
        }
        // Write-backs and invalidations of RDNA 4 have the encoding of addresses, and none.
        let addressed = !(bare && encoding.name == "ENC_VGLOBAL");
        if !scalar && addressed {
            let signed = |f: u8| {
                let width = encoding.fields[f as usize].width();
                // Flat addresses of RDNA 3 take offsets from 0 alone.
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
        flag(&mut mods, "gds", "GDS");
        let ray = inst.subgroup == "BVH";
        if !ray {
            number(&mut mods, "dmask", "DMASK", Style::Hex);
            mods.extend(field("DIM").map(|field| Mod::Dim { field }));
            flag(&mut mods, "unorm", "UNORM");
        }
        flag(&mut mods, "glc", "GLC");
        flag(&mut mods, "slc", "SLC");
        flag(&mut mods, "dlc", "DLC");
        if let (Some(field), Some(scope)) = (field("TH"), field("SCOPE"))
            && (!scalar || inst.subgroup == "LOAD")
        {
            let kind = match inst.subgroup {
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
        // Pages that are missing are reported where something is read.
        let writes = reads_only || inst.subgroup == "ATOMIC";
        if !(buffer && writes) {
            flag(&mut mods, "tfe", "TFE");
        }
        flag(&mut mods, "lwe", "LWE");
        flag(&mut mods, "d16", "D16");
        flag(&mut mods, "nv", "NV");
        mods
    }

    /// Names by which a line asks for it.
    pub fn accepts(&self, name: &str) -> bool {
        match self {
            Mod::Flag { name: own, .. } | Mod::Number { name: own, .. } | Mod::Bits { name: own, .. } => {
                *own == name
            }
            Mod::Offset16 { .. } => name == "offset",
            Mod::IndexKey { .. } => name == "index_key",
            Mod::Byte { .. } => name == "byte_sel",
            Mod::OpSelHi { .. } => name == "op_sel_hi",
            Mod::Omod { .. } => matches!(name, "mul" | "div"),
            Mod::DppCtrl { .. } => {
                name == "quad_perm" || DPP.iter().any(|d| d.0 == name) || name == "dpp_ctrl"
            }
            Mod::Dpp8 { .. } => name == "dpp8",
            Mod::Dpp8Fetch { .. } => name == "fi",
            Mod::Format { .. } => name == "format",
            Mod::Dim { .. } => name == "dim",
            Mod::Th { .. } => name == "th",
            Mod::Scope { .. } => name == "scope",
        }
    }

    /// A name to suggest.
    pub fn name(&self) -> &'static str {
        match self {
            Mod::Flag { name, .. } | Mod::Number { name, .. } | Mod::Bits { name, .. } => name,
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
        }
    }

    /// Sets the fields that the modifier asks for.
    pub fn apply(
        &self,
        m: &Modifier,
        inst: &mut Inst,
        options: &Options,
        sources: u8,
    ) -> Result<(), AsmError> {
        let table = options.arch.table();
        let fields = inst.encoding(table).fields;
        let width = |f: u8| fields[f as usize].width();
        let wrong = |what: &str| AsmError::new(m.value_span, format!("`{}:` takes {what}", m.name));
        let int = |min: i64, max: i64| match &m.value {
            ModifierValue::Int(v) if (min..=max).contains(v) => Ok(*v),
            _ => Err(wrong(&format!("a number from {min} to {max}"))),
        };
        let mut set = |f: u8, value: i64| inst.fields[f as usize] = value as u32;
        match self {
            Mod::Flag { field, .. } => match &m.value {
                ModifierValue::None => set(*field, 1),
                ModifierValue::No => set(*field, 0),
                _ => return Err(wrong("no value")),
            },
            Mod::Number { field, style: Style::Signed, .. } => {
                let width = width(*field);
                let value = int(-(1 << (width - 1)), (1 << (width - 1)) - 1)?;
                set(*field, value & ((1 << width) - 1));
            }
            Mod::Number { field, style, .. } => {
                let sign = u32::from(*style == Style::Positive);
                let value = int(0, (1 << (width(*field) - sign)) - 1)?;
                set(*field, value);
            }
            Mod::Offset16 { low, high, swizzle } => {
                let value = match &m.value {
                    ModifierValue::Call(call) if *swizzle => swizzle::parse(call, m.value_span)? as i64,
                    _ => int(0, 0xffff)?,
                };
                set(*low, value & 0xff);
                set(*high, value >> 8);
            }
            Mod::IndexKey { field, bits } => {
                // Each lane's part of a set, of the 32 bits of its register.
                let sets = 32 * options.wave / bits;
                let value = int(0, sets as i64 - 1)?;
                set(*field, value);
            }
            Mod::Bits { field, of, dest, .. } => {
                let bits = bit_list(m)?;
                let limit = sources as usize + usize::from(*dest);
                if bits.len() > limit.max(1) {
                    return Err(wrong(&format!("a list of at most {limit} bits")));
                }
                // The destination comes after the sources that there are, and is bit 3.
                let value = bits
                    .iter()
                    .enumerate()
                    .fold(0, |v, (at, bit)| v | bit << if *dest && at == sources as usize { 3 } else { at });
                if value & 7 & !(*of as i64) != 0 {
                    let own = |at: &u8| of >> at & 1 != 0;
                    let which: Vec<String> = (0..3).filter(own).map(|at| (at + 1).to_string()).collect();
                    return Err(wrong(&format!("bits of source {} only", which.join(" and "))));
                }
                set(*field, value);
            }
            Mod::Byte { field, bits } => {
                let value = int(0, 3)?;
                set(*field, (value & 1) << bits[0] | (value >> 1) << bits[1]);
            }
            Mod::OpSelHi { field, third, ones } => {
                let mut bits = bit_list(m)?;
                if bits.len() > 3 {
                    return Err(wrong("a list of at most 3 bits"));
                }
                // What the list leaves out is low; sources that there are not stay as they are without a list.
                bits.resize(sources.clamp(1, 3) as usize, 0);
                bits.resize(3, i64::from(*ones));
                set(*field, bits[0] | bits[1] << 1);
                set(*third, bits[2]);
            }
            Mod::Omod { field } => {
                let value = match (m.name, &m.value) {
                    (_, ModifierValue::Int(1)) => 0,
                    ("mul", ModifierValue::Int(2)) => 1,
                    ("mul", ModifierValue::Int(4)) => 2,
                    ("div", ModifierValue::Int(2)) => 3,
                    ("mul", _) => return Err(wrong("1, 2 or 4")),
                    _ => return Err(wrong("1 or 2")),
                };
                set(*field, value);
            }
            Mod::DppCtrl { field } => {
                let value = dpp_ctrl(m)?;
                set(*field, value as i64);
            }
            Mod::Dpp8 { first } => {
                let ModifierValue::List(list) = &m.value else { return Err(wrong("a list of 8 lanes")) };
                if list.len() != 8 {
                    return Err(wrong("a list of 8 lanes"));
                }
                for (at, lane) in list.iter().enumerate() {
                    let ArgValue::Int(lane @ 0..=7) = lane else { return Err(wrong("lanes from 0 to 7")) };
                    set(first + at as u8, *lane);
                }
            }
            Mod::Dpp8Fetch { source } => {
                let value = int(0, 1)?;
                set(*source, DPP8 as i64 + value);
            }
            Mod::Format { field } => {
                let value = format(m)?;
                set(*field, value as i64);
            }
            Mod::Dim { field } => {
                let ModifierValue::Word(word) = &m.value else { return Err(wrong("a dimension")) };
                let short = word.strip_prefix("SQ_RSRC_IMG_").unwrap_or(word);
                let at = DIMS.iter().position(|d| *d == short);
                let at = at.ok_or_else(|| wrong(&format!("one of {}", DIMS.join(", "))))?;
                set(*field, at as i64);
            }
            Mod::Th { field, kind, .. } => {
                let value = th(m, *kind)?;
                if value >> width(*field) != 0 {
                    return Err(wrong("a smaller hint in this encoding"));
                }
                inst.fields[*field as usize] = value;
            }
            Mod::Scope { field } => {
                let value = match &m.value {
                    ModifierValue::Word(word) => SCOPES.iter().position(|s| s == word),
                    ModifierValue::Int(v @ 0..=3) => Some(*v as usize),
                    _ => None,
                };
                set(*field, value.ok_or_else(|| wrong(&format!("one of {}", SCOPES.join(", "))))? as i64);
            }
        }
        Ok(())
    }

    /// Appends it as LLVM prints it, with a space before; nothing where it has its default.
    pub fn print(&self, inst: &Inst, arch: Arch, sources: u8, out: &mut String) {
        let get = |f: &u8| inst.fields[*f as usize];
        let bits = |value: u32, count: u8| -> String {
            (0..count).map(|at| (value >> at & 1).to_string()).collect::<Vec<_>>().join(",")
        };
        // Writing to a String does not fail.
        let _ = match self {
            Mod::Flag { name, field } if get(field) != 0 => write!(out, " {name}"),
            Mod::Number { name, field, style } => {
                let value = get(field);
                match style {
                    Style::Always => write!(out, " {name}:{value}"),
                    Style::Mask => write!(out, " {name}:0x{value:x}"),
                    _ if value == 0 => Ok(()),
                    Style::Hex => write!(out, " {name}:0x{value:x}"),
                    Style::Decimal | Style::Positive => write!(out, " {name}:{value}"),
                    Style::Signed => {
                        let width = inst.encoding(arch.table()).fields[*field as usize].width();
                        write!(out, " {name}:{}", (value << (32 - width)) as i32 >> (32 - width))
                    }
                }
            }
            Mod::Offset16 { low, high, swizzle } => match get(low) | get(high) << 8 {
                0 => Ok(()),
                value if *swizzle => write!(out, " offset:{}", swizzle::print(value as u16)),
                value => write!(out, " offset:{value}"),
            },
            Mod::Bits { printed: false, .. } => Ok(()),
            Mod::IndexKey { field, .. } if get(field) != 0 => write!(out, " index_key:{}", get(field)),
            Mod::Bits { name, field, of, dest, .. } => {
                let value = get(field) & (*of as u32 | 8);
                let mut list = bits(value, sources);
                if *dest {
                    let _ = write!(list, "{}{}", if sources > 0 { "," } else { "" }, value >> 3 & 1);
                }
                // Bits of sources that the instruction does not have are no text's.
                if list.contains('1') { write!(out, " {name}:[{list}]") } else { Ok(()) }
            }
            Mod::Byte { field, bits } => match (get(field) >> bits[0] & 1) | (get(field) >> bits[1] & 1) << 1
            {
                0 => Ok(()),
                byte => write!(out, " byte_sel:{byte}"),
            },
            Mod::OpSelHi { field, third, ones } => {
                let value = get(field) | get(third) << 2;
                let all = (1 << sources) - 1;
                if value & all == if *ones { all } else { 0 } {
                    Ok(())
                } else {
                    write!(out, " op_sel_hi:[{}]", bits(value, sources))
                }
            }
            Mod::Omod { field } => match get(field) {
                1 => write!(out, " mul:2"),
                2 => write!(out, " mul:4"),
                3 => write!(out, " div:2"),
                _ => Ok(()),
            },
            Mod::DppCtrl { field } => {
                let value = get(field);
                let base = DPP.iter().find(|d| value >= d.1 && value - d.1 < d.2);
                match base {
                    _ if value < 256 => write!(
                        out,
                        " quad_perm:[{},{},{},{}]",
                        value & 3,
                        value >> 2 & 3,
                        value >> 4 & 3,
                        value >> 6
                    ),
                    Some((name, _, 1, _)) => write!(out, " {name}"),
                    Some((name, first, _, from)) => write!(out, " {name}:{}", value - first + from),
                    None => write!(out, " dpp_ctrl:0x{value:x}"),
                }
            }
            Mod::Dpp8 { first } => {
                let lanes: Vec<String> = (0..8).map(|at| get(&(first + at)).to_string()).collect();
                write!(out, " dpp8:[{}]", lanes.join(","))
            }
            Mod::Dpp8Fetch { source } if get(source) == DPP8 + 1 => write!(out, " fi:1"),
            Mod::Format { field } => match get(field) {
                1 => Ok(()),
                value => match FORMATS.get(value as usize) {
                    Some(name) => write!(out, " format:[BUF_FMT_{name}]"),
                    None => write!(out, " format:{value}"),
                },
            },
            Mod::Dim { field } => write!(out, " dim:SQ_RSRC_IMG_{}", DIMS[get(field) as usize & 7]),
            Mod::Th { field, scope, kind } => {
                let name = th_name(get(field), get(scope), *kind);
                if name.is_empty() { Ok(()) } else { write!(out, " th:{name}") }
            }
            Mod::Scope { field } if get(field) != 0 => {
                write!(out, " scope:{}", SCOPES[get(field) as usize & 3])
            }
            _ => Ok(()),
        };
    }
}

fn bit_list(m: &Modifier) -> Result<Vec<i64>, AsmError> {
    let wrong = || AsmError::new(m.value_span, format!("`{}:` takes a list of bits, as in [0,1]", m.name));
    let list = match &m.value {
        ModifierValue::List(list) => list.as_slice(),
        _ => return Err(wrong()),
    };
    if list.is_empty() {
        return Err(wrong());
    }
    list.iter().map(|v| if let ArgValue::Int(v @ 0..=1) = v { Ok(*v) } else { Err(wrong()) }).collect()
}

/// Source code that says `dpp8:`; the next one also fetches from inactive lanes (ISA manuals, *DPP8*).
pub const DPP8: u32 = 233;

/// Source code that says that a DPP16 word follows.
pub const DPP16: u32 = 250;

/// Whether a modifier makes the instruction one of data-parallel primitives.
pub fn is_dpp(name: &str) -> bool {
    matches!(name, "quad_perm" | "dpp8" | "row_mask" | "bank_mask" | "bound_ctrl" | "fi" | "dpp_ctrl")
        || DPP.iter().any(|d| d.0 == name)
}

fn dpp_ctrl(m: &Modifier) -> Result<u32, AsmError> {
    let wrong = |what: String| AsmError::new(m.value_span, format!("`{}:` takes {what}", m.name));
    if m.name == "quad_perm" {
        let lanes = || wrong("a list of 4 lanes from 0 to 3".to_string());
        let ModifierValue::List(list) = &m.value else { return Err(lanes()) };
        if list.len() != 4 {
            return Err(lanes());
        }
        let mut out = 0;
        for (at, lane) in list.iter().enumerate() {
            let ArgValue::Int(lane @ 0..=3) = lane else { return Err(lanes()) };
            out |= (*lane as u32) << (2 * at);
        }
        return Ok(out);
    }
    if m.name == "dpp_ctrl" {
        return match m.value {
            ModifierValue::Int(v @ 0..=0x1ff) => Ok(v as u32),
            _ => Err(wrong("a number from 0 to 511".to_string())),
        };
    }
    let (_, first, count, from) = *DPP.iter().find(|d| d.0 == m.name).unwrap_or(&DPP[0]);
    match &m.value {
        ModifierValue::None if count == 1 => Ok(first),
        ModifierValue::Int(v) if count > 1 && (from as i64..(from + count) as i64).contains(v) => {
            Ok(first + *v as u32 - from)
        }
        _ => Err(wrong(format!("a number from {from} to {}", from + count - 1))),
    }
}

fn th_name(th: u32, scope: u32, kind: ThKind) -> String {
    let system = scope == 3;
    match (kind, th) {
        (_, 0) => String::new(),
        (ThKind::Load, 3) => if system { "TH_LOAD_BYPASS" } else { "TH_LOAD_LU" }.to_string(),
        (ThKind::Store, 3) => if system { "TH_STORE_BYPASS" } else { "TH_STORE_RT_WB" }.to_string(),
        (ThKind::Load, 7) => "0x7".to_string(),
        (ThKind::Load, _) => format!("TH_LOAD_{}", HINTS[th as usize & 7]),
        (ThKind::Store, _) => format!("TH_STORE_{}", HINTS[th as usize & 7]),
        (ThKind::Atomic, _) if th & 4 != 0 => {
            if scope >= 2 {
                format!("TH_ATOMIC_CASCADE_{}", if th & 2 != 0 { "NT" } else { "RT" })
            } else {
                format!("TH_ATOMIC_0x{th:x}")
            }
        }
        (ThKind::Atomic, 1) => "TH_ATOMIC_RETURN".to_string(),
        (ThKind::Atomic, 2) => "TH_ATOMIC_NT".to_string(),
        (ThKind::Atomic, _) => "TH_ATOMIC_NT_RETURN".to_string(),
    }
}

/// Whether the scope allows a hint: two names share a value, and the scope tells them apart (RDNA4 ISA manual, *Temporal Hints*).
pub fn hint_fits(word: &str, scope: u32, kind: ThKind) -> bool {
    let system = scope == 3;
    match kind {
        ThKind::Atomic => true,
        _ if word.ends_with("_BYPASS") => system,
        _ => !system || !matches!(word, "TH_LOAD_LU" | "TH_STORE_RT_WB"),
    }
}

fn th(m: &Modifier, kind: ThKind) -> Result<u32, AsmError> {
    let word = match &m.value {
        ModifierValue::Int(v @ 0..=7) => return Ok(*v as u32),
        ModifierValue::Word(word) => word,
        _ => "",
    };
    if word == "TH_DEFAULT" {
        return Ok(0);
    }
    let (prefix, names) = match kind {
        ThKind::Load => ("TH_LOAD_", LOAD_HINTS),
        ThKind::Store => ("TH_STORE_", STORE_HINTS),
        ThKind::Atomic => ("TH_ATOMIC_", ATOMIC_HINTS),
    };
    let short = word.strip_prefix(prefix).unwrap_or("");
    let found = names.iter().find(|(n, _)| *n == short).map(|(_, value)| *value);
    // What LLVM prints for a hint without a name.
    let number = short.strip_prefix("0x").and_then(|n| n.parse().ok()).filter(|n| *n < 8);
    found.or(number).ok_or_else(|| {
        let all: Vec<String> = names.iter().map(|(n, _)| format!("{prefix}{n}")).collect();
        let error = AsmError::new(m.value_span, format!("`th:{word}` is no hint of this instruction"));
        match suggest(word, all.iter().map(String::as_str)) {
            Some(help) => error.help(help),
            None => error.help(format!("one of {}", all.join(", "))),
        }
    })
}

/// The format that is meant if none is given: `8_UNORM`.
pub const DEFAULT_FORMAT: u32 = 1;

fn format(m: &Modifier) -> Result<u32, AsmError> {
    let words = match &m.value {
        ModifierValue::Int(v @ 0..=127) => return Ok(*v as u32),
        ModifierValue::List(list) => list.as_slice(),
        _ => &[],
    };
    let word = |at: usize| match words.get(at) {
        Some(ArgValue::Word(w)) => Some(*w),
        _ => None,
    };
    // Data and number format apart, in either order, name the same formats.
    let split = |prefix: &str| [word(0), word(1)].into_iter().flatten().find_map(|w| w.strip_prefix(prefix));
    let name = match (word(0).and_then(|w| w.strip_prefix("BUF_FMT_")), words.len()) {
        (Some(name), 1) => Some(name.to_string()),
        (None, 1 | 2) => {
            let data = split("BUF_DATA_FORMAT_");
            let number = split("BUF_NUM_FORMAT_");
            (data.is_some() || number.is_some())
                .then(|| format!("{}_{}", data.unwrap_or("8"), number.unwrap_or("UNORM")))
        }
        _ => None,
    };
    let found = name.as_deref().and_then(|n| FORMATS.iter().position(|f| *f == n));
    found.map(|at| at as u32).ok_or_else(|| {
        let error = AsmError::new(m.value_span, "this is no buffer format");
        match name.as_deref().and_then(|n| suggest(n, FORMATS)) {
            Some(help) => error.help(help.replace('`', "").replacen("mean ", "mean BUF_FMT_", 1)),
            None => error.help("as in format:[BUF_FMT_32_FLOAT], or a number from 0 to 127"),
        }
    })
}
