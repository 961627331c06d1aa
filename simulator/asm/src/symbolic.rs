//! Symbolic immediates, which are written by the names of their fields: waits, hardware registers, delays,
//! versions.
//!
//! Fields and their bits come from the ISA description's partitioned operand types; LLVM's names come from
//! [`dialect::symbols`](crate::dialect::symbols).

use super::error::{AsmError, Span, suggest};
use super::operand::{Arg, ArgValue, Call, Operand, STRUCTURE, Value};
use crate::dialect::WAVE_IN_REGISTER_NAMES;
use crate::dialect::symbols::{
    COUNTERS, DELAYS, GPR_INDEXED, HWREG_NAMES, HWREG_NUMBERS, VERSION_BITS, VERSIONS,
};
use isa_spec::tables::{OperandType, Part};
use smallvec::SmallVec;
use std::fmt::Write as _;
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;

fn operand_type(arch: Arch, ty: u8) -> &'static OperandType {
    &arch.table().operand_types[ty as usize]
}

pub(super) fn part(ty: &'static OperandType, name: &str) -> Option<&'static Part> {
    ty.parts.iter().find(|p| p.name == name)
}

/// A field of an instruction's partitioned operand, such as a counter of a wait. Returns its value and its
/// maximum.
pub fn part_value(inst: &Inst, arch: Arch, name: &str) -> Option<(u32, u32)> {
    let table = arch.table();
    table.signatures[inst.entry(table).sig as usize].iter().find_map(|o| {
        let part = part(operand_type(arch, o.ty), name)?;
        Some((part.get(inst.fields[o.field? as usize]), part.max()))
    })
}

impl PartExt for Part {
    fn width(&self) -> u32 {
        self.ranges.iter().map(|r| r.1 as u32).sum()
    }

    fn max(&self) -> u32 {
        (1 << self.width()) - 1
    }

    fn get(&self, bits: u32) -> u32 {
        let mut at = 0;
        self.ranges.iter().fold(0, |value, &(offset, count)| {
            let part = (bits >> offset & ((1 << count) - 1)) << at;
            at += count;
            value | part
        })
    }

    fn set(&self, bits: u32, value: u32) -> u32 {
        let mut at = 0;
        self.ranges.iter().fold(bits, |bits, &(offset, count)| {
            let mask = (1 << count) - 1;
            let out = bits & !(mask << offset) | (value >> at & mask) << offset;
            at += count;
            out
        })
    }
}

/// Bit access to a field.
trait PartExt {
    fn width(&self) -> u32;
    fn max(&self) -> u32;
    fn get(&self, bits: u32) -> u32;
    fn set(&self, bits: u32, value: u32) -> u32;
}

pub(super) fn span_of(operands: &[Operand]) -> Span {
    operands.iter().map(|o| o.span).reduce(Span::to).unwrap_or_default()
}

/// Returns the value if the immediate is given as a single non-negative number.
pub(super) fn whole_immediate(operands: &[Operand]) -> Option<Result<u32, AsmError>> {
    whole_immediate_from(operands, 0)
}

/// As [`whole_immediate`], with another minimum.
fn whole_immediate_from(operands: &[Operand], least: i64) -> Option<Result<u32, AsmError>> {
    let [Operand { value: Value::Int(value), span, .. }] = operands else { return None };
    Some(if (least..=0xffff).contains(value) {
        Ok(*value as u32 & 0xffff)
    } else {
        Err(AsmError::new(*span, format!("{value} does not fit 16 bits")))
    })
}

pub(super) fn calls<'a, 't>(
    operands: &'a [Operand<'t>],
) -> Result<SmallVec<[(&'a Call<'t>, Span); 2]>, AsmError> {
    let wrong =
        |o: &Operand| AsmError::new(o.span, "expected a number, or names with numbers in parentheses");
    if operands.is_empty() {
        return Err(AsmError::new(Span::default(), "an operand is missing"));
    }
    operands
        .iter()
        .map(|o| match &o.value {
            Value::Call(call) => Ok((&**call, o.span)),
            _ => Err(wrong(o)),
        })
        .collect()
}

fn one_int(call: &Call, span: Span) -> Result<(i64, Span), AsmError> {
    match call.args.as_slice() {
        [Arg { value: ArgValue::Int(value), span }] => Ok((*value, *span)),
        _ => Err(AsmError::new(span, format!("{}() takes one number", call.name))),
    }
}

pub(super) fn unknown<'a>(name: &str, span: Span, candidates: impl Iterator<Item = &'a str>) -> AsmError {
    let all: Vec<&str> = candidates.collect();
    let error = AsmError::new(span, format!("there is no `{name}` here"));
    match suggest(name, all.iter().copied()) {
        Some(help) => error.help(help),
        None => error.help(format!("one of {}", all.join(", "))),
    }
}

// Counter waits.

/// The bits of a counter in an immediate; on gfx9 they are split into a low and a high part.
struct Counter(&'static Part, Option<&'static Part>);

fn counter(ty: &'static OperandType, name: &str) -> Option<Counter> {
    let half = |which: &str| part(ty, &format!("{name}_{which}"));
    part(ty, name).map(|p| Counter(p, None)).or_else(|| Some(Counter(half("LO")?, half("HI"))))
}

impl Counter {
    fn max(&self) -> u32 {
        self.1.map_or(0, |high| high.max() << self.0.width()) | self.0.max()
    }

    fn get(&self, bits: u32) -> u32 {
        self.1.map_or(0, |high| high.get(bits) << self.0.width()) | self.0.get(bits)
    }

    fn set(&self, bits: u32, value: u32) -> u32 {
        let bits = self.0.set(bits, value);
        self.1.map_or(bits, |high| high.set(bits, value >> self.0.width()))
    }
}

/// Prints the immediate of S_WAITCNT as counters. Counters at their maximum are omitted unless all are.
pub fn print_waitcnt(arch: Arch, ty: u8, value: u32) -> String {
    let ty = operand_type(arch, ty);
    let mut out = String::new();
    let idle = COUNTERS.iter().all(|(name, _)| counter(ty, name).is_none_or(|p| p.get(value) == p.max()));
    for (name, text) in COUNTERS {
        let Some(p) = counter(ty, name) else { continue };
        let count = p.get(value);
        if idle || count != p.max() {
            let _ = write!(out, "{}{text}({count})", if out.is_empty() { "" } else { " " });
        }
    }
    out
}

/// Parses the immediate of S_WAITCNT: a number, or counters. Counters not mentioned get their maximum.
pub fn parse_waitcnt(arch: Arch, ty: u8, operands: &[Operand]) -> Result<u32, AsmError> {
    if let Some(value) = whole_immediate_from(operands, -0x8000) {
        return value;
    }
    let ty = operand_type(arch, ty);
    let mut out = ty.parts.iter().fold(0, |bits, p| p.set(bits, p.max()));
    for (call, span) in calls(operands)? {
        // The suffix `_sat` clamps a count that is too large.
        let (name, saturate) = match call.name.strip_suffix("_sat") {
            Some(name) => (name, true),
            None => (call.name, false),
        };
        let found = COUNTERS.iter().find(|c| c.1 == name).and_then(|c| counter(ty, c.0));
        let Some(p) = found else { return Err(unknown(name, span, COUNTERS.iter().map(|c| c.1))) };
        let (count, at) = one_int(call, span)?;
        let max = p.max() as i64;
        if !saturate && !(0..=max).contains(&count) {
            return Err(AsmError::new(at, format!("{name} counts from 0 to {max}")));
        }
        out = p.set(out, count.clamp(0, max) as u32);
    }
    Ok(out)
}

// Waits for dependency counters.

fn depctr_name(p: &Part) -> String {
    format!("depctr_{}", p.name.to_lowercase())
}

/// Prints the immediate of S_WAITCNT_DEPCTR. Like LLVM, prints the fields below their maximum, or all if
/// there are none; a number if bits outside the fields are set.
pub fn print_depctr(arch: Arch, ty: u8, value: u32) -> String {
    let ty = operand_type(arch, ty);
    let used = ty.parts.iter().fold(0, |bits, p| p.set(bits, p.max()));
    if value & !used != 0 {
        return format!("0x{value:x}");
    }
    let parts = ty.parts.iter().filter(|p| value == used || p.get(value) != p.max());
    parts.map(|p| format!("{}({})", depctr_name(p), p.get(value))).collect::<Vec<_>>().join(" ")
}

/// Parses the immediate of S_WAITCNT_DEPCTR: a number, or fields. Fields not mentioned get their maximum.
pub fn parse_depctr(arch: Arch, ty: u8, operands: &[Operand]) -> Result<u32, AsmError> {
    if let Some(value) = whole_immediate_from(operands, -0x8000) {
        return value;
    }
    let ty = operand_type(arch, ty);
    let mut out = ty.parts.iter().fold(0, |bits, p| p.set(bits, p.max()));
    let mut given = 0;
    for (call, span) in calls(operands)? {
        let Some(p) = ty.parts.iter().find(|p| depctr_name(p) == call.name) else {
            let names: Vec<String> = ty.parts.iter().map(depctr_name).collect();
            return Err(unknown(call.name, span, names.iter().map(String::as_str)));
        };
        let (count, at) = one_int(call, span)?;
        if !(0..=p.max() as i64).contains(&count) {
            return Err(AsmError::new(at, format!("{} counts from 0 to {}", call.name, p.max())));
        }
        let bits = p.set(0, p.max());
        if given & bits != 0 {
            return Err(AsmError::new(span, format!("{} is given twice", call.name)));
        }
        given |= bits;
        out = p.set(out, count as u32);
    }
    Ok(out)
}

// Delays.

/// Prints the immediate of S_DELAY_ALU as fields; as a number if the fields cannot express it.
pub fn print_delay(arch: Arch, ty: u8, value: u32) -> String {
    let ty = operand_type(arch, ty);
    let mut out = Vec::new();
    for (name, text) in DELAYS {
        let Some(p) = part(ty, name) else { continue };
        let v = p.get(value);
        if v == 0 {
            continue;
        }
        match p.values.iter().find(|x| x.1 == v) {
            Some((name, _)) => out.push(format!("{text}({})", name.to_uppercase())),
            // A field value without a name forces the numeric form.
            None => return format!("0x{value:x}"),
        }
    }
    if out.is_empty() { value.to_string() } else { out.join(" | ") }
}

/// Parses the immediate of S_DELAY_ALU: a number, or fields joined by `|`.
pub fn parse_delay(arch: Arch, ty: u8, operands: &[Operand]) -> Result<u32, AsmError> {
    if let Some(value) = whole_immediate_from(operands, -0x8000) {
        return value;
    }
    let ty = operand_type(arch, ty);
    let (mut out, mut given) = (0, 0);
    for (call, span) in calls(operands)? {
        let found = DELAYS.iter().find(|d| d.1 == call.name).and_then(|d| part(ty, d.0));
        let Some(p) = found else { return Err(unknown(call.name, span, DELAYS.iter().map(|d| d.1))) };
        let [Arg { value: ArgValue::Word(word), span }] = call.args.as_slice() else {
            return Err(AsmError::new(span, format!("{}() takes one name", call.name)));
        };
        let value = p.values.iter().find(|v| v.0.eq_ignore_ascii_case(word));
        let Some((_, value)) = value else {
            let names: Vec<String> = p.values.iter().map(|v| v.0.to_uppercase()).collect();
            return Err(unknown(word, *span, names.iter().map(String::as_str)));
        };
        if given & p.set(0, p.max()) != 0 {
            return Err(AsmError::new(*span, format!("{} is given twice", call.name)));
        }
        given |= p.set(0, p.max());
        out = p.set(out, *value);
    }
    Ok(out)
}

// Register indices.

/// Prints the operand mask of S_SET_GPR_IDX_ON and S_SET_GPR_IDX_MODE as `gpr_idx(SRC0,DST)`; as a number if
/// other bits are set.
pub fn print_gpr_index(value: u32) -> String {
    if value >> GPR_INDEXED.len() != 0 {
        return format!("0x{value:x}");
    }
    let own = GPR_INDEXED.iter().enumerate().filter(|(at, _)| value >> at & 1 != 0).map(|(_, name)| *name);
    format!("gpr_idx({})", own.collect::<Vec<_>>().join(","))
}

/// Parses an operand mask: a 4-bit number, or `gpr_idx()` with names.
pub fn parse_gpr_index(operands: &[Operand]) -> Result<u32, AsmError> {
    if let Some(value) = whole_immediate(operands) {
        return value.and_then(|value| match value >> GPR_INDEXED.len() {
            0 => Ok(value),
            _ => Err(AsmError::new(span_of(operands), "the mask of indexed operands has four bits")),
        });
    }
    let calls = calls(operands)?;
    let [(call, span)] = calls.as_slice() else {
        return Err(AsmError::new(span_of(operands), "expected one gpr_idx(…)"));
    };
    if call.name != "gpr_idx" {
        return Err(AsmError::new(*span, "expected gpr_idx(…)"));
    }
    call.args.iter().try_fold(0, |bits, arg| {
        let ArgValue::Word(word) = arg.value else {
            return Err(AsmError::new(arg.span, format!("one of {}", GPR_INDEXED.join(", "))));
        };
        let at = GPR_INDEXED.iter().position(|name| *name == word);
        let bit = 1 << at.ok_or_else(|| unknown(word, arg.span, GPR_INDEXED.into_iter()))?;
        match bits & bit {
            0 => Ok(bits | bit),
            _ => Err(AsmError::new(arg.span, format!("{word} is given twice"))),
        }
    })
}

// Hardware registers.

/// LLVM's spelling of a name of the description: RDNA 4's `hw_reg_wave_mode` becomes HW_REG_MODE.
fn llvm_hwreg(name: &str) -> String {
    name.to_uppercase().replacen("HW_REG_WAVE_", "HW_REG_", 1)
}

/// Returns whether LLVM has no name for a register of the description.
fn only_numbered(arch: Arch, name: &str) -> bool {
    !WAVE_IN_REGISTER_NAMES.has(arch) && HWREG_NUMBERS.contains(&name)
}

fn hwreg_name(arch: Arch, p: &Part, id: u32) -> Option<String> {
    if let Some(x) = HWREG_NAMES.iter().find(|x| x.0.contains(&arch) && x.1 == id) {
        return Some(format!("HW_REG_{}", x.2));
    }
    let (name, _) = p.values.iter().find(|v| v.1 == id)?;
    (!only_numbered(arch, name)).then(|| match WAVE_IN_REGISTER_NAMES.has(arch) {
        true => name.to_uppercase(),
        false => llvm_hwreg(name),
    })
}

/// Looks up a hardware register by LLVM's or the description's name.
fn hwreg_id(arch: Arch, p: &Part, word: &str) -> Option<u32> {
    let llvm = HWREG_NAMES
        .iter()
        .find(|x| x.0.contains(&arch) && word.strip_prefix("HW_REG_") == Some(x.2))
        .map(|x| x.1);
    llvm.or_else(|| {
        let named = |v: &&(&str, u32)| !only_numbered(arch, v.0);
        let found = p.values.iter().filter(named);
        found.clone().find(|v| llvm_hwreg(v.0) == word || v.0.eq_ignore_ascii_case(word)).map(|v| v.1)
    })
}

/// Prints the immediate of S_GETREG and S_SETREG as `hwreg(name)`, with offset and size unless they cover the
/// whole register.
pub fn print_hwreg(arch: Arch, ty: u8, value: u32) -> String {
    let ty = operand_type(arch, ty);
    let (Some(id), Some(offset), Some(size)) = (part(ty, "ID"), part(ty, "OFFSET"), part(ty, "SIZE")) else {
        return format!("0x{value:x}");
    };
    let register = id.get(value);
    let name = hwreg_name(arch, id, register).unwrap_or_else(|| register.to_string());
    match (offset.get(value), size.get(value) + 1) {
        (0, 32) => format!("hwreg({name})"),
        (offset, size) => format!("hwreg({name}, {offset}, {size})"),
    }
}

/// Parses the immediate of S_GETREG and S_SETREG: a number, or `hwreg(register, offset, size)`.
pub fn parse_hwreg(arch: Arch, ty: u8, operands: &[Operand]) -> Result<u32, AsmError> {
    if let Some(value) = whole_immediate(operands) {
        return value;
    }
    let ty = operand_type(arch, ty);
    let calls = calls(operands)?;
    let (Some(id), Some(offset), Some(size)) = (part(ty, "ID"), part(ty, "OFFSET"), part(ty, "SIZE")) else {
        return Err(AsmError::new(
            span_of(operands),
            "the ISA description does not define the fields of hwreg()",
        ));
    };
    let [(call, span)] = calls.as_slice() else {
        return Err(AsmError::new(span_of(operands), "expected one hwreg(…)"));
    };
    // Reorders named fields to the positional order.
    let named =
        if call.name == STRUCTURE { Some(Call { name: "hwreg", args: named_parts(call)? }) } else { None };
    let call = named.as_ref().unwrap_or(call);
    if call.name != "hwreg" || !matches!(call.args.len(), 1 | 3) {
        return Err(AsmError::new(*span, "expected hwreg(register) or hwreg(register, offset, size)"));
    }
    let register = match &call.args[0].value {
        ArgValue::Int(v) => u32::try_from(*v).ok().filter(|v| *v <= id.max()),
        ArgValue::Word(word) | ArgValue::Text(word) => Some(hwreg_id(arch, id, word).ok_or_else(|| {
            let names: Vec<String> = id.values.iter().map(|v| llvm_hwreg(v.0)).collect();
            unknown(word, call.args[0].span, names.iter().map(String::as_str))
        })?),
    };
    let register = register
        .ok_or_else(|| AsmError::new(call.args[0].span, format!("a register is from 0 to {}", id.max())))?;
    let number = |at: usize, default: i64, min: i64, max: i64| match call.args.get(at) {
        None => Ok(default),
        Some(Arg { value: ArgValue::Int(v), .. }) if (min..=max).contains(v) => Ok(*v),
        Some(arg) => Err(AsmError::new(arg.span, format!("expected a number from {min} to {max}"))),
    };
    let first = number(1, 0, 0, 31)?;
    let bits = number(2, 32, 1, 32)?;
    Ok(size.set(offset.set(id.set(0, register), first as u32), bits as u32 - 1))
}

/// The fields of `{id: 5, offset: 0, size: 32}`; each is optional.
fn named_parts<'t>(call: &Call<'t>) -> Result<Vec<Arg<'t>>, AsmError> {
    const NAMES: [&str; 3] = ["id", "offset", "size"];
    let mut parts = [0, 0, 32].map(|value| Arg { value: ArgValue::Int(value), span: Span::default() });
    let mut given = [false; 3];
    for pair in call.args.chunks_exact(2) {
        let ArgValue::Word(name) = pair[0].value else { continue };
        let Some(at) = NAMES.iter().position(|n| *n == name) else {
            return Err(unknown(name, pair[0].span, NAMES.into_iter()));
        };
        if std::mem::replace(&mut given[at], true) {
            return Err(AsmError::new(pair[0].span, format!("`{name}` is given twice")));
        }
        parts[at] = pair[1].clone();
    }
    Ok(parts.to_vec())
}

// Microcode versions.

/// The value of a symbol that is predefined in every file.
pub fn predefined(name: &str) -> Option<i64> {
    VERSIONS.iter().chain(&VERSION_BITS).find(|v| v.0 == name).map(|v| v.1 as i64)
}

/// Prints the immediate of S_VERSION as a version name and flags.
pub fn print_version(value: u32) -> String {
    let bits: Vec<&str> = VERSION_BITS.iter().filter(|b| value & b.1 != 0).map(|b| b.0).collect();
    let number = value & 0x1fff;
    let version = match VERSIONS.iter().find(|v| v.1 == number) {
        Some((name, _)) => name.to_string(),
        None if number <= 0xff => number.to_string(),
        None => return format!("0x{value:x}"),
    };
    let last = bits.len();
    bits.iter().enumerate().fold(version, |text, (at, bit)| {
        if at + 1 < last { format!("({text}|{bit})") } else { format!("{text}|{bit}") }
    })
}
