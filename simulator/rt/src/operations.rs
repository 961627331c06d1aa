//! The operations, generated from the XML and the pseudocode.

isa_macros::operations!();
