//! Operations of pseudocode that is known to have no errors: a file is parsed when something of it is first needed, and a body is checked
//! when it is. A process that needs a few operations does not wait for all of them.

use crate::canonical::Operation;
use crate::pcode::ast::{Function, Instruction, Item};
use crate::pcode::check::{Definitions, Library, check};
use crate::pcode::parse::parse_file;
use crate::pcode::sig::InstrSig;
use crate::source::{FileId, SourceMap};
use crate::tables::ArchTable;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Files, each parsed when it is first needed.
pub struct OnDemand<'a> {
    sources: &'a SourceMap,
    files: Vec<(FileId, OnceLock<Contents>)>,
}

/// What a file defines, templates expanded.
#[derive(Default)]
struct Contents {
    functions: BTreeMap<String, Function>,
    /// By upper-case name.
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
    /// None of the files is parsed yet.
    pub fn new(sources: &'a SourceMap, files: &[FileId]) -> OnDemand<'a> {
        OnDemand { sources, files: files.iter().map(|file| (*file, OnceLock::new())).collect() }
    }

    /// What an instruction of a table means, by its block in the file of this name. `None` if there is no such block, or if it has errors.
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

    /// What `find` finds: in files that are parsed, else in those that may have it by their text, else in all. (Templates make names that
    /// are not in the text.)
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

    /// Blocks for all architectures are in one file, or in several: those of all files are given.
    fn blocks(&self, name: &str) -> Vec<&Instruction> {
        let all = (0..self.files.len()).map(|at| self.contents(at));
        let of = |contents: &'_ Contents| contents.blocks.get(name).cloned().unwrap_or_default();
        all.flat_map(|contents| of(contents).into_iter().map(|at| &contents.instructions[at])).collect()
    }
}
