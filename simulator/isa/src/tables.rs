//! The tables that the macro generates from the XML.

isa_macros::tables!();
