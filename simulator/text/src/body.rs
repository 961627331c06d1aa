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
