//! The instruction block in statements: labels, instructions, `print` directives.

use super::constant::Wrong;
use super::lex::without_comment;
use super::print::{self, Print};
use std::ops::Range;

/// A statement with its place.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    Label(String),
    Instruction(String),
    Print(Print),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    pub statement: Statement,
    /// Bytes of the file.
    pub at: Range<usize>,
    /// 1-based.
    pub line: u32,
}

/// The statements of a line, which begins at byte `base` of the file.
pub fn statements(line: &str, base: usize, number: u32, out: &mut Vec<Placed>) -> Result<(), Wrong> {
    let line = without_comment(line);
    let mut rest = line.trim_end();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Ok(());
        }
        let start = base + (line.trim_end().len() - rest.len());
        let place = |len: usize| start..start + len;
        if let Some(len) = label(rest) {
            let statement = Statement::Label(rest[..len].trim_end().to_string());
            out.push(Placed { statement, at: place(rest[..len].trim_end().len()), line: number });
            rest = &rest[len + 1..];
            continue;
        }
        let statement = if print::is_print(rest) {
            Statement::Print(print::parse(rest, start, number)?)
        } else {
            Statement::Instruction(rest.to_string())
        };
        out.push(Placed { statement, at: place(rest.len()), line: number });
        return Ok(());
    }
}

/// Length of a label at the start, up to its colon.
fn label(text: &str) -> Option<usize> {
    let len = text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$')))?;
    let begins = !text.starts_with(|c: char| c.is_ascii_digit()) && len > 0;
    let colon = len + (text[len..].len() - text[len..].trim_start().len());
    (begins && text[colon..].starts_with(':')).then_some(colon)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(line: &str) -> Vec<(Statement, Range<usize>)> {
        let mut out = Vec::new();
        statements(line, 100, 1, &mut out).unwrap();
        out.into_iter().map(|p| (p.statement, p.at)).collect()
    }

    #[test]
    fn labels_instructions_comments() {
        let label = |s: &str| Statement::Label(s.to_string());
        let inst = |s: &str| Statement::Instruction(s.to_string());
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
