//! Source locations of instructions: lines of the kernel's own text, or of source files that debug
//! information names.

use std::fmt;
use std::sync::Arc;

/// A source location.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Location {
    /// The file that debug information names; `None` for the kernel's own text.
    pub file: Option<Arc<str>>,
    /// 1-based.
    pub line: u32,
    /// 1-based; 0: unknown.
    pub column: u32,
}

/// `line 12` or `kernel.cl:12`.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{file}:{}", self.line),
            None => write!(f, "line {}", self.line),
        }
    }
}

/// A source file that debug information names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourceFile {
    /// The name as it was passed to the compiler, possibly relative to the compiler's working directory.
    pub name: Arc<str>,
    /// The name resolved against the compiler's working directory.
    pub path: String,
}

/// A line in one of a program's source files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceLine {
    /// Index of the source file.
    pub file: u32,
    /// 1-based.
    pub line: u32,
    /// 1-based; 0: unknown.
    pub column: u32,
}
