//! Lazy loading of operations from pseudocode that is known to be free of errors. A file is parsed when a
//! definition in it is first needed, and a body is checked when its operation is requested: a process that
//! needs a few operations does not pay for all of them. An index of the names in the headers of definitions
//! ([`headers`]) tells which file to parse.

pub mod headers;

use crate::canonical::Operation;
use crate::pcode::ast::{Function, Instruction, Item};
use crate::pcode::check::{Definitions, Library, check};
use crate::pcode::parse::parse_file;
use crate::pcode::sig::InstrSig;
use crate::source::{FileId, SourceMap};
use crate::tables::ArchTable;
use headers::Headers;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Pseudocode files, each parsed on first use.
pub struct OnDemand<'a> {
    sources: &'a SourceMap,
    files: Vec<(FileId, OnceLock<Contents>)>,
    headers: OnceLock<Headers>,
}

/// The definitions of a file, templates expanded.
#[derive(Default)]
struct Contents {
    functions: BTreeMap<String, Function>,
    /// Indices in `instructions` by upper-case name.
    blocks: BTreeMap<String, Vec<usize>>,
    instructions: Vec<Instruction>,
}

impl Contents {
    fn of(sources: &SourceMap, file: FileId) -> Contents {
        let mut contents = Contents::default();
        contents.take(parse_file(sources, file).0.items);
        contents
    }

    fn take(&mut self, items: Vec<Item>) {
        for item in items {
            match item {
                Item::Template(template) => self.take(template.items),
                Item::Function(function) => {
                    self.functions.insert(function.name.text.clone(), function);
                }
                Item::Instruction(block) => {
                    for name in &block.names {
                        let list = self.blocks.entry(name.text.to_uppercase()).or_default();
                        list.push(self.instructions.len());
                    }
                    self.instructions.push(block);
                }
            }
        }
    }
}

impl<'a> OnDemand<'a> {
    /// Creates a loader; parses no file yet.
    pub fn new(sources: &'a SourceMap, files: &[FileId]) -> OnDemand<'a> {
        let files = files.iter().map(|file| (*file, OnceLock::new())).collect();
        OnDemand { sources, files, headers: OnceLock::new() }
    }

    /// Checks and returns the operation of a table's instruction, whose block is in the file of this name.
    /// Returns `None` if there is no such block or if it has errors.
    pub fn operation(&self, file: &str, table: &'static ArchTable, name: &str) -> Option<Operation> {
        let at = self.files.iter().position(|(id, _)| self.sources.file(*id).name == file)?;
        let contents = self.contents(at);
        let mut library = Library::of(self);
        let blocks = contents.blocks.get(name)?.iter().map(|block| &contents.instructions[*block]);
        library.instructions.insert(name.to_string(), blocks.collect());
        let block = library.block(name, Some(table.name))?;
        let sig = InstrSig::from_table(table, table.instruction(name)?);
        let (sem, _) = check(self.sources, &library, block, &sig, Some(table.name)).ok()?;
        Some(Operation { name: name.to_string(), sig, sem, file: self.files[at].0 })
    }

    fn contents(&self, at: usize) -> &Contents {
        let (file, contents) = &self.files[at];
        contents.get_or_init(|| Contents::of(self.sources, *file))
    }

    fn headers(&self) -> &Headers {
        self.headers.get_or_init(|| {
            Headers::of(self.files.iter().map(|(id, _)| self.sources.file(*id).text.as_str()))
        })
    }
}

impl Definitions for OnDemand<'_> {
    fn function(&self, name: &str) -> Option<&Function> {
        self.headers().functions.files(name).find_map(|at| self.contents(at).functions.get(name))
    }

    /// Collects the blocks from all files: blocks for different architectures may be in different files.
    fn blocks(&self, name: &str) -> Vec<&Instruction> {
        let all = self.headers().instructions.files(name).map(|at| self.contents(at));
        let of = |contents: &'_ Contents| contents.blocks.get(name).cloned().unwrap_or_default();
        all.flat_map(|contents| of(contents).into_iter().map(|at| &contents.instructions[at])).collect()
    }
}
