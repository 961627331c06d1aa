//! Tests of the descriptions and of the language through the public interface, in one binary.

mod isa_roles;
mod isa_structure;
mod pcode_laws;
mod xml_errors;
mod xml_forms;
mod xml_overlay;
