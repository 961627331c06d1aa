//! Errors of the tables of costs.

use std::ops::Range;

/// An error in a table of costs, or in the name of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CostError {
    /// The file is not valid.
    #[error("{file}:{line}: {key}{message}")]
    Malformed {
        /// The file.
        file: String,
        /// Its line, from 1 on.
        line: usize,
        /// The key with a colon, if it is known.
        key: String,
        /// What is wrong.
        message: String,
    },
    /// There is no such device.
    #[error("there is no device `{name}`{hint}; devices are {known}, or a file (.toml)")]
    UnknownDevice {
        /// The name.
        name: String,
        /// A suggestion.
        hint: String,
        /// The known devices.
        known: String,
    },
    /// The architecture has no table of costs.
    #[error("there are no costs for {0}")]
    NoCosts(&'static str),
    /// The device does not run the program.
    #[error("{device} is a device of {has}; the program is for {needs}")]
    OtherArch {
        /// The device.
        device: String,
        /// Its architecture.
        has: String,
        /// The architecture of the program.
        needs: &'static str,
    },
    /// A change that `--what-if` does not know.
    #[error("{0}")]
    Change(String),
}

impl CostError {
    /// Creates an error at a byte range of a file.
    pub(super) fn at(file: &str, text: &str, span: Range<usize>, key: &str, message: String) -> CostError {
        let line = 1 + text.as_bytes()[..span.start.min(text.len())].iter().filter(|b| **b == b'\n').count();
        let key = if key.is_empty() { String::new() } else { format!("{key}: ") };
        CostError::Malformed { file: file.to_string(), line, key, message }
    }

    /// Converts an error of the parser.
    pub(super) fn parse(file: &str, text: &str, error: &toml::de::Error) -> CostError {
        let span = error.span().unwrap_or(0..0);
        // The key of the line: tables of one constant have one line.
        let start = text[..span.start.min(text.len())].rfind('\n').map_or(0, |at| at + 1);
        let line = text[start..].lines().next().unwrap_or_default();
        let key = line.split_once('=').map_or("", |(key, _)| key.trim());
        let key = if key.is_empty() { line.trim() } else { key };
        CostError::at(file, text, span, key, error.message().to_string())
    }
}
