//! Reads the lines of a program: labels, launch directives, instructions.

use super::Unit;
use crate::program::LineError;
use isa_spec::tables::EntryId;
use std::collections::BTreeMap;
use wavesim_asm::error::{AsmError, Span, suggest};
use wavesim_asm::generic::match_operands;
use wavesim_asm::generic::syntax::{SpannedToken, Syntax, Token};
use wavesim_isa::arch::Arch;
use wavesim_isa::arch::machine::Machine;
use wavesim_isa::codec::encode;
use wavesim_isa::inst::Inst;

/// An instruction whose labels are not yet resolved.
struct Pending {
    line: usize,
    text: String,
    /// Byte position of the instruction in the line.
    from: usize,
    here: u64,
    entries: Vec<EntryId>,
}

/// Reads a program line by line; instructions are assembled after all labels are known.
pub(super) struct Reader {
    syntax: Syntax,
    pending: Vec<Pending>,
    labels: BTreeMap<String, (u64, usize)>,
    order: Vec<String>,
    /// Number of workgroups and of waves, each with the line of its directive.
    launch: [Option<(u32, usize)>; 2],
    end: u64,
    pub errors: Vec<LineError>,
}

impl Reader {
    /// Creates a reader.
    pub fn new(arch: Arch, machine: &'static Machine) -> Reader {
        Reader {
            syntax: Syntax::new(arch, machine),
            pending: Vec::new(),
            labels: BTreeMap::new(),
            order: Vec::new(),
            launch: [None; 2],
            end: 0,
            errors: Vec::new(),
        }
    }

    pub fn line(&mut self, number: usize, line: &str) -> Result<(), AsmError> {
        let tokens = self.syntax.tokens(line)?;
        let mut rest = &tokens[..];
        while let [(Token::Word(name), span), (Token::Punctuation(':'), _), ..] = rest {
            self.label(name, *span, number)?;
            rest = &rest[2..];
        }
        let Some((first, span)) = rest.first() else { return Ok(()) };
        if let Token::Word(name) = first
            && name.starts_with('.')
        {
            return self.directive(name, *span, &rest[1..], number);
        }
        let here = self.end;
        // An invalid line also takes the space of an instruction, which preserves the distances between the
        // others.
        self.end += self.syntax.machine.pc_bytes;
        let entries = self.syntax.entries(rest)?;
        let table = self.syntax.arch.table();
        let bits = table.encodings[table.entries[entries[0] as usize].enc as usize].bits;
        self.end = here + bits as u64 / 8;
        self.pending.push(Pending { line: number, text: line.to_string(), from: span.start, here, entries });
        Ok(())
    }

    fn label(&mut self, name: &str, span: Span, number: usize) -> Result<(), AsmError> {
        if let Some((_, line)) = self.labels.get(name) {
            return Err(AsmError::new(
                span,
                format!("`{name}` is already defined as a label on line {line}"),
            ));
        }
        self.labels.insert(name.to_string(), (self.end, number));
        self.order.push(name.to_string());
        Ok(())
    }

    fn directive(
        &mut self,
        name: &str,
        span: Span,
        rest: &[SpannedToken<'_>],
        number: usize,
    ) -> Result<(), AsmError> {
        let known = [self.syntax.assembly.groups, self.syntax.assembly.waves];
        let Some(which) = known.iter().position(|k| *k == name) else {
            let error = AsmError::new(span, format!("there is no directive `{name}`"));
            return Err(error.help(format!("{} and {} are", known[0], known[1])));
        };
        let max = [u32::MAX, self.syntax.machine.max_waves][which];
        let value = match rest {
            [(Token::Number(value), _)] if (1..=max as i64).contains(value) => *value as u32,
            [(Token::Number(_), span)] => {
                return Err(AsmError::new(*span, format!("{name} takes a number from 1 to {max}")));
            }
            [(Token::Number(_), _), (_, span), ..] => {
                return Err(AsmError::new(*span, "unexpected text at the end of the line"));
            }
            [(_, span), ..] => return Err(AsmError::new(*span, "expected a number")),
            [] => return Err(AsmError::new(Span::new(span.end, span.end), "expected a number")),
        };
        if let Some((_, line)) = self.launch[which] {
            return Err(AsmError::new(span, format!("{name} is already given on line {line}")));
        }
        self.launch[which] = Some((value, number));
        Ok(())
    }

    pub fn finish(mut self) -> (Unit, Vec<LineError>) {
        let mut unit = Unit {
            insts: Vec::new(),
            labels: self.order.iter().map(|name| (name.clone(), self.labels[name].0)).collect(),
            groups: self.launch[0].map_or(1, |l| l.0),
            waves: self.launch[1].map_or(1, |l| l.0),
        };
        for pending in std::mem::take(&mut self.pending) {
            match self.instruction(&pending) {
                Ok(inst) => unit.insts.push((inst, pending.line as u32)),
                Err(error) => {
                    self.errors.push(LineError::on_line(pending.line, &pending.text, error));
                }
            }
        }
        if self.end == 0 && self.errors.is_empty() {
            let error = AsmError::new(Span::default(), "the program has no instructions");
            self.errors.push(LineError::on_line(1, "", error));
        }
        self.errors.sort_by_key(|e| (e.line, e.column));
        (unit, self.errors)
    }

    fn instruction(&self, pending: &Pending) -> Result<Inst, AsmError> {
        let tokens = self.syntax.tokens(&pending.text)?;
        let first = tokens.iter().position(|t| t.1.start == pending.from).unwrap_or(0);
        let near = |name: &str| suggest(name, self.order.iter().map(String::as_str));
        let label = |name: &str| self.labels.get(name).map(|l| l.0).ok_or_else(|| near(name));
        let inst = match_operands(&self.syntax, &pending.entries, &tokens[first..], pending.here, &label)?;
        // The encoder reports values that do not fit a field.
        let span = Span::new(pending.from, pending.text.trim_end().len());
        encode(self.syntax.arch, &inst).map_err(|e| AsmError::new(span, e.to_string()))?;
        Ok(inst)
    }
}
