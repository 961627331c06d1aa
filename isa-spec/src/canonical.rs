//! Builds the deduplicated set of operations from pseudocode files and architecture tables.

use crate::diag::{Diagnostic, MAX_SHOWN, nearest};
use crate::pcode::ast::{File, Function, Instruction as Block, Item, Name, Record};
use crate::pcode::check::{Library, check};
use crate::pcode::ir::Semantics;
use crate::pcode::parse::parse_file;
use crate::pcode::sig::InstrSig;
use crate::source::{FileId, SourceMap, Span};
use crate::tables::{ArchTable, NameIndex};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// One operation: a body checked against one operand signature.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The name of the first instruction that uses it.
    pub name: String,
    /// The operand signature that the body was checked against.
    pub sig: InstrSig,
    /// The typed body.
    pub sem: Semantics,
    /// The pseudocode file that has the body.
    pub file: FileId,
}

/// The semantics of every instruction that has any.
#[derive(Debug, Default)]
pub struct SemanticsSet {
    /// The operations; an operation that several instructions share appears once.
    pub operations: Vec<Operation>,
    /// Per table (in the order given): instruction index -> operation index.
    pub by_arch: Vec<Vec<Option<u32>>>,
}

/// All parsed files.
pub struct Parsed {
    /// Each file with its tree.
    pub files: Vec<(FileId, File)>,
}

/// Parses pseudocode files. Returns the trees and all syntax errors; the tree of a file with errors has the
/// parts that could be parsed.
pub fn parse_all(sources: &SourceMap, files: &[FileId]) -> (Parsed, Vec<Diagnostic>) {
    let mut errors = Vec::new();
    let files = files
        .iter()
        .map(|&id| {
            let (file, mut e) = parse_file(sources, id);
            errors.append(&mut e);
            (id, file)
        })
        .collect();
    (Parsed { files }, errors)
}

impl Parsed {
    /// Returns every instruction block, templates expanded.
    pub fn blocks(&self) -> Vec<(FileId, &Block)> {
        self.definitions().blocks
    }

    /// Returns every record, templates expanded.
    pub fn records(&self) -> Vec<&Record> {
        self.definitions().records
    }

    /// Returns the architecture lists of functions and records.
    pub(crate) fn limits(&self) -> impl Iterator<Item = &[Name]> {
        let Collected { functions, records, .. } = self.definitions();
        let functions = functions.into_iter().map(|one| one.archs.as_slice());
        functions.chain(records.into_iter().map(|one| one.archs.as_slice()))
    }

    fn definitions(&self) -> Collected<'_> {
        let mut out = Collected::default();
        for (id, file) in &self.files {
            out.collect(*id, &file.items);
        }
        out
    }

    /// Collects the definitions that bodies may call, with diagnostics for names defined twice.
    pub fn library(&self) -> (Library<'_>, Vec<Diagnostic>) {
        let mut library = Library::default();
        let mut errors = Vec::new();
        let Collected { blocks, functions, records } = self.definitions();
        for one in functions {
            let list = library.functions.entry(one.name.text.clone()).or_default();
            // A function of a template without placeholders is the same in each row.
            if list.iter().any(|old| old.span == one.span) {
                continue;
            }
            if let Some(old) = list.iter().find(|old| share(&old.archs, &one.archs)) {
                errors.push(defined_twice("function", &one.name, &old.name));
            }
            list.push(one);
        }
        for one in records {
            let list = library.records.entry(one.name.text.clone()).or_default();
            if let Some(old) = list.iter().find(|old| share(&old.archs, &one.archs)) {
                errors.push(defined_twice("record", &one.name, &old.name));
            }
            list.push(one);
        }
        for (_, block) in blocks {
            for name in &block.names {
                let list = library.instructions.entry(name.text.to_uppercase()).or_default();
                if let Some(other) = list.iter().find(|other| overlap(other, block)) {
                    errors.push(
                        Diagnostic::error(name.span, format!("instruction {} has two bodies", name.text))
                            .also(other.span, "the other body")
                            .help("limit each to its architectures: `instruction NAME for rdna4 { … }`"),
                    );
                }
                list.push(block);
            }
        }
        (library, errors)
    }
}

/// Returns a warning if no architecture of the block has an instruction of this name. Only if `suggest` is set
/// (the warning will be shown) does the warning have a suggestion, which is expensive to compute.
pub(crate) fn unknown_instruction(
    name: &Name,
    block: &Block,
    tables: &[&'static ArchTable],
    index: &NameIndex,
    suggest: bool,
) -> Option<Diagnostic> {
    let upper = name.text.to_uppercase();
    let archs =
        || tables.iter().filter(|t| block.archs.is_empty() || block.archs.iter().any(|a| a.text == t.name));
    if archs().next().is_none() || archs().any(|t| index.instruction(t, &upper).is_some()) {
        return None;
    }
    let message = match block.archs.as_slice() {
        [] => format!("no architecture has an instruction {upper}"),
        archs => {
            let names: Vec<&str> = archs.iter().map(|a| a.text.as_str()).collect();
            format!("{} has no instruction {upper}", names.join(", "))
        }
    };
    let warning = Diagnostic::warning(name.span, message).label("unused");
    if !suggest {
        return Some(warning);
    }
    let names = || archs().flat_map(|t| t.instructions.iter().map(|i| i.name));
    // Prefer a name with the same prefix: a vector instruction for a vector instruction.
    let prefix = upper.split('_').next().unwrap_or_default();
    let same_prefix = names().filter(|n| n.split('_').next() == Some(prefix));
    Some(match nearest(&upper, same_prefix).or_else(|| nearest(&upper, names())) {
        Some(near) => warning.help(format!("did you mean `{near}`?")),
        None => warning,
    })
}

/// Adds to each error of a block the template rows that the block was expanded from.
pub(crate) fn with_rows(errors: Vec<Diagnostic>, block: &Block) -> Vec<Diagnostic> {
    let note =
        |e: Diagnostic| block.rows.iter().fold(e, |e, row| e.also(row.span, "in the expansion of this row"));
    errors.into_iter().map(note).collect()
}

fn overlap(a: &Block, b: &Block) -> bool {
    share(&a.archs, &b.archs)
}

/// Returns whether two lists of architectures, of which an empty one means all, have one in common.
fn share(a: &[Name], b: &[Name]) -> bool {
    a.is_empty() || b.is_empty() || a.iter().any(|x| b.iter().any(|y| x.text == y.text))
}

fn defined_twice(what: &str, name: &Name, old: &Name) -> Diagnostic {
    Diagnostic::error(name.span, format!("{what} `{}` is defined twice", name.text))
        .also(old.span, "first here")
}

/// The definitions of files.
#[derive(Default)]
struct Collected<'a> {
    blocks: Vec<(FileId, &'a Block)>,
    functions: Vec<&'a Function>,
    records: Vec<&'a Record>,
}

impl<'a> Collected<'a> {
    fn collect(&mut self, id: FileId, items: &'a [Item]) {
        for item in items {
            match item {
                Item::Instruction(block) => self.blocks.push((id, block)),
                Item::Function(function) => self.functions.push(function),
                Item::Record(record) => self.records.push(record),
                Item::Template(template) => self.collect(id, &template.items),
            }
        }
    }
}

/// Checks every block against every architecture that has its instruction.
pub fn load_set(
    sources: &SourceMap,
    files: &[FileId],
    tables: &[&'static ArchTable],
) -> (SemanticsSet, Vec<Diagnostic>) {
    let (parsed, mut diagnostics) = parse_all(sources, files);
    let (library, mut errors) = parsed.library();
    diagnostics.append(&mut errors);
    let mut set = SemanticsSet {
        operations: Vec::new(),
        by_arch: tables.iter().map(|t| vec![None; t.instructions.len()]).collect(),
    };
    let index = NameIndex::of(tables);
    let mut seen_errors = BTreeSet::new();
    for (file, block) in parsed.blocks() {
        // (signature without its name, operation) pairs of this block so far.
        let mut done: Vec<(InstrSig, Option<u32>)> = Vec::new();
        for name in &block.names {
            let upper = name.text.to_uppercase();
            let mut used = false;
            for (at, table) in tables.iter().enumerate() {
                if !block.archs.is_empty() && !block.archs.iter().any(|a| a.text == table.name) {
                    continue;
                }
                let Some(inst) = index.named(table, &upper) else { continue };
                used = true;
                let sig = InstrSig::from_table(table, &table.instructions[inst]);
                let key = InstrSig { name: String::new(), ..sig.clone() };
                let selects_the_same = |operation: Option<u32>| {
                    let definitions = operation.map(|at| &set.operations[at as usize].sem.definitions);
                    definitions.is_none_or(|list| list.iter().all(|one| library.selects(one, table.name)))
                };
                let operation = match done.iter().find(|d| d.0 == key && selects_the_same(d.1)) {
                    Some(d) => d.1,
                    None => {
                        let operation = match check(sources, &library, block, &sig, Some(table.name)) {
                            Ok((sem, _)) => {
                                set.operations.push(Operation { name: upper.clone(), sig, sem, file });
                                Some(set.operations.len() as u32 - 1)
                            }
                            Err(errors) => {
                                for e in with_rows(errors, block) {
                                    if seen_errors.insert((e.span, e.message.clone())) {
                                        diagnostics.push(e);
                                    }
                                }
                                None
                            }
                        };
                        done.push((key, operation));
                        operation
                    }
                };
                set.by_arch[at][inst] = operation;
            }
            if !used {
                let suggest = diagnostics.len() < MAX_SHOWN;
                diagnostics.extend(unknown_instruction(name, block, tables, &index, suggest));
            }
        }
    }
    (set, diagnostics)
}

/// What a file defines in place of the project's semantics.
#[derive(Debug)]
pub struct Replacements {
    /// The semantics by instruction name, one map per table.
    pub by_arch: Vec<BTreeMap<String, Semantics>>,
    /// Errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// The number of expressions that were checked.
    pub expressions: u64,
}

/// Checks `file` against the project's `files` and returns the semantics that it gives to instructions of the tables,
/// in the order given. The blocks and functions of `file` take precedence over the project's.
pub fn replacements(
    sources: &SourceMap,
    files: &[FileId],
    file: FileId,
    tables: &[&'static ArchTable],
) -> Replacements {
    let (standard, _) = parse_all(sources, files);
    let (own, mut diagnostics) = parse_all(sources, &[file]);
    let (mut library, _) = standard.library();
    let (own_library, mut errors) = own.library();
    diagnostics.append(&mut errors);
    for (name, functions) in own_library.functions {
        let list = library.functions.entry(name).or_default();
        list.retain(|old| !functions.iter().any(|new| share(&old.archs, &new.archs)));
        list.extend(functions);
    }
    for (name, records) in own_library.records {
        let list = library.records.entry(name).or_default();
        list.retain(|old| !records.iter().any(|new| share(&old.archs, &new.archs)));
        list.extend(records);
    }
    for (name, blocks) in own_library.instructions {
        let list = library.instructions.entry(name).or_default();
        list.retain(|old| !blocks.iter().any(|new| overlap(old, new)));
        list.extend(blocks);
    }
    let index = NameIndex::of(tables);
    let mut out = vec![BTreeMap::new(); tables.len()];
    let mut reported: HashSet<(Span, String)> =
        diagnostics.iter().map(|e| (e.span, e.message.clone())).collect();
    for (_, block) in own.blocks() {
        for name in &block.names {
            let upper = name.text.to_uppercase();
            let mut used = false;
            for (table, out) in tables.iter().zip(&mut out) {
                if !block.archs.is_empty() && !block.archs.iter().any(|a| a.text == table.name) {
                    continue;
                }
                let Some(inst) = index.named(table, &upper) else { continue };
                used = true;
                let sig = InstrSig::from_table(table, &table.instructions[inst]);
                match check(sources, &library, block, &sig, Some(table.name)) {
                    Ok((sem, _)) => {
                        out.insert(upper.clone(), sem);
                    }
                    Err(errors) => {
                        for e in with_rows(errors, block) {
                            // Most are the same for all architectures. There may be tens of thousands.
                            if reported.insert((e.span, e.message.clone())) {
                                diagnostics.push(e);
                            }
                        }
                    }
                }
            }
            if !used {
                let suggest = diagnostics.len() < MAX_SHOWN;
                diagnostics.extend(unknown_instruction(name, block, tables, &index, suggest));
            }
        }
    }
    Replacements { by_arch: out, diagnostics, expressions: library.expressions() }
}
