//! The generated boundary: everything the macro makes of the XML and the pseudocode enters the crate here.

use crate::arch::Arch;
use isa_spec::tables::ArchTable;

/// The architecture's tables.
pub fn table(arch: Arch) -> &'static ArchTable {
    // Until the macro's tables are in place: built from the XML at first use.
    let _ = arch;
    unimplemented!("tables")
}
