//! The syntax of a machine: tokens, and operands of instructions.

use super::TARGET;
use crate::error::{AsmError, Span, suggest};
use crate::names::names;
use isa_spec::tables::{EntryId, Field, OperandSig, OperandType};
use wavesim_isa::arch::Arch;
use wavesim_isa::arch::machine::{Assembly, Machine};
use wavesim_isa::inst::Inst;
use wavesim_isa::operand;

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub enum Token<'t> {
    /// A mnemonic, a register, a label or a directive.
    Word(&'t str),
    /// A number with its sign.
    Number(i64),
    /// `,`, `(`, `)` or `:`.
    Punctuation(char),
}

/// A token with its span.
pub type SpannedToken<'t> = (Token<'t>, Span);

/// An element of an operand syntax.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    Operand(&'static OperandSig, &'static Field),
    Punctuation(char),
}

/// Parser and printer for one machine.
#[derive(Clone, Copy)]
pub struct Syntax {
    /// The instruction set.
    pub arch: Arch,
    /// Its machine.
    pub machine: &'static Machine,
    /// The machine's description of its syntax.
    pub assembly: &'static Assembly,
}

impl Syntax {
    /// Creates the syntax of a machine.
    pub fn new(arch: Arch, machine: &'static Machine) -> Syntax {
        Syntax { arch, machine, assembly: &machine.assembly }
    }

    pub(super) fn mnemonic(&self, name: &str) -> String {
        name.to_lowercase().replace('_', &self.assembly.separator.to_string())
    }

    /// The alternative operand syntaxes of an entry.
    pub(super) fn patterns(&self, entry: EntryId) -> Vec<Vec<Part>> {
        let table = self.arch.table();
        let entry = &table.entries[entry as usize];
        let encoding = &table.encodings[entry.enc as usize];
        let sig = table.signatures[entry.sig as usize];
        let operand = |o: &'static OperandSig| Some(Part::Operand(o, &encoding.fields[o.field? as usize]));
        let named = |name: &str| {
            let of =
                |o: &&'static OperandSig| matches!(operand(o), Some(Part::Operand(_, f)) if f.name == name);
            operand(sig.iter().find(of)?)
        };
        match self.assembly.operands.iter().find(|o| o.0 == encoding.name) {
            Some((_, patterns)) => patterns.iter().map(|text| parts(text, &named)).collect(),
            None => {
                let mut list = Vec::new();
                for part in sig.iter().filter_map(operand) {
                    if !list.is_empty() {
                        list.push(Part::Punctuation(','));
                    }
                    list.push(part);
                }
                vec![list]
            }
        }
    }

    pub(super) fn operand_text(
        &self,
        o: &OperandSig,
        field: &Field,
        inst: &Inst,
        label: Option<&str>,
    ) -> String {
        let table = self.arch.table();
        let ty = &table.operand_types[o.ty as usize];
        let value = inst.fields[o.field.unwrap_or(0) as usize];
        if let (true, Some(label)) = (ty.name == TARGET, label) {
            return label.to_string();
        }
        match names(self.arch, o.ty).name(value) {
            Some(name) => name.to_string(),
            None => operand::number(value, field.width(), self.is_signed(o)).to_string(),
        }
    }

    /// Describes the operand that a type expects.
    pub(super) fn expected(&self, ty: &OperandType) -> String {
        let of = |kind: &str, prefix: char, count: u16| {
            format!("a {kind} register ({prefix}0 to {prefix}{})", count - 1)
        };
        let (vector, scalar) = (&self.machine.vector, &self.machine.scalar);
        match ty.name {
            name if vector.operand_types.contains(&name) => of("vector", vector.prefix, vector.count),
            name if scalar.operand_types.contains(&name) => of("scalar", scalar.prefix, scalar.count),
            _ => "a number or a label".to_string(),
        }
    }

    pub(super) fn is_signed(&self, o: &OperandSig) -> bool {
        self.arch.table().formats[o.format as usize].name.starts_with("FMT_NUM_I")
    }

    /// Splits a line into tokens; the comment is dropped.
    pub fn tokens<'t>(&self, line: &'t str) -> Result<Vec<SpannedToken<'t>>, AsmError> {
        let text = line.split(self.assembly.comment).next().unwrap_or("");
        let mut out = Vec::new();
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at..];
            let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
            let signed = matches!(c, '-' | '+');
            let len = match c {
                _ if c.is_whitespace() => {
                    at += c.len_utf8();
                    continue;
                }
                ',' | '(' | ')' | ':' => 1,
                _ if signed || word(c) => {
                    signed as usize
                        + rest[signed as usize..].find(|c| !word(c)).unwrap_or(rest.len() - signed as usize)
                }
                _ => {
                    let span = Span::new(at, at + c.len_utf8());
                    return Err(AsmError::new(span, format!("`{c}` is not a valid character")));
                }
            };
            let (text, span) = (&rest[..len], Span::new(at, at + len));
            let token = match c {
                ',' | '(' | ')' | ':' => Token::Punctuation(c),
                _ if signed || c.is_ascii_digit() => Token::Number(number(text).ok_or_else(|| {
                    AsmError::new(span, format!("`{text}` is not a number, as 12, -3, 0x1f or 0b101 are"))
                })?),
                _ => Token::Word(text),
            };
            out.push((token, span));
            at += len;
        }
        Ok(out)
    }

    /// The entries of the instruction named by the first token.
    pub fn entries(&self, tokens: &[SpannedToken<'_>]) -> Result<Vec<EntryId>, AsmError> {
        let Some((token, span)) = tokens.first() else {
            return Err(AsmError::new(Span::default(), "expected an instruction"));
        };
        let Token::Word(word) = token else {
            return Err(AsmError::new(*span, "expected an instruction, a label or a directive"));
        };
        let wanted = word.to_lowercase();
        let table = self.arch.table();
        let all_names = |i: &'static isa_spec::tables::Instruction| {
            std::iter::once(i.name).chain(i.aliases().iter().copied()).map(|n| self.mnemonic(n))
        };
        let found = table.instructions.iter().find(|i| all_names(i).any(|n| n == wanted));
        match found {
            Some(i) => Ok((i.entries.0..i.entries.0 + i.entries.1).collect()),
            None => {
                let error = AsmError::new(*span, format!("{} has no instruction `{word}`", self.arch.name()));
                let known: Vec<String> = table.instructions.iter().map(|i| self.mnemonic(i.name)).collect();
                Err(match suggest(&wanted, known.iter().map(String::as_str)) {
                    Some(help) => error.help(help),
                    None => error,
                })
            }
        }
    }
}

/// Parses a syntax pattern such as `RD, IMM(RS1)`.
fn parts(text: &str, named: &dyn Fn(&str) -> Option<Part>) -> Vec<Part> {
    let mut out = Vec::new();
    let mut rest = text.trim();
    while let Some(c) = rest.chars().next() {
        let len =
            rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len()).max(c.len_utf8());
        match named(&rest[..len]) {
            Some(part) => out.push(part),
            None => out.push(Part::Punctuation(c)),
        }
        rest = rest[len..].trim_start();
    }
    out
}

/// Parses a number: an optional sign, then decimal, or hexadecimal or binary digits with their prefix.
pub fn number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match (lower.strip_prefix("0x"), lower.strip_prefix("0b")) {
        (Some(hex), _) => (16, hex),
        (None, Some(binary)) => (2, binary),
        _ => (10, lower.as_str()),
    };
    // Rejects a second sign.
    let value =
        digits.chars().all(|c| c.is_digit(radix)).then(|| i64::from_str_radix(digits, radix).ok())??;
    Some(if negative { -value } else { value })
}
