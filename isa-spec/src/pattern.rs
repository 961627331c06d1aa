//! Patterns of names, in which `*` matches any text. Overlays, the assembler's tables and suppressions use
//! them.

/// Returns whether the whole of `text` matches the pattern. Case-sensitive.
pub fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, others)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let (inner, last) = others.rsplit_once('*').unwrap_or(("", others));
    for part in inner.split('*') {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}
