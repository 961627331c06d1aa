//! Source lines of a code object's instructions, from DWARF line tables (DWARF 5, *Line Number Information*;
//! also versions 2 to 4).

use gimli::{ColumnType, EndianSlice, LittleEndian};
use object::{Object, ObjectSection};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use wavesim_machine::exec::location::{SourceFile, SourceLine};
use wavesim_machine::exec::program::Program;

/// Maximum number of rows. A table cannot have more rows than its line number program has bytes, which bounds
/// uncompressed tables.
const MAX_ROWS: usize = 1 << 22;
/// Maximum compression ratio of a section; sections that claim more are ignored.
const MAX_RATIO: u64 = 64;

/// Source lines by address.
#[derive(Debug, Clone, Default)]
pub struct LineTable {
    files: Vec<SourceFile>,
    /// Rows sorted by address. Each applies up to the next row.
    rows: Vec<(u64, Option<SourceLine>)>,
}

pub(super) type Slice<'a> = EndianSlice<'a, LittleEndian>;

impl LineTable {
    /// Reads the lines of the code in `text` (addresses of the file). Damaged debug information is not an
    /// error, since it does not affect execution; everything before the damage is kept.
    pub fn read(file: &object::File, text: Range<u64>) -> LineTable {
        let mut table = LineTable::default();
        let _ = table.fill(file, text);
        // One function may start where another one ends.
        table.rows.sort_by_key(|row| (row.0, row.1.is_some()));
        table
    }

    /// The files that lines refer to.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// The source line of the instruction at an address; its file is an index into [`LineTable::files`].
    pub fn line(&self, address: u64) -> Option<SourceLine> {
        let after = self.rows.partition_point(|row| row.0 <= address);
        self.rows.get(after.checked_sub(1)?)?.1
    }

    /// Sets the lines of a program whose code is at `base` in the file.
    pub fn annotate(&self, program: Program, base: u64) -> Program {
        match self.files.is_empty() {
            true => program,
            false => program.with_debug_lines(self.files.clone(), |pc| self.line(base.wrapping_add(pc))),
        }
    }

    fn fill(&mut self, file: &object::File, text: Range<u64>) -> gimli::Result<()> {
        let sections = gimli::DwarfSections::load(|id| gimli::Result::Ok(section(file, id.name())))?;
        let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
        let mut known = HashMap::new();
        let mut units = dwarf.units();
        while let Some(header) = units.next()? {
            let unit = dwarf.unit(header)?;
            let Some(program) = unit.line_program.clone() else { continue };
            let mut numbers = HashMap::new();
            let mut rows = program.rows();
            let mut inside = false;
            while let Some((header, row)) = rows.next_row()? {
                if self.rows.len() >= MAX_ROWS {
                    return Ok(());
                }
                // Functions discarded by the linker have lines at address 0 or beyond the code.
                let end = row.end_sequence();
                if !(text.contains(&row.address()) || end && inside) {
                    inside = false;
                    continue;
                }
                inside = !end;
                // Line 0 means that the code has no source line.
                let number = row.line().filter(|_| !end).and_then(|line| u32::try_from(line.get()).ok());
                let Some((line, entry)) = number.zip(row.file(header)) else {
                    self.push(row.address(), None);
                    continue;
                };
                let file = match numbers.get(&row.file_index()) {
                    Some(&file) => file,
                    None => {
                        let file = source_file(&dwarf, &unit, header, entry)?;
                        let next = known.len() as u32;
                        let file = *known.entry(file.clone()).or_insert_with(|| {
                            self.files.push(file);
                            next
                        });
                        numbers.insert(row.file_index(), file);
                        file
                    }
                };
                let column = match row.column() {
                    ColumnType::LeftEdge => 0,
                    ColumnType::Column(column) => u32::try_from(column.get()).unwrap_or(0),
                };
                self.push(row.address(), Some(SourceLine { file, line, column }));
            }
        }
        Ok(())
    }

    /// If several rows have the same address, the last one applies.
    fn push(&mut self, address: u64, line: Option<SourceLine>) {
        match self.rows.last_mut() {
            Some(last) if last.0 == address => last.1 = line,
            _ => self.rows.push((address, line)),
        }
    }
}

/// The decompressed contents of a section; empty if the file does not have it.
pub(super) fn section<'a>(file: &object::File<'a>, name: &str) -> Cow<'a, [u8]> {
    let data = file.section_by_name(name).and_then(|section| {
        let data = section.compressed_data().ok()?;
        let plausible = data.uncompressed_size / MAX_RATIO <= data.data.len() as u64;
        plausible.then(|| data.decompress().ok())?
    });
    data.unwrap_or_default()
}

pub(super) fn source_file(
    dwarf: &gimli::Dwarf<Slice<'_>>,
    unit: &gimli::Unit<Slice<'_>>,
    header: &gimli::LineProgramHeader<Slice<'_>>,
    entry: &gimli::FileEntry<Slice<'_>>,
) -> gimli::Result<SourceFile> {
    let folder = unit.comp_dir.map_or(Cow::Borrowed(""), |folder| folder.to_string_lossy());
    let own = dwarf.attr_string(unit, entry.path_name())?;
    let mut path = own.to_string_lossy().into_owned();
    if let Some(directory) = entry.directory(header) {
        let directory = dwarf.attr_string(unit, directory)?;
        path = join(&directory.to_string_lossy(), &path);
    }
    path = join(&folder, &path);
    Ok(SourceFile { name: Arc::from(within(&folder, &path)), path })
}

/// Returns the path without the compiler's working directory, as it was passed to the compiler.
pub fn within<'a>(folder: &str, path: &'a str) -> &'a str {
    let separators = ['/', '\\'];
    let rest = path.strip_prefix(folder.trim_end_matches(separators));
    match rest {
        Some(rest) if !folder.is_empty() && rest.starts_with(separators) => {
            rest.trim_start_matches(separators)
        }
        _ => path,
    }
}

/// Joins paths of the compiler's host, whichever system that is.
fn join(folder: &str, name: &str) -> String {
    let absolute = name.starts_with(['/', '\\']) || name.get(1..2) == Some(":");
    match absolute || folder.is_empty() {
        true => name.to_string(),
        false => format!("{}/{name}", folder.trim_end_matches('/')),
    }
}
