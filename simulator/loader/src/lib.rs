//! Loads files and prepares kernels to run.
//!
//! - [`bundle`]: files with code objects for several targets; [`code_object`]: ELF files; [`assembly`]: `.s`
//!   files; [`image`]: loading into memory; [`abi`]: the initial state of compiled kernels
//! - [`launch`]: `launch.json`; [`request`]: a launch from a launch file or the command line; [`compare`]:
//!   expected outputs
//! - [`error`]: why a code object cannot be loaded
//! - [`generic`]: programs for machines other than AMD's
//! - [`objects`]: the variables of a program; [`parameters`]: names and types of a kernel's arguments
//! - [`surface`]: images in memory
//! - [`prepared`]: the common result of all of these and of the text format
#![warn(missing_docs)]
// No files, threads, processes or clocks; clippy.toml lists the disallowed methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod abi;
pub mod assembly;
pub mod bundle;
pub mod code_object;
pub mod compare;
pub mod debug_info;
pub mod error;
pub mod generic;
pub mod image;
pub mod kernel_name;
pub mod launch;
pub mod line_table;
mod metadata;
pub mod objects;
pub mod parameters;
pub mod prepared;
pub mod request;
pub mod surface;
pub mod text_kernel;
