//! Where lines come from while a file is read: the file, and on top of it the bodies of macros, repetitions
//! and included files.
//!
//! An expansion is never built as a whole: its lines are built one by one, so that [`MAX_LINES`] and
//! [`MAX_LINE_BYTES`] bound what a short file can request.

use super::error::{AsmError, Span};
use super::macros::{Arguments, Macro};
use super::source::{Place, SourceLine, Sources};
use std::rc::Rc;

/// Lines that one file may expand to.
const MAX_LINES: u64 = 1 << 20;
/// Bytes of a block that is to be repeated.
const MAX_BLOCK_BYTES: usize = 4 << 20;
/// Bytes of one line after substitution.
const MAX_LINE_BYTES: usize = 1 << 16;
/// Macros, repetitions and files within each other.
const MAX_DEPTH: usize = 64;

/// The source of a frame's lines, each made on demand.
#[derive(Debug)]
enum Body {
    /// As they stand.
    Plain(Rc<[SourceLine]>),
    Macro {
        called: Rc<Macro>,
        arguments: Arguments,
    },
    /// Again and again: `.rept`.
    Times {
        lines: Rc<[SourceLine]>,
        left: u64,
    },
    /// Once for each value of a symbol: `.irp`, `.irpc`.
    Each {
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
    /// Conditionals that were open when it began.
    conditionals: usize,
}

/// What [`Input::read`] finds.
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Next {
    /// A line, macro parameters substituted.
    Line(SourceLine, Place),
    /// A macro, an included file or a round of a repetition ended, which began with so many conditionals
    /// open.
    End { conditionals: usize },
    /// The end of the main file.
    Nothing,
}

/// The stack of what is being read.
pub struct Input {
    /// Files and calls so far.
    pub sources: Sources,
    frames: Vec<Frame>,
    /// Where the last line was.
    pub place: Place,
    lines_read: u64,
}

impl Input {
    /// Starts at the first line of the main file.
    pub fn new(name: &str, text: &str) -> Input {
        let mut sources = Sources::default();
        let lines = sources.add(name, text);
        let frame = Frame { body: Body::Plain(lines), next: 0, via: 0, conditionals: 0 };
        Input { sources, frames: vec![frame], place: Place::default(), lines_read: 0 }
    }

    /// The next line; an error ends the file.
    pub fn read(&mut self) -> Result<Next, AsmError> {
        let Some(frame) = self.frames.last_mut() else { return Ok(Next::Nothing) };
        self.lines_read += 1;
        if self.lines_read > MAX_LINES {
            self.frames.clear();
            return Err(AsmError::new(
                Span::default(),
                format!("this expands to more than {MAX_LINES} lines"),
            ));
        }
        let lines = match &frame.body {
            Body::Plain(lines) | Body::Times { lines, .. } | Body::Each { lines, .. } => lines,
            Body::Macro { called, .. } => &called.lines,
        };
        if let Some(line) = lines.get(frame.next).cloned() {
            frame.next += 1;
            self.place = self.sources.place(&line, frame.via);
            let text = match &frame.body {
                Body::Plain(_) | Body::Times { .. } => return Ok(Next::Line(line, self.place)),
                Body::Macro { called, arguments } => called.substituted(&line.text, arguments),
                Body::Each { symbol, value, count, .. } => {
                    super::macros::replaced(&line.text, symbol, value, *count)
                }
            };
            if text.len() > MAX_LINE_BYTES {
                self.frames.clear();
                return Err(AsmError::new(Span::default(), "a line grows too long by what is put into it"));
            }
            return Ok(Next::Line(SourceLine { text: text.into(), ..line }, self.place));
        }
        let again = match &mut frame.body {
            Body::Plain(_) | Body::Macro { .. } => false,
            Body::Times { left, .. } => {
                *left = left.saturating_sub(1);
                *left > 0
            }
            Body::Each { values, value, .. } => match values.next() {
                Some(next) => {
                    *value = next;
                    true
                }
                None => false,
            },
        };
        // The end of a round counts as a line, so that repetitions of nothing end too.
        let conditionals = frame.conditionals;
        frame.next = 0;
        if !again {
            self.frames.pop();
        }
        Ok(Next::End { conditionals })
    }

    /// Conditionals that were open when what is being read began: those it cannot close.
    pub fn floor(&self) -> usize {
        self.frames.last().map_or(0, |f| f.conditionals)
    }

    fn push(&mut self, what: String, body: Body, inline: bool, conditionals: usize) -> Result<(), AsmError> {
        if self.frames.len() >= MAX_DEPTH {
            let message =
                format!("macros, repetitions and files stand in each other more than {MAX_DEPTH} deep");
            return Err(AsmError::new(Span::default(), message));
        }
        let via = self.sources.call(what, self.place, inline);
        self.frames.push(Frame { body, next: 0, via, conditionals });
        Ok(())
    }

    /// Reads the body of a macro next, called at the last line.
    pub fn expand(
        &mut self,
        called: Rc<Macro>,
        arguments: Arguments,
        conditionals: usize,
    ) -> Result<(), AsmError> {
        let what = format!("macro {}", called.name);
        self.push(what, Body::Macro { called, arguments }, false, conditionals)
    }

    /// Reads an included file next.
    pub fn include(&mut self, name: &str, text: &str, conditionals: usize) -> Result<(), AsmError> {
        let lines = self.sources.add(name, text);
        self.push(".include".to_string(), Body::Plain(lines), false, conditionals)
    }

    /// Reads lines `times` times next.
    pub fn repeat(
        &mut self,
        lines: Vec<SourceLine>,
        times: u64,
        conditionals: usize,
    ) -> Result<(), AsmError> {
        if times == 0 {
            return Ok(());
        }
        let body = Body::Times { lines: lines.into(), left: times };
        self.push(".rept".to_string(), body, true, conditionals)
    }

    /// Reads lines once for each value of a symbol next.
    pub fn each(
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
        let body = Body::Each { lines: lines.into(), symbol, values, value, count };
        self.push(".irp".to_string(), body, true, conditionals)
    }

    /// Leaves the macro that is being read (`.exitm`), with the repetitions in it; returns the number of
    /// conditionals that were open at its call.
    pub fn leave_macro(&mut self) -> Option<usize> {
        let at = self.frames.iter().rposition(|f| matches!(f.body, Body::Macro { .. }))?;
        let conditionals = self.frames[at].conditionals;
        self.frames.truncate(at);
        Some(conditionals)
    }

    /// Leaves everything (`.end`).
    pub fn finish(&mut self) {
        self.frames.clear();
    }

    /// Lines up to the one that closes the block (`ends`), where others may be nested (`begins`); the closing
    /// line is read too. `None` if there is none before the file, macro or repetition ends.
    pub fn block(
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

/// A line's directive or mnemonic, in lower case characters as it is; labels before it are skipped.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &mut Input) -> Vec<String> {
        let mut out = Vec::new();
        loop {
            match input.read().unwrap() {
                Next::Line(line, _) => out.push(line.text.to_string()),
                Next::End { .. } => {}
                Next::Nothing => return out,
            }
        }
    }

    #[test]
    fn repetitions_and_their_places() {
        let mut input = Input::new("k.s", ".rept 2\na\n.irp x,1,2\nb \\x\n.endr\n.endr\nc");
        let Ok(Next::Line(..)) = input.read() else { panic!() };
        let lines = input.block(|w| w == ".irp", |w| w == ".endr").unwrap().unwrap();
        assert_eq!(lines.len(), 4);
        input.repeat(lines, 2, 0).unwrap();
        assert_eq!(all(&mut input).len(), 9);
        let mut input = Input::new("k.s", "x");
        let body = vec![SourceLine { text: "b \\x".to_string().into(), file: 0, number: 7 }];
        input.each(body, "x", vec!["1".to_string(), "2".to_string()], 0, 0).unwrap();
        assert_eq!(all(&mut input), ["b 1", "b 2", "x"]);
    }

    #[test]
    fn endless_repetitions_end() {
        let mut input = Input::new("k.s", "");
        input.repeat(Vec::new(), u64::MAX, 0).unwrap();
        let error = loop {
            match input.read() {
                Err(e) => break e,
                Ok(Next::Nothing) => panic!("no end"),
                Ok(_) => {}
            }
        };
        assert!(error.message.contains("lines"), "{error}");
    }
}
