//! Names of the header.

use crate::snake;
use isa_spec::pcode::builtins::FIELDS;
use isa_spec::pcode::ir::*;

/// The operands that bodies name, in the order of the header's enumeration, which ends with `ISA_VCC_OUT`.
pub const ROLES: [Role; 14] = [
    Role::D0,
    Role::D1,
    Role::S0,
    Role::S1,
    Role::S2,
    Role::S3,
    Role::S4,
    Role::Vcc,
    Role::Imm,
    Role::VAddr,
    Role::SAddr,
    Role::SOffset,
    Role::Data,
    Role::Data1,
];

/// The lane mask that a body writes, apart from the one that it reads.
pub(super) const VCC_OUT: &str = "ISA_VCC_OUT";

pub(super) const SPACES: [Space; 7] =
    [Space::Global, Space::Flat, Space::Lds, Space::Scratch, Space::Buffer, Space::Scalar, Space::Word];

pub(super) fn role(role: Role) -> String {
    format!("ISA_{}", crate::role_name(role))
}

/// The operand in which a body leaves what it writes.
pub(super) fn destination(one: Role) -> String {
    if one == Role::Vcc { VCC_OUT.to_string() } else { role(one) }
}

pub(super) fn space(space: Space) -> String {
    format!("ISA_{}", snake(&format!("{space:?}")).to_uppercase())
}

pub(super) fn field(name: &str) -> String {
    format!("ISA_FIELD_{name}")
}

/// The names of fields, in the order of the header's enumeration.
pub(super) fn fields() -> impl Iterator<Item = &'static str> {
    FIELDS.iter().map(|(name, _)| *name)
}

pub(super) fn control(builtin: Control) -> String {
    format!("ISA_CONTROL_{}", builtin.def().name.to_uppercase())
}

pub(super) fn shape(shape: Shape) -> &'static str {
    match shape {
        Shape::Scalar => "ISA_SHAPE_SCALAR",
        Shape::Lane => "ISA_SHAPE_LANE",
        Shape::Wave => "ISA_SHAPE_WAVE",
    }
}

/// The low bits of an operand.
pub(super) fn operand(name: String, width: u32) -> String {
    match width {
        0..=64 => format!("isa_read(m, {name}, {width})"),
        _ => format!("isa_read_wide(m, {name}, {width})"),
    }
}
