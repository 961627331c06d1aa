//! Calls inlined by the compiler, from DWARF (DWARF 5, *Inlined Subroutines*): a line of an inlined function
//! also belongs to its callers.

use super::line_table::{Slice, source_file};
use gimli::AttributeValue;
use std::ops::Range;

/// Maximum number of calls, like the limit of line table rows.
const MAX_CALLS: usize = 1 << 20;

/// Inlined calls by address.
#[derive(Debug, Clone, Default)]
pub struct Inlined {
    calls: Vec<Call>,
}

#[derive(Debug, Clone)]
struct Call {
    /// The addresses of the inlined code.
    code: Range<u64>,
    /// Depth in the DWARF tree: inner calls are deeper.
    depth: isize,
    /// The location of the call, such as `kernel.cl:12`.
    location: String,
}

impl Inlined {
    /// The locations of the inlined calls that contain an address, innermost first.
    pub fn calls(&self, address: u64) -> Vec<String> {
        let mut calls: Vec<&Call> = self.calls.iter().filter(|c| c.code.contains(&address)).collect();
        calls.sort_by_key(|c| -c.depth);
        calls.into_iter().map(|c| c.location.clone()).collect()
    }

    /// Adds the calls of a compilation unit that are in `text`.
    pub(super) fn add(
        &mut self,
        dwarf: &gimli::Dwarf<Slice<'_>>,
        unit: &gimli::Unit<Slice<'_>>,
        text: &Range<u64>,
    ) -> gimli::Result<()> {
        let Some(program) = &unit.line_program else { return Ok(()) };
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            let number = |name| match entry.attr_value(name)? {
                AttributeValue::FileIndex(number) => Some(number),
                value => value.udata_value(),
            };
            let call = (number(gimli::DW_AT_call_file), number(gimli::DW_AT_call_line));
            let (gimli::DW_TAG_inlined_subroutine, (Some(file), Some(line))) = (entry.tag(), call) else {
                continue;
            };
            let header = program.header();
            let Some(file) = header.file(file) else { continue };
            let location = format!("{}:{line}", source_file(dwarf, unit, header, file)?.name);
            let depth = entry.depth();
            let mut ranges = dwarf.die_ranges(unit, entry)?;
            while let Some(range) = ranges.next()? {
                if self.calls.len() >= MAX_CALLS {
                    return Ok(());
                }
                let code = range.begin..range.end;
                if text.contains(&code.start) && code.start < code.end {
                    self.calls.push(Call { code, depth, location: location.clone() });
                }
            }
        }
        Ok(())
    }
}
