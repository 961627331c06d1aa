//! An open file.

use crate::analysis::{self, Analysis};
use crate::positions::Lines;
use crate::run::RunResult;
use crate::scan::{self, Form, Token};
use crate::settings::Settings;
use lsp_types::{Position, Range, TextDocumentContentChangeEvent, Uri};
use std::path::{Path, PathBuf};
use wavesim_isa::arch::Arch;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentKind {
    /// A text kernel or LLVM's assembly.
    Kernel(Form),
    /// An assembly program of an architecture with its own assembler.
    Described(Arch),
    /// Pseudocode.
    Pseudocode,
}

/// An open file with what is known of it.
pub struct Document {
    /// Its address in the protocol.
    pub uri: Uri,
    /// Its path, or the address if it is not a local file.
    pub path: PathBuf,
    /// What it is.
    pub kind: DocumentKind,
    /// The version that the client has sent last.
    pub version: i32,
    /// The text.
    pub text: String,
    /// Its lines.
    pub(crate) lines: Lines,
    /// The tokens of a kernel.
    pub tokens: Vec<Token>,
    /// The errors, and the instructions if there are none.
    pub analysis: Analysis,
    /// The results of the last run or check of this text.
    pub results: Option<RunResult>,
    /// The analysis and the published diagnostics belong to an older text.
    pub(crate) stale: bool,
}

/// Returns the path of a `file:` address.
pub(crate) fn path_of(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let path = &rest[rest.find('/')?..];
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, after @ ..] = rest {
        let escape = (*first == b'%').then(|| after.get(..2)).flatten();
        let escape = escape.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(escape.unwrap_or(*first));
        rest = if escape.is_some() { &after[2..] } else { after };
    }
    let path = String::from_utf8(bytes).ok()?;
    // file:///c:/x on Windows.
    let drive = path.as_bytes().get(2) == Some(&b':');
    Some(PathBuf::from(if drive { &path[1..] } else { &path }))
}

/// Returns what a file is: by its extension, else by the language that the client has named.
fn kind(path: &Path, language: &str) -> DocumentKind {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    match extension {
        "pcode" => DocumentKind::Pseudocode,
        "s" | "S" | "asm" => DocumentKind::Kernel(Form::Assembly),
        "rdna" => DocumentKind::Kernel(Form::Text),
        _ => match (Arch::from_extension(extension), language) {
            (Some(arch), _) => DocumentKind::Described(arch),
            (None, "pcode") => DocumentKind::Pseudocode,
            (None, "asm" | "amdgpu" | "amdgpu-asm") => DocumentKind::Kernel(Form::Assembly),
            (None, _) => DocumentKind::Kernel(Form::Text),
        },
    }
}

impl Document {
    /// Opens a document.
    pub fn new(uri: Uri, language: &str, version: i32, text: String) -> Document {
        let path = path_of(uri.as_str()).unwrap_or_else(|| PathBuf::from(uri.as_str()));
        let kind = kind(&path, language);
        let mut document = Document {
            uri,
            path,
            kind,
            version,
            text: String::new(),
            lines: Lines::default(),
            tokens: Vec::new(),
            analysis: Analysis::default(),
            results: None,
            stale: true,
        };
        document.set_text(text);
        document
    }

    fn set_text(&mut self, text: String) {
        self.lines = Lines::new(&text);
        self.tokens = match self.kind {
            DocumentKind::Kernel(form) => scan::scan(&text, form),
            DocumentKind::Described(_) => scan::scan(&text, Form::Assembly),
            DocumentKind::Pseudocode => Vec::new(),
        };
        self.text = text;
        self.results = None;
        self.stale = true;
    }

    /// Applies the changes of a client.
    pub fn change(&mut self, version: i32, changes: Vec<TextDocumentContentChangeEvent>) {
        self.version = version;
        for change in changes {
            let text = match change.range {
                None => change.text,
                Some(range) => {
                    let start = self.lines.offset(&self.text, range.start);
                    let end = self.lines.offset(&self.text, range.end).max(start);
                    format!("{}{}{}", &self.text[..start], change.text, &self.text[end..])
                }
            };
            self.set_text(text);
        }
    }

    /// Analyses the text, if it has changed since.
    pub fn update(&mut self, settings: &Settings) {
        if self.stale {
            self.analysis = analysis::analyse(self.kind, &self.path, &self.text, settings);
            self.stale = false;
        }
    }

    /// The text of a token.
    pub fn spelling(&self, token: &Token) -> &str {
        &self.text[token.start..token.end]
    }

    /// Returns the token at a byte offset: the one that begins there rather than the one that ends there.
    pub fn token_at(&self, offset: usize) -> Option<&Token> {
        let after = self.tokens.partition_point(|t| t.end < offset);
        let touching = self.tokens[after..].iter().take_while(|t| t.touches(offset));
        touching.max_by_key(|t| t.start)
    }

    /// Converts a position to a byte offset.
    pub fn offset(&self, position: Position) -> usize {
        self.lines.offset(&self.text, position)
    }

    /// Converts a range of bytes.
    pub fn range(&self, bytes: std::ops::Range<usize>) -> Range {
        self.lines.range(&self.text, bytes)
    }

    /// The tokens of a line, which is counted from 1.
    pub fn tokens_of_line(&self, line: u32) -> &[Token] {
        let first = self.tokens.partition_point(|t| t.line < line);
        let end = self.tokens.partition_point(|t| t.line <= line);
        &self.tokens[first..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_files() {
        assert_eq!(path_of("file:///a%20b/c.rdna"), Some(PathBuf::from("/a b/c.rdna")));
        assert_eq!(path_of("file://host/%41%4"), Some(PathBuf::from("/A%4")));
        assert_eq!(path_of("file:///c:/x.s"), Some(PathBuf::from("c:/x.s")));
        assert_eq!(path_of("untitled:1"), None);
    }
}
