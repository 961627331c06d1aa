//! Patterns of names.

use isa_spec::pattern::matches;

#[test]
fn a_star_matches_any_text() {
    for (pattern, text) in
        [("a", "a"), ("*", ""), ("a*", "a"), ("a*", "ab"), ("*b", "ab"), ("a*b*c", "a-b-b-c"), ("a**c", "ac")]
    {
        assert!(matches(pattern, text), "{pattern} {text}");
    }
    for (pattern, text) in
        [("a", "ab"), ("", "a"), ("a*", "ba"), ("ab*b", "ab"), ("a*b*c", "acb"), ("A", "a")]
    {
        assert!(!matches(pattern, text), "{pattern} {text}");
    }
}
