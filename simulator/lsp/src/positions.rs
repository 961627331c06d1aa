//! Positions in the protocol's unit: lines from 0, and columns in UTF-16 code units.

use lsp_types::{Position, Range};

/// Where the lines of a text start.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    /// Finds the lines of a text.
    pub fn new(text: &str) -> Lines {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Lines { starts: std::iter::once(0).chain(breaks).collect() }
    }

    /// Returns the line of a byte offset, from 0.
    pub fn line_of(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// Returns the byte range of a line (from 0) without its line break; empty at the end for lines that do not exist.
    pub fn bytes(&self, text: &str, line: usize) -> std::ops::Range<usize> {
        let Some(&start) = self.starts.get(line) else { return text.len()..text.len() };
        let end = self.starts.get(line + 1).map_or(text.len(), |next| next - 1);
        start..end - usize::from(text[start..end].ends_with('\r'))
    }

    /// Converts a byte offset.
    pub fn position(&self, text: &str, offset: usize) -> Position {
        let line = self.line_of(offset.min(text.len()));
        let start = self.starts[line];
        let end = (start..=offset.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        let column = text[start..end.unwrap_or(start)].encode_utf16().count();
        Position::new(line as u32, column as u32)
    }

    /// Converts a range of bytes.
    pub fn range(&self, text: &str, bytes: std::ops::Range<usize>) -> Range {
        Range::new(self.position(text, bytes.start), self.position(text, bytes.end))
    }

    /// Converts a position to a byte offset. A column beyond the line means its end.
    pub fn offset(&self, text: &str, position: Position) -> usize {
        let bytes = self.bytes(text, position.line as usize);
        let mut units = 0;
        for (at, c) in text[bytes.clone()].char_indices() {
            if units >= position.character as usize {
                return bytes.start + at;
            }
            units += c.len_utf16();
        }
        bytes.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_utf16_units() {
        let text = "ab\r\n😀é;\n";
        let lines = Lines::new(text);
        for (offset, position) in
            [(0, (0, 0)), (2, (0, 2)), (4, (1, 0)), (8, (1, 2)), (10, (1, 3)), (12, (2, 0))]
        {
            let position = Position::new(position.0, position.1);
            assert_eq!(lines.position(text, offset), position);
            assert_eq!(lines.offset(text, position), offset);
        }
        assert_eq!(lines.offset(text, Position::new(0, 99)), 2);
        assert_eq!(lines.offset(text, Position::new(99, 0)), text.len());
    }
}
