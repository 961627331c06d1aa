//! The lines of assembly files, and where a line that is being read comes from: a file, or the expansion of a
//! macro that a line of a file called, and so on outwards.

use super::scan::Scanner;
use std::ops::Deref;
use std::rc::Rc;

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
    /// Without comments; columns are those of the file.
    pub text: Text,
    /// Index of its file.
    pub file: u32,
    /// From 1.
    pub number: u32,
}

/// Where a line is, and the call that it was read by. See [`Sources::chain`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Index of its file.
    pub file: u32,
    /// From 1.
    pub line: u32,
    /// Index of the innermost call, from 1; 0 for a line of the main file.
    via: u32,
}

/// Why lines are read that are not the file's next ones.
#[derive(Debug, Clone)]
struct Call {
    /// `macro gid`, `.rept`, `.include`.
    what: String,
    from: Place,
    /// The lines are expanded in place: a repetition.
    inline: bool,
}

/// Files by index; the first is the main one.
#[derive(Debug, Default)]
pub struct Sources {
    files: Vec<String>,
    calls: Vec<Call>,
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

    /// The depth of includes at this place.
    pub fn depth(&self, place: Place) -> usize {
        self.calls_of(place).count()
    }

    /// Adds a call at `from`; returns its index, which is `via` in the places of its lines.
    pub fn call(&mut self, what: String, from: Place, inline: bool) -> u32 {
        self.calls.push(Call { what, from, inline });
        self.calls.len() as u32
    }

    /// The place of a line that was read by call `via`.
    pub fn place(&self, line: &SourceLine, via: u32) -> Place {
        Place { file: line.file, line: line.number, via }
    }

    /// Name of the file that has a place.
    pub fn file(&self, place: Place) -> &str {
        self.files.get(place.file as usize).map_or("", String::as_str)
    }

    /// The calls that led to a place, the innermost first.
    fn calls_of(&self, place: Place) -> impl Iterator<Item = &Call> {
        let mut via = place.via;
        std::iter::from_fn(move || {
            let call = self.calls.get((via as usize).checked_sub(1)?)?;
            via = call.from.via;
            Some(call)
        })
    }

    /// The line of the main file that this is about: where the outermost macro or file is called, or the line
    /// itself.
    pub fn main_line(&self, place: Place) -> u32 {
        let called = self.calls_of(place).filter(|c| !c.inline).last();
        called.map_or(place.line, |c| c.from.line)
    }

    /// `in macro gid, called at kernel.s:12`, the innermost call first.
    pub fn chain(&self, place: Place) -> Vec<String> {
        let shown = |c: &Call| format!("in {}, at {}:{}", c.what, self.file(c.from), c.from.line);
        self.calls_of(place).map(shown).collect()
    }
}

/// A file's lines without comments, one after the other, and where each ends: `//` or `;` to the end of the
/// line, and `/* … */`, which may go over lines, as spaces of the same length. Strings are left alone, and so
/// are `.amdgpu_metadata` blocks, which are YAML.
fn lines(text: &str) -> (String, Vec<usize>) {
    let (mut out, mut ends) = (String::with_capacity(text.len()), Vec::new());
    let (mut within, mut yaml) = (false, false);
    let mut rest = text;
    while !rest.is_empty() {
        let len = memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
        let line = rest[..len].strip_suffix('\r').unwrap_or(&rest[..len]);
        rest = rest.get(len + 1..).unwrap_or_default();
        let start = out.len();
        match yaml {
            true => out.push_str(line),
            false => without_comment(line, &mut within, &mut out),
        }
        let mut s = Scanner::new(&out[start..]);
        s.space();
        // Hardly a line is a directive.
        if s.byte() == Some(b'.') {
            yaml ^= s.rest().trim_end() == if yaml { ".end_amdgpu_metadata" } else { ".amdgpu_metadata" };
        }
        ends.push(out.len());
    }
    (out, ends)
}

/// `within`: the line begins inside a comment, or the next one does.
fn without_comment(line: &str, within: &mut bool, out: &mut String) {
    let mut rest = line;
    loop {
        if *within {
            let len = rest.find("*/").map_or(rest.len(), |end| end + 2);
            *within = !rest[..len].ends_with("*/");
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
            *within = true;
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

/// Length of a string's rest with its closing quote.
pub fn string_end(body: &str) -> usize {
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    body.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_blank() {
        let text = "a ; x\nb // y\nc /* 1 */ d\n.ascii \"; // /*\" ; z\ne /* é\nf */ g\n.amdgpu_metadata\n x: 'a;b'\n.end_amdgpu_metadata\nh;";
        let expected = [
            "a ",
            "b ",
            "c         d",
            ".ascii \"; // /*\" ",
            "e     ",
            "     g",
            ".amdgpu_metadata",
            " x: 'a;b'",
            ".end_amdgpu_metadata",
            "h",
        ];
        let mut sources = Sources::default();
        let lines = sources.add("k.s", text);
        assert_eq!(lines.iter().map(|l| &l.text[..]).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_way_to_a_line() {
        let mut sources = Sources::default();
        let main = sources.add("k.s", "a\nb\nc");
        let call = |s: &mut Sources, what: &str, line: &SourceLine, via: u32, inline: bool| {
            let from = s.place(line, via);
            s.call(what.to_string(), from, inline)
        };
        let rept = call(&mut sources, ".rept", &main[1], 0, true);
        assert_eq!(sources.main_line(sources.place(&main[2], rept)), 3);
        let gid = call(&mut sources, "macro gid", &main[2], rept, false);
        let inner = sources.place(&main[0], gid);
        assert_eq!(sources.main_line(inner), 3);
        assert_eq!(sources.chain(inner), ["in macro gid, at k.s:3", "in .rept, at k.s:2"]);
        assert_eq!(sources.depth(inner), 2);
    }
}
