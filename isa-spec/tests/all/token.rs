//! Tests of the lexer.

use isa_spec::pcode::token::lex;
use isa_spec::source::SourceMap;

/// Includes characters that are valid only in other contexts.
#[test]
fn every_character_is_read_once() {
    let mut sources = SourceMap::default();
    let file = sources.add("characters.pcode", "");
    for c in (0..0x250u32).chain(0x2000..0x2070).filter_map(char::from_u32) {
        let (tokens, errors) = lex(file, &format!("{c} x"), 0);
        assert!(!tokens.is_empty() && errors.len() <= 1, "{c:?}: {} errors", errors.len());
    }
}
