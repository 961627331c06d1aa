//! Functions, variables and types of a code object, from its debug information (DWARF 5; LLVM AMDGPUUsage, *DWARF
//! Debug Information*).
//!
//! - this module: functions, calls inlined by the compiler, and the variables of a function;
//! - `location`: where a variable is;
//! - `storage`: which variables are in LDS and in frames;
//! - `types`: types.
//!
//! Nothing is read until something is asked for. Damaged debug information is not an error, since it does not
//! affect execution: what cannot be read is missing. Addresses are those of the file.

pub mod location;
mod storage;
pub mod types;

use super::line_table::{Slice, section, source_file};
use gimli::{AttributeValue, EndianSlice, LittleEndian, UnitOffset};
use object::Object;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

pub use location::{Location, Missing, Piece, Register, Space, State, register};
pub use storage::SignedResult;
pub use types::{Member, Type, TypeKind, TypeRef};

/// Maximum number of functions, inlined calls and names that are kept.
const MAX_ENTRIES: usize = 1 << 20;

type Dwarf<'a> = gimli::Dwarf<Slice<'a>>;
type Unit<'a> = gimli::Unit<Slice<'a>>;
type Entry<'a> = gimli::DebuggingInformationEntry<Slice<'a>>;

/// The debug information of a code object; empty if it has none.
#[derive(Clone, Default)]
pub struct DebugInfo {
    inner: Option<Arc<Inner>>,
}

struct Inner {
    sections: gimli::DwarfSections<Vec<u8>>,
    /// The addresses of the code.
    text: Range<u64>,
    index: OnceLock<Index>,
}

/// What is read on the first question.
#[derive(Default)]
struct Index {
    functions: Vec<Code>,
    /// The names of all variables.
    names: BTreeSet<String>,
    /// Variables outside of functions.
    globals: Vec<(usize, UnitOffset)>,
    /// Number of variables in LDS.
    lds_variables: usize,
}

/// A range of addresses of a function or of an inlined call.
struct Code {
    addresses: Range<u64>,
    /// Depth in the DWARF tree: inner calls are deeper.
    depth: isize,
    function: Function,
}

/// A place in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePlace {
    /// The file, as it was passed to the compiler.
    pub file: String,
    /// The file, resolved against the compiler's working directory.
    pub path: String,
    /// 1-based.
    pub line: u32,
}

impl fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A function, or a call of one that the compiler has inlined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The name in the source.
    pub name: String,
    /// The place of the call, if it is inlined.
    pub call: Option<SourcePlace>,
    /// Whether it is inlined.
    pub inlined: bool,
    unit: usize,
    entry: UnitOffset,
}

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// The name in the source.
    pub name: String,
    /// Whether it is a parameter of the function.
    pub parameter: bool,
    /// Its type.
    pub kind: Option<TypeRef>,
    /// The function whose frame it is in; `None` outside of functions.
    function: Option<Function>,
    unit: usize,
    entry: UnitOffset,
}

impl fmt::Debug for DebugInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "DebugInfo(none)" } else { "DebugInfo" })
    }
}

impl DebugInfo {
    /// Keeps the debug information of a file whose code has these addresses.
    pub fn read(file: &object::File, text: Range<u64>) -> DebugInfo {
        if file.section_by_name(".debug_info").is_none() {
            return DebugInfo::default();
        }
        let load = |id: gimli::SectionId| gimli::Result::Ok(section(file, id.name()).into_owned());
        let sections = gimli::DwarfSections::load(load).ok();
        let inner = sections.map(|sections| Inner { sections, text, index: OnceLock::new() });
        DebugInfo { inner: inner.map(Arc::new) }
    }

    /// Returns whether there is no debug information.
    pub fn is_empty(&self) -> bool {
        self.inner.is_none()
    }

    /// Returns the functions that contain an address, innermost first. All but the last are inlined.
    pub fn functions(&self, address: u64) -> Vec<Function> {
        let Some(inner) = &self.inner else { return Vec::new() };
        let mut code: Vec<&Code> =
            inner.index().functions.iter().filter(|c| c.addresses.contains(&address)).collect();
        code.sort_by_key(|c| -c.depth);
        code.into_iter().map(|code| code.function.clone()).collect()
    }

    /// Returns the addresses of a function that is not inlined.
    pub fn function_addresses(&self, name: &str) -> Option<Range<u64>> {
        let functions = &self.inner.as_ref()?.index().functions;
        let named = functions.iter().filter(|c| !c.function.inlined && c.function.name == name);
        named.map(|c| c.addresses.clone()).min_by_key(|addresses| addresses.start)
    }

    /// Returns the addresses of the function around an address, inlined calls included.
    pub fn addresses_around(&self, address: u64) -> Option<Range<u64>> {
        let functions = &self.inner.as_ref()?.index().functions;
        let around = functions.iter().find(|c| !c.function.inlined && c.addresses.contains(&address));
        around.map(|c| c.addresses.clone())
    }

    /// Returns the address at which the frame of a function with these addresses is set up, if the line table marks it.
    pub fn body(&self, addresses: &Range<u64>) -> Option<u64> {
        Reader::new(self.inner.as_ref()?).body(addresses).ok()?
    }

    /// Returns the addresses at which a function begins where it is inlined.
    pub fn inlined_starts(&self, name: &str) -> Vec<u64> {
        let functions = self.inner.iter().flat_map(|inner| &inner.index().functions);
        let named = functions.filter(|c| c.function.inlined && c.function.name == name);
        // The code of a call may be in several ranges.
        let mut starts = BTreeMap::new();
        for code in named {
            let start =
                starts.entry((code.function.unit, code.function.entry)).or_insert(code.addresses.start);
            *start = code.addresses.start.min(*start);
        }
        starts.into_values().collect()
    }

    /// Returns the names of the functions.
    pub fn function_names(&self) -> impl Iterator<Item = &str> {
        let functions = self.inner.iter().flat_map(|inner| &inner.index().functions);
        functions.map(|c| c.function.name.as_str())
    }

    /// Returns the locations of the inlined calls that contain an address, innermost first.
    pub fn inlined_calls(&self, address: u64) -> Vec<String> {
        let calls = self.functions(address).into_iter().filter_map(|f| f.call);
        calls.map(|call| call.to_string()).collect()
    }

    /// Returns whether any variable has this name.
    pub fn has_variable(&self, name: &str) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.index().names.contains(name))
    }

    /// Returns the names of all variables, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.inner.iter().flat_map(|inner| inner.index().names.iter().map(String::as_str))
    }

    /// Returns the variables of a function that are in scope at an address, those of inner blocks first.
    pub fn variables(&self, function: &Function, address: u64) -> Vec<Variable> {
        let Some(inner) = &self.inner else { return Vec::new() };
        let reader = Reader::new(inner);
        let mut found = Vec::new();
        let _ = reader.variables(function, address, &mut found);
        found.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
        found.into_iter().map(|(_, variable)| variable).collect()
    }

    /// Returns the parameters of the function at an address, in their order.
    pub fn parameters(&self, address: u64) -> Vec<Variable> {
        let around = self.functions(address).pop();
        let mut all = around.map_or_else(Vec::new, |function| self.variables(&function, address));
        all.retain(|variable| variable.parameter);
        all
    }

    /// Returns the variables outside of functions.
    pub fn globals(&self) -> Vec<Variable> {
        let Some(inner) = &self.inner else { return Vec::new() };
        let reader = Reader::new(inner);
        let variable = |&(unit, entry): &(usize, UnitOffset)| {
            let found = reader.units.get(unit)?.entry(entry).ok()?;
            reader.variable(unit, &found, None)
        };
        inner.index().globals.iter().filter_map(variable).collect()
    }
}

impl Inner {
    fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let mut index = Index::default();
            let reader = Reader::new(self);
            for unit in 0..reader.units.len() {
                let _ = reader.index(unit, &mut index);
            }
            index
        })
    }
}

/// The debug information while a question is answered.
struct Reader<'a> {
    inner: &'a Inner,
    dwarf: Dwarf<'a>,
    units: Vec<Unit<'a>>,
    /// Number of types that may still be read for this question: damaged ones may contain themselves.
    types_left: Cell<u32>,
}

impl<'a> Reader<'a> {
    fn new(inner: &'a Inner) -> Reader<'a> {
        let dwarf = inner.sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
        let mut units = Vec::new();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            // The place of a unit in the list is its number.
            match dwarf.unit(header) {
                Ok(unit) => units.push(unit),
                Err(_) => break,
            }
        }
        Reader { inner, dwarf, units, types_left: Cell::new(types::MAX_TYPES) }
    }

    fn index(&self, number: usize, index: &mut Index) -> gimli::Result<()> {
        let unit = &self.units[number];
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            if index.functions.len() + index.names.len() + index.globals.len() >= MAX_ENTRIES {
                return Ok(());
            }
            match entry.tag() {
                gimli::DW_TAG_subprogram | gimli::DW_TAG_inlined_subroutine => {
                    let function = self.function(number, entry);
                    let mut ranges = self.dwarf.die_ranges(unit, entry)?;
                    while let Some(range) = ranges.next()? {
                        let addresses = range.begin..range.end;
                        // Functions discarded by the linker have address 0.
                        if self.inner.text.contains(&addresses.start) && !addresses.is_empty() {
                            let (depth, function) = (entry.depth(), function.clone());
                            index.functions.push(Code { addresses, depth, function });
                        }
                    }
                }
                gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                    if let Some(name) = self.name(unit, entry) {
                        index.names.insert(name);
                    }
                    if self.in_lds(unit, entry) {
                        index.lds_variables += 1;
                    }
                    if entry.depth() == 1 {
                        index.globals.push((number, entry.offset()));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns an attribute of an entry, or of the entry whose instance it is.
    fn attribute(
        &self,
        unit: &Unit<'a>,
        entry: &Entry<'a>,
        name: gimli::DwAt,
    ) -> Option<AttributeValue<Slice<'a>>> {
        if let Some(value) = entry.attr_value(name) {
            return Some(value);
        }
        let origin = entry
            .attr_value(gimli::DW_AT_abstract_origin)
            .or_else(|| entry.attr_value(gimli::DW_AT_specification))?;
        let AttributeValue::UnitRef(offset) = origin else { return None };
        let origin = unit.entry(offset).ok()?;
        origin.attr_value(name).or_else(|| {
            let AttributeValue::UnitRef(offset) = origin.attr_value(gimli::DW_AT_specification)? else {
                return None;
            };
            unit.entry(offset).ok()?.attr_value(name)
        })
    }

    fn name(&self, unit: &Unit<'a>, entry: &Entry<'a>) -> Option<String> {
        let value = self.attribute(unit, entry, gimli::DW_AT_name)?;
        let name = self.dwarf.attr_string(unit, value).ok()?;
        Some(name.to_string_lossy().into_owned())
    }

    fn function(&self, number: usize, entry: &Entry<'a>) -> Function {
        let unit = &self.units[number];
        let name = self.name(unit, entry).unwrap_or_else(|| "(no name)".to_string());
        let inlined = entry.tag() == gimli::DW_TAG_inlined_subroutine;
        let call = if inlined { self.call(unit, entry) } else { None };
        Function { name, call, inlined, unit: number, entry: entry.offset() }
    }

    /// Returns the place of an inlined call.
    fn call(&self, unit: &Unit<'a>, entry: &Entry<'a>) -> Option<SourcePlace> {
        let number = |name| match entry.attr_value(name)? {
            AttributeValue::FileIndex(number) => Some(number),
            value => value.udata_value(),
        };
        let (file, line) = (number(gimli::DW_AT_call_file)?, number(gimli::DW_AT_call_line)?);
        let header = unit.line_program.as_ref()?.header();
        let file = source_file(&self.dwarf, unit, header, header.file(file)?).ok()?;
        Some(SourcePlace { file: file.name.to_string(), path: file.path, line: u32::try_from(line).ok()? })
    }

    /// Collects the variables of a function at an address, each with its depth.
    fn variables(
        &self,
        function: &Function,
        address: u64,
        out: &mut Vec<(isize, Variable)>,
    ) -> gimli::Result<()> {
        let Some(unit) = self.units.get(function.unit) else { return Ok(()) };
        let mut entries = unit.entries_at_offset(function.entry)?;
        let Some(first) = entries.next_dfs()?.map(|entry| entry.depth()) else { return Ok(()) };
        // The depth below which entries are skipped: blocks elsewhere, and inlined calls.
        let mut skipped: Option<isize> = None;
        while let Some(entry) = entries.next_dfs()? {
            let depth = entry.depth();
            if depth <= first {
                break;
            }
            if skipped.is_some_and(|outer| depth > outer) {
                continue;
            }
            skipped = None;
            match entry.tag() {
                gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                    let variable = self.variable(function.unit, entry, Some(function));
                    out.extend(variable.map(|variable| (depth, variable)));
                }
                gimli::DW_TAG_lexical_block if self.contains(unit, entry, address) => {}
                _ => skipped = Some(depth),
            }
        }
        Ok(())
    }

    /// Returns the first address of a range that the line table marks as the end of a prologue.
    fn body(&self, addresses: &Range<u64>) -> gimli::Result<Option<u64>> {
        for unit in &self.units {
            let Some(program) = unit.line_program.clone() else { continue };
            let mut rows = program.rows();
            while let Some((_, row)) = rows.next_row()? {
                if row.prologue_end() && addresses.contains(&row.address()) {
                    return Ok(Some(row.address()));
                }
            }
        }
        Ok(None)
    }

    fn contains(&self, unit: &Unit<'a>, entry: &Entry<'a>, address: u64) -> bool {
        let Ok(mut ranges) = self.dwarf.die_ranges(unit, entry) else { return false };
        while let Ok(Some(range)) = ranges.next() {
            if (range.begin..range.end).contains(&address) {
                return true;
            }
        }
        false
    }

    fn variable(&self, number: usize, entry: &Entry<'a>, function: Option<&Function>) -> Option<Variable> {
        let unit = self.units.get(number)?;
        Some(Variable {
            name: self.name(unit, entry)?,
            parameter: entry.tag() == gimli::DW_TAG_formal_parameter,
            kind: self.type_of(number, entry),
            function: function.cloned(),
            unit: number,
            entry: entry.offset(),
        })
    }

    /// Returns the type that an entry names.
    fn type_of(&self, number: usize, entry: &Entry<'a>) -> Option<TypeRef> {
        let unit = self.units.get(number)?;
        match self.attribute(unit, entry, gimli::DW_AT_type)? {
            AttributeValue::UnitRef(entry) => Some(TypeRef { unit: number, entry }),
            _ => None,
        }
    }
}
