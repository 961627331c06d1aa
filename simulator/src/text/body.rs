//! The instruction block in statements: labels, instructions, `print` directives.

use super::constant::Wrong;
use super::lex::without_comment;
use super::print::{self, Print};
use std::ops::Range;

/// A statement with its place.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement<'a> {
    Label(&'a str),
    Instruction(&'a str),
    Print(Print),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Placed<'a> {
    pub statement: Statement<'a>,
    /// Bytes of the file.
    pub at: Range<usize>,
    /// 1-based.
    pub line: u32,
}

/// The statements of a line, which begins at byte `base` of the file.
pub fn statements<'a>(
    line: &'a str,
    base: usize,
    number: u32,
    out: &mut Vec<Placed<'a>>,
) -> Result<(), Wrong> {
    let line = without_comment(line).trim_end();
    let mut rest = line;
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Ok(());
        }
        let start = base + (line.len() - rest.len());
        let place = |len: usize| start..start + len;
        if let Some(len) = label(rest) {
            let statement = Statement::Label(rest[..len].trim_end());
            out.push(Placed { statement, at: place(rest[..len].trim_end().len()), line: number });
            rest = &rest[len + 1..];
            continue;
        }
        let statement = if print::is_print(rest) {
            Statement::Print(print::parse(rest, start, number)?)
        } else {
            Statement::Instruction(rest)
        };
        out.push(Placed { statement, at: place(rest.len()), line: number });
        return Ok(());
    }
}

/// Length of a label at the start, up to its colon.
fn label(text: &str) -> Option<usize> {
    let within = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$');
    let len = text.bytes().take_while(within).count();
    let begins = len > 0 && len < text.len() && !text.as_bytes()[0].is_ascii_digit();
    if !begins {
        return None;
    }
    let colon = len + (text[len..].len() - text[len..].trim_start().len());
    text[colon..].starts_with(':').then_some(colon)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(line: &str) -> Vec<(Statement<'_>, Range<usize>)> {
        let mut out = Vec::new();
        statements(line, 100, 1, &mut out).unwrap();
        out.into_iter().map(|p| (p.statement, p.at)).collect()
    }

    #[test]
    fn labels_instructions_comments() {
        let label = Statement::Label;
        let inst = Statement::Instruction;
        assert_eq!(kinds("  s_nop 0 ; x"), [(inst("s_nop 0"), 102..109)]);
        assert_eq!(
            kinds("a: .L1 : s_endpgm // y"),
            [(label("a"), 100..101), (label(".L1"), 103..106), (inst("s_endpgm"), 109..117)]
        );
        assert_eq!(kinds("# only a comment"), []);
        // Not a label: the colon belongs to the operand.
        assert_eq!(kinds("s_mov_b64 s[0:1], 0"), [(inst("s_mov_b64 s[0:1], 0"), 100..119)]);
        assert!(matches!(kinds("print v0")[..], [(Statement::Print(_), _)]));
        assert_eq!(kinds("printer"), [(inst("printer"), 100..107)]);
    }
}
