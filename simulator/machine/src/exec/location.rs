//! Where instructions come from: lines of the kernel's own text, or of source files that debug information names.

use std::fmt;
use std::sync::Arc;

/// A place in source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Location {
    /// The file that debug information names; `None`: the kernel's own text.
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
    /// As the compiler was given it: relative to where it ran, if it was.
    pub name: Arc<str>,
    /// With the folder in which the compiler ran.
    pub path: String,
}

/// A line of one of the files of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceLine {
    /// Index of the file.
    pub file: u32,
    /// 1-based.
    pub line: u32,
    /// 1-based; 0: unknown.
    pub column: u32,
}
