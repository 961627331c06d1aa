//! From files to kernels ready to run.
//!
//! - [`bundle`]: files with code objects for several targets; [`code_object`]: ELF files; [`assembly`]: `.s` files; [`image`]: their bytes
//!   in memory; [`abi`]: what a compiled kernel finds when it starts
//! - [`launch`]: `launch.json`; [`request`]: a launch, from there or the command line; [`compare`]: expected outputs
//! - [`plain`]: programs of machines that are not AMD's
//! - [`prepared`]: what all of these, and the text format, come to
#![warn(missing_docs)]
// No files, threads, processes or clocks: clippy.toml has the list.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod abi;
pub mod assembly;
pub mod bundle;
pub mod code_object;
pub mod compare;
pub mod image;
pub mod inlined;
pub mod launch;
pub mod line_table;
mod metadata;
pub mod plain;
pub mod prepared;
pub mod request;
pub mod text_kernel;
