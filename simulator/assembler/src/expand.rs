//! The stack of line sources while a file is read: the file, macro bodies, repetitions and included files.
//!
//! An expansion is never materialised as a whole. Its lines are built one at a time, and [`MAX_LINES`] and
//! [`MAX_LINE_BYTES`] bound what a short file can request.

use super::macros::{Arguments, Macro};
use super::source::{Location, SourceLine, Sources};
use std::rc::Rc;
use wavesim_asm::error::{AsmError, Span};

/// Maximum number of lines that a file may expand to.
const MAX_LINES: u64 = 1 << 20;
/// Maximum size of a repeated block in bytes.
const MAX_BLOCK_BYTES: usize = 4 << 20;
/// Maximum length of a line after substitution in bytes.
const MAX_LINE_BYTES: usize = 1 << 16;
/// Maximum nesting depth of macros, repetitions and files.
const MAX_DEPTH: usize = 64;

/// The source of a frame's lines, which are built on demand.
#[derive(Debug)]
enum Body {
    /// Lines without substitution.
    Verbatim(Rc<[SourceLine]>),
    Macro {
        called: Rc<Macro>,
        arguments: Arguments,
    },
    /// A counted repetition: `.rept`.
    Repeat {
        lines: Rc<[SourceLine]>,
        remaining: u64,
    },
    /// A repetition for each value of a symbol: `.irp`, `.irpc`.
    ForEach {
        lines: Rc<[SourceLine]>,
        symbol: String,
        values: std::vec::IntoIter<String>,
        value: String,
        count: u64,
    },
}

#[derive(Debug)]
struct Frame {
    body: Body,
    next: usize,
    via: u32,
    /// Number of conditionals that were open when the frame was entered.
    conditionals: usize,
}

/// The result of [`Input::read`].
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Next {
    /// A line, with macro parameters substituted.
    Line(SourceLine, Location),
    /// The end of a macro, of an included file or of an iteration of a repetition, with the number of
    /// conditionals that were open at its start.
    End { conditionals: usize },
    /// The end of the main file.
    EndOfInput,
}

/// The stack of line sources.
pub struct Input {
    /// All files and expansions so far.
    pub sources: Sources,
    frames: Vec<Frame>,
    /// Location of the last line.
    pub location: Location,
    lines_read: u64,
}

impl Input {
    /// Creates an input positioned at the first line of the main file.
    pub fn new(name: &str, text: &str) -> Input {
        let mut sources = Sources::default();
        let lines = sources.add(name, text);
        let frame = Frame { body: Body::Verbatim(lines), next: 0, via: 0, conditionals: 0 };
        Input { sources, frames: vec![frame], location: Location::default(), lines_read: 0 }
    }

    /// Returns the next line. After an error there are no further lines.
    pub fn read(&mut self) -> Result<Next, AsmError> {
        let Some(frame) = self.frames.last_mut() else { return Ok(Next::EndOfInput) };
        self.lines_read += 1;
        if self.lines_read > MAX_LINES {
            self.frames.clear();
            return Err(AsmError::new(
                Span::default(),
                format!("this expands to more than {MAX_LINES} lines"),
            ));
        }
        let lines = match &frame.body {
            Body::Verbatim(lines) | Body::Repeat { lines, .. } | Body::ForEach { lines, .. } => lines,
            Body::Macro { called, .. } => &called.lines,
        };
        if let Some(line) = lines.get(frame.next).cloned() {
            frame.next += 1;
            self.location = self.sources.location(&line, frame.via);
            let text = match &frame.body {
                Body::Verbatim(_) | Body::Repeat { .. } => return Ok(Next::Line(line, self.location)),
                Body::Macro { called, arguments } => called.substitute_arguments(&line.text, arguments),
                Body::ForEach { symbol, value, count, .. } => {
                    super::macros::substitute_symbol(&line.text, symbol, value, *count)
                }
            };
            if text.len() > MAX_LINE_BYTES {
                self.frames.clear();
                return Err(AsmError::new(Span::default(), "a line becomes too long after substitution"));
            }
            return Ok(Next::Line(SourceLine { text: text.into(), ..line }, self.location));
        }
        let again = match &mut frame.body {
            Body::Verbatim(_) | Body::Macro { .. } => false,
            Body::Repeat { remaining, .. } => {
                *remaining = remaining.saturating_sub(1);
                *remaining > 0
            }
            Body::ForEach { values, value, .. } => match values.next() {
                Some(next) => {
                    *value = next;
                    true
                }
                None => false,
            },
        };
        // The end of an iteration counts as a line, which bounds repetitions of an empty block.
        let conditionals = frame.conditionals;
        frame.next = 0;
        if !again {
            self.frames.pop();
        }
        Ok(Next::End { conditionals })
    }

    /// The number of conditionals that were open at the start of the current frame, which it cannot close.
    pub fn conditional_floor(&self) -> usize {
        self.frames.last().map_or(0, |f| f.conditionals)
    }

    fn push(&mut self, what: String, body: Body, inline: bool, conditionals: usize) -> Result<(), AsmError> {
        if self.frames.len() >= MAX_DEPTH {
            let message = format!("macros, repetitions and files are nested more than {MAX_DEPTH} deep");
            return Err(AsmError::new(Span::default(), message));
        }
        let via = self.sources.add_expansion(what, self.location, inline);
        self.frames.push(Frame { body, next: 0, via, conditionals });
        Ok(())
    }

    /// Enters the body of a macro called by the last line.
    pub fn enter_macro(
        &mut self,
        called: Rc<Macro>,
        arguments: Arguments,
        conditionals: usize,
    ) -> Result<(), AsmError> {
        let what = format!("macro {}", called.name);
        self.push(what, Body::Macro { called, arguments }, false, conditionals)
    }

    /// Enters an included file.
    pub fn enter_file(&mut self, name: &str, text: &str, conditionals: usize) -> Result<(), AsmError> {
        let lines = self.sources.add(name, text);
        self.push(".include".to_string(), Body::Verbatim(lines), false, conditionals)
    }

    /// Enters a repetition of `lines`.
    pub fn enter_repetition(
        &mut self,
        lines: Vec<SourceLine>,
        times: u64,
        conditionals: usize,
    ) -> Result<(), AsmError> {
        if times == 0 {
            return Ok(());
        }
        let body = Body::Repeat { lines: lines.into(), remaining: times };
        self.push(".rept".to_string(), body, true, conditionals)
    }

    /// Enters a repetition of `lines` for each value of a symbol.
    pub fn enter_for_each(
        &mut self,
        lines: Vec<SourceLine>,
        symbol: &str,
        values: Vec<String>,
        count: u64,
        conditionals: usize,
    ) -> Result<(), AsmError> {
        let mut values = values.into_iter();
        let Some(value) = values.next() else { return Ok(()) };
        let symbol = symbol.to_string();
        let body = Body::ForEach { lines: lines.into(), symbol, values, value, count };
        self.push(".irp".to_string(), body, true, conditionals)
    }

    /// Leaves the innermost macro (`.exitm`) with the repetitions in it. Returns the number of conditionals
    /// that were open at its call.
    pub fn leave_macro(&mut self) -> Option<usize> {
        let at = self.frames.iter().rposition(|f| matches!(f.body, Body::Macro { .. }))?;
        let conditionals = self.frames[at].conditionals;
        self.frames.truncate(at);
        Some(conditionals)
    }

    /// Leaves all frames (`.end`).
    pub fn leave_all(&mut self) {
        self.frames.clear();
    }

    /// Reads the lines up to and including the one that closes the block (`ends`); blocks may be nested
    /// (`begins`). The closing line is not returned. `None` if the file, macro or iteration ends first.
    pub fn read_block(
        &mut self,
        begins: impl Fn(&str) -> bool,
        ends: impl Fn(&str) -> bool,
    ) -> Result<Option<Vec<SourceLine>>, AsmError> {
        let mut lines = Vec::new();
        let (mut depth, mut bytes) = (0, 0);
        loop {
            let Next::Line(line, _) = self.read()? else { return Ok(None) };
            let word = first_word(&line.text);
            if begins(word) {
                depth += 1;
            } else if ends(word) {
                if depth == 0 {
                    return Ok(Some(lines));
                }
                depth -= 1;
            }
            bytes += line.text.len();
            if bytes > MAX_BLOCK_BYTES {
                self.frames.clear();
                return Err(AsmError::new(Span::default(), "this block is too large"));
            }
            lines.push(line);
        }
    }
}

/// The directive or mnemonic of a line; labels are skipped.
pub fn first_word(line: &str) -> &str {
    let mut rest = line.trim_start();
    loop {
        let end = rest.find(|c: char| c.is_whitespace() || c == ':').unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        match after.strip_prefix(':') {
            Some(next) if !word.is_empty() => rest = next.trim_start(),
            _ => return word,
        }
    }
}
