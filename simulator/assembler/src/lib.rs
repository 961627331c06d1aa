//! Assembly files: directives, macros, symbols and sections, and the object files that they become. The crate
//! `wavesim-asm` reads the instructions.
//!
//! ```text
//! file --source, expand, macros--> lines --reader, directive--> Program --link--> addresses
//! Program --object--> shared object (what HIP loads)     Program --relocatable--> object for a linker
//! ```
//!
//! ```
//! use wavesim_assembler::{object, read};
//! use wavesim_asm::Options;
//! use wavesim_isa::arch::Arch;
//! let options = Options::new(Arch::Rdna3);
//! let (mut program, errors) = read("start: s_branch start\n", &options);
//! assert!(errors.is_empty());
//! assert_eq!(program.labels().next(), Some(("start", 0, 0)));
//! assert!(object::write(&mut program, &options).is_ok());
//! ```
#![warn(missing_docs)]
// No files, threads, processes or clocks; clippy.toml lists the disallowed methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

// Reading.
mod conditional;
mod directive;
pub mod expand;
mod features;
pub mod generic;
pub mod macros;
mod reader;
pub mod source;
mod target;
// What has been read.
pub mod descriptor;
pub mod program;
// Writing.
pub mod link;
pub mod metadata;
pub mod object;
pub mod relocatable;
pub mod relocation;

use program::{File, LineError, Program};
use wavesim_asm::Options;

/// Reads a file. Reading continues after errors; the returned program then holds everything that could be
/// read.
pub fn read_file(file: &File, options: &Options) -> (Program, Vec<LineError>) {
    if let Some(machine) = options.arch.machine() {
        let (unit, errors) = generic::read(file.text, options.arch, machine);
        let errors = errors.into_iter().map(|e| e.in_file(file.name)).collect();
        return (unit.program(options.arch, machine), errors);
    }
    reader::Reader::new(file, options).read()
}

/// Reads a text for the options' architecture. Including other files is an error.
pub fn read(text: &str, options: &Options) -> (Program, Vec<LineError>) {
    let nothing = |_: &str| Err(std::io::ErrorKind::Unsupported.into());
    read_file(&File { name: "<text>", text, defines: &[], open: &nothing, any_target: false }, options)
}
