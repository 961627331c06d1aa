//! The tables that the macro generates from the XML.

use crate::arch::Arch;
use isa_spec::tables::ArchTable;

isa_macros::tables!();

/// The tables of an architecture.
pub fn table(arch: Arch) -> &'static ArchTable {
    TABLES[arch as usize]
}
