//! Diagnostics of a kernel with their source ranges, in the form that an editor needs, and the kernel's
//! labels.

use crate::program::{Program, ProgramKind, check_size};
use isa_spec::diag::{Diagnostic, Severity};
use isa_spec::source::SourceMap;
use serde_json::{Value, json};
use wavesim_assembler::program::LineError;
use wavesim_loader::prepared::Prepared;
use wavesim_text::{Options, TextKernel};

/// Maximum number of diagnostics of a text.
pub const MAX_DIAGNOSTICS: usize = 200;

/// A message about a range of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Byte offset of the first character.
    pub from: usize,
    /// Byte offset after the last character.
    pub to: usize,
    /// Whether it is an error or a warning.
    pub severity: Severity,
    /// The message, without its position.
    pub text: String,
    /// Advice on what to write instead.
    pub help: Option<String>,
}

/// A text and where its lines start.
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

    /// Returns a message in JSON, with positions in UTF-16 code units, as browsers count.
    pub fn json(&self, message: &Message) -> Value {
        let Message { from, to, severity, text, help } = message;
        let severity = if *severity == Severity::Error { "error" } else { "warning" };
        json!({"from": self.utf16_offset(*from), "to": self.utf16_offset(*to), "severity": severity, "message": text, "help": help})
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

    /// Returns the message of an error in a line of assembly.
    fn line_error(&self, e: &LineError) -> Message {
        let (start, end) = self.line(e.line);
        // Lines that a macro has produced, or that another file contains, do not occur in the text.
        let quoted = e.number == e.line && self.text[start..end] == e.text && !e.text.is_empty();
        let span = e.error.span;
        let (from, to) =
            if quoted { (start + span.start, start + span.end.max(span.start + 1)) } else { (start, end) };
        let (text, help) = (e.error.message.to_string(), e.error.help.as_deref().map(str::to_string));
        Message { from, to, severity: Severity::Error, text, help }
    }
}

/// Parses a text kernel.
///
/// # Errors
/// The text has errors: at most [`MAX_DIAGNOSTICS`] of them.
pub fn text_kernel(name: &str, text: &str, options: &Options) -> Result<TextKernel, Vec<Message>> {
    let mut sources = SourceMap::default();
    let file = sources.add(name, text);
    wavesim_text::parse(&sources, file, options).map_err(|diagnostics| {
        let message = |d: &Diagnostic| {
            // The format's messages begin with the line number, which an editor shows already.
            let rest = d.message.strip_prefix("line ").and_then(|m| m.split_once(": "));
            let text = rest.map_or(d.message.as_str(), |m| m.1).to_string();
            let (from, to) = (d.span.start as usize, d.span.end as usize);
            Message { from, to, severity: Severity::Error, text, help: d.help.clone() }
        };
        diagnostics.iter().take(MAX_DIAGNOSTICS).map(message).collect()
    })
}

/// Converts the errors of an assembly file to messages, at most [`MAX_DIAGNOSTICS`] of them.
pub fn assembly_errors(text: &str, errors: &[LineError]) -> Vec<Message> {
    let text = Text::new(text);
    errors.iter().take(MAX_DIAGNOSTICS).map(|e| text.line_error(e)).collect()
}

/// Returns the line of the instruction at a byte offset of a text kernel.
pub fn line_at(kernel: &TextKernel, pc: u64) -> Option<u32> {
    let mut end = 0;
    let found = kernel.instructions.iter().find(|(inst, _)| {
        end += inst.size as u64;
        end > pc
    });
    found.map(|i| i.1)
}

/// Parses a kernel. Returns its diagnostics and labels, and its target if it has no errors.
pub fn program(program: &Program) -> Result<Value, String> {
    check_size(&program.text)?;
    let place = Text::new(&program.text);
    let json = |list: &[Message]| list.iter().map(|message| place.json(message)).collect::<Vec<Value>>();
    match program.kind() {
        ProgramKind::Text => match text_kernel(&program.name, &program.text, &program.options()?) {
            Ok(kernel) => {
                let label = |(name, pc): &(String, u64)| json!({"name": name, "line": line_at(&kernel, *pc)});
                Ok(json!({
                    "kind": "text", "diagnostics": [],
                    "labels": kernel.labels.iter().map(label).collect::<Vec<Value>>(),
                    "arch": kernel.arch.name(), "wave": kernel.wave,
                }))
            }
            Err(messages) => Ok(json!({"kind": "text", "diagnostics": json(&messages), "labels": []})),
        },
        ProgramKind::Assembly => {
            let (read, options, errors) = program.reading()?.read(&program.name, &program.text);
            let messages = assembly_errors(&program.text, &errors);
            let kernels: Vec<&str> = read.kernels().collect();
            Ok(json!({
                "kind": "assembly", "diagnostics": json(&messages), "labels": [], "kernels": kernels,
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
