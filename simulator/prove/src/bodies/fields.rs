//! Which values the fields of an instruction can have: bodies are compared for instructions that exist.

use isa_export::smtlib::Field;
use isa_spec::pcode::ir::FieldName;
use isa_spec::tables::{EntryId, MAX_FIELDS};
use std::collections::BTreeMap;
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::binding;

/// Fields by the names of pseudocode.
pub(super) type Fields = BTreeMap<FieldName, Field>;

/// The values of a field in the encodings of an instruction of an architecture. What no encoding has is 0, and what its name
/// or the architecture say is a number.
pub(super) fn of(arch: Arch, instruction: usize, name: FieldName) -> Field {
    let table = arch.table();
    let mut forms = Vec::new();
    for (id, entry) in (0..).zip(table.entries).filter(|(_, entry)| entry.inst as usize == instruction) {
        let encoding = &table.encodings[entry.enc as usize];
        let bound = binding(arch, id);
        let mut inst = Inst {
            entry: id,
            entry_y: EntryId::MAX,
            size: (encoding.bits / 8) as u8,
            fields: [0; MAX_FIELDS],
        };
        let zero = bound.named_field(&inst, table, name);
        for (value, field) in inst.fields.iter_mut().zip(encoding.fields) {
            *value = (u32::MAX as u64 >> (32 - field.width().min(32))) as u32;
        }
        let ones = bound.named_field(&inst, table, name);
        let offset = bound.mods.offset.filter(|_| name == "OFFSET" && bound.signed_offset);
        forms.push(match offset {
            Some(at) => Field::Bits { width: encoding.fields[at as usize].width(), signed: true },
            None if zero == ones => Field::Fixed(zero),
            None => Field::Bits { width: 32 - (zero | ones).leading_zeros(), signed: false },
        });
    }
    forms.into_iter().reduce(either).unwrap_or(Field::Fixed(0))
}

/// A field that has the values of both.
fn either(a: Field, b: Field) -> Field {
    let bits = |field: Field| match field {
        Field::Fixed(value) => (32 - value.leading_zeros(), false),
        Field::Bits { width, signed } => (width, signed),
    };
    let ((x, signed_x), (y, signed_y)) = (bits(a), bits(b));
    if a == b { a } else { Field::Bits { width: x.max(y).max(1), signed: signed_x || signed_y } }
}

/// Makes two fields of one name accept the values that both have. A field of one architecture alone stays as it is.
pub(super) fn common(a: Field, b: Field) -> [Field; 2] {
    match (a, b) {
        (Field::Bits { width: x, signed: true }, Field::Bits { width: y, signed: true }) => {
            [Field::Bits { width: x.min(y), signed: true }; 2]
        }
        (Field::Bits { width: x, signed: s }, Field::Bits { width: y, signed: t }) => {
            // Of a signed field, the numbers that are not negative.
            let width = (x - s as u32).min(y - t as u32);
            [Field::Bits { width, signed: false }; 2]
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(arch: Arch, instruction: &str, name: FieldName) -> Field {
        let found = arch.table().instructions.iter().position(|one| one.name == instruction);
        of(arch, found.expect("an instruction"), name)
    }

    #[test]
    fn fields_have_the_values_of_their_encodings() {
        assert_eq!(field(Arch::Rdna3, "GLOBAL_LOAD_B32", "OFFSET"), Field::Bits { width: 13, signed: true });
        assert_eq!(field(Arch::Rdna3, "BUFFER_LOAD_B32", "OFFSET"), Field::Bits { width: 12, signed: false });
        assert_eq!(field(Arch::Rdna3, "BUFFER_LOAD_B32", "GFX"), Field::Fixed(11));
        assert_eq!(field(Arch::Rdna4, "BUFFER_LOAD_B32", "GFX"), Field::Fixed(12));
        assert_eq!(field(Arch::Rdna4, "GLOBAL_LOAD_B32", "SCALE_OFFSET"), Field::Fixed(0));
        assert_eq!(
            field(Arch::Cdna5, "GLOBAL_LOAD_B32", "SCALE_OFFSET"),
            Field::Bits { width: 1, signed: false }
        );
    }

    #[test]
    fn both_architectures_have_the_values() {
        let bits = |width, signed| Field::Bits { width, signed };
        assert_eq!(common(bits(12, false), bits(24, true)), [bits(12, false); 2]);
        assert_eq!(common(bits(24, true), bits(13, true)), [bits(13, true); 2]);
        assert_eq!(common(bits(16, false), bits(8, true)), [bits(7, false); 2]);
        assert_eq!(common(Field::Fixed(0), bits(1, false)), [Field::Fixed(0), bits(1, false)]);
    }
}
