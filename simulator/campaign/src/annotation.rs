//! Annotations of hosted jobs: lines of a job's output that become remarks in the diff of a pull request (GitHub
//! Actions, *Workflow commands*).

/// A remark about a line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation<'a> {
    /// An error rather than a notice.
    pub error: bool,
    /// The file, relative to the repository.
    pub file: &'a str,
    /// The line, from 1; 0 if it is not known.
    pub line: u32,
    /// The headline.
    pub title: &'a str,
    /// The text.
    pub message: &'a str,
}

impl std::fmt::Display for Annotation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.error { "error" } else { "notice" };
        write!(f, "::{kind} file={}", property(self.file))?;
        if self.line != 0 {
            write!(f, ",line={}", self.line)?;
        }
        write!(f, ",title={}::{}", property(self.title), data(self.message))
    }
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
