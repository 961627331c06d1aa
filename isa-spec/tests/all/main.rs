//! Tests of the descriptions and of the language through the public interface, in one binary.

mod arith;
mod calls;
mod eval;
mod facts;
mod isa_roles;
mod isa_structure;
mod on_demand;
mod pattern;
mod pcode_laws;
mod records;
mod tiling;
mod token;
mod xml_errors;
mod xml_forms;
mod xml_overlay;
