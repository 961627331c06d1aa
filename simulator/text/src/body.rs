//! Splits a file into lines, and the lines of the instruction block into statements: labels, instructions and
//! `print` directives.

use super::{lex, print};
use wavesim_asm::scan::Scanner;

/// A line of the file.
#[derive(Debug, Clone)]
pub struct CodeLine<'a> {
    /// The text without comment and trailing white space.
    pub code: &'a str,
    /// Byte offset of the line in the file.
    pub base: usize,
    /// Line number, from 1.
    pub number: u32,
}

impl CodeLine<'_> {
    /// Returns whether the line is `---`, which delimits the header.
    pub fn is_fence(&self) -> bool {
        matches!(self.code.as_bytes(), [.., b'-', b'-', b'-']) && self.code.trim_start() == "---"
    }
}

/// The lines of a file.
#[derive(Debug, Clone)]
pub struct Lines<'a> {
    text: &'a str,
    at: usize,
    number: u32,
    /// Position from which the next comment can start; earlier lines contain none.
    next_comment: usize,
}

impl<'a> Lines<'a> {
    /// Creates an iterator over the lines of a file.
    pub fn new(text: &'a str) -> Lines<'a> {
        Lines { text, at: 0, number: 0, next_comment: 0 }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = CodeLine<'a>;

    fn next(&mut self) -> Option<CodeLine<'a>> {
        let bytes = self.text.as_bytes();
        let base = self.at;
        if base >= bytes.len() {
            return None;
        }
        let end = memchr::memchr(b'\n', &bytes[base..]).map_or(bytes.len(), |len| base + len);
        self.at = end + 1;
        self.number += 1;
        if self.next_comment < base || base == 0 {
            let found = memchr::memchr3(b';', b'#', b'/', &bytes[base..]);
            self.next_comment = found.map_or(bytes.len(), |len| base + len);
        }
        let mut code = &self.text[base..end];
        if self.next_comment < end {
            code = lex::without_comment(code);
        }
        if !matches!(code.as_bytes().last(), Some(b'!'..=b'~')) {
            code = code.trim_end();
        }
        Some(CodeLine { code, base, number: self.number })
    }
}

/// A statement of the instruction block.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Statement<'a> {
    /// `name:`.
    Label(&'a str),
    /// An instruction. `mnemonic` is the identifier at the start of `text`; empty if there is none.
    Instruction { text: &'a str, mnemonic: &'a str },
    /// The text of a `print` directive, for [`print::parse`].
    Print(&'a str),
}

/// The statements of a line, each with its byte offset in the file.
pub struct Statements<'a> {
    rest: Scanner<'a>,
    base: usize,
}

impl<'a> Statements<'a> {
    /// Creates an iterator over the statements of a line.
    pub fn new(line: &CodeLine<'a>) -> Statements<'a> {
        Statements { rest: Scanner::new(line.code), base: line.base }
    }
}

impl<'a> Iterator for Statements<'a> {
    type Item = (Statement<'a>, usize);

    fn next(&mut self) -> Option<(Statement<'a>, usize)> {
        let s = &mut self.rest;
        if s.at_end() {
            return None;
        }
        let (start, text) = (s.position(), s.rest());
        let name = s.ident().map_or("", |(name, _)| name);
        s.skip_space();
        if s.peek_byte() == Some(b':') && !name.is_empty() && !name.contains('@') {
            s.skip(1);
            return Some((Statement::Label(name), self.base + start));
        }
        *s = Scanner::new("");
        let statement = match name {
            "print" if print::is_print(text) => Statement::Print(text),
            mnemonic => Statement::Instruction { text, mnemonic },
        };
        Some((statement, self.base + start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each statement with its byte offset.
    fn statements(line: &str) -> Vec<(Statement<'_>, usize)> {
        let line = Lines::new(line).next().unwrap();
        Statements::new(&CodeLine { base: 100, ..line }).collect()
    }

    #[test]
    fn lines_split_into_statements() {
        let label = Statement::Label;
        let inst = |text: &'static str, len: usize| Statement::Instruction { text, mnemonic: &text[..len] };
        assert_eq!(statements("  s_nop 0 ; x"), [(inst("s_nop 0", 5), 102)]);
        assert_eq!(
            statements("a: .L1 : s_endpgm // y"),
            [(label("a"), 100), (label(".L1"), 103), (inst("s_endpgm", 8), 109)]
        );
        assert_eq!(statements("# only a comment"), []);
        // Not a label: the colon is part of the operand.
        assert_eq!(statements("s_mov_b64 s[0:1], 0"), [(inst("s_mov_b64 s[0:1], 0", 9), 100)]);
        assert_eq!(statements("print v0"), [(Statement::Print("print v0"), 100)]);
        assert_eq!(statements("printer"), [(inst("printer", 7), 100)]);
        assert_eq!(statements("12 x"), [(inst("12 x", 0), 100)]);
    }

    #[test]
    fn lines_with_their_offsets() {
        let text = "a ; x\n\n\tb# y\r\nc \"#\" / d";
        let lines: Vec<_> = Lines::new(text).map(|l| (l.code, l.base, l.number)).collect();
        assert_eq!(lines, [("a", 0, 1), ("", 6, 2), ("\tb", 7, 3), ("c \"#\" / d", 14, 4)]);
    }
}
