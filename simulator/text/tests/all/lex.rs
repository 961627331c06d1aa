//! Tokens of header lines.

use wavesim_array::Num;
use wavesim_text::lex::{Spanned, Token, tokens};

#[test]
fn all_number_forms_parse() {
    for (text, num) in [
        ("42", Num::Int(42)),
        ("2.75", Num::Float(2.75)),
        ("0xDEADBEEF", Num::Bits(0xdead_beef)),
        ("0b1010", Num::Bits(10)),
        ("1e-3", Num::Float(1e-3)),
        ("2.5E+2", Num::Float(250.0)),
        (".5", Num::Float(0.5)),
        ("1.", Num::Float(1.0)),
    ] {
        let found = tokens(text, 0);
        assert_eq!(found, [Spanned { token: Token::Number(num), at: 0..text.len() }], "{text}");
    }
    for text in ["0x", "0b2", "1.2.3", "12ab", "1e", "0x1_0"] {
        assert!(matches!(tokens(text, 0)[..], [Spanned { token: Token::Bad(_), .. }]), "{text}");
    }
}

#[test]
fn comments_do_not_start_in_quoted_text() {
    for line in ["a ; b", "a // b", "a # b", "a"] {
        assert_eq!(tokens(line, 0).len(), 1, "{line}");
    }
    assert_eq!(tokens("file(\"a#b;c//d\", f32)", 0).len(), 6);
}
