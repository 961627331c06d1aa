//! The ISA description of an instruction as data, for `wavesim isa` and for editors.

use crate::dialect::symbols::COUNTERS;
use crate::form::forms;
use isa_spec::diag::nearest;
use isa_spec::tables::{ArchTable, Encoding, Entry, Field, Instruction, Role};
use std::collections::BTreeSet;
use wavesim_isa::arch::Arch;

/// Encoding suffixes of mnemonics, longest first.
pub const SUFFIXES: [&str; 6] = ["_e64_dpp", "_dpp16", "_dpp8", "_dpp", "_e32", "_e64"];

/// Strips the encoding suffix from a name, in any case.
pub fn plain_name(name: &str) -> &str {
    let ends = |suffix: &&str| {
        let at = name.len().checked_sub(suffix.len())?;
        name.get(at..).filter(|end| end.eq_ignore_ascii_case(suffix)).and(name.get(..at))
    };
    SUFFIXES.iter().find_map(ends).unwrap_or(name)
}

/// Finds the instruction of an architecture called `name` (in any case, with or without suffix). Returns its
/// index in the table and the instruction.
pub fn instruction(arch: Arch, name: &str) -> Option<(usize, &'static Instruction)> {
    let table = arch.table();
    let upper = name.to_uppercase();
    let inst = table.instruction(&upper).or_else(|| table.instruction(plain_name(&upper)))?;
    Some((table.instructions.iter().position(|i| std::ptr::eq(i, inst))?, inst))
}

/// Returns the architectures that have the instruction, with its index in their tables; or an error message
/// if none has it.
pub fn find(archs: &[Arch], name: &str) -> Result<Vec<(Arch, usize)>, String> {
    let found: Vec<(Arch, usize)> =
        archs.iter().filter_map(|&arch| Some((arch, instruction(arch, name)?.0))).collect();
    if found.is_empty() { Err(unknown(archs, name)) } else { Ok(found) }
}

fn unknown(archs: &[Arch], name: &str) -> String {
    let of: Vec<&str> = archs.iter().map(|a| a.name()).collect();
    let names = archs.iter().flat_map(|a| a.table().instructions).map(|i| i.name);
    let mut message = format!("no instruction of {} is called `{name}`", of.join(", "));
    if let Some(near) = nearest(name, names) {
        message += &format!("; did you mean `{}`?", near.to_lowercase());
    }
    let elsewhere = Arch::ALL.iter().filter(|a| !archs.contains(a) && instruction(**a, name).is_some());
    let elsewhere: Vec<&str> = elsewhere.map(|a| a.name()).collect();
    if !elsewhere.is_empty() {
        let has = if elsewhere.len() == 1 { "has" } else { "have" };
        message += &format!(" ({} {has} it)", elsewhere.join(" and "));
    }
    message
}

/// One encoding of an instruction.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names say what they are")]
pub struct Form {
    pub encoding: &'static str,
    /// Name of the condition in the ISA description under which this encoding applies.
    pub condition: Option<&'static str>,
    pub opcode: u16,
    pub bits: u16,
    pub operands: Vec<Operand>,
    /// Fields that hold no operand, with their value if it is fixed.
    pub fields: Vec<(&'static Field, Option<u32>)>,
}

/// An operand of a form.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names say what they are")]
pub struct Operand {
    pub role: Role,
    /// `None` if the operand is always the same register.
    pub field: Option<&'static Field>,
    /// `in`, `out` or `inout`.
    pub access: &'static str,
    pub ty: &'static str,
    pub format: &'static str,
    pub bits: u16,
    pub implicit: bool,
}

impl Operand {
    /// The field and its bits (`SRC0[8:0]`), or `fixed`.
    pub fn place(&self) -> String {
        self.field.map_or("fixed".to_string(), |f| format!("{}{}", f.name, bits_text(f)))
    }
}

/// The forms of an instruction, given by its index in the architecture's table.
pub fn instruction_forms(arch: Arch, position: usize) -> impl Iterator<Item = Form> {
    let table = arch.table();
    table.entries_of(&table.instructions[position]).iter().map(move |entry| form(table, entry))
}

fn form(table: &'static ArchTable, entry: &Entry) -> Form {
    let encoding = &table.encodings[entry.enc as usize];
    let signature = table.signatures[entry.sig as usize];
    let operand = |o: &isa_spec::tables::OperandSig| Operand {
        role: o.role,
        field: o.field.map(|f| &encoding.fields[f as usize]),
        access: match (o.input, o.output) {
            (true, true) => "inout",
            (false, true) => "out",
            _ => "in",
        },
        ty: table.operand_types[o.ty as usize].name,
        format: table.formats[o.format as usize].name,
        bits: o.size_bits,
        implicit: o.implicit,
    };
    let others = encoding.fields.iter().enumerate();
    let others = others.filter(|(at, _)| signature.iter().all(|o| o.field != Some(*at as u8)));
    Form {
        encoding: encoding.name,
        condition: encoding.conditions.get(entry.cond as usize).map(|c| c.name),
        opcode: entry.opcode,
        bits: encoding.bits as _,
        operands: signature.iter().map(operand).collect(),
        fields: others.map(|(_, field)| (field, only_value(field, entry, encoding))).collect(),
    }
}

fn only_value(field: &'static Field, entry: &Entry, encoding: &Encoding) -> Option<u32> {
    let op = encoding.op_field.is_some_and(|at| std::ptr::eq(&encoding.fields[at as usize], field));
    if op { Some(entry.opcode as u32) } else { field.fixed }
}

/// Formats bit ranges as `[15:8]` or `[3]`; several ranges start with the most significant one.
pub fn bits_text(field: &Field) -> String {
    let ranges: Vec<String> = field
        .ranges
        .iter()
        .rev()
        .map(|&(at, count)| match count {
            1 => at.to_string(),
            _ => format!("{}:{at}", at as u32 + count as u32 - 1),
        })
        .collect();
    format!("[{}]", ranges.join(","))
}

/// Returns the lines of a pseudocode body without common indentation and without surrounding blank lines.
pub fn unindented(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.trim_end().lines().skip_while(|l| l.trim().is_empty()).collect();
    let indent = |l: &&str| l.len() - l.trim_start().len();
    // The first line has no indentation if the body starts on the line of its brace.
    let shared = lines.iter().filter(|l| !l.trim().is_empty()).map(indent).min().unwrap_or(0);
    lines.into_iter().map(|l| l.get(shared..).unwrap_or("")).collect()
}

/// Spellings of the modifiers of an architecture's instructions; a modifier that takes a value ends with a
/// colon.
pub fn modifiers(arch: Arch) -> BTreeSet<String> {
    let forms = forms(arch);
    let entries = 0..arch.table().entries.len();
    entries.flat_map(|entry| &forms.get(entry as _).mods).flat_map(|own| own.spellings()).collect()
}

/// The counters combined in one `s_waitcnt` operand; empty if each counter has an instruction of its own.
pub fn wait_counters(arch: Arch) -> Vec<&'static str> {
    match arch.table().operand_types.iter().any(|t| t.name == "OPR_WAITCNT") {
        true => COUNTERS.iter().map(|c| c.1).collect(),
        false => Vec::new(),
    }
}
