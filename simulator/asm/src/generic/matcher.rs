//! Converts tokens to the fields of an instruction.

use super::syntax::{Part, SpannedToken, Syntax, Token};
use super::{Labels, TARGET};
use crate::error::{AsmError, Span};
use crate::names::names;
use isa_spec::tables::{EntryId, Field, MAX_FIELDS, OperandSig};
use wavesim_isa::inst::Inst;

/// Matches the tokens after the mnemonic against the entries, and returns the first match. `here` is the byte offset
/// of the instruction.
pub fn match_operands(
    syntax: &Syntax,
    entries: &[EntryId],
    tokens: &[SpannedToken<'_>],
    here: u64,
    label: Labels<'_>,
) -> Result<Inst, AsmError> {
    // The syntax that matches furthest gives the best error message.
    let mut furthest: Option<(usize, AsmError)> = None;
    for &entry in entries {
        for pattern in syntax.patterns(entry) {
            let mut m = Matcher { syntax, tokens, at: 1, here, label };
            match m.run(entry, &pattern) {
                Ok(inst) => return Ok(inst),
                Err(e) if furthest.as_ref().is_none_or(|w| m.at > w.0) => furthest = Some((m.at, e)),
                Err(_) => {}
            }
        }
    }
    Err(furthest.map_or_else(|| AsmError::new(Span::default(), "this instruction has no syntax"), |w| w.1))
}

/// Matches the operands of an instruction against one of its syntaxes.
struct Matcher<'a> {
    pub syntax: &'a Syntax,
    pub tokens: &'a [SpannedToken<'a>],
    /// Index of the next token.
    pub at: usize,
    /// Byte offset of the instruction.
    pub here: u64,
    pub label: Labels<'a>,
}

impl Matcher<'_> {
    pub fn run(&mut self, entry: EntryId, pattern: &[Part]) -> Result<Inst, AsmError> {
        let arch = self.syntax.arch;
        let table = arch.table();
        let mut inst = Inst { entry, entry_y: EntryId::MAX, size: 0, fields: [0; MAX_FIELDS] };
        let encoding = inst.encoding(table);
        inst.size = (encoding.bits / 8) as u8;
        for part in pattern {
            match part {
                Part::Punctuation(punctuation) => self.punctuation(*punctuation)?,
                Part::Operand(o, field) => {
                    inst.fields[o.field.unwrap_or(0) as usize] = self.operand(o, field)?;
                }
            }
        }
        if let Some((_, span)) = self.tokens.get(self.at) {
            return Err(AsmError::new(*span, "unexpected text after the instruction"));
        }
        for (at, field) in encoding.fields.iter().enumerate() {
            if let Some(value) = field.fixed {
                inst.fields[at] = value;
            }
            if encoding.op_field == Some(at as u8) {
                inst.fields[at] = inst.entry(table).opcode as u32;
            }
        }
        Ok(inst)
    }

    /// An empty span at the end of the last token.
    fn end(&self) -> Span {
        let end = self.tokens.last().map_or(0, |t| t.1.end);
        Span::new(end, end)
    }

    fn punctuation(&mut self, punctuation: char) -> Result<(), AsmError> {
        match self.tokens.get(self.at) {
            Some((Token::Punctuation(found), _)) if *found == punctuation => {
                self.at += 1;
                Ok(())
            }
            Some((_, span)) => Err(AsmError::new(*span, format!("expected `{punctuation}`"))),
            None => Err(AsmError::new(
                self.end(),
                format!("the instruction is incomplete: expected `{punctuation}`"),
            )),
        }
    }

    /// Reads an operand and returns the value for its field.
    fn operand(&mut self, o: &OperandSig, field: &Field) -> Result<u32, AsmError> {
        let arch = self.syntax.arch;
        let ty = &arch.table().operand_types[o.ty as usize];
        let wanted = self.syntax.expected(ty);
        let Some((token, span)) = self.tokens.get(self.at) else {
            return Err(AsmError::new(
                self.end(),
                format!("the instruction is incomplete: expected {wanted}"),
            ));
        };
        let value = match token {
            Token::Word(word) if !ty.values.is_empty() => names(arch, o.ty)
                .value(&word.to_lowercase())
                .ok_or_else(|| AsmError::new(*span, format!("expected {wanted}, found `{word}`")))?,
            Token::Word(word) if ty.name.starts_with("OPR_IMM") => {
                let target = (self.label)(word).map_err(|help| AsmError {
                    span: *span,
                    message: format!("there is no label `{word}`").into(),
                    help,
                })?;
                let from = if ty.name == TARGET { self.here } else { 0 };
                let distance = arch.machine_pc(target) as i64 - arch.machine_pc(from) as i64;
                self.encode_number(distance, o, field, *span)?
            }
            Token::Number(value) if ty.name.starts_with("OPR_IMM") => {
                self.encode_number(*value, o, field, *span)?
            }
            _ => return Err(AsmError::new(*span, format!("expected {wanted}"))),
        };
        self.at += 1;
        Ok(value)
    }

    fn encode_number(&self, value: i64, o: &OperandSig, field: &Field, span: Span) -> Result<u32, AsmError> {
        let bits = field.width();
        let (low, high) = match self.syntax.is_signed(o) {
            true => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
            false => (0, (1i64 << bits) - 1),
        };
        if !(low..=high).contains(&value) {
            let message = format!("{value} is out of range: expected a number from {low} to {high}");
            return Err(AsmError::new(span, message));
        }
        Ok(value as u32 & ((1u64 << bits) - 1) as u32)
    }
}
