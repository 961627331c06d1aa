//! Parsing of modifiers: sets the fields that a modifier selects, and reports values out of range.

use super::{Mod, Part, PartsStyle, ResultBit, Style, ThKind};
use crate::dialect::BOUND_CTRL_IS_FLAG;
use crate::dialect::symbols::{
    ATOMIC_HINTS, DATA_FORMATS, DIMS, DPP, FORMATS, LOAD_HINTS, Movement, NUMBER_FORMATS, SCOPES, STORE_HINTS,
};
use crate::error::{AsmError, suggest};
use crate::operand::{ArgValue, Modifier, ModifierValue};
use crate::{Options, swizzle};
use wavesim_isa::arch::Arch;
use wavesim_isa::dpp;
use wavesim_isa::inst::Inst;

/// Where a modifier is parsed: it, the fields of the instruction that it may set, and what its values depend on.
struct Context<'m> {
    modifier: &'m Modifier<'m>,
    inst: &'m mut Inst,
    options: &'m Options,
    /// Number of sources of the instruction.
    sources: u8,
}

impl Mod {
    /// Sets the fields of `inst` from the modifier `m`.
    pub fn apply(
        &self,
        m: &Modifier,
        inst: &mut Inst,
        options: &Options,
        sources: u8,
    ) -> Result<(), AsmError> {
        let mut c = Context { modifier: m, inst, options, sources };
        match self {
            Mod::Flag { field, .. } => match &m.value {
                ModifierValue::None => c.set(*field, 1),
                ModifierValue::No => c.set(*field, 0),
                _ => return Err(c.wrong("no value")),
            },
            Mod::Number { name, field, style } => c.number(name, *field, style)?,
            Mod::Offset16 { low, high, swizzle } => {
                let value = match &m.value {
                    ModifierValue::Call(call) if *swizzle => {
                        swizzle::parse(call, m.value_span, options.arch)? as i64
                    }
                    _ => c.int(0, 0xffff)?,
                };
                c.set(*low, value & 0xff);
                c.set(*high, value >> 8);
            }
            // A set takes `bits` of the 32 bits in each lane's register.
            Mod::IndexKey { field, bits } => {
                let value = c.int(0, (32 * options.wave / bits) as i64 - 1)?;
                c.set(*field, value);
            }
            Mod::Bits { field, sources, dest, .. } => c.bits(*field, *sources, *dest)?,
            Mod::Byte { field, bits } => {
                let value = c.int(0, 3)?;
                let others = c.inst.fields[*field as usize] as i64 & !(1 << bits[0] | 1 << bits[1]);
                c.set(*field, others | (value & 1) << bits[0] | (value >> 1) << bits[1]);
            }
            Mod::OpSelHi { field, third, ones } => {
                let mut bits = c.bit_list(3)?;
                // Sources missing from the list select the low half; sources that the instruction does not
                // have keep their default.
                bits.resize(sources.clamp(1, 3) as usize, 0);
                bits.resize(3, i64::from(*ones));
                c.set(*field, bits[0] | bits[1] << 1);
                c.set(*third, bits[2]);
            }
            Mod::Omod { field } => {
                let value = match (m.name, &m.value) {
                    (_, ModifierValue::Int(1)) => 0,
                    ("mul", ModifierValue::Int(2)) => 1,
                    ("mul", ModifierValue::Int(4)) => 2,
                    ("div", ModifierValue::Int(2)) => 3,
                    ("mul", _) => return Err(c.wrong("1, 2 or 4")),
                    _ => return Err(c.wrong("1 or 2")),
                };
                c.set(*field, value);
            }
            Mod::DppCtrl { field } => {
                let value = dpp_ctrl(m, options.arch)?;
                c.set(*field, value as i64);
            }
            Mod::Dpp8 { first } => c.lanes(*first)?,
            Mod::Dpp8Fetch { source } => {
                let value = c.int(0, 1)?;
                c.set(*source, dpp::DPP8 as i64 + value);
            }
            Mod::Format { field } => {
                let value = format(m)?;
                c.set(*field, value as i64);
            }
            Mod::TwoFormats { data, number } => {
                let value = two_formats(m)?;
                c.set(*data, value.0 as i64);
                c.set(*number, value.1 as i64);
            }
            Mod::Parts { parts, style, .. } => c.parts(parts, style)?,
            Mod::ScaleBytes { field } => {
                let bits = bit_list(m)?;
                if bits.len() > 3 || bits.get(2) == Some(&1) {
                    return Err(c.wrong("a list of two bits, and a third that is 0"));
                }
                c.set(*field, bits_of(&bits));
            }
            Mod::Signs { field } => {
                let bits = c.bit_list(3)?;
                c.set(*field, bits_of(&bits));
            }
            Mod::Dim { field } => {
                let ModifierValue::Word(word) = &m.value else { return Err(c.wrong("a dimension")) };
                let short = word.strip_prefix("SQ_RSRC_IMG_").unwrap_or(word);
                let value = c.one_of(DIMS.iter().position(|d| *d == short), &DIMS)?;
                c.set(*field, value);
            }
            Mod::Th { field, kind, .. } => {
                let value = th(m, *kind)?;
                if value >> c.width(*field) != 0 {
                    return Err(c.wrong("a smaller hint in this encoding"));
                }
                c.set(*field, value as i64);
            }
            Mod::Select { field, names, .. } => {
                let value = match &m.value {
                    ModifierValue::Word(word) => names.iter().position(|name| name == word),
                    _ => None,
                };
                let value = c.one_of(value, names)?;
                c.set(*field, value);
            }
            Mod::Scope { field } => {
                let value = match &m.value {
                    ModifierValue::Word(word) => SCOPES.iter().position(|s| s == word),
                    ModifierValue::Int(v @ 0..=3) => Some(*v as usize),
                    _ => None,
                };
                let value = c.one_of(value, &SCOPES)?;
                c.set(*field, value);
            }
        }
        Ok(())
    }
}

impl Context<'_> {
    fn set(&mut self, field: u8, value: i64) {
        self.inst.fields[field as usize] = value as u32;
    }

    fn width(&self, field: u8) -> u32 {
        self.inst.encoding(self.options.arch.table()).fields[field as usize].width()
    }

    fn wrong(&self, what: &str) -> AsmError {
        AsmError::new(self.modifier.value_span, format!("`{}:` takes {what}", self.modifier.name))
    }

    /// Returns the value, a number in a range.
    fn int(&self, min: i64, max: i64) -> Result<i64, AsmError> {
        match &self.modifier.value {
            ModifierValue::Int(v) if (min..=max).contains(v) => Ok(*v),
            _ => Err(self.wrong(&format!("a number from {min} to {max}"))),
        }
    }

    /// Returns the value, a list of bits.
    fn bit_list(&self, max: usize) -> Result<Vec<i64>, AsmError> {
        let bits = bit_list(self.modifier)?;
        if bits.len() > max { Err(self.wrong(&format!("a list of at most {max} bits"))) } else { Ok(bits) }
    }

    /// Returns the index of a name that was found among `names`.
    fn one_of(&self, found: Option<usize>, names: &[&str]) -> Result<i64, AsmError> {
        found.map(|at| at as i64).ok_or_else(|| self.wrong(&format!("one of {}", names.join(", "))))
    }

    fn number(&mut self, name: &str, field: u8, style: &Style) -> Result<(), AsmError> {
        let width = self.width(field);
        let value = match style {
            Style::Signed => self.int(-(1 << (width - 1)), (1 << (width - 1)) - 1)? & ((1 << width) - 1),
            _ if name == "bound_ctrl" && BOUND_CTRL_IS_FLAG.has(self.options.arch) => {
                self.int(0, 1)?;
                1
            }
            _ => self.int(0, (1 << (width - u32::from(*style == Style::Positive))) - 1)?,
        };
        self.set(field, value);
        Ok(())
    }

    /// Sets a bit for each source in `mask`, and one for the destination.
    fn bits(&mut self, field: u8, mask: u8, result: ResultBit) -> Result<(), AsmError> {
        let sources = self.sources as usize;
        let bits = bit_list(self.modifier)?;
        let limit = sources + usize::from(result != ResultBit::Absent);
        if bits.len() > limit.max(1) {
            return Err(self.wrong(&format!("a list of at most {limit} bits")));
        }
        // The destination's bit follows the bits of the existing sources, and is encoded as bit 3.
        let place = |at: usize| if result != ResultBit::Absent && at == sources { 3 } else { at };
        let value = bits.iter().enumerate().fold(0, |v, (at, bit)| v | bit << place(at));
        let own = mask as i64 | if result == ResultBit::Listed { 8 } else { 0 };
        if mask == 0 && value & !own != 0 {
            return Err(self.wrong("a bit of the result only"));
        }
        if value & !own != 0 {
            let own = |at: &u8| mask >> at & 1 != 0;
            let which: Vec<String> = (0..3).filter(own).map(|at| (at + 1).to_string()).collect();
            return Err(self.wrong(&format!("bits of source {} only", which.join(" and "))));
        }
        // Other bits have another meaning.
        let others = self.inst.fields[field as usize] as i64 & !own;
        self.set(field, others | value);
        Ok(())
    }

    /// Sets eight fields to lanes.
    fn lanes(&mut self, first: u8) -> Result<(), AsmError> {
        let list = match &self.modifier.value {
            ModifierValue::List(list) if list.len() == 8 => list,
            _ => return Err(self.wrong("a list of 8 lanes")),
        };
        for (lane, field) in list.iter().zip(first..) {
            let ArgValue::Int(lane @ 0..=7) = lane else { return Err(self.wrong("lanes from 0 to 7")) };
            self.inst.fields[field as usize] = *lane as u32;
        }
        Ok(())
    }

    /// Sets the parts of a value, lowest bits first.
    fn parts(&mut self, parts: &[Part], style: &PartsStyle) -> Result<(), AsmError> {
        let total: u8 = parts.iter().map(|part| part.bits).sum();
        let mut value = match (style, &self.modifier.value) {
            (PartsStyle::Flag, ModifierValue::None) => 1,
            (PartsStyle::Flag, _) => return Err(self.wrong("no value")),
            (PartsStyle::Names(prefix, names), ModifierValue::Word(word)) => {
                let own = word.strip_prefix(prefix);
                let at = names.iter().position(|name| Some(*name) == own);
                at.ok_or_else(|| self.wrong(&format!("{prefix} and one of {}", names.join(", "))))? as u32
            }
            _ => self.int(0, (1 << total) - 1)? as u32,
        };
        for part in parts {
            let mask = (1 << part.bits) - 1;
            let field = &mut self.inst.fields[part.field as usize];
            *field = *field & !(mask << part.shift) | (value & mask) << part.shift;
            value >>= part.bits;
        }
        Ok(())
    }
}

/// Returns the number whose bits are in a list, lowest first.
fn bits_of(bits: &[i64]) -> i64 {
    bits.iter().enumerate().fold(0, |v, (at, bit)| v | bit << at)
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

fn dpp_ctrl(m: &Modifier, arch: Arch) -> Result<u32, AsmError> {
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
    let own: Vec<&Movement> = DPP.iter().filter(|d| d.name == m.name && d.is_supported_by(arch)).collect();
    let code = own.iter().find_map(|d| match (&m.value, d.from) {
        (ModifierValue::None, None) => Some(d.first),
        (ModifierValue::Int(v), Some(from)) if (from as i64..(from + d.count) as i64).contains(v) => {
            Some(d.first + *v as u32 - from)
        }
        _ => None,
    });
    let ranges = own.iter().map(|d| match (d.from, d.count) {
        (None, _) => "no value".to_string(),
        (Some(from), 1) => from.to_string(),
        (Some(from), count) => format!("a number from {from} to {}", from + count - 1),
    });
    code.ok_or_else(|| match own.len() {
        0 => AsmError::new(m.span, format!("{} has no lane movement `{}`", arch.name(), m.name)),
        _ => wrong(ranges.collect::<Vec<_>>().join(" or ")),
    })
}

/// Returns whether a hint is valid at a scope: two hints share a value, and the scope decides between them
/// (RDNA4 ISA manual, *Temporal Hints*).
pub fn hint_is_valid(word: &str, scope: u32, kind: ThKind) -> bool {
    let system = scope == 3;
    match kind {
        ThKind::Atomic => true,
        _ if word.ends_with("_BYPASS") => system,
        _ => !system || !matches!(word, "TH_LOAD_LU" | "TH_STORE_RT_WB"),
    }
}

fn th(m: &Modifier, kind: ThKind) -> Result<u32, AsmError> {
    let word = match &m.value {
        ModifierValue::Word(word) => word,
        _ => return Err(AsmError::new(m.value_span, "`th:` takes the name of a hint, as in TH_LOAD_NT")),
    };
    if *word == "TH_DEFAULT" {
        return Ok(0);
    }
    let (prefix, names) = match kind {
        ThKind::Load => ("TH_LOAD_", LOAD_HINTS),
        ThKind::Store => ("TH_STORE_", STORE_HINTS),
        ThKind::Atomic => ("TH_ATOMIC_", ATOMIC_HINTS),
    };
    let short = word.strip_prefix(prefix).unwrap_or("");
    let found = names.iter().find(|(n, _)| *n == short).map(|(_, value)| *value);
    // LLVM prints `0x…` for a hint without a name.
    let number = short.strip_prefix("0x").and_then(|n| n.parse().ok()).filter(|n| *n < 8);
    found.or(number).ok_or_else(|| {
        let all: Vec<String> = names.iter().map(|(n, _)| format!("{prefix}{n}")).collect();
        let error = AsmError::new(m.value_span, format!("`th:{word}` is not a hint of this instruction"));
        match suggest(word, all.iter().map(String::as_str)) {
            Some(help) => error.help(help),
            None => error.help(format!("one of {}", all.join(", "))),
        }
    })
}

/// Parses data format and number format of gfx9, in either order; the defaults are 8 and UNORM.
fn two_formats(m: &Modifier) -> Result<(usize, usize), AsmError> {
    let wrong = || {
        AsmError::new(m.value_span, "this is not a buffer format")
            .help("as in format:[BUF_DATA_FORMAT_32,BUF_NUM_FORMAT_FLOAT], or a number from 0 to 127")
    };
    let words = match &m.value {
        ModifierValue::Int(v @ 0..=127) => return Ok((*v as usize & 15, *v as usize >> 4)),
        ModifierValue::List(list) if matches!(list.len(), 1 | 2) => list,
        _ => return Err(wrong()),
    };
    let (mut data, mut number) = (None, None);
    for word in words {
        let ArgValue::Word(word) = word else { return Err(wrong()) };
        let find = |prefix: &str, names: &[&str]| {
            word.strip_prefix(prefix).and_then(|name| names.iter().position(|n| *n == name))
        };
        match (find("BUF_DATA_FORMAT_", &DATA_FORMATS), find("BUF_NUM_FORMAT_", &NUMBER_FORMATS)) {
            (Some(value), _) if data.is_none() => data = Some(value),
            (_, Some(value)) if number.is_none() => number = Some(value),
            _ => return Err(wrong()),
        }
    }
    Ok((data.unwrap_or(1), number.unwrap_or(0)))
}

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
    // Separate data and number formats, in either order, name the same formats.
    let split = |prefix: &str| {
        let mut own = [word(0), word(1)].into_iter().flatten().filter_map(|w| w.strip_prefix(prefix));
        own.next().filter(|_| own.next().is_none())
    };
    let name = match (word(0).and_then(|w| w.strip_prefix("BUF_FMT_")), words.len()) {
        (Some(name), 1) => Some(name.to_string()),
        (None, 1 | 2) => {
            let data = split("BUF_DATA_FORMAT_");
            let number = split("BUF_NUM_FORMAT_");
            let all = usize::from(data.is_some()) + usize::from(number.is_some()) == words.len();
            all.then(|| match (data, number) {
                (Some("INVALID"), None) => "INVALID".to_string(),
                _ => format!("{}_{}", data.unwrap_or("8"), number.unwrap_or("UNORM")),
            })
        }
        _ => None,
    };
    let found = name.as_deref().and_then(|n| FORMATS.iter().position(|f| *f == n));
    found.map(|at| at as u32).ok_or_else(|| {
        let error = AsmError::new(m.value_span, "this is not a buffer format");
        match name.as_deref().and_then(|n| suggest(n, FORMATS)) {
            Some(help) => error.help(help.replace('`', "").replacen("mean ", "mean BUF_FMT_", 1)),
            None => error.help("as in format:[BUF_FMT_32_FLOAT], or a number from 0 to 127"),
        }
    })
}
