//! Lazy loading of operations from pseudocode that is known to be free of errors. An item of a file (a
//! function, an instruction or a template) is parsed when a definition in it is first needed, of instructions
//! only the needed ones, and a body is checked when its operation is requested: a process that needs a few
//! operations does not pay for all of them. An index of the names in the headers of definitions ([`headers`])
//! tells which item to parse.

pub mod headers;

use crate::canonical::Operation;
use crate::pcode::ast::{Function, Instruction, Item, Record};
use crate::pcode::check::{Definitions, Library, check};
use crate::pcode::parse::{parse_instruction, parse_items_in};
use crate::pcode::sig::InstrSig;
use crate::pcode::token::{Token, lex};
use crate::source::{FileId, SourceMap};
use crate::tables::ArchTable;
use headers::{Headers, ItemText};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Pseudocode files whose items are each parsed on first use.
pub struct OnDemand<'a> {
    sources: &'a SourceMap,
    files: Vec<FileId>,
    index: OnceLock<Index>,
}

struct Index {
    headers: Headers,
    /// Indexed as [`Headers::items`].
    contents: Vec<OnceLock<Contents>>,
    /// Likewise: an item may define many instructions, each of which is parsed when it is needed.
    tokens: Vec<OnceLock<Vec<Token>>>,
}

/// The definitions of an item, templates expanded.
#[derive(Default)]
struct Contents {
    functions: BTreeMap<String, Vec<Function>>,
    records: BTreeMap<String, Vec<Record>>,
    /// Indices in `instructions` by upper-case name.
    blocks: BTreeMap<String, Vec<usize>>,
    instructions: Vec<Instruction>,
}

impl Contents {
    fn of(items: Vec<Item>) -> Contents {
        let mut contents = Contents::default();
        contents.take(items);
        contents
    }

    fn blocks(&self, name: &str) -> impl Iterator<Item = &Instruction> {
        self.blocks.get(name).into_iter().flatten().map(|at| &self.instructions[*at])
    }

    fn take(&mut self, items: Vec<Item>) {
        for item in items {
            match item {
                Item::Template(template) => self.take(template.items),
                Item::Function(function) => {
                    self.functions.entry(function.name.text.clone()).or_default().push(function);
                }
                Item::Record(record) => {
                    self.records.entry(record.name.text.clone()).or_default().push(record);
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
    /// Creates a loader; parses nothing yet.
    pub fn new(sources: &'a SourceMap, files: &[FileId]) -> OnDemand<'a> {
        OnDemand { sources, files: files.to_vec(), index: OnceLock::new() }
    }

    /// Checks and returns the operation of a table's instruction, whose block is in the file of this name.
    /// Returns `None` if there is no such block or if it has errors.
    pub fn operation(&self, file: &str, table: &'static ArchTable, name: &str) -> Option<Operation> {
        let file = self.files.iter().position(|id| self.sources.file(*id).name == file)?;
        let headers = &self.index().headers;
        let id = self.files[file];
        let items = headers.instructions.items(name).filter(|at| headers.items[*at].file == file);
        let parsed = items.map(|at| parse_instruction(self.sources, id, self.tokens(at), name));
        let contents: Vec<Contents> = parsed.map(Contents::of).collect();
        let mut library = Library::of(self);
        let blocks = contents.iter().flat_map(|contents| contents.blocks(name)).collect();
        library.instructions.insert(name.to_string(), blocks);
        let block = library.block(name, Some(table.name))?;
        let sig = InstrSig::from_table(table, table.instruction(name)?);
        let (sem, _) = check(self.sources, &library, block, &sig, Some(table.name)).ok()?;
        Some(Operation { name: name.to_string(), sig, sem, file: id })
    }

    fn contents(&self, position: usize) -> &Contents {
        let index = self.index();
        let ItemText { file, range } = &index.headers.items[position];
        let parse = || parse_items_in(self.sources, self.files[*file], range.clone()).0;
        index.contents[position].get_or_init(|| Contents::of(parse()))
    }

    fn tokens(&self, position: usize) -> &[Token] {
        let index = self.index();
        let ItemText { file, range } = &index.headers.items[position];
        index.tokens[position].get_or_init(|| {
            let file = self.files[*file];
            let text = self.sources.file(file).text.get(range.clone()).unwrap_or_default();
            lex(file, text, range.start).0
        })
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let headers = Headers::of(self.files.iter().map(|id| self.sources.file(*id).text.as_str()));
            let contents = headers.items.iter().map(|_| OnceLock::new()).collect();
            let tokens = headers.items.iter().map(|_| OnceLock::new()).collect();
            Index { headers, contents, tokens }
        })
    }
}

impl Definitions for OnDemand<'_> {
    // Definitions for different architectures may be in different files.

    fn functions(&self, name: &str) -> Vec<&Function> {
        let items = self.index().headers.functions.items(name);
        items.filter_map(|at| self.contents(at).functions.get(name)).flatten().collect()
    }

    fn records(&self, name: &str) -> Vec<&Record> {
        let items = self.index().headers.records.items(name);
        items.filter_map(|at| self.contents(at).records.get(name)).flatten().collect()
    }

    fn blocks(&self, name: &str) -> Vec<&Instruction> {
        let items = self.index().headers.instructions.items(name);
        items.flat_map(|at| self.contents(at).blocks(name)).collect()
    }
}
