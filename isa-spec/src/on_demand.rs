//! Lazy loading of operations from pseudocode that is known to be free of errors. A file is parsed when a
//! definition in it is first needed, and a body is checked when its operation is requested: a process that
//! needs a few operations does not pay for all of them.

use crate::canonical::Operation;
use crate::pcode::ast::{Function, Instruction, Item};
use crate::pcode::check::{Definitions, Library, check};
use crate::pcode::parse::parse_file;
use crate::pcode::sig::InstrSig;
use crate::source::{FileId, SourceMap};
use crate::tables::ArchTable;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Pseudocode files, each parsed on first use.
pub struct OnDemand<'a> {
    sources: &'a SourceMap,
    files: Vec<(FileId, OnceLock<Contents>)>,
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
        OnDemand { sources, files: files.iter().map(|file| (*file, OnceLock::new())).collect() }
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

    /// Returns the first result of `find`. Searches parsed files first, then files whose text passes
    /// `may_have`, then the rest: templates generate names that do not appear in the text.
    fn find<'s, T>(
        &'s self,
        may_have: impl Fn(&str) -> bool,
        find: impl Fn(&'s Contents) -> Option<T>,
    ) -> Option<T> {
        let parsed = || self.files.iter().filter_map(|(_, contents)| contents.get());
        parsed().find_map(&find).or_else(|| {
            let text = |at: &usize| self.sources.file(self.files[*at].0).text.as_str();
            let (first, others): (Vec<usize>, _) = (0..self.files.len())
                .filter(|at| self.files[*at].1.get().is_none())
                .partition(|at| may_have(text(at)));
            first.into_iter().chain(others).find_map(|at| find(self.contents(at)))
        })
    }
}

impl Definitions for OnDemand<'_> {
    fn function(&self, name: &str) -> Option<&Function> {
        let defined = format!("function {name}(");
        self.find(|text| text.contains(&defined), |contents| contents.functions.get(name))
    }

    /// Collects the blocks from all files: blocks for different architectures may be in different files.
    fn blocks(&self, name: &str) -> Vec<&Instruction> {
        let all = (0..self.files.len()).map(|at| self.contents(at));
        let of = |contents: &'_ Contents| contents.blocks.get(name).cloned().unwrap_or_default();
        all.flat_map(|contents| of(contents).into_iter().map(|at| &contents.instructions[at])).collect()
    }
}
