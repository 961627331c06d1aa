//! The generated boundary: the tables that the macro makes of the XML.

use crate::arch::Arch;
use isa_spec::tables::ArchTable;

isa_macros::tables!();

/// The architecture's tables.
pub fn table(arch: Arch) -> &'static ArchTable {
    TABLES[arch as usize]
}
