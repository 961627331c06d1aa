//! Diagnostics of a kernel with their source ranges, in the form that an editor needs, and the kernel's
//! labels.

use crate::program::{Program, ProgramKind, check_size};
use isa_spec::source::SourceMap;
use serde_json::{Value, json};
use wavesim_assembler::program::LineError;
use wavesim_loader::prepared::Prepared;

/// Maximum number of diagnostics in an answer.
const MAX_DIAGNOSTICS: usize = 200;

/// A text with positions in UTF-16 code units, as browsers count.
pub struct Text<'a> {
    text: &'a str,
    /// The byte offset of each line.
    lines: Vec<usize>,
}

impl<'a> Text<'a> {
    /// Computes the line offsets of a text.
    pub fn new(text: &'a str) -> Text<'a> {
        let breaks = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1);
        Text { text, lines: std::iter::once(0).chain(breaks).collect() }
    }

    fn utf16_offset(&self, byte: usize) -> usize {
        let byte = (0..=byte.min(self.text.len())).rev().find(|at| self.text.is_char_boundary(*at));
        self.text[..byte.unwrap_or(0)].encode_utf16().count()
    }

    /// Returns the byte range of a line (counted from 1) without its line break.
    fn line(&self, number: usize) -> (usize, usize) {
        let start = number.checked_sub(1).and_then(|at| self.lines.get(at)).copied().unwrap_or(0);
        let end = self.text[start..].find('\n').map_or(self.text.len(), |n| start + n);
        (start, end)
    }

    /// Returns a diagnostic for a range of bytes.
    pub fn message(
        &self,
        from: usize,
        to: usize,
        severity: &str,
        message: &str,
        help: Option<&str>,
    ) -> Value {
        json!({"from": self.utf16_offset(from), "to": self.utf16_offset(to), "severity": severity, "message": message, "help": help})
    }

    /// Returns the byte range of the word at a line and a column in bytes, both counted from 1; of one character if
    /// there is no word. `None` if the text has no such place.
    pub fn word(&self, line: usize, column: usize) -> Option<std::ops::Range<usize>> {
        self.lines.get(line.checked_sub(1)?)?;
        let (first, end) = self.line(line);
        let start = first + column.saturating_sub(1);
        let rest = self.text.get(start..end)?;
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let length = word.max(rest.chars().next().map_or(0, char::len_utf8));
        Some(start..start + length)
    }

    /// Returns a diagnostic for a line of assembly.
    fn line_error(&self, e: &LineError) -> Value {
        let (start, end) = self.line(e.line);
        // Lines that a macro has produced, or that another file contains, do not occur in the text.
        let quoted = e.number == e.line && self.text[start..end] == e.text && !e.text.is_empty();
        let span = e.error.span;
        let (from, to) =
            if quoted { (start + span.start, start + span.end.max(span.start + 1)) } else { (start, end) };
        self.message(from, to, "error", &e.error.message, e.error.help.as_deref())
    }
}

/// Parses a kernel. Returns its diagnostics and labels, and its target if it has no errors.
pub fn program(program: &Program) -> Result<Value, String> {
    check_size(&program.text)?;
    let place = Text::new(&program.text);
    match program.kind() {
        ProgramKind::Text => {
            let mut sources = SourceMap::default();
            let file = sources.add(&program.name, &program.text);
            match wavesim_text::parse(&sources, file, &program.options()?) {
                Ok(kernel) => {
                    let lines = |pc: u64| {
                        let mut at = 0;
                        let found = kernel.instructions.iter().find(|(inst, _)| {
                            at += inst.size as u64;
                            at > pc
                        });
                        found.map(|i| i.1)
                    };
                    let labels: Vec<Value> = kernel
                        .labels
                        .iter()
                        .map(|(name, pc)| json!({"name": name, "line": lines(*pc)}))
                        .collect();
                    Ok(json!({
                        "kind": "text", "diagnostics": [], "labels": labels,
                        "arch": kernel.arch.name(), "wave": kernel.wave,
                    }))
                }
                Err(diagnostics) => {
                    let list: Vec<Value> = diagnostics
                        .iter()
                        .take(MAX_DIAGNOSTICS)
                        .map(|d| {
                            // The format's messages begin with the line number, which an editor shows
                            // already.
                            let rest = d.message.strip_prefix("line ").and_then(|m| m.split_once(": "));
                            let message = rest.map_or(d.message.as_str(), |m| m.1);
                            let (from, to) = (d.span.start as usize, d.span.end as usize);
                            place.message(from, to, "error", message, d.help.as_deref())
                        })
                        .collect();
                    Ok(json!({"kind": "text", "diagnostics": list, "labels": []}))
                }
            }
        }
        ProgramKind::Assembly => {
            let (read, options, errors) = program.reading()?.read(&program.name, &program.text);
            let list: Vec<Value> = errors.iter().take(MAX_DIAGNOSTICS).map(|e| place.line_error(e)).collect();
            let kernels: Vec<&str> = read.kernels().collect();
            Ok(json!({
                "kind": "assembly", "diagnostics": list, "labels": [], "kernels": kernels,
                "arch": options.arch.name(), "wave": read.wave(),
            }))
        }
        ProgramKind::Object => Ok(json!({"kind": "object", "diagnostics": [], "labels": []})),
    }
}

/// Describes a launch for headings: architecture, wave size, grid and workgroup.
pub fn launch(prepared: &Prepared) -> Value {
    json!({
        "arch": prepared.program.arch.name(),
        "wave": prepared.shape.wave_size,
        "grid": prepared.shape.grid,
        "block": prepared.shape.block,
        "lds": prepared.shape.lds_bytes,
    })
}
