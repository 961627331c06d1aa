//! Source files and positions: file ids, byte spans, line tables.

use std::sync::OnceLock;

/// A file in a [`SourceMap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileId(pub u32);

/// Bytes `start..end` of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// Byte offset of the first byte.
    pub start: u32,
    /// Byte offset after the last byte.
    pub end: u32,
}

/// The files of one run, indexed by [`FileId`].
#[derive(Debug, Clone, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

/// A file's name and text.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Name in messages: relative to the workspace where possible.
    pub name: String,
    /// The whole text.
    pub text: String,
    /// Line table, computed when a message first needs it.
    line_starts: OnceLock<Vec<u32>>,
}

impl Span {
    /// Bytes `start..end` of `file`.
    pub fn new(file: FileId, start: usize, end: usize) -> Self {
        Span { file, start: start as u32, end: end as u32 }
    }

    /// Returns the smallest span that covers both.
    pub fn to(self, other: Span) -> Span {
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

impl SourceMap {
    /// Adds a file and returns its id. Names need not be unique.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        self.files.push(SourceFile { name: name.into(), text: text.into(), line_starts: OnceLock::new() });
        FileId(self.files.len() as u32 - 1)
    }

    /// Returns a file. Panics if the id is from another map.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// Returns the 1-based line and column of an offset; the column counts characters.
    pub fn line_col(&self, file: FileId, offset: u32) -> (usize, usize) {
        let file = self.file(file);
        let line_starts = file.line_starts.get_or_init(|| {
            std::iter::once(0).chain(file.text.match_indices('\n').map(|(at, _)| at as u32 + 1)).collect()
        });
        let line = line_starts.partition_point(|&start| start <= offset);
        let start = line_starts[line - 1] as usize;
        let end = (offset as usize).min(file.text.len());
        let end = (start..=end).rev().find(|&at| file.text.is_char_boundary(at)).unwrap_or(start);
        (line, file.text[start..end].chars().count() + 1)
    }

    /// Returns the text that a span covers; empty if the span is outside of the file.
    pub fn text(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.start as usize..span.end as usize).unwrap_or("")
    }
}
