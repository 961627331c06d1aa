//! Sections and their contents.

use super::Reader;
use crate::program::{Definition, MAX_BYTES, Memory, Pending, PendingKind, Section};
use wavesim_asm::error::{AsmError, Span};

impl Reader<'_> {
    /// The byte offset in the current section.
    pub fn offset(&self) -> u64 {
        self.program.sections[self.current].bytes.len() as u64
    }

    /// Switches to the section with this name, creating it if necessary.
    pub fn section(&mut self, name: &str, memory: Memory) {
        self.previous = self.current;
        if let Some(found) = self.sections.get(name) {
            self.current = *found;
            return;
        }
        self.program.sections.push(Section::new(name, memory));
        let section = self.program.sections.len() - 1;
        // The section's name is a symbol for its start.
        let start = Definition::Label { section, offset: 0 };
        self.program.symbols.entry(name.to_string()).or_insert(start);
        self.sections.insert(name.to_string(), section);
        self.current = section;
    }

    /// Adds to the total size; an error beyond [`MAX_BYTES`].
    pub fn reserve(&mut self, bytes: usize, span: Span) -> Result<(), AsmError> {
        match self.total.checked_add(bytes).filter(|n| *n <= MAX_BYTES) {
            Some(total) => {
                self.total = total;
                Ok(())
            }
            None => Err(AsmError::new(span, format!("the file's sections exceed {} MiB", MAX_BYTES >> 20))),
        }
    }

    /// Appends bytes to the current section; an error beyond [`MAX_BYTES`].
    pub fn push(&mut self, bytes: &[u8], span: Span) -> Result<(), AsmError> {
        self.reserve(bytes.len(), span)?;
        self.program.sections[self.current].bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends `count` copies of `pattern`.
    pub fn fill(&mut self, count: usize, pattern: &[u8], span: Span) -> Result<(), AsmError> {
        self.reserve(count.saturating_mul(pattern.len()), span)?;
        let bytes = &mut self.program.sections[self.current].bytes;
        match pattern {
            [byte] => bytes.resize(bytes.len() + count, *byte),
            _ => bytes.extend(std::iter::repeat_n(pattern, count).flatten()),
        }
        Ok(())
    }

    /// Records a value that depends on symbols, at `offset` in the current section.
    pub fn add_pending(&mut self, offset: u64, kind: PendingKind) {
        let (section, location, line) = (self.current, self.location, self.line.clone());
        self.program.pending.push(Pending { section, offset, location, line, kind });
    }
}
