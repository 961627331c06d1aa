//! Printing of modifiers, as LLVM's disassembler does.

use super::{Mod, PartsStyle, ResultBit, Style, ThKind, parts_value};
use crate::dialect::symbols::{DATA_FORMATS, DIMS, DPP, FORMATS, HINTS, NUMBER_FORMATS, SCOPES};
use crate::swizzle;
use std::fmt::Write as _;
use wavesim_isa::arch::Arch;
use wavesim_isa::dpp;
use wavesim_isa::inst::Inst;

impl Mod {
    /// Appends the modifier in LLVM's syntax, preceded by a space; appends nothing for a default value.
    pub fn print(&self, inst: &Inst, arch: Arch, sources: u8, out: &mut String) {
        let get = |f: &u8| inst.fields[*f as usize];
        let bits = |value: u32, count: u8| -> String {
            (0..count).map(|at| (value >> at & 1).to_string()).collect::<Vec<_>>().join(",")
        };
        // Writing to a `String` cannot fail.
        let _ = match self {
            Mod::Flag { name, field } if get(field) != 0 => write!(out, " {name}"),
            Mod::Number { name, field, style } => {
                let value = get(field);
                match style {
                    Style::Always => write!(out, " {name}:{value}"),
                    Style::Mask => write!(out, " {name}:0x{value:x}"),
                    _ if value == 0 => Ok(()),
                    Style::Table if value > 10 => write!(out, " {name}:0x{value:x}"),
                    Style::Hex => write!(out, " {name}:0x{value:x}"),
                    Style::Decimal | Style::Positive | Style::Table => write!(out, " {name}:{value}"),
                    Style::Signed => {
                        let width = inst.encoding(arch.table()).fields[*field as usize].width();
                        write!(out, " {name}:{}", (value << (32 - width)) as i32 >> (32 - width))
                    }
                }
            }
            Mod::Offset16 { low, high, swizzle } => match get(low) | get(high) << 8 {
                0 => Ok(()),
                value if *swizzle => write!(out, " offset:{}", swizzle::print(value as u16, arch)),
                value => write!(out, " offset:{value}"),
            },
            Mod::Bits { printed: false, .. } => Ok(()),
            Mod::IndexKey { field, .. } if get(field) != 0 => write!(out, " index_key:{}", get(field)),
            Mod::Bits { name, field, sources: mask, dest, .. } => {
                let result = if *dest == ResultBit::Listed { 8 } else { 0 };
                let value = get(field) & (*mask as u32 | result);
                let mut list = bits(value, sources);
                if *dest != ResultBit::Absent {
                    let _ = write!(list, "{}{}", if sources > 0 { "," } else { "" }, value >> 3);
                }
                // Bits of sources that the instruction does not have are not printed.
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
                let base = DPP
                    .iter()
                    .find(|d| d.is_supported_by(arch) && value >= d.first && value - d.first < d.count);
                match base {
                    _ if value < 256 => write!(
                        out,
                        " quad_perm:[{},{},{},{}]",
                        value & 3,
                        value >> 2 & 3,
                        value >> 4 & 3,
                        value >> 6
                    ),
                    Some(d) => match d.from {
                        None => write!(out, " {}", d.name),
                        Some(from) => write!(out, " {}:{}", d.name, value - d.first + from),
                    },
                    None => write!(out, " dpp_ctrl:0x{value:x}"),
                }
            }
            Mod::Dpp8 { first } => {
                let lanes: Vec<String> = (0..8).map(|at| get(&(first + at)).to_string()).collect();
                write!(out, " dpp8:[{}]", lanes.join(","))
            }
            Mod::Dpp8Fetch { source } if get(source) == dpp::DPP8_FETCH_INACTIVE => write!(out, " fi:1"),
            Mod::Format { field } => match get(field) {
                1 => Ok(()),
                value => match FORMATS.get(value as usize) {
                    Some(name) => write!(out, " format:[BUF_FMT_{name}]"),
                    None => write!(out, " format:{value}"),
                },
            },
            // A component with its default value is omitted.
            Mod::TwoFormats { data, number } => match (get(data), get(number)) {
                (1, 0) => Ok(()),
                (data, 0) => write!(out, " format:[BUF_DATA_FORMAT_{}]", DATA_FORMATS[data as usize & 15]),
                (1, number) => {
                    write!(out, " format:[BUF_NUM_FORMAT_{}]", NUMBER_FORMATS[number as usize & 7])
                }
                (data, number) => write!(
                    out,
                    " format:[BUF_DATA_FORMAT_{},BUF_NUM_FORMAT_{}]",
                    DATA_FORMATS[data as usize & 15],
                    NUMBER_FORMATS[number as usize & 7]
                ),
            },
            Mod::Parts { name, parts, style } => match (parts_value(parts, &inst.fields), style) {
                (0, _) => Ok(()),
                (_, PartsStyle::Flag) => write!(out, " {name}"),
                (value, PartsStyle::Table) if value > 10 => write!(out, " {name}:0x{value:x}"),
                (value, PartsStyle::Decimal | PartsStyle::Table) => write!(out, " {name}:{value}"),
                (value, PartsStyle::Names(prefix, names)) => match names.get(value as usize) {
                    Some(own) => write!(out, " {name}:{prefix}{own}"),
                    None => write!(out, " {name}:{value}"),
                },
            },
            Mod::ScaleBytes { field } => write!(out, " op_sel_hi:[{}]", bits(get(field), 3)),
            Mod::Signs { field } => match get(field) {
                0 => Ok(()),
                value => write!(out, " neg:[{}]", bits(value, 3)),
            },
            Mod::Dim { field } => write!(out, " dim:SQ_RSRC_IMG_{}", DIMS[get(field) as usize & 7]),
            Mod::Th { field, scope, kind } => {
                let name = th_name(get(field), get(scope), *kind);
                if name.is_empty() { Ok(()) } else { write!(out, " th:{name}") }
            }
            Mod::Select { name, field, names } => match names.get(get(field) as usize) {
                Some(value) => write!(out, " {name}:{value}"),
                None => write!(out, " {name}:{}", get(field)),
            },
            Mod::Scope { field } if get(field) != 0 => {
                write!(out, " scope:{}", SCOPES[get(field) as usize & 3])
            }
            _ => Ok(()),
        };
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
