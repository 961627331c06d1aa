//! An index of the items of pseudocode files (functions, instructions and templates) by the names that they define,
//! built from their text without parsing it. Templates generate names, so a name in a header may have
//! placeholders, which match anything. The index may return an item that does not define a name, but never misses
//! one that does.

use crate::pattern::matches;
use std::collections::BTreeMap;
use std::ops::Range;

/// The index.
pub struct Headers {
    /// All items. Names refer to their indices.
    pub items: Vec<ItemText>,
    /// Names of functions.
    pub functions: Names,
    /// Names of records.
    pub records: Names,
    /// Names of instructions, in upper case.
    pub instructions: Names,
}

/// The location of an item: a file, by its index, and a range of its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemText {
    /// Index of the file.
    pub file: usize,
    /// The item's bytes in the file.
    pub range: Range<usize>,
}

/// Which items define a name.
#[derive(Default)]
pub struct Names {
    exact: BTreeMap<String, Vec<usize>>,
    /// Names with placeholders, as patterns in which `*` matches anything.
    patterns: Vec<(String, usize)>,
}

impl Headers {
    /// Scans the texts of files without errors. Files are numbered by their order.
    pub fn of<'t>(texts: impl Iterator<Item = &'t str>) -> Headers {
        let mut headers = Headers {
            items: Vec::new(),
            functions: Names::default(),
            records: Names::default(),
            instructions: Names::default(),
        };
        texts.enumerate().for_each(|(file, text)| headers.scan(file, text));
        headers
    }

    /// Adds the items of a file, each of which ends with the brace that closes its body, and the words between the
    /// keywords `function`, `record` and `instruction` and the body. (Other words than names among them do no harm.)
    fn scan(&mut self, file: usize, text: &str) {
        let bytes = text.as_bytes();
        let (mut at, mut start, mut depth) = (0, None, 0);
        let mut names = None;
        // The depth outside of the body of the current function or instruction, in which no header can be.
        let mut outside = None;
        while at < bytes.len() {
            if outside.is_some() {
                at += bytes[at..].iter().take_while(|c| !matches!(c, b'{' | b'}' | b'"' | b'/')).count();
            }
            let here = at;
            at += 1;
            let Some(&c) = bytes.get(here) else { break };
            match c {
                c if c.is_ascii_whitespace() => continue,
                b'/' if bytes.get(at) == Some(&b'/') => {
                    at = text[at..].find('\n').map_or(text.len(), |n| at + n);
                    continue;
                }
                b'"' => at = text[at..].find(['"', '\n']).map_or(text.len(), |n| at + n + 1),
                b'{' => {
                    if names.take().is_some() {
                        outside = Some(depth);
                    }
                    depth += 1;
                }
                b'}' => {
                    depth -= 1;
                    outside = outside.filter(|outside| *outside != depth);
                }
                c if is_name_byte(c) => {
                    let word = word(&text[here..]);
                    at = here + word.len();
                    match (word, names) {
                        ("function" | "record" | "instruction", _) => names = Some(word),
                        (name, Some("function")) => self.functions.insert(name, self.items.len()),
                        (name, Some("record")) => self.records.insert(name, self.items.len()),
                        (name, Some(_)) => self.instructions.insert(&name.to_uppercase(), self.items.len()),
                        (_, None) => {}
                    }
                }
                _ => {}
            }
            let first = *start.get_or_insert(here);
            if c == b'}' && depth == 0 {
                self.items.push(ItemText { file, range: first..at });
                start = None;
            }
        }
    }
}

fn is_name_byte(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$')
}

/// Returns the word that a text starts with, placeholders included.
fn word(text: &str) -> &str {
    let bytes = text.as_bytes();
    let mut end = 0;
    while let Some(&c) = bytes.get(end) {
        if c == b'$' && bytes.get(end + 1) == Some(&b'{') {
            end = text[end..].find('}').map_or(text.len(), |n| end + n + 1);
        } else if is_name_byte(c) {
            end += 1;
        } else {
            break;
        }
    }
    &text[..end]
}

impl Names {
    fn insert(&mut self, name: &str, item: usize) {
        if name.contains('$') {
            return self.patterns.push((pattern_of(name), item));
        }
        let items = self.exact.entry(name.to_string()).or_default();
        if items.last() != Some(&item) {
            items.push(item);
        }
    }

    /// Returns the items that may define a name, in ascending order.
    pub fn items(&self, name: &str) -> impl Iterator<Item = usize> {
        let patterns =
            self.patterns.iter().filter(|(pattern, _)| matches(pattern, name)).map(|(_, item)| *item);
        let mut items: Vec<usize> =
            self.exact.get(name).into_iter().flatten().copied().chain(patterns).collect();
        items.sort_unstable();
        items.dedup();
        items.into_iter()
    }
}

/// Replaces the placeholders of a name by `*`. The letters after a `$` without braces may belong to the placeholder
/// or follow it, depending on the template's parameters, so all of them are replaced.
pub(crate) fn pattern_of(name: &str) -> String {
    let mut parts = name.split('$');
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |pattern, part| {
        let braced = part.strip_prefix('{').and_then(|part| part.split_once('}'));
        pattern + "*" + braced.map_or("", |(_, literal)| literal)
    })
}
