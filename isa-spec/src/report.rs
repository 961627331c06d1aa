//! Reports on single pseudocode files, for `wavesim pcode check` and the tests: one result per instruction.

use crate::canonical::{self, Parsed};
use crate::diag::{Diagnostic, MAX_SHOWN, Severity, nearest};
use crate::pcode::ast::{Instruction as Block, Name};
use crate::pcode::check::{Library, check};
use crate::pcode::ir::{Definition, Semantics, Shape};
use crate::pcode::sig::InstrSig;
use crate::source::{FileId, SourceMap};
use crate::tables::{ArchTable, NameIndex};
use std::collections::{BTreeMap, BTreeSet};

/// The result for one name of one block.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockReport {
    /// The instruction's name in upper case.
    pub instruction: String,
    /// The shape under the first signature that the body was checked against; `None` if there are errors.
    pub shape: Option<Shape>,
    /// Errors inside the block.
    pub errors: Vec<Diagnostic>,
}

/// The results for a set of files.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// Results in file order, templates expanded.
    pub blocks: Vec<BlockReport>,
    /// Every error and warning once, including those outside of blocks.
    pub diagnostics: Vec<Diagnostic>,
}

impl Report {
    /// Returns whether there are no errors.
    pub fn ok(&self) -> bool {
        self.diagnostics.iter().all(|d| d.severity != Severity::Error)
    }
}

/// Checks `files` against every architecture that has their instructions. Bodies may call the functions and
/// instructions of `base`. A name that no architecture has is checked without knowledge of its operands.
pub fn check_files(
    sources: &SourceMap,
    files: &[FileId],
    base: &[FileId],
    tables: &[&'static ArchTable],
) -> Report {
    let (parsed, syntax) = canonical::parse_all(sources, files);
    let (base_parsed, _) = canonical::parse_all(sources, base);
    let (mut library, mut diagnostics) = parsed.library();
    add_missing(&mut library, &base_parsed);
    diagnostics.extend(syntax.iter().cloned());
    parsed.limits().for_each(|archs| unknown_archs(archs, tables, &mut diagnostics));
    let index = NameIndex::of(tables);
    let mut blocks = Vec::new();
    for (_, block) in parsed.blocks() {
        let own: Vec<Diagnostic> = syntax
            .iter()
            .filter(|e| e.span.start >= block.span.start && e.span.end <= block.span.end)
            .cloned()
            .collect();
        unknown_archs(&block.archs, tables, &mut diagnostics);
        for name in &block.names {
            let suggest = diagnostics.len() < MAX_SHOWN;
            diagnostics.extend(canonical::unknown_instruction(name, block, tables, &index, suggest));
            let mut report =
                BlockReport { instruction: name.text.to_uppercase(), shape: None, errors: own.clone() };
            // A body with syntax errors is not checked.
            if own.is_empty() {
                // Where a body depends on definitions for some architectures, the signature is not sufficient.
                let mut done: Vec<(InstrSig, BTreeSet<Definition>)> = Vec::new();
                for (sig, arch) in signatures(block, &report.instruction, tables, &index) {
                    let same = |one: &Definition| arch.is_none_or(|arch| library.selects(one, arch));
                    if done.iter().any(|(old, definitions)| *old == sig && definitions.iter().all(same)) {
                        continue;
                    }
                    match check(sources, &library, block, &sig, arch) {
                        Ok((sem, warnings)) => {
                            done.push((sig, sem.definitions));
                            report.shape.get_or_insert(sem.shape);
                            diagnostics.extend(canonical::with_rows(warnings, block));
                        }
                        Err(errors) => {
                            done.push((sig, BTreeSet::new()));
                            report.errors.extend(canonical::with_rows(errors, block));
                        }
                    }
                }
            }
            report.errors.dedup();
            if !report.errors.is_empty() {
                report.shape = None;
                diagnostics.extend(report.errors.iter().cloned());
            }
            blocks.push(report);
        }
    }
    // A body is checked once for each signature and row, and may report the same error each time.
    let mut seen = std::collections::BTreeSet::new();
    diagnostics.retain(|d| seen.insert((d.span, d.message.clone())));
    Report { blocks, diagnostics }
}

/// Returns the semantics that `files` give to one architecture's instructions, by upper-case name. Blocks
/// with errors are left out.
pub fn semantics_of(
    sources: &SourceMap,
    files: &[FileId],
    base: &[FileId],
    table: &'static ArchTable,
) -> BTreeMap<String, Semantics> {
    let (parsed, _) = canonical::parse_all(sources, files);
    let (base_parsed, _) = canonical::parse_all(sources, base);
    let (mut library, _) = parsed.library();
    add_missing(&mut library, &base_parsed);
    let mut out = BTreeMap::new();
    for (_, block) in parsed.blocks() {
        if !block.archs.is_empty() && !block.archs.iter().any(|a| a.text == table.name) {
            continue;
        }
        for name in &block.names {
            let Some(inst) = table.instruction(&name.text.to_uppercase()) else { continue };
            let sig = InstrSig::from_table(table, inst);
            if let Ok((sem, _)) = check(sources, &library, block, &sig, Some(table.name)) {
                out.insert(inst.name.to_string(), sem);
            }
        }
    }
    out
}

/// Adds the definitions of `base` that the checked files do not define themselves.
fn add_missing<'a>(library: &mut Library<'a>, base: &'a Parsed) {
    let (base_library, _) = base.library();
    for (name, function) in base_library.functions {
        library.functions.entry(name).or_insert(function);
    }
    for (name, record) in base_library.records {
        library.records.entry(name).or_insert(record);
    }
    for (name, blocks) in base_library.instructions {
        library.instructions.entry(name).or_insert(blocks);
    }
}

/// Returns the signatures of an instruction in the architectures.
fn signatures(
    block: &Block,
    name: &str,
    tables: &[&'static ArchTable],
    index: &NameIndex,
) -> Vec<(InstrSig, Option<&'static str>)> {
    let mut out: Vec<(InstrSig, Option<&'static str>)> = Vec::new();
    for table in tables {
        if !block.archs.is_empty() && !block.archs.iter().any(|a| a.text == table.name) {
            continue;
        }
        let Some(inst) = index.named(table, name) else { continue };
        let sig = InstrSig::from_table(table, &table.instructions[inst]);
        out.push((sig, Some(table.name)));
    }
    if out.is_empty() {
        out.push((InstrSig::permissive(name), None));
    }
    out
}

fn unknown_archs(archs: &[Name], tables: &[&'static ArchTable], out: &mut Vec<Diagnostic>) {
    for arch in archs {
        if !tables.is_empty() && !tables.iter().any(|t| t.name == arch.text) {
            let known: Vec<&str> = tables.iter().map(|t| t.name).collect();
            let mut error = Diagnostic::error(arch.span, format!("there is no architecture `{}`", arch.text));
            error = match nearest(&arch.text, known.iter().copied()) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.help(format!("the architectures are {}", known.join(", "))),
            };
            out.push(error);
        }
    }
}
