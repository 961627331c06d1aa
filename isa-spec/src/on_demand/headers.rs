//! An index of pseudocode files by the names that they define, built from their text without parsing it. Templates
//! generate names, so a name in a header may have placeholders, which match anything. The index may return a file
//! that does not define a name, but never misses one that does.

use crate::pattern::matches;
use std::collections::BTreeMap;

/// The index.
pub struct Headers {
    /// Names of functions.
    pub functions: Names,
    /// Names of instructions, in upper case.
    pub instructions: Names,
}

/// Which files define a name.
#[derive(Default)]
pub struct Names {
    exact: BTreeMap<String, Vec<usize>>,
    /// Names with placeholders, as patterns in which `*` matches anything.
    patterns: Vec<(String, usize)>,
}

impl Headers {
    /// Scans the texts of files. Files are numbered by their order.
    pub fn of<'t>(texts: impl Iterator<Item = &'t str>) -> Headers {
        let mut headers = Headers { functions: Names::default(), instructions: Names::default() };
        for (file, text) in texts.enumerate() {
            let code: String = text
                .lines()
                .map(|line| line.split("//").next().unwrap_or(""))
                .fold(String::with_capacity(text.len()), |code, line| code + line + "\n");
            for header in after_word(&code, "function") {
                headers.functions.insert(word(header.trim_start()), file);
            }
            for header in after_word(&code, "instruction") {
                names_in_list(header)
                    .for_each(|name| headers.instructions.insert(&name.to_uppercase(), file));
            }
        }
        headers
    }
}

/// Returns the rest of the text after each occurrence of a keyword.
fn after_word<'t>(text: &'t str, keyword: &'static str) -> impl Iterator<Item = &'t str> {
    text.match_indices(keyword).filter_map(move |(at, _)| {
        let (before, rest) = (&text[..at], &text[at + keyword.len()..]);
        let whole = !before.ends_with(is_name_char) && !rest.starts_with(is_name_char);
        whole.then_some(rest)
    })
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$')
}

/// Returns the name that a text starts with, placeholders included.
fn word(text: &str) -> &str {
    let mut in_braces = false;
    let end = text.char_indices().find(|(at, c)| {
        in_braces |= *c == '{' && text[..*at].ends_with('$');
        let part = is_name_char(*c) || in_braces;
        in_braces &= *c != '}';
        !part
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// Returns the names between the keyword and the body of an instruction, and those of its architectures.
fn names_in_list(header: &str) -> impl Iterator<Item = &str> {
    let mut rest = header;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c != '{' && !is_name_char(c));
        let name = word(rest);
        rest = &rest[name.len()..];
        (!name.is_empty()).then_some(name)
    })
}

impl Names {
    fn insert(&mut self, name: &str, file: usize) {
        if name.contains('$') {
            return self.patterns.push((pattern_of(name), file));
        }
        let files = self.exact.entry(name.to_string()).or_default();
        if files.last() != Some(&file) {
            files.push(file);
        }
    }

    /// Returns the files that may define a name, in ascending order.
    pub fn files(&self, name: &str) -> impl Iterator<Item = usize> {
        let patterns =
            self.patterns.iter().filter(|(pattern, _)| matches(pattern, name)).map(|(_, file)| *file);
        let mut files: Vec<usize> =
            self.exact.get(name).into_iter().flatten().copied().chain(patterns).collect();
        files.sort_unstable();
        files.dedup();
        files.into_iter()
    }
}

/// Replaces the placeholders of a name by `*`. The letters after a `$` without braces may belong to the placeholder
/// or follow it, depending on the template's parameters, so all of them are replaced.
fn pattern_of(name: &str) -> String {
    let mut parts = name.split('$');
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |pattern, part| {
        let braced = part.strip_prefix('{').and_then(|part| part.split_once('}'));
        pattern + "*" + braced.map_or("", |(_, literal)| literal)
    })
}
