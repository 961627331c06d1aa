//! Lines and statements.

use wavesim_text::body::{CodeLine, Lines, Statement, Statements};

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
