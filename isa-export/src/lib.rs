//! Typed pseudocode in forms that other tools read: [`json`]; [`c`] and [`smtlib`], functions in these languages;
//! [`smt`] evaluates bodies symbolically, to terms of SMT solvers.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod c;
pub mod json;
pub mod smt;
pub mod smtlib;

use isa_spec::canonical::Operation;
use isa_spec::pcode::ir::Role;
use isa_spec::tables::ArchTable;

/// What is exported.
pub struct Export<'a> {
    /// The architectures.
    pub tables: &'a [&'static ArchTable],
    /// The bodies, each once.
    pub operations: &'a [&'a Operation],
    /// The number of the operation of an instruction, by the numbers of table and instruction.
    pub operation: &'a dyn Fn(usize, usize) -> Option<usize>,
    /// The file and line of a body.
    pub place: &'a dyn Fn(&Operation) -> (String, usize),
    /// Which instructions are exported, by name.
    pub is_exported: &'a dyn Fn(&str) -> bool,
    /// Why an instruction has no body.
    pub reason: &'a dyn Fn(&str) -> Option<&'static str>,
}

impl Export<'_> {
    /// The functions' names of the instructions that share an operation, by its number.
    fn users(&self) -> Vec<Vec<String>> {
        let mut users = vec![Vec::new(); self.operations.len()];
        for (number, table) in self.tables.iter().enumerate() {
            for (at, instruction) in table.instructions.iter().enumerate() {
                if (self.is_exported)(instruction.name)
                    && let Some(operation) = (self.operation)(number, at)
                {
                    users[operation].push(function_name(table.name, instruction.name));
                }
            }
        }
        users
    }
}

/// The function of an instruction of an architecture.
fn function_name(arch: &str, instruction: &str) -> String {
    let name: String = instruction
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
        .collect();
    format!("{arch}_{name}")
}

/// The name of an operand in the exports: `Src0` is `SRC0`.
pub fn role_name(role: Role) -> String {
    format!("{role:?}").to_uppercase()
}

/// From this address on, an access to a buffer is out of range.
pub const BUFFER_END: u64 = 1 << 63;

/// Names in the case of identifiers: `WaveSize` is `wave_size`.
pub fn snake(name: &str) -> String {
    let mut out = String::new();
    for (at, c) in name.char_indices() {
        if c.is_ascii_uppercase() && at > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
