//! The lines of assembly files, and the location of a line: a file, and the chain of macro expansions,
//! repetitions and includes that produced the line.

use std::ops::Deref;
use std::rc::Rc;
use wavesim_asm::scan::{Scanner, string_end};

/// A substring of a shared text.
#[derive(Debug, Clone)]
pub struct Text {
    whole: Rc<str>,
    start: usize,
    end: usize,
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.whole[self.start..self.end]
    }
}

impl From<String> for Text {
    fn from(whole: String) -> Text {
        Text { start: 0, end: whole.len(), whole: whole.into() }
    }
}

/// A line of a file.
#[derive(Debug, Clone)]
pub struct SourceLine {
    /// The text without comments; columns are those of the file.
    pub text: Text,
    /// Index of the file.
    pub file: u32,
    /// Line number, from 1.
    pub number: u32,
}

/// The location of a line, and the expansion that produced it. See [`Sources::backtrace`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Location {
    /// Index of the file.
    pub file: u32,
    /// Line number, from 1.
    pub line: u32,
    /// Index of the innermost expansion, from 1; 0 for a line of the main file.
    via: u32,
}

/// An expansion or include: a source of lines other than the next line of the file.
#[derive(Debug, Clone)]
struct Expansion {
    /// `macro gid`, `.rept`, `.include`.
    description: String,
    from: Location,
    /// The lines are expanded in place, as in a repetition.
    inline: bool,
}

/// The files, and the expansions of their lines; file 0 is the main file.
#[derive(Debug, Default)]
pub struct Sources {
    files: Vec<String>,
    expansions: Vec<Expansion>,
}

impl Sources {
    /// Adds a file and returns its lines.
    pub fn add(&mut self, name: &str, text: &str) -> Rc<[SourceLine]> {
        self.files.push(name.to_string());
        let file = self.files.len() as u32 - 1;
        let (whole, ends) = lines(text);
        let whole: Rc<str> = whole.into();
        let mut start = 0;
        let line = |(end, number): (usize, u32)| {
            let text = Text { whole: whole.clone(), start, end };
            start = end;
            SourceLine { text, file, number }
        };
        ends.into_iter().zip(1..).map(line).collect()
    }

    /// The nesting depth of expansions and includes at a location.
    pub fn depth(&self, location: Location) -> usize {
        self.expansions_of(location).count()
    }

    /// Adds an expansion at `from` and returns its index.
    pub fn add_expansion(&mut self, description: String, from: Location, inline: bool) -> u32 {
        self.expansions.push(Expansion { description, from, inline });
        self.expansions.len() as u32
    }

    /// The location of `line`, produced by expansion `via` (0 for none).
    pub fn location(&self, line: &SourceLine, via: u32) -> Location {
        Location { file: line.file, line: line.number, via }
    }

    /// Name of the file of a location.
    pub fn file(&self, location: Location) -> &str {
        self.files.get(location.file as usize).map_or("", String::as_str)
    }

    /// The expansions that led to a location, innermost first.
    fn expansions_of(&self, location: Location) -> impl Iterator<Item = &Expansion> {
        let mut via = location.via;
        std::iter::from_fn(move || {
            let expansion = self.expansions.get((via as usize).checked_sub(1)?)?;
            via = expansion.from.via;
            Some(expansion)
        })
    }

    /// The line of the main file to report for a location: the line of the outermost macro call or include,
    /// or the line itself.
    pub fn main_line(&self, location: Location) -> u32 {
        let outermost = self.expansions_of(location).filter(|c| !c.inline).last();
        outermost.map_or(location.line, |c| c.from.line)
    }

    /// The expansions that led to a location as text (`in macro gid, at kernel.s:12`), innermost first.
    pub fn backtrace(&self, location: Location) -> Vec<String> {
        let shown = |c: &Expansion| format!("in {}, at {}:{}", c.description, self.file(c.from), c.from.line);
        self.expansions_of(location).map(shown).collect()
    }
}

/// Strips the comments of a file. Returns the lines, concatenated, and where each of them ends. `//` and `;`
/// start a comment that ends with the line; `/* … */`, which may span lines, is replaced by spaces of the
/// same length. Strings and `.amdgpu_metadata` blocks, which are YAML, are left alone.
fn lines(text: &str) -> (String, Vec<usize>) {
    let (mut out, mut ends) = (String::with_capacity(text.len()), Vec::new());
    let (mut in_comment, mut yaml) = (false, false);
    let mut rest = text;
    while !rest.is_empty() {
        let len = memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
        let line = rest[..len].strip_suffix('\r').unwrap_or(&rest[..len]);
        rest = rest.get(len + 1..).unwrap_or_default();
        let start = out.len();
        match yaml {
            true => out.push_str(line),
            false => without_comment(line, &mut in_comment, &mut out),
        }
        let mut s = Scanner::new(&out[start..]);
        s.skip_space();
        // Few lines are directives.
        if s.peek_byte() == Some(b'.') {
            yaml ^= s.rest().trim_end() == if yaml { ".end_amdgpu_metadata" } else { ".amdgpu_metadata" };
        }
        ends.push(out.len());
    }
    (out, ends)
}

/// `in_comment`: whether the line starts inside a `/*` comment; updated for the next line.
fn without_comment(line: &str, in_comment: &mut bool, out: &mut String) {
    let mut rest = line;
    loop {
        if *in_comment {
            let len = rest.find("*/").map_or(rest.len(), |end| end + 2);
            *in_comment = !rest[..len].ends_with("*/");
            out.extend(rest[..len].chars().map(|_| ' '));
            rest = &rest[len..];
            if rest.is_empty() {
                return;
            }
        }
        let Some(at) = memchr::memchr3(b'/', b';', b'"', rest.as_bytes()) else { break };
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with(';') || rest.starts_with("//") {
            return;
        }
        if rest.starts_with("/*") {
            *in_comment = true;
            out.push_str("  ");
            rest = &rest[2..];
            continue;
        }
        let len = rest.strip_prefix('"').map_or(1, |body| string_end(body) + 1);
        out.push_str(&rest[..len]);
        rest = &rest[len..];
    }
    out.push_str(rest);
}
